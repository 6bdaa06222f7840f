//! The guarantees of every chart, for any input.

use super::*;
use crate::raster;

fn time_chart() -> Chart {
    Chart::new(Axis::seconds("Time"), Axis::fraction("CPU utilisation"))
}

fn ramp(key: &str, count: u32, step: f64) -> Series {
    Series::new(key, (0..count).map(|at| (f64::from(at) * step, f64::from(at % 10) / 10.0)).collect())
}

fn interval(mean: f64) -> Option<Interval> {
    Some(Interval { mean, low: mean - 0.1, high: mean + 0.1, n: 3 })
}

/// Draws one chart of every kind from the same few numbers.
fn every_chart(chart: &Chart, points: &[(f64, f64)]) -> Vec<String> {
    let series = [Series::new("drf", points.to_vec()), Series::new("fifo", Vec::new())];
    let panel = |title: &str| Panel { title: title.into(), series: series.to_vec() };
    let heights = points.iter().map(|&(x, y)| Some(Interval { mean: x, low: y, high: x, n: 2 })).collect();
    let categories: Vec<Category> = (0..points.len()).map(|at| Category::new(format!("bin {at}"))).collect();
    let bubble = BubbleSeries {
        key: "x".into(),
        label: "demands".into(),
        points: points.iter().map(|&(x, y)| (x, y, y)).collect(),
    };
    let names: Vec<String> = categories.iter().map(|one| one.label.clone()).collect();
    let boxed = BoxSeries {
        label: "drf".into(),
        key: "drf".into(),
        spreads: points.iter().map(|&(x, y)| Spread::from_values(&[x, y, x, y, x, y, 1.0])).collect(),
    };
    let row = |&(x, y): &(f64, f64)| {
        Some(ForestRow {
            interval: Interval { mean: x, low: y, high: x, n: 2 },
            key: "drf".into(),
            ..ForestRow::default()
        })
    };
    let rows: Vec<Option<ForestRow>> = points.iter().map(row).collect();
    let map: Vec<Vec<Option<f64>>> = points.iter().map(|&(x, y)| vec![Some(x), Some(y)]).collect();
    let two = [Category::new("x"), Category::new("y")];
    let words = |value: f64| format!("{value:.1e}");
    vec![
        boxes(chart, &categories, &[BoxPanel { title: "one".into(), series: vec![boxed] }]),
        super::points(chart, &[panel("one"), panel("two")]),
        forest(chart, &names, &[ForestPanel { title: "one".into(), rows, line: 0.0 }]),
        heat(chart, &two, &names, &chart.y, &words, &[HeatPanel { title: "one".into(), rows: map }]),
        lines(chart, Join::Straight, &series),
        lines(chart, Join::Steps, &series),
        small_multiples(chart, Join::Steps, &[panel("one"), panel("two"), panel("three")]),
        cdf(chart, &series),
        bars(chart, &categories, &[BarSeries { label: "drf".into(), key: "drf".into(), values: heights }]),
        bubbles(chart, "tasks", &[bubble]),
    ]
}

fn dashes(svg: &str, key: &str) -> Option<String> {
    let from = svg.find(&format!("class=\"series\" data-key=\"{key}\""))?;
    let tag = &svg[from..from + svg[from..].find('>')?];
    let dash = tag.split("stroke-dasharray=\"").nth(1)?;
    dash.split('"').next().map(str::to_owned)
}

#[test]
fn a_chart_names_its_axes_series_and_units() {
    let svg = lines(&time_chart(), Join::Steps, &[ramp("drf", 24, 3600.0), ramp("slot:12", 24, 3600.0)]);
    for text in ["Time (h)", "CPU utilisation", "drf", "slot:12", "\n40 %\n", "\n12\n"] {
        assert!(svg.contains(text), "{text} is missing");
    }
    assert!(svg.starts_with("<svg ") && svg.contains("width=\"241\" height=\"150\" viewBox=\"0 0 2410 1500\""));
}

