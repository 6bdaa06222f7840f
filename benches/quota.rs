//! Quota groups against DRF on one workload: one user a group, requests change at every start and end of a task.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Options};
use plimsoll::policy::{Policy, PolicySpec, Quota, QuotaFile, Setup};
use plimsoll::record::Recorder;
use plimsoll::workload::synthetic::{Generated, Generator};
use plimsoll::workload::{Source, Workload};

const TASKS: usize = 500_000;

/// 28.6 tasks a second of 298 s and 2.7 cores (10.8 GiB): of 25,600 cores 0.9, of 21,000 cores more than there are.
fn workload(users: u32) -> Workload {
    let plan = format!(
        r#"
generator = "synthetic"
jobs = {TASKS}
arrival = {{ distribution = "exponential", mean = 0.034922 }}
[[class]]
name = "user"
users = {users}
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

/// A group a user, half with a minimum; with `parents` above them, so that each has about as many groups.
fn groups(workload: &Workload, users: u32, parents: usize, reclaim: &str) -> QuotaFile {
    let mut text = format!("reclaim = '{reclaim}'\n");
    for parent in 0..parents {
        text += &format!("[[group]]\nname = 'parent {parent}'\nmin = {{ cpu = {users} }}\n");
    }
    for user in 0..users {
        let (name, ratio) = (workload.users.name(user), 1 + user % 4);
        text += &format!("[[group]]\nname = 'group {user}'\nusers = ['{name}']\nratio = {ratio}\n");
        if user % 2 == 0 {
            text += "min = { cpu = 1 }\n";
        }
        if parents > 0 {
            text += &format!("parent = 'parent {}'\n", user as usize % parents);
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
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines, weights: &weights };
    let mut policy: Box<dyn Policy> = match file {
        Some(file) => Box::new(Quota::new(file, &setup).expect("a policy")),
        None => PolicySpec::Drf.build(&setup).expect("a policy"),
    };
    let options = Options { placement, ..Options::default() };
    let outcome = engine::run(&mut source, &mut *policy, &cluster, weights.clone(), &options, &mut Silent);
    outcome.expect("a run").launched
}

fn quota(criterion: &mut Criterion) {
    let users = 10_000;
    let workload = workload(users);
    for (load, machines) in [("load 0.9", "400x64c256g"), ("load 1.1", "328x64c256g")] {
        for (place, placement) in [("pooled", Placement::Pooled), ("first-fit", Placement::FirstFit)] {
            let mut group = criterion.benchmark_group(format!("quota/{users} groups/{load}/{place}"));
            group.sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(TASKS as u64));
            group.bench_function("drf", |bencher| {
                bencher.iter(|| black_box(replay(&workload, machines, placement, None)));
            });
            for (tree, parents) in [("flat", 0), ("100 parents", 100)] {
                for reclaim in ["wait", "never"] {
                    let file = groups(&workload, users, parents, reclaim);
                    group.bench_function(format!("quota, {tree}, {reclaim}"), |bencher| {
                        bencher.iter(|| black_box(replay(&workload, machines, placement, Some(&file))));
                    });
                }
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
