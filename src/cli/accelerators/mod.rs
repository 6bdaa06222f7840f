//! `plimsoll run` and `solve` for a plan with a table `[accelerators]`, and `check --accelerators`: jobs with a speed that depends on the type
//! of accelerator, scheduled in rounds. The plan and its execution are in `experiment/accelerators`.

mod print;
mod properties;
mod shares;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::progress::Steps;
use super::static_plan::StaticPlan;
use super::{Context, Format};
use crate::error::{Error, Result};
use crate::experiment::Mode;
use crate::experiment::accelerators::{
    AcceleratorRequest, AcceleratorStudy, RunCounts, execute, figures, write_tables,
};
use crate::experiment::study::Shard;
use crate::output::html::{HtmlColumn, HtmlTable};
use crate::output::numbers::count;
pub use print::list;
pub use properties::{ShareCheck, check};
pub use shares::solve;

/// The options of `plimsoll run` for such a plan.
pub struct AcceleratorRunSettings<'a> {
    /// The folder of the results.
    pub folder: &'a Path,
    /// The number of threads.
    pub threads: usize,
    /// The handling of existing results.
    pub mode: Mode,
    /// The part of the runs to execute; all if absent.
    pub shard: Option<Shard>,
    /// The format of the summary.
    pub format: Format,
}

/// Executes the missing runs of a plan, writes tables, figures and the report, and prints the summary. Errors: those of
/// [`execute`]; a file cannot be written.
pub fn run(study: &AcceleratorStudy, how: &AcceleratorRunSettings<'_>, context: &Context) -> Result<()> {
    let started = Instant::now();
    let &AcceleratorRunSettings { folder, threads, mode, shard, format } = how;
    let steps = Steps::new(context.quiet, "runs", &context.stop);
    let counts = RunCounts::default();
    let outcome = execute(study, &AcceleratorRequest { folder, threads, mode, shard, counts: &counts }, &steps);
    steps.clear();
    let done = match outcome {
        Err(Error::Interrupted) => {
            let (complete, all) = (counts.complete.into_inner(), counts.all.load(Ordering::Relaxed));
            // Another `--restart` would discard the complete runs.
            let again = if mode == Mode::Restart { "the same command without --restart" } else { "the same command" };
            context.print_message(&format!(
                "{complete} of {} complete; {again} continues with the others",
                crate::output::numbers::are(all as u64, "run")
            ));
            return Err(Error::Interrupted);
        }
        outcome => outcome?,
    };
    done.broken.iter().for_each(|why| context.warn(&format!("{why}; it was run again")));
    if done.kept > 0 {
        context.print_message(&match done.kept {
            1 => format!("1 run was complete already, {} were made", done.made),
            kept => format!("{kept} runs were complete already, {} were made", done.made),
        });
    }
    let plan = StaticPlan::of_accelerators(study);
    let mut more = serde_json::Map::new();
    more.insert("shard".to_owned(), shard.map(|shard| shard.to_string()).into());
    more.insert("runs_made".to_owned(), done.made.into());
    more.insert("runs_kept".to_owned(), done.kept.into());
    if let Some(shard) = shard {
        plan.record_command(
            (folder, &format!("run-{}-of-{}.json", shard.index, shard.of)),
            (context, threads, started),
            more,
        )?;
        context.print_message(&format!(
            "shard {shard}: {} in {} ({:.1} s); when all shards are complete, run again with --gather",
            count(done.runs.len() as u64, "run"),
            folder.display(),
            started.elapsed().as_secs_f64()
        ));
        return Ok(());
    }
    plan.record_command((folder, crate::output::files::RUN), (context, threads, started), more)?;
    let made = write_tables(study, folder, &done.runs)?;
    let drawn = figures(study, &done.runs)?;
    let (head, body) = print::summary(study, &done.runs);
    print::print(study, &done.runs, (&head, &body), format, context)?;
    let column = |(name, is_text): &(String, bool)| HtmlColumn {
        name: name.clone(),
        numeric: !is_text,
        ..HtmlColumn::default()
    };
    let sheet = HtmlTable {
        caption: "Means over the lists of jobs with the half-widths of their 95 % confidence intervals".to_owned(),
        columns: head.iter().map(column).collect(),
        rows: body,
        ..HtmlTable::default()
    };
    plan.report(folder, (drawn, made), vec![sheet], (context, started))
}
