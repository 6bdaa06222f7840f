//! Production schedulers as policies, and the catalogue of all built-in policies.
//!
//! A scheduler decides in cycles over a tree of queues. It implements `Scheduler` (`cycle/`), declares the settings of queues in a table
//! (`settings!`), and is declared by a static [`PolicyRow`]. To add one, write a folder with its row, add the row to the list in this file,
//! and add a row to `docs/policies.md`. The command line and every generic test find it through [`BUILT_IN`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod armada;
mod cycle;
mod kai;
mod koordinator;
mod kueue;
mod volcano;
mod yarn_capacity;
mod yarn_fair;
mod yunikorn;

use plimsoll_policies::{Catalogue, PolicyRow};

/// The production schedulers, in the order of listings.
static ROWS: &[&PolicyRow] = &[
    &kueue::ROW,
    &kai::ROW,
    &volcano::DRF_ROW,
    &volcano::PROPORTION_ROW,
    &volcano::CAPACITY_ROW,
    &yarn_fair::ROW,
    &yunikorn::ROW,
    &armada::ROW,
    &yarn_capacity::ROW,
    &koordinator::ROW,
];

/// All built-in policies: those of [`plimsoll_policies`], then production schedulers.
pub static BUILT_IN: Catalogue = Catalogue::new(&[plimsoll_policies::ROWS, ROWS]);

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_policy_reads_back_as_it_prints() {
        for (policy, row) in BUILT_IN.examples().into_iter().zip(BUILT_IN.rows()) {
            assert_eq!(policy.to_string(), row.example);
            assert_eq!(row.spelling.split([':', '[']).next(), Some(row.name));
        }
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<&str> = BUILT_IN.names().collect();
        assert_eq!(names.len(), plimsoll_policies::ROWS.len() + ROWS.len());
    }

    #[test]
    fn schedulers_have_no_static_counterpart() {
        let resources = ["cpu".to_owned(), "memory".to_owned()];
        for row in ROWS {
            let policy = BUILT_IN.parse(row.example).expect("a policy");
            assert!(policy.is_queued() && policy.mechanism(&resources).is_err(), "{policy}");
        }
    }
}
