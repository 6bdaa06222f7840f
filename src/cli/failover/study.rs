//! Executes `plimsoll run` for a plan with a table `[failover]`: an experiment with the control plane.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::super::printout::Printout;
use super::super::{Context, Format, progress::Steps, screen::paragraphs, static_plan::StaticPlan};
use super::results;
use crate::cli::pool;
use crate::error::Result;
use crate::experiment::failover::FailoverPlan;
use crate::output::files;

/// Executes the experiment, writes tables, figures and report, and prints the findings.
pub fn run(
    (about, plan): (&StaticPlan, &FailoverPlan),
    (folder, restart): (&Path, bool),
    threads: usize,
    format: Format,
    context: &Context,
) -> Result<()> {
    let started = Instant::now();
    let claim = about.claim(folder, restart)?;
    let pool = pool(threads)?;
    let steps = Steps::new(context.quiet, "parts", &context.stop);
    let findings = pool.install(|| plan.study.run(&steps));
    steps.clear();
    let findings = findings?;
    about.begin((folder, &claim), (context, threads, started))?;
    let written = results::write(folder, plan, &findings)?;
    about.record_files(folder, &written)?;
    let sentences = results::sentences(plan, &findings);
    match format {
        Format::Json => context.json(&json!({ "name": plan.name, "findings": sentences }))?,
        format => context.out(&Printout::from(paragraphs(&sentences.join("\n"))).render(format))?,
    }
    let seconds = started.elapsed().as_secs_f64();
    let report = folder.join(files::REPORT);
    context.print_message(&format!("tables in {} ({seconds:.1} s), report in {}", folder.display(), report.display()));
    Ok(())
}
