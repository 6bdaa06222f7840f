//! The comparison of static allocations: one panel per policy, one bar per resource, stacked by user.
//!
//! The style is that of figures 4 to 7 of Ghodsi et al., NSDI 2011.

use plimsoll_charts::figure::{Category, Data, Stacks, stacked};

/// The allocations that are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison<'a> {
    /// The names of the resources.
    pub resources: &'a [String],
    /// The names of the users.
    pub users: Vec<&'a str>,
    /// The policies, in order.
    pub policies: Vec<Stack<'a>>,
}

/// The shares under one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stack<'a> {
    /// Its name.
    pub policy: &'a str,
    /// `users x resources`, 0 to 1; `None` for a resource with a total of zero.
    pub shares: Vec<Vec<Option<f64>>>,
}

/// Maximum number of users with a colour each; if there are more, the last users are drawn as one.
const USERS: usize = 24;

/// Draws the comparison as an SVG, at the given or the necessary width; returns it with its data. With more than 24 users, the users after
/// the 23rd are drawn as one.
pub fn draw(comparison: &Comparison, width: Option<f64>) -> (String, Data) {
    let shown = if comparison.users.len() > USERS { USERS - 1 } else { comparison.users.len() };
    let mut users: Vec<String> = comparison.users.iter().take(shown).map(|&name| name.to_owned()).collect();
    if comparison.users.len() > shown {
        users.push(format!("{} others", comparison.users.len() - shown));
    }
    let panel = |stack: &Stack| {
        let mut layers = stack.shares.clone();
        let rest = layers.split_off(shown.min(layers.len()));
        let sum =
            |r: usize| rest.iter().filter_map(|user| user.get(r).copied().flatten()).reduce(|sum, part| sum + part);
        if !rest.is_empty() {
            layers.push((0..comparison.resources.len()).map(sum).collect());
        }
        Stacks { title: stack.policy.to_owned(), layers }
    };
    let none = |r: usize| comparison.policies.iter().all(|stack| stack.shares.iter().all(|user| user[r].is_none()));
    let category = |(r, name): (usize, &String)| Category {
        label: name.clone(),
        notes: if none(r) { vec!["(none)".to_owned()] } else { Vec::new() },
    };
    let categories: Vec<Category> = comparison.resources.iter().enumerate().map(category).collect();
    let panels: Vec<Stacks> = comparison.policies.iter().map(panel).collect();
    let data = Data::of_stacks(["policy", "resource", "user", "share"], &categories, &users, &panels);
    (stacked("Share of the capacity", &categories, &users, &panels, width), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_users_become_others() {
        let names: Vec<String> = (0..40).map(|user| format!("user {user}")).collect();
        let (resources, shares) = (["cpu".to_owned(), "gpu".to_owned()], vec![vec![Some(1.0 / 40.0), None]; 40]);
        let comparison = Comparison {
            resources: &resources,
            users: names.iter().map(String::as_str).collect(),
            policies: vec![Stack { policy: "drf", shares }],
        };
        let (svg, _) = draw(&comparison, None);
        for text in ["17 others", "user 22", "42.5 %", "(none)"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(!svg.contains("user 23"));
    }
}
