//! Endless tasks of frameworks that are placed one by one on unequal servers until none fits: rules of Shan, Jain, Kesidis et al.,
//! arXiv 1803.00922, in exact arithmetic.
//!
//! The engine has `drf`, `tsf` and `psdsf` with a placement rule. Its rounds select the user first and consider servers with room only. The
//! rules here select a server before the framework, or consider servers without room.

use std::path::Path;

use num_rational::Ratio;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::models::read_plan;
use super::outcome::RunOutcome;
use plimsoll_base::error::{Error, Result, either};

/// The plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServersPlan {
    /// The name of the plan, for readers of the file.
    #[serde(rename = "name")]
    _name: String,
    /// The capacity of each server, per resource.
    servers: Vec<Vec<u64>>,
    /// The demand of a task of each framework, per resource.
    demands: Vec<Vec<u64>>,
    /// The framework, then the server, that wins among equal shares.
    #[serde(default)]
    ties: Winner,
    /// The number of trials.
    trials: u64,
    /// The seed of the first trial; each trial adds 1.
    #[serde(default)]
    seed: u64,
}

/// The winner among equals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Winner {
    /// The first one.
    #[default]
    First,
    /// The last one.
    Last,
}

/// A rule that selects a framework and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerRule {
    /// The framework of the least dominant share of the sum of all servers, then a server with room, each with the same chance.
    Drf,
    /// A server with room for some task, each with the same chance, then the framework of the least share of this server.
    RoundRobinPsDsf,
    /// The pair of the least share of the server.
    PsDsf,
    /// The pair of the least share of the free amounts of the server.
    ResidualPsDsf,
    /// The framework of the least dominant share, then the server with free amounts nearest to the proportion of its demand, of all servers.
    /// A framework is finished if its nearest server has no room.
    BestFitDrf,
}

const RULES: [(&str, ServerRule); 5] = [
    ("drf", ServerRule::Drf),
    ("rrr-psdsf", ServerRule::RoundRobinPsDsf),
    ("psdsf", ServerRule::PsDsf),
    ("rpsdsf", ServerRule::ResidualPsDsf),
    ("bf-drf", ServerRule::BestFitDrf),
];

/// Executes a plan under a rule. The values of the outcome are means over the trials: `xNI`, the tasks of framework N on server I counted
/// from 1, and `total`. Errors: an invalid plan or an unknown rule.
pub fn run(path: &Path, set: &[String], policy: Option<&str>) -> Result<RunOutcome> {
    let plan: ServersPlan = read_plan(path, set)?;
    let amounts = plan.servers.first().map_or(0, Vec::len);
    let is_row = |row: &Vec<u64>| row.len() == amounts && row.iter().all(|amount| *amount > 0 && *amount < 1 << 20);
    if amounts == 0 || plan.demands.is_empty() || !plan.servers.iter().chain(&plan.demands).all(is_row) {
        let problem = "servers and demands have the same number of amounts above 0 and below 2^20";
        return Err(Error::trace(path, 0, "", problem));
    }
    if !(1..=1_000_000).contains(&plan.trials) {
        return Err(Error::trace(path, 0, "trials", "expected 1 to 1000000"));
    }
    let name = policy.unwrap_or(RULES[0].0);
    let rule = RULES.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule);
    let rule = rule.ok_or_else(|| Error::plan("policy", format!("'{name}'"), either(RULES.map(|(name, _)| name))))?;
    if rule == ServerRule::BestFitDrf && amounts != 2 {
        return Err(Error::trace(path, 0, "servers", "bf-drf compares the proportion of two amounts"));
    }
    let mut sums = vec![vec![0u64; plan.servers.len()]; plan.demands.len()];
    for trial in 0..plan.trials {
        let tasks = placed(&plan, rule, &mut ChaCha8Rng::seed_from_u64(plan.seed.wrapping_add(trial)));
        sums.iter_mut().flatten().zip(tasks.iter().flatten()).for_each(|(sum, tasks)| *sum += tasks);
    }
    let mean = |sum: u64| sum as f64 / plan.trials as f64;
    let mut values = Vec::new();
    for (framework, on) in sums.iter().enumerate() {
        let named = |(server, sum): (usize, &u64)| (format!("x{}{}", framework + 1, server + 1), mean(*sum));
        values.extend(on.iter().enumerate().map(named));
    }
    values.push(("total".to_owned(), mean(sums.iter().flatten().sum())));
    Ok(RunOutcome { values, ..RunOutcome::default() })
}

