//! `plimsoll solve`: computes the static allocation of an instance, without simulated time.
//!
//! An instance has either users, which are solved under each policy, or quota groups, which have one policy (`quota`). Results are printed
//! as tables or JSON, and optionally drawn. With `--whole-tasks`, tasks are served one by one instead of being divisible.

mod json;
mod outcome;
mod plan;
mod quota;
mod table;
mod whole;

use std::path::PathBuf;

use super::printout::Printout;
use super::{Context, Format, document};
use crate::document::Document;
use crate::error::{Error, Result};
use crate::experiment::accelerators::AcceleratorStudy;
use crate::fair::Instance;
use crate::fair::quota::GroupInstance;
use crate::fair::read::{self, Question};
use crate::output::figure::Data;
use crate::output::paper::Paper;
use crate::output::picture::Picture;
use crate::output::shares::{self, Comparison, Stack};
use crate::tree::Place;
use outcome::Outcome;
pub use plan::SolvePlan;

/// Compute the static allocation of an instance under each policy
#[derive(clap::Args, Clone, Debug, serde::Deserialize)]
#[command(after_help = "Examples:
  plimsoll solve traces/instances/drf-example.toml
  plimsoll solve traces/instances/theorem-1.toml --policy asset --policy drf \\
      --figure figure-5.svg
  plimsoll solve instance.json --policy drf --format json
  plimsoll solve traces/instances/drf-example.toml --policy drf \\
      --whole-tasks --on-blocked stop
  plimsoll solve traces/instances/quota-variants.toml --variant max-min-level
  plimsoll solve two-types.toml --policy max_min_fairness_perf
  printf '[capacity]\\ncpu = 9\\n[[user]]\\ndemand = { cpu = 1 }\\n' |
      plimsoll solve - --policy maxmin:cpu

