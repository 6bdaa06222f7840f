//! Checks the reference implementation against manually computed answers.

use super::{OnBlocked, Outcome, Placement, Policy, Ratio, Row, Ties, World};

const LONG: u64 = 1_000_000;

fn row(job: usize, user: usize, submit: u64, duration: u64, tasks: u64, demand: &[u64]) -> Row {
    Row { job, user, submit, duration, tasks, demand: demand.to_vec(), ..Row::default() }
}

fn pool(capacity: &[u64], policy: Policy) -> World {
    World { machines: vec![capacity.to_vec()], policy, placement: Placement::Pooled, ..World::default() }
}

fn simulate(rows: &[Row], world: &World) -> Vec<Outcome> {
    super::simulate(rows, world).expect("no gang is larger than the cluster")
}

fn machines(machines: &[&[u64]], policy: Policy, placement: Placement) -> World {
    World { machines: machines.iter().map(|m| m.to_vec()).collect(), placement, ..pool(&[], policy) }
}

/// Returns `(job, start, finish)` of the tasks, in the order of their launches.
fn launches(rows: &[Row], world: &World) -> Vec<(usize, u64, u64)> {
    let started = simulate(rows, world).into_iter().filter_map(|o| Some((o.job, o.start?, o.finish?)));
    started.collect()
}

fn jobs(rows: &[Row], world: &World) -> Vec<usize> {
    launches(rows, world).into_iter().map(|(job, ..)| job).collect()
}

fn placed(rows: &[Row], world: &World) -> Vec<Option<usize>> {
    simulate(rows, world).into_iter().map(|outcome| outcome.machine).collect()
}

/// Returns the jobs that start at time 0, with the paper's users A = 0 of <1 CPU, 4 GB> and B = 1 of <3 CPU, 1 GB>.
fn paper(policy: Policy, ties: Ties, on_blocked: OnBlocked) -> Vec<usize> {
    let rows = [row(0, 0, 0, LONG, 20, &[1, 4]), row(1, 1, 0, LONG, 20, &[3, 1])];
    let world = World { ties, on_blocked, ..pool(&[9, 18], policy) };
    launches(&rows, &world).into_iter().filter(|&(_, start, _)| start == 0).map(|(job, ..)| job).collect()
}

#[test]
fn fractions_compare_exactly() {
    let r = Ratio::new;
    assert_eq!(r(6, 8), r(3, 4));
    assert!(
        r(0, 7) == Ratio::ZERO && r(1, 3) < r(1, 2) && r(2, 3) > r(1, 2) && r(7, 2) > r(3, 1) && r(5, 5) == r(1, 1)
    );
    assert!(r(333_333, 1_000_000) < r(1, 3) && r(333_334, 1_000_000) > r(1, 3) && Ratio::ZERO < r(1, u128::MAX));
    // The cross products of these fractions overflow. The fractions differ by less than 1 / (big * big).
    let big = 1u128 << 100;
    assert!(r(big, big + 1) < r(big + 1, big + 2) && r(big + 1, big) > r(big + 2, big + 1));
}

#[test]
fn table_1_of_the_drf_paper() {
    use OnBlocked::{Skip, Stop};
    for on_blocked in [Skip, Stop] {
        assert_eq!(
            paper(Policy::Drf, Ties::HighestId, on_blocked),
            [1, 0, 0, 1, 0],
            "the paper's order: B, A, A, B, A"
        );
        assert_eq!(paper(Policy::Drf, Ties::LowestId, on_blocked), [0, 1, 0, 1, 0], "section 4.1: x = (3, 2)");
        assert_eq!(paper(Policy::Drf, Ties::FewestRunning, on_blocked), [0, 1, 0, 1, 0]);
    }
}

