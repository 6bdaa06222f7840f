//! Scopes: the machines that a task set may start on, by label and location.
//!
//! A scope is a class of machines (by a label expression) at a node of the locality tree. Each scope has a [`Line`] of blocked queues, so
//! that a freed machine is offered only to the lines of its own node, its rack, its room and the cluster (Zhang et al., VLDB 2014, section
//! 3.1).
//!
//! Within a round, the free amounts of freed machines are copied into [`Offers`] of the active scopes and updated after each launch. A
//! scope is searched again only if its line or its offers have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::ids::{QueueId, ScopeId};
use super::line::{Line, LineKey, Offers};
use crate::cluster::{ClassId, Cluster, LabelIndex, Location, Machines, WHOLE};
use crate::record::Locality;
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::units::{MachineId, Resources};
use plimsoll_base::visit_values;

/// A scope and the blocked queues that wait for it.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Scope {
    /// Restricts the scope to machines of this class.
    pub class: Option<ClassId>,
    /// Restricts the scope to machines at this location.
    pub location: Location,
    /// Blocked queues: their next task fits no machine of the scope.
    waiting: Line,
    /// The free amounts of its machines that were freed before this round.
    offers: Offers,
    /// The first queue that fits one of these machines, as of the last search.
    first: Option<(LineKey, QueueId)>,
    /// Whether line or offers have changed since the last search.
    stale: bool,
}

/// Distinct machine capacities, and the number of machines of each.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Kinds {
    kinds: Vec<(Resources, u64)>,
    /// Resources that consist of devices.
    devices: Vec<usize>,
}

impl Kinds {
    pub fn new(mut sorted: Vec<Resources>, devices: &[usize]) -> Kinds {
        sorted.sort_unstable_by_key(|machine| machine.0);
        let kinds = sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        Kinds { kinds, devices: devices.to_vec() }
    }

    /// Returns the number of tasks with this need that fit together on the empty machines, at most `enough`.
    pub fn room(&self, need: &Resources, enough: u64) -> u64 {
        // Most task sets need room for one task, and a comparison is much cheaper than a division.
        if enough == 1 {
            return u64::from(self.kinds.iter().any(|(kind, _)| need.fits(kind)));
        }
        let mut room = 0u64;
        for (kind, machines) in &self.kinds {
            let parts = self.devices.iter().filter(|d| (1..WHOLE).contains(&need.0[**d]));
            // The remainders of two devices cannot be combined for one task.
            let parts = parts.map(|d| kind.0[*d] / WHOLE * (WHOLE / need.0[*d])).min().unwrap_or(u64::MAX);
            room = room.saturating_add(times(&kind.0, &need.0).min(parts).min(enough).saturating_mul(*machines));
            if room >= enough {
                return enough;
            }
        }
        room
    }
}

/// Returns how many times a need fits into free amounts.
pub fn times(free: &[u64], need: &[u64]) -> u64 {
    free.iter().zip(need).filter(|(_, need)| **need > 0).map(|(free, need)| free / need).min().unwrap_or(u64::MAX)
}

/// The empty machines of a scope. A task that does not fit any empty machine never starts.
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Empty {
    /// The capacities through the policy's lens.
    pub seen: Kinds,
    /// The true capacities. `None` only if they equal those in `seen`.
    pub real: Option<Kinds>,
}

/// All scopes that were requested so far.
pub struct Scopes {
    scopes: Vec<Scope>,
    known: BTreeMap<(Option<ClassId>, Location), ScopeId>,
    /// Scopes by location.
    at: HashMap<Location, Vec<ScopeId>>,
    labels: LabelIndex,
    cluster: Arc<Cluster>,
    /// Classes by the source's labels.
    classes: HashMap<u32, ClassId>,
    /// Whether machines change their labels during the run.
    relabels: bool,
    /// Resources that consist of devices.
    devices: Vec<usize>,
    /// Empty machines by scope, computed at the first request.
    empty: Vec<Option<Empty>>,
    /// Scopes with a freed machine and blocked queues at the beginning of this round.
    active: Vec<ScopeId>,
}

impl Scopes {
    /// Creates the scope of the whole cluster; `devices` are the resources that consist of devices.
    pub fn new(cluster: Arc<Cluster>, devices: Vec<usize>, whole: Empty) -> Scopes {
        let dims = cluster.dims.len();
        let mut scopes = Scopes {
            scopes: Vec::new(),
            known: BTreeMap::new(),
            at: HashMap::new(),
            labels: cluster.labels.clone(),
            classes: HashMap::new(),
            relabels: cluster.events.relabel(),
            cluster,
            devices,
            empty: vec![Some(whole)],
            active: Vec::new(),
        };
        scopes.scope(None, Location::Cluster, dims);
        scopes
    }

