//! A policy as a template: the user with the fewest running tasks is next.

use super::{Capabilities, Parsed, Policy, PolicyRow, Queue, Rank, RankOrder};
use plimsoll_sim::books::Books;

/// `template`
pub static ROW: PolicyRow = PolicyRow {
    name: "template",
    spelling: "template",
    rank: RankOrder::Lowest("running tasks"),
    meaning: "Equal numbers of running tasks.",
    source: "a template",
    example: "template",
    checked: "template",
    variants: &[],
    keys: &[],
    read: |given| Parsed::plain("template", given, |_| Ok(Box::new(Template))),
};

/// Serves the user with the fewest running tasks.
struct Template;

impl Policy for Template {
    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        Rank::new(books.running(queue.user).into())
    }
}

impl Capabilities for Template {}
