//! Reads the values in files of groups exactly, with the place in every error, and builds the tree from the names of parents.

use std::collections::HashMap;

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::tree::{Node, Place, Value};
use plimsoll_base::units::{Rounding, decimal};

/// Returns the error for a value that is not accepted under this key.
pub fn refused(key: &str, node: &Node, expected: &str) -> Error {
    node.place.wrong(key, format!("{} is not accepted; expected {expected}", node.shown()))
}

/// Reads `true` or `false`.
pub fn truth(key: &str, node: &Node) -> Result<bool> {
    if let Value::Truth(truth) = node.value { Ok(truth) } else { Err(refused(key, node, "true or false")) }
}

/// Reads a text.
pub fn string(key: &str, node: &Node) -> Result<String> {
    node.text().map(str::to_owned).ok_or_else(|| refused(key, node, "text in quotes"))
}

/// Reads a number in steps of 1 / `scale`, exactly or rounded as `round` requires.
pub fn number(key: &str, node: &Node, (scale, round): (u64, Rounding), expected: &str) -> Result<u64> {
    let number = match &node.value {
        Value::Integer(digits) | Value::Float(digits) => {
            decimal(digits.as_bytes(), scale, round).map_err(|problem| problem.to_string())
        }
        _ => Err("is not a number".to_owned()),
    };
    number.map_err(|problem| node.place.wrong(key, format!("{} {problem}; expected {expected}", node.shown())))
}

/// Returns the index of each group's parent, `None` for a group directly under the cluster. `groups` has the name and place of each group,
/// and `parents` the name of its parent and the place of that name. Errors: an unknown parent, and a group that is above itself.
pub fn connect(groups: &[(&str, &Place)], parents: &[Option<(String, &Place)>]) -> Result<Vec<Option<usize>>> {
    let places: HashMap<&str, usize> = groups.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let find = |parent: &Option<(String, &Place)>| {
        let Some((name, place)) = parent else { return Ok(None) };
        places.get(name.as_str()).copied().map(Some).ok_or_else(|| {
            let hint = did_you_mean(name, places.keys().copied());
            place.wrong("parent", format!("'{name}' is no group{hint}; expected a group's name, or root"))
        })
    };
    let found: Vec<Option<usize>> = parents.iter().map(find).collect::<Result<_>>()?;
    for (at, (name, place)) in groups.iter().enumerate() {
        let (mut above, mut steps) = (found[at], 0);
        while let Some(parent) = above {
            steps += 1;
            if parent == at || steps > groups.len() {
                let place = parents[at].as_ref().map_or(*place, |(_, place)| *place);
                return Err(place.wrong("parent", format!("'{name}' is above itself; expected a tree")));
            }
            above = found[parent];
        }
    }
    Ok(found)
}
