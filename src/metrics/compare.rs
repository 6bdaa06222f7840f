//! Policies against a baseline: by how much each reduces mean completion time, and how sure that is.
//!
//! All numbers pair runs of one seed, which saw the same workload: what a seed does to both alike cancels. A reduction
//! is 1 − new / base for each seed; the difference of two policies is the difference of their reductions, seed by
//! seed. Source: Figure 14 of the DRF paper (Ghodsi et al., NSDI 2011), with intervals.

use super::interval::{Interval, Reduction, mean_interval, reduction};

/// The level of all intervals.
pub const LEVEL: f64 = 0.95;

/// What one policy came to; the values at one index belong to one seed, the same for every policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRuns {
    /// The policy's name.
    pub name: String,
    /// Mean completion time of all finished jobs, in seconds.
    pub completion_s: Vec<Option<f64>>,
    /// The same by job size; the same bins for every policy.
    pub bins: Vec<BinRuns>,
}

/// One bin of job sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinRuns {
    /// The sizes, such as `1-500`.
    pub label: String,
    /// Finished jobs of each seed.
    pub jobs: Vec<u64>,
    /// Their mean completion time in seconds.
    pub completion_s: Vec<Option<f64>>,
}

/// Every policy against the baseline, and against the policy of interest.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// The policy that the others are set against: `drf` if it is there, else the one with the largest reduction.
    pub reference: String,
    /// Jobs that finished under the baseline, all seeds together: of all sizes.
    pub jobs: u64,
    /// The same by bin: label and jobs.
    pub bins: Vec<(String, u64)>,
    /// Every policy but the baseline, in the order given.
    pub policies: Vec<Compared>,
}

/// One policy against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Reduction of the mean completion time of all jobs.
    pub all: Reduction,
    /// The same by bin.
    pub bins: Vec<Reduction>,
    /// Its reduction minus the reference's, paired by seed: of all jobs. `None` without a seed that has both.
    pub difference: Option<Interval>,
    /// The same by bin.
    pub bin_differences: Vec<Option<Interval>>,
}

impl Comparison {
    /// Compares all policies with `baseline`. `None` if it is missing or alone, or if no job finished under it.
    ///
    /// Panics: only if the policies differ in seeds or bins (programmer error).
    pub fn of(policies: &[PolicyRuns], baseline: &str) -> Option<Comparison> {
        let base = policies.iter().find(|policy| policy.name == baseline)?;
        base.completion_s.iter().flatten().next()?;
        let others: Vec<&PolicyRuns> = policies.iter().filter(|policy| policy.name != baseline).collect();
        let all = |policy: &PolicyRuns| reduction(&base.completion_s, &policy.completion_s, LEVEL);
        let gain = |policy: &PolicyRuns| all(policy).interval.map_or(f64::NEG_INFINITY, |interval| interval.mean);
        // The first of equals: `max_by` alone would take the last.
        let best = || others.iter().rev().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        let reference = *others.iter().find(|policy| policy.name == "drf").or_else(best)?;
        let compared = |policy: &&PolicyRuns| Compared {
            name: policy.name.clone(),
            all: all(policy),
            bins: (0..base.bins.len())
                .map(|at| reduction(&base.bins[at].completion_s, &policy.bins[at].completion_s, LEVEL))
                .collect(),
            difference: difference(&base.completion_s, &policy.completion_s, &reference.completion_s),
            bin_differences: (0..base.bins.len())
                .map(|at| {
                    let each = [base, policy, reference].map(|policy| &policy.bins[at].completion_s[..]);
                    difference(each[0], each[1], each[2])
                })
                .collect(),
        };
        let bins: Vec<(String, u64)> = base.bins.iter().map(|bin| (bin.label.clone(), bin.jobs.iter().sum())).collect();
        Some(Comparison {
            baseline: base.name.clone(),
            reference: reference.name.clone(),
            jobs: bins.iter().map(|(_, jobs)| jobs).sum(),
            bins,
            policies: others.iter().map(compared).collect(),
        })
    }

