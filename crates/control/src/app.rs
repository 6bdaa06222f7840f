//! The application master: asks for units, plans workers where it has hints, and alone may give stable units back.
//!
//! Its request is part of its own job state, which survives it. The hints of stable roles are on disk before they are
//! acted upon. It stops a stable worker only by giving the unit back, never because a hint has vanished.

use std::collections::{BTreeMap, BTreeSet};

use super::counts::Counts;
use super::message::{Bar, Endpoint, Message, Note, Output, Position, Sender, Units};
use super::rules::Rule;
use super::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::MachineId;

/// Units given back in a message that FuxiMaster has not confirmed.
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
    /// A later master of the same application has a larger epoch.
    pub epoch: u32,
    /// Units wanted of each role.
    pub want: Counts,
    /// Units it knows to have.
    pub hints: BTreeMap<(MachineId, RoleId), u32>,
    /// Machines with units of its own that FuxiMaster has lost from sight.
    pub away: BTreeSet<MachineId>,
    /// The last message from FuxiMaster that it has applied.
    pub at: Position,
    /// Another master has taken its place.
    pub fenced: bool,
    /// It was started and has not received a full hint yet.
    pub restarted: bool,
    held: Counts,
    /// The number of the last increment or report it sent.
    pub sent: u32,
    /// The number of the last plan it sent.
    pub plans: u32,
    /// The last plan for each role on a machine: its number and its count.
    pub planned: BTreeMap<(MachineId, RoleId), (u32, u32)>,
    /// The units that it gave back and FuxiMaster has not confirmed.
    pub returns: Vec<Return>,
    /// Workers that have failed, by machine and role, since it last forgave the machine.
    pub failed: BTreeMap<(MachineId, RoleId), u32>,
    /// Machines that it does not want to be granted on.
    pub bars: BTreeSet<Bar>,
}

/// An input of an application master.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppInput {
    /// A message arrives.
    Message(Message),
    /// Time to say that it is alive.
    Beat,
    /// The application requests this number of units of a role.
    Want(RoleId, u32),
    /// The application gives up the stable units on a machine, and wants others instead.
    Move(MachineId),
    /// The failures of workers on a machine are forgotten.
    Forgive(MachineId),
}

impl AppMaster {
    /// Creates the first master of an application, without requests, and its messages.
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

    /// Creates the next master of the application from the state on disk, and its messages.
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

    /// The next state of an application master, and its outputs. A pure function of its arguments.
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

    /// Whether to accept a Tubo's report about workers of the plan `at`: only if the Tubo has the last plan, since a report about an
    /// earlier one may be a repetition.
    fn believes(&self, machine: MachineId, at: Position, role: RoleId, outputs: &mut Vec<Output>) -> bool {
        let Some(&(number, count)) = self.planned.get(&(machine, role)) else { return false };
        let last = Position { epoch: self.epoch, number };
        if at < last {
            // It may have been lost.
            outputs.push(Output::Send(Endpoint::Tubo(machine), Message::Plan { at: last, role, count }));
        }
        at == last && self.hint(machine, role) > 0
    }

    /// A worker has failed: it is restarted on the same machine, or on another one if too many of the role have failed there.
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

    /// Clears the failures on a machine.
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

    /// Workers have done their tasks: gives their units back, and wants as many less.
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

    /// Units of a role that it knows to have on a machine.
    pub fn hint(&self, machine: MachineId, role: RoleId) -> u32 {
        self.hints.get(&(machine, role)).copied().unwrap_or(0)
    }

    /// Units of a role that it knows to have.
    pub fn allocated(&self, role: RoleId) -> u32 {
        self.held.get(role)
    }

    fn sender(&self) -> Sender {
        Sender { app: self.app, epoch: self.epoch, number: self.sent }
    }

    fn beat(&self) -> Output {
        Output::Send(Endpoint::Master, Message::AppBeat { from: self.sender(), at: self.at })
    }

    /// Sends a full report to the FuxiMaster that requests it, and ignores earlier ones from now on.
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

    /// Whether to apply hints: no old ones, and of increments only the next one.
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
            // FuxiMaster has not received these yet.
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
        // A new master plans everything again, so that Tubos ignore the last one.
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

    /// The units that it has above its demand: the newest first, then those out of sight, then those of the highest machine.
    fn surplus(&self, setup: &Setup, grown: &[(MachineId, RoleId)]) -> Vec<Units<u32>> {
        let mut returned = Vec::new();
        for role in setup.roles_of(self.app) {
            let excess = self.held.get(role).saturating_sub(self.want.get(role));
            returned.extend(self.choose(role, excess, grown));
        }
        returned
    }

    /// Chooses units of a role to give up.
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

    /// The application requests more or fewer units of a role; the surplus is returned.
    fn resize(&mut self, role: RoleId, count: u32, outputs: &mut Vec<Output>) {
        let change = count as i32 - self.want.get(role) as i32;
        self.want.set(role, count);
        let returned = self.choose(role, self.held.get(role).saturating_sub(count), &[]);
        if change != 0 {
            self.give_back(returned, vec![(role, change)], outputs);
        }
    }

    /// Returns the stable units on a machine and requests as many on other machines.
    fn leave(&mut self, setup: &Setup, machine: MachineId, outputs: &mut Vec<Output>) {
        let roles = setup.roles_of(self.app).filter(|role| setup.role(*role).stable);
        let units = roles.map(|role| Units { machine, role, count: self.hint(machine, role) });
        let returned: Vec<Units<u32>> = units.filter(|units| units.count > 0).collect();
        self.give_back(returned, Vec::new(), outputs);
    }

    /// Consents to the loss of units: first on disk, then to FuxiMaster and the Tubo.
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

    /// Sends the plan for a role on a machine: as many workers as there are hints.
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
