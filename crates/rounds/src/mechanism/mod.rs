//! The round-based mechanism: from fractions of time to the schedule of a round.
//!
//! The state ([`Mechanism`]) has an entry for each active job and, with packing, for each pair of jobs of equal scale. A *reset* replaces the
//! fractions of all entries. In each round the entries of a type are ordered by priority = fraction / received fraction, and selected while
//! accelerators are free ([`Mechanism::select`]); the selection is placed on accelerators ([`Placement`]). The caller reports the length of
//! each micro-task ([`Mechanism::charge`]). Nothing here reads a clock. Source: Gavel, section 5, and its `scheduler.py`.
//!
//! Decisions use integers: fractions in 10^-9, times in microseconds. Within a type, `x_a / c_a > x_b / c_b` is decided by products.

mod options;
mod placement;
mod select;

use plimsoll_base::units::{Span, Time};

pub use options::{NewJobs, Options, Overhead, OverheadWhen, RoundEnd, TypeOrder};
pub use placement::{Cluster, Placed, Placement};
pub use select::{SelectedEntry, SelectionRules};

/// One whole in units of a fraction.
pub const WHOLE: u32 = 1_000_000_000;
/// The second member of an entry of one job.
pub const NONE: u32 = u32::MAX;

/// The fractions that a policy computed for the active jobs, in units of [`WHOLE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The number of worker types.
    pub types: usize,
    /// The fraction of job `i` on type `j` at `i * types + j`, jobs in order of their ids.
    pub alone: Vec<u32>,
    /// The fraction of the pair of jobs `a < b` on type `j` at `(b * (b - 1) / 2 + a) * types + j`; empty without packing.
    pub pairs: Vec<u32>,
}

impl Targets {
    /// Creates targets of 0 for `jobs` jobs.
    pub fn zero(jobs: usize, types: usize) -> Targets {
        Targets { types, alone: vec![0; jobs * types], pairs: Vec::new() }
    }

    /// Returns the position of the pair of jobs `a < b` in units of pairs.
    pub fn pair_index(a: usize, b: usize) -> usize {
        b * (b - 1) / 2 + a
    }

    /// Rounds a fraction. A fraction below 10^-6 becomes 0: the solver's error has that size.
    pub fn rounded(x: f64) -> u32 {
        if x < 1e-6 { 0 } else { (x.min(1.0) * f64::from(WHOLE)).round() as u32 }
    }
}

/// A job or a pair of jobs.
#[derive(Clone, Copy, Debug)]
struct Entry {
    members: [u32; 2],
    kinds: [u32; 2],
    scale: u32,
    alive: bool,
    has_target: bool,
}

/// The state of the mechanism.
#[derive(Clone, Debug)]
pub struct Mechanism {
    types: usize,
    round: Span,
    at_least: Span,
    second_at_once: bool,
    packing: bool,
    last_reset: Time,
    resets: u64,
    stale: bool,
    entries: Vec<Entry>,
    /// Per entry and type: fraction, time counter in microseconds, deficit in 10^-9 microseconds.
    x: Vec<u32>,
    received: Vec<u64>,
    deficit: Vec<i128>,
    /// The sum of the time counters of each type.
    sum: Vec<u64>,
    /// The entries with a positive fraction on each type, in order of priority, except those in `moved`.
    order: Vec<Vec<u32>>,
    /// The entries with a change of priority since `order` was sorted.
    moved: Vec<Vec<u32>>,
    /// The active jobs by id: id, kind, scale.
    jobs: Vec<(u32, u32, u32)>,
}

impl Mechanism {
    /// Creates the state without jobs. With `packing`, pairs of jobs are entries.
    pub fn new(types: usize, options: &Options, packing: bool) -> Mechanism {
        Mechanism {
            types,
            round: options.round,
            at_least: options.at_least,
            second_at_once: options.second_at_once,
            packing,
            last_reset: Time(0),
            resets: 0,
            stale: false,
            entries: Vec::new(),
            x: Vec::new(),
            received: Vec::new(),
            deficit: Vec::new(),
            sum: vec![0; types],
            order: vec![Vec::new(); types],
            moved: vec![Vec::new(); types],
            jobs: Vec::new(),
        }
    }

    /// Adds a job; its id is above those of all earlier jobs. Its counters start at half a round, its deficits at 0.
    pub fn add(&mut self, id: u32, kind: u32, scale: u32) {
        self.stale = true;
        self.push([id, NONE], [kind, kind], scale);
        if self.packing {
            for at in 0..self.jobs.len() {
                let (other, other_kind, other_scale) = self.jobs[at];
                if other_scale == scale {
                    self.push([other, id], [other_kind, kind], scale);
                }
            }
        }
        self.jobs.push((id, kind, scale));
    }

