//! Random cases for the slow twin of placement: the workloads of `workloads.rs` with labels, places, gangs and events.
//!
//! Events occur at instants at which tasks arrive or may end, so that ties are frequent. Equal machines may share a row of the machines
//! file, and an expression is written in several ways, so that equivalent inputs are frequent.

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll::engine::Draws;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::machines_faults::Faults;
use crate::machines_preemption::Displacing;
use crate::machines_slow::{Outcome, simulate};
use crate::machines_world::{Ask, Change, Event, Expression, Location, Site, Whom, World};
use crate::slow::{Placement, Policy};
use crate::workloads::{COLUMNS, Case, Weighting, chance, pick, thousandths};

const LABELS: [&str; 4] = ["ssd", "x-1.2/b:c", "room=hz", "GPU_7"];
const ROOMS: [&str; 2] = ["hz", "sh"];
const RACKS: [&str; 2] = ["r1", "0"];
const NAMES: [&str; 3] = ["web", "m.a", "zoo"];

/// One draw: a workload, and special properties of its machines.
#[derive(Clone, Debug)]
pub struct Draw {
    pub case: Case,
    /// The label, place and stability of each row of the trace.
    pub asks: Vec<Ask>,
    /// The labels and location of each group of equal machines.
    pub sites: Vec<Site>,
    pub events: Vec<Event>,
    pub fall_back: Option<u64>,
    pub lose: bool,
    /// The notice of victims, and the rule that selects the eligible victims.
    pub preempt: Option<(u64, Whom)>,
    /// Limits and costs of preemption.
    pub preemption_limits: Displacing,
    /// The text of a file of quota groups, which replaces the policies.
    pub quota: Option<String>,
    /// The time for which gangs hold insufficient room.
    pub hoard: Option<u64>,
    /// The resources that consist of identified devices.
    pub devices: Vec<usize>,
    /// By group of machines and resource, the NUMA node of each device.
    pub nodes: Vec<Vec<Vec<usize>>>,
    /// Failures, stragglers and backups of tasks, as the text of the setting.
    pub faults: Option<String>,
    /// Selects among equivalent ways to write the files.
    pub style: u64,
}

impl Draw {
    pub fn new(seed: u64) -> Draw {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let weighting = pick(&mut rng, &[Weighting::None, Weighting::None, Weighting::Scalar, Weighting::Vector]);
        let rules = [
            Placement::FirstFit,
            Placement::BestFit,
            Placement::WorstFit,
            Placement::Spread,
            Placement::DotProduct,
            Placement::Fgd,
        ];
        let mut case = Case::draw(seed, weighting, &rules);
        case.rows.truncate(rng.random_range(1..=24));
        let first = rng.random_range(0..case.policies.len());
        case.policies = [0, 2].map(|step| case.policies[(first + step) % case.policies.len()]).to_vec();
        draw_groups(&mut rng, &mut case);
        let wide = chance(&mut rng, 50);
        for row in &mut case.rows {
            row.priority = if wide { rng.random_range(0..=9) } else { row.priority };
            row.gang = chance(&mut rng, 40);
        }
        let sites = draw_sites(&mut rng, case.groups.len());
        let labels = rng.random_range(0..=LABELS.len());
        let mut draw = Draw {
            asks: vec![Ask { label: None, place: Location::Cluster, stable: false }; case.rows.len()],
            fall_back: None,
            lose: chance(&mut rng, 30),
            preempt: None,
            preemption_limits: Displacing::default(),
            quota: None,
            hoard: None,
            faults: None,
            devices: Vec::new(),
            nodes: Vec::new(),
            style: rng.random_range(0..4),
            events: Vec::new(),
            case,
            sites,
        };
        if chance(&mut rng, 60) {
            draw.draw_events(&mut rng, labels);
        }
        if chance(&mut rng, 75) {
            let span = pick(&mut rng, &draw.spans());
            draw.fall_back = Some(span.max(1));
        }
        draw.draw_asks(&mut rng, labels);
        draw.loosen_gangs(&mut rng);
        draw
    }

