//! Vectors of the KAI scheduler: allocation, preemption in a queue, and the order of queues. The cases have the names of KAI's tests,
//! shortened.

use super::table::play;
use crate::decide;
use std::fmt::Write as _;

/// `actions/preempt/{preempt,preempt_elastic}_test.go` and `actions/integration_tests/preempt/preempt_test.go`.
#[test]
fn preempt() {
    let own = "a:root:1:0";
    let (two, three, four) = ("a:root:2:0", "a:root:3:0", "a:root:4:0");
    play(&[
        ("no need to preempt both", "2", two, "r0:a:0.5 r1:a:1 r2:a:0.5", "w:a:1^100", "r1", "w"),
        ("1 train, 1 build", "1", own, "r:a:1", "w:a:1^100", "r", "w"),
        ("1 train, 1 train", "1", own, "r:a:1", "w:a:1", "", ""),
        ("different queue", "1", "a:root:1:0 b:root:1:0", "r:a:1", "w:b:1^100", "", ""),
        ("2 train jobs, build with 2 GPUs", "2", two, "r0:a:1 r1:a:1", "w:a:2^100", "r0 r1", "w"),
        ("2 train jobs of 2 GPUs", "4", "a:root:2:0 b:root:2:0", "r0:a:2 r1:b:2", "w:a:2^100", "r0", "w"),
        ("1 GPU for queue0, 2 for queue1", "4", "a:root:2:0 b:root:2:0", "r0:a:1 r1:b:2", "w:a:2^100", "r0", "w"),
        ("train before preemptible interactive", "2", two, "r0:a:1 r1:a:1^75", "w:a:1^100", "r0", "w"),
        ("2 preemptible interactive", "2", two, "r0:a:1^75 r1:a:1^75", "w:a:1^100", "r1", "w"),
        ("preemptible interactive pending", "1", own, "r:a:1", "w:a:1^75", "r", "w"),
        ("inference and interactive", "1", "a:root:10:0:fixed", "r:a:1^100", "w:a:1^125", "", ""),
        ("interactive and inference", "1", "a:root:10:0:fixed", "r:a:1^125", "w:a:1^100", "", ""),
        ("inference and train", "1", "a:root:10:0", "r:a:1", "w:a:1^125", "r", "w"),
        ("integration: deserved 1", "2", own, "r:a:2", "w:a:1^100", "r", "w"),
        ("integration: 3 jobs", "4", four, "r0:a:1 r1:a:2 r2:a:1", "w:a:4^100", "r0 r1 r2", "w"),
        ("integration: no node", "2 2", four, "r0:a:1@0 r1:a:2@1 r2:a:1@0", "w:a:4^100", "", ""),
        ("elastic: single task", "2", two, "r:a:1x2", "w:a:1^125", "r", "w"),
        ("elastic: several tasks", "4", four, "r:a:1x4", "w:a:2^125", "rx2", "w"),
        ("elastic: all tasks", "2", four, "r:a:1x2", "w:a:2^125", "rx2", "w"),
        ("elastic: a job and a task", "3", three, "r0:a:1x2 r1:a:1", "w:a:2^125", "r0 r1", "w"),
        ("elastic: several elastic jobs", "4", four, "r0:a:1x2 r1:a:1x2", "w:a:2^125", "r0 r1", "w"),
        ("elastic: several jobs", "4", four, "r0:a:1 r1:a:1x2 r2:a:1", "w:a:4^125", "r0 r1x2 r2", "w"),
        ("elastic: inference job", "2", two, "r:a:2", "w:a:1x2^125", "r", "w"),
        (
            "elastic: in favor of a single task",
            "3",
            "a:root:3:0|[[user]]\nname = \"p\"\nparent = \"a\"",
            "r:a:1x2 p0:a:1^125/p",
            "w:a:1^125/p",
            "r",
            "w",
        ),
    ]);
}

