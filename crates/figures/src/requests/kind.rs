//! The kinds of figures that a plan can request, and the reduction of the rows of one run to one value.

use plimsoll_charts::figure::Spread;
use plimsoll_metrics::mean;

use super::check::builtin;
use super::kinds::{KINDS, KindRow};
use crate::gallery;

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FigureKind {
    /// A kind that needs a description.
    Described(&'static KindRow),
    /// Built-in figures, which need no description: their names.
    BuiltIn(&'static [&'static str]),
}

impl FigureKind {
    pub fn parse(name: &str) -> Option<FigureKind> {
        let described = KINDS.iter().copied().find(|kind| kind.name == name).map(FigureKind::Described);
        described.or_else(|| builtin(name).map(FigureKind::BuiltIn))
    }

    /// Returns the names of all kinds.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        KINDS.iter().map(|kind| kind.name).chain(["standard"]).chain(gallery::NAMES)
    }

    /// Returns the row of a kind that needs a description.
    pub fn row(self) -> Option<&'static KindRow> {
        if let FigureKind::Described(row) = self { Some(row) } else { None }
    }
}

/// The statistic that reduces the rows of one run to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stat {
    Mean,
    Sum,
    Min,
    Max,
    Count,
    Median,
    P95,
}

const STATS: [(&str, Stat); 7] = [
    ("mean", Stat::Mean),
    ("sum", Stat::Sum),
    ("min", Stat::Min),
    ("max", Stat::Max),
    ("count", Stat::Count),
    ("median", Stat::Median),
    ("p95", Stat::P95),
];

impl Stat {
    pub fn parse(name: &str) -> Option<Stat> {
        STATS.into_iter().find(|(known, _)| *known == name).map(|(_, stat)| stat)
    }

    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        STATS.into_iter().map(|(name, _)| name)
    }

    /// Computes the statistic of at least one value.
    pub fn value(self, values: &[f64]) -> f64 {
        let quantile = |at: usize| Spread::from_values(values).map_or(f64::NAN, |spread| spread.quantiles[at]);
        match self {
            Stat::Mean => mean(values),
            Stat::Sum => values.iter().sum(),
            Stat::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Stat::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Stat::Count => values.len() as f64,
            Stat::Median => quantile(2),
            Stat::P95 => quantile(4),
        }
    }

    /// Describes the statistic, as a prefix of a quantity.
    pub fn words(self) -> &'static str {
        match self {
            Stat::Mean => "",
            Stat::Sum => "Sum of ",
            Stat::Min => "Least ",
            Stat::Max => "Largest ",
            Stat::Count => "Number of ",
            Stat::Median => "Median ",
            Stat::P95 => "95 % quantile of ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_kind() {
        assert!(FigureKind::names().all(|name| FigureKind::parse(name).is_some()));
        assert!(KINDS.iter().all(|kind| FigureKind::parse(kind.name) == Some(FigureKind::Described(kind))));
        assert_eq!(FigureKind::names().count(), KINDS.len() + 1 + gallery::NAMES.len());
        assert_eq!(FigureKind::parse("pie"), None);
    }

    #[test]
    fn rows_of_a_run_become_one_value() {
        let of = |name: &str| Stat::parse(name).expect(name).value(&[4.0, 1.0, 1.0]);
        let names: Vec<f64> = Stat::names().map(of).collect();
        assert_eq!(names[..6], [2.0, 6.0, 1.0, 4.0, 3.0, 1.0]);
        assert!((names[6] - 3.7).abs() < 1e-9);
    }
}
