//! The free amounts of freed machines, and the classes of demands for the search of a [`Line`].
//!
//! [`Classes`] groups demands that differ mainly in the leading resource. For each class, [`Offers`] stores a bound of that resource, over
//! the machines that reach the floor of the class. A search compares a demand with the bound of its class first, and with single machines
//! only if the bound allows it.

use super::line::Line;
use crate::cluster::Machines;
use plimsoll_base::units::MachineId;

/// The maximum number of demand classes of a line.
pub const CLASSES: usize = 16;

/// Classes of demands, each with a floor: its members need at least this amount of every resource but the leading one.
///
/// The first sixteen combinations become classes of equal demands. Any further combination joins the class with the highest floor that it
/// reaches.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The resource that distinguishes members of a class.
    pub lead: usize,
    /// The floors, one after the other; the leading resource's amount is 0.
    floors: Vec<u64>,
    dims: usize,
    /// The number of times that a floor was added or lowered.
    version: u64,
}

impl Classes {
    pub fn new(dims: usize) -> Classes {
        // The leading resource is memory, which has more different values than cores or devices have.
        Classes { lead: usize::from(dims > 1), floors: Vec::new(), dims, version: 0 }
    }

    fn floors(&self) -> impl Iterator<Item = &[u64]> {
        self.floors.chunks_exact(self.dims)
    }

    /// Returns the class of a demand; adds or lowers a floor if necessary.
    pub fn class_of(&mut self, need: &[u64]) -> u8 {
        let others = |d: &usize| *d != self.lead;
        let is = |floor: &[u64]| (0..need.len()).filter(others).all(|d| floor[d] == need[d]);
        let known = self.floors().position(is);
        let len = self.floors.len() / self.dims;
        let class = match known {
            Some(class) => class,
            None if len < CLASSES => {
                self.floors.extend((0..need.len()).map(|d| if d == self.lead { 0 } else { need[d] }));
                self.version += 1;
                len
            }
            None => self.highest_reached(need).unwrap_or_else(|| self.lower(need)),
        };
        class as u8
    }

    /// Returns the class with the highest floor that a demand reaches.
    fn highest_reached(&self, need: &[u64]) -> Option<usize> {
        let reached = self.floors().enumerate().filter(|(_, floor)| floor.iter().zip(need).all(|(f, n)| f <= n));
        reached.max_by_key(|(_, floor)| height(floor)).map(|(class, _)| class)
    }

    /// Lowers the lowest floor until a demand reaches it.
    fn lower(&mut self, need: &[u64]) -> usize {
        let lowest = self.floors().enumerate().min_by_key(|(_, floor)| height(floor)).map_or(0, |(class, _)| class);
        let floor = &mut self.floors[lowest * self.dims..][..self.dims];
        floor.iter_mut().zip(need).for_each(|(floor, need)| *floor = (*floor).min(*need));
        self.version += 1;
        lowest
    }
}

/// Returns the sum of the binary logarithms, since amounts of different resources are not comparable.
fn height(floor: &[u64]) -> u32 {
    floor.iter().map(|amount| u64::BITS - amount.leading_zeros()).sum()
}

/// The free amounts of freed machines.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    machines: Vec<MachineId>,
    /// The amounts, one machine after the other.
    free: Vec<u64>,
    dims: usize,
    /// For each class of the line, one more than the largest amount of the leading resource among machines that reach the floor; 0 if no
    /// machine does.
    bounds: Vec<u64>,
    /// The version of the classes for which the bounds were computed.
    version: u64,
}

impl Offers {
    /// Creates offers without machines, for demands of this number of dimensions.
    pub fn new(dims: usize) -> Offers {
        Offers { dims, ..Offers::default() }
    }

    /// Creates offers of machines with these free amounts, for one search of a line.
    pub fn for_line(line: &Line, free: &[impl AsRef<[u64]>]) -> Offers {
        let classes = line.classes();
        let free = free.iter().flat_map(|free| free.as_ref().iter().copied()).collect();
        let mut offers = Offers { free, version: u64::MAX, ..Offers::new(classes.dims) };
        offers.bound(classes);
        offers
    }

    /// Reads the free amounts of these machines, which must be sorted.
    pub fn read(&mut self, freed: impl Iterator<Item = MachineId>, machines: &Machines) {
        self.machines.clear();
        self.machines.extend(freed);
        self.read_again(machines);
    }

    /// Reads the free amounts of the same machines again.
    pub fn read_again(&mut self, machines: &Machines) {
        self.free.clear();
        for &machine in &self.machines {
            self.free.extend_from_slice(machines.free(machine).slice(self.dims));
        }
        self.version = u64::MAX;
    }

