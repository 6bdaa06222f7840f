//! Plans with a table `[solve]`: a TOML file with static instances instead of runs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Deserialize;

use super::super::printout::Printout;
use super::super::static_plan::{self, StaticPlan};
use super::super::{Context, Format};
use super::{Args, answer, quota, whole};
use crate::error::{Error, Result, each};
use crate::fair::read::{self, Question};
use crate::output::gallery::Drawn;
use crate::output::portable::file_name;
use crate::tree::Place;
use crate::workload::Input;

/// The plan file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    question: Option<String>,
    solve: Section,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    instances: Vec<PathBuf>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    variants: Vec<String>,
}

/// A checked plan.
#[derive(Debug)]
pub struct SolvePlan {
    about: StaticPlan,
    /// The questions, each with the name of its figure and the equivalent command line.
    asked: Vec<(String, Question, Args)>,
}

impl SolvePlan {
    /// Reads and checks a plan. The changes `set` (`key=value`) are applied first. Paths of instances are relative to the plan's folder.
    ///
    /// Errors: [`Error::Placed`] with line and column, and the errors of the instances.
    pub fn read(text: &Place, set: &[String], context: &Context) -> Result<SolvePlan> {
        let folder = text.file().parent().unwrap_or(Path::new(""));
        let about = |file: &File| (file.name.clone(), file.question.clone());
        let check = |file: File| asked(file.solve, folder, context);
        let (about, asked) = static_plan::read(text, (set, "solve.policies=[\"drf\"]"), check, about)?;
        let digest = |(_, _, args): &(String, Question, Args)| {
            let name = args.instance.name().display().to_string();
            Ok((name, Input::open(&folder.join(args.instance.name()))?.digest()?))
        };
        let inputs = asked.iter().map(digest).collect::<Result<_>>()?;
        Ok(SolvePlan { about: StaticPlan { inputs, ..about }, asked })
    }

    /// Returns the experiment's name.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// Solves every question, writes figures and the report to a folder, and prints the results.
    pub fn run(&self, (folder, restart): (&Path, bool), format: Format, context: &Context) -> Result<()> {
        let started = Instant::now();
        let claim = self.about.claim(folder, restart)?;
        let mut drawn = Vec::new();
        for (nth, (name, question, args)) in self.asked.iter().enumerate() {
            let args = Args { format, ..args.clone() };
            if format != Format::Json {
                let heading = format!("{}# {name}\n", if nth > 0 { "\n" } else { "" });
                context.out(&Printout::from(heading).render(format))?;
            }
            let drawing = answer(question, &args, Some(&self.about.paper), context)?;
            let caption = match question {
                Question::Users(_) => format!("Shares of the capacity under each policy: {name}."),
                Question::Groups(_) => {
                    format!("Runtime quotas as water in buckets, as wide as a group's ratio: {name}.")
                }
            };
            drawn.extend(drawing.map(|(svg, data)| Drawn { name: name.clone(), caption, svg, data }));
        }
        self.about.begin((folder, &claim), (context, 1, started))?;
        self.about.report(folder, (drawn, Vec::new()), Vec::new(), (context, started))
    }
}

/// Returns the questions about each instance; an instance of groups has one per variant.
fn asked(solve: Section, folder: &Path, context: &Context) -> Result<Vec<(String, Question, Args)>> {
    if solve.instances.is_empty() {
        return Err(Error::plan("solve.instances", "[]", "at least one file with an instance"));
    }
    each(&solve.policies, |name| {
        context.registry.check_mechanism(name).map_err(|error| error.of_key("solve.policies"))
    })?;
    let mut asked = Vec::new();
    for (at, file) in solve.instances.iter().enumerate() {
        let question = || {
            read::open(&folder.join(file).into()).map_err(|error| match error {
                Error::Io { source, .. } => Error::io(file, source).of_key("solve.instances").item(at),
                other => other,
            })
        };
        // The name of the instance's figure, without the extension.
        let stem = file_name(&file.file_stem().unwrap_or_default().to_string_lossy());
        let args = |policies: &[String], quota| Args {
            instance: file.clone().into(),
            policies: policies.to_vec(),
            whole: whole::Args::default(),
            figure: None,
            format: Format::Table,
            quota,
        };
        match question()? {
            Question::Groups(_) if !solve.variants.is_empty() => {
                let rules = each(&solve.variants, |variant| {
                    quota::Args::of_variant(variant).map_err(|error| error.under("solve.variants"))
                })?;
                for (variant, quota) in solve.variants.iter().zip(rules) {
                    asked.push((format!("{stem}-{variant}"), question()?, args(&[], quota)));
                }
            }
            groups @ Question::Groups(_) => asked.push((stem, groups, args(&[], quota::Args::default()))),
            users => asked.push((stem, users, args(&solve.policies, quota::Args::default()))),
        }
    }
    Ok(asked)
}