/// `actions/allocate/allocate_test.go` and `actions/integration_tests/allocate/allocate_test.go`.
#[test]
fn allocate() {
    let (own, two) = ("a:root:2:0", "a:root:2:0 b:root:2:0");
    let one = "a:root:1:0 b:root:1:0";
    play(&[
        ("according to the queue shares", "2 2", one, "r:a:1@0", "w0:a:1 w1:b:1 w2:b:1 w3:b:1", "", "w0 w1 w2"),
        ("according to their order", "4 4", own, "r:a:2@0", "w0:a:4 w1:a:2 w2:a:2", "", "w0 w1"),
        ("only build job", "4", own, "r:a:2", "w0:a:4 w1:a:2 w2:a:2^100", "", "w2"),
        ("queue0 will pass the deserved", "4", two, "r0:a:1 r1:b:1", "w0:a:2 w1:b:1", "", "w1"),
        ("fair convergence", "4", "a:root:3:0 b:root:2:0", "r:a:2", "w0:a:1 w1:b:2", "", "w1"),
        ("same share, smaller job", "5", "a:root:4:0 b:root:2:0", "r0:a:2 r1:b:1", "w0:a:2 w1:b:1", "", "w1"),
        ("exactly the same share", "5", two, "r0:a:2 r1:b:2", "w0:a:1 w1:b:1", "", "w0"),
        ("no deserved GPUs", "1", "a:root:0:0 b:root:1:0", "", "w0:a:1 w1:b:1", "", "w1"),
        ("preemptible interactive over quota", "5", own, "r0:a:2 r1:a:2^75", "w0:a:1^75", "", "w0"),
        ("build interactive", "5", own, "r0:a:2^75", "w0:a:2^100", "", "w0"),
        ("integration: project over allowance", "4", "d:root:2:2 a:d:2:2:0:2", "", "w0:a:2 w1:a:2", "", "w0"),
        ("integration: department over allowance", "4", "d:root:2:2:0:2 a:d:2:0", "", "w0:a:2 w1:a:2", "", "w0"),
        ("integration: train over quota", "2", one, "", "w0:a:1^100 w1:a:1", "", "w0 w1"),
        ("integration: build over quota", "4", "a:root:1:0:fixed b:root:1:0", "", "w0:a:2^100", "", ""),
        ("integration: creation time", "1", one, "", "w0:a:1^100 w1:b:1^100", "", "w0"),
        ("integration: priority", "1", "a:root:1:0 b:root:1:0:1", "", "w0:a:1^100 w1:b:1^100", "", "w1"),
        ("integration: different share", "1", "a:root:1:0 b:root:2:0", "", "w0:a:1^100 w1:b:1^100", "", "w1"),
        ("integration: 6 pending", "4", one, "", "w0:a:1 w1:a:1 w2:a:1 w3:b:1 w4:b:1 w5:b:1", "", "w0 w1 w3 w4"),
        (
            "integration: many queues",
            "2",
            "a:root:1:0 b:root:1:0 c:root:1:0 d:root:1:0",
            "",
            "w0:a:1 w1:b:1 w2:c:1 w3:d:1 w4:a:1 w5:b:1",
            "",
            "w0 w1",
        ),
        (
            "integration: departments with smaller ratio",
            "1",
            "d1:root:1:1 d2:root:2:2 a:d1:3:0 b:d1:2:0 c:d2:1:0",
            "",
            "w0:a:1 w1:b:1 w2:c:1",
            "",
            "w2",
        ),
        ("integration: department's deserved", "4", "d1:root:1:1 a:d1:2:0:fixed", "", "w:a:2^100", "", ""),
        ("integration: train is preempted at the limit", "2", "a:root:1:1:0:1", "r:a:1", "w:a:1^100", "r", "w"),
        ("integration: train stays at the limit", "2", "a:root:1:1:0:1", "r:a:1^100", "w:a:1", "", ""),
    ]);
}

/// `queue_order_test.go`: a queue is ordered behind the others if it exceeds its fair shares of CPU, of memory and of GPUs. This requires
/// a quota of all three resources. By default only GPUs have a quota; then a queue that stays within its quota is first, then the queue
/// of higher priority.
#[test]
fn order_of_queues() {
    let text = |deserved: &str| {
        let mut text = "[capacity]\ncpu = 8\nmemory = 8\ngpu = 8\n".to_owned();
        for (name, held, priority) in [("a", 5, 1), ("b", 2, 0)] {
            let _ = write!(
                text,
                "[[group]]\nname = \"{name}\"\npriority = {priority}\nweight = 0\ndeserved = {{ {} }}\n",
                deserved.replace('N', if name == "a" { "4" } else { "2" })
            );
            let each = "demand = { cpu = 1, memory = 1, gpu = 1 }";
            let _ = write!(text, "[[running]]\nname = \"r{name}\"\ngroup = \"{name}\"\ntasks = {held}\n{each}\n");
            let _ = write!(text, "[[waiting]]\nname = \"w{name}\"\ngroup = \"{name}\"\n{each}\n");
        }
        text
    };
    // Derived: a has 5 tasks and a quota of 4, and b has 2 tasks and a quota of 2. With one more task neither stays within its quota.
    let first = |deserved: &str| decide("kai", &text(deserved)).launched[0].0.clone();
    assert_eq!(first("gpu = N"), "wa", "a has the higher priority");
    assert_eq!(first("cpu = N, memory = N, gpu = N"), "wb", "a is over its fair share");
    // "even if priority is different": each queue deserves 2 GPUs; a has 20, and b has none.
    play(&[
        ("quota starvation", "25", "a:root:2:1:1 b:root:2:1", "r:a:1x20", "wa:a:1x5 wb:b:1x2", "", "wax3 wbx2"),
        ("starved first", "21", "a:root:2:1:1 b:root:2:1", "r:a:1x20", "wa:a:1 wb:b:1", "", "wb"),
    ]);
}
