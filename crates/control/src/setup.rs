//! The common knowledge that no failure takes away: machines, applications, their roles and the quota groups.
//!
//! This is the hard state of the system (application descriptions are checkpointed when an application is submitted).
//! Amounts are one integer: a unit of a role has a size and a machine a capacity, say in slots. All rules of the
//! protocol act on counts of units, so several resources would change nothing but the test of what fits.

use std::ops::Range;

use super::rules::Rules;
use plimsoll_base::units::MachineId;

/// An application, dense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(pub u16);

/// A role of an application, dense over all applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleId(pub u16);

impl AppId {
    /// The identifier as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl RoleId {
    /// The identifier as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A role: many equal workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role {
    /// The application that it belongs to.
    pub app: AppId,
    /// Whether its units may be taken only with the consent of its application master (an online service).
    pub stable: bool,
    /// The size of one unit; at least 1.
    pub size: u32,
    /// The quota group that its units count against.
    pub group: Option<u16>,
}

/// The static description of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setup {
    /// The capacity of each machine.
    pub machines: Vec<u32>,
    /// The roles, those of one application side by side, in order of the applications.
    pub roles: Vec<Role>,
    /// The most that the units of each quota group may take together.
    pub groups: Vec<u64>,
    /// Which rules are in force.
    pub rules: Rules,
    /// The name of each role in reports.
    pub names: Vec<String>,
    apps: Vec<(u16, u16)>,
}

impl Setup {
    /// A cluster of machines without applications.
    pub fn new(machines: Vec<u32>) -> Setup {
        Setup { machines, ..Setup::default() }
    }

    /// Adds an application with roles of (name, stable, size).
    pub fn app(&mut self, roles: &[(&str, bool, u32)]) -> AppId {
        let app = AppId(self.apps.len() as u16);
        let start = self.roles.len() as u16;
        for &(name, stable, size) in roles {
            self.roles.push(Role { app, stable, size: size.max(1), group: None });
            self.names.push(name.to_owned());
        }
        self.apps.push((start, self.roles.len() as u16));
        app
    }

    /// How many applications there are.
    pub fn apps(&self) -> usize {
        self.apps.len()
    }

    /// The roles of an application.
    pub fn roles_of(&self, app: AppId) -> impl Iterator<Item = RoleId> + use<> {
        let (start, end) = self.apps[app.index()];
        Range { start, end }.map(RoleId)
    }

    /// The role behind an identifier.
    pub fn role(&self, role: RoleId) -> &Role {
        &self.roles[role.index()]
    }

    /// All machines.
    pub fn machine_ids(&self) -> impl Iterator<Item = MachineId> + use<> {
        (0..self.machines.len() as u32).map(MachineId)
    }

    /// All applications.
    pub fn app_ids(&self) -> impl Iterator<Item = AppId> + use<> {
        (0..self.apps.len() as u16).map(AppId)
    }

    /// The size of some units together.
    pub fn size_of(&self, units: &super::counts::Counts) -> u64 {
        units.iter().map(|(role, count)| u64::from(self.role(role).size) * u64::from(count)).sum()
    }
}
