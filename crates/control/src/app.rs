//! The application master: requests units, plans workers where it has hints, and is the only process that may return stable units.
//!
//! Its request is part of the state of the job, which survives the master. The hints of stable roles are written to disk before they take
//! effect. A stable worker stops only when the master returns its unit, never because a hint has disappeared.

use std::collections::{BTreeMap, BTreeSet};

use super::counts::Counts;
use super::message::{Bar, Endpoint, Message, Note, Output, Position, Sender, Units};
use super::rules::Rule;
use super::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::MachineId;

/// Units returned in a message that FuxiMaster has not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Return {
    /// The number of the message.
    pub number: u32,
    /// The units.
    pub units: Units<u32>,
}

/// An application master.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppMaster {
    /// Its application.
    pub app: AppId,
    /// Its epoch; a later master of the same application has a larger one.
    pub epoch: u32,
    /// Requested units of each role.
    pub want: Counts,
    /// Units that it has been granted, by machine and role.
    pub hints: BTreeMap<(MachineId, RoleId), u32>,
    /// Machines with units of this application that FuxiMaster considers away.
    pub away: BTreeSet<MachineId>,
    /// The last applied message from FuxiMaster.
    pub at: Position,
    /// Whether another master has superseded it.
    pub fenced: bool,
    /// Whether it has not received a full hint since its start.
    pub restarted: bool,
    /// Units in the hints, by role.
    held: Counts,
    /// The number of the last increment or report that it sent.
    pub sent: u32,
    /// The number of the last plan that it sent.
    pub plans: u32,
    /// The last plan for each role on a machine: its number and its number of workers.
    pub planned: BTreeMap<(MachineId, RoleId), (u32, u32)>,
    /// Returned units that FuxiMaster has not confirmed.
    pub returns: Vec<Return>,
    /// Failed workers by machine and role, since the failures on the machine were last cleared.
    pub failed: BTreeMap<(MachineId, RoleId), u32>,
    /// The machines and roles for which it refuses further grants.
    pub bars: BTreeSet<Bar>,
}

/// An input of an application master.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppInput {
    /// A message arrives.
    Message(Message),
    /// A heartbeat is due.
    Beat,
    /// The application requests this number of units of a role.
    Want(RoleId, u32),
    /// The application returns the stable units on a machine, to get others instead.
    Move(MachineId),
    /// The failures of workers on a machine are cleared.
    Forgive(MachineId),
}

impl AppMaster {
    /// Creates the first master of an application, without requests, and returns it with its messages.
    pub fn start(app: AppId) -> (AppMaster, Vec<Output>) {
        let master = AppMaster {
            app,
            epoch: 1,
            want: Counts::default(),
            hints: BTreeMap::new(),
            away: BTreeSet::new(),
            at: Position::default(),
            fenced: false,
            restarted: true,
            held: Counts::default(),
            sent: 0,
            plans: 0,
            planned: BTreeMap::new(),
            returns: Vec::new(),
            failed: BTreeMap::new(),
            bars: BTreeSet::new(),
        };
        let beat = master.beat();
        (master, vec![beat])
    }

    /// Creates the next master of the application from the state on disk, and returns it with its messages.
    pub fn restart(&self, setup: &Setup, epoch: u32) -> (AppMaster, Vec<Output>) {
        let disk = setup.rules.has(Rule::HintCheckpoint);
        let mut next = AppMaster { epoch, want: self.want.clone(), ..AppMaster::start(self.app).0 };
        if disk {
            let stable = |&(&(_, role), _): &(&(MachineId, RoleId), &u32)| setup.role(role).stable;
            next.hints = self.hints.iter().filter(stable).map(|(&key, &count)| (key, count)).collect();
            next.held = next.hints.iter().map(|(&(_, role), &count)| (role, count)).collect();
        }
        let beat = next.beat();
        (next, vec![beat])
    }

