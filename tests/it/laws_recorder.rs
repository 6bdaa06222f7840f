//! A recorder that recomputes all totals independently and fails at the first violation.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll::books::Books;
use plimsoll::cluster::{Cluster, Machines, Placement};
use plimsoll::engine::{OnBlocked, Options, Outcome};
use plimsoll::error::Result;
use plimsoll::policy::Policy;
use plimsoll::record::{JobRecord, Launch, Named, Recorder, State, Stuck, StuckRecord, TaskRecord};
use plimsoll::units::{JobId, MachineId, Resources, Span, Time, UserId};
use plimsoll::workload::TaskSet;

/// A user's running tasks, waiting tasks and usage.
type Standing = (u64, u64, Vec<u64>);

/// The recorded tasks of a job.
#[derive(Default)]
struct SeenTasks {
    numbers: BTreeSet<u64>,
    finished: u64,
    start: Option<Time>,
    finish: Option<Time>,
}

/// The submitted tasks of a job.
#[derive(Default)]
struct Submitted {
    user: UserId,
    tasks: u64,
    first: Time,
    recorded: bool,
}

/// A recorder that checks every event of a run.
pub struct Laws {
    /// A second instance of the run's policy. It provides the lens: the amounts that the policy counts for machines and demands.
    policy: Box<dyn Policy>,
    options: Options,
    dims: usize,
    offered: Resources,
    machines: Vec<Resources>,
    think: Option<Span>,
    until: Time,
    settled: Option<Time>,
    users: Vec<String>,
    jobs: BTreeMap<JobId, Submitted>,
    heard: BTreeMap<String, SeenTasks>,
    running: Vec<u64>,
    used: Vec<Vec<u64>>,
    standing: Vec<Standing>,
    /// For each user, the job that has not ended, and the end of the preceding job.
    looping: Vec<(Option<JobId>, Option<Time>)>,
    launched: u64,
    cut: u64,
    on_machines: Vec<(MachineId, Time, Time, Resources, u32)>,
    /// The start of each task, by job and number.
    pub starts: BTreeMap<(String, u64), Time>,
    /// The number of tasks that waited.
    pub waited: u64,
    /// The number of tasks that never started.
    pub stuck: u64,
}

fn render(name: &Named) -> String {
    let mut text = String::new();
    name.render(&mut text);
    text
}

impl Laws {
    /// Creates a recorder for a run of this policy on this cluster. `think` is the think time of the users of a closed loop.
    pub fn new(policy: Box<dyn Policy>, cluster: &Cluster, options: &Options, think: Option<Span>) -> Laws {
        let machines: Vec<Resources> =
            cluster.capacities.iter().map(|&machine| policy.needs().lens.machine(machine)).collect();
        let mut offered = Resources::ZERO;
        for machine in &machines {
            offered.0.iter_mut().zip(machine.0).for_each(|(sum, part)| *sum += part);
        }
        Laws {
            policy,
            options: options.clone(),
            dims: cluster.dims.len(),
            offered,
            machines,
            think,
            until: Time::ZERO,
            settled: None,
            users: Vec::new(),
            jobs: BTreeMap::new(),
            heard: BTreeMap::new(),
            running: Vec::new(),
            used: Vec::new(),
            standing: Vec::new(),
            looping: Vec::new(),
            launched: 0,
            cut: 0,
            on_machines: Vec::new(),
            starts: BTreeMap::new(),
            waited: 0,
            stuck: 0,
        }
    }

    /// Returns the number of ended jobs of each user.
    pub fn jobs_by_user(&self) -> BTreeMap<&str, u64> {
        let mut jobs = BTreeMap::new();
        for job in self.jobs.values() {
            *jobs.entry(self.users[job.user.index()].as_str()).or_default() += 1;
        }
        jobs
    }

    /// Checks the totals at the end of the run.
    pub fn over(&self, outcome: &Outcome) {
        assert!(self.jobs.values().all(|job| job.recorded), "every job has a record");
        let finished: u64 = self.heard.values().map(|heard| heard.finished).sum();
        let submitted: u64 = self.jobs.values().map(|job| job.tasks).sum();
        assert_eq!(finished + self.cut + self.stuck, submitted, "submitted tasks finished, were cut or are stuck");
        assert_eq!((outcome.launched, finished + self.cut), (self.launched, self.launched), "every launched task ran");
        assert!(self.options.until.is_some() || self.cut == 0, "only a horizon cuts tasks");
        assert!(self.options.until.is_none_or(|until| outcome.end <= until), "nothing happens past the horizon");
        self.machines_are_never_overfull();
    }

