//! Checks whether a workload can run: jobs without errors, stages that can end, tasks that fit a machine.
//!
//! A run finds these problems one job at a time; this check reads all rows before the run starts. Memory grows with the number of jobs
//! submitted at one instant or, if jobs wait for preceding jobs, with the number of all jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{JobName, Preceding, Source, TaskSet, describe};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{JobId, Resources, Span, Time, UserId};

/// Findings in a workload with valid rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadFindings {
    /// Rows read.
    pub rows: u64,
    /// The end of the last task if each task starts once it is submitted and the stages and job that it waits for have ended.
    pub earliest_end: Time,
    /// The number of jobs with stages that wait for one another, and the name of the first of these jobs.
    pub deadlocked: (u64, Option<String>),
    /// The number of tasks that fit no machine, and the first of them.
    pub too_large: (u64, Option<String>),
}

/// The data of a job's rows that the checks use.
struct JobShape {
    name: JobName,
    user: UserId,
    stages: BTreeSet<u32>,
    /// Dependencies among stages: the waiting stage, the stage it waits for, and the row.
    waits: Vec<(Option<u32>, u32, u64)>,
    /// Rows that have a stage or wait for one.
    rows: Vec<StageRow>,
    submit: Time,
    /// The latest end of the rows that neither have a stage nor wait for one.
    end: Time,
    preceding: Option<Box<Preceding>>,
}

/// The times of a row of a job with stages.
struct StageRow {
    stage: Option<u32>,
    after: Vec<u32>,
    submit: Time,
    duration: Span,
}

/// Reads a source to its end and returns the findings. `machines` has the kinds of machines; if it is empty, sizes are not checked.
///
/// Errors: those of the source, and [`Error::Mismatch`] if the user or the preceding job of a row differs from that of the earlier rows of
/// its job, or if a row waits for a stage that its job does not have.
pub fn inspect(source: &mut dyn Source, machines: &[Resources]) -> Result<WorkloadFindings> {
    let mut findings = WorkloadFindings::default();
    let mut open: BTreeMap<JobId, JobShape> = BTreeMap::new();
    let (mut now, mut last) = (Time::ZERO, None);
    let mut ends = source.has_preceding().then(HashMap::new);
    while let Some(set) = source.next_set()? {
        if set.submit > now && last != Some(set.job) {
            close(&mut open, source, &mut findings, &mut ends)?;
        }
        (now, last) = (set.submit, Some(set.job));
        findings.rows += 1;
        if !machines.is_empty() && !machines.iter().any(|machine| set.demand.fits(machine)) {
            findings.too_large.0 += u64::from(set.tasks);
            findings.too_large.1.get_or_insert_with(|| {
                let job = source.job_names().text(&source.job_name());
                let demand = describe(&set.demand, source.dims());
                format!("{}: job '{job}' ({} x {demand})", source.locate(set.row), set.tasks)
            });
        }
        add(&mut open, &set, source)?;
    }
    close(&mut open, source, &mut findings, &mut ends)?;
    Ok(findings)
}

fn add(open: &mut BTreeMap<JobId, JobShape>, set: &TaskSet, source: &dyn Source) -> Result<()> {
    let job = open.entry(set.job).or_insert_with(|| JobShape {
        name: source.job_name(),
        user: set.user,
        stages: BTreeSet::new(),
        waits: Vec::new(),
        rows: Vec::new(),
        submit: set.submit,
        end: Time::ZERO,
        preceding: set.preceding.clone(),
    });
    if job.preceding != set.preceding {
        return Err(Preceding::differs(&source.locate(set.row)));
    }
    if job.user != set.user {
        let problem = "column 'user': differs from the user of the job's earlier rows";
        return Err(Error::Mismatch { problem: format!("{}, {problem}", source.locate(set.row)) });
    }
    job.stages.extend(set.stage);
    job.waits.extend(set.after.iter().map(|&after| (set.stage, after, set.row)));
    if set.stage.is_some() || !set.after.is_empty() {
        let TaskSet { stage, submit, duration, .. } = *set;
        job.rows.push(StageRow { stage, after: set.after.clone(), submit, duration });
    } else {
        job.end = job.end.max(set.submit + set.duration);
    }
    Ok(())
}

/// Checks the open jobs after all their rows have been read. `ends` contains the ends of earlier jobs, if jobs may wait for earlier jobs.
fn close(
    open: &mut BTreeMap<JobId, JobShape>,
    source: &dyn Source,
    findings: &mut WorkloadFindings,
    ends: &mut Option<HashMap<JobName, Time>>,
) -> Result<()> {
    for job in std::mem::take(open).into_values() {
        let name = || source.job_names().text(&job.name);
        if let Some((_, stage, row)) = job.waits.iter().find(|(_, after, _)| !job.stages.contains(after)) {
            let known: Vec<&str> = job.stages.iter().map(|&stage| source.stage_name(stage)).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let (place, stage) = (source.locate(*row), source.stage_name(*stage));
            let problem =
                format!("{place}, column 'after': job '{}' has no stage '{stage}'; its stages: {known}", name());
            return Err(Error::Mismatch { problem });
        }
        if job.is_deadlocked() {
            findings.deadlocked.0 += 1;
            findings.deadlocked.1.get_or_insert_with(name);
        } else {
            let end = match (&job.preceding, &*ends) {
                (Some(preceding), Some(ends)) => ends.get(&preceding.job).map(|end| {
                    let later = (*end + preceding.think).0.saturating_sub(job.submit.0);
                    job.earliest_end() + Span(later)
                }),
                _ => Some(job.earliest_end()),
            };
            findings.earliest_end = findings.earliest_end.max(end.unwrap_or_default());
            if let (Some(ends), Some(end)) = (ends.as_mut(), end) {
                ends.insert(job.name.clone(), end);
            }
        }
    }
    Ok(())
}

