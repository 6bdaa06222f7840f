//! Pictures of a workload beside what was published.

use std::path::Path;

use crate::error::Result;
use crate::output::figure::{
    Axis, BarSeries, BubbleSeries, Category, Chart, Interval, Place, Series, bars, bubbles, cdf,
};
use crate::output::raster;
use crate::output::table::write_whole;
use crate::workload::curves::Curves;
use crate::workload::summary::{Published, SizeBin, Summary};

/// Pixels for each point of a PNG: 288 dots per inch.
const SCALE: f32 = 4.0;

/// Draws what there is to draw into `folder` and says how many figures that made.
pub fn draw(
    folder: &Path,
    summary: &Summary,
    measured: &[Curves],
    published: Option<(&Published, &[Curves])>,
) -> Result<usize> {
    let known = published.map(|(_, curves)| curves).unwrap_or_default();
    let mut drawn = vec![("durations".to_owned(), durations(measured, known))];
    for (at, work) in summary.work.iter().enumerate() {
        let label = format!("{} of a task ({})", capitalised(&work.resource), work.unit);
        // What was published is in cores and GiB.
        let known = if (at, work.unit) == (0, "cores") || (at, work.unit) == (1, "GiB") { known } else { &[] };
        drawn.push((format!("demand-{}", work.resource), demand(at, label, measured, known)));
    }
    if summary.work.len() >= 2 {
        drawn.push(("demands".to_owned(), scatter(summary, measured, "tasks", None)));
        if let Some((_, known)) = published {
            // The same axes for both, so that they can be laid side by side.
            let published = scatter(summary, known, "weight", Some(known));
            drawn.push(("demands-published".to_owned(), published));
        }
    }
    drawn.push(("job-sizes".to_owned(), sizes(summary, published.map(|(published, _)| published))));
    for (name, svg) in &drawn {
        write_whole(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
        write_whole(&folder.join(format!("{name}.png")), &raster::png(svg, SCALE)?)?;
    }
    Ok(drawn.len())
}

/// The kinds that are worth a curve each: the stages, or all tasks where there are none.
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
            band: None,
        })
        .collect();
    for one in known.iter().filter(|one| !one.duration_s.is_empty()) {
        let label = format!("{}, published", one.kind);
        series.push(Series { key: label.clone(), label, points: one.duration_s.clone(), band: None });
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
    cdf(&Chart::new(Axis::number(label), Axis::fraction("Tasks")), &series)
}

fn scatter(summary: &Summary, shown: &[Curves], size: &str, weights: Option<&[Curves]>) -> String {
    let axis = |at: usize| {
        let work = &summary.work[at];
        Axis::number(format!("{} ({})", capitalised(&work.resource), work.unit))
    };
    // Weights are shares of all tasks: as tasks in a million they have sizes that a logarithm can tell apart.
    let factor = if weights.is_some() { 1e6 } else { 1.0 };
    let series: Vec<BubbleSeries> = kinds(shown)
        .iter()
        .map(|one| BubbleSeries {
            label: one.kind.clone(),
            key: one.kind.clone(),
            points: one.pairs.iter().map(|&(x, y, tasks)| (x, y, tasks * factor)).collect(),
        })
        .collect();
    let chart = Chart { size_pt: (241.0, 190.0), legend: Place::Below, ..Chart::new(axis(0), axis(1)) };
    let size = if weights.is_some() { format!("{size} (in a million)") } else { size.to_owned() };
    bubbles(&chart, &size, &series)
}

fn sizes(summary: &Summary, published: Option<&Published>) -> String {
    let categories: Vec<Category> = summary.sizes_drf.iter().map(|bin| Category::new(bin_label(bin))).collect();
    let series = |label: &str, bins: &[SizeBin]| BarSeries {
        label: label.to_owned(),
        key: label.to_owned(),
        values: bins.iter().map(|bin| Some(Interval { mean: bin.share, low: bin.share, high: bin.share })).collect(),
    };
    let mut all = vec![series("this workload", &summary.sizes_drf)];
    all.extend(published.map(|published| series("published", &published.sizes_drf)));
    bars(&Chart::new(Axis::number("Tasks of a job"), Axis::fraction("Jobs")), &categories, &all)
}

/// `1-500`, or `3001+` for the last bin.
pub fn bin_label(bin: &SizeBin) -> String {
    match bin.to {
        Some(to) => format!("{}-{to}", bin.from),
        None => format!("{}+", bin.from),
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    match (name, letters.next()) {
        ("cpu" | "gpu", _) => name.to_ascii_uppercase(),
        (_, Some(first)) => first.to_uppercase().collect::<String>() + letters.as_str(),
        (_, None) => String::new(),
    }
}
