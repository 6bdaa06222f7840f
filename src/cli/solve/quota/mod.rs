//! `plimsoll solve` on an instance of groups: their runtime quotas.

mod draw;
mod show;

use clap::ValueEnum;

use super::super::{Context, Format, print};
use crate::error::{Error, Result};
use crate::fair::quota::{GroupAllocation, GroupInstance, Method, Overcommit, Quota, Rounding, Variant};
use crate::output::paper::Paper;

/// The one policy that divides among groups.
pub const POLICY: &str = "quota";

/// How runtime quotas are worked out, for an instance of groups.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Quota groups")]
pub struct Args {
    /// The meaning of a min [default: min-plus-share]
    #[arg(long, value_enum, value_name = "VARIANT")]
    variant: Option<VariantName>,
    /// How fractions become whole units [default: exact]
    #[arg(long, value_enum, value_name = "RULE")]
    rounding: Option<RoundingName>,
    /// How the level of the water is found; all give the same numbers [default: sort]
    #[arg(long, value_enum, value_name = "METHOD")]
    method: Option<MethodName>,
    /// The rule if the mins exceed the total [default: keep]
    #[arg(long, value_enum, value_name = "RULE")]
    overcommit: Option<OvercommitName>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum VariantName {
    /// The min first; the ratio shares what is left on top of it
    #[default]
    MinPlusShare,
    /// The ratio shares all; nobody stays below its min
    MaxMinLevel,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RoundingName {
    /// Fractions stay
    #[default]
    Exact,
    /// In every round to the largest remainders, ties by name, as Koordinator does it
    LargestRemainder,
    /// Unit by unit to the lowest level, ties by name: more in all is never less for one
    Monotone,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum MethodName {
    /// The boundary of the full buckets, in order of saturation
    #[default]
    Sort,
    /// In rounds, as the article's typical method does it
    Iterative,
    /// The structure that follows changes in O(log groups)
    Tree,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OvercommitName {
    /// Every group is given its base and the sum exceeds the total
    #[default]
    Keep,
    /// All are cut to the same part of their base
    Scale,
    /// The total is shared by min, up to the base
    Level,
}

/// The name under which a value is given, or the default's.
fn name<V: ValueEnum + Default>(value: Option<V>) -> String {
    let value = value.unwrap_or_default().to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl Args {
    /// An option that only instances of groups know, if one was given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            (self.variant.is_some(), "--variant"),
            (self.rounding.is_some(), "--rounding"),
            (self.method.is_some(), "--method"),
            (self.overcommit.is_some(), "--overcommit"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }

    /// With this variant, by its name. Errors: [`Error::Plan`] for a name that is none.
    pub fn of_variant(name: &str) -> Result<Args> {
        let variant = VariantName::from_str(name, false).map_err(|_| {
            let names = VariantName::value_variants().iter().filter_map(|one| one.to_possible_value());
            let names: Vec<String> = names.map(|one| one.get_name().to_owned()).collect();
            Error::plan("--variant", format!("'{name}'"), format!("one of {}", names.join(", ")))
        })?;
        Ok(Args { variant: Some(variant), ..Args::default() })
    }

    fn quota(&self) -> Quota {
        Quota {
            variant: match self.variant.unwrap_or_default() {
                VariantName::MinPlusShare => Variant::MinPlusShare,
                VariantName::MaxMinLevel => Variant::MaxMinLevel,
            },
            rounding: match self.rounding.unwrap_or_default() {
                RoundingName::Exact => Rounding::Exact,
                RoundingName::LargestRemainder => Rounding::LargestRemainder,
                RoundingName::Monotone => Rounding::Monotone,
            },
            method: match self.method.unwrap_or_default() {
                MethodName::Sort => Method::Sort,
                MethodName::Iterative => Method::Iterative,
                MethodName::Tree => Method::Tree,
            },
            overcommit: match self.overcommit.unwrap_or_default() {
                OvercommitName::Keep => Overcommit::Keep,
                OvercommitName::Scale => Overcommit::Scale,
                OvercommitName::Level => Overcommit::Level,
            },
        }
    }

    /// The rules by name, in the order of the options.
    fn rules(&self) -> [(&'static str, String); 4] {
        [
            ("variant", name(self.variant)),
            ("rounding", name(self.rounding)),
            ("method", name(self.method)),
            ("overcommit", name(self.overcommit)),
        ]
    }
}

/// Solves, prints, and draws if there is paper for it. Errors: another policy than `quota`, and what [`Quota::allocate`] refuses.
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
    let allocation = quota.allocate(instance).map_err(|error| match error {
        Error::Plan { key, value, expected } => Error::Plan { key: format!("--rounding, {key}"), value, expected },
        other => other,
    })?;
    warn(instance, &allocation, context);
    match args.format {
        Format::Table => print::out(&show::table(instance, &allocation, &rules))?,
        Format::Json => {
            let value = show::json(instance, &allocation, &rules);
            let text = serde_json::to_string_pretty(&value).map_err(|error| Error::output("standard output", error))?;
            print::out(&(text + "\n"))?;
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

/// Says where more must be given than there is.
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
        context.warn(&format!("the mins of {whom} ask for {base} {resource}, and there is {total}; see --overcommit"));
    }
}
