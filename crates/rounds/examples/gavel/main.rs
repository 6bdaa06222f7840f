//! Prints published numbers of Gavel beside those of this crate.
//!
//! `cargo run --release -p plimsoll-rounds --example gavel -- [GROUP]... [key=value]...`
//!
//! Groups: continuous, quantiles, ftf, mechanism, priorities, makespan, hierarchical, shockwave, solver (default: all). Keys restrict the rows:
//! `policy=NAME`, `figure=NAME`, `rate=JOBS_PER_HOUR`, `seed=0`, `jobs=N` (of `solver`); `threads=N` (2). Tolerances: `rounds.md` of the shared reference, 4.2.
//! The data are read from `PLIMSOLL_SHARED_DATA` or `../shared/data` beside the repository.

mod compare;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use compare::{Filter, Row, Runs, Simulation, Tally, read_rows};

fn main() {
    if let Err(error) = run() {
        let _ = writeln!(std::io::stderr(), "{error}");
        std::process::exit(2);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let filter = Filter::from_arguments(std::env::args().skip(1));
    let data = std::env::var_os("PLIMSOLL_SHARED_DATA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")), PathBuf::from)
        .join("published");
    let begin = Instant::now();
    let gavel = data.join("gavel");
    let mut out = std::io::stdout().lock();
    let has = |group: &str| filter.groups.is_empty() || filter.groups.iter().any(|name| name == group);
    let mut tallies = BTreeMap::new();

    let mut keys = Vec::new();
    let continuous = read_rows(&gavel.join("results_continuous.csv"), &filter)?;
    let quantiles = read_rows(&gavel.join("results_quantiles.csv"), &filter)?;
    let ratios = read_rows(&gavel.join("results_ftf_ratio.csv"), &filter)?;
    let mechanism = read_rows(&gavel.join("results_mechanism.csv"), &filter)?;
    let priorities = read_rows(&gavel.join("results_priorities.csv"), &filter)?;
    let makespans = read_rows(&gavel.join("results_makespan.csv"), &filter)?;
    for (group, rows) in [
        ("continuous", &continuous),
        ("quantiles", &quantiles),
        ("mechanism", &mechanism),
        ("priorities", &priorities),
        ("makespan", &makespans),
    ] {
        if has(group) {
            rows.iter().for_each(|row| keys.extend(Simulation::of_row(group, row)));
        }
    }
    if has("ftf") {
        for row in &ratios {
            for key in Simulation::of_row("ftf", row) {
                keys.push(Simulation { policy: "isolated".to_owned(), ..key.clone() });
                keys.push(key);
            }
        }
    }
    let runs = Runs::compute(&gavel, keys, filter.threads)?;
    let groups: [(&str, &[Row]); 6] = [
        ("continuous", &continuous),
        ("quantiles", &quantiles),
        ("ftf", &ratios),
        ("mechanism", &mechanism),
        ("priorities", &priorities),
        ("makespan", &makespans),
    ];
    for (group, rows) in groups {
        if has(group) {
            compare::compare(group, rows, &runs, &mut tallies, &mut out)?;
        }
    }
    if has("hierarchical") {
        compare::hierarchical(&gavel, &mut tallies, &mut out)?;
    }
    if has("shockwave") {
        compare::shockwave(&data.join("shockwave"), &filter, &mut tallies, &mut out)?;
    }
    if has("solver") {
        compare::solver(&filter, &mut out)?;
    }
    runs.write_times(&mut out)?;
    for (group, tally) in &tallies {
        let Tally { inside, outside, free, worst } = tally;
        writeln!(
            out,
            "{group}: {inside} of {} within tolerance, {free} without a tolerance; worst {worst}",
            inside + outside
        )?;
    }
    writeln!(out, "{:.1} s on {} threads", begin.elapsed().as_secs_f64(), filter.threads)?;
    Ok(())
}
