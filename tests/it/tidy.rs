//! The architecture: which module may import which, words that belong to certain modules, and the form of source files. The language of
//! texts and names is checked in `language.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Each row has a module, and the modules of its crate that its code must not name. (Between crates the compiler checks the dependencies.)
/// A module is a folder, or a file without its ending.
const NEVER: &[(&str, &str)] = &[
    ("workload", "books policy engine record"),
    ("cluster", "books policy engine record"),
    ("books", "policy engine record"),
    ("policy", "engine"),
    ("record", "engine"),
    ("backend", "engine"),
    ("engine", ""),
    ("rows", "pinned"),
    ("output", "cli queues"),
    ("page", "cli"),
    ("published", "cli"),
];

/// The crates that count as one module each.
const CRATES: [&str; 20] = [
    "charts",
    "control",
    "court",
    "experiment",
    "fair",
    "figures",
    "gym",
    "metrics",
    "page-engine",
    "policies",
    "properties",
    "published",
    "queue-import",
    "report",
    "results",
    "rounds",
    "runs",
    "schedulers",
    "store",
    "trace-import",
];

/// Words that may occur only in the code of some folders or files.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("polars_", &["store"]),
    ("plotters", &["charts"]),
    ("println!", &["cli", "main"]),
    ("print!", &["cli", "main"]),
    ("eprintln!", &["cli", "main"]),
    ("eprint!", &["cli", "main"]),
    ("todo!", &[]),
    ("unimplemented!", &[]),
    ("dbg!", &[]),
    (".unwrap()", &[]),
];

/// The maximum number of lines of a file.
const LINES: usize = 500;

/// One source file of `src/` or `crates/`.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Returns the module of a file: the crate if it is in [`CRATES`], otherwise the first part of the path below `src/`, without the
    /// ending. Examples: `engine` for `crates/sim/src/engine/line.rs`, `units` for `crates/base/src/units.rs`.
    fn module(&self) -> String {
        let below = self.path.strip_prefix(root()).expect("files were listed there");
        let parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        match &parts[..] {
            [crates, name, ..] if crates == "crates" && CRATES.contains(&name.as_str()) => name.clone(),
            [crates, _, src, first, ..] if crates == "crates" && src == "src" => {
                first.trim_end_matches(".rs").to_owned()
            }
            [_, first, ..] => first.trim_end_matches(".rs").to_owned(),
            _ => String::new(),
        }
    }

    fn code(&self) -> String {
        code(&self.text)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let folders = ["src", "crates"].into_iter().flat_map(|folder| crate::replay::files(&root().join(folder)));
    // A build script prints its instructions for Cargo.
    let rust = folders.filter(|path| path.extension().is_some_and(|e| e == "rs") && !path.ends_with("build.rs"));
    let source = |path: PathBuf| Source { text: std::fs::read_to_string(&path).expect("sources are text"), path };
    rust.map(source).collect()
}

/// Returns the code up to the unit tests at its end, without comments.
fn code(text: &str) -> String {
    let starts = ["#[cfg(test)]\nmod tests", "#[cfg(test)]\npub(crate) mod tests"];
    let end = starts.iter().filter_map(|start| text.find(start)).min().unwrap_or(text.len());
    text[..end].lines().flat_map(|line| [line.split("//").next().unwrap_or_default(), "\n"]).collect()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the positions of `word` in `code`, not as a part of a longer word; a word that ends in `_` may be the start of longer ones.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let alone = |edge: u8, other: Option<&u8>| !is_word(edge) || !other.is_some_and(|&byte| is_word(byte));
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let alone_behind = word.ends_with('_') || alone(bytes[at + word.len() - 1], bytes.get(at + word.len()));
        alone(bytes[at], before) && alone_behind
    })
}

/// Returns the top-level modules that code names: `crate::a`, `crate::{a::B, c}`, and also `super::super::a`.
fn named_modules(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for path in ["crate::", "super::super::"] {
        for at in words(code, path.trim_end_matches(':')).filter(|&at| code[at..].starts_with(path)) {
            let rest = code[at + path.len()..].trim_start();
            match rest.strip_prefix('{') {
                Some(group) => named.extend(group_heads(group)),
                None => named.push(head(rest)),
            }
        }
    }
    named
}

fn head(path: &str) -> String {
    path.trim_start().bytes().take_while(|&byte| is_word(byte)).map(char::from).collect()
}

