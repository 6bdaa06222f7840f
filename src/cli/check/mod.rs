//! `plimsoll check`: searches counterexamples to the fairness properties of policies.
//!
//! The command checks static allocations, or, with `--whole-tasks`, policies of the simulation. Findings are printed, and optionally
//! written as instances for `plimsoll solve` and drawn as a grid. A property without a counterexample is not proven; it held in all
//! instances that were tried.

mod plan;
mod print;
mod write;

use std::io::IsTerminal;
use std::path::PathBuf;

pub use plan::CheckPlan;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::accelerators::ShareCheck;
use super::screen::escape_control_characters;
use super::{Context, Format, pool, threads};
use crate::error::{Error, Result, each};
use crate::fair::OnBlocked;
use crate::output::file::WrittenFile;
use crate::output::folder::check_output;
use crate::output::picture::Picture;
use crate::properties::{Candidate, Domain, Effort, Finding, Property, Requirement, SearchSpace, survey};
use crate::settings::SettingOrigin;

/// Check fairness properties of policies, and show minimal counterexamples
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
#[command(
    after_help = "A property \"holds\" when no counterexample was found among the instances tried: every small instance on \
a grid, random instances, and local searches that increase the violation. A property that fails is shown with a minimal \
counterexample: no user or resource of it can be left out, and no number made simpler. Finding that a property fails is a result, \
not an error: the exit code is 0.

Properties: feasibility, sharing-incentive, strategy-proofness, envy-freeness, pareto-efficiency, \
single-resource-fairness, bottleneck-fairness, population-monotonicity, resource-monotonicity; with --whole-tasks also \
one-task-bound, and most of the others a second time up to one task.

