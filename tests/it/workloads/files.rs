//! The files of a case: the trace, the machines, their events, and the weights of users.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{COLUMNS, Case, RESOURCES, USERS, WEIGHTS, Weighting};
use crate::slow::{Change, Expression, Inside, Location, Policy};

/// The labels of machines.
pub const LABELS: [&str; 4] = ["ssd", "x-1.2/b:c", "room=hz", "GPU_7"];
const ROOMS: [&str; 2] = ["hz", "sh"];
const RACKS: [&str; 2] = ["r1", "0"];
const NAMES: [&str; 3] = ["web", "m.a", "zoo"];

/// The separator of several stages in the `after` column.
const STAGE_SEPARATOR: &str = ";";

impl Case {
    /// Returns a policy's name with the order inside users.
    pub fn policy(&self, policy: Policy) -> String {
        if let Inside::Written(written) = self.inside {
            let order = written.text();
            return match policy {
                Policy::Line => format!("expr:(order {order})"),
                Policy::Drf => format!("expr:(max(held[r] / (capacity[r] * weight[r])); order {order})"),
                other => unreachable!("not written as an expression: {other:?}"),
            };
        }
        policy_name(policy) + self.inside.suffix()
    }

    /// Returns whether no row has an estimate or a deadline.
    fn is_plain(&self) -> bool {
        self.rows.iter().all(|row| (row.estimate, row.deadline) == (None, None))
    }

    /// Returns the trace as canonical CSV.
    pub fn csv(&self) -> String {
        let mut text = format!(
            "job,user,submit_us,duration_us,tasks,{},stage,after,priority,gang{}{}\n",
            COLUMNS[..self.dims()].join(","),
            if self.is_plain() { "" } else { ",estimate_us,deadline_us" },
            if self.sites.is_empty() { "" } else { ",label,location,stable" },
        );
        for (at, row) in self.rows.iter().enumerate() {
            let (job, user) = (job_name(row.job), USERS[row.user]);
            write!(text, "{job},{user},{},{},{}", row.submit, row.duration, row.tasks).unwrap();
            for (r, &amount) in row.demand.iter().enumerate() {
                // Memory is in MiB; cores and GPUs are in thousandths, written as decimals.
                let amount = if r == 1 { amount.to_string() } else { thousandths(amount) };
                write!(text, ",{amount}").unwrap();
            }
            let stage = row.stage.map(stage_name).unwrap_or_default();
            let after: Vec<String> = row.after.iter().map(|&stage| stage_name(stage)).collect();
            write!(text, ",{stage},{},{},{}", after.join(STAGE_SEPARATOR), row.priority, row.gang).unwrap();
            if !self.is_plain() {
                let text_of = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
                write!(text, ",{},{}", text_of(row.estimate), text_of(row.deadline)).unwrap();
            }
            if !self.sites.is_empty() {
                let loose = (at as u64 + self.style) % 3;
                let label = row.label.as_ref().map(|label| written(label, loose)).unwrap_or_default();
                write!(text, ",{label},{},{}", self.place_name(row.place, loose), row.stable).unwrap();
            }
            text.push('\n');
        }
        text
    }

