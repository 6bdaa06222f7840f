//! Sentences about policies that over-commit the cluster, and about the resulting slowdown that is not modelled.

use std::borrow::Cow;

use plimsoll_base::error::Result;
use plimsoll_base::units::resource_name;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

/// The usage of one resource in a run, as shares of the time and of the capacity.
#[derive(Clone, Debug)]
pub struct Use {
    /// The name of the resource.
    pub resource: String,
    /// The share of the time with usage above capacity: the column `overcommitted_<r>`.
    pub time: f64,
    /// The largest simultaneous usage: the column `peak_used_<r>`.
    pub peak: f64,
    /// Whether machines slow down if this resource is over-committed; `None` if the results do not state it.
    pub slows: Option<bool>,
}

/// The usage of all resources in a run of a policy.
#[derive(Clone, Debug)]
pub struct Used<'a> {
    /// The policy.
    pub policy: Cow<'a, str>,
    /// One entry per resource.
    pub uses: Vec<Use>,
}

impl<'a> Used<'a> {
    /// Returns the usage in a run. `slowed` are the resources that slow machines down if they are over-committed; `value` returns the value
    /// of a column.
    pub fn new<'r>(
        policy: impl Into<Cow<'a, str>>,
        resources: impl IntoIterator<Item = &'r str>,
        slowed: Option<&[String]>,
        value: impl Fn(&str) -> Option<f64>,
    ) -> Used<'a> {
        let one = |resource: &str| {
            Some(Use {
                resource: resource.to_owned(),
                time: value(&columns(resource)[0])?,
                peak: value(&columns(resource)[1]).unwrap_or(0.0),
                slows: slowed.map(|slowed| slowed.iter().any(|one| one == resource)),
            })
        };
        Used { policy: policy.into(), uses: resources.into_iter().filter_map(one).collect() }
    }
}

/// Returns the columns of `runs` that are read for a resource.
fn columns(resource: &str) -> [String; 2] {
    [format!("overcommitted_{resource}"), format!("peak_used_{resource}")]
}

/// Returns the sentences about the runs in results folders. Errors: a table cannot be read.
pub fn of_results<'a>(all: impl IntoIterator<Item = &'a Results>) -> Result<Vec<String>> {
    let mut runs = Vec::new();
    for results in all {
        let resources = || results.dims.iter().map(|dim| dim.name.as_str());
        let names: Vec<String> = resources().flat_map(columns).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for part in results.table(Table::Runs, &names, None)? {
            let mut values = Vec::new();
            for &name in &names {
                values.push((name, part.numbers(name)?.first().copied().flatten()));
            }
            let value = |wanted: &str| values.iter().find(|(name, _)| *name == wanted).and_then(|(_, value)| *value);
            let policy = results.contents.policies[part.policy].as_str();
            runs.push(Used::new(policy, resources(), results.contents.slowdown_resources.as_deref(), value));
        }
    }
    Ok(sentences(&runs))
}

/// Returns a text for each policy that over-commits a resource, in order of the first runs: duration and extent, and the slowdown that is
/// not modelled.
pub fn sentences(runs: &[Used]) -> Vec<String> {
    let mut policies: Vec<&str> = Vec::new();
    for run in runs {
        if !policies.contains(&&*run.policy) {
            policies.push(&run.policy);
        }
    }
    policies.into_iter().filter_map(|policy| of_policy(policy, runs)).collect()
}

/// Returns the text about one policy; `None` if it does not over-commit.
fn of_policy(policy: &str, runs: &[Used]) -> Option<String> {
    let own: Vec<&Used> = runs.iter().filter(|run| run.policy == policy).collect();
    let mut resources: Vec<&str> = Vec::new();
    for one in own.iter().flat_map(|run| &run.uses).filter(|one| one.time > 0.0) {
        if !resources.contains(&one.resource.as_str()) {
            resources.push(&one.resource);
        }
    }
    let of = |resource: &str| -> Vec<&Use> {
        own.iter().flat_map(|run| &run.uses).filter(|one| one.resource == resource).collect()
    };
    let part = |(at, resource): (usize, &&str)| {
        let uses = of(resource);
        let time = uses.iter().map(|one| one.time).sum::<f64>() / uses.len() as f64;
        let peak = uses.iter().map(|one| one.peak).fold(0.0, f64::max);
        let than = if at == 0 { " than the cluster has" } else { "" };
        format!("more {}{than} {} of the time{}", resource_name(resource), percent(time), up_to(peak))
    };
    let parts: Vec<String> = resources.iter().enumerate().map(part).collect();
    if parts.is_empty() {
        return None;
    }
    let over = if own.len() > 1 { format!(" (mean and largest of {} runs)", own.len()) } else { String::new() };
    let not = slowdown(policy, &resources, of);
    Some(format!("{policy} used {}{over}.{not}", parts.join(", and ")))
}

