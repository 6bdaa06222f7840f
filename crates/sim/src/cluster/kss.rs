//! The placement rules of KSS, the simulator of Weng et al., with its constants, its whole per cents and its ties.
//!
//! Scores use cores and GPUs only, in thousandths: `c` and `g` of the task, `C` and `G` free on the machine, with the constants 128 cores
//! and 8 GPUs for every machine. They are computed in double precision and cut to whole numbers from 0 to 100, so that many machines tie;
//! ties go to the lower index. Memory and other resources only decide whether a task fits. The first resource with devices counts as GPU,
//! the resource `cpu` as cores. Without devices the rules equal first-fit.
//!
//! `kss-fgd` is the rule of `fragmentation` with three departures: the mix has the most frequent pods up to 95 % of all, memory is
//! ignored, and the growth is mapped to a whole score. A pod that requires other labels than those of a machine cannot use its devices.
//!
//! The rules with `-exact` in their names do not cut the per cents to whole numbers; scores that differ by less than 10^-6 per cent tie.
//!
//! Source: hkust-adsl/kubernetes-scheduler-simulator at 8f3d641 (Apache-2.0), as described in Weng et al., USENIX ATC 2023, 5 and 6. A
//! score is cached per machine and demand until the machine changes.

use std::cmp::Reverse;
use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::devices::{Hardware, WHOLE};
use super::index::Index;
use super::scope::{MachineSet, Scope};
use plimsoll_base::units::{MAX_DIMS, MachineId, Resources};

/// The cores of a machine in every score, in thousandths.
const CORES: f64 = 128_000.0;

/// The GPUs of a machine in every score, in thousandths.
const GPUS: f64 = 8_000.0;

/// The part of the pods that the mix covers, in per cent.
const COVERED: u64 = 95;

/// The maximum number of cached demands.
const REMEMBERED: usize = 4096;

/// A rule of KSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum KssRule {
    Random,
    DotProduct,
    Clustering,
    Packing,
    BestFit,
    Fgd,
}

/// The scores of exact rules are whole multiples of this part of a per cent.
const FINE: f64 = 1e6;

/// A kind of pods: those with equal cores, devices and accepted machines.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct PodKind {
    cores: u64,
    /// Thousandths of each device.
    part: u64,
    /// Number of devices.
    devices: u64,
    /// The machines with devices that it accepts; all if absent.
    machines: Option<MachineSet>,
    /// Its part of the covered pods.
    frequency: f64,
}

/// A demand of pods as it is given to [`PodMix::new`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PodDemand {
    /// The cores of each pod, in thousandths.
    pub cores: u64,
    /// The devices of each pod, in thousandths; more than one device is a whole number.
    pub devices: u64,
    /// The label expression that it requires, with the machines that satisfy it.
    pub label: Option<(String, MachineSet)>,
    /// Number of pods.
    pub count: u64,
}

/// The kinds of pods that `kss-fgd` counts fragments for.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct PodMix(Vec<PodKind>);

impl PodMix {
    /// Keeps the most frequent kinds until they cover 95 % of the pods. Of equally frequent kinds the larger one is first: by cores, part of
    /// a device, devices, and label.
    pub fn new(demands: impl IntoIterator<Item = PodDemand>) -> PodMix {
        type Key = (u64, u64, u64, String);
        let mut kinds: HashMap<Key, (u64, Option<MachineSet>)> = HashMap::new();
        for PodDemand { cores, devices, label, count } in demands {
            let (part, number) = part_and_number(devices);
            // Machines with other models have no devices for the pod. A pod without devices may run on all machines.
            let (label, machines) = label.filter(|_| number > 0).unzip();
            let entry = kinds.entry((cores, part, number, label.unwrap_or_default()));
            entry.or_insert((0, machines)).0 += count;
        }
        let mut kinds: Vec<(Key, (u64, Option<MachineSet>))> = kinds.into_iter().collect();
        kinds.sort_by(|(a, (a_count, _)), (b, (b_count, _))| Reverse((a_count, a)).cmp(&Reverse((b_count, b))));
        let all: u64 = kinds.iter().map(|(_, (count, _))| count).sum();
        let mut covered = 0;
        let enough = |covered: u64| covered * 100 >= COVERED * all;
        let kept = kinds
            .iter()
            .take_while(|(_, (count, _))| {
                let more = !enough(covered);
                covered += if more { *count } else { 0 };
                more
            })
            .count();
        kinds.truncate(kept);
        let kind = |((cores, part, devices, _), (count, machines)): (Key, (u64, Option<MachineSet>))| PodKind {
            cores,
            part,
            devices,
            machines,
            frequency: count as f64 / covered as f64,
        };
        PodMix(kinds.into_iter().map(kind).collect())
    }

