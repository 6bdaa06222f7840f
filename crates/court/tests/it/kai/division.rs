//! Vectors of `resource_division_test.go` of the KAI scheduler. The numbers of CPU and memory are those of the source, as whole units.

use crate::decide;
use std::fmt::Write as _;

/// A queue: its deserved amount, weight and request, and a priority and a limit if the source's case has them.
#[derive(Clone, Copy)]
struct Queue {
    deserved: f64,
    weight: f64,
    request: f64,
    priority: i32,
    limit: Option<f64>,
}

fn queue(deserved: f64, weight: f64, request: f64) -> Queue {
    Queue { deserved, weight, request, priority: 0, limit: None }
}

impl Queue {
    fn priority(self, priority: i32) -> Queue {
        Queue { priority, ..self }
    }

    fn limit(self, limit: f64) -> Queue {
        Queue { limit: Some(limit), ..self }
    }
}

/// Returns the fair share of each queue in one resource.
fn shares(resource: &str, total: f64, queues: &[Queue]) -> Vec<f64> {
    let mut text = format!("[capacity]\n{resource} = {total}\n");
    for (at, queue) in queues.iter().enumerate() {
        let Queue { deserved, weight, priority, .. } = queue;
        let _ = write!(
            text,
            "[[group]]\nname = \"q{at}\"\nweight = {weight}\npriority = {priority}\ndeserved = {{ {resource} = {deserved} }}\n"
        );
        if let Some(limit) = queue.limit {
            let _ = writeln!(text, "limit = {{ {resource} = {limit} }}");
        }
    }
    for (at, queue) in queues.iter().enumerate().filter(|(_, queue)| queue.request > 0.0) {
        let each = queue.request / 10.0;
        let _ = write!(text, "[[waiting]]\ngroup = \"q{at}\"\ntasks = 10\ndemand = {{ {resource} = {each:.3} }}\n");
    }
    let answer = decide("kai", &text);
    (0..queues.len()).map(|at| answer.share(&format!("q{at}"), &format!("fair {resource}"))).collect()
}

/// "single queue within quota", "single queue over quota": each case has a total, a queue and its expected share.
#[test]
fn one_queue() {
    let within = queue(3.0, 0.0, 2.0);
    let over = queue(3.0, 1.0, 5.0);
    for (total, queue, share) in [
        (2.0, within, 2.0),
        (3.0, within, 2.0),
        (3.0, within.limit(2.0), 2.0),
        (1.0, within, 2.0),
        (7.0, queue(3.0, 0.0, 5.0), 3.0),
        (2.0, queue(1.5, 0.0, 2.0), 1.5),
        (2.0, queue(3.0, 0.0, 1.5), 1.5),
        (2.0, queue(0.0, 0.0, 2.0), 0.0),
        // The over-quota cases of the source state only the amount that is left for over-quota shares. In this test the total also
        // includes the deserved amount.
        (5.0, over, 5.0),
        (6.0, over, 5.0),
        (5.0, over.limit(4.0), 4.0),
        (5.0, queue(3.0, 0.0, 5.0), 3.0),
        (5.0, queue(3.0, 1.0, 4.5), 4.5),
        (3.5, over, 3.5),
        (6.0, queue(0.0, 1.0, 5.0), 5.0),
        (3.0, over, 3.0),
        (13.0, queue(3.0, 0.0, 5.0), 3.0),
    ] {
        assert_eq!(shares("gpu", total, &[queue]), [share], "{total}");
    }
}

