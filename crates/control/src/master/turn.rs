//! The messages of one step of FuxiMaster, collected so that a peer receives all changes in one message.

use std::collections::{BTreeMap, BTreeSet};

use super::{Contact, Master};
use crate::message::{Endpoint, Message, Note, Output, Position, Units};
use crate::setup::{AppId, RoleId, Setup};
use plimsoll_base::units::MachineId;

/// The message to one application master.
#[derive(Default)]
struct Words {
    full: bool,
    list: Vec<Units<i32>>,
    away: Vec<MachineId>,
    back: Vec<MachineId>,
}

/// The message to one Tubo.
#[derive(Default)]
struct Caps {
    full: bool,
    list: Vec<(RoleId, i32)>,
}

/// The outputs of a step that is not finished.
pub(super) struct PendingStep<'a> {
    /// The cluster and its applications.
    pub setup: &'a Setup,
    outputs: Vec<Output>,
    caps: BTreeMap<MachineId, Caps>,
    words: BTreeMap<AppId, Words>,
    asked: BTreeSet<Endpoint>,
}

impl<'a> PendingStep<'a> {
    pub fn new(setup: &'a Setup) -> PendingStep<'a> {
        PendingStep {
            setup,
            outputs: Vec::new(),
            caps: BTreeMap::new(),
            words: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    pub fn push_note(&mut self, note: Note) {
        self.outputs.push(Output::Note(note));
    }

    pub fn send(&mut self, to: Endpoint, message: Message) {
        self.outputs.push(Output::Send(to, message));
    }

    pub fn ask(&mut self, to: Endpoint, epoch: u32) {
        if self.asked.insert(to) {
            self.send(to, Message::Ask { epoch });
        }
    }

    pub fn start_app(&mut self, app: AppId, epoch: u32) {
        self.outputs.push(Output::StartApp(app, epoch));
    }

    pub fn full_cap(&mut self, machine: MachineId) {
        self.caps.entry(machine).or_default().full = true;
    }

    pub fn full_hint(&mut self, app: AppId) {
        self.words.entry(app).or_default().full = true;
    }

    pub fn machine_away(&mut self, app: AppId, machine: MachineId) {
        self.words.entry(app).or_default().away.push(machine);
    }

    pub fn machine_back(&mut self, app: AppId, machine: MachineId) {
        self.words.entry(app).or_default().back.push(machine);
    }

    /// Records a changed allocation for the Tubo.
    pub fn cap_changed(&mut self, units: Units<i32>) {
        self.caps.entry(units.machine).or_default().list.push((units.role, units.count));
    }

    /// Records a changed allocation for the application master.
    pub fn hint_changed(&mut self, app: AppId, units: Units<i32>) {
        self.words.entry(app).or_default().list.push(units);
    }

    /// Numbers and returns the collected messages to present peers. Others receive the full state when they are back.
    pub fn finish(mut self, master: &mut Master) -> Vec<Output> {
        let quiet = master.phase == super::Phase::Recovering;
        for (machine, caps) in std::mem::take(&mut self.caps) {
            // Without the rule `wait-window`, a machine that has not reported is answered too.
            let site = &mut master.sites[machine.index()];
            if site.contact != Contact::Here && !(quiet && caps.full) {
                continue;
            }
            let number = site.send_caps((!caps.full).then_some(caps.list.as_slice()));
            let at = Position { epoch: master.epoch, number };
            let all = || site.alloc.iter().map(|(role, count)| (role, count as i32)).collect();
            let list = if caps.full { all() } else { caps.list };
            self.send(Endpoint::Tubo(machine), Message::Caps { at, full: caps.full, list });
        }
        for (app, words) in std::mem::take(&mut self.words) {
            let Some(tenant) = master.tenants.get_mut(&app).filter(|tenant| tenant.contact == Contact::Here) else {
                continue;
            };
            tenant.sent += 1;
            let at = Position { epoch: master.epoch, number: tenant.sent };
            let (to, heard) = (Endpoint::App(app, tenant.epoch), tenant.heard);
            let message = match words.full {
                true => {
                    let (list, away) = master.all_hints(app);
                    Message::Hints { at, heard, full: true, list, away, back: Vec::new() }
                }
                false => {
                    Message::Hints { at, heard, full: false, list: words.list, away: words.away, back: words.back }
                }
            };
            self.send(to, message);
        }
        self.outputs
    }
}

impl Master {
    /// Returns all units of an application, and those of its machines that are away.
    fn all_hints(&self, app: AppId) -> (Vec<Units<i32>>, Vec<MachineId>) {
        let held = self.tenants.get(&app).map(|tenant| &tenant.held).into_iter().flatten();
        let list: Vec<Units<i32>> =
            held.map(|(&(machine, role), &count)| Units { machine, role, count: count as i32 }).collect();
        let mut away: Vec<MachineId> = list.iter().map(|units| units.machine).collect();
        away.dedup();
        away.retain(|machine| self.sites[machine.index()].contact != Contact::Here);
        (list, away)
    }
}
