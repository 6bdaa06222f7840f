//! A workload over time, and what a researcher should know about it before the first run.
//!
//! One pass counts, in a bounded number of equal buckets, the jobs that are submitted and the amounts that would run if every task started
//! at its submission. From these follow the warm-up, the end of the arrivals, long silences, a proposed window and a proposed cluster.
//! The result informs the user and decides nothing.

use std::collections::BTreeMap;

use super::quantiles::Histogram;
use super::{Source, TaskSet};
use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, MAX_DIMS, Resources, Span, Time};

/// The number of buckets; when the workload outgrows them, pairs of buckets are united.
const BUCKETS: usize = 512;

/// A workload over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The width of a bucket.
    pub width: Span,
    /// The first submission.
    pub first: Time,
    /// The last submission.
    pub last: Time,
    /// The end of the last task if every task starts at its submission.
    pub end: Time,
    /// Jobs submitted in each bucket, from the first submission to the last.
    pub arrivals: Vec<u64>,
    /// The mean amount of each resource in each bucket, in display units, if every task starts at its submission; until `end`.
    pub running: Vec<Vec<f64>>,
    /// The largest demand of a task, by resource.
    pub largest: Resources,
    /// The largest demand of tasks that must start together: a gang.
    pub widest: Resources,
    /// The longest time between two submissions of jobs, with its begin, and the 99th percentile of these times.
    pub silence: Option<(Time, Span, Span)>,
    /// The share of the work, in task time, after the last submission.
    pub work_after_last: f64,
    /// The share of tasks that end within the last thousandth of the time.
    pub ends_together: f64,
    /// The share of tasks submitted at the first instant.
    pub begins_together: f64,
    /// The share of the work of the user with the most task time.
    pub top_user: f64,
}

/// BucketSums over time in a bounded number of buckets.
struct BucketSums {
    width: u64,
    arrivals: Vec<u64>,
    /// Amount times microseconds, by resource.
    work: Vec<[u128; MAX_DIMS]>,
    time: Vec<u128>,
}

impl BucketSums {
    /// Doubles the width until `at` is within the buckets.
    fn cover(&mut self, at: u64) {
        while at / self.width >= BUCKETS as u64 {
            self.width *= 2;
            for bucket in 0..BUCKETS / 2 {
                let (a, b) = (2 * bucket, 2 * bucket + 1);
                self.arrivals[bucket] = self.arrivals[a] + self.arrivals[b];
                self.time[bucket] = self.time[a].saturating_add(self.time[b]);
                self.work[bucket] = std::array::from_fn(|d| self.work[a][d].saturating_add(self.work[b][d]));
            }
            self.arrivals[BUCKETS / 2..].fill(0);
            self.time[BUCKETS / 2..].fill(0);
            self.work[BUCKETS / 2..].fill([0; MAX_DIMS]);
        }
    }

    /// Adds tasks that run from `from` to `to`, relative to the first submission.
    fn add(&mut self, (from, to): (u64, u64), tasks: u32, demand: &Resources, dims: usize) {
        self.cover(to);
        for bucket in from / self.width..=to / self.width {
            let begin = from.max(bucket * self.width);
            let end = to.min((bucket + 1) * self.width);
            let time = u128::from(end.saturating_sub(begin)) * u128::from(tasks);
            let bucket = bucket as usize;
            self.time[bucket] = self.time[bucket].saturating_add(time);
            for dim in 0..dims {
                let work = &mut self.work[bucket][dim];
                *work = work.saturating_add(time.saturating_mul(u128::from(demand.0[dim])));
            }
        }
    }
}

/// The longest span that is followed: tasks without end count until then.
const FOLLOWED: u64 = 1 << 53;

