//! Canonical states: states are made equal if they differ only in numbers that have no effect.
//!
//! Messages, FuxiMasters and application masters are numbered. Only comparisons of numbers matter: equal, smaller, or the next one. So the
//! numbers of each stream are replaced by the smallest numbers with the same comparisons, and numbers that are not compared any more by 0.
//! These are the only reductions of the check: machines and applications are not interchangeable, since ties are broken by their numbers.

use std::sync::Arc;

use plimsoll::control::app::AppMaster;
use plimsoll::control::message::{Endpoint, Message, Position};
use plimsoll::control::setup::{AppId, Setup};
use plimsoll::units::MachineId;

use super::state::State;

/// Numbers that are compared with each other.
#[derive(Clone, Copy)]
enum Stream {
    /// Messages of a FuxiMaster to a Tubo.
    Caps(MachineId, u32),
    /// Messages of a FuxiMaster to the masters of an application.
    Hints(AppId, u32),
    /// Messages of an application master to FuxiMaster.
    Reports(AppId, u32),
    /// Plans of an application master for a machine.
    Plans(MachineId, AppId, u32),
    /// FuxiMasters.
    Chiefs,
    /// The masters of an application.
    Masters(AppId),
}

impl Stream {
    /// Returns a word that identifies the stream, with space for a number.
    fn word(self, number: u32) -> u64 {
        let (kind, one, two, epoch) = match self {
            Stream::Caps(machine, epoch) => (0, machine.0, 0, epoch),
            Stream::Hints(app, epoch) => (1, app.0, 0, epoch),
            Stream::Reports(app, epoch) => (2, app.0, 0, epoch),
            Stream::Plans(machine, app, epoch) => (3, app.0, machine.0, epoch),
            Stream::Chiefs => (4, 0, 0, 0),
            Stream::Masters(app) => (5, app.0, 0, 0),
        };
        debug_assert!(one.max(two).max(epoch) < 256 && number < 1 << 16, "small models have small numbers");
        kind << 40 | u64::from(one) << 32 | u64::from(two << 24 | epoch << 16 | number)
    }
}

macro_rules! read {
    ($part:expr) => {
        &*$part
    };
}

macro_rules! write {
    ($part:expr) => {
        Arc::make_mut(&mut $part)
    };
}

