//! YARN's capacity scheduler: properties of queues, identified by the paths of the queues.
//!
//! A capacity is a percentage of the parent's capacity, a weight (`2w`), or resources (`[memory=1024,vcores=4]`). User limits without a
//! path apply to every leaf queue that does not set them.
//!
//! Source: Hadoop YARN, CapacityScheduler (capacity-scheduler.xml).

use std::collections::{HashMap, HashSet};

use crate::diagnostics::Diagnostics;
use crate::group::{QueueGroup, Queues, Setting};
use crate::objects::{Written, not_accepted};
use crate::quantity::Quantity;
use crate::yarn::{ROOT, names, number, pairs, truth, wrong_name};
use crate::yarn_checks::{self, Capacity};
use crate::{FormatRow, ParsedSource, property};
use plimsoll_base::error::Result;
use plimsoll_base::tree::{Place, brief};

pub static ROW: FormatRow = FormatRow {
    name: "yarn-capacity",
    about: "the queues of YARN's capacity scheduler",
    layout: "capacity-scheduler.xml: <configuration> with <property>s",
    properties: &[
        property("queues", "parent", "", "queues directly below `root` have no parent"),
        property("capacity", "percent", "", "in percent"),
        property("capacity", "weight", "", "as a weight: `2w`"),
        property("capacity", "guarantee", "", "as resources: `[memory=1024,vcores=4]`"),
        property("maximum-capacity", "max_percent", "", "in percent; -1: none"),
        property("maximum-capacity", "capability", "", "as resources"),
        property("priority", "priority", "", ""),
        property(
            "minimum-user-limit-percent",
            "user_limit_percent",
            "",
            "a property without a path applies to every leaf queue",
        ),
        property("user-limit-factor", "user_limit_factor", "", "likewise; -1 is not carried over, with a warning"),
        property("disable_preemption", "reclaimable", "", "also applies to the queues under the queue"),
        property("queue-mappings", "users", "", "`u:USER:QUEUE`; other mappings give warnings"),
        property(
            "resource-calculator",
            "[policy] resources",
            "memory",
            "`DefaultResourceCalculator` is `memory`, `DominantResourceCalculator` is `dominant`",
        ),
        property("queue-ordering-policy", "[policy] ordering", "", "of `root`, if it is `priority-utilization`"),
        property("legacy-queue-mode.enabled", "", "", "`false` turns the checks of capacities off"),
        property(
            "allow-zero-capacity-sum",
            "",
            "",
            "`true`: the percentages of the queues under the queue may sum to 0",
        ),
        property(MONITOR, "[policy] preemption", "false, if yarn-site.xml is given", ""),
        property(MAX_IGNORED, "[policy] max_ignored", "", ""),
        property(NATURAL, "[policy] natural_termination", "", ""),
        property(PER_ROUND, "[policy] per_round", "", ""),
        property(LEAST_MEMORY, "[policy] minimum_allocation", "", "in MiB"),
        property(LEAST_CORES, "[policy] minimum_allocation", "", ""),
    ],
    ours: &[("[policy] cluster", "these files do not define a partition of nodes")],
    policies: &["yarn-capacity"],
    source: "Hadoop YARN, CapacityScheduler",
    recognises: |source| source.root("configuration").is_ok(),
    read,
};

// Properties of yarn-site.xml, which may be one of the sources.
const MONITOR: &str = "yarn.resourcemanager.scheduler.monitor.enable";
const MAX_IGNORED: &str = "yarn.resourcemanager.monitor.capacity.preemption.max_ignored_over_capacity";
const NATURAL: &str = "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor";
const PER_ROUND: &str = "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round";
const LEAST_MEMORY: &str = "yarn.scheduler.minimum-allocation-mb";
const LEAST_CORES: &str = "yarn.scheduler.minimum-allocation-vcores";

const PREFIX: &str = "yarn.scheduler.capacity.";

