//! The printed result of a command: text and tables, written for people, for a paper or for another program.

use std::ops::AddAssign;

use super::screen::{Alignment, Grid};
use crate::output::escape::csv_line;

/// The format of printed results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// All values, exact, for programs
    Json,
    /// The tables only; intervals have a column of their own
    Csv,
    /// Tables for a page
    Markdown,
    /// Tables for a paper, with booktabs; text as comments
    Latex,
}

/// Text and tables, in the order of printing.
#[derive(Clone, Debug, Default)]
pub struct Printout(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    /// Text with its line ends; empty lines separate blocks on a screen.
    Text(String),
    Table(Grid),
}

impl Printout {
    /// Returns whether there is no text and no table.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|block| matches!(block, Piece::Text(text) if text.is_empty()))
    }

    /// Returns the text and the tables in a format; [`Format::Json`] is the caller's own, and equals [`Format::Table`] here.
    pub fn render(&self, format: Format) -> String {
        let block = |block: &Piece| match (block, format) {
            (Piece::Text(text), Format::Table | Format::Json) => text.clone(),
            (Piece::Table(grid), Format::Table | Format::Json) => grid.text(),
            (Piece::Text(_), Format::Csv) => String::new(),
            (Piece::Text(text), Format::Markdown) => separated(text, ""),
            (Piece::Text(text), Format::Latex) => separated(text, "% "),
            (Piece::Table(grid), Format::Csv) => csv(grid) + "\n",
            (Piece::Table(grid), Format::Markdown) => markdown(grid) + "\n",
            (Piece::Table(grid), Format::Latex) => latex(grid) + "\n",
        };
        let text: String = self.0.iter().map(block).collect();
        match format {
            Format::Table | Format::Json => text,
            // One empty line separates tables, and the end has no empty line.
            Format::Csv | Format::Markdown | Format::Latex if text.is_empty() => text,
            Format::Csv | Format::Markdown | Format::Latex => text.trim_end_matches('\n').to_owned() + "\n",
        }
    }
}

impl From<Grid> for Printout {
    fn from(grid: Grid) -> Printout {
        Printout(vec![Piece::Table(grid)])
    }
}

impl From<String> for Printout {
    fn from(text: String) -> Printout {
        Printout(vec![Piece::Text(text)])
    }
}

impl AddAssign<Grid> for Printout {
    fn add_assign(&mut self, grid: Grid) {
        self.0.push(Piece::Table(grid));
    }
}

impl AddAssign<String> for Printout {
    fn add_assign(&mut self, text: String) {
        self.0.push(Piece::Text(text));
    }
}

impl AddAssign<&str> for Printout {
    fn add_assign(&mut self, text: &str) {
        *self += text.to_owned();
    }
}

impl FromIterator<Printout> for Printout {
    /// Joins parts with empty lines between them.
    fn from_iter<I: IntoIterator<Item = Printout>>(parts: I) -> Printout {
        let mut all = Printout::default();
        for (nth, part) in parts.into_iter().enumerate() {
            if nth > 0 {
                all += "\n";
            }
            all += part;
        }
        all
    }
}

impl AddAssign<Printout> for Printout {
    fn add_assign(&mut self, other: Printout) {
        self.0.extend(other.0);
    }
}

/// Returns the lines of a text after a mark, and an empty line; nothing for empty text.
fn separated(text: &str, mark: &str) -> String {
    let lines: String =
        text.trim_matches('\n').lines().map(|line| format!("{mark}{line}").trim_end().to_owned() + "\n").collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// The sign between a mean and the half-width of its interval.
const PLUS_MINUS: &str = " ±";

/// The mark of a statistically significant difference.
const SIGNIFICANT: char = '*';

/// Splits a cell into its value, the half-width of its interval, and its mark.
fn split(cell: &str) -> [&str; 3] {
    let (value, half) = cell.split_once(PLUS_MINUS).unwrap_or((cell, ""));
    let [value, half] = [value, half].map(str::trim_end);
    match half.strip_suffix(SIGNIFICANT) {
        Some(half) => [value, half, "*"],
        None => [value, half, ""],
    }
}

/// Returns a table as CSV. A column with intervals becomes two: the mean and the half-width; with marks, three.
fn csv(grid: &Grid) -> String {
    let columns = grid.columns();
    let rows: Vec<Vec<&str>> = grid.rows().collect();
    let has = |at: usize, part: usize| {
        let sided = columns[at].1 == Alignment::Right;
        sided && rows.iter().filter_map(|row| row.get(at)).any(|cell| !split(cell)[part].is_empty())
    };
    let parts: Vec<[bool; 3]> = (0..columns.len()).map(|at| [true, has(at, 1), has(at, 2)]).collect();
    let chosen = |at: usize, all: [String; 3]| {
        all.into_iter().zip(parts[at]).filter(|(_, wanted)| *wanted).map(|(text, _)| text).collect::<Vec<_>>()
    };
    let name = |(at, (name, _)): (usize, &(String, Alignment))| {
        chosen(at, [name.clone(), format!("{name} half-width"), format!("{name} significant")])
    };
    let mut text = csv_line(columns.iter().enumerate().flat_map(name));
    for row in rows {
        let cell = |at: usize| {
            let cell = row.get(at).copied().unwrap_or_default();
            let [value, half, mark] = if parts[at][1] || parts[at][2] { split(cell) } else { [cell, "", ""] };
            let value = if columns[at].1 == Alignment::Right { plain_number(value) } else { value.to_owned() };
            chosen(at, [value, half.to_owned(), mark.to_owned()])
        };
        text += &csv_line((0..columns.len()).flat_map(cell));
    }
    text
}

/// Returns a number without thousands separators, an absent one as an empty cell, and other text unchanged.
fn plain_number(text: &str) -> String {
    match text {
        "-" => String::new(),
        text if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') => text.replace(',', ""),
        text => text.to_owned(),
    }
}

fn markdown(grid: &Grid) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let cell = |text: &str| {
        let indent = text.len() - text.trim_start().len();
        let escaped = text.trim().replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
        "&nbsp;".repeat(indent) + &escaped
    };
    let columns = grid.columns();
    let mut text = line(columns.iter().map(|(name, _)| cell(name)).collect());
    let side = |(_, side): &(String, Alignment)| if *side == Alignment::Left { "---" } else { "---:" }.to_owned();
    text += &line(columns.iter().map(side).collect());
    for row in grid.rows() {
        let cells = (0..columns.len()).map(|at| cell(row.get(at).copied().unwrap_or_default()));
        text += &line(cells.collect());
    }
    text
}

