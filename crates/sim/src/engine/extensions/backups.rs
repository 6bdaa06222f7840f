//! Backup instances: a second instance of a task that takes much longer than the other tasks of its row. The first instance to end counts.
//!
//! The rule is that of Fuxi's job masters (Zhang et al., VLDB 2014): a task gets a backup once most tasks of the row have ended, if its
//! run time exceeds a multiple of their mean run time, and exceeds the run time that the user has declared normal (`estimate_s`). Fuxi's
//! criterion on the size of the input does not apply here, since the tasks of a row are equal.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::engine::kernel::pace::ONE;
use crate::engine::kernel::{ActiveSet, Change, Kernel, Reader, Running, SetSlot, Victim, may_be_stopped};
use crate::record::Fate;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Span, Time};
use plimsoll_base::visit_values;

/// The rule for backup instances. Tasks of gangs, and tasks that may not be preempted (stable), get no backups. A task has at most one
/// backup at a time.
///
/// The backup is queued at its row's position. If one instance is stopped or fails while the other runs, the task continues in the other
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The share of the row's tasks that must have ended, in millionths.
    pub ended: u64,
    /// The minimum ratio of the task's run time to the mean of these tasks, in millionths.
    pub longer: u64,
}

/// An instance of a task that has begun and not ended.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Task {
    /// The instances; at most two.
    instances: Vec<LiveInstance>,
    /// The number of the last attempt.
    attempt: u32,
    /// The start of the only instance, if there is one and it runs.
    alone: Option<Time>,
}

/// A row with at least one task that has begun.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct BackupRow {
    tasks: u32,
    /// Tasks that have not ended, including tasks that have not begun.
    left: u32,
    /// Tasks that have finished, and their total run time in microseconds.
    finished: u32,
    ran: u128,
    /// The run time of a task that its user declares normal.
    normal: Span,
    begun: BTreeMap<u32, Task>,
    /// Tasks with one running instance, by its start; the first one is the next to get a backup.
    alone: BTreeSet<(Time, u32)>,
    /// The instant of the next backup, if no other event changes it.
    due: Option<Time>,
}

impl BackupRow {
    /// Returns the run time after which a task gets a backup; `None` until enough tasks have ended.
    fn threshold(&self, rule: Backup) -> Option<u64> {
        let ended = u128::from(self.tasks - self.left) * u128::from(ONE);
        if self.finished == 0 || ended < u128::from(self.tasks) * u128::from(rule.ended) {
            return None;
        }
        let longer =
            (self.ran.saturating_mul(u128::from(rule.longer))).div_ceil(u128::from(self.finished) * u128::from(ONE));
        // The minimum of one microsecond exempts a task that has just begun, whatever the run time of the others.
        Some(u64::try_from(longer).unwrap_or(u64::MAX).max(self.normal.0).max(1))
    }

    /// Returns the instant at which the row's next task gets a backup.
    fn next(&self, rule: Backup) -> Option<Time> {
        let (start, _) = self.alone.first()?;
        Some(Time(start.0.saturating_add(self.threshold(rule)?)))
    }
}

/// The rows with tasks that may get backups.
pub struct Backups {
    reader: Reader,
    rule: Backup,
    rows: HashMap<u64, BackupRow>,
    due: BTreeSet<(Time, u64)>,
    /// The number of backups so far.
    pub created: u64,
}

impl Backups {
    pub fn new(reader: Reader, rule: Backup) -> Backups {
        Backups { reader, rule, rows: HashMap::new(), due: BTreeSet::new(), created: 0 }
    }