#[test]
fn asset_fairness_and_single_resource_max_min_on_the_same_users() {
    // Asset fairness: each task of A adds 1/9 + 4/18 = 6/18, and each task of B adds 3/9 + 1/18 = 7/18. The order is A, B, A (6 < 7), B (7
    // < 12), and A (12 < 14). The third task of A takes the last CPU.
    assert_eq!(paper(Policy::Asset, Ties::LowestId, OnBlocked::Skip), [0, 1, 0, 1, 0]);
    // Max-min in CPU: A (1 core), B (3 cores), A, A. With 3 cores each, A wins the tie, and its 4 tasks then use 16 GB. B needs 3 cores,
    // but 2 are left; A needs 4 GB, but 1 GB is left.
    assert_eq!(paper(Policy::MaxMin(0), Ties::LowestId, OnBlocked::Skip), [0, 1, 0, 0, 0]);
    // Max-min in memory: A (4 GB), B (1 GB), B (2 GB). Then 7 cores are used, and the third task of B does not fit: `Skip` serves A again,
    // `Stop` ends the round.
    assert_eq!(paper(Policy::MaxMin(1), Ties::LowestId, OnBlocked::Skip), [0, 1, 1, 0, 0]);
    assert_eq!(paper(Policy::MaxMin(1), Ties::LowestId, OnBlocked::Stop), [0, 1, 1]);
}

#[test]
fn weights_divide_shares() {
    let rows = [row(0, 0, 0, LONG, 9, &[1]), row(1, 1, 0, LONG, 9, &[1])];
    let weights = vec![vec![Ratio::new(2, 1)], vec![Ratio::ONE]];
    for policy in [Policy::Drf, Policy::Asset, Policy::MaxMin(0), Policy::Slot(6)] {
        let world = World { weights: weights.clone(), ..pool(&[6], policy) };
        assert_eq!(jobs(&rows, &world)[..6], [0, 1, 0, 0, 1, 0], "{policy:?}");
    }
    // With a weight per resource, the dominant share is the largest share over weight: A's CPU counts double, and B's memory half.
    let rows = [row(0, 0, 0, LONG, 9, &[2, 1]), row(1, 1, 0, LONG, 9, &[1, 2])];
    let weights = vec![vec![Ratio::new(1, 2), Ratio::ONE], vec![Ratio::ONE, Ratio::new(2, 1)]];
    // A task adds 2/12 / (1/2) = 1/3 to A, or max(1/12, 2/18 / 2) = 1/12 to B, so that B gets four tasks for each task of A.
    let world = World { weights, ..pool(&[12, 18], Policy::Drf) };
    assert_eq!(jobs(&rows, &world)[..8], [0, 1, 1, 1, 1, 0, 1, 1]);
}

#[test]
fn fifo_serves_by_arrival_and_then_by_row() {
    let rows = [row(0, 5, 0, 10, 2, &[1]), row(1, 3, 0, 5, 1, &[1]), row(2, 5, 4, 1, 1, &[1])];
    let expected = [(0, 0, 10), (0, 0, 10), (1, 10, 15), (2, 10, 11)];
    assert_eq!(launches(&rows, &pool(&[2], Policy::Fifo)), expected);
    // Priority orders the tasks of one user only. It does not move a user ahead of another user.
    let mut rows =
        [row(0, 0, 0, 10, 1, &[1]), row(1, 0, 1, 1, 1, &[1]), row(2, 0, 3, 1, 1, &[1]), row(3, 1, 2, 1, 1, &[1])];
    rows[1].priority = 2;
    assert_eq!(launches(&rows, &pool(&[1], Policy::Fifo)), [(0, 0, 10), (3, 10, 11), (2, 11, 12), (1, 12, 13)]);
}

