//! Shockwave's comparison of policies on 32 GPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use plimsoll_rounds::mechanism::{Cluster, Options};
use plimsoll_rounds::policies::{PolicyOptions, policy};
use plimsoll_rounds::simulate::{JobWindow, RoundOutcome, RoundSetup, simulate};
use plimsoll_rounds::table::{Arrivals, JobOptions, Throughputs, read_jobs};

use super::{Filter, Row, Tally, read_rows};

/// The tolerances of a policy: makespan, mean completion time, worst rho (relative); points; utilisation and leases (absolute).
fn tolerances(policy: &str, simulated: bool) -> [Option<f64>; 6] {
    match (policy, simulated) {
        (_, false) => [Some(0.1), Some(0.1), Some(0.25), Some(8.0), None, None],
        ("min_total_duration", true) => [Some(0.05), Some(0.1), Some(0.2), Some(8.0), Some(0.02), Some(5.0)],
        ("shockwave", true) => [Some(0.05), Some(0.05), Some(0.2), Some(5.0), Some(0.02), Some(5.0)],
        _ => [Some(0.02), Some(0.03), Some(0.15), Some(3.0), Some(0.02), Some(5.0)],
    }
}

/// Compares the summaries of policies, completion times of jobs and schedules.
pub fn shockwave(
    folder: &Path,
    filter: &Filter,
    tallies: &mut BTreeMap<String, Tally>,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let table = Throughputs::read(&folder.join("throughputs.csv"), Some(("cluster", "tacc")))?;
    let options = JobOptions { arrivals: Arrivals::Seconds, reference: "v100", single: false, at_most: usize::MAX };
    let jobs = read_jobs(&folder.join("trace_120.csv"), &table, &options)?;
    let cluster = Cluster::single(&["v100"], &[32]);
    let summaries = read_rows(&folder.join("results_summary.csv"), filter)?;
    let per_job = read_rows(&folder.join("results_jobs.csv"), filter)?;
    let rounds = read_rows(&folder.join("results_rounds.csv"), filter)?;
    let names: BTreeSet<&str> = summaries.iter().map(|row| row.text("policy")).collect();
    for name in names {
        let Ok(row) = policy(name) else {
            writeln!(out, "shockwave {name}: not implemented")?;
            continue;
        };
        let setup = RoundSetup {
            jobs: &jobs,
            table: &table,
            cluster: &cluster,
            options: Options::shockwave(),
            policy: PolicyOptions::default(),
            window: None,
            log_rounds: true,
        };
        let begin = std::time::Instant::now();
        let outcome = simulate(&setup, row)?;
        let seconds = begin.elapsed().as_secs_f64();
        let summary = outcome.summary(&cluster, JobWindow { from: 0, to: jobs.len() as u32 });
        let rho = outcome.rho(&jobs, 32);
        for published in summaries.iter().filter(|row| row.text("policy") == name) {
            let setting = published.text("setting");
            let limits = tolerances(name, setting == "simulated");
            let values = [
                ("makespan_s", summary.makespan_s, 0),
                ("mean_jct_s", summary.mean_jct_s, 1),
                ("worst_rho", rho.worst, 2),
                ("unfair_pct_1_05", 100.0 * rho.above_1_05, 3),
                ("unfair_pct_1_1", 100.0 * rho.above_1_1, 3),
                // The published utilisation excludes the overhead.
                ("utilisation", summary.useful_utilisation, 4),
                ("lease_extension_pct", 100.0 * summary.lease_extension, 5),
            ];
            for (column, ours, limit) in values {
                let value = published.number(column);
                let tolerance = limits[limit].map(|share| if limit < 3 { share * value } else { share });
                let label = format!("{name} {setting} {column}");
                let tally = tallies.entry(format!("shockwave {setting}")).or_default();
                let verdict = tally.add(&label, ours, value, tolerance);
                writeln!(out, "shockwave {label}: published {value:.4}, ours {ours:.4}, {verdict}, {seconds:.2} s")?;
            }
        }
        if !outcome.plans.is_empty() {
            let gaps: Vec<f64> =
                outcome.plans.iter().map(|(value, bound)| (bound - value) / bound.abs().max(1e-9)).collect();
            let exact = gaps.iter().filter(|gap| **gap <= 1e-12).count();
            let (mean, most) = (gaps.iter().sum::<f64>() / gaps.len() as f64, gaps.iter().copied().fold(0.0, f64::max));
            writeln!(
                out,
                "shockwave {name}: {exact} of {} plans optimal, gap {mean:.1e} (mean), {most:.1e}",
                gaps.len()
            )?;
        }
        let simulated = |row: &&Row| row.text("policy") == name && row.text("setting") == "simulated";
        let own_jobs: Vec<&Row> = per_job.iter().filter(simulated).collect();
        let own_rounds: Vec<&Row> = rounds.iter().filter(simulated).collect();
        jobs_and_rounds(name, &outcome, &own_jobs, &own_rounds, out)?;
    }
    Ok(())
}

/// Compares completion times of jobs and the jobs of each round.
fn jobs_and_rounds(
    name: &str,
    outcome: &RoundOutcome,
    jobs: &[&Row],
    rounds: &[&Row],
    out: &mut impl Write,
) -> std::io::Result<()> {
    let difference = |row: &&Row| {
        let job = &outcome.jobs[row.number("job") as usize];
        let own = job.completion?.since(job.arrival).seconds();
        Some((own / row.number("jct_s") - 1.0).abs())
    };
    let mut differences: Vec<f64> = jobs.iter().filter_map(difference).collect();
    differences.sort_by(f64::total_cmp);
    let at = |share: f64| differences.get((share * differences.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    let overlap = |(row, own): (&&Row, &Vec<u32>)| {
        let listed: BTreeSet<u32> = row.text("jobs").split_whitespace().filter_map(|id| id.parse().ok()).collect();
        let own: BTreeSet<u32> = own.iter().copied().collect();
        listed.intersection(&own).count() as f64 / listed.union(&own).count().max(1) as f64
    };
    let overlaps: Vec<f64> = rounds.iter().zip(&outcome.schedule).map(overlap).collect();
    let mean = overlaps.iter().sum::<f64>() / overlaps.len().max(1) as f64;
    let (median, high) = (100.0 * at(0.5), 100.0 * at(0.9));
    let count = overlaps.len();
    writeln!(
        out,
        "shockwave {name} simulated: completion times differ by {median:.1} % (median), {high:.1} % (p90); mean Jaccard index of {count} rounds {mean:.3}"
    )
}
