//! Reports progress on standard error: bars on a terminal, occasional lines otherwise.
//!
//! A calling program can receive the progress through [`Stop`] instead. The remaining time is estimated from the executed runs.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::interrupt::Stop;
use super::screen;
use crate::control::study::Watcher;
use crate::error::Result;
use crate::experiment::{Progress, RunSummary, Supply};
use crate::output::numbers::{count, plural, thousands};
use crate::units::Time;
use crate::workload::Quality;
use crate::workload::formats::Format;

/// Interval between two lines without a terminal.
const LINE: Duration = Duration::from_secs(60);

/// A bar over all runs, and one over the tasks of active runs.
pub struct Bar {
    bars: MultiProgress,
    runs: ProgressBar,
    current: ProgressBar,
    /// Whether the note on the imported trace has been printed, or is disabled by `--quiet`.
    told: AtomicBool,
    quiet: bool,
    stop: Stop,
    going: Mutex<ActiveRun>,
}

/// The active runs by number, each with its launched tasks, and its number of tasks if known.
#[derive(Default)]
struct ActiveRun {
    runs: HashMap<usize, (u64, Option<u64>)>,
    /// Simulated hours of the run that reported last.
    hours: f64,
    line: Option<Instant>,
}

impl Bar {
    /// Creates bars before the number of runs is known; hidden when quiet or not on a terminal.
    pub fn new(quiet: bool, stop: &Stop) -> Bar {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bars = MultiProgress::with_draw_target(target);
        let bar = |template: &str| {
            let bar = bars.add(ProgressBar::new(0));
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        };
        Bar {
            runs: bar("{spinner} {bar:20} {pos}/{len} runs ({elapsed}, {eta} left)"),
            current: bar("  {bar:20} {wide_msg}"),
            bars,
            told: AtomicBool::new(quiet),
            quiet,
            stop: stop.clone(),
            going: Mutex::default(),
        }
    }

    /// Removes the bars.
    pub fn clear(&self) {
        self.runs.finish_and_clear();
        self.current.finish_and_clear();
    }

    /// Shows the progress of the active runs.
    fn show(&self, going: &mut ActiveRun) {
        if going.runs.is_empty() {
            return self.current.set_message("");
        }
        let launched: u64 = going.runs.values().map(|(launched, _)| launched).sum();
        let known: Option<u64> = going.runs.values().map(|(_, tasks)| *tasks).sum();
        self.current.set_length(known.unwrap_or(0));
        self.current.set_position(if known.is_some() { launched } else { 0 });
        // The number of tasks is unknown for a streamed trace.
        let (of, left) = match known {
            Some(tasks) => {
                (format!(" of {}", count(tasks, "task")), format!(" ({} s left)", self.current.eta().as_secs()))
            }
            None => (format!(" {}", plural(launched, "task")), String::new()),
        };
        self.current.set_message(format!(
            "{}{of} in {}, {:.1} h{left}",
            thousands(launched),
            count(going.runs.len() as u64, "run"),
            going.hours
        ));
        let line = || {
            let (made, all) = (self.runs.position(), self.runs.length().unwrap_or(0));
            let left = self.runs.eta().as_secs();
            let left = if made == 0 { String::new() } else { format!(", about {} min left", left.div_ceil(60)) };
            format!("{made} of {}, {} in unfinished runs{left}", count(all, "run"), count(launched, "task"))
        };
        if self.bars.is_hidden() && !self.quiet && !self.stop.report(line) {
            let last = *going.line.get_or_insert_with(Instant::now);
            if last.elapsed() >= LINE {
                going.line = Some(Instant::now());
                screen::eprint_line(&line());
            }
        }
    }
}

impl Progress for Bar {
    fn planned(&self, runs: usize, _there: usize) {
        self.runs.inc_length(runs as u64);
        // A bar of length 0 would be drawn as full, so it is drawn only once there are runs.
        if runs > 0 && !self.bars.is_hidden() {
            [&self.runs, &self.current].iter().for_each(|bar| bar.enable_steady_tick(Duration::from_millis(200)));
        }
        // The remaining time is estimated from executed runs, not from runs that were complete before.
        if self.runs.position() == 0 {
            self.runs.reset_eta();
        }
    }

    fn started(&self, number: usize, tasks: Option<u64>) {
        if let Ok(mut going) = self.going.lock() {
            going.runs.insert(number, (0, tasks));
            self.show(&mut going);
        }
    }

    fn tick(&self, number: usize, now: Time, launched: u64) -> Result<()> {
        self.stop.check()?;
        if !self.quiet
            && let Ok(mut going) = self.going.try_lock()
        {
            if let Some(run) = going.runs.get_mut(&number) {
                run.0 = launched;
                going.hours = now.seconds() / 3600.0;
            }
            self.show(&mut going);
        }
        Ok(())
    }

    fn opened(&self, supply: &Supply) {
        if let Some(note) = supply.quality().and_then(imported)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            self.bars.suspend(|| screen::eprint_line(&note));
        }
    }

    fn finished(&self, number: usize, _run: &RunSummary) {
        self.runs.inc(1);
        if let Ok(mut going) = self.going.lock() {
            going.runs.remove(&number);
            self.show(&mut going);
        }
    }
}

/// A bar over the equal steps of long work, or occasional lines.
pub struct Steps {
    bar: ProgressBar,
    what: &'static str,
    quiet: bool,
    stop: Stop,
    line: Mutex<Instant>,
}

impl Steps {
    /// Creates a bar before the number of steps is known; `what` is the plural noun for the steps.
    pub fn new(quiet: bool, what: &'static str, stop: &Stop) -> Steps {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let template = "{spinner} {bar:30} {pos}/{len} {msg} ({elapsed}, {eta} left)";
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        if !hidden {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Steps { bar, what, quiet, stop: stop.clone(), line: Mutex::new(Instant::now()) }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watcher for Steps {
    fn go_on(&self) -> Result<()> {
        self.stop.check()
    }

    fn planned(&self, parts: usize) {
        self.bar.inc_length(parts as u64);
    }

    fn done(&self) {
        self.bar.inc(1);
        let far = || {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            format!("{done} of {all} {}, about {} min left", self.what, self.bar.eta().as_secs().div_ceil(60))
        };
        if self.bar.is_hidden()
            && !self.quiet
            && !self.stop.report(far)
            && let Ok(mut line) = self.line.try_lock()
            && line.elapsed() >= LINE
        {
            *line = Instant::now();
            screen::eprint_line(&far());
        }
    }
}

/// Describes an import in one line; `None` for generators, which drop and repair no rows.
fn imported(quality: &Quality) -> Option<String> {
    Format::ALL.iter().find(|format| format.name() == quality.format)?;
    let sum = |counts: &std::collections::BTreeMap<String, u64>| counts.values().sum::<u64>();
    let (dropped, repaired) = (sum(&quality.dropped), sum(&quality.repaired));
    Some(format!(
        "{}: {} rows read, {dropped} dropped, {repaired} repaired (see `plimsoll trace validate`)",
        quality.format, quality.rows_in
    ))
}