Examples:
  plimsoll check
  plimsoll check --policy drf --policy asset --write counterexamples
  plimsoll check --policy drf --property envy-freeness --domain zeros
  plimsoll check --domain all --effort thorough --format json > matrix.json
  plimsoll check --whole-tasks --on-blocked stop --policy drf
  plimsoll check --accelerators --property sharing-incentive
  plimsoll check --figure properties.svg"
)]
pub struct Args {
    /// A policy; may be given several times (default: every policy with a static allocation)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    /// Only this property; may be given several times
    #[arg(long = "property", value_name = "NAME")]
    properties: Vec<String>,
    /// A class of instances: positive, zeros, finite, weighted, weighted-per-resource, or all; may be given several
    /// times
    #[arg(long = "domain", value_name = "NAME", default_value = "positive")]
    domains: Vec<String>,
    /// How much is searched: quick, normal or thorough
    #[arg(long, default_value = "normal", value_name = "LEVEL")]
    effort: String,
    /// Seed of the random instances and the local searches
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Check the policies of the simulation, which allocate whole tasks; this includes your own policies
    #[arg(long)]
    whole_tasks: bool,
    /// Check the policies for accelerators on rates by job and type (docs/accelerators.md); domains: positive, zeros,
    /// weighted, wide
    #[arg(long, conflicts_with_all = ["whole_tasks", "figure"])]
    accelerators: bool,
    /// With --whole-tasks, when the next task in line does not fit: skip (try the next user) or stop
    #[arg(long, default_value = "skip")]
    on_blocked: String,
    /// Write every counterexample as instances for `plimsoll solve` into this folder
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Draw the grid of properties and policies: a .svg, .png or .pdf file
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Threads
    #[arg(long, short = 'j', value_name = "N")]
    jobs: Option<usize>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The findings on all policies in a domain.
struct Matrix {
    search: SearchSpace,
    /// The findings on each policy, in the order of the properties, and the files of each counterexample.
    columns: Vec<PolicyColumn>,
}

/// The findings on one policy.
struct PolicyColumn {
    policy: String,
    findings: Vec<Finding>,
    files: Vec<Vec<WrittenFile>>,
}

/// The requested properties, and the findings.
struct CheckFindings {
    requirements: Vec<Requirement>,
    matrices: Vec<Matrix>,
    on_blocked: OnBlocked,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if args.accelerators {
        let request = ShareCheck {
            policies: &args.policies,
            properties: &args.properties,
            domains: &args.domains,
            effort: &args.effort,
            seed: args.seed,
            write: args.write.as_deref(),
            jobs: args.jobs,
            format: args.format,
        };
        return super::accelerators::check(&request, context);
    }
    let picture = args.figure.as_deref().map(Picture::from_path).transpose()?;
    let found = find(args, context)?;
    if let Some(picture) = picture {
        picture.write(&write::draw(&found.requirements, &found.matrices, None), &context.provenance(picture.path()))?;
    }
    print_findings(args, &found, context)
}

/// Prints the findings.
fn print_findings(args: &Args, found: &CheckFindings, context: &Context) -> Result<()> {
    for note in print::unsolved(&found.matrices) {
        context.warn(&note);
    }
    let on_blocked = args.whole_tasks.then_some(found.on_blocked);
    match args.format {
        Format::Json => context.out(&print::json(&found.matrices)?),
        format => context.out(&print::text(&found.requirements, &found.matrices, on_blocked).render(format)),
    }
}

/// Searches counterexamples, and writes them to files if requested.
fn find(args: &Args, context: &Context) -> Result<CheckFindings> {
    let CheckRequest { requirements, searches, on_blocked, candidates } =
        wanted(args, context, SettingOrigin::OnCommandLine)?;
    let pool = pool(threads(args.jobs)?)?;
    let bar = bar(&searches, candidates.len(), context.quiet);
    let (stop, mut matrices) = (&context.stop, Vec::new());
    for search in searches {
        let mut columns = Vec::new();
        for candidate in &candidates {
            bar.set_message(escape_control_characters(&format!("{}, {}", candidate.name(), search.domain.meaning())));
            let tick = |looked: u64| {
                bar.inc(looked);
                stop.check()
            };
            let findings = pool.install(|| survey(candidate, &requirements, &search, &tick))?;
            columns.push(PolicyColumn {
                policy: candidate.name().to_owned(),
                files: vec![Vec::new(); findings.len()],
                findings,
            });
        }
        matrices.push(Matrix { search, columns });
    }
    bar.finish_and_clear();
    if let Some(folder) = &args.write {
        check_output("--write", folder)?;
        write::files(folder, &mut matrices)?;
    }
    Ok(CheckFindings { requirements, matrices, on_blocked })
}

/// The checked request.
struct CheckRequest {
    requirements: Vec<Requirement>,
    searches: Vec<SearchSpace>,
    on_blocked: OnBlocked,
    candidates: Vec<Candidate>,
}

/// Checks the request; messages use the spelling of the command line or of the plan, as `origin` requires.
fn wanted(args: &Args, context: &Context, origin: SettingOrigin) -> Result<CheckRequest> {
    let requirements = requirements(args, origin)?;
    let searches = searches(args, origin)?;
    let on_blocked = OnBlocked::parse(&origin.key("check.on_blocked"), &args.on_blocked)?;
    let candidates = candidates(args, on_blocked, context, origin)?;
    Ok(CheckRequest { requirements, searches, on_blocked, candidates })
}

fn requirements(args: &Args, origin: SettingOrigin) -> Result<Vec<Requirement>> {
    let key = origin.key("check.properties");
    let wanted = each(&args.properties, |name| Property::parse(&key, name))?;
    if let (false, Some(at)) = (args.whole_tasks, wanted.iter().position(|one| *one == Property::Levels)) {
        let name = format!("'{}'", Property::Levels.name());
        let expected = format!("{} as well: divisible tasks have no last task", origin.key("check.whole_tasks"));
        return Err(Error::plan(key, name, expected).item(at));
    }
    let mut requirements = if args.whole_tasks { Requirement::integral() } else { Requirement::divisible() };
    requirements.retain(|requirement| wanted.is_empty() || wanted.contains(&requirement.property));
    Ok(requirements)
}

fn searches(args: &Args, origin: SettingOrigin) -> Result<Vec<SearchSpace>> {
    let effort = args.effort.parse::<Effort>().map_err(|error| error.under(&origin.key("check.effort")))?;
    let key = origin.key("check.domains");
    let named = each(&args.domains, |name| match name.as_str() {
        "all" => Ok(Domain::ALL.iter().map(|(_, domain, _)| *domain).collect()),
        name => Domain::parse(&key, name).map(|domain| vec![domain]).map_err(|error| error.or("all")),
    })?;
    let mut domains: Vec<Domain> = Vec::new();
    for domain in named.into_iter().flatten() {
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    Ok(domains.into_iter().map(|domain| SearchSpace { domain, effort, seed: args.seed }).collect())
}

/// Returns the requested policies, or every policy that can be checked.
fn candidates(args: &Args, on_blocked: OnBlocked, context: &Context, origin: SettingOrigin) -> Result<Vec<Candidate>> {
    let key = origin.key("check.policies");
    let candidate = |name: &str| match args.whole_tasks {
        true => Candidate::integral(context.registry.policy(name)?, on_blocked),
        false => Candidate::divisible(context.registry, name),
    };
    if let Some((at, twice)) = args.policies.iter().enumerate().find(|(at, name)| args.policies[..*at].contains(name)) {
        return Err(Error::plan(key, format!("'{twice}' twice"), "each policy once").item(at));
    }
    if !args.policies.is_empty() {
        return each(&args.policies, |name| {
            candidate(name).map_err(|error| match (origin, &error) {
                (SettingOrigin::InPlan, Error::UnknownPolicy { .. }) => error.of_key(&key),
                _ => error.under(&key),
            })
        });
    }
    let own: Vec<&str> = match args.whole_tasks {
        true => context.registry.own().iter().map(|policy| policy.name.as_str()).collect(),
        false => context.registry.own_mechanisms().iter().map(|(name, _)| name.as_str()).collect(),
    };
    // In the generated instances all machines form one pool. On a pool, a policy with placement decides like the same policy without
    // placement, so it is checked only on request.
    let runs = context.registry.catalogue().examples().into_iter().filter(|policy| policy.runs().is_ok());
    let mut names: Vec<String> = runs.map(|policy| policy.row().checked.to_owned()).collect();
    names.extend(own.into_iter().map(str::to_owned));
    let (mut candidates, mut others) = (Vec::<Candidate>::new(), Vec::new());
    for name in names {
        match candidate(&name) {
            Ok(candidate) if candidates.iter().all(|known| known.name() != name) => candidates.push(candidate),
            Ok(_) => {}
            Err(_) => others.push(name),
        }
    }
    if !others.is_empty() {
        let what = if args.whole_tasks { "need more than a name" } else { "have no static allocation" };
        context.print_message(&format!("not checked, since they {what}: {}", others.join(", ")));
    }
    Ok(candidates)
}

fn bar(searches: &[SearchSpace], candidates: usize, quiet: bool) -> ProgressBar {
    let hidden = quiet || !std::io::stderr().is_terminal();
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let instances: u64 = searches.iter().map(SearchSpace::instances).sum();
    let bar = ProgressBar::with_draw_target(Some(instances * candidates as u64), target);
    let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} instances, {msg} ({elapsed})");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
