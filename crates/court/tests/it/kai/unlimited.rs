//! Unlimited quotas (-1 in KAI): a queue deserves the total of its level (`setDeservedResource` in `resource_division.go`), and may use
//! as much as its limit allows (`GetAllocatableShare`).

use super::{evicted, state};
use crate::decide;

/// Returns the fair GPU shares of the named queues.
fn fair(text: &str, names: &[&str]) -> Vec<f64> {
    let answer = decide("kai", text);
    names.iter().map(|name| answer.share(name, "fair gpu")).collect()
}

/// The numbers of issue 143 below a parent without a quota, as in KAI's quickstart: the fair shares are 1, 3 and 1 of 5 GPUs.
#[test]
fn a_parent_without_a_bound_has_the_cluster() {
    let queues = "p:root:\"unlimited\":1:0 a:p:1:1:2 b:p:1:2:1 c:p:0:1:1";
    let text = state("5", queues, "", "wa:a:1:1:0 wb:b:1:3:0 wc:c:1:2:0", "");
    assert_eq!(fair(&text, &["p", "a", "b", "c"]), [5.0, 1.0, 3.0, 1.0]);
    let started = decide("kai", &text).launched.iter().map(|(_, tasks)| tasks).sum::<u32>();
    assert_eq!(started, 5);
}

/// A queue reclaims from its sibling below a parent without a quota. The fair shares are 3 and 2 of 5 GPUs, and the sibling uses all
/// five.
#[test]
fn siblings_reclaim_under_a_parent_without_a_bound() {
    let queues = "p:root:\"unlimited\":1:0 a:p:0:1:0 b:p:0:1:0";
    let text = state("5", queues, "ra:a:1:5:0", "wb:b:1:5:0 wa:a:1:5:0", "");
    assert_eq!(fair(&text, &["p", "a", "b"]), [5.0, 3.0, 2.0]);
    assert!(!evicted(&text).is_empty());
    // The result is the same without a parent.
    let flat = state("5", "a:root:0:1:0 b:root:0:1:0", "ra:a:1:5:0", "wb:b:1:5:0 wa:a:1:5:0", "");
    assert_eq!(fair(&flat, &["a", "b"]), [3.0, 2.0]);
    assert_eq!(decide("kai", &flat).evicted, decide("kai", &text).evicted);
}

/// A queue with an unlimited quota loses no task to reclaim. Its sibling still has its deserved amount as its fair share, because in KAI
/// deserved amounts may exceed the total. The fair share of the unlimited queue is the total.
#[test]
fn a_queue_without_a_bound_keeps_what_it_holds() {
    let queues = "a:root:\"unlimited\":1:0 b:root:2:1:0";
    let text = state("5", queues, "ra:a:1:5:0", "wb:b:1:5:0 wa:a:1:9:0", "");
    assert_eq!(fair(&text, &["a", "b"]), [5.0, 2.0]);
    assert!(evicted(&text).is_empty());
}

/// In random trees of three levels, the sum of the fair shares of siblings never exceeds the fair share of their parent. At most one of
/// several siblings has an unlimited quota, and the others deserve nothing.
#[test]
fn fair_shares_of_siblings_never_exceed_the_parent() {
    for case in 0..150u64 {
        let draw = |at: u64, below: u64| (case * 2_654_435_761 + at * 40_503 + (case >> 3) * at * 97) / 7 % below;
        let (mut queues, mut waiting, mut running) = (Vec::new(), Vec::new(), Vec::new());
        let mut levels: Vec<(String, Vec<String>)> = Vec::new();
        let mut next = vec![("root".to_owned(), 0)];
        let mut number = 0;
        while let Some((parent, depth)) = next.pop() {
            let count = 1 + draw(number + 1, 3);
            let endless = draw(number + 7, count + 1);
            let mut siblings = Vec::new();
            for at in 0..count {
                number += 1;
                let name = format!("q{number}");
                let deserved = if at == endless { "\"unlimited\"" } else { "0" };
                let (weight, priority) = (draw(number + 11, 4), draw(number + 13, 2));
                queues.push(format!("{name}:{parent}:{deserved}:{weight}:{priority}"));
                if depth < 2 && draw(number + 17, 3) > 0 {
                    next.push((name.clone(), depth + 1));
                } else {
                    waiting.push(format!("w{name}:{name}:1:{}:0", 1 + draw(number + 19, 9)));
                    if running.is_empty() {
                        running.push(format!("r{name}:{name}:1:{}:0", 1 + draw(number + 23, 4)));
                    }
                }
                siblings.push(name);
            }
            levels.push((parent, siblings));
        }
        let total = 5 + draw(3, 9);
        let text = state(&total.to_string(), &queues.join(" "), &running.join(" "), &waiting.join(" "), "");
        for (parent, siblings) in levels {
            let names: Vec<&str> = siblings.iter().map(String::as_str).collect();
            let above = if parent == "root" { total as f64 } else { fair(&text, &[&parent])[0] };
            let sum: f64 = fair(&text, &names).iter().sum();
            assert!(sum <= above, "case {case}: the shares under {parent} sum to {sum}, more than {above}\n{text}");
        }
    }
}

/// Only the key `deserved` accepts the word "unlimited", and it accepts no other word.
#[test]
fn the_word_is_refused_elsewhere() {
    let text = state("5", "a:root:0:1:0", "", "wa:a:1:1:0", "");
    for (from, to, expected) in [
        ("deserved = { gpu = 0 }", "limit = { gpu = \"unlimited\" }", "limit.gpu: 'unlimited' is not a number"),
        ("deserved = { gpu = 0 }", "deserved = { gpu = \"all\" }", "an amount of at least 0 or \"unlimited\""),
    ] {
        let (state, registry) =
            (crate::state(&text.replace(from, to)), plimsoll_policies::Registry::new(plimsoll_schedulers::BUILT_IN));
        let bench = plimsoll_court::Bench::new(&state, "kai", &registry);
        let played = bench.and_then(|bench| bench.play(&mut plimsoll_court::Situation::first(&state)));
        let error = played.map(|_| ()).expect_err(to).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
