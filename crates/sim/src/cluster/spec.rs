//! The description of a cluster: groups of equal machines.
//!
//! A spec as text consists of groups separated by commas, `COUNTxCAPACITY`: `400x16c32g`, `200x16c32g,100x64c256g4gpu`. Units are `c`
//! (cores), `g` (GiB of memory), `m` (MiB of memory), `gpu` (GPUs) and `norm` (memory as a fraction of the largest machine); other
//! resources require a plan or a machines file.

use super::events::MachineEvents;
use super::{Hardware, LabelIndex, Locations};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Dim, MAX_DIMS, MachineId, Resources, Rounding, Unit, decimal};

/// The speed of a machine, in millionths: a task of duration D runs D / speed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Speed(u64);

impl Default for Speed {
    fn default() -> Speed {
        Speed(Speed::ONE)
    }
}

impl Speed {
    /// The speed at which durations are those of the workload.
    pub const ONE: u64 = 1_000_000;
    /// The accepted values, for messages.
    pub const EXPECTED: &str = "a speed from 0.001 to 1000, where 1 leaves durations as they are";

    /// Creates a speed from a number in millionths; `None` if it is out of bounds.
    pub fn new(millionths: u64) -> Option<Speed> {
        (Speed::ONE / 1000..=1000 * Speed::ONE).contains(&millionths).then_some(Speed(millionths))
    }

    /// Returns the speed in millionths.
    pub fn millionths(self) -> u64 {
        self.0
    }
}

/// Equal machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MachineGroup {
    /// Number of machines (at least 1).
    pub count: u32,
    /// The capacity of each machine, in base units.
    pub capacity: Vec<(Dim, u64)>,
    /// The labels of each machine.
    pub labels: Vec<String>,
    /// The room of all machines.
    pub room: Option<String>,
    /// The rack of all machines; with `racks`, the prefix of the racks' names.
    pub rack: Option<String>,
    /// The number of racks among which the machines are divided, in blocks of nearly equal size. The racks are called `rack0`, `rack1`,
    /// ... and are in the room of the group. If 0, all machines are in the rack that `rack` names, or in none.
    pub racks: u32,
    /// The NUMA node of each device, by resource; for a missing resource all devices are in node 0.
    pub numa: Vec<(String, Vec<u16>)>,
    /// The speed of each machine.
    pub speed: Speed,
}

impl MachineGroup {
    /// Returns the rack of machine number `at` of the group.
    fn rack_of(&self, at: u32) -> Option<String> {
        if self.racks == 0 {
            return self.rack.clone();
        }
        let rack = u64::from(at) * u64::from(self.racks) / u64::from(self.count);
        Some(format!("{}{rack}", self.rack.as_deref().unwrap_or("rack")))
    }
}

/// All machines, in the order that gives them their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSpec {
    /// The groups.
    pub groups: Vec<MachineGroup>,
    /// Each name with its first machine and the number of machines that have it. If there are several, they are called `NAME-0`, `NAME-1`,
    /// ...
    pub names: Vec<(String, MachineId, u32)>,
    /// The events of the machines.
    pub events: MachineEvents,
    /// Resources that consist of identified devices.
    pub devices: Vec<String>,
}

/// Returns a machine by its name or by its number.
pub(super) fn by_name(names: &[(String, MachineId, u32)], machines: u64, name: &str) -> Option<MachineId> {
    let named = |(known, first, count): &(String, MachineId, u32)| {
        if *count == 1 {
            return (known == name).then_some(*first);
        }
        let number = name.strip_prefix(known.as_str())?.strip_prefix('-')?.parse::<u32>().ok()?;
        (number < *count).then_some(MachineId(first.0 + number))
    };
    let number = || name.parse::<u32>().ok().filter(|number| u64::from(*number) < machines).map(MachineId);
    names.iter().find_map(named).or_else(number)
}

/// The largest number of machines in a cluster. Each machine takes memory, even in a pool.
const MACHINES_MAX: u64 = 10_000_000;

