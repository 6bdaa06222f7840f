//! Policies against a baseline: by how much each reduces mean completion time, and how sure that is.
//!
//! Runs of one seed saw the same workload, so numbers pair them: what a seed does to both alike cancels. A reduction is
//! 1 − new / base for each seed; the difference of two policies is the difference of their reductions, seed by seed. In
//! a closed loop no two runs saw the same workload; then means are compared ([`Design::Unpaired`]). All tests of a comparison
//! are shown together, and are one family. Source: Figure 14 of the DRF paper (Ghodsi et al., NSDI 2011), with intervals.

use super::difference::{Design, MARGIN, Test, paired, welch};
use super::holm::corrected;
use super::interval::{Interval, Reduction, reduction, reduction_of_means, there};
use super::spread::{largest, mean};

/// The level of all intervals.
pub const LEVEL: f64 = 0.95;

/// A corrected p-value below this is called statistically significant.
pub const ALPHA: f64 = 0.05;

/// Whether a corrected p-value is significant; an absent one is not.
pub fn is_significant(p: Option<f64>) -> bool {
    p.is_some_and(|p| p < ALPHA)
}

/// A p-value in words: `p = 0.0123`, `p < 0.0001`.
pub fn p_words(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {}", p_number(p)) }
}

/// A p-value as a number: `0.0123`, `<0.0001`.
pub fn p_number(p: f64) -> String {
    match p {
        tiny if tiny < 0.0001 => "<0.0001".to_owned(),
        small if small < 0.1 => format!("{small:.4}"),
        large => format!("{large:.2}"),
    }
}

/// The results of one policy; the values at one index belong to one seed, the same for every policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRuns {
    /// The policy's name.
    pub name: String,
    /// Mean completion time of all finished jobs, in seconds.
    pub completion_s: Vec<Option<f64>>,
    /// The same by job size; the same bins for every policy.
    pub bins: Vec<BinRuns>,
}

impl PolicyRuns {
    /// Completion times of jobs of all sizes for place 0, of bin n − 1 for place n.
    fn place(&self, at: usize) -> &[Option<f64>] {
        at.checked_sub(1).map_or(&self.completion_s, |bin| &self.bins[bin].completion_s)
    }
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

/// Every policy against the baseline, and against `drf`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// The policy that the others are set against as well: `drf`, if it is there and not the baseline. It is never chosen
    /// by its results, which would make chance look like a difference.
    pub reference: Option<String>,
    /// How runs belong together.
    pub design: Design,
    /// How many seeds there are.
    pub seeds: usize,
    /// Jobs that finished under the baseline, all seeds together: of all sizes.
    pub jobs: u64,
    /// The same by bin: label and jobs.
    pub bins: Vec<(String, u64)>,
    /// Every policy but the baseline, in the order given.
    pub policies: Vec<Compared>,
    /// How many p-values there are: those of differences are corrected for so many, and those of equivalence likewise.
    pub family: usize,
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
    /// Its reduction tested against 0: of all jobs, then by bin. `None` without a seed that has both values.
    pub against_baseline: Vec<Option<Tested>>,
    /// Its reduction minus the reference's, as a part of the baseline's mean: of all jobs, then by bin. The margin is
    /// [`MARGIN`] of the reference's mean. Empty for the reference, and without one.
    pub against_reference: Vec<Option<Tested>>,
}

/// A test, corrected for all that are shown with it (Holm).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The test.
    pub test: Test,
    /// Its p-value, corrected.
    pub p: Option<f64>,
    /// Its p-value of equivalence, corrected for all of equivalence.
    pub p_equivalent: Option<f64>,
}

