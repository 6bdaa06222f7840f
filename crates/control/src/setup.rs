//! The common knowledge that no failure takes away: machines, applications and their roles.
//!
//! This is the hard state of the system (application descriptions are checkpointed when an application is submitted). A unit
//! of a role is a vector of resources, and so is the capacity of a machine, both as the scheduler reserves them.

use std::collections::HashMap;

use super::counts::Counts;
use super::rules::Rules;
use plimsoll_base::units::{MachineId, Resources};

/// When machines with failing workers are excluded: Fuxi's blacklist of several levels (Zhang et al., VLDB 2014). The thresholds are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blacklist {
    /// Failed workers of a role on a machine after which it is barred for the role.
    pub role: u32,
    /// Barred roles of an application after which the machine is barred for all of them, and blamed.
    pub app: u32,
    /// Blaming applications after which FuxiMaster grants nothing there.
    pub cluster: u32,
    /// The largest number of shunned machines.
    pub most: u32,
}

/// An application, in order of submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u32);

/// A role of an application, in order of submission over all applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleId(pub u32);

impl AppId {
    /// The identifier as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RoleId {
    /// The identifier as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A role: many equal workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The application that it belongs to.
    pub app: AppId,
    /// Whether its units may be taken only with the consent of its application master (an online service).
    pub stable: bool,
    /// The resources of one unit.
    pub unit: Resources,
    /// Its name in reports.
    pub name: String,
}

/// The description of a cluster and of the applications in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The capacity of each machine.
    pub machines: Vec<Resources>,
    /// Which rules are in force.
    pub rules: Rules,
    /// A departure from the source: of offline units above the request, the units in hints stay first. See `Master::adopt_caps`.
    pub order_by_hints: bool,
    /// When machines with failing workers are excluded; `None`: never.
    pub blacklist: Option<Blacklist>,
    roles: HashMap<RoleId, Role>,
    apps: HashMap<AppId, Vec<RoleId>>,
    /// The numbers of the next application and role.
    next: (u32, u32),
}

impl Setup {
    /// A cluster of machines without applications.
    pub fn new(machines: Vec<Resources>) -> Setup {
        Setup { machines, ..Setup::default() }
    }

    /// Adds an application without roles.
    pub fn add_app(&mut self) -> AppId {
        let app = AppId(self.next.0);
        self.next.0 += 1;
        self.apps.insert(app, Vec::new());
        app
    }

    /// Adds a role to an application. Panics: when there is no such application.
    pub fn add_role(&mut self, role: Role) -> RoleId {
        let id = RoleId(self.next.1);
        self.next.1 += 1;
        self.apps.get_mut(&role.app).expect("roles belong to applications").push(id);
        self.roles.insert(id, role);
        id
    }

    /// Forgets an application that is over.
    pub fn remove_app(&mut self, app: AppId) {
        for role in self.apps.remove(&app).unwrap_or_default() {
            self.roles.remove(&role);
        }
    }

    /// Whether an application is known.
    pub fn knows(&self, app: AppId) -> bool {
        self.apps.contains_key(&app)
    }

    /// The roles of an application, in order.
    pub fn roles_of(&self, app: AppId) -> impl Iterator<Item = RoleId> + use<'_> {
        self.apps.get(&app).into_iter().flatten().copied()
    }

    /// The role behind an identifier, if its application is not over.
    pub fn find(&self, role: RoleId) -> Option<&Role> {
        self.roles.get(&role)
    }

    /// The same. Panics: when its application is over.
    pub fn role(&self, role: RoleId) -> &Role {
        &self.roles[&role]
    }

    /// Its name, in reports.
    pub fn name(&self, role: RoleId) -> &str {
        self.find(role).map_or("a role that is over", |role| &role.name)
    }

    /// All machines.
    pub fn machine_ids(&self) -> impl Iterator<Item = MachineId> + use<> {
        (0..self.machines.len() as u32).map(MachineId)
    }

    /// All applications that are not over, in order.
    pub fn app_ids(&self) -> Vec<AppId> {
        let mut apps: Vec<AppId> = self.apps.keys().copied().collect();
        apps.sort_unstable();
        apps
    }

    /// All roles that are not over, in order.
    pub fn role_ids(&self) -> Vec<RoleId> {
        let mut roles: Vec<RoleId> = self.roles.keys().copied().collect();
        roles.sort_unstable();
        roles
    }

    /// The resources of some units together.
    pub fn size_of(&self, units: &Counts) -> Resources {
        let known = units.iter().filter_map(|(role, count)| Some((self.find(role)?.unit, count)));
        known.fold(Resources::ZERO, |sum, (unit, count)| plus(&sum, &unit, count))
    }
}

/// Adds `count` units to an amount.
pub fn plus(amount: &Resources, unit: &Resources, count: u32) -> Resources {
    let mut sum = *amount;
    sum.0.iter_mut().zip(unit.0).for_each(|(sum, each)| *sum += each * u64::from(count));
    sum
}

/// Subtracts `count` units from an amount, down to 0.
pub fn minus(amount: &Resources, unit: &Resources, count: u32) -> Resources {
    let mut rest = *amount;
    rest.0.iter_mut().zip(unit.0).for_each(|(rest, each)| *rest = rest.saturating_sub(each * u64::from(count)));
    rest
}

/// How many units fit in an amount, at most `most`.
pub fn fitting(amount: &Resources, unit: &Resources, most: u32) -> u32 {
    let times = amount.0.iter().zip(unit.0).filter(|(_, each)| *each > 0).map(|(amount, each)| amount / each);
    times.min().map_or(most, |times| times.min(u64::from(most)) as u32)
}