#[test]
fn policies_differ_in_dashes_not_only_in_colour() {
    let series: Vec<Series> = ["drf", "fifo", "slot:3", "slot:6", "asset"].map(|key| ramp(key, 30, 1.0)).to_vec();
    let svg = lines(&time_chart(), Join::Straight, &series);
    let found: Vec<Option<String>> = series.iter().map(|one| dashes(&svg, &one.key)).collect();
    assert_eq!(found[0], None, "drf is solid");
    for (at, dash) in found.iter().enumerate() {
        assert!(!found[..at].contains(dash), "{}", series[at].key);
    }
}

#[test]
fn strange_numbers_never_break_a_chart() {
    let strange: [&[(f64, f64)]; 9] = [
        &[],
        &[(5.0, 3.0)],
        &[(0.0, 0.0)],
        &[(0.0, 0.0), (0.0, 0.0)],
        &[(f64::NAN, 1.0), (1.0, f64::INFINITY), (f64::NEG_INFINITY, 2.0)],
        &[(-1.0, -2.0), (-0.5, 3.0)],
        &[(1e-300, 1e300), (1.0, 1.0), (1e300, 1e-300)],
        &[(1.0, 1.0), (1.0 + 1e-15, 1.0 - 1e-16)],
        &[(1e15, 1.0), (1e15 + 1.0, 1.0)],
    ];
    for (points, log) in strange.into_iter().flat_map(|points| [(points, false), (points, true)]) {
        let mut chart = time_chart();
        (chart.x.log, chart.y.log) = (log, log);
        for (kind, svg) in every_chart(&chart, points).into_iter().enumerate() {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "chart {kind} of {points:?}, log {log}");
            assert!(svg.len() < 100_000, "chart {kind} of {points:?}, log {log}: {} bytes", svg.len());
            assert!(raster::png(&svg, 1.0, Vec::new()).is_ok(), "chart {kind} of {points:?}, log {log}");
        }
    }
}

#[test]
fn no_data_says_so() {
    assert!(every_chart(&time_chart(), &[]).iter().all(|svg| svg.contains("no data")));
    assert!(lines(&time_chart(), Join::Steps, &[]).contains("no data"));
    assert!(small_multiples(&time_chart(), Join::Steps, &[]).contains("no data"));
    assert!(!lines(&time_chart(), Join::Steps, &[ramp("drf", 3, 1.0)]).contains("no data"));
}

#[test]
fn names_are_escaped() {
    let mut chart = time_chart();
    chart.title = Some("a < b & \"c\"".into());
    let svg = lines(&chart, Join::Steps, &[Series { label: "<script>\u{7}".into(), ..ramp("quota:'x'\"&<", 9, 1.0) }]);
    assert!(!svg.contains("<script>") && !svg.contains('\u{7}') && svg.contains("&lt;script&gt;"));
    assert!(raster::png(&svg, 1.0, Vec::new()).is_ok());
}

#[test]
fn long_curves_stay_small() {
    let svg = lines(&time_chart(), Join::Steps, &[ramp("drf", 1_000_000, 1.0)]);
    assert!(svg.len() < 60_000, "{}", svg.len());
    let crowd = (0..100_000).map(|at| (f64::from(at % 317), f64::from(at % 1009), 1.0 + f64::from(at % 5))).collect();
    let svg = bubbles(&time_chart(), "tasks", &[BubbleSeries { points: crowd, ..BubbleSeries::default() }]);
    assert!(svg.len() < 3_000_000, "{}", svg.len());
}

#[test]
fn bytes_repeat() {
    let points = [(0.0, 1.0), (10.0, 0.5), (20.0, 0.7)];
    assert_eq!(every_chart(&time_chart(), &points), every_chart(&time_chart(), &points));
}

#[test]
fn the_distribution_steps_at_the_values() {
    assert_eq!(ecdf(&[3.0, 1.0, f64::NAN, 1.0, 2.0]), [(1.0, 0.5), (2.0, 0.75), (3.0, 1.0)]);
    assert_eq!(ecdf(&[]), []);
}

