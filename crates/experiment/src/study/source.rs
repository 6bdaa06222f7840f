//! The source files of a plan: its own file and the plans that it includes.
//!
//! Each file is read once, however often it is included. Depth, number of files and total size are limited, and cycles are refused. Every
//! value keeps its location in the file that it comes from, for messages.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::read_text;
use plimsoll_base::tree::{Node, Place, Value};

/// The key that names the included plans.
const INCLUDE: &str = "include";

/// Maximum depth of includes.
const DEEPEST: usize = 16;

/// Maximum number of files of a plan.
const FILES_MOST: usize = 1000;

/// Maximum number of bytes of a plan. A file counts again for every file that includes it.
const BYTES_MOST: usize = 64 << 20;

/// The texts of a plan, ordered by descending precedence.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Place>);

impl Sources {
    /// Reads a plan with its includes into one table. Keys of the plan replace those of the included plans, and keys of later includes
    /// replace those of earlier includes. Tables are merged key by key; every other value is replaced as a whole.
    ///
    /// Errors: [`Error::Io`], [`Error::Placed`] with line and column.
    pub fn read(text: Place) -> Result<(Sources, Node)> {
        let (mut reader, path) = (PlanReader::default(), text.file().to_owned());
        reader.add(text, &mut Vec::new())?;
        let Some(read) = reader.read.remove(&path) else { return Ok(Default::default()) };
        Ok((Sources(read.files.into_iter().map(|at| reader.texts[at].clone()).collect()), read.table))
    }

    /// Returns whether a plan or a plan that it includes has a table; `false` if one of them cannot be read.
    pub fn have_table(text: &Place, key: &str) -> bool {
        Sources::read(text.clone()).is_ok_and(|(_, tree)| tree.get(key).is_some())
    }

    /// Returns a sorting key for a location: the index of its text, and the position in this text.
    pub fn order(&self, place: &Place) -> (usize, usize) {
        let file = self.0.iter().position(|text| text.shares_text(place));
        (file.unwrap_or(usize::MAX), place.start())
    }
}

/// The files that were read so far. Each is read once, however often it is included.
#[derive(Default)]
struct PlanReader {
    texts: Vec<Place>,
    read: HashMap<PathBuf, Read>,
    /// The number of bytes in the tables read so far.
    bytes: usize,
}

/// A file that was read, with its includes.
struct Read {
    table: Node,
    /// The indices of the file's text and of the included texts, ordered by descending precedence.
    files: Vec<usize>,
    /// The length of the longest chain of includes that starts with this file.
    depth: usize,
}

impl PlanReader {
    /// Reads the text of a file, and its includes; `above` are the files that include it.
    fn add(&mut self, text: Place, above: &mut Vec<PathBuf>) -> Result<()> {
        let path = text.file().to_owned();
        let table = Node::toml(&text)?;
        let at = self.texts.len();
        self.texts.push(text);
        self.count(at, self.texts[at].text().len())?;
        above.push(path.clone());
        let read = self.include(at, table, above)?;
        above.pop();
        self.count(at, read.files[1..].iter().map(|&at| self.texts[at].text().len()).sum())?;
        self.read.insert(path, read);
        Ok(())
    }

    /// Counts the bytes of a file or of its includes. Errors: there are too many bytes or files.
    fn count(&mut self, at: usize, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.texts.len() <= FILES_MOST && self.bytes <= BYTES_MOST {
            return Ok(());
        }
        let most = format!("{FILES_MOST} files or {} MiB", BYTES_MOST >> 20);
        Err(self.texts[at].wrong("", format!("a plan of more than {most} with all it includes")))
    }

    /// Merges the table of a file with the tables that it includes; the table of the file has precedence.
    fn include(&mut self, at: usize, mut table: Node, above: &mut Vec<PathBuf>) -> Result<Read> {
        let path = self.texts[at].file().to_owned();
        let none = Node { value: Value::List(Vec::new()), ..Node::default() };
        let include = table.take_entry(INCLUDE).map_or(none, |entry| entry.node);
        let wrong = |problem: &str| include.place.wrong(INCLUDE, problem);
        let names = match &include.value {
            Value::Text(_) => std::slice::from_ref(&include),
            Value::List(items) => items,
            _ => return Err(wrong("expected a plan's file name, or a list of them")),
        };
        let (mut base, mut depth) = (Node::default(), 1);
        // The last included plan has the highest precedence, so its text is first.
        let mut texts = Vec::new();
        for name in names {
            let name = name.text().ok_or_else(|| wrong("expected a plan's file name, or a list of them"))?;
            let file = path.parent().unwrap_or(Path::new("")).join(name);
            let too_deep = format!("'{name}' includes itself, or the includes are nested too deep");
            if above.len() >= DEEPEST || above.contains(&file) {
                return Err(wrong(&too_deep));
            }
            if !self.read.contains_key(&file) {
                let text = read_text(&file).map(|text| Place::whole_text(&file, text));
                text.and_then(|text| self.add(text, above)).map_err(|error| match error {
                    Error::Io { path, source } => wrong(&format!("{}: {source}", path.display())),
                    other => other,
                })?;
            }
            let below = &self.read[&file];
            if above.len() + below.depth > DEEPEST {
                return Err(wrong(&too_deep));
            }
            base.merge(below.table.clone());
            depth = depth.max(1 + below.depth);
            texts.push(below.files.clone());
        }
        let mut files = vec![at];
        let mut met = HashSet::from([at]);
        files.extend(texts.into_iter().rev().flatten().filter(|&file| met.insert(file)));
        base.merge(table);
        Ok(Read { table: base, files, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::tree::steps;

    fn read(path: &Path) -> Result<(Sources, Node)> {
        Sources::read(Place::whole_text(path, read_text(path)?))
    }

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
        let (_, table) = read(&dir.path().join("plan.toml")).expect("three files");
        let expected = "list = [9]\nx = 1\ny = 2\nz = 3\n\n[t]\np = 1\nq = 2\nr = 3\n";
        assert_eq!(
            table.plain().expect("TOML").to_string(),
            toml::from_str::<toml::Value>(expected).expect("TOML").to_string()
        );
        let said = |path: &str| table.place_of(&steps(path)).wrong("", "wrong").to_string();
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
        let said = |name: &str| read(&dir.path().join(name)).expect_err(name).to_string();
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
        let (sources, table) = read(&dir.path().join("0.toml")).expect("a diamond");
        assert_eq!((sources.0.len(), table.entries().len()), (14, 14));
        let many = read(&dir.path().join("many.toml")).expect_err("too many").to_string();
        assert!(many.contains("more than 1000 files or 64 MiB"), "{many}");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_no_plan() {
        let dir = written(&[("zero.toml", "include = \"/dev/zero\"\n")]);
        for path in [dir.path().join("zero.toml"), PathBuf::from("/dev/zero")] {
            let message = read(&path).expect_err("a device").to_string();
            assert!(message.contains("/dev/zero: is no regular file"), "{message}");
        }
    }
}
