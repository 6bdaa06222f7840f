//! Stranded capacity, from its definition in docs/cluster.md.

use super::simulation::Simulation;
use super::world::sum;
use super::{Row, World};

/// Returns, after each instant, the free amounts on stranded machines, by resource; `None` if no task waits. `blind` ignores labels and
/// places. Errors: the row of a gang that has no room.
pub fn stranded(rows: &[Row], world: &World, blind: bool) -> Result<Vec<(u64, Option<Vec<u64>>)>, usize> {
    let mut simulation = Simulation::new(rows, world);
    let mut states = Vec::new();
    while let Some(now) = simulation.next_instant() {
        simulation.instant(now)?;
        states.push((now, simulation.stranded(blind)));
    }
    Ok(states)
}

impl Simulation<'_> {
    /// Returns the free amounts on stranded machines: the next tasks of some queues may use the machine, but it has no room for any such
    /// task. `blind` ignores labels and places.
    fn stranded(&self, blind: bool) -> Option<Vec<u64>> {
        let heads = self.heads();
        let has_room = |head: usize, machine: usize| {
            let demand = &self.rows[self.tasks[head].row].demand;
            let free = self.unreserved(machine);
            demand.iter().zip(free).all(|(need, free)| *need <= free) && self.has_devices(machine, demand, &[])
        };
        let is_stranded = |machine: &usize| {
            let may_use = |head: &&usize| self.there[*machine] && (blind || self.will_do(**head, *machine));
            let wanted: Vec<&usize> = heads.iter().filter(may_use).collect();
            !wanted.is_empty() && !wanted.into_iter().any(|head| has_room(*head, *machine))
        };
        let free = (0..self.offers.len()).filter(is_stranded).map(|machine| self.unreserved(machine));
        (!heads.is_empty()).then(|| sum(free, self.capacity.len()))
    }
}
