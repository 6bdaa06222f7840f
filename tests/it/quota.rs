//! Runtime quotas: published vectors solved by the binary, random trees compared with the definition and with an integer twin, and the laws
//! that hold for each rounding.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::fair::quota::{GroupAllocation, GroupInstance, Method, Overcommit, Quota, QuotaGroup, Rounding, Variant};
use plimsoll::fair::{Exact, Number};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// The published examples of one project: its source, its licence, and a note on omitted examples.
#[derive(serde::Deserialize)]
struct Published {
    project: String,
    licence: String,
    commit: String,
    left_out: String,
    vectors: Vec<Vector>,
}

/// A published vector, and the name of its original test.
#[derive(serde::Deserialize)]
struct Vector {
    source: String,
    instance: Value,
    runtime: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(default)]
    request: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(default)]
    options: Vec<String>,
}

impl Vector {
    /// Returns the differences of a result from the vector, and the number of compared numbers.
    fn compare(&self, result: &Value) -> (Vec<String>, usize) {
        let groups = result["groups"].as_array().expect("a list of groups");
        let (mut wrong, mut compared) = (Vec::new(), 0);
        for (what, expected) in [("runtime", &self.runtime), ("request", &self.request)] {
            for (name, amounts) in expected {
                let group = groups.iter().find(|group| group["name"] == **name).expect("the group is in the result");
                for (resource, due) in amounts {
                    let found = group[format!("{what}_exact")][resource].as_str().expect("exact");
                    compared += 1;
                    if !agrees(found, due) {
                        wrong.push(format!("{}: {what} of {name}, {resource}: {found}, not {due}", self.source));
                    }
                }
            }
        }
        (wrong, compared)
    }
}

/// Returns whether an exact number equals the published one, or differs by at most the tolerance of the published test, if it has one.
fn agrees(found: &str, due: &Value) -> bool {
    let Some(due) = due.as_object() else {
        return due.as_str().map_or_else(|| due.to_string(), str::to_owned) == found;
    };
    let (above, below) = found.split_once('/').unwrap_or((found, "1"));
    let [above, below] = [above, below].map(|part| part.parse().expect("an integer"));
    let [near, within] =
        ["near", "within"].map(|key| Exact::decimal(due[key].as_f64().expect("a number")).expect("finite"));
    let found = Exact::ratio(above, below);
    (&near - &within..=&near + &within).contains(&found)
}

fn published(file: &str) -> Published {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/quota_vectors").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect("the vectors are there")).expect("vectors")
}

/// Returns the binary's result for an instance.
pub fn solved(instance: &Value, args: &[&str]) -> Value {
    let args = [&["--format", "json"], args].concat();
    let output = crate::solve::piped(&instance.to_string(), &args);
    assert!(output.status.success(), "{args:?}: {}", crate::replay::said(&output));
    serde_json::from_slice(&output.stdout).expect("the result is JSON")
}

