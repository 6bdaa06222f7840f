//! Machines: the free amounts of each, and the search for one that a task fits on, by a [`Placement`] rule.
//!
//! The index serves first-fit; the other rules have a guide beside it that knows where good
//! machines are. A pooled cluster is one machine. Machines may come and go: one that was removed fits nothing, and
//! tasks that still run on it give their room back as usual.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::climb::Climb;
use super::devices::{DevicePart, Hardware};
use super::fragmentation::Fragmentation;
use super::grid::Grid;
use super::index::{Index, id};
use super::location::{Location, Locations};
use super::rules::Placement;
use super::scope::{MachineSet, Scope};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources};

/// How often random placement draws before it counts.
const DRAWS: u32 = 32;

/// The searches for a machine besides the index.
#[derive(Clone, Debug)]
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
}

/// The free amounts of every machine.
#[derive(Clone, Debug)]
pub struct Machines {
    pub(super) index: Index,
    pub(super) guide: Guide,
    capacities: Vec<Resources>,
    pub(super) hardware: Option<Box<Hardware>>,
}

impl Machines {
    /// Machines with these capacities, all of them free; the caller pools them first for [`Placement::Pooled`].
    ///
    /// [`Placement::Random`] draws from a stream of its own unless [`Machines::draw_from`] gives another.
    pub fn new(dims: usize, placement: Placement, capacities: &[Resources]) -> Machines {
        let index = Index::new(dims, capacities);
        let guide = (placement.row().guide)(&index, capacities);
        Machines { index, guide, capacities: capacities.to_vec(), hardware: None }
    }

    /// The stream that [`Placement::Random`] draws from; other rules draw nothing.
    pub fn draw_from(&mut self, stream: ChaCha8Rng) {
        if let Guide::Draw(rng) = &mut self.guide {
            *rng = stream;
        }
    }

    /// Machines with identified devices; one entry per machine, all free, as the machines are.
    ///
    /// From now on a task fits a machine only if devices have room too. Panics: when there are not as many machines.
    pub fn with_hardware(mut self, hardware: Hardware) -> Machines {
        assert_eq!(hardware.machines(), self.len(), "a machine for every machine");
        self.hardware = Some(Box::new(hardware));
        self
    }

    /// The devices, if they have identities.
    pub fn hardware(&self) -> Option<&Hardware> {
        self.hardware.as_deref()
    }

    /// Chooses and takes devices for a task after its amounts were taken on a machine where it fits; nothing where
    /// devices have no identities or the task needs none. Give them back with [`Machines::release`].
    pub fn assign(&mut self, machine: MachineId, need: &[u64]) -> Vec<DevicePart> {
        let Some(hardware) = &mut self.hardware else { return Vec::new() };
        let descend = matches!(self.guide, Guide::Descend);
        let parts = hardware.pick(&self.index, machine.index(), need, descend);
        hardware.allocate(machine.index(), &parts);
        parts
    }

    /// Gives devices back, beside the amounts of [`Machines::give`].
    pub fn release(&mut self, machine: MachineId, parts: &[DevicePart]) {
        if let Some(hardware) = &mut self.hardware {
            hardware.give(machine.index(), parts);
        }
    }

    /// How much of the free devices is useless to the mix of tasks; `None` without devices or a mix.
    pub fn fragmentation(&self) -> Option<Fragmentation> {
        self.hardware.as_ref()?.fragmentation(&self.index)
    }

    /// The free amounts of a machine in every dimension; those it would have if it is not there now.
    pub fn free(&self, machine: MachineId) -> Resources {
        self.index.free(machine.index())
    }

    /// The capacity of a machine.
    pub fn capacity(&self, machine: MachineId) -> &Resources {
        &self.capacities[machine.index()]
    }

    /// The number of machines, including those that left.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a machine is there: it has not been removed.
    pub fn is_present(&self, machine: MachineId) -> bool {
        self.index.is_present(machine.index())
    }

    /// Whether a request fits a machine now; never on one that is not there.
    pub fn fits(&self, machine: MachineId, need: &[u64]) -> bool {
        let m = machine.index();
        self.index.fits(m, need) && self.hardware.as_ref().is_none_or(|hardware| hardware.fits(m, need))
    }