/// Returns the tasks of each framework on each server when none fits any more.
fn placed(plan: &ServersPlan, rule: ServerRule, rng: &mut ChaCha8Rng) -> Vec<Vec<u64>> {
    let mut free = plan.servers.clone();
    let mut tasks = vec![vec![0u64; plan.servers.len()]; plan.demands.len()];
    let mut finished = vec![false; plan.demands.len()];
    loop {
        let fits = |n: usize, i: usize| plan.demands[n].iter().zip(&free[i]).all(|(demand, free)| demand <= free);
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for n in (0..plan.demands.len()).filter(|n| !finished[*n]) {
            pairs.extend((0..free.len()).filter(|i| fits(n, *i)).map(|i| (n, i)));
        }
        if pairs.is_empty() {
            return tasks;
        }
        let count = |n: usize| tasks[n].iter().sum::<u64>();
        let part = |n: usize, of: &[u64]| {
            let parts = plan.demands[n].iter().zip(of).filter(|(_, whole)| **whole > 0);
            parts.map(|(demand, whole)| Ratio::new(count(n) * demand, *whole)).max().unwrap_or_default()
        };
        let total: Vec<u64> = (0..free[0].len()).map(|r| plan.servers.iter().map(|server| server[r]).sum()).collect();
        let mut draw = |among: &mut Vec<usize>| {
            among.sort_unstable();
            among.dedup();
            among[rng.random_range(0..among.len() as u32) as usize]
        };
        let frameworks: Vec<usize> =
            (0..plan.demands.len()).filter(|n| pairs.iter().any(|pair| pair.0 == *n)).collect();
        let (n, i) = match rule {
            ServerRule::Drf => {
                let n = plan.ties.least(frameworks, |n| part(*n, &total));
                (n, draw(&mut pairs.iter().filter(|pair| pair.0 == n).map(|pair| pair.1).collect()))
            }
            ServerRule::RoundRobinPsDsf => {
                let i = draw(&mut pairs.iter().map(|pair| pair.1).collect());
                let there = pairs.iter().filter(|pair| pair.1 == i).map(|pair| pair.0);
                (plan.ties.least(there, |n| part(*n, &plan.servers[i])), i)
            }
            ServerRule::PsDsf => plan.ties.least(pairs, |(n, i)| part(*n, &plan.servers[*i])),
            ServerRule::ResidualPsDsf => plan.ties.least(pairs, |(n, i)| part(*n, &free[*i])),
            ServerRule::BestFitDrf => {
                let n = plan.ties.least((0..plan.demands.len()).filter(|n| !finished[*n]), |n| part(*n, &total));
                let i = plan.ties.least(0..free.len(), |i| distance(&plan.demands[n], &free[*i]));
                if !fits(n, i) {
                    finished[n] = true;
                    continue;
                }
                (n, i)
            }
        };
        tasks[n][i] += 1;
        free[i].iter_mut().zip(&plan.demands[n]).for_each(|(free, demand)| *free -= demand);
    }
}

