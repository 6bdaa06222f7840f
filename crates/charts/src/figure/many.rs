//! Charts of many series: beyond a dozen, colours and dashes are no longer distinct, and bars become slivers.
//!
//! Panels and series are then transposed. For curves and points, each series has a panel with its name, and the former panels are the
//! curves. For bars and boxes, each group is a panel, and the series are positions along its horizontal axis. The vertical axis stays
//! the same. All means are drawn; very long intervals of bars are cut.

use super::{Axis, Category, Chart, Panel, Series};

/// Maximum number of series in one panel.
pub const MANY: usize = 12;

/// The least widths: of a panel of curves, and of a bar or box with its name.
const CURVES: f64 = 62.0;
const BAR: f64 = 9.0;

/// The heights of a panel with its heading: of curves, and of bars.
const CURVES_HEIGHT: f64 = 68.0;
const BARS_HEIGHT: f64 = 92.0;

/// Maximum number of panels side by side.
const COLUMNS: usize = 6;

/// The approximate space beside and below panels, and below bars that have names.
const AROUND: (f64, f64) = (44.0, 40.0);
const NAMES: f64 = 50.0;

/// Intervals are cut if the axis would otherwise be longer by this factor.
const FAR: f64 = 2.0;

/// Returns a chart with room for `count` panels: of the same width, and as high as the panels need.
fn roomy(chart: &Chart, count: usize, (width, height): (f64, f64), below: f64) -> Chart {
    let room = (((chart.size_pt.0 - AROUND.0) / width) as usize).clamp(1, COLUMNS);
    let rows = count.div_ceil(room).max(1);
    let tall = AROUND.1 + below + height * rows as f64;
    // The fewest columns for that number of rows, so that the last row is not nearly empty.
    Chart {
        size_pt: (chart.size_pt.0, chart.size_pt.1.max(tall)),
        columns: Some(count.div_ceil(rows).max(1)),
        ..chart.clone()
    }
}

/// Transposes charts of curves or points. Returns `None` if no panel has too many series, or there are too many panels to transpose. If
/// there is one panel, the baseline of the chart is drawn in grey behind the curve of each new panel.
pub(super) fn curves(chart: &Chart, panels: &[Panel]) -> Option<(Chart, Vec<Panel>)> {
    if panels.len() > MANY || panels.iter().all(|panel| panel.series.len() <= MANY) {
        return None;
    }
    let mut names: Vec<(&str, &str)> = Vec::new();
    for one in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&(&one.label, &one.key)) {
            names.push((&one.label, &one.key));
        }
    }
    let of = |panel: &Panel, name: (&str, &str)| {
        panel.series.iter().find(|one| (one.label.as_str(), one.key.as_str()) == name).cloned()
    };
    let turned = |&name: &(&str, &str)| {
        let title = name.0.to_owned();
        let series = match panels {
            [only] => {
                let is_reference = |one: &&Series| chart.reference.as_ref() == Some(&one.key) && one.key != name.1;
                let reference = only.series.iter().find(is_reference);
                let faint = reference.map(|one| Series { band: None, faint: true, ..one.clone() });
                of(only, name).into_iter().chain(faint).collect()
            }
            all => {
                let named = |panel: &Panel| {
                    let (label, key) = (panel.title.clone(), panel.title.clone());
                    Some(Series { label, key, ..of(panel, name)? })
                };
                all.iter().filter_map(named).collect()
            }
        };
        Panel { title, series }
    };
    let turned: Vec<Panel> = names.iter().map(turned).collect();
    Some((roomy(chart, turned.len(), (CURVES, CURVES_HEIGHT), 0.0), turned))
}

/// A series by name, with one value per category.
pub(super) type Named<T> = (String, Vec<Option<T>>);

/// Groups of bars or boxes, transposed to panels.
pub(super) struct Turned<T> {
    /// The chart around the panels.
    pub chart: Chart,
    /// The names of the series, as positions along x.
    pub categories: Vec<Category>,
    /// For each panel its heading, and one value per position.
    pub panels: Vec<Named<T>>,
}

