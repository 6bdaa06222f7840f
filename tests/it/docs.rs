//! Tests of the documentation: its commands run with small settings, or are at least parsed; every link has a target; the book is
//! complete.
//!
//! Blocks of `sh` are scripts. They run page by page in a copy of the repository's data, where `plimsoll` and `cargo run` start
//! the program of this build, with small settings for slow commands ([`SHIM`]). Blocks of `console` are commands behind `$` and
//! their output; with `PLIMSOLL_UPDATE_DOCS=1` the test rewrites the output. A comment before a block overrides this:
//!
//! - `<!-- test: parse -->`: the block needs hours, or files or programs that this test does not have. Its commands are only parsed.
//! - `<!-- test: file NAME -->`: the block is the content of that file, for the commands of the page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::error::ErrorKind;

use crate::replay::{files, run, said};
use crate::study_slurm::SBATCH;

/// Returns the root folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fenced block of a page.
#[derive(Debug)]
pub struct Block {
    /// The language after the fence.
    pub language: String,
    /// The lines between the fences.
    pub text: String,
    /// The directive to this test in the comment before the block.
    directive: Option<String>,
    /// The line of the fence, from 1.
    line: usize,
}

/// Returns the fenced blocks of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut open, mut directive) = (false, None);
    for (at, line) in page.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            open = !open;
            if open {
                let (language, text) = (language.trim().to_owned(), String::new());
                blocks.push(Block { language, text, directive: directive.take(), line: at + 1 });
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| open) {
            block.text += line;
            block.text.push('\n');
        } else {
            let comment = line.strip_prefix("<!-- test: ").and_then(|rest| rest.strip_suffix(" -->"));
            directive = comment.map(str::to_owned);
        }
    }
    assert!(!open, "a block has no end");
    blocks
}

/// Returns the paths of all pages, relative to the repository.
fn pages() -> Vec<PathBuf> {
    let below = |path: PathBuf| path.strip_prefix(root()).expect("files were listed there").to_owned();
    let is_page =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md") && !path.starts_with("docs/book");
    let mut pages: Vec<PathBuf> = files(&root().join("docs")).into_iter().map(below).filter(is_page).collect();
    pages.extend(["README.md", "experiments/README.md", "notebooks/README.md"].map(PathBuf::from));
    pages.sort();
    pages
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The script that the commands of the documentation start as `plimsoll`. It replaces slow settings by small ones, in the same way for
/// all commands on a plan.
const SHIM: &str = r#"#!/bin/sh
last=
for arg do
    shift
    case "$last $arg" in
        "--chaos "*) arg=3 ;;
        "--machines 20000") arg=40 ;;
        "--effort "*) arg=quick; effort=told ;;
    esac
    set -- "$@" "$arg"
    last=$arg
done
case "$1 $2" in
    "run experiments/paper/fuxi-failover.toml") set -- "$@" --set 'failover.recovery.scenarios=["fm-failover"]' ;;
    "run experiments/load-sweep.toml" | "cluster slurm")
        set -- "$@" --set seeds=2 --set workload.hours=0.1 --set measure.from=1m ;;
    "run experiments/facebook.toml" | "run experiments/complementary.toml")
        set -- "$@" --set seeds=2 --set workload.hours=0.1 ;;
    "run experiments/figures.toml" | "run experiments/quota-labels.toml") set -- "$@" --set seeds=2 ;;
    "run experiments/failures.toml") set -- "$@" --set seeds=1 --set workload.hours=0.1 ;;
    "run experiments/scheduling-load.toml") set -- "$@" --set until=2s ;;
    "check "*) [ -n "$effort" ] || set -- "$@" --effort quick ;;
esac
exec PROGRAM "$@"
"#;

/// A script that replaces `cargo`. It only runs the program; other commands succeed without effect, since everything is already built.
const CARGO: &str = "#!/bin/sh\n[ \"$1 $2 $3\" = 'run --release --' ] || exit 0\nshift 3\nexec plimsoll \"$@\"\n";

