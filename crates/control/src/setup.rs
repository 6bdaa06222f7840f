//! The description of a cluster: machines, applications and their roles. No failure destroys it.
//!
//! This is the hard state of the system (descriptions of applications are checkpointed at submission). A unit of a role is a vector of
//! resources, and so is the capacity of a machine, both as the scheduler reserves them.

use std::collections::HashMap;

use super::counts::Counts;
use super::rules::Rules;
use plimsoll_base::units::{MachineId, Resources};

/// Thresholds for the exclusion of machines with failing workers: Fuxi's blacklist of several levels (Zhang et al., VLDB 2014). The
/// thresholds are assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blacklist {
    /// The number of failed workers of a role on a machine after which the application master bars the machine for the role.
    pub role: u32,
    /// The number of roles that an application bars on a machine before it bars the machine for all roles and reports it to FuxiMaster.
    pub app: u32,
    /// The number of applications that must report a machine before FuxiMaster blacklists it.
    pub cluster: u32,
    /// The largest number of blacklisted machines.
    pub most: u32,
}

/// An application, in order of submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u32);

/// A role of an application, in order of submission over all applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleId(pub u32);

impl AppId {
    /// Returns the identifier as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RoleId {
    /// Returns the identifier as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A role: many equal workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The application of the role.
    pub app: AppId,
    /// Whether units may be revoked only with the consent of the application master (an online service).
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
    /// The rules in force.
    pub rules: Rules,
    /// Whether offline units in hints take precedence over other offline units if there are more units than requested. A departure from the
    /// source; see `Master::hinted`.
    pub order_by_hints: bool,
    /// The thresholds for the exclusion of machines with failing workers; `None`: machines are never excluded.
    pub blacklist: Option<Blacklist>,
    roles: HashMap<RoleId, Role>,
    apps: HashMap<AppId, Vec<RoleId>>,
    /// The numbers of the next application and role.
    next: (u32, u32),
}

impl Setup {
    /// Creates the description of a cluster without applications.
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

    /// Removes a completed application and its roles.
    pub fn remove_app(&mut self, app: AppId) {
        for role in self.apps.remove(&app).unwrap_or_default() {
            self.roles.remove(&role);
        }
    }

    /// Returns whether an application has been added and not removed.
    pub fn knows(&self, app: AppId) -> bool {
        self.apps.contains_key(&app)
    }

    /// Returns the roles of an application, in order.
    pub fn roles_of(&self, app: AppId) -> impl Iterator<Item = RoleId> + use<'_> {
        self.apps.get(&app).into_iter().flatten().copied()
    }

    /// Returns a role; `None` if its application has been removed.
    pub fn find(&self, role: RoleId) -> Option<&Role> {
        self.roles.get(&role)
    }

    /// Returns a role. Panics: when its application has been removed.
    pub fn role(&self, role: RoleId) -> &Role {
        &self.roles[&role]
    }

    /// Returns the name of a role in reports.
    pub fn name(&self, role: RoleId) -> &str {
        self.find(role).map_or("a finished role", |role| &role.name)
    }

    /// Returns all machines.
    pub fn machine_ids(&self) -> impl Iterator<Item = MachineId> + use<> {
        (0..self.machines.len() as u32).map(MachineId)
    }

    /// Returns all applications that are not complete, in order.
    pub fn app_ids(&self) -> Vec<AppId> {
        let mut apps: Vec<AppId> = self.apps.keys().copied().collect();
        apps.sort_unstable();
        apps
    }

    /// Returns all roles that are not complete, in order.
    pub fn role_ids(&self) -> Vec<RoleId> {
        let mut roles: Vec<RoleId> = self.roles.keys().copied().collect();
        roles.sort_unstable();
        roles
    }

    /// Returns the total resources of some units. Units of removed roles are ignored.
    pub fn size_of(&self, units: &Counts) -> Resources {
        let known = units.iter().filter_map(|(role, count)| Some((self.find(role)?.unit, count)));
        known.fold(Resources::ZERO, |sum, (unit, count)| sum + unit.times(count))
    }
}

/// Returns the number of units that fit in an amount, at most `most`.
pub fn fitting(amount: &Resources, unit: &Resources, most: u32) -> u32 {
    let times = amount.0.iter().zip(unit.0).filter(|(_, each)| *each > 0).map(|(amount, each)| amount / each);
    times.min().map_or(most, |times| times.min(u64::from(most)) as u32)
}