/// Makes one panel of each group (category) of each panel. `panels` are headings with their series. Returns `None` if no group is too
/// large.
pub(super) fn groups<T: Clone>(
    chart: &Chart,
    categories: &[Category],
    panels: &[(&str, Vec<Named<T>>)],
) -> Option<Turned<T>> {
    if panels.iter().all(|(_, series)| series.len() <= MANY) {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in panels.iter().flat_map(|(_, series)| series) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut turned = Vec::new();
    for (title, series) in panels {
        for (at, category) in categories.iter().enumerate() {
            let place = [std::slice::from_ref(&category.label), &category.notes].concat().join(", ");
            let place = if chart.x.label.is_empty() { place } else { format!("{}: {place}", chart.x.label) };
            let heading = [*title, place.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            let value = |name: &&str| {
                let one = series.iter().find(|(other, _)| other == name);
                one.and_then(|(_, values)| values.get(at).cloned().flatten())
            };
            turned.push((heading.join(", "), names.iter().map(value).collect()));
        }
    }
    let chart = Chart { x: Axis::number(""), ..chart.clone() };
    Some(Turned {
        chart: roomy(&chart, turned.len(), (BAR * names.len() as f64, BARS_HEIGHT), NAMES),
        categories: names.into_iter().map(Category::new).collect(),
        panels: turned,
    })
}

/// Returns the part of an axis that shows all means and the near parts of their intervals, and the number of intervals that are cut. An
/// interval much longer than the others would otherwise compress all others to a point. `None` if no interval is cut.
pub(super) fn near(axis: &Axis, means: &[f64], ends: &[(f64, f64)]) -> Option<((f64, f64), usize)> {
    let fold = |values: &mut dyn Iterator<Item = f64>| {
        values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (low, high) = fold(&mut means.iter().copied());
    let span = high - low;
    if axis.log || axis.range.is_some() || !span.is_finite() || span <= 0.0 {
        return None;
    }
    let (least, most) = (low - span, high + span);
    let beyond = ends.iter().filter(|(from, to)| *from < least || *to > most).count();
    let (from, to) = fold(&mut ends.iter().flat_map(|&(from, to)| [from, to]));
    let (whole, part) = ((from.min(low), to.max(high)), (from.max(least).min(low), to.min(most).max(high)));
    // The cut must shorten the axis enough.
    (whole.1 - whole.0 > FAR * (part.1 - part.0)).then_some((part, beyond))
}

/// Returns the note on intervals that are cut.
pub(super) fn beyond_note(beyond: usize) -> Option<String> {
    match beyond {
        0 => None,
        1 => Some("1 interval reaches beyond the axis".to_owned()),
        _ => Some(format!("{beyond} intervals reach beyond the axis")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BarPanel, BarSeries, ForestPanel, ForestRow, Interval, Join};
    use super::super::{bar_panels, lines, ranks, small_multiples};
    use super::*;

    fn names(many: usize) -> Vec<String> {
        (0..many).map(|at| format!("policy:{at}")).collect()
    }

    fn curve(name: &str) -> Series {
        Series::new(name, vec![(0.0, 0.0), (1.0, name.len() as f64)])
    }

    fn chart() -> Chart {
        Chart { reference: Some("policy:0".to_owned()), ..Chart::new(Axis::number("x"), Axis::number("y")) }
    }

    /// Returns the positions of texts, with their content.
    fn texts(svg: &str) -> Vec<(f64, f64, String)> {
        let number = |tag: &str, key: &str| tag.split(key).nth(1)?.split('"').next()?.parse::<f64>().ok();
        let text = |tag: &str| {
            let words = tag.split_once('>')?.1.split('<').next()?.trim().to_owned();
            Some((number(tag, " x=\"")?, number(tag, " y=\"")?, words))
        };
        svg.split("<text").skip(1).filter_map(text).collect()
    }

    #[test]
    fn a_dozen_curves_share_a_panel_and_more_have_one_each() {
        let panel = |many: usize| {
            let series: Vec<Series> = names(many).iter().map(|name| curve(name)).collect();
            [Panel { title: String::new(), series }]
        };
        assert!(curves(&chart(), &panel(MANY)).is_none());
        let (grown, turned) = curves(&chart(), &panel(25)).expect("too many");
        assert!(grown.size_pt.1 > Chart::COLUMN.1 && grown.size_pt.0 == Chart::COLUMN.0);
        assert_eq!(turned.iter().map(|panel| panel.title.clone()).collect::<Vec<_>>(), names(25));
        let faint = |panel: &Panel| -> Vec<String> {
            panel.series.iter().filter(|one| one.faint).map(|one| one.key.clone()).collect()
        };
        assert!(turned.iter().skip(1).all(|panel| faint(panel) == ["policy:0".to_owned()]));
        assert_eq!(
            (turned[0].series.len(), turned[1].series.len()),
            (1, 2),
            "the baseline is not compared with itself"
        );
        let svg = lines(&chart(), Join::Steps, &panel(25)[0].series);
        let shown: Vec<String> = texts(&svg).into_iter().map(|(.., words)| words).collect();
        assert!(names(25).iter().all(|name| shown.contains(name)), "{shown:?}");
        assert_eq!(shown.iter().filter(|words| *words == "policy:0").count(), 2, "a heading, and in the legend");
    }

    #[test]
    fn panels_become_curves_where_there_are_several() {
        let panel =
            |title: &str| Panel { title: title.into(), series: names(25).iter().map(|name| curve(name)).collect() };
        let (_, turned) = curves(&chart(), &[panel("CPU"), panel("Memory")]).expect("too many");
        let labels = |panel: &Panel| panel.series.iter().map(|one| one.label.clone()).collect::<Vec<_>>();
        assert!(turned.len() == 25 && turned.iter().all(|panel| labels(panel) == ["CPU", "Memory"]));
        assert!(turned.iter().all(|panel| panel.series.iter().all(|one| !one.faint)), "two in grey look the same");
        let svg = small_multiples(&chart(), Join::Steps, &[panel("CPU"), panel("Memory")]);
        assert_eq!(texts(&svg).iter().filter(|(.., words)| words == "CPU").count(), 1, "the legend");
    }

    #[test]
    fn many_bars_of_a_group_stand_over_their_names() {
        let value = |mean: f64| Some(Interval { mean, low: mean - 1.0, high: mean + 1.0, n: 3 });
        let wide = Some(Interval { mean: 2.0, low: -900.0, high: 900.0, n: 3 });
        let bar = |(at, label): (usize, String)| {
            let values = vec![value(1.0), if at == 7 { wide } else { value(3.0) }];
            BarSeries { label: label.clone(), key: label, values }
        };
        let panel = BarPanel { title: String::new(), series: names(25).into_iter().enumerate().map(bar).collect() };
        let categories = ["1-50", "51-100"].map(Category::new);
        let svg = bar_panels(&chart(), &categories, &[panel]);
        let shown: Vec<String> = texts(&svg).into_iter().map(|(.., words)| words).collect();
        for words in ["x: 1-50", "x: 51-100", "policy:24", "1 interval reaches beyond the axis"] {
            assert!(shown.iter().any(|one| one == words), "{words}: {shown:?}");
        }
    }

    #[test]
    fn the_names_of_twenty_five_rows_do_not_overlap() {
        let mut names = names(24);
        names.push("a policy with a name that is broken into lines, for it is longer than the room beside rows".into());
        let row = |at: usize| ForestRow {
            interval: Interval { mean: at as f64, ..Interval::default() },
            ..ForestRow::default()
        };
        let panel = ForestPanel { title: String::new(), rows: (0..25).map(|at| Some(row(at))).collect(), line: 3.0 };
        let svg = ranks(&chart(), &names, &[panel], &[]);
        let mut places: Vec<f64> = Vec::new();
        let words: Vec<&str> = names.iter().flat_map(|name| name.split(' ')).collect();
        for (_, y, text) in texts(&svg) {
            if text.split(' ').all(|word| words.contains(&word)) {
                places.push(y / 10.0);
            }
        }
        assert!(places.len() > 25, "{} lines", places.len());
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 7.0), "{places:?}");
    }

    #[test]
    fn intervals_are_cut_only_where_they_are_far_wider_than_means_lie_apart() {
        let axis = Axis::number("x");
        assert_eq!(near(&axis, &[1.0, 3.0], &[(0.0, 2.0), (2.0, 5.0)]), None);
        assert_eq!(near(&axis, &[1.0, 3.0], &[(0.0, 2.0), (2.0, 50.0)]), Some(((0.0, 5.0), 1)));
        assert_eq!(near(&axis, &[1.0, 3.0], &[(0.0, 2.0), (2.0, 6.0)]), None, "the interval is too short to be cut");
        assert_eq!(near(&axis, &[1.0, f64::NAN], &[(0.0, 9.0)]), None, "one mean has nothing to compare with");
        assert_eq!(near(&axis.clone().range(0.0, 9.0), &[1.0, 3.0], &[(0.0, 50.0)]), None, "a fixed range stays");
    }
}
