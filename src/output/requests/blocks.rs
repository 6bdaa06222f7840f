//! Bars, boxes, maps and forests: means and distributions over names.

use super::check::Request;
use super::draw::{Picture, over};
use super::field::{Datum, Field, heading};
use super::rows::{Mark, Means, Order, Row, Series, Whole};
use crate::error::Result;
use crate::experiment::DIFFERENCES;
use crate::output::figure::{
    Axis, BarPanel, BarSeries, BoxPanel, BoxSeries, Category, Chart, Data, FOREST_ROW, ForestPanel, ForestRow,
    HEAT_ROW, HeatPanel, Interval, Measure, Spread, bar_panels, boxes, exactly, forest, heat,
};
use crate::output::numbers::count;

/// A category that says how many jobs or tasks stand behind it.
fn category(label: String, weight: u64, what: Option<&str>) -> Category {
    let note = what.map(|what| match weight {
        1 => format!("1 {}", what.trim_end_matches('s')),
        _ => format!("{} {what}", count(weight)),
    });
    Category { label, notes: note.into_iter().collect() }
}

fn x_name(request: &Request) -> &str {
    request.x.as_ref().map_or("x", Field::name)
}

fn value_name(request: &Request) -> &str {
    if request.y.len() == 1 { &request.y[0].name } else { "value" }
}

/// The key of the colour: of bars that are policies themselves their names, of others without series one for all.
fn key(request: &Request, name: &Series) -> String {
    match name.key.is_empty() && request.x != Some(Field::Policy) {
        true => "all".to_owned(),
        false => name.key.clone(),
    }
}

/// The horizontal axis of names.
fn x_axis(request: &Request) -> Axis {
    // Names of seconds carry their unit in the label, since no axis adds it.
    let axis = request.x.as_ref().map(Field::axis).unwrap_or_default();
    let unit = if axis.measure == Measure::Seconds { " (s)" } else { "" };
    Axis::number(format!("{}{unit}", axis.label))
}

/// Means over names, with whiskers.
pub(super) fn bars(request: &Request, means: &Means) -> Picture {
    let whiskers = request.bands.unwrap_or(true);
    let order: Vec<usize> = (0..means.places[0].len()).collect();
    let at = |facet: usize, series: usize, place: usize| means.at(facet, series, place, 0);
    let weight = |place: usize| {
        let all = (0..means.facets.len()).flat_map(|facet| (0..means.series.len()).map(move |one| (facet, one)));
        all.filter_map(|(facet, one)| at(facet, one, place)).map(|(_, weight)| *weight).max().unwrap_or(0)
    };
    let label = |place: usize| match (&request.x, &means.places[0][place]) {
        (Some(Field::Metric), Datum::Text(name)) => heading(name),
        (_, datum) => datum.words(),
    };
    let categories: Vec<Category> =
        order.iter().map(|&place| category(label(place), weight(place), request.counts())).collect();
    let bar = |facet: usize, one: usize, place: usize| {
        let (interval, _) = at(facet, one, place)?;
        let ends = (interval.low, interval.high);
        let (low, high) = if let (Some(low), Some(high), true) = (ends.0, ends.1, whiskers) {
            (means.clip(low), means.clip(high))
        } else {
            (interval.mean, interval.mean)
        };
        Some(Interval { mean: interval.mean, low, high, n: interval.n as u64 })
    };
    let panel = |(facet, title): (usize, &String)| BarPanel {
        title: title.clone(),
        series: means
            .series
            .iter()
            .enumerate()
            .map(|(one, name)| BarSeries {
                label: name.label.clone(),
                key: key(request, name),
                values: order.iter().map(|&place| bar(facet, one, place)).collect(),
            })
            .collect(),
    };
    let panels: Vec<BarPanel> = means.facets.iter().enumerate().map(panel).collect();
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    let caption = format!(
        "{}{}{}",
        request.subject(),
        request.by(),
        over(means.runs(), if whiskers { "whiskers" } else { "no whiskers" })
    );
    let mut data = Data::of_bars(["panel", x_name(request), "series", value_name(request)], &categories, &panels);
    if let Some(what) = request.counts() {
        data.columns.push(what.to_owned());
        let weights: Vec<(String, u64)> = order.iter().map(|&place| (label(place), weight(place))).collect();
        let of = |name: &str| weights.iter().find(|(label, _)| label == name).map_or(0, |(_, weight)| *weight);
        data.rows.iter_mut().for_each(|row| row.push(of(&row[1]).to_string()));
    }
    Picture { svg: bar_panels(&chart, &categories, &panels), data, caption }
}