    /// Checks the allocation of each machine over time. At an instant, tasks end before other tasks start.
    fn machines_are_never_overfull(&self) {
        let mut changes: Vec<(MachineId, Time, bool, Resources, u32)> = Vec::new();
        for &(machine, start, finish, footprint, count) in self.on_machines.iter().filter(|task| task.2 > task.1) {
            changes.push((machine, start, true, footprint, count));
            changes.push((machine, finish, false, footprint, count));
        }
        changes.sort_by_key(|&(machine, at, starts, ..)| (machine, at, starts));
        let mut held = vec![Resources::ZERO; self.machines.len()];
        for (machine, at, starts, footprint, count) in changes {
            let held = &mut held[machine.index()];
            for (held, part) in held.0.iter_mut().zip(footprint.0) {
                let amount = part * u64::from(count);
                *held = if starts { *held + amount } else { *held - amount };
            }
            assert!(held.fits(&self.machines[machine.index()]), "machine {machine} is over-committed at {at:?}");
        }
    }

    fn footprint(&self, demand: &[u64]) -> Resources {
        let mut whole = Resources::ZERO;
        whole.0[..self.dims].copy_from_slice(demand);
        self.policy.needs().lens.demand(whole)
    }

    /// Checks that no room is left unused: under `skip` no user's next task fits; under the other rules at least one next task does not
    /// fit.
    fn conserves_work(&self, books: &Books, machines: Option<&Machines>, now: Time) {
        let fits = |user: UserId| {
            let need = self.footprint(books.head(user));
            match machines {
                Some(machines) => {
                    (0..machines.len()).any(|machine| need.fits(&machines.free(MachineId(machine as u32))))
                }
                None => (0..self.dims).all(|d| need.0[d] <= self.offered.0[d] - books.total_held().0[d]),
            }
        };
        let mut waiting = (0..books.users()).map(|user| UserId(user as u32)).filter(|&user| books.waiting(user) > 0);
        match self.options.on_blocked {
            OnBlocked::Skip => assert_eq!(waiting.find(|&user| fits(user)), None, "a waiting head fits at {now:?}"),
            OnBlocked::Stop | OnBlocked::Easy | OnBlocked::Conservative | OnBlocked::Hold | OnBlocked::HoldBackfill => {
                let mut waiting = waiting.peekable();
                let anybody = waiting.peek().is_some();
                assert!(!anybody || !waiting.all(fits), "every waiting head fits at {now:?}");
            }
        }
    }

    fn record(&mut self, name: &Named, first: u64, count: u64) -> &mut SeenTasks {
        let heard = self.heard.entry(render(name)).or_default();
        for number in first..first + count {
            assert!(heard.numbers.insert(number), "task {number} of {} is reported twice", render(name));
        }
        heard
    }
}

impl Recorder for Laws {
    fn user(&mut self, user: UserId, name: &str) {
        assert_eq!(user.index(), self.users.len(), "users appear in order");
        self.users.push(name.to_owned());
        self.running.push(0);
        self.used.push(vec![0; self.dims]);
        self.standing.push((0, 0, vec![0; self.dims]));
        self.looping.push((None, None));
    }

    fn submitted(&mut self, row: &TaskSet, _stage: Option<&str>, first_of_job: bool) {
        let new = !self.jobs.contains_key(&row.job);
        assert_eq!(new, first_of_job, "the first row of {:?}", row.job);
        let job = self.jobs.entry(row.job).or_default();
        if new {
            (job.user, job.first) = (row.user, row.submit);
            if let Some(think) = self.think {
                let (open, before) = &mut self.looping[row.user.index()];
                assert_eq!(open.replace(row.job), None, "a user in a loop has one job at a time");
                assert!(before.is_none_or(|end| row.submit == end + think), "a user submits after its think time");
            }
        }
        job.tasks += u64::from(row.tasks);
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        assert!(from == self.until && to > from, "intervals are contiguous: {from:?} to {to:?} after {:?}", self.until);
        self.until = to;
        let pooled = self.options.placement == Placement::Pooled;
        assert_eq!(state.machines.is_none(), pooled);
        if let Some(machines) = state.machines {
            for d in 0..self.dims {
                let free: u64 = (0..machines.len()).map(|machine| machines.free(MachineId(machine as u32)).0[d]).sum();
                assert_eq!(free + state.books.total_held().0[d], self.offered.0[d], "machines and books agree");
            }
        }
        self.conserves_work(state.books, state.machines, from);
        Ok(())
    }

