//! Attributes the wait of a job to causes: repeats its run without each cause, and without all combinations of up to five causes.
//!
//! A counterfactual run removes a cause from the beginning, so its history differs from that of the original run. The wait of one job may
//! change by an accident of order (Tsafrir and Feitelson, IPDPS 2006), so each single removal is repeated under small perturbations of the
//! durations; original and counterfactual run have the same perturbation. Shapley values divide the effect of all causes together: the
//! share of a cause is its mean effect over all orders of removal, and the shares add up exactly.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use plimsoll_runs::{Intervention, JobWait, Shake, StartLog};
use rayon::prelude::*;

use super::observe::RepeatedRun;
use super::plan::Plan;
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::Time;
use plimsoll_metrics::{Interval, mean_interval};
use plimsoll_sim::cluster::{ClusterSpec, MachineGroup, Placement, Speed};

/// The maximum number of causes: their combinations need 2^5 runs.
pub const CAUSES_MOST: usize = 5;

/// A cause of a wait that a repeated run can remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The jobs of a user.
    User(String),
    /// A job.
    Job(String),
    /// The admission rules of the policy, such as quotas.
    Rule,
    /// The requirement that tasks of a gang start together.
    Gang,
    /// The division of the cluster into machines.
    Fragmentation,
    /// The lack of a number of further machines.
    Machines(u32),
}

impl Cause {
    /// Returns how a repeated run removes the cause.
    pub fn removal(&self) -> String {
        match self {
            Cause::User(user) => format!("no job of {user} is submitted"),
            Cause::Job(job) => format!("{job} is not submitted"),
            Cause::Rule => "the policy admits every task, with the same ranks".to_owned(),
            Cause::Gang => "the tasks of all gangs start one by one".to_owned(),
            Cause::Fragmentation => {
                "all machines form one pool, without labels, locations and single devices".to_owned()
            }
            Cause::Machines(1) => "one machine more of the most frequent kind".to_owned(),
            Cause::Machines(count) => format!("{count} machines more of the most frequent kind"),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::User(user) => write!(f, "user={user}"),
            Cause::Job(job) => write!(f, "job={job}"),
            Cause::Rule => f.write_str("rule"),
            Cause::Gang => f.write_str("gang"),
            Cause::Fragmentation => f.write_str("fragmentation"),
            Cause::Machines(count) => write!(f, "machines=+{count}"),
        }
    }
}

impl FromStr for Cause {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cause> {
        let wrong = || {
            let expected = "user=NAME, job=NAME, rule, gang, fragmentation or machines=+N";
            Error::plan("--without", format!("'{text}'"), expected)
        };
        match text.split_once('=') {
            Some(("user", name)) if !name.is_empty() => Ok(Cause::User(name.to_owned())),
            Some(("job", name)) if !name.is_empty() => Ok(Cause::Job(name.to_owned())),
            Some(("machines", count)) => {
                let count = count.strip_prefix('+').and_then(|count| count.parse().ok()).filter(|count| *count > 0);
                count.map(Cause::Machines).ok_or_else(wrong)
            }
            None if text == "rule" => Ok(Cause::Rule),
            None if text == "gang" => Ok(Cause::Gang),
            None if text == "fragmentation" => Ok(Cause::Fragmentation),
            _ => Err(wrong()),
        }
    }
}

/// The perturbations that single removals are repeated under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shakes {
    /// The number of perturbations; the seeds are 1, 2, ...
    pub count: u32,
    /// The largest change of a duration, in millionths.
    pub millionths: u32,
}

/// The largest number of perturbations.
const SHAKES_MOST: u32 = 1000;

/// The effect of one cause on the wait of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseEffect {
    /// The cause.
    pub cause: Cause,
    /// The wait without the cause in microseconds; `None` if the job did not start.
    pub without_us: Option<u64>,
    /// The change of the wait under each perturbation in seconds; `None` if the job did not start in a run.
    pub changes_s: Option<Vec<f64>>,
    /// The Shapley value in seconds: the part of the wait that is attributed to the cause. `None` if the job did not start in a run.
    pub share_s: Option<f64>,
}

