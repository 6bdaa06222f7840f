//! `plimsoll queues import`: the generated file for each format's sample, numbers, notes, detection, and invalid input.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use plimsoll::policy::PolicySpec;
use plimsoll::queues::{FORMATS, KEYS, import};
use plimsoll::tree::{Entry, Node, Place, Value};
use plimsoll::units::{Dim, Rounding, decimal};

use crate::replay::{plimsoll, run, said};

/// The samples: a format, its files, and the generated file.
pub const SAMPLES: [(&str, &[&str], &str); 5] = [
    ("kueue", &["cohorts.yaml", "cluster-queues.yaml"], "kueue.toml"),
    ("kai", &["kai.yaml"], "kai.toml"),
    ("volcano", &["volcano.yaml"], "volcano.toml"),
    ("yarn-capacity", &["capacity-scheduler.xml", "yarn-site.xml"], "yarn-capacity.toml"),
    ("yarn-fair", &["fair-scheduler.xml"], "yarn-fair.toml"),
];

/// The folder of the samples.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/queues")
}

fn queues(arguments: &[&str], within: &Path) -> Output {
    let all: Vec<&str> = ["queues", "import"].into_iter().chain(arguments.iter().copied()).collect();
    run(plimsoll(&all).current_dir(within))
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tree(text: &str) -> Node {
    Node::toml(&Place::whole_text("made.toml", text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The groups of a file.
fn groups(tree: &Node) -> &[Node] {
    tree.get("group").expect("groups").node.list().expect("a list")
}

/// Compares the output for each sample with the reviewed file. `PLIMSOLL_BLESS=1` rewrites the files.
#[test]
fn samples_become_the_files_beside_them() {
    for (format, files, made) in SAMPLES {
        let text = printed(&queues(files, &folder()));
        let path = folder().join(made);
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            std::fs::write(&path, &text).expect("writable");
        }
        assert_eq!(text, std::fs::read_to_string(&path).expect(made), "{made} (PLIMSOLL_BLESS=1 writes it)");
        assert!(text.starts_with(&format!("# Queues of {format} (")), "{text}");
        // A declared format and a detected format give the same output.
        let told: Vec<&str> = files.iter().copied().chain(["--format", format]).collect();
        assert_eq!(printed(&queues(&told, &folder())), text);
    }
}

/// Every number is exact in the internal units, and parents precede their children.
#[test]
fn files_are_trees_with_exact_numbers() {
    for (_, _, made) in SAMPLES {
        let text = std::fs::read_to_string(folder().join(made)).expect(made);
        let tree = tree(&text);
        let mut names: Vec<&str> = Vec::new();
        let mut tables: Vec<&Node> = tree.get("capacity").map(|entry| &entry.node).into_iter().collect();
        for group in groups(&tree) {
            let name = group.get("name").and_then(|entry| entry.node.text()).expect("a name");
            assert!(!names.contains(&name), "{made}: {name}");
            if let Some(parent) = group.get("parent") {
                assert!(names.contains(&parent.node.text().expect("text")), "{made}: {name}");
            }
            names.push(name);
            tables.extend(group.entries().iter().map(|entry| &entry.node).filter(|node| node.table().is_some()));
        }
        let limited = |entry: &&Entry| entry.node.text() != Some("unlimited");
        for entry in tables.iter().flat_map(|table| table.entries()).filter(limited) {
            let (Value::Integer(digits) | Value::Float(digits)) = &entry.node.value else {
                panic!("{made}: {}", entry.key)
            };
            let (_, scale) = Dim::parse(&entry.key);
            let read = |round| decimal(digits.as_bytes(), scale, round).expect("a number");
            assert_eq!(read(Rounding::Up), read(Rounding::Down), "{made}: {} = {digits}", entry.key);
        }
    }
}

/// The row of a format lists exactly the keys that occur in the groups of its sample.
#[test]
fn rows_list_the_keys() {
    for (format, _, made) in SAMPLES {
        let row = FORMATS.iter().find(|row| row.name == format).expect(format);
        let tree = tree(&std::fs::read_to_string(folder().join(made)).expect(made));
        let has = |key: &str| groups(&tree).iter().any(|group| group.get(key).is_some());
        let found: Vec<&str> = KEYS.iter().map(|key| key.name).filter(|key| has(key)).collect();
        assert_eq!(found, row.keys(), "{format}");
        let known: Vec<&str> = ["name", "parent"].into_iter().chain(row.keys()).collect();
        groups(&tree).iter().for_each(|group| group.known(&known, "", "").expect(format));
    }
    assert_eq!(SAMPLES.len(), FORMATS.len());
    let used = |name: &str| FORMATS.iter().any(|format| format.keys().contains(&name));
    assert!(KEYS.iter().all(|key| used(key.name)), "every key is one of some format");
}

/// Checks the table of a format in both directions: the importer reads each property, and each key of the policies belongs to a
/// property or is declared as specific to Plimsoll.
#[test]
fn properties_and_keys_belong_together() {
    for (format, files, _) in SAMPLES {
        let row = FORMATS.iter().find(|row| row.name == format).expect(format);
        let texts = |rename: &dyn Fn(String) -> String| -> Vec<(PathBuf, String)> {
            let read = |file: &&str| std::fs::read_to_string(folder().join(file)).expect("a sample");
            files.iter().map(|file| (PathBuf::from(file), rename(read(file)))).collect()
        };
        let made = |texts| import(texts, Some(*row)).map(|imported| imported.text).map_err(|error| error.to_string());
        let whole = made(texts(&|text| text)).expect("a sample is imported");
        for property in row.properties {
            // Under another name the property is unknown: the output differs, or the file is refused.
            let name = property.upstream;
            let renamed = |text: String| {
                let mut parts = text.split(name);
                let first = parts.next().unwrap_or_default().to_owned();
                parts.fold(first, |text, rest| {
                    let word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
                    let alone = !text.ends_with(word) && !rest.starts_with(word);
                    text + if alone { "renamed" } else { name } + rest
                })
            };
            assert!(texts(&|text| text).iter().any(|(_, text)| text.contains(name)), "{format}: {name} in the sample");
            assert_ne!(made(texts(&renamed)), Ok(whole.clone()), "{format}: {name} is read");
        }
        for key in row.properties.iter().filter_map(|property| property.key.strip_prefix("[policy] ")) {
            assert!(whole.contains(&format!("\n{key} = ")), "{format}: [policy] {key} in the sample");
        }
        let reached = |name: &str| row.properties.iter().any(|property| property.key == name);
        let ours = |name: &str| row.ours.iter().any(|(key, _)| *key == name);
        let mut known: Vec<String> = Vec::new();
        for policy in row.policies {
            let keys =
                PolicySpec::all().into_iter().find(|spec| spec.row().name == *policy).expect("a policy").row().keys;
            for key in keys {
                let name = if key.whole { format!("[policy] {}", key.name) } else { key.name.to_owned() };
                assert!(reached(&name) != ours(&name), "{format}: {name} of {policy} is a property's, or is ours");
                known.push(name);
            }
        }
        for (key, reason) in row.ours {
            assert!(known.iter().any(|name| name == key) && !reason.is_empty(), "{format}: {key} is a policy's");
        }
    }
}

/// Each note is a warning and a line of the comment.
#[test]
fn notes_are_warnings_and_comments() {
    for (format, files, _) in SAMPLES {
        let output = queues(files, &folder());
        let text = printed(&output);
        let comments: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# - ")).collect();
        let said = said(&output);
        let warnings: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
        assert!(!comments.is_empty() && comments == warnings, "{format}: {said}");
    }
    let quiet = queues(&["kai.yaml", "--quiet"], &folder());
    assert!(quiet.status.success() && quiet.stderr.is_empty());
}

/// Imports a text of this name.
fn imported_text(name: &str, text: &str) -> Result<String, String> {
    let format = name.split('.').next().and_then(|name| FORMATS.iter().copied().find(|format| format.name == name));
    import(vec![(name.into(), text.to_owned())], format).map(|made| made.text).map_err(|error| error.to_string())
}

fn queue(name: &str, spec: &str) -> String {
    format!("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n")
}

#[test]
fn kueues_names_are_told_apart() {
    let cohort =
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\nspec: {parentName: root}\n---\n";
    let text = format!("{}{}{cohort}", queue("a", "{cohortName: a}"), queue("a-cohort", "{cohort: a}"));
    let made = imported_text("kueue.yaml", &text).expect("queues");
    assert!(made.contains("the cohort 'a' is called 'a-cohort-' here: a ClusterQueue has its name"), "{made}");
    assert!(made.contains("the cohort 'root' is called 'root-cohort' here"), "{made}");
    let tree = tree(&made);
    let parents: Vec<(&str, Option<&str>)> = groups(&tree)
        .iter()
        .map(|group| {
            (
                group.get("name").and_then(|e| e.node.text()).expect("a name"),
                group.get("parent").and_then(|e| e.node.text()),
            )
        })
        .collect();
    assert_eq!(
        parents,
        [
            ("root-cohort", None),
            ("a-cohort-", Some("root-cohort")),
            ("a", Some("a-cohort-")),
            ("a-cohort", Some("a-cohort-"))
        ]
    );
}

#[test]
fn kueues_selectors_name_users_unless_two_select_one() {
    let selector = |names: &str| {
        let expression = format!("{{key: kubernetes.io/metadata.name, operator: In, values: [{names}]}}");
        format!("{{cohort: c, namespaceSelector: {{matchExpressions: [{expression}]}}}}")
    };
    let made =
        imported_text("kueue.yaml", &(queue("a", &selector("x, y")) + &queue("b", &selector("y, z")))).expect("queues");
    assert!(made.contains("users = [\"x/*\"]") && made.contains("users = [\"z/*\"]"), "{made}");
    assert!(made.contains("lines 4 and 9: the namespace 'y' is selected by several queues"), "{made}");
}

#[test]
fn kueues_strategies_are_those_of_its_defaults() {
    let configuration = |version: &str, sharing: &str| {
        let text = format!("apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n{sharing}\n---\n");
        imported_text("kueue.yaml", &(text + &queue("a", "{}"))).expect("queues")
    };
    let both = "preemption_strategies = [\"less-than-or-equal-to-final-share\", \"less-than-initial-share\"]";
    for (version, sharing, is_on) in [
        ("v1beta1", "fairSharing: {enable: true}", true),
        ("v1beta1", "fairSharing: {}", false),
        ("v1beta1", "", false),
        ("v1beta2", "fairSharing: {}", true),
        ("v1beta2", "namespace: x", false),
    ] {
        let made = configuration(version, sharing);
        assert_eq!(made.contains(both), is_on, "{made}");
        assert_eq!(made.contains("fair sharing is not enabled there"), !is_on, "{made}");
    }
}

/// JSON is YAML, and what `kubectl` prints is a list.
#[test]
fn json_and_standard_input_are_read() {
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "a", "uid": "1"}, "spec": {"weight": 2, "capability": {"memory": "1.5Gi"}}, "status": {"running": 1}}]}"#;
    let mut command = plimsoll(&["queues", "import", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), json.as_bytes()).expect("it reads");
    let text = printed(&child.wait_with_output().expect("it ends"));
    assert!(text.starts_with("# Queues of volcano (Volcano's Queues), made of standard input.\n"), "{text}");
    assert!(text.ends_with("[[group]]\nname = \"a\"\nweight = 2\ncapability = { memory_mib = 1536 }\n"), "{text}");
    assert!(text.contains("line 2: status is not carried over: the state of a cluster"), "{text}");
}