    /// Returns the next state of an application master, and its outputs. A pure function of its arguments.
    pub fn step(mut self, setup: &Setup, input: AppInput) -> (AppMaster, Vec<Output>) {
        let mut outputs = Vec::new();
        if self.fenced {
            return (self, outputs);
        }
        match input {
            AppInput::Beat => outputs.push(self.beat()),
            AppInput::Want(role, count) => self.resize(role, count, &mut outputs),
            AppInput::Move(machine) => self.leave(setup, machine, &mut outputs),
            AppInput::Forgive(machine) => self.forgive(machine, &mut outputs),
            AppInput::Message(Message::Ask { epoch }) if epoch >= self.at.epoch => self.report(epoch, &mut outputs),
            AppInput::Message(Message::Hints { at, heard, full, list, away, back }) => {
                let first = self.restarted;
                if self.is_news(setup, at, full, &mut outputs) {
                    self.apply_hints(setup, heard, full, first, &list, &mut outputs);
                    if full {
                        self.away.clear();
                    }
                    self.away.extend(away);
                    back.iter().for_each(|machine| {
                        self.away.remove(machine);
                    });
                }
            }
            AppInput::Message(Message::Fenced) => self.fenced = true,
            AppInput::Message(Message::NeedPlan { machine, role }) => {
                if self.hint(machine, role) > 0 {
                    self.plan(machine, role, &mut outputs);
                }
            }
            AppInput::Message(Message::Done { machine, at, role, count }) => {
                self.finish(machine, at, role, count, &mut outputs);
            }
            AppInput::Message(Message::Failed { machine, at, role }) => {
                self.worker_failed(setup, machine, at, role, &mut outputs);
            }
            AppInput::Message(_) => {}
        }
        (self, outputs)
    }

    /// Returns whether to accept a Tubo's report about workers of the plan `at`. The Tubo must have the last plan, since a report about an
    /// earlier plan may be a repetition.
    fn believes(&self, machine: MachineId, at: Position, role: RoleId, outputs: &mut Vec<Output>) -> bool {
        let Some(&(number, count)) = self.planned.get(&(machine, role)) else { return false };
        let last = Position { epoch: self.epoch, number };
        if at < last {
            // The last plan may have been lost.
            outputs.push(Output::Send(Endpoint::Tubo(machine), Message::Plan { at: last, role, count }));
        }
        at == last && self.hint(machine, role) > 0
    }

    /// Processes the failure of a worker: plans it again, or returns its unit if the machine is barred for the role. The machine is barred
    /// if too many workers of the role have failed there.
    fn worker_failed(
        &mut self,
        setup: &Setup,
        machine: MachineId,
        at: Position,
        role: RoleId,
        outputs: &mut Vec<Output>,
    ) {
        if !self.believes(machine, at, role, outputs) {
            return;
        }
        if let Some(limits) = setup.blacklist {
            let failed = self.failed.entry((machine, role)).or_default();
            *failed += 1;
            let too_many = *failed >= limits.role;
            if too_many && self.bars.insert(Bar { machine, role: Some(role) }) {
                let roles = self.bars.iter().filter(|bar| bar.machine == machine && bar.role.is_some()).count();
                if roles >= limits.app as usize {
                    self.bars.insert(Bar { machine, role: None });
                }
                self.say_bars(outputs);
            }
        }
        if [Some(role), None].into_iter().any(|role| self.bars.contains(&Bar { machine, role })) {
            self.give_back(vec![Units { machine, role, count: 1 }], Vec::new(), outputs);
        } else {
            self.plan(machine, role, outputs);
        }
    }

    /// Clears the failures and bars of a machine.
    fn forgive(&mut self, machine: MachineId, outputs: &mut Vec<Output>) {
        self.failed.retain(|(other, _), _| *other != machine);
        let before = self.bars.len();
        self.bars.retain(|bar| bar.machine != machine);
        if self.bars.len() < before {
            self.say_bars(outputs);
        }
    }

    fn say_bars(&mut self, outputs: &mut Vec<Output>) {
        self.sent += 1;
        let bars = self.bars.iter().copied().collect();
        outputs
            .push(Output::Send(Endpoint::Master, Message::AppBars { from: self.sender(), epoch: self.at.epoch, bars }));
    }

    /// Processes the completion of workers: returns their units and reduces the request by the same number.
    fn finish(&mut self, machine: MachineId, at: Position, role: RoleId, count: u32, outputs: &mut Vec<Output>) {
        if !self.believes(machine, at, role, outputs) {
            return;
        }
        let count = count.min(self.hint(machine, role));
        let units = Units { machine, role, count };
        outputs.push(Output::Note(Note::Finished(units)));
        self.want.add(role, -(count as i32));
        self.give_back(vec![units], vec![(role, -(count as i32))], outputs);
    }

