//! Machines: the free amounts of each, and the search for a machine with room for a task by a [`Placement`] rule.
//!
//! The index serves first-fit; every other rule has a `Guide` with the additional data of its search. A pooled cluster is one machine.
//! Machines may leave and join: a removed machine fits no task, and tasks that still run on it release their room as usual.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::climb::Climb;
use super::devices::{DevicePart, Hardware};
use super::fragmentation::Fragmentation;
use super::grid::Grid;
use super::index::{Index, id};
use super::kss::{Kss, KssRule};
use super::location::{Location, Locations};
use super::rules::Placement;
use super::scope::{MachineSet, Scope};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources};

/// Number of draws of random placement; if no drawn machine fits, the machines that fit are enumerated.
const DRAWS: u32 = 32;

/// The data of a placement rule's search besides the index.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) enum Guide {
    /// The index alone.
    First,
    /// Best-fit, worst-fit and spread.
    Grid(Grid),
    /// Dot-product.
    Climb(Climb),
    /// Random.
    Draw(ChaCha8Rng),
    /// Fragmentation gradient descent.
    Descend,
    /// The rules of KSS.
    Kss(Box<Kss>),
}

impl Guide {
    /// Creates the search of a rule of KSS.
    pub fn kss(rule: KssRule) -> Guide {
        Guide::Kss(Box::new(Kss::new(rule)))
    }

    /// Creates the search of a rule of KSS with scores that keep their decimals.
    pub fn kss_exact(rule: KssRule) -> Guide {
        Guide::Kss(Box::new(Kss::exact(rule)))
    }
}

/// The free amounts of every machine.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Machines {
    pub(super) index: Index,
    pub(super) guide: Guide,
    capacities: Vec<Resources>,
    pub(super) hardware: Option<Box<Hardware>>,
}

impl Machines {
    /// Creates machines with these capacities, all free. For [`Placement::Pooled`] the caller passes one machine with the sum of all
    /// capacities.
    ///
    /// [`Placement::Random`] draws from a default stream unless [`Machines::draw_from`] sets another.
    pub fn new(dims: usize, placement: Placement, capacities: &[Resources]) -> Machines {
        let index = Index::new(dims, capacities);
        let guide = (placement.row().guide)(&index, capacities);
        Machines { index, guide, capacities: capacities.to_vec(), hardware: None }
    }

    /// Sets the stream that [`Placement::Random`] and [`Placement::KssRandom`] draw from; other rules draw nothing.
    pub fn draw_from(&mut self, stream: ChaCha8Rng) {
        match &mut self.guide {
            Guide::Draw(rng) => *rng = stream,
            Guide::Kss(kss) => kss.rng = Some(stream),
            _ => {}
        }
    }

    /// Adds identified devices to the machines; `hardware` has one entry per machine, with all devices free.
    ///
    /// From now on a task fits a machine only if its devices have room too. Panics: if `hardware` has another number of machines.
    pub fn with_hardware(mut self, hardware: Hardware) -> Machines {
        assert_eq!(hardware.machines(), self.len(), "a machine for every machine");
        self.hardware = Some(Box::new(hardware));
        self
    }

    /// Returns the devices, if they have identities.
    pub fn hardware(&self) -> Option<&Hardware> {
        self.hardware.as_deref()
    }

    /// Chooses and allocates devices for a task after its amounts were allocated on a machine where it fits. Returns an empty list if
    /// devices have no identities or the task needs none. [`Machines::release`] frees the devices again.
    pub fn assign(&mut self, machine: MachineId, need: &[u64]) -> Vec<DevicePart> {
        let Some(hardware) = &mut self.hardware else { return Vec::new() };
        let descend = matches!(self.guide, Guide::Descend);
        let device = match &mut self.guide {
            Guide::Kss(kss) => kss.device(&self.index, hardware, machine.index(), need),
            _ => None,
        };
        let parts = hardware.pick(&self.index, machine.index(), need, descend, device);
        hardware.allocate(machine.index(), &parts);
        self.forget(machine);
        parts
    }

    /// Releases devices, in addition to the amounts of [`Machines::give`].
    pub fn release(&mut self, machine: MachineId, parts: &[DevicePart]) {
        if let Some(hardware) = &mut self.hardware {
            hardware.give(machine.index(), parts);
            self.forget(machine);
        }
    }

    /// Returns the part of the free devices that is unusable for the mix of tasks; `None` without devices or a mix.
    pub fn fragmentation(&self) -> Option<Fragmentation> {
        self.hardware.as_ref()?.fragmentation(&self.index)
    }

