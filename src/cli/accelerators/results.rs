//! The results of a plan with accelerators: tables, figures, the report and the printed summary.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::super::printout::Printout;
use super::super::screen::{Alignment, Grid};
use super::super::{Context, Format};
use super::{AcceleratorPlan, Completed};
use crate::column::TableRow;
use crate::error::Result;
use crate::output::figure::{Axis, Chart, Data, Join, Panel, Series, cdf, ecdf, lines};
use crate::output::file::WrittenFile;
use crate::output::gallery::Drawn;
use crate::output::html::{HtmlColumn, HtmlTable};
use crate::output::numbers::with_half;
use crate::output::schema::{AcceleratorJob, AcceleratorRun, AcceleratorType, Writer};
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Interval, mean_interval};

/// Writes all files of the results, and prints the summary.
pub(super) fn write(
    plan: &AcceleratorPlan,
    runs: &[Completed],
    (folder, started): (&Path, Instant),
    format: Format,
    context: &Context,
) -> Result<()> {
    let rows: Vec<AcceleratorRun> = runs.iter().map(|run| row(plan, run)).collect();
    let made = vec![
        table(plan, folder, |table: &mut Writer<AcceleratorRun>| rows.iter().try_for_each(|row| table.push(row)))?,
        table(plan, folder, |table: &mut Writer<AcceleratorType>| {
            runs.iter().try_for_each(|run| types(plan, run).iter().try_for_each(|of| table.push(of)))
        })?,
        table(plan, folder, |table: &mut Writer<AcceleratorJob>| {
            runs.iter().try_for_each(|run| jobs(plan, run).iter().try_for_each(|job| table.push(job)))
        })?,
    ];
    let (head, body) = summary(plan, &rows);
    match format {
        Format::Json => {
            let values = rows.iter().map(|row| {
                json!({ "policy": row.policy, "jobs_per_hour": row.jobs_per_hour, "run": row.run, "jobs": row.jobs,
                        "completion_mean_s": row.completion[0], "makespan_s": row.makespan_s,
                        "utilisation": row.utilisation, "unstable": row.unstable })
            });
            context.json(&serde_json::Value::Array(values.collect()))?;
        }
        format => {
            let header = head
                .iter()
                .enumerate()
                .map(|(at, name)| (name.clone(), if at < 1 { Alignment::Left } else { Alignment::Right }));
            let grid = Grid::new(header.collect(), body.clone());
            context.out(&Printout::from(grid).render(format))?;
        }
    }
    let unstable = rows.iter().filter(|row| row.unstable).count();
    if unstable > 0 {
        context.print_message(&format!(
            "in {unstable} of {} runs the number of active jobs grew until the end: their means depend on the window",
            rows.len()
        ));
    }
    let column =
        |(at, name): (usize, &String)| HtmlColumn { name: name.clone(), numeric: at >= 1, ..HtmlColumn::default() };
    let sheet = HtmlTable {
        caption: "Means over the lists of jobs with the half-widths of their 95 % confidence intervals".to_owned(),
        columns: head.iter().enumerate().map(column).collect(),
        rows: body,
        ..HtmlTable::default()
    };
    plan.about.report(folder, (figures(plan, &rows, runs), made), vec![sheet], (context, started))
}

/// Writes the table with rows of type `R`; returns its file.
fn table<R: TableRow>(
    plan: &AcceleratorPlan,
    folder: &Path,
    fill: impl FnOnce(&mut Writer<R>) -> Result<()>,
) -> Result<WrittenFile> {
    let mut writer = Writer::create(&folder.join(format!("{}.parquet", R::TABLE)), plan.about.provenance().pairs())?;
    fill(&mut writer)?;
    writer.complete()?.place()
}

