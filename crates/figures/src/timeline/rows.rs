//! The rows of the table of tasks, streamed in order of completion, and their selection by user, machine and time.
//!
//! Tables are in order of completion, except that a control plane records a task when a message about it arrives. Rows are therefore sorted
//! within the largest delay of the table, which [`largest_delay`] measures.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::names::NameList;
use plimsoll_base::units::Time;
use plimsoll_store::frame::open;
use plimsoll_store::parquet::{Parquet, StoredColumn};

use super::choose::ChosenRun;

/// Number of rows in memory at once: a row group of the tables of results.
const CHUNK: usize = 1 << 17;

/// The reason for the end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskEnd {
    /// It completed, or its other instance did.
    Done,
    /// The run ended first.
    Open,
    /// Its room was reclaimed or needed by a more urgent task.
    Preempted,
    /// It failed, or it was lost with its machine or by the control plane.
    Failed,
}

impl TaskEnd {
    fn from_outcome(outcome: &str) -> TaskEnd {
        match outcome {
            "preempted" | "reclaimed" => TaskEnd::Preempted,
            "failed" | "given-up" | "machine-failed" | "lost" | "revoked" | "moved" => TaskEnd::Failed,
            "running" => TaskEnd::Open,
            _ => TaskEnd::Done,
        }
    }
}

/// An attempt of a task that was launched.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskRow<'a> {
    /// The name of the job.
    pub job: &'a str,
    /// The number within the job.
    pub task: i64,
    /// The number of the attempt.
    pub attempt: i64,
    /// The index of the user.
    pub user: usize,
    /// The machine; `None` on a pool.
    pub machine: Option<u32>,
    /// The launch, in microseconds.
    pub start: u64,
    /// The end; the end of the run if the task was still running.
    pub finish: u64,
    /// The outcome as text.
    pub outcome: &'a str,
    /// The reason for its end.
    pub end: TaskEnd,
}

/// The names of users, in order of appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct UserIndex {
    /// The names.
    pub names: Vec<String>,
    index: HashMap<String, usize>,
}

impl UserIndex {
    /// Returns the index of a user; adds the user if it is new.
    pub fn add(&mut self, name: &str) -> usize {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// Returns the index of a known user.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// Ranges of machines, such as `0-9,12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MachineRanges {
    /// The given text.
    pub text: String,
    ranges: Vec<(u32, u32)>,
}

impl MachineRanges {
    /// Reads ranges. Errors: [`Error::Plan`] under `key`.
    pub fn parse(key: &str, text: &str) -> Result<MachineRanges> {
        let range = |part: &str| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            (low <= high).then_some((low, high))
        };
        let ranges = text.split(',').map(|part| range(part.trim())).collect::<Option<Vec<_>>>();
        let ranges = ranges.ok_or_else(|| {
            Error::plan(key, format!("'{text}'"), "indices of machines, from 0, or ranges of them: 3, 0-9 or 0-9,12")
        })?;
        Ok(MachineRanges { text: text.to_owned(), ranges })
    }

    fn contains(&self, machine: u32) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&machine))
    }
}

/// The selected tasks.
#[derive(Clone, Debug)]
pub(super) struct TaskFilter {
    /// The names of the selected users; `None` for all.
    pub users: Option<HashSet<String>>,
    /// The selected machines; `None` for all.
    pub machines: Option<MachineRanges>,
    /// The start of the window.
    pub from: u64,
    /// The end of the window.
    pub until: u64,
}

impl TaskFilter {
    /// Creates a filter; no users select all.
    pub fn new(
        users: &[String],
        machines: Option<MachineRanges>,
        (from, until): (Option<Time>, Option<Time>),
    ) -> TaskFilter {
        TaskFilter {
            users: (!users.is_empty()).then(|| users.iter().cloned().collect()),
            machines,
            from: from.map_or(0, |time| time.0),
            until: until.map_or(u64::MAX, |time| time.0),
        }
    }

