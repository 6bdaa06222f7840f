//! The rules that assign users to the jobs of a published trace; most published traces have no user column.
//!
//! An importer gives every original job its own user, or uses the user column of the format. A [`Tenants`] rule then maps these users to
//! the users of the simulation, so that all rows of an original job have one user. Rules use integers and a fixed hash of the name: the
//! same trace and rule give the same users on every machine.

use std::fmt;

use crate::workload::{Names, Workload};
use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::units::{Rounding, decimal};

/// The name of the function that hashes names, for provenance.
pub const HASH_NAME: &str = "fnv-1a-64, splitmix64 finaliser";

/// The largest number of users of a rule.
pub const USERS_MAX: u32 = 1_000_000;

/// The largest exponent of `zipf:K:S`, in thousandths.
const EXPONENT_MAX_MILLI: u64 = 10_000;

/// A rule that assigns a user to each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Tenants {
    /// `job`: one user per job, with the job's name.
    Job,
    /// `one`: a single user.
    One,
    /// `hash:K`: the hash of the job's name selects one of K users.
    Hash(u32),
    /// `round-robin:K`: K users in turn, in order of the jobs' first submission.
    RoundRobin(u32),
    /// `zipf:K:S`: user k of K gets jobs in proportion to k^-S; the hash of the job's name decides.
    Zipf {
        /// Number of users.
        users: u32,
        /// The exponent, in thousandths.
        exponent_milli: u32,
    },
    /// `column`: the format's own user column.
    Column,
    /// `qos`: the pod's class of service (openb only).
    Qos,
}

impl Tenants {
    /// One example of each rule.
    pub const ALL: [Tenants; 7] = [
        Tenants::Job,
        Tenants::One,
        Tenants::Hash(20),
        Tenants::RoundRobin(20),
        Tenants::Zipf { users: 20, exponent_milli: 1200 },
        Tenants::Column,
        Tenants::Qos,
    ];

    /// The accepted spellings of rules, for messages and help.
    pub const EXPECTED: &'static str = "job, one, hash:K, round-robin:K, zipf:K:S, column or qos (K users from 1 to \
                                        1000000, S an exponent from 0 to 10 such as 1.2)";

    /// Parses a rule. Errors: [`Error::Plan`] under the name `key`.
    pub fn parse(key: &str, text: &str) -> Result<Tenants> {
        let (head, rest) = text.split_once(':').map_or((text, None), |(head, rest)| (head, Some(rest)));
        let rule = match (head, rest) {
            ("job", None) => Some(Tenants::Job),
            ("one", None) => Some(Tenants::One),
            ("column", None) => Some(Tenants::Column),
            ("qos", None) => Some(Tenants::Qos),
            ("hash", Some(users)) => parse_users(users).map(Tenants::Hash),
            ("round-robin", Some(users)) => parse_users(users).map(Tenants::RoundRobin),
            ("zipf", Some(rest)) => parse_zipf(rest),
            _ => None,
        };
        rule.ok_or_else(|| {
            let heads = ["job", "one", "hash", "round-robin", "zipf", "column", "qos"];
            let hint = nearest(head, heads).filter(|known| *known != head);
            let hint = hint.map_or(String::new(), |known| format!(" (did you mean '{known}'?)"));
            Error::plan(key, format!("'{text}'"), format!("{}{hint}", Tenants::EXPECTED))
        })
    }

    /// Returns the column of a format that the rule uses, if it uses one.
    pub(super) fn column(self) -> Option<&'static str> {
        match self {
            Tenants::Column => Some("user column"),
            Tenants::Qos => Some("classes of service"),
            _ => None,
        }
    }

    /// Returns the names and values of the assumptions, for the report of an import.
    pub fn assumptions(self) -> Vec<(String, String)> {
        let mut assumptions = vec![("tenants".to_owned(), self.to_string())];
        if matches!(self, Tenants::Hash(_) | Tenants::Zipf { .. }) {
            assumptions.push(("tenants.hash".to_owned(), HASH_NAME.to_owned()));
        }
        assumptions
    }

    /// Returns the function of this rule; `None` for a rule that keeps the original users.
    pub fn rule(self) -> Option<TenantRule> {
        let (users, cumulative) = match self {
            Tenants::Job | Tenants::Column | Tenants::Qos => return None,
            Tenants::One => (1, Vec::new()),
            Tenants::Hash(users) | Tenants::RoundRobin(users) => (users, Vec::new()),
            Tenants::Zipf { users, exponent_milli } => (users, zipf_cumulative(users, exponent_milli)),
        };
        Some(TenantRule { tenants: self, users, cumulative })
    }

    /// Assigns a user to every set by this rule. The users of `workload` must be the original jobs (or the format's own users, which
    /// `job`, `column` and `qos` keep). The workload must be finished, because `round-robin` uses its order of rows.
    pub fn apply(self, mut workload: Workload) -> Workload {
        workload.quality.assumptions.extend(self.assumptions());
        let Some(rule) = self.rule() else { return workload };
        let before = std::mem::take(&mut workload.users);
        let mut after: Vec<Option<u32>> = vec![None; before.len()];
        let mut names = Names::default();
        let mut turn = 0;
        for set in &mut workload.sets {
            let user = &mut set.user.0;
            let slot = &mut after[*user as usize];
            *user = *slot.get_or_insert_with(|| {
                turn += 1;
                names.intern(&rule.user(turn - 1, before.name(*user)))
            });
        }
        workload.users = names;
        workload
    }
}

