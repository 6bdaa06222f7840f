//! Mappings: TOML files that describe how the rows of a log become the rows of a trace.
//!
//! A mapping is parsed completely before a log is read, so that a misspelt key is an error with its place. Names of columns are checked when
//! the files are open (`bind.rs`). docs/mapping.md describes all keys.

mod read;

use plimsoll_base::error::Result;
use plimsoll_base::tree::{Node, Place};
use regex::Regex;

use crate::clock::Clock;
use crate::expr::{ExpressionTree, WrittenName, parse};
use crate::number::Fraction;
use crate::target::Target;

/// The version of the language of mappings.
pub const VERSION: &str = "1";

/// An expression of a mapping, with its place for messages.
#[derive(Clone, Debug)]
pub struct Formula {
    /// The text.
    pub text: String,
    /// The place in the mapping.
    pub place: Place,
    /// The parsed text.
    pub tree: ExpressionTree<WrittenName>,
}

impl Formula {
    /// Parses an expression. Errors: [`Error::Placed`] with the number of the character.
    pub fn parse(key: &str, text: &str, place: &Place) -> Result<Formula> {
        let tree = parse(text).map_err(|(at, problem)| {
            place.wrong(key, format!("expression '{}', character {at}: {problem}", crate::value::short(text)))
        })?;
        Ok(Formula { text: text.to_owned(), place: place.clone(), tree })
    }

    fn from_node(key: &str, node: &Node) -> Result<Formula> {
        match &node.value {
            plimsoll_base::tree::Value::Text(text) => Formula::parse(key, text, &node.place),
            plimsoll_base::tree::Value::Integer(text) | plimsoll_base::tree::Value::Float(text) => {
                Formula::parse(key, text, &node.place)
            }
            plimsoll_base::tree::Value::Truth(truth) => Formula::parse(key, &truth.to_string(), &node.place),
            _ => Err(node.place.wrong(key, "expected an expression, such as \"end_time - start_time\"")),
        }
    }
}

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileForm {
    /// TextLines of fields between separators.
    Delimited,
    /// A JSON document with an array of records.
    Json,
    /// One JSON record on each line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
}

impl FileForm {
    /// The names in mappings.
    pub const NAMES: [(&str, FileForm); 4] = [
        ("csv", FileForm::Delimited),
        ("json", FileForm::Json),
        ("json-lines", FileForm::JsonLines),
        ("parquet", FileForm::Parquet),
    ];
}

/// The join of a table with the main table.
#[derive(Clone, Debug)]
pub struct Join {
    /// The key in rows of the main table.
    pub key: Formula,
    /// The key in rows of this table.
    pub of: Formula,
    /// Whether rows of the main table without a row in this table are kept.
    pub keep: bool,
    /// Whether the files of this table may be absent.
    pub optional: bool,
}

/// A table: files with the same columns.
#[derive(Clone, Debug, Default)]
pub struct TableSpec {
    /// The name for columns such as `job.user`; empty for a single table.
    pub name: String,
    /// Patterns of file names; every file if empty.
    pub files: Vec<String>,
    /// The form of the files; detected if absent.
    pub form: Option<FileForm>,
    /// The separator of fields: a character, or `None` to detect it.
    pub delimiter: Option<Delimiter>,
    /// Whether fields may be in quotes; by default, fields separated by commas or semicolons may be.
    pub quotes: Option<bool>,
    /// The first character of lines that are comments.
    pub comment: Option<u8>,
    /// The names of the columns of files without a header; for JSON, columns that may be absent from the first records.
    pub columns: Vec<String>,
    /// Whether the first line is a header; if not, the columns are `$1`, `$2` and so on.
    pub header: Option<bool>,
    /// Whether further delimiters belong to the last column.
    pub overflow: bool,
    /// The path to the array of records in JSON.
    pub records: Vec<String>,
    /// Texts that mean a missing value, besides the empty text, `nan` and `null`.
    pub missing: Vec<String>,
    /// The name of a reader for nested records.
    pub reader: Option<String>,
    /// How the table is joined with the main table.
    pub join: Option<Join>,
    /// The place in the mapping.
    pub place: Place,
}

/// The separator of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// One character.
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

