//! Random cases for the comparisons: a trace, a cluster and the options of a run, drawn by profiles with frequent corner cases.
//!
//! All draws of a case use one seed. Times are on a coarse grid, so that arrivals, finishes and machine events often coincide. Names are
//! not in alphabetical order, so that a wrong sort by name is detected. Equal machines may share a row of the machines file, and an
//! expression is written in several ways, so that equivalent inputs are frequent.

mod faults;
mod files;
mod groups;
mod machines;
mod mixed;
mod profiles;
mod rows;
mod smaller;

use plimsoll::policy::QuotaFile;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::slow::{
    Curve, Displacing, Event, Inside, OnBlocked, Outcome, Placement, Policy, Ratio, Row, Site, Ties, Whom, World,
    simulate,
};

pub use files::{job_name, policy_name, thousandths};

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
    /// The speed of each group of machines, in millionths of full speed. If empty, all machines have full speed.
    pub speeds: Vec<u64>,
    /// The labels and location of each group of machines. If empty, rows have no labels and places.
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

impl Case {
    /// Draws a case without labels, places, events and preemption.
    pub fn draw(seed: u64, weighting: Weighting, placements: &[Placement]) -> Case {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let dims = if chance(&mut rng, 25) { 3 } else { 2 };
        let groups = rows::draw_groups(&mut rng, dims);
        let users = rng.random_range(1..=USERS.len());
        let rows = rows::draw_rows(&mut rng, users, dims, &groups);
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
            sites: Vec::new(),
            events: Vec::new(),
            fall_back: None,
            lose: false,
            preempt: None,
            preemption_limits: Displacing::default(),
            quota: None,
            hoard: None,
            devices: Vec::new(),
            nodes: Vec::new(),
            faults: None,
            style: 0,
        }
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

    /// Returns the inputs of the reference implementation besides the rows.
    pub fn world(&self, policy: Policy) -> World {
        fn by_machine<T: Clone>(groups: &[(u64, Vec<u64>)], values: &[T]) -> Vec<T> {
            let all = groups.iter().zip(values).flat_map(|((count, _), value)| vec![value.clone(); *count as usize]);
            all.collect()
        }
        World {
            machines: self.machines(),
            policy,
            weights: self.ratios(),
            placement: self.placement,
            on_blocked: self.on_blocked,
            ties: self.ties,
            slowdown: self.slowdown,
            inside: self.inside,
            speeds: by_machine(&self.groups, &self.speeds),
            sites: by_machine(&self.groups, &self.sites),
            devices: self.devices.clone(),
            nodes: by_machine(&self.groups, &self.nodes),
            events: self.events.clone(),
            fall_back: self.fall_back,
            lose: self.lose,
            preempt: self.preempt,
            preemption_limits: self.preemption_limits,
            quota: self.quota_file(),
            hoard: self.hoard,
            faults: self.faults.as_deref().map(faults::parsed),
        }
    }

    /// Returns the outcome of every task, or the row of a gang that has no room.
    pub fn expected(&self, policy: Policy) -> Result<Vec<Outcome>, usize> {
        simulate(&self.rows, &self.world(policy))
    }

    /// Returns the parsed quota groups.
    pub fn quota_file(&self) -> Option<QuotaFile> {
        let text = self.quota.as_ref()?;
        Some(QuotaFile::parse("groups.toml".as_ref(), text).unwrap_or_else(|error| panic!("{error}\n{text}")))
    }
}

pub fn chance(rng: &mut ChaCha8Rng, percent: u32) -> bool {
    rng.random_range(0..100) < percent
}

pub fn pick<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}
