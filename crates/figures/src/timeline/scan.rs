//! The first pass over the tasks of a run: users by allocated time, machines with their lanes, and the extent in time.

use std::collections::BTreeMap;

use plimsoll_base::error::{Error, Result, alternatives, did_you_mean};

use super::TimelineRequest;
use super::choose::ChosenRun;
use super::lanes::Lanes;
use super::rows::{Detail, TaskEnd, TaskFilter, UserIndex, each_task};

/// The facts about the selected tasks of a run.
pub(super) struct Overview {
    /// All users.
    pub users: UserIndex,
    /// The indices of the users with selected tasks, by the time of their tasks, the largest first; ties by name.
    pub largest: Vec<usize>,
    /// The machines with selected tasks, each with its number of lanes; empty on a pool.
    pub machines: BTreeMap<u32, u32>,
    /// The number of selected tasks.
    pub tasks: u64,
    /// The number of failures and of preemptions in the window.
    pub failures: u64,
    /// The number of preemptions in the window.
    pub preemptions: u64,
    /// The window, in microseconds.
    pub window: (u64, u64),
}

impl Overview {
    /// Reads the tasks.
    pub fn read(run: &ChosenRun, filter: &TaskFilter, stop: &dyn Fn() -> Result<()>) -> Result<Overview> {
        let mut users = UserIndex::default();
        let mut busy: Vec<u128> = Vec::new();
        let mut lanes: BTreeMap<u32, Lanes> = BTreeMap::new();
        let (mut tasks, mut failures, mut preemptions) = (0, 0, 0);
        let (mut first, mut last) = (u64::MAX, 0);
        each_task(run, filter, &mut users, Detail::Figure, stop, |task| {
            tasks += 1;
            busy.resize(busy.len().max(task.user + 1), 0);
            let (from, until) = (task.start.max(filter.from), task.finish.min(filter.until));
            // A task of zero duration counts as one microsecond, so that its user is listed.
            busy[task.user] += u128::from(until.saturating_sub(from)).max(1);
            first = first.min(from);
            last = last.max(until);
            if filter.has_time(task.finish) {
                failures += u64::from(task.end == TaskEnd::Failed);
                preemptions += u64::from(task.end == TaskEnd::Preempted);
            }
            if let Some(machine) = task.machine {
                lanes.entry(machine).or_default().place(task.start, task.finish);
            }
            Ok(())
        })?;
        let mut largest: Vec<usize> = (0..busy.len()).filter(|&user| busy[user] > 0).collect();
        largest.sort_by(|&a, &b| busy[b].cmp(&busy[a]).then_with(|| users.names[a].cmp(&users.names[b])));
        let from = if filter.from > 0 { filter.from } else { first.min(last) };
        let until = if filter.until < u64::MAX { filter.until } else { last };
        let machines = lanes.into_iter().map(|(machine, lanes)| (machine, lanes.count())).collect();
        Ok(Overview { users, largest, machines, tasks, failures, preemptions, window: (from, until.max(from + 1)) })
    }

    /// Returns whether tasks have no machines.
    pub fn is_pooled(&self) -> bool {
        self.machines.is_empty()
    }

    /// Checks the selection. Errors: an unknown user, machines of a pool, or no task.
    pub fn check(&self, run: &ChosenRun, request: &TimelineRequest) -> Result<()> {
        let names = || self.users.names.iter().map(String::as_str);
        if let Some(unknown) = request.users.iter().find(|name| self.users.find(name).is_none()) {
            let listing = "plimsoll show RESULTS users";
            let known = alternatives(unknown, names(), listing) + &did_you_mean(unknown, names());
            return Err(Error::plan("--users", format!("'{unknown}'"), format!("a user of the run: {known}")));
        }
        if self.tasks > 0 {
            return Ok(());
        }
        let mut selected = Vec::new();
        if let Some(machines) = request.machines {
            selected.push(format!("on machines {machines} (a pooled run has none)"));
        }
        if !request.users.is_empty() {
            selected.push(format!("of {}", request.users.join(", ")));
        }
        if request.from.is_some() || request.until.is_some() {
            selected.push(format!("in the window; the run ends at {} s", run.end.seconds()));
        }
        let problem = match selected.is_empty() {
            true => "no task was launched in this run".to_owned(),
            false => format!("no task runs {}", selected.join(" ")),
        };
        Err(Error::trace(&run.tasks, 0, "", problem))
    }
}
