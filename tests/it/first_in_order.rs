//! Preemption for tasks that precede the victims in the job order (`preempt_for = "order"`), compared with manually calculated schedules,
//! with the optimality of shortest remaining time, and with an independent slow simulator.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use plimsoll::cluster::Placement;
use plimsoll::engine::{Options, Preempt, PreemptFor, PreemptFrom, PreemptionLimits, Ties};
use plimsoll::record::Fate;
use plimsoll::units::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::preemption_limits::{Ran, replay};
use crate::workloads::pick;

const HEADER: &str = "job,user,submit_s,duration_s,estimate_s,tasks,cpu";
const SECOND: u64 = 1_000_000;

/// Returns options for immediate preemption. Victims keep their progress if `kept`.
fn options(kept: bool) -> Options {
    let preempt = Some(Preempt { within: Span::ZERO, whom: PreemptFor::Order, from: PreemptFrom::Any });
    let preemption_limits = PreemptionLimits { checkpoint: Span(u64::from(kept)), ..PreemptionLimits::default() };
    Options { placement: Placement::FirstFit, ties: Ties::LowestId, preempt, preemption_limits, ..Options::default() }
}

/// Returns the spans of each job on the only core: the job, its start second and its end second.
fn on_one_core(policy: &str, rows: &str) -> Vec<(String, u64, u64)> {
    let ran = replay(policy, HEADER, rows, "1x1c", &options(true)).expect("a run");
    ran.into_iter().map(|ran| (ran.job, ran.start / SECOND, ran.finish / SECOND)).collect()
}

fn spans(wanted: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    wanted.iter().map(|(job, start, finish)| ((*job).to_owned(), *start, *finish)).collect()
}

/// Three jobs on one core: `a` of 100 s at 0, `b` of 5 s at 1, and `c` of 50 s at 2. `a` and `c` belong to the same user.
#[test]
fn who_comes_first_has_the_core() {
    let rows = "a,u,0,100,100,1,1\nb,v,1,5,5,1,1\nc,u,2,50,50,1,1\n";
    let srpt = [("a", 0, 1), ("b", 1, 6), ("c", 6, 56), ("a", 56, 155)];
    assert_eq!(on_one_core("line/srpt", rows), spans(&srpt));
    assert_eq!(on_one_core("line/srpt:true", rows), spans(&srpt));
    // The first queue ends at 10 s of service, and the second at 60 s. Each job first runs for at most 10 s, in the order of arrival.
    // Then a runs for 50 s more before c runs for its remaining 40 s.
    let queues = [("a", 0, 10), ("b", 10, 15), ("c", 15, 25), ("a", 25, 75), ("c", 75, 115), ("a", 115, 155)];
    assert_eq!(on_one_core("line/tiresias:10s,60s", rows), spans(&queues));
    // The order applies only within a user: under `drf` no task of u is stopped for v. User v ranks behind u and waits.
    let own = [("a", 0, 2), ("c", 2, 52), ("a", 52, 150), ("b", 150, 155)];
    assert_eq!(on_one_core("drf/srpt", rows), spans(&own));
}

/// On one core, if preemption loses no work, no order has a smaller sum of completion times than shortest remaining
/// processing time. Source: Schrage, Operations Research 1968.
#[test]
fn shortest_remaining_time_is_the_best_on_one_core() {
    let mut better = 0;
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let row = |at: u64| format!("j{at},u{at},{},{1},{1},1,1\n", at * 4, rng.random_range(1..12));
        let rows: String = (0..12).map(row).collect();
        let total = |policy: &str| -> u64 {
            let ran = replay(policy, HEADER, &rows, "1x1c", &options(true)).expect("a run");
            ran.iter().filter(|ran| ran.fate == Fate::Finished).map(|ran| ran.finish).sum()
        };
        let best = total("line/srpt");
        for other in ["line/fifo", "line/sjf", "line/las", "line/tiresias:2s,5s"] {
            assert!(total(other) >= best, "seed {seed}: {other}");
            better += u64::from(total(other) > best);
        }
    }
    assert!(better > 60, "{better}");
}

