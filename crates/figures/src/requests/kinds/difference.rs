//! Differences between the policies and the baseline, from the table of differences.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Data, FOREST_ROW, ForestPanel, ForestRow, Interval, exactly, forest};
use plimsoll_results::files::DIFFERENCES;
use plimsoll_results::schema::Table;

use super::{Draw, KindRow, X, tall};
use crate::requests::check::FigureRequest;
use crate::requests::draw::Picture;
use crate::requests::field::{Datum, Field};
use crate::requests::rows::{NameOrder, Whole};

pub(super) static ROW: KindRow = KindRow {
    name: "difference",
    about: "how policies differ from the baseline",
    table: Table::Runs,
    x: X::None,
    takes: &["percent"],
    draw: Draw::Differences(difference),
    ..KindRow::PLAIN
};

/// Draws the differences between the policies and the baseline, from the table of differences. `None` if there is no such table.
fn difference(request: &FigureRequest, whole: &Whole) -> Result<Option<Picture>> {
    let Some(table) = whole.table(DIFFERENCES)? else { return Ok(None) };
    let (policies, baselines, metrics) = (table.names("policy")?, table.names("baseline")?, table.names("metric")?);
    let designs = table.names("design")?;
    let cells = if whole.is_swept() { table.names("cell")? } else { vec![String::new(); policies.len()] };
    let numbers = ["difference", "low", "high", "baseline_mean", "seeds", "p_holm"].map(|name| table.numbers(name));
    let [mean, low, high, base, seeds, p] = numbers;
    let (mean, low, high, base, seeds, p) = (mean?, low?, high?, base?, seeds?, p?);
    let scale =
        |at: usize| if request.percent { base[at].filter(|base| *base != 0.0).map(f64::abs) } else { Some(1.0) };
    let passes = |at: usize| {
        request.filter.iter().all(|(field, wanted)| {
            let value = match field {
                Field::Policy => Datum::Text(policies[at].clone()),
                Field::Cell => Datum::Text(cells[at].clone()),
                Field::Axis(axis, ..) => match whole.cells.iter().find(|(name, ..)| *name == cells[at]) {
                    Some((_, values, _)) => Datum::of_axis(&values[*axis]),
                    None => return false,
                },
                _ => return true,
            };
            wanted.iter().any(|one| one.fits(&value))
        })
    };
    let shown: Vec<usize> = (0..policies.len()).filter(|&at| passes(at)).collect();
    let differs = |names: &[String]| shown.iter().any(|&at| names[at] != names[shown[0]]);
    // The name of a row contains only the parts that vary: the axes with more than one value, and the policy.
    let cell_of = |at: usize| whole.cells.iter().find(|(name, ..)| *name == cells[at]).map(|(_, values, _)| values);
    let varying: Vec<usize> = (0..request.axes.len())
        .filter(|&axis| shown.iter().any(|&at| cell_of(at).map(|v| &v[axis]) != cell_of(shown[0]).map(|v| &v[axis])))
        .collect();
    let many_policies = differs(&policies);
    let named = |at: usize| {
        let axis = |&axis: &usize| Some(request.axes[axis].label(&Datum::of_axis(&cell_of(at)?[axis])));
        let mut words: Vec<String> = varying.iter().filter_map(axis).collect();
        if many_policies || words.is_empty() {
            words.push(policies[at].clone());
        }
        words.join(", ")
    };
    let mut names = NameOrder::new();
    let mut found: Vec<(usize, usize, ForestRow, f64)> = Vec::new();
    for &at in &shown {
        let Some(panel) = request.y.iter().position(|column| column.name == metrics[at]) else { continue };
        let (Some(mean), Some(scale)) = (mean[at], scale(at)) else { continue };
        let name = named(at);
        let end = |end: Option<f64>| end.map_or(f64::NAN, |end| end / scale);
        let interval =
            Interval { mean: mean / scale, low: end(low[at]), high: end(high[at]), n: seeds[at].unwrap_or(0.0) as u64 };
        let open = p[at].is_none_or(|p| p >= 0.05);
        let row = ForestRow { label: String::new(), key: policies[at].clone(), interval, open };
        found.push((names.place(&name), panel, row, p[at].unwrap_or(f64::NAN)));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let mut data = Data::new(["metric", "comparison", "policy", "difference", "low", "high", "n", "p_holm"]);
    let mut panels: Vec<ForestPanel> = request
        .y
        .iter()
        .map(|column| ForestPanel {
            title: if request.y.len() > 1 { column.heading.clone() } else { String::new() },
            line: 0.0,
            rows: vec![None; names.all.len()],
        })
        .collect();
    for (row, panel, one, p) in found {
        let text = [request.y[panel].name.clone(), names.all[row].clone(), one.key.clone()];
        let ends = [one.interval.mean, one.interval.low, one.interval.high].map(exactly);
        data.rows.push(text.into_iter().chain(ends).chain([one.interval.n.to_string(), exactly(p)]).collect());
        panels[panel].rows[row] = Some(one);
    }
    let baseline = baselines.first().cloned().unwrap_or_default();
    let axis = request.y_axis();
    // If the rows are cells, the axis names their only policy.
    let under =
        if many_policies || varying.is_empty() { String::new() } else { format!(" under {}", policies[shown[0]]) };
    let x = match (request.percent, panels.len()) {
        (true, 1) => Axis::fraction(format!("{}{under}: difference from {baseline} (% of its mean)", axis.label)),
        (true, _) => Axis::fraction(format!("Difference{under} from {baseline} (% of its mean)")),
        (false, 1) => Axis { label: format!("{}{under} minus that under {baseline}", axis.label), ..axis },
        (false, _) => Axis { label: format!("Difference{under} from {baseline}"), ..axis },
    };
    let chart = request.chart(panels.len(), x, Axis::number(""));
    let many = panels.len().div_ceil(chart.columns.unwrap_or(1).max(1)) as f64;
    let chart = tall(request, chart, many * (FOREST_ROW * names.all.len() as f64 + 20.0) + 34.0);
    let caption = format!(
        "{}: difference from {baseline}, {}, with 95 % confidence intervals; a hollow marker where it is not statistically \
         significant (Holm-corrected p of 0.05 or more)",
        request.subject(),
        if designs.iter().any(|design| design == "unpaired") { "of means" } else { "paired by seed" }
    );
    Ok(Some(Picture { svg: forest(&chart, &names.all, &panels), data, caption }))
}
