//! A driver that replays a list of jobs on a cluster under one policy, round by round or with ideal fractions.
//!
//! One pass of the loop is one round: jobs arrive, fractions are computed if the mechanism requires it, jobs are selected and placed, and
//! the clock advances to the end of the longest micro-task. A micro-task runs `min(floor(rate * round), left)` iterations. A completed job
//! gets the exact end of its micro-task; its accelerators are idle until the end of the round.
//!
//! If active jobs wait and none runs, the clock advances to the next arrival or to the next permitted reset, the earlier one. A run without
//! either ends with an error.

mod batch;
mod ideal;
mod measures;
mod progress;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};

use crate::mechanism::{
    Cluster, Mechanism, NONE, NewJobs, Options, OverheadWhen, Placed, Placement, RoundEnd, SelectedEntry,
    SelectionRules, Targets, TypeOrder,
};
use crate::policies::{ActiveJob, Policy, PolicyOptions, PolicyRow, RunFacts, View};
use crate::properties::envies;
use crate::random::PythonRandom;
use crate::table::{Rates, Throughputs, TrainingJob};

use batch::Batches;
pub use batch::rescaled;
pub use ideal::simulate_ideal;
pub use measures::{JobWindow, Rho, RoundSummary};
pub use progress::{MicroTask, micro_task};

/// A run.
#[derive(Clone, Debug)]
pub struct RoundSetup<'a> {
    /// The jobs, by arrival.
    pub jobs: &'a [TrainingJob],
    /// The throughput table.
    pub table: &'a Throughputs,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Options of the mechanism.
    pub options: Options,
    /// Options of the policy.
    pub policy: PolicyOptions,
    /// The run ends when all jobs with ids in this window are complete; `None`: when all jobs are.
    pub window: Option<JobWindow>,
    /// Whether the jobs of every round are recorded.
    pub log_rounds: bool,
}

/// The result of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOutcome {
    /// Its arrival.
    pub arrival: Time,
    /// The start of its first round, or `None` if it never ran.
    pub start: Option<Time>,
    /// Its completion, or `None` if the run ended before.
    pub completion: Option<Time>,
    /// The running time on each worker type.
    pub time: Vec<Span>,
    /// The iterations completed, in millionths (at the last batch size).
    pub done: u64,
    /// The number of rounds.
    pub rounds: u32,
    /// The number of times that it ran, then did not run in the next round although it was not complete.
    pub preemptions: u32,
    /// The number of its rounds with the accelerators of the round before.
    pub leases: u32,
    /// The progress lost to overhead.
    pub lost: Span,
    /// The time in preemption: between the end of a round of the job and the start of its next one.
    pub paused: Span,
}

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundOutcome {
    /// One per job, in order of the ids.
    pub jobs: Vec<JobOutcome>,
    /// The end of the last round.
    pub end: Time,
    /// The number of rounds with a running job.
    pub rounds: u64,
    /// The number of computations of fractions.
    pub resets: u64,
    /// Lease extensions, and the jobs of a previous round that were still active.
    pub leases: [u64; 2],
    /// Accelerator time in use per type, in microseconds.
    pub busy: Vec<u64>,
    /// The part of `busy` that overhead used.
    pub overhead: Vec<u64>,
    /// The number of active jobs at each reset, with its time.
    pub queue: Vec<(Time, u32)>,
    /// Envy over time; `None` for policies with space sharing or without fractions.
    pub envy: Option<EnvyOverTime>,
    /// The plans of a policy that plans: objective and upper bound.
    pub plans: Vec<(f64, f64)>,
    /// The ids of the jobs of each round, ascending, if recorded.
    pub schedule: Vec<Vec<u32>>,
}

/// The envy of active jobs, averaged over the time between computations of fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EnvyOverTime {
    /// The mean envy of a job, see [`envies`].
    pub mean: f64,
    /// The share of jobs with an envy above 0.001.
    pub share: f64,
}

