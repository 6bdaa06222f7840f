//! The language of names, comments, documentation and messages: plain technical English, one word per concept.
//!
//! The patterns find unusual phrases. A finding may be a false positive, so each folder may have a number of findings per 1,000 lines of
//! prose. This limit may only be lowered. Identifiers have no such limit: each banned name, and each type name that more than two crates
//! define, fails a test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Phrases and their plain alternatives.
const PATTERNS: &[(&str, &str)] = &[
    (r"\b(?:no|any|some|every)body\b|\bno one\b|\bwho(?:m)?ever\b", "name the caller, user, process or function"),
    (r"\bwho(?:m|se)?\b", "name the noun; 'whose' only for people"),
    (r"\bso (?:many|much)(?: of| for| as| that|[ ,.;])", "this number of, n, the amount"),
    (
        r"\b(?:stands?|stood) (?:in|on|at|for|beside|behind|before|above|below|here|there|apart|alone|as|written|by)\b",
        "is, appears, is stored in",
    ),
    (r"\banew\b|\bafresh\b", "again, recompute, rebuild"),
    (r"\bin vain\b", "without success, unmet"),
    (r"\btells?\b|\btold\b|\btelling\b", "reports, records, notifies, distinguishes"),
    (r"\bhears?\b|\bheard\b|\blistens? to\b", "receives, is notified"),
    (r"\b(?:asks?|asked) (?:for )?(?:its|their|his|the) turn\b|\basks? in\b", "requests"),
    (r"\bof late\b|\bfor good\b|\bat all\b|\bby itself\b|\bby hand[^ a-z]", "recently, permanently, (omit), alone"),
    (
        r"\bwhat (?:it|they|is|are|was|were|has|have|can|does|do|came|comes|goes|runs|holds|waits|stands|follows|others|else|must|may|each|every|this|that)\b",
        "name the thing",
    ),
    (r"\b(?:those|that|these) (?:that|which|who)\b", "name the noun"),
    (r"\bcom(?:es?|ing) (?:to|of|out|about)\b|\bcame (?:to|of|out|about)\b", "results in, is built from"),
    (r"\bmade of (?:it|them|what)\b|\bput (?:together|aside|back)\b", "is combined, is returned"),
    (r"\bbefalls?\b|\bheeds?\b|\btames?\b|\bstrangers?\b|\bdue (?:of|to|is|are)\b|\bhence\b|\blest\b", "plain word"),
    (r"\bthere(?:of|in|by|upon)\b|\bwherein\b|\bwhereupon\b|\bthus far\b|\bhitherto\b|\bbeforehand\b", "plain word"),
    (r"\bgoes? (?:by|about|to|back|on|round)\b|\bgo by\b", "uses, is ordered by"),
    (r"\bhas? (?:the|a) (?:last|first|final) word\b|\bsays? so\b", "takes precedence; reports this"),
    (r"\blook(?:s|ed)? (?:at|up|for|into|like) (?:what|it|them|those)\b", "name the thing"),
    (
        r"\ball (?:that|what|who)\b|\bnothing (?:that|but|of|is|may|can|else)\b|\bnone (?:of|that|is|but)\b",
        "every X, no X, only X",
    ),
    (r"\b(?:with|by|to|from|in|on|under) which\b", "split the sentence"),
    (
        r"\b(?:is|are) (?:held|kept|given|taken|made|left|let|put|set) (?:out|in|on|up|back|apart|aside|together)\b",
        "one precise verb",
    ),
    (
        r"\bmore than (?:it|they) (?:has|have|may|can)\b|\bas (?:long|far|soon|often) as (?:it|they)\b",
        "while, until, if",
    ),
    (r"\bforever\b|\bfor ever\b|\belsewhere\b|\bin between\b", "without end, in X"),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compile = |&(pattern, hint): &(&str, &'static str)| {
        (Regex::new(&format!("(?i){pattern}")).expect("a valid pattern"), hint)
    };
    PATTERNS.iter().map(compile).collect()
});

