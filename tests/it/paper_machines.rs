//! Compares the DRF paper's experiments on machines (Ghodsi et al., NSDI 2011, sections 7.1 and 7.2) with the results of our plans.
//! docs/reproduction.md lists both, and explains the differences.

use std::path::Path;

/// The fit of Figures 9 to 12, with the paper's numbers.
#[path = "../../examples/fit_slowdown.rs"]
#[allow(dead_code)]
mod fit;

use crate::paper::{names, numbers, table};
use crate::replay::{plimsoll, run, said};

/// Runs a plan of `experiments/paper` with changes.
pub fn experiment(name: &str, changes: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/paper").join(format!("{name}.toml"));
    let mut command = plimsoll(&["run"]);
    command.arg(plan).arg("-o").arg(dir.path());
    for change in changes {
        command.args(["--set", change]);
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{name}: {}", said(&output));
    dir
}

/// Returns the mean shares of a user between two instants in seconds: of 192 cores and of 672 GiB.
fn shares(usage: &[(String, f64, f64, f64)], user: &str, from: f64, to: f64) -> (f64, f64) {
    let own: Vec<&(String, f64, f64, f64)> = usage.iter().filter(|(name, ..)| name == user).collect();
    let (mut cpu, mut memory) = (0.0, 0.0);
    for (at, (_, start, cores, mib)) in own.iter().enumerate() {
        let end = own.get(at + 1).map_or(to, |(_, next, ..)| *next);
        let span = (end.min(to) - start.max(from)).max(0.0);
        cpu += span * cores;
        memory += span * mib;
    }
    (cpu / (to - from) / 192_000.0, memory / (to - from) / (672.0 * 1024.0))
}

/// Figure 8. In the first phase one task of job 1 and three tasks of job 2 fit on each machine. In the second phase the tasks fill the
/// machines evenly. In the third phase the tasks leave a part of the memory unused, and the dominant shares stay below a half.
#[test]
fn figure_8_packs_as_its_machines_do() {
    let dir = experiment("drf-fig8", &[]);
    let usage = table(dir.path(), "usage", "drf");
    let column = |name: &str| numbers(&usage, name);
    let memory = usage.columns().find(|name| name.starts_with("used_memory")).expect("memory");
    let rows: Vec<(String, f64, f64, f64)> = names(&usage, "user")
        .into_iter()
        .zip(column("time_us").into_iter().map(|us| us / 1e6))
        .zip(column("used_cpu").into_iter().zip(column(memory)))
        .map(|((user, at), (cpu, memory))| (user, at, cpu, memory))
        .collect();
    let near = |found: f64, wanted: f64| (found - wanted).abs() <= 0.03;
    let (one, two) = (shares(&rows, "job1", 20.0, 100.0), shares(&rows, "job2", 20.0, 100.0));
    assert!(near(one.1, 0.714) && near(two.0, 0.750), "phase 1: {one:?} {two:?}");
    let (one, two) = (shares(&rows, "job1", 140.0, 220.0), shares(&rows, "job2", 140.0, 220.0));
    assert!(
        near(one.0, 0.5) && near(two.0, 0.5) && near(one.1, 0.286) && near(two.1, 0.429),
        "phase 2: {one:?} {two:?}"
    );
    let (one, two) = (shares(&rows, "job1", 260.0, 345.0), shares(&rows, "job2", 260.0, 345.0));
    // The paper's dominant shares must satisfy the same bounds as ours. Without unused memory each would be a half.
    for (whose, one, two) in [("paper", 0.395, 0.499), ("ours", one.1, two.1)] {
        assert!((0.35..0.50).contains(&one) && (0.35..0.51).contains(&two), "phase 3, {whose}: {one} {two}");
        assert!((0.75..0.93).contains(&(one + two)), "phase 3, {whose}: a part of the memory is lost: {one} {two}");
    }
}

/// Returns the bars of Figures 9 to 12 from the `users` table of a plan, in the order of [`fit::PAPER`].
fn bars(dir: &Path, policy: &str) -> [f64; 4] {
    let users = table(dir, "users", policy);
    let (done, times) = (numbers(&users, "jobs_finished"), numbers(&users, "completion_mean_s"));
    let of = |kind: &str| {
        let mine = names(&users, "user").into_iter().zip(done.iter().zip(&times));
        let mine = mine.filter(|(user, _)| user.starts_with(kind)).map(|(_, (done, time))| (*done, done * time));
        mine.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let (large, small) = (of("large"), of("small"));
    [large.0, small.0, large.1 / large.0, small.1 / small.0]
}

/// Figures 9 to 12: if the paper's bars of two schemes differ by more than 10 %, ours have the same order. The known exceptions are large
/// jobs under CPU-fair and 5 slots; docs/reproduction.md explains them.
#[test]
fn figures_9_to_12_have_the_papers_order() {
    let dir = experiment("drf-fig9-12", &["seeds=1"]);
    let ours = fit::of_plan(&[1, 2, 3, 4]).expect("the plan runs");
    let first = fit::of_plan(&[1]).expect("the plan runs");
    for ((policy, _), fitted) in fit::PAPER.iter().zip(first) {
        let told = bars(dir.path(), policy);
        assert!(told.iter().zip(fitted).all(|(a, b)| (a - b).abs() < 1e-6 * b), "{policy}: {told:?} {fitted:?}");
    }
    let known = [("only:cpu", "slot:5", 9), ("only:cpu", "slot:5", 11)];
    let others: Vec<_> = fit::misordered(&ours).into_iter().filter(|pair| !known.contains(pair)).collect();
    assert!(others.is_empty(), "{others:?}: {ours:?}");
    assert!(fit::misordered(&fit::PAPER.map(|(_, bars)| bars)).is_empty());
}

/// On seeds that were not used for the fit, the fitted bars differ from the paper's by 15 % on average and by 54 % at most, as
/// docs/reproduction.md says. The bounds of this test are a little wider.
#[test]
fn figures_9_to_12_are_fitted_as_well_as_the_documentation_says() {
    let (mean, worst) = fit::error(&fit::of_plan(&fit::HELD_OUT[..4]).expect("the plan runs"));
    assert!(mean < 0.18 && worst < 0.65, "mean {mean:.3}, worst {worst:.3}");
}

/// The figures require the slowdown: without it more slots help large jobs, while in the paper more slots harm them.
#[test]
fn without_slowdown_more_slots_help_large_jobs() {
    let large = |bars: &[[f64; 4]; 6]| [bars[2][0], bars[3][0], bars[4][0]];
    let paper = large(&fit::PAPER.map(|(_, bars)| bars));
    assert!(paper[0] > paper[1] && paper[1] > paper[2], "{paper:?}");
    let without = large(&fit::ours("1:1", "best-fit", &[1, 2]).expect("the plan runs"));
    assert!(without[0] > paper[0] && without[0] < without[1] && without[1] < without[2], "{without:?}");
}

/// Two searches give the same curve, because the search draws from a fixed seed.
#[test]
fn the_fit_of_figures_9_to_12_is_repeatable() {
    assert_eq!(fit::search(3).expect("the plan runs"), fit::search(3).expect("the plan runs"));
}
