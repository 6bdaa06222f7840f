//! The experiment with the control plane: clock settings, and `plimsoll run` of a plan with `[failover]`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use plimsoll::control::rules::Rule;
use plimsoll::control::scenario::Scenario;
use plimsoll::control::study::{Study, Sweep, Watcher};
use plimsoll::control::world::plan::{Network, Timing};
use plimsoll::error::{Error, Result};
use plimsoll::units::Span;

use crate::replay::{plimsoll, run, said};

/// Counts the parts of a study, and ends the study after `patience` checks for an interrupt.
struct Counter {
    patience: usize,
    asked: AtomicUsize,
    planned: AtomicUsize,
    done: AtomicUsize,
}

impl Counter {
    fn new(patience: usize) -> Counter {
        let zero = || AtomicUsize::new(0);
        Counter { patience, asked: zero(), planned: zero(), done: zero() }
    }

    fn counts(&self) -> (usize, usize) {
        (self.planned.load(Relaxed), self.done.load(Relaxed))
    }
}

impl Watcher for Counter {
    fn go_on(&self) -> Result<()> {
        if self.asked.fetch_add(1, Relaxed) < self.patience { Ok(()) } else { Err(Error::Interrupted) }
    }

    fn planned(&self, parts: usize) {
        self.planned.fetch_add(parts, Relaxed);
    }

    fn done(&self) {
        self.done.fetch_add(1, Relaxed);
    }
}

#[test]
fn clocks_decide_how_long_recovery_takes_and_nothing_else() {
    let scenarios = ["fm-failover", "am-timeout", "fm-failover+tubo-failover"];
    let scenarios: Vec<Scenario> = scenarios.iter().map(|name| Scenario::parse(name).expect("a scenario")).collect();
    let study = Study {
        scenarios: vec![scenarios[0]],
        rules: vec![Rule::MockRequest],
        network: Network::ORDERED,
        timing: Timing::default(),
        recovery: Sweep {
            scenarios,
            beats: vec![Span::from_secs(1), Span::from_secs(2)],
            windows: vec![Span::from_secs(20), Span::from_secs(60)],
        },
    };
    let counter = Counter::new(usize::MAX);
    let findings = study.run(&counter).expect("no caller stops it");
    assert_eq!(counter.counts(), (14, 14));
    assert!(matches!(study.run(&Counter::new(5)), Err(Error::Interrupted)));
    assert_eq!((findings.fates.len(), findings.recoveries.len()), (4, 12));
    assert!(findings.recoveries.iter().all(|row| row.violated.is_empty()), "{:?}", findings.recoveries);
    // FuxiMaster is back after 2 s and collects reports for the length of the window.
    let means: Vec<f64> = findings.recoveries[..4].iter().map(|row| row.mean_s.round()).collect();
    assert_eq!(means, [22.0, 62.0, 22.0, 62.0]);
    // An application master is declared failed after 30 heartbeats, regardless of the window, and takes 10 s to start.
    let means: Vec<f64> = findings.recoveries[4..8].iter().map(|row| row.mean_s.round()).collect();
    assert_eq!((means[0], means[2]), (means[1], means[3]));
    assert!((39.0..42.0).contains(&means[0]) && (68.0..72.0).contains(&means[2]), "{means:?}");
    // A Tubo that is back after 35 s is too late for a window of 20 s: its offline workers are lost.
    let kept = |at: usize| findings.recoveries[8 + at].offline.kept();
    assert!(kept(0) < kept(1), "{:?}", &findings.recoveries[8..]);
}

const PLAN: &str = r#"
name = "small"
question = "Does it run?"
[failover]
scenarios = ["fm-failover+am-timeout", "tubo-timeout"]
without = ["mock-request", "keep-stable"]
[failover.recovery]
scenarios = ["tubo-timeout"]
heartbeats = ["1s", "2s"]
windows = ["20s", "60s"]
[[failover.diagram]]
scenario = "11"
without = ["mock-request"]
"#;

#[test]
fn a_plan_makes_tables_figures_and_a_report() {
    let dir = tempfile::tempdir().expect("a folder");
    let plan = dir.path().join("small.toml");
    std::fs::write(&plan, PLAN).expect("a writable folder");
    let plan = plan.to_string_lossy();
    let made = |name: &str, threads: &str| {
        let folder = dir.path().join(name);
        let output = run(&mut plimsoll(&["run", &plan, "-o", &folder.to_string_lossy(), "-j", threads]));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains("Without mock-request an online worker is stopped in 11."), "{printed}");
        assert!(printed.contains("Without keep-stable an online worker is stopped in 5."), "{printed}");
        assert!(printed.contains("0 violate an invariant with all rules"), "{printed}");
        folder
    };
    let (one, two) = (made("one", "1"), made("two", "2"));
    let figures = ["fates", "rules", "recovery", "interrupted"];
    let figures = figures.iter().map(|name| format!("figures/{name}.svg"));
    let tables = ["scenarios.parquet", "recovery.parquet", "report.html"].map(str::to_owned);
    let diagrams = ["svg", "png"].map(|kind| format!("figures/scenario-11-without-mock-request.{kind}"));
    for file in figures.chain(tables).chain(diagrams) {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(&file)).expect("a file");
        assert!(read(&one) == read(&two), "{file} depends on the threads");
    }
    let page = std::fs::read_to_string(one.join("report.html")).expect("a page");
    assert!(page.contains("Does it run?") && page.contains("fm-failover+am-timeout"));
    let wrong = run(&mut plimsoll(&["run", &plan, "--set", "failover.heartbeat=1m"]));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("at most 8s"), "{}", said(&wrong));
}
