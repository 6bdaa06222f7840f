//! Figures of delays, all seeds together: the distribution of completion times, and their reduction by job size.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{
    Axis, BarPanel, BarSeries, Category, Chart, Data, Interval, Join, MANY, Panel, Series, bars, lines,
};
use plimsoll_charts::paper::Paper;
use plimsoll_metrics::compare::LEVEL;
use plimsoll_metrics::{Tested, mean_interval};
use plimsoll_results::comparison::comparison;
use plimsoll_results::read::Results;
use plimsoll_results::schema::Table;

use super::{Gallery, by_policy, seeds_of};
use plimsoll_metrics::numbers::count;

/// Number of places along the time axis at which distributions are compared.
const STEPS: usize = 240;

/// Draws the distribution of completion times: the mean over seeds of each seed's distribution, with its interval.
pub fn completion(results: &Results, paper: &Paper) -> Result<Gallery> {
    let parts = results.table(Table::Quantiles, &["metric", "q", "value"], None)?;
    if parts.is_empty() {
        return Ok(Gallery::without_table("completion", Table::Quantiles));
    }
    let mut runs: Vec<(usize, Vec<(f64, f64)>)> = Vec::new();
    for part in &parts {
        let rows = part.names("metric")?.into_iter().zip(part.numbers("q")?).zip(part.numbers("value")?);
        let curve = rows
            .filter(|((metric, _), _)| metric == "completion_s")
            .filter_map(|((_, q), value)| Some((value?, q?)))
            .collect();
        runs.push((part.policy, curve));
    }
    let values = || runs.iter().flat_map(|(_, curve)| curve).map(|(value, _)| *value).filter(|value| *value > 0.0);
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if high == 0.0 {
        return Ok(Gallery::without("completion", "no job took any time"));
    }
    let axis: Vec<f64> = (0..=STEPS).map(|step| low * (high / low).powf(step as f64 / STEPS as f64)).collect();
    let series: Vec<Series> = runs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| {
            let curves: Vec<&[(f64, f64)]> = group.iter().map(|(_, curve)| curve.as_slice()).collect();
            pooled(&results.contents.policies[group[0].0], &axis, &curves)
        })
        .collect();
    let x = Axis::seconds("Completion time").log().range(low, high);
    let chart = paper.fit(by_policy(results, x, Axis::fraction("Jobs").range(0.0, 1.0)), 1);
    let bands = if results.contents.seeds.len() > 1 { ", with 95 % confidence intervals" } else { "" };
    let caption = format!("Distribution of job completion times{}{bands}.", seeds_of(results));
    let svg = lines(&chart, Join::Straight, &series);
    let panels = [Panel { title: String::new(), series }];
    let data = Data::of_panels(["panel", "policy", "completion_s", "fraction"], &panels);
    Ok(Gallery::with_figure("completion", caption, svg, data))
}

/// Returns the mean of distributions, with its interval if there are several.
fn pooled(policy: &str, axis: &[f64], curves: &[&[(f64, f64)]]) -> Series {
    let (mut points, mut band, mut n) = (Vec::new(), Vec::new(), Vec::new());
    for &x in axis {
        let below: Vec<f64> = curves.iter().map(|curve| fraction(curve, x)).collect();
        let Some(interval) = mean_interval(&below, LEVEL) else { continue };
        points.push((x, interval.mean));
        n.push(interval.n as u64);
        if let (Some(low), Some(high)) = (interval.low, interval.high) {
            band.push((x, low.max(0.0), high.min(1.0)));
        }
    }
    Series { band: (!band.is_empty()).then_some(band), n, ..Series::new(policy, points) }
}

/// Returns the fraction of values at or below `x`, interpolated between the quantiles `(value, q)`.
fn fraction(quantiles: &[(f64, f64)], x: f64) -> f64 {
    let after = quantiles.partition_point(|(value, _)| *value <= x);
    match (after.checked_sub(1).map(|at| quantiles[at]), quantiles.get(after)) {
        (None, _) => 0.0,
        (Some((_, q)), None) => q,
        (Some((from, low)), Some(&(to, high))) => low + (high - low) * (x - from) / (to - from),
    }
}

/// Draws the reduction of mean completion time relative to the baseline, by job size (the DRF paper's Figure 14).
pub fn reduction(results: &Results, paper: &Paper) -> Result<Gallery> {
    let Some(comparison) = comparison(results)? else {
        return Ok(Gallery::without("reduction", "there is nothing to compare: one policy, or no job that finished"));
    };
    let category = |label: &str, jobs: u64| {
        let jobs = count(jobs, "job");
        Category { label: label.to_owned(), notes: vec![jobs] }
    };
    let mut categories: Vec<Category> = comparison.bins.iter().map(|(label, jobs)| category(label, *jobs)).collect();
    categories.push(category("all", comparison.jobs));
    let bar = |tested: &Option<Tested>| {
        tested.and_then(|tested| tested.reduction()).map(|interval| Interval {
            mean: interval.mean,
            low: interval.low.unwrap_or(interval.mean),
            // A time cannot be reduced by more than 100 %.
            high: interval.high.unwrap_or(interval.mean).min(1.0),
            n: interval.n as u64,
        })
    };
    let series: Vec<BarSeries> = comparison
        .policies
        .iter()
        .map(|policy| {
            // The column of all jobs is the last one.
            let mut values: Vec<_> = policy.against_baseline.iter().map(bar).collect();
            values.rotate_left(1);
            BarSeries { label: policy.name.clone(), key: policy.name.clone(), values }
        })
        .collect();
    let y = Axis::fraction("Reduction of mean completion time");
    // With many policies, one of them may have such a large increase that the bars of all others would be too small to read.
    let many = series.len() > MANY;
    let y = if many { y.range(-1.0, 1.0) } else { y };
    let chart = Chart { size_pt: (Chart::PAGE.0, 190.0), ..Chart::new(Axis::number("Job size (tasks)"), y) };
    let chart = paper.fit(chart, 1);
    let bands = if results.contents.seeds.len() > 1 { ", with 95 % confidence intervals" } else { "" };
    let caption = format!(
        "Reduction of mean job completion time against {} by job size{}{bands}.{}{}",
        comparison.baseline,
        seeds_of(results),
        if comparison.bins.is_empty() { "" } else { " A large bin holds few jobs." },
        if many { " The axis ends at \u{2212}100 % (times twice as long); the data have all values." } else { "" }
    );
    let svg = bars(&chart, &categories, &series);
    let panels = [BarPanel { title: String::new(), series }];
    let mut data = Data::of_bars(["panel", "tasks", "policy", "reduction"], &categories, &panels);
    let jobs = |label: &str| comparison.bins.iter().find(|(bin, _)| bin == label).map_or(comparison.jobs, |(_, n)| *n);
    data.columns.push("jobs".to_owned());
    data.rows.iter_mut().for_each(|row| row.push(jobs(&row[1]).to_string()));
    Ok(Gallery::with_figure("reduction", caption, svg, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_read_between_quantiles() {
        let curve = [(1.0, 0.0), (2.0, 0.5), (2.0, 0.6), (4.0, 1.0)];
        let read = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0].map(|x| fraction(&curve, x));
        assert_eq!(read, [0.0, 0.0, 0.25, 0.6, 0.8, 1.0, 1.0]);
        let pooled = pooled("drf", &[3.0], &[&curve, &[(3.0, 0.0), (3.0, 1.0)]]);
        assert_eq!(pooled.points, [(3.0, 0.9)]);
        assert_eq!(pooled.band, Some(vec![(3.0, 0.0, 1.0)]));
    }
}
