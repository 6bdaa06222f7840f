//! Stranded capacity: free amounts on machines where they are too small, or of the wrong proportions, for every waiting task.

use super::{At, MetricValue, Metrics};
use plimsoll_base::column::{Column, Unit};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources, UserId};
use plimsoll_sim::cluster::Machines;
use plimsoll_sim::record::State;

/// Computes stranded capacity as a share of the cluster: the sum of free amounts of resource r on *stranded* machines, over c_r.
///
/// A machine is stranded if it is present, if at least one head (the next task of a queue) may use it by its labels and location, and if
/// it has no room for any head that may use it. A machine that no head may use is idle, not stranded. A machine with room for a head that
/// waits for another reason, such as quota or the other tasks of its gang, is not stranded either.
///
/// `heads` has the scope and the requirement of each head; `may_use` returns whether a scope has a machine. The result has `dims` entries,
/// padded with zeros; an entry is 0 for a resource with capacity 0. Cost: O(machines · (scopes + least requirements of their heads)).
pub fn stranded(
    machines: &Machines,
    capacity: &Resources,
    dims: usize,
    heads: &[(u32, &[u64])],
    may_use: impl Fn(u32, MachineId) -> bool,
) -> [f64; MAX_DIMS] {
    // A machine has room for some requirement exactly if it has room for a minimal one, so only minimal requirements are kept.
    let under = |a: &[u64], b: &[u64]| a.iter().zip(b).all(|(a, b)| a <= b);
    let mut scopes: Vec<(u32, Vec<&[u64]>)> = Vec::new();
    for &(scope, need) in heads {
        let at = scopes.iter().position(|(known, _)| *known == scope).unwrap_or_else(|| {
            scopes.push((scope, Vec::new()));
            scopes.len() - 1
        });
        let least = &mut scopes[at].1;
        if !least.iter().any(|other| under(other, need)) {
            least.retain(|other| !under(need, other));
            least.push(need);
        }
    }
    let mut free = Resources::ZERO;
    for machine in (0..machines.len() as u32).map(MachineId).filter(|machine| machines.is_present(*machine)) {
        let mut asked = scopes.iter().filter(|(scope, _)| may_use(*scope, machine)).peekable();
        let wanted = asked.peek().is_some();
        if wanted && !asked.any(|(_, least)| least.iter().any(|need| machines.fits(machine, need))) {
            free += machines.free(machine);
        }
    }
    std::array::from_fn(|d| if d < dims && capacity.0[d] > 0 { free[d] as f64 / capacity.0[d] as f64 } else { 0.0 })
}

/// Returns the stranded capacity of a state.
pub(super) fn stranded_now(machines: &Machines, state: &State, active: &[UserId]) -> [f64; MAX_DIMS] {
    let mut heads: Vec<(u32, &[u64])> = Vec::new();
    for &user in active.iter().filter(|&&user| state.books.waiting(user) > 0) {
        state.waiting.heads(user, &mut |scope, need| heads.push((scope, need)));
    }
    let may_use = |scope: u32, machine: MachineId| state.waiting.may_use(scope, machine);
    stranded(machines, state.books.capacity(), state.books.dims(), &heads, may_use)
}

pub(super) static METRICS: Metrics = Metrics {
    runs: &[Column::new(
        "stranded_<r>",
        "share of <r> that is free on machines without room for any waiting task that may use them, while tasks wait; null when pooled",
        MetricValue::Means(|at, d| Some(at.stranded?[d])),
    )
    .unit(Unit::Share)
    .lower()
    .words("<r> stranded")],
    fairness: &[At::floats(
        "stranded_<r>",
        "share of <r> free on machines that waiting tasks may use and that have room for none; null when pooled or nothing waits",
        |point, d| Some(point.sample.stranded?[d]),
    )
    .unit(Unit::Share)
    .lower()
    .words("<r> stranded")],
};

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_sim::cluster::Placement;

    fn amounts(amounts: &[u64]) -> Resources {
        Resources::from_slice(amounts)
    }

    /// Returns two machines of 4 and 8 cores and as many GiB. 1 of each is free on the first machine and 2 on the second.
    fn machines() -> Machines {
        let mut machines = Machines::new(2, Placement::FirstFit, &[amounts(&[4, 4]), amounts(&[8, 8])]);
        machines.allocate(MachineId(0), &[3, 3]);
        machines.allocate(MachineId(1), &[6, 6]);
        machines
    }

    fn share(machines: &Machines, heads: &[(u32, &[u64])]) -> [f64; 2] {
        // Scope 0 has both machines, and scope m + 1 has machine m alone.
        let may_use = |scope: u32, machine: MachineId| scope == 0 || scope == machine.0 + 1;
        let all = stranded(machines, &amounts(&[12, 12]), 2, heads, may_use);
        assert!(all[2..].iter().all(|share| *share == 0.0));
        [all[0], all[1]]
    }

    #[test]
    fn a_machine_is_judged_by_the_heads_that_may_use_it() {
        let machines = machines();
        assert_eq!(share(&machines, &[(0, &[3, 1])]), [3.0 / 12.0; 2], "too large for both");
        assert_eq!(share(&machines, &[(0, &[2, 1])]), [1.0 / 12.0; 2], "the second has room");
        assert_eq!(share(&machines, &[(0, &[3, 1]), (0, &[1, 3]), (0, &[1, 1])]), [0.0; 2]);
        // Tasks that may only use the first machine cannot use room on the second. Machines that no waiting task may use are not stranded.
        assert_eq!(share(&machines, &[(1, &[2, 2])]), [1.0 / 12.0; 2]);
        assert_eq!(share(&machines, &[(2, &[3, 3])]), [2.0 / 12.0; 2]);
        assert_eq!(share(&machines, &[(1, &[2, 2]), (2, &[2, 2])]), [1.0 / 12.0; 2]);
        assert_eq!(share(&machines, &[(1, &[1, 1]), (2, &[3, 2]), (0, &[4, 4])]), [2.0 / 12.0; 2]);
        assert_eq!(share(&machines, &[]), [0.0; 2]);
    }

    #[test]
    fn a_machine_that_is_away_strands_nothing() {
        let mut machines = machines();
        machines.remove(MachineId(1));
        assert_eq!(share(&machines, &[(0, &[3, 1])]), [1.0 / 12.0; 2]);
    }
}
