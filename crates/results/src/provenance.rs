//! The provenance that every output file contains: program, plan, seeds, digests.

use crate::folder::Contents;

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The program's description: the same text as in the package `plimsoll`.
pub const DESCRIPTION: &str = "A discrete-event simulator for the fair sharing of clusters";

/// The last commit that changed the program's sources, followed by `+changes` if they had uncommitted changes; `None` if the program was
/// not built from a repository.
pub const COMMIT: Option<&str> = option_env!("PLIMSOLL_COMMIT");

/// The prefix of the keys.
const PREFIX: &str = "plimsoll.";

/// The key of the plan.
const PLAN: &str = "plimsoll.plan";

/// A plan longer than this, in bytes, is represented in figures by its digest, to keep them small; tables contain the complete plan.
const PLAN_MOST: usize = 16 << 10;

/// Returns the program's version and commit as metadata of a file; they are the same for every execution.
pub fn program() -> Vec<(String, String)> {
    let commit = COMMIT.map(|commit| ("plimsoll.commit".to_owned(), commit.to_owned()));
    [("plimsoll.version".to_owned(), VERSION.to_owned())].into_iter().chain(commit).collect()
}

/// The provenance of a figure or a page: keys as in the metadata of tables, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    pairs: Vec<(String, String)>,
}

impl Provenance {
    /// Returns the provenance of output without a plan.
    pub fn of_program() -> Provenance {
        Provenance { pairs: program() }
    }

    /// Returns the provenance of output from a plan.
    pub fn of_plan(plan: &str) -> Provenance {
        Provenance::of_program().with("plan", plan)
    }

    /// Returns the provenance of figures from tables: the metadata of the tables, each value once, and the drawing program if it differs
    /// from the program that wrote the tables. `contents` are the descriptions of the cells.
    pub fn of_tables<'a>(
        plan: &str,
        contents: impl IntoIterator<Item = &'a Contents>,
        tables: impl IntoIterator<Item = &'a [(String, String)]>,
    ) -> Provenance {
        let mut about = Provenance::default();
        for (key, value) in tables.into_iter().flatten().filter(|(key, _)| key != PLAN) {
            match about.pairs.iter_mut().find(|(known, _)| known == key) {
                None => about.pairs.push((key.clone(), value.clone())),
                Some((_, values)) if values.split(", ").any(|one| one == value) => {}
                Some((_, values)) if values == value => {}
                Some((_, values)) => *values = format!("{values}, {value}"),
            }
        }
        let drawn_with = program();
        if drawn_with.iter().any(|pair| !about.pairs.contains(pair)) {
            let words: Vec<&str> = drawn_with.iter().map(|(_, value)| value.as_str()).collect();
            about = about.with("drawn_with", words.join(", commit "));
        }
        let most = contents.into_iter().max_by_key(|one| one.seeds.len());
        let seeds: Vec<u64> = most.into_iter().flat_map(|one| &one.seeds).flatten().copied().collect();
        about.with_seeds(&seeds).with("plan", plan)
    }

    /// Adds a fact; the key is given without its prefix.
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Provenance {
        self.pairs.push((format!("{PREFIX}{key}"), value.into()));
        self
    }

    /// Adds the seeds, if there are any.
    pub fn with_seeds(self, seeds: &[u64]) -> Provenance {
        match seeds {
            [] => self,
            [only] => self.with("seeds", only.to_string()),
            [first, .., last] => self.with("seeds", format!("{first} to {last}")),
        }
    }

    /// Returns all entries, as metadata of a table.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Returns all entries for a file that must stay small: a long plan is represented by its digest.
    pub fn short(&self) -> Vec<(String, String)> {
        let short = |(key, value): &(String, String)| match key == PLAN && value.len() > PLAN_MOST {
            true => (format!("{PLAN}_blake3"), blake3::hash(value.as_bytes()).to_hex().to_string()),
            false => (key.clone(), value.clone()),
        };
        self.pairs.iter().map(short).collect()
    }

    /// Returns all entries except the plan as rows of a page, which shows the plan separately.
    pub fn rows(&self) -> Vec<(String, String)> {
        let row = |(key, value): &(String, String)| (key.replace(PREFIX, "").replace('_', " "), value.clone());
        self.pairs.iter().filter(|(key, _)| key != PLAN).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn values_of_several_tables_stand_once_each() {
        let one = [program(), pairs(&[("plimsoll.plan", "a"), ("plimsoll.trace_blake3", "x")])].concat();
        let two = [program(), pairs(&[("plimsoll.plan", "b"), ("plimsoll.trace_blake3", "y")])].concat();
        let few = Contents { seeds: vec![Some(1)], ..Contents::default() };
        let most = Contents { seeds: vec![Some(1), Some(2), Some(3)], ..Contents::default() };
        let about = Provenance::of_tables("whole", [&few, &most, &few], [&one[..], &two, &one]);
        let expected =
            pairs(&[("plimsoll.trace_blake3", "x, y"), ("plimsoll.seeds", "1 to 3"), ("plimsoll.plan", "whole")]);
        assert_eq!(about.pairs(), [program(), expected].concat());
        let rows = about.rows();
        assert!(
            rows.contains(&("trace blake3".to_owned(), "x, y".to_owned())) && rows.iter().all(|(key, _)| key != "plan")
        );
        let old = pairs(&[("plimsoll.version", "0.0.1")]);
        let about = Provenance::of_tables("", [], [&old[..]]);
        assert!(about.rows().iter().any(|(key, value)| key == "drawn with" && value.starts_with(VERSION)));
    }

    #[test]
    fn long_plans_are_digests_in_small_files() {
        let long = Provenance::of_plan(&"seeds = 1\n".repeat(PLAN_MOST));
        assert!(long.short().iter().any(|(key, value)| key == "plimsoll.plan_blake3" && value.len() == 64));
        let plain = Provenance::of_plan("seeds = 1\n");
        assert_eq!(plain.short(), plain.pairs());
    }
}