fn row(plan: &AcceleratorPlan, run: &Completed) -> AcceleratorRun {
    let summary = &run.summary;
    let [_, _, p50, _, p90, _, p99] = summary.quantiles_s;
    let accelerators = plan.setup.cluster.capacity().iter().sum();
    let rho = run.jobs.iter().all(|job| job.exclusive.is_some()).then(|| run.outcome.rho(&run.jobs, accelerators));
    AcceleratorRun {
        policy: plan.setup.policies[run.index.policy].name.to_owned(),
        jobs_per_hour: run.index.rate.map(|rate| rate as f64 / 1000.0),
        run: run.index.run as u64,
        jobs: summary.completed as u64,
        completion: [summary.mean_jct_s, summary.sd_jct_s],
        quantiles: [p50, p90, p99],
        makespan_s: summary.makespan_s,
        utilisation: summary.mean_utilisation,
        counts: [run.outcome.rounds, run.outcome.resets, summary.preemptions],
        lease_extension: summary.lease_extension,
        lost_s: summary.lost_s,
        rho: rho.map(|rho| [rho.worst, rho.above_1_05, rho.above_1_1]),
        unstable: summary.unstable,
        paused_s: summary.paused_s,
        envy: run.outcome.envy.map(|envy| [envy.mean, envy.share]),
        plan_gap: summary.plan_gap,
    }
}

fn types(plan: &AcceleratorPlan, run: &Completed) -> Vec<AcceleratorType> {
    let cluster = &plan.setup.cluster;
    let seconds = |micros: u64| crate::units::Span(micros).seconds();
    let one = |(j, accelerators): (usize, u32)| AcceleratorType {
        policy: plan.setup.policies[run.index.policy].name.to_owned(),
        jobs_per_hour: run.index.rate.map(|rate| rate as f64 / 1000.0),
        run: run.index.run as u64,
        worker_type: cluster.worker_types[j].clone(),
        accelerators: accelerators.into(),
        busy_s: [seconds(run.outcome.busy[j]), seconds(run.outcome.overhead[j])],
        utilisation: run.summary.utilisation[j],
    };
    cluster.capacity().into_iter().enumerate().map(one).collect()
}

fn jobs(plan: &AcceleratorPlan, run: &Completed) -> Vec<AcceleratorJob> {
    let effective = run.outcome.effective_throughput();
    let one = |(job, outcome): (&plimsoll_rounds::table::TrainingJob, &plimsoll_rounds::simulate::JobOutcome)| {
        AcceleratorJob {
            policy: plan.setup.policies[run.index.policy].name.to_owned(),
            jobs_per_hour: run.index.rate.map(|rate| rate as f64 / 1000.0),
            run: run.index.run as u64,
            job: job.id.into(),
            job_type: job.job_type.clone(),
            times: [Some(outcome.arrival.0), outcome.start.map(|at| at.0), outcome.completion.map(|at| at.0)],
            ran: outcome.time.iter().map(|span| span.0).sum(),
            counts: [outcome.rounds.into(), outcome.preemptions.into(), outcome.leases.into()],
            paused: outcome.paused.0,
            effective: effective[job.id as usize],
        }
    };
    // Jobs that arrive after the end of the run are absent.
    run.jobs.iter().zip(&run.outcome.jobs).filter(|(_, outcome)| outcome.arrival <= run.outcome.end).map(one).collect()
}

/// Returns the mean over the lists of jobs, and its confidence interval.
fn mean(rows: &[&AcceleratorRun], value: impl Fn(&AcceleratorRun) -> f64) -> Option<Interval> {
    let values: Vec<f64> = rows.iter().map(|row| value(row)).filter(|value| value.is_finite()).collect();
    mean_interval(&values, LEVEL)
}

/// Groups the runs of each policy and rate.
fn groups(rows: &[AcceleratorRun]) -> Vec<Vec<&AcceleratorRun>> {
    let same = |a: &AcceleratorRun, b: &AcceleratorRun| (&a.policy, a.jobs_per_hour) == (&b.policy, b.jobs_per_hour);
    rows.chunk_by(same).map(|group| group.iter().collect()).collect()
}

