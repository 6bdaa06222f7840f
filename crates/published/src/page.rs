//! The table of judged numbers as CSV, and the generated page.

use std::fmt::Write;

use super::evaluate::{Judged, NumberVerdict};
use super::numbers::NumberKind;
use super::target::PublishedTarget;
use plimsoll_metrics::Interval;

/// The counts of verdicts: within, outside, not run.
pub fn counts<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> [usize; 3] {
    let mut counts = [0; 3];
    for judged in judged {
        counts[match judged.verdict {
            NumberVerdict::Within => 0,
            NumberVerdict::Outside => 1,
            NumberVerdict::NotRun(_) => 2,
        }] += 1;
    }
    counts
}

/// Formats a value with up to ten significant digits.
pub(crate) fn shown(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 9 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 12) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn ours(judged: &Judged) -> String {
    match (&judged.exact, judged.ours) {
        (Some(exact), _) => exact.clone(),
        (None, Some(Interval { mean, .. })) => shown(mean),
        (None, None) => String::new(),
    }
}

/// Formats the interval of our value; empty for a single run.
fn interval(judged: &Judged) -> String {
    match judged.ours {
        Some(Interval { low: Some(low), high: Some(high), n, .. }) if n > 1 => {
            format!("{} to {}", shown(low), shown(high))
        }
        _ => String::new(),
    }
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns the table of all numbers of the targets as CSV.
pub fn csv(targets: &[PublishedTarget], judged: &[Vec<Judged>]) -> String {
    let mut text =
        "target,id,plan,with,reading,ours,interval,seeds,published,unit,tolerance,kind,verdict,reason,source\n"
            .to_owned();
    for (target, judged) in targets.iter().zip(judged) {
        for one in judged {
            let row = &one.row;
            let seeds = one.ours.map_or(String::new(), |ours| ours.n.to_string());
            let fields = [
                &target.name,
                &row.id,
                &row.plan,
                &row.with,
                &row.reading,
                &ours(one),
                &interval(one),
                &seeds,
                &row.value,
                &row.unit,
                &row.tolerance_text,
                row.kind.name(),
                one.verdict.name(),
                &one.reason,
                &row.source,
            ];
            text += &fields.map(field).join(",");
            text.push('\n');
        }
    }
    text
}

/// The columns of counts in tables of the page.
fn count_cells(counts: [usize; 3]) -> String {
    let [within, outside, not_run] = counts;
    format!("{within} | {outside} | {not_run}")
}

/// Returns the page about all targets in Markdown.
pub fn page(targets: &[PublishedTarget], judged: &[Vec<Judged>]) -> String {
    let of_kind = |judged: &[Judged], kind: NumberKind| counts(judged.iter().filter(|one| one.row.kind == kind));
    let all: Vec<&Judged> = judged.iter().flatten().collect();
    let published = counts(all.iter().copied().filter(|one| one.row.kind == NumberKind::Published));
    let ran = published[0] + published[1];
    let mut text = String::from(
        "# Published results of other groups\n\n\
         This page shows numbers of other groups beside ours: results that Plimsoll was not built for. Each number has a tolerance that was\n\
         fixed before the first run. `plimsoll published NAME` repeats a table.\n\n\
         <!-- test: parse -->\n```sh\nplimsoll published fgd --data ../shared/data\nplimsoll published --data ../shared/data --page docs/published.md    # writes this page\n```\n\n",
    );
    let _ = write!(
        text,
        "{} of {ran} published numbers that were run are within their tolerance; {} were not run because their input is not available.\n\n\
         | target | published: within | outside | not run | own and derived: within | outside | not run |\n|---|---|---|---|---|---|---|\n",
        published[0], published[2]
    );
    for (target, judged) in targets.iter().zip(judged) {
        let others = counts(judged.iter().filter(|one| one.row.kind != NumberKind::Published));
        let _ = writeln!(
            text,
            "| [{}](#{}) | {} | {} |",
            target.name,
            target.name,
            count_cells(of_kind(judged, NumberKind::Published)),
            count_cells(others)
        );
    }
    text += "\n- `published`: printed in a paper or stored by its authors. `own` and `derived`: computed by an independent program that follows the\n  \
             same protocol. Only the first kind counts as published.\n\
             - `not run`: an input is missing, or differs from the declared one.\n\
             - Our value is a mean with a 95 % confidence interval where there are seeds.\n";
    for (target, judged) in targets.iter().zip(judged) {
        text += &section(target, judged);
    }
    text + OWN_TARGETS
}

/// The section on targets of the reader.
const OWN_TARGETS: &str = "\n## Add numbers\n\n\
A target is a folder with `target.toml`, plans, and `numbers.csv`. `plimsoll published --targets DIR` reads another folder of targets. A row\n\
for another trace, policy or rate needs no change of a plan:\n\n\
| column | content |\n|---|---|\n\
| `id` | a unique name: small letters, digits and `_` |\n\
| `plan` | a plan of `target.toml`; empty if the reading is an expression on other ids |\n\
| `with` | parameters, separated by `;`: `NAME=VALUE` of the preparation, `set KEY=VALUE` of the plan, `policy=NAME`, `seed=N` or `seed=FROM..TO` |\n\
| `reading` | the number that is read from the run; an unknown name is an error that lists all |\n\
| `value` | the published value: a number, a fraction, or `>`, `>=`, `<`, `<=` with a number |\n\
| `unit`, `source` | texts |\n\
| `tolerance` | `exact`, a distance (`0.01`), or a part of the value (`0.1 %`) |\n\
| `kind` | `published`, `own` or `derived` |\n\n\
`-o DIR` keeps the prepared inputs beside a copy of each plan, so that `plimsoll run` executes it in that folder.\n";

/// Returns the section of a target.
fn section(target: &PublishedTarget, judged: &[Judged]) -> String {
    let mut text = format!("\n<a id=\"{}\"></a>\n\n## {}\n\n{}\n", target.name, target.title, target.source.trim());
    if !target.note.is_empty() {
        text += &format!("\n{}\n", target.note.trim());
    }
    if !target.parameters.is_empty() {
        text += "\nParameters that the paper does not give:\n\n| parameter | chosen | effect of its range |\n|---|---|---|\n";
        for parameter in &target.parameters {
            let _ = writeln!(text, "| {} | {} | {} |", parameter.name, parameter.chosen, parameter.effect);
        }
    }
    text += "\n| number | ours | published | unit | tolerance | kind | verdict |\n|---|---|---|---|---|---|---|\n";
    for one in judged {
        let row = &one.row;
        let spread = match interval(one) {
            interval if interval.is_empty() => String::new(),
            interval => format!(" ({interval})"),
        };
        let verdict = match &one.verdict {
            NumberVerdict::Outside => format!("outside: {}", one.reason),
            verdict => verdict.name().to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} | {}{spread} | {} | {} | {} | {} | {verdict} |",
            row.id,
            ours(one),
            row.value,
            row.unit,
            row.tolerance_text,
            row.kind.name()
        );
    }
    text
}
