//! Plans without runs, which have a table `[failover]`, `[check]` or `[solve]`. They are read from their text, errors have locations, and
//! the figure requests are separated.

use serde::de::DeserializeOwned;

use super::canonical;
use crate::changes::apply;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Node, Place};
use plimsoll_charts::paper::Paper;
use plimsoll_figures::requests::{KEYS, Requests, Scope};

/// A plan without runs, as it was read.
pub struct Plain {
    /// The resolved plan as text; it is stored in every file of the results.
    pub text: String,
    /// The paper size of figures: `[figures]`.
    pub paper: Paper,
    /// The plan without the figure requests.
    tree: Node,
}

impl Plain {
    /// Reads a plan; `set` has `key=value` changes that are applied first, such as `example`.
    ///
    /// Errors: [`Error::Placed`] with line and column, also for `[[figure]]`, because such plans define their own figures.
    pub fn read(text: &Place, set: &[String], example: &str) -> Result<Plain> {
        let mut tree = Node::toml(text)?;
        set.iter().try_for_each(|change| apply(&mut tree, change, example))?;
        let figures = fixed_figures(&mut tree)?;
        let text = format!("{}{}", canonical(&tree.plain_table()?)?, figures.appendix());
        Ok(Plain { text, paper: figures.paper, tree })
    }

    /// Parses the contents of the plan. Errors: [`Error::Placed`] with line and column.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        self.tree.read()
    }

    /// Adds line and column to an error about a key.
    pub fn located(&self, error: Error) -> Error {
        self.tree.locate(error)
    }
}

/// Removes the tables about figures from a plan with fixed figures, and reads them. Errors: [`Error::Placed`], also for `[[figure]]`.
pub(crate) fn fixed_figures(tree: &mut Node) -> Result<Requests> {
    if let Some(figure) = tree.get(KEYS[0]) {
        let problem = "this kind of plan has fixed figures; [figures] sets their width";
        return Err(figure.place.wrong(KEYS[0], problem));
    }
    Requests::extract(tree, &Scope::default())
}
