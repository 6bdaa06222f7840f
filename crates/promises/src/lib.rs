//! Fairness properties that a policy may keep, checked on many instances, with minimal counterexamples.
//!
//! A [`Promise`] is a [`Property`] and how strictly it is read. [`judge`] decides it for one [`Case`] (an instance,
//! a mechanism's allocation of it and, where the property compares two worlds, the changed instance): exactly where the
//! allocation is exact. [`survey`] looks for a case that breaks it: every small instance on a grid, random ones, and a
//! climb along the violation; each finding is shrunk until no user, no resource and no number can be spared.
//!
//! That a promise `holds` means that no counterexample was found among the instances tried; a counterexample is a
//! proof.
//!
//! Sources: Ghodsi et al., NSDI 2011, sections 3 and 6; Parkes, Procaccia and Shah, EC 2012 (zero demands, weights,
//! whole tasks).

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod bottleneck;
mod candidate;
mod change;
mod climb;
mod counterexample;
mod domain;
mod draft;
mod effort;
mod envy;
mod feasibility;
mod grid;
mod judge;
mod levels;
mod pareto;
mod population;
mod random;
mod resource;
mod sharing;
mod shrink;
mod simulated;
mod single;
mod strategy;
mod survey;
mod view;
mod water;

pub use candidate::Candidate;
pub use change::Change;
pub use counterexample::{Counterexample, instance_toml};
pub use domain::Domain;
pub use draft::{Draft, DraftUser};
pub use effort::Effort;
pub use grid::{Shape, shapes};
pub use judge::{After, Case, Judgement, TOLERANCE, Value, judge};
pub use simulated::Simulated;
pub use survey::{Finding, Phase, Search, survey};

use plimsoll_base::error::{Error, Result, nearest};

/// A promise that a fair policy may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// Nothing is given that is not there.
    Feasibility,
    /// Nobody is worse off than with its part of the cluster for itself.
    SharingIncentive,
    /// Nobody gains by lying about its demand.
    StrategyProofness,
    /// No user prefers the bundle of another.
    EnvyFreeness,
    /// Nobody could have more without another having less.
    ParetoEfficiency,
    /// With one resource it is max-min fairness.
    SingleResource,
    /// Where everybody needs one resource most, it is max-min fairness in that one.
    Bottleneck,
    /// Nobody loses when another leaves.
    Population,
    /// Nobody loses when there is more of a resource.
    Resource,
    /// Dominant shares of users that wait differ by one task at most.
    Levels,
}

impl Property {
    /// All of them, in the order of the paper's Table 2 between the two that it does not have.
    pub const ALL: [Property; 10] = [
        Property::Feasibility,
        Property::SharingIncentive,
        Property::StrategyProofness,
        Property::EnvyFreeness,
        Property::ParetoEfficiency,
        Property::SingleResource,
        Property::Bottleneck,
        Property::Population,
        Property::Resource,
        Property::Levels,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Property::Feasibility => "feasibility",
            Property::SharingIncentive => "sharing-incentive",
            Property::StrategyProofness => "strategy-proofness",
            Property::EnvyFreeness => "envy-freeness",
            Property::ParetoEfficiency => "pareto-efficiency",
            Property::SingleResource => "single-resource-fairness",
            Property::Bottleneck => "bottleneck-fairness",
            Property::Population => "population-monotonicity",
            Property::Resource => "resource-monotonicity",
            Property::Levels => "one-task-bound",
        }
    }

    /// The name in a table or a figure.
    pub fn title(self) -> &'static str {
        match self {
            Property::Feasibility => "Feasibility",
            Property::SharingIncentive => "Sharing incentive",
            Property::StrategyProofness => "Strategy-proofness",
            Property::EnvyFreeness => "Envy-freeness",
            Property::ParetoEfficiency => "Pareto efficiency",
            Property::SingleResource => "Single-resource fairness",
            Property::Bottleneck => "Bottleneck fairness",
            Property::Population => "Population monotonicity",
            Property::Resource => "Resource monotonicity",
            Property::Levels => "One-task bound",
        }
    }
}

impl std::str::FromStr for Property {
    type Err = Error;

    fn from_str(text: &str) -> Result<Property> {
        let names = Property::ALL.map(Property::name);
        Property::ALL.into_iter().find(|property| property.name() == text).ok_or_else(|| {
            let hint = nearest(text, names).map(|name| format!("'{name}'; all are ")).unwrap_or_default();
            Error::plan("property", format!("'{text}'"), format!("{hint}{}", names.join(", ")))
        })
    }
}

/// How strictly a property is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Tasks are divisible: as the papers define it.
    Divisible,
    /// Tasks are whole, and so is the number that a user can run with a bundle.
    Whole,
    /// Tasks are whole, and one task of difference is forgiven: to the worst off as many of its tasks as reach the
    /// dominant share of the largest task of anybody (as in the DRF paper's theorem 7); of envy one task of the envied
    /// bundle; of max-min fairness the last task of the user ahead.
    UpToOneTask,
    /// Tasks are whole, and of the envied bundle the demand of one task of the envious user is forgiven.
    UpToOneOwnTask,
}

/// A property and how strictly it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    /// The property.
    pub property: Property,
    /// How it is read.
    pub reading: Reading,
}

impl Promise {
    /// The checks of divisible tasks: feasibility, and the eight properties of the paper's Table 2.
    pub fn divisible() -> Vec<Promise> {
        let kept = Property::ALL.into_iter().filter(|property| *property != Property::Levels);
        kept.map(|property| Promise { property, reading: Reading::Divisible }).collect()
    }

    /// The checks of whole tasks: each property as it is, where that makes sense, then up to one task.
    ///
    /// Max-min fairness of whole tasks is defined up to one task only; Pareto efficiency needs no allowance.
    pub fn whole() -> Vec<Promise> {
        let readings = |property: Property| -> &'static [Reading] {
            match property {
                Property::Feasibility | Property::ParetoEfficiency => &[Reading::Whole],
                Property::SingleResource | Property::Bottleneck | Property::Levels => &[Reading::UpToOneTask],
                Property::EnvyFreeness => &[Reading::Whole, Reading::UpToOneTask, Reading::UpToOneOwnTask],
                _ => &[Reading::Whole, Reading::UpToOneTask],
            }
        };
        let both = |property: Property| readings(property).iter().map(move |&reading| Promise { property, reading });
        Property::ALL.into_iter().flat_map(both).collect()
    }

    /// The name in a table or a figure.
    pub fn title(self) -> String {
        match (self.property, self.reading) {
            (Property::Levels, _) => self.property.title().to_owned(),
            (_, Reading::UpToOneTask) => format!("{}, up to one task", self.property.title()),
            (_, Reading::UpToOneOwnTask) => format!("{}, up to one own task", self.property.title()),
            _ => self.property.title().to_owned(),
        }
    }

    /// A name for files.
    pub fn slug(self) -> String {
        match (self.property, self.reading) {
            (Property::Levels, _) | (_, Reading::Divisible) => self.property.name().to_owned(),
            (_, Reading::UpToOneOwnTask) => format!("{}-up-to-one-own-task", self.property.name()),
            (_, Reading::Whole) => format!("{}-whole", self.property.name()),
            (_, Reading::UpToOneTask) => format!("{}-up-to-one-task", self.property.name()),
        }
    }
}
