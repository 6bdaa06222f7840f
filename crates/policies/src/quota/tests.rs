//! Valid and invalid quota files.

use std::path::Path;

use super::*;
use plimsoll_base::units::{Dim, Resources, Unit};
use plimsoll_sim::books::Weights;

/// A valid file, which the tests modify.
const RIGHT: &str = r#"variant = "max-min-level"
inside = "fair"
reclaim = "never"

[[group]]
name = "ads"
min = { cpu = 4, memory_gib = 8 }
max = { cpu = 8.5 }

[[group]]
name = "search"
parent = "ads"
ratio = { cpu = 2, memory = 0.5 }
min = { cpu = 3 }
lend = false
users = ["s1", "s-*"]

[[group]]
name = "shop"
parent = "ads"
min = { cpu = 1 }
users = ["p"]

[[group]]
name = "rest"
parent = "root"
ratio = 3
default = true
"#;

/// Returns whether a message has these words at this place: `line 3: words`.
fn says(message: &str, expected: &str) -> bool {
    let (line, words) = expected.split_once(": ").expect("a place and words");
    message.starts_with(&format!("groups.toml: {line}, column ")) && message.contains(&format!(": {words}"))
}

fn parse(text: &str) -> Result<QuotaFile> {
    QuotaFile::parse(Path::new("groups.toml"), text)
}

fn message(from: &str, to: &str) -> String {
    assert!(RIGHT.contains(from), "{from}");
    parse(&RIGHT.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn a_file_reads_as_it_is_written() {
    let file = parse(RIGHT).expect("a right file");
    assert_eq!((file.variant, file.inside, file.reclaim), (Variant::MaxMinLevel, GroupOrder::Fair, Reclaim::Never));
    let parents: Vec<_> = file.groups.iter().map(|group| group.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), None]);
    assert_eq!(file.groups[0].max[0].1, 8500);
    assert_eq!(file.groups[1].ratios.iter().map(|(_, ratio)| *ratio).max(), Some(2_000_000));
    assert!(!file.groups[1].lend && file.groups[2].lend && file.groups[3].default);
    let owners = file.owners();
    let owner = |user: &str| owners.group_of(user);
    assert_eq!([owner("s1"), owner("s-9"), owner("p"), owner("s2")], [Some(1), Some(1), Some(2), Some(3)]);
}

#[test]
fn every_wrong_file_has_its_line() {
    for (from, to, expected) in [
        ("\"max-min-level\"", "\"level\"", "line 1: variant: 'level' is not accepted; expected \"min-plus-share\" or"),
        ("\"fair\"", "3", "line 2: inside: 3 is not accepted; expected \"fifo\" or \"fair\""),
        (
            "\"never\"",
            "\"kill\"",
            "line 3: reclaim: 'kill' is not accepted; expected \"never\", \"wait\" or \"kill-after:SPAN\"",
        ),
        ("reclaim", "reclaims", "line 3: 'reclaims' is no key (did you mean 'reclaim'?)"),
        ("lend", "lends", "line 15: 'lends' is no key of a group (did you mean 'lend'?)"),
        ("cpu = 8.5", "cpu = 3.5", "line 8: max.cpu: 3.5 cores of group 'ads' is below its min of 4 cores"),
        ("cpu = 8.5", "cpu = -1", "line 8: max.cpu: -1 is negative; expected an amount of at least 0"),
        ("cpu = 8.5", "cpu = nan", "line 8: max.cpu: nan is not finite"),
        ("cpu = 8.5", "cpu = \"x\"", "line 8: max.cpu: 'x' is not a number"),
        ("cpu = 8.5", "memory_gib = 9, memory_mib = 9", "line 8: max.memory_mib: is given twice"),
        ("{ cpu = 8.5 }", "8.5", "line 8: max: expected resources, such as { cpu = 100, memory_gib = 200 }"),
        (
            "cpu = 1",
            "cpu = 2",
            "line 21: min.cpu: the minimums under 'ads' sum to 5 cores with that of 'shop', above its",
        ),
        ("ratio = 3", "ratio = -3", "line 27: ratio: -3 is negative; expected a number of at least 0"),
        ("ratio = 3", "ratio = nan", "line 27: ratio: nan is not finite"),
        ("ratio = 3", "ratio = 3e6", "line 27: ratio: 3e6 is too large"),
        ("parent = \"root\"", "parent = \"asd\"", "line 26: parent: 'asd' is no group (did you mean 'ads'?)"),
        ("name = \"ads\"", "name = \"ads\"\nparent = \"shop\"", "line 7: parent: 'ads' is above itself"),
        ("name = \"ads\"", "name = \"root\"", "line 6: name: 'root' is not accepted"),
        ("name = \"ads\"\n", "", "line 5: name: is missing"),
        ("\"rest\"", "\"shop\"", "line 25: name: 'shop' is already on line 19"),
        ("default = true", "default = 1", "line 28: default: 1 is not accepted; expected true or false"),
        ("users = [\"p\"]", "default = true", "line 25: default: 'shop' and 'rest' both; expected one default group"),
        ("users = [\"p\"]", "users = [\"s1\"]", "line 19: users: 's1' of group 'shop' is in 'search' too"),
        ("users = [\"p\"]", "users = \"p\"", "line 22: users: expected a list of users"),
        ("users = [\"p\"]", "users = [1]", "line 22: users: 1 is not accepted; expected text in quotes"),
        ("name = \"ads\"", "name = \"ads\"\nusers = [\"x\"]", "line 6: users: 'ads' has groups under it"),
        ("[[group]]\nname = \"ads\"", "group]]", "line 5: "),
    ] {
        let message = message(from, to);
        assert!(says(&message, expected), "{message}\nnot: {expected}");
    }
    assert!(parse("inside = \"fifo\"").expect_err("no groups").to_string().contains("expected at least one [[group]]"));
}

