//! Public workload formats, one file each, all read into a [`Workload`].
//!
//! Columns that a published trace lacks are filled in by named parameters, and every row that is left out or mended is
//! counted with its reason: `Quality` tells the whole story of an import, and `rows_in` is the rows kept plus those
//! dropped. A row that breaks its format's own conventions is dropped, too, unless that is asked to be an error or most
//! rows do: then the file is no such file. Users come from a [`Tenants`] rule, because most public traces have none.

pub mod alibaba2017;
mod detect;
pub mod openb;
pub mod swf;
pub mod swim;
pub mod tenants;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use alibaba2017::{Alibaba2017Jobs, Alibaba2017Options};
pub use detect::detect;
pub use openb::OpenbOptions;
pub use swf::{SwfMemory, SwfMemoryUnit, SwfOptions, SwfParallel};
pub use swim::SwimOptions;
pub use tenants::Tenants;

use super::{Input, Workload};
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::rows::{Column, Row};
use plimsoll_base::units::{Dim, Unit};

/// A public workload format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Format {
    /// SWIM: Facebook's jobs of 2009 and 2010 as bytes read, shuffled and written.
    Swim,
    /// `batch_task.csv` of Alibaba's 2017 cluster trace, scheduled by Fuxi.
    Alibaba2017,
    /// The Standard Workload Format of the Parallel Workloads Archive.
    Swf,
    /// The pod list of Alibaba's 2023 GPU cluster trace.
    Openb,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Swim, Format::Alibaba2017, Format::Swf, Format::Openb];

    /// The name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Format::Swim => "swim",
            Format::Alibaba2017 => "alibaba-2017",
            Format::Swf => "swf",
            Format::Openb => "openb",
        }
    }

    /// A description in one sentence, for help.
    pub fn describe(self) -> &'static str {
        match self {
            Format::Swim => "SWIM, Facebook 2009 and 2010: bytes of map, shuffle and output (tab-separated, no header)",
            Format::Alibaba2017 => "Alibaba 2017 batch_task.csv: task sets with cores and normalised memory",
            Format::Swf => "Standard Workload Format: jobs of a parallel machine (18 fields, ';' comments)",
            Format::Openb => "Alibaba 2023 openb pod list: cores, memory and fractional GPUs (with header)",
        }
    }

    /// Reads a name. Errors: [`Error::Plan`] under the name `key`, with the nearest format.
    pub fn parse(key: &str, text: &str) -> Result<Format> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            let hint = nearest(text, Format::ALL.map(Format::name));
            let hint = hint.map_or(String::new(), |known| format!(" (did you mean '{known}'?)"));
            Error::plan(key, format!("'{text}'"), format!("{}{hint}", Format::ALL.map(Format::name).join(", ")))
        })
    }

    /// The rule that `asked` means for this format: by default its own user column, else one user a job.
    fn tenants(self, asked: Option<Tenants>) -> Result<Tenants> {
        match (asked, self) {
            (None, Format::Swf) => Ok(Tenants::Column),
            (None, _) => Ok(Tenants::Job),
            (Some(Tenants::Column), Format::Swim | Format::Alibaba2017 | Format::Openb) => Err(Error::plan(
                "tenants",
                "'column'",
                format!("job, one, hash:K, round-robin:K or zipf:K:S: {self} has no user column"),
            )),
            (Some(Tenants::Qos), Format::Swim | Format::Alibaba2017 | Format::Swf) => Err(Error::plan(
                "tenants",
                "'qos'",
                format!("job, one, hash:K, round-robin:K or zipf:K:S: {self} has no classes of service"),
            )),
            (Some(rule), _) => Ok(rule),
        }
    }
}

impl FromStr for Format {
    type Err = Error;
    fn from_str(text: &str) -> Result<Format> {
        Format::parse("format", text)
    }
}

