//! Runtime quotas: published vectors through the binary, random trees against the definition and against an integer twin,
//! and the laws, where they hold and where they do not.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll::fluid::quota::{
    Concern, Group, GroupAllocation, GroupInstance, Method, Overcommit, Quota, Rounding, Variant,
};
use plimsoll::fluid::{Exact, Number};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

/// A published vector: `koordinator.json` and `yarn.json` have one a line, with its source.
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
    /// What is wrong with a result, and how many numbers were compared.
    fn compare(&self, result: &Value) -> (Vec<String>, usize) {
        let groups = result["groups"].as_array().expect("a list of groups");
        let (mut wrong, mut compared) = (Vec::new(), 0);
        for (what, expected) in [("runtime", &self.runtime), ("request", &self.request)] {
            for (name, amounts) in expected {
                let group = groups.iter().find(|group| group["name"] == **name).expect("the group is in the result");
                for (resource, amount) in amounts {
                    let due = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
                    let found = group[format!("{what}_exact")][resource].as_str().expect("exact").to_owned();
                    compared += 1;
                    if found != due {
                        wrong.push(format!("{}: {what} of {name}, {resource}: {found}, not {due}", self.source));
                    }
                }
            }
        }
        (wrong, compared)
    }
}

fn vectors(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/quota_vectors").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect("the vectors are there")).expect("vectors")
}

/// The result of an instance, through the binary.
fn solved(instance: &Value, args: &[&str]) -> Value {
    let args = [&["--format", "json"], args].concat();
    let output = crate::solve::piped(&instance.to_string(), &args);
    assert!(output.status.success(), "{args:?}: {}", crate::replay::said(&output));
    serde_json::from_slice(&output.stdout).expect("the result is JSON")
}

#[test]
fn production_systems_agree() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    // Koordinator knows whole units only, so that every rounding must give what it gives; YARN's share of a group
    // without demand limits is a fraction here.
    for (file, more) in [("koordinator.json", &["largest-remainder", "monotone"][..]), ("yarn.json", &[])] {
        for vector in vectors(file) {
            let options: Vec<&str> = vector.options.iter().map(String::as_str).collect();
            let mut ways = vec![options.clone(), [&options[..], &["--method", "iterative"]].concat()];
            if options.is_empty() {
                ways.extend(more.iter().map(|rounding| vec!["--rounding", *rounding]));
            }
            for (at, way) in ways.iter().enumerate() {
                let (found, numbers) = vector.compare(&solved(&vector.instance, way));
                wrong.extend(found.into_iter().map(|text| format!("{way:?}: {text}")));
                compared += if at == 0 { numbers } else { 0 };
            }
        }
    }
    assert!(wrong.is_empty(), "{} numbers:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 350, "only {compared} published numbers were compared");
}

fn whole(value: i64) -> Exact {
    Exact::ratio(value, 1)
}

fn amount(rng: &mut ChaCha8Rng, most: i64, fractions: bool) -> Exact {
    match rng.random_range(0..5) {
        0 => Exact::ZERO,
        1 if fractions => Exact::ratio(rng.random_range(0..=most * 3), rng.random_range(2..=5)),
        _ => whole(rng.random_range(0..=most)),
    }
}

/// A tree of groups under one to three resources; everything that may be odd is, now and then.
fn tree(rng: &mut ChaCha8Rng, fractions: bool) -> GroupInstance {
    let dims = rng.random_range(1..=3);
    let floors = rng.random_range(0..4) == 0;
    let groups = (0..rng.random_range(1..=12)).map(|i| {
        let mut amounts = |most| (0..dims).map(|_| amount(rng, most, fractions)).collect::<Vec<_>>();
        let (request, min, max, used, ratio) = (amounts(30), amounts(12), amounts(40), amounts(15), amounts(5));
        Group {
            parent: (i > 0 && rng.random_range(0..2) == 0).then(|| rng.random_range(0..i)),
            ratio,
            min,
            max: max.into_iter().map(|max| (rng.random_range(0..3) > 0).then_some(max)).collect(),
            used: (floors && rng.random_range(0..2) == 0).then_some(used),
            lend: rng.random_range(0..4) > 0,
            // Names in another order than the groups.
            ..Group::new(format!("g{}", (i * 7) % 13), request)
        }
    });
    let groups: Vec<Group> = groups.collect();
    let capacity = (0..dims).map(|_| amount(rng, 120, fractions)).map(Some).collect();
    GroupInstance::new((0..dims).map(|r| format!("r{r}")).collect(), capacity, groups).expect("a good instance")
}