/// Whether the change of a wait persists under small perturbations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Robustness {
    /// The wait never changes.
    NoEffect,
    /// All changes have one sign, and the interval of their mean excludes zero.
    Robust,
    /// All changes have one sign or are zero, and the interval of their mean includes zero.
    Unclear,
    /// The wait increases under some perturbations, and decreases under others.
    SignChanges,
}

impl Robustness {
    /// Returns the verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Robustness::NoEffect => "no effect",
            Robustness::Robust => "robust",
            Robustness::Unclear => "not robust: the interval includes 0",
            Robustness::SignChanges => "not robust: the sign changes",
        }
    }
}

impl CauseEffect {
    /// Returns the mean change over the perturbations in seconds, with its 95 % interval.
    pub fn change_s(&self) -> Option<Interval> {
        mean_interval(self.changes_s.as_ref()?, 0.95)
    }

    /// Returns whether the change persists under the perturbations; `None` with fewer than two of them.
    pub fn robustness(&self) -> Option<Robustness> {
        let changes = self.changes_s.as_ref()?;
        let Interval { low: Some(low), high: Some(high), .. } = self.change_s()? else { return None };
        let (more, less) = (changes.iter().any(|change| *change > 0.0), changes.iter().any(|change| *change < 0.0));
        Some(match (more, less) {
            (false, false) => Robustness::NoEffect,
            (true, true) => Robustness::SignChanges,
            _ if low > 0.0 || high < 0.0 => Robustness::Robust,
            _ => Robustness::Unclear,
        })
    }
}

/// The attribution of a job's wait.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// The wait in the original run in microseconds.
    pub wait_us: u64,
    /// The wait without all causes in microseconds; `None` if the job did not start.
    pub remainder_us: Option<u64>,
    /// The effects of the causes.
    pub effects: Vec<CauseEffect>,
    /// The number of runs.
    pub runs: usize,
}

/// Attributes the wait of a job. `heartbeat` receives the simulated time of a run and may end the attribution; it is called from several
/// threads.
///
/// Errors: more than five causes, a cause that the run does not have, a job that did not start in the original run, and those
/// of the runs.
pub fn attribute(
    run: &RepeatedRun,
    explained: &JobWait,
    causes: &[Cause],
    shakes: Shakes,
    heartbeat: &(dyn Fn(Time, u64) -> Result<()> + Sync),
) -> Result<Attribution> {
    let (job, user) = (explained.job.as_str(), explained.user.as_str());
    if explained.start.is_none() {
        let expected = "a job that starts: the wait of a job that never starts has no length";
        return Err(Error::plan("--without", format!("'{job}'"), expected));
    }
    if causes.len() > CAUSES_MOST {
        let expected = format!("at most {CAUSES_MOST} causes: all of their combinations are simulated");
        return Err(Error::plan("--without", format!("{} causes", causes.len()), expected));
    }
    if shakes.count > SHAKES_MOST {
        return Err(Error::plan("--shakes", shakes.count, format!("at most {SHAKES_MOST}")));
    }
    for cause in causes {
        check(cause, run, (job, user))?;
    }
    check_names(causes, run)?;
    let subsets = 1usize << causes.len();
    // The unperturbed runs of all subsets, then for each perturbation the original run and the single removals.
    let single = || std::iter::once(0).chain((0..causes.len()).map(|at| 1 << at));
    let shaken = (1..=u64::from(shakes.count)).flat_map(|seed| single().map(move |set| (set, Some(seed))));
    let wanted: Vec<(usize, Option<u64>)> = (0..subsets).map(|set| (set, None)).chain(shaken).collect();
    let waits: Mutex<Vec<Option<Option<u64>>>> = Mutex::new(vec![None; wanted.len()]);
    wanted.par_iter().enumerate().try_for_each(|(at, (set, seed))| {
        let removed = causes.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0).map(|(_, cause)| cause);
        let shake = seed.map(|seed| Shake { seed, millionths: shakes.millionths });
        let wait = wait(run, explained, removed, shake, heartbeat)?;
        waits.lock().map_err(|_| Error::Interrupted)?[at] = Some(wait);
        Ok::<(), Error>(())
    })?;
    let waits = waits.into_inner().map_err(|_| Error::Interrupted)?;
    let wait = |at: usize| waits[at].flatten();
    let by_set: Option<Vec<u64>> = (0..subsets).map(wait).collect();
    let shares = by_set.map(|waits| shapley(causes.len(), &waits));
    let per_shake = causes.len() + 1;
    let effect = |(at, cause): (usize, &Cause)| {
        let changes: Option<Vec<f64>> = (0..shakes.count as usize)
            .map(|shake| {
                let original = wait(subsets + shake * per_shake)?;
                let without = wait(subsets + shake * per_shake + 1 + at)?;
                Some((without as f64 - original as f64) / 1e6)
            })
            .collect();
        CauseEffect {
            cause: cause.clone(),
            without_us: wait(1 << at),
            changes_s: changes,
            share_s: shares.as_ref().map(|shares| shares[at]),
        }
    };
    Ok(Attribution {
        wait_us: explained.wait().0,
        remainder_us: wait(subsets - 1),
        effects: causes.iter().enumerate().map(effect).collect(),
        runs: wanted.len(),
    })
}

