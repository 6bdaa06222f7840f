//! `plimsoll trace stats`: describes a workload, with published values for comparison.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::generate::{GeneratedWorkload, NAMES};
use super::load::{self, ResourceLoad};
use super::watched::Watched;
use super::{Opened, RowOptions, figures, report};
use crate::cli::print::aligned;
use crate::cli::printout::Printout;
use crate::cli::screen::Grid;
use crate::cli::screen::paragraphs;
use crate::cli::{Context, Format, Stop};
use crate::error::{Error, Result, nearest};
use crate::experiment::Supply;
use crate::output::numbers::number;
use crate::workload::curves::{curves, published_curves};
use crate::workload::summary::{Marginal, Published, Quantiles, Summary, published, summarise};

/// Describe a trace or the output of a generator, beside published distributions
#[derive(clap::Args, Debug, serde::Deserialize)]
#[command(after_help = "For the generator facebook the published distributions are shown beside those
of the generated trace.

Examples:
  plimsoll trace stats trace.csv
  plimsoll trace stats facebook --seed 3 --machines 400x16c32g --figure figures
  plimsoll trace stats facebook --set load=0.5 --format json
  plimsoll trace stats --plan experiments/facebook.toml
  plimsoll trace stats FB-2009_samples_24_times_1hr_0.tsv --published \\
      --set swim.map_bytes=134217728")]
pub struct Args {
    /// A trace (canonical or in a public format, - for standard input), or a generator: facebook, synthetic, bench
    #[arg(value_name = "TRACE|GENERATOR", required_unless_present = "plan")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    rows: RowOptions,
    /// Take a generator's parameters from the [workload] table of this plan
    #[arg(long, value_name = "PLAN.toml")]
    plan: Option<PathBuf>,
    /// Seed of a generator
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also show the load offered to these machines: 400x16c32g, or a .csv
    #[arg(long, value_name = "SPEC")]
    machines: Option<String>,
    /// Show Facebook's published distributions beside those of a trace, too
    #[arg(long)]
    published: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Draw demands, distributions and job sizes into this folder (SVG and PNG)
    #[arg(long, value_name = "DIR")]
    figure: Option<PathBuf>,
}

/// A workload, its name, and whether it is generated from published values.
struct Subject {
    name: String,
    supply: Supply,
    facebook: bool,
}

impl Subject {
    fn new(args: &Args) -> Result<Subject> {
        let name = args.trace.as_deref().map(|path| path.to_string_lossy().into_owned());
        let generator = name.as_deref().filter(|name| NAMES.contains(name));
        let is_file = args.trace.as_deref().is_some_and(Path::exists);
        if args.plan.is_some() || (generator.is_some() && !is_file) {
            let made = GeneratedWorkload::new(name.as_deref(), args.plan.as_deref(), args.seed, &args.rows.set)?;
            if args.rows.from.is_some() || args.rows.tenants.is_some() {
                let expected = "neither: a generator has no format and names its users itself";
                return Err(Error::plan("--from and --tenants", "with a generator", expected));
            }
            let name = format!("{}, seed {}", made.name, args.seed);
            return Ok(Subject { name, facebook: made.name == "facebook", supply: made.supply });
        }
        let path = args.trace.clone().unwrap_or_default();
        let name = name.unwrap_or_default();
        if !is_file
            && !name.contains(['.', '/', '\\'])
            && let Some(hint) = nearest(&name, NAMES)
        {
            let expected = format!("a file, or a generator (did you mean '{hint}'?)");
            return Err(Error::plan("trace", format!("'{name}'"), expected));
        }
        let opened = Opened::new(&path, &args.rows, args.machines.as_deref())?;
        Ok(Subject { name: opened.name(), supply: opened.supply, facebook: false })
    }

    fn source(&self, stop: &Stop) -> Result<Watched<'_>> {
        self.supply.source().map(|source| Watched::new(source, stop))
    }
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    let subject = Subject::new(args)?;
    let summary = summarise(&mut subject.source(&context.stop)?)?;
    let published = (subject.facebook || args.published).then(published);
    let loads = match &args.machines {
        Some(text) => Some(load::loads(&load::cluster(text, &subject.source(&context.stop)?)?, &summary)),
        None => None,
    };
    let shown = Shown { name: &subject.name, summary: &summary, published: published.as_ref(), loads };
    match args.format {
        Format::Json => {
            let text =
                serde_json::to_string_pretty(&shown.json()).map_err(|error| Error::output("standard output", error))?;
            context.out(&(text + "\n"))?;
        }
        format => context.out(&shown.text().render(format))?,
    }
    if let Some(folder) = &args.figure {
        let measured = curves(&mut subject.source(&context.stop)?)?;
        let beside = published.as_ref().map(|published| (published, published_curves()));
        let beside = beside.as_ref().map(|(published, curves)| (*published, curves.as_slice()));
        let drawn = figures::draw(folder, &summary, &measured, beside, &context.provenance(folder))?;
        context.print_message(&format!("{drawn} figures in {}, each as .svg and .png", folder.display()));
    }
    Ok(())
}

