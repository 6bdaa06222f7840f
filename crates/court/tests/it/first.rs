//! Policies without queues decide on states, too.

use crate::decide;

#[test]
fn drf_serves_the_user_behind() {
    let text = "[capacity]\ncpu = 9\nmemory_gib = 18\n\
        [[running]]\nname = \"a1\"\nuser = \"A\"\ndemand = { cpu = 1, memory_gib = 4 }\n\
        [[running]]\nname = \"b1\"\nuser = \"B\"\ndemand = { cpu = 3, memory_gib = 1 }\n\
        [[waiting]]\nname = \"b2\"\nuser = \"B\"\ndemand = { cpu = 3, memory_gib = 1 }\ntasks = 9\n\
        [[waiting]]\nname = \"a2\"\nuser = \"A\"\ndemand = { cpu = 1, memory_gib = 4 }\ntasks = 9\n";
    let answer = decide("drf", text);
    assert_eq!(answer.launched, [("a2".to_owned(), 2), ("b2".to_owned(), 1)]);
    assert!(answer.evicted.is_empty());
}
