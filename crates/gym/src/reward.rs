//! Rewards: the rewards of an episode add up to a metric of its run, negated if less is better.
//!
//! Three metrics accrue over time, so that every decision has a reward. Any other numeric column of the table `runs` with a better
//! direction is paid at the end of the episode.

use plimsoll_base::column::{Better, Cell, Kind};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time, UserId};
use plimsoll_metrics::{FinishedJob, GridMeans, Run, Totals, runs_columns};
use plimsoll_sim::books::{Books, Weights};
use plimsoll_sim::engine::Outcome;
use plimsoll_sim::record::Launch;

use crate::episode_log::Sums;

/// A metric that an agent is rewarded by.
#[derive(Clone, Debug, PartialEq)]
pub enum Reward {
    /// The mean slowdown, accrued over time: at each instant the sum over unfinished jobs of 1 / ideal completion time, divided by the
    /// number of jobs. This is DeepRM's reward (Mao et al., HotNets 2016, section 3.3), apart from this division.
    Slowdown,
    /// The mean completion time, accrued over time.
    Completion,
    /// The mean wait, accrued over time.
    Wait,
    /// Any other metric, paid at the end of the episode, with its sign.
    AtEnd(String, f64),
}

impl Reward {
    /// Returns the reward with the name of a column of the table `runs`. Errors: [`Error::Plan`] for an unknown column, a column without a
    /// better direction, or a column that runs of episodes do not have.
    pub fn parse(key: &str, name: &str, dims: &[Dim]) -> Result<Reward> {
        match name {
            "slowdown_mean" => return Ok(Reward::Slowdown),
            "completion_mean_s" => return Ok(Reward::Completion),
            "wait_mean_s" => return Ok(Reward::Wait),
            _ => {}
        }
        let known = offered(dims);
        match known.iter().find(|(known, _)| known == name) {
            Some((_, Better::Higher)) => Ok(Reward::AtEnd(name.to_owned(), 1.0)),
            Some(_) => Ok(Reward::AtEnd(name.to_owned(), -1.0)),
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
                Err(Error::plan(key, format!("'{name}'"), format!("one of {}", names.join(", "))))
            }
        }
    }

    /// Returns the part of the reward that accrues over time, for an episode of `jobs` jobs.
    pub(crate) fn running(&self, sums: &Sums, jobs: usize) -> f64 {
        let sum = match self {
            Reward::Slowdown => sums.slowdown,
            Reward::Completion => sums.completion,
            Reward::Wait => sums.wait,
            Reward::AtEnd(..) => return 0.0,
        };
        // Avoids -0.
        0.0 - sum / jobs as f64
    }

    /// Returns the part of the reward at the end of the episode; 0 if the run has no such value.
    pub(crate) fn at_end(&self, metrics: &[(String, f64)]) -> f64 {
        let Reward::AtEnd(name, sign) = self else { return 0.0 };
        metrics.iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| sign * value)
    }
}

/// Returns the columns of the table `runs` that have a number and are not inputs.
pub(crate) fn metrics(run: &Run, dims: &[Dim]) -> Vec<(String, f64)> {
    let means = GridMeans::new(dims.len());
    let cells = means.row(run);
    let number = |cell: &Cell| match cell {
        Cell::Int(value) => Some(*value as f64),
        Cell::Large(value) => Some(*value as f64),
        Cell::Float(value) => Some(*value),
        Cell::Null | Cell::Text(_) => None,
    };
    let columns = runs_columns(dims).into_iter().zip(&cells).filter(|(column, _)| !column.given);
    columns.filter_map(|(column, cell)| Some((column.name, number(cell)?))).collect()
}

/// Returns the metrics that every run has and that have a better direction, with this direction. They are found by computing the metrics
/// of a run with one job, which waits for a second and runs for a second.
fn offered(dims: &[Dim]) -> Vec<(String, Better)> {
    let second = |seconds| Time::ZERO + Span::from_secs(seconds);
    let mut totals = Totals::default();
    let capacity = Resources([1; MAX_DIMS]);
    let books = Books::new(dims.len(), capacity, capacity, true, Weights::default());
    totals.first_submit = Some(Time::ZERO);
    totals.last_submit = second(1);
    totals.change_backlogged(None, Some(1));
    totals.interval(Time::ZERO, second(2), &books);
    let (user, demand, wait) = (UserId(0), &capacity.0[..dims.len()], Span::from_secs(1));
    totals.launched(&Launch { user, count: 1, gang: false, reach: None, wait, demand });
    let (submit, start, finish) = (Time::ZERO, second(1), second(2));
    totals.delays.record(&FinishedJob { submit, start, finish, tasks: 1, ideal: Span::from_secs(1) });
    let there = metrics(&Run::new(&totals, Outcome::default(), 1, (1, capacity)), dims);
    let columns = runs_columns(dims).into_iter().filter(|column| column.value != Kind::Text);
    let good = columns.filter(|column| column.better != Better::Neither);
    let good = good.map(|column| (column.name, column.better));
    // This run has no throughput, because it records no end of a task.
    let ends = ["throughput_tasks_per_s"];
    good.filter(|(name, _)| ends.contains(&name.as_str()) || there.iter().any(|(known, _)| known == name)).collect()
}
