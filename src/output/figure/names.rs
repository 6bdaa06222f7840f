//! How the names of axes and categories stand in the room there is: level, turned, or in two lines.

use super::Category;
use crate::output::font;

/// The size of axis labels and headings.
pub(super) const TEXT: f64 = 8.0;

/// The size of tick labels and notes.
pub(super) const SMALL: f64 = 7.0;

/// The length of a tick.
pub(super) const TICK: f64 = 2.5;

/// How the labels of categories stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// Level, the notes below.
    Level,
    /// Turned, the notes beside.
    Turned,
    /// Turned, the notes behind the label: there is room for one line only.
    Joined,
}

/// The height of category labels, and how they stand in the room there is.
pub(super) fn category_height(categories: &[Category], width: f64) -> (f64, Labels) {
    let each = width / categories.len().max(1) as f64;
    let lines = 1 + categories.iter().map(|category| category.notes.len()).max().unwrap_or(0);
    let height = lines as f64 * (SMALL + 1.5);
    let widest = |labels: Labels| {
        let texts = categories.iter().flat_map(|category| category_lines(category, labels));
        texts.map(|text| font::width(&text, SMALL)).fold(0.0, f64::max)
    };
    if widest(Labels::Level) <= each - 3.0 {
        return (TICK + height + 1.0, Labels::Level);
    }
    let labels = if height <= each - 2.0 { Labels::Turned } else { Labels::Joined };
    (TICK + widest(labels) + 3.0, labels)
}

/// The lines of a category's label and notes.
pub(super) fn category_lines(category: &Category, labels: Labels) -> Vec<String> {
    let lines = [std::slice::from_ref(&category.label), &category.notes].concat();
    match labels {
        Labels::Level => lines,
        Labels::Turned => lines.iter().map(|line| font::fit(line, SMALL, 80.0)).collect(),
        Labels::Joined => vec![font::fit(&lines.join(" · "), SMALL, 80.0)],
    }
}

/// An axis label in one line, or in two if it is longer than `room`.
pub(super) fn wrapped(label: &str, room: f64) -> Vec<String> {
    if label.is_empty() {
        return Vec::new();
    }
    let halves = label.match_indices(' ').map(|(at, _)| (&label[..at], &label[at + 1..]));
    let longer = |(a, b): &(&str, &str)| font::width(a, TEXT).max(font::width(b, TEXT));
    match halves.min_by(|a, b| longer(a).total_cmp(&longer(b))) {
        Some((first, second)) if font::width(label, TEXT) > room => {
            [first, second].map(|line| font::fit(line, TEXT, room)).to_vec()
        }
        _ => vec![font::fit(label, TEXT, room)],
    }
}
