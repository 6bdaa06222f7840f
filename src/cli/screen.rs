//! The layout of printed text: tables and paragraphs within the width of a line, and colour.
//!
//! All text is formatted for [`COLUMNS`] columns, on a terminal as well as in a pipe or a file. The output is therefore the same wherever
//! it is printed or saved. The variable `COLUMNS` changes the width, and with `--wide` lines are not limited. Lines break only between
//! words. If a table is too wide, its headings and text are broken first. If it is still too wide, it is printed in parts, each of which
//! begins with the key columns.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use crate::error::short;

/// The default width of a line.
const COLUMNS: usize = 80;

/// The space between two columns.
const GAP: usize = 2;

/// Whether `--wide` was given.
static WIDE: OnceLock<bool> = OnceLock::new();

/// Stores whether `--wide` was given; later calls have no effect.
pub fn widen(wide: bool) {
    let _ = WIDE.set(wide);
}

/// Returns whether all columns are requested, at any width.
pub fn is_wide() -> bool {
    WIDE.get().copied().unwrap_or(false)
}

/// Returns the maximum number of characters in a line.
fn width() -> usize {
    if is_wide() { usize::MAX } else { asked().unwrap_or(COLUMNS) }
}

/// Returns the width that the environment requests.
fn asked() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|&columns| columns > 0)
}

/// Returns whether a stream is a terminal with colours, and colours are not disabled.
fn has_colour(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|kind| kind != "dumb")
}

/// The style of text if there is colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No style.
    #[default]
    Plain,
    /// Bold.
    Strong,
    /// Green.
    Good,
    /// Red.
    Bad,
}

impl Tone {
    fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Plain => return text.to_owned(),
        };
        if colour && !text.trim().is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Writes a line to standard error. A closed stream is no failure: the exit code reports the outcome.
pub fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Maximum number of characters of a line of a message.
const LINE_MOST: usize = 2000;

