//! Statistics over seeds: samples without spread, and agreement between tables, reports and figures.

use plimsoll::metrics::{Design, bootstrap, difference, mean_interval};

use crate::property::search;
use crate::study_run::Scratch;

/// Reads the rows of a CSV file, with values by the name of their column.
fn csv(place: &Scratch, file: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_path(place.path(file)).expect("a CSV file");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

fn number(row: &std::collections::HashMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} is a number: {row:?}"))
}

#[derive(Clone, Debug)]
struct Constant {
    seeds: usize,
    base: f64,
    new: f64,
}

fn draw(seed: u64) -> Constant {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let base = 10f64.powf(rng.random_range(-6.0..6.0));
    let new = base * if rng.random_bool(0.2) { 1.0 } else { rng.random_range(0.01..3.0) };
    Constant { seeds: rng.random_range(2..=60), base, new }
}

fn smaller(case: &Constant) -> Vec<Constant> {
    if case.seeds > 2 { vec![Constant { seeds: case.seeds - 1, ..case.clone() }] } else { Vec::new() }
}

/// Values that are equal in all seeds have intervals of one point, no effect size, and the documented p-values.
fn constants_have_no_spread(case: &Constant) -> Result<(), String> {
    let &Constant { seeds: n, base, new } = case;
    let check = |what: &str, holds: bool| if holds { Ok(()) } else { Err(format!("{what}: {case:?}")) };
    for value in [base, -base, new, base - new] {
        let interval = mean_interval(&vec![value; n], 0.95).expect("two or more");
        check("one point", (interval.mean, interval.low, interval.high) == (value, Some(value), Some(value)))?;
    }
    let some = |value: f64| vec![Some(value); n];
    // The least p-value of the unpaired test: two of the ways to choose the runs of one policy.
    let ways = (1..=n).fold(1.0, |ways, at| ways * (n + at) as f64 / at as f64);
    for (design, least) in [(Design::Paired, 0.5f64.powi(n as i32 - 1)), (Design::Unpaired, 2.0 / ways)] {
        let found = difference(design, &some(base), &some(new), 0.95).expect("two or more");
        let interval = found.test.difference;
        let p = if base == new { 1.0 } else { least };
        check("p", found.test.p.is_some_and(|found| (found / p - 1.0).abs() < 1e-12))?;
        let point = (Some(interval.mean), Some(interval.mean));
        check("no effect size", found.effect.is_none() && (interval.low, interval.high) == point)?;
        check("bootstrap", bootstrap(design, &some(base), &some(new), 0.95, "") == interval.low.zip(interval.high))?;
    }
    Ok(())
}

#[test]
fn equal_values_have_no_spread() {
    search(file!(), 500, draw, smaller, constants_have_no_spread).unwrap_or_else(|broken| panic!("{broken:?}"));
}

/// The difference is the same in every seed and the bases differ, so the differences are equal up to rounding.
#[test]
fn equal_differences_have_no_spread() {
    let some = |values: &[f64]| values.iter().map(|&value| Some(value)).collect::<Vec<_>>();
    for n in 2..40 {
        let bases: Vec<f64> = (0..n).map(|at| 100.0 + f64::from(at * at) / 7.0).collect();
        for step in [0.1, 1.0 / 3.0, 17.3] {
            let news: Vec<f64> = bases.iter().map(|base| base + step).collect();
            let found = difference(Design::Paired, &some(&bases), &some(&news), 0.95).expect("two or more");
            assert_eq!((found.test.p, found.effect), (Some(0.5f64.powi(n - 1)), None), "{n} seeds, {step}");
        }
        // Values that differ only by rounding have no difference.
        let news: Vec<f64> = bases.iter().map(|base| base * (1.0 + f64::EPSILON)).collect();
        let found = difference(Design::Paired, &some(&bases), &some(&news), 0.95).expect("two or more");
        assert_eq!((found.test.p, found.test.difference.mean), (Some(1.0), 0.0), "{n} seeds");
    }
}

/// Differences that are the same double in nine seeds once had p = 1.6e-127 and an effect size of 5e15.
#[test]
fn a_difference_without_spread_has_the_p_value_of_the_permutation_test() {
    let place = Scratch::new(include_str!("field/no-spread.toml"));
    place.run("out", &[]);
    let rows = csv(&place, "out/statistics/differences.csv");
    let row = rows.iter().find(|row| row["metric"] == "incentive_min").expect("a row");
    assert_eq!(number(row, "p"), 0.5f64.powf(number(row, "seeds") - 1.0), "{row:?}");
    assert_eq!((row["seeds"].as_str(), row["effect_size"].as_str()), ("9", ""));
    for end in ["low", "high", "bootstrap_low", "bootstrap_high"] {
        assert_eq!(row[end], row["difference"], "{end}");
    }
}

