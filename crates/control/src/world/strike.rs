//! The beginning and end of faults; the death and start of processes.
//!
//! Faults come from the script, or occur at a rate (Poisson processes). Each kind of process has a random stream of its own, and so has
//! each application, so that a change of one rate does not change the draws of the others.

use super::plan::{Failures, Fault, Strike};
use super::{CLOCKS, ENDS, Event, Masters, STRIKES, World};
use crate::app::AppMaster;
use crate::master::Master;
use crate::message::Endpoint;
use crate::setup::AppId;
use crate::tubo;
use plimsoll_base::units::{MachineId, Span};
use plimsoll_sim::workload::synthetic::random::{numbered, stream};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The kinds of processes that fail at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum FaultKind {
    Master,
    Tubo,
    Machine,
    Worker,
}

impl FaultKind {
    pub const ALL: [FaultKind; 4] = [FaultKind::Master, FaultKind::Tubo, FaultKind::Machine, FaultKind::Worker];
}

/// Draws the time to the next event of a Poisson process with `rate` events in an hour.
pub(super) fn exponential(rng: &mut ChaCha8Rng, rate: f64) -> Span {
    Span((-(1.0 - rng.random::<f64>()).ln() * 3.6e9 / rate) as u64)
}

/// Draws a log-uniform length between two.
fn length_between(rng: &mut ChaCha8Rng, (from, to): (Span, Span)) -> Span {
    let (from, to) = ((from.0.max(1) as f64).ln(), (to.0.max(1) as f64).ln());
    Span((from + (to - from) * rng.random::<f64>()).exp() as u64)
}

impl World {
    pub(super) fn strike(&mut self, at: usize) {
        self.befalls(self.script.strikes[at].fault, at);
    }

    /// Applies the fault with number `at` in the script, or a failure of a worker, which has no number.
    pub(super) fn befalls(&mut self, fault: Fault, at: usize) {
        // The fault has no target: the application has not arrived or is complete, or the process is dead already.
        let misses = match fault {
            Fault::MasterCrash(_) => self.master.is_none(),
            Fault::AppCrash(app, _) | Fault::AppLost(app) | Fault::AppCut(app, _) => self.newest(app).is_none(),
            Fault::WorkerFailure(machine) => !self.has_workers(machine),
            _ => false,
        };
        if misses {
            return;
        }
        self.watch.struck(self.now, &self.tubos);
        self.watch.faults += u64::from(!matches!(fault, Fault::WorkerFailure(_)));
        self.log.fault(self.now, &self.setup, fault);
        match fault {
            Fault::MasterCrash(span) => {
                if let Some(master) = self.master.take() {
                    let units = master.sites.iter().map(|site| site.alloc.total());
                    self.watch.forgotten[0] += units.sum::<u64>();
                    self.inbox.clear(self.now);
                    self.watch.down.0.get_or_insert(self.now);
                    self.postponed.clear();
                    self.after(span, ENDS, Event::MasterStarts);
                }
            }
            Fault::AppCrash(app, span) => {
                if self.kill_app(app)
                    && let Some(masters) = self.apps.get_mut(&app).filter(|masters| !masters.starting)
                {
                    (masters.starting, masters.ordered) = (true, false);
                    masters.starts += 1;
                    let start = masters.starts;
                    self.after(span, ENDS, Event::AppStarts(app, start));
                    self.watch_app(app);
                }
            }
            Fault::AppLost(app) => {
                if self.kill_app(app) {
                    self.watch_app(app);
                }
            }
            Fault::AppCut(app, span) => {
                if let Some(epoch) = self.newest(app).map(|master| master.epoch) {
                    self.cuts.push((app, epoch, at));
                    self.after(span, ENDS, Event::CutEnds(at));
                    self.watch_app(app);
                }
            }
            Fault::TuboCrash(machine, span) => {
                self.kill_tubo(machine, span);
            }
            Fault::TuboCut(machine, span) => {
                self.watch_tubo(machine);
                self.hosts[machine.index()].cut += 1;
                self.after(span, ENDS, Event::CutEnds(at));
            }
            Fault::TuboDark(machine, span) => {
                self.watch_tubo(machine);
                self.hosts[machine.index()].dark += 1;
                self.after(span, ENDS, Event::CutEnds(at));
            }
            Fault::MachineDown(machine, span) => {
                self.kill_tubo(machine, span);
                self.watch.machine_down(machine);
                self.tubo_input(machine, tubo::TuboInput::Wiped);
                let there = |(app, masters): (&AppId, &Masters)| (masters.home == Some(machine)).then_some(*app);
                let there: Vec<AppId> = self.apps.iter().filter_map(there).collect();
                for app in there {
                    // A pending start on this machine is cancelled.
                    let called_off = self.apps.get_mut(&app).is_some_and(|masters| {
                        masters.starts += 1;
                        std::mem::take(&mut masters.starting)
                    });
                    if self.kill_app(app) || called_off {
                        self.watch_app(app);
                    }
                }
            }
            Fault::WorkerFailure(machine) => self.fail_one(machine),
        }
    }

