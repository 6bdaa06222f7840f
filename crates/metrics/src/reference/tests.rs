//! Tests of the fluid replay, against a slow implementation and derived results.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn resources(amounts: &[u64]) -> Resources {
    Resources::from_slice(amounts)
}

fn work(user: u32, submit_s: u64, duration_s: u64, tasks: u64, demand: &[u64]) -> Work {
    Work {
        user: UserId(user),
        submit: Time::ZERO + Span::from_secs(submit_s),
        duration: Span::from_secs(duration_s),
        tasks,
        demand: resources(demand),
        measured: true,
    }
}

fn reference(capacity: &[u64], weights: &[f64]) -> Reference {
    let classes = weights.iter().map(|weight| [*weight; MAX_DIMS]).collect();
    let mut reference = Reference::new(capacity.len(), &resources(capacity), classes);
    (0..weights.len()).for_each(|user| reference.user(user as u32));
    reference
}

/// Replays rows that are all recorded before the first event.
fn served(capacity: &[u64], weights: &[f64], works: &[Work], cut: Option<Time>) -> FairService {
    let mut reference = reference(capacity, weights);
    works.iter().for_each(|work| reference.submit(*work));
    reference.finish(cut).expect("a filling ends")
}

fn replay(capacity: &[u64], weights: &[f64], works: &[Work], cut: Option<Time>) -> Vec<ServedWork> {
    served(capacity, weights, works, cut).users.into_iter().map(|(service, _)| service).collect()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1e-3), "{found} is not {wanted}");
}

#[test]
fn work_that_starts_at_once_is_as_old_as_half_its_duration() {
    let one = replay(&[10], &[1.0], &[work(0, 5, 40, 3, &[2])], None)[0];
    near(one.work, 0.6 * 40.0);
    near(one.mean_delay().expect("work"), 20.0);
    assert_eq!(replay(&[10], &[1.0], &[work(0, 5, 0, 3, &[2]), work(0, 5, 9, 3, &[0])], None)[0].mean_delay(), None);
}

#[test]
fn two_equal_users_have_half_of_the_cluster_each() {
    // Each user submits work for 100 s of the whole cluster and gets half of the cluster, so its work is served evenly over 200 s.
    let both = replay(&[10], &[1.0, 1.0], &[work(0, 0, 10, 100, &[1]), work(1, 0, 10, 100, &[1])], None);
    both.iter().for_each(|service| near(service.mean_delay().expect("work"), 100.0));
    // With weight 3 the first user gets 3/4 of the cluster and is done after 400/3 s. Then the second user gets the whole cluster, and is
    // done after 200 s.
    let uneven = replay(&[10], &[3.0, 1.0], &[work(0, 0, 10, 100, &[1]), work(1, 0, 10, 100, &[1])], None);
    near(uneven[0].mean_delay().expect("work"), 200.0 / 3.0);
    let first = 400.0 / 3.0;
    near(
        uneven[1].mean_delay().expect("work"),
        (first / 4.0 * (first / 2.0) + (200.0 - first) * (200.0 + first) / 2.0) / 100.0,
    );
}

#[test]
fn what_is_left_at_the_cut_is_as_old_as_it_is_then() {
    // Half of each user's work is served evenly until the cut at 100 s; the other half waits.
    let cut = Some(Time::ZERO + Span::from_secs(100));
    let both = replay(&[10], &[1.0, 1.0], &[work(0, 0, 10, 100, &[1]), work(1, 0, 10, 100, &[1])], cut);
    both.iter().for_each(|service| near(service.mean_delay().expect("work"), 0.5 * 50.0 + 0.5 * 100.0));
}

#[test]
fn only_measured_work_counts_but_all_of_it_is_in_the_way() {
    let unmeasured = Work { measured: false, ..work(0, 0, 10, 100, &[1]) };
    let both = replay(&[10], &[1.0, 1.0], &[unmeasured, work(1, 0, 10, 100, &[1])], None);
    assert_eq!(both[0], ServedWork::default());
    near(both[1].mean_delay().expect("work"), 100.0);
}