    /// Updates a machine that has less free; returns whether it is one of these.
    pub fn less(&mut self, machine: MachineId, machines: &Machines, classes: &Classes) -> bool {
        let Ok(at) = self.machines.binary_search(&machine) else { return false };
        let free = &mut self.free[at * self.dims..][..self.dims];
        let before = free[classes.lead];
        free.copy_from_slice(machines.free(machine).slice(self.dims));
        // Bounds of classes added since are computed before the next search.
        for (known, floor) in self.bounds.iter_mut().zip(classes.floors()) {
            if *known == before + 1 {
                *known = bound(&self.free, classes.lead, floor);
            }
        }
        true
    }

    /// Computes the bounds for a line, unless its classes are unchanged since the last computation.
    pub fn bound(&mut self, classes: &Classes) {
        if self.version != classes.version {
            self.bounds.clear();
            self.bounds.extend(classes.floors().map(|floor| bound(&self.free, classes.lead, floor)));
            self.version = classes.version;
        }
    }

    /// Returns whether a machine may have room for a demand of a class with this need of the leading resource. The answer is exact if all
    /// members of the class need equal amounts of the other resources.
    pub fn may_fit(&self, class: u8, lead: u64) -> bool {
        lead < self.bounds[usize::from(class)]
    }

    /// Returns whether a machine may have room for a demand with at least these needs by class.
    pub fn may_fit_any(&self, least: &[u64; CLASSES]) -> bool {
        self.bounds.iter().zip(least).any(|(bound, least)| least < bound)
    }

    /// Returns whether one machine has room for the whole demand.
    pub fn fit(&self, need: impl Iterator<Item = u64> + Clone) -> bool {
        self.free.chunks_exact(self.dims).any(|free| free.iter().zip(need.clone()).all(|(free, need)| need <= *free))
    }
}

/// Returns one more than the largest amount of the leading resource among machines that reach a floor; 0 without such machines.
fn bound(free: &[u64], lead: usize, floor: &[u64]) -> u64 {
    let reach = free.chunks_exact(floor.len()).filter(|free| free.iter().zip(floor).all(|(free, floor)| floor <= free));
    reach.map(|free| free[lead].saturating_add(1)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Placement;
    use crate::engine::{LineKey, QueueId};
    use crate::policy::Rank;
    use plimsoll_base::units::Resources;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Runs rounds that fill freed machines, while queues leave the line and join it again before or after others: with few values, where
    /// every demand is a class, and with more values than classes.
    #[test]
    fn what_is_kept_up_to_date_finds_what_a_scan_finds() {
        for (seed, dims, values) in [(1, 2, 6), (2, 2, 60), (3, 3, 30), (4, 1, 9)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let capacities = vec![Resources([40; plimsoll_base::units::MAX_DIMS]); 50];
            let (mut line, mut offers) = (Line::new(dims), Offers::new(dims));
            let mut waiting: Vec<(LineKey, QueueId, Vec<u64>)> = Vec::new();
            let (mut found, mut next) = (0, 0);
            for _ in 0..400 {
                let mut machines = Machines::new(dims, Placement::FirstFit, &capacities);
                let freed: Vec<MachineId> = (0..50).map(MachineId).filter(|_| rng.random_ratio(1, 5)).collect();
                for &machine in &freed {
                    let taken: Vec<u64> = (0..dims).map(|_| rng.random_range(0..=40)).collect();
                    machines.allocate(machine, &taken);
                }
                offers.read(freed.iter().copied(), &machines);
                for _ in 0..rng.random_range(0..40) {
                    match rng.random_range(0..4) {
                        0 if !waiting.is_empty() => {
                            let at = rng.random_range(0..waiting.len());
                            line.remove(&waiting.swap_remove(at).0);
                        }
                        1 if !freed.is_empty() => {
                            let machine = freed[rng.random_range(0..freed.len())];
                            let part: Vec<u64> =
                                (0..dims).map(|d| rng.random_range(0..=machines.free(machine).0[d])).collect();
                            machines.allocate(machine, &part);
                            assert!(offers.less(machine, &machines, line.classes()));
                        }
                        _ => {
                            next += 1;
                            let rank = Rank::new(rng.random_range(0..8));
                            let place = LineKey { rank, tie: next, ..LineKey::default() };
                            let need: Vec<u64> = (0..dims).map(|_| rng.random_range(0..values)).collect();
                            line.insert(place, QueueId(next as u32), &need);
                            waiting.push((place, QueueId(next as u32), need));
                        }
                    }
                    offers.bound(line.classes());
                    let fits = |need: &[u64]| freed.iter().any(|machine| machines.fits(*machine, need));
                    let scan =
                        waiting.iter().filter(|(.., need)| fits(need)).min().map(|(place, queue, _)| (*place, *queue));
                    assert_eq!(line.first_fitting(None, &offers), scan);
                    found += usize::from(scan.is_some());
                }
            }
            assert!(found > 500, "{found}");
        }
    }
}
