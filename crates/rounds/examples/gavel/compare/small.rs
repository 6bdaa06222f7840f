//! Figure 11: hierarchical policies on a static list of jobs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use plimsoll_base::units::Time;
use plimsoll_rounds::policies::{ActiveJob, Bottlenecks, View, Within, proportional_rates, water_fill};
use plimsoll_rounds::table::Rates;

use super::{Filter, Row, Tally, read_rows};

/// Compares the levels of hierarchical policies with true throughputs.
///
/// FIFO inside: within 0.0015 under the published rule. Fairness inside: the published values are any optimum above their bounds, so the
/// smallest published level / weight is compared with the optimum (0.004), and each value with its bound.
pub fn hierarchical(
    gavel: &Path,
    tallies: &mut BTreeMap<String, Tally>,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let all = Filter::default();
    let jobs = read_rows(&gavel.join("hierarchical_jobs.csv"), &all)?;
    let published = read_rows(&gavel.join("results_hierarchical.csv"), &all)?;
    for within in ["fairness", "fifo"] {
        for kind in ["random", "measured"] {
            let listed: Vec<&Row> = jobs.iter().filter(|row| row.text("throughputs") == kind).collect();
            for count in 1..=listed.len() {
                let of_size = |row: &&Row| {
                    row.text("within_entity") == within
                        && row.text("throughputs") == kind
                        && row.text("jobs") == count.to_string()
                };
                let expected: Vec<&Row> = published.iter().filter(of_size).collect();
                if expected.is_empty() {
                    continue;
                }
                one(&listed[..count], &expected, within, kind, tallies, out)?;
            }
        }
    }
    Ok(())
}

fn one(
    listed: &[&Row],
    expected: &[&Row],
    within: &str,
    kind: &str,
    tallies: &mut BTreeMap<String, Tally>,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let rows: Vec<[f64; 3]> = listed.iter().map(|row| ["v100", "p100", "k80"].map(|name| row.number(name))).collect();
    let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
    let rates = Rates::from_rows(&rows)?;
    let fifo = within == "fifo";
    let job = |(at, row): (usize, &&Row)| ActiveJob {
        id: at as u32,
        kind: at as u32,
        scale: 1,
        weight: 1,
        entity: row.number("entity") as u32,
        arrival: Time(0),
        remaining: 1_000_000,
        done: 0,
        deadline: None,
    };
    let jobs: Vec<ActiveJob> = listed.iter().enumerate().map(job).collect();
    let weights: Vec<f64> = listed.iter().map(|row| if fifo { 1.0 } else { row.number("job_weight") }).collect();
    let entities: BTreeMap<u32, f64> =
        listed.iter().map(|row| (row.number("entity") as u32, row.number("entity_weight"))).collect();
    let entity_weight = |entity: u32| entities.get(&entity).copied().unwrap_or(1.0);
    let view = View { now: Time(0), jobs: &jobs, rates: &rates, capacity: &[3, 3, 3] };
    let rule = if fifo { Within::Fifo } else { Within::Fair };
    for (column, aware) in [("aware", true), ("agnostic", false)] {
        let (fractions, level) = water_fill(&view, aware, rule, &weights, &entity_weight, Bottlenecks::Published)?;
        let name = format!("hierarchical {within} {column}");
        let tally = tallies.entry(name.clone()).or_default();
        let norm = proportional_rates(&view);
        let own = |at: usize| -> f64 {
            (0..3).map(|j| fractions.alone[at * 3 + j] * rates.alone(at as u32)[j].per_s).sum::<f64>() / norm[at]
        };
        for row in expected {
            let at = row.number("job") as usize;
            let value = row.number(column);
            let label = format!("{name} {kind} {} jobs, job {at}", jobs.len());
            let verdict = match (fifo, aware) {
                (true, true) => tally.add(&label, level[at], value, Some(0.0015)),
                // Levels are lower bounds of the published values.
                (false, true) if value >= level[at] - 0.0015 => tally.add(&label, value, value, Some(0.0015)),
                (false, true) => tally.add(&label, level[at], value, Some(0.0015)),
                (_, false) => tally.add(&label, own(at), value, None),
            };
            writeln!(out, "{label}: published {value:.3}, bound {:.3}, true {:.3}, {verdict}", level[at], own(at))?;
        }
        if !fifo && aware {
            let ratio = |row: &&Row| row.number(column) / level[row.number("job") as usize];
            let least = expected.iter().map(ratio).fold(f64::INFINITY, f64::min);
            let label = format!("{name} {kind} {} jobs, least published level / bound", jobs.len());
            let verdict = tally.add(&label, 1.0, least, Some(0.004));
            writeln!(out, "{label}: {least:.4}, {verdict}")?;
        }
    }
    Ok(())
}
