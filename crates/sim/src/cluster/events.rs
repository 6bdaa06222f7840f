//! Machine events: the instants at which machines fail, leave, join or get other labels.
//!
//! A CSV with the header `at_s,machine,event,labels` (`at_ms` and `at_us` as well; `labels` may be missing), sorted by time. A machine with
//! `join` as its first event is absent at the start. The vocabulary is ours.

use std::path::Path;

use super::ClusterSpec;
use super::file::labels;
use plimsoll_base::error::{Result, did_you_mean};
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};
use plimsoll_base::units::{MachineId, Rounding, Time, US_PER_S};

/// An event of a machine.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MachineChange {
    /// The machine fails at once, and its running tasks stop.
    Fail,
    /// No task starts on the machine any more; its running tasks continue to their end.
    Leave,
    /// The machine becomes present, for the first time or again, with its capacity.
    Join,
    /// The machine has exactly these labels from now on.
    Relabel(Vec<String>),
}

/// A change and its time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MachineEvent {
    /// The time.
    pub at: Time,
    /// The machine.
    pub machine: MachineId,
    /// The event.
    pub change: MachineChange,
}

/// All events of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MachineEvents {
    /// Machines that are absent at the start.
    pub absent: Vec<MachineId>,
    /// Events in order of time; events of one instant are in the order of the file.
    pub events: Vec<MachineEvent>,
}

impl MachineEvents {
    /// Returns the labels that occur in events.
    pub fn brought(&self) -> impl Iterator<Item = &str> {
        let labels = self.events.iter().filter_map(|event| match &event.change {
            MachineChange::Relabel(labels) => Some(labels),
            MachineChange::Fail | MachineChange::Leave | MachineChange::Join => None,
        });
        labels.flatten().map(String::as_str)
    }

    /// Returns whether an event changes the labels of a machine.
    pub fn relabel(&self) -> bool {
        self.events.iter().any(|event| matches!(event.change, MachineChange::Relabel(_)))
    }
}

const EXPECTED: &str = "at_s (or at_ms, at_us), machine, event and optionally labels";

/// The positions of the columns.
struct Header<'a> {
    at: InputColumn<'a>,
    /// Microseconds per unit of time.
    scale: u64,
    machine: InputColumn<'a>,
    event: InputColumn<'a>,
    labels: Option<InputColumn<'a>>,
}

/// Reads an events file for the machines of a description.
///
/// Errors: [`plimsoll_base::error::Error::Io`], or [`plimsoll_base::error::Error::Trace`] with line and column for an unknown machine or
/// event, events out of order, labels without `relabel`, a machine that joins while it is present, or fails or leaves while it is absent.
pub fn read(path: &Path, machines: &ClusterSpec) -> Result<MachineEvents> {
    let mut rows = InputRows::open(path, Separator::Comma)?;
    let mut columns: Vec<String> = Vec::new();
    let Some(first) = rows.read()? else {
        return Err(plimsoll_base::error::Error::trace(
            path,
            0,
            "",
            format!("has no rows; expected a header with {EXPECTED}"),
        ));
    };
    for (at, _) in first.record.iter().enumerate() {
        columns.push(first.text(InputColumn::new(at, "header"))?.to_owned());
    }
    let header = header(&first, &columns)?;
    let mut all = MachineEvents::default();
    // Whether a machine is present, for machines with earlier events.
    let mut there: std::collections::HashMap<MachineId, bool> = std::collections::HashMap::new();
    while let Some(row) = rows.read()? {
        row.expect_fields(columns.len()..=columns.len(), &format!("{}, as in the header", columns.len()))?;
        let event = event(&row, &header, machines)?;
        if all.events.last().is_some_and(|last| last.at > event.at) {
            return Err(row.wrong(header.at, "is before the row above", "rows sorted by time"));
        }
        let name = row.text(header.machine)?;
        let known = there.get(&event.machine).copied();
        let now = match event.change {
            MachineChange::Join if known == Some(true) => {
                return Err(row.error(header.event.name, format!("'join', but '{name}' is there already")));
            }
            MachineChange::Join => true,
            MachineChange::Fail | MachineChange::Leave if known == Some(false) => {
                return Err(row.error(header.event.name, format!("'{name}' is not there; expected join or relabel")));
            }
            MachineChange::Fail | MachineChange::Leave => false,
            MachineChange::Relabel(_) => known.unwrap_or(true),
        };
        if known.is_none() && event.change == MachineChange::Join {
            all.absent.push(event.machine);
        }
        // A relabelled machine may be absent, so this event does not make it present.
        if known.is_some() || !matches!(event.change, MachineChange::Relabel(_)) {
            there.insert(event.machine, now);
        }
        all.events.push(event);
    }
    Ok(all)
}

fn header<'a>(row: &InputRow<'_>, columns: &'a [String]) -> Result<Header<'a>> {
    const KNOWN: [&str; 6] = ["at_s", "at_ms", "at_us", "machine", "event", "labels"];
    for (at, name) in columns.iter().enumerate() {
        if !KNOWN.contains(&name.as_str()) {
            return Err(row.error(name, format!("is no column of machine events; expected {EXPECTED}")));
        }
        if columns[..at].contains(name) {
            return Err(row.error(name, "is given twice"));
        }
    }
    let find =
        |name: &str| columns.iter().position(|column| column == name).map(|at| InputColumn::new(at, &columns[at]));
    let need = |name: &str| find(name).ok_or_else(|| row.error(name, format!("is missing; expected {EXPECTED}")));
    let times = [("at_s", US_PER_S), ("at_ms", 1000), ("at_us", 1)];
    let mut times = times.iter().filter_map(|(name, scale)| find(name).map(|column| (column, *scale)));
    let (at, scale) = times.next().map_or_else(|| need("at_s").map(|column| (column, 1)), Ok)?;
    if let Some((other, _)) = times.next() {
        return Err(row.error(other.name, format!("is a second column of times; expected {EXPECTED}")));
    }
    Ok(Header { at, scale, machine: need("machine")?, event: need("event")?, labels: find("labels") })
}