    fn launched(&mut self, launch: &Launch) {
        let (user, count) = (launch.user.index(), u64::from(launch.count));
        self.running[user] += count;
        self.used[user].iter_mut().zip(launch.demand).for_each(|(sum, part)| *sum += part * count);
        self.launched += count;
        self.waited += if launch.wait > Span::ZERO { count } else { 0 };
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let count = u64::from(tasks.count);
        assert!(tasks.start >= tasks.release, "no task starts before its release");
        assert!(
            tasks.finish.is_none_or(|finish| finish == tasks.start + tasks.duration),
            "a task ends after its duration"
        );
        let heard = self.record(&tasks.name, tasks.first, count);
        heard.start = Some(heard.start.map_or(tasks.start, |start| start.min(tasks.start)));
        match tasks.finish {
            Some(finish) => {
                heard.finished += count;
                heard.finish = heard.finish.max(Some(finish));
                self.running[tasks.user.index()] -= count;
                let used = self.used[tasks.user.index()].iter_mut().zip(tasks.demand);
                used.for_each(|(sum, part)| *sum -= part * count);
            }
            None => self.cut += count,
        }
        let name = render(&tasks.name);
        self.starts.extend((tasks.first..tasks.first + count).map(|number| ((name.clone(), number), tasks.start)));
        assert_eq!(tasks.machine.is_none(), self.options.placement == Placement::Pooled);
        if let Some(machine) = tasks.machine {
            let (footprint, end) = (self.footprint(tasks.demand), tasks.start + tasks.duration);
            self.on_machines.push((machine, tasks.start, end, footprint, tasks.count));
        }
        Ok(())
    }

    fn job(&mut self, record: &JobRecord) -> Result<()> {
        let job = self.jobs.get_mut(&record.job).expect("a job is submitted before it ends");
        assert!(!std::mem::replace(&mut job.recorded, true), "a job has one record");
        assert_eq!((record.user, record.tasks, record.submit), (job.user, job.tasks, job.first));
        let heard = self.heard.entry(render(&record.name)).or_default();
        assert_eq!(heard.numbers.len() as u64, record.tasks, "every task of the job is reported");
        assert_eq!(heard.numbers.last(), Some(&(record.tasks - 1)), "tasks are numbered from 0");
        assert_eq!(record.start, heard.start, "a job starts with its first task");
        let finish = heard.finish.filter(|_| heard.finished == record.tasks);
        assert_eq!(record.finish, finish, "a job ends with its last task");
        let (open, before) = &mut self.looping[record.user.index()];
        (*open, *before) = (None, record.finish);
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        self.record(&stuck.name, stuck.first, stuck.tasks);
        self.stuck += stuck.tasks;
        let need = self.footprint(stuck.demand);
        let fits = match self.options.placement {
            Placement::Pooled => need.fits(&self.offered),
            _ => self.machines.iter().any(|machine| need.fits(machine)),
        };
        match stuck.why {
            Stuck::TooLarge => assert!(!fits, "a task that is too large fits nowhere"),
            Stuck::Deadlocked => assert!(fits && self.stuck > stuck.tasks, "another task is stuck, too"),
            Stuck::Starved => panic!("no task starves: events remain while tasks wait"),
            Stuck::Cut => assert!(fits && self.options.until.is_some(), "only a horizon cuts"),
        }
        Ok(())
    }

    fn settled(&mut self, now: Time, changed: &[UserId], books: &Books) -> Result<()> {
        assert!(self.settled.is_none_or(|before| before < now) && now == self.until, "instants increase");
        self.settled = Some(now);
        assert!(books.total_held().fits(&self.offered), "the allocation is at most the capacity");
        for at in 0..books.users() {
            let user = UserId(at as u32);
            assert_eq!(books.running(user), self.running[at], "the running tasks of {user} at {now:?}");
            assert_eq!(books.used(user), self.used[at], "the usage of {user} at {now:?}");
            let standing = (books.running(user), books.waiting(user), books.used(user).to_vec());
            if !changed.contains(&user) {
                assert_eq!(standing, self.standing[at], "{user} has changed at {now:?} without a notification");
            }
            self.standing[at] = standing;
        }
        if self.options.placement == Placement::Pooled {
            self.conserves_work(books, None, now);
        }
        Ok(())
    }
}
