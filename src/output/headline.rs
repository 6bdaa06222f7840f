//! The columns of the `runs` table that a summary shows of each policy, on the terminal and in the report.

use super::numbers::resource_name;
use super::schema::Table;
pub use crate::metrics::Better;
use crate::units::Dim;

/// One column of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Its heading, short.
    pub heading: String,
    /// The column of the `runs` table.
    pub column: String,
    /// Which end is the good one.
    pub better: Better,
    /// The column's meaning, from the schema.
    pub about: String,
    /// Its place among the few columns that are shown where there is little room, the most important one first.
    pub key: Option<usize>,
}

/// The columns that are shown where there is little room, the most important one first; `used` is that of the first resource.
const KEY: [&str; 5] = ["completion_mean_s", "speed_jain", "slowdown_mean", "used", "completion_p99_s"];

impl Headline {
    /// Whether it is about utilisation or fairness, not about delay.
    pub fn is_of_sharing(&self) -> bool {
        !["jobs", "completion", "wait", "slowdown"].iter().any(|delay| self.column.starts_with(delay))
    }
}

/// The columns of a summary for these resources.
pub fn headline(dims: &[Dim]) -> Vec<Headline> {
    use Better::{Higher, Lower, Neither};
    let mut columns = vec![
        ("jobs".to_owned(), "jobs_finished".to_owned(), Neither),
        ("completion s".to_owned(), "completion_mean_s".to_owned(), Lower),
        ("p50".to_owned(), "completion_p50_s".to_owned(), Lower),
        ("p99".to_owned(), "completion_p99_s".to_owned(), Lower),
        ("wait s".to_owned(), "wait_mean_s".to_owned(), Lower),
        ("slowdown".to_owned(), "slowdown_mean".to_owned(), Lower),
    ];
    columns.extend(
        dims.iter().map(|dim| (format!("used {}", resource_name(&dim.name)), format!("used_{}", dim.name), Higher)),
    );
    let fairness = [
        ("Jain", "speed_jain", Higher),
        ("slowest", "speed_min", Higher),
        ("envy", "envy_count", Lower),
        ("below 1/n", "incentive_below", Lower),
    ];
    columns.extend(fairness.map(|(heading, column, better)| (heading.to_owned(), column.to_owned(), better)));
    let described = Table::Runs.columns(dims);
    let about = |column: &str| {
        described.iter().find(|one| one.field.name == column).map(|one| one.about.clone()).unwrap_or_default()
    };
    let used = dims.first().map(|dim| format!("used_{}", dim.name));
    let headline = |(heading, column, better): (String, String, Better)| Headline {
        about: about(&column),
        key: KEY.iter().position(|key| column == *key || (*key == "used" && Some(&column) == used.as_ref())),
        heading,
        column,
        better,
    };
    columns.into_iter().map(headline).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Unit;

    #[test]
    fn every_column_is_in_the_schema() {
        let dims = [Dim { name: "cpu".to_owned(), unit: Unit::Milli }];
        assert!(headline(&dims).iter().all(|column| !column.about.is_empty()));
        assert_eq!(headline(&dims).iter().filter(|column| column.key.is_some()).count(), KEY.len());
    }
}
