//! Columns of the table `runs` that a plan defines.

use plimsoll_base::column::{Better, Column, Described, Kind, Unit};
use serde::{Deserialize, Serialize};

/// The metadata key of the columns in tables.
pub const OWN_COLUMNS: &str = "plimsoll.metrics";

/// The units of a column by their names in a plan.
pub const OWN_UNITS: [(&str, Unit); 3] = [("1", Unit::Plain), ("s", Unit::Seconds), ("fraction", Unit::Share)];

/// The directions of better values by their names in a plan.
pub const DIRECTIONS: [(&str, Better); 3] =
    [("lower", Better::Lower), ("higher", Better::Higher), ("neither", Better::Neither)];

/// A column of the table `runs` that a plan defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnColumn {
    /// The name.
    pub name: String,
    /// The definition, as in the plan.
    pub about: String,
    /// The name of the unit, one of [`OWN_UNITS`].
    pub unit: String,
    /// The name of the direction of better values, one of [`DIRECTIONS`].
    pub better: String,
}

impl OwnColumn {
    /// Returns the column as a declared one. An unknown unit is plain, and an unknown direction is neither.
    pub fn described(&self) -> Described {
        let unit = OWN_UNITS.iter().find(|(name, _)| *name == self.unit).map_or(Unit::Plain, |(_, unit)| *unit);
        let better =
            DIRECTIONS.iter().find(|(name, _)| *name == self.better).map_or(Better::Neither, |(_, better)| *better);
        Column {
            name: self.name.clone(),
            about: self.about.clone(),
            value: Kind::Float,
            unit,
            better,
            words: self.name.replace('_', " "),
            headline: None,
            given: false,
            distinct: false,
        }
    }
}
