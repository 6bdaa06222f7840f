//! First-fit under DRF from 1,000 to 100,000 machines at nine tenths of their capacity, with 1,000 users.
//!
//! Measures tasks per CPU second with the tables `runs`, `users` and `jobs`, the duration of instants that launch a task, memory, and, for
//! comparison, the cost of the same launches by a linear search over the machines. Jobs have one task, so that every task is a row of the
//! `jobs` table, or ten tasks.
//!
//! `cargo bench --bench scale` takes some minutes; `-- --tasks 10000000 --machines 20000 --a-job 10` is a long run. With `cargo bench
//! --bench scale -- --table experiments/scale.toml` the measurements of that file are written as a table and figures, and with `-- --decide
//! crates/control/src/world/decide.csv` the decision times for plans with `decide = "measured"`.

#[path = "common/drf_run.rs"]
mod drf_run;
#[path = "common/results.rs"]
mod results;
#[path = "scale/table.rs"]
mod table;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll::books::{Books, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Options};
use plimsoll::error::{Error, Result};
use plimsoll::experiment::{SharedSupply, Supply};
use plimsoll::policy::{BUILT_IN, Setup};
use plimsoll::record::{Launch, Recorder, TaskRecord};
use plimsoll::units::{Resources, Time, UserId};
use plimsoll::workload::Workload;
use plimsoll::workload::synthetic::{Generated, Generator};

const USERS: u32 = 1000;
/// Cores and GiB of a machine.
const MACHINE: (u64, u64) = (16, 64);
/// The mean core-seconds of a task of the generator below.
const MEAN_TASK: f64 = 2.7 * 298.0;

fn workload(machines: u64, tasks: usize, each: usize) -> Workload {
    let jobs = tasks / each;
    let mean = each as f64 * MEAN_TASK / (0.9 * (machines * MACHINE.0) as f64);
    let plan = format!(
        r#"
generator = "synthetic"
jobs = {jobs}
arrival = {{ distribution = "exponential", mean = {mean} }}
[[class]]
name = "user"
users = {USERS}
zipf = 0.6
tasks = {{ distribution = "constant", value = {each} }}
duration = {{ distribution = "lognormal", median = 180.75, sigma = 1.0 }}
[class.demand]
cpu = {{ distribution = "choice", values = [1, 2, 4], weights = [0.2, 0.35, 0.45] }}
memory_gib = {{ distribution = "uniform", min = 1.6, max = 20 }}
"#
    );
    let generator: Generator = toml::from_str(&plan).expect("a plan");
    match generator.generate(1).expect("a workload") {
        Generated::Workload(workload) => workload,
        Generated::Loop(_) => unreachable!("the generator is not closed-loop"),
    }
}

/// Returns the CPU time of this process, and its current and maximum memory in KiB; zeros if the system does not report them.
fn spent() -> (Duration, u64, u64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let stat = read("/proc/self/stat");
    let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    let status = read("/proc/self/status");
    let kib = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
    };
    (Duration::from_millis(ticks * 10), kib("VmRSS:"), kib("VmHWM:"))
}

/// Measures every instant that launches a task, and records each task's machine.
struct Clock {
    last: Instant,
    launched: bool,
    nanos: Vec<u32>,
    /// The start, end, machine and demand of tasks, in the order of their ends.
    ran: Vec<(Time, Time, u32, [u64; 2])>,
}

impl Recorder for Clock {
    fn launched(&mut self, _launch: &Launch) {
        self.launched = true;
    }

    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let (Some(machine), Some(finish)) = (tasks.machine, tasks.finish) else { return Ok(()) };
        for _ in 0..tasks.count {
            self.ran.push((tasks.start, finish, machine.0, [tasks.demand[0], tasks.demand[1]]));
        }
        Ok(())
    }

    fn settled(&mut self, _now: Time, _changed: &[UserId], _books: &Books) -> Result<()> {
        if std::mem::take(&mut self.launched) {
            self.nanos.push(self.last.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
        }
        self.last = Instant::now();
        Ok(())
    }
}

/// Runs the engine alone. Returns the sorted latencies of the instants in the second half, and the machine of each task.
fn latencies(supply: &SharedSupply, spec: &ClusterSpec) -> (Vec<u32>, Clock) {
    let mut source = supply.source().expect("a workload");
    let cluster = Cluster::new(spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let machines = cluster.capacities.len() as u64;
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines, weights: &weights, labels: None };
    let mut policy = BUILT_IN.parse("drf").expect("a policy").build(&setup).expect("a policy");
    let mut clock = Clock { last: Instant::now(), launched: false, nanos: Vec::new(), ran: Vec::new() };
    let options = Options { placement: Placement::FirstFit, ..Options::default() };
    engine::run(&mut *source, &mut *policy, cluster, weights.clone(), &options, &mut clock).expect("a run");
    let mut steady = clock.nanos.split_off(clock.nanos.len() / 2);
    steady.sort_unstable();
    (steady, clock)
}