/// Returns the first word of each item of a `{..}` group whose opening brace is already read.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut item, mut heads) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                heads.push(head(&group[item..at]));
                item = at + 1;
            }
            '}' => {
                heads.push(head(&group[item..at]));
                break;
            }
            _ => {}
        }
    }
    heads.retain(|head| !head.is_empty());
    heads
}

/// Returns the modules that a file of `module` names although [`NEVER`] forbids them.
fn forbidden(module: &str, code: &str) -> Vec<String> {
    let never = NEVER.iter().find(|(of, _)| *of == module).map_or("", |(_, never)| never);
    let mut named = named_modules(code);
    named.retain(|name| never.split(' ').any(|never| never == name));
    named
}

/// Returns the rules of [`ONLY_IN`] that a file of `module` breaks.
fn banned(module: &str, code: &str) -> Vec<&'static str> {
    let broken =
        ONLY_IN.iter().filter(|(word, places)| !places.contains(&module) && words(code, word).next().is_some());
    broken.map(|(word, _)| *word).collect()
}

/// Fails with every finding at once.
fn none(findings: Vec<String>) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

fn each<T: std::fmt::Debug>(check: impl Fn(&Source) -> Vec<T>) -> Vec<String> {
    let shown = |source: &Source| source.path.strip_prefix(root()).unwrap_or(&source.path).display().to_string();
    let finding = |source: Source| {
        check(&source).into_iter().map(move |f| format!("{}: {f:?}", shown(&source))).collect::<Vec<_>>()
    };
    sources().into_iter().flat_map(finding).collect()
}

#[test]
fn imports_follow_the_flow() {
    none(each(|source| forbidden(&source.module(), &source.code())));
}

#[test]
fn words_stay_where_they_belong() {
    none(each(|source| banned(&source.module(), &source.code())));
}

#[test]
fn every_file_says_what_it_is_for() {
    none(each(|source| if source.text.starts_with("//!") { vec![] } else { vec!["no //! header"] }));
}

/// Prints the number of source lines of each crate, and how many of them remain without unit tests and comments. The command is
/// `cargo test --release --test it lines_of_every_crate -- --ignored --nocapture`.
#[test]
#[ignore = "prints numbers of lines, checks only that there are sources"]
fn lines_of_every_crate() {
    let mut lines: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for source in sources() {
        let path = source.path.strip_prefix(root()).expect("a file of the project");
        let names: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        let name = if names[0] == "crates" { format!("crates/{}", names[1]) } else { names[0].to_string() };
        let tests = path.to_string_lossy().ends_with("tests.rs");
        let code = if tests { String::new() } else { source.code() };
        let code = code.lines().filter(|line| !line.trim().is_empty()).count();
        let sums = lines.entry(name).or_default();
        *sums = [sums[0] + source.text.lines().count(), sums[1] + code];
    }
    assert!(lines.len() > 5, "the sources were not found");
    lines.iter().for_each(|(name, [all, code])| println!("{name:20}{all:8}{code:8}"));
    let sum = |at: usize| lines.values().map(|sums| sums[at]).sum::<usize>();
    println!("{:20}{:8}{:8}", "all", sum(0), sum(1));
}

/// A test file that `main.rs` does not list is not compiled, and its tests never fail.
#[test]
fn every_file_of_tests_is_compiled() {
    let dir = root().join("tests/it");
    let list = std::fs::read_to_string(dir.join("main.rs")).expect("main.rs");
    let files = std::fs::read_dir(&dir).expect("tests/it").map(|entry| entry.expect("an entry").path());
    let sources = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let names = sources.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned());
    let forgotten = |name: &String| name != "main" && !list.lines().any(|line| line == format!("mod {name};"));
    none(names.filter(forgotten).collect());
}

#[test]
fn no_file_is_long() {
    none(each(|source| Some(source.text.lines().count()).filter(|&lines| lines > LINES).into_iter().collect()));
}

#[test]
fn the_plan_speaks_of_modules_that_exist_or_are_planned() {
    assert!(sources().len() > 5, "the sources were not found");
    let known: Vec<&str> = NEVER
        .iter()
        .map(|(module, _)| *module)
        .chain([
            "lib",
            "main",
            "cli",
            "checkpoint",
            "document",
            "column",
            "units",
            "error",
            "escape",
            "fields",
            "named",
            "names",
            "pinned",
            "resources",
            "settings",
            "tree",
        ])
        .chain(CRATES)
        .collect();
    none(each(|source| Some(source.module()).filter(|module| !known.contains(&module.as_str())).into_iter().collect()));
}

