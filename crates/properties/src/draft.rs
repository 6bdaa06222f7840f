//! Instances in whole numbers, which the search enumerates, draws and shrinks.

use plimsoll_base::error::Result;
use plimsoll_fair::{Exact, Instance, User};

/// An instance in whole numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Draft {
    /// The capacity of each resource.
    pub capacity: Vec<u64>,
    /// The users.
    pub users: Vec<DraftUser>,
}

/// A user in whole numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DraftUser {
    /// The demand of a task for each resource.
    pub demand: Vec<u64>,
    /// The weight for each resource.
    pub weight: Vec<u64>,
    /// The number of tasks; `None` is unlimited.
    pub tasks: Option<u64>,
}

impl DraftUser {
    /// Creates a user of weight 1 with unlimited tasks.
    pub fn new(demand: Vec<u64>) -> DraftUser {
        DraftUser { weight: vec![1; demand.len()], demand, tasks: None }
    }
}

/// Returns the name of the user at this position: A, B, ..., Z, then with its number.
pub(super) fn user_name(at: usize) -> String {
    match u8::try_from(at) {
        Ok(at) if at < 26 => char::from(b'A' + at).to_string(),
        _ => format!("user{}", at + 1),
    }
}

fn exact(numbers: &[u64]) -> Vec<Exact> {
    numbers.iter().map(|&number| Exact::from(number)).collect()
}

impl Draft {
    /// Converts the draft to an instance with resources of these names, of which there must be enough. Errors: as [`Instance::new`].
    pub fn instance(&self, resources: &[String]) -> Result<Instance> {
        let user = |(at, user): (usize, &DraftUser)| User {
            weight: exact(&user.weight),
            tasks: user.tasks.map(Exact::from),
            ..User::new(user_name(at), exact(&user.demand))
        };
        let users = self.users.iter().enumerate().map(user).collect();
        Instance::new(resources[..self.capacity.len()].to_vec(), exact(&self.capacity), users)
    }

    /// Returns the number of resources.
    pub fn dims(&self) -> usize {
        self.capacity.len()
    }

    /// Returns the largest demand or capacity.
    pub fn largest(&self) -> u64 {
        let demands = self.users.iter().flat_map(|user| &user.demand);
        self.capacity.iter().chain(demands).copied().max().unwrap_or(0)
    }

    /// Returns the size: users, resources, then the sum of all numbers. Unlimited tasks count less than any number.
    pub fn size(&self) -> (usize, usize, u64) {
        let user = |user: &DraftUser| {
            user.demand.iter().chain(&user.weight).sum::<u64>() + user.tasks.map_or(0, |tasks| tasks + 1)
        };
        (self.users.len(), self.dims(), self.capacity.iter().sum::<u64>() + self.users.iter().map(user).sum::<u64>())
    }
}