impl ClusterSpec {
    /// Returns the number of machines.
    pub fn machines(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.count)).sum()
    }

    /// Returns the names of the machines' resources, each once.
    pub fn resources(&self) -> Vec<String> {
        let names = self.groups.iter().flat_map(|group| &group.capacity).map(|(dim, _)| dim.name.clone());
        names.collect::<std::collections::BTreeSet<String>>().into_iter().collect()
    }

    /// Returns the capacity of all machines together, by resource. A sum that overflows is the largest number.
    pub fn capacity(&self) -> Vec<(Dim, u64)> {
        let mut total: Vec<(Dim, u64)> = Vec::new();
        for group in &self.groups {
            for (dim, each) in &group.capacity {
                let amount = each.saturating_mul(u64::from(group.count));
                match total.iter_mut().find(|(known, _)| known == dim) {
                    Some((_, sum)) => *sum = sum.saturating_add(amount),
                    None => total.push((dim.clone(), amount)),
                }
            }
        }
        total
    }

    /// Returns the labels of every machine, in order.
    pub fn labels(&self) -> LabelIndex {
        LabelIndex::new(
            self.groups.iter().flat_map(|group| std::iter::repeat_n(&group.labels[..], group.count as usize)),
        )
    }

    /// Returns the location of every machine.
    pub fn locations(&self) -> Locations {
        let mut locations = Locations::named(self.names.clone());
        for group in &self.groups {
            for at in 0..group.count {
                locations.push(group.rack_of(at).as_deref(), group.room.as_deref());
            }
        }
        locations
    }

    /// Returns the devices of the named resources, on the machines of this description.
    ///
    /// Errors: [`Error::Plan`] under `key` for a resource that the cluster does not have, that is not counted in thousandths, or that is
    /// listed twice, and for a machine with an amount that is not a whole number of devices, or with a different number of NUMA nodes.
    pub fn hardware(&self, key: &str, resources: &[String], cluster: &Cluster) -> Result<Hardware> {
        let mut dims = Vec::new();
        for (at, name) in resources.iter().enumerate() {
            let known = cluster.dims.iter().position(|dim| dim.name == *name && dim.unit == Unit::Milli);
            let names = || {
                let counted = cluster.dims.iter().filter(|dim| dim.unit == Unit::Milli);
                counted.map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ")
            };
            let known = known.filter(|dim| !dims.contains(dim));
            let wrong = || Error::plan(key, format!("'{name}'"), format!("each once of {}", names())).item(at);
            dims.push(known.ok_or_else(wrong)?);
        }
        let cores = cluster.dims.iter().position(|dim| dim.name == "cpu");
        let mut hardware = Hardware::new(&dims).with_cores(cores);
        let mut machines = cluster.capacities.iter().enumerate();
        for group in &self.groups {
            let nodes = |dim: usize| {
                let of = group.numa.iter().find(|(name, _)| *name == cluster.dims[dim].name);
                of.map_or(&[][..], |(_, nodes)| nodes)
            };
            for (machine, capacity) in machines.by_ref().take(group.count as usize) {
                let wrong =
                    |problem| Error::plan(key, format!("machine {machine}"), format!("whole devices; {problem}"));
                hardware.push(capacity, nodes).map_err(wrong)?;
            }
        }
        Ok(hardware)
    }

    /// Returns the machine with this name, or else with this number, from 0.
    pub fn machine(&self, name: &str) -> Option<MachineId> {
        by_name(&self.names, self.machines(), name)
    }

    /// Parses `400x16c32g` or several groups separated by commas. Errors: [`Error::Plan`] under the name `key`.
    pub fn parse(key: &str, text: &str) -> Result<ClusterSpec> {
        let mut groups = Vec::new();
        for part in text.split(',').map(str::trim) {
            let group = parse_group(part).map_err(|problem| {
                let expected = "COUNTxCAPACITY such as 400x16c32g or 100x64c256g4gpu, groups separated by commas";
                Error::plan(key, format!("'{part}'"), format!("{expected}; {problem}"))
            })?;
            groups.push(group);
        }
        Ok(ClusterSpec { groups, ..ClusterSpec::default() })
    }
}

/// A cluster in the dimensions of a run.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The workload's dimensions, followed by those that only the machines have.
    pub dims: Vec<Dim>,
    /// The capacity of each machine.
    pub capacities: Vec<Resources>,
    /// The events of machines.
    pub events: MachineEvents,
    /// The labels of the machines at the start.
    pub labels: LabelIndex,
    /// The locations of the machines.
    pub locations: Locations,
    /// The devices of the machines, if they have identities.
    pub hardware: Option<Hardware>,
    /// The speed of each machine; empty if durations are those of the workload everywhere.
    pub speeds: Vec<Speed>,
}

