//! Backup instances: a second instance of a task that takes much longer than its like; the first to end counts.
//!
//! The rule is that of Fuxi's job masters (Zhang et al., VLDB 2014): a backup is made once most tasks of the row have ended, for a task
//! that has run several times longer than their mean, and longer than the user has declared normal (`estimate_s`). Its criterion on the
//! size of the input does not apply here, where the tasks of a row are alike.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::core::Core;
use super::jobs::{ActiveSet, SetSlot};
use super::pace::ONE;
use super::running::Running;
use super::victims::{Victim, may_be_stopped};
use crate::record::{Fate, Salvage};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};

/// When a task gets a backup instance: never one that starts with others of its row (gang) or may not be stopped (stable), and one at a
/// time.
///
/// The backup waits in its row's position. If one instance is stopped or fails while the other runs, the task continues in the other alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The share of its row's tasks that must have ended, in millionths.
    pub(super) ended: u64,
    /// How many times longer it must have run than those did on average, in millionths.
    pub(super) longer: u64,
}

/// Changes of instances since the extension last read them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instance {
    /// It runs.
    Began(Running),
    /// It was stopped, and waits again as a set of its own.
    Again { from: SetSlot, slot: SetSlot },
}

/// An instance of a task that has begun and not ended.
#[derive(Clone, Copy, Debug)]
enum LiveInstance {
    Waiting(SetSlot),
    Running(Running),
}

impl LiveInstance {
    fn set(&self) -> SetSlot {
        match self {
            LiveInstance::Waiting(set) => *set,
            LiveInstance::Running(tasks) => tasks.set,
        }
    }
}

/// A task that has begun and not ended, and its instances.
#[derive(Debug, Default)]
struct Task {
    /// At most two.
    instances: Vec<LiveInstance>,
    /// The number of its last attempt.
    attempt: u32,
    /// When its only instance began, if it runs.
    alone: Option<Time>,
}

/// A row of which a task has begun.
#[derive(Debug)]
struct BackupRow {
    tasks: u32,
    /// Tasks not ended yet, begun or not.
    left: u32,
    /// Tasks that have finished, and for how long they ran in all, in microseconds.
    finished: u32,
    ran: u128,
    /// How long a task takes as its user sees it.
    normal: Span,
    begun: BTreeMap<u32, Task>,
    /// Tasks with one running instance, by its start: the first of them is the next to get a backup.
    alone: BTreeSet<(Time, u32)>,
    /// When it does as things stand.
    due: Option<Time>,
}

impl BackupRow {
    /// How long a task must run before it gets a backup; nothing before enough have ended.
    fn threshold(&self, rule: Backup) -> Option<u64> {
        let ended = u128::from(self.tasks - self.left) * u128::from(ONE);
        if self.finished == 0 || ended < u128::from(self.tasks) * u128::from(rule.ended) {
            return None;
        }
        let longer =
            (self.ran.saturating_mul(u128::from(rule.longer))).div_ceil(u128::from(self.finished) * u128::from(ONE));
        // A task that has just begun is no straggler, whatever the others took.
        Some(u64::try_from(longer).unwrap_or(u64::MAX).max(self.normal.0).max(1))
    }

    /// When its next task gets a backup.
    fn next(&self, rule: Backup) -> Option<Time> {
        let (start, _) = self.alone.first()?;
        Some(Time(start.0.saturating_add(self.threshold(rule)?)))
    }
}

/// Rows with tasks that may get backups.
pub(super) struct Backups {
    rule: Backup,
    rows: HashMap<u64, BackupRow>,
    due: BTreeSet<(Time, u64)>,
}

impl Backups {
    pub fn new(rule: Backup) -> Backups {
        Backups { rule, rows: HashMap::new(), due: BTreeSet::new() }
    }

