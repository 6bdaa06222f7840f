//! Tests of comparisons and of their wording.

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

fn comparison(policies: &[PolicyRuns], baseline: &str) -> Option<Comparison> {
    Comparison::new(policies, baseline, Design::Paired)
}

#[test]
fn differences_are_paired_and_in_percent_of_the_mean_compared_with() {
    let bins = |few: [Option<f64>; 2], many: [Option<f64>; 2]| {
        [("1-500", few), ("501-", many)].map(|(label, values)| (label, values.to_vec()))
    };
    let of_bins = |name: &str, all: &[f64], bins: &[(&str, Vec<Option<f64>>)]| {
        let bins: Vec<(&str, &[Option<f64>])> = bins.iter().map(|(label, values)| (*label, &values[..])).collect();
        runs(name, all, &bins)
    };
    let base = of_bins("slot:2", &[100.0, 200.0], &bins([Some(10.0), None], [Some(300.0), Some(310.0)]));
    let drf = of_bins("drf", &[50.0, 80.0], &bins([Some(5.0), None], [Some(150.0), Some(150.0)]));
    let cpu = of_bins("maxmin:cpu", &[40.0, 100.0], &bins([Some(4.0), Some(9.0)], [Some(30.0), Some(31.0)]));
    let found = comparison(&[base, cpu, drf], "slot:2").expect("it is there");
    assert_eq!((found.reference.as_deref(), found.jobs), (Some("drf"), 3));
    assert_eq!(found.bins, [("1-500".to_owned(), 1), ("501-".to_owned(), 2)]);
    let [cpu, drf] = &found.policies[..] else { panic!("two others") };
    // The differences per seed are -60 and -100; the mean of the baseline is 150.
    let all = cpu.against_baseline[0].expect("it is there").reduction().expect("a mean above 0");
    assert!((all.mean - 80.0 / 150.0).abs() < 1e-12);
    // The differences per seed are -50 and -120.
    let all = drf.against_baseline[0].expect("it is there").reduction().expect("a mean above 0");
    assert!((all.mean - 85.0 / 150.0).abs() < 1e-12);
    // The differences per seed are -10 and 20; the mean of the reference is 65. The margin is 5 % of this mean.
    let means = cpu.against_reference[0].expect("it is there").means;
    let relative = means.relative.expect("a mean above 0");
    assert!((relative.mean - 5.0 / 65.0).abs() < 1e-12 && means.test.margin == Some(0.05 * 65.0));
    assert!((means.test.difference.high.expect("two seeds") - 5.0 - 12.706_204_736 * 15.0).abs() < 1e-6);
    let bin = cpu.against_reference[1].expect("it is there");
    assert_eq!((bin.means.relative.map(|part| part.mean), bin.means.test.difference.n), (Some(-0.2), 1));
    assert!(bin.holm.p.is_none() && drf.against_reference.is_empty());
    // Two policies are compared with the baseline, and one with the reference, for all jobs and for the larger bin.
    assert_eq!((found.first_family, found.family), (2, 6));
}

/// A bin that contains all jobs would repeat the line of all jobs.
#[test]
fn a_bin_with_all_jobs_is_left_out() {
    let one =
        |name: &str, value: f64| runs(name, &[value, value], &[("1-500", &[Some(value); 2]), ("501-", &[None; 2])]);
    let found = comparison(&[one("fifo", 5.0), one("drf", 4.0)], "fifo").expect("it is there");
    assert_eq!((found.bins.len(), found.jobs, found.policies[0].against_baseline.len()), (0, 2, 1));
}

/// The sentences have the same p-values as the table of differences, where the comparisons of a metric are a family.
#[test]
fn the_answer_has_the_p_values_of_the_table_of_differences() {
    let policies = [
        runs("fifo", &[120.0, 90.0, 150.0, 110.0], &[]),
        runs("drf", &[100.0, 80.0, 120.0, 105.0], &[]),
        runs("asset", &[101.0, 92.0, 121.0, 95.0], &[]),
    ];
    let found = comparison(&policies, "fifo").expect("it is there");
    let means = policies[1..].iter().map(|policy| {
        difference(Design::Paired, &policies[0].completion_s, &policy.completion_s, LEVEL).expect("four seeds")
    });
    let means: Vec<_> = means.collect();
    let holm = corrected(means.iter().map(|means| ("completion_mean_s", means.test)));
    for ((policy, means), holm) in found.policies.iter().zip(means).zip(holm) {
        assert_eq!(policy.against_baseline[0], Some(Tested { means, holm }), "{}", policy.name);
    }
}