impl JobShape {
    /// Returns the end of the job if each row starts once it is submitted and the stages that it waits for have ended. There must be no
    /// cycle of stages.
    fn earliest_end(&self) -> Time {
        let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
        loop {
            let (mut changed, mut last) = (false, self.end);
            for row in &self.rows {
                let before = row.after.iter().filter_map(|stage| ends.get(stage));
                let end = before.copied().fold(row.submit, Time::max) + row.duration;
                last = last.max(end);
                if let Some(stage) = row.stage {
                    let known = ends.entry(stage).or_insert(Time::ZERO);
                    changed |= *known < end;
                    *known = (*known).max(end);
                }
            }
            if !changed {
                return last;
            }
        }
    }

    /// Returns whether a stage waits for itself, directly or through other stages.
    fn is_deadlocked(&self) -> bool {
        let mut left = self.stages.clone();
        loop {
            // A stage can end once all its rows wait only for ended stages.
            let held: BTreeSet<u32> = self
                .waits
                .iter()
                .filter(|(_, after, _)| left.contains(after))
                .filter_map(|(stage, ..)| *stage)
                .collect();
            let before = left.len();
            left.retain(|stage| held.contains(stage));
            if left.is_empty() || left.len() == before {
                return !left.is_empty();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CsvTrace, Input};

    fn found(rows: &str, machines: &[[u64; 2]]) -> Result<WorkloadFindings> {
        let text = format!("job,user,submit_s,duration_s,tasks,cpu,memory_mib,stage,after\n{rows}");
        let input = Input::Bytes("t.csv".into(), text.into_bytes().into());
        let machine = |&[cpu, memory]: &[u64; 2]| {
            let mut capacity = Resources::ZERO;
            capacity.0[..2].copy_from_slice(&[cpu, memory]);
            capacity
        };
        inspect(&mut CsvTrace::new(&input)?, &machines.iter().map(machine).collect::<Vec<_>>())
    }

    #[test]
    fn tasks_that_fit_no_machine_are_counted() {
        let rows = "a,u,0,5,3,2,100,,\nb,u,1,1,2,1,300,,\nc,u,2,2,1,2,300,,\n";
        let findings = found(rows, &[[2000, 100], [1000, 300]]).expect("sound");
        assert_eq!(findings.too_large.0, 1);
        let first = findings.too_large.1.expect("the first one");
        assert!(first.contains("t.csv, line 4: job 'c' (1 x 2 cores"), "{first}");
        assert_eq!((findings.rows, findings.earliest_end), (3, Time(5_000_000)));
        assert_eq!(found(rows, &[]).expect("sound").too_large, (0, None));
    }

    #[test]
    fn the_earliest_end_follows_the_longest_path_of_stages() {
        for (rows, seconds) in [
            ("a,u,0,20,1,1,1,map,\na,u,0,60,1,1,1,reduce,map\n", 80),
            // The rows may be in any order, and a stage ends with its longest row.
            ("a,u,5,7,1,1,1,z,x;y\na,u,5,4,1,1,1,y,x\na,u,5,1,1,1,1,x,\na,u,5,3,1,1,1,x,\n", 19),
            // A row without a stage may wait for a stage, and another job may end last. A later submit time delays a row.
            ("a,u,0,10,1,1,1,m,\na,u,0,5,1,1,1,,m\nb,u,2,14,1,1,1,,\n", 16),
            ("a,u,0,10,1,1,1,m,\na,u,50,5,1,1,1,r,m\n", 55),
            // Stages that wait for one another never end.
            ("a,u,0,1,1,1,1,x,y\na,u,0,1,1,1,1,y,x\nb,u,0,3,1,1,1,,\n", 3),
        ] {
            let findings = found(rows, &[]).expect("sound");
            assert_eq!(findings.earliest_end, Time(seconds * 1_000_000), "{rows}");
        }
    }

    #[test]
    fn stages_that_wait_for_one_another_are_found() {
        let ring = "a,u,0,1,1,1,1,x,z\nb,v,0,1,1,1,1,m,\na,u,0,1,1,1,1,y,x\na,u,0,1,1,1,1,z,y\nb,v,0,1,1,1,1,,m\n";
        assert_eq!(found(ring, &[]).expect("sound").deadlocked, (1, Some("a".into())));
        assert_eq!(found("a,u,0,1,1,1,1,x,x\n", &[]).expect("sound").deadlocked.0, 1);
        let chain = "a,u,0,1,1,1,1,z,x;y\na,u,0,1,1,1,1,y,x\na,u,0,1,1,1,1,x,\n";
        assert_eq!(found(chain, &[]).expect("sound").deadlocked, (0, None));
    }

    #[test]
    fn rows_that_do_not_make_a_job_are_errors() {
        for (rows, want) in [
            (
                "a,u,0,1,1,1,1,x,\na,u,0,1,1,1,1,,y\nb,u,5,1,1,1,1,y,\n",
                "line 3, column 'after': job 'a' has no stage 'y'",
            ),
            ("a,u,0,1,1,1,1,,y\n", "its stages: none"),
            ("a,u,0,1,1,1,1,,\na,v,0,1,1,1,1,,\n", "line 3, column 'user'"),
        ] {
            let message = found(rows, &[]).unwrap_err().to_string();
            assert!(message.contains(want), "{message}");
        }
        // Adjacent rows with one name are one job, even if their submit times differ.
        assert!(found("a,u,0,1,1,1,1,x,\na,u,5,1,1,1,1,,x\n", &[]).is_ok());
    }
}
