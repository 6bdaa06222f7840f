//! Timelines of machines and pools have all their texts, and no number breaks them.

use super::*;
use crate::raster;

fn cell(row: f64, from: f64, until: f64, user: usize) -> TimelineCell {
    TimelineCell { top: row, bottom: row + 1.0, from, until, user, strength: 1.0, stopped: from > 5.0 }
}

fn chart(body: TimelineBody) -> TimelineChart {
    TimelineChart {
        name: "Tasks of machines".to_owned(),
        width: 241.1,
        window: (0.0, 20.0),
        users: vec!["ann".to_owned(), "bob".to_owned()],
        others: Some("3 others".to_owned()),
        body,
        marks: vec![TimelineMarks { label: "arrivals".to_owned(), event: TimelineEvent::Arrival, times: vec![1.0] }],
        curves: Some(TimelineCurves { axis: Axis::fraction("Dominant share"), curves: vec![vec![(0.0, 0.5)], vec![]] }),
        note: Some("5 tasks".to_owned()),
    }
}

#[test]
fn rows_and_stacks_are_drawn_with_all_texts() {
    let rows = TimelineBody::Rows {
        label: "Machine".to_owned(),
        names: vec![(0.0, 2.0, "0".to_owned())],
        rows: 2.0,
        cells: vec![cell(0.0, 0.0, 4.0, 0), cell(1.0, 6.0, 9.0, 2)],
    };
    let stack = TimelineBody::Stack {
        axis: Axis::number("CPU in use (cores)"),
        ends: vec![0.0, 10.0, 20.0],
        layers: vec![vec![1.0, 2.0], vec![0.0, 3.0], vec![1.0, 0.0]],
    };
    for (body, text) in [(rows, "Machine"), (stack, "CPU in use (cores)")] {
        let svg = timeline(&chart(body));
        for text in [text, "ann", "bob", "3 others", "arrivals", "Dominant share", "Time (s)", "5 tasks"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(raster::png(&svg, 1.0, Vec::new()).is_ok());
    }
}

#[test]
fn invalid_numbers_are_not_drawn() {
    for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        let cells = vec![cell(0.0, value, value, 0)];
        let rows = TimelineBody::Rows { label: String::new(), names: vec![], rows: 0.0, cells };
        let stack =
            TimelineBody::Stack { axis: Axis::number(""), ends: vec![0.0, value], layers: vec![vec![value]; 3] };
        for body in [rows, stack] {
            let svg = timeline(&chart(body));
            assert!(!svg.contains("NaN") && raster::png(&svg, 1.0, Vec::new()).is_ok(), "{value}");
        }
    }
}