impl TryFrom<String> for Format {
    type Error = Error;
    fn try_from(text: String) -> Result<Format> {
        text.parse()
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

/// How to read a public format; the defaults need nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FormatOptions {
    /// How users are assigned; by default the format's user column, else one user a job.
    pub tenants: Option<Tenants>,
    /// The resources that a canonical trace may have beside the usual ones.
    #[serde(skip)]
    pub resources: Vec<String>,
    /// A row that breaks the format's conventions is an error instead of dropped and counted.
    pub strict: bool,
    /// Values for the columns that SWIM lacks.
    pub swim: SwimOptions,
    /// The reading of a job in Alibaba's trace of 2017.
    #[serde(rename = "alibaba-2017")]
    pub alibaba2017: Alibaba2017Options,
    /// How parallel jobs and their memory are read.
    pub swf: SwfOptions,
    /// How pods are replayed.
    pub openb: OpenbOptions,
}

/// Reads a whole file; see [`read_input`].
pub fn read(path: &Path, format: Format, options: &FormatOptions) -> Result<Workload> {
    read_input(&Input::open(path)?, format, options)
}

/// Reads a whole input.
///
/// Errors: [`Error::Io`]; [`Error::Trace`] for a file of which most rows are malformed (or any, if it is to be strict),
/// one without rows and one without a usable row; [`Error::Plan`] for an option that the format cannot follow.
pub fn read_input(input: &Input, format: Format, options: &FormatOptions) -> Result<Workload> {
    let tenants = format.tenants(options.tenants)?;
    let mut workload = match format {
        Format::Swim => swim::read(input, &options.swim, options.strict)?,
        Format::Alibaba2017 => alibaba2017::read(input, &options.alibaba2017, options.strict)?,
        Format::Swf => swf::read(input, &options.swf, options.strict, tenants)?,
        Format::Openb => openb::read(input, &options.openb, options.strict, tenants)?,
    };
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

/// The names met so far and their lines: a job that comes twice is an error.
#[derive(Default)]
struct Once(HashMap<String, u64>);

impl Once {
    fn check(&mut self, row: &Row<'_>, column: Column<'_>, name: &str) -> Result<()> {
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

    /// A file of the shared data folder, or `None` (and a line that says so) where it is absent.
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

    /// A file that holds `text`.
    pub(crate) fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writable");
        file
    }

    /// Reads `text` with default options.
    pub(crate) fn import(format: Format, text: &str) -> Result<Workload> {
        read(file(text).path(), format, &FormatOptions::default())
    }

    /// The message of the error that `text` makes, without the path.
    pub(crate) fn refusal(format: Format, text: &str) -> String {
        let file = file(text);
        let message = read(file.path(), format, &FormatOptions::default()).expect_err(text).to_string();
        message.replace(&file.path().display().to_string(), "FILE")
    }

    /// The message of the error that `text` makes when it is read strictly, without the path; read otherwise, the same
    /// row is left out and noted, so that half of the rows must be sound.
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

    /// Rows that were left out, whatever the reason.
    pub(crate) fn dropped(quality: &Quality) -> u64 {
        quality.dropped.values().sum()
    }

    #[test]
    fn names_round_trip_and_typos_get_a_hint() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().expect("round trip"), format);
        }
        let message = Format::parse("--format", "alibaba-2018").unwrap_err().to_string();
        assert_eq!(
            message,
            "--format: 'alibaba-2018' is not accepted; expected swim, alibaba-2017, swf, openb (did you mean \
             'alibaba-2017'?)"
        );
    }

    #[test]
    fn files_without_rows_are_refused() {
        for format in Format::ALL {
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
        let samples = [
            (Format::Swim, "job0\t49\t49\t67108865\t1073741825\t6\njob1\t101.5\t52\t7\t0\t4\n"),
            (Format::Alibaba2017, "-64,65,3,4,15,Terminated,50,0.007\n60,61,4,7,393,Waiting,,\n"),
            (Format::Swf, "1 0 5 14 8 -1 9 64 -1 -1 1 7 1 -1 -1 -1 -1 -1\n2 1 -1 0 4 -1 -1 -1 -1 9 0 1 1 1 1 1 1 1\n"),
            (
                Format::Openb,
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
                 scheduled_time\np0,12000,16384,8,1000,,LS,Running,10,500,20\n",
            ),
        ];
        for (format, text) in samples {
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
        for (format, rule) in [
            (Format::Swim, Tenants::Column),
            (Format::Alibaba2017, Tenants::Column),
            (Format::Openb, Tenants::Column),
            (Format::Swim, Tenants::Qos),
            (Format::Alibaba2017, Tenants::Qos),
            (Format::Swf, Tenants::Qos),
        ] {
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
