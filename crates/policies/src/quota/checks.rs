//! Checks of the groups of a quota file together: each user is in one group, and minimums and maximums are consistent.

use std::collections::{HashMap, HashSet};

use super::file::{GroupEntry, QuotaFile};
use plimsoll_base::error::Result;

/// Rejects users of groups that have child groups, users of two groups, and two default groups.
pub(super) fn users(file: &QuotaFile) -> Result<()> {
    let above: HashSet<usize> = file.groups.iter().filter_map(|group| group.parent).collect();
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut default: Option<&GroupEntry> = None;
    for (at, group) in file.groups.iter().enumerate() {
        if above.contains(&at) && (group.default || !group.users.is_empty()) {
            let problem = format!("'{}' has groups under it; expected users in those", group.name);
            return Err(group.place.wrong("users", problem));
        }
        for user in &group.users {
            if let Some(other) = owners.insert(user, &group.name) {
                let problem = format!("'{user}' of group '{}' is in '{other}' too; expected one group", group.name);
                return Err(group.place.wrong("users", problem));
            }
        }
        if group.default {
            if let Some(other) = default {
                let problem = format!("'{}' and '{}' both; expected one default group", other.name, group.name);
                return Err(group.place.wrong("default", problem));
            }
            default = Some(group);
        }
    }
    Ok(())
}

/// Rejects a maximum below the minimum of the group, and minimums of siblings that sum to more than the minimum of the parent.
pub(super) fn amounts(groups: &[GroupEntry]) -> Result<()> {
    for group in groups {
        for (amount, min) in &group.min {
            let max = group.max.iter().find(|(other, _)| other.dim.name == amount.dim.name);
            if let Some((at, max)) = max.filter(|(_, max)| max < min) {
                let problem = format!(
                    "{} of group '{}' is below its min of {}; expected at least that",
                    at.dim.display(*max),
                    group.name,
                    amount.dim.display(*min)
                );
                return Err(at.place.wrong(&format!("max.{}", at.key), problem));
            }
        }
    }
    // The sums so far, by parent and resource.
    let mut sums: HashMap<(usize, &str), u64> = HashMap::new();
    for group in groups {
        let Some(parent) = group.parent else { continue };
        for (amount, min) in &group.min {
            let above = groups[parent].min.iter().find(|(other, _)| other.dim.name == amount.dim.name);
            let limit = above.map_or(0, |(_, min)| *min);
            let sum = sums.entry((parent, amount.dim.name.as_str())).or_default();
            *sum = sum.saturating_add(*min);
            if *sum > limit {
                let problem = format!(
                    "the minimums under '{}' sum to {} with that of '{}', above its own min of {}",
                    groups[parent].name,
                    amount.dim.display(*sum),
                    group.name,
                    amount.dim.display(limit)
                );
                return Err(amount.place.wrong(&format!("min.{}", amount.key), problem));
            }
        }
    }
    Ok(())
}