/// The output file gets its name once it is complete, and invalid input writes no file.
#[test]
fn files_are_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let sample = folder().join("volcano.yaml").display().to_string();
    let output = queues(&[&sample, "-o", "made/queues.toml"], dir.path());
    assert!(printed(&output).is_empty() && said(&output).ends_with("made/queues.toml: 2 groups of volcano\n"));
    let path = dir.path().join("made/queues.toml");
    let made = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(made, printed(&queues(&[&sample, "-o", "-"], dir.path())));
    std::fs::write(dir.path().join("bad.yaml"), "kind: Queue\n").expect("writable");
    let refused = queues(&["bad.yaml", "-o", "made/queues.toml"], dir.path());
    assert_eq!((refused.status.code(), std::fs::read_to_string(&path).expect("a file")), (Some(2), made));
    let names: Vec<_> = std::fs::read_dir(path.parent().expect("a folder")).expect("a folder").collect();
    assert_eq!(names.len(), 1);
}

/// Invalid files of a format, and the beginning of the error message for each.
const WRONG: [(&str, &str, &str); 26] = [
    (
        "kueue.yaml",
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing:\n  \
         preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]\n",
        "kueue.yaml: line 4, column 25: fairSharing.preemptionStrategies: a list is not accepted; expected LessThanOrEqualToFinalShare, ",
    ),
    ("kueue.yaml", "a: [1\nb: 2\n", "kueue.yaml: line 2, column "),
    ("kueue.yaml", "kind: A\nkind: B\n", "kueue.yaml: line 2, column 1: the key 'kind' appears twice\n"),
    (
        "kueue.yaml",
        "- 1\n",
        "kueue.yaml: line 1, column 1: a list is no object; expected apiVersion, kind, metadata and spec",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\n",
        "kueue.yaml: line 1, column 1: kind: is missing; expected an object",
    ),
    ("kueue.yaml", "<a/>", "kueue.yaml: is XML; expected objects of Kubernetes in YAML or JSON"),
    (
        "kueue.yaml",
        "apiVersion: v1\nkind: ConfigMap\n",
        "kueue.yaml: has no queues of kueue; expected ClusterQueue, Cohort",
    ),
    (
        "x.yaml",
        "apiVersion: v1\nkind: ConfigMap\n",
        "x.yaml: is of no format that is known by its content; expected kueue, kai, ",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {}\n",
        "kueue.yaml: line 3, column 1: metadata.name: is missing; expected the name of the object",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  preemption: {withinClusterQueue: Lower}\n",
        "kueue.yaml: line 5, column 36: spec.preemption.withinClusterQueue: 'Lower' is not accepted; expected Never, LowerPriority or",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {fairSharing: {weight: -2}}\n",
        "kueue.yaml: line 4, column 30: spec.fairSharing.weight: '-2' is negative; expected an amount of at least 0",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  resourceGroups:\n  - flavors:\n    \
         - resources:\n      - {name: cpu, nominalQuota: two}\n",
        "kueue.yaml: line 8, column 35: spec.resourceGroups.flavors.resources.nominalQuota: 'two' is not a number; expected an amount",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n  resourceGroups:\n  - flavors:\n    \
         - resources:\n      - {name: cpu, nominalQuota: 9E}\n",
        "kueue.yaml: line 8, column 35: spec.resourceGroups.flavors.resources.nominalQuota: '9E' is too large; expected less than",
    ),
    (
        "kueue.yaml",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: a}\nspec: {parent: b}\n---\n\
         apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: b}\nspec: {parentName: a}\n",
        "kueue.yaml: line 3, column 18: 'a' is above itself; expected a tree",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: dept}\n---\n\
         apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec:\n  parentQueue: detp\n",
        "kai.yaml: line 9, column 16: spec.parentQueue: 'detp' is no queue of these files (did you mean 'dept'?); expected",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec: {resources: {gpu: {quota: -2}}}\n",
        "kai.yaml: line 4, column 33: spec.resources.gpu.quota: '-2' is negative; expected a number of at least 0",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec: {resources: {gpu: 4}}\n",
        "kai.yaml: line 4, column 25: spec.resources.gpu: 4 is not accepted; expected a table",
    ),
    (
        "kai.yaml",
        "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\n---\n\
         apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\n",
        "kai.yaml: line 7, column 18: two groups are called 'a', the first on line 3; expected names of their own",
    ),
    (
        "volcano.yaml",
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {weight: 1.5}\n",
        "volcano.yaml: line 4, column 16: spec.weight: 1.5 is not accepted; expected a whole number of 32 bits",
    ),
    (
        "volcano.yaml",
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: {reclaimable: maybe}\n",
        "volcano.yaml: line 4, column 21: spec.reclaimable: 'maybe' is not accepted; expected true or false",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property></x>\n",
        "yarn-capacity.xml: line 2, column 11: expected 'property' tag, not 'x'",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property><name>yarn.scheduler.capacity.root.queues</name><value>a,a</value></property>\n</configuration>",
        "yarn-capacity.xml: line 2, column 1: yarn.scheduler.capacity.root.queues: 'a' stands twice",
    ),
    (
        "yarn-capacity.xml",
        "<configuration>\n<property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>\n\
         <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>140</value></property></configuration>",
        "yarn-capacity.xml: line 3, column 1: yarn.scheduler.capacity.root.a.capacity: '140' is not accepted; expected a percentage",
    ),
    ("yarn-fair.xml", "<configuration/>", "yarn-fair.xml: line 1, column 1: expected <allocations>"),
    (
        "yarn-fair.xml",
        "<allocations>\n<queue name=\"a\">\n<minResources>12 gb</minResources></queue></allocations>",
        "yarn-fair.xml: line 3, column 1: minResources: '12 gb' is not accepted; expected resources such as '1024 mb, 4 vcores'",
    ),
    (
        "yarn-fair.xml",
        "<allocations>\n<queue name=\"a.b\"/></allocations>",
        "yarn-fair.xml: line 2, column 1: name: 'a.b' is not accepted; expected the name of a queue, without dots",
    ),
];

