//! The outcome of a run as far as published numbers need it: the times of each job.

use std::path::PathBuf;

/// A job of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobOutcome {
    /// The name of the job.
    pub job: String,
    /// The user that submitted it.
    pub user: String,
    /// Number of its tasks that were launched.
    pub launched: u64,
    /// The instant of its submission, in microseconds.
    pub submit: u64,
    /// The start of its first task, in microseconds.
    pub start: Option<u64>,
    /// The end of its last task, in microseconds.
    pub finish: Option<u64>,
    /// Tasks times duration, in microseconds; absent for endless tasks.
    pub work: Option<u64>,
    /// The deadline, in microseconds.
    pub deadline: Option<u64>,
    /// Number of starts and restarts, if the model counts them.
    pub starts: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    /// The jobs in the order of their submission, then of the trace.
    pub jobs: Vec<JobOutcome>,
    /// The folder of the inputs.
    pub folder: PathBuf,
    /// The tasks that were launched and not stopped, by user and machine.
    pub launches: Vec<(String, u32, u64)>,
    /// The predicted interval of the completion time of each job in seconds.
    pub intervals: Vec<(String, f64, f64)>,
    /// The static allocation of an instance: the exact tasks of each user.
    pub allocation: Vec<(String, num_rational::BigRational)>,
    /// Further values of a model by name.
    pub values: Vec<(String, f64)>,
}

impl RunOutcome {
    /// Returns the outcome of a static allocation: the tasks of each user as a number or a fraction in text. Errors: a text is neither.
    pub fn from_allocation(
        tasks: impl IntoIterator<Item = (String, String)>,
    ) -> std::result::Result<RunOutcome, String> {
        let read = |(user, tasks): (String, String)| Ok((user, super::numbers::fraction(&tasks)?));
        let allocation = tasks.into_iter().map(read).collect::<std::result::Result<_, String>>()?;
        Ok(RunOutcome { allocation, ..RunOutcome::default() })
    }
}