#[test]
fn production_systems_agree() {
    let (mut wrong, mut compared, mut instances) = (Vec::new(), 0, 0);
    // Koordinator's numbers are whole units, so every rounding must equal them. The numbers of the other projects may be fractions and are
    // compared without rounding.
    let files = [
        ("koordinator.json", &["largest-remainder", "monotone"][..]),
        ("kai.json", &[]),
        ("hadoop1.json", &[]),
        ("yarn.json", &[]),
    ];
    for (file, more) in files {
        let Published { project, licence, commit, left_out, vectors } = published(file);
        for said in [project, licence, commit, left_out] {
            assert!(!said.is_empty(), "{file} has its source, its licence, and its omissions");
        }
        for vector in vectors {
            let options: Vec<&str> = vector.options.iter().map(String::as_str).collect();
            let by = |method| [&options[..], &["--method", method]].concat();
            let mut ways = vec![options.clone(), by("iterative"), by("tree")];
            if options.is_empty() {
                ways.extend(more.iter().map(|rounding| vec!["--rounding", *rounding]));
            }
            instances += 1;
            for (at, way) in ways.iter().enumerate() {
                let (found, numbers) = vector.compare(&solved(&vector.instance, way));
                wrong.extend(found.into_iter().map(|text| format!("{way:?}: {text}")));
                compared += if at == 0 { numbers } else { 0 };
            }
        }
    }
    assert!(wrong.is_empty(), "{} numbers:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((instances, compared), (175, 664), "published instances and numbers, as docs/quota.md counts them");
}

pub fn exact(value: i64) -> Exact {
    Exact::ratio(value, 1)
}

fn amount(rng: &mut ChaCha8Rng, most: i64, fractions: bool) -> Exact {
    match rng.random_range(0..5) {
        0 => Exact::ZERO,
        1 if fractions => Exact::ratio(rng.random_range(0..=most * 3), rng.random_range(2..=5)),
        _ => exact(rng.random_range(0..=most)),
    }
}

/// Draws a tree of groups with one to three resources. Zero amounts, fractions, unlimited groups, usage and unlent minimums each occur in
/// some trees.
fn tree(rng: &mut ChaCha8Rng, fractions: bool) -> GroupInstance {
    let dims = rng.random_range(1..=3);
    let floors = rng.random_range(0..4) == 0;
    let groups = (0..rng.random_range(1..=12)).map(|i| {
        let mut amounts = |most| (0..dims).map(|_| amount(rng, most, fractions)).collect::<Vec<_>>();
        let (request, min, max, used, ratio) = (amounts(30), amounts(12), amounts(40), amounts(15), amounts(5));
        QuotaGroup {
            parent: (i > 0 && rng.random_range(0..2) == 0).then(|| rng.random_range(0..i)),
            ratio,
            min,
            max: max.into_iter().map(|max| (rng.random_range(0..3) > 0).then_some(max)).collect(),
            used: (floors && rng.random_range(0..2) == 0).then_some(used),
            lend: rng.random_range(0..4) > 0,
            // The order of the names differs from the order of the groups.
            ..QuotaGroup::new(format!("g{}", (i * 7) % 13), request)
        }
    });
    let groups: Vec<QuotaGroup> = groups.collect();
    let capacity = (0..dims).map(|_| amount(rng, 120, fractions)).map(Some).collect();
    GroupInstance::new((0..dims).map(|r| format!("r{r}")).collect(), capacity, groups).expect("a good instance")
}

fn sum<'a>(amounts: impl Iterator<Item = &'a Exact>) -> Exact {
    amounts.fold(Exact::ZERO, |sum, amount| &sum + amount)
}

/// Returns the groups of each parent and the total that they share, for one resource.
fn families<'a>(
    instance: &'a GroupInstance,
    allocation: &'a GroupAllocation,
    r: usize,
) -> impl Iterator<Item = (Exact, &'a [usize])> {
    let parents = std::iter::once(None).chain((0..instance.groups().len()).map(Some));
    parents.filter(|&parent| !instance.children(parent).is_empty()).map(move |parent| {
        let total = match parent {
            None => instance.capacity()[r].clone().expect("there is some"),
            Some(group) => allocation.groups[group].runtime[r].clone(),
        };
        (total, instance.children(parent))
    })
}

/// Checks requests, limited requests and bases against values that are computed from the text of the definition.
fn claims_are_as_defined(instance: &GroupInstance, allocation: &GroupAllocation, r: usize) {
    let floors = instance.groups().iter().any(|group| group.used.is_some());
    for (i, (group, share)) in instance.groups().iter().zip(&allocation.groups).enumerate() {
        let children = instance.children(Some(i));
        let used = |i: usize| instance.groups()[i].used.as_ref().map_or(Exact::ZERO, |used| used[r].clone());
        let own = group.request[r].clone().max(used(i));
        assert_eq!(share.request[r], &own + &sum(children.iter().map(|&c| &allocation.groups[c].limited[r])));
        let cut = |amount: Exact| group.max[r].as_ref().map_or(amount.clone(), |max| amount.min(max.clone()));
        let min = cut(group.min[r].clone());
        let kept = if group.lend { Exact::ZERO } else { min.clone() };
        assert_eq!(share.limited[r], cut(share.request[r].clone().max(kept)));
        if !floors || (children.is_empty() && group.used.is_none()) {
            assert_eq!(share.base[r], min.min(share.limited[r].clone()));
        } else if children.is_empty() {
            assert_eq!(share.base[r], min.max(used(i)).min(share.limited[r].clone()));
        }
    }
}

