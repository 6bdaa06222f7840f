//! Per-server dominant shares (PS-DSF): each machine is filled fairly by criteria that are local to it.
//!
//! A user's *virtual dominant share* on a machine is the number of its tasks on all machines, divided by the number it could run alone on
//! that machine and by its weight. On each machine, a user with unfinished demand is limited by a used-up resource of the machine, and no
//! user of this resource on the machine has a higher share.
//!
//! Machines are refilled in turn, given the tasks of their users on the other machines, until the floats converge. The limiting resource of
//! each user on each machine is read from the result. A linear program in fractions then finds the point where exactly these resources are
//! used up. The result is verified without rounding, so a wrong reading only makes the search continue. Source: Khamse-Ashari, Lambadaris,
//! Kesidis, Urgaonkar and Zhao, PS-DSF, arXiv 1611.00404, sections III and IV.

use super::UserMachines;
use super::simplex::{Polytope, Sparse};
use super::turns::{Reading, Turns};
use crate::{Allocation, Exact, Instance, Mechanism};
use plimsoll_base::error::{Error, Result};

/// PS-DSF in fractions. Errors: [`Error::NotConverged`] if no answer could be verified. On one machine it is DRF. Each user has a single
/// weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PsDsf;

/// The limit on turns; a turn refills every machine once.
const TURNS: usize = 1 << 14;

impl Mechanism for PsDsf {
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let site = UserMachines::new(instance)?;
        let weights = weights(instance)?;
        let unit = |i: usize, m: usize| unit(&site, &weights, i, m).to_f64();
        let mut turns = Turns::new(&site, unit);
        let mut tried = None;
        for turn in 1..=TURNS {
            let moved = turns.turn();
            let rests = moved < 1e-15;
            if rests || turn.is_power_of_two() && turn >= 16 {
                for least in [1e-9, 1e-6, 1e-3] {
                    let reading = turns.reading(least);
                    if tried.as_ref() != Some(&reading)
                        && let Some(spread) = exact(&site, &weights, &reading)
                        && condition(&site, &weights, &spread)
                    {
                        return Ok(site.allocation(spread));
                    }
                    tried = Some(reading);
                }
                if rests {
                    break;
                }
            }
        }
        let problem = "no allocation near the limit of the iteration could be verified in fractions";
        Err(Error::NotConverged { solver: "psdsf".to_owned(), problem: problem.to_owned() })
    }

    fn places(&self) -> bool {
        true
    }
}

impl PsDsf {
    /// Returns whether these tasks of users on machines (`users x machines`) satisfy the condition, exactly. Errors: as for an allocation
    /// of the instance.
    pub fn satisfies_condition(instance: &Instance, spread: &[Vec<Exact>]) -> Result<bool> {
        Ok(condition(&UserMachines::new(instance)?, &weights(instance)?, spread))
    }
}

fn weights(instance: &Instance) -> Result<Vec<Exact>> {
    let weight = |user: &crate::User| user.scalar_weight("for shares of tasks, which are no resource").cloned();
    instance.users().iter().map(weight).collect()
}

/// Returns the number of tasks at which a user has a virtual dominant share of 1 on a machine; 0 if the user cannot run on the machine.
fn unit(site: &UserMachines, weights: &[Exact], user: usize, machine: usize) -> Exact {
    site.alone[user].as_ref().map_or(Exact::ZERO, |alone| &alone[machine] * &weights[user])
}

/// Returns whether the tasks satisfy the condition. The tasks must be non-negative, within the capacities and within each user's number of
/// tasks. Each user with unfinished demand must be limited on each machine by a used-up resource, such that no user of the resource on the
/// machine has a higher share.
fn condition(site: &UserMachines, weights: &[Exact], spread: &[Vec<Exact>]) -> bool {
    let users = site.instance.users();
    let total: Vec<Exact> = spread.iter().map(|on| on.iter().sum()).collect();
    let dims = site.instance.resources().len();
    let left = |m: usize| (0..dims).map(|r| site.left(m, r, spread)).collect::<Vec<_>>();
    let left: Vec<Vec<Exact>> = (0..site.room.len()).map(left).collect();
    let share = |i: usize, m: usize| &total[i] / &unit(site, weights, i, m);
    let stops = |i: usize, m: usize, r: usize| {
        let there = (0..users.len()).filter(|&j| spread[j][m].is_positive() && users[j].demand[r].is_positive());
        left[m][r] == Exact::ZERO && there.clone().all(|j| share(j, m) <= share(i, m))
    };
    let content = |i: usize| users[i].tasks.as_ref() == Some(&total[i]);
    !left.iter().flatten().any(Exact::is_negative)
        && (0..users.len()).all(|i| {
            let placed = (0..site.room.len()).all(|m| {
                !spread[i][m].is_negative() && (spread[i][m] == Exact::ZERO || site.places(i).any(|on| on == m))
            });
            placed
                && users[i].tasks.as_ref().is_none_or(|all| total[i] <= *all)
                && (content(i) || site.places(i).all(|m| site.needs(i).any(|r| stops(i, m, r))))
        })
}

