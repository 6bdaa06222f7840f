//! The report page: one HTML file that opens offline, with its figures inside.
//!
//! The page loads no other file and is complete without its scripts: one sorts tables, hides rows of long tables and copies commands, the
//! other shows the interactive part. A content security policy forbids everything else.
//! The colours of text and figures follow the reader's light or dark setting; a printed page is black on white.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_base::escape::printable;
use plimsoll_charts::figure::MANY;
use sha2::{Digest, Sha256};

use crate::explore::{EXPLORE, SIMULATE};
pub use crate::explore::{ExplorerData, JobStory, SimulatorControls, SimulatorData};

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlColumn {
    /// Its heading.
    pub name: String,
    /// Unit and meaning, shown as a tooltip of the heading; may be empty.
    pub explanation: String,
    /// Whether it contains numbers, which are right-aligned.
    pub numeric: bool,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HtmlTable {
    /// A description of its content.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<HtmlColumn>,
    /// Its formatted cells; empty for an absent value.
    pub rows: Vec<Vec<String>>,
    /// The marked cells, as row, column and mark.
    pub marks: Vec<(usize, usize, Mark)>,
    /// The text below it: the meaning of the marks.
    pub note: String,
    /// A file that the first cell of each row links to; no links if empty.
    pub links: Vec<String>,
}

impl HtmlTable {
    /// Transposes the table. The first `leading` columns are names and their attributes; the other columns become rows, whose names get
    /// this heading.
    pub fn turned(self, leading: usize, heading: &str) -> HtmlTable {
        let text = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
        let named = |row: &Vec<String>| {
            let more = (1..leading).map(|at| match self.columns[at].numeric {
                true => format!("{} {}", text(row, at), self.columns[at].name),
                false => format!("{} {}", self.columns[at].name, text(row, at)),
            });
            HtmlColumn { name: text(row, 0), explanation: more.collect::<Vec<_>>().join(", "), numeric: true }
        };
        let first = HtmlColumn { name: heading.to_owned(), ..HtmlColumn::default() };
        let columns = std::iter::once(first).chain(self.rows.iter().map(named)).collect();
        let cells = |at: usize| self.rows.iter().map(move |row| text(row, at));
        let row = |at: usize| std::iter::once(self.columns[at].name.clone()).chain(cells(at)).collect();
        let rows = (leading..self.columns.len()).map(row).collect();
        let marks = self.marks.iter().map(|&(row, column, mark)| (column - leading, row + 1, mark)).collect();
        HtmlTable { columns, rows, marks, links: Vec::new(), caption: self.caption, note: self.note }
    }
}

/// A mark on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The best of its kind.
    Best,
    /// Equivalent to the best, by a test.
    Equivalent,
    /// Statistically significant.
    Significant,
}

impl Mark {
    fn class(self) -> &'static str {
        match self {
            Mark::Best => "best",
            Mark::Equivalent => "equivalent",
            Mark::Significant => "significant",
        }
    }
}

/// A figure inside the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    /// A description of its content.
    pub caption: String,
    /// An SVG document.
    pub svg: String,
    /// The same figure for narrow screens; empty if `svg` fits narrow screens.
    pub narrow: String,
    /// The names of the files of the figure, beside the report.
    pub files: Vec<String>,
}

/// The content of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The title.
    pub title: String,
    /// The question that the experiment answers.
    pub question: Option<String>,
    /// The answer in words, one sentence per item.
    pub answer: Vec<String>,
    /// The tables that support the answer, shown after its sentences.
    pub lead: Vec<HtmlTable>,
    /// All other tables.
    pub summary: Vec<HtmlTable>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Whether figures precede the tables.
    pub figures_first: bool,
    /// The plan, as TOML.
    pub plan_toml: String,
    /// The commands that reproduce the results.
    pub reproduce: Vec<String>,
    /// Facts that the reader must know: warnings, limits.
    pub notes: Vec<String>,
    /// Names and values: version, seed, digests.
    pub provenance: Vec<(String, String)>,
    /// The data of the interactive part.
    pub explorer: Option<ExplorerData>,
    /// The data of the part that simulates, which needs the interactive part.
    pub simulator: Option<SimulatorData>,
}

/// Figures wider than this, in points, are shown at the full width of the page and do not fit on a phone.
pub(crate) const ROOMY: f64 = 300.0;

const STYLE: &str = concat!(
    include_str!("report.css"),
    include_str!("explore/explore.css"),
    include_str!("explore/simulate.css"),
    include_str!("vendor/uPlot.min.css"),
    "\n"
);
const SCRIPT: &str = include_str!("report.js");
const PLOT: &str = include_str!("vendor/uPlot.iife.min.js");

