//! Draws figures of a workload, with published values for comparison.

use std::path::Path;

use crate::error::Result;
use crate::output::figure::{
    Axis, BarSeries, BubbleSeries, Category, Chart, Interval, Join, Series, bars, bubbles, cdf, lines,
};
use crate::output::numbers::{capital, number};
use crate::output::picture::Picture;
use crate::output::provenance::Provenance;
use crate::units::resource_name;
use crate::workload::curves::Curves;
use crate::workload::profile::Profile;
use crate::workload::summary::{Published, SizeBin, Summary};

/// Draws the applicable figures into `folder` and returns their number.
pub fn draw(
    folder: &Path,
    summary: &Summary,
    measured: &[Curves],
    published: Option<(&Published, &[Curves])>,
    about: &Provenance,
) -> Result<usize> {
    let known = published.map(|(_, curves)| curves).unwrap_or_default();
    let mut drawn = vec![("durations".to_owned(), durations(measured, known))];
    for (at, work) in summary.work.iter().enumerate() {
        let label = format!("{} of a task ({})", capital(&resource_name(&work.resource)), work.unit);
        // Published values are in cores and GiB.
        let known = if at < 2 && published_pair(summary) { known } else { &[] };
        drawn.push((format!("demand-{}", work.resource), demand(at, label, measured, known)));
    }
    if summary.work.len() >= 2 {
        let beside = if published_pair(summary) { known } else { &[] };
        drawn.push(("demands".to_owned(), scatter(summary, (measured, beside), ("tasks", 1.0))));
        if !beside.is_empty() {
            // Weights are shares of all tasks; in millionths, a logarithmic axis separates them.
            let published = scatter(summary, (beside, measured), ("weight (in a million)", 1e6));
            drawn.push(("demands-published".to_owned(), published));
        }
    }
    drawn.push(("job-sizes".to_owned(), sizes(summary, published.map(|(published, _)| published))));
    write(folder, &drawn, about)
}

/// Writes figures as SVG and PNG, and returns their number.
fn write(folder: &Path, drawn: &[(String, String)], about: &Provenance) -> Result<usize> {
    for (name, svg) in drawn {
        for ending in ["svg", "png"] {
            Picture::from_path(&folder.join(format!("{name}.{ending}")))?.write(svg, about)?;
        }
    }
    Ok(drawn.len())
}

/// Draws a workload over time into `folder`: arrivals, demand against `capacity`, users, and durations. Returns the number of figures.
pub fn draw_profile(
    folder: &Path,
    summary: &Summary,
    measured: &[Curves],
    (profile, capacity): (&Profile, &[Option<f64>]),
    about: &Provenance,
) -> Result<usize> {
    let width = profile.width.seconds();
    let time = |bucket: usize| profile.first.seconds() + bucket as f64 * width;
    let axis = || Axis::seconds("Time");
    let jobs = profile.arrivals.iter().enumerate().map(|(bucket, jobs)| (time(bucket), *jobs as f64)).collect();
    let jobs = Series { label: "jobs".to_owned(), key: "jobs".to_owned(), points: jobs, ..Series::default() };
    let per = format!("Jobs submitted per {}", duration(width));
    let mut drawn = vec![("arrivals".to_owned(), lines(&Chart::new(axis(), Axis::number(per)), Join::Steps, &[jobs]))];
    for (d, work) in summary.work.iter().enumerate() {
        let name = capital(&resource_name(&work.resource));
        let points: Vec<(f64, f64)> =
            profile.running.iter().enumerate().map(|(bucket, amounts)| (time(bucket), amounts[d])).collect();
        let ends = points.first().zip(points.last()).map(|(first, last)| (first.0, last.0));
        let mut series = vec![Series::new("demand without waiting", points)];
        if let (Some(capacity), Some((first, last))) = (capacity.get(d).copied().flatten(), ends) {
            series.push(Series::new("capacity", vec![(first, capacity), (last, capacity)]));
        }
        let chart = Chart::new(axis(), Axis::number(format!("{name} ({})", work.unit)));
        drawn.push((format!("over-time-{}", work.resource), lines(&chart, Join::Steps, &series)));
    }
    let users: Vec<Category> = summary.top_users.iter().map(|user| Category::new(user.user.as_str())).collect();
    let shares = summary.top_users.iter().map(|user| {
        let share = user.time_share;
        Some(Interval { mean: share, low: share, high: share, n: 0 })
    });
    let shares = BarSeries { label: "task time".to_owned(), key: "task time".to_owned(), values: shares.collect() };
    let chart = Chart::new(Axis::number("User"), Axis::fraction("Task time of all users"));
    drawn.push(("users".to_owned(), bars(&chart, &users, &[shares])));
    drawn.push(("durations".to_owned(), durations(measured, &[])));
    write(folder, &drawn, about)
}