fn latex(grid: &Grid) -> String {
    let columns = grid.columns();
    let sides: String = columns.iter().map(|(_, side)| if *side == Alignment::Left { 'l' } else { 'r' }).collect();
    let line = |cells: Vec<String>| format!("  {} \\\\\n", cells.join(" & "));
    let mut text = format!("\\begin{{tabular}}{{{sides}}}\n  \\toprule\n");
    text += &line(columns.iter().map(|(name, _)| in_latex(name)).collect());
    text += "  \\midrule\n";
    for row in grid.rows() {
        if row.iter().all(|cell| cell.is_empty()) {
            text += "  \\midrule\n";
            continue;
        }
        let cell = |at: usize| {
            let cell = row.get(at).copied().unwrap_or_default();
            if columns[at].1 == Alignment::Right { number_in_latex(cell) } else { in_latex(cell) }
        };
        text += &line((0..columns.len()).map(cell).collect());
    }
    text + "  \\bottomrule\n\\end{tabular}\n"
}

/// Returns a number in math mode, with its interval; other text as [`in_latex`].
fn number_in_latex(cell: &str) -> String {
    let [value, half, mark] = split(cell);
    if value.parse::<f64>().is_err() {
        return if cell.trim() == "-" { "--".to_owned() } else { in_latex(cell) };
    }
    let mark = if mark.is_empty() { "" } else { "^{*}" };
    match half {
        "" if value.starts_with('-') => format!("${value}{mark}$"),
        "" => value.to_owned(),
        half => format!("${value} \\pm {half}{mark}$"),
    }
}

/// Escapes the characters that LaTeX reads as commands; leading spaces become quads.
fn in_latex(text: &str) -> String {
    let indent = text.len() - text.trim_start().len();
    let escaped = text.trim().chars().map(|one| match one {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{one}"),
        '~' => "\\textasciitilde{}".to_owned(),
        '^' => "\\textasciicircum{}".to_owned(),
        '\\' => "\\textbackslash{}".to_owned(),
        '±' => "$\\pm$".to_owned(),
        '<' => "\\textless{}".to_owned(),
        '>' => "\\textgreater{}".to_owned(),
        one => one.to_string(),
    });
    "\\quad ".repeat(indent.div_ceil(2)) + &escaped.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let columns = vec![
            ("policy".to_owned(), Alignment::Left),
            ("mean_s".to_owned(), Alignment::Right),
            ("jobs".to_owned(), Alignment::Right),
        ];
        let rows = [["drf", "12 ±3", "1,200"], ["  a_b & c|d", "-4.5 ±0.2*", "-"], ["fifo", "7", "2"]];
        Grid::new(columns, rows.map(|row| row.map(str::to_owned).to_vec()).to_vec())
    }

    fn printout() -> Printout {
        let mut printout = Printout::from("two machines\n".to_owned());
        printout += grid();
        printout += "\n* significant\n";
        printout
    }

    #[test]
    fn csv_has_tables_only_and_intervals_in_columns() {
        assert_eq!(
            printout().render(Format::Csv),
            "policy,mean_s,mean_s half-width,mean_s significant,jobs\ndrf,12,3,,1200\n\"  a_b & c|d\",-4.5,0.2,*,\nfifo,7,,,2\n"
                .replace("\"  a_b & c|d\"", "  a_b & c|d")
        );
    }

    #[test]
    fn markdown_and_latex_escape_their_own_characters() {
        assert_eq!(
            printout().render(Format::Markdown),
            "two machines\n\n| policy | mean_s | jobs |\n| --- | ---: | ---: |\n| drf | 12 ±3 | 1,200 |\n\
             | &nbsp;&nbsp;a_b & c\\|d | -4.5 ±0.2\\* | - |\n| fifo | 7 | 2 |\n\n* significant\n"
        );
        assert_eq!(
            printout().render(Format::Latex),
            "% two machines\n\n\\begin{tabular}{lrr}\n  \\toprule\n  policy & mean\\_s & jobs \\\\\n  \\midrule\n  \
             drf & $12 \\pm 3$ & 1,200 \\\\\n  \\quad a\\_b \\& c\\textbar{}d & $-4.5 \\pm 0.2^{*}$ & -- \\\\\n  \
             fifo & 7 & 2 \\\\\n  \\bottomrule\n\\end{tabular}\n\n% * significant\n"
                .replace("\\textbar{}", "|")
        );
    }

    #[test]
    fn the_table_for_people_is_the_text_and_the_grid() {
        assert_eq!(printout().render(Format::Table), format!("two machines\n{}\n* significant\n", grid().text()));
        assert!(!printout().is_empty() && Printout::default().is_empty());
    }
}