impl Winner {
    /// Returns the item with the least key. There is at least one.
    fn least<T: Default, K: Ord>(self, items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> T {
        let keyed = |best: Option<(K, T)>, item: T| {
            let own = key(&item);
            match best {
                Some((least, _)) if self == Winner::Last && own <= least => Some((own, item)),
                Some((least, _)) if own < least => Some((own, item)),
                None => Some((own, item)),
                best => best,
            }
        };
        items.into_iter().fold(None, keyed).map(|(_, item)| item).unwrap_or_default()
    }
}

/// Returns the distance between the proportions of a demand and of free amounts. A server with nothing free of an amount, where no task
/// fits, is farther than all others.
fn distance(demand: &[u64], free: &[u64]) -> (bool, Ratio<i64>) {
    match Ratio::new(demand[1] as i64, demand[0] as i64) {
        wanted if free[0] > 0 && free[1] > 0 => {
            let distance = wanted - Ratio::new(free[1] as i64, free[0] as i64);
            (false, if distance < Ratio::default() { -distance } else { distance })
        }
        _ => (true, Ratio::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(ties: Winner) -> ServersPlan {
        let (servers, demands) = (vec![vec![20, 6], vec![6, 20]], vec![vec![5, 1], vec![1, 5]]);
        ServersPlan { _name: "small".to_owned(), servers, demands, ties, trials: 1, seed: 0 }
    }

    fn one(rule: ServerRule, ties: Winner, seed: u64) -> Vec<u64> {
        placed(&small(ties), rule, &mut ChaCha8Rng::seed_from_u64(seed)).concat()
    }

    /// The small example of the protocol, rules with one outcome.
    #[test]
    fn single_outcomes_are_those_of_the_small_example() {
        for rule in [ServerRule::PsDsf, ServerRule::ResidualPsDsf] {
            assert_eq!(one(rule, Winner::First, 0), [1, 0, 1, 4]);
            assert_eq!(one(rule, Winner::Last, 0), [4, 1, 0, 1]);
        }
        assert_eq!(one(ServerRule::BestFitDrf, Winner::First, 0), [4, 0, 0, 4]);
        assert_eq!(one(ServerRule::BestFitDrf, Winner::Last, 0), [4, 0, 0, 4]);
    }

    /// The distributions of the small example: four outcomes with 1/4 each, and two with 7/8 and 1/8.
    #[test]
    fn random_outcomes_have_the_chances_of_the_small_example() {
        let trials = 4000u64;
        for (rule, chances) in [
            (
                ServerRule::RoundRobinPsDsf,
                vec![([1, 1, 1, 1], 0.25), ([1, 0, 1, 4], 0.25), ([4, 1, 0, 1], 0.25), ([4, 0, 0, 4], 0.25)],
            ),
            (ServerRule::Drf, vec![([1, 1, 1, 1], 0.875), ([4, 0, 0, 4], 0.125)]),
        ] {
            let all: Vec<Vec<u64>> = (0..trials).map(|seed| one(rule, Winner::First, seed)).collect();
            let mut seen = 0;
            for (outcome, chance) in chances {
                let count = all.iter().filter(|found| found.as_slice() == outcome).count();
                let error = 4.0 * (chance * (1.0 - chance) * trials as f64).sqrt();
                assert!((count as f64 - chance * trials as f64).abs() < error, "{rule:?} {outcome:?} {count}");
                seen += count;
            }
            assert_eq!(seen as u64, trials);
        }
    }

    #[test]
    fn wrong_plans_are_errors() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let file = dir.path().join("p.toml");
        std::fs::write(&file, "name = \"p\"\nservers = [[20, 6]]\ndemands = [[5, 1]]\ntrials = 1\n").expect("writable");
        let said = |set: &str, policy| run(&file, &[set.to_owned()], Some(policy)).expect_err("wrong").to_string();
        assert!(said("demands = [[5]]", "drf").contains("same number"));
        assert!(said("demands = [[5, 1]]", "bfdrf").contains("bf-drf"));
        assert!(said("ties = \"none\"", "drf").contains("last") && said("trials = 0", "drf").contains("trials"));
    }
}
