//! The static question: the capacity of each resource, and the demand of each user.

use std::collections::HashSet;

use super::{Exact, Number};
use plimsoll_base::error::{Error, Result};

/// A user with identical divisible tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name, unique in the instance.
    pub name: String,
    /// The demand of one task for each resource (at least 0).
    pub demand: Vec<Exact>,
    /// Its weight for each resource (above 0).
    pub weight: Vec<Exact>,
    /// How many tasks it has; `None` is without end.
    pub tasks: Option<Exact>,
    /// The machines that its tasks may run on, as indices into those of the instance; `None` is all.
    pub on: Option<Vec<usize>>,
}

impl User {
    /// A user of weight 1 without end of tasks, which may run anywhere.
    pub fn new(name: impl Into<String>, demand: Vec<Exact>) -> User {
        let weight = vec![Exact::ONE; demand.len()];
        User { name: name.into(), demand, weight, tasks: None, on: None }
    }

    /// Its one weight; `None` if its weights differ by resource.
    pub fn one_weight(&self) -> Option<&Exact> {
        self.weight.first().filter(|first| self.weight.iter().all(|weight| weight == *first))
    }

    /// The same for a mechanism that needs one. Errors: [`Error::Plan`] when its weights differ by resource; `why` is said
    /// behind "one weight per user".
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
    /// Their name, unique in the instance.
    pub name: String,
    /// How many.
    pub count: u64,
    /// The capacity of each, for every resource.
    pub capacity: Vec<Exact>,
}

impl Machines {
    /// The capacity of all of them.
    fn together(&self) -> Vec<Exact> {
        self.capacity.iter().map(|each| each * &Exact::from(self.count)).collect()
    }
}

/// A static allocation problem, checked: resources, users, and machines where they matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    resources: Vec<String>,
    capacity: Vec<Exact>,
    users: Vec<User>,
    machines: Vec<Machines>,
}

impl Instance {
    /// Checks the parts. `capacity`, each demand and each weight have one entry a resource.
    ///
    /// A resource of capacity 0 may be demanded: its users get nothing. A user with a demand of 0 needs a number of
    /// tasks, and gets them all. Errors: [`Error::Plan`] that names the user and the resource, for no users, no
    /// resources, names that stand twice, negative amounts, weights that are not above 0, and endless tasks that need
    /// nothing.
    pub fn new(resources: Vec<String>, capacity: Vec<Exact>, users: Vec<User>) -> Result<Instance> {
        let instance = Instance { resources, capacity, users, machines: Vec::new() };
        instance.check()?;
        Ok(instance)
    }

    /// The same on machines, which together are the capacity. Errors: as [`Instance::new`], and for no machines, names
    /// that stand twice, and users that may run on no machine or on one that there is not.
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

    /// The same resources and machines with other users. Errors: as [`Instance::new`].
    pub fn with_users(&self, users: Vec<User>) -> Result<Instance> {
        let instance = Instance { users, ..self.clone() };
        instance.check()?;
        Ok(instance)
    }

    /// The names of the resources.
    pub fn resources(&self) -> &[String] {
        &self.resources
    }

    /// The capacity of each resource.
    pub fn capacity(&self) -> &[Exact] {
        &self.capacity
    }

    /// The users.
    pub fn users(&self) -> &[User] {
        &self.users
    }

    /// The machines; empty when the capacity is one pool.
    pub fn machines(&self) -> &[Machines] {
        &self.machines
    }

    /// The capacity of each entry of machines, all its machines together; a pool is one entry.
    pub fn rooms(&self) -> Vec<Vec<Exact>> {
        match self.machines.is_empty() {
            true => vec![self.capacity.clone()],
            false => self.machines.iter().map(Machines::together).collect(),
        }
    }

    /// Whether a user may run on an entry of machines.
    pub fn may_run(&self, user: usize, machine: usize) -> bool {
        self.users[user].on.as_ref().is_none_or(|on| on.contains(&machine))
    }

    /// How many machines there are; a pool counts as one.
    pub fn machine_count(&self) -> u64 {
        self.machines.iter().map(|group| group.count).sum::<u64>().max(1)
    }

    /// The first resource that the user needs and the capacity lacks.
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
                    return Err(Error::plan(place("demand"), "a demand of 0 with endless tasks", expected));
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