    /// Draws a case with urgent tasks that request room that other tasks use.
    pub fn urgent(seed: u64) -> Draw {
        let mut draw = Draw::new(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let span = pick(&mut rng, &draw.spans());
        let span = if chance(&mut rng, 35) { 0 } else { span };
        draw.preempt = Some((span, if chance(&mut rng, 20) { Whom::SameUser } else { Whom::Any }));
        let stable = pick(&mut rng, &[0, 0, 30]);
        for row in 0..draw.asks.len() {
            draw.asks[row].stable = chance(&mut rng, stable);
            // Removes 60 % of the gangs, because gangs do not request preemption.
            draw.case.rows[row].gang &= chance(&mut rng, 40);
            draw.case.rows[row].priority = pick(&mut rng, &[0, 1, 3, 5, 5, 9, 9]);
        }
        draw
    }

    /// Draws a case with many gangs that hold room. In a quarter of the cases urgent tasks also request room that other tasks use.
    pub fn hoarding(seed: u64) -> Draw {
        let mut draw = if seed % 4 == 3 { Draw::urgent(seed) } else { Draw::new(seed) };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(2);
        draw.hoard = Some(pick(&mut rng, &draw.spans()).max(1));
        for row in &mut draw.case.rows {
            row.gang |= chance(&mut rng, 60);
        }
        draw.loosen_gangs(&mut rng);
        draw
    }

    /// Returns spans to draw from: the duration of each row twice, and half of the duration.
    pub fn spans(&self) -> Vec<u64> {
        self.case.rows.iter().flat_map(|row| [row.duration, row.duration, row.duration / 2]).collect()
    }

    fn draw_events(&mut self, rng: &mut ChaCha8Rng, labels: usize) {
        let spans = self.spans();
        let mut times: Vec<u64> = (0..rng.random_range(1..=12))
            .map(|_| self.case.rows[rng.random_range(0..self.case.rows.len())].submit + pick(rng, &spans))
            .collect();
        times.sort_unstable();
        let machines = self.case.machines().len();
        let mut there = vec![None; machines];
        for at in times {
            let machine = rng.random_range(0..machines);
            let away = if chance(rng, 60) { Change::Fail } else { Change::Leave };
            let change = match there[machine] {
                _ if chance(rng, 30) => Change::Relabel(draw_labels(rng, labels)),
                None if chance(rng, 25) => Change::Join,
                None | Some(true) => away,
                Some(false) => Change::Join,
            };
            if !matches!(change, Change::Relabel(_)) {
                there[machine] = Some(change == Change::Join);
            }
            self.events.push(Event { at, machine, change });
        }
    }

    /// Returns the labels that a machine has at the start or gets in an event. A trace with any other label is invalid.
    fn known_labels(&self) -> Vec<usize> {
        let brought = self.events.iter().filter_map(|event| match &event.change {
            Change::Relabel(labels) => Some(labels),
            _ => None,
        });
        let all: BTreeSet<usize> =
            brought.chain(self.sites.iter().map(|site| &site.labels)).flatten().copied().collect();
        all.into_iter().collect()
    }

    fn draw_asks(&mut self, rng: &mut ChaCha8Rng, labels: usize) {
        if labels > 0 {
            for site in &mut self.sites {
                site.labels = draw_labels(rng, labels);
            }
        }
        let known = self.known_labels();
        let expressions: Vec<Expression> =
            if known.is_empty() { vec![] } else { (0..3).map(|_| draw_expression(rng, &known, 2)).collect() };
        let (labelled, placed) = (pick(rng, &[0, 30, 70]), pick(rng, &[0, 30, 80]));
        let machines = self.case.machines().len();
        for row in 0..self.asks.len() {
            if !expressions.is_empty() && chance(rng, labelled) {
                self.asks[row].label = Some(expressions[rng.random_range(0..expressions.len())].clone());
            }
            if chance(rng, placed) {
                let machine = rng.random_range(0..machines);
                let site = self.site(machine);
                self.asks[row].place = match (rng.random_range(0..3), site.rack, site.room) {
                    (0, _, Some(room)) => Location::Room(room),
                    (1, Some(rack), room) => Location::Rack(room, rack),
                    _ => Location::Machine(machine),
                };
            }
        }
    }

    /// Clears the gang flag of rows that do not fit on their machines as a gang. A gang that does not fit is an input error and would end
    /// most cases early. One draw in twenty keeps all gangs.
    pub fn loosen_gangs(&mut self, rng: &mut ChaCha8Rng) {
        let keep = chance(rng, 5);
        for policy in self.case.policies.clone() {
            while let Err(row) = self.expected(policy) {
                if keep {
                    return;
                }
                self.case.rows[row].gang = false;
            }
        }
    }

    fn site(&self, machine: usize) -> &Site {
        &self.sites[self.group(machine).0]
    }

    /// Returns the group of a machine, and the machine's index in the group.
    fn group(&self, machine: usize) -> (usize, usize) {
        let counts = self.case.groups.iter().enumerate();
        let mut all = counts.flat_map(|(group, (count, _))| (0..*count as usize).map(move |nth| (group, nth)));
        all.nth(machine).expect("a machine of the case")
    }

    /// Returns the outcome of every task, or the row of a gang that has no room.
    pub fn expected(&self, policy: Policy) -> Result<Vec<Outcome>, usize> {
        simulate(&self.case.rows, &self.asks, &self.world(policy))
    }

    /// Returns the inputs of the reference implementation besides the rows.
    pub fn world(&self, policy: Policy) -> World {
        let machines = 0..self.case.machines().len();
        let nodes = |machine: usize| self.nodes.get(self.group(machine).0).cloned().unwrap_or_default();
        World {
            config: self.case.config(policy),
            sites: machines.clone().map(|machine| self.site(machine).clone()).collect(),
            devices: self.devices.clone(),
            nodes: machines.map(nodes).collect(),
            events: self.events.clone(),
            fall_back: self.fall_back,
            lose: self.lose,
            preempt: self.preempt,
            preemption_limits: self.preemption_limits,
            quota: self.quota_file(),
            hoard: self.hoard,
            faults: self.faults.as_deref().map(twin_of),
        }
    }

    /// Returns the trace as canonical CSV.
    pub fn trace(&self) -> String {
        let own = self.asks.iter().enumerate().map(|(row, ask)| {
            let loose = (row as u64 + self.style) % 3;
            let label = ask.label.as_ref().map(|label| written(label, loose)).unwrap_or_default();
            format!("{label},{},{}", self.place_name(ask.place, loose), ask.stable)
        });
        let header = ["label,location,stable".to_owned()].into_iter();
        let lines = self.case.csv();
        let joined = lines.lines().zip(header.chain(own)).map(|(line, own)| format!("{line},{own}\n"));
        joined.collect()
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
            Some(name) if loose > 0 && self.case.groups[group].0 == 1 => (*name).to_owned(),
            Some(name) if loose > 0 => format!("{name}-{nth}"),
            _ => machine.to_string(),
        }
    }