/// The rule for a row without a value for a column of the trace.
#[derive(Clone, Debug)]
pub enum MissingRule {
    /// The row is dropped and counted.
    Drop,
    /// The column is empty.
    Unknown,
    /// The column has the value of this expression.
    Constant(Formula),
}

/// A column of the trace.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    /// The column.
    pub target: Target,
    /// Its name in the mapping.
    pub name: String,
    /// Its value.
    pub formula: Formula,
    /// The rule for rows without a value.
    pub missing: MissingRule,
}

/// The rule for several rows of one execution.
#[derive(Clone, Debug)]
pub struct AttemptSpec {
    /// The key that the rows have in common.
    pub key: Formula,
    /// The time that orders the rows; by default that of the submission.
    pub order: Option<Formula>,
    /// The row that represents them.
    pub rule: AttemptRule,
}

/// The row that represents all rows with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptRule {
    /// The first one.
    First,
    /// The last one, submitted with the first.
    Last,
    /// The last one, submitted with the first, with the sum of all durations.
    Sum,
    /// None: every row is imported.
    Each,
}

/// The fold of events to one row per key.
#[derive(Clone, Debug)]
pub struct FoldSpec {
    /// The key of an event.
    pub key: Formula,
    /// The time of an event.
    pub time: Formula,
    /// The kind of an event.
    pub event: Formula,
    /// Kinds of submissions, of starts, and of ends, each end with the name of its outcome.
    pub submit: Vec<String>,
    /// See `submit`.
    pub start: Vec<String>,
    /// See `submit`.
    pub end: Vec<(String, String)>,
    /// Kinds that only change columns.
    pub update: Vec<String>,
}

/// The columns of a machines file.
#[derive(Clone, Debug)]
pub struct MachinesSpec {
    /// The index of the table with the machines.
    pub table: usize,
    /// The columns: the name, whether it is a number that must be known, and the value.
    pub columns: Vec<(String, bool, Formula)>,
    /// The place in the mapping.
    pub place: Place,
}

/// The treatment of a column that no expression reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRule {
    /// It has no influence on a simulation.
    Ignored,
    /// Rows with a value are counted, because it could matter.
    Counted(String),
}

/// How files of a mapping are recognised.
#[derive(Clone, Debug)]
pub enum Recognition {
    /// The columns that the file has.
    Columns(Vec<String>),
    /// A pattern of the first line.
    Line(Regex),
    /// Texts that occur in the first 64 KiB.
    Texts(Vec<String>),
}

/// A mapping of the rows of a log to the rows of a trace.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The name of a shipped mapping, otherwise `mapping`.
    pub name: String,
    /// The content of the log, in a few words.
    pub about: String,
    /// The publication of the log.
    pub source: String,
    /// How a file of this log is recognised.
    pub recognition: Option<Recognition>,
    /// The tables; the first one is the main table.
    pub tables: Vec<TableSpec>,
    /// The rules for times.
    pub clock: Clock,
    /// The time of the trace's origin; by default that of the first imported row.
    pub origin: Option<Fraction>,
    /// The fold of events.
    pub fold: Option<FoldSpec>,
    /// Named values, in order.
    pub lets: Vec<(String, Formula)>,
    /// Conditions of rows that are imported, with the reason for which other rows are dropped.
    pub keep: Vec<(Formula, String)>,
    /// Conditions of rows that are counted in a warning.
    pub warn: Vec<(Formula, String)>,
    /// The columns of the trace.
    pub outputs: Vec<OutputColumn>,
    /// The key of a row for the dependencies of other rows; by default its stage.
    pub after_key: Option<Formula>,
    /// Whether demands are those of all tasks of a row.
    pub demand_of_all: bool,
    /// Whether rows that differ only in their number of tasks become one row.
    pub merge: bool,
    /// The rule for several rows of one execution.
    pub attempts: Option<AttemptSpec>,
    /// Columns without an expression.
    pub fields: Vec<(String, FieldRule, Place)>,
    /// The machines of the log.
    pub machines: Option<MachinesSpec>,
    /// Resources besides the usual ones.
    pub resources: Vec<String>,
}

impl Mapping {
    /// Returns the content of the log, or the name of the mapping.
    pub fn about_or_name(&self) -> &str {
        if self.about.is_empty() { "a log with rows" } else { &self.about }
    }

    /// Returns whether several rows of the log may become one row.
    pub fn merges_rows(&self) -> bool {
        self.merge
    }
}