/// Formats the width of a bucket.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{} s", number(Some(s))),
        s if s < 7200.0 => format!("{} min", number(Some(s / 60.0))),
        s => format!("{} h", number(Some(s / 3600.0))),
    }
}

/// Returns whether the first two resources are those of the published values.
fn published_pair(summary: &Summary) -> bool {
    let units: Vec<&str> = summary.work.iter().take(2).map(|work| work.unit).collect();
    units == ["cores", "GiB"]
}

/// Returns the kinds of tasks that have a curve each: the stages, or all tasks together if there are no stages.
fn kinds(measured: &[Curves]) -> &[Curves] {
    if measured.len() > 1 { &measured[1..] } else { measured }
}

fn durations(measured: &[Curves], known: &[Curves]) -> String {
    let mut series: Vec<Series> = measured
        .iter()
        .map(|one| Series {
            label: one.kind.clone(),
            key: one.kind.clone(),
            points: one.duration_s.clone(),
            ..Series::default()
        })
        .collect();
    for one in known.iter().filter(|one| !one.duration_s.is_empty()) {
        let label = format!("{}, published", one.kind);
        series.push(Series { key: label.clone(), label, points: one.duration_s.clone(), ..Series::default() });
    }
    let chart = Chart::new(Axis::seconds("Duration of a task").log(), Axis::fraction("Tasks"));
    cdf(&chart, &series)
}

fn demand(at: usize, label: String, measured: &[Curves], known: &[Curves]) -> String {
    let mut series = Vec::new();
    for one in kinds(measured) {
        series.extend(one.demand.get(at).map(|points| Series::new(one.kind.as_str(), points.clone())));
        let published = known.iter().find(|known| known.kind == one.kind);
        let published = published.and_then(|known| known.demand.get(at));
        series.extend(published.map(|points| Series::new(format!("{}, published", one.kind), points.clone())));
    }
    // A few extreme values would compress all others at the left edge; a curve that leaves the chart shows that they exist.
    let nearly_all = |one: &Series| one.points.iter().find(|(_, share)| *share >= 0.995).map(|(value, _)| *value);
    let most = series.iter().filter_map(nearly_all).fold(0.0, f64::max);
    let axis = Axis::number(label);
    let axis = if most > 0.0 { axis.range(0.0, most * 1.1) } else { axis };
    cdf(&Chart::new(axis, Axis::fraction("Tasks")), &series)
}

/// Draws the demands of two resources as bubbles; the size of a bubble is `factor` times its number of tasks. The bubbles are those of
/// `shown`. The axes also cover `beside`, which another figure draws.
fn scatter(summary: &Summary, (shown, beside): (&[Curves], &[Curves]), (size, factor): (&str, f64)) -> String {
    let shown = kinds(shown);
    let pairs = || shown.iter().chain(kinds(beside)).flat_map(|one| &one.pairs);
    let axis = |at: usize, most: f64| {
        let work = &summary.work[at];
        let axis = Axis::number(format!("{} ({})", capital(&resource_name(&work.resource)), work.unit));
        if most > 0.0 { axis.range(0.0, most * 1.05) } else { axis }
    };
    let x = axis(0, pairs().map(|pair| pair.0).fold(0.0, f64::max));
    let y = axis(1, pairs().map(|pair| pair.1).fold(0.0, f64::max));
    let bubble = |one: &Curves| BubbleSeries {
        label: one.kind.clone(),
        key: one.kind.clone(),
        points: one.pairs.iter().map(|&(x, y, tasks)| (x, y, tasks * factor)).collect(),
    };
    let series: Vec<BubbleSeries> = shown.iter().map(bubble).collect();
    bubbles(&Chart { size_pt: (241.0, 190.0), ..Chart::new(x, y) }, size, &series)
}

fn sizes(summary: &Summary, published: Option<&Published>) -> String {
    let categories: Vec<Category> = summary.sizes_drf.iter().map(|bin| Category::new(bin_label(bin))).collect();
    let series = |label: &str, bins: &[SizeBin]| BarSeries {
        label: label.to_owned(),
        key: label.to_owned(),
        values: bins
            .iter()
            .map(|bin| Some(Interval { mean: bin.share, low: bin.share, high: bin.share, n: 0 }))
            .collect(),
    };
    let mut all = vec![series("this workload", &summary.sizes_drf)];
    all.extend(published.map(|published| series("published", &published.sizes_drf)));
    bars(&Chart::new(Axis::number("Tasks of a job"), Axis::fraction("Jobs")), &categories, &all)
}

/// Formats a bin: `1-500`, or `3001 and more` for the last one.
pub fn bin_label(bin: &SizeBin) -> String {
    match bin.to {
        Some(to) => format!("{}-{to}", bin.from),
        None => format!("{} and more", bin.from),
    }
}
