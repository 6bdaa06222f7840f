//! Fairness properties of policies, checked on many instances, with minimal counterexamples.
//!
//! A [`Requirement`] is a [`Property`] with a [`Reading`], which defines how strictly it is read. [`judge`] decides it for one [`Case`]: an
//! instance, a mechanism's allocation of it and, for properties that compare two instances, the changed instance. The decision is exact if
//! the allocation is exact. [`survey`] searches for a case that violates the requirement: it tries every small instance on a grid, then
//! random instances, then a climb along the violation. Each finding is shrunk until no user and no resource can be dropped and no number
//! can be lowered.
//!
//! A requirement `holds` if no counterexample was found among the instances tried, which is not a proof. A counterexample proves a
//! violation.
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
pub use grid::{InstanceGrid, shapes};
pub use judge::{After, Case, JudgedNumber, Judgement, TOLERANCE, judge};
pub use simulated::Simulated;
pub use survey::{Finding, Phase, SearchSpace, survey};

use plimsoll_base::named;

named! {
    /// A property of fair policies.
    ///
    /// The first and the last one are not in the paper's Table 2, the others are in its order. A meaning is the name in tables and figures.
    Property {
        /// No capacity is exceeded.
        Feasibility "feasibility": "Feasibility",
        /// No user is worse off than with its part of the cluster alone.
        SharingIncentive "sharing-incentive": "Sharing incentive",
        /// No user gains by lying about its demand.
        StrategyProofness "strategy-proofness": "Strategy-proofness",
        /// No user prefers the bundle of another.
        EnvyFreeness "envy-freeness": "Envy-freeness",
        /// No user could have more without another having less.
        ParetoEfficiency "pareto-efficiency": "Pareto efficiency",
        /// With one resource the allocation is max-min fair.
        SingleResource "single-resource-fairness": "Single-resource fairness",
        /// If all users need one resource most, the allocation is max-min fair in it.
        Bottleneck "bottleneck-fairness": "Bottleneck fairness",
        /// No user loses if another leaves.
        Population "population-monotonicity": "Population monotonicity",
        /// No user loses if there is more of a resource.
        Resource "resource-monotonicity": "Resource monotonicity",
        /// Dominant shares of users that wait differ by one task at most.
        Levels "one-task-bound": "One-task bound",
    }
}

/// How strictly a property is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Tasks are divisible, as the papers define it.
    Divisible,
    /// Tasks are whole, and so is the number that a user can run with a bundle.
    Whole,
    /// Tasks are whole, with a tolerance of one task. The worst-off user is granted as many of its tasks as reach the dominant share of the
    /// largest task of any user (as in the DRF paper's theorem 7). For envy the tolerance is one task of the envied bundle, for max-min
    /// fairness the last task of the user ahead.
    UpToOneTask,
    /// Tasks are whole, and the demand of one task of the envious user is subtracted from the envied bundle.
    UpToOneOwnTask,
}

/// A property and how strictly it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The property.
    pub property: Property,
    /// The reading.
    pub reading: Reading,
}

impl Requirement {
    /// Returns the checks of divisible tasks: feasibility, and the eight properties of the paper's Table 2.
    pub fn divisible() -> Vec<Requirement> {
        let kept =
            Property::ALL.iter().map(|(_, property, _)| *property).filter(|property| *property != Property::Levels);
        kept.map(|property| Requirement { property, reading: Reading::Divisible }).collect()
    }

    /// Returns the checks of whole tasks: each property without tolerance if that is defined, then up to one task.
    ///
    /// Max-min fairness of whole tasks is defined up to one task only; Pareto efficiency needs no tolerance.
    pub fn integral() -> Vec<Requirement> {
        let readings = |property: Property| -> &'static [Reading] {
            match property {
                Property::Feasibility | Property::ParetoEfficiency => &[Reading::Whole],
                Property::SingleResource | Property::Bottleneck | Property::Levels => &[Reading::UpToOneTask],
                Property::EnvyFreeness => &[Reading::Whole, Reading::UpToOneTask, Reading::UpToOneOwnTask],
                _ => &[Reading::Whole, Reading::UpToOneTask],
            }
        };
        let both =
            |property: Property| readings(property).iter().map(move |&reading| Requirement { property, reading });
        Property::ALL.iter().flat_map(|(_, property, _)| both(*property)).collect()
    }

    /// Returns the name in tables and figures.
    pub fn title(self) -> String {
        match (self.property, self.reading) {
            (Property::Levels, _) => self.property.meaning().to_owned(),
            (_, Reading::UpToOneTask) => format!("{}, up to one task", self.property.meaning()),
            (_, Reading::UpToOneOwnTask) => format!("{}, up to one own task", self.property.meaning()),
            _ => self.property.meaning().to_owned(),
        }
    }

    /// Returns the name in file names.
    pub fn slug(self) -> String {
        match (self.property, self.reading) {
            (Property::Levels, _) | (_, Reading::Divisible) => self.property.name().to_owned(),
            (_, Reading::UpToOneOwnTask) => format!("{}-up-to-one-own-task", self.property.name()),
            (_, Reading::Whole) => format!("{}-whole", self.property.name()),
            (_, Reading::UpToOneTask) => format!("{}-up-to-one-task", self.property.name()),
        }
    }
}
