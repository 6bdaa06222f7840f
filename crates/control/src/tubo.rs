//! The Tubo, Fuxi's node agent: it runs a worker when it has both a cap and a plan for it.
//!
//! Caps are written to disk before they are applied, so a restarted Tubo reads the last applied ones. Workers are separate processes: they
//! and their plans survive the Tubo.

use super::counts::Counts;
use super::message::{Endpoint, Message, Note, Output, Position, Units};
use super::rules::{Rule, Rules};
use super::setup::{RoleId, Setup};
use plimsoll_base::units::MachineId;

/// The number of workers of a role that an application master plans on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerPlan {
    /// The role.
    pub role: RoleId,
    /// The epoch of the application master and the number of its plan.
    pub at: Position,
    /// The number of workers.
    pub count: u32,
}

/// A Tubo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tubo {
    /// Its machine.
    pub machine: MachineId,
    /// The last applied message from FuxiMaster.
    pub at: Position,
    /// The largest number of workers of each role.
    pub caps: Counts,
    /// The plans, sorted by role.
    pub plans: Vec<WorkerPlan>,
    /// Running workers.
    pub running: Counts,
    /// The running workers that have completed their tasks and wait for instructions.
    pub done: Counts,
    /// Whether its caps are unknown: it has restarted without them, and stops no worker until it receives them.
    pub blind: bool,
}

/// An input of a Tubo.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TuboInput {
    /// A message arrives.
    Message(Message),
    /// A heartbeat is due.
    Beat,
    /// This number of further workers of a role have completed their tasks.
    Done(RoleId, u32),
    /// A worker of a role has failed.
    Fail(RoleId),
    /// All workers and plans are lost: the machine was down.
    Wiped,
}

/// If a Tubo has this many plans, those of completed roles are dropped.
const PLANS: usize = 16;

impl Tubo {
    /// Creates the Tubo of a machine that has never run anything.
    pub fn new(machine: MachineId) -> Tubo {
        Tubo {
            machine,
            at: Position::default(),
            caps: Counts::default(),
            plans: Vec::new(),
            running: Counts::default(),
            done: Counts::default(),
            blind: false,
        }
    }

    /// Returns the state of a Tubo after a crash and a restart, and its outputs: it requests its full cap.
    pub fn restart(mut self, rules: Rules) -> (Tubo, Vec<Output>) {
        if !rules.has(Rule::CapCheckpoint) {
            self.caps = Counts::default();
            self.at = Position::default();
            self.blind = true;
        }
        let beat = self.beat(true);
        (self, vec![beat])
    }

    /// Returns the next state of a Tubo, and its outputs. A pure function of its arguments.
    pub fn step(mut self, setup: &Setup, input: TuboInput) -> (Tubo, Vec<Output>) {
        let mut outputs = Vec::new();
        match input {
            TuboInput::Beat => {
                outputs.push(self.beat(false));
                self.need_plans(setup, &mut outputs);
                self.done.iter().for_each(|(role, _)| self.say_done(setup, role, &mut outputs));
            }
            TuboInput::Done(role, count) => {
                let done = (self.done.get(role) + count).min(self.running.get(role));
                self.done.set(role, done);
                self.say_done(setup, role, &mut outputs);
            }
            TuboInput::Fail(role) => self.worker_failed(setup, role, &mut outputs),
            TuboInput::Wiped => {
                for (role, count) in std::mem::take(&mut self.running).iter() {
                    outputs.push(Output::Note(Note::Stopped(Units { machine: self.machine, role, count })));
                }
                self.done = Counts::default();
                self.plans.clear();
            }
            TuboInput::Message(Message::Ask { epoch }) if epoch >= self.at.epoch => {
                if epoch > self.at.epoch {
                    self.at = Position { epoch, number: 0 };
                }
                let report = Message::TuboReport { machine: self.machine, epoch, caps: self.caps.clone() };
                outputs.push(Output::Send(Endpoint::Master, report));
            }
            TuboInput::Message(Message::Caps { at, full, list }) => {
                self.apply_caps(setup, at, full, &list, &mut outputs)
            }
            TuboInput::Message(Message::Plan { at, role, count }) => {
                self.apply_plan(setup, at, role, count, &mut outputs)
            }
            TuboInput::Message(_) => {}
        }
        (self, outputs)
    }

    fn beat(&self, restarted: bool) -> Output {
        Output::Send(Endpoint::Master, Message::TuboBeat { machine: self.machine, at: self.at, restarted })
    }

    /// Applies caps unless they are old. Increments must follow the last applied message; otherwise a heartbeat with the position is sent.
    fn apply_caps(
        &mut self,
        setup: &Setup,
        at: Position,
        full: bool,
        list: &[(RoleId, i32)],
        outputs: &mut Vec<Output>,
    ) {
        if at.epoch < self.at.epoch {
            return;
        }
        if setup.rules.has(Rule::SequenceNumbers) {
            if at <= self.at {
                return;
            }
            let next = Position { epoch: self.at.epoch, number: self.at.number + 1 };
            if !full && at != next {
                outputs.push(self.beat(false));
                return;
            }
        }
        self.at = if full { at } else { self.at.max(at) };
        // The affected roles, and their previous counts.
        let mut roles: Vec<RoleId> = list.iter().map(|(role, _)| *role).collect();
        if full {
            roles.extend(self.caps.iter().chain(self.running.iter()).map(|(role, _)| role));
        }
        roles.sort_unstable();
        roles.dedup();
        let before: Counts = roles.iter().map(|role| (*role, self.caps.get(*role))).collect();
        if full {
            self.caps = Counts::default();
        }
        for &(role, change) in list {
            self.caps.add(role, change);
        }
        self.blind &= !full;
        for &role in &roles {
            self.void_plan(role, before.get(role));
        }
        // Workers stop before others start, so that the machine never exceeds its capacity.
        for starts in [false, true] {
            for &role in &roles {
                self.settle(role, starts, outputs);
            }
        }
        if roles.iter().any(|&role| self.caps.get(role) < before.get(role)) {
            // FuxiMaster grants revoked units again once their loss is acknowledged.
            outputs.push(self.beat(false));
        }
        if full {
            self.need_plans(setup, outputs);
        }
    }

