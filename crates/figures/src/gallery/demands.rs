//! The demands of tasks: one bubble per kind of demand, as in Figure 1 of the DRF paper (Ghodsi et al., NSDI 2011).

use plimsoll_base::error::Result;
use plimsoll_base::units::{Dim, resource_name};
use plimsoll_charts::figure::{Axis, BubbleSeries, Chart, Data, bubbles};
use plimsoll_charts::paper::Paper;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use super::{Drawn, Gallery, HALF, seed_of};
use plimsoll_metrics::numbers::capital;

/// Maximum number of stages that are distinguished.
const STAGES: usize = 4;

/// The ratio of demands above which the axis is logarithmic.
const WIDE: f64 = 20.0;

/// Draws each other resource against the first one: the second in the figure `demands`, all others in figures `demands-NAME`.
pub fn demands(results: &Results, paper: &Paper) -> Result<Gallery> {
    let Some((first, others)) = results.dims.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(Gallery::without("demands", "the workload has one resource"));
    };
    let columns: Vec<String> = results.dims.iter().map(|dim| format!("demand_{}", dim.name)).collect();
    let mut names = vec!["stage", "tasks"];
    names.extend(columns.iter().map(String::as_str));
    let parts = results.table(Table::Demands, &names, Some(0))?;
    // Submissions do not depend on the policy, except in a closed loop.
    let Some(part) = parts.first() else { return Ok(Gallery::without_table("demands", Table::Demands)) };
    let mut gallery = Gallery::default();
    for (nth, other) in others.iter().enumerate() {
        let series = series(part, first, other)?;
        let chart = Chart { size_pt: HALF, ..Chart::new(axis(first, &series, 0), axis(other, &series, 1)) };
        let chart = paper.fit(chart, 1);
        gallery.figures.push(Drawn {
            name: if nth == 0 { "demands".to_owned() } else { format!("demands-{}", file_name(&other.name)) },
            caption: format!(
                "Demands of the submitted tasks{}. Tasks with demands in the same eighth of a power of two are one \
                 bubble, at their mean; its area is the logarithm of their number.",
                seed_of(results, 0)
            ),
            svg: bubbles(&chart, "tasks", &series),
            data: Data::of_bubbles(["stage", &columns[0], &columns[nth + 1], "tasks"], &series),
        });
    }
    Ok(gallery)
}

/// Returns one series per stage.
fn series(part: &Part, x: &Dim, y: &Dim) -> Result<Vec<BubbleSeries>> {
    let stages = part.names("stage")?;
    let each = [format!("demand_{}", x.name), format!("demand_{}", y.name), "tasks".to_owned()];
    let [x, y, tasks] = each.map(|column| part.numbers(&column));
    let points = x?.into_iter().zip(y?).zip(tasks?);
    let mut names: Vec<&str> = stages.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let one_kind = names.len() > STAGES;
    let mut series: Vec<BubbleSeries> = Vec::new();
    for (stage, ((x, y), tasks)) in stages.iter().zip(points) {
        let key = if one_kind { "" } else { stage };
        let (Some(x), Some(y), Some(tasks)) = (x, y, tasks) else { continue };
        let at = series.iter().position(|one| one.key == key).unwrap_or_else(|| {
            series.push(BubbleSeries { label: key.to_owned(), key: key.to_owned(), points: Vec::new() });
            series.len() - 1
        });
        series[at].points.push((x, y, tasks));
    }
    Ok(series)
}

/// Returns the axis of a resource; logarithmic if all demands are above 0 and their range is wide.
fn axis(dim: &Dim, series: &[BubbleSeries], coordinate: usize) -> Axis {
    let values = series.iter().flat_map(|one| &one.points).map(|&(x, y, _)| if coordinate == 0 { x } else { y });
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let axis = Axis::number(format!("{} per task ({})", capital(&resource_name(&dim.name)), dim.unit.label(&dim.name)));
    if low > 0.0 && high / low > WIDE { axis.log() } else { axis }
}

/// Converts a resource's name to a part of a file name.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect()
}
