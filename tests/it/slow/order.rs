//! The orders inside a user, from their definitions alone: `docs/policies.md`, "Orders inside a user".

use num_bigint::BigInt;

use super::Row;
use super::expressions::{self, Written};

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
    /// Queues of jobs by service in two dimensions.
    Tiresias,
    /// The value of an expression.
    Written(Written),
}

/// A sort key of a row.
pub type Key = (BigInt, u64);

/// The attained service at which each queue of Tiresias ends, in microseconds of the whole cluster.
const QUEUES: [u64; 3] = [1, 2500, 15_000_000];

impl Inside {
    pub const OTHERS: [Inside; 8] = [
        Inside::Fifo,
        Inside::Sjf,
        Inside::SjfTrue,
        Inside::Srpt,
        Inside::SrptTrue,
        Inside::Las,
        Inside::Edf,
        Inside::Tiresias,
    ];

    /// Returns the suffix of the policy's name.
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
            Inside::Tiresias => "/tiresias:1us,2500us,15s",
            Inside::Written(_) => unreachable!("an expression has no suffix"),
        }
    }
}

/// The progress of a job: the rows that could start, with their numbers of ended tasks; and the run times of ended and of running tasks.
pub struct Job<'a> {
    pub rows: Vec<(&'a Row, u64)>,
    pub ended: Vec<u64>,
    pub running: Vec<u64>,
    /// The demand and the time so far of each task that was launched.
    pub served: Vec<(Vec<u64>, u64)>,
    /// The work that stopped tasks have saved.
    pub saved: u128,
    pub submit: u64,
    pub now: u64,
}

/// Returns the sort key of a row; the row with the lowest key is next. `released` is the time at which the row could have started, and 1 if
/// the end of a stage released it.
pub fn key(inside: Inside, at: usize, row: &Row, released: (u64, u8), job: &Job, capacity: &[u64]) -> Key {
    let each = |row: &Row| match inside {
        Inside::Sjf | Inside::Srpt => row.estimate.expect("a row with an estimate"),
        _ => row.duration,
    };
    let size = |tasks: &dyn Fn(&Row, u64) -> u64| -> u128 {
        job.rows.iter().map(|(row, ended)| u128::from(each(row)) * u128::from(tasks(row, *ended))).sum()
    };
    let elapsed: u128 = job.running.iter().map(|ran| u128::from(*ran)).sum();
    let first = match inside {
        Inside::Usual => return (BigInt::ZERO, 0),
        Inside::Written(written) => return (expressions::key(written, row, released.0, job, job.now), 0),
        Inside::Fifo => return ((u128::from(released.0) << 1 | u128::from(released.1)).into(), at as u64),
        Inside::Sjf | Inside::SjfTrue => size(&|row, _| row.tasks),
        Inside::Srpt | Inside::SrptTrue => size(&|row, ended| row.tasks - ended).saturating_sub(elapsed + job.saved),
        Inside::Las => elapsed + job.ended.iter().map(|ran| u128::from(*ran)).sum::<u128>(),
        Inside::Tiresias => {
            let part = |demand: u64, r: usize| (u128::from(demand) << 20).div_ceil(u128::from(capacity[r]));
            let all = |demand: &[u64]| {
                let parts = (0..capacity.len()).filter(|&r| capacity[r] > 0).map(|r| part(demand[r], r));
                parts.max().unwrap_or(0).max(1)
            };
            let attained: u128 = job.served.iter().map(|(demand, ran)| all(demand) * u128::from(*ran)).sum();
            let queue = QUEUES.iter().filter(|end| u128::from(**end) << 20 <= attained).count();
            return (queue.into(), job.submit);
        }
        Inside::Edf => row.deadline.map_or(u128::MAX, u128::from),
    };
    (first.into(), 0)
}