/// Properties of the capacity scheduler as a file.
fn capacities(properties: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| {
        format!("<property><name>yarn.scheduler.capacity.{name}</name><value>{value}</value></property>\n")
    };
    format!("<configuration>\n{}</configuration>", properties.iter().map(line).collect::<String>())
}

/// Without a calculator YARN compares memory alone, which is written to the file. The first container is that of YARN.
#[test]
fn yarn_s_default_calculator_is_in_the_file() {
    let text = |calculator: &[(&'static str, &'static str)]| {
        let queues = [("root.queues", "a,b"), ("root.a.capacity", "50"), ("root.b.capacity", "50")];
        let more = [("root.b.disable_preemption", "true"), ("root.queue-ordering-policy", "priority-utilization")];
        imported_text("yarn-capacity.xml", &capacities(&[&queues[..], &more, calculator].concat())).expect("queues")
    };
    let (default, dominant) = ("org.example.DefaultResourceCalculator", "org.example.DominantResourceCalculator");
    let made = text(&[]);
    assert!(made.contains("[policy]\nresources = \"memory\"\nordering = \"priority-utilization\"\n"), "{made}");
    assert!(made.ends_with("name = \"b\"\nreclaimable = false\npercent = 50\n"), "{made}");
    assert!(!made.contains("not carried over"), "{made}");
    assert_eq!(text(&[("resource-calculator", default)]), made);
    assert!(text(&[("resource-calculator", dominant)]).contains("resources = \"dominant\""));

    let state = "[capacity]\ncpu = 16\nmemory_gib = 16\n[[running]]\nname = 'ra'\ngroup = 'a'\ndemand = { cpu = 8, memory_gib = 1 }\n\
                 [[running]]\nname = 'rb'\ngroup = 'b'\ndemand = { cpu = 1, memory_gib = 4 }\n\
                 [[waiting]]\nname = 'wa'\ngroup = 'a'\ndemand = { cpu = 1, memory_gib = 8 }\n\
                 [[waiting]]\nname = 'wb'\ngroup = 'b'\ndemand = { cpu = 1, memory_gib = 8 }\n";
    let dir = tempfile::tempdir().expect("a folder");
    let started = |queues: &str| {
        std::fs::write(dir.path().join("s.toml"), format!("{state}{queues}")).expect("writable");
        let mut command = plimsoll(&["decide", "s.toml", "--policy", "yarn-capacity", "--format", "json"]);
        let answer: serde_json::Value =
            serde_json::from_str(&printed(&run(command.current_dir(dir.path())))).expect("JSON");
        answer["launched"][0]["name"].as_str().expect("a name").to_owned()
    };
    assert_eq!(started(&made), "wa");
    assert_eq!(started(&text(&[("resource-calculator", dominant)])), "wb");
}