An instance (TOML or JSON; docs/solve.md has all of it):
  [capacity]
  cpu = 9
  memory = 18
  [[user]]
  name = \"A\"
  demand = { cpu = 1, memory = 4 }  # what one task needs
  weight = 2                        # optional, or { cpu = 2, memory = 1 }
  tasks = 100                       # optional: how many it has
  on = [\"m1\"]                       # optional: the machines it may run on
  [[machine]]                       # optional, instead of [capacity]
  name = \"m1\"
  capacity = { cpu = 9, memory = 18 }

or, with [[group]] instead of [[user]], quotas (docs/quota.md has all of it):
  [[group]]
  name = \"ads\"
  parent = \"root\"                   # optional: the group that it is part of
  ratio = 2                         # optional: part of the surplus
  min = { cpu = 2 }                 # optional: its guarantee
  max = { cpu = 8 }                 # optional: its cap
  request = { cpu = 5, memory = 3 } # what it requests
  lend = true                       # optional; false: keeps an unused min")]
pub struct Args {
    /// The instance: a file in TOML or JSON, or - for standard input
    #[arg(value_parser = document())]
    instance: Document,
    /// A policy; may be given several times (default: every policy without parameters that has a static allocation)
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    whole: whole::Args,
    /// Draw the shares under each policy side by side, or the groups as buckets of water (.svg, .png or .pdf)
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    // Last, since its heading applies to all options after it.
    #[command(flatten)]
    #[serde(flatten)]
    quota: quota::Args,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if let Some(text) = accelerators(&args.instance)? {
        return of_accelerators(&text, args, context);
    }
    let figure = args.figure.as_deref().map(Picture::from_path).transpose()?;
    let paper = Paper::default();
    let drawn = answer(&read::open(&args.instance)?, args, figure.is_some().then_some(&paper), context)?;
    match (figure, drawn) {
        (Some(figure), Some((svg, _))) => figure.write(&svg, &context.provenance(figure.path())),
        _ => Ok(()),
    }
}

/// Returns the text of a plan with a table `[accelerators]`, or `None` if the file is an instance.
fn accelerators(instance: &Document) -> Result<Option<Place>> {
    let Document::File(path) = instance else { return Ok(None) };
    if path.as_os_str() == "-" || path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    // Errors of an instance are reported by its reader.
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    let text = Place::whole_text(path, text);
    Ok(AcceleratorStudy::is_plan(&text).then_some(text))
}

/// Solves a plan with accelerators. Errors: an option for instances is given.
fn of_accelerators(text: &Place, args: &Args, context: &Context) -> Result<()> {
    let whole = args.whole.given().then_some("--whole-tasks");
    let figure = args.figure.as_ref().map(|_| "--figure");
    if let Some(option) = whole.or(figure).or(args.quota.given()) {
        let problem =
            format!("{option} is for an instance of [[user]]s or [[group]]s, and this plan has [accelerators]");
        return Err(Error::Mismatch { problem });
    }
    super::accelerators::solve(text, &args.policies, args.format, context)
}

/// A drawing, and its data.
type Drawing = (String, Data);

/// Solves an instance and prints the result; returns a drawing if `draw` is given.
fn answer(question: &Question, args: &Args, draw: Option<&Paper>, context: &Context) -> Result<Option<Drawing>> {
    match question {
        Question::Users(instance) => users(instance, args, draw, context),
        Question::Groups(instance) => groups(instance, args, draw, context),
    }
}

/// Solves an instance of groups. Errors: an option for instances of users is given.
fn groups(instance: &GroupInstance, args: &Args, draw: Option<&Paper>, context: &Context) -> Result<Option<Drawing>> {
    if args.whole.given() {
        let problem = "--whole-tasks is for an instance of [[user]]s, and this one has [[group]]s".to_owned();
        return Err(Error::Mismatch { problem });
    }
    quota::run(instance, args, draw, context)
}

/// Solves an instance of users. Errors: an option or a policy for instances of groups is given.
fn users(instance: &Instance, args: &Args, draw: Option<&Paper>, context: &Context) -> Result<Option<Drawing>> {
    // Without a file, every user is its own group.
    let of_file = |name: &&String| name.strip_prefix(quota::POLICY).is_some_and(|rest| rest.starts_with(':'));
    let quota = args.policies.iter().find(of_file);
    if let Some(what) = quota.map(|name| format!("policy '{name}'")).or(args.quota.given().map(str::to_owned)) {
        let problem = format!("{what} is for an instance of [[group]]s, and this one has [[user]]s");
        return Err(Error::Mismatch { problem });
    }
    for (user, r) in instance.users().iter().filter_map(|user| Some((user, instance.lacking(user)?))) {
        let resource = &instance.resources()[r];
        context.warn(&format!(
            "user '{}' needs {resource}, of which the cluster has none: its allocation is empty",
            user.name
        ));
    }
    let outcomes = match args.policies.is_empty() {
        true => everything(instance, args, context)?,
        false => asked(instance, args, context)?,
    };
    match args.format {
        Format::Json => {
            let mut results: Vec<_> = outcomes.iter().map(|outcome| json::json(instance, outcome)).collect();
            // One object for one requested policy, a list otherwise.
            let value = if args.policies.len() == 1 { results.remove(0) } else { results.into() };
            let text = serde_json::to_string_pretty(&value).map_err(|error| Error::output("standard output", error))?;
            context.out(&(text + "\n"))?;
        }
        format => {
            let tables: Printout = outcomes.iter().map(|outcome| table::table(instance, outcome)).collect();
            context.out(&tables.render(format))?;
        }
    }
    Ok(draw.map(|paper| comparison(instance, &outcomes, paper.width)))
}

/// Returns the outcome under each requested policy.
fn asked(instance: &Instance, args: &Args, context: &Context) -> Result<Vec<Outcome>> {
    let policies = &args.policies;
    if let Some((_, twice)) = policies.iter().enumerate().find(|(at, name)| policies[..*at].contains(name)) {
        return Err(Error::plan("--policy", format!("'{twice}' twice"), "each policy once"));
    }
    policies.iter().map(|name| solved(instance, name, args, context)).collect()
}

/// Returns the outcome under every policy without parameters that is defined for this instance: policies with placement if the instance
/// lists its machines, and the others unless a user may run on some machines only.
fn everything(instance: &Instance, args: &Args, context: &Context) -> Result<Vec<Outcome>> {
    let catalogue = context.registry.catalogue();
    let built_in = catalogue.examples().into_iter().map(|spec| spec.to_string()).filter(|name| !name.contains(':'));
    let own = context.registry.own_mechanisms().iter().map(|(name, _)| name.clone());
    let mut outcomes: Vec<Outcome> = Vec::new();
    for name in built_in.chain(own) {
        let known = outcomes.iter().any(|outcome| outcome.policy == name);
        let Ok(mechanism) = context.registry.mechanism(&name, instance.resources()) else { continue };
        let suits = match mechanism.places() {
            true => !instance.machines().is_empty(),
            false => constrained(instance).is_none(),
        };
        if known || !suits {
            continue;
        }
        match solved(instance, &name, args, context) {
            Ok(outcome) => outcomes.push(outcome),
            // The user did not request this policy by name, and other policies may have a result.
            Err(error) if error.exit_code() == 2 || matches!(error, Error::NotConverged { .. }) => {
                context.warn(&format!("no allocation under {name}: {error}"))
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcomes)
}

/// Returns the first user that may run on some machines only.
fn constrained(instance: &Instance) -> Option<&str> {
    instance.users().iter().find(|user| user.on.is_some()).map(|user| user.name.as_str())
}

/// Returns the outcome under one policy. Errors: the mechanism fails, or the policy treats the machines as a single pool although a user
/// may run on some machines only.
fn solved(instance: &Instance, name: &str, args: &Args, context: &Context) -> Result<Outcome> {
    let mechanism = args.whole.mechanism(context.registry, name, instance).map_err(|error| error.under("--policy"))?;
    if let Some(user) = constrained(instance).filter(|_| !mechanism.places()) {
        let whole = if args.whole.given() { " with --whole-tasks" } else { "" };
        let problem = format!(
            "policy '{name}'{whole} treats the machines as one pool, and user '{user}' may run on some of them only; \
             leave out its `on`, or use a policy that distinguishes machines, such as drfh, without --whole-tasks"
        );
        return Err(Error::Mismatch { problem });
    }
    let outcome = Outcome::new(name, instance, mechanism.allocate(instance)?);
    for (r, resource) in instance.resources().iter().enumerate() {
        let used = outcome.utilisation[r].as_ref().map_or(0.0, |used| used.float());
        if used > 1.0 + crate::fair::TOLERANCE {
            context.warn(&format!("{name} uses {:.1} % of {resource}, which is more than the capacity", 100.0 * used));
        }
    }
    Ok(outcome)
}

/// Draws the shares under each policy side by side.
fn comparison(instance: &Instance, outcomes: &[Outcome], width: Option<f64>) -> Drawing {
    let shares = |outcome: &Outcome| -> Vec<Vec<Option<f64>>> {
        let float = |share: &Option<outcome::Amount>| share.as_ref().map(outcome::Amount::float);
        outcome.users.iter().map(|user| user.shares.iter().map(float).collect()).collect()
    };
    let comparison = Comparison {
        resources: instance.resources(),
        users: instance.users().iter().map(|user| user.name.as_str()).collect(),
        policies: outcomes.iter().map(|one| Stack { policy: &one.policy, shares: shares(one) }).collect(),
    };
    shares::draw(&comparison, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::fair::{Allocation, Certificate, Limit, Tasks};

    fn outcome(tasks: Tasks, limits: Vec<Limit>) -> (Instance, Outcome) {
        let text = "[capacity]\ncpu = 9\nmemory = 18\n[[user]]\ndemand = { cpu = 1, memory = 4 }\n\
                    [[user]]\ndemand = { cpu = 3, memory = 1 }\n[[user]]\ndemand = { cpu = 1, memory = 2 }\n";
        let Ok(Question::Users(instance)) = read::parse(Path::new("i"), text) else { panic!("a good instance") };
        let prices = Some(vec![0.2, 0.0]);
        let certificate = Some(Certificate { residual: 2.5e-13, gap: 0.0 });
        let outcome =
            Outcome::new("mine", &instance, Allocation { prices, certificate, ..Allocation::new(tasks, limits) });
        (instance, outcome)
    }

    #[test]
    fn converged_solutions_show_prices_and_how_sure_they_are() {
        let limits = vec![Limit::Resource(1), Limit::Slots, Limit::WholeTask];
        let (instance, outcome) = outcome(Tasks::Float(vec![45.0 / 11.0, 2.0, -0.0]), limits);
        let value = json::json(&instance, &outcome);
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["policy", "users", "prices", "utilisation", "certificate"]);
        assert_eq!(value["prices"].to_string(), r#"{"cpu":0.2,"memory":0}"#);
        assert_eq!(value["certificate"].to_string(), r#"{"residual":2.5e-13,"gap":0}"#);
        let users = value["users"].as_array().expect("a list");
        let tasks: Vec<String> = users.iter().map(|user| user["tasks"].to_string()).collect();
        assert_eq!(tasks, ["4.090909090909091", "2", "0"], "whole floats are integers, and zero has no sign");
        let stopped: Vec<&str> = users.iter().filter_map(|user| user["stopped_by"].as_str()).collect();
        assert_eq!(stopped, ["resource:memory", "slots", "whole-task"]);
        assert_eq!(users[2]["dominant_resource"], "cpu", "of equal shares the first");
        assert!(!value.to_string().contains("exact"));
        let shown = table::table(&instance, &outcome).render(Format::Table);
        let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(rows.contains(&vec!["price", "0.2000", "0"]), "{shown}");
        assert!(shown.ends_with("certified: residual 2.5e-13, gap 0.0e0\n"), "{shown}");
        // A reason that is longer than its column continues in the next line.
        for part in ["all slots", "are taken", "one more"] {
            assert!(shown.contains(part), "{part} is missing in\n{shown}");
        }
    }

    #[test]
    fn long_fractions_stay_out_of_tables_only() {
        let long = &crate::fair::Exact::ratio(1, i64::MAX) + &crate::fair::Exact::ratio(1, 3);
        let text = long.to_string();
        let tasks = Tasks::Exact(vec![long, crate::fair::Exact::ratio(1, 2), crate::fair::Exact::ONE]);
        let (instance, outcome) = outcome(tasks, vec![Limit::Demand; 3]);
        let shown = table::table(&instance, &outcome).render(Format::Table);
        assert!(shown.contains("= 1/2") && !shown.contains(&text), "{shown}");
        assert_eq!(json::json(&instance, &outcome)["users"][0]["tasks_exact"], text);
    }
}
