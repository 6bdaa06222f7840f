//! Repeats one run of a study with an observer, for example to explain the waits of its jobs.

use std::path::Path;

use plimsoll_runs::{Intervention, Observer, RunEnvironment, SharedSupply, simulate_observed};

use super::plan::Plan;
use super::study::Study;
use super::{Destination, RunSummary, Simulation};
use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::units::Time;
use plimsoll_results::files;
use plimsoll_results::folder::{of_cell, receipts};
use plimsoll_results::provenance::COMMIT;
use plimsoll_results::receipt::Receipt;
use plimsoll_schedulers::BUILT_IN;
use plimsoll_sim::workload::Source;
use plimsoll_store::sealed;

/// A run of a study: the indices of its cell, its policy and its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyRun {
    /// The index of the cell.
    pub cell: usize,
    /// The index of the policy in the plan of the cell.
    pub policy: usize,
    /// The number of the run among those of the policy, which is the index of its seed.
    pub run: usize,
}

impl StudyRun {
    /// Finds a run by the names of its cell and policy; each may be absent if there is only one. Errors: [`Error::Plan`] with the accepted
    /// names.
    pub fn find(study: &Study, cell: Option<&str>, policy: Option<&str>, run: usize) -> Result<StudyRun> {
        let cells: Vec<&str> = study.cells.iter().map(|plan| plan.cell.as_str()).collect();
        let cell = choose("--cell", cell, &cells)?;
        let plan = &study.cells[cell];
        let policies: Vec<&str> = plan.policies.iter().map(|policy| policy.name.as_str()).collect();
        let policy = choose("--policy", policy, &policies)?;
        if run >= plan.seeds.len() {
            let expected = match plan.seeds.len() {
                1 => "0: each policy has one run".to_owned(),
                runs => format!("0 to {}", runs - 1),
            };
            return Err(Error::plan("--run", run, expected));
        }
        Ok(StudyRun { cell, policy, run })
    }

    /// Returns the seed of the workload; `None` for a workload without a seed.
    fn seed(self, plan: &Plan) -> Option<u64> {
        plan.workload.is_seeded().then(|| plan.seeds[self.run])
    }

    /// Returns the name of the policy.
    pub fn policy(self, study: &Study) -> &str {
        &study.cells[self.cell].policies[self.policy].name
    }
}

/// Returns the index of a given name, or of the only name. Errors: [`Error::Plan`].
fn choose(option: &str, given: Option<&str>, names: &[&str]) -> Result<usize> {
    let list = || names.join(", ");
    match given {
        None if names.len() == 1 => Ok(0),
        None => Err(Error::plan(option, "nothing", format!("one of {}", list()))),
        Some(given) => names.iter().position(|name| *name == given).ok_or_else(|| {
            let hint = did_you_mean(given, names.iter().copied());
            let expected = if names == [""] {
                "nothing: the plan has no sweep".to_owned()
            } else {
                format!("one of {}{hint}", list())
            };
            Error::plan(option, format!("'{given}'"), expected)
        }),
    }
}

/// A run of a study that is repeated, perhaps with changes. The workload is opened or generated once.
pub struct RepeatedRun<'a> {
    study: &'a Study,
    run: StudyRun,
    supply: SharedSupply,
}

/// Returns the description of a built-in policy by its name, which may have a variant, parameters and an order.
pub fn policy_meaning(name: &str) -> Option<&'static str> {
    let plain = name.split(['@', ':', '/']).next()?;
    BUILT_IN.rows().find(|row| row.name == plain).map(|row| row.meaning)
}

impl<'a> RepeatedRun<'a> {
    /// Opens the workload of a run. Errors: those of the workload.
    pub fn new(study: &'a Study, run: StudyRun) -> Result<RepeatedRun<'a>> {
        let plan = &study.cells[run.cell];
        let supply = plan.workload.supply_from(run.seed(plan).unwrap_or(0), &|path| study.files.input(path));
        let supply = supply.map_err(|error| study.located(run.cell, error))?;
        Ok(RepeatedRun { study, run, supply: SharedSupply::from(supply) })
    }

    /// Returns the plan of the run.
    pub fn plan(&self) -> &'a Plan {
        &self.study.cells[self.run.cell]
    }

    /// Returns the seed of the workload; `None` for a workload without a seed.
    pub fn seed(&self) -> Option<u64> {
        self.run.seed(self.plan())
    }

    /// Returns the rows of the workload. Errors: those of the workload.
    pub fn source(&self) -> Result<Box<dyn Source + '_>> {
        self.supply.source().map_err(|error| self.study.located(self.run.cell, error))
    }

    /// Returns whether the policy plans the machines of launches. Errors: those of the workload, the machines and the policy.
    pub fn plans_machines(&self) -> Result<bool> {
        let plan = self.plan();
        let environment = RunEnvironment::new(&plan.cluster, plan.weights.as_ref(), self.source()?.dims())?;
        Ok(environment.policy(&plan.policies[self.run.policy], plan.options.placement)?.needs().nominates)
    }

    /// Executes the run under a plan, perhaps with an intervention, without tables. `plan` may have other engine options and another
    /// cluster than [`RepeatedRun::plan`]. `heartbeat` receives the simulated time and may end the run. Errors: those of the run, of the
    /// observer and of `heartbeat`.
    pub fn observe(
        &self,
        plan: &Plan,
        intervention: Option<&Intervention>,
        observer: &mut dyn Observer,
        heartbeat: &mut (dyn FnMut(Time, u64) -> Result<()> + Send),
    ) -> Result<RunSummary> {
        let name = plan.workload.name();
        let to = Destination {
            folder: None,
            policy: self.run.policy(self.study).to_owned(),
            run: self.run.run as u64,
            seed: self.run.seed(plan),
            axes: Vec::new(),
            // Groups and demands of the summary depend on the tables of the plan.
            tables: plan.tables.clone(),
            metadata: Vec::new(),
            saved: None,
        };
        let simulation = Simulation { intervention, ..plan.simulation(&self.supply, &name) };
        simulate_observed(&simulation, &plan.policies[self.run.policy], &to, heartbeat, observer)
            .map(|simulated| simulated.summary)
            .map_err(|error| self.study.located(self.run.cell, error))
    }
}

/// Checks that a repeated run has the values of the stored run in a results folder. Errors: [`Error::Mismatch`] if there is no such run,
/// or with the first value that differs.
pub fn check_repeated(folder: &Path, study: &Study, run: StudyRun, repeated: &RunSummary) -> Result<()> {
    let place = of_cell(folder, &study.cells[run.cell].cell);
    for name in receipts(&place)? {
        let Ok(Some(receipt)) = sealed::read::<Receipt>(&place.join(files::RECEIPTS).join(&name)) else { continue };
        if !receipt.is_of(&repeated.policy, repeated.run) {
            continue;
        }
        let differs = receipt.summary.values.iter().zip(&repeated.values).find(|(stored, again)| stored != again);
        let Some(((column, stored), (_, again))) = differs else { return Ok(()) };
        let problem = format!(
            "the repeated run differs from the stored one: {column} is {again:?} instead of {stored:?}. The results were \
             made by another version of the program, or from other inputs; this is commit {}",
            COMMIT.unwrap_or("unknown")
        );
        return Err(Error::Mismatch { problem });
    }
    let problem = format!("{} has no complete run {} of {}", place.display(), repeated.run, repeated.policy);
    Err(Error::Mismatch { problem })
}
