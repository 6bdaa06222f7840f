//! Random clusters under random faults, each from one seed, and the smallest part of a script that still goes wrong.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::rules::Rules;
use super::setup::{AppId, RoleId, Setup};
use super::trial::{Outcome, Trace};
use super::world::plan::{Demand, Fault, Network, Script, Strike, Timing};
use super::world::watch::Violation;
use super::world::{GoOn, World};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// A cluster and what is done to it.
#[derive(Clone, Debug)]
pub struct Chaos {
    /// From which seed.
    pub seed: u64,
    /// The cluster.
    pub setup: Setup,
    /// Its demands and faults.
    pub script: Script,
}

/// When faults begin and end to strike, in seconds.
const FAULTS: std::ops::Range<u64> = 20..180;

/// One scheduled fault in so many machines.
const FAULTY: usize = 100;

impl Chaos {
    /// A random cluster of so many machines with a random script. `network`: `None` draws one, too.
    pub fn new(seed: u64, machines: usize, rules: Rules, network: Option<Network>) -> Chaos {
        let mut rng = stream(seed, "control/cluster");
        let mut setup = Setup::new((0..machines).map(|_| rng.random_range(2..=8)).collect());
        setup.rules = rules;
        let capacity: u64 = setup.machines.iter().map(|&capacity| u64::from(capacity)).sum();
        let mut demands = Vec::new();
        let apps: u16 = rng.random_range(2..=if machines > 100 { 20 } else { 5 });
        setup.groups = vec![capacity / 2];
        for app in 0..apps {
            let stable = rng.random_range(0..3) < 2;
            let both = rng.random_range(0..4) == 0;
            let (first, second) = (format!("role {app}a"), format!("role {app}b"));
            let mut roles = vec![(first.as_str(), stable, rng.random_range(1..=2))];
            if both {
                roles.push((second.as_str(), !stable, 1));
            }
            setup.app(&roles);
        }
        for (at, role) in setup.roles.iter_mut().enumerate() {
            role.group = (!role.stable).then_some(0);
            // All together ask for about nine tenths of what there is, give or take.
            let most = capacity * 18 / (10 * u64::from(apps) * u64::from(role.size));
            let count = rng.random_range(0..=most.max(1)) as u32;
            demands.push(Demand { at: Time::ZERO, role: RoleId(at as u16), count });
        }
        let mut rng = stream(seed, "control/demands");
        for _ in 0..rng.random_range(0..=4) {
            let first = demands[rng.random_range(0..setup.roles.len())];
            let count = rng.random_range(0..=first.count.saturating_mul(2));
            demands.push(Demand { at: instant(&mut rng), count, ..first });
        }
        demands[setup.roles.len()..].sort();
        let mut rng = stream(seed, "control/faults");
        let mut strikes: Vec<Strike> = (0..rng.random_range(1..=8)).flat_map(|_| strike(&mut rng, &setup)).collect();
        for _ in 0..machines / FAULTY {
            let machine = MachineId(rng.random_range(0..machines as u32));
            let at = instant(&mut rng);
            strikes.push(Strike { at, fault: tubo_fault(&mut rng, machine) });
        }
        strikes.sort();
        let networks = [Network::ORDERED, Network::LOSSY, Network { lost: 0, doubled: 0, ..Network::LOSSY }];
        let network = network.unwrap_or(networks[rng.random_range(0..networks.len())]);
        let patience = [None, Some(2), Some(20)][rng.random_range(0..3)].map(Span::from_secs);
        Chaos { seed, setup, script: Script { demands, strikes, network, timing: Timing::default(), patience, seed } }
    }

    /// Runs it, to the first violation.
    pub fn run(&self) -> Outcome {
        let mut world = World::new(&self.setup, &self.script, false);
        world.run(true);
        world.outcome()
    }

    /// The same; `go_on` is asked every some thousand events. Errors: those of `go_on`.
    pub fn run_while(&self, go_on: &GoOn) -> Result<Outcome> {
        let mut world = World::new(&self.setup, &self.script, false);
        while world.run_some(true) {
            go_on()?;
        }
        Ok(world.outcome())
    }

