//! The table `[accelerators]` of a cell, and its validation.

use std::sync::Arc;

use plimsoll_rounds::mechanism::{Cluster, Options, Overhead, OverheadWhen, TypeOrder};
use plimsoll_rounds::policies::shockwave::ShockwaveOptions;
use plimsoll_rounds::policies::{Bottlenecks, FifoType, POLICIES, PolicyOptions, PolicyRow};
use plimsoll_rounds::simulate::JobWindow;
use plimsoll_rounds::table::{Arrivals, JobList, JobOptions, Throughputs, TrainingJob};
use serde::Deserialize;

use super::inputs::{AcceleratorInputs, InputFile};
use super::keys::{BOTTLENECKS, FIFO_TYPE, NEW_JOBS, OVERHEAD_WHEN, ROUND_END, Section, ShockwaveFile};
use plimsoll_base::error::{Error, Result, alternatives, did_you_mean, each};
use plimsoll_base::settings::positive_span;
use plimsoll_base::units::{Span, span};

/// The plan file of a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceleratorFile {
    pub name: String,
    pub question: Option<String>,
    pub accelerators: Section,
}

/// The checked table `[accelerators]`.
pub struct AcceleratorSetup {
    /// The policies.
    pub policies: Vec<&'static PolicyRow>,
    /// The throughput table.
    pub table: Arc<Throughputs>,
    /// The cluster.
    pub cluster: Cluster,
    /// The jobs per hour, in thousandths; empty if the lists state arrivals, or if all jobs arrive at 0.
    pub rates: Vec<u64>,
    /// The measured jobs; `None` for all.
    pub window: Option<JobWindow>,
    /// The options of the mechanism.
    pub options: Options,
    /// The options of policies.
    pub policy_options: PolicyOptions,
    /// Whether jobs progress by fractions, without rounds.
    pub ideal: bool,
    /// The lists of jobs.
    lists: Vec<Arc<JobList>>,
    /// The files of the throughput table and of the lists.
    pub(super) inputs: (InputFile, Vec<InputFile>),
}

/// The largest number of accelerators of a cluster.
const ACCELERATORS_MOST: u64 = 1_000_000_000;

/// The largest number of jobs per hour.
const RATE_MOST: f64 = 1e6;

/// Returns the value of a name in a key.
fn choice<T: Copy>(key: &str, text: Option<&str>, absent: T, values: &[(&str, T)]) -> Result<T> {
    let Some(text) = text else { return Ok(absent) };
    values.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names = values.iter().map(|(name, _)| *name);
        let expected = alternatives(text, names.clone(), "") + &did_you_mean(text, names);
        Error::plan(format!("accelerators.{key}"), format!("'{text}'"), expected)
    })
}

/// Returns the policy with a name. Errors: [`Error::Plan`] of `key`, with the accepted names.
pub fn policy_row(key: &str, name: &str) -> Result<&'static PolicyRow> {
    POLICIES.iter().find(|row| row.name == name).copied().ok_or_else(|| {
        let names = POLICIES.iter().map(|row| row.name);
        let expected = alternatives(name, names.clone(), "") + &did_you_mean(name, names);
        Error::plan(key, format!("'{name}'"), expected)
    })
}

/// Parses the machines, such as `36xv100,9xp100:4`: a number of servers, a worker type, and the accelerators of a server (1).
fn machines(text: &str) -> Result<Cluster> {
    let wrong = || {
        let expected = "numbers of servers and worker types such as 36xv100,36xp100, with the accelerators of a server after a \
                        colon (9xv100:4)";
        Error::plan("accelerators.machines", format!("'{text}'"), expected)
    };
    let mut cluster = Cluster { worker_types: Vec::new(), servers: Vec::new() };
    for part in text.split(',') {
        let (count, kind) = part.trim().split_once('x').ok_or_else(wrong)?;
        let (name, each) = kind.split_once(':').unwrap_or((kind, "1"));
        let count: usize = count.trim().parse().map_err(|_| wrong())?;
        let each: u32 = each.trim().parse().map_err(|_| wrong())?;
        let accepted = (1..=100_000).contains(&count) && (1..=1000).contains(&each) && !name.is_empty();
        if !accepted || cluster.worker_types.iter().any(|known| known == name) {
            return Err(wrong());
        }
        cluster.worker_types.push(name.to_owned());
        cluster.servers.push(vec![each; count]);
    }
    let all: u64 = cluster.servers.iter().flatten().map(|&each| u64::from(each)).sum();
    if all > ACCELERATORS_MOST {
        let expected = format!("at most {ACCELERATORS_MOST} accelerators");
        return Err(Error::plan("accelerators.machines", format!("{all} accelerators"), expected));
    }
    Ok(cluster)
}

impl AcceleratorSetup {
    /// Returns the number of lists of jobs.
    pub fn runs(&self) -> usize {
        self.lists.len()
    }