/// An active job and its progress.
struct Active {
    view: ActiveJob,
    last_round: Option<u64>,
    /// The end of its last round.
    until: Time,
}

struct RoundRun<'a> {
    setup: &'a RoundSetup<'a>,
    row: &'a PolicyRow,
    rates: Rates,
    batches: Batches,
    capacity: Vec<u32>,
    mechanism: Mechanism,
    placement: Placement,
    policy: Box<dyn Policy>,
    shuffler: PythonRandom,
    active: Vec<Active>,
    next: usize,
    now: Time,
    unfinished: usize,
    /// The envy since the last computation of fractions, and its integral over time.
    envy: EnvyOverTime,
    envy_sum: EnvyOverTime,
    /// The time of the last computation, and the time that the integral covers, in seconds.
    envy_from: Option<Time>,
    envy_s: f64,
    outcome: RoundOutcome,
}

/// Replays the jobs of `setup` under a policy.
///
/// Errors: missing rows of the table, a job that fits on no worker type, a round that is not above the overhead, and errors of the policy.
pub fn simulate(setup: &RoundSetup<'_>, row: &PolicyRow) -> Result<RoundOutcome> {
    simulate_interruptible(setup, row, &|| Ok(()))
}

/// Replays jobs as [`simulate`], and calls `check` before each round.
///
/// Errors: as [`simulate`], and that of `check`.
pub fn simulate_interruptible(
    setup: &RoundSetup<'_>,
    row: &PolicyRow,
    check: &dyn Fn() -> Result<()>,
) -> Result<RoundOutcome> {
    let mut run = RoundRun::new(setup, row)?;
    while run.unfinished > 0 {
        check()?;
        run.arrive();
        if run.active.is_empty() {
            let Some(job) = setup.jobs.get(run.next) else { break };
            run.now = job.arrival;
            continue;
        }
        if run.policy.plans() {
            run.planned_round()?;
        } else {
            run.reset()?;
            run.round()?;
        }
    }
    run.add_envy(None);
    let seconds = run.envy_s;
    run.outcome.envy = (seconds > 0.0)
        .then(|| EnvyOverTime { mean: run.envy_sum.mean / seconds, share: run.envy_sum.share / seconds });
    run.outcome.end = run.now;
    run.outcome.resets = run.mechanism.resets();
    Ok(run.outcome)
}

/// Checks the setup: the options, the scale of each job, and whether a type without accelerators is listed.
fn check(setup: &RoundSetup<'_>, capacity: &[u32]) -> Result<()> {
    let problem = |problem: String| Err(Error::Mismatch { problem });
    if setup.options.round.0 <= setup.options.overhead.lost.0 {
        let lost = setup.options.overhead.lost.seconds();
        return problem(format!("the round must be longer than the overhead of {lost} s"));
    }
    if capacity.contains(&0) || capacity.is_empty() {
        return problem("each worker type of the cluster must have an accelerator".to_owned());
    }
    let most = capacity.iter().copied().max().unwrap_or(0);
    match setup.jobs.iter().find(|job| job.scale > most) {
        None => Ok(()),
        Some(job) => problem(format!(
            "job {} uses {} accelerators together, more than the {most} of any worker type; it would never run",
            job.id, job.scale
        )),
    }
}