    /// The answer in words, one sentence a policy: its reduction beside the reference's, and whether they differ.
    pub fn sentences(&self) -> Vec<String> {
        let Some(reference) = self.policies.iter().find(|policy| policy.name == self.reference) else {
            return Vec::new();
        };
        let lead = |policy: &Compared| {
            let (verb, by) = change(policy.all.interval);
            format!("{} {verb} mean completion time against {} by {by}", policy.name, self.baseline)
        };
        let others: Vec<&Compared> = self.policies.iter().filter(|policy| policy.name != self.reference).collect();
        if others.is_empty() {
            return vec![lead(reference) + "."];
        }
        let sentence = |policy: &&Compared| {
            let difference = policy.difference.map(points).unwrap_or_else(|| "unknown".to_owned());
            let verdict = verdict(&policy.name, &reference.name, policy.difference);
            let bins = self.bins_that_differ(policy);
            let (verb, by) = change(reference.all.interval);
            let other = format!("{} {verb} it by {by}", reference.name);
            format!("{}, {other}; the difference of {difference}{verdict}{bins}.", lead(policy))
        };
        others.iter().map(sentence).collect()
    }

    /// By job size: where the difference is larger than its interval.
    fn bins_that_differ(&self, policy: &Compared) -> String {
        let differing: Vec<String> = self
            .bins
            .iter()
            .zip(&policy.bin_differences)
            .filter_map(|((label, _), difference)| Some((label, (*difference)?)))
            .filter(|(_, difference)| sign(*difference).is_some_and(|sign| sign != 0))
            .map(|(label, difference)| format!("{label} ({})", points(difference)))
            .collect();
        let known = policy.bin_differences.iter().flatten().any(|difference| difference.low.is_some());
        match (known, differing.is_empty()) {
            (false, _) => String::new(),
            (true, true) => "; no bin of job sizes has a difference that can be told from 0".to_owned(),
            (true, false) => {
                format!("; of the bins of job sizes, these have one that can be told from 0: {}", differing.join(", "))
            }
        }
    }
}

/// The difference of two reductions against one base, seed by seed.
fn difference(base: &[Option<f64>], new: &[Option<f64>], reference: &[Option<f64>]) -> Option<Interval> {
    let seeds = base.iter().zip(new).zip(reference);
    let paired: Vec<f64> = seeds
        .filter_map(|((base, new), reference)| Some(((*base)?, (*new)?, (*reference)?)))
        .filter(|(base, ..)| *base != 0.0)
        .map(|(base, new, reference)| (reference - new) / base)
        .collect();
    mean_interval(&paired, LEVEL)
}

/// On which side of 0 the whole interval lies; 0 if 0 is inside of it. `None` without an interval.
fn sign(interval: Interval) -> Option<i8> {
    let (low, high) = (interval.low?, interval.high?);
    Some(if low > 0.0 {
        1
    } else if high < 0.0 {
        -1
    } else {
        0
    })
}

fn verdict(policy: &str, reference: &str, difference: Option<Interval>) -> String {
    let level = " (95 % interval over seeds)";
    match difference.map(sign) {
        Some(Some(1)) => format!("{level} favours {policy}"),
        Some(Some(-1)) => format!("{level} favours {reference}"),
        Some(Some(_)) => format!("{level} cannot be told from 0"),
        Some(None) | None => " has no interval, as one seed has no spread".to_owned(),
    }
}

/// What a reduction does, and by how much in percent with the half-width of its interval: `reduces`, `74.9 ± 1.2 %`.
fn change(reduction: Option<Interval>) -> (&'static str, String) {
    match reduction {
        None => ("changes", "an unknown amount".to_owned()),
        Some(less) if less.mean >= 0.0 => ("reduces", half(less, "%")),
        Some(more) => {
            let (low, high) = (more.high.map(|high| -high), more.low.map(|low| -low));
            ("raises", half(Interval { mean: -more.mean, low, high, n: more.n }, "%"))
        }
    }
}

fn points(interval: Interval) -> String {
    half(interval, "points")
}

