//! Properties of fractions in small examples, and the findings that the papers claim or that follow from definitions.

use super::*;
use crate::policies::policy;

fn instance(capacity: &[u32], rows: &[&[f64]]) -> StaticInstance {
    let job = |row: &&[f64]| StaticJob { rates: row.to_vec(), scale: 1, weight: 1, iterations: 1000 };
    StaticInstance { capacity: capacity.to_vec(), jobs: rows.iter().map(job).collect() }
}

fn findings(name: &str, domain: ShareDomain) -> Vec<ShareFinding> {
    let properties = ShareProperty::ALL.map(|(_, property, _)| property);
    let of = ShareSearch { domain, random: 100, seed: 1 };
    search(policy(name).expect("a policy"), &PolicyOptions::default(), &properties, of, &|| Ok(())).expect("findings")
}

/// Returns the names of the properties that fail.
fn failing(name: &str, domain: ShareDomain) -> Vec<&'static str> {
    let failing = |finding: &ShareFinding| finding.example.as_ref().map(|_| finding.property.name());
    findings(name, domain).iter().filter_map(failing).collect()
}

/// Two jobs that differ in the faster type. Equal fractions on both types are neither envied nor slower than alone, and not efficient: with a
/// type each, both are at rate 4 instead of 3.
#[test]
fn violations_by_hand() {
    let own = Rates::from_rows(&[&[4.0, 2.0], &[2.0, 4.0]]).expect("rates");
    let jobs = [0, 1].map(|id| ActiveJob {
        id,
        kind: id,
        scale: 1,
        weight: 1,
        entity: id,
        arrival: Time(0),
        remaining: 1_000_000,
        done: 0,
        deadline: None,
    });
    let view = View { now: Time(0), jobs: &jobs, rates: &own, capacity: &[1, 1] };
    let at = |x: [u32; 4]| Targets { types: 2, alone: x.map(|x| x * 100_000_000).to_vec(), pairs: Vec::new() };
    let judge = |x: [u32; 4], property: ShareProperty| violation(&view, &at(x), property, 1e-3).expect("a verdict");
    use ShareProperty::*;
    assert_eq!(entitled_rates(&view), [3.0, 3.0]);
    for property in [Feasibility, SharingIncentive, EnvyFreeness] {
        assert_eq!(judge([5, 5, 5, 5], property), None);
    }
    let found = judge([5, 5, 5, 5], ParetoEfficiency).expect("an improvement");
    assert!((found.amount - 0.25).abs() < 1e-3 && found.sentence.contains("could run at 4.0000 instead of 3.0000"));
    assert_eq!(judge([10, 0, 0, 10], ParetoEfficiency), None);
    // Job 1 has a quarter of type 1 and envies job 0, which has type 0: 2 instead of 1.
    let found = judge([10, 0, 0, 2], EnvyFreeness).expect("envy");
    assert!((found.amount - 0.6).abs() < 1e-9, "{found:?}");
    assert_eq!(found.sentence, "job 1 runs at 0.8000 iterations/s, with the time of job 0 at 2.0000");
    let found = judge([10, 0, 0, 2], SharingIncentive).expect("less than its part");
    assert_eq!(found.sentence, "job 1 runs at 0.8000 iterations/s, its part of the cluster gives 3.0000");
    let found = judge([10, 2, 0, 8], Feasibility).expect("too much");
    assert_eq!(found.sentence, "job 0 has 1.2000 of its time");
    assert_eq!(
        envies(&view, &at([10, 0, 0, 2])).iter().map(|envy| (envy * 10.0).round()).collect::<Vec<_>>(),
        [0.0, 6.0]
    );
}

/// Gavel's claim (section 4.4): max-min fairness of throughput has the sharing incentive; every instance with one accelerator per job that
/// was tried agrees. It is not envy-free: a job that is slow everywhere holds the fast type for long. With wide jobs the claim fails: on
/// three accelerators of one type, jobs of one and two accelerators have the level 1 as soon as the first runs always. The other one then
/// needs half of its time, and its part of the cluster is three quarters.
#[test]
fn gavel_claims_the_sharing_incentive() {
    for domain in [ShareDomain::Positive, ShareDomain::Zeros] {
        let failing = failing("max_min_fairness_perf", domain);
        assert!(!failing.contains(&"sharing-incentive") && !failing.contains(&"feasibility"), "{domain:?} {failing:?}");
        assert!(failing.contains(&"envy-freeness"), "{domain:?} {failing:?}");
    }
    let wide = findings("max_min_fairness_perf", ShareDomain::Wide);
    let example = wide[1].example.as_ref().expect("a counterexample");
    assert_eq!(example.instance.capacity.iter().sum::<u32>(), 3, "{example:?}");
    let mut scales: Vec<u32> = example.instance.jobs.iter().map(|job| job.scale).collect();
    scales.sort_unstable();
    assert_eq!(scales, [1, 2]);
}

/// The isolated allocation satisfies all but efficiency. The largest sum of throughput is efficient and starves slow jobs. Proportional
/// fractions and FIFO as published exceed the capacity.
#[test]
fn findings_follow_from_definitions() {
    assert_eq!(failing("isolated", ShareDomain::Positive), ["pareto-efficiency"]);
    let sum = failing("max_sum_throughput_perf", ShareDomain::Positive);
    assert_eq!(sum, ["sharing-incentive", "envy-freeness"]);
    assert!(failing("proportional", ShareDomain::Positive).contains(&"feasibility"));
    let packed = policy("max_min_fairness_packed").expect("a policy");
    let of = ShareSearch { domain: ShareDomain::Positive, random: 1, seed: 1 };
    let error =
        search(packed, &PolicyOptions::default(), &[ShareProperty::Feasibility], of, &|| Ok(())).expect_err("pairs");
    assert!(error.to_string().contains("shares accelerators"), "{error}");
}

/// A counterexample is minimal: no simpler instance violates the property.
#[test]
fn counterexamples_are_reduced() {
    let found = findings("isolated", ShareDomain::Positive);
    let example = found.iter().find_map(|finding| finding.example.as_ref()).expect("a counterexample");
    // One job on one accelerator is efficient, so two jobs or two types remain, with small numbers.
    assert!(
        example.instance.jobs.len() <= 2 && example.instance.capacity.iter().all(|&count| count == 1),
        "{example:?}"
    );
    let largest = example.instance.jobs.iter().flat_map(|job| &job.rates).fold(0.0f64, |most, rate| most.max(*rate));
    assert!(largest <= 2.0, "{example:?}");
    let again = instance(
        &example.instance.capacity,
        &example.instance.jobs.iter().map(|job| &job.rates[..]).collect::<Vec<_>>(),
    );
    let row = policy("isolated").expect("a policy");
    let (_, found) = again.judge(row, &PolicyOptions::default(), ShareProperty::ParetoEfficiency).expect("a verdict");
    assert_eq!(found.as_ref(), Some(&example.violation));
}
