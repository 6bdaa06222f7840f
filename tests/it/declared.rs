//! Single declarations: a policy, a job order, a trace format, a placement rule, a kind of figure and a column of a table are one row each.
//! Names, messages, help and the tables of the docs are derived from the rows.
//!
//! `PLIMSOLL_UPDATE_DOCS=1 cargo test --release --test it declared` regenerates these tables.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ArgAction;
use plimsoll::cli::{ACCELERATOR_KEYS, AcceleratorKey};
use plimsoll::cluster::Placement;
use plimsoll::column::{Better, Kind, Unit};
use plimsoll::engine::settings::{ClusterSetting, SETTINGS, SettingKind};
use plimsoll::engine::{REASONS, ReasonRow};
use plimsoll::output::numbers::capital;
use plimsoll::output::requests::kinds;
use plimsoll::output::schema::Table;
use plimsoll::policy::job_order::{ORDERS, USUAL};
use plimsoll::policy::{BUILT_IN, NAMES, Name, Of};
use plimsoll::queues::{self, FORMATS, KEYS};
use plimsoll::rounds::policies::{POLICIES, PolicyRow};
use plimsoll::trace_import::{SHIPPED, Shipped, functions};
use plimsoll::units::Dim;
use plimsoll::workload::formats::{Format, FormatOptions};

use crate::replay::files;
use crate::sources::copy_sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a table of the documentation in Markdown.
fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
    let line = |cells: Vec<String>| format!("|{}\n", cells.iter().map(cell).collect::<String>());
    let head =
        line(head.iter().map(|name| (*name).to_owned()).collect()) + &format!("|{}\n", "---|".repeat(head.len()));
    head + &rows.map(line).collect::<String>()
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

/// Returns the table of the settings of a cluster.
fn settings() -> String {
    let row = |setting: &ClusterSetting| {
        let value = match setting.kind {
            SettingKind::Text(name) => name.to_lowercase(),
            SettingKind::List(name) => format!("list of {}s", name.to_lowercase()),
            SettingKind::File => "file".to_owned(),
            SettingKind::Switch => "true or false".to_owned(),
        };
        let agent = setting.agent || setting.requires.and_then(ClusterSetting::find).is_some_and(|other| other.agent);
        let control = if setting.control_supports.is_some() { "`[control]` (some values)" } else { "`[control]`" };
        let refused = [("pooled", setting.placed), ("gym", agent), (control, setting.control.is_some())];
        let refused: Vec<&str> = refused.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
        let default = (setting.default)().map(code).unwrap_or_default();
        vec![code(setting.key), value, default, code(setting.example), (setting.help)(), refused.join(", ")]
    };
    table(&["key", "value", "default", "example", "meaning", "not with"], SETTINGS.iter().map(row))
}

