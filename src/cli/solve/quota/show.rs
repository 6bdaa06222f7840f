//! Formats runtime quotas as text and as JSON.

use serde_json::{Map, Value};

use crate::cli::printout::Printout;
use crate::cli::screen::{Alignment, Grid, paragraphs};
use crate::cli::solve::json::put_vector;
use crate::cli::solve::outcome::Amount;
use crate::cli::solve::table::fraction;
use crate::fair::Exact;
use crate::fair::quota::{GroupAllocation, GroupInstance};
use crate::output::numbers::number;

/// Formats one block per resource, with the groups as a tree.
pub fn table(instance: &GroupInstance, allocation: &GroupAllocation, rules: &[(&'static str, String)]) -> Printout {
    let rules: Vec<String> = rules.iter().map(|(key, value)| format!("{key} {value}")).collect();
    let mut text = Printout::from(paragraphs(&format!("quota ({})", rules.join(", "))));
    for (r, resource) in instance.resources().iter().enumerate() {
        let fractions = allocation.groups.iter().any(|group| exactly(&group.runtime[r]).is_some());
        let mut columns = vec![(resource.clone(), Alignment::Left)];
        let numbers = ["ratio", "request", "min", "max", "runtime"];
        columns.extend(numbers.map(|name| (name.to_owned(), Alignment::Right)));
        if fractions {
            columns.push(("exactly".to_owned(), Alignment::Left));
        }
        columns.push(("level".to_owned(), Alignment::Right));
        let mut rows = Vec::new();
        for (i, depth) in instance.depth_first() {
            let (group, share) = (&instance.groups()[i], &allocation.groups[i]);
            let mut row = vec![format!("{}{}", "  ".repeat(depth.min(20)), group.name)];
            row.extend([&group.ratio[r], &share.request[r], &group.min[r]].map(shown));
            row.push(group.max[r].as_ref().map_or("-".to_owned(), shown));
            row.push(shown(&share.runtime[r]));
            if fractions {
                row.push(exactly(&share.runtime[r]).map(|text| format!("= {text}")).unwrap_or_default());
            }
            row.push(shown(&share.level[r]));
            rows.push(row);
        }
        rows.push(Vec::new());
        let mut total = |name: &str, amount: String| {
            let mut row = vec![String::new(); numbers.len()];
            row[0] = name.to_owned();
            row.push(amount);
            rows.push(row);
        };
        total("granted", shown(&granted(instance, allocation, r)));
        total("capacity", instance.capacity()[r].as_ref().map_or("-".to_owned(), shown));
        text += "\n";
        text += Grid::new(columns, rows);
        if let Some(rounds) = allocation.rounds.get(r) {
            text += format!("rounds    {rounds}\n");
        }
    }
    text
}

/// Formats the quotas as an object. See docs/quota.md for the keys.
pub fn json(instance: &GroupInstance, allocation: &GroupAllocation, rules: &[(&'static str, String)]) -> Value {
    let resources = instance.resources();
    let exact =
        |amounts: &[Exact]| amounts.iter().cloned().map(|amount| Some(Amount::Exact(amount))).collect::<Vec<_>>();
    let parent = |group: Option<usize>| group.map_or("root", |group| &instance.groups()[group].name);
    let mut object = Map::new();
    object.insert("policy".to_owned(), super::POLICY.into());
    object.extend(rules.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into())));
    let one = |(group, share): (&crate::fair::quota::QuotaGroup, &crate::fair::quota::GroupShare)| {
        let mut object = Map::new();
        object.insert("name".to_owned(), group.name.clone().into());
        object.insert("parent".to_owned(), parent(group.parent).into());
        object.insert("lend".to_owned(), group.lend.into());
        put_vector(&mut object, "ratio", resources, &exact(&group.ratio));
        put_vector(&mut object, "min", resources, &exact(&group.min));
        let max: Vec<Option<Amount>> = group.max.iter().cloned().map(|max| max.map(Amount::Exact)).collect();
        put_vector(&mut object, "max", resources, &max);
        put_vector(&mut object, "request", resources, &exact(&share.request));
        put_vector(&mut object, "base", resources, &exact(&share.base));
        put_vector(&mut object, "runtime", resources, &exact(&share.runtime));
        put_vector(&mut object, "level", resources, &exact(&share.level));
        Value::Object(object)
    };
    let groups: Vec<Value> = instance.groups().iter().zip(&allocation.groups).map(one).collect();
    object.insert("groups".to_owned(), groups.into());
    let sums: Vec<Exact> = (0..resources.len()).map(|r| granted(instance, allocation, r)).collect();
    put_vector(&mut object, "granted", resources, &exact(&sums));
    let capacity: Vec<Option<Amount>> = instance.capacity().iter().cloned().map(|all| all.map(Amount::Exact)).collect();
    put_vector(&mut object, "capacity", resources, &capacity);
    if !allocation.rounds.is_empty() {
        let rounds = resources.iter().cloned().zip(allocation.rounds.iter().map(|&rounds| rounds.into()));
        object.insert("rounds".to_owned(), Value::Object(rounds.collect()));
    }
    if !allocation.overcommitted.is_empty() {
        let entry = |&(group, r): &(Option<usize>, usize)| {
            let mut entry = Map::new();
            entry.insert("parent".to_owned(), parent(group).into());
            entry.insert("resource".to_owned(), resources[r].clone().into());
            Value::Object(entry)
        };
        let list: Vec<Value> = allocation.overcommitted.iter().map(entry).collect();
        object.insert("overcommitted".to_owned(), list.into());
    }
    Value::Object(object)
}

/// Returns the total amount of the groups directly below the root.
fn granted(instance: &GroupInstance, allocation: &GroupAllocation, r: usize) -> Exact {
    instance.children(None).iter().map(|&group| &allocation.groups[group].runtime[r]).sum()
}

/// Formats an amount: whole numbers with all digits, others with a few.
fn shown(amount: &Exact) -> String {
    if amount.is_integer() { amount.to_string() } else { number(Some(amount.to_f64())) }
}

fn exactly(amount: &Exact) -> Option<String> {
    fraction(&Amount::Exact(amount.clone()))
}
