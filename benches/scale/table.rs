//! Throughput, decision latency and memory against the number of machines, as a table (Parquet and CSV) and three
//! figures. A file describes the measurements.

use std::path::Path;

use plimsoll::column::{Cell, Kind};
use plimsoll::error::Result;
use plimsoll::output::figure::{Axis, Chart, Join, Panel, Series, lines, small_multiples};

use super::{HEADING, Measured, measure_apart, results, tasks_for};

/// The number of tasks of the run that measures the memory of nearly idle machines.
const IDLE: usize = 100;

/// The measurements, as described in the file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Plan {
    /// The folder under `results/`.
    name: String,
    machines: Vec<u64>,
    tasks_a_job: Vec<usize>,
    /// The minimum number of tasks of a run.
    least_tasks: usize,
    /// The number of rounds of each measurement.
    rounds: usize,
}

/// The minimum of `least_tasks`. The CPU clock ticks a hundred times per second, and fewer tasks would take only a few ticks.
const LEAST_TASKS: usize = 100_000;

impl Plan {
    fn check(&self) -> std::result::Result<(), &'static str> {
        let ascending =
            |numbers: &[u64]| numbers.first().is_some_and(|first| *first > 0) && numbers.is_sorted_by(|a, b| a < b);
        let each: Vec<u64> = self.tasks_a_job.iter().map(|each| *each as u64).collect();
        if !ascending(&self.machines) || !ascending(&each) {
            Err("machines and tasks-a-job: expected numbers from 1, each larger than the one before")
        } else if self.rounds.is_multiple_of(2) {
            Err("rounds: expected an odd number, so that one round is the median")
        } else if self.least_tasks < LEAST_TASKS || each.iter().any(|each| each * 1000 > self.least_tasks as u64) {
            Err("least-tasks: expected at least 100000, and enough for a thousand jobs")
        } else {
            Ok(())
        }
    }
}

/// The rounds of one size, and the memory of nearly idle machines.
struct Row {
    rounds: Vec<Measured>,
    idle_mib: f64,
}

const COLUMNS: [(&str, Kind); 16] = [
    ("machines", Kind::Int),
    ("tasks_a_job", Kind::Int),
    ("tasks", Kind::Int),
    ("at_once", Kind::Int),
    ("instants", Kind::Int),
    ("rounds", Kind::Int),
    ("tasks_a_cpu_s_median", Kind::Float),
    ("tasks_a_cpu_s_lowest", Kind::Float),
    ("tasks_a_cpu_s_highest", Kind::Float),
    ("instants_a_cpu_s_median", Kind::Float),
    ("engine_us_a_task_median", Kind::Float),
    ("decision_p50_us_median", Kind::Float),
    ("decision_p99_us_median", Kind::Float),
    ("scan_us_median", Kind::Float),
    ("mib_median", Kind::Float),
    ("idle_mib", Kind::Float),
];

impl Row {
    /// Returns the sorted values of the rounds.
    fn sorted(&self, of: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.rounds.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: impl Fn(&Measured) -> f64) -> f64 {
        self.sorted(of)[self.rounds.len() / 2]
    }

    /// Returns a round, for values that are the same in every round.
    fn run(&self) -> &Measured {
        &self.rounds[0]
    }

    fn cells(&self) -> [Cell<'_>; 16] {
        let (run, speeds) = (self.run(), self.sorted(Measured::tasks_a_cpu_s));
        [
            run.machines.into(),
            run.tasks_a_job.into(),
            run.tasks.into(),
            run.at_once.into(),
            run.instants.into(),
            (self.rounds.len() as u64).into(),
            self.median(Measured::tasks_a_cpu_s).into(),
            speeds[0].into(),
            speeds[speeds.len() - 1].into(),
            self.median(|round| round.instants as f64 / round.cpu_s).into(),
            self.median(|round| round.engine_cpu_s * 1e6 / round.tasks as f64).into(),
            self.median(|round| round.p50_us).into(),
            self.median(|round| round.p99_us).into(),
            self.median(|round| round.scan_us).into(),
            self.median(|round| round.mib).into(),
            self.idle_mib.into(),
        ]
    }
}

