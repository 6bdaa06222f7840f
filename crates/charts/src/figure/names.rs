//! The layout of the names of axes and categories: horizontal, rotated, or in several lines.

use super::Category;
use crate::font;

/// The size of axis labels and headings.
pub(super) const TEXT: f64 = 8.0;

/// The size of tick labels and notes.
pub(super) const SMALL: f64 = 7.0;

/// The length of a tick.
pub(super) const TICK: f64 = 2.5;

/// The orientation of category labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// Horizontal, with the notes below.
    Level,
    /// Rotated, with the notes beside.
    Turned,
    /// Rotated, with the notes after the label on the same line.
    Joined,
}

/// Returns the height of category labels, and their layout for this width.
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

/// Returns the lines of a category's label and notes.
pub(super) fn category_lines(category: &Category, labels: Labels) -> Vec<String> {
    let lines = [std::slice::from_ref(&category.label), &category.notes].concat();
    match labels {
        Labels::Level => lines,
        Labels::Turned => lines.iter().map(|line| font::fit(line, SMALL, 80.0)).collect(),
        Labels::Joined => vec![font::fit(&lines.join(" · "), SMALL, 80.0)],
    }
}

/// Breaks text into the fewest lines of at most `room`, of about equal length. Lines break between words, and long words break after
/// punctuation; a piece that is still too long is cut.
pub(super) fn lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let filled = filled(text, size, room);
    // Searches for the narrowest room with that number of lines.
    let narrower = (1..20).map(|step| room * (1.0 - f64::from(step) / 20.0));
    let even = narrower.map(|room| self::filled(text, size, room)).take_while(|lines| {
        lines.len() == filled.len() && lines.iter().all(|line| font::width(line, size) <= room && !line.ends_with('…'))
    });
    if filled.len() > 1 { even.last().unwrap_or(filled) } else { filled }
}

/// Fills each line as far as possible.
fn filled(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let pieces: Vec<&str> = match font::width(word, size) > room {
            true => word.split_inclusive(['-', '/', ',', ':', '=', '+', '_']).collect(),
            false => vec![word],
        };
        for (nth, piece) in pieces.into_iter().enumerate() {
            let space = if nth == 0 { " " } else { "" };
            match lines.last_mut() {
                Some(line) if font::width(&format!("{line}{space}{piece}"), size) <= room => {
                    line.push_str(space);
                    line.push_str(piece);
                }
                _ => lines.push(font::fit(piece, size, room)),
            }
        }
    }
    lines
}

/// Returns the width of the longest line.
pub(super) fn widest(lines: &[String], size: f64) -> f64 {
    lines.iter().map(|line| font::width(line, size)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_even_and_break_between_words() {
        let title = "Largest minus smallest dominant share";
        assert_eq!(lines(title, TEXT, 500.0), [title]);
        assert_eq!(lines(title, TEXT, 100.0), ["Largest minus smallest", "dominant share"].map(str::to_owned));
        assert_eq!(lines("cluster.machines=20x16c48g", SMALL, 60.0), ["cluster.machines=", "20x16c48g"]);
        assert!(lines("", TEXT, 50.0).is_empty());
        for room in 30..300 {
            let all = lines(title, TEXT, f64::from(room));
            assert!(all.iter().all(|line| font::width(line, TEXT) <= f64::from(room)), "{room}: {all:?}");
            assert!(room < 50 || all.join(" ") == title, "{room}: {all:?}");
        }
    }
}
