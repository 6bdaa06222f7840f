//! `plimsoll trace validate`: reads a whole file and reports its content and its problems.

use std::path::PathBuf;

use serde_json::json;

use super::load::{self, ResourceLoad};
use super::{Opened, RowOptions, figures, report};
use crate::cli::printout::Printout;
use crate::cli::screen::paragraphs;
use crate::cli::{Context, Format};
use crate::error::{Error, Result};
use crate::units::{Dim, Time, Unit};
use crate::workload::curves::curves;
use crate::workload::inspect::{WorkloadFindings, inspect};
use crate::workload::profile::{Profile, profile};
use crate::workload::summary::{Summary, summarise};

/// Read a whole trace and report the rows that were read, dropped, repaired and assumed
#[derive(clap::Args, Debug)]
#[command(after_help = "When the file cannot be read as its format, the exit code is 2, and the message
names file, line and column.

Examples:
  plimsoll trace validate trace.csv
  plimsoll trace validate trace.parquet --machines 400x16c32g
  plimsoll trace validate batch_task.csv --from alibaba-2017 \\
      --machines 1300x64c1norm --figure figures
  plimsoll trace validate NASA-iPSC-1993-3.1-cln.swf --format json")]
pub struct Args {
    /// A canonical trace or a file in a public format, or - for standard input
    file: PathBuf,
    /// How to print the report
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    rows: RowOptions,
    /// Compare demand with the capacity of these machines: 400x16c32g, or a .csv
    #[arg(long, value_name = "SPEC")]
    machines: Option<String>,
    /// Draw arrivals, users, demand over time and durations into this folder
    #[arg(long, value_name = "FOLDER")]
    figure: Option<PathBuf>,
}

/// The load of the proposed cluster.
const LOAD: f64 = 0.7;

/// The findings about a file.
struct Report<'a> {
    opened: &'a Opened,
    summary: Summary,
    findings: WorkloadFindings,
    loads: Option<Vec<ResourceLoad>>,
    profile: Option<Profile>,
    dims: Vec<Dim>,
    /// Warnings about slots on the given machines.
    slots: Vec<String>,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let opened = Opened::new(&args.file, &args.rows, args.machines.as_deref())?;
    let cluster =
        args.machines.as_deref().map(|text| load::cluster(text, &opened.source(&context.stop)?)).transpose()?;
    let kinds = cluster.as_ref().map(load::kinds).unwrap_or_default();
    let findings = inspect(&mut opened.source(&context.stop)?, &kinds)?;
    let summary = summarise(&mut opened.source(&context.stop)?)?;
    let profile = profile(&mut opened.source(&context.stop)?)?;
    let slots = cluster.as_ref().map(|cluster| load::slots(cluster, &kinds, &summary)).unwrap_or_default();
    let loads = cluster.as_ref().map(|cluster| load::loads(cluster, &summary));
    let dims = opened.supply.dims()?;
    let report = Report { opened: &opened, summary, findings, loads, profile, dims, slots };
    match args.format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&report.json())
                .map_err(|error| Error::output("standard output", error))?;
            context.out(&(text + "\n"))
        }
        format => context.out(&report.text().render(format)),
    }?;
    report.warnings().iter().for_each(|warning| context.warn(warning));
    if let (Some(folder), Some(profile)) = (&args.figure, &report.profile) {
        let capacity: Vec<Option<f64>> = match &report.loads {
            Some(loads) => loads.iter().map(|load| Some(load.capacity)).collect(),
            None => vec![None; report.dims.len()],
        };
        let curves = curves(&mut opened.source(&context.stop)?)?;
        let about = context.provenance(folder);
        let drawn = figures::draw_profile(folder, &report.summary, &curves, (profile, &capacity), &about)?;
        context.print_message(&format!("{drawn} figures in {}, each as .svg and .png", folder.display()));
    }
    Ok(())
}