    fn push(&mut self, members: [u32; 2], kinds: [u32; 2], scale: u32) {
        self.entries.push(Entry { members, kinds, scale, alive: true, has_target: false });
        self.x.extend(std::iter::repeat_n(0, self.types));
        self.received.extend(std::iter::repeat_n(self.round.0 / 2, self.types));
        self.deficit.extend(std::iter::repeat_n(0, self.types));
    }

    /// Removes a completed job with all its pairs.
    pub fn remove(&mut self, id: u32) {
        self.stale = true;
        self.entries.iter_mut().filter(|entry| entry.members.contains(&id)).for_each(|entry| entry.alive = false);
        self.jobs.retain(|(job, ..)| *job != id);
    }

    /// Changes the kind of a job (a change of its batch size). Fractions stay until the next reset.
    pub fn set_kind(&mut self, id: u32, kind: u32) {
        for entry in &mut self.entries {
            for at in 0..2 {
                if entry.members[at] == id {
                    entry.kinds[at] = kind;
                }
            }
        }
        self.jobs.iter_mut().filter(|(job, ..)| *job == id).for_each(|job| job.1 = kind);
    }

    /// Returns whether the fractions must be computed again at the start of the round at `now`: jobs changed, and enough time passed.
    pub fn needs_reset(&self, now: Time) -> bool {
        let first = self.resets == 0 || (self.second_at_once && self.last_reset == Time(0));
        self.stale && (first || now.since(self.last_reset) >= self.at_least)
    }

    /// Returns the earliest time of the next reset, or `None` if no job changed.
    pub fn next_reset(&self) -> Option<Time> {
        self.stale.then(|| Time(self.last_reset.0 + self.at_least.0))
    }

    /// Applies new fractions: deficits increase by due minus received time, and the counters restart at half a round.
    ///
    /// `targets` has the active jobs in order of their ids.
    pub fn reset(&mut self, now: Time, targets: &Targets) {
        let elapsed = i128::from(now.0 - self.last_reset.0);
        let (types, half) = (self.types, self.round.0 / 2);
        let mut kept = 0;
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            if !entry.alive {
                continue;
            }
            let index = |id: u32| self.jobs.binary_search_by_key(&id, |(job, ..)| *job).unwrap_or_default();
            let first = index(entry.members[0]);
            let source = match entry.members[1] {
                NONE => targets.alone.get(first * types..),
                second => targets.pairs.get(Targets::pair_index(first, index(second)) * types..),
            };
            for j in 0..types {
                let due = if entry.has_target { i128::from(self.x[at * types + j]) * elapsed } else { 0 };
                let received = i128::from(self.received[at * types + j]) - i128::from(half);
                let deficit = self.deficit[at * types + j] + due - received * i128::from(WHOLE);
                self.deficit[kept * types + j] = deficit;
                self.received[kept * types + j] = half;
                self.x[kept * types + j] = source.and_then(|source| source.get(j)).copied().unwrap_or(0);
            }
            self.entries[kept] = Entry { has_target: true, ..entry };
            kept += 1;
        }
        self.entries.truncate(kept);
        self.x.truncate(kept * types);
        self.received.truncate(kept * types);
        self.deficit.truncate(kept * types);
        for j in 0..types {
            self.sum[j] = kept as u64 * half;
            self.order[j].clear();
            self.moved[j] = (0..kept as u32).filter(|&at| self.x[at as usize * types + j] > 0).collect();
        }
        (self.last_reset, self.stale, self.resets) = (now, false, self.resets + 1);
    }

    /// Adds the length of a micro-task to the counters of its entry and of the type.
    pub fn charge(&mut self, entry: u32, worker_type: usize, length: Span) {
        self.received[entry as usize * self.types + worker_type] += length.0;
        self.sum[worker_type] += length.0;
        if self.x[entry as usize * self.types + worker_type] > 0 {
            self.moved[worker_type].push(entry);
        }
    }

    /// Returns the number of resets.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Returns the ids of the active jobs, ascending.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.jobs.iter().map(|(id, ..)| *id)
    }

    /// Returns the priority of an entry on a type: fraction / received fraction (for reports).
    pub fn priority(&self, members: [u32; 2], worker_type: usize) -> Option<f64> {
        let at = self.entries.iter().position(|entry| entry.alive && entry.members == members)?;
        let x = f64::from(self.x[at * self.types + worker_type]) / f64::from(WHOLE);
        let received = self.received[at * self.types + worker_type] as f64 / self.sum[worker_type] as f64;
        Some(x / received)
    }
}

#[cfg(test)]
mod tests;