/// The most findings per 1,000 lines of prose in a folder. Lower a limit when its folder improves; never raise one.
const LIMITS: &[(&str, usize)] = &[
    ("crates/base", 10),
    ("crates/charts", 15),
    ("crates/control", 10),
    ("crates/court", 20),
    ("crates/fair", 18),
    ("crates/figures", 12),
    ("crates/gym", 10),
    ("crates/metrics", 16),
    ("crates/page-engine", 10),
    ("crates/policies", 16),
    ("crates/properties", 18),
    ("crates/queue-import", 10),
    ("crates/report", 12),
    ("crates/results", 10),
    ("crates/rounds", 10),
    ("crates/runs", 10),
    ("crates/schedulers", 16),
    ("crates/sim", 12),
    ("crates/store", 14),
    ("crates/trace-import", 10),
    ("src", 18),
    ("tests", 20),
    ("benches", 16),
    ("examples", 20),
    ("page", 10),
    ("python", 16),
    ("experiments", 12),
    ("docs", 13),
    ("ARCHITECTURE.md", 20),
    ("README.md", 20),
];

/// The most findings per 1,000 lines of prose in the whole project.
const TOTAL: usize = 15;

/// Phrases that no text for a reader may contain, each with the field's term for it.
const PLAIN: &[(&str, &str)] = &[
    ("told from 0", "statistically significant"),
    ("told from none", "statistically significant"),
    ("told from zero", "statistically significant"),
    ("had work", "backlogged users"),
    ("the house", "the architecture"),
];

/// Banned names of functions, which say nothing at the call site, each with better names.
const FUNCTIONS: &[(&str, &str)] = &[
    ("of", "new, from_*, or the noun that it returns"),
    ("look", "refresh, visit, evaluate"),
    ("take", "remove, allocate, extract, next_*"),
    ("tell", "record_*, send_*, notify"),
    ("told", "the noun that it returns"),
    ("hear", "receive, apply_*"),
    ("heard", "the noun that it returns"),
    ("made", "new_*, the noun that it returns"),
    ("whole", "floor, integer, uniform, is_complete"),
    ("stand", "enqueue, the noun that it returns"),
    ("tame", "escape_control_characters"),
    ("way", "relative_path"),
    ("seat", "place"),
    ("goes_before", "compare_users"),
];

/// Banned names of types, which say nothing, each with better names.
const TYPES: &[(&str, &str)] = &[
    ("Told", "CoreEvent, the rows of a table"),
    ("Heard", "EventLog"),
    ("Ear", "RecorderHandle"),
    ("Ground", "Environment"),
    ("Supplied", "ClusterPlan"),
    ("Stand", "QueueState"),
    ("Fresh", "Untried"),
    ("Notes", "ChangeLog, Diagnostics"),
    ("Desk", "Inbox, QueueTable"),
    ("Made", "Manifest"),
    ("Parties", "RunContext"),
    ("GoesBy", "SizeSource"),
    ("Choosing", "PreemptionBudget"),
    ("Parcel", "BundleContents"),
    ("Counterpart", "StaticEquivalent"),
    ("Reach", "Locality"),
    ("Yard", "Sandbox"),
    ("Wording", "Labels"),
    ("Hearing", "Assessment"),
    ("Nobody", "AdmitNone"),
];

/// Names that every crate may define: conventional aliases and entry points.
const CONVENTIONAL: &[&str] = &["Result", "Args", "Verb"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the texts of the project with their paths below the root: sources, pages and plans.
fn texts() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md"].map(|file| root().join(file)).into();
    for folder in
        ["crates", "src", "tests", "benches", "examples", "page", "python", "experiments", "docs", "notebooks"]
    {
        paths.extend(crate::replay::files(&root().join(folder)));
    }
    let kinds = ["rs", "md", "py", "toml", "ipynb", "js"];
    paths.retain(|path| path.extension().is_some_and(|ending| kinds.iter().any(|kind| ending == *kind)));
    let name = |path: &Path| path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
    let text = |path: PathBuf| Some((name(&path), std::fs::read_to_string(&path).ok()?));
    let mut texts: Vec<(String, String)> = paths.into_iter().filter_map(text).collect();
    texts.retain(|(name, _)| !name.starts_with("tests/corpus/") && name != "tests/it/language.rs");
    texts
}