    /// Returns the cluster in the notation of `--machines`.
    pub fn spec(&self) -> String {
        let group = |(count, capacity): &(u64, Vec<u64>)| {
            let gpus = capacity.get(2).filter(|&&gpus| gpus > 0);
            let gpus = gpus.map(|&gpus| format!("{}gpu", thousandths(gpus))).unwrap_or_default();
            format!("{count}x{}c{}m{gpus}", thousandths(capacity[0]), capacity[1])
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join(",")
    }

    /// Returns whether the cluster is described by a machines file, because its notation as text does not suffice.
    pub fn has_machines_file(&self) -> bool {
        !self.sites.is_empty() || !self.speeds.is_empty()
    }

    /// Returns the text of the weights file, or `None` if the case has no weights.
    pub fn weights_csv(&self) -> Option<String> {
        let columns = match self.weighting {
            Weighting::None => return None,
            Weighting::Scalar => &["weight"][..],
            Weighting::Vector => &COLUMNS[..self.dims()],
        };
        let mut text = format!("user,{}\n", columns.join(","));
        // The file names only users of the trace. A reduced case has fewer users.
        let present = |user: &usize| self.rows.iter().any(|row| row.user == *user);
        let listed: Vec<usize> = (0..self.weights.len()).filter(present).collect();
        for &user in &listed {
            let weights: Vec<&str> = self.weights[user].iter().take(columns.len()).map(|&at| WEIGHTS[at].0).collect();
            writeln!(text, "{},{}", USERS[user], weights.join(",")).unwrap();
        }
        (!listed.is_empty()).then_some(text)
    }

    fn place_name(&self, place: Location, loose: u64) -> String {
        match place {
            Location::Machine(machine) => self.machine_name(machine, loose),
            Location::Rack(room, rack) => format!("{}/{}", room.map_or("", |room| ROOMS[room]), RACKS[rack]),
            Location::Room(room) => ROOMS[room].to_owned(),
            Location::Cluster => String::new(),
        }
    }

    /// Returns the name of a machine if its group has one and `loose` is above 0; otherwise its number.
    fn machine_name(&self, machine: usize, loose: u64) -> String {
        let (group, nth) = self.group(machine);
        match NAMES.get(group) {
            Some(name) if loose > 0 && self.groups[group].0 == 1 => (*name).to_owned(),
            Some(name) if loose > 0 => format!("{name}-{nth}"),
            _ => machine.to_string(),
        }
    }

    /// Returns the group of a machine, and the machine's index in the group.
    pub fn group(&self, machine: usize) -> (usize, usize) {
        let counts = self.groups.iter().enumerate();
        let mut all = counts.flat_map(|(group, (count, _))| (0..*count as usize).map(move |nth| (group, nth)));
        all.nth(machine).expect("a machine of the case")
    }

    /// Returns the text of the machines file.
    pub fn machines_csv(&self) -> String {
        let numa: String = self.devices.iter().map(|&resource| format!(",{}_numa", COLUMNS[resource])).collect();
        let speed = if self.speeds.is_empty() { "" } else { ",speed" };
        let mut text = format!("name,count,{},labels,room,rack{speed}{numa}\n", COLUMNS[..self.dims()].join(","));
        for (group, (count, capacity)) in self.groups.iter().enumerate() {
            let site = self.sites.get(group).cloned().unwrap_or_default();
            write!(text, "{},{count}", NAMES.get(group).unwrap_or(&"")).unwrap();
            for (r, &amount) in capacity.iter().enumerate() {
                write!(text, ",{}", if r == 1 { amount.to_string() } else { thousandths(amount) }).unwrap();
            }
            let name = |names: &[&'static str], at: Option<usize>| at.map_or("", |at| names[at]);
            let (room, rack) = (name(&ROOMS, site.room), name(&RACKS, site.rack));
            write!(text, ",{},{room},{rack}", label_names(&site.labels)).unwrap();
            if let Some(speed) = self.speeds.get(group) {
                write!(text, ",{}", *speed as f64 / 1e6).unwrap();
            }
            for &resource in &self.devices {
                let nodes: Vec<String> = self.nodes[group][resource].iter().map(usize::to_string).collect();
                // If all devices are on node 0, the nodes may be omitted.
                let said = self.style == 0 || nodes.iter().any(|node| node != "0");
                write!(text, ",{}", if said { nodes.join(";") } else { String::new() }).unwrap();
            }
            text.push('\n');
        }
        text
    }

    /// Returns the text of the file of machine events, or `None` if the case has no events.
    pub fn machine_events(&self) -> Option<String> {
        let mut text = "at_us,machine,event,labels\n".to_owned();
        for (at, event) in self.events.iter().enumerate() {
            let name = self.machine_name(event.machine, (at as u64 + self.style) % 2);
            let (change, labels) = match &event.change {
                Change::Fail => ("fail", String::new()),
                Change::Leave => ("leave", String::new()),
                Change::Join => ("join", String::new()),
                Change::Relabel(labels) => ("relabel", label_names(labels)),
            };
            writeln!(text, "{},{name},{change},{labels}", event.at).unwrap();
        }
        (!self.events.is_empty()).then_some(text)
    }
}

pub fn policy_name(policy: Policy) -> String {
    match policy {
        Policy::Fifo => "fifo".into(),
        Policy::Line => "line".into(),
        Policy::Slot(slots) => format!("slot:{slots}"),
        Policy::MaxMin(r) => format!("maxmin:{}", RESOURCES[r]),
        Policy::Asset => "asset".into(),
        Policy::Drf => "drf".into(),
        Policy::Afs(memory) => format!("afs:{}", memory.text()),
        Policy::LongTerm(memory) => format!("longterm:{}", memory.text()),
        Policy::Zoo(zoo) => zoo.name(),
    }
}

/// Returns the name of a job. Neither the alphabetical nor the numerical order of names is the order of appearance.
pub fn job_name(job: usize) -> String {
    match job % 3 {
        0 => format!("{}", 900 - job),
        1 => format!("job_{job}.x"),
        _ => format!("j{job}"),
    }
}

fn stage_name(stage: usize) -> String {
    ["map", "shuffle", "reduce", "collect"][stage].to_owned()
}

/// Formats an amount in thousandths as decimal text.
pub fn thousandths(amount: u64) -> String {
    let text = format!("{}.{:03}", amount / 1000, amount % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the text of an expression. `loose` 0 writes the fewest blanks and parentheses, 1 adds blanks, and 2 adds blanks and parentheses.
fn written(expression: &Expression, loose: u64) -> String {
    let inner = |part: &Expression, around: bool| {
        let text = written(part, loose);
        let around = around && matches!(part, Expression::All(_) | Expression::Any(_)) || loose == 2;
        if around { format!("({text})") } else { text }
    };
    let joined = |parts: &[Expression], sign: &str, around: bool| {
        let parts: Vec<String> = parts.iter().map(|part| inner(part, around)).collect();
        parts.join(&if loose == 0 { sign.to_owned() } else { format!("  {sign} ") })
    };
    match expression {
        Expression::Label(label) => LABELS[*label].to_owned(),
        Expression::Not(part) => format!("!{}", inner(part, true)),
        Expression::All(parts) => joined(parts, "&", true),
        Expression::Any(parts) => joined(parts, "|", false),
    }
}

fn label_names(labels: &BTreeSet<usize>) -> String {
    labels.iter().map(|&label| LABELS[label]).collect::<Vec<_>>().join(";")
}
