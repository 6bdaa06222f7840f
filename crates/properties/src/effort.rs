//! The effort of a search.

use plimsoll_base::error::{Error, Result};

/// The effort of a search, in each domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The maximum number of instances of one shape on the grid. The numbers in the instances are as large as this maximum allows.
    pub grid: u64,
    /// The number of random instances.
    pub random: u64,
    /// The number of climbs for each property that still holds.
    pub climbs: u64,
    /// The number of steps of each climb.
    pub steps: u64,
}

impl Effort {
    /// A search of a few seconds for all policies.
    pub const QUICK: Effort = Effort { grid: 500, random: 100, climbs: 16, steps: 100 };
    /// The default effort of a check.
    pub const NORMAL: Effort = Effort { grid: 3_000, random: 400, climbs: 64, steps: 200 };
    /// A search of minutes.
    pub const THOROUGH: Effort = Effort { grid: 60_000, random: 10_000, climbs: 500, steps: 500 };

    /// The names on the command line.
    pub const ALL: [(&'static str, Effort); 3] =
        [("quick", Effort::QUICK), ("normal", Effort::NORMAL), ("thorough", Effort::THOROUGH)];
}

impl std::str::FromStr for Effort {
    type Err = Error;

    fn from_str(text: &str) -> Result<Effort> {
        let found = Effort::ALL.into_iter().find(|(name, _)| *name == text);
        let names = Effort::ALL.map(|(name, _)| name).join(", ");
        found.map(|(_, effort)| effort).ok_or_else(|| Error::plan("effort", format!("'{text}'"), names))
    }
}
