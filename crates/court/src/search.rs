//! The search for the smallest state with a given verdict: all states of a class, the smallest first.

use std::fmt::Write as _;
use std::path::Path;

use plimsoll_base::error::Result;
use plimsoll_policies::Registry;
use rayon::prelude::*;

use crate::round::Bench;
use crate::state::parse;
use crate::verdict::{Assessment, Verdict, judge};

/// The class of states: one resource with a capacity of 1 to `size`; two queues `a` and `b`; up to `running` running workloads of integer
/// sizes that fit, in every order of age; one arrival in `a`, at the same or a higher priority.
#[derive(Clone, Debug)]
pub struct Class {
    /// The largest capacity and the largest workload.
    pub size: u32,
    /// The maximum number of initially running workloads.
    pub running: usize,
    /// Whether running workloads may be as urgent as the urgent arrival.
    pub urgent: bool,
    /// The keys of both queues, as lines of a state.
    pub keys: String,
    /// The table `[policy]`, as lines of a state; empty without one.
    pub switches: String,
}

/// A state of a class with its verdict.
#[derive(Clone, Debug)]
pub struct FoundState {
    /// The text of the state.
    pub text: String,
    /// The assessment of the state.
    pub assessment: Assessment,
}

/// A workload of a candidate: whether it is in `a`, whether it is urgent, and its size.
type Small = (bool, bool, u32);

impl Class {
    /// Returns the default class of a policy: queues that may reclaim and preempt, without guarantees.
    pub fn default_for(policy: &str, size: u32) -> Class {
        let name = policy.split(['@', ':']).next().unwrap_or(policy);
        let keys = match name {
            "kueue" => "within = \"lower-priority\"\nreclaim = \"any\"\n",
            "volcano-drf" | "volcano-proportion" | "volcano-capacity" => {
                "[policy]\nactions = [\"allocate\", \"preempt\", \"reclaim\"]\n"
            }
            _ => "",
        };
        Class { size, running: 3, urgent: false, keys: String::new(), switches: String::new() }.with(keys)
    }

    /// Returns the class with these keys of both queues, which a table `[policy]` may follow.
    pub fn with(self, text: &str) -> Class {
        let at = text.find("[policy]").unwrap_or(text.len());
        let (keys, switches) = text.split_at(at);
        let whole = |text: &str| if text.is_empty() { String::new() } else { format!("{}\n", text.trim_end()) };
        Class { keys: whole(keys), switches: whole(switches), ..self }
    }

    /// Returns the number of states.
    pub fn count(&self) -> u64 {
        (1..=self.size).map(|capacity| self.states(capacity).len() as u64).sum()
    }

    /// Returns an upper bound of the number of situations: any of the workloads run, in any order, and the others wait.
    fn rounds(&self) -> u32 {
        let all = self.running as u32 + 1;
        let orders = |running: u32| (all - running + 1..=all).product::<u32>();
        (0..=all).map(orders).sum::<u32>() + 1
    }

    /// Returns all states of one capacity, those of few and small workloads first.
    fn states(&self, capacity: u32) -> Vec<(Vec<Small>, Small)> {
        let mut sets: Vec<Vec<Small>> = vec![Vec::new()];
        let mut all: Vec<Vec<Small>> = Vec::new();
        for _ in 0..self.running {
            let mut longer = Vec::new();
            for set in &sets {
                let left = capacity - set.iter().map(|(.., size)| size).sum::<u32>();
                for size in 1..=left {
                    let kinds = [(true, false), (false, false), (true, true), (false, true)];
                    for (in_a, urgent) in kinds.into_iter().filter(|(_, urgent)| !urgent || self.urgent) {
                        longer.push(set.iter().copied().chain([(in_a, urgent, size)]).collect::<Vec<Small>>());
                    }
                }
            }
            all.extend(longer.iter().cloned());
            sets = longer;
        }
        let arrivals = (1..=capacity).flat_map(|size| [(true, false, size), (true, true, size)]);
        let arrivals: Vec<Small> = arrivals.collect();
        let mut states: Vec<(Vec<Small>, Small)> =
            all.iter().flat_map(|set| arrivals.iter().map(|arrival| (set.clone(), *arrival))).collect();
        // By the number of workloads, then by their total size, then by the number of urgent ones.
        states.sort_by_key(|(set, arrival)| {
            let urgent = set.iter().filter(|(_, urgent, _)| *urgent).count() + usize::from(arrival.1);
            (set.len(), set.iter().map(|(.., size)| size).sum::<u32>() + arrival.2, urgent)
        });
        states
    }

    fn text(&self, policy: &str, capacity: u32, (set, arrival): &(Vec<Small>, Small)) -> String {
        let mut text = format!("[capacity]\ncpu = {capacity}\n{}", self.switches);
        for name in ["a", "b"] {
            let _ = write!(text, "[[group]]\nname = \"{name}\"\n{}", self.keys);
        }
        let mut workload = |kind: &str, name: String, (in_a, urgent, size): Small| {
            let (group, priority) = (if in_a { "a" } else { "b" }, u32::from(urgent));
            let _ = write!(
                text,
                "[[{kind}]]\nname = \"{name}\"\ngroup = \"{group}\"\ndemand = {{ cpu = {size} }}\npriority = {priority}\n"
            );
        };
        for (at, small) in set.iter().enumerate() {
            workload("running", format!("r{}", at + 1), *small);
        }
        workload("waiting", "w".to_owned(), *arrival);
        let _ = writeln!(text, "[[expect]]\npolicy = \"{policy}\"");
        text
    }
}

/// Returns the smallest state of a class with one of these verdicts under a policy, if there is one, and the number of states up to it.
/// `report` is called before each state is played; its error ends the search. Errors: those of the policy and of `report`.
pub fn search(
    policy: &str,
    registry: &Registry,
    class: &Class,
    verdicts: &[Verdict],
    report: &(dyn Fn() -> Result<()> + Sync),
) -> Result<(Option<FoundState>, u64)> {
    let mut before = 0;
    for capacity in 1..=class.size {
        let states = class.states(capacity);
        let played = states.par_iter().enumerate().map(|(at, state)| {
            report()?;
            let text = class.text(policy, capacity, state);
            let parsed = parse(Path::new("search.toml"), &text)?;
            let assessment = judge(&Bench::new(&parsed, policy, registry)?, class.rounds())?;
            Ok(verdicts.contains(&assessment.verdict).then_some((at, FoundState { text, assessment })))
        });
        // Finds the first state in the order that has one of the verdicts or ends with an error, regardless of the number of threads.
        if let Some(found) = played.find_first(|found: &Result<_>| !matches!(found, Ok(None))) {
            let found = found?;
            let at = found.as_ref().map_or(0, |(at, _)| *at as u64);
            return Ok((found.map(|(_, found)| found), before + at + 1));
        }
        before += states.len() as u64;
    }
    Ok((None, before))
}