/// Returns the tables of the documentation, each with its page, its mark and its text.
fn tables() -> [(&'static str, &'static str, String); 17] {
    let format = |format: &Format| {
        let row = format.row();
        vec![code(format.name()), row.about.to_owned(), row.layout.to_owned(), row.source.to_owned()]
    };
    let rule = |(name, placement): (&str, Placement)| {
        let row = placement.row();
        vec![code(name), row.chosen.to_owned(), row.source.to_owned()]
    };
    let kind = |(name, about): (&str, &str)| vec![code(name), about.to_owned()];
    let queues = |row: queues::Format| {
        // An unescaped `<` would begin an HTML element of the page.
        let layout = row.layout.replace('<', "&lt;");
        vec![code(row.name), row.about.to_owned(), layout, row.source.to_owned()]
    };
    let mapping = |shipped: &Shipped| {
        let mapping = shipped.mapping().expect("a valid mapping");
        vec![code(shipped.name), mapping.about, mapping.source]
    };
    let function = |(usage, about): (&str, &str)| {
        let spellings = usage.replace(" or ", ", ");
        let spellings = spellings.split("), ").map(|one| code(&format!("{})", one.trim_end_matches(')'))));
        vec![spellings.collect::<Vec<_>>().join(", "), about.to_owned()]
    };
    let key = |key: &queues::GroupKey| {
        let formats = FORMATS.iter().filter(|row| row.keys().contains(&key.name)).map(|row| code(row.name));
        vec![code(key.name), key.meaning.to_owned(), formats.collect::<Vec<_>>().join(", ")]
    };
    // Returns the table of a format: first its properties, then the keys of its policy that belong to no property.
    let properties = |row: queues::Format| {
        let read = row.properties.iter().map(|one| {
            let key = match one.key {
                "" => String::new(),
                "parent" => code("parent"),
                key => code(key),
            };
            vec![code(one.upstream), key, one.default.to_owned(), one.rule.to_owned()]
        });
        let ours = row.ours.iter().map(|(key, why)| vec!["-".to_owned(), code(key), String::new(), (*why).to_owned()]);
        table(&["property", "key in the file", "written if absent", "rule"], read.chain(ours))
    };
    let reason =
        |row: &ReasonRow| vec![code(row.name), row.meaning.to_owned(), row.slurm.to_owned(), row.kubernetes.to_owned()];
    let accelerator_key = |key: &AcceleratorKey| {
        vec![code(key.name), key.meaning.to_owned(), key.default.replace("`\"", "`").replace("\"`", "`")]
    };
    let round_policy = |row: &&PolicyRow| vec![code(row.name), row.title.to_owned(), row.source.to_owned()];
    let value = |name: &Name| {
        let of = match name.of {
            Of::One => "",
            Of::Resource => "[r]",
            Of::Either => " or [r]",
        };
        let clauses = name.clauses.iter().map(|clause| clause.word()).collect::<Vec<_>>().join(", ");
        vec![code(name.name) + of, clauses, name.measure.label().to_owned(), name.meaning.to_owned()]
    };
    [
        ("docs/policies.md", "values", table(&["value", "in", "unit", "content"], NAMES.iter().map(value))),
        (
            "docs/traces.md",
            "formats",
            table(&["format", "content", "a file", "source"], Format::ALL.iter().map(format)),
        ),
        ("docs/traces.md", "mappings", table(&["mapping", "content", "source"], SHIPPED.iter().map(mapping))),
        ("docs/mapping.md", "functions", table(&["function", "value"], functions().map(function))),
        ("docs/cluster.md", "settings", settings()),
        ("docs/cluster.md", "placement", table(&["rule", "chosen", "source"], Placement::ALL.into_iter().map(rule))),
        ("docs/queues.md", "queues", table(&["format", "content", "files", "source"], FORMATS.into_iter().map(queues))),
        ("docs/queues.md", "queue keys", table(&["key", "meaning", "formats"], KEYS.iter().map(key))),
        ("docs/queues.md", "kueue", properties(FORMATS[0])),
        ("docs/queues.md", "kai", properties(FORMATS[1])),
        ("docs/queues.md", "volcano", properties(FORMATS[2])),
        ("docs/queues.md", "yarn-capacity", properties(FORMATS[3])),
        ("docs/queues.md", "yarn-fair", properties(FORMATS[4])),
        ("docs/why.md", "reasons", table(&["reason", "when", "Slurm", "Kubernetes"], REASONS.iter().map(reason))),
        (
            "docs/accelerators.md",
            "accelerator-keys",
            table(&["key", "meaning", "default"], ACCELERATOR_KEYS.iter().map(accelerator_key)),
        ),
        (
            "docs/accelerators.md",
            "accelerators",
            table(&["policy", "rule", "source"], POLICIES.iter().map(round_policy)),
        ),
        ("docs/figures.md", "kinds", table(&["kind", "shows"], kinds().map(kind))),
    ]
}

#[test]
fn the_docs_have_the_rows() {
    for (page, mark, made) in tables() {
        let (path, mark) = (root().join(page), format!("<!-- made of rows: {mark} -->\n"));
        let text = read(&path);
        let (before, rest) = text.split_once(&mark).expect(page);
        let (there, after) = rest.split_once("<!-- end -->").expect(page);
        if std::env::var_os("PLIMSOLL_UPDATE_DOCS").is_some() {
            std::fs::write(&path, format!("{before}{mark}{made}<!-- end -->{after}")).expect("writable");
        } else {
            assert_eq!(there, made, "{page} (PLIMSOLL_UPDATE_DOCS=1 writes it)");
        }
    }
}

