//! Tests of comparisons and of their words.

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

fn of(policies: &[PolicyRuns], baseline: &str) -> Option<Comparison> {
    Comparison::of(policies, baseline, Design::Paired)
}

#[test]
fn reductions_and_differences_by_hand() {
    let base = runs("slot:2", &[100.0, 200.0], &[("1-500", &[Some(10.0), None])]);
    let drf = runs("drf", &[50.0, 80.0], &[("1-500", &[Some(5.0), None])]);
    let cpu = runs("maxmin:cpu", &[40.0, 100.0], &[("1-500", &[Some(4.0), Some(9.0)])]);
    let found = of(&[base, cpu, drf], "slot:2").expect("it is there");
    assert_eq!((found.reference.as_deref(), found.jobs), (Some("drf"), 1));
    assert_eq!(found.bins, [("1-500".to_owned(), 1)]);
    // Reductions 0.6 and 0.5 against 0.5 and 0.6.
    let [cpu, drf] = &found.policies[..] else { panic!("two others") };
    assert!((cpu.all.interval.expect("it is there").mean - 0.55).abs() < 1e-12);
    assert!((drf.all.interval.expect("it is there").mean - 0.55).abs() < 1e-12);
    let test = cpu.against_reference[0].expect("it is there").test;
    let difference = test.difference;
    assert!(difference.mean.abs() < 1e-12 && (difference.high.expect("it is there") - 12.706204736 * 0.1).abs() < 1e-6);
    // 5 % of the reference, which is 0.45 of the base in the mean.
    assert!((test.margin.expect("it is there") - 0.05 * 0.45).abs() < 1e-12);
    let bin = cpu.against_reference[1].expect("it is there");
    assert!((bin.test.difference.mean - 0.1).abs() < 1e-12 && bin.test.difference.n == 1 && bin.p.is_none());
    assert!(drf.against_reference.is_empty());
    // Two policies against the baseline and one against the other; bins of one seed have no test.
    assert_eq!(found.family, 3);
}

#[test]
fn a_closed_loop_compares_means() {
    let base = runs("fifo", &[100.0, 110.0, 90.0, 104.0, 96.0], &[]);
    let drf = runs("drf", &[52.0, 47.0, 50.0, 55.0, 46.0], &[]);
    let asset = runs("asset", &[50.0, 48.0, 53.0, 47.0, 54.0], &[]);
    let found = Comparison::of(&[base, drf, asset], "fifo", Design::Unpaired).expect("it is there");
    let drf = &found.policies[0];
    let interval = drf.all.interval.expect("it is there");
    assert!((interval.mean - 0.5).abs() < 1e-12);
    // Half of the base has variance 14.5, the other 13.5: 28 / 5 of the square of a standard error, over 100.
    let half = crate::student::t_quantile(0.95, 28.0 * 28.0 * 4.0 / (14.5 * 14.5 + 13.5 * 13.5)).expect("it is there");
    assert!((interval.high.expect("it is there") - 0.5 - half * (28.0f64 / 5.0).sqrt() / 100.0).abs() < 1e-9);
    let test = found.policies[1].against_reference[0].expect("it is there").test;
    assert!((test.difference.mean + 0.004).abs() < 1e-12 && (test.margin.expect("it is there") - 0.025).abs() < 1e-12);
    let said = found.sentences().join(" ");
    assert!(said.contains("Welch's unpaired t tests") && said.contains("another mix of jobs"), "{said}");
}

#[test]
fn sentences_say_whether_two_policies_differ() {
    let base = runs("slot:2", &[100.0, 200.0, 150.0, 120.0], &[]);
    let drf = runs("drf", &[50.0, 100.0, 75.0, 60.0], &[]);
    let worse = runs("fifo", &[70.0, 141.0, 105.0, 84.0], &[]);
    let alike = runs("asset", &[50.3, 99.6, 75.2, 59.9], &[]);
    let noisy = runs("maxmin:cpu", &[49.0, 130.0, 60.0, 66.0], &[]);
    let said = of(&[base.clone(), drf.clone(), worse, alike, noisy], "slot:2").expect("it is there").sentences();
    assert_eq!(said.len(), 5);
    assert!(said[0].starts_with("Mean completion time against slot:2: 50.0 ± 0.0 % lower under drf ("), "{}", said[0]);
    assert!(said[1].starts_with("Mean completion time under fifo is significantly higher than under drf, by 20.1"));
    assert!(said[2].starts_with("Mean completion time under asset is equivalent within 5 % to that under drf ("));
    assert!(
        said[3].contains("not significantly different") && said[3].contains("nor is equivalence shown"),
        "{}",
        said[3]
    );
    assert!(said[4].contains("4 seeds") && said[4].contains("all 7 comparisons"), "{}", said[4]);
    let said = of(&[base, drf], "slot:2").expect("it is there").sentences();
    assert_eq!(said.len(), 2);
}

