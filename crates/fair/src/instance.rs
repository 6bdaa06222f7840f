//! The input of a mechanism: the capacity of each resource, the demand of each user, and optionally the machines.
//!
//! [`Instance::new`] and [`Instance::on_machines`] check their input, so every instance is valid. It has at least one resource and one
//! user, unique names, amounts of at least 0 and weights above 0, and users without demand have a finite number of tasks. All amounts are
//! exact fractions.

use std::collections::HashSet;

use super::{Exact, Number};
use plimsoll_base::error::{Error, Result};

/// A user with identical divisible tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, unique in the instance.
    pub name: String,
    /// The demand of one task for each resource (at least 0).
    pub demand: Vec<Exact>,
    /// The weight for each resource (above 0).
    pub weight: Vec<Exact>,
    /// The number of tasks; `None` means unlimited.
    pub tasks: Option<Exact>,
    /// The machines that the tasks may run on, as indices into the machines of the instance; `None` means all.
    pub on: Option<Vec<usize>>,
}

impl User {
    /// Creates a user of weight 1 with unlimited tasks, which may run on any machine.
    pub fn new(name: impl Into<String>, demand: Vec<Exact>) -> User {
        let weight = vec![Exact::ONE; demand.len()];
        User { name: name.into(), demand, weight, tasks: None, on: None }
    }

    /// Returns the single weight of the user, or `None` if its weights differ by resource.
    pub fn one_weight(&self) -> Option<&Exact> {
        self.weight.first().filter(|first| self.weight.iter().all(|weight| weight == *first))
    }

    /// Returns the single weight for a mechanism that needs one. Errors: [`Error::Plan`] if the weights differ by resource; `why` is
    /// appended to "one weight per user" in the message.
    pub fn scalar_weight(&self, why: &str) -> Result<&Exact> {
        self.one_weight().ok_or_else(|| {
            let expected = format!("one weight per user {why}");
            Error::plan(format!("user '{}', weight", self.name), "one by resource", expected)
        })
    }
}

/// Equal machines, for mechanisms that count machines or assign tasks to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    /// The name, unique in the instance.
    pub name: String,
    /// The number of machines.
    pub count: u64,
    /// The capacity of one machine, for each resource.
    pub capacity: Vec<Exact>,
}

impl Machines {
    /// Returns the total capacity of the machines.
    fn together(&self) -> Vec<Exact> {
        self.capacity.iter().map(|each| each * &Exact::from(self.count)).collect()
    }
}

/// A validated static allocation problem: resources, users, and the machines if the mechanism needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    resources: Vec<String>,
    capacity: Vec<Exact>,
    users: Vec<User>,
    machines: Vec<Machines>,
}

impl Instance {
    /// Creates an instance with one pool of capacity. `capacity`, each demand and each weight have one entry per resource.
    ///
    /// A resource of capacity 0 may be demanded: the users that demand it run no tasks. A user with a demand of 0 needs a finite number of
    /// tasks, and runs them all. Errors: [`Error::Plan`] naming the user and the resource, for no users, no resources, duplicate names,
    /// negative amounts, weights that are not above 0, and unlimited tasks without demand.
    pub fn new(resources: Vec<String>, capacity: Vec<Exact>, users: Vec<User>) -> Result<Instance> {
        let instance = Instance { resources, capacity, users, machines: Vec::new() };
        instance.check()?;
        Ok(instance)
    }

    /// Creates an instance on machines; their total is the capacity. Errors: as [`Instance::new`], and for no machines, duplicate names,
    /// and users that may run on no machine or on an unknown one.
    pub fn on_machines(resources: Vec<String>, machines: Vec<Machines>, users: Vec<User>) -> Result<Instance> {
        if machines.is_empty() {
            return Err(Error::plan("machine", "no machine", "at least one [[machine]] with a capacity"));
        }
        let mut names = HashSet::new();
        for group in &machines {
            if !names.insert(group.name.as_str()) {
                return Err(Error::plan("machine", format!("'{}' twice", group.name), "one entry per name"));
            }
            if group.capacity.len() != resources.len() {
                let expected = format!("{} amounts", resources.len());
                return Err(Error::plan(format!("machine '{}'", group.name), group.capacity.len(), expected));
            }
            for (name, each) in resources.iter().zip(&group.capacity) {
                at_least_zero(each, || format!("machine '{}', {name}", group.name))?;
            }
        }
        let rooms: Vec<Vec<Exact>> = machines.iter().map(Machines::together).collect();
        let capacity = (0..resources.len()).map(|r| rooms.iter().map(|room| &room[r]).sum()).collect();
        let instance = Instance { resources, capacity, users, machines };
        instance.check()?;
        Ok(instance)
    }