/// The default resource calculator.
const DEFAULT_CALCULATOR: &str = "DefaultResourceCalculator";

/// A property: its value and its location.
struct Property<'n> {
    value: &'n str,
    place: &'n Place,
    read: bool,
    /// Whether later properties with this name are ignored.
    is_final: bool,
}

/// The properties by name, and the names in their order. If a name occurs several times, the last property is used, or the first final one.
struct Properties<'n> {
    all: HashMap<&'n str, Property<'n>>,
    order: Vec<&'n str>,
}

fn read(sources: &[ParsedSource], notes: &mut Diagnostics) -> Result<Queues> {
    let mut properties = Properties::from_sources(sources, notes)?;
    let paths = properties.paths()?;
    let mut queues = Queues { policy: properties.policy(notes)?, ..Queues::default() };
    let mut capacities = Vec::new();
    let mut at: HashMap<&str, usize> = HashMap::new();
    let all: Vec<String> = paths.iter().map(|(path, ..)| path.clone()).collect();
    for ((path, place, leaf), name) in paths.iter().zip(names(&all)) {
        let mut group = QueueGroup::new(&name, place);
        capacities.push(properties.fill(&mut group, path, *leaf, notes)?);
        group.parent = path.rsplit_once('.').and_then(|(parent, _)| at.get(parent).copied());
        at.insert(path, queues.add(group)?);
    }
    properties.check(&mut queues, &capacities, &all)?;
    properties.root();
    properties.users(&mut queues, &paths, &at, notes);
    properties.rest(&all, notes);
    Ok(queues)
}