impl Comparison {
    /// Compares all policies with `baseline`. `None` if it is missing or alone, or if no job finished under it.
    ///
    /// Panics: only if the policies differ in seeds or bins (programmer error).
    pub fn of(policies: &[PolicyRuns], baseline: &str, design: Design) -> Option<Comparison> {
        let base = policies.iter().find(|policy| policy.name == baseline)?;
        base.completion_s.iter().flatten().next()?;
        let others: Vec<&PolicyRuns> = policies.iter().filter(|policy| policy.name != baseline).collect();
        others.first()?;
        let reference = others.iter().find(|policy| policy.name == "drf").copied();
        let compared = |policy: &&PolicyRuns| {
            let against = reference.filter(|reference| reference.name != policy.name);
            let places = || 0..base.bins.len() + 1;
            let reduced = |at| reduced(design, base.place(at), policy.place(at));
            let tested = |test: Test| Tested { test, p: test.p, p_equivalent: test.p_equivalent };
            let mut reductions: Vec<(Reduction, Option<Test>)> = places().map(reduced).collect();
            let all = reductions[0].0;
            let of_reference = |against: &PolicyRuns| -> Vec<Option<Tested>> {
                let one = |at| apart(design, base.place(at), policy.place(at), against.place(at)).map(tested);
                places().map(one).collect()
            };
            Compared {
                name: policy.name.clone(),
                all,
                against_baseline: reductions.iter().map(|(_, test)| test.map(tested)).collect(),
                bins: reductions.split_off(1).into_iter().map(|(reduction, _)| reduction).collect(),
                against_reference: against.map(of_reference).unwrap_or_default(),
            }
        };
        let bins: Vec<(String, u64)> = base.bins.iter().map(|bin| (bin.label.clone(), bin.jobs.iter().sum())).collect();
        let mut found = Comparison {
            baseline: base.name.clone(),
            reference: reference.filter(|_| others.len() > 1).map(|reference| reference.name.clone()),
            design,
            seeds: base.completion_s.len(),
            jobs: bins.iter().map(|(_, jobs)| jobs).sum(),
            bins,
            policies: others.iter().map(compared).collect(),
            family: 0,
        };
        found.correct();
        Some(found)
    }

    /// Corrects all p-values for one another.
    fn correct(&mut self) {
        let mut all: Vec<&mut Tested> = self
            .policies
            .iter_mut()
            .flat_map(|policy| policy.against_baseline.iter_mut().chain(&mut policy.against_reference))
            .flatten()
            .collect();
        let after = corrected(all.iter().map(|one| ("", one.test)));
        self.family = after.iter().filter(|one| one.p.is_some()).count();
        all.iter_mut().zip(after).for_each(|(one, after)| (one.p, one.p_equivalent) = (after.p, after.p_equivalent));
    }

    /// The answer in words, and what its numbers are.
    pub fn sentences(&self) -> Vec<String> {
        self.claims().into_iter().chain([self.method()]).collect()
    }

    /// The answer in words: all policies against the baseline in one sentence, then each against the reference, and what
    /// differs by job size.
    pub fn claims(&self) -> Vec<String> {
        let all: Vec<String> = self.policies.iter().map(|policy| policy.change(&self.baseline)).collect();
        let mut said = vec![format!("Mean completion time against {}: {}.", self.baseline, listed(&all, ";"))];
        for policy in &self.policies {
            let (other, tests) = match &self.reference {
                Some(reference) if *reference != policy.name => (reference, &policy.against_reference),
                Some(_) => continue,
                None => (&self.baseline, &policy.against_baseline),
            };
            let verdict = self.reference.as_ref().and_then(|_| {
                let test = tests.first()?.as_ref()?;
                Some(verdict(&policy.name, other, test))
            });
            let bins = self.bins_that_differ(tests);
            match (verdict, bins) {
                (Some(verdict), Some(bins)) => said.push(format!("{verdict}. By job size: {bins}.")),
                (Some(verdict), None) => said.push(format!("{verdict}.")),
                (None, Some(bins)) => said.push(format!("{} by job size, against {other}: {bins}.", policy.name)),
                (None, None) => {}
            }
        }
        said
    }

