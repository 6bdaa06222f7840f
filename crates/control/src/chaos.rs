//! Random clusters under random faults, each drawn from one seed, and the reduction of a failing case to a small one.
//!
//! A case has a cluster with CPU and memory, jobs and services, a policy, a placement rule, a network and faults. [`Chaos::run`] runs the
//! case to the first violation; [`Chaos::shrink`] removes the faults and rows that the violation does not need. Equal arguments give equal
//! cases.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::rules::Rules;
use super::setup::{AppId, Blacklist};
use super::stage::{GoOn, PlayOptions, StagePolicy, Testbed, WorkRow};
use super::trial::Trace;
use super::world::World;
use super::world::plan::{Avoidance, Fault, Network, Script, Strike, Timing};
use super::world::watch::Violation;
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time};
use plimsoll_sim::cluster::Placement;
use plimsoll_sim::engine::{Options, Preempt, PreemptFor, PreemptFrom};
use plimsoll_sim::workload::synthetic::random::stream;

/// A random case: a cluster and its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Chaos {
    /// The seed.
    pub seed: u64,
    /// The cluster, its work and its faults.
    pub stage: Testbed,
}

/// The time range of faults, in seconds.
const FAULTS: std::ops::Range<u64> = 20..180;

/// The number of machines per scheduled fault.
const FAULTY: usize = 100;

impl Chaos {
    /// Draws a cluster of `machines` machines with random work, policy and faults. Without `network`, a network is drawn, too.
    pub fn new(seed: u64, machines: usize, rules: Rules, network: Option<Network>) -> Chaos {
        let mut rng = stream(seed, "control/cluster");
        let sizes: Vec<[u64; 2]> = (0..machines)
            .map(|_| {
                let size = rng.random_range(2..=8);
                [1000 * size, 1024 * rng.random_range(size..=2 * size)]
            })
            .collect();
        let apps: u32 = rng.random_range(2..=if machines > 100 { 20 } else { 5 });
        let mut rows: Vec<WorkRow> = (0..apps).flat_map(|app| work(&mut rng, app, apps, &sizes)).collect();
        rows.sort_by_key(|row| row.job);
        let policy = match rng.random_range(0..4) {
            0 => StagePolicy::Named("drf"),
            1 => StagePolicy::Named("fifo"),
            _ => quota(&mut rng),
        };
        let placements = [Placement::WorstFit, Placement::FirstFit, Placement::BestFit, Placement::Random];
        let placement = placements[rng.random_range(0..placements.len())];
        let preempt = (rng.random_range(0..3) == 0).then(|| {
            let within = Span::from_secs([0, 10][rng.random_range(0..2)]);
            Preempt { within, whom: PreemptFor::Urgent, from: PreemptFrom::Any }
        });
        let options = Options { placement, preempt, seed, audit: machines <= 100, ..Options::default() };
        let mut rng = stream(seed, "control/faults");
        let count = rng.random_range(1..=8);
        let mut strikes: Vec<Strike> = (0..count).flat_map(|_| strike(&mut rng, apps, machines as u32)).collect();
        for _ in 0..machines / FAULTY {
            let machine = MachineId(rng.random_range(0..machines as u32));
            let at = instant(&mut rng);
            strikes.push(Strike { at, fault: tubo_fault(&mut rng, machine) });
        }
        let avoidance = worker_failures(seed, machines as u32, &mut strikes);
        strikes.sort();
        let networks = [Network::ORDERED, Network::LOSSY, Network { lost: 0, doubled: 0, ..Network::LOSSY }];
        let network = network.unwrap_or(networks[rng.random_range(0..networks.len())]);
        let patience = [None, Some(2), Some(20)][rng.random_range(0..3)].map(Span::from_secs);
        let timing = Timing::default();
        let script = Script { strikes, network, timing, patience, avoidance, seed, ..Script::default() };
        Chaos { seed, stage: Testbed { machines: sizes, rows, policy, options, script, rules } }
    }

    /// Runs the case to the first violation. Errors: those of `go_on`, which is called periodically.
    pub fn run(&self, go_on: &GoOn) -> Result<World> {
        self.stage.play(PlayOptions { recorded: false, strict: true }, go_on)
    }

    /// Returns the first violation, if there is one. Panics: when the testbed cannot be run (a programmer error).
    pub fn violation(&self) -> Option<Violation> {
        let world = self.run(&|| Ok(())).expect("a stage that can be played");
        world.watch.violations.into_iter().next()
    }