fn half(interval: Interval, unit: &str) -> String {
    let half = interval.high.map(|high| 100.0 * (high - interval.mean));
    // Two digits of the uncertainty, one decimal where there is none.
    let decimals = match half {
        Some(half) if half > 0.0 && half < 1.0 => (1 - half.log10().floor() as i32).clamp(1, 4) as usize,
        _ => 1,
    };
    let mean = format!("{:.decimals$}", 100.0 * interval.mean);
    let mean = if mean.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) { "0".to_owned() } else { mean };
    match half {
        Some(half) => format!("{mean} ± {half:.decimals$} {unit}"),
        None => format!("{mean} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(name: &str, completion_s: &[f64], bins: &[(&str, &[Option<f64>])]) -> PolicyRuns {
        let bin = |(label, values): &(&str, &[Option<f64>])| BinRuns {
            label: (*label).to_owned(),
            jobs: values.iter().map(|value| u64::from(value.is_some())).collect(),
            completion_s: values.to_vec(),
        };
        let completion_s = completion_s.iter().map(|&value| Some(value)).collect();
        PolicyRuns { name: name.to_owned(), completion_s, bins: bins.iter().map(bin).collect() }
    }

    #[test]
    fn reductions_and_differences_by_hand() {
        let base = runs("slot:2", &[100.0, 200.0], &[("1-500", &[Some(10.0), None])]);
        let drf = runs("drf", &[50.0, 80.0], &[("1-500", &[Some(5.0), None])]);
        let cpu = runs("maxmin:cpu", &[40.0, 100.0], &[("1-500", &[Some(4.0), Some(9.0)])]);
        let found = Comparison::of(&[base, cpu, drf], "slot:2").unwrap();
        assert_eq!((found.reference.as_str(), found.jobs), ("drf", 1));
        assert_eq!(found.bins, [("1-500".to_owned(), 1)]);
        // Reductions 0.6 and 0.5 against 0.5 and 0.6.
        let [cpu, drf] = &found.policies[..] else { panic!("two others") };
        assert!((cpu.all.interval.unwrap().mean - 0.55).abs() < 1e-12);
        assert!((drf.all.interval.unwrap().mean - 0.55).abs() < 1e-12);
        let difference = cpu.difference.unwrap();
        assert!(difference.mean.abs() < 1e-12 && (difference.high.unwrap() - 12.706204736 * 0.1).abs() < 1e-6);
        let bin = cpu.bin_differences[0].unwrap();
        assert!((bin.mean - 0.1).abs() < 1e-12 && bin.n == 1);
        assert_eq!(drf.difference.unwrap().mean, 0.0);
    }

    #[test]
    fn sentences_say_whether_two_policies_differ() {
        let base = runs("slot:2", &[100.0, 200.0, 150.0], &[]);
        let drf = runs("drf", &[50.0, 100.0, 75.0], &[]);
        let worse = runs("fifo", &[70.0, 141.0, 105.0], &[]);
        let alike = runs("asset", &[49.0, 103.0, 74.0], &[]);
        let said = Comparison::of(&[base.clone(), drf.clone(), worse, alike], "slot:2").unwrap().sentences();
        assert_eq!(said.len(), 2);
        assert!(
            said[0].starts_with(
                "fifo reduces mean completion time against slot:2 by 29.83 ± 0.72 %, drf reduces it by 50.0"
            )
        );
        assert!(said[0].contains("(95 % interval over seeds) favours drf."), "{}", said[0]);
        assert!(said[1].contains("cannot be told from 0"), "{}", said[1]);
        let said = Comparison::of(&[base, drf], "slot:2").unwrap().sentences();
        assert_eq!(said, ["drf reduces mean completion time against slot:2 by 50.0 ± 0.0 %."]);
    }

    #[test]
    fn one_policy_or_no_baseline_is_no_comparison() {
        let alone = runs("drf", &[1.0], &[]);
        assert_eq!(Comparison::of(std::slice::from_ref(&alone), "drf"), None);
        assert_eq!(Comparison::of(&[alone], "fifo"), None);
    }

    #[test]
    fn without_drf_the_largest_reduction_is_the_reference() {
        let all = [runs("fifo", &[9.0], &[]), runs("asset", &[3.0], &[]), runs("maxmin:cpu", &[3.0], &[])];
        let found = Comparison::of(&all, "fifo").unwrap();
        assert_eq!(found.reference, "asset");
        assert!(found.sentences()[0].contains("one seed"));
        let found = Comparison::of(&all, "asset").unwrap().sentences();
        assert!(
            found[0].starts_with("fifo raises mean completion time against asset by 200.0 %, maxmin:cpu"),
            "{}",
            found[0]
        );
    }
}