    /// Reduces the plan of a role to a reduced cap. Later units have a plan of their own. If an old plan for the lost units stayed, a later
    /// cap could start a worker with it, and the newer plan, still in flight, would stop that worker.
    fn void_plan(&mut self, role: RoleId, before: u32) {
        let cap = self.caps.get(role);
        if cap < before
            && let Ok(found) = self.plans.binary_search_by_key(&role, |plan| plan.role)
        {
            self.plans[found].count = self.plans[found].count.min(cap);
        }
    }

    /// Applies a plan unless it is older than the current one.
    fn apply_plan(&mut self, setup: &Setup, at: Position, role: RoleId, count: u32, outputs: &mut Vec<Output>) {
        let plan = WorkerPlan { role, at, count };
        match self.plans.binary_search_by_key(&role, |plan| plan.role) {
            Ok(found) => {
                let there = self.plans[found].at;
                let old = if setup.rules.has(Rule::Fencing) {
                    at < there
                } else {
                    at.epoch == there.epoch && at.number < there.number
                };
                if old {
                    return;
                }
                self.plans[found] = plan;
            }
            Err(_) => {
                if self.plans.len() >= PLANS {
                    self.plans.retain(|plan| setup.find(plan.role).is_some());
                }
                let place = self.plans.partition_point(|plan| plan.role < role);
                self.plans.insert(place, plan);
            }
        }
        for starts in [false, true] {
            self.settle(role, starts, outputs);
        }
        // The Tubo's report about an earlier plan may have been ignored.
        self.say_done(setup, role, outputs);
    }

    /// Processes the failure of a worker. It is restarted only after the application master plans it again. The failure is reported to that
    /// master. If the report is lost, the Tubo later requests the plan for the cap without one.
    fn worker_failed(&mut self, setup: &Setup, role: RoleId, outputs: &mut Vec<Output>) {
        let running = self.running.get(role);
        let found = self.plans.binary_search_by_key(&role, |plan| plan.role);
        let (Ok(found), Some(spec)) = (found, setup.find(role).filter(|_| running > 0)) else { return };
        let plan = &mut self.plans[found];
        plan.count = plan.count.saturating_sub(1);
        let at = plan.at;
        self.running.set(role, running - 1);
        self.done.add(role, -1);
        outputs.push(Output::Note(Note::Failed(Units { machine: self.machine, role, count: 1 })));
        let message = Message::Failed { machine: self.machine, at, role };
        outputs.push(Output::Send(Endpoint::App(spec.app, 0), message));
    }

    /// Reports the workers that have completed their tasks to the current application master.
    fn say_done(&self, setup: &Setup, role: RoleId, outputs: &mut Vec<Output>) {
        let plan = self.plans.binary_search_by_key(&role, |plan| plan.role).ok().map(|found| self.plans[found]);
        if let (Some(plan), Some(spec), count @ 1..) = (plan, setup.find(role), self.done.get(role)) {
            let message = Message::Done { machine: self.machine, at: plan.at, role, count };
            outputs.push(Output::Send(Endpoint::App(spec.app, 0), message));
        }
    }

    /// Returns the planned number of workers of a role.
    pub fn plan(&self, role: RoleId) -> u32 {
        self.plans.binary_search_by_key(&role, |plan| plan.role).map_or(0, |found| self.plans[found].count)
    }

    /// Starts or stops workers of a role, so that as many run as cap and plan both allow. Does one of the two, according to `starts`.
    fn settle(&mut self, role: RoleId, starts: bool, outputs: &mut Vec<Output>) {
        let (runs, target) = (self.running.get(role), self.caps.get(role).min(self.plan(role)));
        if self.blind || runs == target || (runs < target) != starts {
            return;
        }
        self.running.set(role, target);
        // Idle workers are stopped first.
        self.done.set(role, self.done.get(role).saturating_sub(runs.saturating_sub(target)));
        let units = Units { machine: self.machine, role, count: runs.abs_diff(target) };
        outputs.push(Output::Note(if starts { Note::Started(units) } else { Note::Stopped(units) }));
    }

    /// Requests plans for caps without one.
    fn need_plans(&self, setup: &Setup, outputs: &mut Vec<Output>) {
        for (role, _) in self.caps.iter().filter(|&(role, count)| count > self.plan(role)) {
            let Some(spec) = setup.find(role) else { continue };
            let message = Message::NeedPlan { machine: self.machine, role };
            outputs.push(Output::Send(Endpoint::App(spec.app, 0), message));
        }
    }
}
