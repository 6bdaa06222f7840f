//! `plimsoll queues import`: the generated file for each format's sample, numbers, notes, detection, and invalid input.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use plimsoll::policy::BUILT_IN;
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

pub fn queues(arguments: &[&str], within: &Path) -> Output {
    let all: Vec<&str> = ["queues", "import"].into_iter().chain(arguments.iter().copied()).collect();
    run(plimsoll(&all).current_dir(within))
}

pub fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn tree(text: &str) -> Node {
    Node::toml(&Place::whole_text("made.toml", text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the groups of a generated file.
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
    assert!(KEYS.iter().all(|key| used(key.name)), "every key belongs to a format");
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
            // A renamed property is unknown to the importer. If the importer reads the property, the output differs or the file is refused.
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
            let keys = BUILT_IN.rows().find(|row| row.name == *policy).expect("a policy").keys;
            for key in keys {
                let name = if key.whole { format!("[policy] {}", key.name) } else { key.name.to_owned() };
                assert!(
                    reached(&name) != ours(&name),
                    "{format}: {name} of {policy} belongs either to a property or to Plimsoll"
                );
                known.push(name);
            }
        }
        for (key, reason) in row.ours {
            assert!(
                known.iter().any(|name| name == key) && !reason.is_empty(),
                "{format}: {key} is a key of a policy, with a reason"
            );
        }
    }
}

/// Each note is printed as a warning and written to the comment of the file.
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

/// Imports a text as a file of this name. The name without its ending is the format, if there is such a format.
pub fn imported_text(name: &str, text: &str) -> Result<String, String> {
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
        assert_eq!(made.contains("fair sharing is not enabled"), !is_on, "{made}");
    }
}

/// JSON is accepted as YAML, and so is the list that `kubectl` prints.
#[test]
fn json_and_standard_input_are_read() {
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "a", "uid": "1"}, "spec": {"weight": 2, "capability": {"memory": "1.5Gi"}}, "status": {"running": 1}}]}"#;
    let mut command = plimsoll(&["queues", "import", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), json.as_bytes()).expect("it reads");
    let text = printed(&child.wait_with_output().expect("it ends"));
    assert!(text.starts_with("# Queues of volcano (Volcano's Queues), converted from standard input.\n"), "{text}");
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
