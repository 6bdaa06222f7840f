//! A machines file: CSV with a header, a row a machine or a group of equal machines.
//!
//! Columns: one per resource with its unit in the name as in a trace (`cpu`, `memory_gib`, `gpu`, ...), and optionally
//! `count` (default 1), `name` and `label`, which are not used yet. The node list of Alibaba's 2023 GPU trace is read
//! too (`sn,cpu_milli,memory_mib,gpu,model`). Rows keep their order, which gives the machines their ids; neighbours
//! that are equal share a group. Capacities round down.

use std::path::Path;

use super::{ClusterSpec, MachineGroup};
use crate::error::{Error, Result};
use crate::rows::{Column, Row, Rows, Separator};
use crate::units::{Dim, MAX_DIMS, Round, Unit};

/// What a column holds.
enum Kind {
    /// How many machines the row stands for.
    Count,
    /// Nothing that the cluster needs.
    Ignored,
    /// So much of a resource, in so many base units.
    Capacity(Dim, u64),
}

/// Columns of a trace, which a machines file cannot have.
const OF_A_TRACE: [&str; 8] = ["job", "user", "tasks", "stage", "after", "priority", "gang", "weight"];

const EXPECTED: &str = "resources such as cpu, memory_gib or gpu, and optionally count, name and label";

/// Reads a machines file. Errors: [`Error::Io`], or [`Error::Trace`] with line and column.
pub fn read(path: &Path) -> Result<ClusterSpec> {
    let mut rows = Rows::open(path, Separator::Comma)?;
    let none = || Error::trace(path, 0, "", format!("has no rows; expected a header with {EXPECTED}"));
    let header = header(&rows.read()?.ok_or_else(none)?)?;
    let mut spec = ClusterSpec::default();
    while let Some(row) = rows.read()? {
        row.expect_fields(header.len()..=header.len(), &format!("{}, as in the header", header.len()))?;
        let group = group(&row, &header)?;
        match spec.groups.last_mut() {
            Some(last) if last.capacity == group.capacity && last.count.checked_add(group.count).is_some() => {
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

/// The name and kind of each column.
fn header(row: &Row<'_>) -> Result<Vec<(String, Kind)>> {
    let openb = row.record.iter().any(|field| field == b"sn") && row.record.iter().any(|field| field == b"cpu_milli");
    let mut columns: Vec<(String, Kind)> = Vec::new();
    for (at, field) in row.record.iter().enumerate() {
        let name = row.text(Column::new(at, "header"))?;
        let bad = |problem: &str| Err(row.error(name, format!("{problem}; expected {EXPECTED}")));
        let word =
            !field.is_empty() && field.iter().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(byte));
        if !word || field[0].is_ascii_digit() {
            return bad("is not a column's name (lower-case letters, digits and _)");
        }
        let kind = match name {
            "count" => Kind::Count,
            "name" | "label" => Kind::Ignored,
            "sn" | "model" if openb => Kind::Ignored,
            "cpu_milli" if openb => Kind::Capacity(Dim { name: "cpu".to_owned(), unit: Unit::Milli }, 1),
            _ if OF_A_TRACE.contains(&name) || name.starts_with("submit_") || name.starts_with("duration_") => {
                return bad("belongs to a trace, not to machines");
            }
            _ => {
                let (dim, scale) = Dim::parse(name);
                Kind::Capacity(dim, scale)
            }
        };
        let twice = columns.iter().any(|(other, known)| match (known, &kind) {
            (Kind::Capacity(known, _), Kind::Capacity(dim, _)) => known.name == dim.name,
            _ => other == name,
        });
        if twice {
            return bad("comes twice");
        }
        columns.push((name.to_owned(), kind));
    }
    let resources = columns.iter().filter(|(_, kind)| matches!(kind, Kind::Capacity(..))).count();
    match resources {
        0 => Err(row.error("", format!("names no resource; expected {EXPECTED}"))),
        1..=MAX_DIMS => Ok(columns),
        _ => Err(row.error("", format!("names {resources} resources; expected at most {MAX_DIMS}"))),
    }
}

fn group(row: &Row<'_>, header: &[(String, Kind)]) -> Result<MachineGroup> {
    let mut group = MachineGroup { count: 1, capacity: Vec::new() };
    for (at, (name, kind)) in header.iter().enumerate() {
        let column = Column::new(at, name);
        match kind {
            Kind::Ignored => {}
            Kind::Count if row.is_null(column) => {}
            Kind::Count => {
                const COUNT: &str = "a number of machines from 1 to 4294967295";
                let count = row.whole(column, COUNT)?;
                let fits = u32::try_from(count).ok().filter(|&count| count > 0);
                group.count = fits.ok_or_else(|| row.wrong(column, "is no such number", COUNT))?;
            }
            Kind::Capacity(dim, scale) => {
                let amount = row.number(column, *scale, Round::Down, "an amount from 0 (0 if it has none)")?;
                group.capacity.push((dim.clone(), amount));
            }
        }
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
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
        assert_eq!(spec.groups.iter().map(|group| group.count).collect::<Vec<_>>(), [3, 1]);
        let amounts: Vec<_> = spec.groups[1].capacity.iter().map(|(dim, base)| (dim.column(), *base)).collect();
        assert_eq!(amounts, [("cpu".into(), 555), ("memory_mib".into(), 102), ("gpu".into(), 4000)]);
    }

    #[test]
    fn malformed_files_are_located() {
        for (text, want) in [
            ("", "has no rows; expected a header with resources"),
            ("cpu,memory_gib\n", "has no rows; expected a header with resources"),
            ("name,count\nx,1\n", ", line 1: names no resource"),
            ("cpu,CPU\n1,1\n", ", line 1, column 'CPU': is not a column's name"),
            ("cpu,submit_s\n1,1\n", "column 'submit_s': belongs to a trace"),
            ("memory_gib,memory_mib\n1,1\n", "column 'memory_mib': comes twice"),
            ("count,count,cpu\n1,1,1\n", "column 'count': comes twice"),
            ("a,b,c,d,e,f,g,h,i\n", "names 9 resources; expected at most 8"),
            ("cpu,memory_gib\n16\n", ", line 2: has 1 field; expected 2"),
            ("cpu,memory_gib\n16,\n", ", line 2, column 'memory_gib': is empty; expected an amount"),
            ("cpu,memory_gib\n\n16,x\n", ", line 3, column 'memory_gib': 'x' is not a number"),
            ("count,cpu\n0,1\n", "column 'count': '0' is no such number; expected a number of machines"),
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
        assert_eq!((spec.machines(), spec.groups.len()), (1523, 516));
        let total =
            |at: usize| -> u64 { spec.groups.iter().map(|group| u64::from(group.count) * group.capacity[at].1).sum() };
        assert_eq!([total(0), total(1), total(2)], [125_514_000, 612_028_416, 6_212_000]);
    }
}