#[test]
fn a_slot_takes_one_task_whatever_its_demand() {
    // Two machines of one core and 2 slots each run 4 tasks at a time, regardless of the cores that the tasks demand.
    let rows = [row(0, 0, 0, 10, 3, &[9]), row(1, 1, 0, 10, 3, &[1])];
    let on_machines = machines(&[&[1], &[1]], Policy::Slot(2), Placement::FirstFit);
    let outcomes = simulate(&rows, &on_machines);
    let seen: Vec<_> = outcomes.iter().map(|o| (o.job, o.task, o.machine.unwrap(), o.start.unwrap())).collect();
    assert_eq!(seen, [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 1, 0), (1, 1, 1, 0), (0, 2, 0, 10), (1, 2, 0, 10)]);
    let pooled = World { placement: Placement::Pooled, ..on_machines };
    assert_eq!(jobs(&rows, &pooled), [0, 1, 0, 1, 0, 1]);
    assert!(placed(&rows, &pooled).iter().all(Option::is_none));
    // With one slot the shares are equal whenever the slot is free, so the lower id is always first.
    let single = pool(&[1], Policy::Slot(1));
    assert_eq!(jobs(&rows, &single), [0, 0, 0, 1, 1, 1]);
}

#[test]
fn a_task_of_no_duration_ends_in_a_further_pass_of_its_instant() {
    let single = pool(&[1], Policy::Drf);
    // On one core the second task can start only when the first has ended. All three tasks start at time 0.
    assert_eq!(launches(&[row(0, 0, 0, 0, 3, &[1])], &single), [(0, 0, 0); 3]);
    // In the first pass at time 0 user 0 is first. In the next pass the shares are equal again, and the lower id is first again.
    let rows = [row(0, 0, 0, 0, 2, &[1]), row(1, 1, 0, 5, 1, &[1]), row(2, 0, 5, 0, 1, &[1])];
    assert_eq!(launches(&rows, &single), [(0, 0, 0), (0, 0, 0), (1, 0, 5), (2, 5, 5)]);
    // On two cores the tasks that are launched in one round use their cores until its end, so the users alternate.
    let rows = [row(0, 0, 0, 0, 2, &[1]), row(1, 1, 0, 0, 2, &[1])];
    assert_eq!(jobs(&rows, &pool(&[2], Policy::Drf)), [0, 1, 0, 1]);
}

#[test]
fn stop_waits_for_the_first_in_line_and_skip_passes_it() {
    let rows = [row(0, 0, 0, 10, 1, &[2]), row(1, 1, 0, 4, 1, &[3]), row(2, 2, 0, 3, 1, &[1])];
    let skip = pool(&[3], Policy::Drf);
    let stop = World { on_blocked: OnBlocked::Stop, ..skip.clone() };
    assert_eq!(launches(&rows, &skip), [(0, 0, 10), (2, 0, 3), (1, 10, 14)]);
    assert_eq!(launches(&rows, &stop), [(0, 0, 10), (1, 10, 14), (2, 14, 17)]);
}

#[test]
fn rows_wait_for_every_stage_they_come_after() {
    // The stages are a diamond, 0 -> {1, 2} -> 3, and stage 1 has two rows. Another job arrives when stage 0 ends.
    let staged = |stage, after: &[usize], duration, tasks| Row {
        stage: Some(stage),
        after: after.to_vec(),
        ..row(0, 0, 0, duration, tasks, &[1])
    };
    let diamond = vec![
        staged(3, &[1, 2], 1, 1),
        staged(0, &[], 10, 2),
        staged(1, &[0], 5, 1),
        staged(1, &[0], 7, 1),
        staged(2, &[0], 3, 1),
    ];
    let rows: Vec<Row> = diamond.into_iter().chain([row(1, 1, 10, 1, 1, &[1])]).collect();
    let wide = simulate(&rows, &pool(&[9], Policy::Fifo));
    let seen: Vec<_> = wide.iter().map(|o| (o.job, o.task, o.start.unwrap())).collect();
    // The other job arrives at 10 and precedes the rows that are released at 10. Task numbers count the rows in the order of the trace.
    assert_eq!(seen, [(0, 1, 0), (0, 2, 0), (1, 0, 10), (0, 3, 10), (0, 4, 10), (0, 5, 10), (0, 0, 17)]);
    let narrow: Vec<_> = launches(&rows, &pool(&[1], Policy::Fifo)).iter().map(|l| (l.0, l.1)).collect();
    // On one core stage 0 ends at 20. The other job, which has waited since 10, precedes the rows that are released at 20.
    assert_eq!(narrow, [(0, 0), (0, 10), (1, 20), (0, 21), (0, 26), (0, 33), (0, 36)]);
}