#[test]
fn a_closed_loop_compares_means() {
    let base = runs("fifo", &[100.0, 110.0, 90.0, 104.0, 96.0], &[]);
    let drf = runs("drf", &[52.0, 47.0, 50.0, 55.0, 46.0], &[]);
    let asset = runs("asset", &[50.0, 48.0, 53.0, 47.0, 54.0], &[]);
    let found = Comparison::new(&[base, drf, asset], "fifo", Design::Unpaired).expect("it is there");
    let drf = found.policies[0].against_baseline[0].expect("it is there").reduction().expect("a mean above 0");
    assert!((drf.mean - 0.5).abs() < 1e-12);
    // The delta method gives 0.06. The variances are 58 and 13.5, of five values each; (13.5 + 0.25 * 58) / 5 = 5.6, and t has 8 degrees
    // of freedom.
    assert!((drf.half().expect("it is there") - 0.06).abs() < 0.01, "{drf:?}");
    let means = found.policies[1].against_reference[0].expect("it is there").means;
    assert!(
        (means.test.difference.mean - 0.4).abs() < 1e-12 && (means.test.margin.expect("a mean") - 2.5).abs() < 1e-12
    );
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
    let said =
        comparison(&[base.clone(), drf.clone(), worse, alike, noisy], "slot:2").expect("it is there").sentences();
    assert_eq!(said.len(), 3);
    assert!(said[0].starts_with("Mean completion time against slot:2: 50.0 ± "), "{}", said[0]);
    for part in [
        "Mean completion time against drf: 40.4 ± 1.7 % higher under fifo (p = 0.0",
        "; equivalent within 5 % under asset (0 ± 1.2 %)",
        "; and no clear difference under maxmin:cpu (+7.0 %, 95 % interval ",
    ] {
        assert!(said[1].contains(part), "{part}: {}", said[1]);
    }
    assert!(
        said[2].contains("4 seeds")
            && said[2].contains("the 4 comparisons of all jobs with slot:2, and the others for all 7"),
        "{}",
        said[2]
    );
    let said = comparison(&[base, drf], "slot:2").expect("it is there").sentences();
    assert_eq!(said.len(), 2);
}

/// A single bin would differ significantly, with p = 0.019; corrected for seven bins, p is 0.13. (Without the correction, a report would
/// call this bin different.)
#[test]
fn bins_are_corrected_for_one_another() {
    let seeds = 10;
    let flat = |value: f64| vec![Some(value); seeds];
    let near: Vec<Option<f64>> = (0..seeds).map(|seed| Some(100.0 + [1.0, -1.0][seed % 2])).collect();
    // The differences have t ≈ 2.84 in one of seven bins, and t = 0 in the others.
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
    let found = comparison(&[policy("fifo", &flat(100.0), &flat(100.0)), policy("asset", &odd, &near)], "fifo")
        .expect("it is there");
    let bin = found.policies[0].against_baseline[4].expect("it is there");
    assert!(bin.means.test.p.is_some_and(|p| (0.005..0.05).contains(&p)), "{bin:?}");
    assert!(bin.holm.p.is_some_and(|p| p > 0.05) && found.family == 8);
    let said = found.sentences().join(" ");
    assert!(said.contains("no difference is statistically significant"), "{said}");
    assert!(!said.contains("tasks ("), "{said}");
}

#[test]
fn one_policy_or_no_baseline_is_no_comparison() {
    let alone = runs("drf", &[1.0], &[]);
    assert_eq!(comparison(std::slice::from_ref(&alone), "drf"), None);
    assert_eq!(comparison(&[alone], "fifo"), None);
}

#[test]
fn without_drf_all_are_set_against_the_baseline() {
    let all = [runs("fifo", &[9.0], &[]), runs("asset", &[3.0], &[]), runs("maxmin:cpu", &[3.0], &[])];
    let found = comparison(&all, "fifo").expect("it is there");
    assert_eq!((found.reference.as_deref(), found.family), (None, 0));
    assert!(found.sentences()[1].contains("one seed"));
    let found = comparison(&all, "asset").expect("it is there").sentences();
    assert_eq!(
        found[0],
        "Mean completion time against asset: 200.0 % higher under fifo; and the same under maxmin:cpu."
    );
}

/// If all policies are equal, a report claims a difference in a family at most as often as the significance level.
#[test]
fn reports_of_equals_seldom_claim_a_difference() {
    use rand_distr::{Distribution, StandardNormal};
    let mut rng = plimsoll_sim::workload::synthetic::random::stream(9, "reports");
    let mut draw = || -> Vec<Option<f64>> {
        let one = |noise: f64| Some(100.0 + 5.0 * noise);
        (0..5).map(|_| one(StandardNormal.sample(&mut rng))).collect()
    };
    let mut claims = [[0; 2]; 2];
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
        for (counts, design) in claims.iter_mut().zip([Design::Paired, Design::Unpaired]) {
            let said = Comparison::new(&policies, "fifo", design).expect("it is there").claims();
            let claimed = |one: &String| one.contains(" % lower") || one.contains(" % higher");
            counts[0] += usize::from(claimed(&said[0]));
            counts[1] += usize::from(said[1..].iter().any(claimed));
        }
    }
    // At most 20 of 400 reports are expected, with a standard deviation of 4.4.
    assert!(claims.iter().flatten().all(|&count| count <= 33), "{claims:?} of 400");
}