/// A trace that keeps all its jobs requires no random draws: all seeds are one run.
#[test]
fn thinning_that_keeps_all_is_no_randomness() {
    let plan = "name = \"t\"\npolicies = [\"fifo\", \"drf\"]\nseeds = 6\n[cluster]\nmachines = \"1x4c\"\n\
                placement = \"first-fit\"\n[workload]\ntrace = \"t.csv\"\n";
    let trace = "job,user,submit_s,duration_s,tasks,cpu\na,u,0,100,8,1\nb,v,1,10,2,1\nc,u,2,10,2,1\n";
    for key in ["thin = 1", "thin = 1.0", "estimates = \"uniform:1\"", "estimates = \"lognormal:0\""] {
        let place = Scratch::new(&format!("{plan}{key}\n"));
        place.write("t.csv", trace);
        let said = place.refused("out", &[]);
        assert!(said.contains("seeds") && said.contains("`thin` below 1"), "{key}: {said}");
        place.run("out", &["--set", "seeds=1"]);
    }
    let place = Scratch::new(&format!("{plan}thin = 0.9\n"));
    place.write("t.csv", trace);
    place.run("out", &[]);
}

/// A mean over axes that no key names is computed within each seed: the interval is that of the means of two cells with the same workloads,
/// not of six runs.
#[test]
fn figures_average_unnamed_axes_within_a_seed() {
    const MORE: &str = "[[figure]]\nkind = \"bars\"\nx = \"workload.arrival.mean\"\ny = \"completion_mean_s\"\n\
                        [[figure]]\nkind = \"ranks\"\nseries = \"workload.arrival.mean\"\ny = \"completion_mean_s\"\n\
                        [[figure]]\nkind = \"cdf\"\ntable = \"jobs\"\nseries = \"workload.arrival.mean\"\ny = \"completion_s\"\nbands = true\n";
    let place = Scratch::new(&format!("{}{MORE}", include_str!("field/figure-pools-cells.toml")));
    place.run("out", &[]);
    let estimates = csv(&place, "out/statistics/estimates.csv");
    let estimate = |gap: &str| {
        let is_row = |row: &&std::collections::HashMap<String, String>| {
            row["metric"] == "completion_mean_s" && row["workload_arrival_mean"] == gap
        };
        let rows: Vec<_> = estimates.iter().filter(is_row).collect();
        // Placement changes nothing here, so that the mean of both cells is the estimate of each.
        assert_eq!((rows.len(), &rows[0]["low"]), (2, &rows[1]["low"]));
        ["mean", "low", "high"].map(|column| number(rows[0], column))
    };
    assert_eq!(estimate("10").map(f64::round), [880.0, 631.0, 1128.0]);
    for kind in ["lines", "bars", "ranks"] {
        let rows = csv(&place, &format!("out/figures/{kind}.csv"));
        for gap in ["10", "200"] {
            let row = rows
                .iter()
                .find(|row| row.values().any(|value| value == gap || *value == format!("arrival mean = {gap}")))
                .expect("a row of the gap");
            let found = ["completion_mean_s", "low", "high"].map(|column| number(row, column));
            let near = found.iter().zip(estimate(gap)).all(|(found, stated)| (found / stated - 1.0).abs() < 1e-9);
            assert!(near && row["n"] == "3", "{kind}: {row:?}, {:?}", estimate(gap));
        }
    }
    assert!(csv(&place, "out/figures/cdf.csv").iter().all(|row| row["n"] == "3"));
}

/// A distribution must show the runs of one cell and one policy.
#[test]
fn distributions_do_not_mix_cells() {
    let plan = include_str!("field/figure-pools-cells.toml");
    for kind in ["kind = \"box\"\nx = \"workload.arrival.mean\"", "kind = \"cdf\"\nseries = \"workload.arrival.mean\""]
    {
        let figure = |more: &str| format!("{plan}[[figure]]\n{kind}\ntable = \"jobs\"\ny = \"completion_s\"\n{more}");
        let said = Scratch::new(&figure("")).refused("out", &[]);
        assert!(said.contains("cluster_placement") && said.contains("2 values"), "{kind}: {said}");
        Scratch::new(&figure("facet = \"cluster.placement\"\n")).run("out", &[]);
        Scratch::new(&figure("where = { \"cluster.placement\" = \"pooled\" }\n")).run("out", &[]);
    }
}