#[test]
fn resources_that_a_run_has_not_are_refused() {
    let dims = [("cpu", Unit::Milli), ("memory", Unit::Normalised)];
    let dims = dims.map(|(name, unit)| Dim { name: name.to_owned(), unit });
    let weights = Weights::default();
    let setup = Setup { dims: &dims, capacity: Resources::ZERO, machines: 1, weights: &weights, labels: None };
    let message = Quota::new(&parse(RIGHT).expect("a right file"), &setup).expect_err("GiB").to_string();
    let expected = "line 7: min.memory_gib: is no resource of this run; expected cpu, memory_norm";
    assert!(says(&message, expected), "{message}");
    let file = parse(&RIGHT.replace(", memory_gib = 8", "").replace("cpu = 2", "gpu = 2")).expect("a right file");
    let message = Quota::new(&file, &setup).expect_err("no GPU").to_string();
    assert!(says(&message, "line 13: ratio.gpu: is no resource of this run"), "{message}");
}

/// Labels after the 28 lines of [`RIGHT`].
const LABELS: &str = r#"
[[label]]
name = "gpu"

[[label.group]]
name = "ads"
min = { gpu = 4 }

[[label.group]]
name = "shop"
ratio = 2
min = { gpu = 3 }
max = { gpu = 6 }
lend = false

[[label]]
name = "nic=100g"
group = [{ name = "rest" }]
"#;

#[test]
fn labels_read_as_they_are_written() {
    let file = parse(&format!("{RIGHT}{LABELS}")).expect("a right file");
    let names: Vec<(&str, usize)> = file.labels.iter().map(|tree| (&*tree.name, tree.place.line())).collect();
    assert_eq!(names, [("gpu", 31), ("nic=100g", 45)]);
    let gpu = &file.labels[0].groups;
    let stated: Vec<(&str, bool, Option<usize>)> =
        gpu.iter().map(|group| (&*group.name, group.stated, group.parent)).collect();
    assert_eq!(
        stated,
        [("ads", true, None), ("search", false, Some(0)), ("shop", true, Some(0)), ("rest", false, None)]
    );
    assert_eq!((gpu[2].ratio, gpu[2].min[0].1, gpu[2].max[0].1, gpu[2].lend), (2_000_000, 3000, 6000, false));
    assert!(file.labels[1].groups[3].stated && file.labels[1].groups[3].ratio == 1_000_000);
}

#[test]
fn every_wrong_label_has_its_line() {
    for (from, to, expected) in [
        (
            "\"gpu\"",
            "\"gpu & ssd\"",
            "line 31: label.name: 'gpu & ssd' is no label; expected the name of a label (letters",
        ),
        ("\"gpu\"", "\"!gpu\"", "line 31: label.name: '!gpu' is no label"),
        ("name = \"gpu\"\n", "", "line 30: label.name: is missing"),
        ("\"nic=100g\"", "\"gpu\"", "line 45: label.name: 'gpu' has a tree on line 31 already"),
        ("\"shop\"", "\"shp\"", "line 38: label.group.name: 'shp' is no group (did you mean 'shop'?)"),
        ("\"shop\"", "\"ads\"", "line 38: label.group.name: 'ads' is already on line 34"),
        (
            "ratio = 2",
            "parent = \"ads\"",
            "line 39: 'parent' is no key of a label's group, which has the parent and users",
        ),
        ("ratio = 2", "ratio = -2", "line 39: ratio: -2 is negative"),
        ("gpu = 6", "gpu = 2", "line 41: max.gpu: 2"),
        ("gpu = 3", "gpu = 5", "line 40: min.gpu: the minimums under 'ads' sum to 5"),
        ("gpu = 4", "cpu = 4", "line 40: min.gpu: the minimums under 'ads' sum to 3"),
        ("[{ name = \"rest\" }]", "[]", "line 45: label.group: is missing; expected a [[label.group]] for each group"),
        (
            "{ name = \"rest\" }",
            "{ name = \"search\" }",
            "line 46: label.group: 'search' is under 'ads', which has no group",
        ),
        ("{ name = \"rest\" }", "3", "line 46: label.group: expected a [[label.group]]"),
        ("group = [{", "groups = [{", "line 46: 'groups' is no key of a label (did you mean 'group'?)"),
    ] {
        assert!(LABELS.contains(from), "{from}");
        let message = parse(&format!("{RIGHT}{}", LABELS.replacen(from, to, 1))).expect_err(to).to_string();
        assert!(says(&message, expected), "{message}\nnot: {expected}");
    }
    let many: String =
        (0..255).map(|at| format!("[[label]]\nname = 'l{at}'\ngroup = [{{ name = 'rest' }}]\n")).collect();
    let message = parse(&format!("{RIGHT}{many}")).expect_err("too many").to_string();
    assert!(message.contains("'l254' is one too many; expected at most 254 labels"), "{message}");
}