    /// Returns the instant of the next backup.
    pub fn next(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    fn task(&mut self, (row, number): (u64, u32)) -> Option<&mut Task> {
        self.rows.get_mut(&row)?.begun.get_mut(&number)
    }

    /// Returns whether an attempt belongs to a task that has already ended in its other instance.
    pub fn is_over(&self, set: &ActiveSet, tasks: &Running) -> bool {
        let task = self.rows.get(&set.row).and_then(|row| row.begun.get(&tasks.first));
        let knows = |task: &Task| task.instances.iter().any(|instance| instance.set() == tasks.set);
        may_have(set) && !task.is_some_and(knows)
    }

    /// Reads the starts and stops from the change log. Returns whether a set was withdrawn from its queue. Errors: the recorder's.
    pub fn apply_changes(&mut self, kernel: &mut Kernel) -> Result<bool> {
        let mut any = false;
        while let Some(change) = kernel.next_change(self.reader) {
            match change {
                Change::Started { tasks, .. } => self.began(kernel, tasks),
                Change::Again { from, slot } => any |= self.again(kernel, from, slot)?,
                _ => {}
            }
        }
        Ok(any)
    }

    fn began(&mut self, kernel: &Kernel, tasks: Running) {
        let (set, details) = (kernel.set(tasks.set), kernel.details(tasks.set));
        if !may_have(set) {
            return;
        }
        let (left, normal) = (set.left, details.normal);
        let (begun, alone) = (BTreeMap::new(), BTreeSet::new());
        let open = || BackupRow { tasks: left, left, finished: 0, ran: 0, normal, begun, alone, due: None };
        let task = self.rows.entry(set.row).or_insert_with(open).begun.entry(tasks.first).or_default();
        task.attempt = task.attempt.max(details.attempt);
        task.instances.retain(|instance| instance.set() != tasks.set);
        task.instances.push(LiveInstance::Running(tasks));
        self.changed((set.row, tasks.first));
    }

    /// Updates the indexes after a change of a task's instances.
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

    /// Handles a stopped instance that would wait again. If the other instance runs, the task continues in it, and the set of the stopped
    /// instance is withdrawn. Otherwise a waiting backup is withdrawn. Returns whether any set was withdrawn. Errors: the recorder's.
    fn again(&mut self, kernel: &mut Kernel, from: SetSlot, slot: SetSlot) -> Result<bool> {
        let set = kernel.set(slot);
        let id = (set.row, set.number);
        let Some(task) = self.task(id) else { return Ok(false) };
        task.instances.retain(|instance| instance.set() != from);
        task.attempt += 1;
        let attempt = task.attempt;
        let other = task.instances.first().copied();
        if !matches!(other, Some(LiveInstance::Running(_))) {
            task.instances = vec![LiveInstance::Waiting(slot)];
        }
        kernel.set_attempt(slot, attempt);
        self.changed(id);
        let needless = match other {
            None => return Ok(false),
            Some(LiveInstance::Waiting(backup)) => backup,
            Some(LiveInstance::Running(other)) => {
                kernel.promote(other.set);
                slot
            }
        };
        kernel.withdraw(needless)?;
        Ok(true)
    }

    /// Handles a failed instance. Returns whether its task continues in another running instance; a waiting backup is withdrawn. Errors:
    /// the recorder's.
    pub fn goes_on(&mut self, kernel: &mut Kernel, id: (u64, u32), tasks: &Running) -> Result<bool> {
        let Some(task) = self.task(id) else { return Ok(false) };
        let other = task.instances.iter().find(|instance| instance.set() != tasks.set).copied();
        match other {
            None => Ok(false),
            Some(LiveInstance::Waiting(backup)) => {
                task.instances.retain(|instance| instance.set() != backup);
                kernel.withdraw(backup)?;
                Ok(false)
            }
            Some(LiveInstance::Running(other)) => {
                task.instances.retain(|instance| instance.set() != tasks.set);
                kernel.promote(other.set);
                self.changed(id);
                Ok(true)
            }
        }
    }

    /// Handles the end of one instance of a task: the other instance is dropped. Other tasks of the row may then reach the threshold for a
    /// backup. Errors: the recorder's.
    pub fn ended(&mut self, kernel: &mut Kernel, id: (u64, u32), tasks: &Running) -> Result<()> {
        let instances = self.gone(id, Some(kernel.now().since(tasks.start)));
        for other in instances.into_iter().flatten().filter(|instance| instance.set() != tasks.set) {
            match other {
                LiveInstance::Waiting(backup) => kernel.withdraw(backup)?,
                LiveInstance::Running(other) => {
                    let victim = Victim::new(kernel.set(other.set), &other);
                    let ticket = kernel.victims().and_then(|all| all.find(other.machine, &victim));
                    // The other instance may also end at this instant; then it has no ticket.
                    if let Some(other) = ticket.and_then(|ticket| kernel.cancel(ticket)) {
                        kernel.finish(other, Fate::Superseded)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes a task that was given up.
    pub fn given_up(&mut self, id: (u64, u32)) {
        self.gone(id, None);
    }

    /// Removes a task that has ended after a run time of `ran`, or was given up. Returns its instances.
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

    /// Creates the backups that are due.
    pub fn make(&mut self, kernel: &mut Kernel) {
        while let Some((_, id)) = self.due.first().filter(|(at, _)| *at <= kernel.now()).copied() {
            self.due.pop_first();
            let Some(row) = self.rows.get_mut(&id) else { continue };
            row.due = None;
            let Some((_, number)) = row.alone.first().copied() else { continue };
            if let Some(task) = row.begun.get_mut(&number)
                && let [LiveInstance::Running(tasks)] = task.instances[..]
            {
                task.attempt += 1;
                task.instances.push(LiveInstance::Waiting(kernel.add_instance(tasks.set, number, task.attempt)));
                self.created += 1;
            }
            self.changed((id, number));
        }
    }
}

/// Returns whether tasks of a set may have backups.
fn may_have(set: &ActiveSet) -> bool {
    !set.is_gang() && may_be_stopped(set)
}

impl Checkpoint for Backups {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let Backups { reader: _, rule: _, rows, due, created } = self;
        visit_values!(visitor; rows, due, created);
        Ok(())
    }
}