/// Checks that a run has a cause, which is not the explained job or its user. Errors: [`Error::Plan`].
fn check(cause: &Cause, run: &RepeatedRun, (job, user): (&str, &str)) -> Result<()> {
    let plan = run.plan();
    let refuse = |expected: &str| Err(Error::plan("--without", format!("'{cause}'"), expected));
    let placed = plan.options.placement != Placement::Pooled;
    let eventful = placed && !plan.cluster.events.events.is_empty();
    match cause {
        _ if plan.workload.submissions_depend_on_policy() => {
            refuse("a workload without a closed loop: its later submissions depend on the waits")
        }
        Cause::User(removed) if removed == user => refuse("another user: the job itself belongs to this one"),
        Cause::Job(removed) if removed == job => refuse("another job than the explained one"),
        Cause::Rule if run.plans_machines()? => {
            refuse("a policy that ranks users: this one plans machines in cycles, and its limits are part of the plan")
        }
        Cause::Fragmentation if !placed => refuse("a run with machines: this one is pooled and has no fragmentation"),
        Cause::Fragmentation if eventful || plan.cluster.groups.iter().any(|group| group.speed != Speed::default()) => {
            refuse("a run without machine events and speeds, which a pool does not have")
        }
        Cause::Machines(_) if eventful => refuse("a run without machine events, which name machines by number"),
        Cause::Machines(_) if placed && !plan.cluster.names.is_empty() => refuse("a run without named machines"),
        _ => Ok(()),
    }
}

/// Checks that the workload has the users and jobs of some causes. Reads the rows if there are any. Errors: [`Error::Plan`], and those of
/// the workload.
fn check_names(causes: &[Cause], run: &RepeatedRun) -> Result<()> {
    let mut missing: Vec<&Cause> =
        causes.iter().filter(|cause| matches!(cause, Cause::User(_) | Cause::Job(_))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut source = run.source()?;
    while !missing.is_empty()
        && let Some(set) = source.next_set()?
    {
        let (user, job) = (source.users().name(set.user.0), source.job_names().text(&source.job_name()));
        missing.retain(|cause| match cause {
            Cause::User(name) => name != user,
            Cause::Job(name) => *name != job,
            _ => false,
        });
    }
    match missing.first() {
        None => Ok(()),
        Some(cause) => {
            let kind = if matches!(cause, Cause::User(_)) { "user" } else { "job" };
            Err(Error::plan("--without", format!("'{cause}'"), format!("the name of a {kind} of the workload")))
        }
    }
}

/// Returns the wait of a job without some causes in microseconds, counted from its original submission; `None` if it did not start.
fn wait<'c>(
    run: &RepeatedRun,
    explained: &JobWait,
    removed: impl Iterator<Item = &'c Cause>,
    shake: Option<Shake>,
    heartbeat: &(dyn Fn(Time, u64) -> Result<()> + Sync),
) -> Result<Option<u64>> {
    let mut intervention = Intervention { shake, ..Intervention::default() };
    let mut plan: Option<Plan> = None;
    for cause in removed {
        match cause {
            Cause::User(user) => drop(intervention.users.insert(user.clone())),
            Cause::Job(job) => drop(intervention.jobs.insert(job.clone())),
            Cause::Rule => intervention.without_rules = true,
            Cause::Gang => intervention.without_gangs = true,
            Cause::Fragmentation => {
                plan.get_or_insert_with(|| run.plan().clone()).options.placement = Placement::Pooled;
            }
            Cause::Machines(count) => {
                let cluster = &mut plan.get_or_insert_with(|| run.plan().clone()).cluster;
                let more = most_frequent(cluster).map(|kind| MachineGroup { count: *count, ..kind.clone() });
                cluster.groups.extend(more);
            }
        }
    }
    let mut log = StartLog::new(&explained.job);
    let plan = plan.as_ref().unwrap_or(run.plan());
    run.observe(plan, Some(&intervention), &mut log, &mut |now, launched| heartbeat(now, launched))?;
    Ok(log.start().map(|start| start.0.saturating_sub(explained.submit.0)))
}