fn sum<'a>(amounts: impl Iterator<Item = &'a Exact>) -> Exact {
    amounts.fold(Exact::ZERO, |sum, amount| &sum + amount)
}

/// The groups of each parent with what they share, for one resource.
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

/// Requests, and what must and can be given, worked out from the text of the definition.
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

/// Every family's quotas, at its level, by the formula of the variant; the level is the least that gives out all.
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
        assert_eq!(given, total.min(all), "all that can be given is given");
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
fn random_trees_are_as_defined_by_either_method() {
    let mut rng = ChaCha8Rng::seed_from_u64(41);
    let (mut crowded, mut deep) = (0, 0);
    for case in 0..6_000 {
        let instance = tree(&mut rng, case % 2 == 0);
        for variant in VARIANTS {
            let overcommit = OVERCOMMITS[case % 3];
            let quota = Quota { variant, overcommit, ..Quota::default() };
            let allocation = quota.allocate(&instance).expect("solved");
            let rounds = Quota { method: Method::Iterative, ..quota }.allocate(&instance).expect("solved");
            assert_eq!(allocation.groups, rounds.groups, "{instance:?}");
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

/// Koordinator's rounds in plain integers, written from its description: what one parent's groups get of one resource.
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
        // A remainder in every round may differ by more than a unit from the fraction.
        let far = |a: &Exact, b: &Exact| a > &(b + &Exact::ONE) || b > &(a + &Exact::ONE);
        let pairs = allocation.groups.iter().zip(&fluid.groups);
        unlike += usize::from(pairs.into_iter().any(|(a, b)| a.runtime.iter().zip(&b.runtime).any(|(a, b)| far(a, b))));
    }
    assert!(unlike > 0, "rounding in rounds is not rounding at the end");
}

/// The same instance with another total of its first resource.
fn with_total(instance: &GroupInstance, total: Exact) -> GroupInstance {
    let mut capacity = instance.capacity().to_vec();
    capacity[0] = Some(total);
    GroupInstance::new(instance.resources().to_vec(), capacity, instance.groups().to_vec()).expect("a good instance")
}

/// Whole units: the sum law and the bounds of each rounding, in every family.
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

/// More in all is never less for one: fractions, and units by level; not the largest remainder.
#[test]
fn quotas_grow_with_the_total_unless_rounded_by_remainders() {
    let mut rng = ChaCha8Rng::seed_from_u64(44);
    let mut lost = 0;
    for case in 0..4_000 {
        let instance = tree(&mut rng, false);
        let total = rng.random_range(0..100);
        let [less, more] = [0, 1].map(|one| with_total(&instance, whole(total + one)));
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
    assert!(lost > 5, "the largest remainder is known to take units away; it did {lost} times");
}

fn json(total: i64, groups: &[(&str, [i64; 3])]) -> Value {
    let group = |(name, [min, request, ratio]): &(&str, [i64; 3])| serde_json::json!({ "name": name, "ratio": ratio, "min": { "cpu": min }, "request": { "cpu": request } });
    serde_json::json!({ "capacity": { "cpu": total }, "group": groups.iter().map(group).collect::<Vec<_>>() })
}

fn runtimes(result: &Value) -> Vec<&str> {
    let groups = result["groups"].as_array().expect("a list of groups");
    groups.iter().map(|group| group["runtime_exact"]["cpu"].as_str().expect("exact")).collect()
}

/// `reference/fuxi.md` 2.5: to scale the mins of idle groups too would give 54, 10 and 36, although 90 of 100 suffice for
/// what must be given; and the three answers where they do not.
#[test]
fn minimums_beyond_the_total() {
    let groups = [("a", [80, 80, 1]), ("b", [80, 10, 1]), ("c", [0, 100, 9])];
    for rule in ["keep", "scale", "level"] {
        assert_eq!(runtimes(&solved(&json(100, &groups), &["--overcommit", rule])), ["80", "10", "10"], "{rule}");
    }
    let at = |rule: &str| solved(&json(60, &groups), &["--overcommit", rule]);
    assert_eq!(runtimes(&at("keep")), ["80", "10", "0"]);
    assert_eq!(runtimes(&at("scale")), ["160/3", "20/3", "0"]);
    assert_eq!(runtimes(&at("level")), ["50", "10", "0"]);
    assert_eq!(at("level")["overcommitted"], serde_json::json!([{ "parent": "root", "resource": "cpu" }]));
    assert_eq!(runtimes(&solved(&json(0, &groups), &[])), ["80", "10", "0"]);
    assert_eq!(runtimes(&solved(&json(0, &groups), &["--overcommit", "scale"])), ["0", "0", "0"]);
}

/// The tree is not flattening; and the ratio is a group's part among its siblings.
#[test]
fn a_tree_is_not_flat() {
    let leaf =
        |name: &str, parent: &str| serde_json::json!({ "name": name, "parent": parent, "request": { "cpu": 90 } });
    let flat = ["a", "b", "c"].map(|name| leaf(name, "root"));
    let flat = serde_json::json!({ "capacity": { "cpu": 90 }, "group": flat });
    assert_eq!(runtimes(&solved(&flat, &[])), ["30", "30", "30"]);
    let tree = serde_json::json!({ "capacity": { "cpu": 90 }, "group": [
        { "name": "ab" }, leaf("a", "ab"), leaf("b", "ab"), leaf("c", "root")] });
    assert_eq!(runtimes(&solved(&tree, &[])), ["45", "45/2", "45/2", "45"]);
}

/// What the capacity lacks is 0, a max cuts the min, and children may be promised more than their parent: all of it said.
#[test]
fn what_is_odd_is_answered_and_said() {
    let group = |name: &str| Group::new(name, vec![whole(5), whole(2)]);
    let parent = Group { min: vec![whole(3), Exact::ZERO], max: vec![Some(whole(2)), None], ..group("p") };
    let child = Group { parent: Some(0), min: vec![whole(4), Exact::ONE], lend: false, ..group("c") };
    let names = vec!["cpu".to_owned(), "gpu".to_owned()];
    let instance = GroupInstance::new(names, vec![Some(whole(9)), None], vec![parent, child]).expect("good");
    let said: Vec<String> = instance.concerns().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "there is no gpu in [capacity]: the runtime quota of it is 0 for every group",
            "group 'p': its max of cpu is below its min, which is cut to it",
            "group 'p': its children are promised 4 cpu and it is promised 3 itself",
            "group 'p': its children are promised 1 gpu and it is promised 0 itself",
        ]
    );
    assert!(matches!(instance.concerns()[0], Concern::Lacking { .. }));
    let allocation = Quota::default().allocate(&instance).expect("solved");
    assert_eq!(allocation.groups[0].runtime, [whole(2), Exact::ZERO]);
    assert_eq!(allocation.groups[1].runtime, [whole(4), Exact::ZERO], "kept, although the parent has 2");
    assert_eq!(allocation.overcommitted, [(Some(0), 0)]);
}

