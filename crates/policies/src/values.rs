//! Values of files of groups, read exactly and with the place in every error; and the tree that the names of parents make.

use std::collections::HashMap;

use plimsoll_base::error::{Error, Result, did_you_mean};
use plimsoll_base::tree::{Node, Place, Value};
use plimsoll_base::units::{Rounding, decimal};

/// A value is not accepted under this key.
pub fn refused(key: &str, node: &Node, expected: &str) -> Error {
    node.place.wrong(key, format!("{} is not accepted; expected {expected}", node.shown()))
}

/// `true` or `false`.
pub fn truth(key: &str, node: &Node) -> Result<bool> {
    if let Value::Truth(truth) = node.value { Ok(truth) } else { Err(refused(key, node, "true or false")) }
}

/// Text.
pub fn string(key: &str, node: &Node) -> Result<String> {
    node.text().map(str::to_owned).ok_or_else(|| refused(key, node, "text in quotes"))
}

/// A number, exactly.
pub fn number(key: &str, node: &Node, (scale, round): (u64, Rounding), expected: &str) -> Result<u64> {
    let number = match &node.value {
        Value::Integer(digits) | Value::Float(digits) => {
            decimal(digits.as_bytes(), scale, round).map_err(|problem| problem.to_string())
        }
        _ => Err("is not a number".to_owned()),
    };
    number.map_err(|problem| node.place.wrong(key, format!("{} {problem}; expected {expected}", node.shown())))
}

/// The place of the parent of each group, `None` right under the cluster. `groups` has the name of each and its place, and `parents` the
/// name of its parent and the place of that. Errors: a parent that is none, and groups above themselves.
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
