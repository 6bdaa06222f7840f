//! A machines file: CSV with a header and a row for each machine or each group of equal machines.
//!
//! Columns: one per resource with its unit in the name as in a trace (`cpu`, `memory_gib`, `gpu`, ...), and optionally `count` (default
//! 1), `name`, `labels` (separated by `;`), `room`, `rack`, `speed` (1), and the NUMA nodes of a resource's devices (`gpu_numa`, separated
//! by `;`). The node list of Alibaba's 2023 GPU trace is also accepted (`sn,cpu_milli,memory_mib,gpu,model`); the model of its GPUs
//! becomes the label `model=...`. Machines get their ids in the order of the rows; adjacent equal rows share a group. Capacities are
//! rounded down.

use std::collections::HashSet;
use std::path::Path;

use super::expression::is_label;
use super::{ClusterSpec, MachineGroup, Speed};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{Dim, MAX_DIMS, MachineId, Rounding, Unit};

/// The content of a column.
enum ColumnContent {
    /// The number of machines of the row.
    Count,
    /// The machine's name in messages and machine events.
    Name,
    /// Labels.
    Labels,
    /// The model of an openb node's GPUs.
    Model,
    /// The room of the machine.
    Room,
    /// The rack of the machine in its room.
    Rack,
    /// The speed of the machine.
    Speed,
    /// The NUMA node of each device of a resource.
    Numa(String),
    /// The amount of a resource, in units of this many base units.
    Capacity(Dim, u64),
}

/// Columns of a trace, which a machines file cannot have.
const OF_A_TRACE: [&str; 8] = ["job", "user", "tasks", "stage", "after", "priority", "gang", "weight"];

const EXPECTED: &str =
    "resources such as cpu, memory_gib or gpu, and optionally count, name, labels, room, rack, speed and gpu_numa";

/// Reads a machines file. Errors: [`Error::Io`], or [`Error::Trace`] with line and column.
pub fn read(path: &Path) -> Result<ClusterSpec> {
    let mut rows = InputRows::open(path, Separator::Comma)?;
    let none = || Error::trace(path, 0, "", format!("has no rows; expected a header with {EXPECTED}"));
    let header = header(&rows.read()?.ok_or_else(none)?)?;
    let mut spec = ClusterSpec::default();
    let mut names = HashSet::new();
    let mut machines = 0u32;
    while let Some(row) = rows.read()? {
        row.expect_fields(header.len()..=header.len(), &format!("{}, as in the header", header.len()))?;
        let (group, name) = group(&row, &header)?;
        if let Some((column, name)) = name.filter(|(_, name)| !name.is_empty()) {
            if !names.insert(name.to_owned()) {
                return Err(row.error(column, format!("'{name}' is a machine already; expected each name once")));
            }
            spec.names.push((name.to_owned(), MachineId(machines), group.count));
        }
        machines = machines.saturating_add(group.count);
        match spec.groups.last_mut() {
            Some(last) if alike(last, &group) && last.count.checked_add(group.count).is_some() => {
                last.count += group.count;
            }
            _ => spec.groups.push(group),
        }
    }
    if spec.groups.is_empty() {
        return Err(none());
    }
    Ok(spec)
}

/// Returns whether groups differ only in their number of machines.
fn alike(a: &MachineGroup, b: &MachineGroup) -> bool {
    let what = |group: &MachineGroup| MachineGroup { count: 1, ..group.clone() };
    what(a) == what(b)
}