/// What is used is a floor, and a parent keeps what its groups keep: the guarantees of Koordinator's
/// TestGroupQuotaManager_OnPodUpdateUsedForGuarantee (10, 15, 25 for group 2; 20, 20, 30 for its parent).
#[test]
fn what_is_used_is_kept_up_the_tree() {
    for (used, due) in [(5, ["20", "10", "5"]), (15, ["20", "15", "5"]), (25, ["30", "25", "5"])] {
        let result = solved(
            &serde_json::json!({ "capacity": { "cpu": 50 }, "group": [
                { "name": "1", "min": { "cpu": 20 }, "max": { "cpu": 40 } },
                { "name": "2", "parent": "1", "min": { "cpu": 10 }, "max": { "cpu": 40 }, "used": { "cpu": used },
                  "request": { "cpu": 40 } },
                { "name": "3", "parent": "1", "min": { "cpu": 5 }, "max": { "cpu": 40 }, "request": { "cpu": 40 } }] }),
            &[],
        );
        let bases = result["groups"].as_array().expect("a list").iter().map(|group| group["base_exact"]["cpu"].clone());
        assert_eq!(bases.collect::<Vec<_>>(), due);
    }
    // What is used counts as asked for, and is cut to the max.
    let held = serde_json::json!({ "capacity": { "cpu": 10 }, "group": [
        { "name": "a", "used": { "cpu": 8 }, "max": { "cpu": 6 }, "ratio": 1 },
        { "name": "b", "request": { "cpu": 9 }, "ratio": 1 }] });
    assert_eq!(runtimes(&solved(&held, &[])), ["6", "4"]);
}