    /// Returns the jobs of a list, which arrive at a rate in thousandths of a job per hour if the plan has rates.
    pub fn jobs(&self, run: usize, rate: Option<u64>) -> Vec<TrainingJob> {
        self.lists[run].arriving(rate)
    }

    /// Returns the rates of the runs: one of `None` for a plan without rates.
    pub fn each_rate(&self) -> Vec<Option<u64>> {
        if self.rates.is_empty() { vec![None] } else { self.rates.iter().copied().map(Some).collect() }
    }

    /// Returns the measured jobs of a list.
    pub fn measured(&self, run: usize) -> JobWindow {
        self.window.unwrap_or(JobWindow { from: 0, to: self.lists[run].count() as u32 })
    }
}

/// Checks the table of a cell and reads its files. Errors: [`Error::Plan`] with the key, and the errors of the files with their lines.
pub(super) fn check(section: Section, inputs: &AcceleratorInputs) -> Result<AcceleratorSetup> {
    let key = |name: &str| format!("accelerators.{name}");
    let policies = each(&section.policies, |name| policy_row(&key("policies"), name))?;
    if let Some(at) = repeated(&section.policies) {
        return Err(
            Error::plan(key("policies"), format!("'{}' twice", section.policies[at]), "each policy once").item(at)
        );
    }
    for (name, empty) in [("policies", policies.is_empty()), ("jobs", section.jobs.is_empty())] {
        if empty {
            return Err(Error::plan(key(name), "[]", "at least one item"));
        }
    }
    let file = |name: &str, error: Error| match error {
        Error::Io { .. } => error.of_key(&key(name)),
        other => other,
    };
    let table = inputs.table(&section.throughputs).map_err(|error| file("throughputs", error))?;
    let cluster = machines(&section.machines)?;
    let rates = each(section.rates.as_deref().unwrap_or_default(), |rate| {
        let milli = (rate * 1000.0).round();
        let accepted = (0.001..=RATE_MOST).contains(rate) && (milli - rate * 1000.0).abs() < 1e-6;
        accepted
            .then_some(milli as u64)
            .ok_or_else(|| Error::plan(key("rates"), rate, "jobs per hour from 0.001 to 1000000, in thousandths"))
    })?;
    if let Some(at) = repeated(&rates) {
        let given = format!("{} twice", rates[at] as f64 / 1000.0);
        return Err(Error::plan(key("rates"), given, "each rate once").item(at));
    }
    let at_once = section.at_once.unwrap_or(false);
    if at_once && !rates.is_empty() {
        return Err(Error::plan(key("at_once"), "true", "no rates: all jobs arrive at 0"));
    }
    let window = section.window.map(|window| JobWindow { from: window.from, to: window.to });
    if let Some(window) = window.filter(|window| window.from >= window.to) {
        return Err(Error::plan(key("window.to"), window.to, "the number of a job after `from`; it is not measured"));
    }
    let defaults = Options::default();
    let spans = |name: &str, text: &Option<String>, absent: Span, zero: bool| match text {
        None => Ok(absent),
        Some(text) if zero => {
            span(text).map_err(|_| Error::plan(key(name), format!("'{text}'"), "a time span such as 0s, 20s or 15m"))
        }
        Some(text) => positive_span(&key(name), text),
    };
    let options = Options {
        round: spans("round", &section.round, defaults.round, false)?,
        round_end: choice("round_end", section.round_end.as_deref(), defaults.round_end, ROUND_END)?,
        at_least: spans("at_least", &section.at_least, defaults.at_least, true)?,
        new_jobs: choice("new_jobs", section.new_jobs.as_deref(), defaults.new_jobs, NEW_JOBS)?,
        type_order: match section.type_order.as_deref() {
            Some("listed") => TypeOrder::Listed((0..cluster.worker_types.len()).collect()),
            Some("shuffled") => TypeOrder::Random,
            other => choice("type_order", other, (), &[("auto", ()), ("listed", ()), ("shuffled", ())])
                .map(|()| TypeOrder::Auto)?,
        },
        overhead: Overhead {
            lost: spans("overhead", &section.overhead, Span::ZERO, true)?,
            when: choice("overhead_when", section.overhead_when.as_deref(), OverheadWhen::AfterGap, OVERHEAD_WHEN)?,
            ..defaults.overhead
        },
        ..defaults
    };
    if options.overhead.lost >= options.round {
        return Err(Error::plan(
            key("overhead"),
            format!("{} s", options.overhead.lost.seconds()),
            "less than a round",
        ));
    }
    let gap = section.makespan_gap.unwrap_or(PolicyOptions::default().makespan_gap);
    if !(0.0..1.0).contains(&gap) {
        return Err(Error::plan(key("makespan_gap"), gap, "a number from 0 to below 1"));
    }
    let policy_options = PolicyOptions {
        bottlenecks: choice("bottlenecks", section.bottlenecks.as_deref(), Bottlenecks::Intended, BOTTLENECKS)?,
        fifo_type: choice("fifo_type", section.fifo_type.as_deref(), FifoType::Published, FIFO_TYPE)?,
        makespan_gap: gap,
        quotas: quotas(section.quotas.unwrap_or_default(), &cluster)?,
        shockwave: section.shockwave.map_or(Ok(ShockwaveOptions::default()), shockwave)?,
        ..PolicyOptions::default()
    };
    let reference = section.reference.unwrap_or_else(|| cluster.worker_types[0].clone());
    let arrivals = match rates.first() {
        _ if at_once => Arrivals::AtOnce,
        Some(&rate) => Arrivals::PerHour(rate),
        None => Arrivals::Seconds,
    };
    let (single, at_most) = (section.single.unwrap_or(false), section.most_jobs.unwrap_or(usize::MAX));
    let job_options = JobOptions { arrivals, reference: &reference, single, at_most };
    // Every list is read before the first run.
    let lists = (section.jobs.iter().enumerate())
        .map(|(at, name)| {
            let list = inputs.list(name, &table, &job_options).map_err(|error| file(&format!("jobs[{at}]"), error))?;
            match window {
                Some(window) if (window.to as usize) > list.count() => {
                    let expected = format!("at most {}, the jobs of {}", list.count(), name.display());
                    Err(Error::plan(key("window.to"), window.to, expected))
                }
                _ => Ok(list),
            }
        })
        .collect::<Result<Vec<Arc<JobList>>>>()?;
    for (at, &rate) in rates.iter().enumerate() {
        if let Some(list) = lists.iter().position(|list| !list.has_times(rate)) {
            let expected = format!(
                "a rate at which the last job of {} arrives within 292,000 years",
                section.jobs[list].display()
            );
            return Err(Error::plan(key("rates"), rate as f64 / 1000.0, expected).item(at));
        }
    }
    let files = (inputs.digest(&section.throughputs)?, each(&section.jobs, |name| inputs.digest(name))?);
    let ideal = section.ideal.unwrap_or(false);
    Ok(AcceleratorSetup {
        policies,
        table,
        cluster,
        rates,
        window,
        options,
        policy_options,
        ideal,
        lists,
        inputs: files,
    })
}