fn event(row: &InputRow<'_>, header: &Header<'_>, machines: &ClusterSpec) -> Result<MachineEvent> {
    let at = row.number(header.at, header.scale, Rounding::Nearest, "a time from 0 to 10^12 s (31,700 years)")?;
    let name = row.name(header.machine)?;
    let machine = machines.machine(name).ok_or_else(|| {
        let hint = did_you_mean(name, machines.names.iter().map(|(name, _, _)| name.as_str()));
        let last = machines.machines().saturating_sub(1);
        let expected = format!("a name of the machines file, or a number from 0 to {last}");
        row.error(header.machine.name, format!("'{name}' is no machine{hint}; expected {expected}"))
    })?;
    let carried = header.labels.map(|column| labels(row, column)).transpose()?.unwrap_or_default();
    let change = match row.name(header.event)? {
        "fail" => MachineChange::Fail,
        "leave" => MachineChange::Leave,
        "join" => MachineChange::Join,
        "relabel" => MachineChange::Relabel(carried.clone()),
        _ => return Err(row.wrong(header.event, "is no event", "fail, leave, join or relabel")),
    };
    if let (Some(column), false, false) =
        (header.labels, carried.is_empty(), matches!(change, MachineChange::Relabel(_)))
    {
        return Err(row.wrong(column, "is given with another event", "labels only with relabel"));
    }
    Ok(MachineEvent { at: Time(at), machine, change })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn parse(text: &str) -> Result<MachineEvents> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writable");
        let mut spec = ClusterSpec::parse("machines", "4x1c").expect("a spec");
        spec.names = vec![("alpha".into(), MachineId(0), 1), ("beta".into(), MachineId(1), 2)];
        read(file.path(), &spec)
    }

    #[test]
    fn events_read_as_written() {
        let text = "at_s,machine,event,labels\n0.5,alpha,fail,\n1,beta-1,relabel,ssd;gpu\n1,3,join,\n2,alpha,join,\n\
                    2,beta-0,leave,\n2,beta-1,relabel,\n";
        let got = parse(text).expect("readable");
        assert_eq!(got.absent, [MachineId(3)]);
        let events: Vec<_> = got.events.iter().map(|e| (e.at.0, e.machine.0, e.change.clone())).collect();
        let relabel =
            |labels: &[&str]| MachineChange::Relabel(labels.iter().map(|label| (*label).to_owned()).collect());
        let want = [
            (500_000, 0, MachineChange::Fail),
            (1_000_000, 2, relabel(&["gpu", "ssd"])),
            (1_000_000, 3, MachineChange::Join),
            (2_000_000, 0, MachineChange::Join),
            (2_000_000, 1, MachineChange::Leave),
            (2_000_000, 2, relabel(&[])),
        ];
        assert_eq!(events, want);
        assert_eq!(parse("event,machine,at_ms\nfail,0,7\n").expect("readable").events[0].at, Time(7000));
    }

    #[test]
    fn malformed_files_are_located() {
        for (text, want) in [
            ("", "has no rows; expected a header with at_s"),
            ("at_s,machine\n", ", line 1, column 'event': is missing"),
            ("machine,event\n", ", line 1, column 'at_s': is missing"),
            ("at_s,at_ms,machine,event\n", "column 'at_ms': is a second column of times"),
            ("at_s,machine,event,event\n", "column 'event': is given twice"),
            ("at_s,machine,event,why\n", "column 'why': is no column of machine events"),
            (
                "at_s,machine,event\n1,alfa,fail\n",
                ", line 2, column 'machine': 'alfa' is no machine (did you mean 'alpha'?)",
            ),
            (
                "at_s,machine,event\n1,4,fail\n",
                "'4' is no machine; expected a name of the machines file, or a number from 0 to 3",
            ),
            (
                "at_s,machine,event\n1,0,die\n",
                "column 'event': 'die' is no event; expected fail, leave, join or relabel",
            ),
            ("at_s,machine,event\n2,0,fail\n1,1,fail\n", ", line 3, column 'at_s': '1' is before the row above"),
            ("at_s,machine,event\n-1,0,fail\n", "column 'at_s': '-1' is negative; expected a time"),
            ("at_s,machine,event\n1,0,fail\n2,0,leave\n", ", line 3, column 'event': '0' is not there"),
            ("at_s,machine,event\n1,0,join\n2,0,join\n", "'join', but '0' is there already"),
            ("at_s,machine,event,labels\n1,0,fail,ssd\n", "column 'labels': 'ssd' is given with another event"),
            ("at_s,machine,event,labels\n1,0,relabel,a b\n", "column 'labels': 'a b' is no label"),
            ("at_s,machine,event\n1,0\n", ", line 2: has 2 fields; expected 3"),
        ] {
            let message = parse(text).expect_err(text).to_string();
            assert!(message.contains(want), "{message}");
        }
    }
}