/// Computes the allocation that a reading describes: the limiting resources are used up, and the other users run all their tasks.
fn exact(site: &UserMachines, weights: &[Exact], reading: &Reading) -> Option<Vec<Vec<Exact>>> {
    let users = site.instance.users();
    let mut full: Vec<(usize, usize)> = reading.stops.iter().map(|&(_, m, r)| (m, r)).collect();
    full.sort_unstable();
    full.dedup();
    // A column for each pair of a user and a machine where it runs, then one for the level of each resource that is used up.
    let runs = |i: usize| (0..reading.runs.len()).filter(move |&at| reading.runs[at].0 == i);
    let level = |m: usize, r: usize| reading.runs.len() + full.partition_point(|&full| full < (m, r));
    let mut rows: Vec<(Sparse, Exact)> = Vec::new();
    let (mut objective, mut most) = (vec![Exact::ZERO; reading.runs.len()], Exact::ZERO);
    for (m, room) in site.room.iter().enumerate() {
        for (r, room) in room.iter().enumerate() {
            let there = reading.runs.iter().enumerate().filter(|(_, run)| run.1 == m);
            let row: Sparse = there.map(|(at, run)| (at, users[run.0].demand[r].clone())).collect();
            if full.binary_search(&(m, r)).is_ok() {
                row.iter().for_each(|(at, demand)| objective[*at] = &objective[*at] + &(demand / room));
                most = &most + &Exact::ONE;
            }
            rows.push((row, room.clone()));
        }
    }
    for (i, user) in users.iter().enumerate() {
        if let Some(all) = user.tasks.as_ref().filter(|all| all.is_positive()) {
            rows.push((runs(i).map(|at| (at, Exact::ONE)).collect(), all.clone()));
            if reading.content[i] {
                runs(i).for_each(|at| objective[at] = &objective[at] + &(&Exact::ONE / all));
                most = &most + &Exact::ONE;
            }
        }
    }
    // Adds a row that compares a user's share with the level of a used-up resource of a machine. The share is at least the level for a user
    // that the resource limits (sign -1), and at most the level for a user that runs on the machine (sign 1).
    let mut compare = |i: usize, m: usize, r: usize, sign: i64| {
        let sign = Exact::ratio(sign, 1);
        let mut row: Sparse = runs(i).map(|at| (at, sign.clone())).collect();
        row.push((level(m, r), &Exact::ZERO - &(&sign * &unit(site, weights, i, m))));
        rows.push((row, Exact::ZERO));
    };
    for &(i, m, r) in &reading.stops {
        compare(i, m, r, -1);
    }
    for &(i, m) in &reading.runs {
        for &(_, r) in full.iter().filter(|full| full.0 == m && users[i].demand[full.1].is_positive()) {
            compare(i, m, r, 1);
        }
    }
    let mut columns: Vec<Sparse> = vec![Vec::new(); reading.runs.len() + full.len()];
    for (at, (row, _)) in rows.iter().enumerate() {
        row.iter().for_each(|(column, value)| columns[*column].push((at, value.clone())));
    }
    let mut polytope = Polytope::new(rows.into_iter().map(|(_, bound)| bound).collect());
    let columns: Vec<usize> = columns.into_iter().map(|column| polytope.add(column)).collect();
    polytope.raise(&columns.iter().copied().zip(objective.iter().cloned()).collect());
    let mut spread = vec![vec![Exact::ZERO; site.room.len()]; users.len()];
    let mut reached = Exact::ZERO;
    for (at, &(i, m)) in reading.runs.iter().enumerate() {
        spread[i][m] = polytope.value(columns[at]);
        reached = &reached + &(&spread[i][m] * &objective[at]);
    }
    (reached == most).then_some(spread)
}