/// The reference implementation, which solves shares after each event and visits every row each time.
fn slow(capacity: &[u64], weights: &[f64], works: &[Work], cut: Option<Time>) -> (Vec<ServedWork>, Vec<f64>) {
    struct Left {
        work: Work,
        seconds: f64,
    }
    let dims = capacity.len();
    let share = |work: &Work, d: usize| work.demand.0[d] as f64 / capacity[d] as f64;
    let size = |work: &Work| (0..dims).map(|d| share(work, d)).fold(0.0, f64::max);
    let mut coming: Vec<Work> =
        works.iter().copied().filter(|work| size(work) > 0.0 && work.duration > Span::ZERO).collect();
    coming.sort_by_key(|work| std::cmp::Reverse(work.submit));
    let end = cut.map_or(f64::INFINITY, seconds);
    coming.retain(|work| seconds(work.submit) < end);
    let (mut now, mut rows) = (0.0, Vec::<Left>::new());
    let mut services = vec![ServedWork::default(); weights.len()];
    while now < end && !(coming.is_empty() && rows.is_empty()) {
        let tasks = |user: usize, rows: &[Left]| -> f64 {
            rows.iter().filter(|row| row.work.user.index() == user).map(|row| row.work.tasks as f64).sum()
        };
        let busy: Vec<usize> = (0..weights.len()).filter(|&user| tasks(user, &rows) > 0.0).collect();
        let mut fluid = Fluid::new(dims);
        for &user in &busy {
            let own = || rows.iter().filter(move |row| row.work.user.index() == user);
            let mean = |d: usize| {
                own().map(|row| row.work.tasks as f64 * share(&row.work, d)).sum::<f64>() / tasks(user, &rows)
            };
            let demand: Vec<f64> = (0..dims).map(mean).collect();
            fluid.push(&demand, tasks(user, &rows), rate(&demand, &vec![weights[user]; dims]));
        }
        let mut pace = vec![0.0; weights.len()];
        for (&user, running) in busy.iter().zip(fluid.solve().expect("a filling ends")) {
            pace[user] = (running / tasks(user, &rows)).min(1.0);
        }
        let ends = rows.iter().map(|row| now + row.seconds / pace[row.work.user.index()]);
        let next = ends.chain(coming.last().map(|work| seconds(work.submit))).fold(end, f64::min);
        for row in &mut rows {
            let (user, rate) = (row.work.user.index(), size(&row.work) * row.work.tasks as f64);
            let (span, done) = (next - now, pace[row.work.user.index()] * (next - now));
            services[user].delay += rate * (row.seconds - done / 2.0) * span;
            row.seconds -= done;
        }
        now = next;
        rows.retain(|row| row.seconds > 1e-9);
        while let Some(work) = coming.pop_if(|work| seconds(work.submit) <= now && now < end) {
            services[work.user.index()].work += size(&work) * work.tasks as f64 * work.duration.seconds();
            rows.push(Left { work, seconds: work.duration.seconds() });
        }
    }
    let mut left = vec![0.0; weights.len()];
    for row in &rows {
        left[row.work.user.index()] += size(&row.work) * row.work.tasks as f64 * row.seconds;
    }
    (services, left)
}

#[test]
fn random_workloads_are_replayed_as_the_slow_way_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    let mut waited = 0;
    for case in 0..300 {
        let (users, dims) = (rng.random_range(1..=5u32), rng.random_range(1..=3));
        let capacity: Vec<u64> = (0..dims).map(|_| rng.random_range(20..60)).collect();
        let weights: Vec<f64> = (0..users).map(|_| f64::from(rng.random_range(1..4u32))).collect();
        let mut works: Vec<Work> = (0..rng.random_range(1..25))
            .map(|_| {
                let demand: Vec<u64> = (0..dims).map(|_| rng.random_range(0..8)).collect();
                let user = rng.random_range(0..users);
                work(user, rng.random_range(0..50), rng.random_range(0..20), rng.random_range(1..12), &demand)
            })
            .collect();
        works.sort_by_key(|work| work.submit);
        let cut = (case % 3 == 0).then(|| Time::ZERO + Span::from_secs(rng.random_range(1..80)));
        let (fast, (slow, slow_left)) =
            (replay(&capacity, &weights, &works, cut), slow(&capacity, &weights, &works, cut));
        if cut.is_some() {
            for ((_, fast), slow) in served(&capacity, &weights, &works, cut).users.iter().zip(&slow_left) {
                assert!((fast - slow).abs() <= 1e-6 * slow.max(1e-3), "case {case}: {fast} {slow}");
            }
        }
        for (fast, slow) in fast.iter().zip(&slow) {
            near(fast.work, slow.work);
            assert!((fast.delay - slow.delay).abs() <= 1e-6 * slow.delay.max(1e-3), "case {case}: {fast:?} {slow:?}");
        }
        let least: f64 = works.iter().map(|w| w.duration.seconds()).fold(0.0, f64::max);
        waited += usize::from(slow.iter().any(|service| service.mean_delay().is_some_and(|delay| delay > least)));
    }
    assert!(waited > 50, "users had to wait in only {waited} cases");
}

#[test]
fn it_does_not_matter_when_rows_are_told_or_time_is_looked_at() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    for _ in 0..50 {
        let mut works: Vec<Work> = (0..300)
            .map(|_| work(rng.random_range(0..40), rng.random_range(0..400), rng.random_range(1..30), 3, &[1, 2]))
            .collect();
        works.sort_by_key(|work| work.submit);
        let weights = vec![1.0; 40];
        let horizon = Some(works[200].submit);
        let before_horizon = works.iter().copied().filter(|work| horizon.is_none_or(|horizon| work.submit < horizon));
        let before_horizon: Vec<Work> = before_horizon.collect();
        for (works, horizon) in [(works, None), (before_horizon, horizon)] {
            let at_once = served(&[20, 40], &weights, &works, horizon);
            let mut reference = reference(&[20, 40], &weights);
            let mut now = Time::ZERO;
            for work in works {
                while rng.random_range(0..3) > 0 && now < work.submit {
                    now = Time(now.0 + rng.random_range(0..=(work.submit.0 - now.0)));
                    reference.advance(now).expect("a filling ends");
                }
                // As in a run, all earlier events may be replayed before the rows of an instant are recorded.
                if rng.random_bool(0.5) {
                    reference.advance(work.submit).expect("a filling ends");
                    now = work.submit;
                }
                reference.submit(work);
            }
            let by_and_by = reference.finish(horizon).expect("a filling ends");
            assert_eq!(at_once.users, by_and_by.users, "to the last bit");
            assert_eq!(at_once.rows, by_and_by.rows);
        }
    }
}