    /// The meanings of the numbers in the sentences, and the p-values that were corrected together.
    pub fn method(&self) -> String {
        let mixes = match self.design {
            Design::Paired => "",
            Design::Unpaired => {
                " Users of a closed loop submit a job when their last one has ended, so each policy served another mix of \
                 jobs: runs are not paired, and the comparison by job size is the fairer one."
            }
        };
        if self.family == 0 {
            return format!("With one seed there is no confidence interval and no test.{mixes}");
        }
        format!(
            "Numbers are means over {} seeds with the half-widths of 95 % confidence intervals; p-values are of {}, \
             corrected by Holm's method for all {} comparisons of policies here, over all jobs and by job size. Equivalent \
              means: within {:.0} % of the mean of the policy compared with, by two one-sided tests, corrected likewise.{mixes}",
            self.seeds,
            self.design.test(),
            self.family,
            100.0 * MARGIN
        )
    }

    /// The bins with a significant difference; `None` where no bin was tested.
    fn bins_that_differ(&self, tests: &[Option<Tested>]) -> Option<String> {
        let bins = self.bins.iter().zip(tests.get(1..)?);
        let tested: Vec<(&str, Tested)> = bins
            .filter_map(|((label, _), test)| Some((label.as_str(), test.filter(|test| test.p.is_some())?)))
            .collect();
        tested.first()?;
        let side = |better: bool| -> Vec<String> {
            let one = |(label, one): &(&str, Tested)| {
                let there = is_significant(one.p) && (one.test.difference.mean > 0.0) == better;
                there.then(|| format!("{label} tasks ({})", half(absolute(one.test.difference), "points")))
            };
            tested.iter().filter_map(one).collect()
        };
        let (better, worse) = (side(true), side(false));
        let said = |what: &str, bins: &[String]| format!("significantly {what} for {}", listed(bins, ","));
        Some(match (better.is_empty(), worse.is_empty()) {
            (true, true) => "no difference is statistically significant".to_owned(),
            (false, true) => said("lower", &better),
            (true, false) => said("higher", &worse),
            (false, false) => format!("{}; {}", said("lower", &better), said("higher", &worse)),
        })
    }
}

impl Compared {
    /// `74.9 ± 1.2 % lower under drf`, with the p-value.
    fn change(&self, baseline: &str) -> String {
        let Some(less) = self.all.interval else { return format!("unknown under {}", self.name) };
        let amount = half(absolute(less), "%");
        let way = match less.mean {
            0.0 => return format!("the same under {} as under {baseline}", self.name),
            mean if mean > 0.0 => "lower",
            _ => "higher",
        };
        let test = self.against_baseline.first().copied().flatten();
        let note = match test.and_then(|test| Some((test, test.p?))) {
            None => String::new(),
            Some((_, p)) if is_significant(Some(p)) => format!(" ({})", p_words(p)),
            Some((test, p)) if is_significant(test.p_equivalent) => {
                format!(" (not statistically significant, {}; equivalent)", p_words(p))
            }
            Some((_, p)) => format!(" (not statistically significant, {})", p_words(p)),
        };
        format!("{amount} {way} under {}{note}", self.name)
    }
}

/// Items as a list in words.
fn listed(items: &[String], between: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] if between == "," => format!("{first} and {second}"),
        [all @ .., last] => format!("{}{between} and {last}", all.join(&format!("{between} "))),
    }
}

/// A reduction against the base, and its test against none.
fn reduced(design: Design, base: &[Option<f64>], new: &[Option<f64>]) -> (Reduction, Option<Test>) {
    match design {
        Design::Paired => {
            let found = reduction(base, new, LEVEL);
            (found, of_ratios(&ratios(base, base, new), Some(MARGIN)))
        }
        Design::Unpaired => {
            let found = reduction_of_means(base, new, LEVEL);
            let test = found.interval.and_then(|interval| {
                let test = of_base(base, new, base, base)?;
                Some(Test { difference: interval, ..test })
            });
            (found, test)
        }
    }
}

