//! The situation between two rounds: running, leaving and waiting workloads.

use plimsoll_base::units::Resources;

use crate::state::State;

/// The situation between two rounds. Equal situations continue equally under a policy without memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Situation {
    /// The number of the next round.
    pub round: u32,
    /// The running workloads, in the order of their starts.
    pub running: Vec<RunningWorkload>,
    /// The waiting workloads by age, the oldest first; restarted workloads are last.
    pub waiting: Vec<Wait>,
    /// The number of [`State::arrivals`] that have arrived.
    pub arrived: usize,
}

/// Running tasks of a workload: on one machine, or all tasks of a gang.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunningWorkload {
    /// The workload.
    pub workload: usize,
    /// The machines, and the number of tasks on each; machine 0 for a pool.
    pub parts: Vec<(u32, u32)>,
    /// The number of rounds until they end, if they do.
    pub ends: Option<u32>,
    /// The number of rounds until they leave, if they were stopped.
    pub leaves: Option<u32>,
}

/// Waiting tasks of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The workload.
    pub workload: usize,
    /// The number of tasks.
    pub tasks: u32,
    /// Whether the tasks have ended before, and wait again.
    pub anew: bool,
}

impl RunningWorkload {
    /// Returns the number of tasks.
    pub fn tasks(&self) -> u32 {
        self.parts.iter().map(|(_, tasks)| tasks).sum()
    }

    /// Returns the running workload without its last `gone` tasks; `None` if no task is left.
    pub fn without(&self, mut gone: u32) -> Option<RunningWorkload> {
        let mut run = self.clone();
        for (_, tasks) in run.parts.iter_mut().rev() {
            let fewer = gone.min(*tasks);
            (*tasks, gone) = (*tasks - fewer, gone - fewer);
        }
        run.parts.retain(|(_, tasks)| *tasks > 0);
        (!run.parts.is_empty()).then_some(run)
    }
}

/// Returns the free amounts of each machine, without those of these workloads.
pub fn free<'a>(state: &State, runs: impl IntoIterator<Item = &'a RunningWorkload>) -> Vec<Resources> {
    let mut free = state.cluster.capacities.clone();
    for run in runs {
        for (machine, tasks) in &run.parts {
            let held = state.workloads[run.workload].demand.times(*tasks);
            let free = &mut free[*machine as usize];
            *free = free.saturating_sub(held);
        }
    }
    free
}

impl Situation {
    /// Creates the situation before the first round.
    pub fn first(state: &State) -> Situation {
        let run = |at: &usize| {
            let workload = &state.workloads[*at];
            RunningWorkload {
                workload: *at,
                parts: vec![(workload.machine.unwrap_or(0), workload.tasks)],
                ends: workload.ends_after,
                leaves: None,
            }
        };
        let running = state.running.iter().map(run).collect();
        let mut first = Situation { round: 1, running, ..Situation::default() };
        first.arrive(state);
        first
    }

    /// Moves workloads that arrive before the next round to the waiting ones.
    pub fn arrive(&mut self, state: &State) {
        while let Some((_, workload)) = state.arrivals.get(self.arrived).filter(|(round, _)| *round <= self.round) {
            self.wait(state, *workload, state.workloads[*workload].tasks, false);
            self.arrived += 1;
        }
    }

    /// Adds waiting tasks of a workload.
    pub fn wait(&mut self, state: &State, workload: usize, tasks: u32, anew: bool) {
        if let Some(known) = self.waiting.iter_mut().find(|wait| wait.workload == workload && wait.anew == anew) {
            known.tasks += tasks;
            return;
        }
        let born = state.workloads[workload].born;
        let before = |wait: &Wait| anew || (!wait.anew && state.workloads[wait.workload].born < born);
        let at = self.waiting.partition_point(before);
        self.waiting.insert(at, Wait { workload, tasks, anew });
    }

    /// Advances time to the next round: workloads end, leave and arrive.
    pub fn pass(&mut self, state: &State) {
        self.round += 1;
        let mut over: Vec<(RunningWorkload, bool)> = Vec::new();
        self.running.retain_mut(|run| {
            let due = |left: &mut Option<u32>| {
                left.as_mut().is_some_and(|left| {
                    *left = left.saturating_sub(1);
                    *left == 0
                })
            };
            let (gone, ended) = (due(&mut run.leaves), due(&mut run.ends));
            if gone || ended {
                over.push((run.clone(), ended && run.leaves.is_none_or(|left| left > 0)));
            }
            !(gone || ended)
        });
        for (run, ended) in over {
            let workload = &state.workloads[run.workload];
            if if ended { workload.repeats } else { workload.resubmit } {
                self.wait(state, run.workload, run.tasks(), ended);
            }
        }
        self.arrive(state);
    }

    /// Returns the situation without the number of the round, for the detection of repetitions.
    pub fn timeless(&self, state: &State) -> Situation {
        // While arrivals are pending, no two rounds are equal.
        let round = if self.arrived < state.arrivals.len() { self.round } else { 0 };
        Situation { round, ..self.clone() }
    }
}