/// Checks the quotas of each family (the groups of one parent) at its level, by the formula of the variant. The level must be the least one
/// that assigns the whole amount.
fn levels_are_as_defined(quota: Quota, instance: &GroupInstance, allocation: &GroupAllocation, r: usize) {
    for (total, family) in families(instance, allocation, r) {
        let share = |i: usize| &allocation.groups[i];
        let at = |i: usize, level: &Exact| {
            let (base, limited) = (share(i).base[r].clone(), share(i).limited[r].clone());
            let part = level * &instance.groups()[i].ratio[r];
            match quota.variant {
                Variant::MinPlusShare => (&base + &part).min(limited),
                Variant::MaxMinLevel => base.max(part).min(limited),
            }
        };
        let level = &share(family[0]).level[r];
        let bases = sum(family.iter().map(|&i| &share(i).base[r]));
        let given = sum(family.iter().map(|&i| &share(i).runtime[r]));
        if bases > total {
            assert!(level.is_zero());
            match quota.overcommit {
                Overcommit::Keep => assert!(family.iter().all(|&i| share(i).runtime[r] == share(i).base[r])),
                Overcommit::Scale => {
                    let part = &total / &bases;
                    assert!(family.iter().all(|&i| share(i).runtime[r] == &share(i).base[r] * &part));
                }
                Overcommit::Level => assert_eq!(given, total),
            }
            continue;
        }
        assert!(family.iter().all(|&i| share(i).level[r] == *level && share(i).runtime[r] == at(i, level)));
        let full = |i: usize| {
            let moves = instance.groups()[i].ratio[r].is_positive();
            if moves { share(i).limited[r].clone() } else { share(i).base[r].clone() }
        };
        let all = family.iter().fold(Exact::ZERO, |sum, &i| &sum + &full(i));
        assert_eq!(given, total.min(all), "the whole possible amount is assigned");
        if level.is_positive() {
            let below = level * &Exact::ratio(999_999, 1_000_000);
            let less = family.iter().fold(Exact::ZERO, |sum, &i| &sum + &at(i, &below));
            assert!(less < given, "the level {level} is not the least");
        }
    }
}

const VARIANTS: [Variant; 2] = [Variant::MinPlusShare, Variant::MaxMinLevel];
const OVERCOMMITS: [Overcommit; 3] = [Overcommit::Keep, Overcommit::Scale, Overcommit::Level];

#[test]
fn random_trees_are_as_defined_by_every_method() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let (mut crowded, mut deep) = (0, 0);
    for case in 0..6_000 {
        let instance = tree(&mut rng, case % 2 == 0);
        for variant in VARIANTS {
            let overcommit = OVERCOMMITS[case % 3];
            let quota = Quota { variant, overcommit, ..Quota::default() };
            let allocation = quota.allocate(&instance).expect("solved");
            for method in [Method::Iterative, Method::Tree] {
                let other = Quota { method, ..quota }.allocate(&instance).expect("solved");
                assert_eq!(allocation.groups, other.groups, "{method:?} {instance:?}");
            }
            for r in 0..instance.resources().len() {
                claims_are_as_defined(&instance, &allocation, r);
                levels_are_as_defined(quota, &instance, &allocation, r);
            }
            crowded += usize::from(!allocation.overcommitted.is_empty());
        }
        deep += usize::from(instance.depth_first().iter().any(|(_, depth)| *depth >= 3));
    }
    assert!(crowded > 500 && deep > 500, "{crowded} over-committed, {deep} deep");
}

/// Returns the quotas of one parent's groups for one resource: Koordinator's rounds in plain integers, written from its description. A
/// group has a name, a base, a limited request and a ratio.
fn twin(total: i128, groups: &[(&str, i128, i128, i128)]) -> Vec<i128> {
    let mut runtime: Vec<i128> = groups.iter().map(|&(_, base, ..)| base).collect();
    let mut left = total - runtime.iter().sum::<i128>();
    let mut hungry: Vec<usize> = (0..groups.len()).filter(|&i| groups[i].2 > groups[i].1).collect();
    while left > 0 && hungry.iter().any(|&i| groups[i].3 > 0) {
        let weights: i128 = hungry.iter().map(|&i| groups[i].3).sum();
        let mut order: Vec<usize> = hungry.iter().copied().filter(|&i| groups[i].3 > 0).collect();
        let mut rest = left;
        for &i in &order {
            runtime[i] += left * groups[i].3 / weights;
            rest -= left * groups[i].3 / weights;
        }
        order.sort_by_key(|&i| (-(left * groups[i].3 % weights), groups[i].0));
        order.iter().take(usize::try_from(rest).expect("fewer than groups")).for_each(|&i| runtime[i] += 1);
        left = hungry.iter().map(|&i| (runtime[i] - groups[i].2).max(0)).sum();
        hungry.iter().for_each(|&i| runtime[i] = runtime[i].min(groups[i].2));
        hungry.retain(|&i| runtime[i] < groups[i].2);
    }
    runtime
}