/// The last cell of a crate's row in ARCHITECTURE.md lists the dependencies of the crate except `base`.
#[test]
fn crates_stand_on_what_the_plan_says() {
    let plan = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the plan");
    let mut seen = 0;
    for row in plan.lines().filter_map(|line| line.strip_prefix("| `crates/")) {
        let Some((name, rest)) = row.split_once("` |") else { continue };
        let cell = rest.trim_end_matches(['|', ' ']).rsplit_once('|').map_or("", |(_, cell)| cell);
        let said = cell.split(" (").next().unwrap_or_default().split(',').map(str::trim);
        let said: BTreeSet<&str> = said.filter(|name| !["", "base"].contains(name)).collect();
        let manifest = std::fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect(name);
        let (_, needs) = manifest.split_once("[dependencies]").expect(name);
        let needs = needs.split("\n[").next().unwrap_or_default().lines();
        let needs = needs.filter_map(|line| line.strip_prefix("plimsoll-")?.split('.').next());
        assert_eq!(needs.filter(|name| *name != "base").collect::<BTreeSet<_>>(), said, "of crates/{name}");
        seen += 1;
    }
    assert_eq!(seen, CRATES.len() + 2, "a row for each crate of CRATES, for base and for sim");
}

/// The layers of the engine, and the modules that the files of each must not name: the kernel calls neither rounds nor extensions, and
/// rounds call no extension.
const LAYERS: &[(&str, &[&str])] = &[
    ("kernel", &["engine::round", "engine::extensions", "engine::options", "engine::check"]),
    ("round", &["engine::extensions", "super::extensions", "super::super::extensions"]),
];

/// Returns the modules that code of a layer names against [`LAYERS`].
fn across_layers(path: &Path, code: &str) -> Vec<&'static str> {
    let layer = LAYERS.iter().find(|(layer, _)| path.to_string_lossy().contains(&format!("sim/src/engine/{layer}/")));
    let never = layer.map_or(&[][..], |(_, never)| never);
    never.iter().filter(|module| words(code, module).next().is_some()).copied().collect()
}

#[test]
fn the_engine_has_three_layers() {
    none(each(|source| across_layers(&source.path, &source.code())));
    let kernel = root().join("crates/sim/src/engine/kernel/mod.rs");
    let kernel = code(&std::fs::read_to_string(kernel).expect("the kernel"));
    let (_, fields) = kernel.split_once("pub struct Kernel<'a> {").expect("the state of a run");
    let fields = fields.split("\n}").next().unwrap_or_default();
    assert!(fields.lines().count() > 10 && !fields.contains("pub"), "a field of the kernel is visible outside it");
}

/// The checks find the problems that they are for.
#[test]
fn the_checks_can_fail() {
    assert_eq!(forbidden("policy", "use crate::engine::Run;\n"), ["engine"]);
    assert_eq!(
        forbidden("cluster", "use crate::{\n    workload::{Source, Names},\n    books,\n    engine::{a, b},\n};"),
        ["books", "engine"]
    );
    assert_eq!(forbidden("books", "fn f(run: &crate::policy::Rank) {}"), ["policy"]);
    assert_eq!(forbidden("record", "use super::super::engine;"), ["engine"]);
    assert!(forbidden("policy", &code("/// Like [`crate::engine`].\nuse crate::books::Books;")).is_empty());
    assert!(forbidden("policy", &code("#[cfg(test)]\nmod tests { use crate::engine::Run; }")).is_empty());
    assert_eq!(forbidden("policy", &code("#[cfg(test)]\nfn f() {}\nuse crate::engine::Run;")), ["engine"]);
    let kernel = Path::new("crates/sim/src/engine/kernel/launch.rs");
    assert_eq!(across_layers(kernel, "use crate::engine::round::Round;"), ["engine::round"]);
    assert_eq!(banned("engine", "let a = b.unwrap();"), [".unwrap()"]);
    assert_eq!(
        banned("engine", "use polars_arrow::array::*; eprintln!(\"x\"); dbg!(1)"),
        ["polars_", "eprintln!", "dbg!"]
    );
    assert!(banned("store", "use polars_arrow::array::*; a.unwrap_or(0); sprintln!();").is_empty());
    assert!(banned("engine", "let my_polars_x = 1;").is_empty());
}