/// Distributions over names: of all runs together.
pub(super) fn boxed(request: &Request, rows: &[Row]) -> Picture {
    let (mut facets, mut series, mut places) = (Order::new(), Order::new(), Order::new());
    let mut groups: std::collections::HashMap<(usize, usize, usize), Vec<f64>> = std::collections::HashMap::new();
    for row in rows {
        let place = row.at.first().map_or(Mark::Text(String::new()), Mark::of);
        let key = (facets.place(&row.facet), series.place(&row.series), places.place(&place));
        groups.entry(key).or_default().push(row.y);
    }
    let n = |place: usize| groups.iter().filter(|(key, _)| key.2 == place).map(|(_, values)| values.len()).max();
    let what = request.counts().or(Some("runs")).filter(|_| request.counts().is_some() || groups.len() <= 12);
    let categories: Vec<Category> = places
        .all
        .iter()
        .enumerate()
        .map(|(at, place)| category(place.datum().words(), n(at).unwrap_or(0) as u64, what))
        .collect();
    let panel = |(facet, title): (usize, &String)| BoxPanel {
        title: title.clone(),
        series: series
            .all
            .iter()
            .enumerate()
            .map(|(one, name)| BoxSeries {
                label: name.label.clone(),
                key: key(request, name),
                spreads: (0..places.all.len())
                    .map(|place| groups.get(&(facet, one, place)).and_then(|values| Spread::of(values)))
                    .collect(),
            })
            .collect(),
    };
    let panels: Vec<BoxPanel> = facets.all.iter().enumerate().map(panel).collect();
    let names = ["q05", "q25", "median", "q75", "q95", "mean", "n"];
    let mut data = Data::new(["panel", x_name(request), "series"].into_iter().chain(names));
    for panel in &panels {
        for one in &panel.series {
            for (category, spread) in categories.iter().zip(&one.spreads) {
                let Some(spread) = spread else { continue };
                let mut row = vec![panel.title.clone(), category.label.clone(), one.label.clone()];
                row.extend(spread.quantiles.iter().chain([&spread.mean]).map(|value| exactly(*value)));
                row.push(spread.n.to_string());
                data.rows.push(row);
            }
        }
    }
    let chart = request.chart(panels.len(), x_axis(request), request.y_axis());
    let caption = format!(
        "{}{}: quartiles with the median, whiskers from the 5 % to the 95 % quantile, and the mean as a marker, all runs \
         together; of five values or fewer the values themselves",
        request.subject(),
        request.by()
    );
    Picture { svg: boxes(&chart, &categories, &panels), data, caption }
}

/// Means over two axes.
pub(super) fn map(request: &Request, means: &Means) -> Picture {
    let columns: Vec<usize> = means.sorted();
    let mut rows: Vec<usize> = (0..means.places[1].len()).collect();
    if means.places[1].iter().all(|place| matches!(place, Datum::Number(_))) {
        // Numbers grow upwards, as on any axis.
        let value = |at: &usize| if let Datum::Number(value) = means.places[1][*at] { value } else { 0.0 };
        rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
    }
    let second = request.rows.as_ref().expect("a heat map has two fields");
    let scale = request.y_axis();
    let words = |value: f64| match scale.measure {
        Measure::Fraction => format!("{} %", trimmed(100.0 * value)),
        _ => trimmed(value),
    };
    let unit = if scale.measure == Measure::Seconds { " (s)" } else { "" };
    let label = request.labels[1].clone();
    let scale = Axis { label: format!("{}{unit}", scale.label), log: request.log[1], ..scale };
    let panel = |(facet, title): (usize, &String)| HeatPanel {
        title: title.clone(),
        rows: rows
            .iter()
            .map(|&row| columns.iter().map(|&x| means.at(facet, 0, x, row).map(|(mean, _)| mean.mean)).collect())
            .collect(),
    };
    let panels: Vec<HeatPanel> = means.facets.iter().enumerate().map(panel).collect();
    let mut data = Data::new(["panel", x_name(request), second.name(), value_name(request), "low", "high", "n"]);
    for (facet, title) in means.facets.iter().enumerate() {
        for &row in rows.iter().rev() {
            for &x in &columns {
                let Some((interval, _)) = means.at(facet, 0, x, row) else { continue };
                let names = [title.clone(), means.places[0][x].words(), means.places[1][row].words()];
                let ends = [interval.low, interval.high]
                    .map(|end| end.map(|end| exactly(means.clip(end))).unwrap_or_default());
                let rest = [exactly(interval.mean)].into_iter().chain(ends).chain([interval.n.to_string()]);
                data.rows.push(names.into_iter().chain(rest).collect());
            }
        }
    }
    let names: Vec<String> = rows.iter().map(|&row| means.places[1][row].words()).collect();
    let categories: Vec<Category> = columns.iter().map(|&x| Category::new(means.places[0][x].words())).collect();
    let axis = second.axis();
    let seconds = if axis.measure == Measure::Seconds { " (s)" } else { "" };
    let y = Axis::number(label.unwrap_or_else(|| format!("{}{seconds}", axis.label)));
    let chart = request.chart(panels.len(), x_axis(request), y);
    let many = panels.len().div_ceil(chart.columns.unwrap_or(1).max(1)) as f64;
    let chart = tall(request, chart, many * (HEAT_ROW * names.len() as f64 + 22.0) + 44.0);
    let runs = match means.runs() {
        (_, 0 | 1) => String::new(),
        (_, most) => format!("; means over {most} runs"),
    };
    let caption = format!("{}{} and {}{runs}", request.subject(), request.by(), second.name().replace('_', " "));
    Picture { svg: heat(&chart, &categories, &names, &scale, &words, &panels), data, caption }
}

/// A number of three digits.
fn trimmed(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{value:.1e}"),
        large if large >= 99.95 => format!("{value:.0}"),
        large if large >= 9.995 => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        small if small < 0.01 => format!("{value:.0e}"),
        _ => format!("{value:.2}"),
    }
}

/// A chart that is as high as its rows need, unless the plan says how high.
fn tall(request: &Request, chart: Chart, height: f64) -> Chart {
    let height = request.paper.height.unwrap_or(height);
    Chart { size_pt: (chart.size_pt.0, height), ..chart }
}

/// How policies differ from the baseline: from the table of differences. `None` if it has none.
pub(super) fn difference(request: &Request, whole: &Whole) -> Result<Option<Picture>> {
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
    // What varies names a row: axes with more than one value, and the policy.
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
    let mut names = Order::new();
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
            title: if request.y.len() > 1 { heading(&column.name) } else { String::new() },
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
    let x = match (request.percent, panels.len()) {
        (true, _) => Axis::fraction(format!("Difference from {baseline} (% of its mean)")),
        (false, 1) => Axis { label: format!("{} minus that of {baseline}", axis.label), ..axis },
        (false, _) => Axis { label: format!("Difference from {baseline}"), ..axis },
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
