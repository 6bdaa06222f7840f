//! Timelines of one run: which user's tasks ran where and when, from the table `tasks`.
//!
//! A timeline is a figure for papers (`picture`) or a trace for Perfetto (`export`). Rows are streamed from the table in order of
//! completion, and are never all in memory. Lanes (`lanes`) separate the tasks that run at the same time on one machine.

pub mod check;
mod choose;
mod chrome;
mod export;
mod lanes;
mod perfetto;
mod picture;
mod rows;
mod scan;
mod series;

use std::path::Path;

use plimsoll_base::error::{Error, Result, either};
use plimsoll_base::named;
use plimsoll_base::units::Time;
use plimsoll_charts::paper::Paper;

pub use choose::{RunChoice, RunWithoutTasks};
use rows::{MachineRanges, TaskFilter, largest_delay};
use scan::Overview;

named! {
    /// The format of a timeline: the ending of its file.
    TimelineFormat {
        Svg "svg": "A figure",
        Pdf "pdf": "A figure for papers",
        Png "png": "A figure as an image",
        Pftrace "pftrace": "A trace for Perfetto (protobuf)",
        PerfettoTrace "perfetto-trace": "The same",
        Json "json": "A trace in Chrome's event format (JSON), which Perfetto also opens",
        JsonGz "json.gz": "The same, compressed with gzip",
    }
}

impl TimelineFormat {
    /// Determines the format from the ending of a file. Errors: [`Error::Plan`] under `key` for another ending.
    pub fn from_path(key: &str, path: &Path) -> Result<TimelineFormat> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let is = |ending: &str| name.strip_suffix(ending).is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'));
        let found = TimelineFormat::ALL.iter().find(|(ending, ..)| is(ending)).map(|(_, format, _)| *format);
        found.ok_or_else(|| {
            let endings: Vec<String> = TimelineFormat::ALL.iter().map(|(ending, ..)| format!(".{ending}")).collect();
            let expected = format!("a file that ends in {}", either(endings.iter().map(String::as_str)));
            Error::plan(key, format!("'{}'", path.display()), expected)
        })
    }

    /// Returns whether it is a figure, not a trace.
    pub fn is_figure(self) -> bool {
        matches!(self, TimelineFormat::Svg | TimelineFormat::Pdf | TimelineFormat::Png)
    }
}

/// A request for a timeline.
pub struct TimelineRequest<'a> {
    /// The results folder, or the folder of one run in it.
    pub results: &'a Path,
    /// The run.
    pub choice: RunChoice<'a>,
    /// Only these users; empty for all.
    pub users: &'a [String],
    /// Only these machines, such as `0-9,12`.
    pub machines: Option<&'a str>,
    /// Only tasks that run after this time.
    pub from: Option<Time>,
    /// Only tasks that run before this time.
    pub until: Option<Time>,
    /// The resource of amounts; by default the one with the highest utilisation.
    pub resource: Option<&'a str>,
    /// The number of users with a colour of their own.
    pub legend: usize,
    /// The sheet of a figure.
    pub paper: Paper,
    /// The file to write.
    pub output: &'a Path,
    /// Returns an error if the command is interrupted.
    pub stop: &'a dyn Fn() -> Result<()>,
}

/// Writes a timeline; returns messages about choices and omissions. An error leaves no partial file. Errors: an option is wrong, the run
/// has no table of tasks, or a file cannot be read or written.
pub fn write(request: &TimelineRequest) -> Result<Vec<String>> {
    let format = TimelineFormat::from_path("--output", request.output)?;
    if let (Some(from), Some(until)) = (request.from, request.until)
        && until <= from
    {
        return Err(Error::plan("--until", format!("{} s", until.seconds()), "a time after --from"));
    }
    let ranges = request.machines.map(|text| MachineRanges::parse("--machines", text)).transpose()?;
    let mut run = request.choice.open(request.results)?;
    run.delay = largest_delay(&run, request.stop)?;
    let resource = run.resource(request.resource)?;
    let filter = TaskFilter::new(request.users, ranges, (request.from, request.until));
    let mut notes = run.notes.clone();
    let overview = Overview::read(&run, &filter, request.stop)?;
    overview.check(&run, request)?;
    let job = TimelineJob { request, run: &run, resource: &resource, filter: &filter, overview: &overview };
    match format.is_figure() {
        true => picture::write(&job, &mut notes)?,
        false => export::write(&job, format, &mut notes)?,
    }
    Ok(notes)
}

/// A checked request with the facts of its run.
struct TimelineJob<'a> {
    request: &'a TimelineRequest<'a>,
    run: &'a choose::ChosenRun,
    resource: &'a choose::Resource,
    filter: &'a TaskFilter,
    overview: &'a Overview,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_selects_the_format() {
        let parse = |name: &str| TimelineFormat::from_path("--output", Path::new(name));
        for (name, format) in [
            ("a.svg", TimelineFormat::Svg),
            ("out/A.PDF", TimelineFormat::Pdf),
            ("x.json.gz", TimelineFormat::JsonGz),
            ("x.y.json", TimelineFormat::Json),
            ("x.perfetto-trace", TimelineFormat::PerfettoTrace),
        ] {
            assert_eq!(parse(name).expect("a known ending"), format, "{name}");
        }
        for name in ["a.gz", "svg", ".svg", "a.html", "a", "x.jsongz", ""] {
            let message = parse(name).expect_err("an unknown ending").to_string();
            assert!(message.contains("--output") && message.contains(".svg, .pdf"), "{name}: {message}");
        }
    }
}
