//! Public workload formats, one file each, all read into a [`Workload`].
//!
//! Columns that a published trace lacks are filled in by named parameters. Every dropped or repaired row is counted with its reason in
//! `Quality`, which is the complete account of an import; `rows_in` is the number of kept plus dropped rows. A row that violates the
//! conventions of its format is dropped, or is an error with `strict`. If most rows violate them, the file is rejected, because it has
//! another format. Users come from a [`Tenants`] rule, because most public traces have none.

mod alibaba2017;
mod detect;
mod openb;
mod swf;
mod swim;
mod tenants;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

pub use alibaba2017::{Alibaba2017Jobs, Alibaba2017Options};
pub use detect::{Head, detect};
pub use openb::OpenbOptions;
pub use swf::{SwfDependencies, SwfMemory, SwfMemoryOf, SwfMemoryUnit, SwfOptions, SwfParallel, SwfProcessors};
pub use swim::SwimOptions;
pub use tenants::{TenantRule, Tenants};

use super::{Input, Workload};
use plimsoll_base::error::{Error, Result, did_you_mean, either};
use plimsoll_base::rows::{InputColumn, InputRow};
use plimsoll_base::units::{Dim, Unit};

/// The declaration of a format for the rest of the program, in the format's own file.
pub struct FormatRow {
    /// The content, in a few words.
    pub about: &'static str,
    /// The layout of a file.
    pub layout: &'static str,
    /// The publication.
    pub source: &'static str,
    /// The first lines of an example file.
    pub example: &'static str,
    /// Rules for users that use a column of the format; the default is [`Tenants::Column`] if it is in this list.
    columns: &'static [Tenants],
    /// Returns whether a file begins like a file in this format.
    recognises: fn(&Head) -> bool,
    /// Reads a file; [`read_input`] finishes the workload.
    read: fn(&Input, &FormatOptions, Tenants) -> Result<Workload>,
}

/// Generates [`Format`] and [`FormatOptions`] from the list of formats: name, file, variant, parameters.
macro_rules! formats {
    ($($name:literal => $file:ident::{$format:ident, $options:ident},)*) => {
        /// A public workload format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Format {
            $(#[doc = concat!("`", $name, "`")] $format,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Format] = &[$(Format::$format,)*];

            /// Returns the name on the command line and in plans.
            pub fn name(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)*
                }
            }

            /// Returns the declaration of the format.
            pub fn row(self) -> &'static FormatRow {
                match self {
                    $(Format::$format => &$file::ROW,)*
                }
            }
        }

        /// Options for reading a public format; the defaults are complete.
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct FormatOptions {
            /// The rule that assigns users; by default the format's user column, else one user per job.
            pub tenants: Option<Tenants>,
            /// The resources that a canonical trace may have in addition to the usual ones.
            #[serde(skip)]
            pub resources: Vec<String>,
            /// Whether a row that violates the format's conventions is an error instead of dropped and counted.
            pub strict: bool,
            $(#[doc = concat!("The parameters of `", $name, "`.")] #[serde(rename = $name)] pub $file: $file::$options,)*
        }
    };
}

formats! {
    "swim" => swim::{Swim, SwimOptions},
    "alibaba-2017" => alibaba2017::{Alibaba2017, Alibaba2017Options},
    "swf" => swf::{Swf, SwfOptions},
    "openb" => openb::{Openb, OpenbOptions},
}

impl Format {
    /// Returns a description in one sentence, for messages and help.
    pub fn describe(self) -> String {
        format!("{} ({})", self.row().about, self.row().layout)
    }

    /// Returns the names of all formats as text.
    pub fn names() -> String {
        either(Format::ALL.iter().map(|format| format.name()))
    }

    /// Parses a name. Errors: [`Error::Plan`] under the name `key`, with the nearest format.
    pub fn parse(key: &str, text: &str) -> Result<Format> {
        let mut all = Format::ALL.iter().copied();
        all.clone().find(|format| format.name() == text).ok_or_else(|| {
            let hint = did_you_mean(text, all.clone().map(Format::name));
            let names: Vec<&str> = all.by_ref().map(Format::name).collect();
            let other = "; `plimsoll trace import` converts other logs";
            Error::plan(key, format!("'{text}'"), format!("{}{other}{hint}", names.join(", ")))
        })
    }