/// Returns the content security policy: only these scripts and this style, and nothing from outside; with `engine` also WebAssembly and a
/// worker.
fn security(scripts: &[&str], engine: bool) -> String {
    let hash = |text: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let scripts = scripts.iter().map(hash).collect::<Vec<_>>().join(" ");
    let style = hash(&format!("\n{STYLE}").as_str());
    let (wasm, worker) = if engine { (" 'wasm-unsafe-eval'", "worker-src blob:; ") } else { ("", "") };
    format!(
        "default-src 'none'; script-src {scripts}{wasm}; {worker}style-src {style}; base-uri 'none'; form-action 'none'"
    )
}

/// Formats the page.
pub fn render(report: &Report) -> String {
    let scripts: &[&str] = match (&report.explorer, &report.simulator) {
        (Some(_), Some(_)) => &[PLOT, EXPLORE, SIMULATE],
        (Some(_), None) => &[PLOT, EXPLORE],
        (None, _) => &[],
    };
    let scripts: Vec<String> = scripts.iter().chain([&SCRIPT]).map(|script| format!("\n{script}")).collect();
    let policy = security(&scripts.iter().map(String::as_str).collect::<Vec<_>>(), report.simulator.is_some());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(policy);
                title { (report.title) }
                style { (PreEscaped("\n")) (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.brand { "Plimsoll report" }
                    h1 { (report.title) }
                    @if let Some(question) = &report.question { p.question { (question) } }
                    (contents(report))
                }
                main { (content(report)) }
                @for script in &scripts { script { (PreEscaped(script)) } }
            }
        }
    };
    printable(&page.into_string())
}