    /// Returns the script without the parts that are not needed to violate the same invariant. Ever smaller parts of its faults and rows
    /// are removed (delta debugging), in at most `runs` runs. Also returns the number of runs.
    ///
    /// Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002.
    pub fn shrink(&self, violation: &Violation, runs: usize) -> (Chaos, usize) {
        let mut best = self.clone();
        let mut left = runs;
        let mut fails = |candidate: &Chaos| {
            let spent = left == 0;
            left = left.saturating_sub(1);
            !spent && candidate.violation().is_some_and(|found| found.invariant == violation.invariant)
        };
        for simple in [Chaos::on_ordered_links, Chaos::with_patience] {
            let candidate = simple(&best);
            if candidate != best && fails(&candidate) {
                best = candidate;
            }
        }
        let mut parts = 2;
        while best.len() > 0 {
            let size = best.len().div_ceil(parts);
            let smaller = (0..best.len()).step_by(size).find_map(|from| {
                let candidate = best.without(from..from + size);
                fails(&candidate).then_some(candidate)
            });
            match smaller {
                Some(smaller) => {
                    best = smaller;
                    parts = (parts - 1).max(2);
                }
                None if size == 1 => break,
                None => parts = (parts * 2).min(best.len()),
            }
        }
        (best, runs - left)
    }

    /// Returns the number of removable parts: faults and rows.
    fn len(&self) -> usize {
        self.stage.script.strikes.len() + self.stage.rows.len()
    }

    fn without(&self, range: std::ops::Range<usize>) -> Chaos {
        let (mut chaos, strikes) = (self.clone(), self.stage.script.strikes.len());
        let mut at = 0;
        chaos.stage.script.strikes.retain(|_| {
            at += 1;
            !range.contains(&(at - 1))
        });
        // A row without tasks would be invalid; jobs keep their numbers, so that faults affect the same applications.
        for (at, row) in chaos.stage.rows.iter_mut().enumerate() {
            if range.contains(&(strikes + at)) {
                (row.tasks, row.duration, row.stable) = (1, Span(1), false);
            }
        }
        chaos
    }

    fn on_ordered_links(&self) -> Chaos {
        let mut chaos = self.clone();
        chaos.stage.script.network = Network::ORDERED;
        chaos
    }

    fn with_patience(&self) -> Chaos {
        let mut chaos = self.clone();
        chaos.stage.script.patience = None;
        chaos
    }

    /// Returns the lines of the log that led to a violation.
    pub fn trace(&self, violation: Violation) -> Trace {
        Trace::record(&self.stage, violation)
    }
}

/// Draws the rows of an application: one role, sometimes a second one of the other class, and for each of them rows that are submitted
/// later. All applications together request about nine tenths of the capacity on average.
fn work(rng: &mut ChaCha8Rng, app: u32, apps: u32, machines: &[[u64; 2]]) -> Vec<WorkRow> {
    let capacity: u64 = machines.iter().map(|[cpu, _]| cpu / 1000).sum();
    let stable = rng.random_range(0..3) < 2;
    let both = rng.random_range(0..4) == 0;
    let mut rows = Vec::new();
    for (letter, stable) in [("a", stable), ("b", !stable)].into_iter().take(1 + usize::from(both)) {
        let size = if letter == "a" { rng.random_range(1..=2) } else { 1 };
        let demand = [1000 * size, 1024 * rng.random_range(1..=2)];
        let most = (capacity * 18 / (10 * u64::from(apps) * size)).max(1);
        let (mut left, mut submit) = (rng.random_range(1..=most) as u32, Time::ZERO);
        let priority = rng.random_range(0..=9);
        let room: u64 = machines.iter().map(|[cpu, memory]| (cpu / demand[0]).min(memory / demand[1])).sum();
        let gang = !stable && left <= 3 && rng.random_range(0..4) == 0 && u64::from(left) <= room;
        // Some rows last to the end and some end earlier; all but the first are submitted later.
        while left > 0 {
            let tasks = if gang { left } else { rng.random_range(1..=left) };
            left -= tasks;
            let ends = rng.random_range(0..3) == 0;
            let duration = if ends { Span(rng.random_range(1_000_000..150_000_000)) } else { Span::ENDLESS };
            let name = format!("role {app}{letter}{}", rows.len());
            rows.push(WorkRow { name, job: app, submit, tasks, duration, demand, stable, gang, priority });
            submit = Time(rng.random_range(submit.0..FAULTS.end * 1_000_000));
        }
    }
    rows.sort_by_key(|row| row.submit);
    rows
}

