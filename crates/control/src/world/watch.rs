//! The ledger of a run: the state for checking the invariants, and the fates of the workers.
//!
//! | name | invariant |
//! |---|---|
//! | I1 | no worker of a stable role stops unless its application master returned the unit |
//! | I2 | the caps on a Tubo, and the allocations on a machine, are within its capacity |
//! | I3 | a worker starts only with a plan and a cap |
//! | I4 | FuxiMaster never grants on an unreachable machine |
//! | I5 | units granted by the scheduler are within the request |
//! | I6 | an offline worker stops only for a reason given in the article, and its application master is notified (checked by I8) |
//! | I7 | a superseded application master is not accepted again |
//! | I8 | at the end caps = allocations = hints = workers, within requests and capacity |
//! | I9 | the books of the scheduler contain the units that FuxiMaster has allocated, mock requests included |
//! | I10 | FuxiMaster revokes no unit during recovery |
//! | I11 | after recovery FuxiMaster has a record of each stable worker, unless neither its Tubo nor its application master was present |
//! | I12 | a new application master starts on a machine that FuxiMaster can reach, and on another one than the last, if there is one |
//! | I13 | FuxiMaster grants no unit on a machine that it or the application excludes |

use std::collections::{BTreeMap, HashMap};

use super::plan::Script;
use super::work::Accounts;
use crate::app::AppMaster;
use crate::counts::Counts;
use crate::message::{Endpoint, Message, Note, Output, RecoverySource, Units, Why};
use crate::setup::{AppId, RoleId, Setup};
use crate::tubo::Tubo;
use plimsoll_base::units::{MachineId, Span, Time};

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name: `I1` to `I13`.
    pub invariant: &'static str,
    /// The instant of the violation.
    pub at: Time,
    /// A description of the violation.
    pub what: String,
    /// The machine concerned, if there is one.
    pub machine: Option<MachineId>,
    /// The role concerned, if there is one.
    pub role: Option<RoleId>,
}

/// The source of rebuilt units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Caps that a Tubo had in memory.
    Cap,
    /// Caps that a Tubo had read from disk.
    CapCheckpoint,
    /// Caps, with a mock request.
    Mock,
    /// Hints that an application master had in memory.
    Hint,
    /// Hints that an application master had read from disk.
    HintCheckpoint,
}

impl Origin {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Cap => "cap",
            Origin::CapCheckpoint => "cap checkpoint",
            Origin::Mock => "mock",
            Origin::Hint => "hint",
            Origin::HintCheckpoint => "hint checkpoint",
        }
    }
}

/// The fate of the workers of a role since the first fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Workers that ran when the first fault occurred.
    pub before: u32,
    /// Of those, workers that stopped.
    pub stopped: u32,
    /// Workers that run at the end.
    pub after: u32,
}

impl Fate {
    /// Adds the fates of two groups of workers: kept, replaced and lost workers are the sums of both.
    pub fn plus(self, other: Fate) -> Fate {
        let sum = |part: fn(&Fate) -> u32| part(&self).min(self.before) + part(&other).min(other.before);
        Fate { before: sum(|fate| fate.before), stopped: sum(|fate| fate.stopped), after: sum(|fate| fate.after) }
    }

    /// Returns the number of workers that ran all the time.
    pub fn kept(&self) -> u32 {
        self.before.saturating_sub(self.stopped)
    }

    /// Returns the number of workers that were stopped and run on another machine, or again.
    pub fn replaced(&self) -> u32 {
        self.after.min(self.before).saturating_sub(self.kept())
    }

    /// Returns the number of workers that were stopped and do not run again.
    pub fn lost(&self) -> u32 {
        self.before.saturating_sub(self.after)
    }
}

/// The ledger of a run.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Violations, in order; at most [`Watch::MOST`].
    pub violations: Vec<Violation>,
    /// When the first fault occurred.
    pub struck: Option<Time>,
    /// When a process last recovered, or a unit or a worker last changed.
    pub changed: Time,
    /// The fates of workers, by role.
    pub fates: Vec<Fate>,
    /// Units that FuxiMaster rebuilt, by source.
    pub rebuilt: BTreeMap<Origin, u32>,
    /// Allocated units of applications that had reported, at the end of the last window.
    pub requested: u32,
    /// Units that FuxiMaster revoked or did not rebuild, by role and reason.
    pub dropped: BTreeMap<(RoleId, Why), u32>,
    /// Units of mock requests that were replaced by real ones.
    pub converted: u32,
    /// Units lost with processes: in the tables of FuxiMaster, the hints of application masters, and the caps of Tubos.
    pub forgotten: [u64; 3],
    /// Units that application masters returned after the first fault.
    pub returned: u32,
    /// Workers of stable roles that were stopped without consent.
    pub harmed: u64,
    /// Faults that had an effect, failures of single workers excepted.
    pub faults: u64,
    /// Workers that failed alone.
    pub failed: u64,
    /// The number of times that a machine was blacklisted.
    pub blacklisted: u64,
    /// The instant since which FuxiMaster makes no decisions (`None` if it makes decisions), and the total length of earlier periods
    /// without decisions.
    pub(super) down: (Option<Time>, Span),
    /// The work of workers.
    pub work: Accounts,
    /// Workers that an application master has planned and not returned, by machine.
    pub(super) intent: Vec<Counts>,
    /// Returned units that still have caps or workers: these workers may stop.
    pub(super) consent: Vec<Counts>,
    /// Completed workers with units that the newest application master has not returned. These workers may stop.
    pub(super) finished: Vec<Counts>,
    /// Failed workers, until their units are returned or reused.
    fallen: Vec<Counts>,
    /// The epoch of the newest master of each application that has made a step.
    planner: HashMap<AppId, u32>,
    /// The epoch of the newest master of each application that this FuxiMaster has accepted.
    pub(super) accepted: HashMap<AppId, u32>,
    /// Tubos that read their caps from disk and have not received a full cap since.
    from_disk: Vec<bool>,
    app_restarted: HashMap<AppId, bool>,
    /// Machines and applications with a reason to stop offline workers: FuxiMaster considered them away or revoked units there.
    pub(super) excused_machines: Vec<bool>,
    pub(super) excused_apps: HashMap<AppId, bool>,
}