/// The statistics that are printed.
struct Shown<'a> {
    name: &'a str,
    summary: &'a Summary,
    published: Option<&'a Published>,
    loads: Option<Vec<ResourceLoad>>,
}

impl Shown<'_> {
    fn json(&self) -> serde_json::Value {
        json!({
            "workload": self.name,
            "summary": self.summary,
            "published": self.published,
            "load": self.loads,
        })
    }

    fn text(&self) -> Printout {
        let summary = self.summary;
        let gap = summary.mean_gap_s.map(|gap| format!("; mean gap {} s", number(Some(gap)))).unwrap_or_default();
        let beside = self.published.filter(|_| summary.mean_gap_s.is_some());
        let beside = beside.map(|p| format!(" (published {} s)", number(Some(p.mean_gap_s)))).unwrap_or_default();
        let span = format!("submitted from {} s to {} s{gap}{beside}", summary.first_submit_s, summary.last_submit_s);
        let mut parts =
            vec![Printout::from(paragraphs(&format!("{}: {}\n{span}", self.name, report::amount(&summary.into()))))];
        parts.extend([self.marginals().into(), self.sizes().into(), report::users(summary)]);
        parts.extend(self.loads.as_ref().map(|loads| Printout::from(load::table(loads))));
        if let Some(published) = self.published {
            let sources: Vec<String> = published.sources.iter().map(|source| format!("  {source}\n")).collect();
            let title = "published, of Facebook's cluster in October 2010:";
            parts.push(paragraphs(&format!("{title}\n{}", sources.concat())).into());
        }
        parts.into_iter().collect()
    }

    /// Formats the quantiles of each kind of tasks, with the published quantiles below.
    fn marginals(&self) -> Grid {
        let header = ["of tasks", "tasks", "p10", "p50", "p90", "p99", "mean"].map(str::to_owned);
        let row = |name: String, tasks: Option<u64>, q: &Quantiles| {
            let mut row = vec![name, tasks.map(report::grouped).unwrap_or_default()];
            row.extend([q.p10, q.p50, q.p90, q.p99, q.mean].map(|value| number(Some(value))));
            row
        };
        let beside = |kind: &str| self.published.and_then(|p| p.marginals.iter().find(|known| known.kind == kind));
        let mut rows = Vec::new();
        for one in &self.summary.marginals {
            let published: Option<&Marginal> = beside(&one.kind);
            for ((resource, quantiles), work) in one.demand.iter().zip(&self.summary.work) {
                rows.push(row(format!("{}: {resource} ({})", one.kind, work.unit), one.tasks, quantiles));
                let known = published.and_then(|p| p.demand.iter().find(|(name, _)| name == resource));
                rows.extend(known.map(|(_, quantiles)| row("  published".to_owned(), None, quantiles)));
            }
            if let Some(quantiles) = &one.duration_s {
                rows.push(row(format!("{}: duration (s)", one.kind), one.tasks, quantiles));
            }
            let known = published.and_then(|p| p.duration_s.as_ref());
            rows.extend(known.map(|quantiles| row("  published".to_owned(), None, quantiles)));
        }
        aligned(&header, &rows)
    }

    /// Formats the number of jobs by size, in the bins of the DRF paper's Figure 14.
    fn sizes(&self) -> Grid {
        let mut header = ["tasks of a job", "jobs", "share"].map(str::to_owned).to_vec();
        header.extend(self.published.map(|_| "published".to_owned()));
        let rows = self.summary.sizes_drf.iter().enumerate().map(|(at, bin)| {
            let label = figures::bin_label(bin);
            let mut row = vec![label, report::grouped(bin.jobs.unwrap_or(0)), report::percent(bin.share)];
            row.extend(self.published.map(|published| report::percent(published.sizes_drf[at].share)));
            row
        });
        aligned(&header, &rows.collect::<Vec<_>>())
    }
}