/// Returns the time of a linear search for a machine with room, as the mean of some launches in the middle of the run. Tasks that end
/// meanwhile free their room, so that the search finds the same machines.
fn scan(clock: &Clock, machines: usize, capacity: &Resources) -> Duration {
    const LAUNCHES: usize = 2000;
    let mut starts: Vec<usize> = (0..clock.ran.len()).collect();
    // Tasks of a job start together, on consecutive machines.
    starts.sort_by_key(|&at| (clock.ran[at].0, clock.ran[at].2));
    let from = clock.ran[starts[starts.len() / 2]].0;
    let mut free = vec![[capacity.0[0], capacity.0[1]]; machines];
    let mut ends = BinaryHeap::new();
    for &(_, end, machine, need) in clock.ran.iter().filter(|(start, end, ..)| *start < from && *end > from) {
        (0..2).for_each(|d| free[machine as usize][d] -= need[d]);
        ends.push(Reverse((end, machine, need)));
    }
    let mut spent = Duration::ZERO;
    let (mut searches, mut agreed) = (0, 0);
    for &at in starts.iter().filter(|&&at| clock.ran[at].0 >= from).take(LAUNCHES) {
        let (start, end, machine, need) = clock.ran[at];
        while let Some(Reverse((_, machine, need))) = ends.peek().filter(|Reverse((end, ..))| *end <= start).copied() {
            ends.pop();
            (0..2).for_each(|d| free[machine as usize][d] += need[d]);
        }
        let clock = Instant::now();
        let first = free.iter().position(|free| need[0] <= free[0] && need[1] <= free[1]);
        spent += clock.elapsed();
        searches += 1;
        agreed += usize::from(first == Some(machine as usize));
        (0..2).for_each(|d| free[machine as usize][d] -= need[d]);
        ends.push(Reverse((end, machine, need)));
    }
    // The scan may place jobs that start at one instant in another order.
    assert!(agreed * 100 >= searches * 99, "the scan must find the machines of the index: {agreed} of {searches}");
    spent / searches as u32
}

/// One measurement.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Measured {
    machines: u64,
    tasks_a_job: u64,
    tasks: u64,
    /// The maximum number of concurrently running tasks.
    at_once: u64,
    instants: u64,
    /// The CPU time of the run with its tables.
    cpu_s: f64,
    /// The CPU time of the engine alone, which reads the clock at every instant and records each task's machine.
    engine_cpu_s: f64,
    /// The median duration of the instants that launched a task, in the second half of the run.
    p50_us: f64,
    /// The 99th percentile of these durations.
    p99_us: f64,
    /// The duration of a linear search for a machine.
    scan_us: f64,
    /// The peak memory of the run in addition to its workload.
    mib: f64,
}

impl Measured {
    fn tasks_a_cpu_s(&self) -> f64 {
        self.tasks as f64 / self.cpu_s
    }

    fn line(&self) -> String {
        let per_task = 1e6 / self.tasks as f64;
        format!(
            "{:>8} {:>5} {:>10} {:>10} {:>9.2} {:>12.0} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>8.1} {:>9.1}",
            self.machines,
            self.tasks_a_job,
            self.tasks,
            self.at_once,
            self.cpu_s,
            self.tasks_a_cpu_s(),
            self.cpu_s * per_task,
            self.engine_cpu_s * per_task,
            self.p50_us,
            self.p99_us,
            self.scan_us,
            self.mib
        )
    }
}

const HEADING: &str = "machines a job      tasks    at once     CPU s  tasks/CPU s  us/task   engine   p50 us   p99 us  \
    scan us  MiB more";

