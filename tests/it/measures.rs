//! Counts, quantiles, demands and shares of time equal their definitions in the schema.

use crate::speeds::Replayed;

/// Jobs a and d are submitted outside of the window, and `until` ends the run before d is complete.
const ROWS: &str = "a,ann,0,10,1,5,0\nb,ann,20,30,2,1,0\nc,bob,25,60,1,1,0\nd,bob,90,1000,3,1,0\n";
const PLAN: &str = "until = \"200s\"\nmeasure = { from = \"15s\", to = \"60s\" }";

#[test]
fn counts_of_users_are_of_the_whole_run_and_add_up_to_those_of_the_run() {
    let run = Replayed::new(ROWS, PLAN);
    for (name, by_user) in [("jobs", [2.0, 2.0]), ("jobs_finished", [2.0, 1.0]), ("tasks", [3.0, 4.0])] {
        assert_eq!(run.column("users", "drf", name), by_user.map(Some), "{name}");
        assert_eq!(run.one("drf", name), by_user.iter().sum::<f64>(), "{name}");
    }
    assert_eq!(run.column("users", "drf", "tasks_launched"), [Some(3.0), Some(4.0)]);
    // Delays cover only the jobs submitted in the window: b of ann and c of bob.
    assert_eq!(run.column("users", "drf", "completion_mean_s"), [Some(30.0), Some(60.0)]);
    assert_eq!(run.one("drf", "completion_mean_s"), 45.0);
    assert_eq!(run.column("users", "drf", "jobs_measured"), [Some(1.0), Some(1.0)]);
    let counted: f64 = run.column("bins", "drf", "jobs").into_iter().flatten().sum();
    assert_eq!(counted, 2.0);
}

/// The window from 15 s to 60 s has 45 s. In the window job a uses nothing, b uses two cores for 30 s, and c uses one core for 35 s.
#[test]
fn use_is_of_the_window_and_of_no_more_than_the_run() {
    let used = |plan: &str| Replayed::new(ROWS, plan).one("drf", "used_cpu");
    let near = |found: f64, core_seconds: f64, seconds: f64| {
        assert!((found - core_seconds / 10.0 / seconds).abs() < 1e-12, "{found} is not {core_seconds} in {seconds} s");
    };
    near(used(PLAN), 60.0 + 35.0, 45.0);
    near(used("until = \"200s\""), 50.0 + 60.0 + 60.0 + 330.0, 200.0);
    // A window that ends after the run is as long as the run.
    near(used("until = \"200s\"\nmeasure = { to = \"2h\" }"), 50.0 + 60.0 + 60.0 + 330.0, 200.0);
    // Nothing counts before the first submission.
    let late = Replayed::new("a,ann,100,10,1,5,0\n", "");
    near(late.one("drf", "used_cpu"), 50.0, 10.0);
    assert_eq!(late.column("users", "drf", "dominant_share"), [Some(0.5)]);
}

/// Three jobs that take 180 s, 60 s and 240 s: a histogram would put the median at 180.03 s.
#[test]
fn quantiles_of_few_jobs_are_exact() {
    let run = Replayed::new("a,ann,0,180,1,1,0\nb,ann,0,60,1,1,0\nc,bob,0,240,1,1,0\n", "");
    assert_eq!(run.one("drf", "completion_p50_s"), 180.0);
    assert_eq!([run.one("drf", "completion_p90_s"), run.one("drf", "wait_p50_s")], [240.0, 0.0]);
    let values = run.column("quantiles", "drf", "value");
    assert!(values.iter().all(|value| [0.0, 1.0, 60.0, 180.0, 240.0].map(Some).contains(value)), "{values:?}");
}

#[test]
fn demands_are_those_of_the_tasks() {
    let run = Replayed::new("a,ann,0,10,7,1,1\nb,ann,0,10,3,1,1\nc,bob,0,10,1,1.02,1\nd,bob,0,10,1,3,0.3\n", "");
    // The CPU demands of a, b and c are in the same eighth of a power of two and form one kind with the mean demand. Task d is another
    // kind.
    let memory = run.column("demands", "drf", "demand_memory");
    let cpu = run.column("demands", "drf", "demand_cpu");
    assert!((cpu[0].expect("a mean") - (10.0 + 1.02) / 11.0).abs() < 1e-12, "{cpu:?}");
    assert_eq!(cpu[1..], [Some(3.0)]);
    assert_eq!(memory[0], Some(1.0));
    let alike = Replayed::new("a,ann,0,10,7,1,1\nb,ann,5,10,3,1,1\n", "");
    assert_eq!(alike.column("demands", "drf", "demand_cpu"), [Some(1.0)]);
}

/// The light user waits from 10 s to 100 s without an allocation. Some user is backlogged from 0 s to 100 s, so the share of time is 0.9.
#[test]
fn a_user_with_nothing_is_counted_among_those_without_bounded_envy() {
    let both = Replayed::new("a,heavy,0,10,100,1,0\nb,light,10,10,1,1,0\n", "");
    for name in ["envy_unbounded", "envy_count"] {
        assert!((both.one("fifo", name) - 0.9).abs() < 1e-12, "{name}: {}", both.one("fifo", name));
        assert_eq!(both.one("drf", name), 0.0, "{name}");
    }
    assert_eq!(both.one("fifo", "envy_max"), 0.0, "the heavy user does not envy the light user");
}