#[test]
fn the_largest_remainder_is_koordinators() {
    let mut rng = ChaCha8Rng::seed_from_u64(42);
    let quota = Quota { rounding: Rounding::LargestRemainder, ..Quota::default() };
    let number = |amount: &Exact| i128::from(amount.parts().expect("whole").0);
    let mut unlike = 0;
    for _ in 0..4_000 {
        let instance = tree(&mut rng, false);
        let allocation = quota.allocate(&instance).expect("solved");
        let fluid = Quota::default().allocate(&instance).expect("solved");
        for r in 0..instance.resources().len() {
            for (total, family) in families(&instance, &allocation, r) {
                let group = |&i: &usize| {
                    let (group, share) = (&instance.groups()[i], &allocation.groups[i]);
                    (group.name.as_str(), number(&share.base[r]), number(&share.limited[r]), number(&group.ratio[r]))
                };
                let due = twin(number(&total), &family.iter().map(group).collect::<Vec<_>>());
                let found: Vec<i128> = family.iter().map(|&i| number(&allocation.groups[i].runtime[r])).collect();
                assert_eq!(found, due, "{instance:?}");
            }
        }
        // Remainders are assigned in every round, so a quota may differ by more than a unit from its exact fraction.
        let far = |a: &Exact, b: &Exact| a > &(b + &Exact::ONE) || b > &(a + &Exact::ONE);
        let pairs = allocation.groups.iter().zip(&fluid.groups);
        unlike += usize::from(pairs.into_iter().any(|(a, b)| a.runtime.iter().zip(&b.runtime).any(|(a, b)| far(a, b))));
    }
    assert!(unlike > 0, "rounding in every round must differ from rounding at the end");
}

/// Returns the instance with another total of its first resource.
fn with_total(instance: &GroupInstance, total: Exact) -> GroupInstance {
    let mut capacity = instance.capacity().to_vec();
    capacity[0] = Some(total);
    GroupInstance::new(instance.resources().to_vec(), capacity, instance.groups().to_vec()).expect("a good instance")
}

/// In every family the rounded quotas are whole units, stay within their bounds, and sum to the whole available amount.
#[test]
fn roundings_hand_out_all_units() {
    let mut rng = ChaCha8Rng::seed_from_u64(43);
    for case in 0..3_000 {
        let instance = tree(&mut rng, false);
        for variant in VARIANTS {
            for rounding in [Rounding::LargestRemainder, Rounding::Monotone] {
                if (variant, rounding) == (Variant::MaxMinLevel, Rounding::LargestRemainder) {
                    continue;
                }
                let quota = Quota { variant, rounding, overcommit: OVERCOMMITS[case % 3], ..Quota::default() };
                let allocation = quota.allocate(&instance).expect("solved");
                for r in 0..instance.resources().len() {
                    for (total, family) in families(&instance, &allocation, r) {
                        let share = |i: usize| &allocation.groups[i];
                        let full = |i: usize| match instance.groups()[i].ratio[r].is_positive() {
                            true => share(i).limited[r].clone(),
                            false => share(i).base[r].clone(),
                        };
                        let bases = sum(family.iter().map(|&i| &share(i).base[r]));
                        let given = sum(family.iter().map(|&i| &share(i).runtime[r]));
                        let most = family.iter().fold(Exact::ZERO, |sum, &i| &sum + &full(i));
                        assert!(family.iter().all(|&i| share(i).runtime[r].is_integer()));
                        if bases <= total {
                            assert_eq!(given, total.min(most), "{quota:?} {instance:?}");
                            let bounded = |&i: &usize| (&share(i).base[r]..=&full(i)).contains(&&share(i).runtime[r]);
                            assert!(family.iter().all(bounded), "{quota:?} {instance:?}");
                        } else {
                            let kept = quota.overcommit == Overcommit::Keep;
                            assert_eq!(given, if kept { bases } else { total }, "{quota:?} {instance:?}");
                        }
                    }
                }
            }
        }
    }
}

/// A larger total never reduces a quota, neither exact nor with the rounding `monotone`. With the largest remainder it can reduce one.
#[test]
fn quotas_grow_with_the_total_unless_rounded_by_remainders() {
    let mut rng = ChaCha8Rng::seed_from_u64(44);
    let mut lost = 0;
    for case in 0..4_000 {
        let instance = tree(&mut rng, false);
        let total = rng.random_range(0..100);
        let [less, more] = [0, 1].map(|one| with_total(&instance, exact(total + one)));
        for variant in VARIANTS {
            for rounding in [Rounding::Exact, Rounding::Monotone, Rounding::LargestRemainder] {
                let quota = Quota { variant, rounding, overcommit: OVERCOMMITS[case % 3], ..Quota::default() };
                let (Ok(less), Ok(more)) = (quota.allocate(&less), quota.allocate(&more)) else { continue };
                let falls = less.groups.iter().zip(&more.groups).any(|(less, more)| less.runtime[0] > more.runtime[0]);
                match rounding {
                    Rounding::LargestRemainder => lost += usize::from(falls),
                    _ => assert!(!falls, "{quota:?} at {total}: {instance:?}"),
                }
            }
        }
    }
    assert!(lost > 5, "the largest remainder must reduce quotas in some cases; it did {lost} times");
}
