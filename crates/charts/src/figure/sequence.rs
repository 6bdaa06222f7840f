//! Sequence diagrams: a vertical line (lane) for each process, an arrow for each message, in order of time.
//!
//! Rows have equal distances, since faults last minutes and messages milliseconds; the time of each row is printed beside it.

use plotters::style::{RGBColor, WHITE};

use super::canvas::{Anchor, Canvas, GREY, INK, LIGHT, LayerGroup, TextDirection};
use super::names::lines;
use crate::font;

const MARGIN: f64 = 8.0;
const TIMES: f64 = 52.0;
const LANE: f64 = 150.0;
/// The least width of a lane on a sheet of a given width; in narrower lanes, messages would be unreadable.
const LANE_LEAST: f64 = 72.0;
const HEAD: f64 = 52.0;
const ROW: f64 = 15.0;
const SIZE: f64 = 6.5;
const BANNER: f64 = 7.5;
const ARROW: f64 = 4.0;

/// Maximum number of rows that are drawn.
const ROWS: usize = 300;

const RED: RGBColor = RGBColor(190, 30, 45);
const GREEN: RGBColor = RGBColor(20, 120, 60);
const SHADE: RGBColor = RGBColor(250, 224, 224);

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A failure begins.
    Bad,
    /// A failure ends.
    Good,
    /// Neutral information.
    Plain,
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceStep {
    /// An arrow between two lanes; one that does not arrive ends halfway.
    Arrow {
        /// The lane of the sender.
        from: usize,
        /// The lane of the receiver.
        to: usize,
        /// Whether it arrives.
        arrives: bool,
    },
    /// A dot on a lane.
    Mark(usize, Tone),
    /// A line of text across all lanes.
    Banner,
}

/// A row of a sequence diagram.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceRow {
    /// The time, in seconds.
    pub seconds: f64,
    /// The element that is drawn.
    pub step: SequenceStep,
    /// The text of the row; a tooltip shows it in full.
    pub text: String,
}

/// Draws a sequence diagram as an SVG. If there are more than 300 rows, only the first 300 are drawn, with a note.
///
/// A lane is shaded from a mark of [`Tone::Bad`] to the next one of [`Tone::Good`]. `note` is printed under the title. The sheet has the
/// given width, or is wider if the lanes would otherwise have less than 72 points each.
pub fn sequence(title: &str, note: &str, lanes: &[String], rows: &[SequenceRow], width: Option<f64>) -> String {
    let drawn = &rows[..rows.len().min(ROWS)];
    let room = |width: f64| ((width - 2.0 * MARGIN - TIMES) / lanes.len().max(1) as f64).max(LANE_LEAST);
    let wide = width.map_or(LANE, room);
    let x = |lane: usize| MARGIN + TIMES + (lane as f64 + 0.5) * wide;
    let width = MARGIN + TIMES + wide * lanes.len() as f64 + MARGIN;
    let [heading, note] = [(title, 9.0), (note, SIZE)].map(|(text, size)| lines(text, size, width - 2.0 * MARGIN));
    let names: Vec<Vec<String>> = lanes.iter().map(|lane| lines(lane, 8.0, wide - 4.0)).collect();
    let more = |lines: usize| 9.0 * lines.saturating_sub(1) as f64;
    let named = more(names.iter().map(Vec::len).max().unwrap_or(1));
    let head = HEAD + more(heading.len()) + more(note.len()) + named;
    let y = |row: usize| head + ROW * (row as f64 + 1.0);
    let left_out = if rows.len() > drawn.len() { ROW } else { 0.0 };
    let bottom = y(drawn.len());
    let mut canvas = Canvas::new(width, bottom + left_out + MARGIN, &format!("Sequence diagram of {title}"));
    canvas.layer(LayerGroup::class("lanes"), |pen| {
        for (nth, line) in heading.iter().enumerate() {
            pen.text(line, 9.0, INK, (MARGIN, MARGIN + 9.0 * (nth + 1) as f64), Anchor::Start, TextDirection::Level);
        }
        for (nth, line) in note.iter().enumerate() {
            let baseline = MARGIN + 9.0 * (heading.len() + nth + 1) as f64;
            pen.text(line, SIZE, GREY, (MARGIN, baseline), Anchor::Start, TextDirection::Level);
        }
        for (lane, from, to) in outages(lanes.len(), drawn) {
            pen.rectangle((x(lane) - 3.0, y(from) - 2.0), (x(lane) + 3.0, y(to) - 2.0), &SHADE);
        }
        for (at, lane) in names.iter().enumerate() {
            for (up, line) in lane.iter().rev().enumerate() {
                pen.text(line, 8.0, INK, (x(at), head - 8.0 - 9.0 * up as f64), Anchor::Middle, TextDirection::Level);
            }
            pen.path(&[(x(at), head - 4.0), (x(at), bottom)], &LIGHT, 1.0);
        }
    });
    for (at, row) in drawn.iter().enumerate() {
        let y = y(at);
        let time = format!("{:.3} s", row.seconds);
        canvas.layer(LayerGroup { tip: Some(&row.text), ..LayerGroup::class("row") }, |pen| {
            pen.text(&time, SIZE, GREY, (MARGIN + TIMES - 8.0, y), Anchor::End, TextDirection::Level);
            match row.step {
                SequenceStep::Arrow { from, to, arrives } => {
                    let (from, to) = (x(from), x(to));
                    let color = if arrives { INK } else { RED };
                    let tip = if arrives { to } else { 0.5 * (from + to) };
                    let back = ARROW * (tip - from).signum();
                    let text = cut(&row.text, (to - from).abs());
                    let (middle, half) = (0.5 * (from + to), 0.5 * font::width(&text, SIZE) + 1.5);
                    // The parts of lanes behind the text are erased.
                    pen.rectangle((middle - half, y - 2.0 - SIZE), (middle + half, y - 0.8), &WHITE);
                    pen.path(&[(from, y), (tip, y)], &color, 0.6);
                    pen.polygon(&[(tip, y), (tip - back, y - 2.0), (tip - back, y + 2.0)], &color);
                    pen.text(&text, SIZE, color, (middle, y - 2.0), Anchor::Middle, TextDirection::Level);
                }
                SequenceStep::Mark(lane, tone) => {
                    let color = match tone {
                        Tone::Bad => RED,
                        Tone::Good => GREEN,
                        Tone::Plain => GREY,
                    };
                    let text = cut(&row.text, wide);
                    pen.disc((x(lane), y - 2.0), 2.0, &color);
                    // At the right edge, there is no room beside the last lane.
                    match lane + 1 == lanes.len() {
                        true => pen.text(&text, SIZE, color, (x(lane) - 6.0, y), Anchor::End, TextDirection::Level),
                        false => pen.text(&text, SIZE, color, (x(lane) + 6.0, y), Anchor::Start, TextDirection::Level),
                    }
                }
                SequenceStep::Banner => {
                    let width = font::width(&row.text, BANNER) + 4.0;
                    let left = MARGIN + TIMES;
                    pen.rectangle((left - 2.0, y - BANNER), (left + width, y + 2.5), &SHADE);
                    pen.text(&row.text, BANNER, RED, (left, y), Anchor::Start, TextDirection::Level);
                }
            }
        });
    }
    if rows.len() > drawn.len() {
        let more = format!("{} more rows are not drawn", rows.len() - drawn.len());
        canvas.layer(LayerGroup::class("more"), |pen| {
            pen.text(&more, SIZE, GREY, (MARGIN + TIMES, bottom + 4.0), Anchor::Start, TextDirection::Level);
        });
    }
    canvas.finish()
}

