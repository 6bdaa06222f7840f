//! Resampling: a workload with the load and the structure of a trace, but another order of events, for confidence intervals from one trace.
//!
//! The trace is divided into subtraces, one per user, and these into whole periods such as days or weeks. In a resampled workload each
//! period of a user is a period of the same user, drawn with replacement. Jobs keep their tasks, durations, and place in the period, so
//! sizes, the habits of each user, and the daily or weekly cycle remain; what varies is which of the users' periods meet (Zakay and
//! Feitelson, "Workload resampling for performance evaluation of parallel job schedulers", ICPE 2013, 3; their separate treatment of
//! temporary users is replaced by periods without submissions). The expected load of each user is that of the trace.

use std::collections::HashMap;

use rand::RngExt;

use super::names::JobName;
use super::synthetic::random::{numbered, stream};
use super::{Preceding, Source, TaskSet, Workload};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time, UserId};

/// The largest number of periods.
const MOST: u64 = 100_000;

/// The rows of one job.
struct Job {
    name: JobName,
    user: UserId,
    rows: Vec<TaskSet>,
}

/// Reads a source to its end and returns the resampled workload of a seed. A part of a period at the end of the trace is not exchanged.
///
/// A job that is moved to another period has the number of that period after its name. If the preceding job is not in the same period
/// of the same user, a job is submitted at its submit time. Errors: those of the source; [`Error::Mismatch`] if the trace has fewer than
/// two whole periods.
pub fn resample(source: &mut dyn Source, period: Span, seed: u64) -> Result<Workload> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut last = Time::ZERO;
    while let Some(set) = source.next_set()? {
        last = last.max(set.submit);
        if set.job.index() == jobs.len() {
            jobs.push(Job { name: source.job_name(), user: set.user, rows: Vec::new() });
        }
        jobs[set.job.index()].rows.push(set);
    }
    let first = jobs.first().map_or(Time::ZERO, |job| job.rows[0].submit);
    let periods = Span(last.0 - first.0).0 / period.0;
    if periods < 2 {
        let problem = format!(
            "resample: the submissions span {:.0} s; at least two whole periods of {:.0} s are needed",
            Span(last.0 - first.0).seconds(),
            period.seconds()
        );
        return Err(Error::Mismatch { problem });
    }
    if periods > MOST {
        let problem =
            format!("resample: the trace has {periods} periods of {} s; at most {MOST} are possible", period.seconds());
        return Err(Error::Mismatch { problem });
    }
    let period_of = |job: &Job| (job.rows[0].submit.0 - first.0) / period.0;
    let texts = source.texts();
    let mut resampled = Workload {
        dims: source.dims().to_vec(),
        users: source.users().clone(),
        stages: texts.stages.clone(),
        labels: texts.labels.clone(),
        locations: texts.locations.clone(),
        ..Workload::default()
    };
    let names: Vec<String> = jobs.iter().map(|job| texts.job_names.text(&job.name)).collect();
    // No name of the trace contains the separator.
    let mut separator = "~".to_owned();
    while names.iter().any(|name| name.contains(&separator)) {
        separator.push('~');
    }
    let places: HashMap<&str, usize> = match source.has_preceding() {
        true => names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect(),
        false => HashMap::new(),
    };
    let mut of_user: Vec<HashMap<u64, Vec<usize>>> = vec![HashMap::new(); source.users().len()];
    for (at, job) in jobs.iter().enumerate() {
        of_user[job.user.index()].entry(period_of(job)).or_default().push(at);
    }
    let draws = stream(seed, "resample");
    for (user, own) in of_user.iter().enumerate() {
        let mut draws = numbered(&draws, user as u64);
        for target in 0..=periods {
            let from = if target < periods { draws.random_range(0..periods) } else { periods };
            for &at in own.get(&from).into_iter().flatten() {
                let moved = |name: &str| match from == target {
                    true => name.to_owned(),
                    false => format!("{name}{separator}{target}"),
                };
                let job = &jobs[at];
                let id = resampled.job(&moved(&names[at]));
                let preceding = job.rows[0].preceding.as_ref().and_then(|preceding| {
                    let before = *places.get(texts.job_names.text(&preceding.job).as_str())?;
                    let together = jobs[before].user == job.user && period_of(&jobs[before]) == from;
                    together.then(|| (moved(&names[before]), preceding.think))
                });
                for row in &job.rows {
                    let shift = |at: Time| Time((at.0 + target * period.0).saturating_sub(from * period.0));
                    let preceding = preceding.as_ref().map(|(name, think)| {
                        Box::new(Preceding { job: resampled.job_names.split(name), think: *think })
                    });
                    resampled.sets.push(TaskSet {
                        job: id,
                        submit: shift(row.submit),
                        deadline: row.deadline.map(shift),
                        preceding,
                        ..row.clone()
                    });
                }
            }
        }
    }
    resampled.quality.rows_in = resampled.sets.len() as u64;
    Ok(resampled.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CsvTrace, Input};
    use plimsoll_base::units::JobId;

    const DAY: u64 = 86_400;

    fn trace(rows: impl Iterator<Item = (u64, u64, u64)>) -> String {
        let rows = rows.enumerate().map(|(job, (user, submit, work))| format!("j{job},u{user},{submit},{work},1\n"));
        "job,user,submit_s,duration_s,cpu\n".to_owned() + &rows.collect::<String>()
    }

    fn resampled(text: &str, period: u64, seed: u64) -> Result<Workload> {
        let input = Input::Bytes("t.csv".into(), text.as_bytes().into());
        resample(&mut CsvTrace::new(&input)?, Span(period * 1_000_000), seed)
    }

    /// Users and times of day stay together, seeds differ, and the last part of a period remains.
    #[test]
    fn jobs_keep_user_and_time_of_day() {
        let text = trace((0..10).flat_map(|day| (0..4).map(move |user| (user, day * DAY + user * 3600, 60 + day))));
        let workload = resampled(&text, DAY, 1).expect("ten days");
        for set in &workload.sets {
            let user: u64 = workload.users.name(set.user.0)[1..].parse().expect("a number");
            assert_eq!(set.submit.0 / 1_000_000 % DAY, user * 3600);
        }
        assert!(workload.sets.is_sorted_by_key(|set| set.submit));
        // The submissions span nine whole days and three hours; each user has a job on every day.
        assert_eq!(workload.sets.len(), 40);
        let last: Vec<u64> = workload.sets[36..].iter().map(|set| set.duration.0 / 1_000_000).collect();
        assert_eq!(last, [69; 4]);
        let order = |seed| {
            resampled(&text, DAY, seed).expect("ten days").sets.iter().map(|set| set.duration).collect::<Vec<_>>()
        };
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
        let names: std::collections::HashSet<String> =
            (0..workload.jobs.len()).map(|job| workload.job_name(JobId(job as u32))).collect();
        assert_eq!(names.len(), workload.jobs.len());
        let message = resampled(&text, 1, 1).expect_err("too many periods").to_string();
        assert!(message.contains("at most 100000"), "{message}");
        let message = resampled(&text, 5 * DAY, 1).expect_err("one whole period").to_string();
        assert!(message.contains("at least two whole periods of 432000 s"), "{message}");
    }

    #[test]
    fn a_preceding_job_is_the_one_of_the_same_period() {
        let rows = (0..6).map(|day| {
            let at = day * DAY;
            format!("a{day},u,{at},1,1,,\nb{day},u,{},1,1,a{day},60\nc{day},v,{},1,1,a{day},60\n", at + 10, at + 20)
        });
        let text = "job,user,submit_s,duration_s,cpu,after_job,think_s\n".to_owned() + &rows.collect::<String>();
        let workload = resampled(&text, DAY, 3).expect("five whole days");
        for set in &workload.sets {
            let name = workload.job_name(set.job);
            let before = set.preceding.as_ref().map(|preceding| workload.job_names.text(&preceding.job));
            match name.as_bytes()[0] {
                b'b' => assert_eq!(before, Some(name.replace('b', "a"))),
                // The preceding job belongs to another user, and another day of that user may be drawn.
                _ => assert_eq!(before, None, "{name}"),
            }
        }
    }

    /// The mean of the resampled values is the value of the trace, and the interval of ten seeds, as reports compute it, contains it: in
    /// 200 random traces at least as often as its level promises, less three standard errors.
    #[test]
    fn intervals_over_seeds_cover_the_load_of_the_trace() {
        let (mut covered, mut traces) = (0, 0);
        for number in 0..200u64 {
            let mut draws = stream(number, "resample-test");
            let rows: Vec<(u64, u64, u64)> = (0..21)
                .flat_map(|day| (0..8).map(move |user| (user, day)))
                .filter_map(|(user, day)| {
                    let busy = draws.random_range(0..3) > 0;
                    let work = draws.random_range(1..2000u64) * (1 + user);
                    busy.then(|| (user, day * DAY + user * 3000, work))
                })
                .collect();
            let text = trace(rows.iter().copied());
            let end = rows.last().expect("rows").1 / DAY * DAY;
            let of_trace: f64 = rows.iter().filter(|row| row.1 < end).map(|row| row.2 as f64).sum();
            let work = |seed| -> f64 {
                let workload = resampled(&text, DAY, seed).expect("21 days");
                let whole = workload.sets.iter().filter(|set| set.submit.0 < end * 1_000_000);
                whole.map(|set| set.duration.0 as f64 / 1e6).sum()
            };
            let values: Vec<f64> = (1..=10).map(work).collect();
            let mean = values.iter().sum::<f64>() / 10.0;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 9.0;
            // Student's t for 9 degrees of freedom and 95 %.
            let half = 2.262 * (variance / 10.0).sqrt();
            covered += usize::from((mean - of_trace).abs() <= half);
            traces += 1;
        }
        // 95 % of 200 less three standard errors of a share.
        assert!(covered >= 181 && traces == 200, "{covered} of {traces}");
    }
}