/// Defines a function that visits every message number, or every epoch, of a state with its stream. The macro is used twice: to read the
/// numbers and to write them.
macro_rules! visitor {
    ($name:ident, $open:ident, $iter:ident $(, $m:tt)?) => {
        fn $name(setup: &Setup, state: &$($m)? State, epochs: bool, visit: &mut dyn FnMut(Stream, &$($m)? u32)) {
            let chief = $open!(state.chief);
            if epochs {
                visit(Stream::Chiefs, &$($m)? chief.epoch);
            }
            if let Some(master) = &$($m)? chief.master {
                let now = master.epoch;
                if epochs {
                    visit(Stream::Chiefs, &$($m)? master.epoch);
                } else {
                    for (at, site) in master.sites.$iter().enumerate() {
                        visit(Stream::Caps(MachineId(at as u32), now), &$($m)? site.sent);
                        for (_, message) in site.shrunk.$iter() {
                            visit(Stream::Caps(MachineId(at as u32), now), message);
                        }
                    }
                }
                for (&app, tenant) in master.tenants.$iter() {
                    let epoch = tenant.epoch;
                    if epochs {
                        visit(Stream::Masters(app), &$($m)? tenant.epoch);
                        visit(Stream::Masters(app), &$($m)? tenant.least);
                    } else {
                        visit(Stream::Hints(app, now), &$($m)? tenant.sent);
                        visit(Stream::Reports(app, epoch), &$($m)? tenant.heard);
                    }
                }
            }
            for app in setup.app_ids() {
                let masters = $open!(state.apps[app.index()]);
                if epochs {
                    visit(Stream::Masters(app), &$($m)? masters.epoch);
                    visit(Stream::Masters(app), &$($m)? masters.least);
                }
                let all = [&$($m)? masters.newest, &$($m)? masters.old, &$($m)? masters.dead];
                for own in all.into_iter().flatten() {
                    let (epoch, chief) = (own.epoch, own.at.epoch);
                    if epochs {
                        visit(Stream::Masters(app), &$($m)? own.epoch);
                        visit(Stream::Chiefs, &$($m)? own.at.epoch);
                    } else {
                        visit(Stream::Hints(app, chief), &$($m)? own.at.number);
                        visit(Stream::Reports(app, epoch), &$($m)? own.sent);
                        for back in own.returns.$iter() {
                            visit(Stream::Reports(app, epoch), &$($m)? back.number);
                        }
                    }
                }
            }
            for machine in setup.machine_ids() {
                let tubo = &$($m)? $open!(state.hosts[machine.index()]).tubo;
                let chief = tubo.at.epoch;
                if epochs {
                    visit(Stream::Chiefs, &$($m)? tubo.at.epoch);
                } else {
                    visit(Stream::Caps(machine, chief), &$($m)? tubo.at.number);
                }
                for plan in tubo.plans.$iter() {
                    let (app, epoch) = (setup.role(plan.role).app, plan.at.epoch);
                    if epochs {
                        visit(Stream::Masters(app), &$($m)? plan.at.epoch);
                    } else {
                        visit(Stream::Plans(machine, app, epoch), &$($m)? plan.at.number);
                    }
                }
            }
            if epochs {
                for (at, planner) in $open!(state.ledger).planner.$iter().enumerate() {
                    visit(Stream::Masters(AppId(at as u32)), planner);
                }
            }
            for n in 0..state.inboxes.len() {
                for line in $open!(state.inboxes[n]).$iter() {
                    let to = line.to;
                    if epochs {
                        for node in [&$($m)? line.from, &$($m)? line.to] {
                            if let Endpoint::App(app, epoch) = node {
                                visit(Stream::Masters(*app), epoch);
                            }
                        }
                    }
                    for letter in line.letters.$iter() {
                        match (letter, to) {
                            (Message::TuboBeat { at, .. }, _) | (Message::Caps { at, .. }, Endpoint::Tubo(_)) if epochs => {
                                visit(Stream::Chiefs, &$($m)? at.epoch);
                            }
                            (Message::TuboBeat { at, machine, .. }, _) => {
                                visit(Stream::Caps(*machine, at.epoch), &$($m)? at.number);
                            }
                            (Message::Caps { at, .. }, Endpoint::Tubo(machine)) => {
                                visit(Stream::Caps(machine, at.epoch), &$($m)? at.number);
                            }
                            (Message::TuboReport { epoch, .. } | Message::Ask { epoch }, _) if epochs => {
                                visit(Stream::Chiefs, epoch);
                            }
                            (Message::AppBeat { from, at }, _) if epochs => {
                                visit(Stream::Masters(from.app), &$($m)? from.epoch);
                                visit(Stream::Chiefs, &$($m)? at.epoch);
                            }
                            (Message::AppBeat { from, at }, _) => {
                                visit(Stream::Reports(from.app, from.epoch), &$($m)? from.number);
                                visit(Stream::Hints(from.app, at.epoch), &$($m)? at.number);
                            }
                            (Message::AppReport { from, epoch, .. } | Message::AppChange { from, epoch, .. }, _) => {
                                if epochs {
                                    visit(Stream::Masters(from.app), &$($m)? from.epoch);
                                    visit(Stream::Chiefs, epoch);
                                } else {
                                    visit(Stream::Reports(from.app, from.epoch), &$($m)? from.number);
                                }
                            }
                            (Message::Hints { at, .. }, _) if epochs => visit(Stream::Chiefs, &$($m)? at.epoch),
                            (Message::Hints { at, heard, .. }, Endpoint::App(app, epoch)) => {
                                visit(Stream::Hints(app, at.epoch), &$($m)? at.number);
                                visit(Stream::Reports(app, epoch), heard);
                            }
                            (Message::Plan { at, role, .. }, Endpoint::Tubo(machine)) => {
                                let (app, epoch) = (setup.role(*role).app, at.epoch);
                                if epochs {
                                    visit(Stream::Masters(app), &$($m)? at.epoch);
                                } else {
                                    visit(Stream::Plans(machine, app, epoch), &$($m)? at.number);
                                }
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
    };
}

visitor!(read, read, iter);
visitor!(rewrite, write, iter_mut, mut);

/// The number that the last message of a stream of caps, hints or reports gets. Earlier messages are numbered backwards from it, so a
/// receiver that is behind changes only its own number.
const LAST: u32 = 9;

/// Appends the new numbers of a stream: small numbers that compare in the same way.
fn rank(words: &[u64], ranks: &mut Vec<u32>) {
    let start = ranks.len();
    let (kind, epoch) = (words[0] >> 40, words[0] >> 16 & 0xff);
    let (plans, chiefs, masters) = (kind == 3, kind == 4, kind == 5);
    for (at, word) in words.iter().enumerate() {
        let number = (word & 0xffff) as u32;
        let before = at.checked_sub(1).map(|before| ((words[before] & 0xffff) as u32, ranks[start + before]));
        ranks.push(match before {
            // Epoch 0 is before the first.
            None if chiefs || masters => number.min(1),
            Some((0, _)) if chiefs || masters => 1,
            None => u32::from(plans),
            Some((_, rank)) if plans || chiefs => rank + 1,
            // In the other streams it also matters whether a number is the next one.
            Some((before, rank)) => rank + (number - before).min(2),
        });
    }
    if kind < 3 && epoch > 0 {
        let most = ranks[ranks.len() - 1];
        assert!(most < LAST, "a stream has too many numbers for LAST");
        ranks[start..].iter_mut().for_each(|rank| *rank += LAST - most);
    }
}

/// Renumbers message numbers, then epochs.
pub fn renumber(setup: &Setup, state: &mut State) {
    forget(setup, state);
    let (mut words, mut ranks) = (Vec::with_capacity(48), Vec::with_capacity(48));
    for epochs in [false, true] {
        words.clear();
        ranks.clear();
        read(setup, state, epochs, &mut |stream, number| words.push(stream.word(*number)));
        words.sort_unstable();
        words.dedup();
        words.chunk_by(|a, b| a >> 16 == b >> 16).for_each(|words| rank(words, &mut ranks));
        if words.iter().zip(&ranks).any(|(word, rank)| (word & 0xffff) as u32 != *rank) {
            rewrite(setup, state, epochs, &mut |stream, number| {
                *number = ranks[words.binary_search(&stream.word(*number)).expect("it was read")];
            });
        }
        if !epochs {
            count_plans(setup, state, &words, &ranks);
        }
    }
}

/// Sets the plan counter of each application master to its largest plan number in the state.
fn count_plans(setup: &Setup, state: &mut State, words: &[u64], ranks: &[u32]) {
    let last = |app: AppId, epoch: u32| {
        let of = |machine| Stream::Plans(machine, app, epoch).word(0) >> 16;
        let seen = |machine| words.iter().zip(ranks).filter(move |(word, _)| **word >> 16 == of(machine));
        setup.machine_ids().flat_map(seen).map(|(_, rank)| *rank).max().unwrap_or(0)
    };
    for app in setup.app_ids() {
        let masters = state.app(app);
        let counts = |own: &Option<AppMaster>| own.as_ref().is_some_and(|own| own.plans != last(app, own.epoch));
        if counts(&masters.newest) || counts(&masters.old) {
            let masters = state.app_mut(app);
            for own in [&mut masters.newest, &mut masters.old].into_iter().flatten() {
                own.plans = last(app, own.epoch);
            }
        }
    }
}

/// Clears the numbers and plans that no later step compares.
fn forget(setup: &Setup, state: &mut State) {
    let (epoch, alive) = (state.chief.epoch, state.chief.master.is_some());
    let gone = |at: Position| at != Position::default() && (!alive || at.epoch < epoch);
    if let Some(master) = &state.chief.master {
        let settled = |tenant: &&plimsoll::control::master::Tenant| tenant.least > 0 && tenant.least <= tenant.epoch;
        if master.tenants.values().any(|tenant| settled(&tenant)) {
            let master = Arc::make_mut(&mut state.chief).master.as_mut().expect("a live master");
            master.tenants.values_mut().filter(|tenant| settled(&&**tenant)).for_each(|tenant| tenant.least = 0);
        }
    }
    for machine in setup.machine_ids() {
        if gone(state.host(machine).tubo.at) && state.line(Endpoint::Master, Endpoint::Tubo(machine)).is_empty() {
            state.host_mut(machine).tubo.at = Position::default();
        }
        for app in setup.app_ids() {
            let on_way = |line: &super::state::Line| {
                line.to == Endpoint::Tubo(machine) && matches!(line.from, Endpoint::App(a, _) if a == app)
            };
            let tubo = &state.host(machine).tubo;
            let stale = |plan: &plimsoll::control::tubo::WorkerPlan| {
                setup.role(plan.role).app == app && (plan.count == 0 || plan.at != Position::default())
            };
            let quiet = state.app(app).old.is_none() && !state.lines().any(on_way);
            if quiet && tubo.plans.iter().any(stale) {
                let plans = &mut state.host_mut(machine).tubo.plans;
                plans.retain(|plan| plan.count > 0 || setup.role(plan.role).app != app);
                plans.iter_mut().filter(|plan| stale(plan)).for_each(|plan| plan.at = Position::default());
            }
        }
    }
    for app in setup.app_ids() {
        let masters = state.app(app);
        if masters.least > 0 && masters.least <= masters.epoch {
            state.app_mut(app).least = 0;
        }
        if state.ledger.planner[app.index()] > 0 && state.app(app).old.is_none() {
            Arc::make_mut(&mut state.ledger).planner[app.index()] = 0;
        }
        // The plan numbers in `planned` are compared only with reports of Tubos about finished workers. In this model no task finishes.
        let plans = |own: &Option<AppMaster>| own.as_ref().is_some_and(|own| !own.planned.is_empty());
        if plans(&state.app(app).newest) || plans(&state.app(app).old) {
            let masters = state.app_mut(app);
            [&mut masters.newest, &mut masters.old].into_iter().flatten().for_each(|own| own.planned.clear());
        }
        for newest in [true, false] {
            let masters = state.app(app);
            let Some(own) = (if newest { &masters.newest } else { &masters.old }) else { continue };
            if gone(own.at) && state.line(Endpoint::Master, Endpoint::App(app, own.epoch)).is_empty() {
                let masters = state.app_mut(app);
                let own = if newest { &mut masters.newest } else { &mut masters.old };
                own.as_mut().expect("the master was found above").at = Position::default();
            }
        }
    }
}
