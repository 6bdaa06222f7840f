//! Compares policies with a baseline: the change of mean completion time, and its significance.
//!
//! Every comparison is a [`difference()`] of two policies' means over seeds, in percent of the mean of the policy that is compared with.
//! Runs with the same seed have the same workload, so the influence of the seed on both policies cancels out. In a closed loop no two runs
//! have the same workload, so unpaired means are compared ([`Design::Unpaired`]). The comparison by job size is Figure 14 of the DRF paper
//! (Ghodsi et al., NSDI 2011), with intervals.

use super::difference::{Design, difference};
use super::holm::corrected;
use super::verdict::{OPEN, TestVerdict, Tested, equivalent_words};

/// The confidence level of all intervals.
pub const LEVEL: f64 = 0.95;

/// The significance level. A corrected p-value below it is called statistically significant.
pub const ALPHA: f64 = 0.05;

/// Returns whether a corrected p-value is significant; a missing one is not.
pub fn is_significant(p: Option<f64>) -> bool {
    p.is_some_and(|p| p < ALPHA)
}

/// Returns a p-value in words: `p = 0.0123`, `p < 0.0001`.
pub fn p_words(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {}", p_number(p)) }
}

/// Returns a p-value as a number: `0.0123`, `<0.0001`.
pub fn p_number(p: f64) -> String {
    match p {
        tiny if tiny < 0.0001 => "<0.0001".to_owned(),
        small if small < 0.1 => format!("{small:.4}"),
        large => format!("{large:.2}"),
    }
}

/// The results of one policy. The values at one index belong to one seed, the same for every policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRuns {
    /// The policy's name.
    pub name: String,
    /// The mean completion time of all finished jobs, in seconds.
    pub completion_s: Vec<Option<f64>>,
    /// The completion times by job size, in the same bins for every policy.
    pub bins: Vec<BinRuns>,
}

impl PolicyRuns {
    /// Returns the completion times of jobs of all sizes for `at` = 0, and those of bin n − 1 for `at` = n.
    fn place(&self, at: usize) -> &[Option<f64>] {
        at.checked_sub(1).map_or(&self.completion_s, |bin| &self.bins[bin].completion_s)
    }
}

/// One bin of job sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinRuns {
    /// The job sizes, such as `1-500`.
    pub label: String,
    /// The number of finished jobs of each seed.
    pub jobs: Vec<u64>,
    /// The mean completion time of these jobs, in seconds.
    pub completion_s: Vec<Option<f64>>,
}

/// Comparisons of every policy with the baseline, and with `drf`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The baseline's name.
    pub baseline: String,
    /// The policy that is the second reference: `drf`, if it exists and is not the baseline. It is not chosen by its results, because then
    /// a difference by chance would look real.
    pub reference: Option<String>,
    /// Whether runs are paired by seed.
    pub design: Design,
    /// The number of seeds.
    pub seeds: usize,
    /// The number of jobs of all sizes that finished under the baseline, over all seeds.
    pub jobs: u64,
    /// The label and the number of jobs of each bin.
    pub bins: Vec<(String, u64)>,
    /// All policies except the baseline, in the given order.
    pub policies: Vec<Compared>,
    /// The number of p-values of the comparisons of all jobs with the baseline, which are corrected together.
    pub first_family: usize,
    /// The number of p-values of the family of all comparisons; both kinds of tests are corrected for it.
    pub family: usize,
}

/// The comparisons of one policy with the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The name of the policy.
    pub name: String,
    /// The difference from the baseline: for all jobs, then by bin. `None` if no seed has both values.
    pub against_baseline: Vec<Option<Tested>>,
    /// The difference from the reference, in the same order. Empty for the reference itself, and without a reference.
    pub against_reference: Vec<Option<Tested>>,
}

impl Compared {
    fn tested(&mut self) -> impl Iterator<Item = &mut Tested> {
        self.against_baseline.iter_mut().chain(&mut self.against_reference).flatten()
    }
}

impl Comparison {
    /// Compares all policies with `baseline`. Returns `None` if the baseline is missing, if it is the only policy, or if no job finished
    /// under it.
    ///
    /// Panics: only if the policies differ in seeds or bins (programmer error).
    pub fn new(policies: &[PolicyRuns], baseline: &str, design: Design) -> Option<Comparison> {
        let base = policies.iter().find(|policy| policy.name == baseline)?;
        base.completion_s.iter().flatten().next()?;
        let others: Vec<&PolicyRuns> = policies.iter().filter(|policy| policy.name != baseline).collect();
        others.first()?;
        let reference = others.iter().find(|policy| policy.name == "drf").copied();
        let bins: Vec<(usize, u64)> = base.bins.iter().map(|bin| bin.jobs.iter().sum()).enumerate().collect();
        let jobs = bins.iter().map(|(_, jobs)| jobs).sum();
        // A bin that contains all jobs would repeat the line of all jobs.
        let shown: Vec<(usize, u64)> = bins.into_iter().filter(|(_, in_bin)| *in_bin > 0 && *in_bin < jobs).collect();
        let places: Vec<usize> = std::iter::once(0).chain(shown.iter().map(|(at, _)| at + 1)).collect();
        let against = |other: &PolicyRuns, policy: &PolicyRuns| -> Vec<Option<Tested>> {
            let one = |&at: &usize| difference(design, other.place(at), policy.place(at), LEVEL).map(Tested::new);
            places.iter().map(one).collect()
        };
        let compared = |policy: &&PolicyRuns| {
            let reference = reference.filter(|reference| reference.name != policy.name);
            Compared {
                name: policy.name.clone(),
                against_baseline: against(base, policy),
                against_reference: reference.map(|reference| against(reference, policy)).unwrap_or_default(),
            }
        };
        let mut found = Comparison {
            baseline: base.name.clone(),
            reference: reference.filter(|_| others.len() > 1).map(|reference| reference.name.clone()),
            design,
            seeds: base.completion_s.len(),
            jobs,
            bins: shown.iter().map(|(at, jobs)| (base.bins[*at].label.clone(), *jobs)).collect(),
            policies: others.iter().map(compared).collect(),
            first_family: 0,
            family: 0,
        };
        found.correct();
        Some(found)
    }

