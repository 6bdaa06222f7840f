//! The files that a plan is put together from: itself, and the plans that it includes.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::place::{self, Spot, Step};
use crate::error::{Error, Result, nearest};
use crate::rows::read_text;

/// The key that names plans to start from.
const INCLUDE: &str = "include";

/// So many files at most include one another.
const DEEPEST: usize = 16;

/// A plan is put together from so many files at most.
const FILES_MOST: usize = 1000;

/// And from so many bytes; a file counts once for every file that it is below.
const BYTES_MOST: usize = 64 << 20;

/// The texts of a plan, that which has the last word first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(PathBuf, String)>,
    /// The changes made with `--set`: as they were given, the path of the key, the value.
    set: Vec<(String, Vec<Step>, toml::Value)>,
}

impl Sources {
    /// Reads a plan with what it includes: one table, in which the keys of the plan replace those of the plans
    /// included, and later ones replace earlier ones; tables go together key by key, everything else is replaced whole.
    ///
    /// Errors: [`Error::Io`], [`Error::PlanSyntax`] with line and column.
    pub fn read(path: &Path) -> Result<(Sources, toml::Table)> {
        let mut reader = Reader::default();
        reader.add(path, &mut Vec::new())?;
        let Some(read) = reader.read.remove(path) else { return Ok(Default::default()) };
        let files = read.files.into_iter().map(|at| std::mem::take(&mut reader.texts[at])).collect();
        Ok((Sources { files, set: Vec::new() }, read.table))
    }

    /// A plan that includes nothing, from its text.
    pub fn of(path: &Path, text: &str) -> Sources {
        Sources { files: vec![(path.to_owned(), text.to_owned())], set: Vec::new() }
    }

    /// Notes a change that `--set` makes: messages about its key and what is below are about it, not about a file.
    pub fn changed(&mut self, change: &str, key: &str, value: &toml::Value) {
        self.set.push((change.to_owned(), place::steps(key), value.clone()));
    }

    /// The message about a path of which `--set` has the last word; nothing if a file has.
    fn of_set(&self, path: &[Step], message: &str) -> Option<Error> {
        let found = self.set.iter().rfind(|(_, set, _)| path.starts_with(set));
        found.map(|(change, ..)| about_set(change, message))
    }

    /// The plan itself.
    pub fn main(&self) -> (&Path, &str) {
        self.files.first().map_or((Path::new(""), ""), |(path, text)| (path, text))
    }

    /// Whether the plan includes none.
    pub fn is_single(&self) -> bool {
        self.files.len() == 1
    }

    /// Where a path stands, as far as any file has it; of two files that have as much of it the one with the last word.
    fn locate(&self, path: &[Step]) -> Option<(&Path, &str, Spot)> {
        let spots = self.files.iter().filter_map(|(file, text)| Some((&**file, &**text, place::find(text, path)?)));
        spots.reduce(|best, next| if next.2.depth > best.2.depth { next } else { best })
    }

    /// A number by which paths of one file can be put in the order in which they were written.
    pub fn order(&self, path: &[Step]) -> (usize, usize) {
        let depth = |text: &str| place::find(text, path).filter(|spot| spot.depth == path.len());
        let found = self.files.iter().enumerate().find_map(|(at, (_, text))| Some((at, depth(text)?.value.start)));
        found.unwrap_or((usize::MAX, 0))
    }

    /// The same for every key of the table at a path.
    pub fn orders(&self, path: &[Step]) -> HashMap<String, (usize, usize)> {
        let mut orders = HashMap::new();
        for (at, (_, text)) in self.files.iter().enumerate() {
            for (key, start) in place::keys(text, path) {
                orders.entry(key).or_insert((at, start));
            }
        }
        orders
    }