    /// Takes room on a machine. Panics: if there is not enough (the caller has just found it).
    pub fn allocate(&mut self, machine: MachineId, need: &[u64]) {
        self.index.allocate(machine.index(), need);
        self.forget(machine);
        match &mut self.guide {
            Guide::Grid(grid) => grid.counted(&self.index, machine.index(), 1, false),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    /// Gives room back, of `count` tasks.
    pub fn give(&mut self, machine: MachineId, need: &[u64], count: u32) {
        self.index.give(machine.index(), need, count);
        self.forget(machine);
        match &mut self.guide {
            Guide::Grid(grid) => grid.counted(&self.index, machine.index(), count, true),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    /// Reserves available room on a machine, without a task.
    pub fn reserve(&mut self, machine: MachineId, amount: &Resources) {
        self.index.allocate(machine.index(), amount.slice(self.index.dims()));
        self.moved_room(machine);
    }

    /// Gives reserved room back.
    pub fn give_reserved(&mut self, machine: MachineId, amount: &Resources) {
        self.index.give(machine.index(), amount.slice(self.index.dims()), 1);
        self.moved_room(machine);
    }

    fn moved_room(&mut self, machine: MachineId) {
        self.forget(machine);
        match &mut self.guide {
            Guide::Grid(grid) => grid.changed(&self.index, machine.index()),
            Guide::Climb(climb) => climb.changed(&self.index, machine.index()),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    fn forget(&mut self, machine: MachineId) {
        if let Some(hardware) = &mut self.hardware {
            hardware.gradients.changed(machine.index());
        }
    }

    /// Takes a machine out: nothing fits it any more. Tasks on it go on holding their room until they give it back.
    pub fn remove(&mut self, machine: MachineId) {
        self.index.show(machine.index(), false);
        self.moved(machine);
    }

    /// Puts a machine back, with this capacity; whatever still runs on it holds its part.
    ///
    /// Panics: when tasks that still run there hold more than the new capacity (end them first).
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

    /// Adds a machine; its identifier is the next one. Scores go on counting in shares of the cluster at the start.
    ///
    /// Panics: where devices have identities (list such machines from the start and [`Machines::remove`] them).
    pub fn add(&mut self, capacity: &Resources) -> MachineId {
        assert!(self.hardware.is_none(), "devices are listed from the start");
        let machine = self.index.len();
        self.capacities.push(*capacity);
        self.index.push(capacity);
        match &mut self.guide {
            Guide::Grid(grid) => grid.push(&self.index, machine),
            Guide::Climb(climb) => climb.weigh(&self.index, machine, capacity),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
        id(machine)
    }

    fn moved(&mut self, machine: MachineId) {
        match &mut self.guide {
            Guide::Grid(grid) => grid.changed(&self.index, machine.index()),
            Guide::Climb(climb) => climb.weigh(&self.index, machine.index(), &self.capacities[machine.index()]),
            Guide::First | Guide::Draw(_) | Guide::Descend => {}
        }
    }

    /// The machine for a task with this need, by the placement rule.
    pub fn find(&mut self, need: &[u64]) -> Option<MachineId> {
        self.find_within(need, Scope::default())
    }

    /// A machine for a process that takes no room: by the rule, but another than `last` if there is any. Nothing is drawn: with random
    /// placement it is the first.
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

    /// The same among the machines of a scope: of a class, of a place, or of both.
    ///
    /// Other machines are not visited, except by best-fit, where a class of more than one machine in 16 is tested machine by machine, and
    /// by random, which draws from all before it counts.
    pub fn find_within(&mut self, need: &[u64], scope: Scope<'_>) -> Option<MachineId> {
        if let (Guide::Descend, Some(hardware)) = (&self.guide, &mut self.hardware) {
            return hardware.descend(&self.index, need, scope).map(id);
        }
        let hardware = self.hardware.as_deref();
        let also = |machine: usize| hardware.is_none_or(|hardware| hardware.fits(machine, need));
        let found = match &mut self.guide {
            Guide::First | Guide::Descend => self.index.first(need, scope, also),
            Guide::Grid(grid) => grid.search(&self.index, need, scope, also),
            Guide::Climb(climb) => climb.search(&self.index, need, scope, also),
            Guide::Draw(rng) => draw(rng, &self.index, need, scope, also),
        };
        found.map(id)
    }

    /// The same at a location: the cluster, a room, a rack or one machine.
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

/// Any machine that fits, each with the same chance: of several draws among all machines the first that fits, and if all fail, a draw among
/// the machines that fit.
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