/// The main job's report called a bin different by its own interval alone: p = 0.019 becomes 0.13 among seven bins.
#[test]
fn bins_are_corrected_for_one_another() {
    let seeds = 10;
    let flat = |value: f64| vec![Some(value); seeds];
    let near: Vec<Option<f64>> = (0..seeds).map(|seed| Some(100.0 + [1.0, -1.0][seed % 2])).collect();
    // Differences in one of seven bins with t = 2.84 or so, in the others with t = 0.
    let odd: Vec<Option<f64>> = (0..seeds).map(|seed| Some(99.0 + [1.0, -0.9, 1.4, -1.1][seed % 4])).collect();
    let policy = |name: &str, first: &[Option<f64>], rest: &[Option<f64>]| PolicyRuns {
        name: name.to_owned(),
        completion_s: first.to_vec(),
        bins: (0..7)
            .map(|at| BinRuns {
                label: format!("bin {at}"),
                jobs: vec![1; seeds],
                completion_s: if at == 3 { first.to_vec() } else { rest.to_vec() },
            })
            .collect(),
    };
    let found =
        of(&[policy("fifo", &flat(100.0), &flat(100.0)), policy("asset", &odd, &near)], "fifo").expect("it is there");
    let bin = found.policies[0].against_baseline[4].expect("it is there");
    assert!(bin.test.p.is_some_and(|p| (0.005..0.05).contains(&p)), "{bin:?}");
    assert!(bin.p.is_some_and(|p| p > 0.05) && found.family == 8);
    let said = found.sentences().join(" ");
    assert!(said.contains("no difference is statistically significant"), "{said}");
    assert!(!said.contains("significantly lower") && !said.contains("significantly higher"), "{said}");
}

#[test]
fn one_policy_or_no_baseline_is_no_comparison() {
    let alone = runs("drf", &[1.0], &[]);
    assert_eq!(of(std::slice::from_ref(&alone), "drf"), None);
    assert_eq!(of(&[alone], "fifo"), None);
}

#[test]
fn without_drf_all_are_set_against_the_baseline() {
    let all = [runs("fifo", &[9.0], &[]), runs("asset", &[3.0], &[]), runs("maxmin:cpu", &[3.0], &[])];
    let found = of(&all, "fifo").expect("it is there");
    assert_eq!((found.reference.as_deref(), found.family), (None, 0));
    assert!(found.sentences()[1].contains("one seed"));
    let found = of(&all, "asset").expect("it is there").sentences();
    assert_eq!(
        found[0],
        "Mean completion time against asset: 200.0 % higher under fifo; and the same under maxmin:cpu as under asset."
    );
}

/// Words, tables and places of equal policies: a report without an effect claims one at most as often as its level.
#[test]
fn reports_of_equals_seldom_claim_a_difference() {
    use rand_distr::{Distribution, StandardNormal};
    let mut rng = plimsoll_sim::workload::synthetic::random::stream(9, "reports");
    let mut draw = || -> Vec<Option<f64>> {
        let one = |noise: f64| Some(100.0 + 5.0 * noise);
        (0..5).map(|_| one(StandardNormal.sample(&mut rng))).collect()
    };
    let mut claims = [0, 0];
    for _ in 0..400 {
        let policies: Vec<PolicyRuns> = ["fifo", "drf", "asset", "maxmin:cpu"]
            .iter()
            .map(|name| PolicyRuns {
                name: (*name).to_owned(),
                completion_s: draw(),
                bins: (0..4)
                    .map(|at| BinRuns { label: format!("bin {at}"), jobs: vec![9; 5], completion_s: draw() })
                    .collect(),
            })
            .collect();
        for (count, design) in claims.iter_mut().zip([Design::Paired, Design::Unpaired]) {
            let said = Comparison::of(&policies, "fifo", design).expect("it is there").sentences();
            let claimed = said.iter().any(|one| {
                one.contains("significantly lower")
                    || one.contains("significantly higher")
                    || one.contains("% lower under drf (p")
            });
            *count += usize::from(claimed);
        }
    }
    // 20 of 400 at most in the mean, with a standard deviation of 4.4.
    assert!(claims.iter().all(|&count| count <= 33), "{claims:?} of 400");
}