    /// Returns whether the user is selected.
    pub fn has_user(&self, name: &str) -> bool {
        self.users.as_ref().is_none_or(|users| users.contains(name))
    }

    /// Returns whether an instant is in the window.
    pub fn has_time(&self, time: u64) -> bool {
        (self.from..=self.until).contains(&time)
    }

    /// Returns whether a task of a selected user is selected: it runs in the window, on a selected machine.
    fn has(&self, row: &TaskRow) -> bool {
        let on =
            self.machines.as_ref().is_none_or(|ranges| row.machine.is_some_and(|machine| ranges.contains(machine)));
        on && row.start < self.until && (row.finish > self.from || (row.finish == row.start && row.start >= self.from))
    }
}

/// Reads some columns of a table in chunks. `columns` that the table lacks are omitted. Errors: the table is damaged, or `stop` returns one.
pub(super) fn each_chunk(
    path: &Path,
    columns: &[&str],
    stop: &dyn Fn() -> Result<()>,
    mut visit: impl FnMut(&Chunk) -> Result<()>,
) -> Result<()> {
    let Some(mut file) = open(path)? else { return Err(Error::trace(path, 0, "", "this table is not there")) };
    let known = |file: &Parquet, name: &str| file.columns().iter().any(|(column, _)| column == name);
    let wanted: Vec<&str> = columns.iter().copied().filter(|name| known(&file, name)).collect();
    file.select(&wanted)?;
    let mut from = 0;
    while from < file.rows() {
        stop()?;
        let rows = CHUNK.min(file.rows() - from);
        let columns = file.read(from, rows)?;
        visit(&Chunk { path, from, rows, columns: &columns })?;
        from += rows;
    }
    Ok(())
}

/// Some rows of a table.
pub(super) struct Chunk<'a> {
    path: &'a Path,
    /// The number of the first row.
    from: usize,
    /// The number of rows.
    pub rows: usize,
    columns: &'a [StoredColumn],
}

impl Chunk<'_> {
    fn column<T: Clone>(
        &self,
        name: &str,
        absent: T,
        read: impl Fn(&StoredColumn) -> std::result::Result<Option<Vec<T>>, String>,
    ) -> Result<Vec<T>> {
        let Some(column) = self.columns.iter().find(|column| column.name() == name) else {
            return Ok(vec![absent; self.rows]);
        };
        let problem = match read(column) {
            Ok(Some(values)) => return Ok(values),
            Ok(None) => "has another type".to_owned(),
            Err(problem) => problem,
        };
        Err(Error::trace(self.path, 0, name, format!("{problem}; run the plan again to replace this table")))
    }

    /// Returns a column of integers.
    pub fn integers(&self, name: &str) -> Result<Vec<Option<i64>>> {
        self.column(name, None, StoredColumn::integers)
    }

    /// Returns a column of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<Option<f64>>> {
        self.column(name, None, |column| column.numbers().map(Some))
    }

    /// Returns a column of names; an absent name is empty.
    pub fn names(&self, name: &str) -> Result<NameList> {
        let Some(column) = self.columns.iter().find(|column| column.name() == name) else {
            let mut empty = NameList::default();
            (0..self.rows).for_each(|_| empty.push(""));
            return Ok(empty);
        };
        column.names().map_err(|problem| Error::trace(self.path, 0, name, problem))
    }

    /// Creates an error about a row.
    pub fn wrong(&self, row: usize, column: &str, problem: &str) -> Error {
        let problem = format!("{problem}; run the plan again to replace this table");
        Error::trace(self.path, (self.from + row) as u64 + 1, column, problem)
    }
}

/// The columns that identify a task; figures do not need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// Job, task and attempt.
    Full,
    /// No column that identifies a task.
    Figure,
}