impl Watch {
    /// The largest number of violations that are stored.
    pub const MOST: usize = 100;

    pub(super) fn new(script: &Script) -> Watch {
        Watch {
            violations: Vec::new(),
            struck: None,
            changed: script.strikes.first().map_or(Time::ZERO, |strike| strike.at),
            fates: Vec::new(),
            rebuilt: BTreeMap::new(),
            requested: 0,
            dropped: BTreeMap::new(),
            converted: 0,
            forgotten: [0; 3],
            returned: 0,
            harmed: 0,
            faults: 0,
            failed: 0,
            blacklisted: 0,
            down: (None, Span::ZERO),
            work: Accounts::default(),
            intent: Vec::new(),
            consent: Vec::new(),
            finished: Vec::new(),
            fallen: Vec::new(),
            planner: HashMap::new(),
            accepted: HashMap::new(),
            from_disk: Vec::new(),
            app_restarted: HashMap::new(),
            excused_machines: Vec::new(),
            excused_apps: HashMap::new(),
        }
    }

    /// Creates the state of `machines` machines.
    pub(super) fn open(&mut self, machines: usize) {
        self.intent = vec![Counts::default(); machines];
        self.consent = vec![Counts::default(); machines];
        self.finished = vec![Counts::default(); machines];
        self.fallen = vec![Counts::default(); machines];
        self.from_disk = vec![false; machines];
        self.excused_machines = vec![false; machines];
    }

    /// Adds a submitted role.
    pub(super) fn role(&mut self, role: RoleId) {
        if self.fates.len() <= role.index() {
            self.fates.resize(role.index() + 1, Fate::default());
        }
    }

    /// Removes a completed application.
    pub(super) fn forget(&mut self, app: AppId) {
        self.planner.remove(&app);
        self.accepted.remove(&app);
        self.app_restarted.remove(&app);
        self.excused_apps.remove(&app);
    }

    /// Records that a machine went down with its workers; no consent is needed for them.
    pub(super) fn machine_down(&mut self, machine: MachineId) {
        self.intent[machine.index()] = Counts::default();
        self.finished[machine.index()] = Counts::default();
        self.fallen[machine.index()] = Counts::default();
        self.excused_machines[machine.index()] = true;
    }

    /// Returns the time from the first fault until all dead processes were replaced and nothing changed any more.
    pub fn recovery(&self) -> Span {
        self.struck.map_or(Span::ZERO, |struck| self.changed.max(struck).since(struck))
    }

    /// Returns the fate of the workers of a class of roles.
    pub fn fate(&self, setup: &Setup, online: bool) -> Fate {
        let of_class = setup.role_ids().into_iter().filter(|role| setup.role(*role).stable == online);
        of_class.map(|role| self.fates[role.index()]).fold(Fate::default(), Fate::plus)
    }

    pub(super) fn violated(
        &mut self,
        invariant: &'static str,
        at: Time,
        machine: Option<MachineId>,
        role: Option<RoleId>,
        what: String,
    ) {
        if self.violations.len() < Watch::MOST {
            self.violations.push(Violation { invariant, at, what, machine, role });
        }
    }

    /// Records a fault; the first one starts the accounts of the workers.
    pub(super) fn struck(&mut self, now: Time, tubos: &[Tubo]) {
        if self.struck.is_none() {
            self.struck = Some(now);
            self.changed = now;
            for (role, count) in tubos.iter().flat_map(|tubo| tubo.running.iter()) {
                self.fates[role.index()].before += count;
            }
        }
    }

    pub(super) fn master_started(&mut self) {
        self.accepted.clear();
        self.requested = 0;
    }

    pub(super) fn tubo_restarted(&mut self, machine: MachineId) {
        self.from_disk[machine.index()] = true;
    }

