//! A grid of properties and policies: a check mark if a property holds, a cross if it fails.
//!
//! The style is that of Table 2 of the DRF paper (Ghodsi et al., NSDI 2011). Marks are drawn shapes, since a font may lack them; they
//! differ in form and lightness as well as in hue.

use plotters::style::RGBColor;

use super::canvas::{Anchor, Canvas, GREY, INK, LIGHT, LayerGroup, Pen, TextDirection};
use super::names::lines;
use crate::font;

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A check mark.
    Holds,
    /// A cross on a shaded cell.
    Fails,
    /// A dash: unknown.
    Unknown,
}

/// The texts about the grid and its marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridWords {
    /// The subject of the drawing, for screen readers.
    pub title: &'static str,
    /// The meaning of [`Mark::Holds`].
    pub holds: &'static str,
    /// The meaning of [`Mark::Fails`].
    pub fails: &'static str,
    /// The meaning of [`Mark::Unknown`].
    pub unknown: &'static str,
}

impl GridWords {
    /// The texts for properties and policies.
    pub const PROPERTIES: GridWords = GridWords {
        title: "Which properties hold for which policies",
        holds: "holds on all instances tried",
        fails: "fails, by a counterexample",
        unknown: "not defined",
    };
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridRow {
    /// The label of the row.
    pub label: String,
    /// The marks, one per column.
    pub marks: Vec<Mark>,
}

/// Rows under a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridSection {
    /// The heading; empty for none.
    pub title: String,
    /// The rows.
    pub rows: Vec<GridRow>,
}

const HOLDS: RGBColor = RGBColor(0, 114, 178);
const FAILS: RGBColor = RGBColor(213, 94, 0);
const SHADE: RGBColor = RGBColor(253, 236, 222);

/// The text size, the height of a row, the outer margin and the space between columns, in points.
const TEXT: f64 = 8.0;
const ROW: f64 = 14.0;
const MARGIN: f64 = 6.0;
const APART: f64 = 10.0;

/// The distance of two lines of a label.
const LINE: f64 = 9.0;

/// The space between sections.
const BREAK: f64 = 5.0;

/// The least width of a column.
const COLUMN: f64 = 34.0;

/// Names of policies that are wider than this are rotated.
const NAME_MOST: f64 = 58.0;

/// The least width of columns, and of labels, on a sheet of a given width.
const NARROW: f64 = 12.0;
const LABELS: f64 = 60.0;

/// Half the size of a mark.
const HALF: f64 = 3.4;

/// The positions of columns and rows.
struct Outline {
    labels: f64,
    left: f64,
    column: f64,
    head: f64,
    upright: bool,
    width: f64,
}

impl Outline {
    fn new(columns: &[String], sections: &[GridSection], sheet: Option<f64>) -> Outline {
        let widest =
            |texts: &mut dyn Iterator<Item = &str>| texts.map(|text| font::width(text, TEXT)).fold(0.0, f64::max);
        let mut labels = widest(&mut sections.iter().flat_map(|section| &section.rows).map(|row| row.label.as_str()));
        let names = widest(&mut columns.iter().map(String::as_str));
        let mut upright = names > NAME_MOST;
        let mut column = if upright { COLUMN } else { COLUMN.max(names + APART) };
        let many = columns.len() as f64;
        if let Some(sheet) = sheet {
            // Names are rotated first, then columns become narrower, then labels are broken into lines.
            let room = sheet - 2.0 * MARGIN - APART;
            upright |= labels + many * column > room;
            column = (room - labels) / many.max(1.0);
            if column < NARROW {
                (column, labels) = (NARROW, labels.min((room - many * NARROW).max(LABELS)));
            }
        }
        let left = MARGIN + labels + APART;
        let head = MARGIN + if upright { names + 6.0 } else { ROW };
        Outline { labels, left, column, head, upright, width: left + column * many + MARGIN }
    }

    fn centre(&self, column: usize) -> f64 {
        self.left + (column as f64 + 0.5) * self.column
    }
}