fn measure(machines: u64, tasks: usize, each: usize, folder: &Path) -> Measured {
    let spec = ClusterSpec::parse("machines", &format!("{machines}x{}c{}g", MACHINE.0, MACHINE.1)).expect("machines");
    let supply = SharedSupply::from(Supply::Generated(Generated::Workload(workload(machines, tasks, each))));
    // Resets the maximum memory, if the system supports it.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let (before, resident, _) = spent();
    let options = Options { placement: Placement::FirstFit, ..Options::default() };
    let outcome = drf_run::execute(&supply, "scale", &spec, &options, folder).outcome;
    let (after, _, peak) = spent();
    let (steady, clock) = latencies(&supply, &spec);
    let (p50, p99) = (steady[steady.len() / 2], steady[steady.len() * 99 / 100]);
    let engine = spent().0 - after;
    let capacity = Cluster::new(&spec, supply.source().expect("a workload").dims()).expect("a cluster").capacities[0];
    let scan = scan(&clock, machines as usize, &capacity);
    Measured {
        machines,
        tasks_a_job: each as u64,
        tasks: outcome.launched,
        at_once: outcome.peak_running,
        instants: outcome.instants,
        cpu_s: (after - before).as_secs_f64(),
        engine_cpu_s: engine.as_secs_f64(),
        p50_us: f64::from(p50) / 1e3,
        p99_us: f64::from(p99) / 1e3,
        scan_us: scan.as_secs_f64() * 1e6,
        mib: peak.saturating_sub(resident) as f64 / 1024.0,
    }
}

/// Runs the measurement in a separate process: memory freed by one measurement would hide the growth in the next one. Errors: the process
/// failed.
fn measure_apart(machines: u64, tasks: usize, each: usize) -> Result<Measured> {
    let failed = |why: &dyn std::fmt::Display| Error::Mismatch {
        problem: format!("{tasks} tasks in jobs of {each} on {machines} machines could not be measured: {why}"),
    };
    let mut one = Command::new(std::env::current_exe().expect("a program has a path"));
    one.arg("--row").args([machines, tasks as u64, each as u64].map(|number| number.to_string()));
    let output = one.stderr(Stdio::inherit()).output().map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&error))
}

/// Returns at least five times the number of running tasks, so that most of the run is in a steady state.
fn tasks_for(machines: u64, least: usize) -> usize {
    least.max((machines as f64 * MACHINE.0 as f64 * 0.9 / 2.7 * 5.0) as usize)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|argument| argument == name).map(|at| &arguments[at + 1..]);
    let number = |name: &str| -> Option<u64> { after(name)?.first()?.parse().ok() };
    if let Some(numbers) = after("--row") {
        let numbers: Vec<u64> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let measured = measure(numbers[0], numbers[1] as usize, numbers[2] as usize, folder.path());
        println!("{}", serde_json::to_string(&measured).expect("numbers"));
        return;
    }
    if let Some(path) = after("--decide") {
        let file = results::path(path, "crates/control/src/world/decide.csv");
        std::fs::write(file, decide(number("--machines").unwrap_or(20_000))).expect("a file that can be written");
        return;
    }
    let done = match after("--table") {
        Some(path) => table::write(Path::new(results::path(path, "experiments/scale.toml"))),
        None => print(number("--machines"), number("--tasks"), number("--a-job")),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Returns decision latencies as a table for `decide = "measured"` of plans: the quantiles from 0 to 100 % with this number of machines, in
/// whole microseconds, rounded up.
fn decide(machines: u64) -> String {
    let spec = ClusterSpec::parse("machines", &format!("{machines}x{}c{}g", MACHINE.0, MACHINE.1)).expect("machines");
    let supply = SharedSupply::from(Supply::Generated(Generated::Workload(workload(
        machines,
        tasks_for(machines, 1_000_000),
        1,
    ))));
    let (steady, _) = latencies(&supply, &spec);
    let mut text = format!(
        "# Time of an instant that launches something, at {machines} machines: cargo bench --bench scale -- --decide FILE\n\
         # Quantiles from 0 to 100 %, of {} instants, in microseconds, rounded up.\nus\n",
        steady.len()
    );
    for percent in 0..=100 {
        let nanos = steady[(steady.len() - 1) * percent / 100];
        text += &format!("{}\n", nanos.div_ceil(1000));
    }
    text
}

/// Measures the given sizes, or all sizes.
fn print(machines: Option<u64>, tasks: Option<u64>, each: Option<u64>) -> Result<()> {
    println!("{HEADING}");
    for machines in machines.map_or_else(|| vec![1000, 5000, 20_000, 100_000], |machines| vec![machines]) {
        let tasks = tasks.map_or_else(|| tasks_for(machines, 1_000_000), |tasks| tasks as usize);
        for each in each.map_or_else(|| vec![1, 10], |each| vec![each as usize]) {
            println!("{}", measure_apart(machines, tasks, each)?.line());
        }
    }
    Ok(())
}