    /// Stops a Tubo, which is back after the longest of its outages.
    fn kill_tubo(&mut self, machine: MachineId, span: Span) {
        self.watch_tubo(machine);
        let host = &mut self.hosts[machine.index()];
        host.down += 1;
        if std::mem::replace(&mut host.up, false) {
            self.watch.forgotten[2] += self.tubos[machine.index()].caps.total();
        }
        self.after(span, ENDS, Event::TuboStarts(machine));
    }

    /// Makes a process of a kind fail, unless this is the first call, and schedules the next failure.
    pub(super) fn fails(&mut self, kind: FaultKind, first: bool) {
        let Failures { master, tubo, machine, lasts, .. } = self.script.failures;
        let machines = self.hosts.len() as u32;
        let rate = match kind {
            FaultKind::Master => master,
            FaultKind::Tubo => tubo * f64::from(machines),
            FaultKind::Machine => machine * f64::from(machines),
            // Failures of workers are drawn by machine, while it has workers.
            FaultKind::Worker => 0.0,
        };
        if rate <= 0.0 || machines == 0 {
            return;
        }
        let rng = &mut self.dice[kind as usize];
        let gap = exponential(rng, rate);
        if !first {
            let (machine, length) = (MachineId(rng.random_range(0..machines)), length_between(rng, lasts));
            let how: u32 = rng.random_range(0..3);
            let fault = match (kind, how) {
                (FaultKind::Master, _) => Fault::MasterCrash(length),
                (FaultKind::Machine, _) => Fault::MachineDown(machine, length),
                (FaultKind::Worker, _) => Fault::WorkerFailure(machine),
                (FaultKind::Tubo, 0) => Fault::TuboCrash(machine, length),
                (FaultKind::Tubo, 1) => Fault::TuboCut(machine, length),
                (FaultKind::Tubo, _) => Fault::TuboDark(machine, length),
            };
            self.strike_now(fault);
        }
        self.after(gap, STRIKES, Event::Fails(kind));
    }

    /// Draws the next failure of an application's master and its kind. The sequence depends only on the seed and the application.
    pub(super) fn app_fails(&mut self, app: AppId, epoch: u32) {
        let Failures { app: rate, lasts, .. } = self.script.failures;
        if rate <= 0.0 {
            return;
        }
        let mut rng = numbered(&stream(self.script.seed, "control/failures of application masters"), u64::from(app.0));
        let Some(masters) = self.apps.get_mut(&app) else { return };
        masters.failures += 1;
        rng.set_word_pos(16 * u128::from(masters.failures));
        let (gap, length, how) = (exponential(&mut rng, rate), length_between(&mut rng, lasts), rng.random_range(0..3));
        let fault = match how {
            0 => Fault::AppCrash(app, length),
            1 => Fault::AppLost(app),
            _ => Fault::AppCut(app, length),
        };
        self.after(gap, STRIKES, Event::AppFails(app, epoch, fault));
    }

    /// Applies a fault that is not in the script.
    pub(super) fn strike_now(&mut self, fault: Fault) {
        self.script.strikes.push(Strike { at: self.now, fault });
        self.strike(self.script.strikes.len() - 1);
    }

    /// Ends a partition.
    pub(super) fn heal(&mut self, at: usize) {
        let fault = self.script.strikes[at].fault;
        match fault {
            Fault::TuboCut(machine, _) => {
                self.hosts[machine.index()].cut -= 1;
                self.arm_tubo(machine);
            }
            Fault::TuboDark(machine, _) => {
                self.hosts[machine.index()].dark -= 1;
                self.arm_tubo(machine);
            }
            Fault::AppCut(app, _) => {
                self.cuts.retain(|&(_, _, strike)| strike != at);
                self.arm_app(app);
            }
            _ => {}
        }
        self.log.healed(self.now, &self.setup, fault);
    }

    /// Stops the newest master of an application. Returns `false` if it is not alive.
    fn kill_app(&mut self, app: AppId) -> bool {
        let Some(masters) = self.apps.get_mut(&app) else { return false };
        let dead = masters.alive.pop_if(|master| master.epoch == masters.epoch);
        let died = dead.is_some();
        let units = dead.iter().flat_map(|master| master.hints.values()).map(|&count| u64::from(count));
        self.watch.forgotten[1] += units.sum::<u64>();
        masters.dead = dead.or(masters.dead.take());
        died
    }