/// Returns the name and kind of each column.
fn header(row: &InputRow<'_>) -> Result<Vec<(String, ColumnContent)>> {
    let openb = row.record.iter().any(|field| field == b"sn") && row.record.iter().any(|field| field == b"cpu_milli");
    let mut columns: Vec<(String, ColumnContent)> = Vec::new();
    for (at, field) in row.record.iter().enumerate() {
        let name = row.text(InputColumn::new(at, "header"))?;
        let bad = |problem: &str| Err(row.error(name, format!("{problem}; expected {EXPECTED}")));
        let word =
            !field.is_empty() && field.iter().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(byte));
        if !word || field[0].is_ascii_digit() {
            return bad("is not a column's name (lower-case letters, digits and _)");
        }
        let kind = match name {
            "count" => ColumnContent::Count,
            "name" => ColumnContent::Name,
            "sn" if openb => ColumnContent::Name,
            "labels" | "label" => ColumnContent::Labels,
            "model" if openb => ColumnContent::Model,
            "room" => ColumnContent::Room,
            "rack" => ColumnContent::Rack,
            "speed" => ColumnContent::Speed,
            _ if name.ends_with("_numa") => ColumnContent::Numa(name.trim_end_matches("_numa").to_owned()),
            "cpu_milli" if openb => ColumnContent::Capacity(Dim { name: "cpu".to_owned(), unit: Unit::Milli }, 1),
            _ if OF_A_TRACE.contains(&name) || name.starts_with("submit_") || name.starts_with("duration_") => {
                return bad("belongs to a trace, not to machines");
            }
            _ => {
                let (dim, scale) = Dim::parse(name);
                ColumnContent::Capacity(dim, scale)
            }
        };
        let twice = columns.iter().any(|(other, known)| match (known, &kind) {
            (ColumnContent::Capacity(known, _), ColumnContent::Capacity(dim, _)) => known.name == dim.name,
            (known, kind) => {
                other == name
                    || std::mem::discriminant(known) == std::mem::discriminant(kind)
                        && !matches!(kind, ColumnContent::Numa(_) | ColumnContent::Capacity(..))
            }
        });
        if twice {
            return bad("is given twice");
        }
        columns.push((name.to_owned(), kind));
    }
    for (name, kind) in &columns {
        let ColumnContent::Numa(resource) = kind else { continue };
        if !columns.iter().any(|(_, other)| matches!(other, ColumnContent::Capacity(dim, _) if dim.name == *resource)) {
            return Err(row.error(name, format!("describes '{resource}', which is no column")));
        }
    }
    let resources = columns.iter().filter(|(_, kind)| matches!(kind, ColumnContent::Capacity(..))).count();
    match resources {
        0 => Err(row.error("", format!("names no resource; expected {EXPECTED}"))),
        1..=MAX_DIMS => Ok(columns),
        _ => Err(row.error("", format!("names {resources} resources; expected at most {MAX_DIMS}"))),
    }
}

/// Returns a row's machines, and the column and the text of their name.
fn group<'a>(
    row: &InputRow<'a>,
    header: &'a [(String, ColumnContent)],
) -> Result<(MachineGroup, Option<(&'a str, &'a str)>)> {
    let mut group = MachineGroup { count: 1, ..MachineGroup::default() };
    let mut called = None;
    for (at, (name, kind)) in header.iter().enumerate() {
        let column = InputColumn::new(at, name);
        let text = || row.text(column).map(|text| (!text.is_empty()).then(|| text.to_owned()));
        match kind {
            ColumnContent::Name => called = Some((name.as_str(), row.text(column)?)),
            ColumnContent::Labels => group.labels.extend(labels(row, column)?),
            ColumnContent::Model => group.labels.extend(text()?.map(|model| format!("model={model}"))),
            ColumnContent::Room => group.room = text()?,
            ColumnContent::Rack => group.rack = text()?,
            ColumnContent::Numa(resource) => {
                let parts = row.text(column)?.split(';').map(str::trim).filter(|part| !part.is_empty());
                let nodes = parts.map(str::parse).collect::<std::result::Result<Vec<u16>, _>>();
                let wrong = |_| row.wrong(column, "is not accepted", "a NUMA node for each device, such as 0;0;1;1");
                group.numa.push((resource.clone(), nodes.map_err(wrong)?));
            }
            ColumnContent::Count | ColumnContent::Speed if row.is_null(column) => {}
            ColumnContent::Speed => {
                let millionths = row.number(column, Speed::ONE, Rounding::Nearest, Speed::EXPECTED)?;
                let wrong = || row.wrong(column, "is not accepted", Speed::EXPECTED);
                group.speed = Speed::new(millionths).ok_or_else(wrong)?;
            }
            ColumnContent::Count => {
                const COUNT: &str = "a number of machines from 1 to 4294967295";
                let count = row.integer(column, COUNT)?;
                let fits = u32::try_from(count).ok().filter(|&count| count > 0);
                group.count = fits.ok_or_else(|| row.wrong(column, "is not accepted", COUNT))?;
            }
            ColumnContent::Capacity(dim, scale) => {
                let amount = row.number(column, *scale, Rounding::Down, "an amount from 0 (0 if it has none)")?;
                group.capacity.push((dim.clone(), amount));
            }
        }
    }
    Ok((group, called))
}

