//! Step functions of users averaged over the columns of a figure: shares, use of a resource, and running tasks.

use std::path::Path;

use plimsoll_base::error::Result;
use plimsoll_results::schema::Table;

use super::TimelineJob;
use super::rows::each_chunk;

/// Sums of step functions over equal intervals of time, one per layer.
///
/// Cost: constant for each step, whatever its length; memory: layers times intervals.
#[derive(Clone, Debug)]
pub(super) struct TimeBins {
    from: f64,
    width: f64,
    /// Per layer and interval: the integral of steps that cover a part of it.
    parts: Vec<Vec<f64>>,
    /// Per layer and interval: the change of the value of steps that cover it completely.
    changes: Vec<Vec<f64>>,
}

impl TimeBins {
    /// Creates `count` intervals in a window for a number of layers.
    pub fn new((from, until): (u64, u64), count: usize, layers: usize) -> TimeBins {
        let count = count.max(1);
        let width = ((until - from) as f64 / count as f64).max(f64::MIN_POSITIVE);
        let zeros = vec![vec![0.0; count + 1]; layers];
        TimeBins { from: from as f64, width, parts: zeros.clone(), changes: zeros }
    }

    fn count(&self) -> usize {
        self.parts.first().map_or(1, |parts| parts.len() - 1)
    }

    /// Returns the position of a time in intervals, within the window.
    fn place(&self, time: u64) -> f64 {
        ((time as f64 - self.from) / self.width).clamp(0.0, self.count() as f64)
    }

    /// Adds a value of a layer from one time to another.
    pub fn add(&mut self, layer: usize, from: u64, until: u64, value: f64) {
        let (from, until) = (self.place(from), self.place(until));
        if until <= from || value == 0.0 {
            return;
        }
        let (first, last) = (from.floor() as usize, until.floor() as usize);
        let (parts, changes) = (&mut self.parts[layer], &mut self.changes[layer]);
        if first == last {
            parts[first] += value * (until - from);
            return;
        }
        parts[first] += value * (first as f64 + 1.0 - from);
        parts[last] += value * (until - last as f64);
        changes[first + 1] += value;
        changes[last] -= value;
    }

    /// Returns the mean value of a layer in each interval.
    pub fn means(&self, layer: usize) -> Vec<f64> {
        let mut level = 0.0;
        let mean = |at: usize| {
            level += self.changes[layer][at];
            // Rounding must not leave a visible rest of a sum that is zero.
            let value: f64 = self.parts[layer][at] + level;
            if value.abs() < 1e-9 { 0.0 } else { value }
        };
        (0..self.count()).map(mean).collect()
    }

    /// Returns the start of each interval and the end of the last one, in seconds.
    pub fn ends(&self) -> Vec<f64> {
        (0..=self.count()).map(|at| (self.from + at as f64 * self.width) / 1e6).collect()
    }

    /// Returns the curve of a layer, up to the end of the window.
    pub fn curve(&self, layer: usize) -> Vec<(f64, f64)> {
        let mut means = self.means(layer);
        means.extend(means.last().copied());
        self.ends().into_iter().zip(means).collect()
    }
}

/// Adds the use of the request's resource to the layers of users. Returns `false` if the run has no table of usage.
pub(super) fn usage(job: &TimelineJob, layers: &[usize], bins: &mut TimeBins) -> Result<bool> {
    let Some(path) = job.run.results.file(Table::Usage, job.run.key)? else { return Ok(false) };
    let mut last: Vec<(u64, f64)> = vec![(0, 0.0); layers.len()];
    each_usage(job, &path, |time, user, amount| {
        let (since, value) = std::mem::replace(&mut last[user], (time, amount));
        bins.add(layers[user], since, time, value);
        Ok(())
    })?;
    for (user, (since, value)) in last.into_iter().enumerate() {
        bins.add(layers[user], since, job.run.end.0.max(since), value);
    }
    Ok(true)
}