    /// Corrects p-values. The p-values of all jobs against the baseline are corrected together, because they are the family of the metric
    /// in the table of differences. The other p-values are corrected for all comparisons.
    fn correct(&mut self) {
        let correct = |all: Vec<&mut Tested>| {
            let after = corrected(all.iter().map(|one| ("", one.means.test)));
            let family = after.iter().filter(|one| one.p.is_some()).count();
            all.into_iter().zip(after).for_each(|(one, holm)| one.holm = holm);
            family
        };
        let all = self.policies.iter_mut().flat_map(Compared::tested);
        self.family = correct(all.collect());
        let first = self.policies.iter_mut().filter_map(|policy| policy.against_baseline.first_mut()?.as_mut());
        self.first_family = correct(first.collect());
    }

    /// Returns the result in words, and the meanings of its numbers.
    pub fn sentences(&self) -> Vec<String> {
        self.claims().into_iter().chain([self.method()]).collect()
    }

    /// Returns the result in words: one sentence for all policies against the baseline, one for all policies against the reference, and
    /// sentences on the differences by job size.
    pub fn claims(&self) -> Vec<String> {
        let all = |other: &str, tests: fn(&Compared) -> &Vec<Option<Tested>>| {
            let others = self.policies.iter().filter(|policy| policy.name != *other);
            let all: Vec<String> =
                others.map(|policy| change(&policy.name, tests(policy).first().copied().flatten())).collect();
            format!("Mean completion time against {other}: {}.", listed(&all, ";"))
        };
        let mut said = vec![all(&self.baseline, |policy| &policy.against_baseline)];
        said.extend(self.reference.as_ref().map(|reference| all(reference, |policy| &policy.against_reference)));
        for policy in &self.policies {
            let (other, tests) = match &self.reference {
                Some(reference) if *reference != policy.name => (reference, &policy.against_reference),
                Some(_) => continue,
                None => (&self.baseline, &policy.against_baseline),
            };
            if let Some(bins) = self.bins_that_differ(tests) {
                said.push(format!("{} against {other} by job size: {bins}.", policy.name));
            }
        }
        said
    }

    /// Returns the meanings of the numbers in the sentences, and states which p-values were corrected together.
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
        let by_holm = ", corrected by Holm's method for";
        let correction = match (self.first_family, self.family) {
            (_, 1) => String::new(),
            (0 | 1, all) => format!("; all but that of all jobs against {}{by_holm} {all} comparisons", self.baseline),
            (first, all) if first == all => format!("{by_holm} {all} comparisons"),
            (first, all) => format!(
                "{by_holm} the {first} comparisons of all jobs with {}, and the others for all {all}",
                self.baseline
            ),
        };
        format!(
            "Numbers are differences of means over {} seeds in percent of the mean of the policy compared with, with the half-widths \
             of 95 % confidence intervals. p-values are of {}{correction}. “{}” is shown by two one-sided tests, corrected likewise. \
             “{OPEN}” means that neither a difference nor equivalence is shown; more seeds may show one.{mixes}",
            self.seeds,
            self.design.test(),
            equivalent_words(),
        )
    }

    /// Describes the bins with a significant difference. Returns `None` if no bin was tested.
    fn bins_that_differ(&self, tests: &[Option<Tested>]) -> Option<String> {
        let bins = self.bins.iter().zip(tests.get(1..)?);
        let tested: Vec<(&str, Tested)> = bins
            .filter_map(|((label, _), test)| Some((label.as_str(), test.filter(|test| test.holm.p.is_some())?)))
            .collect();
        tested.first()?;
        let side = |verdict: TestVerdict| -> Vec<String> {
            let one = |(label, one): &(&str, Tested)| {
                (one.verdict() == verdict).then(|| format!("{label} tasks ({})", one.words().0))
            };
            tested.iter().filter_map(one).collect()
        };
        let (lower, higher) = (side(TestVerdict::Lower), side(TestVerdict::Higher));
        Some(match lower.len() + higher.len() {
            0 => "no difference is statistically significant".to_owned(),
            _ => listed(&[lower, higher].concat(), ","),
        })
    }
}

/// Describes a change: `20.5 ± 5.0 % lower under drf (p = 0.0020)`.
fn change(policy: &str, tested: Option<Tested>) -> String {
    let Some(tested) = tested else { return format!("unknown under {policy}") };
    match tested.words() {
        (what, how) if how.is_empty() => format!("{what} under {policy}"),
        (what, how) => format!("{what} under {policy} ({how})"),
    }
}

/// Joins items to a list in words: `a, b and c`.
fn listed(items: &[String], between: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] if between == "," => format!("{first} and {second}"),
        [all @ .., last] => format!("{}{between} and {last}", all.join(&format!("{between} "))),
    }
}

#[cfg(test)]
mod tests;
