//! Published rows, the runs that they need, and their comparison.

mod rows;
mod runs;
mod shockwave;
mod small;
mod solver;

pub use rows::{Filter, Row, read_rows};
pub use runs::{Runs, Simulation};
pub use shockwave::shockwave;
pub use small::hierarchical;
pub use solver::solver;

use std::collections::BTreeMap;
use std::io::Write;

/// The result of a group of comparisons.
#[derive(Default)]
pub struct Tally {
    /// Values within tolerance.
    pub inside: usize,
    /// Values outside.
    pub outside: usize,
    /// Values without a tolerance.
    pub free: usize,
    /// The largest deviations of values outside.
    pub worst: Worst,
}

/// The largest deviations, in units of their tolerance.
#[derive(Default)]
pub struct Worst(Vec<(f64, String)>);

impl std::fmt::Display for Worst {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: Vec<String> = self.0.iter().map(|(times, name)| format!("{name} ({times:.2} x)")).collect();
        out.write_str(if shown.is_empty() { "none outside" } else { "" })?;
        out.write_str(&shown.join("; "))
    }
}

impl Tally {
    /// Records a value with its tolerance and returns the verdict.
    pub fn add(&mut self, name: &str, ours: f64, published: f64, tolerance: Option<f64>) -> &'static str {
        let Some(tolerance) = tolerance else {
            self.free += 1;
            return "free";
        };
        let times = (ours - published).abs() / tolerance;
        if times <= 1.0 {
            self.inside += 1;
            return "ok";
        }
        self.outside += 1;
        self.worst.0.push((times, format!("{name}: {ours:.3} for {published:.3}")));
        self.worst.0.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.worst.0.truncate(6);
        "OUTSIDE"
    }
}

/// The load of a published mean: its ratio to the mean of the same policy at its lowest rate.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    Stable,
    Loaded,
    Saturated,
}

fn load(rows: &[Row], row: &Row, column: &str) -> Load {
    let same = |other: &&Row| {
        ["figure", "policy", "seed", "round_s", "ideal", "weight"].iter().all(|name| other.text(name) == row.text(name))
    };
    let by_rate = |a: &&Row, b: &&Row| a.number("jobs_per_hour").total_cmp(&b.number("jobs_per_hour"));
    let lowest = rows.iter().filter(same).min_by(by_rate).map_or(1.0, |row| row.number(column));
    match row.number(column) / lowest {
        ratio if ratio <= 1.25 => Load::Stable,
        ratio if ratio <= 2.5 => Load::Loaded,
        _ => Load::Saturated,
    }
}

fn stable_share(row: &Row) -> f64 {
    match row.text("policy") {
        "allox" => 0.05,
        "max_min_fairness_packed" if row.number("jobs_per_hour") < 2.8 => 0.12,
        _ => 0.03,
    }
}

/// Compares one group and writes a line per value.
pub fn compare(
    group: &str,
    rows: &[Row],
    runs: &Runs,
    tallies: &mut BTreeMap<String, Tally>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    for row in rows {
        let keys = Simulation::of_row(group, row);
        let label = keys.first().map(|key| key.label()).unwrap_or_default();
        let name = format!("{group} {} {label} seed {}", row.text("figure"), row.text("seed"));
        let mut values: Vec<(String, f64, f64, Option<f64>)> = Vec::new();
        match group {
            "continuous" | "mechanism" | "priorities" => {
                let weight = row.get("weight").map(|_| row.number("weight") as u32);
                let Some(ours) = runs.mean_h(&keys, weight) else { continue };
                let published = row.number("mean_jct_h");
                let sd = row.get("sd_h").and_then(|text| text.parse().ok()).unwrap_or(0.0f64);
                let tolerance = match load(rows, row, "mean_jct_h") {
                    Load::Stable => Some(stable_share(row) * published),
                    Load::Loaded => Some((0.1 * published).max(sd)),
                    Load::Saturated => None,
                };
                let suffix = weight.map_or_else(String::new, |weight| format!(" weight {weight}"));
                values.push((suffix, ours, published, tolerance));
            }
            "quantiles" => {
                let stable = load(rows, row, "p50_h") == Load::Stable && load(rows, row, "p90_h") == Load::Stable;
                let Some(ours) = runs.quantiles_h(&keys[0]) else { continue };
                for (at, column) in ["p10_h", "p25_h", "p50_h", "p75_h", "p90_h", "p95_h", "p99_h"].iter().enumerate() {
                    let published = row.number(column);
                    let share = if *column == "p99_h" { 0.1 } else { 0.05 };
                    let tolerance = stable.then_some((share * published).max(0.35));
                    values.push((format!(" {column}"), ours[at], published, tolerance));
                }
            }
            "ftf" => {
                let isolated = Simulation { policy: "isolated".to_owned(), ..keys[0].clone() };
                let Some(ours) = runs.mean_ratio(&keys[0], &isolated) else { continue };
                let stable = runs.is_steady(&keys[0]) && runs.is_steady(&isolated);
                values.push((String::new(), ours, row.number("mean_ratio_to_isolated"), stable.then_some(0.04)));
            }
            _ => {
                let Some(ours) = runs.makespan_h(&keys) else { continue };
                let published = row.number("makespan_h");
                let share = if row.text("figure") == "makespan" { 0.05 } else { 0.1 };
                let sd = if row.text("figure") == "makespan" { row.number("sd_h") } else { 0.0 };
                values.push((String::new(), ours, published, Some((share * published).max(sd))));
            }
        }
        for (suffix, ours, published, tolerance) in values {
            let figure = format!("{group} {}", row.text("figure"));
            let verdict =
                tallies.entry(figure).or_default().add(&format!("{name}{suffix}"), ours, published, tolerance);
            let change = 100.0 * (ours / published - 1.0);
            let seconds = runs.seconds(&keys);
            writeln!(
                out,
                "{name}{suffix}: published {published:.2}, ours {ours:.2} ({change:+.1} %), {verdict}, {seconds:.2} s"
            )?;
        }
    }
    Ok(())
}
