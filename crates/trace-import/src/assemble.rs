//! Builds a workload from drafts: origin, rows of one job, stages, preceding jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use plimsoll_base::units::{Dim, JobId, Span, Time, UserId};
use plimsoll_sim::workload::{Preceding, Quality, TaskSet, Workload};

use crate::draft::{DraftNames, SetDraft};
use crate::number::Fraction;
use crate::report::RowReport;

/// The settings of the last step.
pub struct Assembly {
    /// The resources.
    pub dims: Vec<Dim>,
    /// The origin in microseconds; by default the first submit time.
    pub origin: Option<i64>,
    /// Whether dependencies have the keys of rows instead of stages.
    pub has_keys: bool,
    /// Whether rows that differ only in their number of tasks become one row.
    pub merge: bool,
}

/// The rows of one job, in the order of the log.
#[derive(Default)]
struct JobRows {
    sets: Vec<usize>,
    first_submit: i64,
}

/// Builds the workload; the rows are sorted and numbered. Every repair is counted.
pub fn assemble(assembly: Assembly, mut drafts: Vec<SetDraft>, names: DraftNames, mut report: RowReport) -> Workload {
    if let Some(origin) = assembly.origin {
        drafts.retain(|draft| {
            if draft.submit < origin {
                report.drop_row("submitted before the origin", draft.line, draft.file as usize);
            }
            draft.submit >= origin
        });
    }
    let mut quality = report.quality;
    let origin = assembly.origin.or(drafts.iter().map(|draft| draft.submit).min()).unwrap_or(0);
    quality.assumptions.push(("time.origin".into(), origin_name(origin, assembly.origin.is_none())));
    let disorder = drafts.windows(2).filter(|pair| pair[1].submit < pair[0].submit).count();
    if disorder > 0 {
        quality.warnings.push(format!("rows earlier than the one above them: {disorder}; sorted by submit time"));
    }
    let mut jobs: BTreeMap<u32, JobRows> = BTreeMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        let job = jobs.entry(draft.set.job.0).or_insert(JobRows { sets: Vec::new(), first_submit: draft.submit });
        job.first_submit = job.first_submit.min(draft.submit);
        job.sets.push(at);
    }
    for job in jobs.values() {
        if assembly.has_keys {
            replace_keys(job, &mut drafts, &mut quality);
        }
        repair_job(job, &mut drafts, &mut quality);
    }
    let mut workload = Workload { dims: assembly.dims, ..Workload::default() };
    follow_jobs(&mut drafts, &jobs, &mut quality);
    let mut new_job: HashMap<u32, JobId> = HashMap::new();
    for draft in &mut drafts {
        let old = draft.set.job.0;
        draft.set.job = *new_job.entry(old).or_insert_with(|| workload.job(names.jobs.name(old)));
        draft.set.user = UserId(workload.users.intern(names.users.name(draft.set.user.0)));
        let relative = |time: i64| u64::try_from(i128::from(time) - i128::from(origin)).unwrap_or(0);
        draft.set.submit = Time(relative(draft.submit));
        let is_early = draft.deadline.is_some_and(|time| i128::from(time) < i128::from(origin));
        if is_early {
            quality.repair_row("a deadline before the first submission; it is removed");
        }
        draft.set.deadline = draft.deadline.filter(|_| !is_early).map(|time| Time(relative(time)));
        draft.set.preceding = draft.preceding.map(|(job, think)| {
            Box::new(Preceding { job: workload.job_names.split(names.jobs.name(job)), think: Span(think) })
        });
    }
    workload.sets = drafts.into_iter().map(|draft| draft.set).collect();
    if assembly.merge {
        workload.sets = merged(workload.sets);
    }
    (workload.stages, workload.labels, workload.locations) = (names.stages, names.labels, names.locations);
    workload.quality = quality;
    workload.finish()
}

/// Describes the time 0 of the trace: seconds, and the date if they seem to count from 1970.
fn origin_name(origin: i64, is_first: bool) -> String {
    let seconds = Fraction::reduced(origin.into(), 1_000_000).map(|seconds| seconds.to_string()).unwrap_or_default();
    let since_1970 = origin.unsigned_abs() >= 500_000_000_000_000;
    let date = Timestamp::from_microsecond(origin).ok().filter(|_| since_1970).map(|time| format!(" ({time})"));
    let first = if is_first { ", the first imported row" } else { "" };
    format!("{seconds} s{}{first}", date.unwrap_or_default())
}

/// The reason of a repair.
const NO_STAGE: &str = "waits for a stage without a row in the job; the dependency is dropped";

/// Replaces the keys of dependencies by the stages of the rows with these keys.
fn replace_keys(job: &JobRows, drafts: &mut [SetDraft], quality: &mut Quality) {
    let stage = |&at: &usize| Some((drafts[at].key?, drafts[at].set.stage?));
    let stages: HashMap<u32, u32> = job.sets.iter().filter_map(stage).collect();
    for &at in &job.sets {
        let after = std::mem::take(&mut drafts[at].set.after);
        let before = after.len();
        let mut found: Vec<u32> = after.iter().filter_map(|key| stages.get(key).copied()).collect();
        if found.len() < before {
            quality.repair_row(NO_STAGE);
        }
        found.dedup();
        drafts[at].set.after = found;
    }
}