/// Follow a capacity of cpu and memory in line 1.
const WRONG: [(&str, &str, &str); 17] = [
    ("users too", "[[group]]\n[[user]]\n", "line 2, column 3: groups: stand beside [[user]]; expected only users, or"),
    ("an empty list", "group = []\n", "line 2, column 1: group: the list is empty; expected at least one [[group]]"),
    ("one group", "[group]\nname = \"a\"\n", "line 2, column 2: group: a table is no list of groups"),
    (
        "machines",
        "machines = 3\n[[group]]\n",
        "line 2, column 1: unknown key 'machines'; expected one of capacity, group",
    ),
    (
        "an unknown key",
        "[[group]]\nname = \"a\"\nmni = {}\n",
        "line 4, column 1: group 'a': unknown key 'mni'; did you mean 'm",
    ),
    (
        "a name twice",
        "[[group]]\nname = \"a\"\n[[group]]\nname = \"a\"\n",
        "line 5, column 8: group 'a': group 2 has the name",
    ),
    ("the top's name", "[[group]]\nname = \"root\"\n", "line 3, column 8: group 'root': is the top"),
    (
        "an unknown parent",
        "[[group]]\nname = \"a\"\nparent = \"b\"\n",
        "line 4, column 10: group 'a', parent: 'b' is no group",
    ),
    (
        "itself",
        "[[group]]\nname = \"a\"\nparent = \"a\"\n",
        "line 4, column 10: group 'a', parent: is the group itself",
    ),
    (
        "a cycle",
        "[[group]]\nname = \"a\"\nparent = \"b\"\n[[group]]\nname = \"b\"\nparent = \"a\"\n",
        "line 4, column 10: group 'a', parent: is a cycle: 'a' is under 'b' is under 'a'",
    ),
    ("negative", "[[group]]\nmin = { cpu = -1 }\n", "line 3, column 15: group 'group 1', min, cpu: -1 is negative"),
    ("a negative ratio", "[[group]]\nratio = -0.5\n", "line 3, column 9: group 'group 1', ratio: -1/2 is negative"),
    (
        "nan",
        "[[group]]\nrequest = { cpu = nan }\n",
        "line 3, column 19: group 'group 1', request, cpu: nan is not a number",
    ),
    ("infinite", "[[group]]\nmax = { cpu = inf }\n", "line 3, column 15: group 'group 1', max, cpu: inf is too large"),
    ("text", "[[group]]\nused = { cpu = \"x\" }\n", "group 'group 1', used, cpu: 'x' is not a number"),
    ("a number for a vector", "[[group]]\nmin = 3\n", "line 3, column 7: group 'group 1', min: 3 is no table"),
    ("no truth", "[[group]]\nlend = \"no\"\n", "line 3, column 8: group 'group 1', lend: 'no' is no truth value"),
];

#[test]
fn every_wrong_quota_is_refused_with_its_place() {
    for (what, text, says) in WRONG {
        let output = crate::solve::piped(&format!("capacity = {{ cpu = 9, memory = 18 }}\n{text}"), &[]);
        assert_eq!(crate::solve::refusal(&output, &["standard input: ", says]), Ok(()), "{what}");
    }
    let output = crate::solve::piped("[[group]]\nname = \"a\"\n", &[]);
    assert_eq!(crate::solve::refusal(&output, &["capacity: is missing; expected [capacity]"]), Ok(()));
}

#[test]
fn options_know_whom_they_are_for() {
    let groups = "[capacity]\ncpu = 9\n[[group]]\nrequest = { cpu = 1.5 }\n";
    let users = "[capacity]\ncpu = 9\n[[user]]\ndemand = { cpu = 1 }\n";
    let wrong: [(&str, &[&str], &str); 8] = [
        (groups, &["--policy", "drf"], "--policy: 'drf' is not accepted; expected quota, once"),
        (groups, &["--policy", "quota", "--policy", "quota"], "'quota' twice"),
        (groups, &["--whole-tasks"], "--whole-tasks is for an instance of [[user]]s"),
        (groups, &["--rounding", "monotone"], "--rounding, group 'group 1', request, cpu: 3/2 is not accepted"),
        (
            groups,
            &["--rounding", "largest-remainder", "--variant", "max-min-level"],
            "--rounding, rounding of max-min-level: largest-remainder is not accepted; expected min-plus-share",
        ),
        (users, &["--policy", "quota"], "policy 'quota' is for an instance of [[group]]s, and this one has [[user]]s"),
        (users, &["--policy", "quota:q.toml"], "policy 'quota:q.toml' is for an instance of [[group]]s"),
        (users, &["--method", "sort"], "--method is for an instance of [[group]]s"),
    ];
    for (text, args, says) in wrong {
        assert_eq!(crate::solve::refusal(&crate::solve::piped(text, args), &[says]), Ok(()), "{args:?}");
    }
}