    pub(super) fn start_master(&mut self) {
        self.epoch += 1;
        let newest: Vec<(AppId, u32)> = self.apps.iter().map(|(app, masters)| (*app, masters.epoch)).collect();
        let (master, outputs) = Master::start(&self.setup, self.epoch, &newest);
        self.master = Some(master);
        self.watch.master_started();
        self.log.started(self.now, &self.setup, Endpoint::Master);
        self.heard_tubo.fill(self.now);
        self.heard_app = self.apps.keys().map(|app| (*app, self.now)).collect();
        self.after(self.script.timing.window, CLOCKS, Event::WindowEnds(self.epoch));
        for machine in self.setup.machine_ids() {
            self.hosts[machine.index()].checked = true;
            self.arm_tubo(machine);
            self.after(self.script.timing.tubo_timeout, CLOCKS, Event::CheckTubo(machine, self.epoch));
        }
        for app in newest.into_iter().map(|(app, _)| app) {
            self.apps.entry(app).and_modify(|masters| masters.checked = true);
            self.arm_app(app);
            self.after(self.script.timing.app_timeout, CLOCKS, Event::CheckApp(app, self.epoch));
        }
        self.act(Endpoint::Master, outputs);
    }

    /// Starts a new master of an application from the state of the newest one on disk.
    pub(super) fn start_app(&mut self, app: AppId) {
        let Some(masters) = self.apps.get_mut(&app) else { return };
        masters.starting = false;
        masters.since.get_or_insert(self.now);
        masters.epoch = masters.least.max(masters.epoch + 1);
        let epoch = masters.epoch;
        let last = masters.alive.last().into_iter().chain(&masters.dead).max_by_key(|master| master.epoch);
        let (master, outputs) = match last {
            Some(last) => last.restart(&self.setup, epoch),
            None => AppMaster::start(app).0.restart(&self.setup, epoch),
        };
        let first = std::mem::take(&mut masters.first);
        let mut master = master;
        first.into_iter().for_each(|(role, count)| master.want.set(role, count));
        masters.alive.push(master);
        let home = masters.home.unwrap_or_default();
        self.heard_app.insert(app, self.now);
        let node = Endpoint::App(app, epoch);
        self.log.app_started(self.now, &self.setup, node, home);
        self.arm_app(app);
        self.app_fails(app, epoch);
        self.act(node, outputs);
    }

    pub(super) fn start_tubo(&mut self, machine: MachineId) {
        let host = &mut self.hosts[machine.index()];
        host.down -= 1;
        if host.down > 0 {
            return;
        }
        host.up = true;
        host.life += 1;
        let tubo = self.tubos[machine.index()].clone();
        let (tubo, outputs) = tubo.restart(self.setup.rules);
        self.tubos[machine.index()] = tubo;
        self.watch.tubo_restarted(machine);
        self.log.started(self.now, &self.setup, Endpoint::Tubo(machine));
        self.arm_tubo(machine);
        self.act(Endpoint::Tubo(machine), outputs);
    }

    /// Returns the current life of a process; a message sent now is for this life only.
    pub(super) fn life(&self, node: Endpoint) -> u32 {
        match node {
            Endpoint::Master => self.epoch,
            Endpoint::App(_, epoch) => epoch,
            Endpoint::Tubo(machine) => self.hosts[machine.index()].life,
        }
    }

    pub(super) fn is_alive(&self, node: Endpoint, life: u32) -> bool {
        match node {
            Endpoint::Master => self.master.is_some() && self.epoch == life,
            Endpoint::App(app, epoch) => {
                self.apps.get(&app).is_some_and(|masters| masters.alive.iter().any(|master| master.epoch == epoch))
            }
            Endpoint::Tubo(machine) => self.hosts[machine.index()].up && self.hosts[machine.index()].life == life,
        }
    }

    /// Returns whether two peers are partitioned.
    pub(super) fn is_cut(&self, one: Endpoint, other: Endpoint) -> bool {
        let dark = |machine: MachineId| self.hosts[machine.index()].dark > 0;
        let cut = |machine: MachineId| self.hosts[machine.index()].cut > 0 || dark(machine);
        match (one, other) {
            (Endpoint::Tubo(machine), Endpoint::Master) | (Endpoint::Master, Endpoint::Tubo(machine)) => cut(machine),
            (Endpoint::Tubo(machine), _) | (_, Endpoint::Tubo(machine)) => dark(machine),
            (Endpoint::App(app, epoch), Endpoint::Master) | (Endpoint::Master, Endpoint::App(app, epoch)) => {
                self.cuts.iter().any(|&(a, e, _)| (a, e) == (app, epoch))
            }
            _ => false,
        }
    }
}