/// Streams the changes of the use of the request's resource: time in microseconds, user, amount in the display unit. Users that are not
/// selected, or have no task in the table of tasks, are omitted.
pub(super) fn each_usage(
    job: &TimelineJob,
    path: &Path,
    mut visit: impl FnMut(u64, usize, f64) -> Result<()>,
) -> Result<()> {
    let column = job.resource.column.as_str();
    each_chunk(path, &["time_us", "user", column], job.request.stop, |chunk| {
        let (times, names, amounts) = (chunk.integers("time_us")?, chunk.names("user")?, chunk.integers(column)?);
        for row in 0..chunk.rows {
            let name = names.get(row);
            let (Some(time), Some(amount)) = (times[row], amounts[row]) else { continue };
            let Some(user) = job.overview.users.find(name).filter(|_| job.filter.has_user(name)) else { continue };
            let (time, amount) = (u64::try_from(time).unwrap_or(0), u64::try_from(amount).unwrap_or(0));
            visit(time, user, job.resource.dim.amount(amount))?;
        }
        Ok(())
    })
}

/// Adds the dominant shares of users with a layer below `shown` to their layers. Returns `false` if the run has no table of shares.
///
/// The table has no row for a user that is not active at a grid point, so the grid is that of the table `fairness`.
pub(super) fn shares(job: &TimelineJob, layers: &[usize], shown: usize, bins: &mut TimeBins) -> Result<bool> {
    let Some(path) = job.run.results.file(Table::Shares, job.run.key)? else { return Ok(false) };
    let mut grid: Vec<u64> = Vec::new();
    if let Some(path) = job.run.results.file(Table::Fairness, job.run.key)? {
        each_chunk(&path, &["time_us"], job.request.stop, |chunk| {
            grid.extend(chunk.integers("time_us")?.into_iter().flatten().filter_map(|time| u64::try_from(time).ok()));
            Ok(())
        })?;
    }
    let mut current: Option<(u64, Vec<f64>)> = None;
    let end_of = |time: u64, or: u64| {
        let next = grid.partition_point(|grid| *grid <= time);
        grid.get(next).copied().map_or(or, |next| next.min(or))
    };
    let mut flush = |(time, values): (u64, Vec<f64>), until: u64| {
        let end = end_of(time, until);
        values.into_iter().enumerate().for_each(|(layer, value)| bins.add(layer, time, end, value));
    };
    each_chunk(&path, &["time_us", "user", "dominant_share"], job.request.stop, |chunk| {
        let (times, names) = (chunk.integers("time_us")?, chunk.names("user")?);
        let values = chunk.numbers("dominant_share")?;
        for row in 0..chunk.rows {
            let time = times[row].and_then(|time| u64::try_from(time).ok()).unwrap_or(0);
            if current.as_ref().is_none_or(|(at, _)| *at != time) {
                let before = current.replace((time, vec![0.0; shown]));
                before.into_iter().for_each(|before| flush(before, time));
            }
            let user = job.overview.users.find(names.get(row)).filter(|user| layers[*user] < shown);
            if let (Some(user), Some((_, shares)), Some(value)) = (user, &mut current, values[row]) {
                shares[layers[user]] = value;
            }
        }
        Ok(())
    })?;
    current.into_iter().for_each(|last| flush(last, job.run.end.0));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_exact_for_steps_of_any_length() {
        let mut bins = TimeBins::new((100, 500), 4, 2);
        bins.add(0, 0, 1000, 2.0);
        bins.add(0, 150, 160, 10.0);
        bins.add(0, 250, 450, 1.0);
        bins.add(1, 500, 600, 5.0);
        bins.add(1, 200, 300, 4.0);
        assert_eq!(bins.means(0), [3.0, 2.5, 3.0, 2.5]);
        assert_eq!(bins.means(1), [0.0, 4.0, 0.0, 0.0]);
        assert_eq!(bins.ends(), [0.0001, 0.0002, 0.0003, 0.0004, 0.0005]);
        assert_eq!(bins.curve(1).len(), 5);
    }
}