impl<'a> RoundRun<'a> {
    fn new(setup: &'a RoundSetup<'a>, row: &'a PolicyRow) -> Result<RoundRun<'a>> {
        let capacity = setup.cluster.capacity();
        check(setup, &capacity)?;
        let types = capacity.len();
        let kinds = Batches::kinds(setup.jobs);
        let rates = Rates::new(setup.table, setup.jobs, &kinds, &setup.cluster.worker_types, row.packing)?;
        let batches = Batches::new(setup.jobs, &rates)?;
        let window = setup.window.unwrap_or(JobWindow { from: 0, to: setup.jobs.len() as u32 });
        let one = |job: &TrainingJob| JobOutcome {
            arrival: job.arrival,
            time: vec![Span(0); types],
            ..JobOutcome::default()
        };
        let outcome = RoundOutcome {
            jobs: setup.jobs.iter().map(one).collect(),
            busy: vec![0; types],
            overhead: vec![0; types],
            ..RoundOutcome::default()
        };
        let mut policy = (row.create)(&setup.policy);
        policy.prepare(&RunFacts { jobs: setup.jobs, rates: &rates, round: setup.options.round });
        Ok(RoundRun {
            mechanism: Mechanism::new(types, &setup.options, row.packing),
            placement: Placement::default(),
            policy,
            shuffler: PythonRandom::new(setup.options.seed + 5),
            active: Vec::new(),
            next: 0,
            now: Time(0),
            unfinished: (window.to.min(setup.jobs.len() as u32) as usize).saturating_sub(window.from as usize),
            setup,
            row,
            rates,
            batches,
            capacity,
            envy: EnvyOverTime::default(),
            envy_sum: EnvyOverTime::default(),
            envy_from: None,
            envy_s: 0.0,
            outcome,
        })
    }

    fn arrive(&mut self) {
        while let Some(job) = self.setup.jobs.get(self.next).filter(|job| job.arrival <= self.now) {
            let kind = self.rates.kind(&job.job_type, job.scale).unwrap_or_default();
            let deadline = job.slo.map(|slo| {
                Time(self.now.0 + (u128::from(slo.reference.0) * u128::from(slo.factor_milli) / 1000) as u64)
            });
            let view = ActiveJob {
                id: job.id,
                kind,
                scale: job.scale,
                weight: job.weight,
                entity: job.entity,
                arrival: job.arrival,
                remaining: job.iterations,
                done: 0,
                deadline,
            };
            self.active.push(Active { view, last_round: None, until: self.now });
            self.mechanism.add(job.id, kind, job.scale);
            self.next += 1;
        }
    }

    /// Runs the jobs that the policy chooses.
    fn planned_round(&mut self) -> Result<()> {
        let jobs: Vec<ActiveJob> = self.active.iter().map(|active| active.view).collect();
        let view = View { now: self.now, jobs: &jobs, rates: &self.rates, capacity: &self.capacity };
        let choice = self.policy.choose(&view, self.outcome.rounds)?;
        if choice.planned || self.mechanism.next_reset().is_some() {
            self.mechanism.reset(self.now, &Targets::zero(jobs.len(), self.capacity.len()));
            self.outcome.queue.push((self.now, jobs.len() as u32));
        }
        self.outcome.plans.extend(choice.gap);
        let selected: Vec<SelectedEntry> =
            choice.jobs.iter().filter_map(|&(id, j)| self.mechanism.selected_alone(id, j)).collect();
        if selected.is_empty() { self.wait() } else { self.run_selected(&selected) }
    }

    fn reset(&mut self) -> Result<()> {
        if !self.mechanism.needs_reset(self.now) {
            return Ok(());
        }
        let jobs: Vec<ActiveJob> = self.active.iter().map(|active| active.view).collect();
        let view = View { now: self.now, jobs: &jobs, rates: &self.rates, capacity: &self.capacity };
        let targets = self.policy.targets(&view)?;
        let envy = (!self.row.packing).then(|| {
            let envies = envies(&view, &targets);
            let count = envies.len().max(1) as f64;
            let above = envies.iter().filter(|envy| **envy > 1e-3).count() as f64;
            EnvyOverTime { mean: envies.iter().sum::<f64>() / count, share: above / count }
        });
        self.add_envy(envy);
        self.mechanism.reset(self.now, &targets);
        self.outcome.queue.push((self.now, jobs.len() as u32));
        Ok(())
    }

    /// Adds the time since the last computation of fractions to the mean of the envy, and stores that of the new fractions.
    fn add_envy(&mut self, next: Option<EnvyOverTime>) {
        if let Some(from) = self.envy_from {
            let seconds = self.now.since(from).seconds();
            self.envy_sum.mean += self.envy.mean * seconds;
            self.envy_sum.share += self.envy.share * seconds;
            self.envy_s += seconds;
        }
        self.envy_from = next.map(|_| self.now);
        self.envy = next.unwrap_or_default();
    }

    /// Returns the order of the worker types in this round.
    fn type_order(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.capacity.len()).collect();
        match &self.setup.options.type_order {
            TypeOrder::Listed(listed) => listed.clone(),
            TypeOrder::Auto if self.row.listed_order => order,
            TypeOrder::Auto | TypeOrder::Random => {
                self.shuffler.shuffle(&mut order);
                order
            }
        }
    }