#[test]
fn warnings_do_not_stop_the_answer() {
    let text = "[capacity]\ncpu = 4\n[[group]]\nname = \"a\"\nmin = { cpu = 9 }\nmax = { cpu = 6 }\nrequest = { cpu = 7, gpu = 1 }\n";
    let output = crate::solve::piped(text, &["--format", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    assert_eq!(result["groups"][0]["runtime"], serde_json::json!({ "cpu": 6, "gpu": 0 }));
    assert_eq!(result["capacity"], serde_json::json!({ "cpu": 4, "gpu": null }));
    let said = crate::replay::said(&output);
    for part in
        ["there is no gpu", "max of cpu is below its min", "the mins of the groups ask for 6 cpu, and there is 4"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn the_json_says_what_was_worked_out_and_how() {
    let instance = json(10, &[("b", [0, 9, 2]), ("a", [1, 9, 1])]);
    let result = solved(&instance, &["--method", "iterative"]);
    let keys: Vec<&String> = result.as_object().expect("an object").keys().collect();
    let rules = ["policy", "variant", "rounding", "method", "overcommit", "groups"];
    assert_eq!(keys[..6], rules);
    assert_eq!((&result["policy"], &result["method"]), (&"quota".into(), &"iterative".into()));
    assert_eq!(result["rounds"], serde_json::json!({ "cpu": 1 }));
    assert_eq!(result["granted_exact"], serde_json::json!({ "cpu": "10" }));
    let group = &result["groups"][0];
    assert_eq!((&group["name"], &group["parent"], &group["max"]["cpu"]), (&"b".into(), &"root".into(), &Value::Null));
    assert_eq!((&group["runtime"]["cpu"], &group["level_exact"]["cpu"]), (&6.into(), &"3".into()));
    assert!(solved(&instance, &["--policy", "quota"])["rounds"].is_null(), "no rounds without rounds");
    let enough = solved(&json(99, &[("a", [0, 9, 1])]), &["--method", "iterative"]);
    assert_eq!(enough["rounds"], serde_json::json!({ "cpu": 0 }), "enough for all: nothing is shared");
}

#[test]
fn the_figure_shows_buckets() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("buckets.svg");
    let instance = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/instances/quota-tree.toml");
    let draw = |path: &Path| {
        let output = crate::replay::run(crate::replay::plimsoll(&["solve"]).arg(&instance).arg("--figure").arg(path));
        assert!(output.status.success(), "{}", crate::replay::said(&output));
        std::fs::read(path).expect("the figure is written")
    };
    let svg = String::from_utf8(draw(&path)).expect("an SVG is text");
    for text in
        ["cpu: 1000", "cpu under ads: 735", "memory: 4000", "735 of 750", "research", "145 of 600", "not granted"]
    {
        assert!(svg.contains(text), "{text} is missing");
    }
    assert!(resvg::tiny_skia::Pixmap::decode_png(&draw(&dir.path().join("buckets.png"))).is_ok());
}

#[test]
fn the_page_shows_what_the_program_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/quota.md")).expect("the page is there");
    let commands = crate::solve::blocks(&page, "console");
    assert!(commands.len() >= 4, "{} commands", commands.len());
    for block in commands {
        let (command, shown) = block.split_once('\n').expect("a command and what it prints");
        let words: Vec<&str> = command.trim_start_matches("$ plimsoll ").split_whitespace().collect();
        let output = crate::replay::run(crate::replay::plimsoll(&words).current_dir(root));
        assert!(output.status.success(), "{command}: {}", crate::replay::said(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown, "{command}");
    }
    for text in crate::solve::blocks(&page, "toml") {
        let output = crate::solve::piped(&text, &[]);
        assert!(output.status.success(), "{text}: {}", crate::replay::said(&output));
    }
}