    /// Returns the class of the machines that carry a label of the source. Errors: the problem with the label.
    pub fn class(&mut self, label: u32, text: &str) -> Result<ClassId, String> {
        if let Some(class) = self.classes.get(&label) {
            return Ok(*class);
        }
        let class = self.labels.class(text)?;
        self.classes.insert(label, class);
        Ok(class)
    }

    /// Returns a location of the source. Errors: the problem with the location.
    pub fn location(&self, text: &str) -> Result<Location, String> {
        self.cluster.locations.find(text)
    }

    /// Returns the scope of a class at a location; creates it if necessary.
    pub fn scope(&mut self, class: Option<ClassId>, location: Location, dims: usize) -> ScopeId {
        if class.is_none() && location == Location::Cluster && !self.scopes.is_empty() {
            return ScopeId::WHOLE;
        }
        if let Some(scope) = self.known.get(&(class, location)) {
            return *scope;
        }
        let scope = ScopeId(self.scopes.len() as u32);
        let (waiting, offers) = (Line::new(dims), Offers::new(dims));
        self.scopes.push(Scope { class, location, waiting, offers, first: None, stale: false });
        self.known.insert((class, location), scope);
        self.at.entry(location).or_default().push(scope);
        scope
    }

    /// Returns the same scope without this machine if `barred`, and with it otherwise.
    pub fn bar(&mut self, scope: ScopeId, machine: MachineId, barred: bool, dims: usize) -> ScopeId {
        let Scope { class, location, .. } = self.scopes[scope.index()];
        let mut but = class.map(|class| self.labels.but(class).clone()).unwrap_or_default();
        if barred {
            but.insert(machine);
        } else {
            but.remove(&machine);
        }
        let class = self.labels.all_but(class, but);
        self.scope(Some(class), location, dims)
    }

    /// Returns the next wider scope: the same class, one level up. Returns `None` for the whole cluster.
    pub fn up(&mut self, scope: ScopeId, dims: usize) -> Option<ScopeId> {
        let Scope { class, location, .. } = self.scopes[scope.index()];
        let up = self.cluster.locations.up(location)?;
        Some(self.scope(class, up, dims))
    }

    /// Returns the widest scope that tasks of this scope fall back to.
    pub fn widest(&mut self, scope: ScopeId, dims: usize) -> ScopeId {
        std::iter::successors(Some(scope), |scope| self.up(*scope, dims)).last().unwrap_or(scope)
    }

    /// Returns the scope of an id.
    pub fn get(&self, scope: ScopeId) -> &Scope {
        &self.scopes[scope.index()]
    }

    /// Returns the label expression of a scope, if it has one, as a trace wrote it.
    pub fn label(&self, scope: ScopeId) -> Option<&str> {
        self.labels.text(self.scopes[scope.index()].class?)
    }

    /// Puts a queue in the line of a scope.
    pub fn enqueue(&mut self, scope: ScopeId, place: LineKey, queue: QueueId, need: &[u64]) {
        let scope = &mut self.scopes[scope.index()];
        scope.waiting.insert(place, queue, need);
        scope.stale = true;
    }

    /// Removes the queue at a position from the line of a scope.
    pub fn leave(&mut self, scope: ScopeId, place: &LineKey) {
        let scope = &mut self.scopes[scope.index()];
        scope.waiting.remove(place);
        scope.stale = true;
    }

    /// Returns whether a machine is in a scope now.
    pub fn contains(&self, scope: ScopeId, machine: MachineId) -> bool {
        let Scope { class, location, .. } = &self.scopes[scope.index()];
        class.is_none_or(|class| self.labels.members(class).contains(machine))
            && self.cluster.locations.contains(*location, machine)
    }

    /// Returns a machine of a scope with these amounts free, chosen by the placement rule.
    pub fn find(&self, machines: &mut Machines, scope: ScopeId, need: &[u64]) -> Option<MachineId> {
        if scope == ScopeId::WHOLE {
            return machines.find(need);
        }
        let Scope { class, location, .. } = &self.scopes[scope.index()];
        let class = class.map(|class| self.labels.members(class));
        machines.find_at(need, class, &self.cluster.locations, *location)
    }

    /// Returns the empty machines of a scope. If machines change their labels during the run, the class is ignored, because any machine of
    /// the location may get the labels.
    pub fn empty(&mut self, scope: ScopeId, offers: &[Resources], capacities: &[Resources]) -> &Empty {
        if self.empty.len() <= scope.index() {
            self.empty.resize_with(self.scopes.len(), || None);
        }
        self.empty[scope.index()].get_or_insert_with(|| {
            let Scope { class, location, .. } = self.scopes[scope.index()];
            let class = class.filter(|_| !self.relabels).map(|class| self.labels.members(class));
            let inside = |machine: &MachineId| {
                class.is_none_or(|class| class.contains(*machine))
                    && self.cluster.locations.contains(location, *machine)
            };
            let members: Vec<MachineId> = (0..offers.len() as u32).map(MachineId).filter(inside).collect();
            let kinds = |of: &[Resources]| {
                Kinds::new(members.iter().map(|machine| of[machine.index()]).collect(), &self.devices)
            };
            Empty { seen: kinds(offers), real: Some(kinds(capacities)) }
        })
    }