    /// Returns the number of units of a role on a machine, according to the hints.
    pub fn hint(&self, machine: MachineId, role: RoleId) -> u32 {
        self.hints.get(&(machine, role)).copied().unwrap_or(0)
    }

    /// Returns the number of units of a role on all machines, according to the hints.
    pub fn allocated(&self, role: RoleId) -> u32 {
        self.held.get(role)
    }

    fn sender(&self) -> Sender {
        Sender { app: self.app, epoch: self.epoch, number: self.sent }
    }

    fn beat(&self) -> Output {
        Output::Send(Endpoint::Master, Message::AppBeat { from: self.sender(), at: self.at })
    }

    /// Sends a full report to the FuxiMaster that requests it, and ignores earlier FuxiMasters from now on.
    fn report(&mut self, epoch: u32, outputs: &mut Vec<Output>) {
        if epoch > self.at.epoch {
            self.at = Position { epoch, number: 0 };
        }
        self.sent += 1;
        let units = |(&(machine, role), &count)| Units { machine, role, count };
        let hints = self.hints.iter().map(units).collect();
        let (request, restarted) = (self.want.clone(), self.restarted);
        let bars = self.bars.iter().copied().collect();
        let report = Message::AppReport { from: self.sender(), epoch, request, hints, bars, restarted };
        outputs.push(Output::Send(Endpoint::Master, report));
    }

    /// Returns whether to apply hints: old ones are ignored, and increments must follow the last applied message.
    fn is_news(&mut self, setup: &Setup, at: Position, full: bool, outputs: &mut Vec<Output>) -> bool {
        if at.epoch < self.at.epoch {
            return false;
        }
        if setup.rules.has(Rule::SequenceNumbers) {
            if at <= self.at {
                return false;
            }
            if !full && at != (Position { epoch: self.at.epoch, number: self.at.number + 1 }) {
                outputs.push(self.beat());
                return false;
            }
        }
        self.at = if full { at } else { self.at.max(at) };
        self.restarted &= !full;
        true
    }

    /// Applies hints, plans workers for new units, and returns surplus units.
    fn apply_hints(
        &mut self,
        setup: &Setup,
        heard: u32,
        full: bool,
        first: bool,
        list: &[Units<i32>],
        outputs: &mut Vec<Output>,
    ) {
        let mut before: BTreeMap<(MachineId, RoleId), u32> = BTreeMap::new();
        if full {
            before = std::mem::take(&mut self.hints);
            self.held = Counts::default();
        }
        for &Units { machine, role, count } in list {
            if !full {
                before.entry((machine, role)).or_insert_with(|| self.hint(machine, role));
            }
            self.set(machine, role, self.hint(machine, role).saturating_add_signed(count));
        }
        self.returns.retain(|back| back.number > heard);
        if full && setup.rules.has(Rule::SequenceNumbers) {
            // FuxiMaster has not received these returns yet.
            for Return { units: Units { machine, role, count }, .. } in self.returns.clone() {
                self.set(machine, role, self.hint(machine, role).saturating_sub(count));
            }
        }
        let keys: BTreeSet<(MachineId, RoleId)> = match full {
            true => before.keys().chain(self.hints.keys()).copied().collect(),
            false => before.keys().copied().collect(),
        };
        let change = |&(machine, role): &(MachineId, RoleId)| {
            let had = before.get(&(machine, role)).copied().unwrap_or(0);
            (had, self.hint(machine, role))
        };
        let grown: Vec<_> = keys.iter().filter(|key| change(key).1 > change(key).0).copied().collect();
        // A new master plans everything again, so that Tubos ignore the plans of the last one.
        let plans: Vec<_> = keys
            .iter()
            .filter(|key| {
                let (had, has) = change(key);
                has > had || has < had && !setup.role(key.1).stable || has > 0 && first
            })
            .copied()
            .collect();
        let returned = self.surplus(setup, &grown);
        for &(machine, role) in plans.iter().filter(|key| !returned.iter().any(|u| (u.machine, u.role) == **key)) {
            self.plan(machine, role, outputs);
        }
        self.give_back(returned, Vec::new(), outputs);
    }