/// Returns the first and last row of each outage of a lane; an outage without an end extends to the row after the last.
fn outages(lanes: usize, rows: &[SequenceRow]) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    for lane in 0..lanes {
        let mut since = None;
        for (at, row) in rows.iter().enumerate() {
            match row.step {
                SequenceStep::Mark(of, Tone::Bad) if of == lane => since = since.or(Some(at)),
                SequenceStep::Mark(of, Tone::Good) if of == lane => {
                    found.extend(since.take().map(|from| (lane, from, at)));
                }
                _ => {}
            }
        }
        found.extend(since.map(|from| (lane, from, rows.len())));
    }
    found
}

/// Cuts the text to a width, in points.
fn cut(text: &str, width: f64) -> String {
    let fits = |text: &str| font::width(text, SIZE) <= width - 10.0;
    if fits(text) {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while short.pop().is_some() && !fits(&format!("{short}…")) {}
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_rows_are_counted() {
        let text = cut(&"word ".repeat(60), 100.0);
        assert!(text.ends_with('…') && text.len() < 60, "{text}");
        assert_eq!(cut("word", 100.0), "word");
        let row = SequenceRow { seconds: 1.5, step: SequenceStep::Banner, text: "so <it> is".to_owned() };
        let svg = sequence("t", "about", &["a".to_owned(), "b".to_owned()], &vec![row; ROWS + 7], None);
        for part in ["7 more rows", "about", "so &lt;it&gt; is", "1.500 s"] {
            assert!(svg.contains(part), "{part} is missing");
        }
    }
    #[test]
    fn a_lane_is_shaded_from_what_strikes_it_until_it_is_well() {
        let mark = |lane, tone| SequenceRow { seconds: 0.0, step: SequenceStep::Mark(lane, tone), text: String::new() };
        let rows =
            [mark(1, Tone::Bad), mark(0, Tone::Bad), mark(1, Tone::Plain), mark(1, Tone::Bad), mark(1, Tone::Good)];
        assert_eq!(outages(2, &rows), [(0, 1, 5), (1, 0, 4)]);
    }
}
