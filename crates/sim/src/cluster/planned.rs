//! The machine that the placement rule would choose if some machines had other free amounts. Plans that are not executed yet use this
//! search.

use super::index::id;
use super::machines::{Guide, Machines};
use super::scope::Scope;
use plimsoll_base::units::{MachineId, Resources};

/// The state of a machine in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRoom {
    /// The machine.
    pub machine: MachineId,
    /// The amounts that it has free in the plan.
    pub free: Resources,
    /// The number of tasks that the plan adds to the machine, minus the number that it removes.
    pub tasks: i64,
}

impl Machines {
    /// Returns whether the placement rule chooses the first machine with room.
    pub fn is_first_fit(&self) -> bool {
        matches!(self.guide, Guide::First)
    }

    /// Returns the machine that the placement rule chooses for a task if the machines in `planned`, sorted by machine, have the free
    /// amounts in `planned`.
    ///
    /// The devices of planned machines are not checked. Random placement draws no number in a plan: like `fgd` and the rules of
    /// KSS, it chooses the first machine.
    pub fn find_planned(&self, need: &Resources, planned: &[PlannedRoom]) -> Option<MachineId> {
        let dims = self.index.dims();
        let slice = need.slice(dims);
        let hardware = self.hardware.as_deref();
        let is_planned = |machine: usize| planned.binary_search_by_key(&id(machine), |room| room.machine).is_ok();
        let also =
            |machine: usize| !is_planned(machine) && hardware.is_none_or(|hardware| hardware.fits(machine, slice));
        let fits = |room: &&PlannedRoom| self.is_present(room.machine) && need.fits(&room.free);
        let mut fitting = planned.iter().filter(fits);
        match &self.guide {
            Guide::First | Guide::Draw(_) | Guide::Descend | Guide::Kss(_) => {
                let known = fitting.next().map(|room| room.machine);
                let mut others = self.index.each(slice, Scope::default());
                let before = |machine: &usize| known.is_none_or(|known| *machine < known.index());
                let other = others.by_ref().take_while(before).find(|machine| also(*machine));
                other.map(id).or(known)
            }
            Guide::Grid(grid) => {
                let known = fitting.map(|room| {
                    (grid.planned_score(room.machine.index(), room.free.slice(dims), room.tasks), room.machine.index())
                });
                let other = grid.search(&self.index, slice, Scope::default(), also);
                let other = other.map(|machine| (grid.score(&self.index, machine), machine));
                known.chain(other).min().map(|(_, machine)| id(machine))
            }
            Guide::Climb(climb) => {
                let known = fitting.map(|room| (room.machine.index(), room.free));
                let others = self.index.each(slice, Scope::default()).filter(|machine| also(*machine));
                let all = known.chain(others.map(|machine| (machine, self.index.free(machine))));
                let score = |(machine, free): (usize, Resources)| {
                    (std::cmp::Reverse(climb.score_on(machine, free.slice(dims), slice)), machine)
                };
                all.map(score).min().map(|(_, machine)| id(machine))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Placement;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn amounts(rng: &mut ChaCha8Rng, most: u64) -> Resources {
        let mut amounts = Resources::ZERO;
        (0..2).for_each(|d| amounts.0[d] = rng.random_range(0..=most));
        amounts
    }

    /// A plan chooses the same machine as a copy of the cluster that really has these free amounts.
    #[test]
    fn a_plan_chooses_what_the_rule_chooses_later() {
        let mut rng = ChaCha8Rng::seed_from_u64(40);
        let rules = [
            Placement::FirstFit,
            Placement::BestFit,
            Placement::WorstFit,
            Placement::Spread,
            Placement::DotProduct,
            Placement::Pooled,
        ];
        for placement in rules {
            let mut found = 0;
            for _ in 0..200 {
                let count = if placement == Placement::Pooled { 1 } else { rng.random_range(1..40) };
                let capacities: Vec<Resources> = (0..count).map(|_| amounts(&mut rng, 20)).collect();
                let machines = Machines::new(2, placement, &capacities);
                let (mut later, mut planned): (Machines, Vec<PlannedRoom>) = (machines.clone(), Vec::new());
                for _ in 0..20 {
                    let need = amounts(&mut rng, 8);
                    let chosen = machines.find_planned(&need, &planned);
                    assert_eq!(chosen, later.find(need.slice(2)), "{placement:?}");
                    let Some(machine) = chosen else { continue };
                    found += 1;
                    later.allocate(machine, need.slice(2));
                    let room = PlannedRoom { machine, free: later.free(machine), tasks: 1 };
                    match planned.binary_search_by_key(&machine, |room| room.machine) {
                        Ok(at) => planned[at] = PlannedRoom { tasks: planned[at].tasks + 1, ..room },
                        Err(at) => planned.insert(at, room),
                    }
                }
            }
            assert!(found > 500, "{placement:?}: {found} tasks found a machine");
        }
    }
}