    /// A message about the value at a path, with line and column; without them if nothing of the path is in a file.
    pub fn at_value(&self, path: &[Step], message: &str) -> Error {
        if let Some(error) = self.of_set(path, message) {
            return error;
        }
        match self.locate(path) {
            // What is missing is said of the table that it is missing in.
            Some((file, text, spot)) if spot.depth < path.len() => {
                place::marked(file, text, &spot.key.unwrap_or(spot.value), message)
            }
            Some((file, text, spot)) => place::marked(file, text, &spot.value, message),
            None => Error::PlanSyntax { path: self.main().0.to_owned(), message: message.to_owned() },
        }
    }

    /// The same about the key at a path.
    pub fn at_key(&self, path: &[Step], message: &str) -> Error {
        if let Some(error) = self.of_set(path, message) {
            return error;
        }
        match self.locate(path) {
            Some((file, text, spot)) => place::marked(file, text, &spot.key.unwrap_or(spot.value), message),
            None => Error::PlanSyntax { path: self.main().0.to_owned(), message: message.to_owned() },
        }
    }

    /// A message of the parser about a text that was made of these files, at the place that the key comes from.
    pub fn parsed(&self, text: &str, error: &toml::de::Error, message: String) -> Error {
        match error.span().and_then(|span| place::path_at(text, span.start)) {
            None => self.at_value(&[], &message),
            Some((path, true)) => self.at_key(&path, &message),
            Some((path, false)) => self.at_value(&path, &message),
        }
    }

    /// Gives an error about a key its line and column.
    pub fn located(&self, error: Error) -> Error {
        let Error::Plan { key, value, expected } = &error else { return error };
        let path = place::steps(key);
        let culprit = Culprit::of(expected);
        let set = |(_, set, value): &&(String, Vec<Step>, toml::Value)| {
            set.starts_with(&path) && culprit.as_ref().is_some_and(|culprit| culprit.is(set, value))
        };
        if let Some((change, ..)) = self.set.iter().rfind(set) {
            return about_set(change, &error.to_string());
        }
        let mut texts = self.files.iter();
        // Of a list the one that is wrong.
        let given =
            value.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).map(|(word, _)| format!("\"{word}\""));
        let only = match culprit.or(given.as_deref().map(Culprit::Value)) {
            Some(Culprit::Key(name)) => {
                texts.find_map(|(file, text)| Some((file, text, place::only_key(text, &path, name)?)))
            }
            Some(Culprit::Value(written)) => {
                texts.find_map(|(file, text)| Some((file, text, place::only_value(text, &path, written)?)))
            }
            None => None,
        };
        match only {
            Some((file, text, span)) => place::marked(file, text, &span, &error.to_string()),
            None => self.at_value(&path, &error.to_string()),
        }
    }
}

/// Files while they are read, each once however often it is included.
#[derive(Default)]
struct Reader {
    texts: Vec<(PathBuf, String)>,
    read: HashMap<PathBuf, Read>,
    /// The bytes that the tables read so far were put together from.
    bytes: usize,
}

/// A plan that was read, with what it includes.
struct Read {
    table: toml::Table,
    /// Its text and those below it, by place, that which has the last word first.
    files: Vec<usize>,
    /// How many files include one another from here on.
    depth: usize,
}

