//! The study of a results folder, for repetitions of its runs.

use std::path::{Path, PathBuf};

use super::{Context, replay};
use crate::error::{Error, Result};
use crate::experiment::Study;
use crate::output::files::RUN;
use crate::output::folder::Contents;
use crate::output::ownership::plan_there;
use crate::output::sealed::{self, Found};
use crate::tree::Place;

/// The facts about an execution that lead to its plan.
#[derive(serde::Deserialize)]
struct Execution {
    /// The plan as it was named on the command line; absent for a replay.
    plan: Option<PathBuf>,
    /// The path from the results folder to the folder of the plan.
    folder: Option<String>,
}

/// Reads the study of a results folder. Errors: its plan or its inputs are not where they were, or have changed.
pub fn study(folder: &Path, context: &Context) -> Result<Study> {
    let text = match plan_there(folder)? {
        Found::Whole(text) => text,
        Found::Damaged(error) => return Err(error),
        // This returns the error for a folder without results.
        Found::Missing => Contents::read(folder)?.plan,
    };
    let Some(execution) = sealed::read::<Execution>(&folder.join(RUN))? else {
        let problem = format!("has no {RUN}, which leads to the plan; give the plan instead of the folder");
        return Err(Error::trace(folder, 0, "", problem));
    };
    let origin = folder.join(execution.folder.as_deref().unwrap_or_default());
    let Some(plan) = execution.plan else {
        let command = Contents::read(folder)?.command;
        let Some((trace, options, extra)) = replay::parse_command(&command) else {
            let problem = format!("the recorded command cannot be read: {command}");
            return Err(Error::trace(folder.join(RUN), 0, "", problem));
        };
        let advice = "give the trace and the options of the replay instead of the folder";
        if trace.as_os_str() == "-" {
            let problem = format!("a replay of standard input, which can be read only once; {advice}");
            return Err(Error::trace(folder, 0, "", problem));
        }
        if origin.canonicalize().ok() != Path::new(".").canonicalize().ok() {
            let problem = format!(
                "the paths of the recorded command are relative to another folder ({}); run this command there, or {advice}",
                origin.display()
            );
            return Err(Error::trace(folder, 0, "", problem));
        }
        return Ok(Study::from_plan(replay::plan(&trace, &options, &extra, context)?));
    };
    // The stored text is the resolved plan, with its includes and changes. Its paths are relative to the folder of the plan.
    let name = origin.join(plan.file_name().unwrap_or_default());
    Study::from_text(Place::whole_text(name, text), &[], context.registry)
}
