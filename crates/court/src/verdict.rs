//! Plays a scenario to a verdict.
//!
//! The policies have no memory between rounds, so that the decisions of a round depend only on the situation. A situation that repeats
//! therefore proves that the rounds of the cycle repeat without end: with an eviction a livelock, without one a stable situation.
//! Starvation and unused room are judged by the guarantees and limits that the policy reports.

use std::collections::{BTreeSet, HashMap};

use plimsoll_base::error::Result;
use plimsoll_base::units::{MAX_DIMS, Resources};

use crate::round::{Bench, Round, Why};
use crate::situation::{Situation, free};
use crate::state::{Expectation, State};

/// The verdict on a scenario under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The situation is stable, without a fault.
    Settled,
    /// A situation repeats with an eviction in the cycle.
    Livelock,
    /// A workload within the guarantees of its queue never starts, although the others' guarantees leave room for it.
    Starvation,
    /// In a stable situation, a workload waits although it has room and no limit forbids its start.
    NotWorkConserving,
    /// By the policy's own comparison, each of two users precedes the other, or neither does.
    OrderNotAntisymmetric,
    /// With other names, other workloads start or are stopped.
    DependsOnNames,
    /// The maximum number of rounds is reached without a proof.
    Undecided,
}

impl Verdict {
    /// All verdicts by name.
    pub const NAMES: &[(&str, Verdict)] = &[
        ("settled", Verdict::Settled),
        ("livelock", Verdict::Livelock),
        ("starvation", Verdict::Starvation),
        ("not-work-conserving", Verdict::NotWorkConserving),
        ("order-not-antisymmetric", Verdict::OrderNotAntisymmetric),
        ("depends-on-names", Verdict::DependsOnNames),
        ("undecided", Verdict::Undecided),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Verdict::NAMES.iter().find(|(_, verdict)| *verdict == self).map_or("", |(name, _)| name)
    }
}

/// A played round.
#[derive(Clone, Debug)]
pub struct Played {
    /// The situation before the round.
    pub before: Situation,
    /// The decisions of the round.
    pub round: Round,
}

/// A played scenario with its verdict.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason of the verdict, in a sentence; empty if there is none.
    pub about: String,
    /// The played rounds.
    pub rounds: Vec<Played>,
    /// The situation after the last round.
    pub last: Situation,
    /// The index of the round that begins with the situation after the last round, if any.
    pub back: Option<usize>,
}

impl Assessment {
    /// Returns the rounds of the cycle if it contains an eviction.
    pub fn cycle(&self) -> &[Played] {
        match self.back {
            Some(back) if self.verdict == Verdict::Livelock => &self.rounds[back..],
            _ => &[],
        }
    }