/// YARN preempts nothing unless its monitor is on, which is off by default. The file has this only if yarn-site.xml is given.
#[test]
fn yarn_s_monitor_is_off_by_default() {
    let made = |monitor: &str| {
        let queues = "<property><name>yarn.scheduler.capacity.root.queues</name><value>a</value></property>\
            <property><name>yarn.scheduler.capacity.root.a.capacity</name><value>100</value></property>";
        imported_text("yarn-capacity.xml", &format!("<configuration>{queues}{monitor}</configuration>"))
    };
    let property = |name: &str, value: &str| format!("<property><name>{name}</name><value>{value}</value></property>");
    assert!(!made("").expect("queues").contains("preemption"));
    let least = property("yarn.scheduler.minimum-allocation-mb", "512");
    let text = made(&least).expect("queues");
    assert!(
        text.contains("preemption = false\n") && text.contains("minimum_allocation = { memory_mib = 512 }"),
        "{text}"
    );
    let monitor = "yarn.resourcemanager.scheduler.monitor.enable";
    assert!(made(&property(monitor, "true")).expect("queues").contains("preemption = true\n"));
    assert!(made(&property(monitor, "yes")).expect_err("no truth").contains("expected true or false"));
}

/// Capacities that YARN refuses are errors.
#[test]
fn yarn_s_capacities_sum_to_the_whole() {
    let import = |properties: &[(&str, &str)]| {
        let queues = [("root.queues", "a,b"), ("root.a.queues", "x,y")];
        imported_text("yarn-capacity.xml", &capacities(&[&queues[..], properties].concat()))
    };
    let [whole, half] = [("root.a.capacity", "100"), ("root.a.capacity", "50")];
    let (b, x, y) = (("root.b.capacity", "50"), ("root.a.x.capacity", "33.3"), ("root.a.y.capacity", "66.7"));
    let amounts = "[memory=10,vcores=1]";
    let (absolute, rest) =
        (("root.a.capacity", "[memory=2048,vcores=4]"), ("root.a.y.capacity", "[memory=1024,vcores=2]"));
    let dominant = ("resource-calculator", "DominantResourceCalculator");
    for accepted in [
        vec![half, b, x, y],
        vec![whole, x, y],
        vec![half, b, ("root.a.x.capacity", "1w"), ("root.a.y.capacity", "2w")],
        vec![("root.a.capacity", "1w"), ("root.b.capacity", "2w")],
        vec![("root.a.capacity", "0"), ("root.b.capacity", "100")],
        vec![half, b, ("root.a.allow-zero-capacity-sum", "true")],
        vec![("root.a.capacity", amounts), ("root.a.x.capacity", amounts), ("root.a.y.capacity", "0")],
        vec![half, ("root.b.capacity", "40"), x, y, ("legacy-queue-mode.enabled", "false")],
        // Only memory is checked, unless the dominant resource counts; more of one resource and less of the other is then accepted.
        vec![absolute, ("root.a.x.capacity", "[memory=1024,vcores=9]"), rest],
        vec![absolute, ("root.a.x.capacity", "[memory=1023,vcores=9]"), rest, dominant],
        vec![absolute, ("root.a.x.capacity", "[vcores=9]"), rest, dominant],
    ] {
        assert!(import(&accepted).is_ok(), "{accepted:?}: {:?}", import(&accepted));
    }
    for (refused, said) in [
        (
            vec![half, ("root.b.capacity", "40"), x, y],
            "line 4, column 1: capacity: the capacities of the queues under 'root' sum to 90 %",
        ),
        (vec![half, b, x], "line 6, column 1: capacity: the capacities of the queues under 'root.a' sum to 33.3 %"),
        (vec![half, b], "the capacities of the queues under 'root.a' sum to 0 %; expected 100 %"),
        (vec![("root.a.capacity", "0"), ("root.b.capacity", "100"), x, y], "sum to 100 %; expected 0 %"),
        (
            vec![half, ("root.b.capacity", "1w"), x, y],
            "line 5, column 1: capacity: 'root.b' has a weight, and its sibling 'root.a'",
        ),
        (
            vec![half, ("root.b.capacity", amounts), x, y],
            "'root.b' has resources, and its sibling 'root.a' has a percentage",
        ),
        (vec![half, b, ("root.a.x.capacity", amounts)], "the queues under 'root.a' have resources as capacities, and"),
        (vec![("root.a.capacity", amounts), x, y], "the queues under 'root.a' do not have resources as capacities"),
        (
            vec![absolute, ("root.a.x.capacity", "[memory=1025,vcores=1]"), rest],
            "line 5, column 1: capacity: the resources of the queues under 'root.a' sum to 2.001 GiB of memory; expected at most 2 GiB",
        ),
        (
            vec![absolute, ("root.a.x.capacity", "[memory=1024,vcores=3]"), rest, dominant],
            "sum to 5 cores of cpu; expected at most 4 cores",
        ),
        (
            vec![whole, x, y, ("resource-calculator", "Fast")],
            "'Fast' is not accepted; expected DefaultResourceCalculator or",
        ),
        (vec![whole, x, y, ("root.b.disable_preemption", "no")], "'no' is not accepted; expected true or false"),
    ] {
        let error = import(&refused).expect_err(said);
        assert!(error.contains(said), "{error}\nexpected\n{said}");
    }
}