    /// The script without all that is not needed to violate the same invariant: by removing ever smaller parts of its
    /// faults and demands (delta debugging), at the price of at most `runs` runs. Also how many runs it took.
    ///
    /// Source: Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002.
    pub fn shrink(&self, violation: &Violation, runs: usize) -> (Chaos, usize) {
        let mut best = self.clone();
        let mut left = runs;
        let mut fails = |candidate: &Chaos| {
            let spent = left == 0;
            left = left.saturating_sub(1);
            !spent && candidate.run().watch.violations.first().is_some_and(|v| v.invariant == violation.invariant)
        };
        for simple in [Chaos::on_ordered_links, Chaos::with_patience] {
            let candidate = simple(&best);
            if candidate.script != best.script && fails(&candidate) {
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

    /// Faults and later demands: what can be left out.
    fn len(&self) -> usize {
        self.script.strikes.len() + self.script.demands.len() - self.setup.roles.len()
    }

    fn without(&self, range: std::ops::Range<usize>) -> Chaos {
        let (mut chaos, strikes, roles) = (self.clone(), self.script.strikes.len(), self.setup.roles.len());
        let mut at = 0;
        chaos.script.strikes.retain(|_| {
            at += 1;
            !range.contains(&(at - 1))
        });
        let mut at = 0;
        chaos.script.demands.retain(|_| {
            at += 1;
            at <= roles || !range.contains(&(at - 1 - roles + strikes))
        });
        chaos
    }

    fn on_ordered_links(&self) -> Chaos {
        Chaos { script: Script { network: Network::ORDERED, ..self.script.clone() }, ..self.clone() }
    }

    fn with_patience(&self) -> Chaos {
        Chaos { script: Script { patience: None, ..self.script.clone() }, ..self.clone() }
    }

    /// The lines that led to a violation.
    pub fn trace(&self, violation: Violation) -> Trace {
        Trace::of(&self.setup, &self.script, violation)
    }
}

fn instant(rng: &mut ChaCha8Rng) -> Time {
    Time(rng.random_range(FAULTS.start * 1_000_000..FAULTS.end * 1_000_000))
}

/// 0.5 s to about two minutes, short ones as likely as long ones.
pub(super) fn length(rng: &mut ChaCha8Rng) -> Span {
    let base = 500_000_u64 << rng.random_range(0..8);
    Span(rng.random_range(base..2 * base))
}

pub(super) fn tubo_fault(rng: &mut ChaCha8Rng, machine: MachineId) -> Fault {
    let length = length(rng);
    match rng.random_range(0..3) {
        0 => Fault::TuboCrash(machine, length),
        1 => Fault::TuboCut(machine, length),
        _ => Fault::TuboDark(machine, length),
    }
}

/// An application master dies and is restarted, dies for good, or is cut off.
pub(super) fn app_fault(rng: &mut ChaCha8Rng, app: AppId) -> Fault {
    let length = length(rng);
    match rng.random_range(0..3) {
        0 => Fault::AppCrash(app, length),
        1 => Fault::AppLost(app),
        _ => Fault::AppCut(app, length),
    }
}

/// One fault; now and then it strikes several neighbours at once.
fn strike(rng: &mut ChaCha8Rng, setup: &Setup) -> Vec<Strike> {
    let at = instant(rng);
    let app = AppId(rng.random_range(0..setup.apps() as u16));
    let span = length(rng);
    match rng.random_range(0..8) {
        0 | 1 => vec![Strike { at, fault: Fault::MasterCrash(span) }],
        2..5 => vec![Strike { at, fault: app_fault(rng, app) }],
        _ => {
            let machines = setup.machines.len() as u32;
            let first = rng.random_range(0..machines);
            let count = if rng.random_range(0..4) == 0 { rng.random_range(1..=machines.min(40)) } else { 1 };
            let fault = tubo_fault(rng, MachineId(first));
            let others = (first..machines.min(first + count)).map(|machine| Strike {
                at,
                fault: match fault {
                    Fault::TuboCrash(_, span) => Fault::TuboCrash(MachineId(machine), span),
                    Fault::TuboCut(_, span) => Fault::TuboCut(MachineId(machine), span),
                    _ => Fault::TuboDark(MachineId(machine), span),
                },
            });
            others.collect()
        }
    }
}