    /// Returns an instance with the same resources and machines and other users. Errors: as [`Instance::new`].
    pub fn with_users(&self, users: Vec<User>) -> Result<Instance> {
        let instance = Instance { users, ..self.clone() };
        instance.check()?;
        Ok(instance)
    }

    /// Returns the names of the resources.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// Returns the capacity of each resource.
    pub fn capacity(&self) -> &[Exact] {
        &self.capacity
    }

    /// Returns the users.
    pub fn users(&self) -> &[User] {
        &self.users
    }

    /// Returns the machines; empty if the capacity is one pool.
    pub fn machines(&self) -> &[Machines] {
        &self.machines
    }

    /// Returns the total capacity of each entry of machines; a pool is one entry.
    pub fn rooms(&self) -> Vec<Vec<Exact>> {
        match self.machines.is_empty() {
            true => vec![self.capacity.clone()],
            false => self.machines.iter().map(Machines::together).collect(),
        }
    }

    /// Returns whether a user may run on an entry of machines.
    pub fn may_run(&self, user: usize, machine: usize) -> bool {
        self.users[user].on.as_ref().is_none_or(|on| on.contains(&machine))
    }

    /// Returns the number of machines; a pool counts as one.
    pub fn machine_count(&self) -> u64 {
        self.machines.iter().map(|group| group.count).sum::<u64>().max(1)
    }

    /// Returns the first resource that the user needs and of which the capacity is 0.
    pub fn lacking(&self, user: &User) -> Option<usize> {
        (0..self.resources.len()).find(|&r| user.demand[r].is_positive() && self.capacity[r].is_zero())
    }

    fn check(&self) -> Result<()> {
        let dims = self.resources.len();
        if dims == 0 {
            return Err(Error::plan("capacity", "no resource", "at least one, such as cpu = 9"));
        }
        if self.users.is_empty() {
            return Err(Error::plan("user", "no user", "at least one [[user]] with a demand"));
        }
        let mut names = HashSet::new();
        for (name, capacity) in self.resources.iter().zip(&self.capacity) {
            if !names.insert(name.as_str()) {
                return Err(Error::plan("capacity", format!("'{name}' twice"), "one entry per resource"));
            }
            at_least_zero(capacity, || format!("capacity, {name}"))?;
        }
        names.clear();
        for user in &self.users {
            let place = |what: &str| format!("user '{}', {what}", user.name);
            if !names.insert(user.name.as_str()) {
                return Err(Error::plan("user", format!("'{}' twice", user.name), "one entry per user"));
            }
            if self.capacity.len() != dims || user.demand.len() != dims || user.weight.len() != dims {
                return Err(Error::plan(place("demand"), user.demand.len(), format!("{dims} amounts and weights")));
            }
            for ((name, demand), weight) in self.resources.iter().zip(&user.demand).zip(&user.weight) {
                at_least_zero(demand, || place(&format!("demand of {name}")))?;
                if !weight.is_positive() {
                    return Err(Error::plan(place(&format!("weight for {name}")), weight, "a number above 0"));
                }
            }
            if let Some(on) = &user.on {
                let known = self.machines.len();
                if on.is_empty() || on.iter().any(|&machine| machine >= known) {
                    let expected = format!("some of the {known} entries of machines, by index");
                    return Err(Error::plan(place("on"), format!("{on:?}"), expected));
                }
            }
            match &user.tasks {
                Some(tasks) => at_least_zero(tasks, || place("tasks"))?,
                None if user.demand.iter().all(Number::is_zero) => {
                    let expected = "a demand above 0 for some resource, or a number of `tasks`";
                    return Err(Error::plan(place("demand"), "a demand of 0 with unlimited tasks", expected));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn at_least_zero(value: &Exact, place: impl Fn() -> String) -> Result<()> {
    if value.is_negative() {
        return Err(Error::plan(place(), value, "a number of at least 0"));
    }
    Ok(())
}