    fn round(&mut self) -> Result<()> {
        let order = self.type_order();
        let rules = SelectionRules { skip_zero: self.row.skip_zero, one_list: self.setup.options.one_list };
        let mut selected = self.mechanism.select(&self.rates, &order, &self.capacity, rules);
        if self.setup.options.new_jobs == NewJobs::Wait {
            selected.retain(|selected| selected.has_target);
        }
        if selected.is_empty() { self.wait() } else { self.run_selected(&selected) }
    }

    /// Places and runs a selection, and advances the clock to the end of the round.
    fn run_selected(&mut self, selected: &[SelectedEntry]) -> Result<()> {
        self.count_leases_possible();
        let placed = self.placement.place(self.setup.cluster, selected);
        let mut longest = Span(0);
        let mut completed = Vec::new();
        for placed in &placed {
            longest = longest.max(self.run(placed, &mut completed));
        }
        if self.setup.log_rounds {
            let members = placed.iter().flat_map(|placed| placed.selected.members).filter(|&id| id != NONE);
            let mut members: Vec<u32> = members.collect();
            members.sort_unstable();
            self.outcome.schedule.push(members);
        }
        let length = if self.setup.options.round_end == RoundEnd::Fixed { self.setup.options.round } else { longest };
        self.now = Time(self.now.0 + length.0);
        for active in &mut self.active {
            if active.last_round == Some(self.outcome.rounds) {
                active.until = self.now;
            }
        }
        self.complete(&completed);
        self.change_batches(&placed);
        self.outcome.rounds += 1;
        Ok(())
    }

    /// Advances the clock when no job runs.
    fn wait(&mut self) -> Result<()> {
        let arrival = self.setup.jobs.get(self.next).map(|job| job.arrival);
        let reset = self.mechanism.next_reset().filter(|&at| at > self.now);
        match arrival.into_iter().chain(reset).min() {
            Some(next) => {
                self.now = next;
                Ok(())
            }
            None => {
                let problem = format!(
                    "{} active jobs receive no time under {} and would wait without end",
                    self.active.len(),
                    self.row.name
                );
                Err(Error::Idle { problem })
            }
        }
    }

    fn count_leases_possible(&mut self) {
        let active = |id: &u32| self.active.binary_search_by_key(id, |active| active.view.id).is_ok();
        self.outcome.leases[1] += self.placement.jobs().filter(active).count() as u64;
    }