/// Reads a source to its end. `None` if it has no rows. Errors: those of the source.
pub fn profile(source: &mut dyn Source) -> Result<Option<Profile>> {
    let dims = source.dims().len();
    let mut sums =
        BucketSums { width: 1, arrivals: vec![0; BUCKETS], work: vec![[0; MAX_DIMS]; BUCKETS], time: vec![0; BUCKETS] };
    let (mut first, mut last, mut last_job, mut end) = (None, Time::ZERO, None::<Time>, Time::ZERO);
    let (mut largest, mut widest) = (Resources::ZERO, Resources::ZERO);
    let (mut jobs, mut tasks, mut at_first) = (0, 0u64, 0u64);
    let mut gaps = Histogram::default();
    let mut longest: Option<(Time, Span)> = None;
    // The number of tasks by their end, for ends within the last thousandth of the time so far.
    let mut ends: BTreeMap<Time, u64> = BTreeMap::new();
    let mut users: Vec<u128> = Vec::new();
    while let Some(set) = source.next_set()? {
        let TaskSet { submit, duration, demand, .. } = set;
        let start = *first.get_or_insert(submit);
        let count = u64::from(set.tasks);
        let since = submit.0 - start.0;
        sums.cover(since);
        if set.job.index() >= jobs {
            jobs = set.job.index() + 1;
            sums.arrivals[(since / sums.width) as usize] += 1;
            if let Some(before) = last_job.replace(submit) {
                let gap = Span(submit.0 - before.0);
                gaps.add(gap.0, 1);
                if longest.is_none_or(|(_, known)| gap > known) {
                    longest = Some((before, gap));
                }
            }
        }
        (last, tasks) = (last.max(submit), tasks + count);
        at_first += if submit == start { count } else { 0 };
        let runs = duration.0.min(FOLLOWED);
        sums.add((since, since + runs), set.tasks, &demand, dims);
        end = end.max(Time(submit.0.saturating_add(runs)));
        *ends.entry(Time(submit.0.saturating_add(runs))).or_default() += count;
        let near = end.0.saturating_sub((end.0 - start.0) / 1000);
        while ends.first_key_value().is_some_and(|(at, _)| at.0 < near) {
            ends.pop_first();
        }
        for dim in 0..dims {
            largest.0[dim] = largest.0[dim].max(demand.0[dim]);
            let together = if set.gang { demand.0[dim].saturating_mul(count) } else { demand.0[dim] };
            widest.0[dim] = widest.0[dim].max(together);
        }
        if users.len() <= set.user.index() {
            users.resize(set.user.index() + 1, 0);
        }
        users[set.user.index()] += u128::from(runs) * u128::from(count);
    }
    let Some(first) = first else { return Ok(None) };
    let bucket = |at: Time| ((at.0 - first.0) / sums.width) as usize;
    let all: u128 = users.iter().sum();
    let after: u128 = {
        let from = bucket(last);
        // The bucket of the last submission counts by its part after it.
        let part = (from as u64 + 1) * sums.width - (last.0 - first.0);
        let within = sums.time[from] as f64 * part as f64 / sums.width as f64;
        sums.time[from + 1..].iter().sum::<u128>() + within as u128
    };
    let share = |part: u128| if all == 0 { 0.0 } else { part as f64 / all as f64 };
    let width = sums.width as f64;
    let amounts = |work: &[u128; MAX_DIMS]| {
        let amount = |(d, dim): (usize, &Dim)| work[d] as f64 / width / dim.unit.scale() as f64;
        source.dims().iter().enumerate().map(amount).collect()
    };
    let p99 = gaps.quantiles(1.0).p99 as u64;
    Ok(Some(Profile {
        width: Span(sums.width),
        first,
        last,
        end,
        arrivals: sums.arrivals[..=bucket(last)].to_vec(),
        running: sums.work[..=bucket(end)].iter().map(amounts).collect(),
        largest,
        widest,
        silence: longest.map(|(at, gap)| (at, gap, Span(p99))),
        work_after_last: share(after),
        ends_together: ends.values().sum::<u64>() as f64 / tasks.max(1) as f64,
        begins_together: at_first as f64 / tasks.max(1) as f64,
        top_user: share(users.iter().copied().max().unwrap_or(0)),
    }))
}

