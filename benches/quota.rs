//! Compares quota groups with DRF on one workload. Requests change at every arrival and end of a task. Cases: one user per group, flat and
//! under parents, and a hundred users per group.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Options};
use plimsoll::policy::{BUILT_IN, Policy, Quota, QuotaFile, Setup};
use plimsoll::record::Recorder;
use plimsoll::workload::synthetic::{Generated, Generator};
use plimsoll::workload::{Source, Workload};

const TASKS: usize = 500_000;
const USERS: u32 = 10_000;

/// Generates 28.6 tasks per second. The mean task takes 298 s, 2.7 cores and 10.8 GiB, which is a load of 0.9 on 25,600 cores and of 1.1 on
/// 21,000 cores.
fn workload() -> Workload {
    let plan = format!(
        r#"
generator = "synthetic"
jobs = {TASKS}
arrival = {{ distribution = "exponential", mean = 0.034922 }}
[[class]]
name = "user"
users = {USERS}
zipf = 0.6
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

/// A division of the users into groups.
struct Division {
    name: &'static str,
    /// The number of parent groups, each with about the same number of children; 0 for none.
    parents: usize,
    /// The number of groups with users, each with about the same number of users.
    leaves: u32,
    reclaim: &'static str,
    inside: &'static str,
}

const fn division(name: &'static str, parents: usize, leaves: u32, [reclaim, inside]: [&'static str; 2]) -> Division {
    Division { name, parents, leaves, reclaim, inside }
}

/// The first four divisions have one group per user.
const DIVISIONS: [Division; 6] = [
    division("flat, wait", 0, USERS, ["wait", "fifo"]),
    division("flat, never", 0, USERS, ["never", "fifo"]),
    division("100 parents, wait", 100, USERS, ["wait", "fifo"]),
    division("100 parents, never", 100, USERS, ["never", "fifo"]),
    division("100 groups, fifo", 0, 100, ["wait", "fifo"]),
    division("100 groups, fair", 0, 100, ["wait", "fair"]),
];

/// Returns the quota groups. Half of the groups with users have a minimum.
fn groups(workload: &Workload, division: &Division) -> QuotaFile {
    let Division { parents, leaves, reclaim, inside, .. } = *division;
    let mut text = format!("reclaim = '{reclaim}'\ninside = '{inside}'\n");
    for parent in 0..parents {
        text += &format!("[[group]]\nname = 'parent {parent}'\nmin = {{ cpu = {leaves} }}\n");
    }
    for leaf in 0..leaves {
        let mine = (leaf..USERS).step_by(leaves as usize).map(|user| workload.users.name(user));
        let (mine, ratio) = (mine.collect::<Vec<_>>(), 1 + leaf % 4);
        text += &format!("[[group]]\nname = 'group {leaf}'\nusers = {mine:?}\nratio = {ratio}\n");
        if leaf % 2 == 0 {
            text += "min = { cpu = 1 }\n";
        }
        if parents > 0 {
            text += &format!("parent = 'parent {}'\n", leaf as usize % parents);
        }
    }
    text += "[[group]]\nname = 'rest'\ndefault = true\n";
    QuotaFile::parse(Path::new("groups.toml"), &text).expect("a quota file")
}

struct Silent;

impl Recorder for Silent {}

fn replay(workload: &Workload, machines: &str, placement: Placement, file: Option<&QuotaFile>) -> u64 {
    let mut source = workload.source();
    let spec = ClusterSpec::parse("machines", machines).expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let machines = cluster.capacities.len() as u64;
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines, weights: &weights, labels: None };
    let mut policy: Box<dyn Policy> = match file {
        Some(file) => Box::new(Quota::new(file, &setup).expect("a policy")),
        None => BUILT_IN.parse("drf").expect("a policy").build(&setup).expect("a policy"),
    };
    let options = Options { placement, ..Options::default() };
    let outcome = engine::run(&mut source, &mut *policy, cluster, weights.clone(), &options, &mut Silent);
    outcome.expect("a run").launched
}

fn quota(criterion: &mut Criterion) {
    let workload = workload();
    for (load, machines) in [("load 0.9", "400x64c256g"), ("load 1.1", "328x64c256g")] {
        for (place, placement) in [("pooled", Placement::Pooled), ("first-fit", Placement::FirstFit)] {
            let mut group = criterion.benchmark_group(format!("quota/{USERS} users/{load}/{place}"));
            group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(TASKS as u64));
            group.bench_function("drf", |bencher| {
                bencher.iter(|| black_box(replay(&workload, machines, placement, None)));
            });
            for division in &DIVISIONS {
                let file = groups(&workload, division);
                group.bench_function(format!("quota, {}", division.name), |bencher| {
                    bencher.iter(|| black_box(replay(&workload, machines, placement, Some(&file))));
                });
            }
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1));
    targets = quota
}
criterion_main!(benches);
