//! The first rows of a log, its form, and a trial import.

use std::collections::HashMap;
use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::Place;
use plimsoll_sim::workload::Input;
use plimsoll_sim::workload::write::{Layout, csv};

use super::comma::CommaCounts;
use super::profile::Profile;
use super::quoted;
use crate::clock::Clock;
use crate::input::{self, LogRow, delimiter_name};
use crate::mapping::{Delimiter, FileForm, Mapping, TableSpec};
use crate::number::Fraction;
use crate::run::{ImportOptions, import};

/// The number of rows that are examined.
const ROWS: usize = 1000;

/// The beginning of a log.
pub struct LogSample {
    /// The profiles of the columns.
    pub profiles: Vec<Profile>,
    /// The rows as texts.
    pub rows: Vec<Vec<String>>,
    /// A description of the file.
    pub looks: String,
    /// Keys of `[input]` and their values in TOML.
    pub settings: Vec<(&'static str, String)>,
    /// The part of the file that was examined, for a trial import.
    part: Option<Input>,
    /// Rows that cannot be read, and the problem of the first one.
    pub wrong: usize,
    /// See `wrong`.
    pub problem: Option<String>,
}

impl LogSample {
    /// Reads the first rows. Errors: the file cannot be read.
    pub fn read(input: &Input) -> Result<LogSample> {
        let (mut table, mut settings, mut looks) = (TableSpec::default(), Vec::new(), String::new());
        let mut part = None;
        if input::is_parquet(input)? {
            settings.push(("format", quoted("parquet")));
            looks.push_str("Parquet");
        } else {
            let unpacked = input::unpack(input)?;
            let packed = unpacked.compression.map(|name| format!("{name}, ")).unwrap_or_default();
            match input::json_form(&unpacked.head) {
                Some(form) => {
                    let name = if form == FileForm::Json { "json" } else { "json-lines" };
                    (table.form, looks) = (Some(form), format!("{packed}{name}"));
                    settings.push(("format", quoted(name)));
                    if form == FileForm::Json {
                        table.records = input::find_records(&unpacked.head);
                        if !table.records.is_empty() {
                            settings.push(("records", quoted(&table.records.join("."))));
                        }
                    }
                }
                None => {
                    delimited(&unpacked.head, &mut table, &mut settings);
                    looks = format!(
                        "{packed}text with fields separated by {}",
                        delimiter_name(table.delimiter.unwrap_or(Delimiter::Byte(b',')))
                    );
                    let header = if table.columns.is_empty() {
                        "; the first line is a header"
                    } else {
                        "; no header, since the first line has numbers or times: name the columns"
                    };
                    looks.push_str(header);
                }
            }
            if table.form != Some(FileForm::Json) {
                let end =
                    unpacked.head.iter().rposition(|&byte| byte == b'\n').map_or(unpacked.head.len(), |at| at + 1);
                part = Some(Input::Bytes(input.path().to_owned(), unpacked.head[..end].to_vec().into()));
            }
        }
        let source = part.as_ref().unwrap_or(input);
        let mut file = input::open(source, &table, &[])?;
        if file.columns.is_empty() {
            return Err(Error::trace(input.path(), 0, "", "has no rows"));
        }
        let mut profiles: Vec<Profile> = {
            let mut counts: HashMap<&String, usize> = HashMap::new();
            file.columns.iter().for_each(|name| *counts.entry(name).or_default() += 1);
            let profile = |(at, name): (usize, &String)| Profile::new(name, at + 1, counts[name] > 1);
            file.columns.iter().enumerate().map(profile).collect()
        };
        let (mut rows, mut row, mut wrong, mut problem) = (Vec::new(), LogRow::default(), 0, None);
        while rows.len() + wrong < ROWS {
            match file.rows.next(&mut row) {
                Ok(false) => break,
                Err(error) if rows.is_empty() && wrong > 20 => return Err(error),
                Err(error) => {
                    wrong += 1;
                    problem.get_or_insert(error);
                }
                Ok(true) => {
                    let texts: Vec<String> =
                        row.fields.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
                    profiles.iter_mut().zip(&texts).for_each(|(profile, text)| profile.add(text));
                    rows.push(texts);
                }
            }
        }
        match problem {
            Some(error) if rows.is_empty() => Err(error),
            problem => {
                let problem = problem.map(|error| error.to_string());
                Ok(LogSample { profiles, rows, looks, settings, part, wrong, problem })
            }
        }
    }

    /// Imports the examined part by a mapping; returns the header and three rows. Errors: the problem.
    pub fn import(&self, input: &Input, mapping: &str) -> std::result::Result<Vec<String>, String> {
        let place = Place::whole_text("mapping", mapping);
        let mapping = Mapping::parse(crate::OWN, &place).map_err(|error| error.to_string())?;
        let source = self.part.as_ref().unwrap_or(input).clone();
        let workload = import(&mapping, &[source], ImportOptions::default()).map_err(|error| error.to_string())?;
        let layout = Layout::scan(&mut workload.source()).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        csv(&mut bytes, Path::new("rows"), &mut workload.source(), &layout).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).lines().take(4).map(str::to_owned).collect())
    }
}

/// Detects comments, the delimiter, and the names of columns without a header.
fn delimited(head: &[u8], table: &mut TableSpec, settings: &mut Vec<(&'static str, String)>) {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if let Some(mark @ (b'#' | b';')) = text.first().copied() {
        table.comment = Some(mark);
        settings.push(("comment", quoted(&char::from(mark).to_string())));
    }
    let delimiter = input::detect_delimiter(head, table.comment);
    table.delimiter = Some(delimiter);
    settings.push((
        "delimiter",
        quoted(&match delimiter {
            Delimiter::Blanks => "blanks".to_owned(),
            Delimiter::Byte(b'\t') => "tab".to_owned(),
            Delimiter::Byte(byte) => char::from(byte).to_string(),
        }),
    ));
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first =
        lines.into_iter().find(|line| !line.is_empty() && line.first().copied() != table.comment.or(Some(b'\n')));
    let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
    let fields: Vec<String> = match delimiter {
        Delimiter::Blanks => first.split_ascii_whitespace().map(str::to_owned).collect(),
        Delimiter::Byte(byte) => {
            let quoted = matches!(byte, b',' | b';');
            let mut reader = csv::ReaderBuilder::new();
            let reader = reader.has_headers(false).delimiter(byte).quoting(quoted).from_reader(first.as_bytes());
            let record = reader.into_records().next().and_then(std::result::Result::ok).unwrap_or_default();
            record.iter().map(|field| field.trim().to_owned()).collect()
        }
    };
    // A header has neither numbers nor times, but a name may occur twice in it.
    let clock = Clock::default();
    let is_value = |field: &String| {
        Fraction::parse(field).is_some() || CommaCounts::default().add(field) || clock.read(field).is_some()
    };
    if fields.iter().any(is_value) {
        table.columns = (1..=fields.len()).map(|at| format!("column_{at}")).collect();
        let list: Vec<String> = table.columns.iter().map(|name| quoted(name)).collect();
        settings.push(("columns", format!("[{}]", list.join(", "))));
    }
}