impl Profile {
    /// Returns the instant at which the amounts that run reach nine tenths of their median between the first and the last submission, if
    /// this is after more than a fiftieth of that time: until then an empty cluster is measured.
    pub fn warm_up(&self) -> Option<Time> {
        let arriving = &self.running[..self.arrivals.len().min(self.running.len())];
        let mean = |d: usize| arriving.iter().map(|amounts| amounts[d]).sum::<f64>() / arriving.len().max(1) as f64;
        let means: Vec<f64> = (0..arriving.first()?.len()).map(mean).collect();
        // The level of a bucket: the mean over the resources of its amount relative to the mean of all buckets.
        let level = |amounts: &Vec<f64>| {
            let parts = amounts.iter().zip(&means).filter(|(_, mean)| **mean > 0.0).map(|(amount, mean)| amount / mean);
            parts.sum::<f64>()
        };
        let levels: Vec<f64> = arriving.iter().map(level).collect();
        let mut sorted = levels.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let reached = levels.iter().position(|level| *level >= 0.9 * median)?;
        let at = Time(self.first.0 + reached as u64 * self.width.0);
        (reached * 50 > levels.len()).then_some(at)
    }

    /// Returns the number of equal machines that a workload fits at a load between the first and the last submission, and the amount of
    /// each resource of a machine. The amounts are the next power of two of the largest demand; a resource without demand has none.
    pub fn cluster(&self, dims: &[Dim], load: f64) -> Option<(u64, Vec<u64>)> {
        if self.last == self.first {
            return None;
        }
        let arriving = self.running.get(..self.arrivals.len().min(self.running.len()))?;
        let mut machines: f64 = 1.0;
        let mut sizes = Vec::new();
        for (d, dim) in dims.iter().enumerate() {
            let size = match self.largest.0[d].div_ceil(dim.unit.scale()) {
                0 => 0,
                amount => amount.checked_next_power_of_two()?,
            };
            sizes.push(size);
            // Tasks that run after the last submission belong to the work that was submitted before it.
            let work: f64 = self.running.iter().map(|amounts| amounts[d]).sum();
            if size > 0 {
                machines = machines.max((work / arriving.len() as f64 / load / size as f64).ceil());
                // The tasks of a gang start together.
                machines = machines.max((dim.amount(self.widest.0[d]) / size as f64).ceil());
            }
        }
        (machines < 1e9).then_some((machines as u64, sizes))
    }

    /// Returns what a user should know before the first run, one sentence each.
    pub fn concerns(&self) -> Vec<String> {
        let since = |at: Time| Span(at.0 - self.first.0).seconds();
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let mut concerns = Vec::new();
        let span = self.last.0 - self.first.0;
        if let Some(at) = self.warm_up() {
            concerns.push(format!(
                "warm-up: the amounts that would run rise until {:.0} s after the first submission; before, an empty cluster is measured",
                since(at)
            ));
        }
        if self.work_after_last > 0.02 && span > 0 {
            concerns.push(format!(
                "the end: {} of the work lies after the last submission, when the cluster drains",
                percent(self.work_after_last)
            ));
        }
        if self.begins_together > 0.05 && span > 0 {
            concerns.push(format!(
                "cut at the begin: {} of the tasks are submitted at the first instant; they may have been submitted earlier",
                percent(self.begins_together)
            ));
        }
        if self.ends_together > 0.05 && span > 0 {
            concerns.push(format!(
                "cut at the end: {} of the tasks would end within the last thousandth of the time; their durations may be cut",
                percent(self.ends_together)
            ));
        }
        if let Some((at, gap, usual)) = self.silence
            && gap.0 >= 3_600_000_000
            && gap.0 > usual.0.saturating_mul(20)
            && gap.0 > span / 200
        {
            concerns.push(format!(
                "a silence: no job is submitted for {:.0} s from {:.0} s on, and 99 % of the times between two jobs are at most {:.0} s; the \
                 log may have a gap or a change of the clock",
                gap.seconds(),
                since(at),
                usual.seconds()
            ));
        }
        if self.top_user >= 0.95 {
            concerns.push(format!(
                "one user has {} of the work: sharing between users decides little",
                percent(self.top_user)
            ));
        }
        concerns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CsvTrace, Input};

