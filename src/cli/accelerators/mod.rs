//! `plimsoll run` and `solve` for a plan with a table `[accelerators]`, and `check --accelerators`: jobs with a speed that depends on the type
//! of accelerator, scheduled in rounds.

mod keys;
mod plan;
mod properties;
mod results;
mod shares;

use std::path::Path;
use std::time::Instant;

use plimsoll_rounds::mechanism::Options;
use plimsoll_rounds::policies::PolicyOptions;
use plimsoll_rounds::simulate::{
    JobWindow, RoundOutcome, RoundSetup, RoundSummary, simulate_ideal, simulate_interruptible,
};
use plimsoll_rounds::table::TrainingJob;
use rayon::prelude::*;

use super::progress::Steps;
use super::{Context, Format, pool};
use crate::control::study::Watcher;
use crate::error::{Error, Result};
pub use keys::{AcceleratorKey, KEYS};
pub use plan::{AcceleratorPlan, AcceleratorSetup};
pub use properties::{ShareCheck, check};
pub use shares::solve;

/// A run: the indices of its policy, its rate and its list of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunIndex {
    policy: usize,
    rate: Option<u64>,
    run: usize,
}

/// The result of a run.
struct Completed {
    index: RunIndex,
    jobs: Vec<TrainingJob>,
    outcome: RoundOutcome,
    summary: RoundSummary,
}

impl AcceleratorPlan {
    /// Returns the experiment's name.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Executes all runs, writes tables, figures and the report to a folder, and prints the summary.
    pub fn run(
        &self,
        (folder, restart): (&Path, bool),
        threads: usize,
        format: Format,
        context: &Context,
    ) -> Result<()> {
        let started = Instant::now();
        let claim = self.about.claim(folder, restart)?;
        let pool = pool(threads)?;
        let rates: Vec<Option<u64>> =
            if self.setup.rates.is_empty() { vec![None] } else { self.setup.rates.iter().copied().map(Some).collect() };
        let mut list = Vec::new();
        for policy in 0..self.setup.policies.len() {
            for &rate in &rates {
                list.extend((0..self.setup.runs()).map(|run| RunIndex { policy, rate, run }));
            }
        }
        let steps = Steps::new(context.quiet, "runs", &context.stop);
        steps.planned(list.len());
        let runs: Result<Vec<Completed>> = pool.install(|| {
            list.par_iter()
                .map(|index| {
                    steps.go_on()?;
                    let completed = self.complete(*index, &|| steps.go_on())?;
                    steps.done();
                    Ok(completed)
                })
                .collect()
        });
        steps.clear();
        let runs = runs?;
        self.about.begin((folder, &claim), (context, threads, started))?;
        results::write(self, &runs, (folder, started), format, context)
    }

    fn complete(&self, index: RunIndex, check: &dyn Fn() -> Result<()>) -> Result<Completed> {
        let jobs = self.setup.jobs(index.run, index.rate)?;
        let seed = index.run as u64;
        let setup = RoundSetup {
            jobs: &jobs,
            table: &self.setup.table,
            cluster: &self.setup.cluster,
            options: Options { seed, ..self.setup.options.clone() },
            policy: PolicyOptions { seed, ..self.setup.policy_options.clone() },
            window: self.setup.window,
            log_rounds: false,
        };
        let row = self.setup.policies[index.policy];
        let outcome =
            if self.setup.ideal { simulate_ideal(&setup, row) } else { simulate_interruptible(&setup, row, check) };
        let outcome = outcome.map_err(|error| match error {
            Error::Plan { .. } => error.under("accelerators"),
            other => other,
        })?;
        let window = self.setup.window.unwrap_or(JobWindow { from: 0, to: jobs.len() as u32 });
        let summary = outcome.summary(&self.setup.cluster, window);
        Ok(Completed { index, jobs, outcome, summary })
    }
}