    /// When the next backup is made.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    fn task(&mut self, (row, number): (u64, u32)) -> Option<&mut Task> {
        self.rows.get_mut(&row)?.begun.get_mut(&number)
    }

    /// Whether an attempt is an instance of a task that has ended in the other.
    pub fn is_over(&self, set: &ActiveSet, tasks: &Running) -> bool {
        let task = self.rows.get(&set.row).and_then(|row| row.begun.get(&tasks.first));
        let knows = |task: &Task| task.instances.iter().any(|instance| instance.set() == tasks.set);
        may_have(set) && !task.is_some_and(knows)
    }

    /// Reads the starts and stops; returns whether a set was withdrawn from its queue. Errors: the recorder's.
    pub fn apply_changes(&mut self, core: &mut Core) -> Result<bool> {
        let Some(mut news) = core.notes.instances.take() else { return Ok(false) };
        let mut any = false;
        for instance in news.drain(..) {
            match instance {
                Instance::Began(tasks) => self.began(&core.work.sets[tasks.set], tasks),
                Instance::Again { from, slot } => any |= self.again(core, from, slot)?,
            }
        }
        core.notes.instances = Some(news);
        Ok(any)
    }

    fn began(&mut self, set: &ActiveSet, tasks: Running) {
        if !may_have(set) {
            return;
        }
        let (left, normal) = (set.left, set.normal);
        let (begun, alone) = (BTreeMap::new(), BTreeSet::new());
        let open = || BackupRow { tasks: left, left, finished: 0, ran: 0, normal, begun, alone, due: None };
        let task = self.rows.entry(set.row).or_insert_with(open).begun.entry(tasks.first).or_default();
        task.attempt = task.attempt.max(set.attempt);
        task.instances.retain(|instance| instance.set() != tasks.set);
        task.instances.push(LiveInstance::Running(tasks));
        self.changed((set.row, tasks.first));
    }

    /// A task has other instances than before.
    fn changed(&mut self, (id, number): (u64, u32)) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        let Some(task) = row.begun.get_mut(&number) else { return };
        let alone = match task.instances.as_slice() {
            [LiveInstance::Running(tasks)] => Some(tasks.start),
            _ => None,
        };
        if let Some(start) = std::mem::replace(&mut task.alone, alone) {
            row.alone.remove(&(start, number));
        }
        row.alone.extend(alone.map(|start| (start, number)));
        self.plan(id);
    }

    /// Recomputes when the next task of a row gets a backup.
    fn plan(&mut self, id: u64) {
        let Some(row) = self.rows.get_mut(&id) else { return };
        let due = row.next(self.rule);
        if let Some(old) = std::mem::replace(&mut row.due, due) {
            self.due.remove(&(old, id));
        }
        self.due.extend(due.map(|at| (at, id)));
    }

    /// An instance was stopped and would wait again. It does not if the other one runs, which continues alone; else a waiting backup is
    /// withdrawn.
    fn again(&mut self, core: &mut Core, from: SetSlot, slot: SetSlot) -> Result<bool> {
        let set = &core.work.sets[slot];
        let id = (set.row, set.number);
        let Some(task) = self.task(id) else { return Ok(false) };
        task.instances.retain(|instance| instance.set() != from);
        task.attempt += 1;
        let attempt = task.attempt;
        let other = task.instances.first().copied();
        if !matches!(other, Some(LiveInstance::Running(_))) {
            task.instances = vec![LiveInstance::Waiting(slot)];
        }
        core.work.sets[slot].attempt = attempt;
        self.changed(id);
        let needless = match other {
            None => return Ok(false),
            Some(LiveInstance::Waiting(backup)) => backup,
            Some(LiveInstance::Running(other)) => {
                core.work.sets[other.set].backup = false;
                slot
            }
        };
        core.withdraw(needless)?;
        Ok(true)
    }

    /// An instance has failed: returns whether its task continues in another running one. A waiting backup is withdrawn.
    pub fn goes_on(&mut self, core: &mut Core, id: (u64, u32), tasks: &Running) -> Result<bool> {
        let Some(task) = self.task(id) else { return Ok(false) };
        let other = task.instances.iter().find(|instance| instance.set() != tasks.set).copied();
        match other {
            None => Ok(false),
            Some(LiveInstance::Waiting(backup)) => {
                task.instances.retain(|instance| instance.set() != backup);
                core.withdraw(backup)?;
                Ok(false)
            }
            Some(LiveInstance::Running(other)) => {
                task.instances.retain(|instance| instance.set() != tasks.set);
                core.work.sets[other.set].backup = false;
                self.changed(id);
                Ok(true)
            }
        }
    }

    /// A task has ended in one instance: drops the other, and others of its row may be due for a backup.
    pub fn ended(&mut self, core: &mut Core, id: (u64, u32), tasks: &Running) -> Result<()> {
        let instances = self.gone(id, Some(core.now.since(tasks.start)));
        for other in instances.into_iter().flatten().filter(|instance| instance.set() != tasks.set) {
            match other {
                LiveInstance::Waiting(backup) => core.withdraw(backup)?,
                LiveInstance::Running(other) => {
                    let victim = Victim::new(&core.work.sets[other.set], &other);
                    let ticket = core.running.victims.as_ref().and_then(|all| all.find(other.machine, &victim));
                    // Unless it ends at this very instant too.
                    if let Some(other) = ticket.and_then(|ticket| core.running.cancel(&core.work.sets, ticket)) {
                        core.finish(other, Fate::Superseded)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A task was given up.
    pub fn given_up(&mut self, id: (u64, u32)) {
        self.gone(id, None);
    }

    /// Forgets a task, which has ended after so long or was given up; its instances.
    fn gone(&mut self, id: (u64, u32), ran: Option<Span>) -> Option<Vec<LiveInstance>> {
        let row = self.rows.get_mut(&id.0)?;
        let task = row.begun.remove(&id.1)?;
        if let Some(start) = task.alone {
            row.alone.remove(&(start, id.1));
        }
        row.left -= 1;
        row.finished += u32::from(ran.is_some());
        row.ran += ran.map_or(0, |ran| u128::from(ran.0));
        let over = row.left == 0;
        self.plan(id.0);
        if over {
            self.rows.remove(&id.0);
        }
        Some(task.instances)
    }

    /// Makes the backups that are due.
    pub fn make(&mut self, core: &mut Core) {
        while let Some((_, id)) = self.due.first().filter(|(at, _)| *at <= core.now).copied() {
            self.due.pop_first();
            let Some(row) = self.rows.get_mut(&id) else { continue };
            row.due = None;
            let Some((_, number)) = row.alone.first().copied() else { continue };
            if let Some(task) = row.begun.get_mut(&number)
                && let [LiveInstance::Running(tasks)] = task.instances[..]
            {
                task.attempt += 1;
                task.instances.push(LiveInstance::Waiting(core.second(tasks.set, number, task.attempt)));
                core.outcome.backups += 1;
            }
            self.changed((id, number));
        }
    }
}

/// Whether tasks of a set may have backups.
fn may_have(set: &ActiveSet) -> bool {
    !set.gang && may_be_stopped(set)
}

impl Core<'_> {
    /// Puts a second instance of a running task in line.
    fn second(&mut self, of: SetSlot, number: u32, attempt: u32) -> SetSlot {
        let slot = self.work.sets.again(of, number, 1, self.now, &Salvage::default());
        let set = &mut self.work.sets[slot];
        (set.attempt, set.backup) = (attempt, true);
        let (job, stage) = (set.job, set.stage);
        if let Some(ordered) = &mut self.work.ordered {
            ordered.second(of, slot, job);
        }
        // It is one more to end, until one of the two is dropped.
        self.work.jobs[job].left += 1;
        self.work.jobs.row_split(job, stage);
        self.enqueue(slot);
        slot
    }
}
