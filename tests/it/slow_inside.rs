//! The slow twin's orders inside a user, from their definitions alone: `docs/policies.md`, "Orders inside a user".

use crate::slow::Row;

/// An order of a user's own rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    #[default]
    Usual,
    Fifo,
    Sjf,
    SjfTrue,
    Srpt,
    SrptTrue,
    Las,
    Edf,
}

impl Inside {
    pub const OTHERS: [Inside; 7] =
        [Inside::Fifo, Inside::Sjf, Inside::SjfTrue, Inside::Srpt, Inside::SrptTrue, Inside::Las, Inside::Edf];

    /// What stands behind the policy's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Inside::Usual => "",
            Inside::Fifo => "/fifo",
            Inside::Sjf => "/sjf",
            Inside::SjfTrue => "/sjf:true",
            Inside::Srpt => "/srpt",
            Inside::SrptTrue => "/srpt:true",
            Inside::Las => "/las",
            Inside::Edf => "/edf",
        }
    }
}

/// What has become of a job's tasks: every row of it that could start with how many of its tasks have ended, and for how long
/// each task that was launched has run.
pub struct Job<'a> {
    pub rows: Vec<(&'a Row, u64)>,
    pub ended: Vec<u64>,
    pub running: Vec<u64>,
}

/// The lowest is next. `released` is when the row could have started, and 1 if a stage released it.
pub fn key(inside: Inside, at: usize, row: &Row, released: (u64, u8), job: &Job) -> (u128, u64) {
    let each = |row: &Row| match inside {
        Inside::Sjf | Inside::Srpt => row.estimate.expect("a row with an estimate"),
        _ => row.duration,
    };
    let size = |tasks: &dyn Fn(&Row, u64) -> u64| -> u128 {
        job.rows.iter().map(|(row, ended)| u128::from(each(row)) * u128::from(tasks(row, *ended))).sum()
    };
    let elapsed: u128 = job.running.iter().map(|ran| u128::from(*ran)).sum();
    let first = match inside {
        Inside::Usual => return (0, 0),
        Inside::Fifo => return (u128::from(released.0) << 1 | u128::from(released.1), at as u64),
        Inside::Sjf | Inside::SjfTrue => size(&|row, _| row.tasks),
        Inside::Srpt | Inside::SrptTrue => size(&|row, ended| row.tasks - ended).saturating_sub(elapsed),
        Inside::Las => elapsed + job.ended.iter().map(|ran| u128::from(*ran)).sum::<u128>(),
        Inside::Edf => row.deadline.map_or(u128::MAX, u128::from),
    };
    (first, 0)
}
