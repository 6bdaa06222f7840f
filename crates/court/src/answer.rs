//! Decisions and verdicts as JSON.

use serde_json::{Map, Value, json};

use crate::round::{Bench, Round, Why};
use crate::situation::Situation;
use crate::state::State;
use crate::verdict::Assessment;

/// Returns the decisions of a round: `{"policy", "launched": [{"name", "tasks", "machine"}], "evicted": [{"name", "tasks", "for",
/// "reason"}], "waiting": [{"name", "tasks", "reason", "short": {..}}], "shares": {..}}`; `shares` only for policies with groups. Amounts
/// are in the units of input files.
pub fn answer(bench: &Bench, round: &Round) -> Value {
    let state = bench.state();
    let name = |workload: usize| state.workloads[workload].name.as_str();
    let launched = round.launched.iter().map(|(workload, tasks, machine)| {
        let machine = state.machines.as_ref().map(|machines| machines[*machine as usize].as_str());
        json!({"name": name(*workload), "tasks": tasks, "machine": machine})
    });
    let evicted = round.evicted.iter().map(|evicted| {
        let (by, rule) = evicted.cause.clone().unzip();
        json!({"name": name(evicted.workload), "tasks": evicted.tasks, "for": by, "reason": rule})
    });
    let waiting = round.waits.iter().map(|waits| {
        let (reason, short) = reason(state, round, &waits.reason);
        json!({"name": name(waits.workload), "tasks": waits.tasks, "reason": reason, "short": short})
    });
    let mut answer = json!({
        "policy": bench.policy,
        "launched": launched.collect::<Value>(),
        "evicted": evicted.collect::<Value>(),
        "waiting": waiting.collect::<Value>(),
    });
    // A policy without groups computes no shares.
    if let Some(fields) = answer.as_object_mut().filter(|_| !round.standings.is_empty()) {
        fields.insert("shares".to_owned(), shares(round));
    }
    answer
}

/// Returns the reason in words, and the missing amounts.
pub fn reason(state: &State, round: &Round, why: &Why) -> (String, Map<String, Value>) {
    let mut short = Map::new();
    let mut add = |resource: usize, amount: u64| {
        if let Some(dim) = state.cluster.dims.get(resource) {
            short.insert(dim.name.clone(), json!(dim.amount(amount)));
        }
    };
    let words = match why {
        Why::Room(missing) => {
            missing.iter().for_each(|(resource, amount)| add(*resource, *amount));
            "there is no room".to_owned()
        }
        Why::Quota(group, resource, amount) => {
            add(*resource, *amount);
            let group = round.standings.get(*group as usize).map(|standing| format!(" of '{}'", standing.name));
            format!("the quota{} is used up", group.unwrap_or_default())
        }
        Why::Rule(words) => (*words).to_owned(),
        Why::Behind => "another workload of its user comes first".to_owned(),
    };
    (words, short)
}

fn shares(round: &Round) -> Value {
    let one = |standing: &plimsoll_policies::Status| {
        let values = standing.values.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        (standing.name.clone(), Value::Object(values))
    };
    Value::Object(round.standings.iter().map(one).collect())
}

/// Returns a verdict: `{"scenario", "policy", "verdict", "about", "rounds", "cycle": [...], "ok"}`; `cycle` has the rounds that repeat.
pub fn assessment(bench: &Bench, assessment: &Assessment, ok: Option<bool>) -> Value {
    let state = bench.state();
    let cycle = assessment.cycle().iter().map(|played| {
        let mut round = answer(bench, &played.round);
        if let Some(fields) = round.as_object_mut() {
            fields.remove("policy");
            fields.remove("shares");
            fields.insert("round".to_owned(), json!(played.before.round));
            fields.insert("running".to_owned(), running(state, &played.before));
        }
        round
    });
    json!({
        "scenario": state.name,
        "policy": bench.policy,
        "verdict": assessment.verdict.name(),
        "about": assessment.about,
        "rounds": assessment.rounds.len(),
        "cycle": cycle.collect::<Value>(),
        "ok": ok,
    })
}

fn running(state: &State, situation: &Situation) -> Value {
    let runs = situation.running.iter().map(
        |run| json!({"name": state.workloads[run.workload].name, "tasks": run.tasks(), "leaving": run.leaves.is_some()}),
    );
    runs.collect()
}
