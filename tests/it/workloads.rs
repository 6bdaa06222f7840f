//! Random workloads with frequent corner cases: ties, zero durations, zero demands, tight capacity, stages, priorities.
//!
//! All draws of a case use one seed. Times are on a coarse grid, so that arrivals and finishes often coincide. Names are not in
//! alphabetical order, so that a wrong sort by name is detected.

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::slow::{Config, OnBlocked, Placement, Policy, Ratio, Row, Ties};
use crate::slow_inside::Inside;
use crate::slow_rate::Curve;

/// The weights of the users of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    None,
    /// One weight per user.
    Scalar,
    /// One weight per user and resource.
    Vector,
}

/// One draw: a trace, a cluster, weights and options, for several policies.
#[derive(Clone, Debug)]
pub struct Case {
    pub rows: Vec<Row>,
    /// Groups of equal machines.
    pub groups: Vec<(u64, Vec<u64>)>,
    pub weighting: Weighting,
    /// By user, an index into [`WEIGHTS`] for each resource. Scalar weights have equal indices for all resources. Users beyond the end of
    /// the list have no line in the file.
    pub weights: Vec<Vec<usize>>,
    pub placement: Placement,
    pub on_blocked: OnBlocked,
    pub ties: Ties,
    /// The slowdown of machines, as text and as numbers.
    pub slowdown: Option<Curve>,
    pub policies: Vec<Policy>,
    /// The order inside users; with any other than the usual one rows have estimates and deadlines.
    pub inside: Inside,
    /// The speed of each machine, in millionths of full speed. If empty, all machines have full speed.
    pub speeds: Vec<u64>,
}

/// Weights as text and as fractions.
pub const WEIGHTS: [(&str, u128, u128); 6] =
    [("1", 1, 1), ("2", 2, 1), ("0.5", 1, 2), ("1.25", 5, 4), ("3", 3, 1), ("0.1", 1, 10)];

/// Slowdown curves that begin below full use of the memory, or at full use.
const SLOWDOWNS: [Curve; 3] = [
    ("0.2:1,0.5:6,1:11 by size", &[(200_000, 1_000_000), (500_000, 6_000_000), (1_000_000, 11_000_000)]),
    ("0.3:1,0.6:1.5,1.2:4", &[(300_000, 1_000_000), (600_000, 1_500_000), (1_200_000, 4_000_000)]),
    ("1:1,1.04:3,1.25:5.9", &[(1_000_000, 1_000_000), (1_040_000, 3_000_000), (1_250_000, 5_900_000)]),
];

/// The columns of the demands, of which a case uses the first two or all three.
pub const COLUMNS: [&str; 3] = ["cpu", "memory_mib", "gpu"];
pub const RESOURCES: [&str; 3] = ["cpu", "memory", "gpu"];
pub const USERS: [&str; 8] = ["mallory", "bob", "zoe", "alice", "u10", "u9", "ümit", "carol"];

/// The separator of several stages in the `after` column.
const STAGE_SEPARATOR: &str = ";";