/// A task in the order of completion; ties are in the order of the table.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LateTask {
    finish: u64,
    row: usize,
    start: u64,
    user: usize,
    machine: Option<u32>,
    task: i64,
    attempt: i64,
    job: String,
    outcome: String,
}

impl LateTask {
    fn new(row: usize, task: &TaskRow) -> LateTask {
        LateTask {
            finish: task.finish,
            row,
            start: task.start,
            user: task.user,
            machine: task.machine,
            task: task.task,
            attempt: task.attempt,
            job: task.job.to_owned(),
            outcome: task.outcome.to_owned(),
        }
    }

    fn as_row(&self) -> TaskRow<'_> {
        TaskRow {
            job: &self.job,
            task: self.task,
            attempt: self.attempt,
            user: self.user,
            machine: self.machine,
            start: self.start,
            finish: self.finish,
            outcome: &self.outcome,
            end: TaskEnd::from_outcome(&self.outcome),
        }
    }
}

/// Restores the order of completion of tasks that arrive late by at most a known delay. Memory: the tasks that end within the delay.
struct Sorter<'a> {
    delay: u64,
    /// The latest end of a task so far.
    latest: u64,
    waiting: BinaryHeap<Reverse<LateTask>>,
    visit: &'a mut dyn FnMut(&TaskRow) -> Result<()>,
}

impl Sorter<'_> {
    fn push(&mut self, row: usize, task: &TaskRow) -> Result<()> {
        if self.delay == 0 {
            return (self.visit)(task);
        }
        self.waiting.push(Reverse(LateTask::new(row, task)));
        self.latest = self.latest.max(task.finish);
        self.pop_until(self.latest.saturating_sub(self.delay))
    }

    /// Passes on the tasks that end by `time`: later rows have no earlier end.
    fn pop_until(&mut self, time: u64) -> Result<()> {
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.finish <= time
        {
            (self.visit)(&first.as_row())?;
            self.waiting.pop();
        }
        Ok(())
    }
}

/// Returns the end of a task: the end of the run if it was still running.
fn finish_of(run: &ChosenRun, start: u64, end: Option<i64>) -> u64 {
    end.and_then(|end| u64::try_from(end).ok()).unwrap_or(run.end.0.max(start))
}

/// Returns the launch of a task; `None` if it was never launched.
fn start_of(start: Option<i64>) -> Option<u64> {
    start.and_then(|start| u64::try_from(start).ok())
}

/// Returns the largest delay of a row: how much earlier its task ended than the task of an earlier row. It is 0 for a table in order of
/// completion.
pub(super) fn largest_delay(run: &ChosenRun, stop: &dyn Fn() -> Result<()>) -> Result<u64> {
    let (mut latest, mut delay) = (0, 0);
    each_chunk(&run.tasks, &["start_us", "finish_us"], stop, |chunk| {
        let (starts, ends) = (chunk.integers("start_us")?, chunk.integers("finish_us")?);
        for (start, end) in starts.into_iter().zip(ends) {
            let Some(start) = start_of(start) else { continue };
            let finish = finish_of(run, start, end);
            delay = delay.max(u64::saturating_sub(latest, finish));
            latest = latest.max(finish);
        }
        Ok(())
    })?;
    Ok(delay)
}

