//! Faults begin and end; processes die and start.

use super::plan::Fault;
use super::{CLOCKS, ENDS, Event, World};
use crate::app::AppMaster;
use crate::master::Master;
use crate::message::Node;
use crate::setup::AppId;
use plimsoll_base::units::{MachineId, Span};

impl World<'_> {
    pub(super) fn strike(&mut self, at: usize) {
        let fault = self.script.strikes[at].fault;
        self.watch.struck(self.now, &self.tubos);
        self.log.fault(self.now, self.setup, fault);
        match fault {
            Fault::MasterCrash(span) => {
                if let Some(master) = self.master.take() {
                    let units = master.sites.iter().map(|site| site.alloc.total());
                    self.watch.forgotten[0] += units.sum::<u64>();
                    self.after(span, ENDS, Event::MasterStarts);
                }
            }
            Fault::AppCrash(app, span) => {
                if self.kill_app(app) && !self.apps[app.index()].starting {
                    self.apps[app.index()].starting = true;
                    self.after(span, ENDS, Event::AppStarts(app));
                }
            }
            Fault::AppLost(app) => {
                self.kill_app(app);
            }
            Fault::AppCut(app, span) => {
                if let Some(epoch) = self.newest(app).map(|master| master.epoch) {
                    self.cuts.push((app, epoch, at));
                    self.after(span, ENDS, Event::CutEnds(at));
                }
            }
            Fault::TuboCrash(machine, span) => {
                let host = &mut self.hosts[machine.index()];
                if std::mem::replace(&mut host.up, false) {
                    self.watch.forgotten[2] += self.tubos[machine.index()].caps.total();
                    self.after(span, ENDS, Event::TuboStarts(machine));
                }
            }
            Fault::TuboCut(machine, span) => {
                self.hosts[machine.index()].cut += 1;
                self.after(span, ENDS, Event::CutEnds(at));
            }
            Fault::TuboDark(machine, span) => {
                self.hosts[machine.index()].dark += 1;
                self.after(span, ENDS, Event::CutEnds(at));
            }
        }
    }

    /// A cut ends.
    pub(super) fn heal(&mut self, at: usize) {
        let fault = self.script.strikes[at].fault;
        match fault {
            Fault::TuboCut(machine, _) => self.hosts[machine.index()].cut -= 1,
            Fault::TuboDark(machine, _) => self.hosts[machine.index()].dark -= 1,
            _ => self.cuts.retain(|&(_, _, strike)| strike != at),
        }
        self.log.healed(self.now, self.setup, fault);
    }

    /// The newest master of an application dies. False if none lives.
    fn kill_app(&mut self, app: AppId) -> bool {
        let masters = &mut self.apps[app.index()];
        let dead = masters.alive.pop_if(|master| master.epoch == masters.epoch);
        let died = dead.is_some();
        let units = dead.iter().flat_map(|master| master.hints.values()).map(|&count| u64::from(count));
        self.watch.forgotten[1] += units.sum::<u64>();
        masters.dead = dead.or(masters.dead.take());
        died
    }

    pub(super) fn start_master(&mut self) {
        self.epoch += 1;
        let newest: Vec<(u32, MachineId)> = self.apps.iter().map(|masters| (masters.epoch, masters.home)).collect();
        let (master, outputs) = Master::start(self.setup, self.epoch, &newest);
        self.master = Some(master);
        self.watch.master_started(self.epoch);
        self.log.started(self.now, self.setup, Node::Master);
        self.heard_tubo.fill(self.now);
        self.heard_app.fill(self.now);
        // Before the first FuxiMaster there was nothing to wait for but a question and its answer.
        let first = self.script.timing.beat.max(Span(3 * self.script.network.delay.1.0));
        let window = if self.epoch == 1 { first } else { self.script.timing.window };
        self.after(window, CLOCKS, Event::WindowEnds(self.epoch));
        for machine in self.setup.machine_ids() {
            self.after(self.script.timing.tubo_timeout, CLOCKS, Event::CheckTubo(machine, self.epoch));
        }
        for app in self.setup.app_ids() {
            self.after(self.script.timing.app_timeout, CLOCKS, Event::CheckApp(app, self.epoch));
        }
        self.act(Node::Master, outputs);
    }

    /// A new master of an application starts, from what the newest one has on disk.
    pub(super) fn start_app(&mut self, app: AppId) {
        let masters = &mut self.apps[app.index()];
        masters.starting = false;
        masters.epoch = masters.least.max(masters.epoch + 1);
        let epoch = masters.epoch;
        let last = masters.alive.last().into_iter().chain(&masters.dead).max_by_key(|master| master.epoch);
        let (master, outputs) = match last {
            Some(last) => last.restart(self.setup, epoch),
            None => AppMaster::start(app),
        };
        masters.alive.push(master);
        let home = masters.home;
        self.heard_app[app.index()] = self.now;
        let node = Node::App(app, epoch);
        self.log.app_started(self.now, self.setup, node, home);
        self.after(self.script.timing.beat, CLOCKS, Event::AppBeat(app, epoch));
        self.act(node, outputs);
    }

    pub(super) fn start_tubo(&mut self, machine: MachineId) {
        let host = &mut self.hosts[machine.index()];
        host.up = true;
        host.life += 1;
        let tubo = self.tubos[machine.index()].clone();
        let (tubo, outputs) = tubo.restart(self.setup.rules);
        self.tubos[machine.index()] = tubo;
        self.watch.tubo_restarted(machine);
        self.log.started(self.now, self.setup, Node::Tubo(machine));
        self.act(Node::Tubo(machine), outputs);
    }

    /// Which life of a process a message sent now is for.
    pub(super) fn life(&self, node: Node) -> u32 {
        match node {
            Node::Master => self.epoch,
            Node::App(_, epoch) => epoch,
            Node::Tubo(machine) => self.hosts[machine.index()].life,
        }
    }

    pub(super) fn is_alive(&self, node: Node, life: u32) -> bool {
        match node {
            Node::Master => self.master.is_some() && self.epoch == life,
            Node::App(app, epoch) => self.apps[app.index()].alive.iter().any(|master| master.epoch == epoch),
            Node::Tubo(machine) => self.hosts[machine.index()].up && self.hosts[machine.index()].life == life,
        }
    }

    /// Whether two nodes do not hear each other.
    pub(super) fn is_cut(&self, one: Node, other: Node) -> bool {
        let dark = |machine: MachineId| self.hosts[machine.index()].dark > 0;
        let cut = |machine: MachineId| self.hosts[machine.index()].cut > 0 || dark(machine);
        match (one, other) {
            (Node::Tubo(machine), Node::Master) | (Node::Master, Node::Tubo(machine)) => cut(machine),
            (Node::Tubo(machine), _) | (_, Node::Tubo(machine)) => dark(machine),
            (Node::App(app, epoch), Node::Master) | (Node::Master, Node::App(app, epoch)) => {
                self.cuts.iter().any(|&(a, e, _)| (a, e) == (app, epoch))
            }
            _ => false,
        }
    }
}
