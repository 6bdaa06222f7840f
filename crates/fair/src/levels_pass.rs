//! The passes over the columns for [`Levels`](super::Levels): sums at a level, the users that stop there, and the users that continue.
//!
//! The loops over blocks are written so that the compiler vectorises them: no branches inside, sums in lanes.

use std::ops::Range;

/// The number of users per block: its columns stay in the cache between the loops over them, and a column is read in long stretches.
pub(super) const BLOCK: usize = 2048;

/// The number of independent partial sums.
const LANES: usize = 8;

/// Returns the index ranges of the blocks.
pub(super) fn blocks(users: usize) -> impl Iterator<Item = Range<usize>> {
    (0..users).step_by(BLOCK).map(move |start| start..(start + BLOCK).min(users))
}

/// The users of a pass: all users, or the copy of the users that still rise.
pub(super) struct PassView<'a> {
    pub(super) columns: Vec<&'a [f64]>,
    pub(super) rates: &'a [f64],
    pub(super) stops: &'a [f64],
}

impl<'a> PassView<'a> {
    pub(super) fn new(columns: &[&'a [f64]], rates: &'a [f64], stops: &'a [f64]) -> PassView<'a> {
        PassView { columns: columns.to_vec(), rates, stops }
    }
}

/// The allocations of the users at a level, and how fast they grow.
pub(super) struct Sums {
    pub(super) level: f64,
    /// The amount of each resource used by the visited users.
    pub(super) used: Vec<f64>,
    /// The growth of `used` per unit of level above this one.
    pub(super) speed: Vec<f64>,
    /// The highest level, at most this one, at which a user stops.
    pub(super) last_stop: f64,
    /// The lowest level above this one at which a user stops.
    pub(super) next_stop: f64,
}

impl Sums {
    /// Creates the sums over no users.
    pub(super) fn new(level: f64, dims: usize) -> Sums {
        let none = || vec![0.0; dims];
        Sums { level, used: none(), speed: none(), last_stop: 0.0, next_stop: f64::INFINITY }
    }

    /// Adds a block of users. `rates` and `stops` cover the block, `columns` all users.
    pub(super) fn add(&mut self, columns: &[&[f64]], open: &[bool], rates: &[f64], stops: &[f64], block: Range<usize>) {
        self.refresh_stops(stops);
        if stops.iter().all(|stop| *stop > self.level) {
            for r in (0..columns.len()).filter(|&r| open[r]) {
                let grows = dot(&columns[r][block.clone()], rates);
                self.used[r] += self.level * grows;
                self.speed[r] += grows;
            }
            return;
        }
        for r in (0..columns.len()).filter(|&r| open[r]) {
            let (used, grows) = held_and_growing(&columns[r][block.clone()], rates, stops, self.level);
            self.used[r] += used;
            self.speed[r] += grows;
        }
    }

    /// Finds the nearest levels, below and above, at which users stop.
    fn refresh_stops(&mut self, stops: &[f64]) {
        let level = self.level;
        let (mut last, mut next) = ([self.last_stop; LANES], [self.next_stop; LANES]);
        let (lanes, rest) = stops.as_chunks::<LANES>();
        for stops in lanes {
            for ((last, next), &stop) in last.iter_mut().zip(&mut next).zip(stops) {
                let (before, after) =
                    (if stop > level { 0.0 } else { stop }, if stop > level { stop } else { f64::INFINITY });
                *last = if before > *last { before } else { *last };
                *next = if after < *next { after } else { *next };
            }
        }
        for &stop in rest {
            let nearest = if stop > level { &mut next[0] } else { &mut last[0] };
            *nearest = if stop > level { nearest.min(stop) } else { nearest.max(stop) };
        }
        self.last_stop = last.into_iter().fold(0.0, f64::max);
        self.next_stop = next.into_iter().fold(f64::INFINITY, f64::min);
    }
}

/// Computes the sums of all users in view at a level, for the open resources.
pub(super) fn evaluate(view: &PassView, open: &[bool], level: f64) -> Sums {
    let mut sums = Sums::new(level, view.columns.len());
    for block in blocks(view.stops.len()) {
        sums.add(&view.columns, open, &view.rates[block.clone()], &view.stops[block.clone()], block);
    }
    sums
}

/// Returns the sum of products over a block.
pub(super) fn dot(column: &[f64], by: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((column, rest), (by, by_rest)) = (column.as_chunks::<LANES>(), by.as_chunks::<LANES>());
    for (column, by) in column.iter().zip(by) {
        for lane in 0..LANES {
            sums[lane] += column[lane] * by[lane];
        }
    }
    rest.iter().zip(by_rest).for_each(|(column, by)| sums[0] += column * by);
    pairwise(&sums)
}

/// Returns the amount of a resource that the users of a block use at a level, and how fast it grows. Reads the block once.
fn held_and_growing(column: &[f64], rates: &[f64], stops: &[f64], level: f64) -> (f64, f64) {
    let (mut held, mut growing) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, demand: f64, rate: f64, stop: f64| {
        held[lane] += demand * (rate * if stop > level { level } else { stop });
        growing[lane] += demand * if stop > level { rate } else { 0.0 };
    };
    let (columns, rest) = column.as_chunks::<LANES>();
    let ((rates, rate_rest), (stops, stop_rest)) = (rates.as_chunks::<LANES>(), stops.as_chunks::<LANES>());
    for ((demand, rate), stop) in columns.iter().zip(rates).zip(stops) {
        (0..LANES).for_each(|lane| add(lane, demand[lane], rate[lane], stop[lane]));
    }
    rest.iter().zip(rate_rest).zip(stop_rest).for_each(|((&demand, &rate), &stop)| add(0, demand, rate, stop));
    (pairwise(&held), pairwise(&growing))
}

/// Returns the lowest level of the users limited by this resource, and the highest of the users that need it. A user limited by a resource
/// that it does not need counts as level 0.
pub(super) fn extremes(column: &[f64], level: &[f64], limits: &[u32], resource: u32) -> (f64, f64) {
    let (mut lowest, mut highest) = ([f64::INFINITY; LANES], [0.0; LANES]);
    let mut look = |lane: usize, demand: f64, level: f64, limit: u32| {
        let needed = if demand > 0.0 { level } else { 0.0 };
        let stopped = if limit == resource { needed } else { f64::INFINITY };
        highest[lane] = if needed > highest[lane] { needed } else { highest[lane] };
        lowest[lane] = if stopped < lowest[lane] { stopped } else { lowest[lane] };
    };
    let (columns, rest) = column.as_chunks::<LANES>();
    let ((levels, level_rest), (limits, limit_rest)) = (level.as_chunks::<LANES>(), limits.as_chunks::<LANES>());
    for ((demand, level), limit) in columns.iter().zip(levels).zip(limits) {
        (0..LANES).for_each(|lane| look(lane, demand[lane], level[lane], limit[lane]));
    }
    rest.iter().zip(level_rest).zip(limit_rest).for_each(|((&demand, &level), &limit)| look(0, demand, level, limit));
    (lowest.into_iter().fold(f64::INFINITY, f64::min), highest.into_iter().fold(0.0, f64::max))
}

/// Adds pairwise. Not inlined, because the preceding loops would otherwise pair their lanes as this sum does.
#[inline(never)]
fn pairwise(sums: &[f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = sums;
    let [a, b, c, d] = [a + e, b + f, c + g, d + h];
    (a + c) + (b + d)
}

/// Stops every user that rises beyond `level` and needs a resource used up there. Returns the number of users that still rise.
pub(super) fn freeze(
    columns: &[&[f64]],
    stops: &mut [f64],
    limits: &mut [u32],
    level: f64,
    used_up: &[usize],
) -> usize {
    let mut rising = 0;
    for block in blocks(stops.len()) {
        let (stops, limits) = (&mut stops[block.clone()], &mut limits[block.clone()]);
        for &r in used_up {
            let column = &columns[r][block.clone()];
            for ((stop, limit), &demand) in stops.iter().zip(limits.iter_mut()).zip(column) {
                // A mask with all bits set for a user that stops at this level; it replaces an unpredictable branch.
                let stopped = u32::from((*stop > level) & (demand > 0.0)).wrapping_neg();
                *limit = (*limit & !stopped) | (r as u32 & stopped);
            }
            for (stop, &demand) in stops.iter_mut().zip(column) {
                *stop = if (*stop > level) & (demand > 0.0) { level } else { *stop };
            }
        }
        rising += stops.iter().map(|stop| usize::from(*stop > level)).sum::<usize>();
    }
    rising
}

/// A copy of selected users.
#[derive(Clone, Debug, Default)]
pub(super) struct UserCopy {
    /// The indices of the users.
    pub(super) index: Vec<usize>,
    /// The demands, column by column.
    pub(super) demand: Vec<f64>,
    pub(super) rates: Vec<f64>,
    pub(super) stops: Vec<f64>,
    limits: Vec<u32>,
}

impl UserCopy {
    pub(super) fn view(&self, dims: usize) -> PassView<'_> {
        PassView { columns: columns(&self.demand, self.rates.len(), dims), rates: &self.rates, stops: &self.stops }
    }

    /// Stops users as [`freeze`] does.
    pub(super) fn freeze(&mut self, dims: usize, level: f64, used_up: &[usize]) -> usize {
        let columns = columns(&self.demand, self.rates.len(), dims);
        freeze(&columns, &mut self.stops, &mut self.limits, level, used_up)
    }

    /// Writes the levels at which the copied users stopped, and their limits, to the lists of all users.
    pub(super) fn write_back(&self, stops: &mut [f64], limits: &mut [u32]) {
        for (k, &i) in self.index.iter().enumerate() {
            (stops[i], limits[i]) = (self.stops[k], self.limits[k]);
        }
    }
}

fn columns(demand: &[f64], users: usize, dims: usize) -> Vec<&[f64]> {
    (0..dims).map(|r| &demand[r * users..][..users]).collect()
}

impl UserCopy {
    /// Copies the users in view that rise beyond `level`; there are `rising` of them.
    pub(super) fn take_rising(&mut self, view: &PassView, level: f64, rising: usize) {
        // Writes every index and advances only for rising users, which avoids a branch.
        self.index.resize(rising + 1, 0);
        let mut found = 0;
        for (k, stop) in view.stops.iter().enumerate() {
            self.index[found] = k;
            found += usize::from(*stop > level);
        }
        self.index.truncate(rising);
        self.copy(view);
    }

    /// Copies the few users in view that stop beyond `level`, up to `end`.
    pub(super) fn take_between(&mut self, view: &PassView, level: f64, end: f64) {
        self.index.clear();
        let mut places = [0; BLOCK];
        for block in blocks(view.stops.len()) {
            let mut found = 0;
            for (k, stop) in block.clone().zip(&view.stops[block]) {
                places[found] = k;
                found += usize::from((*stop > level) & (*stop <= end));
            }
            self.index.extend_from_slice(&places[..found]);
        }
        self.copy(view);
    }

    /// Copies the users at the positions in `index`.
    fn copy(&mut self, view: &PassView) {
        let copy = |from: &[f64], to: &mut Vec<f64>| to.extend(self.index.iter().map(|&k| from[k]));
        for list in [&mut self.rates, &mut self.stops, &mut self.demand] {
            list.clear();
        }
        copy(view.rates, &mut self.rates);
        copy(view.stops, &mut self.stops);
        self.demand.reserve(self.index.len() * view.columns.len());
        view.columns.iter().for_each(|column| copy(column, &mut self.demand));
        self.limits.clear();
        self.limits.resize(self.index.len(), u32::MAX);
    }

    /// Translates positions in another copy to indices of users.
    pub(super) fn members_of(&mut self, other: &UserCopy) {
        self.index.iter_mut().for_each(|k| *k = other.index[*k]);
    }
}
