//! Reads a quota file: strictly, exactly, and with the place in every error. See docs/policies.md for the format.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::roster;
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::rows::read_text;
use plimsoll_base::units::{Dim, Round, Span, decimal, span};
pub use plimsoll_fair::water::Semantics as Variant;

/// One in the integers that ratios are kept in (millionths).
pub(super) const RATIO_ONE: u64 = 1_000_000;

/// The largest ratio, in millionths.
const RATIO_MAX: u64 = 1_000_000 * RATIO_ONE;

/// The order of users inside a group, after priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupOrder {
    /// The earliest task.
    #[default]
    Fifo,
    /// The user with the least dominant share.
    Fair,
}

/// The rule for a group that holds more than its quota because another one requests the amount it lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reclaim {
    /// Nothing is taken back: the group's holdings are a floor of its quota.
    Never,
    /// The group launches nothing until tasks of it have ended and it is below its quota.
    #[default]
    Wait,
    /// As `Wait`, and when it has been above its quota for this long without a break, tasks of it are stopped: the
    /// least urgent first, then those that started last. They wait again, and their work is lost.
    KillAfter(Span),
}

/// A quota file as it is written, checked except for the parts that depend on the run's resources and users.
#[derive(Clone, Debug)]
pub struct QuotaFile {
    /// Where it was read: the quota file, or the plan that it stands in.
    pub path: PathBuf,
    /// The files of its own that it was read from.
    pub files: Vec<PathBuf>,
    /// How minimum and ratio go together.
    pub variant: Variant,
    /// The order of users inside a group.
    pub inside: GroupOrder,
    /// The rule above a quota.
    pub reclaim: Reclaim,
    /// The groups in the order of the file.
    pub groups: Vec<GroupEntry>,
    /// Labels with a tree of their own, in the order of the file.
    pub labels: Vec<LabelTree>,
}

/// The minimums and maximums of groups on the machines that carry a label.
#[derive(Clone, Debug, Default)]
pub struct LabelTree {
    /// The label.
    pub name: String,
    /// The line of its name.
    pub line: usize,
    /// As many as there are groups, in the same order.
    pub groups: Vec<GroupEntry>,
}

/// A group as it is written.
#[derive(Clone, Debug, Default)]
pub struct GroupEntry {
    /// Its name.
    pub name: String,
    /// The line of its name; 0 where nothing is stated of it.
    pub line: usize,
    /// Whether its tree says anything of it; if not, it may use nothing there.
    pub stated: bool,
    /// The group above it, by place in the file; `None` right under the cluster.
    pub parent: Option<usize>,
    /// The ratio of resources without one of their own, in millionths.
    pub ratio: u64,
    /// Ratios of resources, in millionths.
    pub ratios: Vec<(Amount, u64)>,
    /// Its guaranteed amount, in base units.
    pub min: Vec<(Amount, u64)>,
    /// The largest amount it may use, in base units.
    pub max: Vec<(Amount, u64)>,
    /// Whether others may use the part of its minimum that it does not request.
    pub lend: bool,
    /// Its users: names, or beginnings of names with a `*` behind.
    pub users: Vec<String>,
    /// Whether users that no group names belong to it.
    pub default: bool,
}

/// A resource as a key spells it, and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The resource.
    pub dim: Dim,
    /// The key.
    pub key: String,
    /// The line of the key.
    pub line: usize,
}

const TOP: [&str; 6] = ["variant", "inside", "reclaim", "users", "group", "label"];
const OF_GROUP: [&str; 8] = ["name", "parent", "ratio", "min", "max", "lend", "users", "default"];

pub(super) type Table<'a> = DeTable<'a>;
pub(super) type Item<'a> = Spanned<DeValue<'a>>;

/// Reads the file. Errors: [`Error::Io`], [`Error::PlanSyntax`] with the line, the problem and the values that would be
/// accepted.
pub fn read(path: &Path) -> Result<QuotaFile> {
    let mut file = parse(path, &read_text(path)?)?;
    file.files.insert(0, path.to_owned());
    Ok(file)
}

