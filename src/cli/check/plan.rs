//! Plans with a table `[check]`: a TOML file that is run like any other experiment, but without runs.

use std::path::Path;
use std::time::Instant;

use serde::Deserialize;

use super::super::static_plan::{self, StaticPlan};
use super::super::{Context, Format};
use super::{Args, find, print_findings, wanted, write};
use crate::error::Result;
use crate::output::files::COUNTEREXAMPLES;
use crate::output::gallery::Drawn;
use crate::settings::SettingOrigin;
use crate::tree::Place;

/// The plan file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    question: Option<String>,
    check: Section,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    policies: Vec<String>,
    #[serde(default)]
    properties: Vec<String>,
    domains: Option<Vec<String>>,
    effort: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    whole_tasks: bool,
    on_blocked: Option<String>,
}

/// A checked plan.
#[derive(Debug)]
pub struct CheckPlan {
    about: StaticPlan,
    args: Args,
}

impl CheckPlan {
    /// Reads and checks a plan. The changes `set` (`key=value`) are applied first. Errors:
    /// [`Error::Placed`](crate::error::Error::Placed) with line and column.
    pub fn read(text: &Place, set: &[String], context: &Context) -> Result<CheckPlan> {
        let check = |file: File| {
            let args = arguments(file.check);
            wanted(&args, context, SettingOrigin::InPlan)?;
            Ok(args)
        };
        let about = |file: &File| (file.name.clone(), file.question.clone());
        let (about, args) = static_plan::read(text, (set, "check.effort=quick"), check, about)?;
        Ok(CheckPlan { about: StaticPlan { seeds: vec![args.seed], ..about }, args })
    }

    /// Returns the experiment's name.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Checks the properties, writes counterexamples, the figure and the report to a folder, and prints the findings.
    pub fn run(
        &self,
        (folder, restart): (&Path, bool),
        threads: usize,
        format: Format,
        context: &Context,
    ) -> Result<()> {
        let started = Instant::now();
        let claim = self.about.claim(folder, restart)?;
        let args = Args { jobs: Some(threads), format, ..self.args.clone() };
        let mut found = find(&args, context)?;
        self.about.begin((folder, &claim), (context, threads, started))?;
        write::files(&folder.join(COUNTEREXAMPLES), &mut found.matrices)?;
        let drawn = Drawn {
            name: "properties".to_owned(),
            caption:
                "Which properties hold for which policies: on every small instance on a grid, random instances, and \
                      local searches that increase the violation."
                    .to_owned(),
            svg: write::draw(&found.requirements, &found.matrices, self.about.paper.width),
            data: write::data(&found.requirements, &found.matrices),
        };
        print_findings(&args, &found, context)?;
        let columns = found.matrices.iter().flat_map(|matrix| &matrix.columns);
        let files = columns.flat_map(|column| &column.files).flatten().cloned().collect();
        self.about.report(folder, (vec![drawn], files), Vec::new(), (context, started))
    }
}

/// Returns the equivalent command line.
fn arguments(check: Section) -> Args {
    Args {
        policies: check.policies,
        properties: check.properties,
        domains: check.domains.unwrap_or_else(|| vec!["positive".to_owned()]),
        effort: check.effort.unwrap_or_else(|| "normal".to_owned()),
        seed: check.seed.unwrap_or(1),
        whole_tasks: check.whole_tasks,
        accelerators: false,
        on_blocked: check.on_blocked.unwrap_or_else(|| "skip".to_owned()),
        write: None,
        figure: None,
        jobs: None,
        format: Format::Table,
    }
}