/// Returns the module of the Python package with the names and types of tables, and of the options that its functions pass to the program.
fn python_names() -> String {
    // The verbs with the class of their options. Arguments with parameters of their own in Python are excluded.
    const VERBS: [(&str, &str, &[&str]); 8] = [
        ("replay", "Replay", &["machines", "policy", "output"]),
        ("solve", "Solve", &["policy"]),
        ("check", "Check", &["policy"]),
        ("decide", "Decide", &["policy"]),
        ("court", "Court", &["policy"]),
        ("compare", "Compare", &[]),
        ("plot", "Plot", &[]),
        ("trace stats", "TraceStats", &[]),
    ];
    const NONE: [&str; 5] = ["format", "help", "quiet", "wide", "version"];
    let mut text =
        "\"\"\"The tables of results and the options of functions. Generated by `tests/it/declared.rs`.\"\"\"\n\n\
        from __future__ import annotations\n\nimport os\nfrom collections.abc import Sequence\n\
        from typing import TypedDict\n\nfrom ._plimsoll import Table\n\n\nclass ResultTables:\n    \
        \"\"\"The tables of results; each is present if it was written.\"\"\"\n"
            .to_owned();
    for table in Table::all() {
        let about = capital(table.meaning().trim_end_matches('.'));
        text += &format!("\n    {}: Table\n    \"\"\"{about}.\"\"\"\n", table.name());
    }
    for (name, about) in [
        ("estimates", "The estimate of each metric of each policy, with its interval."),
        ("differences", "The difference of each metric from the baseline, with its test."),
    ] {
        text += &format!("\n    {name}: Table\n    \"\"\"{about}\"\"\"\n");
    }
    for (verb, class, own) in VERBS {
        let command = plimsoll::cli::command();
        let command = verb.split(' ').fold(&command, |command, verb| command.find_subcommand(verb).expect("a verb"));
        let head = format!("class {class}Options(TypedDict, total=False):");
        text += &format!("\n\n{head}\n    \"\"\"Options of `plimsoll {verb}`.\"\"\"\n");
        for arg in command.get_arguments() {
            let Some(option) = arg.get_long().filter(|option| !own.contains(option) && !NONE.contains(option)) else {
                continue;
            };
            let of = arg.get_value_parser().type_id();
            let one = if of == TypeId::of::<PathBuf>() {
                "str | os.PathLike[str]"
            } else if of == TypeId::of::<f64>() {
                "float"
            } else if [TypeId::of::<u64>(), TypeId::of::<u32>(), TypeId::of::<usize>()].iter().any(|int| of == *int) {
                "int"
            } else {
                "str"
            };
            let kind = match arg.get_action() {
                ArgAction::SetTrue => "bool".to_owned(),
                ArgAction::Append => format!("{one} | Sequence[{one}]"),
                _ => one.to_owned(),
            };
            // `from` is a keyword of Python.
            let name = if option == "from" { "from_".to_owned() } else { option.replace('-', "_") };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace(['\n', '\\'], " ");
            text += &format!("\n    {}: {kind}\n    \"\"\"{}.\"\"\"\n", name, help.trim_end_matches('.'));
        }
    }
    text
}

#[test]
fn the_python_package_has_the_names_and_types() {
    let path = root().join("python/plimsoll/_declared.py");
    if std::env::var_os("PLIMSOLL_UPDATE_DOCS").is_some() {
        std::fs::write(&path, python_names()).expect("writable");
    } else {
        assert_eq!(read(&path), python_names(), "PLIMSOLL_UPDATE_DOCS=1 writes it");
    }
}

/// The docs describe every parameter of a format, and have a section for every format and kind.
#[test]
fn the_docs_describe_every_row() {
    let (traces, figures) = (read(&root().join("docs/traces.md")), read(&root().join("docs/figures.md")));
    let example = read(&root().join("experiments/figures.toml"));
    let options = serde_json::to_value(FormatOptions::default()).expect("options are JSON");
    for format in Format::ALL {
        assert!(traces.contains(&format!("### `{format}`: ")), "{format}");
        for key in options[format.name()].as_object().expect("parameters").keys() {
            assert!(traces.contains(&format!("`{format}.{key}`")), "{format}.{key}");
        }
    }
    for (name, _) in kinds() {
        let asked = format!("kind = \"{name}\"");
        assert!(figures.contains(&asked) && example.contains(&asked), "{name}");
    }
}

/// Returns the first cells of the tables of a page, without their quotation marks.
fn first_cells(page: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let text = std::fs::read_to_string(path).expect("a page");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    rows.flat_map(|cell| cell.split(", ").map(|name| name.trim_matches('`').to_owned()).collect::<Vec<_>>()).collect()
}

