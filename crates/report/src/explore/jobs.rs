//! The jobs and the series over time of some runs.

use std::collections::{BTreeSet, HashMap};

use plimsoll_base::error::Result;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use super::pack::Pack;

/// The largest number of rows, one per job and policy, for which a further run is included.
const ROWS_MOST: usize = 150_000;

/// The largest number of rows of the first run. With more rows, the page has no jobs.
const FIRST_MOST: usize = 1_200_000;

/// The largest number of points of a series before its reduction.
const POINTS_MOST: usize = 4_000;

/// The largest number of attempts of tasks in the first run, over all policies, for which the page shows the machines.
const TASKS_MOST: usize = 60_000;

/// The columns of the table of jobs that are read.
const COLUMNS: [&str; 8] = ["job", "user", "tasks", "submit_us", "start_us", "finish_us", "ideal_us", "work_us"];

/// The jobs and tasks in the page.
#[derive(Default)]
pub(super) struct PackedJobs {
    /// The numbers of the included runs.
    pub runs: Vec<usize>,
    /// The policies with included tasks, which are those of the first run.
    pub with_tasks: Vec<usize>,
}

/// A job of a run.
struct JobEntry {
    job: String,
    user: String,
    tasks: Option<f64>,
    submit: Option<f64>,
    ideal: Option<f64>,
    /// The sum of tasks times duration, in seconds.
    work: Option<f64>,
    /// The wait, and the time from the first start to the end, in milliseconds, for each policy.
    times: Vec<(Option<f64>, Option<f64>)>,
}

/// Adds the jobs of the first runs, and the tasks of the first run if they have machines and are few. Errors: those of the tables.
pub(super) fn add(pack: &mut Pack, results: &Results) -> Result<PackedJobs> {
    let policies = results.contents.policies.len();
    let mut runs: BTreeSet<usize> = results.runs.iter().map(|(_, run)| *run).collect();
    let first = results.first_run();
    runs.remove(&first);
    let (mut included, mut jobs, mut of_run) = (Vec::new(), Vec::new(), Vec::new());
    for run in std::iter::once(first).chain(runs) {
        let entries = entries(results, run)?;
        let rows = (jobs.len() + entries.len()) * policies;
        let most = if included.is_empty() { FIRST_MOST } else { ROWS_MOST };
        if entries.is_empty() || rows > most {
            break;
        }
        of_run.extend(std::iter::repeat_n(Some(included.len() as f64), entries.len()));
        included.push(run);
        jobs.extend(entries);
    }
    let mut users: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let of_user: Vec<Option<f64>> = jobs
        .iter()
        .map(|job| {
            let at = *users.entry(&job.user).or_insert_with(|| {
                names.push(&job.user);
                names.len() - 1
            });
            Some(at as f64)
        })
        .collect();
    let column = |value: fn(&JobEntry) -> Option<f64>| jobs.iter().map(value).collect::<Vec<_>>();
    pack.names("job", jobs.iter().map(|job| job.job.as_str()));
    pack.names("users", names.iter().copied());
    pack.numbers("run", &of_run, false);
    pack.numbers("user", &of_user, false);
    pack.numbers("tasks", &column(|job| job.tasks), false);
    pack.numbers("submit_ms", &column(|job| job.submit), false);
    pack.numbers("ideal_ms", &column(|job| job.ideal), false);
    pack.numbers("work_s", &column(|job| job.work), false);
    for policy in 0..policies {
        let values = |wait: bool| {
            let one = |job: &JobEntry| if wait { job.times[policy].0 } else { job.times[policy].1 };
            jobs.iter().map(one).collect::<Vec<_>>()
        };
        pack.numbers(&format!("wait_ms:{policy}"), &values(true), false);
        pack.numbers(&format!("ran_ms:{policy}"), &values(false), false);
    }
    let with_tasks = match of_run.iter().take_while(|run| **run == Some(0.0)).count() {
        0 => Vec::new(),
        in_first => add_tasks(pack, results, &jobs[..in_first])?,
    };
    Ok(PackedJobs { runs: included, with_tasks })
}

/// Adds the machines and times of the launched tasks of the first run, by policy. Returns the policies with such tasks: none if the cluster
/// is pooled or if there are more than [`TASKS_MOST`] attempts. Errors: those of the tables.
fn add_tasks(pack: &mut Pack, results: &Results, jobs: &[JobEntry]) -> Result<Vec<usize>> {
    let columns = ["job", "machine", "start_us", "finish_us"];
    let parts = results.table(Table::Tasks, &columns, Some(results.first_run()))?;
    let machines = parts.iter().map(|part| part.numbers("machine")).collect::<Result<Vec<_>>>()?;
    let attempts: usize = machines.iter().map(Vec::len).sum();
    if attempts > TASKS_MOST || machines.iter().flatten().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let rows: HashMap<&str, usize> = jobs.iter().enumerate().map(|(row, job)| (job.job.as_str(), row)).collect();
    for (part, machines) in parts.iter().zip(&machines) {
        let (names, starts, ends) = (part.names("job")?, part.numbers("start_us")?, part.numbers("finish_us")?);
        let mut launched: Vec<[Option<f64>; 4]> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let (Some(&job), Some(machine), Some(start)) = (rows.get(name.as_str()), machines[at], starts[at]) else {
                continue;
            };
            let ms = |us: f64| (us / 1000.0).round();
            let ran = ends[at].map(|end| (ms(end) - ms(start)).max(0.0));
            launched.push([Some(job as f64), Some(machine), Some(ms(start)), ran]);
        }
        for (at, name) in ["job", "machine", "start_ms", "ran_ms"].into_iter().enumerate() {
            let values: Vec<Option<f64>> = launched.iter().map(|task| task[at]).collect();
            pack.numbers(&format!("task_{name}:{}", part.policy), &values, false);
        }
    }
    Ok(parts.iter().map(|part| part.policy).collect())
}