/// Performs the measurements of the file and writes `results/NAME`. Errors: those of reading the file and of writing the results.
pub fn write(path: &Path) -> Result<()> {
    let (plan, text) = results::plan(path, Plan::check)?;
    let folder = results::folder(path, &plan.name)?;
    println!("{HEADING}");
    let mut rows = Vec::new();
    for &machines in &plan.machines {
        let idle_mib = measure_apart(machines, IDLE, 1)?.mib;
        for &each in &plan.tasks_a_job {
            let tasks = tasks_for(machines, plan.least_tasks);
            let mut rounds = Vec::new();
            for _ in 0..plan.rounds {
                let measured = measure_apart(machines, tasks, each)?;
                println!("{}", measured.line());
                rounds.push(measured);
            }
            rows.push(Row { rounds, idle_mib });
        }
    }
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    let figures = [
        ("throughput", throughput(&plan, &rows)),
        ("decisions", decisions(&plan, &rows)),
        ("memory", memory(&plan, &rows)),
    ];
    results::write(&folder, "scale", &COLUMNS, &cells, &figures, &text)?;
    println!("results/{} has scale.parquet, scale.csv, and the figures throughput, decisions and memory", plan.name);
    Ok(())
}

/// Returns a median against the number of machines, for jobs of `each` tasks.
fn series(key: &str, rows: &[Row], each: usize, of: impl Fn(&Row) -> f64) -> Series {
    let of_jobs = rows.iter().filter(|row| row.run().tasks_a_job == each as u64);
    Series::new(key.to_owned(), of_jobs.map(|row| (row.run().machines as f64, of(row))).collect())
}

fn jobs_of(each: usize) -> String {
    if each == 1 { "jobs of 1 task".to_owned() } else { format!("jobs of {each} tasks") }
}

fn machines() -> Axis {
    Axis::number("machines").log()
}

fn throughput(plan: &Plan, rows: &[Row]) -> String {
    let line = |&each: &usize| series(&jobs_of(each), rows, each, |row| row.median(Measured::tasks_a_cpu_s));
    let chart =
        Chart { size_pt: (Chart::COLUMN.0, 210.0), ..Chart::new(machines(), Axis::number("tasks a CPU second")) };
    lines(&chart, Join::Straight, &plan.tasks_a_job.iter().map(line).collect::<Vec<_>>())
}

fn decisions(plan: &Plan, rows: &[Row]) -> String {
    let panel = |&each: &usize| {
        let line = |key: &str, of: fn(&Measured) -> f64| series(key, rows, each, |row| row.median(of) * 1e-6);
        let p50 = line("an instant with launches, median", |round| round.p50_us);
        let p99 = line("its 99th percentile", |round| round.p99_us);
        let scan = line("a scan for one task, the search alone", |round| round.scan_us);
        Panel { title: jobs_of(each), series: vec![p50, p99, scan] }
    };
    let chart = Chart {
        size_pt: (Chart::PAGE.0, 210.0),
        columns: Some(plan.tasks_a_job.len()),
        ..Chart::new(machines(), Axis::seconds("time").log())
    };
    small_multiples(&chart, Join::Straight, &plan.tasks_a_job.iter().map(panel).collect::<Vec<_>>())
}

fn memory(plan: &Plan, rows: &[Row]) -> String {
    let mut all: Vec<Series> = plan
        .tasks_a_job
        .iter()
        .map(|&each| series(&jobs_of(each), rows, each, |row| row.median(|round| round.mib)))
        .collect();
    all.push(series("hardly any task", rows, plan.tasks_a_job[0], |row| row.idle_mib));
    let chart = Chart { size_pt: (Chart::COLUMN.0, 210.0), ..Chart::new(machines(), Axis::number("MiB").log()) };
    lines(&chart, Join::Straight, &all)
}