    fn profiled(rows: &str) -> (Profile, Vec<Dim>) {
        let text = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib\n{rows}");
        let mut source = CsvTrace::new(&Input::Bytes("t.csv".into(), text.into_bytes().into())).expect("a trace");
        (profile(&mut source).expect("readable").expect("rows"), source.dims().to_vec())
    }

    #[test]
    fn work_is_where_tasks_run() {
        // 2 cores for 100 s, and 4 tasks of 1 core for 50 s from 100 s on.
        let (profile, dims) = profiled("a,u,0,100,1,2,1\nb,v,100,50,4,1,1\n");
        let width = profile.width.seconds();
        let amount = |at: f64| profile.running[(at / width) as usize][0];
        assert!((amount(50.0) - 2.0).abs() < 1e-9 && (amount(120.0) - 4.0).abs() < 1e-9, "{profile:?}");
        let work: f64 = profile.running.iter().map(|amounts| amounts[0] * width).sum();
        assert!((work - 400.0).abs() < 1e-6, "{work}");
        assert_eq!((profile.arrivals.iter().sum::<u64>(), profile.arrivals[0]), (2, 1));
        // 200 of 300 task seconds lie after the last submission, at 100 s.
        assert!((profile.work_after_last - 2.0 / 3.0).abs() < 0.01, "{}", profile.work_after_last);
        assert!((profile.top_user - 2.0 / 3.0).abs() < 1e-9);
        // 300 GiB seconds in 100 s at a load of one half: 6 machines of 1 GiB; the 400 core seconds need 4 of 2 cores.
        let (machines, sizes) = profile.cluster(&dims, 0.5).expect("a cluster");
        assert_eq!(sizes, [2, 1]);
        assert!((5..=6).contains(&machines), "{machines}");
    }

    #[test]
    fn each_concern_has_its_cause() {
        let concerns = |rows: &str| profiled(rows).0.concerns().join("\n");
        let steady: String = (0..2000).map(|job| format!("j{job},u{},{},1,1,1,1\n", job % 7, job)).collect();
        assert_eq!(concerns(&steady), "");
        let slow: String = (0..2000).map(|job| format!("j{job},u{},{},500,1,1,1\n", job % 7, job)).collect();
        let found = concerns(&slow);
        assert!(found.contains("warm-up") && found.contains("the end: "), "{found}");
        let alone: String = (0..2000).map(|job| format!("j{job},u,{job},1,1,1,1\n")).collect();
        assert!(concerns(&alone).contains("one user has 100 %"));
        let gap: String =
            (0..2000).map(|job| format!("j{job},u{},{},1,1,1,1\n", job % 7, job + 9000 * (job / 1000))).collect();
        assert!(
            concerns(&gap).contains("a silence: no job is submitted for 9001 s from 999 s on"),
            "{}",
            concerns(&gap)
        );
        let cut: String = (0..2000).map(|job| format!("j{job},u{},{},{},1,1,1\n", job % 7, job, 3000 - job)).collect();
        assert!(concerns(&cut).contains("cut at the end: 100 %"), "{}", concerns(&cut));
        let early: String =
            (0..2000u32).map(|job| format!("j{job},u{},{},1,1,1,1\n", job % 7, job.saturating_sub(400))).collect();
        assert!(concerns(&early).contains("cut at the begin: 20 %"), "{}", concerns(&early));
    }
}