#[test]
fn the_docs_list_every_policy_and_every_order() {
    let listed = first_cells("policies.md");
    for spelling in BUILT_IN.rows().map(|row| row.spelling) {
        let plain = spelling.split('[').next().expect("a name");
        assert!(listed.iter().any(|cell| cell == plain), "docs/policies.md has no row for {spelling}");
    }
    for order in ORDERS.iter().map(|order| order.name()).chain([USUAL]) {
        assert!(listed.iter().any(|cell| cell == order), "docs/policies.md has no row for the order {order}");
    }
}

/// Every policy and order has a meaning, which ends with a full stop, and a source.
#[test]
fn declarations_are_complete() {
    let said = BUILT_IN.rows().map(|row| (row.name, row.meaning, row.source));
    for (name, meaning, source) in
        said.chain(ORDERS.iter().map(|order| (order.name(), order.meaning(), order.source())))
    {
        assert!(meaning.ends_with('.') && !source.is_empty(), "{name}: {meaning} {source}");
    }
}

/// The name of a column ends with its unit. A column of text has no unit, and no direction is better.
#[test]
fn columns_are_what_their_names_say() {
    let dims = ["cpu", "memory_mib"].map(|name| Dim::parse(name).0);
    for table in Table::all() {
        let columns = table.columns(&dims);
        for column in &columns {
            let (name, suffix) = (format!("{}.{}", table.name(), column.name), column.unit.suffix());
            let ends = ["_s", "_us"].into_iter().find(|end| name.ends_with(end) && !name.ends_with("_per_s"));
            assert_eq!(ends.unwrap_or_default(), suffix, "{name} is in {:?}", column.unit);
            let is_name = column.value == Kind::Text;
            assert!(!is_name || (column.unit, column.better) == (Unit::Plain, Better::Neither), "{name}");
            assert!(!column.about.is_empty() && !column.about.contains("<r>") && !column.name.contains('<'), "{name}");
            assert_eq!(columns.iter().filter(|other| other.name == column.name).count(), 1, "{name} occurs twice");
        }
    }
}

/// Returns the files below a folder that contain a text, without comments and unit tests.
fn with(folder: &str, text: &str) -> Vec<PathBuf> {
    let rust = files(&root().join(folder)).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let says = |path: &PathBuf| {
        let all = read(path);
        let code = all.split("#[cfg(test)]\n").next().unwrap_or_default();
        code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(text))
    };
    let found = rust.filter(says);
    found.map(|path| path.strip_prefix(root()).expect("below").to_owned()).collect()
}

/// Fails if a text occurs in other files of `src` or `crates` than these.
fn only(text: &str, places: &[&str]) {
    let mut found = with("src", text);
    found.extend(with("crates", text).into_iter().filter(|path| !path.ends_with("tests.rs")));
    // Examples are no part of the program.
    found.retain(|path| !path.components().any(|part| part.as_os_str() == "examples"));
    found.retain(|path| !places.iter().any(|place| path.starts_with(place)));
    assert!(found.is_empty(), "{text} occurs in {found:?}, besides {places:?}");
}

/// The name of a format, a placement rule or a kind of figure occurs only in its list or its row. No other part of the program handles a
/// single format or kind.
#[test]
fn a_row_is_named_once() {
    const FORMATS: &str = "crates/sim/src/workload/formats";
    for format in Format::ALL {
        only(&format!("\"{format}\""), &[&format!("{FORMATS}/mod.rs")]);
        only(&format!("Format::{format:?}"), &[]);
    }
    for (name, _) in Placement::ALL {
        // The search for counterexamples also uses the word "random".
        only(&format!("\"{name}\""), &["crates/sim/src/cluster/rules.rs", "src/cli/check/print.rs"]);
    }
    for (name, _) in kinds() {
        let row = format!("name: \"{name}\"");
        let found = with("crates/figures/src/requests", &row);
        assert!(found.len() == 1 && found[0].starts_with("crates/figures/src/requests/kinds"), "{row}: {found:?}");
        only(
            &format!("{}::ROW", found[0].file_stem().expect("a name").to_string_lossy()),
            &["crates/figures/src/requests/kinds/mod.rs"],
        );
    }
}

/// Adds a copy of a template to a folder.
fn one_more(copy: &Path, template: &str, folder: &str) {
    let to = copy.join(folder).join("template.rs");
    std::fs::copy(root().join("tests/it/templates").join(template), to).expect("a copy");
}