/// A copy of the repository's data, with the programs of the docs in `bin`.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Sandbox {
        let yard = Sandbox(tempfile::tempdir().expect("a temporary folder"));
        for folder in ["docs", "experiments", "traces", "notebooks"] {
            for file in files(&root().join(folder)) {
                let to = yard.0.path().join(file.strip_prefix(root()).expect("files were listed there"));
                std::fs::create_dir_all(to.parent().expect("it is below a folder")).expect("a temporary folder");
                std::fs::copy(&file, to).expect("a temporary folder is writable");
            }
        }
        yard.program("plimsoll", &SHIM.replace("PROGRAM", env!("CARGO_BIN_EXE_plimsoll")));
        yard.program("cargo", CARGO);
        yard.program("sbatch", SBATCH);
        yard
    }

    #[cfg(unix)]
    fn program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.path().join("bin").join(name);
        std::fs::create_dir_all(self.0.path().join("bin")).expect("a temporary folder");
        std::fs::write(&path, text).expect("a temporary folder is writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }

    /// Runs a script and returns its output, or its status and messages if it fails.
    fn run(&self, script: &str) -> Result<String, String> {
        let path = format!("{}:{}", self.0.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-e", "-c", script]).current_dir(self.0.path()).env("PATH", path).env("NO_COLOR", "1");
        let output = run(&mut command);
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("{}: {}", output.status, said(&output)))
        }
    }
}

/// Returns whether a script runs Plimsoll or Cargo.
fn is_ours(script: &str) -> bool {
    script.lines().any(|line| ["plimsoll ", "cargo run "].iter().any(|program| line.contains(program)))
}

/// Parses the arguments of every `plimsoll` in a line.
pub fn parse(line: &str) -> Result<(), clap::Error> {
    let line = line.split(" #").next().unwrap_or_default().replace("cargo run --release -- ", "plimsoll ");
    for part in line.split(['|', '&', '>', ';']).filter_map(|part| Some(&part[part.find("plimsoll ")?..])) {
        // Text between quotes is one word.
        let pieces = part.split('\'').enumerate();
        let words = pieces.flat_map(|(at, piece)| match at % 2 {
            0 => piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![piece.to_owned()],
        });
        plimsoll::cli::command().try_get_matches_from(words)?;
    }
    Ok(())
}

/// Returns the commands of a block of `console`, each with its output.
fn sessions(text: &str) -> Vec<(String, String)> {
    let mut sessions: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), sessions.last_mut()) {
            (Some(command), _) => sessions.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    sessions
}

/// Runs or parses every block of a page and returns the failures.
#[cfg(unix)]
fn check(page: &Path) -> Vec<String> {
    let text = read(page);
    let blocks = blocks(&text);
    let (mut wrong, mut updated) = (Vec::new(), text.clone());
    let yard = Sandbox::new();
    for block in &blocks {
        let at = format!("{}, line {}", page.display(), block.line);
        if let Some(name) = block.directive.as_ref().and_then(|directive| directive.strip_prefix("file ")) {
            std::fs::write(yard.0.path().join(name), &block.text).expect("a temporary folder is writable");
            continue;
        }
        let only_parsed = block.directive.as_deref() == Some("parse");
        assert!(only_parsed || block.directive.is_none(), "{at}: unknown directive in the comment before the block");
        match block.language.as_str() {
            "sh" if only_parsed => {
                wrong.extend(block.text.lines().filter_map(|line| Some(format!("{at}: {}", parse(line).err()?))));
            }
            "sh" if is_ours(&block.text) => {
                wrong.extend(yard.run(&block.text).err().map(|error| format!("{at}: {error}")));
            }
            "console" => {
                for (command, expected) in sessions(&block.text) {
                    match yard.run(&command) {
                        Err(error) => wrong.push(format!("{at}: {error}")),
                        Ok(found) if lines(&found) == lines(&expected) => {}
                        Ok(found) => {
                            let found = lines(&found).join("\n") + "\n";
                            updated = updated.replacen(&expected, &found, 1);
                            wrong.push(format!("{at}: {command} prints\n{found}"));
                        }
                    }
                }
            }
            "" if is_ours(&block.text) => wrong.push(format!("{at}: a block of commands is marked with sh or console")),
            _ => {}
        }
    }
    if updated != text && std::env::var_os("PLIMSOLL_UPDATE_DOCS").is_some() {
        std::fs::write(root().join(page), updated).expect("the docs are writable");
    }
    wrong
}

/// Returns the lines of a text without trailing white space.
fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_docs_run_or_are_parsed() {
    let pages = pages();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(page) = pages.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            wrong.extend(check(page));
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let two = [scope.spawn(work), scope.spawn(work)];
        two.into_iter().flat_map(|thread| thread.join().expect("no page ends the test")).collect::<Vec<_>>()
    });
    none(wrong);
}