/// Reads the text of a file; a list of users stands beside it. Errors: as [`read`].
pub fn parse(path: &Path, text: &str) -> Result<QuotaFile> {
    let reader = Reader::new(path, text);
    reader.file(reader.table_of_text()?.get_ref(), 1, path.parent().unwrap_or(Path::new("")))
}

impl QuotaFile {
    /// The quota groups that stand in a plan, by name: its tables `[quota.NAME]`, with the keys of a quota file. Files
    /// that they name are in `folder`. Errors: as [`QuotaFile::read`], at the lines of `text`, which messages call
    /// `path`.
    pub fn in_plan(path: &Path, text: &str, folder: &Path) -> Result<Vec<(String, QuotaFile)>> {
        let reader = Reader::new(path, text);
        let plan = reader.table_of_text()?;
        let Some(quotas) = plan.get_ref().get("quota") else { return Ok(Vec::new()) };
        let expected = "expected tables with names, such as [quota.teams]";
        let table = |item: &Item, key: &str| {
            let line = reader.line(item.span().start);
            item.get_ref().as_table().map(|_| line).ok_or_else(|| reader.wrong(line, key, expected))
        };
        table(quotas, "quota")?;
        let mut found = Vec::new();
        for (name, item) in quotas.get_ref().as_table().into_iter().flatten() {
            let (name, line) = (name.get_ref().to_string(), table(item, "quota")?);
            if let Some(top) = item.get_ref().as_table() {
                found.push((name, reader.file(top, line, folder)?));
            }
        }
        Ok(found)
    }
}

const VARIANTS: [(&str, Variant); 2] =
    [("min-plus-share", Variant::MinPlusShare), ("max-min-level", Variant::MaxMinLevel)];
const INSIDES: [(&str, GroupOrder); 2] = [("fifo", GroupOrder::Fifo), ("fair", GroupOrder::Fair)];

pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    /// Where each line ends.
    lines: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Path, text: &'a str) -> Reader<'a> {
        Reader { path, text, lines: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    fn table_of_text(&self) -> Result<Spanned<Table<'a>>> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.wrong(self.line(at), "", error.message())
        })
    }

    /// The content of a table that begins at `line`; a list of users is in `folder`.
    fn file(&self, top: &Table, line: usize, folder: &Path) -> Result<QuotaFile> {
        self.known(top, &TOP, "")?;
        let choice = |key: &str| top.get(key).map(|item| (self.line(item.span().start), item));
        let variant = self.choice("variant", choice("variant"), &VARIANTS)?;
        let inside = self.choice("inside", choice("inside"), &INSIDES)?;
        let reclaim = self.reclaim(choice("reclaim"))?;
        let (groups, parents) = self.groups(top, line)?;
        let (path, files, labels) = (self.path.to_owned(), Vec::new(), Vec::new());
        let mut file = QuotaFile { path, files, variant, inside, reclaim, groups, labels };
        self.connect(&mut file, &parents)?;
        self.users(&file)?;
        self.amounts(&file.groups)?;
        file.labels = self.labels(top, &file.groups)?;
        if let Some(item) = top.get("users") {
            let list = folder.join(self.string("users", item)?);
            roster::read(&list, &mut file)?;
            file.files.push(list);
        }
        Ok(file)
    }

    pub(super) fn line(&self, byte: usize) -> usize {
        1 + self.lines.partition_point(|&end| end < byte)
    }

    pub(super) fn wrong(&self, line: usize, key: &str, problem: impl std::fmt::Display) -> Error {
        wrong(self.path, line, key, problem)
    }

    /// Refuses keys that nobody knows.
    pub(super) fn known(&self, table: &Table, keys: &[&str], within: &str) -> Result<()> {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let hint = nearest(name, keys.iter().copied());
                let hint = hint.map(|hint| format!(" (did you mean '{hint}'?)")).unwrap_or_default();
                let problem = format!("'{name}' is no key{within}{hint}; expected {}", keys.join(", "));
                return Err(self.wrong(self.line(key.span().start), "", problem));
            }
        }
        Ok(())
    }

    fn choice<T: Copy + Default>(&self, key: &str, item: Option<(usize, &Item)>, all: &[(&str, T)]) -> Result<T> {
        let Some((line, item)) = item else { return Ok(T::default()) };
        let given = item.get_ref().as_str();
        all.iter().find(|(name, _)| Some(*name) == given).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.wrong(line, key, format!("{} is not accepted; expected {}", shown(item), names.join(" or ")))
        })
    }

    /// The rule above a quota.
    fn reclaim(&self, item: Option<(usize, &Item)>) -> Result<Reclaim> {
        let Some((line, item)) = item else { return Ok(Reclaim::default()) };
        let after =
            |text: &str| text.strip_prefix("kill-after:").and_then(|text| span(text).ok()).map(Reclaim::KillAfter);
        match item.get_ref().as_str() {
            Some("never") => Ok(Reclaim::Never),
            Some("wait") => Ok(Reclaim::Wait),
            text => text.and_then(after).ok_or_else(|| {
                let expected = "expected \"never\", \"wait\" or \"kill-after:SPAN\", such as \"kill-after:60s\"";
                self.wrong(line, "reclaim", format!("{} is not accepted; {expected}", shown(item)))
            }),
        }
    }

    /// The groups, and of each the name and the line of its parent.
    #[expect(clippy::type_complexity, reason = "read and consumed by one caller")]
    fn groups(&self, top: &Table, line: usize) -> Result<(Vec<GroupEntry>, Vec<Option<(String, usize)>>)> {
        const EXPECTED: &str = "expected at least one [[group]] with a name";
        let Some(item) = top.get("group") else {
            return Err(self.wrong(line, "group", format!("is missing; {EXPECTED}")));
        };
        let line = self.line(item.span().start);
        let list = item.get_ref().as_array().ok_or_else(|| self.wrong(line, "group", EXPECTED))?;
        let (mut groups, mut parents) = (Vec::new(), Vec::new());
        let mut lines: HashMap<String, usize> = HashMap::new();
        for item in list.iter() {
            let line = self.line(item.span().start);
            let table = item.get_ref().as_table().ok_or_else(|| self.wrong(line, "group", EXPECTED))?;
            let (group, parent) = self.group(line, table)?;
            if let Some(first) = lines.insert(group.name.clone(), group.line) {
                let problem = format!("'{}' stands on line {first} too; expected names of their own", group.name);
                return Err(self.wrong(group.line, "name", problem));
            }
            groups.push(group);
            parents.push(parent);
        }
        if groups.is_empty() {
            return Err(self.wrong(line, "group", EXPECTED));
        }
        Ok((groups, parents))
    }

    fn group(&self, line: usize, table: &Table) -> Result<(GroupEntry, Option<(String, usize)>)> {
        self.known(table, &OF_GROUP, " of a group")?;
        let item = table.get("name").ok_or_else(|| self.wrong(line, "name", "is missing; expected a group's name"))?;
        let (name, line) = (self.string("name", item)?, self.line(item.span().start));
        if name.is_empty() || name == "root" {
            let problem = format!("'{name}' is not accepted; expected a name, and not root: that is the cluster");
            return Err(self.wrong(line, "name", problem));
        }
        let parent = match table.get("parent") {
            Some(item) => Some((self.string("parent", item)?, self.line(item.span().start))),
            None => None,
        };
        let mut group = GroupEntry { name, line, ..GroupEntry::default() };
        self.shares(table, &mut group)?;
        if let Some(item) = table.get("default") {
            group.default = self.truth("default", item)?;
        }
        if let Some(item) = table.get("users") {
            let expected = "expected a list of users, such as [\"a\", \"b\", \"batch-*\"]";
            let list = item.get_ref().as_array();
            let list = list.ok_or_else(|| self.wrong(self.line(item.span().start), "users", expected))?;
            let name = |item| self.string("users", item).map(|name| name.trim().to_owned());
            group.users = list.iter().map(name).collect::<Result<_>>()?;
        }
        Ok((group, parent.filter(|(name, _)| name != "root")))
    }

    /// The minimum and maximum of a group: of the cluster, or of the machines of a label.
    pub(super) fn shares(&self, table: &Table, group: &mut GroupEntry) -> Result<()> {
        (group.stated, group.ratio, group.lend) = (true, RATIO_ONE, true);
        match table.get("ratio") {
            Some(item) if item.get_ref().as_table().is_some() => group.ratios = self.table("ratio", item, true)?,
            Some(item) => group.ratio = self.ratio("ratio", item)?,
            None => {}
        }
        for (key, amounts) in [("min", &mut group.min), ("max", &mut group.max)] {
            if let Some(item) = table.get(key) {
                *amounts = self.table(key, item, false)?;
            }
        }
        if let Some(item) = table.get("lend") {
            group.lend = self.truth("lend", item)?;
        }
        Ok(())
    }

    fn truth(&self, key: &str, item: &Item) -> Result<bool> {
        item.get_ref().as_bool().ok_or_else(|| {
            let problem = format!("{} is not accepted; expected true or false", shown(item));
            self.wrong(self.line(item.span().start), key, problem)
        })
    }

    pub(super) fn string(&self, key: &str, item: &Item) -> Result<String> {
        let text = item.get_ref().as_str().map(str::to_owned);
        text.ok_or_else(|| {
            let problem = format!("{} is not accepted; expected text in quotes", shown(item));
            self.wrong(self.line(item.span().start), key, problem)
        })
    }

    fn ratio(&self, key: &str, item: &Item) -> Result<u64> {
        let line = self.line(item.span().start);
        let text = self.text.get(item.span()).unwrap_or_default();
        let expected = "expected a number of at least 0";
        let ratio =
            number(item, RATIO_ONE, Round::Up).map_err(|p| self.wrong(line, key, format!("{text} {p}; {expected}")))?;
        // Rounded up so that a ratio above 0 stays one.
        if ratio > RATIO_MAX {
            return Err(self.wrong(line, key, format!("{text} is too large; {expected}, and at most 1000000")));
        }
        Ok(ratio)
    }

    /// A table of resources: amounts in base units, or ratios.
    fn table(&self, key: &str, item: &Item, ratios: bool) -> Result<Vec<(Amount, u64)>> {
        let expected = "expected resources, such as { cpu = 100, memory_gib = 200 }";
        let table = item.get_ref().as_table();
        let table = table.ok_or_else(|| self.wrong(self.line(item.span().start), key, expected))?;
        let mut amounts: Vec<(Amount, u64)> = Vec::new();
        for (name, item) in table {
            let (spelt, line) = (name.get_ref().to_string(), self.line(name.span().start));
            let (dim, scale) = Dim::parse(&spelt);
            let whole = format!("{key}.{spelt}");
            let value = if ratios {
                self.ratio(&whole, item)?
            } else {
                number(item, scale, Round::Down).map_err(|problem| {
                    let text = self.text.get(item.span()).unwrap_or_default();
                    self.wrong(line, &whole, format!("{text} {problem}; expected an amount of at least 0"))
                })?
            };
            if amounts.iter().any(|(known, _)| known.dim.name == dim.name) {
                return Err(self.wrong(line, &whole, format!("stands twice; expected {} once", dim.name)));
            }
            amounts.push((Amount { dim, key: spelt, line }, value));
        }
        Ok(amounts)
    }
}

/// An error at a line of a quota file.
pub(super) fn wrong(path: &Path, line: usize, key: &str, problem: impl std::fmt::Display) -> Error {
    let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
    Error::PlanSyntax { path: path.to_owned(), message: format!("line {line}: {key}{problem}") }
}

/// A number, exactly. Errors: the problem, as the end of a sentence.
fn number(item: &Item, scale: u64, round: Round) -> std::result::Result<u64, String> {
    let digits = match item.get_ref() {
        DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
        DeValue::Float(digits) => digits.as_str(),
        _ => return Err("is not a number".to_owned()),
    };
    decimal(digits.as_bytes(), scale, round).map_err(|problem| problem.to_string())
}

/// A value for a message.
fn shown(item: &Item) -> String {
    match item.get_ref() {
        DeValue::String(text) => format!("'{text}'"),
        DeValue::Integer(digits) => digits.as_str().to_owned(),
        DeValue::Float(digits) => digits.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