impl Reader {
    /// Reads a file and what it includes; `above` are those that include it.
    fn add(&mut self, path: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let text = read_text(path)?;
        let table: toml::Table = toml::from_str(&text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            place::marked(path, &text, &span, error.message())
        })?;
        let (at, bytes) = (self.texts.len(), text.len());
        self.texts.push((path.to_owned(), text));
        self.count(path, bytes)?;
        above.push(path.to_owned());
        let read = self.include(at, table, above)?;
        above.pop();
        self.count(path, read.files[1..].iter().map(|&at| self.texts[at].1.len()).sum())?;
        self.read.insert(path.to_owned(), read);
        Ok(())
    }

    /// Counts bytes of a file, or of those below it. Errors: there are too many.
    fn count(&mut self, path: &Path, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.texts.len() <= FILES_MOST && self.bytes <= BYTES_MOST {
            return Ok(());
        }
        let most = format!("{FILES_MOST} files or {} MiB", BYTES_MOST >> 20);
        Err(Error::PlanSyntax {
            path: path.to_owned(),
            message: format!("a plan of more than {most} with all it includes"),
        })
    }

    /// Puts the table of a file over those that it includes.
    fn include(&mut self, at: usize, mut table: toml::Table, above: &mut Vec<PathBuf>) -> Result<Read> {
        let path = self.texts[at].0.clone();
        let include = table.remove(INCLUDE);
        let expected = "include: expected a plan's file name, or a list of them";
        let names: Vec<String> = match include {
            None => Vec::new(),
            Some(toml::Value::String(name)) => vec![name],
            Some(toml::Value::Array(items)) => {
                let names = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>();
                names.ok_or_else(|| self.wrong(at, expected))?
            }
            Some(_) => return Err(self.wrong(at, expected)),
        };
        let (mut base, mut depth) = (toml::Table::new(), 1);
        // The last one has the last word, so its text comes first.
        let mut texts = Vec::new();
        for name in &names {
            let file = path.parent().unwrap_or(Path::new("")).join(name);
            let too_deep = format!("include: '{name}' includes itself, or too many others in a row");
            if above.len() >= DEEPEST || above.contains(&file) {
                return Err(self.wrong(at, &too_deep));
            }
            if !self.read.contains_key(&file) {
                self.add(&file, above).map_err(|error| match error {
                    Error::Io { path, source } => self.wrong(at, &format!("include: {}: {source}", path.display())),
                    other => other,
                })?;
            }
            let below = &self.read[&file];
            if above.len() + below.depth > DEEPEST {
                return Err(self.wrong(at, &too_deep));
            }
            merge(&mut base, below.table.clone());
            depth = depth.max(1 + below.depth);
            texts.push(below.files.clone());
        }
        let mut files = vec![at];
        let mut met = HashSet::from([at]);
        files.extend(texts.into_iter().rev().flatten().filter(|&file| met.insert(file)));
        merge(&mut base, table);
        Ok(Read { table: base, files, depth })
    }

    /// A message about what a file includes.
    fn wrong(&self, at: usize, message: &str) -> Error {
        let (path, text) = &self.texts[at];
        let spot = place::find(text, &place::steps(INCLUDE)).map_or(0..0, |spot| spot.value);
        place::marked(path, text, &spot, message)
    }
}

/// A message about a change made on the command line.
fn about_set(change: &str, message: &str) -> Error {
    Error::PlanSyntax { path: format!("--set {change}").into(), message: message.to_owned() }
}