    fn set(&mut self, machine: MachineId, role: RoleId, count: u32) {
        let had = self.hint(machine, role);
        match count {
            0 => self.hints.remove(&(machine, role)),
            _ => self.hints.insert((machine, role), count),
        };
        self.held.add(role, count as i32 - had as i32);
    }

    /// Returns the units above the request. The newest units are chosen first, then those on machines that are away, then those on the
    /// machines with the highest numbers.
    fn surplus(&self, setup: &Setup, grown: &[(MachineId, RoleId)]) -> Vec<Units<u32>> {
        let mut returned = Vec::new();
        for role in setup.roles_of(self.app) {
            let excess = self.held.get(role).saturating_sub(self.want.get(role));
            returned.extend(self.choose(role, excess, grown));
        }
        returned
    }

    /// Chooses up to `excess` units of a role to return, in the order of `surplus`.
    fn choose(&self, role: RoleId, mut excess: u32, grown: &[(MachineId, RoleId)]) -> Vec<Units<u32>> {
        if excess == 0 {
            return Vec::new();
        }
        let mut units: Vec<(MachineId, u32)> = self
            .hints
            .iter()
            .filter(|((_, r), _)| *r == role)
            .map(|(&(machine, _), &count)| (machine, count))
            .collect();
        units.sort_by_key(|(machine, _)| {
            (!grown.contains(&(*machine, role)), !self.away.contains(machine), std::cmp::Reverse(*machine))
        });
        let mut chosen = Vec::new();
        for (machine, count) in units {
            let count = count.min(excess);
            excess -= count;
            if count > 0 {
                chosen.push(Units { machine, role, count });
            }
        }
        chosen
    }

    /// Sets the requested number of units of a role, and returns the surplus.
    fn resize(&mut self, role: RoleId, count: u32, outputs: &mut Vec<Output>) {
        let change = count as i32 - self.want.get(role) as i32;
        self.want.set(role, count);
        let returned = self.choose(role, self.held.get(role).saturating_sub(count), &[]);
        if change != 0 {
            self.give_back(returned, vec![(role, change)], outputs);
        }
    }

    /// Returns the stable units on a machine. The request stays the same, so that others are granted in their place.
    fn leave(&mut self, setup: &Setup, machine: MachineId, outputs: &mut Vec<Output>) {
        let roles = setup.roles_of(self.app).filter(|role| setup.role(*role).stable);
        let units = roles.map(|role| Units { machine, role, count: self.hint(machine, role) });
        let returned: Vec<Units<u32>> = units.filter(|units| units.count > 0).collect();
        self.give_back(returned, Vec::new(), outputs);
    }

    /// Consents to the loss of units: writes it to disk, then notifies FuxiMaster and the Tubo.
    fn give_back(&mut self, returned: Vec<Units<u32>>, request: Vec<(RoleId, i32)>, outputs: &mut Vec<Output>) {
        if returned.is_empty() && request.is_empty() {
            return;
        }
        self.sent += 1;
        for &units in &returned {
            let Units { machine, role, count } = units;
            self.set(machine, role, self.hint(machine, role).saturating_sub(count));
            self.returns.push(Return { number: self.sent, units });
        }
        let change =
            Message::AppChange { from: self.sender(), epoch: self.at.epoch, request, returned: returned.clone() };
        outputs.push(Output::Send(Endpoint::Master, change));
        for Units { machine, role, .. } in returned {
            self.plan(machine, role, outputs);
        }
    }

    /// Sends the plan for a role on a machine: one worker for each unit of the hint.
    fn plan(&mut self, machine: MachineId, role: RoleId, outputs: &mut Vec<Output>) {
        self.plans += 1;
        let (key, count) = ((machine, role), self.hint(machine, role));
        if count > 0 {
            self.planned.insert(key, (self.plans, count));
        } else {
            self.planned.remove(&key);
        }
        let at = Position { epoch: self.epoch, number: self.plans };
        let plan = Message::Plan { at, role, count };
        outputs.push(Output::Send(Endpoint::Tubo(machine), plan));
    }
}
