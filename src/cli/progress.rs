//! Progress on standard error, and only on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::interrupt;
use crate::error::Result;
use crate::experiment::{Progress, RunSummary, Supply};
use crate::units::Time;
use crate::workload::Quality;
use crate::workload::formats::Format;

/// A bar over runs, with the tasks launched so far.
pub struct Bar {
    bar: ProgressBar,
    /// Whether nothing more is to be said about the workload.
    told: AtomicBool,
    launched: AtomicU64,
}

impl Bar {
    /// A bar over so many runs; hidden when quiet or not on a terminal.
    pub fn new(runs: usize, quiet: bool) -> Bar {
        let hidden = quiet || !std::io::stderr().is_terminal();
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64), target);
        let style = ProgressStyle::with_template("{spinner} {bar:30} {pos}/{len} runs, {msg} ({elapsed}, {eta} left)");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if !hidden {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Bar { bar, told: AtomicBool::new(quiet), launched: AtomicU64::new(0) }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn tick(&self, now: Time, launched: u64) -> Result<()> {
        interrupt::check()?;
        if !self.bar.is_hidden() {
            let all = self.launched.fetch_add(launched, Ordering::Relaxed) + launched;
            self.bar.set_message(format!("{:.1} million tasks, at {:.1} h", all as f64 / 1e6, now.seconds() / 3600.0));
        }
        Ok(())
    }

    fn opened(&self, supply: &Supply) {
        if let Some(note) = supply.quality().and_then(imported)
            && !self.told.swap(true, Ordering::Relaxed)
        {
            self.bar.suspend(|| eprintln!("{note}"));
        }
    }

    fn finished(&self, _run: &RunSummary) {
        self.bar.inc(1);
    }
}

/// One line on how an import went; generators drop and repair nothing.
fn imported(quality: &Quality) -> Option<String> {
    Format::ALL.into_iter().find(|format| format.name() == quality.format)?;
    let count = |counts: &std::collections::BTreeMap<String, u64>| counts.values().sum::<u64>();
    let (dropped, repaired) = (count(&quality.dropped), count(&quality.repaired));
    Some(format!(
        "{}: {} rows read, {dropped} dropped, {repaired} repaired (see `plimsoll trace validate`)",
        quality.format, quality.rows_in
    ))
}