impl Cluster {
    /// Combines machines with the dimensions of a workload.
    ///
    /// Errors: [`Error::Mismatch`] if machines and workload count a resource in different units, if there are more than [`MAX_DIMS`]
    /// resources, no machines or too many machines, or if the sum of a resource's capacities overflows; [`Error::Plan`] as in
    /// [`ClusterSpec::hardware`].
    pub fn new(spec: &ClusterSpec, workload: &[Dim]) -> Result<Cluster> {
        let mut dims = workload.to_vec();
        for (dim, _) in spec.groups.iter().flat_map(|group| &group.capacity) {
            match dims.iter().find(|known| known.name == dim.name) {
                None => dims.push(dim.clone()),
                Some(known) if known.unit != dim.unit => {
                    let problem = format!(
                        "the workload counts {} as '{}' and the machines as '{}'; give the machines in the workload's unit",
                        dim.name,
                        known.column(),
                        dim.column()
                    );
                    return Err(Error::Mismatch { problem });
                }
                Some(_) => {}
            }
        }
        if dims.len() > MAX_DIMS {
            let problem = format!("{} resources are too many; a run can have {MAX_DIMS}", dims.len());
            return Err(Error::Mismatch { problem });
        }
        if spec.machines() > MACHINES_MAX {
            let problem = format!("{} machines are too many; a cluster can have {MACHINES_MAX}", spec.machines());
            return Err(Error::Mismatch { problem });
        }
        let mut capacities = Vec::with_capacity(usize::try_from(spec.machines()).unwrap_or_default());
        for group in &spec.groups {
            let mut capacity = Resources::ZERO;
            for (dim, amount) in &group.capacity {
                let at = dims.iter().position(|known| known.name == dim.name).expect("every dimension was added");
                capacity.0[at] = *amount;
            }
            capacities.extend(std::iter::repeat_n(capacity, group.count as usize));
        }
        if capacities.is_empty() {
            return Err(Error::Mismatch { problem: "the cluster has no machines".to_owned() });
        }
        if capacities.iter().copied().try_fold(Resources::ZERO, Resources::checked_add).is_none() {
            return Err(Error::Mismatch { problem: "the cluster is too large to add up".to_owned() });
        }
        let mut labels = spec.labels();
        spec.events.brought().for_each(|label| labels.declare(label));
        let locations = spec.locations();
        let mut speeds = Vec::new();
        if spec.groups.iter().any(|group| group.speed != Speed::default()) {
            speeds.extend(spec.groups.iter().flat_map(|group| std::iter::repeat_n(group.speed, group.count as usize)));
        }
        let events = spec.events.clone();
        let mut cluster = Cluster { dims, capacities, events, labels, locations, hardware: None, speeds };
        if !spec.devices.is_empty() {
            cluster.hardware = Some(spec.hardware("devices", &spec.devices, &cluster)?);
        }
        Ok(cluster)
    }

    /// Returns the index of memory among the dimensions, if it is one of them.
    pub fn memory(&self) -> Option<usize> {
        self.dims.iter().position(|dim| dim.name == "memory")
    }

    /// Returns the capacity of all machines together.
    pub fn total(&self) -> Resources {
        self.capacities.iter().sum()
    }
}

/// Parses `400x16c32g`. Errors: the wrong part and the reason.
fn parse_group(text: &str) -> std::result::Result<MachineGroup, String> {
    if text.is_empty() {
        return Err("the group is empty".to_owned());
    }
    let Some((count, capacity)) = text.split_once(['x', 'X']) else {
        let also = parse_capacity(text).err().map(|problem| format!(", and {problem}")).unwrap_or_default();
        return Err(format!("there is no count and no 'x' before it, as in 1x{text}{also}"));
    };
    let count = match count.trim().parse::<u32>() {
        Ok(count) if count > 0 => count,
        _ => return Err(format!("the count '{}' is no whole number from 1 to {MACHINES_MAX}", count.trim())),
    };
    Ok(MachineGroup { count, capacity: parse_capacity(capacity.trim())?, ..MachineGroup::default() })
}

/// Other spellings of units, in lower case.
const MEANT: [(&str, &str); 10] = [
    ("c", "c"),
    ("cpu", "c"),
    ("cores", "c"),
    ("g", "g"),
    ("gb", "g"),
    ("gib", "g"),
    ("mb", "m"),
    ("mib", "m"),
    ("gpu", "gpu"),
    ("gpus", "gpu"),
];