/// Returns the sentence about slowdown that is not modelled; empty if all of it is modelled or if this is unknown.
fn slowdown<'u>(policy: &str, resources: &[&str], of: impl Fn(&str) -> Vec<&'u Use>) -> String {
    let in_runs =
        |resource: &str, slows: bool| of(resource).into_iter().any(|one| one.time > 0.0 && one.slows == Some(slows));
    let named = |found: Vec<&&str>| found.into_iter().map(|name| resource_name(name)).collect::<Vec<_>>().join(" and ");
    let never = named(resources.iter().filter(|one| in_runs(one, false) && !in_runs(one, true)).collect());
    let partly = named(resources.iter().filter(|one| in_runs(one, false) && in_runs(one, true)).collect());
    let parts = [(never, "is not modelled"), (partly, "is not modelled in all cells")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, what)| format!("slowdown by over-committed {names} {what}"))
        .collect();
    match parts.join(", and ").strip_prefix('s') {
        Some(rest) => format!(" S{rest}: jobs may end earlier under {policy} than on real machines."),
        None => String::new(),
    }
}

/// Formats a share of time in percent.
fn percent(share: f64) -> String {
    if share < 0.005 { "less than 1 %".to_owned() } else { format!("{:.0} %", 100.0 * share) }
}

/// Describes the largest usage; empty if usage exceeded only a reduced capacity, and not the capacity of the whole cluster.
fn up_to(peak: f64) -> String {
    match 100.0 * peak {
        peak if peak <= 100.0 => String::new(),
        peak if peak < 100.5 => ", up to just above 100 %".to_owned(),
        peak => format!(", up to {peak:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(policy: &str, cpu: (f64, f64), memory: (f64, f64), slowed: Option<&[&str]>) -> Used<'static> {
        let slowed: Option<Vec<String>> = slowed.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let value = |name: &str| match name {
            "overcommitted_cpu" => Some(cpu.0),
            "peak_used_cpu" => Some(cpu.1),
            "overcommitted_memory" => Some(memory.0),
            "peak_used_memory" => Some(memory.1),
            _ => None,
        };
        Used::new(policy.to_owned(), ["cpu", "memory"], slowed.as_deref(), value)
    }

    #[test]
    fn only_policies_that_over_commit_are_named() {
        let runs =
            [used("drf", (0.0, 1.0), (0.0, 0.9), Some(&[])), used("slot:14", (0.47, 1.68), (0.0, 0.9), Some(&[]))];
        assert_eq!(
            sentences(&runs),
            [
                "slot:14 used more CPU than the cluster has 47 % of the time, up to 168 %. Slowdown by over-committed CPU is not \
              modelled: jobs may end earlier under slot:14 than on real machines."
            ]
        );
        assert!(sentences(&runs[..1]).is_empty() && sentences(&[]).is_empty());
    }

    #[test]
    fn the_resources_that_slow_nothing_down_are_named() {
        let both = |slowed| sentences(&[used("p", (0.5, 1.5), (0.001, 1.001), slowed)]).remove(0);
        let uses = "p used more CPU than the cluster has 50 % of the time, up to 150 %, and more memory less than 1 % of the time, \
                    up to just above 100 %.";
        let rest = ": jobs may end earlier under p than on real machines.";
        let cpu = format!("{uses} Slowdown by over-committed CPU is not modelled{rest}");
        assert_eq!(both(Some(&["memory"])), cpu);
        assert_eq!(both(Some(&[])), format!("{uses} Slowdown by over-committed CPU and memory is not modelled{rest}"));
        assert_eq!(both(Some(&["cpu", "memory"])), uses, "all of it is modelled");
        assert_eq!(both(None), uses, "results of an earlier version do not contain the modelled effects");
    }

    #[test]
    fn several_runs_are_the_mean_time_and_the_largest_use() {
        let runs = [
            used("p", (0.0, 0.9), (0.2, 1.2), Some(&["memory"])),
            used("p", (0.0, 0.8), (0.4, 1.1), Some(&[])),
            used("p", (0.0, 0.8), (0.0, 1.0), Some(&[])),
        ];
        let text = sentences(&runs).remove(0);
        assert!(
            text.contains(
                "more memory than the cluster has 20 % of the time, up to 120 % (mean and largest of 3 runs)."
            )
        );
        assert!(text.contains("Slowdown by over-committed memory is not modelled in all cells"), "{text}");
        assert!(!text.contains("CPU"), "{text}");
    }

    /// Usage above a reduced capacity is over-committed, although it is below the capacity of the whole cluster.
    #[test]
    fn uses_within_the_whole_cluster_have_no_peak() {
        let text = sentences(&[used("p", (0.1, 0.7), (0.0, 0.0), None)]).remove(0);
        assert_eq!(text, "p used more CPU than the cluster has 10 % of the time.");
    }
}