/// A job of equal tasks, in seconds and cores.
#[derive(Clone, Debug)]
struct Job {
    user: u32,
    submit: u64,
    duration: u64,
    tasks: u32,
    cores: u64,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    job: usize,
    /// The number of the set of tasks that wait together, such as the tasks of an entry that one request stops.
    set: usize,
    number: u32,
    /// In microseconds.
    left: u64,
}

#[derive(Clone, Copy, Debug)]
struct Runs {
    task: Task,
    machine: usize,
    /// The number of the entry: the tasks of a set that started in one round, one after the other, on one machine.
    entry: usize,
    start: u64,
}

/// A line of the result: job, task, start, finish, and whether the task was stopped.
type Line = (usize, u32, u64, u64, bool);

/// A scheduler of a few jobs that re-evaluates everything at every event.
struct Slow<'a> {
    jobs: &'a [Job],
    order: &'a str,
    cores: Vec<u64>,
    kept: bool,
    /// All waiting tasks; `runs` has all running tasks.
    waits: Vec<Task>,
    runs: Vec<Runs>,
    /// Per job: the service of its tasks that have ended or were stopped.
    attained: Vec<u128>,
    /// Per set: the machine and the entry that it last started on in this round.
    last: BTreeMap<usize, (usize, usize)>,
    /// The last number assigned to a set or an entry.
    numbers: usize,
    lines: Vec<Line>,
}

const WHOLE: u128 = 1 << 20;