/// Returns the index of the first item that equals an earlier one.
fn repeated<T: PartialEq>(items: &[T]) -> Option<usize> {
    (1..items.len()).find(|&at| items[..at].contains(&items[at]))
}

/// Checks the quotas of the entities.
fn quotas(quotas: Vec<u32>, cluster: &Cluster) -> Result<Vec<(u32, u32)>> {
    let all: u32 = cluster.capacity().iter().sum();
    let sum: u64 = quotas.iter().map(|&quota| u64::from(quota)).sum();
    if sum > u64::from(all) {
        let expected = format!("quotas with a sum of at most the {all} accelerators of `machines`");
        return Err(Error::plan("accelerators.quotas", format!("{quotas:?}"), expected));
    }
    Ok((0u32..).zip(quotas).collect())
}

/// Checks the parameters of Shockwave.
fn shockwave(file: ShockwaveFile) -> Result<ShockwaveOptions> {
    let defaults = ShockwaveOptions::default();
    let options = ShockwaveOptions {
        rounds: file.rounds.unwrap_or(defaults.rounds),
        replan: file.replan.unwrap_or(defaults.replan),
        makespan_weight: file.makespan_weight.unwrap_or(defaults.makespan_weight),
        lateness_power: file.lateness_power.unwrap_or(defaults.lateness_power),
        rho: file.rho.unwrap_or(defaults.rho),
    };
    let wrong = |key: &str, given: String, expected: String| {
        Err(Error::plan(format!("accelerators.shockwave.{key}"), given, expected))
    };
    let rounds = options.rounds;
    if !(1..=1000).contains(&rounds) {
        return wrong("rounds", rounds.to_string(), "a whole number from 1 to 1000".to_owned());
    }
    if !(1..=rounds).contains(&options.replan) {
        let expected = format!("a whole number from 1 to the {rounds} rounds of a window");
        return wrong("replan", options.replan.to_string(), expected);
    }
    if !(0.0..=1e9).contains(&options.makespan_weight) {
        let expected = "a number from 0 to 1000000000".to_owned();
        return wrong("makespan_weight", options.makespan_weight.to_string(), expected);
    }
    if !(options.rho > 0.0 && options.rho <= 1e6) {
        return wrong("rho", options.rho.to_string(), "a number above 0 and at most 1000000".to_owned());
    }
    if options.lateness_power > 100 {
        return wrong("lateness_power", options.lateness_power.to_string(), "a whole number from 0 to 100".to_owned());
    }
    Ok(options)
}
