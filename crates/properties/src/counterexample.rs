//! A counterexample in words, and as instances that can be solved again.

use std::fmt::Write;

use super::domain::Domain;
use super::draft::Draft;
use super::survey::Phase;
use super::{Change, JudgedNumber, Judgement, Property, Reading, Requirement};
use plimsoll_fair::{Instance, Tasks, User};

/// A minimal case that violates a requirement.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The requirement.
    pub requirement: Requirement,
    /// The class of instances that was searched.
    pub domain: Domain,
    /// The phase of the search that found it.
    pub phase: Phase,
    /// The instance in whole numbers.
    pub draft: Draft,
    /// The change, for properties that compare two instances.
    pub change: Option<Change>,
    /// The instance.
    pub instance: Instance,
    /// The allocation.
    pub tasks: Tasks,
    /// The changed instance, and its allocation.
    pub after: Option<(Instance, Tasks)>,
    /// The size of the violation, and the affected user.
    pub judgement: Judgement,
}

/// Returns the tasks of each user, as fractions if they are exact.
fn values(tasks: &Tasks) -> Vec<JudgedNumber> {
    match tasks {
        Tasks::Exact(tasks) => tasks.iter().cloned().map(JudgedNumber::Exact).collect(),
        Tasks::Float(tasks) => tasks.iter().copied().map(JudgedNumber::Float).collect(),
    }
}

fn amounts(names: &[String], amounts: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    names.iter().zip(amounts).map(|(name, amount)| format!("{name} {amount}")).collect::<Vec<_>>().join(", ")
}

impl Counterexample {
    /// Describes the instance, the allocation, and the losing user with its loss, in a few lines.
    pub fn lines(&self) -> Vec<String> {
        let names = self.instance.resources();
        let mut lines = vec![format!("capacity: {}", amounts(names, self.instance.capacity()))];
        let given = values(&self.tasks);
        let then = self.after.as_ref().map(|(instance, tasks)| (instance, values(tasks)));
        for (user, tasks) in self.instance.users().iter().zip(&given) {
            let mut line = format!("{}: {}; gets {}", user.name, needs(names, user), counted(tasks));
            if let Some((instance, then)) = &then
                && let Some(at) = instance.users().iter().position(|other| other.name == user.name)
            {
                line += &format!(", then {}", counted(&then[at]));
            }
            lines.push(line);
        }
        lines.extend(self.change.as_ref().map(|change| self.changed(change)));
        lines.push(self.verdict());
        lines
    }

    fn changed(&self, change: &Change) -> String {
        let names = self.instance.resources();
        let name = |user: usize| self.instance.users()[user].name.as_str();
        match change {
            Change::Claim { user, demand, tasks } => {
                let truth = self.draft.users[*user].tasks;
                let number = match tasks {
                    _ if *tasks == truth => String::new(),
                    Some(tasks) => format!(", and {tasks} tasks"),
                    None => ", and unlimited tasks".to_owned(),
                };
                format!("lie: {} claims a demand of {}{number}", name(*user), amounts(names, demand))
            }
            Change::Leave { user } => format!("leave: {} leaves", name(*user)),
            Change::Grow { resource, capacity } => {
                format!("growth: {} grows from {} to {capacity}", names[*resource], self.draft.capacity[*resource])
            }
        }
    }

    /// Describes the losing user and its loss in a sentence.
    pub fn verdict(&self) -> String {
        let Judgement { worse, better, loser, other, .. } = &self.judgement;
        let user = |user: &Option<usize>| user.map_or("no user", |user| self.instance.users()[user].name.as_str());
        let resource = |r: &Option<usize>| r.map_or("", |r| self.instance.resources()[r].as_str());
        let (loser_name, winner) = (user(loser), if self.is_about_users() { user(other) } else { "" });
        let (has, should) = (counted(worse), counted(better));
        let forgiven = if self.requirement.reading == Reading::UpToOneTask {
            ", more than one of the largest tasks apart"
        } else {
            ""
        };
        match self.requirement.property {
            Property::Feasibility if loser.is_some() => format!("{loser_name} is given {should}"),
            Property::Feasibility => {
                format!("{better} of {} is allocated, and the capacity is {worse}", resource(other))
            }
            Property::SharingIncentive => {
                format!("{loser_name} runs {has}; its part of the cluster would run {should}{forgiven}")
            }
            Property::StrategyProofness => {
                format!("{loser_name} runs {has} when honest and {should} when lying{forgiven}")
            }
            Property::EnvyFreeness => {
                let less = match self.requirement.reading {
                    Reading::Divisible | Reading::Whole => "",
                    Reading::UpToOneTask => ", less one task",
                    Reading::UpToOneOwnTask => ", less the demand of one of its own tasks",
                };
                format!("{loser_name} runs {has}; with the allocation of {winner}{less}, it would run {should}")
            }
            Property::ParetoEfficiency => {
                format!("{loser_name} runs {has}; {should} would fit without fewer tasks for others")
            }
            Property::SingleResource | Property::Bottleneck if self.requirement.reading == Reading::Divisible => {
                format!("{loser_name} runs {has}; max-min fairness of {} gives it {should}", self.resource_name())
            }
            Property::SingleResource | Property::Bottleneck => {
                format!(
                    "{winner} is more than one task ahead of {loser_name}, which waits, at {better} of {} against {worse}",
                    self.resource_name()
                )
            }
            Property::Population => {
                format!("{loser_name} runs {should} before {winner} leaves and {has} after{forgiven}")
            }
            Property::Resource => format!("{loser_name} runs {should} before the growth and {has} after{forgiven}"),
            Property::Levels => {
                format!(
                    "{winner} is more than one task ahead of {loser_name}, which waits, at a dominant share of {better} against {worse}"
                )
            }
        }
    }