/// Returns the jobs of a run, by submission.
fn entries(results: &Results, run: usize) -> Result<Vec<JobEntry>> {
    let policies = results.contents.policies.len();
    let mut entries: Vec<JobEntry> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for policy in 0..policies {
        let Some(part) = results.part(Table::Jobs, &COLUMNS, (policy, run))? else { continue };
        let (jobs, users) = (part.names("job")?, part.names("user")?);
        let ms = |name: &str| -> Result<Vec<Option<f64>>> {
            let values = part.numbers(name)?;
            Ok(values.into_iter().map(|value| value.map(|us| (us / 1000.0).round())).collect())
        };
        let (tasks, submits, ideals) = (part.numbers("tasks")?, ms("submit_us")?, ms("ideal_us")?);
        let (starts, ends, works) = (ms("start_us")?, ms("finish_us")?, ms("work_us")?);
        for (row, (job, user)) in jobs.into_iter().zip(users).enumerate() {
            let at = *known.entry(job).or_insert_with_key(|job| {
                entries.push(JobEntry {
                    job: job.clone(),
                    user,
                    tasks: tasks[row],
                    submit: submits[row],
                    ideal: ideals[row],
                    work: works[row].map(|ms| (ms / 1000.0).round()),
                    times: vec![(None, None); policies],
                });
                entries.len() - 1
            });
            let between = |from: Option<f64>, to: Option<f64>| Some((to? - from?).max(0.0));
            entries[at].times[policy] = (between(submits[row], starts[row]), between(starts[row], ends[row]));
        }
    }
    entries.sort_by(|a, b| a.submit.partial_cmp(&b.submit).unwrap_or(std::cmp::Ordering::Equal));
    Ok(entries)
}

/// Adds the series of the first run: the columns of the table `fairness` on its grid, reduced to the rows that a chart shows. Returns the
/// policies with a series, and the names of the columns. Errors: those of the tables.
pub(super) fn add_series(pack: &mut Pack, results: &Results) -> Result<(Vec<usize>, Vec<String>)> {
    let mut columns: Vec<String> = results.dims.iter().map(|dim| format!("used_{}", dim.column())).collect();
    columns.extend(["waiting", "running", "backlogged_users", "jain_backlogged"].map(str::to_owned));
    let names: Vec<&str> = std::iter::once("time_us").chain(columns.iter().map(String::as_str)).collect();
    let mut policies = Vec::new();
    for part in results.table(Table::Fairness, &names, Some(results.first_run()))? {
        let policy = part.policy;
        let values = series(&part, &names)?;
        let kept = kept(&values);
        for (name, values) in names.iter().zip(&values) {
            let values: Vec<Option<f64>> = kept.iter().map(|&row| values[row]).collect();
            pack.numbers(&format!("{name}:{policy}"), &values, *name != "time_us");
        }
        policies.push(policy);
    }
    Ok((policies, columns))
}

fn series(part: &Part, names: &[&str]) -> Result<Vec<Vec<Option<f64>>>> {
    names.iter().map(|name| part.numbers(name)).collect()
}

/// Returns the rows of a series that remain: all, or those with the smallest and the largest value of a column among some neighbours, so
/// that no extreme value is lost.
fn kept(columns: &[Vec<Option<f64>>]) -> Vec<usize> {
    let rows = columns.first().map_or(0, Vec::len);
    if rows <= POINTS_MOST {
        return (0..rows).collect();
    }
    let width = (rows * 2 * columns.len()).div_ceil(POINTS_MOST);
    let mut kept: BTreeSet<usize> = BTreeSet::from([0, rows - 1]);
    for from in (0..rows).step_by(width) {
        for column in &columns[1..] {
            let part = || (from..rows.min(from + width)).filter_map(|row| Some((row, column[row]?)));
            kept.extend(part().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row));
            kept.extend(part().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row));
        }
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduced_series_keeps_its_extremes() {
        let time: Vec<Option<f64>> = (0..50_000).map(|row| Some(f64::from(row))).collect();
        let mut values: Vec<Option<f64>> = (0..50_000).map(|row| Some(f64::from(row % 7))).collect();
        (values[12_345], values[40_001]) = (Some(-3.0), Some(99.0));
        values[777] = None;
        let kept = kept(&[time, values]);
        assert!(kept.len() <= 2 * POINTS_MOST && kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert!([0, 12_345, 40_001, 49_999].iter().all(|row| kept.contains(row)));
    }
}