impl Report<'_> {
    fn text(&self) -> Printout {
        let summary = &self.summary;
        let mut lines = match self.opened.supply.quality() {
            Some(quality) => report::lines(quality),
            None => vec![format!("canonical: {} rows read, all kept", summary.rows)],
        };
        lines.push(report::amount(&summary.into()));
        lines.push(format!(
            "submitted from {} s to {} s; the last task could end at {} s",
            summary.first_submit_s,
            summary.last_submit_s,
            self.findings.earliest_end.seconds()
        ));
        let ignored = "waiting for machines, speeds of machines and stopped tasks";
        lines.push(format!("this end follows from the longest path of stages of each job; it ignores {ignored}"));
        let mut text = Printout::from(paragraphs(&lines.join("\n")) + "\n");
        text += report::users(summary);
        if let Some(loads) = &self.loads {
            text += "\n";
            text += load::table(loads);
            let fits = match self.findings.too_large.0 {
                0 => "every task fits a machine\n".to_owned(),
                tasks => format!("{} no machine\n", report::fit(tasks)),
            };
            text += fits;
        }
        text += paragraphs(&self.proposals().iter().map(|line| format!("\n{line}")).collect::<String>());
        text
    }

    /// Returns a window to measure and, without given machines, a cluster.
    fn proposals(&self) -> Vec<String> {
        let Some(profile) = &self.profile else { return Vec::new() };
        let mut lines = Vec::new();
        let from = profile.warm_up().map(|at| format!("from = \"{}s\"", at.0 / 1_000_000));
        let to = (profile.work_after_last > 0.02 && profile.last > profile.first)
            .then(|| format!("to = \"{}s\"", profile.last.0 / 1_000_000));
        let window: Vec<String> = from.into_iter().chain(to).collect();
        if !window.is_empty() {
            lines.push(format!("proposed window of a plan: measure = {{ {} }}", window.join(", ")));
        }
        if self.loads.is_none()
            && let Some(machines) = self.machines()
        {
            lines.push(format!("proposed cluster, with an offered load of {LOAD}: --machines {machines}"));
        }
        lines
    }

    /// Returns the proposed machines, if their resources have a short notation.
    fn machines(&self) -> Option<String> {
        let (machines, sizes) = self.profile.as_ref()?.cluster(&self.dims, LOAD)?;
        let part = |(dim, size): (&Dim, &u64)| {
            let letter = match (dim.name.as_str(), dim.unit) {
                ("cpu", Unit::Milli) => "c",
                ("memory", Unit::Mebibyte) => "g",
                ("memory", Unit::Normalised) => "norm",
                ("gpu", Unit::Milli) => "gpu",
                _ => return None,
            };
            Some(if *size == 0 { String::new() } else { format!("{size}{letter}") })
        };
        let parts = self.dims.iter().zip(&sizes).map(part).collect::<Option<String>>()?;
        (!parts.is_empty()).then(|| format!("{machines}x{parts}"))
    }

    fn json(&self) -> serde_json::Value {
        let (summary, findings) = (&self.summary, &self.findings);
        let mut object = match self.opened.supply.quality() {
            Some(quality) => report::json(quality),
            None => serde_json::Map::from_iter([
                ("format".to_owned(), json!("canonical")),
                ("rows_in".to_owned(), json!(summary.rows)),
                ("rows_kept".to_owned(), json!(summary.rows)),
                ("dropped".to_owned(), json!({})),
                ("first_dropped".to_owned(), json!({})),
                ("repaired".to_owned(), json!({})),
                ("assumptions".to_owned(), json!({})),
                ("warnings".to_owned(), json!([])),
            ]),
        };
        let mut put = |key: &str, value: serde_json::Value| object.insert(key.to_owned(), value);
        put("rows", json!(summary.rows));
        put("jobs", json!(summary.jobs));
        put("users", json!(summary.users));
        put("tasks", json!(summary.tasks));
        put("first_submit_s", json!(summary.first_submit_s));
        put("last_submit_s", json!(summary.last_submit_s));
        put("earliest_end_s", json!(findings.earliest_end.seconds()));
        put("top_users", json!(summary.top_users));
        put("deadlocked_jobs", json!(findings.deadlocked.0));
        put("load", json!(self.loads));
        let profile = self.profile.as_ref();
        put("warm_up_s", json!(profile.and_then(Profile::warm_up).map(Time::seconds)));
        put("work_after_last_submission", json!(profile.map(|profile| profile.work_after_last)));
        put("tasks_at_first_instant", json!(profile.map(|profile| profile.begins_together)));
        put("tasks_that_end_together", json!(profile.map(|profile| profile.ends_together)));
        put("top_user_share", json!(profile.map(|profile| profile.top_user)));
        put("proposed_machines", json!(self.machines()));
        put("tasks_too_large", json!(self.loads.as_ref().map(|_| findings.too_large.0)));
        object.into()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (tasks, Some(first)) = &self.findings.too_large {
            warnings.push(format!("{} no machine and would never start; first {first}", report::fit(*tasks)));
        }
        if let (jobs, Some(first)) = &self.findings.deadlocked {
            let jobs = report::grouped(*jobs);
            warnings.push(format!(
                "jobs that would never end since their stages wait for one another: {jobs}; first '{first}'"
            ));
        }
        warnings.extend(self.profile.iter().flat_map(Profile::concerns));
        warnings.extend(self.slots.iter().cloned());
        warnings
    }
}