    /// Returns whether `other` of the judgement is a user.
    fn is_about_users(&self) -> bool {
        !matches!(
            (self.requirement.property, self.requirement.reading),
            (Property::Feasibility, _) | (Property::SingleResource | Property::Bottleneck, Reading::Divisible)
        )
    }

    fn resource_name(&self) -> &str {
        let named = self.judgement.other.filter(|_| !self.is_about_users());
        self.instance.resources().get(named.unwrap_or(0)).map_or("", String::as_str)
    }

    /// Returns the instances as files for `plimsoll solve`: for each a suffix of the name (empty, or `truth` and `lie`, ...) and the text.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let (first, second) = match self.change {
            None => ("", ""),
            Some(Change::Claim { .. }) => ("truth", "lie"),
            Some(Change::Leave { .. } | Change::Grow { .. }) => ("before", "after"),
        };
        let comment = self.lines().iter().map(|line| format!("# {line}\n")).collect::<String>();
        let one = |instance: &Instance| format!("{comment}{}", instance_toml(instance));
        let after = self.after.iter().map(|(instance, _)| (second, one(instance)));
        [(first, one(&self.instance))].into_iter().chain(after).collect()
    }
}

fn counted(tasks: &JudgedNumber) -> String {
    let text = tasks.to_string();
    if text == "1" { "1 task".to_owned() } else { format!("{text} tasks") }
}

fn needs(names: &[String], user: &User) -> String {
    let mut text = amounts(names, &user.demand);
    match user.one_weight() {
        Some(weight) if weight.to_string() == "1" => {}
        Some(weight) => text += &format!("; weight {weight}"),
        None => text += &format!("; weights {}", amounts(names, &user.weight)),
    }
    if let Some(tasks) = &user.tasks {
        text += &format!("; has {}", counted(&JudgedNumber::Exact(tasks.clone())));
    }
    text
}

/// Formats an instance in one line.
pub(super) fn in_a_line(instance: &Instance) -> String {
    let names = instance.resources();
    let users = instance.users().iter().map(|user| format!("; {}: {}", user.name, needs(names, user)));
    format!("capacity: {}{}", amounts(names, instance.capacity()), users.collect::<String>())
}

/// Formats an instance for `plimsoll solve`. Numbers that are not integers are written as the nearest double.
pub fn instance_toml(instance: &Instance) -> String {
    let mut text = "[capacity]\n".to_owned();
    let number =
        |value: &plimsoll_fair::Exact| if value.is_integer() { value.to_string() } else { value.to_f64().to_string() };
    let table = |values: &[plimsoll_fair::Exact]| {
        let entries =
            instance.resources().iter().zip(values).map(|(name, value)| format!("{} = {}", key(name), number(value)));
        entries.collect::<Vec<_>>().join(", ")
    };
    for (name, capacity) in instance.resources().iter().zip(instance.capacity()) {
        writeln!(text, "{} = {}", key(name), number(capacity)).expect(WRITES);
    }
    for user in instance.users() {
        let name = toml::Value::from(user.name.as_str());
        write!(text, "\n[[user]]\nname = {name}\ndemand = {{ {} }}\n", table(&user.demand)).expect(WRITES);
        match user.one_weight() {
            Some(weight) if weight.to_string() == "1" => {}
            Some(weight) => writeln!(text, "weight = {}", number(weight)).expect(WRITES),
            None => writeln!(text, "weight = {{ {} }}", table(&user.weight)).expect(WRITES),
        }
        if let Some(tasks) = &user.tasks {
            writeln!(text, "tasks = {}", number(tasks)).expect(WRITES);
        }
    }
    text
}

const WRITES: &str = "writing to a string succeeds";

/// Returns the name as a bare TOML key if its characters permit it, else as a quoted key.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { toml::Value::from(name).to_string() }
}
