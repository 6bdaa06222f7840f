//! The names that figures can refer to, and the words for the axes of a sweep.

use plimsoll_base::units::Dim;
use plimsoll_results::schema::{OwnColumn, Table};

use super::field::seconds;

/// The axes, policies, resources and tables that figures can refer to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// The axes of the sweep: columns, and the values of each, in order.
    pub axes: Vec<(String, Vec<String>)>,
    /// The policies.
    pub policies: Vec<String>,
    /// The resources.
    pub dims: Vec<Dim>,
    /// The columns of the table `runs` that the plan defines.
    pub own: Vec<OwnColumn>,
    /// The tables that are written.
    pub tables: Vec<Table>,
}

impl Scope {
    /// Returns the name of an axis in labels: without the prefix of its table, unless another axis ends with the same words.
    pub fn axis_word(&self, at: usize) -> &str {
        let axis = self.axes[at].0.as_str();
        let short = ["workload_", "cluster_"].iter().find_map(|table| axis.strip_prefix(table)).unwrap_or(axis);
        let alone = self.axes.iter().filter(|(other, _)| other.ends_with(short)).count() == 1;
        if alone { short } else { axis }
    }

    /// Returns the unit of the numbers on an axis: `s` for time spans and for the keys of plans that are in seconds; empty if there is
    /// none.
    pub fn axis_unit(&self, at: usize) -> &'static str {
        let (name, values) = &self.axes[at];
        let spans = !values.is_empty() && values.iter().all(|text| seconds(text).is_some());
        let is_delay = ["_arrival_", "_duration_"].iter().any(|part| name.contains(part));
        let is_value = ["_mean", "_median", "_min", "_max"].iter().any(|end| name.ends_with(end));
        let in_seconds = name.starts_with("workload_") && is_delay && is_value;
        if spans || in_seconds { "s" } else { "" }
    }

    /// Returns the heading of an axis: its name in words, with its unit.
    pub fn axis_heading(&self, at: usize) -> String {
        let words = self.axis_word(at).replace('_', " ");
        match self.axis_unit(at) {
            "" => words,
            unit => format!("{words} ({unit})"),
        }
    }

    /// Describes a cell by its values on the axes: `arrival mean 12 s (balanced)`. A number has the name and unit of its axis.
    pub fn cell_words(&self, values: &[String]) -> String {
        let word = |(at, value): (usize, &String)| match value.parse::<f64>() {
            Ok(_) => {
                let unit = self.axis_unit(at);
                let name = self.axis_word(at).replace('_', " ");
                format!("{name} {value}{}{unit}", if unit.is_empty() { "" } else { " " })
            }
            Err(_) => value.clone(),
        };
        let mut words = values.iter().enumerate().map(word);
        let first = words.next().unwrap_or_default();
        let more: Vec<String> = words.collect();
        if more.is_empty() { first } else { format!("{first} ({})", more.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_described_by_their_values() {
        let axis = |name: &str, values: &[&str]| (name.to_owned(), values.iter().map(|&one| one.to_owned()).collect());
        let axes = vec![
            axis("workload_arrival_mean", &["12", "9"]),
            axis("variant", &["lean"]),
            axis("cluster_sample", &["30s", "1m"]),
            axis("workload_load", &["0.7"]),
        ];
        let scope = Scope { axes, ..Scope::default() };
        let headings: Vec<String> = (0..4).map(|at| scope.axis_heading(at)).collect();
        assert_eq!(headings, ["arrival mean (s)", "variant", "sample (s)", "load"]);
        let values = ["12", "lean", "1m", "0.7"].map(str::to_owned);
        assert_eq!(scope.cell_words(&values), "arrival mean 12 s (lean, 1m, load 0.7)");
        assert_eq!(scope.cell_words(&values[..1]), "arrival mean 12 s");
    }
}