#[test]
fn a_released_row_may_start_in_a_further_pass_of_the_instant() {
    let map = Row { stage: Some(0), ..row(0, 0, 3, 0, 2, &[1]) };
    let reduce = Row { after: vec![0], ..row(0, 0, 3, 2, 1, &[1]) };
    let outcomes = simulate(&[map, reduce], &pool(&[1], Policy::Asset));
    assert_eq!(
        outcomes.iter().map(|o| (o.task, o.start)).collect::<Vec<_>>(),
        [(0, Some(3)), (1, Some(3)), (2, Some(3))]
    );
}

#[test]
fn what_fits_no_empty_machine_is_set_aside_with_its_dependents() {
    let large = Row { stage: Some(0), ..row(0, 0, 0, 5, 1, &[3]) };
    let dependent = Row { after: vec![0], ..row(0, 0, 0, 5, 1, &[1]) };
    let rows = [large, dependent, row(1, 0, 0, 5, 1, &[2])];
    let stop = |placement| World { on_blocked: OnBlocked::Stop, ..machines(&[&[2], &[2]], Policy::Fifo, placement) };
    let ends = simulate(&rows, &stop(Placement::FirstFit)).into_iter();
    let ends: Vec<_> = ends.map(|o| (o.job, o.task, o.machine, o.start, o.finish, o.fate)).collect();
    let never = |task, fate: &str| (0, task, None, None, None, fate.to_owned());
    let second = (1, 0, Some(0), Some(0), Some(5), "finished".to_owned());
    assert_eq!(ends, [second, never(0, "too large"), never(1, "deadlocked")]);
    // The pool of four cores has room for the task of three cores.
    assert_eq!(launches(&rows, &stop(Placement::Pooled)), [(0, 0, 5), (1, 5, 10), (0, 5, 10)]);
}

#[test]
fn placements_choose_their_machine() {
    // The free shares after a task of <2, 2>, of the totals <12, 8>, are 4/12 + 0/8 = 8/24 on machine 0 and 0/12 + 4/8 = 12/24 on machine
    // 1. Machine 2 has no memory.
    let offers: [&[u64]; 3] = [&[6, 2], &[2, 6], &[4, 0]];
    let rows = [row(0, 0, 0, 9, 1, &[2, 2])];
    for (placement, expected) in [(Placement::FirstFit, 0), (Placement::BestFit, 0), (Placement::WorstFit, 1)] {
        assert_eq!(placed(&rows, &machines(&offers, Policy::Drf, placement)), [Some(expected)], "{placement:?}");
    }
    // On equal machines best-fit fills one machine, worst-fit spreads the tasks, and ties go to the lower index.
    let equal: [&[u64]; 3] = [&[4], &[4], &[4]];
    let rows = [row(0, 0, 0, 9, 4, &[1])];
    let some = |machines: &[usize]| machines.iter().map(|&m| Some(m)).collect::<Vec<_>>();
    assert_eq!(placed(&rows, &machines(&equal, Policy::Drf, Placement::BestFit)), some(&[0, 0, 0, 0]));
    assert_eq!(placed(&rows, &machines(&equal, Policy::Drf, Placement::WorstFit)), some(&[0, 1, 2, 0]));
    assert_eq!(placed(&rows, &machines(&equal, Policy::Slot(3), Placement::BestFit)), some(&[0, 0, 0, 1]));
}

#[test]
fn a_resource_that_the_cluster_lacks_does_not_count() {
    let rows = [row(0, 0, 0, 9, 2, &[1, 0]), row(1, 1, 0, 9, 2, &[1, 0])];
    for policy in [Policy::Drf, Policy::Asset, Policy::MaxMin(0)] {
        assert_eq!(jobs(&rows, &pool(&[4, 0], policy)), [0, 1, 0, 1], "{policy:?}");
    }
}