/// Parses `16c32g4gpu`. Errors: the wrong part and the reason.
fn parse_capacity(mut text: &str) -> std::result::Result<Vec<(Dim, u64)>, String> {
    if text.is_empty() {
        return Err("there is no capacity after the 'x'".to_owned());
    }
    let mut capacity: Vec<(Dim, u64)> = Vec::new();
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let rest = &text[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (number, unit) = (&text[..digits], &rest[..letters]);
        let (name, kind, scale) = match unit {
            "c" => ("cpu", Unit::Milli, 1000),
            "g" => ("memory", Unit::Mebibyte, 1024),
            "m" => ("memory", Unit::Mebibyte, 1),
            "gpu" => ("gpu", Unit::Milli, 1000),
            "norm" => ("memory", Unit::Normalised, 1_000_000),
            _ => return Err(no_unit(number, unit)),
        };
        let amount = decimal(number.as_bytes(), scale, Rounding::Down)
            .map_err(|problem| format!("the amount '{number}' of '{unit}' {problem}"))?;
        if capacity.iter().any(|(dim, _)| dim.name == name) {
            return Err(format!("'{number}{unit}' is a second amount of {name}"));
        }
        capacity.push((Dim { name: name.to_owned(), unit: kind }, amount));
        text = &rest[letters..];
    }
    Ok(capacity)
}

/// Returns the message about an unknown or missing unit.
fn no_unit(number: &str, unit: &str) -> String {
    let units = "c (cores), g (GiB of memory), m (MiB), gpu or norm";
    if unit.is_empty() {
        return format!("'{number}' has no unit: {units}");
    }
    let lower = unit.to_lowercase();
    let meant = MEANT.iter().find(|(other, _)| *other == lower);
    let hint = meant.map(|(_, unit)| format!(" (did you mean '{number}{unit}'?)")).unwrap_or_default();
    format!("'{unit}' is no unit: {units}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_groups_read_as_written() {
        let spec = ClusterSpec::parse("--machines", "200x16c32g, 3x0.5c256m4gpu").expect("a valid spec");
        assert_eq!(spec.machines(), 203);
        let amounts: Vec<_> = spec.groups[1].capacity.iter().map(|(dim, base)| (dim.column(), *base)).collect();
        assert_eq!(amounts, [("cpu".into(), 500), ("memory_mib".into(), 256), ("gpu".into(), 4000)]);
    }

    #[test]
    fn more_machines_than_memory_holds_are_refused() {
        let spec = ClusterSpec::parse("--machines", "4000000000x1c").expect("a valid spec");
        let message = Cluster::new(&spec, &[]).unwrap_err().to_string();
        assert!(message.contains("4000000000 machines are too many"), "{message}");
    }

    #[test]
    fn bad_specs_say_what_would_be_accepted() {
        for text in ["", "16c32g", "0x16c", "4x16q", "4x", "4x16c16c", "x16c", "-1x16c"] {
            let message = ClusterSpec::parse("--machines", text).unwrap_err().to_string();
            assert!(message.contains("400x16c32g"), "{text}: {message}");
        }
        for (text, problem) in [
            ("999999999999x8c32g", "the count '999999999999' is no whole number from 1 to 10000000"),
            ("1x4c, 2x8c32q", "'2x8c32q' is not accepted"),
            ("2x8c32q", "'q' is no unit: c (cores), g (GiB of memory), m (MiB), gpu or norm"),
            ("32GB", "there is no count and no 'x' before it, as in 1x32GB, and 'GB' is no unit"),
            ("2x8c32GB", "'GB' is no unit: c (cores), g (GiB of memory), m (MiB), gpu or norm (did you mean '32g'?)"),
            ("2x8", "'8' has no unit"),
            ("2x8c4c", "'4c' is a second amount of cpu"),
            ("2xc", "the amount '' of 'c'"),
            ("2x", "no capacity after the 'x'"),
            ("2x99999999999999999999c", "'99999999999999999999' of 'c' is too large"),
            ("2x8c,", "the group is empty"),
        ] {
            let message = ClusterSpec::parse("--machines", text).unwrap_err().to_string();
            assert!(message.contains(problem), "{text}: {message}");
        }
    }
}
