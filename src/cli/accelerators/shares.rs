//! `plimsoll solve` for a plan with a table `[accelerators]`: the fractions of time of each policy if all jobs of the first list are active at
//! time 0, with the rates that result and the properties that hold.

use plimsoll_rounds::mechanism::Targets;
use plimsoll_rounds::policies::{PolicyOptions, PolicyRow, RunFacts, View};
use plimsoll_rounds::properties::{
    ShareProperty, ShareViolation, entitled_rates, envies, fraction, job_rates, static_jobs, static_targets, violation,
};
use plimsoll_rounds::table::{Rates, TrainingJob};
use serde_json::{Map, Value as Json, json};

use super::super::printout::Printout;
use super::super::screen::{Alignment, Grid, paragraphs};
use super::super::{Context, Format};
use crate::error::{Error, Result, each};
use crate::experiment::accelerators::{AcceleratorSetup, AcceleratorStudy, policy_row};
use crate::tree::Place;

/// The relative tolerance of the stated properties.
const TOLERANCE: f64 = 1e-3;

/// The fractions of one policy.
struct PolicyShares {
    row: &'static PolicyRow,
    targets: Targets,
    rates: Vec<f64>,
    envies: Option<Vec<f64>>,
    /// Each property with its violation, or `None` if it holds; empty for policies with space sharing.
    properties: Vec<(ShareProperty, Option<ShareViolation>)>,
}

/// Solves the policies of a plan, or those of `names` if there are any, and prints the fractions.
///
/// Errors: those of the plan, an unknown policy, and those of the policies.
pub fn solve(text: &Place, names: &[String], format: Format, context: &Context) -> Result<()> {
    let setup = AcceleratorStudy::read_alone(text, &[])?.setup;
    let policies = match names {
        [] => setup.policies.clone(),
        names => each(names, |name| policy_row("--policy", name))?,
    };
    let jobs = setup.jobs(0, setup.rates.first().copied());
    let capacity = setup.cluster.capacity();
    let mut solved = Vec::new();
    let mut entitled = Vec::new();
    for row in policies {
        let rates = Rates::new(&setup.table, &jobs, &[], &setup.cluster.worker_types, row.packing)?;
        let active = static_jobs(&jobs, &rates);
        let view = View { now: crate::units::Time(0), jobs: &active, rates: &rates, capacity: &capacity };
        let facts = RunFacts { jobs: &jobs, rates: &rates, round: setup.options.round };
        match shares(&view, row, &setup.policy_options, &facts) {
            Ok(shares) => solved.push(shares),
            Err(error @ Error::Interrupted) => return Err(error),
            Err(error) if names.is_empty() => context.warn(&format!("no fractions under {}: {error}", row.name)),
            Err(error) => return Err(error),
        }
        entitled = entitled_rates(&view);
    }
    match format {
        Format::Json => {
            let value: Vec<Json> = solved.iter().map(|one| in_json(&setup, &jobs, &entitled, one)).collect();
            context.json(&Json::Array(value))
        }
        format => {
            let mut text = Printout::default();
            for (at, one) in solved.iter().enumerate() {
                text += format!("{}{}\n", if at > 0 { "\n" } else { "" }, one.row.name);
                text += grid(&setup, &jobs, &entitled, one);
                for line in sentences(one) {
                    text += paragraphs(&line);
                }
            }
            context.out(&text.render(format))
        }
    }
}

fn shares(
    view: &View<'_>,
    row: &'static PolicyRow,
    options: &PolicyOptions,
    facts: &RunFacts<'_>,
) -> Result<PolicyShares> {
    let targets = static_targets(view, row, options, Some(facts))?;
    let rates = job_rates(view, &targets);
    let alone = targets.pairs.iter().all(|&x| x == 0);
    let properties = if alone { ShareProperty::ALL.to_vec() } else { Vec::new() };
    let judged =
        |(_, property, _): (&str, ShareProperty, &str)| Ok((property, violation(view, &targets, property, TOLERANCE)?));
    let properties = properties.into_iter().map(judged).collect::<Result<_>>()?;
    let envies = alone.then(|| envies(view, &targets));
    Ok(PolicyShares { row, targets, rates, envies, properties })
}

/// Returns the fraction of a job's time on each worker type, pairs included.
fn time(targets: &Targets, jobs: usize, job: usize) -> Vec<f64> {
    let n = targets.types;
    let mut time: Vec<f64> = targets.alone[job * n..(job + 1) * n].iter().map(|&x| fraction(x)).collect();
    for other in (0..jobs).filter(|&other| other != job && !targets.pairs.is_empty()) {
        let at = Targets::pair_index(job.min(other), job.max(other)) * n;
        let pair = targets.pairs.get(at..at + n).unwrap_or_default();
        time.iter_mut().zip(pair).for_each(|(time, &x)| *time += fraction(x));
    }
    time
}

fn grid(setup: &AcceleratorSetup, jobs: &[TrainingJob], entitled: &[f64], one: &PolicyShares) -> Grid {
    let mut head = vec![("job".to_owned(), Alignment::Right), ("type".to_owned(), Alignment::Left)];
    let right = |name: &str| (name.to_owned(), Alignment::Right);
    head.push(right("scale"));
    head.extend(setup.cluster.worker_types.iter().map(|name| right(name)));
    head.extend([right("iterations/s"), right("of its part")]);
    head.extend(one.envies.as_ref().map(|_| right("envy")));
    let rows = jobs.iter().enumerate().map(|(at, job)| {
        let mut cells = vec![job.id.to_string(), job.job_type.clone(), job.scale.to_string()];
        cells.extend(time(&one.targets, jobs.len(), at).iter().map(|x| format!("{x:.4}")));
        cells.push(format!("{:.4}", one.rates[at]));
        cells.push(format!("{:.4}", one.rates[at] / entitled[at]));
        cells.extend(one.envies.as_ref().map(|envies| format!("{:.4}", envies[at])));
        cells
    });
    Grid::new(head, rows.collect())
}

fn sentences(one: &PolicyShares) -> Vec<String> {
    let line = |(property, violation): &(ShareProperty, Option<ShareViolation>)| match violation {
        None => format!("{}: holds", property.title()),
        Some(violation) => format!("{}: fails; {}", property.title(), violation.sentence),
    };
    one.properties.iter().map(line).collect()
}

fn in_json(setup: &AcceleratorSetup, jobs: &[TrainingJob], entitled: &[f64], one: &PolicyShares) -> Json {
    let rows = jobs.iter().enumerate().map(|(at, job)| {
        let types = setup.cluster.worker_types.iter().zip(time(&one.targets, jobs.len(), at));
        let fractions: Map<String, Json> = types.map(|(name, x)| (name.clone(), json!(x))).collect();
        json!({ "job": job.id, "job_type": job.job_type, "scale_factor": job.scale, "fractions": fractions,
                "iterations_per_s": one.rates[at], "entitled_iterations_per_s": entitled[at],
                "envy": one.envies.as_ref().map(|envies| envies[at]) })
    });
    let properties = one.properties.iter().map(|(property, violation)| {
        let value = match violation {
            None => json!({ "holds": true }),
            Some(violation) => json!({ "holds": false, "amount": violation.amount, "violation": violation.sentence }),
        };
        (property.name().to_owned(), value)
    });
    let properties: Map<String, Json> = properties.collect();
    json!({ "policy": one.row.name, "jobs": rows.collect::<Vec<_>>(), "properties": properties })
}