/// Returns the prose in a line: a comment, the text of a page, or the messages of several words in it.
fn prose(name: &str, line: &str) -> Option<String> {
    static STRING: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""((?:[^"\\]|\\.){24,})""#).expect("a valid pattern"));
    if name.ends_with(".md") {
        let code = ["    ", "|--"].iter().any(|start| line.starts_with(start));
        return (!code).then(|| line.to_owned());
    }
    if name.ends_with(".rs") {
        if let Some((code, comment)) = line.split_once("//")
            && !code.contains('"')
        {
            return Some(comment.trim_start_matches(['/', '!']).to_owned());
        }
        let messages: Vec<&str> = STRING.captures_iter(line).filter_map(|found| Some(found.get(1)?.as_str())).collect();
        let messages: Vec<&str> = messages.into_iter().filter(|text| text.matches(' ').count() >= 3).collect();
        return (!messages.is_empty()).then(|| messages.join(" "));
    }
    if name.ends_with(".ipynb") || name.ends_with(".js") {
        return None;
    }
    let start = line.starts_with('#').then_some(0).or_else(|| line.find(" #").map(|at| at + 1))?;
    Some(line[start + 1..].to_owned())
}

/// Returns the number of lines of prose in a text, and the findings with their lines.
fn findings(name: &str, text: &str) -> (usize, Vec<(usize, String)>) {
    let (mut lines, mut found, mut fenced) = (0, Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        if name.ends_with(".md") && line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let Some(prose) = prose(name, line).filter(|prose| !fenced && !prose.trim().is_empty()) else { continue };
        lines += 1;
        for (pattern, hint) in COMPILED.iter() {
            found.extend(pattern.find_iter(&prose).map(|hit| (at + 1, format!("'{}': {hint}", hit.as_str().trim()))));
        }
    }
    (lines, found)
}

/// Returns a text in lower case on one line, without the marks of comments, of strings over several lines and of notebooks.
fn flat(text: &str) -> String {
    let bare = |line: &str| {
        let line = line.trim().trim_start_matches(['/', '!', '#', '>']).trim_start_matches('"');
        line.trim_end_matches(',')
            .trim_end_matches('"')
            .trim_end_matches("\\n")
            .trim_end_matches('\\')
            .trim()
            .to_lowercase()
    };
    text.lines().map(bare).collect::<Vec<_>>().join(" ")
}

/// Returns the phrases of [`PLAIN`] that a text contains, each with better words.
fn phrases(text: &str) -> Vec<String> {
    let text = flat(text);
    let found = PLAIN.iter().filter(|(phrase, _)| text.contains(phrase));
    found.map(|(phrase, better)| format!("\"{phrase}\": say \"{better}\"")).collect()
}

/// Returns lines of documentation with a pronoun in place of a noun: those that begin with "What", "Whose", "Whom" or "Who".
fn pronouns(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "))
    });
    let pronoun = |line: &&str| ["What ", "Whose ", "Whom ", "Who "].iter().any(|word| line.starts_with(word));
    lines.filter(pronoun).map(str::to_owned).collect()
}

#[test]
fn texts_are_in_plain_technical_english() {
    let mut counts: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    let (mut lines, mut total) = (0, 0);
    for (name, text) in texts() {
        let (count, found) = findings(&name, &text);
        (lines, total) = (lines + count, total + found.len());
        let folder = LIMITS.iter().find(|(folder, _)| name == *folder || name.starts_with(&format!("{folder}/")));
        let Some((folder, _)) = folder else { continue };
        let sums = counts.entry(folder).or_default();
        sums.0 += count;
        sums.1.extend(found.iter().map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    let mut broken = Vec::new();
    for (folder, limit) in LIMITS {
        let (count, found) = counts.remove(folder).unwrap_or_else(|| panic!("no text in {folder}"));
        if found.len() * 1000 > limit * count {
            broken.push(format!(
                "{folder}: {} findings in {count} lines of prose, at most {limit} per 1,000:\n  {}",
                found.len(),
                found.join("\n  ")
            ));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(lines > 10_000, "{lines} lines of prose");
    assert!(total * 1000 <= TOTAL * lines, "{total} findings in {lines} lines of prose, at most {TOTAL} per 1,000");
}

/// Returns the keyword-introduced names of a source with their lines, such as those of functions.
fn defined(text: &str, keywords: &str) -> Vec<(usize, String)> {
    let pattern = format!(r"(?m)^\s*(?:pub(?:\([a-z ]+\))? )?(?:const |async |unsafe )*(?:{keywords}) (\w+)");
    let pattern = Regex::new(&pattern).expect("a valid pattern");
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    pattern
        .captures_iter(text)
        .filter_map(|found| Some((line(found.get(1)?.start()), found.get(1)?.as_str().to_owned())))
        .collect()
}

#[test]
fn names_say_what_they_name() {
    let mut found = Vec::new();
    for (name, text) in texts().iter().filter(|(name, _)| name.ends_with(".rs")) {
        for (keywords, banned) in [("fn", FUNCTIONS), ("struct|enum|trait|type", TYPES)] {
            for (line, defined) in defined(text, keywords) {
                let better = banned.iter().find(|(word, _)| *word == defined).map(|(_, better)| better);
                found.extend(better.map(|better| format!("{name}:{line}: {defined}; instead: {better}")));
            }
        }
    }
    assert!(found.is_empty(), "{} names:\n{}", found.len(), found.join("\n"));
}

/// A type name has meanings in at most two crates. Associated types (indented) do not count.
#[test]
fn a_type_name_has_one_meaning() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let pattern =
        Regex::new(r"(?m)^(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait|type) (\w+)").expect("a valid pattern");
    for (name, text) in texts() {
        let parts: Vec<&str> = name.split('/').collect();
        let home = match parts[..] {
            ["crates", home, "src", ..] => home,
            ["src", ..] => "src",
            ["python", "src", ..] => "python",
            _ => continue,
        };
        for found in pattern.captures_iter(&text) {
            crates.entry(found[1].to_owned()).or_default().insert(home.to_owned());
        }
    }
    assert!(crates.len() > 500, "{} types", crates.len());
    crates.retain(|name, homes| homes.len() > 2 && !CONVENTIONAL.contains(&name.as_str()));
    assert!(crates.is_empty(), "{} names with several meanings: {crates:#?}", crates.len());
}

#[test]
fn texts_contain_no_banned_phrase() {
    let found = |(name, text): &(String, String)| {
        phrases(text).into_iter().map(|phrase| format!("{name}: {phrase}")).collect::<Vec<_>>()
    };
    let texts: Vec<(String, String)> = texts().into_iter().filter(|(name, _)| !name.starts_with("tests/")).collect();
    assert!(texts.len() > 300, "{} texts", texts.len());
    let found: Vec<String> = texts.iter().flat_map(found).collect();
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

#[test]
fn documentation_names_its_nouns() {
    let sources = texts().into_iter().filter(|(name, _)| name.starts_with("crates/") || name.starts_with("src/"));
    let found = |(name, text): (String, String)| {
        pronouns(&text).into_iter().map(|line| format!("{name}: {line}")).collect::<Vec<_>>()
    };
    let found: Vec<String> = sources.flat_map(found).collect();
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_checks_of_language_can_fail() {
    let found = |name: &str, text: &str| findings(name, text).1.len();
    assert_eq!(found("a.rs", "/// Nobody is told what it is.\n"), 3);
    assert_eq!(found("a.rs", "let a = \"what it is, for ever and a day\";\n"), 2);
    assert_eq!(found("a.rs", "/// Returns the allocation of a user.\nlet whose = 1;\n"), 0);
    assert_eq!(found("a.md", "in vain\n```sh\nin vain\n```\n"), 1);
    assert_eq!(found("a.toml", "a = 1 # so many seeds\n"), 1);
    assert_eq!(
        defined("    pub(super) fn of(a: u8) {}\nfn office() {}\n", "fn"),
        [(1, "of".to_owned()), (2, "office".to_owned())]
    );
    assert_eq!(
        phrases("/// A difference that can be told\n/// from 0.\n"),
        ["\"told from 0\": say \"statistically significant\""]
    );
    assert_eq!(phrases("  \"cannot be told \\\n    from 0\"").len(), 1);
    assert_eq!(phrases("    \"those that had\\n\",\n    \"work\"\n").len(), 1);
    assert!(phrases("He told us. From 0 to 1.").is_empty());
    assert_eq!(
        pronouns("    /// What it is.\n/// A noun. What\n//! Whose.\n//! Whose it is."),
        ["What it is.", "Whose it is."]
    );
}