    /// Records that a Tubo has received all messages; after a restart, its recovery is complete.
    pub(super) fn tubo_informed(&mut self, now: Time, machine: MachineId) {
        if std::mem::replace(&mut self.from_disk[machine.index()], false) {
            self.changed = now;
        }
    }

    /// Records the plans and returns of an application master.
    ///
    /// A plan for fewer workers of a stable role is not a consent; only a return is.
    pub(super) fn app_stepped(&mut self, setup: &Setup, master: &AppMaster, outputs: &[Output], tubos: &[Tubo]) {
        let newest = self.planner.entry(master.app).or_default();
        if master.epoch < *newest {
            return;
        }
        *newest = master.epoch;
        if master.epoch > 1 {
            self.app_restarted.insert(master.app, true);
        }
        for output in outputs {
            match output {
                Output::Send(_, Message::AppChange { returned, .. }) => {
                    for units in returned {
                        let (at, role) = (units.machine.index(), units.role);
                        self.intent[at].add(role, -(units.count as i32));
                        self.finished[at].add(role, -(units.count as i32));
                        let fallen = self.fallen[at].get(role).min(units.count);
                        self.fallen[at].add(role, -(fallen as i32));
                        let given = self.consent[at].get(role) + units.count - fallen;
                        let held = tubos[at].caps.get(role).max(tubos[at].running.get(role));
                        self.consent[at].set(role, given.min(held));
                        self.returned += if self.struck.is_some() { units.count } else { 0 };
                    }
                }
                Output::Send(Endpoint::Tubo(machine), Message::Plan { role, count, .. }) => {
                    let intent = &mut self.intent[machine.index()];
                    let stable = setup.find(*role).is_some_and(|role| role.stable);
                    let least = if stable { intent.get(*role) } else { 0 };
                    intent.set(*role, least.max(*count));
                }
                _ => {}
            }
        }
    }

    /// Limits the consent to units that still have caps or workers.
    pub(super) fn settle_consent(&mut self, tubo: &Tubo) {
        let consent = &mut self.consent[tubo.machine.index()];
        if !consent.is_empty() {
            let left =
                |(role, count): (RoleId, u32)| (role, count.min(tubo.caps.get(role).max(tubo.running.get(role))));
            *consent = consent.iter().map(left).collect();
        }
    }

    /// Records a note of FuxiMaster.
    pub(super) fn master_noted(&mut self, now: Time, setup: &Setup, note: &Note) {
        if self.struck.is_none() {
            return;
        }
        match *note {
            Note::Rebuilt(units, source) => {
                let disk = self.from_disk[units.machine.index()];
                let again = self.app_restarted.contains_key(&setup.role(units.role).app);
                let origin = match source {
                    RecoverySource::Mock => Origin::Mock,
                    RecoverySource::Cap if disk => Origin::CapCheckpoint,
                    RecoverySource::Cap => Origin::Cap,
                    RecoverySource::Hint if again => Origin::HintCheckpoint,
                    RecoverySource::Hint => Origin::Hint,
                };
                *self.rebuilt.entry(origin).or_default() += units.count;
                if source == RecoverySource::Mock && disk {
                    *self.rebuilt.entry(Origin::CapCheckpoint).or_default() += units.count;
                }
            }
            Note::Dropped(units, why) => {
                *self.dropped.entry((units.role, why)).or_default() += units.count;
                self.changed = now;
            }
            Note::Converted(_, units) => self.converted += units,
            Note::Granted(_) | Note::Released(_) | Note::Recovered | Note::MachineAway(_) | Note::Accepted(..) => {
                self.changed = now;
            }
            Note::MachineBack(_) | Note::AppAway(_) | Note::Requested(..) => {}
            Note::Started(_) | Note::Stopped(_) | Note::Failed(_) | Note::Finished(_) => {}
            Note::Barred(_) | Note::Blamed(_) | Note::Blacklisted(_) | Note::Forgiven(_) => {}
        }
    }

    /// Records a note about workers.
    pub(super) fn worker_noted(&mut self, now: Time, note: &Note) {
        self.work.noted(now, note);
        match *note {
            // A worker that fails needs no consent to stop.
            Note::Failed(Units { machine, role, count }) => {
                self.failed += u64::from(count);
                self.intent[machine.index()].add(role, -(count as i32));
                self.finished[machine.index()].add(role, -(count as i32));
                self.fallen[machine.index()].add(role, count as i32);
            }
            Note::Started(Units { machine, role, count }) => {
                self.fallen[machine.index()].add(role, -(count as i32));
            }
            _ => {}
        }
        if self.struck.is_none() {
            return;
        }
        if let Note::Stopped(units) | Note::Failed(units) = note {
            self.fates[units.role.index()].stopped += units.count;
        }
        if matches!(note, Note::Started(_) | Note::Stopped(_) | Note::Failed(_)) {
            self.changed = now;
        }
    }

    /// Returns whether FuxiMaster has had a reason to revoke offline units of a machine or an application.
    pub(super) fn excuses(&self, machine: MachineId, app: AppId) -> bool {
        self.excused_machines[machine.index()] || self.excused_apps.contains_key(&app)
    }
}