/// Parses the labels of a field; returns them in alphabetical order.
pub(super) fn labels(row: &InputRow<'_>, column: InputColumn<'_>) -> Result<Vec<String>> {
    let mut labels = Vec::new();
    for label in row.text(column)?.split(';').map(str::trim).filter(|label| !label.is_empty()) {
        if !is_label(label) {
            let expected = "labels of letters, digits and _ - . : / =, separated by ;";
            return Err(row.error(column.name, format!("'{label}' is no label; expected {expected}")));
        }
        labels.push(label.to_owned());
    }
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::cluster::Cluster;
    use crate::workload::formats::tests::shared;

    fn parse(text: &str) -> Result<ClusterSpec> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writable");
        read(file.path())
    }

    #[test]
    fn machines_read_as_written() {
        let text =
            "\u{feff}name, count,cpu,memory_gib,gpu,label\r\na,,16,32,0,\r\nb,2,16,32,0,fast\r\nc,1,0.5555,0.1,4,\r\n";
        let spec = parse(text).expect("readable");
        assert_eq!(spec.groups.iter().map(|group| group.count).collect::<Vec<_>>(), [1, 2, 1]);
        let amounts: Vec<_> = spec.groups[2].capacity.iter().map(|(dim, base)| (dim.column(), *base)).collect();
        assert_eq!(amounts, [("cpu".into(), 555), ("memory_mib".into(), 102), ("gpu".into(), 4000)]);
    }

    #[test]
    fn labels_places_and_devices_come_along() {
        let text = "name,count,gpu,labels,room,rack,gpu_numa\n\
                    a,,2,gpu;ssd; ssd,hz,r1,0;1\n\
                    b,3,2,ssd;gpu,hz,r1,0;1\n\
                    ,2,0,,,,\n\
                    c,1,1,room=x,sh,,\n";
        let spec = parse(text).expect("readable");
        assert_eq!(spec.groups.iter().map(|group| group.count).collect::<Vec<_>>(), [4, 2, 1]);
        let mut labels = spec.labels();
        let class = labels.class("gpu & !room=x").expect("known labels");
        assert_eq!(labels.members(class).iter().map(|machine| machine.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let locations = spec.locations();
        assert_eq!((locations.counts(), locations.machines()), ((1, 2), 7));
        let named = ["a", "b-0", "b-2", "c", "4", "b", "b-3", "7", "d"].map(|name| spec.machine(name).map(|m| m.0));
        assert_eq!(named, [Some(0), Some(1), Some(3), Some(6), Some(4), None, None, None, None]);
        let cluster = Cluster::new(&spec, &[]).expect("a cluster");
        let gpus = ["gpu".to_owned()];
        let hardware = spec.hardware("devices", &gpus, &cluster).expect("whole GPUs");
        assert_eq!(hardware.free(0, MachineId(3)), Some(&[1000, 1000][..]));
        let message = |resources: &[&str], text: &str| {
            let spec = parse(text).expect("readable");
            let resources: Vec<String> = resources.iter().map(|name| (*name).to_owned()).collect();
            let cluster = Cluster::new(&spec, &[]).expect("a cluster");
            spec.hardware("devices", &resources, &cluster).expect_err(text).to_string()
        };
        assert!(message(&["disk"], text).contains("devices: 'disk' is not accepted; expected each once of gpu"));
        assert!(message(&["gpu", "gpu"], text).contains("each once of gpu"));
        let half = message(&["gpu"], "gpu\n2\n1.5\n");
        assert!(half.contains("machine 1 is not accepted; expected whole devices; 1.5 is no whole number"), "{half}");
        let nodes = message(&["gpu"], "gpu,gpu_numa\n2,0\n");
        assert!(nodes.contains("1 NUMA nodes for 2 devices"), "{nodes}");
    }

    #[test]
    fn groups_stand_in_their_racks() {
        let group = MachineGroup { count: 5, room: Some("hz".into()), racks: 2, ..MachineGroup::default() };
        let spec = ClusterSpec { groups: vec![group], ..ClusterSpec::default() };
        let locations = spec.locations();
        let racks = (0..5).map(|machine| locations.rack(MachineId(machine)).expect("a rack").0);
        assert_eq!(racks.collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
        assert!(locations.find("hz/rack1").is_ok());
    }

    #[test]
    fn malformed_files_are_located() {
        for (text, want) in [
            ("", "has no rows; expected a header with resources"),
            ("cpu,memory_gib\n", "has no rows; expected a header with resources"),
            ("name,count\nx,1\n", ", line 1: names no resource"),
            ("cpu,CPU\n1,1\n", ", line 1, column 'CPU': is not a column's name"),
            ("cpu,submit_s\n1,1\n", "column 'submit_s': belongs to a trace"),
            ("memory_gib,memory_mib\n1,1\n", "column 'memory_mib': is given twice"),
            ("count,count,cpu\n1,1,1\n", "column 'count': is given twice"),
            ("a,b,c,d,e,f,g,h,i\n", "names 9 resources; expected at most 8"),
            ("cpu,memory_gib\n16\n", ", line 2: has 1 field; expected 2"),
            ("cpu,memory_gib\n16,\n", ", line 2, column 'memory_gib': is empty; expected an amount"),
            ("cpu,memory_gib\n\n16,x\n", ", line 3, column 'memory_gib': 'x' is not a number"),
            ("cpu,labels\n1,a b\n", ", line 2, column 'labels': 'a b' is no label; expected labels of letters"),
            ("cpu,labels,label\n1,a,b\n", "column 'label': is given twice"),
            ("name,cpu\na,1\na,1\n", ", line 3, column 'name': 'a' is a machine already"),
            ("cpu,gpu_numa\n1,0\n", ", line 1, column 'gpu_numa': describes 'gpu', which is no column"),
            ("gpu,gpu_numa\n1,x\n", ", line 2, column 'gpu_numa': 'x' is not accepted; expected a NUMA node"),
            ("count,cpu\n0,1\n", "column 'count': '0' is not accepted; expected a number of machines"),
            ("count,cpu\n1.5,1\n", "column 'count': '1.5' is not a whole number"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(want), "{message}");
        }
        assert!(matches!(read(Path::new("absent.csv")), Err(Error::Io { .. })));
    }

    #[test]
    fn the_real_node_list_reads_whole() {
        let Some(path) = shared("openb-2023/openb_node_list_all_node.csv") else { return };
        let spec = read(&path).expect("readable");
        assert_eq!((spec.machines(), spec.names.len()), (1523, 1523));
        assert_eq!(spec.machine("openb-node-0007"), Some(MachineId(7)));
        let labels = spec.labels();
        assert!(labels.carriers("model=T4").is_some_and(|nodes| nodes.len() > 100));
        let total =
            |at: usize| -> u64 { spec.groups.iter().map(|group| u64::from(group.count) * group.capacity[at].1).sum() };
        assert_eq!([total(0), total(1), total(2)], [125_514_000, 612_028_416, 6_212_000]);
    }
}