/// Prepares text for a message. Parts of the text may come from a file, so control characters except line ends are escaped, and very long
/// text is shortened.
pub fn escape_control_characters(text: &str) -> String {
    let line = |line: &str| {
        let line = line.split(' ').map(short).collect::<Vec<_>>().join(" ");
        let end = line.char_indices().nth(LINE_MOST).map(|(end, _)| end);
        harmless(match end {
            Some(end) => format!("{}… ({} characters)", &line[..end], line.chars().count()),
            None => line,
        })
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a message for standard error after a highlighted word such as `error:`. The message is broken into lines only on a terminal, so
/// that a log has one line per message.
pub fn message(lead: &str, text: &str) -> String {
    let is_terminal = std::io::stderr().is_terminal();
    let text = escape_control_characters(text.trim_end_matches('\n'));
    let whole = if lead.is_empty() { text } else { format!("{lead} {text}") };
    let room = if is_terminal { width() } else { usize::MAX };
    // Quoted lines of a file are not broken, so that the marks below them point at the right place.
    let quoted = |line: &str| line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|');
    let lay = |line: &str| if quoted(line) { line.to_owned() } else { broken(line, room, 2).join("\n") };
    let laid = whole.lines().map(lay).collect::<Vec<_>>().join("\n");
    match laid.strip_prefix(lead) {
        Some(rest) => Tone::Strong.paint(lead, has_colour(is_terminal)) + rest,
        None => laid,
    }
}

/// Breaks text into lines between words; the continuation of an indented line is indented by two more.
pub fn paragraphs(text: &str) -> String {
    let hang = |line: &str| if line.starts_with(' ') { 2 } else { 0 };
    escape_control_characters(text).lines().map(|line| broken(line, width(), hang(line)).join("\n") + "\n").collect()
}

/// Splits a line at its possible breaks: a number stays with its `%` and its `±`. Consecutive spaces give empty words.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let clings = word.starts_with(['%', '±']) || words.last().is_some_and(|last| last.ends_with('±'));
        match words.last_mut().filter(|_| clings) {
            Some(last) => *last += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Breaks one line of text into lines of at most `room` characters; a longer word has a line alone. All lines except the first have the
/// indentation of the first and `hang` more spaces.
fn broken(text: &str, room: usize, hang: usize) -> Vec<String> {
    if text.chars().count() <= room {
        return vec![text.to_owned()];
    }
    let indent = text.len() - text.trim_start_matches(' ').len();
    let words = words(&text[indent..]);
    let mut lines = vec![" ".repeat(indent)];
    let mut begun = false;
    for word in &words {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if begun && last + 1 + word.chars().count() > room {
            lines.push(" ".repeat(indent + hang));
            begun = false;
        }
        if let Some(line) = lines.last_mut() {
            if begun {
                line.push(' ');
            }
            line.push_str(word);
        }
        begun |= !word.is_empty();
    }
    lines
}

/// Alignment of a cell in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Left, for text, which may be broken between words.
    Left,
    /// Right, for numbers, which are never broken.
    Right,
}

/// One cell of a table. Characters that would move the cursor or change colours are escaped, since names come from traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridCell {
    text: String,
    tone: Tone,
}

impl GridCell {
    /// Creates a cell with a style.
    pub fn toned(text: String, tone: Tone) -> GridCell {
        GridCell { text: harmless(text), tone }
    }
}

fn harmless(text: String) -> String {
    // Marks that change the text direction are not control characters, but also affect the output.
    let acts = |one: char| one.is_control() || matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(acts) {
        return text;
    }
    let escaped = |one: char| if acts(one) { one.escape_default().to_string() } else { one.to_string() };
    text.chars().map(escaped).collect()
}

impl From<String> for GridCell {
    fn from(text: String) -> GridCell {
        GridCell::toned(text, Tone::Plain)
    }
}

/// Lines of aligned columns.
#[derive(Clone, Debug)]
pub struct Grid {
    columns: Vec<(String, Alignment)>,
    rows: Vec<Vec<GridCell>>,
    /// Number of key columns at the left.
    keys: usize,
}

impl Grid {
    /// Creates a table with these headings and rows, which may be shorter than the headings; the first column is the key.
    pub fn new<C: Into<GridCell>>(columns: Vec<(String, Alignment)>, rows: Vec<Vec<C>>) -> Grid {
        let rows = rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()).collect();
        Grid { columns, rows, keys: 1 }
    }

    /// Sets the number of key columns.
    pub fn keyed(self, keys: usize) -> Grid {
        Grid { keys, ..self }
    }

    /// Returns the headings and sides of the columns.
    pub fn columns(&self) -> &[(String, Alignment)] {
        &self.columns
    }

    /// Returns the text of the cells, row by row.
    pub fn rows(&self) -> impl Iterator<Item = Vec<&str>> {
        self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
    }

    /// Formats the table for printing.
    pub fn text(&self) -> String {
        self.laid(width(), has_colour(std::io::stdout().is_terminal()))
    }

    fn laid(&self, room: usize, colour: bool) -> String {
        let parts = self.parts(room);
        parts.iter().map(|part| self.part(part, room, colour)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the natural width of a column, and the smallest width that breaks no word.
    fn widths(&self, at: usize) -> (usize, usize) {
        let (heading, side) = &self.columns[at];
        let length = |text: &str| text.chars().count();
        let longest = |text: &str| {
            let indent = length(text) - length(text.trim_start());
            words(text).iter().map(|word| length(word)).max().unwrap_or(0) + indent
        };
        let cells = || self.rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.text.as_str());
        let natural = cells().map(length).max().unwrap_or(0);
        let least = match side {
            Alignment::Left => cells().map(longest).max().unwrap_or(0),
            Alignment::Right => natural,
        };
        (natural.max(length(heading)), least.max(longest(heading)))
    }

    /// Returns whether the table is printed in one part.
    pub fn fits(&self) -> bool {
        self.parts(width()).len() == 1
    }

    /// Returns the columns of each printed part. If the columns do not fit into one part, the parts are of about equal size.
    fn parts(&self, room: usize) -> Vec<Vec<usize>> {
        let others = self.columns.len() - self.keys.min(self.columns.len());
        let filled = self.filled(room, others.max(1));
        let even = self.filled(room, others.div_ceil(filled.len()).max(1));
        if even.len() == filled.len() { even } else { filled }
    }

    /// Fills parts with the columns that fit into `room`. Each part has the key columns and at most `most` others.
    fn filled(&self, room: usize, most: usize) -> Vec<Vec<usize>> {
        let least: Vec<usize> = (0..self.columns.len()).map(|at| self.widths(at).1 + GAP).collect();
        let keys: Vec<usize> = (0..self.keys.min(self.columns.len())).collect();
        let own: usize = keys.iter().map(|&at| least[at]).sum();
        let mut parts = vec![keys.clone()];
        let mut used = own;
        for at in keys.len()..self.columns.len() {
            let full = used.saturating_add(least[at]) > room.saturating_add(GAP);
            let there = parts.last().map_or(0, Vec::len) - keys.len();
            if (full && there > 0) || there == most {
                parts.push(keys.clone());
                used = own;
            }
            used += least[at];
            if let Some(part) = parts.last_mut() {
                part.push(at);
            }
        }
        parts
    }

    /// Returns widths of columns that fit the room, if possible: the widest breakable columns become narrower.
    fn fitted(&self, part: &[usize], room: usize) -> Vec<usize> {
        let bounds: Vec<(usize, usize)> = part.iter().map(|&at| self.widths(at)).collect();
        let mut widths: Vec<usize> = bounds.iter().map(|(natural, _)| *natural).collect();
        let gaps = GAP * part.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > room {
            let loose = (0..widths.len()).filter(|&at| widths[at] > bounds[at].1);
            let Some(widest) = loose.max_by_key(|&at| (widths[at], at)) else { break };
            widths[widest] -= 1;
        }
        widths
    }

    fn part(&self, part: &[usize], room: usize, colour: bool) -> String {
        let widths = self.fitted(part, room);
        let header: Vec<GridCell> =
            self.columns.iter().map(|(name, _)| GridCell::toned(name.clone(), Tone::Strong)).collect();
        let mut text = String::new();
        for (nth, row) in std::iter::once(&header).chain(&self.rows).enumerate() {
            let cells: Vec<(&GridCell, Vec<String>)> = part
                .iter()
                .zip(&widths)
                .filter_map(|(&at, &width)| Some((row.get(at)?, broken(&row.get(at)?.text, width, 0))))
                .collect();
            let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1);
            for line in 0..height {
                let shown = cells.iter().enumerate().map(|(place, (cell, lines))| {
                    // Headings with fewer lines are aligned at the bottom, next to the first row.
                    let down = if nth == 0 { height - lines.len() } else { 0 };
                    let piece = line.checked_sub(down).and_then(|at| lines.get(at)).map_or("", String::as_str);
                    let space = " ".repeat(widths[place].saturating_sub(piece.chars().count()));
                    let piece = cell.tone.paint(piece, colour);
                    match self.columns[part[place]].1 {
                        Alignment::Left => piece + &space,
                        Alignment::Right => space + &piece,
                    }
                });
                text.push_str(shown.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end());
                text.push('\n');
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(names: &[(&str, Alignment)], rows: &[&[&str]]) -> Grid {
        let columns = names.iter().map(|(name, side)| ((*name).to_owned(), *side)).collect();
        Grid::new(columns, rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect())
    }

    #[test]
    fn what_fits_stays_on_a_line() {
        let small = grid(&[("who", Alignment::Left), ("mean s", Alignment::Right)], &[&["a b", "12"], &["c"], &[]]);
        assert_eq!(small.laid(80, false), "who  mean s\na b      12\nc\n\n");
        let bold = "\u{1b}[1mwho\u{1b}[0m  \u{1b}[1mmean s\u{1b}[0m\n";
        assert!(small.laid(80, true).starts_with(bold), "colour is no part of a width");
    }

    #[test]
    fn headings_and_text_break_between_words_and_numbers_never() {
        let columns =
            [("policy", Alignment::Left), ("mean completion s", Alignment::Right), ("about", Alignment::Left)];
        let wide = grid(&columns, &[&["drf", "12 ±3", "one two three"], &["  fifo of all", "4", "five"]]);
        assert_eq!(
            wide.laid(26, false),
            "              mean\n        completion\npolicy           s  about\ndrf          12 ±3  one\n                    two\n\
             \x20                   three\n  fifo           4  five\n  of\n  all\n"
        );
    }

    #[test]
    fn names_from_traces_move_no_cursor() {
        let odd = grid(&[("user", Alignment::Left), ("jobs", Alignment::Right)], &[&["a\u{1b}[31m\nb", "1"]]);
        assert_eq!(odd.laid(80, false), "user            jobs\na\\u{1b}[31m\\nb     1\n");
    }

    #[test]
    fn messages_are_tame() {
        assert_eq!(
            message("error:", "user 'a\u{1b}[31m\rb\u{202e}'\n  | at\tb"),
            "error: user 'a\\u{1b}[31m\\rb\\u{202e}'\n  | at\\tb"
        );
        let long = message("error:", &format!("'{}' is no {}", "x".repeat(1 << 20), "a b ".repeat(5000)));
        assert!(long.contains("x…") && long.len() < 2300 && long.ends_with(" characters)"), "{long}");
        assert_eq!(paragraphs("a\u{7}b\n"), "a\\u{7}b\n");
    }

    #[test]
    fn a_column_is_never_narrower_than_what_may_not_be_broken() {
        let share = grid(&[("share", Alignment::Left), ("n", Alignment::Right)], &[&["95 % of 3 ±1 jobs", "7"]]);
        assert_eq!(share.laid(8, false), "share  n\n95 %   7\nof\n3 ±1\njobs\n");
    }

    /// At every width, lines are within it and all words are printed.
    #[test]
    fn no_line_is_too_long_while_words_fit() {
        let columns: Vec<(String, Alignment)> = std::iter::once(("user".to_owned(), Alignment::Left))
            .chain((0..12).map(|at| (format!("used resource {at}"), Alignment::Right)))
            .collect();
        let row = |name: &str| -> Vec<String> {
            std::iter::once(name.to_owned()).chain((0..12).map(|at| format!("0.{at} ±0.01"))).collect()
        };
        let table = Grid::new(columns, vec![row("ann"), row("bob the second")]);
        for room in 20..200 {
            let laid = table.laid(room, false);
            assert!(laid.lines().all(|line| line.chars().count() <= room), "{room}\n{laid}");
            for at in 0..12 {
                assert!(laid.contains(&format!("0.{at} ±0.01")), "{room}\n{laid}");
            }
            assert!(laid.matches("ann").count() == laid.matches("user").count(), "each part repeats the key column");
        }
        assert_eq!(table.laid(usize::MAX, false).lines().count(), 3);
    }

    #[test]
    fn paragraphs_hang_from_their_indentation() {
        assert_eq!(broken("  a bb ccc", 6, 2), ["  a bb", "    ccc"]);
        assert_eq!(broken("unbreakable word", 4, 0), ["unbreakable", "word"]);
        assert_eq!(broken("  1 s  it is 95 % of 3 ±1", 12, 0), ["  1 s  it is", "  95 % of", "  3 ±1"]);
        assert_eq!(broken("two  spaces stay", 80, 0), ["two  spaces stay"]);
    }
}