/// Returns a group of the most frequent kind of machine; of equally frequent kinds the first.
fn most_frequent(cluster: &ClusterSpec) -> Option<&MachineGroup> {
    let kind = |group: &MachineGroup| MachineGroup { count: 1, ..group.clone() };
    let total = |group: &&MachineGroup| -> u64 {
        let same = cluster.groups.iter().filter(|other| kind(other) == kind(group));
        same.map(|group| u64::from(group.count)).sum()
    };
    cluster.groups.iter().rev().max_by_key(total)
}

/// Returns the Shapley values in seconds. `waits` has the wait without each set of causes, by the bits of the set. The values add up to
/// the wait without none minus the wait without all. Cost: O(2^n · n).
fn shapley(causes: usize, waits: &[u64]) -> Vec<f64> {
    let factorial = |n: usize| (1..=n as i128).product::<i128>();
    let all = factorial(causes);
    let share = |cause: usize| {
        let others = (0..waits.len()).filter(|set| set & (1 << cause) == 0);
        // Integers until the last step: each marginal effect counts in |S|! (n - |S| - 1)! of the n! orders.
        let sum: i128 = others
            .map(|set| {
                let size = set.count_ones() as usize;
                let effect = i128::from(waits[set]) - i128::from(waits[set | 1 << cause]);
                factorial(size) * factorial(causes - size - 1) * effect
            })
            .sum();
        sum as f64 / all as f64 / 1e6
    };
    (0..causes).map(share).collect()
}

/// Returns the causes of some texts. Errors: a text is no cause, or a cause occurs twice.
pub fn parse_causes(texts: &[String]) -> Result<Vec<Cause>> {
    let cause = |(at, text): (usize, &String)| match texts[..at].contains(text) {
        false => text.parse(),
        true => Err(Error::plan("--without", format!("'{text}'"), "each cause once")),
    };
    texts.iter().enumerate().map(cause).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two causes that each suffice: without either one the wait is unchanged, without both it is zero. Each has half of the effect.
    #[test]
    fn shares_add_up_and_are_symmetric() {
        assert_eq!(shapley(2, &[10_000_000, 10_000_000, 10_000_000, 0]), [5.0, 5.0]);
        assert_eq!(shapley(2, &[10_000_000, 4_000_000, 10_000_000, 4_000_000]), [6.0, 0.0]);
        // Three causes: the mean over the six orders of removal, computed manually.
        let waits = [12, 6, 9, 3, 12, 6, 6, 0].map(|seconds: u64| seconds * 1_000_000);
        let shares = shapley(3, &waits);
        assert!((shares.iter().sum::<f64>() - 12.0).abs() < 1e-9, "{shares:?}");
        assert!((shares[0] - 6.0).abs() < 1e-9, "{shares:?}");
        assert!((shares[1] - 4.5).abs() < 1e-9, "{shares:?}");
        assert!((shares[2] - 1.5).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn causes_are_read_as_they_are_written() {
        for text in ["user=a b", "job=j=1", "rule", "gang", "fragmentation", "machines=+3"] {
            assert_eq!(text.parse::<Cause>().expect(text).to_string(), text);
        }
        for text in ["", "user=", "machines=3", "machines=+0", "rules", "load"] {
            assert!(text.parse::<Cause>().is_err(), "{text}");
        }
        assert!(parse_causes(&["rule".to_owned(), "rule".to_owned()]).is_err());
    }
}