/// Commands in running text can be parsed, or lack only arguments. Words in capitals are placeholders for verbs, files and numbers.
#[test]
fn commands_in_running_text_parse() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        let mut rest = text.as_str();
        while let Some(at) = rest.find("`plimsoll ") {
            let span = rest[at + 1..].split('`').next().unwrap_or_default().replace('\n', " ");
            rest = &rest[at + 1 + span.len()..];
            // Texts with alternatives or omitted parts are not commands.
            let several = span.contains(" .. ") || span.ends_with(" ..") || span.contains(['|', '[']);
            if several || span.contains("plimsoll VERB") {
                continue;
            }
            let Err(error) = parse(&span) else { continue };
            let lacks_only = [ErrorKind::MissingRequiredArgument, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
            if !lacks_only.contains(&error.kind()) {
                wrong.push(format!("{}: `{span}`: {error}", page.display()));
            }
        }
    }
    none(wrong);
}

/// Returns the links to other files, without the links to the web and to places within a page.
fn links(page: &str) -> Vec<String> {
    let target = |rest: &str| rest.split([')', '#', ' ']).next().unwrap_or_default().to_owned();
    let mut links: Vec<String> = page.split("](").skip(1).map(target).collect();
    links.retain(|link| !link.is_empty() && !link.contains("://"));
    links
}

#[test]
fn links_lead_somewhere_and_the_book_is_whole() {
    let mut wrong = Vec::new();
    for page in pages() {
        let folder = root().join(&page).parent().expect("pages are in a folder").to_owned();
        let dead = links(&read(&page)).into_iter().filter(|link| !folder.join(link).exists());
        wrong.extend(dead.map(|link| format!("{}: no {link}", page.display())));
    }
    none(wrong);
    let summary = links(&read(Path::new("docs/SUMMARY.md")));
    let listed: BTreeSet<PathBuf> = summary.iter().map(|link| Path::new("docs").join(link)).collect();
    assert_eq!(listed.len(), summary.len(), "a page is listed twice");
    let pages: BTreeSet<PathBuf> = pages().into_iter().filter(|page| page.starts_with("docs")).collect();
    let missing: Vec<&PathBuf> =
        pages.iter().filter(|page| !page.ends_with("SUMMARY.md") && !listed.contains(*page)).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// Returns the paths of the notebooks.
pub fn notebooks() -> Vec<PathBuf> {
    let mut found = files(&root().join("notebooks"));
    found.retain(|path| path.extension().is_some_and(|ending| ending == "ipynb"));
    found.retain(|path| !path.components().any(|part| part.as_os_str() == ".ipynb_checkpoints"));
    found.sort();
    found
}

#[test]
fn notebooks_are_kept_without_outputs() {
    let notebooks = notebooks();
    assert_eq!(notebooks.len(), 4);
    for path in notebooks {
        let text = std::fs::read_to_string(&path).expect("a notebook");
        let notebook: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for cell in notebook["cells"].as_array().expect("cells") {
            let is_code = cell["cell_type"] == "code";
            let empty = cell["outputs"].as_array().is_some_and(Vec::is_empty) && cell["execution_count"].is_null();
            assert!(!is_code || empty, "{}: outputs in {cell}", path.display());
        }
    }
}

#[test]
fn the_example_is_short() {
    let lines = read(Path::new("examples/custom_policy.rs")).lines().count();
    assert!(lines < 40, "{lines} lines");
}

/// The citation file, which GitHub and Zenodo read, has Citation File Format 1.2.0 and states this version.
#[test]
fn the_citation_is_of_this_version() {
    let text = read(Path::new("CITATION.cff"));
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{key}:"))).map(str::trim);
    assert_eq!(value("cff-version"), Some("1.2.0"));
    assert_eq!(value("version"), Some(env!("CARGO_PKG_VERSION")));
    for key in ["message", "title", "authors", "license", "type"] {
        assert!(value(key).is_some(), "{key}");
    }
    assert!(
        text.contains("\nlicense:\n  - MIT\n  - Apache-2.0\n"),
        "a list means 'or'; a text with 'or' is not in the SPDX licence list"
    );
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let own = line.trim_start().trim_start_matches("- ");
        let keyed = own.split_once(':').is_some_and(|(key, rest)| {
            key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                && (rest.is_empty() || rest.starts_with(' '))
        });
        assert!(indent % 2 == 0 && !line.contains('\t') && (keyed || own.len() + indent + 2 == line.len()), "{line}");
    }
}