    /// Returns the locality of a machine relative to a location; `None` for the whole cluster.
    pub fn reach(&self, home: Location, machine: MachineId) -> Option<Locality> {
        if home == Location::Cluster {
            return None;
        }
        let mut levels = std::iter::successors(Some(home), |location| self.cluster.locations.up(*location));
        let met =
            levels.find(|location| self.cluster.locations.contains(*location, machine)).unwrap_or(Location::Cluster);
        match (home, met) {
            (home, met) if home == met => Some(Locality::There),
            (_, Location::Rack(_)) => Some(Locality::Rack),
            (_, Location::Room(_)) => Some(Locality::Room),
            (_, Location::Machine(_) | Location::Cluster) => Some(Locality::Elsewhere),
        }
    }

    /// Returns the machines that carry each label now.
    pub fn labels(&self) -> &LabelIndex {
        &self.labels
    }

    /// Replaces the labels of a machine.
    pub fn relabel(&mut self, machine: MachineId, labels: &[String]) {
        self.labels.relabel(machine, labels);
    }

    /// Returns whether there is a single scope, and no queue is blocked in it. Freed machines do not matter then.
    pub fn has_no_blocked(&self) -> bool {
        matches!(self.scopes.as_slice(), [whole] if whole.waiting.is_empty())
    }

    /// Records the free amounts of freed machines, by scope, for this round.
    pub fn offer(&mut self, freed: &[MachineId], machines: &Machines) {
        if self.scopes.len() == 1 {
            self.active.extend((!freed.is_empty()).then_some(ScopeId::WHOLE));
        } else {
            for &machine in freed {
                let mut location = Some(Location::Machine(machine));
                while let Some(here) = location {
                    self.active.extend(self.at.get(&here).into_iter().flatten());
                    location = self.cluster.locations.up(here);
                }
            }
        }
        let mut active = std::mem::take(&mut self.active);
        active.retain(|scope| !self.scopes[scope.index()].waiting.is_empty());
        active.sort_unstable();
        active.dedup();
        for &scope in &active {
            let mut offers = std::mem::take(&mut self.scopes[scope.index()].offers);
            offers.read(freed.iter().copied().filter(|machine| self.contains(scope, *machine)), machines);
            let scope = &mut self.scopes[scope.index()];
            (scope.offers, scope.stale) = (offers, true);
        }
        self.active = active;
    }

    /// Ends the round: no scope is active until the next call of [`Scopes::offer`].
    pub fn round_over(&mut self) {
        self.active.clear();
    }

    /// Updates the free amounts of a machine after a launch.
    pub fn less(&mut self, machine: MachineId, machines: &Machines) {
        for scope in &self.active {
            let Scope { waiting, offers, stale, .. } = &mut self.scopes[scope.index()];
            *stale |= offers.less(machine, machines, waiting.classes());
        }
    }

    /// Updates the free amounts of all freed machines.
    pub fn all_less(&mut self, machines: &Machines) {
        for scope in &self.active {
            let Scope { offers, stale, .. } = &mut self.scopes[scope.index()];
            offers.read_again(machines);
            *stale = true;
        }
    }

    /// Returns the first blocked queue at or after `from` that fits a freed machine.
    pub fn search(&mut self, from: Option<&LineKey>) -> Option<(LineKey, QueueId)> {
        let mut first: Option<(LineKey, QueueId)> = None;
        for scope in &self.active {
            let scope = &mut self.scopes[scope.index()];
            if scope.stale || scope.first.is_some_and(|(place, _)| from.is_some_and(|from| place < *from)) {
                scope.offers.bound(scope.waiting.classes());
                scope.first = scope.waiting.first_fitting(from, &scope.offers);
                scope.stale = false;
            }
            first = first.into_iter().chain(scope.first).min();
        }
        first
    }

    /// Returns the first of all blocked queues.
    pub fn first(&self) -> Option<(LineKey, QueueId)> {
        self.scopes.iter().filter_map(|scope| scope.waiting.first()).min()
    }

    /// Returns all blocked queues.
    pub fn blocked(&self) -> Vec<QueueId> {
        self.scopes.iter().flat_map(|scope| scope.waiting.queues()).collect()
    }
}

impl Checkpoint for Scopes {
    fn visit(&mut self, visitor: &mut Visitor) -> plimsoll_base::error::Result<()> {
        let Scopes { scopes, known, at, labels, cluster: _, classes, relabels: _, devices: _, empty, active } = self;
        visit_values!(visitor; scopes, known, at, labels, classes, empty, active);
        Ok(())
    }
}