    /// Returns the number of kinds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no kinds.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the mean fragments of a machine with these free cores and devices, in thousandths.
    pub(super) fn fragments(&self, machine: usize, cores: u64, devices: &[u16]) -> f64 {
        let total: u64 = devices.iter().map(|free| u64::from(*free)).sum();
        let of = |kind: &PodKind| {
            let enough = devices.iter().filter(|free| u64::from(**free) >= kind.part).count() as u64;
            let accepted = kind.machines.as_ref().is_none_or(|set| set.contains(MachineId(machine as u32)));
            if kind.devices == 0 || !accepted || cores < kind.cores || enough < kind.devices {
                return total;
            }
            devices.iter().map(|free| u64::from(*free)).filter(|free| *free < kind.part).sum()
        };
        self.0.iter().map(|kind| kind.frequency * of(kind) as f64).sum()
    }
}

/// Returns the thousandths of each device and the number of devices of a demand.
fn part_and_number(devices: u64) -> (u64, u64) {
    match devices {
        0 => (0, 0),
        part @ 1..WHOLE => (part, 1),
        whole => (WHOLE, whole / WHOLE),
    }
}

/// The score of a growth of fragments, from 0 to 100: 50 without growth.
fn score_of_growth(before: f64, after: f64) -> f64 {
    100.0 / (1.0 + (-(before - after) / 1000.0).exp())
}

/// The state of a rule of KSS besides free amounts.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Kss {
    pub rule: KssRule,
    /// Whether scores keep their decimals.
    exact: bool,
    /// The number of running tasks of each class on each machine. The class is the number of devices, or 0 for a part of one.
    classes: Vec<Vec<(u64, u32)>>,
    /// By demand, the score on each machine; -1 if it is not known.
    scores: HashMap<Resources, Vec<i64>>,
    pub rng: Option<ChaCha8Rng>,
}

impl Kss {
    pub fn new(rule: KssRule) -> Kss {
        Kss { rule, exact: false, classes: Vec::new(), scores: HashMap::new(), rng: None }
    }

    /// Creates the rule with scores that keep their decimals.
    pub fn exact(rule: KssRule) -> Kss {
        Kss { exact: true, ..Kss::new(rule) }
    }

    /// Returns a score in per cent as a whole number: cut, or in units of 1 / [`FINE`] for an exact rule.
    fn integer_score(&self, score: f64) -> i64 {
        if self.exact { (score * FINE).round() as i64 } else { score as i64 }
    }

    /// Forgets the scores on a machine that has changed.
    pub fn changed(&mut self, machine: usize) {
        self.scores.values_mut().filter_map(|scores| scores.get_mut(machine)).for_each(|score| *score = -1);
    }

