//! Storms: one cluster for some hours under faults of a steady rate, and what they cost.
//!
//! FuxiMaster, every application master and every Tubo fail at random, independently and at the same rate (a Poisson
//! process); how is drawn as in [`super::chaos`]. The faults of a seed are the same whatever rules are in force.

use rand::RngExt;

use super::chaos::{app_fault, length, tubo_fault};
use super::rules::Rules;
use super::setup::{AppId, RoleId, Setup};
use super::world::plan::{Demand, Fault, Network, Script, Strike, Timing};
use super::world::work::{Achieved, Work};
use super::world::{GoOn, World};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// When faults begin: all workers run by then.
const BEGIN: Time = Time(30_000_000);

/// The capacity of a machine.
const CAPACITY: u32 = 8;

/// A storm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Storm {
    /// Machines.
    pub machines: u32,
    /// How long it lasts.
    pub lasts: Span,
    /// Failures of each process in an hour.
    pub rate: f64,
    /// How long an offline worker takes for an instance.
    pub instance: Span,
    /// The clocks.
    pub timing: Timing,
    /// The network.
    pub network: Network,
}

/// The damage of a storm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Workers of online services.
    pub online: Achieved,
    /// Workers of offline roles.
    pub offline: Achieved,
    /// Workers of online services that were stopped without the consent of their application master.
    pub harmed: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Messages sent.
    pub messages: u64,
}

impl Storm {
    /// Two online services, an offline job, and a service with an offline role besides; together they want seven tenths
    /// of the machines.
    fn setup(&self, rules: Rules) -> (Setup, Vec<Demand>) {
        let mut setup = Setup::new(vec![CAPACITY; self.machines as usize]);
        setup.rules = rules;
        setup.app(&[("web", true, 1)]);
        setup.app(&[("search", true, 1)]);
        setup.app(&[("sql", false, 1)]);
        setup.app(&[("maps", true, 1), ("index", false, 1)]);
        let tenth = CAPACITY * self.machines / 10;
        let counts = [tenth, tenth, 3 * tenth, tenth, tenth];
        let demand = |(role, count)| Demand { at: Time::ZERO, role: RoleId(role), count };
        (setup, (0..).zip(counts).map(demand).collect())
    }

    fn strikes(&self, setup: &Setup, seed: u64) -> Vec<Strike> {
        let mut rng = stream(seed, "control/storm");
        let (apps, machines) = (setup.apps() as u32, self.machines);
        let processes = 1 + apps + machines;
        let gap_us = 3.6e9 / (self.rate * f64::from(processes));
        let mut at = BEGIN.0 as f64;
        let mut strikes = Vec::new();
        loop {
            at -= gap_us * (1.0 - rng.random::<f64>()).ln();
            if at >= (BEGIN + self.lasts).0 as f64 {
                return strikes;
            }
            let who = rng.random_range(0..processes);
            let fault = match who.checked_sub(1) {
                None => Fault::MasterCrash(length(&mut rng)),
                Some(app) if app < apps => app_fault(&mut rng, AppId(app as u16)),
                Some(other) => tubo_fault(&mut rng, MachineId(other - apps)),
            };
            strikes.push(Strike { at: Time(at as u64), fault });
        }
    }

    /// Runs it with the faults of a seed. Errors: those of `go_on`, which is asked every some thousand events.
    pub fn run(&self, rules: Rules, seed: u64, go_on: &GoOn) -> Result<Damage> {
        let (setup, demands) = self.setup(rules);
        let strikes = self.strikes(&setup, seed);
        let (network, timing) = (self.network, self.timing);
        let script = Script { demands, strikes, network, timing, patience: None, seed };
        let mut world = World::new(&setup, &script, false);
        world.watch.work = Some(Work::new(&setup, self.instance, BEGIN, BEGIN + self.lasts));
        while world.run_some(false) {
            go_on()?;
        }
        let mut damage = Damage {
            harmed: world.watch.harmed,
            faults: script.strikes.len() as u64,
            messages: world.messages(),
            ..Damage::default()
        };
        if let Some(work) = &mut world.watch.work {
            work.close();
            for (account, role) in work.roles.iter().zip(&setup.roles) {
                let class = if role.stable { &mut damage.online } else { &mut damage.offline };
                *class = class.plus(*account);
            }
        }
        Ok(damage)
    }
}
