//! The columns of the `runs` table in the summary of each policy, on the terminal and in the report.

use plimsoll_base::column;
pub use plimsoll_base::column::{Better, Topic};
use plimsoll_base::units::Dim;
use plimsoll_results::schema::Table;

/// One column of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The topic of the column.
    pub topic: Topic,
    /// The short heading.
    pub heading: String,
    /// The column of the `runs` table.
    pub column: String,
    /// The direction of better values.
    pub better: Better,
    /// The column's meaning, from the schema.
    pub about: String,
    /// The priority among the key columns, which are shown even if there is little room; the most important column is first. `None` for
    /// other columns.
    pub key: Option<u8>,
}

/// Returns the columns of a summary for these resources: delays, then the use of the cluster and its fairness.
pub fn headline(dims: &[Dim]) -> Vec<Headline> {
    let columns = Table::Runs.columns(dims).into_iter();
    let shown = columns.filter_map(|column| {
        let column::Headline { topic, heading, key } = column.headline?;
        Some(Headline { topic, heading, column: column.name, better: column.better, about: column.about, key })
    });
    let mut shown: Vec<Headline> = shown.collect();
    shown.sort_by_key(|headline| headline.topic);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::units::Unit;

    #[test]
    fn the_few_that_are_always_shown_have_a_place_each() {
        let dims = ["cpu", "memory"].map(|name| Dim { name: name.to_owned(), unit: Unit::Milli });
        let mut keys: Vec<(u8, String)> =
            headline(&dims).into_iter().filter_map(|column| Some((column.key?, column.column))).collect();
        keys.sort();
        let names: Vec<&str> = keys.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(
            names,
            ["completion_mean_s", "speed_jain", "speed_min", "slowdown_mean", "used_cpu", "completion_p99_s"]
        );
        assert!(keys.iter().map(|(key, _)| usize::from(*key)).eq(0..keys.len()));
    }
}