    /// Counts tasks that have started on a machine or, if `ended`, have ended on it.
    pub fn counted(&mut self, machine: usize, devices: u64, count: u32, ended: bool) {
        if devices == 0 || self.rule != KssRule::Clustering {
            return;
        }
        if self.classes.len() <= machine {
            self.classes.resize(machine + 1, Vec::new());
        }
        let class = devices / WHOLE;
        let classes = &mut self.classes[machine];
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, running)) if ended => *running -= count,
            Some((_, running)) => *running += count,
            None => classes.push((class, count)),
        }
        classes.retain(|(_, running)| *running > 0);
    }

    /// Returns the machine with room and the highest score; ties go to the lower index.
    pub fn find(&mut self, index: &Index, hardware: &Hardware, need: &[u64], scope: Scope<'_>) -> Option<usize> {
        let fitting = index.each(need, scope).filter(|&machine| hardware.fits(machine, need));
        if let Some(rng) = self.rng.as_mut().filter(|_| self.rule == KssRule::Random) {
            let fitting: Vec<usize> = fitting.collect();
            return (!fitting.is_empty()).then(|| fitting[rng.random_range(0..fitting.len() as u32) as usize]);
        }
        let mut key = Resources::ZERO;
        key.0[..need.len()].copy_from_slice(need);
        if self.scores.len() >= REMEMBERED && !self.scores.contains_key(&key) {
            self.scores.clear();
        }
        let mut known = self.scores.remove(&key).unwrap_or_default();
        known.resize(index.len(), -1);
        let mut best: Option<(i64, usize)> = None;
        for machine in fitting {
            if known[machine] < 0 {
                known[machine] = self.score(index, hardware, machine, need);
            }
            if best.is_none_or(|(score, _)| known[machine] > score) {
                best = Some((known[machine], machine));
            }
        }
        self.scores.insert(key, known);
        best.map(|(_, machine)| machine)
    }

    /// Returns the score of a machine where the task fits.
    pub fn score(&self, index: &Index, hardware: &Hardware, machine: usize, need: &[u64]) -> i64 {
        let Some(set) = hardware.sets.first() else { return 0 };
        let cores = |amounts: &[u64]| hardware.cores.map_or(0, |dim| amounts[dim]);
        let devices = set.numbers(machine);
        let (free, ask) = (cores(index.amounts(machine)), cores(need));
        let (total, gpu) = (devices.iter().map(|free| u64::from(*free)).sum::<u64>(), need[set.dim]);
        match self.rule {
            KssRule::Random => 0,
            KssRule::DotProduct => {
                let product = free as f64 / CORES * (ask as f64 / CORES) + total as f64 / GPUS * (gpu as f64 / GPUS);
                self.integer_score(100.0 * (1.0 - product / 2.0))
            }
            KssRule::BestFit => {
                let left = |free: u64, ask: u64, whole: f64| free.saturating_sub(ask) as f64 / whole * 0.5;
                self.integer_score((1.0 - (left(free, ask, CORES) + left(total, gpu, GPUS))) * 100.0)
            }
            KssRule::Clustering => self.clustering(machine, total, gpu).into(),
            KssRule::Packing => packing(devices, gpu).into(),
            KssRule::Fgd => {
                let best = self
                    .growth_scores(hardware, machine, free, need)
                    .max_by_key(|(device, score)| (*score, Reverse(*device)));
                best.map_or(0, |(_, score)| score)
            }
        }
    }

    /// Returns the score of `kss-gpu-clustering`: machines that run tasks of the same class first, then the fuller ones.
    fn clustering(&self, machine: usize, total: u64, gpu: u64) -> i32 {
        if gpu == 0 {
            return 0;
        }
        let classes = self.classes.get(machine).map_or(&[][..], Vec::as_slice);
        let same = classes.iter().any(|(class, _)| *class == gpu / WHOLE);
        let class = match (classes.len(), same) {
            (0, _) => 25,
            (1, true) => 75,
            (_, true) => 50,
            (_, false) => 0,
        };
        (25 * 8000u64.saturating_sub(total) / 8000) as i32 + class
    }

    /// Returns, for each device that a part of a device may be taken from, the score after that; for other demands a single score, with the
    /// whole devices of lowest numbers taken. `free` are the free cores before the task starts.
    fn growth_scores<'a>(
        &'a self,
        hardware: &'a Hardware,
        machine: usize,
        free: u64,
        need: &'a [u64],
    ) -> impl Iterator<Item = (usize, i64)> + 'a {
        let (mix, set) = (&hardware.pods, &hardware.sets[0]);
        let devices = set.numbers(machine);
        let before = mix.fragments(machine, free, devices);
        let left = free - hardware.cores.map_or(0, |dim| need[dim]);
        let (part, number) = part_and_number(need[set.dim]);
        let choices = if (1..WHOLE).contains(&part) { devices.len() } else { 1 };
        (0..choices).filter(move |&device| part == 0 || part == WHOLE || u64::from(devices[device]) >= part).map(
            move |device| {
                let mut devices = devices.to_vec();
                if part > 0 && part < WHOLE {
                    devices[device] -= part as u16;
                } else {
                    let whole = devices.iter_mut().filter(|free| u64::from(**free) == WHOLE);
                    whole.take(number as usize).for_each(|free| *free = 0);
                }
                (device, self.integer_score(score_of_growth(before, mix.fragments(machine, left, &devices))))
            },
        )
    }

    /// Returns the device for a task that needs a part of one, after the allocation of its amounts; `None` if the rule takes the fullest
    /// device.
    pub fn device(&mut self, index: &Index, hardware: &Hardware, machine: usize, need: &[u64]) -> Option<usize> {
        let set = hardware.sets.first()?;
        let part = need[set.dim];
        if !(1..WHOLE).contains(&part) {
            return None;
        }
        match self.rule {
            KssRule::Random => {
                let devices = set.numbers(machine);
                let enough: Vec<usize> =
                    (0..devices.len()).filter(|&device| u64::from(devices[device]) >= part).collect();
                let rng = self.rng.as_mut()?;
                (!enough.is_empty()).then(|| enough[rng.random_range(0..enough.len() as u32) as usize])
            }
            KssRule::Fgd => {
                let free = hardware.cores.map_or(0, |dim| index.amounts(machine)[dim] + need[dim]);
                let scores = self.growth_scores(hardware, machine, free, need);
                scores.max_by_key(|(device, score)| (*score, Reverse(*device))).map(|(device, _)| device)
            }
            _ => None,
        }
    }
}

/// Returns the score of `kss-gpu-packing`: devices in use first, then free devices of machines in use, then free machines.
fn packing(devices: &[u16], gpu: u64) -> i32 {
    let (part, number) = part_and_number(gpu);
    if number == 0 {
        return 0;
    }
    let all = devices.len() as i32;
    if devices.iter().all(|free| u64::from(*free) == WHOLE) {
        return (33 - all).max(all);
    }
    let mut free: Vec<u64> = devices.iter().map(|free| u64::from(*free)).filter(|free| *free >= part).collect();
    free.sort_unstable();
    free.truncate(number as usize);
    match free.iter().filter(|free| **free == WHOLE).count() as i32 {
        0 => {
            let rest: u64 = free.iter().map(|free| free * 100 / 1000).sum();
            (100 - (rest / 10) as i32).max(50)
        }
        whole => (50 - whole).max(33),
    }
}

/// Returns the demand of a pod from amounts by resource; `cores` and `devices` are the dimensions that count.
pub fn pod_demand(
    demand: &Resources,
    cores: Option<usize>,
    devices: usize,
    label: Option<(String, MachineSet)>,
    count: u64,
) -> PodDemand {
    debug_assert!(devices < MAX_DIMS);
    PodDemand { cores: cores.map_or(0, |dim| demand.0[dim]), devices: demand.0[devices], label, count }
}

#[cfg(test)]
#[path = "kss_tests.rs"]
mod tests;