/// A rule that assigns users to the original users of a trace.
#[derive(Clone, Debug)]
pub struct TenantRule {
    tenants: Tenants,
    users: u32,
    /// The partial sums of the weights of users, for `zipf`.
    cumulative: Vec<u64>,
}

impl TenantRule {
    /// Returns the name of the user for the original user `name`, which is the one with the index `turn` in the order of first submission.
    pub fn user(&self, turn: u32, name: &str) -> String {
        let hash = || name_hash(name);
        let index = match self.tenants {
            Tenants::RoundRobin(_) => turn % self.users,
            Tenants::Zipf { .. } => zipf_pick(&self.cumulative, hash()),
            _ => scale_hash(hash(), u64::from(self.users)) as u32,
        };
        format!("u{}", index + 1)
    }
}

fn parse_users(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|users| digits && (1..=USERS_MAX).contains(users))
}

fn parse_zipf(text: &str) -> Option<Tenants> {
    let (users, exponent) = text.split_once(':')?;
    let milli = decimal(exponent.as_bytes(), 1000, Rounding::Up).ok()?;
    // A finer exponent than a thousandth would be lost by `Display`.
    let exact = decimal(exponent.as_bytes(), 1000, Rounding::Down) == Ok(milli) && milli <= EXPONENT_MAX_MILLI;
    exact.then_some(Tenants::Zipf { users: parse_users(users)?, exponent_milli: milli as u32 })
}

impl TryFrom<String> for Tenants {
    type Error = Error;
    fn try_from(text: String) -> Result<Tenants> {
        Tenants::parse("tenants", &text)
    }
}

impl From<Tenants> for String {
    fn from(rule: Tenants) -> String {
        rule.to_string()
    }
}

impl fmt::Display for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tenants::Job => f.write_str("job"),
            Tenants::One => f.write_str("one"),
            Tenants::Hash(users) => write!(f, "hash:{users}"),
            Tenants::RoundRobin(users) => write!(f, "round-robin:{users}"),
            Tenants::Zipf { users, exponent_milli } => {
                let (whole, milli) = (exponent_milli / 1000, exponent_milli % 1000);
                let fraction = format!(".{milli:03}");
                let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
                write!(f, "zipf:{users}:{whole}{fraction}")
            }
            Tenants::Column => f.write_str("column"),
            Tenants::Qos => f.write_str("qos"),
        }
    }
}