impl Slow<'_> {
    fn breadth(&self, job: usize) -> u128 {
        let total: u64 = self.cores.iter().sum();
        if self.order.starts_with("tiresias") {
            (u128::from(self.jobs[job].cores) * WHOLE).div_ceil(total.into())
        } else {
            1
        }
    }

    fn service(&self, job: usize, now: u64) -> u128 {
        let running = self.runs.iter().filter(|runs| runs.task.job == job);
        self.attained[job] + self.breadth(job) * running.map(|runs| u128::from(now - runs.start)).sum::<u128>()
    }

    fn thresholds(&self) -> Vec<u128> {
        let spans = self.order.trim_start_matches("tiresias:").split(',');
        spans
            .filter_map(|span| span.trim_end_matches('s').parse::<u128>().ok())
            .map(|s| s * 1_000_000 * WHOLE)
            .collect()
    }

    fn key(&self, job: usize, now: u64) -> u128 {
        let of = |task: &&Task| task.job == job;
        match self.order {
            "fifo" => u128::from(self.jobs[job].submit) << 64 | job as u128,
            "sjf:true" => u128::from(self.jobs[job].duration) * u128::from(self.jobs[job].tasks),
            "srpt:true" => {
                let waiting: u64 = self.waits.iter().filter(of).map(|task| task.left).sum();
                let running = self.runs.iter().filter(|runs| runs.task.job == job);
                let ran: u64 = running.clone().map(|runs| now - runs.start).sum();
                u128::from(waiting + running.map(|runs| runs.task.left).sum::<u64>() - ran)
            }
            "las" => self.service(job, now),
            _ => {
                let queue = self.thresholds().iter().filter(|end| **end <= self.service(job, now)).count();
                (queue as u128) << 64 | u128::from(self.jobs[job].submit * SECOND)
            }
        }
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    fn free(&self) -> Vec<u64> {
        let mut free = self.cores.clone();
        self.runs.iter().for_each(|runs| free[runs.machine] -= self.jobs[runs.task.job].cores);
        free
    }

    /// Returns the waiting tasks in the job order.
    fn line(&self, now: u64) -> Vec<Task> {
        let mut line = self.waits.clone();
        line.sort_by_key(|task| (self.key(task.job, now), self.jobs[task.job].submit, task.job, task.number));
        line
    }

    fn start(&mut self, task: Task, machine: usize, now: u64) {
        let entry = self.last.get(&task.set).filter(|(other, _)| *other == machine).map(|(_, entry)| *entry);
        let entry = entry.unwrap_or_else(|| self.number());
        self.last.insert(task.set, (machine, entry));
        self.waits.retain(|other| (other.job, other.number) != (task.job, task.number));
        self.runs.push(Runs { task, machine, entry, start: now });
    }

    /// Runs a round. Returns whether any task was stopped, so that another round follows.
    fn round(&mut self, now: u64) -> bool {
        let mut blocked = Vec::new();
        let mut heads = Vec::new();
        for task in self.line(now) {
            let Job { user, cores, .. } = self.jobs[task.job];
            if blocked.contains(&user) {
                continue;
            }
            match self.free().iter().position(|free| *free >= cores) {
                Some(machine) => self.start(task, machine, now),
                None => {
                    blocked.push(user);
                    heads.push(task);
                }
            }
        }
        // The first blocked task of each user requests room for every waiting task of its set, and reserves it.
        let mut free = self.free();
        let mut given: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let mut starts = Vec::new();
        for head in heads {
            for task in self.line(now).into_iter().filter(|task| task.set == head.set) {
                let Some((machine, victims)) = self.asks(task, now, &free, &given) else { break };
                let need = self.jobs[task.job].cores;
                free[machine] -= need.min(free[machine]);
                given.extend(victims.into_iter().map(|victim| (victim, starts.len())));
                starts.push((task, machine));
            }
        }
        let mut sets = BTreeMap::new();
        for (victim, request) in given {
            let set = self.number();
            self.stop(victim, now, |entry| *sets.entry((request, entry)).or_insert(set));
        }
        let any = !starts.is_empty();
        self.last.clear();
        for (task, machine) in starts {
            // If a stopped task of the same user now comes first, the task does not start, and the room is available to all users.
            let user = self.jobs[task.job].user;
            let first = self.line(now).into_iter().find(|other| self.jobs[other.job].user == user);
            if first.is_some_and(|first| first.set == task.set) {
                self.start(task, machine, now);
            }
        }
        any
    }

    /// Returns a machine and its running tasks that `task` preempts.
    fn asks(
        &self,
        task: Task,
        now: u64,
        free: &[u64],
        given: &BTreeMap<(usize, u32), usize>,
    ) -> Option<(usize, Vec<(usize, u32)>)> {
        let (need, own) = (self.jobs[task.job].cores, self.key(task.job, now));
        let mut behind: Vec<Runs> = self.runs.clone();
        behind.retain(|runs| runs.start < now && !given.contains_key(&(runs.task.job, runs.task.number)));
        behind.retain(|runs| self.key(runs.task.job, now) > own);
        behind.sort_by_key(|runs| Reverse((self.key(runs.task.job, now), runs.start, runs.task.job, runs.task.number)));
        let mut there: Vec<(u64, Vec<Runs>)> = free.iter().map(|free| (*free, Vec::new())).collect();
        for runs in behind {
            let (room, asked) = &mut there[runs.machine];
            if *room < need {
                *room += self.jobs[runs.task.job].cores;
                asked.push(runs);
            }
            if *room >= need {
                let mut surplus = *room - need;
                let mut needed = std::mem::take(asked);
                for at in (0..needed.len()).rev() {
                    let each = self.jobs[needed[at].task.job].cores;
                    if each <= surplus {
                        surplus -= each;
                        needed.remove(at);
                    }
                }
                return Some((runs.machine, needed.iter().map(|runs| (runs.task.job, runs.task.number)).collect()));
            }
        }
        None
    }

    fn stop(&mut self, (job, number): (usize, u32), now: u64, waits_as: impl FnOnce(usize) -> usize) {
        let at = self.runs.iter().position(|runs| (runs.task.job, runs.task.number) == (job, number)).expect("it runs");
        let Runs { mut task, entry, start, .. } = self.runs.remove(at);
        task.set = waits_as(entry);
        self.attained[job] += self.breadth(job) * u128::from(now - start);
        self.lines.push((job, number, start, now, true));
        if self.kept {
            task.left -= now - start;
        }
        self.waits.push(task);
    }

    /// Returns the time of the next event: an arrival, an end, or a job's move to the next queue while tasks wait.
    fn next(&self, now: u64) -> Option<u64> {
        let arrivals = self.jobs.iter().map(|job| job.submit * SECOND).filter(|at| *at > now).min();
        let ends = self.runs.iter().map(|runs| runs.start + runs.task.left).min();
        let mut falls = None;
        if self.order.starts_with("tiresias") && !self.waits.is_empty() {
            let fall = |runs: &Runs| {
                let (job, service) = (runs.task.job, self.service(runs.task.job, now));
                let tasks = self.runs.iter().filter(|runs| runs.task.job == job).count() as u128;
                let next = self.thresholds().into_iter().find(|end| *end > service)?;
                Some(now + (next - service).div_ceil(self.breadth(job) * tasks) as u64)
            };
            falls = self.runs.iter().filter_map(fall).min();
        }
        [arrivals, ends, falls].into_iter().flatten().min()
    }

    fn play(mut self) -> Vec<Line> {
        let mut now = 0;
        loop {
            let (ended, runs): (Vec<Runs>, Vec<Runs>) =
                self.runs.iter().partition(|runs| runs.start + runs.task.left == now);
            self.runs = runs;
            for Runs { task, start, .. } in ended {
                self.attained[task.job] += self.breadth(task.job) * u128::from(now - start);
                self.lines.push((task.job, task.number, start, now, false));
            }
            let arrived = self.jobs.iter().enumerate().filter(|(_, job)| job.submit * SECOND == now);
            let tasks = |(at, job): (usize, &Job)| {
                let left = job.duration * SECOND;
                (0..job.tasks).map(move |number| Task { job: at, set: at, number, left }).collect::<Vec<_>>()
            };
            self.waits.extend(arrived.flat_map(tasks).collect::<Vec<_>>());
            self.last.clear();
            while self.round(now) {}
            match self.next(now) {
                Some(next) => now = next,
                None => break,
            }
        }
        self.lines.sort_unstable();
        self.lines
    }
}