    /// Returns the rule that `asked` selects for this format. By default it is the format's own user column or, without one, one user per
    /// job.
    fn tenants(self, asked: Option<Tenants>) -> Result<Tenants> {
        let own = self.row().columns;
        let Some(rule) = asked else {
            return Ok(*own.iter().find(|own| **own == Tenants::Column).unwrap_or(&Tenants::Job));
        };
        match rule.column().filter(|_| !own.contains(&rule)) {
            None => Ok(rule),
            Some(column) => {
                let expected = format!("job, one, hash:K, round-robin:K or zipf:K:S: {self} has no {column}");
                Err(Error::plan("tenants", format!("'{rule}'"), expected))
            }
        }
    }
}

impl TryFrom<String> for Format {
    type Error = Error;
    fn try_from(text: String) -> Result<Format> {
        Format::parse("format", &text)
    }
}

impl From<Format> for String {
    fn from(format: Format) -> String {
        format.name().to_owned()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a whole file; see [`read_input`].
pub fn read(path: &Path, format: Format, options: &FormatOptions) -> Result<Workload> {
    read_input(&Input::open(path)?, format, options)
}

/// Reads a whole input.
///
/// Errors: [`Error::Io`]; [`Error::Trace`] if most rows are malformed (with `strict`, any row), if there are no rows, or if no row is
/// usable; [`Error::Plan`] for an option that the format does not support.
pub fn read_input(input: &Input, format: Format, options: &FormatOptions) -> Result<Workload> {
    let tenants = format.tenants(options.tenants)?;
    super::unknown::require_text(input)?;
    let mut workload = (format.row().read)(input, options, tenants)?;
    workload.quality.format = format.name().to_owned();
    if workload.quality.rows_in == 0 {
        return Err(Error::trace(input.path(), 0, "", format!("has no rows; expected {}", format.describe())));
    }
    if let (unusable, Some((column, line, problem))) = workload.quality.unusable()
        && unusable > workload.quality.rows_in / 2
    {
        let column = if column == "row" { "" } else { column };
        let others = match workload.quality.rows_in {
            1 => String::new(),
            rows => format!(" ({unusable} of {rows} rows cannot be read as {format})"),
        };
        return Err(Error::trace(input.path(), line, column, format!("{problem}{others}")));
    }
    if workload.sets.is_empty() {
        let reasons: Vec<_> =
            workload.quality.dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let problem = format!("has no usable row among {}: {}", workload.quality.rows_in, reasons.join(", "));
        return Err(Error::trace(input.path(), 0, "", problem));
    }
    let disorder = workload.sets.windows(2).filter(|pair| pair[1].submit < pair[0].submit).count();
    if disorder > 0 {
        let warning = format!("rows earlier than the one above them: {disorder}; sorted by submit time");
        workload.quality.warnings.push(warning);
    }
    Ok(tenants.apply(workload.finish()))
}

fn dim(name: &str, unit: Unit) -> Dim {
    Dim { name: name.to_owned(), unit }
}

/// The names seen so far with their lines: a job that occurs twice is an error.
#[derive(Default)]
struct FirstNames(HashMap<String, u64>);

impl FirstNames {
    fn check(&mut self, row: &InputRow<'_>, column: InputColumn<'_>, name: &str) -> Result<()> {
        match self.0.insert(name.to_owned(), row.line) {
            None => Ok(()),
            Some(line) => Err(row.error(column.name, format!("'{name}' was on line {line} already; expected it once"))),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;
    use crate::workload::Quality;

    /// Returns the path of a file of the shared data folder, or `None` (with a message) if it is absent.
    pub(crate) fn shared(file: &str) -> Option<PathBuf> {
        let folder = std::env::var_os("PLIMSOLL_SHARED_DATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
        let path = folder.join(file);
        if path.exists() {
            return Some(path);
        }
        println!("skipped: no shared data ({})", path.display());
        None
    }

    /// Returns a temporary file with the content `text`.
    pub(crate) fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writable");
        file
    }

    /// Reads `text` with default options.
    pub(crate) fn import(format: Format, text: &str) -> Result<Workload> {
        read(file(text).path(), format, &FormatOptions::default())
    }

    /// Returns the message of the error for `text`, without the path.
    pub(crate) fn refusal(format: Format, text: &str) -> String {
        let file = file(text);
        let message = read(file.path(), format, &FormatOptions::default()).expect_err(text).to_string();
        message.replace(&file.path().display().to_string(), "FILE")
    }

    /// Returns the message of the error for `text` when it is read strictly, without the path. Without `strict` the same row is dropped
    /// and counted, so at least half of the rows must be valid.
    pub(crate) fn strict_refusal(format: Format, text: &str) -> String {
        let file = file(text);
        let options = FormatOptions { strict: true, ..FormatOptions::default() };
        let error = read(file.path(), format, &options).expect_err(text);
        let Error::Trace { line, problem, .. } = &error else { panic!("{text}: {error}") };
        let workload = import(format, text).expect(text);
        let noted = workload.quality.unusable().1.map(|(_, line, problem)| (line, problem));
        assert_eq!(noted, Some((*line, problem.as_str())), "{text}");
        error.to_string().replace(&file.path().display().to_string(), "FILE")
    }

    /// Returns the number of dropped rows, for any reason.
    pub(crate) fn dropped(quality: &Quality) -> u64 {
        quality.dropped.values().sum()
    }

    #[test]
    fn names_round_trip_and_typos_get_a_hint() {
        for &format in Format::ALL {
            assert_eq!(Format::parse("format", format.name()).expect("round trip"), format);
        }
        let message = Format::parse("--format", "alibaba-2018").unwrap_err().to_string();
        assert!(
            message.starts_with("--format: 'alibaba-2018' is not accepted; expected swim, alibaba-2017, swf, openb")
        );
        assert!(message.ends_with(" (did you mean 'alibaba-2017'?)"), "{message}");
    }

    #[test]
    fn files_without_rows_are_refused() {
        for &format in Format::ALL {
            for text in ["", "\n\r\n", "\u{feff}"] {
                let message = refusal(format, text);
                assert!(message.starts_with("FILE: has no rows; expected "), "{format}: {message}");
            }
            let folder = tempfile::tempdir().expect("a folder");
            for path in [folder.path().to_owned(), folder.path().join("absent")] {
                let error = read(&path, format, &FormatOptions::default()).unwrap_err();
                assert!(matches!(error, Error::Io { .. }), "{format}: {error}");
            }
        }
        let message = refusal(Format::Swim, "job0\t0\t0\t0\t0\t0\n");
        assert_eq!(message, "FILE: has no usable row among 1: 1 all byte counts are zero");
    }

    #[test]
    fn any_damaged_byte_is_an_error_or_a_workload_that_adds_up() {
        for &format in Format::ALL {
            let text = format.row().example;
            for at in 0..text.len() {
                for byte in [0, b'\n', b'\t', b' ', b',', b'"', b'-', b'.', b'e', b'9', b';', 0xff] {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes[at] = byte;
                    let input = Input::Bytes("damaged".into(), bytes.into());
                    match read_input(&input, format, &FormatOptions::default()) {
                        Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
                        Ok(workload) => {
                            let kept = workload.jobs.len() as u64;
                            assert_eq!(kept + dropped(&workload.quality), workload.quality.rows_in, "{format}: {at}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rules_that_a_format_cannot_follow_are_refused() {
        let rules = |&format: &Format| [(format, Tenants::Column), (format, Tenants::Qos)];
        for (format, rule) in
            Format::ALL.iter().flat_map(rules).filter(|(format, rule)| !format.row().columns.contains(rule))
        {
            let options = FormatOptions { tenants: Some(rule), ..FormatOptions::default() };
            let nothing = Input::Bytes("absent".into(), [].into());
            let message = read_input(&nothing, format, &options).unwrap_err().to_string();
            assert!(message.contains(&format!("{format} has no ")), "{message}");
        }
    }

    #[test]
    fn options_come_from_a_plan_and_unknown_keys_are_errors() {
        let options: FormatOptions = toml::from_str(
            "tenants = \"zipf:8:1.2\"\n[swim]\nmax_tasks = 50\n[alibaba-2017]\njobs = \"job\"\n[swf]\nmemory = \
             \"ignore\"\nparallel = \"gang\"\n",
        )
        .expect("a plan");
        assert_eq!(options.tenants, Some(Tenants::Zipf { users: 8, exponent_milli: 1200 }));
        assert_eq!((options.swim.max_tasks, options.swim.map_bytes), (50, SwimOptions::default().map_bytes));
        assert_eq!(options.alibaba2017.jobs, Alibaba2017Jobs::Job);
        assert_eq!((options.swf.memory, options.swf.parallel), (SwfMemory::Ignore, SwfParallel::Gang));
        assert!(toml::from_str::<FormatOptions>("[swim]\nblock = 3\n").is_err());
        assert!(toml::from_str::<FormatOptions>("tenants = \"hash\"\n").is_err());
    }
}