/// The value that the parser of a table inside the plan refuses: it does not say where that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit<'a> {
    /// A misspelt key.
    Key(&'a str),
    /// A value, as it is written.
    Value(&'a str),
}

impl<'a> Culprit<'a> {
    /// The one that a message of the parser is about.
    pub fn of(message: &'a str) -> Option<Culprit<'a>> {
        if message.contains("unknown field") {
            return message.split('`').nth(1).map(Culprit::Key);
        }
        let (_, rest) = message.split_once("invalid type: ").or_else(|| message.split_once("invalid value: "))?;
        let (what, _) = rest.split_once(", expected")?;
        what.strip_prefix("string ").or_else(|| what.split('`').nth(1)).map(Culprit::Value)
    }

    /// Whether it came with a change of the key at this path to this value.
    pub fn is(&self, path: &[Step], value: &toml::Value) -> bool {
        match self {
            Culprit::Key(name) => path.contains(&Step::Key((*name).to_owned())),
            Culprit::Value(written) => value.to_string() == *written,
        }
    }
}

/// Puts the keys of `over` into `base`.
fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// The parser's message, with a suggestion where a key is misspelt.
pub fn hinted(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let hint =
        message.contains("unknown field").then(|| quoted.next()).flatten().and_then(|unknown| nearest(unknown, quoted));
    match hint {
        Some(hint) => format!("{}\nDid you mean '{hint}'?", message.trim_end()),
        None => message.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).expect("a temporary file is writable");
        }
        dir
    }

    #[test]
    fn the_plan_has_the_last_word() {
        let dir = written(&[
            ("a.toml", "x = 1\ny = 1\nz = 1\nlist = [1, 2]\n[t]\np = 1\nq = 1\n"),
            ("b.toml", "y = 2\nz = 2\n[t]\nq = 2\n"),
            ("plan.toml", "include = [\"a.toml\", \"b.toml\"]\nz = 3\nlist = [9]\n[t]\nr = 3\n"),
        ]);
        let (sources, table) = Sources::read(&dir.path().join("plan.toml")).expect("three files");
        let expected = "list = [9]\nx = 1\ny = 2\nz = 3\n\n[t]\np = 1\nq = 2\nr = 3\n";
        assert_eq!(toml::to_string(&table).expect("TOML"), expected);
        let said = |path: &str| sources.at_value(&place::steps(path), "wrong").to_string();
        assert!(said("y").contains("b.toml: line 1, column 5: wrong"), "{}", said("y"));
        assert!(said("t.p").contains("a.toml: line 6"), "{}", said("t.p"));
        assert!(said("t.nothing").contains("plan.toml: line 4, column 2"), "{}", said("t.nothing"));
        assert!(!said("nothing").contains("line"));
    }

    #[test]
    fn includes_that_cannot_be() {
        let dir = written(&[
            ("self.toml", "include = \"self.toml\"\n"),
            ("gone.toml", "name = 'x'\ninclude = \"nowhere.toml\"\n"),
            ("number.toml", "include = 3\n"),
            ("outer.toml", "include = \"broken.toml\"\n"),
            ("broken.toml", "a = 1\nb = = 2\n"),
        ]);
        let said = |name: &str| Sources::read(&dir.path().join(name)).expect_err(name).to_string();
        assert!(said("self.toml").contains("line 1, column 11: include: 'self.toml' includes itself"));
        assert!(said("gone.toml").contains("gone.toml: line 2") && said("gone.toml").contains("nowhere.toml"));
        assert!(said("number.toml").contains("a plan's file name"));
        assert!(said("outer.toml").contains("broken.toml: line 2, column 5"), "{}", said("outer.toml"));
    }

    #[test]
    fn a_file_is_read_once_however_often_it_is_included() {
        let mut files: Vec<(String, String)> = (0..14)
            .map(|n| {
                let below = format!("{}.toml", n + 1);
                let include = format!("include = [\"{below}\", \"{below}\", \"{below}\", \"{below}\"]\n");
                (format!("{n}.toml"), format!("{}k{n} = {n}\n", if n < 13 { &include } else { "" }))
            })
            .collect();
        let many: String = (0..1100).map(|n| format!("\"many{n}.toml\", ")).collect();
        files.push(("many.toml".to_owned(), format!("include = [{many}]\n")));
        files.extend((0..1100).map(|n| (format!("many{n}.toml"), format!("m{n} = 1\n"))));
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        let dir = written(&files);
        let (sources, table) = Sources::read(&dir.path().join("0.toml")).expect("a diamond");
        assert_eq!((sources.files.len(), table.len()), (14, 14));
        let many = Sources::read(&dir.path().join("many.toml")).expect_err("too many").to_string();
        assert!(many.contains("more than 1000 files or 64 MiB"), "{many}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_no_plan() {
        let dir = written(&[("zero.toml", "include = \"/dev/zero\"\n")]);
        for path in [dir.path().join("zero.toml"), PathBuf::from("/dev/zero")] {
            let message = Sources::read(&path).expect_err("a device").to_string();
            assert!(message.contains("/dev/zero: is no regular file"), "{message}");
        }
    }
}