/// Returns the hash of a name by the function [`HASH_NAME`]. A finaliser is needed, because the high bits of FNV-1a hardly differ between
/// short names.
fn name_hash(name: &str) -> u64 {
    let fnv = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Maps a hash to a number below `bound`, in proportion to its position in the range of hashes.
fn scale_hash(hash: u64, bound: u64) -> u64 {
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}

/// Number of fraction bits of the fixed-point numbers in this file.
const FRACTION: u32 = 40;

/// Returns the partial sums of the weights k^-S for k = 1, 2, ..., in units of 2^-40.
fn zipf_cumulative(users: u32, exponent_milli: u32) -> Vec<u64> {
    let roots = roots_of_half();
    let mut sum = 0;
    (1..=u64::from(users))
        .map(|k| {
            // Every user has a positive weight, however large the exponent.
            sum += power_of_half(log2(k) * u64::from(exponent_milli) / 1000, &roots).max(1);
            sum
        })
        .collect()
}

fn zipf_pick(cumulative: &[u64], hash: u64) -> u32 {
    let total = cumulative.last().copied().unwrap_or(1);
    let at = scale_hash(hash, total);
    cumulative.partition_point(|&sum| sum <= at) as u32
}

/// Returns log2 of a number from 1, in fixed point, rounded down; each squaring gives one bit.
fn log2(k: u64) -> u64 {
    let whole = k.ilog2();
    let mut x = u128::from(k) << (62 - whole);
    let mut log = u64::from(whole);
    for _ in 0..FRACTION {
        x = (x * x) >> 62;
        let bit = x >> 63;
        x >>= bit;
        log = (log << 1) | bit as u64;
    }
    log
}

/// Returns 2^-(1/2), 2^-(1/4), 2^-(1/8), ... with 62 fraction bits.
fn roots_of_half() -> [u128; FRACTION as usize] {
    let mut root: u128 = 1 << 61;
    std::array::from_fn(|_| {
        root = (root << 62).isqrt();
        root
    })
}

/// Returns 2^-`power`, both in fixed point.
fn power_of_half(power: u64, roots: &[u128; FRACTION as usize]) -> u64 {
    let (whole, fraction) = (power >> FRACTION, power & ((1 << FRACTION) - 1));
    if whole > u64::from(FRACTION) {
        return 0;
    }
    let mut product: u128 = 1 << 62;
    for (at, root) in roots.iter().enumerate() {
        if fraction >> (FRACTION as usize - 1 - at) & 1 == 1 {
            product = (product * root) >> 62;
        }
    }
    (product >> (62 - FRACTION) >> whole) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::TaskSet;
    use plimsoll_base::units::UserId;

    fn jobs(count: u32) -> Workload {
        let mut workload = Workload::default();
        for job in 0..count {
            let id = workload.job(&format!("job{job}"));
            let user = UserId(workload.users.intern(&format!("job{job}")));
            workload.sets.push(TaskSet { job: id, user, tasks: 1, ..TaskSet::default() });
            workload.sets.push(TaskSet { job: id, user, tasks: 1, ..TaskSet::default() });
        }
        workload.finish()
    }

    fn counts(rule: &str) -> Vec<(String, usize)> {
        let workload = Tenants::parse("tenants", rule).expect(rule).apply(jobs(6000));
        for pair in workload.sets.chunks(2) {
            assert_eq!(pair[0].user, pair[1].user, "rows of a job stay together");
        }
        let mut counts: Vec<_> = workload.users.iter().map(|name| (name.to_owned(), 0)).collect();
        for set in workload.sets.iter().step_by(2) {
            counts[set.user.index()].1 += 1;
        }
        counts.sort_by_key(|(name, _)| (name.len(), name.clone()));
        counts
    }

    #[test]
    fn rules_round_trip_and_bad_ones_say_what_is_accepted() {
        for rule in Tenants::ALL {
            assert_eq!(Tenants::parse("tenants", &rule.to_string()).expect("round trip"), rule);
        }
        assert_eq!(Tenants::parse("tenants", "zipf:8:1").expect("a rule").to_string(), "zipf:8:1");
        assert_eq!(Tenants::parse("tenants", "zipf:8:0.125").expect("a rule").to_string(), "zipf:8:0.125");
        for text in
            ["", "jobs", "hash", "hash:0", "hash:-3", "hash:+3", "hash:2000000", "zipf:3", "zipf:3:x", "zipf:3:11"]
        {
            let message = Tenants::parse("--tenants", text).unwrap_err().to_string();
            assert!(message.starts_with("--tenants: '") && message.contains("round-robin:K"), "{message}");
        }
        assert!(Tenants::parse("tenants", "zipf:3:0.0001").is_err());
        assert!(Tenants::parse("tenants", "hsah:3").unwrap_err().to_string().contains("did you mean 'hash'?"));
    }

    #[test]
    fn rules_spread_jobs_as_they_say() {
        assert_eq!(counts("one"), [("u1".to_owned(), 6000)]);
        assert_eq!(counts("job").len(), 6000);
        assert!(counts("round-robin:4").iter().all(|(_, count)| *count == 1500));
        let hashed = counts("hash:6");
        assert_eq!(hashed.len(), 6);
        // 1000 jobs are expected per user, with a standard deviation of 29; the bounds are five standard deviations.
        assert!(hashed.iter().all(|(_, count)| (855..=1145).contains(count)), "{hashed:?}");
        let zipf = counts("zipf:4:1");
        // The weights are 1, 1/2, 1/3 and 1/4, with a sum of 25/12, so 2880, 1440, 960 and 720 jobs are expected.
        for ((_, count), want) in zipf.iter().zip([2880, 1440, 960, 720]) {
            assert!(count.abs_diff(want) < 200, "{zipf:?}");
        }
    }

    #[test]
    fn the_hash_and_the_weights_never_change() {
        assert_eq!(name_hash("job0"), 0x2fcc_d062_9dd7_2a5b);
        let close = |weight: u64, want: f64| (weight as f64 / (1u64 << FRACTION) as f64 - want).abs() < 1e-9;
        let weights = zipf_cumulative(1000, 1200);
        for k in [2usize, 3, 10, 999] {
            assert!(close(weights[k] - weights[k - 1], ((k + 1) as f64).powf(-1.2)), "{k}");
        }
        assert_eq!(zipf_cumulative(3, 0), [1 << FRACTION, 2 << FRACTION, 3 << FRACTION]);
        assert_eq!(zipf_cumulative(4, 1000)[3] - zipf_cumulative(4, 1000)[2], 1 << (FRACTION - 2));
    }
}