/// Gives all rows of a job its first submit time and its first user, and removes stages that it does not have.
fn repair_job(job: &JobRows, drafts: &mut [SetDraft], quality: &mut Quality) {
    let first = job.sets.iter().min_by_key(|&&at| (drafts[at].submit, drafts[at].order)).copied();
    let first = first.unwrap_or(job.sets[0]);
    let (user, preceding) = (drafts[first].set.user, drafts[first].preceding);
    let stages: BTreeSet<u32> = job.sets.iter().filter_map(|&at| drafts[at].set.stage).collect();
    for &at in &job.sets {
        let draft = &mut drafts[at];
        if draft.submit != job.first_submit {
            draft.submit = job.first_submit;
            quality.repair_row("rows of a job have different submit times; all are submitted with the first");
        }
        if draft.set.user != user {
            draft.set.user = user;
            quality.repair_row("rows of a job have different users; all have the first");
        }
        if draft.preceding != preceding {
            draft.preceding = preceding;
            quality.repair_row("rows of a job have different preceding jobs; all have the first");
        }
        let before = draft.set.after.len();
        draft.set.after.retain(|stage| stages.contains(stage));
        if draft.set.after.len() < before {
            quality.repair_row(NO_STAGE);
        }
    }
    if has_cycle(job, drafts) {
        for &at in &job.sets {
            if !drafts[at].set.after.is_empty() {
                drafts[at].set.after.clear();
                quality.repair_row("stages of the job wait for each other; the dependencies are dropped");
            }
        }
    }
}

/// Returns whether stages of a job wait for each other.
fn has_cycle(job: &JobRows, drafts: &[SetDraft]) -> bool {
    let mut waits: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for &at in &job.sets {
        let set = &drafts[at].set;
        if let (Some(stage), false) = (set.stage, set.after.is_empty()) {
            waits.entry(stage).or_default().extend(&set.after);
        }
    }
    // Removes stages that wait for no remaining stage, each stage and each dependency once.
    let mut remaining: BTreeMap<u32, usize> = BTreeMap::new();
    let mut followers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&stage, after) in &waits {
        let open: Vec<u32> = after.iter().copied().filter(|before| waits.contains_key(before)).collect();
        remaining.insert(stage, open.len());
        open.into_iter().for_each(|before| followers.entry(before).or_default().push(stage));
    }
    let mut free: Vec<u32> = remaining.iter().filter(|(_, open)| **open == 0).map(|(stage, _)| *stage).collect();
    let mut removed = 0;
    while let Some(stage) = free.pop() {
        removed += 1;
        for follower in followers.get(&stage).into_iter().flatten() {
            if let Some(open) = remaining.get_mut(follower) {
                *open -= 1;
                if *open == 0 {
                    free.push(*follower);
                }
            }
        }
    }
    removed < waits.len()
}

/// Removes preceding jobs that have no earlier row.
fn follow_jobs(drafts: &mut [SetDraft], jobs: &BTreeMap<u32, JobRows>, quality: &mut Quality) {
    for at in 0..drafts.len() {
        let Some((before, _)) = drafts[at].preceding else { continue };
        let place = |job: &JobRows| (job.first_submit, job.sets[0]);
        let own = jobs.get(&drafts[at].set.job.0).map(place);
        let earlier = jobs.get(&before).map(place).is_some_and(|before| Some(before) < own);
        if !earlier {
            drafts[at].preceding = None;
            let known = if jobs.contains_key(&before) { "is not earlier" } else { "has no row" };
            quality.repair_row(&format!("the preceding job {known}; the dependency is dropped"));
        }
    }
}

/// Merges rows that differ only in their number of tasks. A sum above 2^32 - 1 tasks begins another row.
fn merged(sets: Vec<TaskSet>) -> Vec<TaskSet> {
    type Key = (JobId, Option<u32>, Vec<u32>, Time, Span, plimsoll_base::units::Resources, Option<u32>, u8);
    let mut first: HashMap<Key, usize> = HashMap::new();
    let mut merged: Vec<TaskSet> = Vec::new();
    for set in sets {
        let key =
            (set.job, set.stage, set.after.clone(), set.submit, set.duration, set.demand, set.label, set.priority);
        if let Some(&at) = first.get(&key) {
            let same = TaskSet { tasks: set.tasks, ..merged[at].clone() } == set;
            if let Some(sum) = merged[at].tasks.checked_add(set.tasks).filter(|_| same) {
                merged[at].tasks = sum;
                continue;
            }
        }
        first.insert(key, merged.len());
        merged.push(set);
    }
    merged
}