    /// Returns the free amounts of a machine in every dimension; for an absent machine, the amounts that it would have free if it were
    /// present.
    pub fn free(&self, machine: MachineId) -> Resources {
        self.index.free(machine.index())
    }

    /// Returns the capacity of a machine.
    pub fn capacity(&self, machine: MachineId) -> &Resources {
        &self.capacities[machine.index()]
    }

    /// Returns the number of machines, including those that have left.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether there are no machines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether a machine is present, so that tasks may start on it.
    pub fn is_present(&self, machine: MachineId) -> bool {
        self.index.is_present(machine.index())
    }

    /// Returns whether a request fits a machine now; never on an absent one.
    pub fn fits(&self, machine: MachineId, need: &[u64]) -> bool {
        let m = machine.index();
        self.index.fits(m, need) && self.hardware.as_ref().is_none_or(|hardware| hardware.fits(m, need))
    }

    /// Allocates the room of a task on a machine. Panics: if there is not enough. The caller has just found the machine.
    pub fn allocate(&mut self, machine: MachineId, need: &[u64]) {
        self.index.allocate(machine.index(), need);
        self.forget(machine);
        let devices = self.devices(need);
        match &mut self.guide {
            Guide::Grid(grid) => grid.counted(&self.index, machine.index(), 1, false),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::Kss(kss) => kss.counted(machine.index(), devices, 1, false),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    /// Releases the room of `count` tasks.
    pub fn give(&mut self, machine: MachineId, need: &[u64], count: u32) {
        self.index.give(machine.index(), need, count);
        self.forget(machine);
        let devices = self.devices(need);
        match &mut self.guide {
            Guide::Grid(grid) => grid.counted(&self.index, machine.index(), count, true),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::Kss(kss) => kss.counted(machine.index(), devices, count, true),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    /// Reserves free amounts of a machine without a task.
    pub fn reserve(&mut self, machine: MachineId, amount: &Resources) {
        self.index.allocate(machine.index(), amount.slice(self.index.dims()));
        self.moved_room(machine);
    }

    /// Releases reserved room.
    pub fn give_reserved(&mut self, machine: MachineId, amount: &Resources) {
        self.index.give(machine.index(), amount.slice(self.index.dims()), 1);
        self.moved_room(machine);
    }

    fn moved_room(&mut self, machine: MachineId) {
        self.forget(machine);
        match &mut self.guide {
            Guide::Grid(grid) => grid.changed(&self.index, machine.index()),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::First | Guide::Draw(_) | Guide::Descend | Guide::Kss(_) => {}
        }
    }

    /// Returns the thousandths of the first resource with devices in a demand.
    fn devices(&self, need: &[u64]) -> u64 {
        self.hardware.as_ref().and_then(|hardware| hardware.sets.first()).map_or(0, |set| need[set.dim])
    }

    fn forget(&mut self, machine: MachineId) {
        if let Guide::Kss(kss) = &mut self.guide {
            kss.changed(machine.index());
        }
        if let Some(hardware) = &mut self.hardware {
            hardware.gradients.changed(machine.index());
        }
    }

    /// Removes a machine: no further task fits it. Running tasks keep their room until they end.
    pub fn remove(&mut self, machine: MachineId) {
        self.index.show(machine.index(), false);
        self.moved(machine);
    }

    /// Restores a machine, with this capacity; tasks that still run on it keep their room.
    ///
    /// Panics: if tasks that still run on it occupy more than the new capacity; the caller must end them first.
    pub fn restore(&mut self, machine: MachineId, capacity: &Resources) {
        let m = machine.index();
        let mut free = self.index.free(m);
        for d in 0..self.index.dims() {
            let held = self.capacities[m].0[d] - free.0[d];
            free.0[d] = capacity.0[d].checked_sub(held).expect("the allocation of a machine fits its new capacity");
        }
        self.capacities[m] = *capacity;
        self.index.set(m, &free);
        self.index.show(m, true);
        self.moved(machine);
    }

    /// Adds a machine and returns its identifier, the next one. Scores still use the capacity of the cluster at the start.
    ///
    /// Panics: if devices have identities. Such machines must be listed from the start, and be absent ([`Machines::remove`]) until they
    /// join.
    pub fn add(&mut self, capacity: &Resources) -> MachineId {
        assert!(self.hardware.is_none(), "devices are listed from the start");
        let machine = self.index.len();
        self.capacities.push(*capacity);
        self.index.push(capacity);
        match &mut self.guide {
            Guide::Grid(grid) => grid.push(&self.index, machine),
            Guide::Climb(climb) => climb.weigh(&self.index, machine, capacity),
            Guide::First | Guide::Draw(_) | Guide::Descend | Guide::Kss(_) => {}
        }
        id(machine)
    }

    fn moved(&mut self, machine: MachineId) {
        match &mut self.guide {
            Guide::Grid(grid) => grid.changed(&self.index, machine.index()),
            Guide::Climb(climb) => climb.weigh(&self.index, machine.index(), &self.capacities[machine.index()]),
            Guide::First | Guide::Draw(_) | Guide::Descend | Guide::Kss(_) => {}
        }
    }

    /// Returns the machine for a task with this need, by the placement rule.
    pub fn find(&mut self, need: &[u64]) -> Option<MachineId> {
        self.find_within(need, Scope::default())
    }

    /// Returns a machine for a process that takes no room. The placement rule selects it, among machines other than `last` if there are
    /// any. No random number is drawn: with random placement it is the first machine.
    pub fn home(&mut self, last: Option<MachineId>) -> Option<MachineId> {
        let last = last.filter(|machine| self.is_present(*machine));
        if let Some(last) = last {
            self.remove(last);
        }
        let nothing = [0; MAX_DIMS];
        let nothing = &nothing[..self.index.dims()];
        let found = match &self.guide {
            Guide::Draw(_) => self.index.first(nothing, Scope::default(), |_| true).map(id),
            _ => self.find(nothing),
        };
        if let Some(last) = last {
            self.index.show(last.index(), true);
            self.moved(last);
        }
        found.or(last)
    }

    /// Returns the machine for a task among the machines of a scope: those of its class, of its area, or of both.
    ///
    /// Other machines are not visited, with two exceptions. In a scope of more than one machine in 16, best-fit, worst-fit, spread and
    /// dot-product search all machines and test each for membership. Random placement first draws from all machines, unless the scope is
    /// small, and then enumerates the machines that fit.
    pub fn find_within(&mut self, need: &[u64], scope: Scope<'_>) -> Option<MachineId> {
        if let (Guide::Descend, Some(hardware)) = (&self.guide, &mut self.hardware) {
            return hardware.descend(&self.index, need, scope).map(id);
        }
        if let (Guide::Kss(kss), Some(hardware)) = (&mut self.guide, &self.hardware) {
            return kss.find(&self.index, hardware, need, scope).map(id);
        }
        let hardware = self.hardware.as_deref();
        let also = |machine: usize| hardware.is_none_or(|hardware| hardware.fits(machine, need));
        let found = match &mut self.guide {
            Guide::First | Guide::Descend | Guide::Kss(_) => self.index.first(need, scope, also),
            Guide::Grid(grid) => grid.search(&self.index, need, scope, also),
            Guide::Climb(climb) => climb.search(&self.index, need, scope, also),
            Guide::Draw(rng) => draw(rng, &self.index, need, scope, also),
        };
        found.map(id)
    }

    /// Returns the machine for a task at a location: the cluster, a room, a rack or one machine.
    pub fn find_at(
        &mut self,
        need: &[u64],
        class: Option<&MachineSet>,
        locations: &Locations,
        location: Location,
    ) -> Option<MachineId> {
        if let Location::Machine(machine) = location {
            let admitted = class.is_none_or(|class| class.contains(machine));
            return Some(machine).filter(|machine| admitted && self.fits(*machine, need));
        }
        self.find_within(need, Scope { class, area: locations.area(location) })
    }
}

/// Returns a random machine that fits; each has the same probability. The result is the first fitting one of several draws among all
/// machines. If no drawn machine fits, it is a draw among the machines that fit.
fn draw(
    rng: &mut ChaCha8Rng,
    index: &Index,
    need: &[u64],
    scope: Scope<'_>,
    also: impl Fn(usize) -> bool,
) -> Option<usize> {
    let accepts = |machine: usize| scope.contains(id(machine)) && also(machine);
    if scope.at_most(index.len()) > index.len() / DRAWS as usize {
        for _ in 0..DRAWS {
            let machine = rng.random_range(0..index.len() as u32) as usize;
            if index.fits(machine, need) && accepts(machine) {
                return Some(machine);
            }
        }
    }
    let fitting: Vec<usize> = index.each(need, scope).filter(|machine| also(*machine)).collect();
    (!fitting.is_empty()).then(|| fitting[rng.random_range(0..fitting.len() as u32) as usize])
}
