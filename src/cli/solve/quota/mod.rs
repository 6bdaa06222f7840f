//! `plimsoll solve` for an instance of groups: computes their runtime quotas.

mod draw;
mod show;

use super::super::{Context, Format, named};
use crate::error::{Error, Result};
use crate::fair::quota::{GroupAllocation, GroupInstance, Method, Overcommit, Quota, Rounding, Variant};
use crate::output::paper::Paper;

/// The only policy for groups.
pub const POLICY: &str = "quota";

/// How runtime quotas are computed, for an instance of groups.
#[derive(clap::Args, Clone, Debug, Default, serde::Deserialize)]
#[command(next_help_heading = "Quota groups")]
#[group(skip)]
pub struct Args {
    /// The meaning of a min [default: min-plus-share]
    #[arg(long, value_parser = named(Variant::ALL), value_name = "VARIANT")]
    variant: Option<Variant>,
    /// How fractions become whole units [default: exact]
    #[arg(long, value_parser = named(Rounding::ALL), value_name = "RULE")]
    rounding: Option<Rounding>,
    /// The method that computes the water level; all give the same numbers [default: sort]
    #[arg(long, value_parser = named(Method::ALL), value_name = "METHOD")]
    method: Option<Method>,
    /// The rule if the mins exceed the total [default: keep]
    #[arg(long, value_parser = named(Overcommit::ALL), value_name = "RULE")]
    overcommit: Option<Overcommit>,
}

impl Args {
    /// Returns an option that is only for instances of groups, if one was given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            (self.variant.is_some(), "--variant"),
            (self.rounding.is_some(), "--rounding"),
            (self.method.is_some(), "--method"),
            (self.overcommit.is_some(), "--overcommit"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }

    /// Creates options with this variant. Errors: [`Error::Plan`](crate::error::Error::Plan) for an unknown name.
    pub fn of_variant(name: &str) -> Result<Args> {
        Ok(Args { variant: Some(Variant::parse("--variant", name)?), ..Args::default() })
    }

    fn quota(&self) -> Quota {
        Quota {
            variant: self.variant.unwrap_or_default(),
            rounding: self.rounding.unwrap_or_default(),
            method: self.method.unwrap_or_default(),
            overcommit: self.overcommit.unwrap_or_default(),
        }
    }

    /// Returns the rules by name, in the order of the options.
    fn rules(&self) -> [(&'static str, String); 4] {
        let Quota { variant, rounding, method, overcommit } = self.quota();
        let names = [variant.name(), rounding.name(), method.name(), overcommit.name()];
        let keys = ["variant", "rounding", "method", "overcommit"];
        std::array::from_fn(|at| (keys[at], names[at].to_owned()))
    }
}

/// Solves an instance and prints the result; returns a drawing if `draw` is given. Errors: another policy than `quota`, and the errors of
/// [`Quota::allocate`].
pub fn run(
    instance: &GroupInstance,
    args: &super::Args,
    draw: Option<&Paper>,
    context: &Context,
) -> Result<Option<super::Drawing>> {
    match args.policies.as_slice() {
        [] => {}
        [one] if one == POLICY => {}
        _ => {
            let other = args.policies.iter().find(|name| *name != POLICY);
            let given = other.map_or(format!("'{POLICY}' twice"), |name| format!("'{name}'"));
            return Err(Error::plan("--policy", given, "quota, once: the instance has [[group]]s and no users"));
        }
    }
    for concern in instance.concerns() {
        context.warn(&concern.to_string());
    }
    let (rules, quota) = (args.quota.rules(), args.quota.quota());
    let allocation = quota.allocate(instance).map_err(|error| match &error {
        Error::Plan { key, .. } => {
            let key = format!("--rounding, {key}");
            error.under(&key)
        }
        _ => error,
    })?;
    warn(instance, &allocation, context);
    match args.format {
        Format::Json => {
            let value = show::json(instance, &allocation, &rules);
            let text = serde_json::to_string_pretty(&value).map_err(|error| Error::output("standard output", error))?;
            context.out(&(text + "\n"))?;
        }
        format => {
            context.out(&show::table(instance, &allocation, &rules).render(format))?;
        }
    }
    Ok(draw.map(|paper| {
        let (svg, data, left_out) = draw::draw(instance, &allocation, quota.variant, paper.width);
        if left_out > 0 {
            context.warn(&format!("the figure has no room for {left_out} more panels"));
        }
        (svg, data)
    }))
}

/// Warns if the minimums of the groups of a parent exceed its total.
fn warn(instance: &GroupInstance, allocation: &GroupAllocation, context: &Context) {
    for &(parent, r) in &allocation.overcommitted {
        let resource = &instance.resources()[r];
        let (whom, total) = match parent {
            None => ("the groups".to_owned(), instance.capacity()[r].clone()),
            Some(group) => {
                let name = &instance.groups()[group].name;
                (format!("the groups under '{name}'"), Some(allocation.groups[group].runtime[r].clone()))
            }
        };
        let bases = instance.children(parent).iter().map(|&child| &allocation.groups[child].base[r]);
        let base = bases.sum::<crate::fair::Exact>().to_f64();
        let total = total.map_or(0.0, |total| total.to_f64());
        context.warn(&format!("the mins of {whom} need {base} {resource}, and the total is {total}; see --overcommit"));
    }
}
