//! Classes of instances, each with more freedom than the first.

use plimsoll_base::error::{Error, Result, nearest};

/// A class of instances; every one but the first contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Demands above 0, equal weights, endless tasks: the class of the DRF paper's Table 2.
    Positive,
    /// Demands may be 0, not all of a user's.
    Zeros,
    /// Users may have a number of tasks.
    Finite,
    /// Users may have a weight.
    Weighted,
    /// Users may have a weight for each resource.
    WeightedPerResource,
}

impl Domain {
    /// All of them.
    pub const ALL: [Domain; 5] =
        [Domain::Positive, Domain::Zeros, Domain::Finite, Domain::Weighted, Domain::WeightedPerResource];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Domain::Positive => "positive",
            Domain::Zeros => "zeros",
            Domain::Finite => "finite",
            Domain::Weighted => "weighted",
            Domain::WeightedPerResource => "weighted-per-resource",
        }
    }

    /// Its content, in words.
    pub fn title(self) -> &'static str {
        match self {
            Domain::Positive => "strictly positive demands",
            Domain::Zeros => "zero demands allowed",
            Domain::Finite => "finite numbers of tasks allowed",
            Domain::Weighted => "weights allowed",
            Domain::WeightedPerResource => "weights for each resource allowed",
        }
    }

    /// The least demand.
    pub(super) fn least(self) -> u64 {
        u64::from(self != Domain::Zeros)
    }
}

impl std::str::FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Domain> {
        let names = Domain::ALL.map(Domain::name);
        Domain::ALL.into_iter().find(|domain| domain.name() == text).ok_or_else(|| {
            let hint = nearest(text, names).map(|name| format!("'{name}'; all are ")).unwrap_or_default();
            Error::plan("domain", format!("'{text}'"), format!("{hint}{}, all", names.join(", ")))
        })
    }
}