/// Draws a grid as an SVG of the given width, or as wide as its rows and columns need.
pub fn grid(columns: &[String], sections: &[GridSection], words: &GridWords, width: Option<f64>) -> String {
    let outline = Outline::new(columns, sections, width);
    let label = |row: &GridRow| lines(&row.label, TEXT, outline.labels);
    let height = |row: &GridRow| ROW + LINE * label(row).len().saturating_sub(1) as f64;
    let rows: f64 = sections.iter().flat_map(|section| &section.rows).map(height).sum();
    let titled = sections.iter().filter(|section| !section.title.is_empty()).count();
    let breaks = titled.saturating_sub(1) as f64 * BREAK;
    let bottom = outline.head + 4.0 + rows + titled as f64 * ROW + breaks + 2.0;
    let marks: Vec<Mark> = sections.iter().flat_map(|s| &s.rows).flat_map(|row| row.marks.iter().copied()).collect();
    let key = legend(&marks, outline.width, words);
    let width = outline.width.max(key.width);
    let sheet = bottom + 6.0 + key.rows * ROW + MARGIN / 2.0;
    let mut canvas = Canvas::new(width, sheet, words.title);
    let mut shade = Vec::new();
    let mut text: Vec<(String, f64, RGBColor)> = Vec::new();
    let mut cells: Vec<(f64, f64, Mark)> = Vec::new();
    let mut rules = Vec::new();
    let mut top = outline.head + 4.0;
    for section in sections {
        if !section.title.is_empty() {
            top += if rules.is_empty() { 0.0 } else { BREAK };
            text.push((section.title.clone(), top + 9.8, GREY));
            rules.push(top - BREAK / 2.0);
            top += ROW;
        }
        for row in &section.rows {
            let tall = height(row);
            for (nth, line) in label(row).into_iter().enumerate() {
                text.push((line, top + 9.8 + LINE * nth as f64, INK));
            }
            for (at, &mark) in row.marks.iter().enumerate().take(columns.len()) {
                cells.push((outline.centre(at), top + tall / 2.0, mark));
                if mark == Mark::Fails {
                    shade.push((outline.left + at as f64 * outline.column, top, tall));
                }
            }
            top += tall;
        }
    }
    canvas.layer(LayerGroup::class("shade"), |pen| {
        for &(left, top, tall) in &shade {
            pen.rectangle((left + 1.0, top + 0.75), (left + outline.column - 1.0, top + tall - 0.75), &SHADE);
        }
    });
    let (from, to) = (MARGIN, outline.width - MARGIN);
    canvas.layer(LayerGroup::class("axis"), |pen| {
        for &at in rules.iter().skip(1) {
            pen.path(&[(from, at), (to, at)], &LIGHT, 0.75);
        }
        for (at, width) in [(outline.head + 2.0, 0.5), (bottom, 0.9)] {
            pen.path(&[(from, at), (to, at)], &INK, width);
        }
    });
    canvas.layer(LayerGroup::class("labels"), |pen| {
        for (label, baseline, color) in &text {
            pen.text(label, TEXT, *color, (MARGIN, *baseline), Anchor::Start, TextDirection::Level);
        }
        for (at, name) in columns.iter().enumerate() {
            let (x, y) = (outline.centre(at), outline.head - 3.0);
            match outline.upright {
                true => pen.text(name, TEXT, INK, (x + TEXT * 0.35, y), Anchor::Start, TextDirection::Up),
                false => pen.text(name, TEXT, INK, (x, y), Anchor::Middle, TextDirection::Level),
            }
        }
    });
    canvas.layer(LayerGroup::class("marks"), |pen| {
        for &(x, y, one) in &cells {
            mark(pen, (x, y), one);
        }
    });
    canvas.layer(LayerGroup::class("legend"), |pen| {
        for (at, line, one, meaning) in &key.entries {
            let middle = bottom + 6.0 + (*line + 0.5) * ROW;
            mark(pen, (MARGIN + at + HALF, middle), *one);
            pen.text(
                meaning,
                TEXT - 0.5,
                INK,
                (MARGIN + at + 2.0 * HALF + 4.0, middle + 2.7),
                Anchor::Start,
                TextDirection::Level,
            );
        }
    });
    canvas.finish()
}