    /// Runs a micro-task of a placed entry. Returns its length; adds completed jobs with their ends to `completed`.
    fn run(&mut self, placed: &Placed, completed: &mut Vec<(u32, Time)>) -> Span {
        let SelectedEntry { entry, members, worker_type, scale, .. } = placed.selected;
        let index = |id: u32| self.active.binary_search_by_key(&id, |active| active.view.id).unwrap_or_default();
        let first = index(members[0]);
        let mut tasks = [(first, self.rates.alone(self.active[first].view.kind)[worker_type].pico), (0, 0)];
        let mut count = 1;
        if members[1] != NONE {
            let second = index(members[1]);
            let (a, b) = (self.active[first].view.kind, self.active[second].view.kind);
            let pair = self.rates.pair(a, b, worker_type).unwrap_or_default();
            tasks = [(first, pair.first.pico), (second, pair.second.pico)];
            count = 2;
        }
        let mut longest = Span(0);
        for &(at, pico) in &tasks[..count] {
            let ActiveJob { id, remaining, .. } = self.active[at].view;
            let task = micro_task(self.paced(id, pico), self.setup.options.round, remaining);
            let lost = self.lost(at, placed.kept, task);
            let job = &mut self.outcome.jobs[id as usize];
            let active = &mut self.active[at];
            let task = MicroTask { iterations: task.iterations - lost, ..task };
            if active.last_round.is_some_and(|last| last + 1 < self.outcome.rounds) {
                job.preemptions += 1;
                job.paused = Span(job.paused.0 + self.now.since(active.until).0);
            }
            if lost > 0 {
                job.lost = Span(job.lost.0 + self.setup.options.overhead.lost.0);
                self.outcome.overhead[worker_type] +=
                    self.setup.options.overhead.lost.0 * u64::from(scale) / count as u64;
            }
            active.last_round = Some(self.outcome.rounds);
            self.policy.charge(&active.view, worker_type, task.length);
            active.view.remaining -= task.iterations;
            active.view.done += task.iterations;
            job.done = active.view.done;
            job.start.get_or_insert(self.now);
            job.time[worker_type] = Span(job.time[worker_type].0 + task.length.0);
            job.rounds += 1;
            job.leases += u32::from(placed.kept);
            self.outcome.leases[0] += u64::from(placed.kept);
            if active.view.remaining == 0 {
                completed.push((id, Time(self.now.0 + task.length.0)));
            }
            longest = longest.max(task.length);
        }
        self.mechanism.charge(entry, worker_type, longest);
        self.outcome.busy[worker_type] += longest.0 * u64::from(scale);
        longest
    }

    /// Returns the rate of a job with its own factor.
    fn paced(&self, id: u32, pico: u64) -> u64 {
        match self.setup.options.pace.get(id as usize) {
            None => pico,
            Some(&factor) => (u128::from(pico) * u128::from(factor) / 1_000_000) as u64,
        }
    }

    /// Returns the iterations (in millionths) that a micro-task loses to the overhead of a preemption.
    fn lost(&self, at: usize, kept: bool, task: MicroTask) -> u64 {
        let overhead = self.setup.options.overhead;
        let moved = match overhead.when {
            OverheadWhen::AfterGap => {
                self.outcome.rounds > 0 && self.active[at].last_round.is_none_or(|last| last + 1 < self.outcome.rounds)
            }
            OverheadWhen::OnMove => !kept && self.outcome.rounds > 0,
        };
        let ends = task.length.0 + overhead.spared.0 <= self.setup.options.round.0;
        if overhead.lost.0 == 0 || !moved || ends { 0 } else { task.iterations - task.after_loss(overhead.lost) }
    }

    fn complete(&mut self, completed: &[(u32, Time)]) {
        for &(id, end) in completed {
            let job = &mut self.outcome.jobs[id as usize];
            job.completion = Some(end);
            let Ok(at) = self.active.binary_search_by_key(&id, |active| active.view.id) else { continue };
            self.active.remove(at);
            self.mechanism.remove(id);
            self.unfinished -= usize::from(self.setup.window.is_none_or(|window| window.contains(id)));
        }
    }

    /// Changes the batch sizes of jobs at the end of a round.
    fn change_batches(&mut self, placed: &[Placed]) {
        if self.batches.is_empty() {
            return;
        }
        let mut ran: Vec<u32> = placed.iter().flat_map(|placed| placed.selected.members).collect();
        ran.sort_unstable();
        let mut completed = Vec::new();
        for active in &mut self.active {
            let id = active.view.id;
            if let Some(kind) = self.batches.step(&mut active.view, ran.binary_search(&id).is_ok()) {
                self.mechanism.set_kind(id, kind);
                if active.view.remaining == 0 {
                    completed.push((id, self.now));
                }
            }
        }
        self.complete(&completed);
    }
}

#[cfg(test)]
mod tests;