/// Returns the heading and the rows of the summary.
fn summary(plan: &AcceleratorPlan, rows: &[AcceleratorRun]) -> (Vec<String>, Vec<Vec<String>>) {
    let has_rho = rows.iter().any(|row| row.rho.is_some());
    let mut head = vec!["policy"];
    if !plan.setup.rates.is_empty() {
        head.push("jobs/h");
    }
    head.extend(["mean completion (h)", "p50 (h)", "p99 (h)", "makespan (h)", "utilisation"]);
    if plan.setup.options.overhead.lost.0 > 0 {
        head.push("lost (h)");
    }
    if has_rho {
        head.extend(["worst rho", "rho > 1.05", "rho > 1.1"]);
    }
    let body = groups(rows).into_iter().map(|group| {
        let hours = |value: fn(&AcceleratorRun) -> f64| with_half(mean(&group, |row| value(row) / 3600.0));
        let mut cells = vec![group[0].policy.clone()];
        cells.extend(group[0].jobs_per_hour.map(|rate| rate.to_string()));
        cells.extend([
            hours(|row| row.completion[0]),
            hours(|row| row.quantiles[0]),
            hours(|row| row.quantiles[2]),
            hours(|row| row.makespan_s),
            with_half(mean(&group, |row| row.utilisation)),
        ]);
        if plan.setup.options.overhead.lost.0 > 0 {
            cells.push(hours(|row| row.lost_s));
        }
        if has_rho {
            cells.extend((0..3).map(|at| with_half(mean(&group, |row| row.rho.map_or(f64::NAN, |rho| rho[at])))));
        }
        cells
    });
    (head.into_iter().map(str::to_owned).collect(), body.collect())
}

/// Returns the figures: completion times by rate if there are several rates, and the distribution of completion times at the first rate.
fn figures(plan: &AcceleratorPlan, rows: &[AcceleratorRun], runs: &[Completed]) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    let chart =
        |x: Axis, y: Axis| plan.about.paper.fit(Chart { size_pt: (Chart::PAGE.0, 190.0), ..Chart::new(x, y) }, 1);
    if plan.setup.rates.len() > 1 {
        let curves: Vec<Series> = plan
            .setup
            .policies
            .iter()
            .map(|policy| {
                let of_policy: Vec<_> =
                    groups(rows).into_iter().filter(|group| group[0].policy == policy.name).collect();
                let point = |group: &Vec<&AcceleratorRun>| {
                    let mean = mean(group, |row| row.completion[0])?;
                    Some((group[0].jobs_per_hour?, mean))
                };
                let points: Vec<(f64, Interval)> = of_policy.iter().filter_map(point).collect();
                let band = points.iter().map(|(x, mean)| Some((*x, mean.low?, mean.high?))).collect::<Option<Vec<_>>>();
                Series { band, ..Series::new(policy.name, points.iter().map(|(x, mean)| (*x, mean.mean)).collect()) }
            })
            .collect();
        let panel = Panel { title: String::new(), series: curves.clone() };
        drawn.push(Drawn {
            name: "completion-by-rate".to_owned(),
            caption: "Mean completion time of the measured jobs by the rate of arrivals, with 95 % confidence intervals over the \
                      lists of jobs."
                .to_owned(),
            svg: lines(&chart(Axis::number("Jobs per hour"), Axis::seconds("Mean completion time")), Join::Straight, &curves),
            data: Data::of_panels(["", "policy", "jobs_per_hour", "completion_mean_s"], &[panel]),
        });
    }
    let first = plan.setup.rates.first().copied();
    let curves: Vec<Series> = plan
        .setup
        .policies
        .iter()
        .enumerate()
        .map(|(at, policy)| {
            let own = runs.iter().filter(|run| run.index.policy == at && run.index.rate == first);
            let times: Vec<f64> = own
                .flat_map(|run| {
                    let all = plimsoll_rounds::simulate::JobWindow { from: 0, to: run.jobs.len() as u32 };
                    run.outcome.completion_times(plan.setup.window.unwrap_or(all))
                })
                .collect();
            Series::new(policy.name, ecdf(&times))
        })
        .collect();
    let panel = Panel { title: String::new(), series: curves.clone() };
    let at = first.map(|rate| format!(" at {} jobs per hour", rate as f64 / 1000.0)).unwrap_or_default();
    drawn.push(Drawn {
        name: "completion".to_owned(),
        caption: format!("Distribution of the completion times of the measured jobs{at}."),
        svg: cdf(&chart(Axis::seconds("Completion time").log(), Axis::fraction("Jobs")), &curves),
        data: Data::of_panels(["", "policy", "completion_s", "jobs"], &[panel]),
    });
    drawn
}
