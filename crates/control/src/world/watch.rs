//! The ledger of a running cluster: the invariants, and the fates of the workers.
//!
//! | name | at all times |
//! |---|---|
//! | I1 | no worker of a stable role stops unless its application master gave the unit back |
//! | I2 | the caps on a Tubo, and what is allocated on a machine, are within its capacity |
//! | I3 | a worker starts only with a plan and a cap |
//! | I4 | FuxiMaster never grants on a machine that is unreachable |
//! | I5 | units granted by scheduling are within the request |
//! | I6 | an offline worker stops only for a reason the article gives, and its application master learns of it (by I8) |
//! | I7 | a superseded application master is not accepted again |
//! | I8 | when faults have stopped, caps = allocations = hints, and they are what requests and capacity allow |
//! | I9 | the books of the scheduler hold what FuxiMaster has allocated, invented requests included |
//! | I10 | FuxiMaster revokes no unit while it recovers |
//! | I11 | when it has recovered it knows every stable worker, unless neither holder was there |
//! | I12 | a new application master starts on a machine that FuxiMaster can reach and that is not the previous one's, if there is one |
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

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name: `I1` to `I13`.
    pub invariant: &'static str,
    /// When.
    pub at: Time,
    /// The violation in words.
    pub what: String,
    /// The machine concerned, if there is one.
    pub machine: Option<MachineId>,
    /// The role concerned, if there is one.
    pub role: Option<RoleId>,
}

/// Where FuxiMaster had something from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Caps in the memory of a Tubo.
    Cap,
    /// Caps that a Tubo had on disk.
    CapCheckpoint,
    /// Caps, with an invented request.
    Mock,
    /// Hints in the memory of an application master.
    Hint,
    /// Hints that an application master had on disk.
    HintCheckpoint,
}

impl Origin {
    /// Its name in reports.
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
    /// Workers that ran when the first fault struck.
    pub before: u32,
    /// Of those, workers that stopped.
    pub stopped: u32,
    /// Workers that run at the end.
    pub after: u32,
}

impl Fate {
    /// Both together: kept, replaced and lost workers are the sums of either side's.
    pub fn plus(self, other: Fate) -> Fate {
        let sum = |part: fn(&Fate) -> u32| part(&self).min(self.before) + part(&other).min(other.before);
        Fate { before: sum(|fate| fate.before), stopped: sum(|fate| fate.stopped), after: sum(|fate| fate.after) }
    }

    /// Workers that ran all the time.
    pub fn kept(&self) -> u32 {
        self.before.saturating_sub(self.stopped)
    }

    /// Workers that were stopped and run on another machine, or again.
    pub fn replaced(&self) -> u32 {
        self.after.min(self.before).saturating_sub(self.kept())
    }

    /// Workers that were stopped and do not run again.
    pub fn lost(&self) -> u32 {
        self.before.saturating_sub(self.after)
    }
}

/// The ledger of a run.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Violations, in order; at most [`Watch::MOST`].
    pub violations: Vec<Violation>,
    /// When the first fault struck.
    pub struck: Option<Time>,
    /// When a process was last taken back, or a unit or a worker last changed.
    pub changed: Time,
    /// Workers by role.
    pub fates: Vec<Fate>,
    /// Offline and stable units that FuxiMaster rebuilt, by where it had them from.
    pub rebuilt: BTreeMap<Origin, u32>,
    /// Units of which FuxiMaster knew the request from a report at the end of a window.
    pub requested: u32,
    /// Units it did not rebuild or took away, by role and reason.
    pub dropped: BTreeMap<(RoleId, Why), u32>,
    /// Invented requests that became real.
    pub converted: u32,
    /// Units that were forgotten: in the tables of FuxiMaster, the hints of application masters, the caps of Tubos.
    pub forgotten: [u64; 3],
    /// Units that application masters gave back after the first fault.
    pub returned: u32,
    /// Workers of stable roles that were stopped without consent.
    pub harmed: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Workers that failed alone.
    pub failed: u64,
    /// How often a machine began to be shunned.
    pub shunned: u64,
    /// Since when no FuxiMaster decides, and for how long none did before.
    pub(super) down: (Option<Time>, Span),
    /// The work of workers.
    pub work: Accounts,
    /// Workers that an application master wants and has not given back, by machine.
    pub(super) intent: Vec<Counts>,
    /// Units that an application master has given back, until their caps are gone: a worker that runs by one may stop.
    pub(super) consent: Vec<Counts>,
    /// Workers with completed tasks and units that the newest application master has not returned: they may stop.
    pub(super) finished: Vec<Counts>,
    /// Failed workers, until their units are returned or reused.
    fallen: Vec<Counts>,
    /// The newest master of each application that has planned anything.
    planner: HashMap<AppId, u32>,
    /// The newest master of each application that this FuxiMaster accepted.
    pub(super) accepted: HashMap<AppId, u32>,
    /// Tubos that read their caps from disk and have not received a full cap since.
    from_disk: Vec<bool>,
    app_restarted: HashMap<AppId, bool>,
    /// Machines and applications that FuxiMaster has lost from sight since the machine's workers last agreed.
    pub(super) excused_machines: Vec<bool>,
    pub(super) excused_apps: HashMap<AppId, bool>,
}