#[test]
fn zeros_keep_their_part_of_a_distribution_on_a_logarithm() {
    let chart = Chart::new(Axis::seconds("Wait").log(), Axis::fraction("Tasks"));
    let svg = cdf(&chart, &[Series::new("drf", ecdf(&[0.0, 0.0, 1.0, 100.0]))]);
    assert!(!svg.contains("not shown"), "no point is hidden: the curve starts at one half");
    let curve = svg.split("data-key=\"drf\"").nth(1).expect("the curve's group");
    let points = curve.split("points=\"").nth(1).expect("the curve's points");
    let first: f64 = points.split([',', ' ']).nth(1).and_then(|y| y.parse().ok()).expect("a coordinate");
    let ends = |class: &str| svg.split(class).nth(1).and_then(|rest| rest.split("points=\"").nth(1));
    let axis = ends("class=\"axis\"").expect("the axis");
    let ys: Vec<f64> = axis.split(' ').take(2).filter_map(|p| p.split(',').nth(1)?.parse().ok()).collect();
    let share = (ys[1] - first) / (ys[1] - ys[0]);
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn what_a_logarithm_lacks_is_counted() {
    let chart = Chart::new(Axis::number("Machines"), Axis::number("Backlog (tasks)").log());
    let points = vec![(1.0, 0.0), (2.0, 10.0), (3.0, -1.0), (4.0, 100.0)];
    assert!(lines(&chart, Join::Straight, &[Series::new("drf", points)]).contains("2 points at or below 0"));
}

#[test]
fn bars_go_below_zero_and_carry_their_notes() {
    let categories = ["1-50", "51-100"].map(|label| Category { label: label.into(), notes: vec!["n = 17".into()] });
    let chart = Chart::new(Axis::number("Tasks in the job"), Axis::fraction("Reduction"));
    let values = vec![interval(0.6), interval(-0.3)];
    let svg = bars(&chart, &categories, &[BarSeries { label: "vs slots".into(), key: "slot:3".into(), values }]);
    for text in ["n = 17", "51-100", "vs slots", "\u{2212}50 %", "\n0 %\n"] {
        assert!(svg.contains(text), "{text} is missing");
    }
    assert_eq!(svg.matches("class=\"whisker\"").count(), 1);
}

#[test]
fn text_stands_in_the_image() {
    let with = lines(&time_chart(), Join::Steps, &[ramp("drf", 9, 1.0)]);
    let mut without = with.clone();
    while let Some(from) = without.find("<text ") {
        let to = without[from..].find("</text>").expect("a closing tag") + from + "</text>".len();
        without.replace_range(from..to, "");
    }
    assert_ne!(with, without);
    let pixels = |svg: &str| {
        let image = raster::png(svg, 2.0, Vec::new()).expect("a valid SVG");
        resvg::tiny_skia::Pixmap::decode_png(&image).expect("a valid PNG")
    };
    let (with, without) = (pixels(&with), pixels(&without));
    // Only the vertical label is in the leftmost 10 points.
    let differ = |from: u32, to: u32| {
        (from..to)
            .flat_map(|x| (0..with.height()).map(move |y| (x, y)))
            .filter(|&(x, y)| with.pixel(x, y) != without.pixel(x, y))
            .count()
    };
    assert!(differ(0, 22) > 100, "the vertical label: {}", differ(0, 22));
    assert!(differ(60, with.width()) > 200, "ticks, label and legend: {}", differ(60, with.width()));
}

#[test]
fn a_legend_with_many_long_names_grows_the_sheet() {
    let name = |at: usize| format!("a user with a rather long name that fills a line of its own {at}");
    let series: Vec<Series> = (0..MANY).map(|at| ramp(&name(at), 5, 1.0)).collect();
    let svg = lines(&time_chart(), Join::Straight, &series);
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next());
    let height: f64 = height.and_then(|text| text.parse().ok()).expect("a height");
    assert!(height > 250.0 && svg.contains("11\n"), "{height}");
}