/// Draws two quota groups, of the applications with even and odd numbers, and a default group.
fn quota(rng: &mut ChaCha8Rng) -> StagePolicy {
    let reclaim = ["wait", "never", "kill-after:10s"][rng.random_range(0..3)];
    let inside = ["fifo", "fair"][rng.random_range(0..2)];
    let mut text = format!("reclaim = \"{reclaim}\"\ninside = \"{inside}\"\n");
    for (name, users) in [("even", "\"user0\", \"user2\", \"user4\""), ("odd", "\"user1\", \"user3\"")] {
        let (ratio, min, most) = (rng.random_range(1..=3), rng.random_range(0..=2), rng.random_range(3..=9));
        text += &format!("[[group]]\nname = \"{name}\"\nratio = {ratio}\nusers = [{users}]\n");
        text += &format!("min = {{ cpu = {min} }}\nmax = {{ cpu = {most} }}\n");
    }
    text += "[[group]]\nname = \"rest\"\ndefault = true\n";
    StagePolicy::Quota(text)
}

fn instant(rng: &mut ChaCha8Rng) -> Time {
    Time(rng.random_range(FAULTS.start * 1_000_000..FAULTS.end * 1_000_000))
}

/// Draws a length of 0.5 s to about two minutes (log-uniform in steps of a factor of two).
fn length(rng: &mut ChaCha8Rng) -> Span {
    let base = 500_000_u64 << rng.random_range(0..8);
    Span(rng.random_range(base..2 * base))
}

fn tubo_fault(rng: &mut ChaCha8Rng, machine: MachineId) -> Fault {
    let length = length(rng);
    match rng.random_range(0..4) {
        0 => Fault::TuboCrash(machine, length),
        1 => Fault::TuboCut(machine, length),
        2 => Fault::TuboDark(machine, length),
        _ => Fault::MachineDown(machine, length),
    }
}

/// Draws failures of single workers for half of the clusters, several on each of a few machines, and sometimes a blacklist.
fn worker_failures(seed: u64, machines: u32, strikes: &mut Vec<Strike>) -> Option<Avoidance> {
    let mut rng = stream(seed, "control/worker failures");
    if rng.random_range(0..2) == 0 {
        return None;
    }
    for _ in 0..rng.random_range(1..=3) {
        let fault = Fault::WorkerFailure(MachineId(rng.random_range(0..machines)));
        strikes.extend((0..rng.random_range(1..=6)).map(|_| Strike { at: instant(&mut rng), fault }));
    }
    let mut count = |most| rng.random_range(1..=most);
    let limits = Blacklist { role: count(3), app: count(2), cluster: count(2), most: 0 };
    let (share, hold) = (f64::from(count(2)) / 2.0, Span::from_secs(u64::from(count(60))));
    (count(4) > 1).then_some(Avoidance { limits, share, hold })
}

/// Draws a fault of an application master: it dies and is restarted, is lost permanently, or is partitioned.
fn app_fault(rng: &mut ChaCha8Rng, app: AppId) -> Fault {
    let length = length(rng);
    match rng.random_range(0..3) {
        0 => Fault::AppCrash(app, length),
        1 => Fault::AppLost(app),
        _ => Fault::AppCut(app, length),
    }
}

/// Draws one fault; a fault of a Tubo sometimes affects several neighbouring machines at once.
fn strike(rng: &mut ChaCha8Rng, apps: u32, machines: u32) -> Vec<Strike> {
    let at = instant(rng);
    let app = AppId(rng.random_range(0..apps));
    let span = length(rng);
    match rng.random_range(0..8) {
        0 | 1 => vec![Strike { at, fault: Fault::MasterCrash(span) }],
        2..5 => vec![Strike { at, fault: app_fault(rng, app) }],
        _ => {
            let first = rng.random_range(0..machines);
            let count = if rng.random_range(0..4) == 0 { rng.random_range(1..=machines.min(40)) } else { 1 };
            let fault = tubo_fault(rng, MachineId(first));
            let others = (first..machines.min(first + count)).map(|machine| Strike {
                at,
                fault: match fault {
                    Fault::TuboCrash(_, span) => Fault::TuboCrash(MachineId(machine), span),
                    Fault::TuboCut(_, span) => Fault::TuboCut(MachineId(machine), span),
                    Fault::MachineDown(_, span) => Fault::MachineDown(MachineId(machine), span),
                    _ => Fault::TuboDark(MachineId(machine), span),
                },
            });
            others.collect()
        }
    }
}