impl<'n> Properties<'n> {
    /// Reads the properties of all sources. Errors: a source is not a configuration, or an element is not a property.
    fn from_sources(sources: &'n [ParsedSource], notes: &mut Diagnostics) -> Result<Properties<'n>> {
        let (mut all, mut order): (HashMap<&str, Property>, _) = (HashMap::new(), Vec::new());
        for source in sources {
            for element in &source.root("configuration")?.children {
                if element.name != "property" {
                    return Err(element
                        .place
                        .wrong("", format!("<{}> is not accepted; expected <property>", element.name)));
                }
                let text = |name: &str| {
                    element.text_of(name).ok_or_else(|| element.place.wrong("", format!("a property has no <{name}>")))
                };
                let name = text("name")?;
                let value = text("value")?;
                let is_final = element.text_of("final") == Some("true");
                match all.get_mut(name) {
                    // As in Hadoop's `Configuration`.
                    Some(first) if first.is_final => {
                        if first.value != value {
                            let message = "is ignored: an earlier property of this name is final";
                            notes.add(&element.place, format!("{} {message}", brief(name)));
                        }
                    }
                    known => {
                        if known.is_none() {
                            order.push(name);
                        }
                        all.insert(name, Property { value, place: &element.place, read: false, is_final });
                    }
                }
            }
        }
        Ok(Properties { all, order })
    }

    /// Returns a property of a path, or the general property if `path` is empty.
    fn get(&mut self, path: &str, key: &str) -> Option<(&'n str, &'n Place)> {
        let name = if path.is_empty() { format!("{PREFIX}{key}") } else { format!("{PREFIX}{path}.{key}") };
        let property = self.all.get_mut(name.as_str())?;
        property.read = true;
        Some((property.value, property.place)).filter(|(value, _)| !value.is_empty())
    }

    /// Returns the paths of all queues except the root, parents first; each with the location of the list that names it, and whether it is
    /// a leaf. Errors: an invalid or duplicate name.
    fn paths(&mut self) -> Result<Vec<(String, &'n Place, bool)>> {
        let mut paths: Vec<(String, &Place, bool)> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut next: Vec<(String, &Place)> = Vec::new();
        let mut path = ROOT.to_owned();
        loop {
            let below = self.get(&path, "queues");
            if let Some((list, place)) = below {
                let key = format!("{PREFIX}{path}.queues");
                let mut names: Vec<&str> = list.split(',').map(str::trim).collect();
                names.reverse();
                for name in names {
                    if name.is_empty() || name.contains('.') || name.contains(char::is_whitespace) {
                        return Err(wrong_name(place, &key, name));
                    }
                    let below = format!("{path}.{name}");
                    if !known.insert(below.clone()) {
                        return Err(place.wrong(&key, format!("'{}' is given twice", brief(name))));
                    }
                    next.push((below, place));
                }
            }
            if let Some((_, _, leaf)) = paths.last_mut() {
                *leaf = below.is_none();
            }
            let Some((below, place)) = next.pop() else { break };
            paths.push((below.clone(), place, true));
            path = below;
        }
        Ok(paths)
    }

    /// Returns the keys of `[policy]`: the resources that are compared, the order of queues, and the keys from yarn-site.xml.
    fn policy(&mut self, notes: &mut Diagnostics) -> Result<Vec<(&'static str, Setting)>> {
        let mut policy = Vec::new();
        // By default YARN compares memory only.
        let calculator = self.get("", "resource-calculator");
        let class = calculator.map_or(DEFAULT_CALCULATOR, |(class, _)| class.rsplit('.').next().unwrap_or(class));
        match (class, calculator) {
            (DEFAULT_CALCULATOR, _) => policy.push(("resources", Setting::Word("memory"))),
            ("DominantResourceCalculator", _) => policy.push(("resources", Setting::Word("dominant"))),
            (class, Some((_, place))) => {
                let expected = "DefaultResourceCalculator or DominantResourceCalculator";
                return Err(not_accepted(place, &format!("{PREFIX}resource-calculator"), class, expected));
            }
            (_, None) => {}
        }
        match self.get(ROOT, "queue-ordering-policy") {
            Some(("priority-utilization", _)) => policy.push(("ordering", Setting::Word("priority-utilization"))),
            Some(("utilization", _)) | None => {}
            Some((other, place)) => {
                notes.add(place, format!("queue-ordering-policy '{}' is not carried over", brief(other)));
            }
        }
        self.site(&mut policy, notes)?;
        Ok(policy)
    }

    /// Adds the keys of `[policy]` that are defined in yarn-site.xml. Errors: invalid values.
    fn site(&mut self, policy: &mut Vec<(&'static str, Setting)>, notes: &mut Diagnostics) -> Result<()> {
        let mut of = |name: &str| {
            let property = self.all.get_mut(name)?;
            property.read = true;
            Some((property.value, property.place)).filter(|(value, _)| !value.is_empty())
        };
        let parts = [(MAX_IGNORED, "max_ignored"), (NATURAL, "natural_termination"), (PER_ROUND, "per_round")];
        let parts = parts.map(|(name, key)| (name, key, of(name)));
        let [memory, cores] = [LEAST_MEMORY, LEAST_CORES].map(&mut of);
        let monitor = of(MONITOR);
        let there = memory.or(cores).is_some() || parts.iter().any(|(_, _, found)| found.is_some());
        match monitor {
            Some((value, place)) => policy.push(("preemption", truth(value, MONITOR, place)?)),
            // Without the monitor YARN does not preempt.
            None if there => policy.push(("preemption", Setting::Truth(false))),
            None => {}
        }
        for (name, key, found) in parts {
            if let Some((value, place)) = found {
                policy.push((key, number(value, name.to_owned(), place)?));
            }
        }
        let least: Vec<String> = [("memory", memory), ("vcores", cores)]
            .into_iter()
            .filter_map(|(resource, found)| Some(format!("{resource}={}", found?.0)))
            .collect();
        if let Some((_, place)) = memory.or(cores) {
            let amounts = pairs(&least.join(","), LEAST_MEMORY, place, notes)?;
            policy.push(("minimum_allocation", Setting::Amounts(amounts)));
        }
        Ok(())
    }

    /// Checks the capacities as YARN does in its legacy queue mode, which is the default.
    fn check(&mut self, queues: &mut Queues, capacities: &[Capacity<'n>], paths: &[String]) -> Result<()> {
        let legacy = self.get("", "legacy-queue-mode.enabled").is_none_or(|(value, _)| value != "false");
        if legacy {
            let mut zero = |path: &str| {
                let own = self.get(path, "allow-zero-capacity-sum");
                own.is_some_and(|(value, _)| value == "true")
            };
            let zeros: Vec<bool> = paths.iter().map(|path| zero(path)).collect();
            let root = zero(ROOT);
            yarn_checks::check(queues, capacities, paths, &zeros, root)?;
        }
        Ok(())
    }

    /// Sets the keys of a queue, and returns its capacity for the check.
    fn fill(
        &mut self,
        group: &mut QueueGroup,
        path: &str,
        leaf: bool,
        notes: &mut Diagnostics,
    ) -> Result<Capacity<'n>> {
        let key = |key: &str| format!("{PREFIX}{path}.{key}");
        let mut capacity = Capacity::Absent;
        if let Some((value, place)) = self.get(path, "capacity") {
            group.place = place.clone();
            if let Some(amounts) = bracketed(value) {
                capacity = Capacity::Amounts(place);
                group.set_amounts("guarantee", pairs(amounts, &key("capacity"), place, notes)?);
            } else if let Some(weight) = value.strip_suffix('w') {
                capacity = Capacity::Weight(place);
                group.set("weight", number(weight, key("capacity"), place)?);
            } else {
                let setting = percent(value, key("capacity"), place)?;
                capacity = Capacity::Percent(yarn_checks::hundredths(&setting), place);
                group.set("percent", setting);
            }
        }
        if let Some((value, place)) = self.get(path, "disable_preemption") {
            let disabled = truth(value, &key("disable_preemption"), place)? == Setting::Truth(true);
            group.set("reclaimable", Setting::Truth(!disabled));
        }
        if let Some((value, place)) = self.get(path, "maximum-capacity") {
            if let Some(amounts) = bracketed(value) {
                group.set_amounts("capability", pairs(amounts, &key("maximum-capacity"), place, notes)?);
            } else if !is_none(value) {
                group.set("max_percent", percent(value, key("maximum-capacity"), place)?);
            }
        }
        if let Some((value, place)) = self.get(path, "priority") {
            let digits = value.parse::<i32>();
            let digits = digits.map_err(|_| not_accepted(place, &key("priority"), value, "a whole number"))?;
            group.set("priority", Setting::Number(digits.to_string()));
        }
        for (name, key) in
            [("minimum-user-limit-percent", "user_limit_percent"), ("user-limit-factor", "user_limit_factor")]
        {
            let own = self.get(path, name);
            let whole = self.get("", name).filter(|_| leaf);
            let Some((value, place)) = own.or(whole) else { continue };
            if is_none(value) {
                notes.add(place, format!("{name}: the value for no limit is not carried over"));
            } else {
                group.set(key, number(value, format!("{PREFIX}{path}.{name}"), place)?);
            }
        }
        if let Some((value, place)) = self.get(path, "state").filter(|(value, _)| *value != "RUNNING") {
            notes.add(place, format!("state is not carried over: the queue is open here, not '{}'", brief(value)));
        }
        Ok(capacity)
    }

    /// Marks the capacity of the root as read if it is 100 %: the root is always the whole cluster.
    fn root(&mut self) {
        for key in ["capacity", "maximum-capacity"] {
            if let Some(property) = self.all.get_mut(format!("{PREFIX}{ROOT}.{key}").as_str()) {
                property.read = Quantity::number(property.value) == Quantity::number("100");
            }
        }
    }

    /// Sets the users that are mapped to queues by their names.
    fn users(
        &mut self,
        queues: &mut Queues,
        paths: &[(String, &Place, bool)],
        at: &HashMap<&str, usize>,
        notes: &mut Diagnostics,
    ) {
        let Some((list, place)) = self.get("", "queue-mappings") else { return };
        let mut users: Vec<Vec<String>> = vec![Vec::new(); queues.groups.len()];
        let mut known: HashSet<&str> = HashSet::new();
        for mapping in list.split(',').map(str::trim).filter(|mapping| !mapping.is_empty()) {
            let parts: Vec<&str> = mapping.split(':').map(str::trim).collect();
            let leaf = |name: &str| {
                let is = |path: &str| path == name || path.rsplit('.').next() == Some(name);
                let mut found = paths.iter().filter(|(path, _, leaf)| *leaf && is(path));
                found.next().filter(|_| found.next().is_none()).and_then(|(path, ..)| at.get(path.as_str()))
            };
            let found = match &parts[..] {
                ["u", user, queue] if !user.contains('%') && !user.is_empty() => leaf(queue).map(|at| (user, *at)),
                _ => None,
            };
            match found {
                // The first mapping of a user is used.
                Some((user, at)) if known.insert(user) => users[at].push((*user).to_owned()),
                _ => notes.add(place, format!("queue-mappings: '{}' is not carried over", brief(mapping))),
            }
        }
        for (group, users) in queues.groups.iter_mut().zip(users).filter(|(_, users)| !users.is_empty()) {
            group.set("users", Setting::Names(users));
        }
    }

    /// Adds a note for each property that was not read. The note on a property of a queue omits the path of the queue.
    fn rest(&self, paths: &[String], notes: &mut Diagnostics) {
        let known: HashSet<&str> = paths.iter().map(String::as_str).chain([ROOT]).collect();
        for name in &self.order {
            let Property { value, place, read, .. } = &self.all[name];
            if *read || value.is_empty() {
                continue;
            }
            let Some(rest) = name.strip_prefix(PREFIX) else {
                notes.add(
                    place,
                    format!("{} is not carried over: it is not a property of the capacity scheduler", brief(name)),
                );
                continue;
            };
            // The longest queue path that is a prefix of the name.
            let ends = rest.char_indices().filter(|(_, c)| *c == '.').map(|(at, _)| at);
            let of = ends.filter(|end| known.contains(&rest[..*end])).max();
            let message = match of {
                Some(end) if rest[..end] == *ROOT && is_of_queue(&rest[end + 1..]) => {
                    format!("{} is not carried over: there is no such queue", brief(rest))
                }
                Some(end) => format!("{} is not carried over", brief(&rest[end + 1..])),
                None => format!("{} is not carried over", brief(rest)),
            };
            notes.add(place, message);
        }
    }
}

/// Returns whether the key belongs to an undeclared queue.
fn is_of_queue(rest: &str) -> bool {
    const KEYS: [&str; 6] = ["capacity", "maximum-capacity", "priority", "queues", "state", "user-limit-factor"];
    rest.rsplit_once('.').is_some_and(|(path, key)| KEYS.contains(&key) && !path.starts_with("accessible-node-labels"))
}

/// Returns the text in square brackets.
fn bracketed(value: &str) -> Option<&str> {
    value.strip_prefix('[')?.strip_suffix(']')
}

/// Returns whether a number means "no limit".
fn is_none(value: &str) -> bool {
    matches!(value, "-1" | "-1.0" | "-1.0f")
}

fn percent(value: &str, path: String, place: &Place) -> Result<Setting> {
    let text = value.trim().trim_end_matches('%').trim_end_matches(['f', 'F']).trim_end();
    let written = Written { text, place, path };
    let quantity = written.number()?;
    let (hundredths, exact) = quantity.floor(1, 1).map_err(|problem| written.wrong(problem, "a percentage"))?;
    if hundredths > 100 || (hundredths == 100 && !exact) {
        return Err(not_accepted(place, &written.path, value, "a percentage from 0 to 100"));
    }
    Ok(Setting::Number(written.digits(&quantity)?))
}