/// The explanations of the marks: their positions in a line, or one below the other.
struct Key {
    entries: Vec<(f64, f64, Mark, &'static str)>,
    rows: f64,
    width: f64,
}

fn legend(marks: &[Mark], room: f64, words: &GridWords) -> Key {
    let all = [(Mark::Holds, words.holds), (Mark::Fails, words.fails), (Mark::Unknown, words.unknown)];
    let shown: Vec<(Mark, &'static str)> = all.into_iter().filter(|(mark, _)| marks.contains(mark)).collect();
    let width = |meaning: &str| 2.0 * HALF + 4.0 + font::width(meaning, TEXT - 0.5);
    let together: f64 = shown.iter().map(|(_, meaning)| width(meaning) + APART).sum();
    let widest = shown.iter().map(|(_, meaning)| width(meaning)).fold(0.0, f64::max);
    if together <= room - 2.0 * MARGIN {
        let mut at = 0.0;
        let entry = |(mark, meaning): (Mark, &'static str)| {
            let left = at;
            at += width(meaning) + APART;
            (left, 0.0, mark, meaning)
        };
        return Key { entries: shown.into_iter().map(entry).collect(), rows: 1.0, width: together + MARGIN };
    }
    let rows = shown.len() as f64;
    let entries =
        shown.into_iter().enumerate().map(|(nth, (mark, meaning))| (0.0, nth as f64, mark, meaning)).collect();
    Key { entries, rows, width: widest + 2.0 * MARGIN }
}

fn mark(pen: &mut Pen, (x, y): (f64, f64), mark: Mark) {
    match mark {
        Mark::Holds => {
            let points = [(x - HALF, y + 0.3), (x - 0.9, y + HALF - 0.5), (x + HALF + 0.3, y - HALF)];
            pen.path(&points, &HOLDS, 1.5);
        }
        Mark::Fails => {
            let half = HALF - 0.6;
            pen.path(&[(x - half, y - half), (x + half, y + half)], &FAILS, 1.5);
            pen.path(&[(x - half, y + half), (x + half, y - half)], &FAILS, 1.5);
        }
        Mark::Unknown => pen.path(&[(x - 2.2, y), (x + 2.2, y)], &GREY, 0.9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(columns: &[&str], marks: &[Mark]) -> String {
        let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
        let row = |label: &str| GridRow { label: label.to_owned(), marks: marks.to_vec() };
        let section = |title: &str| GridSection { title: title.to_owned(), rows: vec![row("Envy-freeness")] };
        grid(&columns, &[section(""), section("zero demands allowed")], &GridWords::PROPERTIES, None)
    }

    #[test]
    fn a_grid_is_as_wide_as_it_is_told() {
        let columns: Vec<String> = (0..9).map(|nth| format!("policy {nth}")).collect();
        let row = GridRow { label: "Population monotonicity, up to one task".to_owned(), marks: vec![Mark::Holds; 9] };
        let section = GridSection { title: String::new(), rows: vec![row] };
        for width in [241.1, 252.0, 506.3] {
            let svg = grid(&columns, std::slice::from_ref(&section), &GridWords::PROPERTIES, Some(width));
            let said: f64 = svg.split('"').nth(3).and_then(|text| text.parse().ok()).expect("a width");
            assert!((said - width).abs() < 0.2, "{said} for {width}");
            let (words, cut) = ("Population monotonicity, up to one task", svg.contains('…'));
            assert!(!cut && words.split(' ').all(|word| svg.contains(word)), "labels break and are not cut: {svg}");
        }
    }

    #[test]
    fn every_mark_is_drawn_and_explained_and_no_glyph_is_needed() {
        let svg = drawn(&["drf", "asset"], &[Mark::Holds, Mark::Fails]);
        assert!(svg.contains("holds on all instances tried") && svg.contains("fails, by a counterexample"));
        assert!(!svg.contains("not defined"), "a mark that does not appear is not explained");
        assert!(svg.is_ascii(), "marks are shapes");
        assert!(drawn(&["drf"], &[Mark::Unknown]).contains("not defined"));
        assert_eq!(svg, drawn(&["drf", "asset"], &[Mark::Holds, Mark::Fails]));
    }

    #[test]
    fn long_names_stand_upright() {
        assert!(!drawn(&["drf"], &[Mark::Holds]).contains("rotate"));
        assert!(drawn(&["a policy of one's own"], &[Mark::Holds]).contains("rotate"));
    }
}