impl Watch {
    /// The most violations that are kept.
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
            shunned: 0,
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

    /// Adds `machines` machines.
    pub(super) fn open(&mut self, machines: usize) {
        self.intent = vec![Counts::default(); machines];
        self.consent = vec![Counts::default(); machines];
        self.finished = vec![Counts::default(); machines];
        self.fallen = vec![Counts::default(); machines];
        self.from_disk = vec![false; machines];
        self.excused_machines = vec![false; machines];
    }

    /// A role was submitted.
    pub(super) fn role(&mut self, role: RoleId) {
        if self.fates.len() <= role.index() {
            self.fates.resize(role.index() + 1, Fate::default());
        }
    }

    /// An application is over.
    pub(super) fn forget(&mut self, app: AppId) {
        self.planner.remove(&app);
        self.accepted.remove(&app);
        self.app_restarted.remove(&app);
        self.excused_apps.remove(&app);
    }

    /// A machine went down with its workers; no consent is needed.
    pub(super) fn machine_down(&mut self, machine: MachineId) {
        self.intent[machine.index()] = Counts::default();
        self.finished[machine.index()] = Counts::default();
        self.fallen[machine.index()] = Counts::default();
        self.excused_machines[machine.index()] = true;
    }

    /// From the first fault until all processes that died were replaced, and nothing changed any more.
    pub fn recovery(&self) -> Span {
        self.struck.map_or(Span::ZERO, |struck| self.changed.max(struck).since(struck))
    }

    /// The fate of the workers of a class of roles.
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

    /// A fault strikes: the first one opens the account of the workers.
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

    /// A Tubo has received all messages; after a restart, it is complete again.
    pub(super) fn tubo_informed(&mut self, now: Time, machine: MachineId) {
        if std::mem::replace(&mut self.from_disk[machine.index()], false) {
            self.changed = now;
        }
    }

    /// Follows an application master's plans and returns.
    ///
    /// A plan for fewer workers of a stable role is no consent: only returning units is.
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

    /// Returned units without caps have been revoked.
    pub(super) fn settle_consent(&mut self, tubo: &Tubo) {
        let consent = &mut self.consent[tubo.machine.index()];
        if !consent.is_empty() {
            let left =
                |(role, count): (RoleId, u32)| (role, count.min(tubo.caps.get(role).max(tubo.running.get(role))));
            *consent = consent.iter().map(left).collect();
        }
    }

    /// Follows what FuxiMaster does.
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
            Note::Barred(_) | Note::Blamed(_) | Note::Shunned(_) | Note::Forgiven(_) => {}
        }
    }

    /// Follows what workers do.
    pub(super) fn worker_noted(&mut self, now: Time, note: &Note) {
        self.work.noted(now, note);
        match *note {
            // No consent is needed.
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

    /// Whether FuxiMaster has had a reason to take offline units from a machine or an application.
    pub(super) fn excuses(&self, machine: MachineId, app: AppId) -> bool {
        self.excused_machines[machine.index()] || self.excused_apps.contains_key(&app)
    }
}