    /// Returns the names of the workloads that start in any round, or that are stopped if `evicted`: each once, in order of the first time.
    pub fn names(&self, state: &State, evicted: bool) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for Played { round, .. } in &self.rounds {
            let of: Vec<usize> = match evicted {
                true => round.evicted.iter().map(|evicted| evicted.workload).collect(),
                false => round.launched.iter().map(|(workload, ..)| *workload).collect(),
            };
            for workload in of {
                let name = &state.workloads[workload].name;
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

/// Plays at most `most` rounds, and determines the verdict. Errors: those of the policy.
pub fn judge(bench: &Bench, most: u32) -> Result<Assessment> {
    let state = bench.state();
    let mut situation = Situation::first(state);
    let mut seen: HashMap<Situation, usize> = HashMap::new();
    let mut rounds: Vec<Played> = Vec::new();
    let mut back = None;
    while rounds.len() < most as usize {
        if let Some(at) = seen.insert(situation.timeless(state), rounds.len()) {
            back = Some(at);
            break;
        }
        let before = situation.clone();
        let round = bench.play(&mut situation)?;
        situation.pass(state);
        rounds.push(Played { before, round });
    }
    let mut assessment =
        Assessment { verdict: Verdict::Undecided, about: String::new(), rounds, last: situation, back };
    (assessment.verdict, assessment.about) = verdict(bench, &assessment);
    if assessment.verdict == Verdict::Settled && state.renames {
        with_other_names(bench, &mut assessment, most)?;
    }
    Ok(assessment)
}

fn verdict(bench: &Bench, assessment: &Assessment) -> (Verdict, String) {
    let state = bench.state();
    let name = |workload: usize| &state.workloads[workload].name;
    let Assessment { rounds, last, back, .. } = assessment;
    let order = rounds.iter().find_map(|played| played.round.unordered.as_ref());
    if let Some((one, other)) = order {
        return (
            Verdict::OrderNotAntisymmetric,
            format!("'{one}' and '{other}' each precede the other, or neither does"),
        );
    }
    let part = &rounds[back.unwrap_or(rounds.len())..];
    let evicted: Vec<&String> =
        part.iter().flat_map(|played| &played.round.evicted).map(|one| name(one.workload)).collect();
    if let Some(first) = evicted.first() {
        let count = part.len();
        return (Verdict::Livelock, format!("{count} rounds repeat without end, and each cycle stops '{first}'"));
    }
    // If no situation repeats, all rounds count.
    let steady = if back.is_some() { part } else { &rounds[..] };
    let waits_always = |workload: usize| {
        !steady.is_empty()
            && steady.iter().all(|played| played.before.waiting.iter().any(|wait| wait.workload == workload))
            && !steady.iter().any(|played| played.round.launched.iter().any(|(other, ..)| *other == workload))
    };
    let long = back.is_some() || rounds.len() >= 10;
    if let Some(wait) = last
        .waiting
        .iter()
        .find(|wait| long && waits_always(wait.workload) && is_own_claim(bench, steady, wait.workload))
    {
        return (
            Verdict::Starvation,
            format!("'{}' is within the guaranteed amounts of its queue and never starts", name(wait.workload)),
        );
    }
    if back.is_none() {
        return (Verdict::Undecided, format!("no verdict by round {}", rounds.len()));
    }
    if let Some(played) = steady.first() {
        let idle =
            |wait: &&crate::situation::Wait| waits_always(wait.workload) && has_room(bench, played, wait.workload);
        if let Some(wait) = last.waiting.iter().find(idle) {
            return (
                Verdict::NotWorkConserving,
                format!("there is room for '{}', and it never starts", name(wait.workload)),
            );
        }
    }
    (Verdict::Settled, String::new())
}

/// Returns the group of a workload: its own, or that of its user.
fn group_of(state: &State, bench: &Bench, workload: usize) -> Option<String> {
    let about = &state.workloads[workload];
    about.group.clone().or_else(|| {
        let user = bench.user_of(about);
        let at = state.queues.users.iter().find(|(known, _)| known == user).map(|(_, at)| *at)?;
        Some(state.queues.groups[at].name.clone())
    })
}

/// Returns a group and its ancestors, as indices in the file.
fn above(state: &State, group: &str) -> Vec<usize> {
    let at = state.queues.groups.iter().position(|known| known.name == group);
    std::iter::successors(at, |at| state.queues.groups[*at].parent).collect()
}

/// Returns the allocation of a group in a situation, including the groups below it.
fn allocated(state: &State, bench: &Bench, situation: &Situation, group: usize) -> Resources {
    let mut sum = Resources::ZERO;
    for run in &situation.running {
        let Some(name) = group_of(state, bench, run.workload) else { continue };
        if above(state, &name).contains(&group) {
            sum += state.workloads[run.workload].demand.times(run.tasks());
        }
    }
    sum
}

/// Returns whether a workload stays, in all these situations, within the guarantees of its queue and of all ancestors that have any, and a
/// guarantee covers its whole request.
fn is_own_claim(bench: &Bench, rounds: &[Played], workload: usize) -> bool {
    let state = bench.state();
    let Some(group) = group_of(state, bench, workload) else { return false };
    let groups = above(state, &group);
    let about = &state.workloads[workload];
    let need = about.demand.times(if about.gang { about.tasks } else { 1 });
    rounds.iter().all(|Played { before, round }| {
        let mut promised = false;
        let within = groups.iter().all(|at| {
            let entry = &state.queues.groups[*at];
            let Some(standing) = round.standings.iter().find(|standing| standing.name == entry.name) else {
                return true;
            };
            let held = allocated(state, bench, before, *at);
            let leaf = Some(at) == groups.first();
            (0..MAX_DIMS).filter(|d| need[*d] > 0).all(|d| match standing.guaranteed[d] {
                Some(amount) => {
                    promised |= leaf;
                    held[d] + need[d] <= amount || (!leaf && amount == 0)
                }
                None => !leaf,
            })
        });
        within && promised && fits_beside(bench, before, round, &need, &group)
    })
}

/// Returns whether a queue would have room for the request if the allocations of all others were at most their guarantees.
fn fits_beside(bench: &Bench, before: &Situation, round: &Round, need: &Resources, own: &str) -> bool {
    let (state, total) = (bench.state(), bench.state().cluster.total());
    let mut held_of: HashMap<String, Resources> = HashMap::new();
    for run in &before.running {
        let held = held_of.entry(group_of(state, bench, run.workload).unwrap_or_default()).or_default();
        *held += state.workloads[run.workload].demand.times(run.tasks());
    }
    (0..MAX_DIMS).filter(|d| need[*d] > 0).all(|d| {
        let kept = held_of.iter().map(|(name, held)| {
            let standing = round.standings.iter().find(|standing| standing.name == *name);
            let promise = standing.and_then(|standing| standing.guaranteed[d]).unwrap_or(0);
            if name == own { held[d] } else { held[d].min(promise) }
        });
        kept.sum::<u64>() + need[d] <= total[d]
    })
}

/// Returns whether there is room for a workload, and no limit of its queue or of an ancestor forbids it.
fn has_room(bench: &Bench, Played { before, round }: &Played, workload: usize) -> bool {
    let state = bench.state();
    let about = &state.workloads[workload];
    let need = about.demand.times(if about.gang { about.tasks } else { 1 });
    let mut free = free(state, &before.running);
    for (other, tasks, machine) in &round.launched {
        let held = state.workloads[*other].demand.times(*tasks);
        free[*machine as usize] = free[*machine as usize].saturating_sub(held);
    }
    // A gang may also fit on several machines; this check ignores such room.
    if !free.iter().any(|free| need.fits(free)) {
        return false;
    }
    let quota = round.waits.iter().any(|waits| waits.workload == workload && matches!(waits.reason, Why::Quota(..)));
    let groups = group_of(state, bench, workload).map(|group| above(state, &group)).unwrap_or_default();
    !quota
        && groups.iter().all(|at| {
            let entry = &state.queues.groups[*at];
            let Some(standing) = round.standings.iter().find(|standing| standing.name == entry.name) else {
                return true;
            };
            let mut held = allocated(state, bench, before, *at);
            for (other, tasks, _) in &round.launched {
                let within = group_of(state, bench, *other).is_some_and(|name| above(state, &name).contains(at));
                held += state.workloads[*other].demand.times(if within { *tasks } else { 0 });
            }
            standing.limit.exceeded(&held, &need).is_none()
        })
}

/// Plays the scenario again with the names in reversed order, and compares the decisions.
fn with_other_names(bench: &Bench, assessment: &mut Assessment, most: u32) -> Result<()> {
    let state = bench.state().renamed();
    let other = bench.on(&state)?;
    let again = judge(&other, most)?;
    let same = assessment.rounds.len() == again.rounds.len()
        && assessment.rounds.iter().zip(&again.rounds).all(|(one, other)| {
            let evicted = |round: &Round| round.evicted.iter().map(|one| (one.workload, one.tasks)).collect::<Vec<_>>();
            one.round.launched == other.round.launched && evicted(&one.round) == evicted(&other.round)
        });
    if !same {
        assessment.verdict = Verdict::DependsOnNames;
        assessment.about = "with the names in reverse order, other workloads start or are stopped".to_owned();
    }
    Ok(())
}

impl Expectation {
    /// Returns a sentence on the difference between the expected and the actual result; `None` if they agree.
    pub fn differs(&self, state: &State, assessment: &Assessment) -> Option<String> {
        if let Some(verdict) = self.verdict.filter(|verdict| *verdict != assessment.verdict) {
            let about = if assessment.about.is_empty() { String::new() } else { format!(" ({})", assessment.about) };
            return Some(format!("expected {}, and it is {}{about}", verdict.name(), assessment.verdict.name()));
        }
        for (word, expected, evicted) in [("launched", &self.launched, false), ("evicted", &self.evicted, true)] {
            let Some(expected) = expected else { continue };
            let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
            let names = assessment.names(state, evicted);
            if sorted(expected) != sorted(&names) {
                return Some(format!("expected {word} = {expected:?}, and it is {names:?}"));
            }
        }
        None
    }
}