/// "two queues", in GPUs. Unless a case states other numbers, a queue deserves 2 GPUs, has a weight of 2 and requests 6.
#[test]
fn two_queues() {
    let one = queue(2.0, 2.0, 6.0);
    let of = |total, first, second| shares("gpu", total, &[first, second]);
    assert_eq!(of(12.0, one.limit(5.0), one), [5.0, 6.0]);
    assert_eq!(
        of(11.0, queue(2.0, 1.0, 10.0), queue(2.0, 4.0, 10.0)),
        [3.0, 8.0],
        "the queue with the larger fraction receives the remainder"
    );
    assert_eq!(of(6.0, one.priority(1), one.priority(2)), [2.0, 4.0]);
    assert_eq!(of(6.0, queue(2.0, 100.0, 6.0).priority(1), queue(2.0, 1.0, 6.0).priority(2)), [2.0, 4.0]);
    assert_eq!(
        of(16.0, queue(3.0, 0.0, 5.0), queue(3.0, 1.0, 3.0)),
        [3.0, 3.0],
        "a queue without a weight receives nothing over its quota"
    );
    // "divide last remaining GPU based to similar queues"
    assert_eq!(of(5.0, queue(2.0, 2.0, 3.0), queue(2.0, 2.0, 3.0)), [3.0, 2.0]);
    // "Enough resources", "Request more than total" of `SetResourcesShare`.
    assert_eq!(of(10.0, queue(1.0, 1.0, 1.0), queue(1.0, 1.0, 1.0)), [1.0, 1.0]);
    assert_eq!(of(10.0, queue(1.0, 1.0, 8.0), queue(1.0, 1.0, 8.0)), [5.0, 5.0]);
    let (small, large) = (queue(250.0, 1.0, 5000.0), queue(150.0, 2.0, 5000.0));
    assert_eq!(of(1000.0, small, large), [450.0, 550.0]);
    assert_eq!(of(1000.0, small, large.limit(400.0)), [600.0, 400.0]);
    // "fractional fair share"
    let three = [queue(12.0, 12.0, 32.55), queue(7.0, 7.0, 9.5), queue(2.0, 2.0, 1.65).limit(2.0)];
    assert_eq!(shares("gpu", 45.0, &three), [32.55, 9.5, 1.65]);
}

/// "setResourceShare - CPU" and "setResourceShare - memory", which have the same numbers, and the cases of `SetResourcesShare`.
#[test]
fn cores_and_memory() {
    for resource in ["cpu", "memory"] {
        let of = |total, queues: &[Queue]| shares(resource, total, queues);
        let whole = |request| queue(5000.0, 1.0, request);
        assert_eq!(of(3000.0, &[queue(3000.0, 1.0, 2000.0)]), [2000.0]);
        assert_eq!(of(1000.0, &[queue(3000.0, 1.0, 2000.0)]), [2000.0]);
        assert_eq!(of(10_000.0, &[whole(10_000.0), queue(0.0, 0.0, 5000.0)]), [10_000.0, 0.0]);
        assert_eq!(of(10_000.0, &[whole(5000.0); 3]), [5000.0; 3], "the deserved amounts exceed the total");
        assert_eq!(of(18_000.0, &[whole(6000.0); 3]), [6000.0; 3]);
        assert_eq!(of(10_000.0, &[whole(7000.0), whole(5000.0), whole(2000.0)]), [5000.0, 5000.0, 2000.0]);
        let limited = whole(7000.0).limit(7000.0);
        assert_eq!(of(10_000.0, &[limited, whole(2000.0), whole(2000.0)]), [6000.0, 2000.0, 2000.0]);
        assert_eq!(of(10_000.0, &[limited, whole(5000.0), whole(2000.0)]), [5000.0, 5000.0, 2000.0]);
        let nothing = queue(0.0, 1.0, 5000.0);
        assert_eq!(of(10_000.0, &[whole(5000.0), nothing, whole(5000.0)]), [5000.0, 0.0, 5000.0]);
        assert_eq!(of(10_000.0, &[whole(10_000.0), nothing, whole(10_000.0)]), [5000.0, 0.0, 5000.0]);
        assert_eq!(of(2500.0, &[queue(200.0, 1.0, 500.0)]), [500.0]);
        assert_eq!(
            of(1000.0, &[queue(20_000.0, 1.0, 2500.0)]),
            [2500.0],
            "the request is deserved, although the total is smaller"
        );
        assert_eq!(of(3000.0, &[queue(1000.0, 1.0, 5000.0)]), [3000.0]);
        assert_eq!(of(2500.0, &[queue(200.0, 1.0, 500.0); 2]), [500.0; 2]);
        assert_eq!(of(3000.0, &[queue(2000.0, 1.0, 3000.0); 2]), [2000.0; 2]);
        assert_eq!(of(9999.0, &[queue(1000.0, 1.0, 10_000.0); 3]), [3333.0; 3]);
        let weighted = [6.0, 2.0, 1.0].map(|weight| queue(0.0, weight, 10_000.0));
        assert_eq!(of(9999.0, &weighted), [6666.0, 2222.0, 1111.0]);
    }
}