/// Formats the sections.
fn content(report: &Report) -> Markup {
    let figures = section("figures", "Figures", &report.figures, |figures| {
        html! { div.figures { @for (nth, one) in figures.iter().enumerate() { (figure(nth + 1, one)) } } }
    });
    let copied = |text: &str| html! { pre.copy { code { (text) } } };
    html! {
        (answer(report))
        @if !report.notes.is_empty() {
            aside.notes aria-label="Notes" { ul { @for note in &report.notes { li { (note) } } } }
        }
        @if report.figures_first { (figures) }
        (section("results", "Results", &report.summary, |tables| html! { @for one in tables { (table(one)) } }))
        @if !report.figures_first { (figures) }
        @if let Some(explorer) = &report.explorer { (explorer.section()) }
        @if let Some(simulator) = &report.simulator { (simulator.section()) }
        (section("reproduce", "Run it again", &report.reproduce, |commands| copied(&commands.join("\n"))))
        (section("plan", "Plan", report.plan_toml.as_bytes(), |_| copied(&report.plan_toml)))
        (section("provenance", "Provenance", &report.provenance, |facts| {
            definitions(facts.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        }))
    }
}

/// Formats a section, or nothing if it has no items.
fn section<T>(id: &str, title: &str, items: &[T], content: impl FnOnce(&[T]) -> Markup) -> Markup {
    html! { @if !items.is_empty() { section id=(id) { h2 { (title) } (content(items)) } } }
}

/// Formats the answer: sentences first, then the supporting tables; many sentences are collapsed after the tables.
fn answer(report: &Report) -> Markup {
    let sentences = html! { @for text in &report.answer { p { (text) } } };
    let tables = html! { @for one in &report.lead { (table(one)) } };
    html! {
        @if !report.answer.is_empty() || !report.lead.is_empty() {
            section id="answer" {
                h2 { "Answer" }
                @if report.answer.len() > MANY {
                    // The tables state the content of the sentences in less space.
                    (tables)
                    details { summary { "In " (report.answer.len()) " sentences" } (sentences) }
                } @else {
                    (sentences) (tables)
                }
            }
        }
    }
}

/// Formats links to the existing sections.
fn contents(report: &Report) -> Markup {
    let results = ("results", "Results", !report.summary.is_empty());
    let figures = ("figures", "Figures", !report.figures.is_empty());
    let sections = [
        ("answer", "Answer", !report.answer.is_empty() || !report.lead.is_empty()),
        if report.figures_first { figures } else { results },
        if report.figures_first { results } else { figures },
        ("explore", "Explore", report.explorer.is_some()),
        ("simulate", "Simulate", report.simulator.is_some()),
        ("reproduce", "Run it again", !report.reproduce.is_empty()),
        ("plan", "Plan", !report.plan_toml.is_empty()),
        ("provenance", "Provenance", !report.provenance.is_empty()),
    ];
    html! {
        nav {
            @for (id, name, _) in sections.iter().filter(|(.., present)| *present) {
                // The script shows the interactive part and its link.
                a href={ "#" (id) } hidden[["explore", "simulate"].contains(id)] { (name) }
            }
        }
    }
}

fn table(table: &HtmlTable) -> Markup {
    let class = |row: usize, at: usize| {
        let numeric = table.columns.get(at).is_some_and(|column| column.numeric);
        let marked = table.marks.iter().filter(|(in_row, column, _)| (*in_row, *column) == (row, at));
        let classes = numeric.then_some("number").into_iter().chain(marked.map(|(.., mark)| mark.class()));
        Some(classes.collect::<Vec<_>>().join(" ")).filter(|classes| !classes.is_empty())
    };
    let text = |cell: &str| html! { @if cell.is_empty() { span.absent { "–" } } @else { (cell) } };
    let defined = table.columns.iter().filter(|column| !column.explanation.is_empty());
    let defined: Vec<(&str, &str)> = defined.map(|one| (one.name.as_str(), one.explanation.as_str())).collect();
    html! {
        // The caption is outside of the part that scrolls horizontally on a phone.
        div.card {
            @if !table.caption.is_empty() { p.caption { (table.caption) } }
            div.scroll tabindex="0" {
                table aria-label=(table.caption) {
                    thead {
                        tr {
                            @for HtmlColumn { name, explanation, numeric } in &table.columns {
                                th scope="col" class=[numeric.then_some("number")] {
                                    @if explanation.is_empty() { (name) } @else { abbr title=(explanation) { (name) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (row, cells) in table.rows.iter().enumerate() {
                            (PreEscaped("\n"))
                            tr {
                                @for (at, cell) in cells.iter().enumerate() {
                                    td class=[class(row, at)] {
                                        @match table.links.get(row).filter(|_| at == 0) {
                                            Some(file) => { a href=(link(file)) { (text(cell)) } }
                                            None => { (text(cell)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            // The meanings of columns, for readers without a mouse.
            @if !defined.is_empty() {
                details.definitions { summary { "Definitions" } (definitions(defined.into_iter())) }
            }
            @if !table.note.is_empty() { p.legend { (table.note) } }
        }
    }
}

/// Formats names and their values.
fn definitions<'a>(items: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    html! { dl { @for (name, value) in items { div { dt { (name) } dd { (value) } } } } }
}

fn figure(number: usize, figure: &Figure) -> Markup {
    let drawn = |svg: &str, prefix: &str| PreEscaped(inlined(svg, &format!("{prefix}{number}")));
    html! {
        figure.card.wide[width(&figure.svg) > ROOMY] id={ "figure" (number) } {
            @if figure.narrow.is_empty() {
                (drawn(&figure.svg, "f"))
            } @else {
                div.roomy { (drawn(&figure.svg, "f")) }
                div.narrow { (drawn(&figure.narrow, "n")) }
            }
            figcaption {
                b { "Figure " (number) "." } " " (figure.caption)
                @for file in &figure.files { " " a.file href=(link(file)) { (file) } }
            }
        }
    }
}

/// Formats a section of the interactive part with its data, which no browser shows: type, id and text of each block. The texts are not
/// escaped and contain no `<` (see `plimsoll_base::escape::script_json`).
pub(crate) fn data_section(id: &str, title: &str, blocks: &[(&str, &str, &str)]) -> Markup {
    html! {
        section id=(id) hidden {
            h2 { (title) }
            @for (kind, name, text) in blocks { script type=(kind) id={ (id) "-" (name) } { (PreEscaped(text)) } }
        }
    }
}

/// Returns the width that an SVG declares, or 0.
pub(crate) fn width(svg: &str) -> f64 {
    let value = svg.split(" width=\"").nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Formats a relative link to a file. All characters except plain ones are percent-encoded, so that no part of a name is a URL scheme.
fn link(file: &str) -> String {
    let mut text = String::from("./");
    for byte in file.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a string succeeds");
        }
    }
    text
}

/// Returns only the SVG element, with unique ids: with equal ids, one figure could clip another.
fn inlined(svg: &str, prefix: &str) -> String {
    let from = svg.find("<svg").unwrap_or(svg.len());
    let mut text = svg[from..].to_owned();
    for reference in [" id=\"", "url(#", "href=\"#"] {
        text = text.replace(reference, &format!("{reference}{prefix}-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_base::escape::script_json;
    use plimsoll_charts::figure::{Axis, Chart, Join, Series, lines};

    const EVIL: &str = "<b onclick='x'>\"&\u{1}";

    fn evil_report() -> Report {
        let text = || EVIL.to_owned();
        let series = Series { label: text(), ..Series::new(EVIL, vec![(0.0, 1.0), (1.0, 2.0)]) };
        let svg = lines(&Chart::new(Axis::number(EVIL), Axis::number(EVIL)), Join::Straight, &[series]);
        let figure = Figure { caption: text(), narrow: svg.clone(), svg, files: vec!["javascript:alert(1)\"".into()] };
        Report {
            title: text(),
            question: Some(text()),
            answer: vec![text()],
            lead: vec![HtmlTable { caption: text(), ..HtmlTable::default() }],
            summary: vec![HtmlTable {
                caption: text(),
                columns: vec![HtmlColumn { name: text(), explanation: text(), numeric: true }],
                rows: vec![vec![text()], vec![String::new()], vec![text(), text()]],
                marks: vec![(0, 0, Mark::Best), (2, 1, Mark::Equivalent), (9, 9, Mark::Best)],
                note: text(),
                links: vec![text()],
            }],
            figures: vec![figure.clone(), figure],
            figures_first: false,
            plan_toml: text(),
            reproduce: vec![text()],
            notes: vec![text()],
            provenance: vec![(text(), text())],
            explorer: Some(ExplorerData { header: format!("{:?}", EVIL), block: String::new() }),
            simulator: None,
        }
    }

    #[test]
    fn everything_is_escaped() {
        let page = render(&evil_report());
        assert!(!page.contains("<b onclick"));
        assert!(page.contains("<h1>&lt;b onclick='x'&gt;&quot;&amp;\u{FFFD}</h1>"));
        assert!(page.contains("href=\"./javascript%3Aalert%281%29%22\""));
        assert!(page.contains("class=\"number best\"") && page.contains("class=\"absent\""));
    }

    #[test]
    fn json_in_a_script_reads_back_and_scripts_stay_as_they_are() {
        let name = "<a>\u{85}\u{1FFFE}é";
        let json = script_json(&serde_json::json!(name).to_string());
        assert!(!json.contains('<') && printable(&json) == json, "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), name);
        for fixed in [STYLE, SCRIPT, PLOT, EXPLORE, SIMULATE] {
            assert_eq!(printable(fixed), fixed, "its digest is in the content security policy");
        }
    }

    #[test]
    fn no_id_is_given_twice_and_every_reference_is_met() {
        let page = render(&evil_report());
        let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(ids.contains(&"f1-clip0") && ids.contains(&"f2-clip0"));
        for reference in page.split("url(#").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(ids.contains(&reference), "{reference}");
        }
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    }

    #[test]
    fn a_turned_table_has_its_marks_where_their_cells_are() {
        let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let column =
            |&name: &&str| HtmlColumn { name: name.to_owned(), numeric: name != "job size", ..HtmlColumn::default() };
        let table = HtmlTable {
            columns: ["job size", "jobs", "drf", "fifo"].iter().map(column).collect(),
            rows: vec![text(&["1-50", "7", "a", "b"]), text(&["all", "9", "c", "d"])],
            marks: vec![(1, 2, Mark::Best)],
            ..HtmlTable::default()
        };
        let turned = table.turned(2, "policy");
        assert_eq!(turned.rows, [text(&["drf", "a", "c"]), text(&["fifo", "b", "d"])]);
        assert_eq!(turned.marks, [(0, 2, Mark::Best)]);
        let heads: Vec<(&str, &str)> =
            turned.columns.iter().map(|one| (one.name.as_str(), one.explanation.as_str())).collect();
        assert_eq!(heads, [("policy", ""), ("1-50", "7 jobs"), ("all", "9 jobs")]);
    }

    #[test]
    fn the_page_loads_nothing() {
        // Names, not addresses to load: a namespace, and the origin of a library in a comment.
        let page = render(&evil_report())
            .replace("http://www.w3.org/2000/svg", "")
            .replace("/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "");
        for outside in ["http:", "https:", "src=", "@import", "url(\"", "url('", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn an_empty_report_is_a_page_without_sections() {
        let page = render(&Report { title: "Nothing".into(), ..Report::default() });
        assert!(page.contains("<h1>Nothing</h1>") && !page.contains("<section"));
        assert_eq!(page, render(&Report { title: "Nothing".into(), ..Report::default() }));
    }
}