/// How much more a policy reduces the base than the reference does, tested against none.
fn apart(design: Design, base: &[Option<f64>], new: &[Option<f64>], reference: &[Option<f64>]) -> Option<Test> {
    match design {
        Design::Paired => {
            let zero: Vec<Option<f64>> = vec![Some(0.0); base.len()];
            // Of the seeds that are compared: their reference as a part of the base.
            let there: Vec<Option<f64>> =
                reference.iter().zip(new).map(|(one, new)| one.filter(|_| new.is_some())).collect();
            let parts = ratios(base, &there, &zero);
            let part = mean(&parts);
            of_ratios(&ratios(base, reference, new), Some(MARGIN * part).filter(|margin| *margin > 0.0))
        }
        Design::Unpaired => of_base(base, new, reference, reference),
    }
}

/// Tests differences of parts, which have the rounding of numbers near 1 or larger.
fn of_ratios(ratios: &[f64], margin: Option<f64>) -> Option<Test> {
    paired(ratios, largest(ratios).max(1.0), margin, LEVEL)
}

/// (reference − new) / base for each seed that has all three and a base that is not 0.
fn ratios(base: &[Option<f64>], reference: &[Option<f64>], new: &[Option<f64>]) -> Vec<f64> {
    let seeds = base.iter().zip(reference).zip(new);
    seeds
        .filter_map(|((base, reference), new)| Some(((*base)?, (*reference)?, (*new)?)))
        .filter(|(base, ..)| *base != 0.0)
        .map(|(base, reference, new)| (reference - new) / base)
        .collect()
}

/// Welch's test of reference − new as a part of the base's mean; the margin is a part of the mean of `of`.
fn of_base(base: &[Option<f64>], new: &[Option<f64>], reference: &[Option<f64>], of: &[Option<f64>]) -> Option<Test> {
    let scale = mean(&there(base));
    let margin = MARGIN * mean(&there(of));
    let test = welch(&there(new), &there(reference), (margin > 0.0).then_some(margin), LEVEL)?;
    (scale > 0.0).then(|| test.scaled(1.0 / scale))
}

/// A policy against the reference, in words.
fn verdict(policy: &str, reference: &str, one: &Tested) -> String {
    let difference = one.test.difference;
    let points = half(absolute(difference), "points");
    let Some(p) = one.p else {
        return format!("Mean completion times under {policy} and {reference} are {points} apart");
    };
    let equivalent = one.p_equivalent.filter(|p| is_significant(Some(*p)));
    let way = if difference.mean > 0.0 { "lower" } else { "higher" };
    let within = format!("equivalent within {:.0} %", 100.0 * MARGIN);
    let lead = format!("Mean completion time under {policy} is");
    match (is_significant(Some(p)), equivalent) {
        (true, None) => format!("{lead} significantly {way} than under {reference}, by {points} ({})", p_words(p)),
        (true, Some(_)) => {
            format!("{lead} significantly {way} than under {reference}, by {points} ({}), yet {within}", p_words(p))
        }
        (false, Some(same)) => {
            format!("{lead} {within} to that under {reference} ({}); the difference is {points}", p_words(same))
        }
        (false, None) => format!(
            "{lead} not significantly different from that under {reference} ({points} {way}, {}), nor is equivalence shown",
            p_words(p)
        ),
    }
}

/// The same without its sign.
fn absolute(interval: Interval) -> Interval {
    match interval.mean < 0.0 {
        true => {
            let (low, high) = (interval.high.map(|high| -high), interval.low.map(|low| -low));
            Interval { mean: -interval.mean, low, high, n: interval.n }
        }
        false => interval,
    }
}

/// A part in percent with the half-width of its interval: `74.9 ± 1.2 %`.
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
mod tests;