fn lines(ran: &[Ran]) -> Vec<Line> {
    let line = |ran: &Ran| {
        let job = ran.job[1..].parse().expect("the number of a job");
        let numbers = ran.first as u32..ran.first as u32 + ran.count;
        let (start, finish, stopped) = (ran.start, ran.finish, ran.fate == Fate::Preempted);
        numbers.map(|number| (job, number, start, finish, stopped)).collect::<Vec<_>>()
    };
    let mut lines: Vec<Line> = ran.iter().flat_map(line).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn equals_a_slow_scheduler_task_by_task() {
    let mut stops = BTreeMap::new();
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let order = pick(&mut rng, &["fifo", "sjf:true", "srpt:true", "las", "tiresias:1s,3s", "tiresias:2s"]);
        // If victims lost all progress, least attained service would stop the same tasks again and again.
        let kept = order == "las" || rng.random_bool(0.5);
        let cores: Vec<u64> = (0..rng.random_range(1..4)).map(|_| rng.random_range(2..5)).collect();
        let mut submit = 0;
        let job = |_| {
            submit += pick(&mut rng, &[0, 0, 1, 2, 5]);
            let (user, tasks, cores) = (rng.random_range(0..5), rng.random_range(1..4), rng.random_range(1..3));
            Job { user, submit, duration: pick(&mut rng, &[1, 2, 4, 7, 15]), tasks, cores }
        };
        let jobs: Vec<Job> = (0..14).map(job).collect();
        let row = |(at, job): (usize, &Job)| {
            let Job { user, submit, duration, tasks, cores } = job;
            format!("j{at},u{user},{submit},{duration},{duration},{tasks},{cores}\n")
        };
        let rows: String = jobs.iter().enumerate().map(row).collect();
        let machines: Vec<String> = cores.iter().map(|cores| format!("1x{cores}c")).collect();
        let ran = replay(&format!("line/{order}"), HEADER, &rows, &machines.join(","), &options(kept)).expect("a run");
        let attained = vec![0; jobs.len()];
        let (waits, runs, slow) = (Vec::new(), Vec::new(), Vec::new());
        let numbers = jobs.len();
        let slow = Slow {
            jobs: &jobs,
            order,
            cores,
            kept,
            waits,
            runs,
            attained,
            last: BTreeMap::new(),
            numbers,
            lines: slow,
        };
        let slow = slow.play();
        assert_eq!(lines(&ran), slow, "seed {seed}: {order}, kept {kept}, {machines:?}\n{rows}");
        *stops.entry(order).or_insert(0) += slow.iter().filter(|(.., stopped)| *stopped).count();
    }
    assert!(stops.iter().all(|(order, stops)| *order == "fifo" || *stops > 100), "{stops:?}");
}
