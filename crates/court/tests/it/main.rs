//! Tests of the decisions and verdicts of policies on given states. The states are test vectors from the schedulers' sources, states
//! derived from their rules, random states, and scenarios.

use plimsoll_court::{Bench, Round, State, parse};
use plimsoll_policies::Registry;
use plimsoll_schedulers::BUILT_IN;
use std::path::Path;

mod armada;
mod armada_rounds;
mod first;
mod kai;
mod koordinator;
mod koordinator_quotas;
mod kueue;
mod kueue_vectors;
mod laws;
mod laws_machines;
mod random;
mod rooms;
mod scenarios;
mod situations;
mod volcano;
mod volcano_vectors;
mod yarn_capacity;
mod yarn_capacity_order;
mod yarn_capacity_preempts;
mod yarn_fair;
mod yarn_fair_source;
mod yunikorn;
mod yunikorn_preempt;

/// Parses a state in TOML. Panics: if the state is invalid.
pub fn state(text: &str) -> State {
    parse(Path::new("state.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The decisions of one round.
pub struct Answer {
    /// Names and tasks that start, in order.
    pub launched: Vec<(String, u32)>,
    /// Names and tasks that are stopped.
    pub evicted: Vec<(String, u32)>,
    /// The complete result of the round.
    pub round: Round,
}

impl Answer {
    /// Returns the names of the victims, in order.
    pub fn evicted(&self) -> Vec<&str> {
        self.evicted.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the names of the launched workloads, in order.
    pub fn launched(&self) -> Vec<&str> {
        self.launched.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns a named quantity that the policy reports for a group. Panics: if the policy does not report it.
    pub fn share(&self, group: &str, name: &str) -> f64 {
        let standing = self.round.standings.iter().find(|standing| standing.name == group);
        let values = standing.map(|standing| &*standing.values).unwrap_or_default();
        let value = values.iter().find(|(known, _)| known == name);
        value.unwrap_or_else(|| panic!("no '{name}' of '{group}': {:?}", self.round.standings)).1
    }
}

/// Returns a policy's decisions in the first round of a state in TOML. Panics: if the state, the policy or the round is invalid.
pub fn decide(policy: &str, text: &str) -> Answer {
    let (state, registry) = (state(text), Registry::new(BUILT_IN));
    let bench = Bench::new(&state, policy, &registry).unwrap_or_else(|error| panic!("{error}"));
    let mut situation = plimsoll_court::Situation::first(&state);
    let round = bench.play(&mut situation).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let name = |workload: usize| state.workloads[workload].name.clone();
    let launched = round.launched.iter().map(|(workload, tasks, _)| (name(*workload), *tasks)).collect();
    let evicted = round.evicted.iter().map(|evicted| (name(evicted.workload), evicted.tasks)).collect();
    Answer { launched, evicted, round }
}
