//! Compares stranded capacity with its definition, which is recomputed machine by machine from all tasks of the reference implementation.
//! The cases are random, with labels, places, devices, reserved room, and machines that fail, leave, join and are relabelled.

use plimsoll::output::schema::partition;

use crate::frame::Frame;
use crate::replay::{run, said};
use crate::slow::{Policy, stranded};
use crate::twin::{command, write};
use crate::workloads::{Case, RESOURCES, policy_name};

/// The rows of the `fairness` table: at each time, the stranded part of every resource as a share of the cluster.
type Rows = Vec<(u64, Vec<Option<f64>>)>;

/// Replays a case under one policy with a sample at every instant.
fn replayed(case: &Case, resources: usize) -> Rows {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(case, dir.path());
    let output = run(command(case, dir.path()).args(["--series", "--sample", "1us"]));
    // If no task ever starts, the run fails, but it writes its tables.
    assert!(output.status.success() || said(&output).contains("no task"), "{}", said(&output));
    let folder = dir.path().join("out/fairness").join(format!("policy={}", partition(&policy_name(case.policies[0]))));
    let table = Frame::open(&folder.join("run=0/fairness.parquet"));
    let stranded: Vec<Vec<Option<f64>>> =
        (0..resources).map(|at| table.numbers(&format!("stranded_{}", RESOURCES[at]))).collect();
    let times = table.numbers("time_us").into_iter().enumerate();
    times.map(|(row, at)| (at.expect("a time") as u64, stranded.iter().map(|column| column[row]).collect())).collect()
}

#[test]
fn stranded_capacity_is_as_defined() {
    let (mut compared, mut some, mut scoped) = (0, 0, 0);
    for seed in 0..330 {
        let mut case = [Case::placed, Case::urgent, Case::hoarding, Case::devices][seed as usize % 4](seed);
        // A policy of slots has no stranded capacity.
        let Some(policy) = case.policies.iter().copied().find(|policy| !matches!(policy, Policy::Slot(_))) else {
            continue;
        };
        case.policies = vec![policy];
        let world = case.world(policy);
        let slow = |blind: bool| stranded(&case.rows, &world, blind);
        let (Ok(expected), Ok(blind)) = (slow(false), slow(true)) else { continue };
        let machines = &world.machines;
        let capacity: Vec<u64> =
            (0..machines[0].len()).map(|d| machines.iter().map(|machine| machine[d]).sum()).collect();
        for (at, found) in replayed(&case, capacity.len()) {
            let last = expected.iter().rposition(|(instant, _)| *instant <= at);
            let (free, unlike) = match last {
                Some(last) => (expected[last].1.clone(), expected[last].1 != blind[last].1),
                None => (None, false),
            };
            let share = |d: usize, free: u64| if capacity[d] == 0 { 0.0 } else { free as f64 / capacity[d] as f64 };
            let wanted = |d: usize| free.as_ref().map(|free| share(d, free[d]));
            let wanted: Vec<Option<f64>> = (0..capacity.len()).map(wanted).collect();
            let text = || format!("{}\n{}\n{:?}", case.csv(), case.machines_csv(), case.machine_events());
            assert_eq!(found, wanted, "seed {seed} at {at}: {:?}\n{}", case.policies, text());
            compared += 1;
            some += usize::from(wanted.iter().flatten().any(|share| *share > 0.0));
            scoped += usize::from(unlike);
        }
    }
    assert!(
        compared > 5_000 && some > 1_000 && scoped > 200,
        "too easy: {compared} states, {some} with stranded capacity, {scoped} in which labels or places matter"
    );
}