/// Streams the selected tasks of a run in order of completion. `users` gets the names of all users, selected or not. Errors: the table is
/// damaged, or `stop` returns one.
pub(super) fn each_task(
    run: &ChosenRun,
    filter: &TaskFilter,
    users: &mut UserIndex,
    detail: Detail,
    stop: &dyn Fn() -> Result<()>,
    mut visit: impl FnMut(&TaskRow) -> Result<()>,
) -> Result<()> {
    let mut columns = vec!["user", "machine", "start_us", "finish_us", "outcome"];
    if detail == Detail::Full {
        columns.extend(["job", "task", "attempt"]);
    }
    let mut sorter = Sorter { delay: run.delay, latest: 0, waiting: BinaryHeap::new(), visit: &mut visit };
    each_chunk(&run.tasks, &columns, stop, |chunk| {
        let (names, machines) = (chunk.names("user")?, chunk.integers("machine")?);
        let (starts, ends, outcomes) =
            (chunk.integers("start_us")?, chunk.integers("finish_us")?, chunk.names("outcome")?);
        let (jobs, tasks, attempts) = (chunk.names("job")?, chunk.integers("task")?, chunk.integers("attempt")?);
        let mut known: Option<(&str, usize, bool)> = None;
        for row in 0..chunk.rows {
            let name = names.get(row);
            let (user, selected) = match known {
                Some((last, user, selected)) if last == name => (user, selected),
                _ => (users.add(name), filter.has_user(name)),
            };
            known = Some((name, user, selected));
            let Some(start) = start_of(starts[row]) else { continue };
            let finish = finish_of(run, start, ends[row]);
            if finish < start {
                return Err(chunk.wrong(row, "finish_us", "the task ends before it starts"));
            }
            let outcome = outcomes.get(row);
            let task = TaskRow {
                job: jobs.get(row),
                task: tasks[row].unwrap_or(0),
                attempt: attempts[row].unwrap_or(0),
                user,
                machine: machines[row].and_then(|machine| u32::try_from(machine).ok()),
                start,
                finish,
                outcome,
                end: TaskEnd::from_outcome(outcome),
            };
            if selected && filter.has(&task) {
                sorter.push(chunk.from + row, &task)?;
            }
        }
        Ok(())
    })?;
    sorter.pop_until(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_machines() {
        let ranges = MachineRanges::parse("--machines", "0-2, 7").expect("ranges");
        let chosen: Vec<u32> = (0..10).filter(|machine| ranges.contains(*machine)).collect();
        assert_eq!(chosen, [0, 1, 2, 7]);
        for text in ["", "a", "3-1", "1,,2", "-1", "1-", "0-9-12"] {
            let message = MachineRanges::parse("--machines", text).expect_err("no range").to_string();
            assert!(message.contains("--machines") && message.contains("0-9,12"), "{text}: {message}");
        }
    }

    #[test]
    fn a_window_selects_tasks_that_run_in_it() {
        let filter = TaskFilter::new(&[], None, (Some(Time(10)), Some(Time(20))));
        let row = |start, finish| TaskRow {
            job: "",
            task: 0,
            attempt: 0,
            user: 0,
            machine: None,
            start,
            finish,
            outcome: "finished",
            end: TaskEnd::Done,
        };
        for (start, finish, is) in [
            (0, 10, false),
            (0, 11, true),
            (19, 30, true),
            (20, 30, false),
            (10, 10, true),
            (20, 20, false),
            (5, 5, false),
        ] {
            assert_eq!(filter.has(&row(start, finish)), is, "{start}-{finish}");
        }
    }

    #[test]
    fn late_rows_are_sorted_within_their_delay() {
        let ends = [10, 12, 11, 30, 25, 28, 31, 26, 40];
        let mut order = Vec::new();
        let mut most = 0;
        let mut visit = |task: &TaskRow| {
            order.push(task.finish);
            Ok(())
        };
        let mut sorter = Sorter { delay: 5, latest: 0, waiting: BinaryHeap::new(), visit: &mut visit };
        for (at, finish) in ends.into_iter().enumerate() {
            let task = LateTask {
                finish,
                row: at,
                start: 0,
                user: 0,
                machine: None,
                task: 0,
                attempt: 0,
                job: String::new(),
                outcome: String::new(),
            };
            sorter.push(at, &task.as_row()).expect("no error");
            most = most.max(sorter.waiting.len());
        }
        sorter.pop_until(u64::MAX).expect("no error");
        assert_eq!(order, [10, 11, 12, 25, 26, 28, 30, 31, 40]);
        assert!(most <= 5, "{most} tasks were in memory");
    }
}