    /// Returns the text of the machines file.
    pub fn machines(&self) -> String {
        let numa: String = self.devices.iter().map(|&resource| format!(",{}_numa", COLUMNS[resource])).collect();
        let mut text = format!("name,count,{},labels,room,rack{numa}\n", COLUMNS[..self.case.dims()].join(","));
        for (group, ((count, capacity), site)) in self.case.groups.iter().zip(&self.sites).enumerate() {
            write!(text, "{},{count}", NAMES.get(group).unwrap_or(&"")).unwrap();
            for (r, &amount) in capacity.iter().enumerate() {
                write!(text, ",{}", if r == 1 { amount.to_string() } else { thousandths(amount) }).unwrap();
            }
            let name = |names: &[&'static str], at: Option<usize>| at.map_or("", |at| names[at]);
            let (room, rack) = (name(&ROOMS, site.room), name(&RACKS, site.rack));
            write!(text, ",{},{room},{rack}", label_names(&site.labels)).unwrap();
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

    /// Returns smaller cases. Each one lacks one part of this case.
    pub fn smaller(&self) -> Vec<Draw> {
        let mut all: Vec<Draw> = Vec::new();
        let mut with = |change: &dyn Fn(&mut Draw)| {
            let mut draw = self.clone();
            change(&mut draw);
            all.push(draw);
        };
        if self.case.policies.len() > 1 {
            self.case.policies.iter().for_each(|&policy| with(&|draw| draw.case.policies = vec![policy]));
        }
        let mut jobs: Vec<usize> = self.case.rows.iter().map(|row| row.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        for job in jobs.iter().filter(|_| jobs.len() > 1) {
            let mut keep = self.case.rows.iter().map(|row| row.job != *job);
            let asks = self.asks.iter().filter(|_| keep.next() == Some(true)).cloned().collect::<Vec<_>>();
            with(&|draw| {
                draw.case.rows.retain(|row| row.job != *job);
                draw.asks.clone_from(&asks);
            });
        }
        (0..self.events.len()).for_each(|event| with(&|draw| drop(draw.events.remove(event))));
        for row in 0..self.case.rows.len() {
            if self.case.rows[row].tasks > 1 {
                with(&|draw| draw.case.rows[row].tasks -= 1);
            }
            if self.case.rows[row].gang {
                with(&|draw| draw.case.rows[row].gang = false);
            }
            if self.case.rows[row].priority > 0 {
                with(&|draw| draw.case.rows[row].priority = 0);
            }
            if self.asks[row].stable {
                with(&|draw| draw.asks[row].stable = false);
            }
            if self.asks[row].label.is_some() {
                with(&|draw| draw.asks[row].label = None);
            }
            if self.asks[row].place != Location::Cluster {
                with(&|draw| draw.asks[row].place = Location::Cluster);
            }
        }
        for resource in &self.devices {
            with(&|draw| draw.devices.retain(|other| other != resource));
        }
        if self.nodes.iter().flatten().flatten().any(|&node| node > 0) {
            with(&|draw| draw.nodes.iter_mut().flatten().flatten().for_each(|node| *node = 0));
        }
        if self.hoard.is_some() {
            with(&|draw| draw.hoard = None);
        }
        for part in self.faults.iter().flat_map(|faults| faults.split(',')) {
            let others: Vec<&str> = self.faults.iter().flat_map(|all| all.split(',')).filter(|o| *o != part).collect();
            with(&|draw| draw.faults = (!others.is_empty()).then(|| others.join(",")));
        }
        if self.preempt.is_some() {
            with(&|draw| draw.preempt = None);
        }
        if self.case.slowdown.is_some() {
            with(&|draw| draw.case.slowdown = None);
        }
        if self.case.weighting != Weighting::None {
            with(&|draw| (draw.case.weighting, draw.case.weights) = (Weighting::None, Vec::new()));
        }
        if self.case.placement != Placement::FirstFit {
            with(&|draw| draw.case.placement = Placement::FirstFit);
        }
        all
    }
}

/// Adds up to two groups of machines. In half of the cases each machine then becomes a group of its own.
fn draw_groups(rng: &mut ChaCha8Rng, case: &mut Case) {
    for _ in 0..rng.random_range(0..=2) {
        let copy = case.groups[rng.random_range(0..case.groups.len())].clone();
        case.groups.push(copy);
    }
    if chance(rng, 50) {
        let single = |(count, capacity): &(u64, Vec<u64>)| vec![(1, capacity.clone()); *count as usize];
        case.groups = case.groups.iter().flat_map(single).collect();
    }
}

fn draw_sites(rng: &mut ChaCha8Rng, groups: usize) -> Vec<Site> {
    let (roomy, racked) = (pick(rng, &[0, 60, 100]), pick(rng, &[0, 60, 100]));
    let named = |rng: &mut ChaCha8Rng, percent| chance(rng, percent).then(|| rng.random_range(0..2));
    let site = |_| Site { labels: BTreeSet::new(), room: named(rng, roomy), rack: named(rng, racked) };
    (0..groups).map(site).collect()
}

fn draw_labels(rng: &mut ChaCha8Rng, labels: usize) -> BTreeSet<usize> {
    (0..labels).filter(|_| chance(rng, 50)).collect()
}

fn draw_expression(rng: &mut ChaCha8Rng, known: &[usize], depth: u32) -> Expression {
    let kind = if depth == 0 { 0 } else { rng.random_range(0..5) };
    let parts = |rng: &mut ChaCha8Rng| (0..2).map(|_| draw_expression(rng, known, depth - 1)).collect::<Vec<_>>();
    match kind {
        0 | 1 => Expression::Label(pick(rng, known)),
        2 => Expression::Not(Box::new(draw_expression(rng, known, depth - 1))),
        3 => Expression::All(flat(
            parts(rng),
            |part| if let Expression::All(inner) = part { Ok(inner) } else { Err(part) },
        )),
        _ => Expression::Any(flat(
            parts(rng),
            |part| if let Expression::Any(inner) = part { Ok(inner) } else { Err(part) },
        )),
    }
}

/// Flattens nested operators: `a & (b & c)` becomes `a & b & c`.
fn flat(parts: Vec<Expression>, open: impl Fn(Expression) -> Result<Vec<Expression>, Expression>) -> Vec<Expression> {
    parts.into_iter().flat_map(|part| open(part).unwrap_or_else(|part| vec![part])).collect()
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

/// Returns the fault settings of the reference implementation.
fn twin_of(text: &str) -> Faults {
    let part = |name: &str| text.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let millionths = |text: &str| (text.parse::<f64>().expect("a number") * 1e6).round() as u64;
    let backup = part("backup").and_then(|rule| rule.split_once('x'));
    Faults {
        draws: Draws::new(text.parse().expect("a setting"), 0),
        retries: part("retries").map_or(3, |retries| retries.parse().expect("a number")),
        backup: backup.map(|(share, longer)| (millionths(share), millionths(longer))),
    }
}