/// Of several properties of one name the last counts, unless one before it is final (`Configuration` of Hadoop).
#[test]
fn final_properties_of_hadoop_stay() {
    let property = |value: &str, is_final: &str| {
        let name = "yarn.scheduler.capacity.root.a.maximum-capacity";
        format!("<property><name>{name}</name><value>{value}</value><final>{is_final}</final></property>\n")
    };
    let import = |properties: &[String]| {
        let queues = capacities(&[("root.queues", "a"), ("root.a.capacity", "10"), ("root.a.capacity", "100")]);
        let text = queues.replace("</configuration>", &(properties.concat() + "</configuration>"));
        imported_text("yarn-capacity.xml", &text).expect("queues")
    };
    let (first, last) = ("max_percent = 60\n", "max_percent = 80\n");
    assert!(import(&[property("60", "false"), property("80", "false")]).ends_with(last));
    assert!(import(&[property("60", "false"), property("80", "true")]).ends_with(last));
    let made = import(&[property("60", "true"), property("80", "false"), property("60", "true")]);
    assert!(made.ends_with(first), "{made}");
    assert!(made.contains("line 6: yarn.scheduler.capacity.root.a.maximum-capacity is ignored: "), "{made}");
}

#[test]
fn wrong_files_are_refused_with_their_places() {
    let wrong = WRONG.iter().filter_map(|(name, text, said)| {
        let answer = imported_text(name, text).expect_err(text);
        (!answer.starts_with(said)).then(|| format!("{answer}\nexpected\n{said}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn wrong_commands_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("bad.yaml"), WRONG[4].1).expect("writable");
    let [kueue, kai] = ["cluster-queues.yaml", "kai.yaml"].map(|file| folder().join(file).display().to_string());
    for (arguments, said_of_it) in [
        (vec!["bad.yaml"], "bad.yaml: "),
        (vec!["missing.yaml"], "missing.yaml: "),
        (vec!["-", "-"], "FILE: '-' is not accepted; expected standard input once"),
        (vec![], "<FILE>..."),
        (vec!["bad.yaml", "--format", "kube"], "'kube'"),
        (vec![&kueue, &kai], "is kai, and "),
        (vec![&kueue, "--format", "yarn-fair"], "is no XML; expected <allocations>"),
    ] {
        let output = queues(&arguments, dir.path());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && said(&output).contains(said_of_it), "{arguments:?}: {}", said(&output));
    }
}