/// Adds rows to a list, each before a given line.
fn listed(copy: &Path, list: &str, rows: &[(&str, &str)]) {
    let path = copy.join(list);
    let mut text = read(&path);
    for (before, row) in rows {
        assert_eq!(text.matches(before).count(), 1, "{before}");
        text = text.replace(before, &format!("{row}\n{before}"));
    }
    std::fs::write(path, text).expect("writable");
}

/// An additional setting.
const NAP: &str = r#"    ClusterSetting {
        key: "nap",
        help: || "The time for which each user rests after a launch".to_owned(),
        agent: true,
        is_set: |options, _| options.nap.is_some(),
        read: |options, given| given.span().map(|span| options.nap = Some(span)),
        ..PLAIN
    },"#;

/// An additional policy, format, kind of figure or metric is one file, plus the module and the row in a list; an additional setting is a
/// row, plus the field of the options for the engine. No other file changes. They compile, and the tests of all policies, formats, kinds,
/// metrics and settings cover them. The generated documentation and the Python package have the setting.
#[test]
#[ignore = "builds a copy of the sources: minutes"]
fn one_more_is_a_file_and_its_line() {
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_sources(copy.path(), &BTreeMap::new());
    one_more(copy.path(), "format.rs", "crates/sim/src/workload/formats");
    let row = "    \"template\" => template::{Template, TemplateOptions},";
    let rows = [("mod tenants;\n", "mod template;"), ("}\n\nimpl Format {\n", row)];
    listed(copy.path(), "crates/sim/src/workload/formats/mod.rs", &rows);
    one_more(copy.path(), "kind.rs", "crates/figures/src/requests/kinds");
    let rows = [("mod time;\n", "mod template;"), ("    &time::ROW,\n", "    &template::ROW,")];
    listed(copy.path(), "crates/figures/src/requests/kinds/mod.rs", &rows);
    one_more(copy.path(), "policy.rs", "crates/policies/src");
    listed(copy.path(), "crates/policies/src/lib.rs", &[("mod target;\n", "mod template;")]);
    listed(copy.path(), "crates/policies/src/spec.rs", &[("    &super::quota::ROW,\n", "    &super::template::ROW,")]);
    one_more(copy.path(), "metric.rs", "crates/metrics/src/run");
    let rows = [("mod totals;\n", "mod template;"), ("    &counts::BESIDES,\n", "    &template::METRICS,")];
    listed(copy.path(), "crates/metrics/src/run/mod.rs", &rows);
    let field = "    /// The time for which each user rests.\n    pub nap: Option<Span>,";
    let end = "    /// Whether all sums are recomputed and checked after every round.\n";
    listed(copy.path(), "crates/sim/src/engine/options.rs", &[(end, field)]);
    listed(copy.path(), "crates/sim/src/engine/settings.rs", &[("];\n\n/// The names of the options", NAP)]);
    // The copy uses the compiled dependencies of this build.
    let built = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().expect("a folder of a profile");
    let mut cargo = Command::new(env!("CARGO"));
    let crates = ["plimsoll-sim", "plimsoll-policies", "plimsoll-metrics", "plimsoll-figures", "plimsoll"];
    let packages = crates.iter().flat_map(|name| ["-p", name]);
    cargo.args(["test", "--offline", "--lib"]).args(packages).current_dir(copy.path());
    cargo.args(built.ends_with("release").then_some("--release")).args([
        "--",
        "formats::",
        "requests::",
        "spec::",
        "run::",
        "settings::",
        "machines::",
        "replay::",
    ]);
    let target = built.parent().expect("target");
    let passes = |cargo: &mut Command| {
        let done = cargo.env("CARGO_TARGET_DIR", target).output().expect("cargo runs");
        let said = [done.stderr, done.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(done.status.success() && !said.contains(" 0 passed"), "{said}");
    };
    passes(&mut cargo);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--test", "it"]).args(built.ends_with("release").then_some("--release"));
    cargo.args(["--", "declared::the_docs_have", "declared::the_python"]).current_dir(copy.path());
    passes(cargo.env("PLIMSOLL_UPDATE_DOCS", "1"));
    assert!(read(&copy.path().join("docs/cluster.md")).contains("\n| `nap` | span | | `30s` |"));
    assert!(read(&copy.path().join("python/plimsoll/_declared.py")).contains("\n    nap: str\n"));
}