impl Case {
    pub fn draw(seed: u64, weighting: Weighting, placements: &[Placement]) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dims = if chance(&mut rng, 25) { 3 } else { 2 };
        let groups = draw_groups(&mut rng, dims);
        let users = rng.random_range(1..=USERS.len());
        let rows = draw_rows(&mut rng, users, dims, &groups);
        let columns = if weighting == Weighting::Vector { dims } else { 1 };
        let listed = if weighting == Weighting::None { 0 } else { rng.random_range(1..=users) };
        let mut weights = vec![vec![0; dims]; listed];
        for user in &mut weights {
            for r in 0..dims {
                user[r] = if r < columns { rng.random_range(0..WEIGHTS.len()) } else { user[0] };
            }
        }
        let mut policies = vec![Policy::Fifo, Policy::Asset, Policy::Drf];
        policies.extend((0..dims).map(Policy::MaxMin));
        // A slot is not a resource, so weights per resource do not apply to it.
        if weighting != Weighting::Vector {
            policies.push(Policy::Slot(rng.random_range(1..=3)));
        }
        let placement = pick(&mut rng, placements);
        let slow = placement != Placement::Pooled && chance(&mut rng, 30);
        Case {
            rows,
            groups,
            weighting,
            weights,
            placement,
            slowdown: slow.then(|| pick(&mut rng, &SLOWDOWNS)),
            on_blocked: pick(&mut rng, &[OnBlocked::Skip, OnBlocked::Stop]),
            ties: pick(&mut rng, &[Ties::LeastRecentlyServed, Ties::LowestId, Ties::HighestId, Ties::FewestRunning]),
            policies,
            inside: Inside::Usual,
            speeds: Vec::new(),
        }
    }

    /// Returns the case with another order inside users, which uses the estimates and deadlines of their rows.
    pub fn ordered(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.policies.push(Policy::Line);
        self.inside = pick(&mut rng, &Inside::OTHERS);
        for row in &mut self.rows {
            row.estimate = Some(row.duration * pick(&mut rng, &[1, 1, 1, 2, 3]) / pick(&mut rng, &[1, 1, 2]));
            row.deadline = chance(&mut rng, 60).then(|| row.submit + pick(&mut rng, &[0, 5, 20]));
        }
        self
    }

    /// Returns the case with backfilling, with estimates that are more often correct than in [`Case::ordered`], and with large gangs.
    pub fn backfilled(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        self.on_blocked = pick(&mut rng, &[OnBlocked::Easy, OnBlocked::Conservative]);
        self.policies.push(Policy::Line);
        self.policies.dedup();
        let factors: &[u64] = pick(&mut rng, &[&[2][..], &[2, 3, 4, 6, 20], &[0, 1, 2, 2, 4]]);
        let total: Vec<u64> =
            (0..self.dims()).map(|r| self.machines().iter().map(|machine| machine[r]).sum()).collect();
        for row in &mut self.rows {
            row.estimate = Some(row.duration * pick(&mut rng, factors) / 2);
            let wanted = row.demand.iter().zip(&total).filter(|(need, _)| **need > 0);
            let room = wanted.map(|(need, total)| total / need).min().unwrap_or(9);
            // In half of the cases, every row that the cluster has room for is a gang.
            row.gang |= seed.is_multiple_of(2) && row.tasks <= room;
        }
        self
    }

    /// Returns the case on machines of different speeds.
    pub fn on_unlike_machines(mut self, seed: u64) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let speeds = [1_000_000, 1_000_000, 500_000, 3_000_000, 1_100_000, 333_333];
        self.speeds = self.machines().iter().map(|_| pick(&mut rng, &speeds)).collect();
        self
    }

    /// Returns the text of the machines file, with speeds.
    pub fn machines_csv(&self) -> String {
        let mut text = format!("{},speed\n", COLUMNS[..self.dims()].join(","));
        for (machine, speed) in self.machines().iter().zip(&self.speeds) {
            let amount = |(r, amount): (usize, &u64)| if r == 1 { amount.to_string() } else { thousandths(*amount) };
            let amounts: Vec<String> = machine.iter().enumerate().map(amount).collect();
            writeln!(text, "{},{}", amounts.join(","), *speed as f64 / 1e6).unwrap();
        }
        text
    }

    pub fn dims(&self) -> usize {
        self.groups[0].1.len()
    }

    /// Returns the capacity of every machine, in order.
    pub fn machines(&self) -> Vec<Vec<u64>> {
        let group = |(count, capacity): &(u64, Vec<u64>)| vec![capacity.clone(); *count as usize];
        self.groups.iter().flat_map(group).collect()
    }

    pub fn ratios(&self) -> Vec<Vec<Ratio>> {
        let ratio = |&at: &usize| Ratio::new(WEIGHTS[at].1, WEIGHTS[at].2);
        self.weights.iter().map(|user| user.iter().map(ratio).collect()).collect()
    }

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

    /// Returns the slow twin's configuration for this workload.
    pub fn config(&self, policy: Policy) -> Config {
        Config {
            machines: self.machines(),
            policy,
            weights: self.ratios(),
            placement: self.placement,
            on_blocked: self.on_blocked,
            ties: self.ties,
            slowdown: self.slowdown,
            inside: self.inside,
            speeds: self.speeds.clone(),
        }
    }

    /// Returns whether no row has an estimate or a deadline.
    fn is_plain(&self) -> bool {
        self.rows.iter().all(|row| (row.estimate, row.deadline) == (None, None))
    }

    /// Returns the trace as canonical CSV.
    pub fn csv(&self) -> String {
        let mut text = format!(
            "job,user,submit_us,duration_us,tasks,{},stage,after,priority,gang{}\n",
            COLUMNS[..self.dims()].join(","),
            if self.is_plain() { "" } else { ",estimate_us,deadline_us" }
        );
        for row in &self.rows {
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

pub fn chance(rng: &mut ChaCha8Rng, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}

pub fn pick<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// Draws one to six machines in one to three groups. In 30 % of the cases the capacities are arbitrary numbers.
fn draw_groups(rng: &mut ChaCha8Rng, dims: usize) -> Vec<(u64, Vec<u64>)> {
    let odd = chance(rng, 30);
    let count = rng.random_range(1..=3);
    let mut groups: Vec<(u64, Vec<u64>)> = Vec::new();
    for _ in 0..count {
        let cpu = if odd { rng.random_range(700..4100) } else { pick(rng, &[1000, 2000, 4000]) };
        let memory = if odd { rng.random_range(500..4100) } else { pick(rng, &[512, 1024, 4096]) };
        let gpu = pick(rng, &[0, 1000, 2000]);
        groups.push((rng.random_range(1..=2), [cpu, memory, gpu][..dims].to_vec()));
    }
    if dims == 3 && groups.iter().all(|(_, capacity)| capacity[2] == 0) {
        groups[0].1[2] = 1000;
    }
    groups
}

fn draw_demand(rng: &mut ChaCha8Rng, dims: usize, groups: &[(u64, Vec<u64>)]) -> Vec<u64> {
    let cpu = pick(rng, &[0, 250, 500, 500, 1000, 1000, 333, 1500]);
    let memory = pick(rng, &[0, 128, 256, 256, 512, 512, 777, 1]);
    let gpu = pick(rng, &[0, 0, 0, 500, 1000]);
    let mut demand = [cpu, memory, gpu][..dims].to_vec();
    // In 5 % of the cases the demand is a whole machine, sometimes with one more unit of CPU.
    if chance(rng, 5) {
        demand = pick(rng, &groups.iter().map(|(_, capacity)| capacity.as_slice()).collect::<Vec<_>>()).to_vec();
        demand[0] += u64::from(chance(rng, 30));
    }
    demand
}

/// Draws at most about 60 rows in order of submission: jobs of one row, of maps and reduces, or of a diamond.
fn draw_rows(rng: &mut ChaCha8Rng, users: usize, dims: usize, groups: &[(u64, Vec<u64>)]) -> Vec<Row> {
    let unit = pick(rng, &[1, 1000, 10_000_000]);
    let steps: &[u64] = pick(rng, &[&[0, 0, 0, 1, 5, 10][..], &[0, 1, 2, 3, 50], &[0], &[5, 10]]);
    let durations: &[u64] = pick(rng, &[&[0, 1, 5, 10, 10, 20][..], &[10], &[0, 0, 0, 10], &[3, 7, 11, 40]]);
    let sizes: &[u64] = pick(rng, &[&[1, 1, 1, 2, 5][..], &[1], &[4, 9, 15]]);
    let palette: Vec<Vec<u64>> = (0..rng.random_range(1..=8)).map(|_| draw_demand(rng, dims, groups)).collect();
    let priorities = chance(rng, 40);
    let wanted = rng.random_range(1..=60);
    let (mut rows, mut now) = (Vec::new(), 0);
    let mut job = 0;
    while rows.len() < wanted {
        now += pick(rng, steps) * unit;
        let user = rng.random_range(0..users);
        let shape = draw_shape(rng);
        let spread = chance(rng, 15);
        for (stage, after) in shape {
            // The rows of a job may have different submit times, but are consecutive in the trace.
            if spread {
                now += pick(rng, steps) * unit;
            }
            rows.push(Row {
                job,
                user,
                submit: now,
                duration: pick(rng, durations) * unit,
                tasks: pick(rng, sizes),
                demand: palette[rng.random_range(0..palette.len())].clone(),
                stage,
                after,
                priority: if priorities { rng.random_range(0..4) } else { 0 },
                ..Row::default()
            });
        }
        job += 1;
    }
    // Rows are gangs only if the empty cluster has room for them, since a larger gang is an error.
    if chance(rng, 40) {
        for row in &mut rows {
            let times = |capacity: &[u64]| {
                let wanted = row.demand.iter().zip(capacity).filter(|(need, _)| **need > 0);
                wanted.map(|(need, capacity)| capacity / need).min().unwrap_or(1000)
            };
            let room: u64 = groups.iter().map(|(count, capacity)| count * times(capacity)).sum();
            row.gang = chance(rng, 50) && row.tasks <= room;
        }
    }
    if chance(rng, 40) {
        interleave(rng, &mut rows);
    }
    rows
}

/// Draws the rows of a job: the stage of each row, and the stages that it depends on (of earlier rows only).
fn draw_shape(rng: &mut ChaCha8Rng) -> Vec<(Option<usize>, Vec<usize>)> {
    let (map, shuffle, reduce, collect) = (Some(0), Some(1), Some(2), Some(3));
    match rng.random_range(0..10) {
        0..5 => vec![(None, vec![])],
        5 => vec![(None, vec![]), (None, vec![]), (map, vec![])],
        6 => vec![(map, vec![]), (reduce, vec![0])],
        7 => vec![(map, vec![]), (map, vec![]), (reduce, vec![0]), (None, vec![0]), (None, vec![])],
        8 => vec![(map, vec![]), (shuffle, vec![0]), (reduce, vec![0]), (collect, vec![1, 2])],
        _ => vec![(map, vec![]), (reduce, vec![0]), (reduce, vec![0]), (None, vec![2])],
    }
}

/// Mixes the rows of different jobs that share a submit time; each job keeps the order of its own rows.
fn interleave(rng: &mut ChaCha8Rng, rows: &mut [Row]) {
    let flat =
        |rows: &[Row], at: usize| rows.iter().all(|row| row.job != rows[at].job || row.submit == rows[at].submit);
    let mut from = 0;
    while from < rows.len() {
        let mut to = from + 1;
        while to < rows.len() && rows[to].submit == rows[from].submit && flat(rows, from) && flat(rows, to) {
            to += 1;
        }
        let segment = rows[from..to].to_vec();
        let mut order: Vec<usize> = segment.iter().map(|row| row.job).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        for (at, job) in order.iter().enumerate() {
            let nth = order[..at].iter().filter(|other| *other == job).count();
            rows[from + at] = segment.iter().filter(|row| row.job == *job).nth(nth).expect("as many as before").clone();
        }
        from = to;
    }
}
