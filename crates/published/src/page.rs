//! The table of judged numbers as CSV, and the generated page.

use std::fmt::Write;

use super::claims::{ClaimVerdict, JudgedClaim};
use super::evaluate::{Evaluated, Judged, NumberVerdict};
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

/// Returns a field of a CSV file.
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns the table of all numbers of the targets as CSV.
pub fn csv(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> String {
    let mut text =
        "target,id,plan,with,reading,ours,interval,seeds,published,unit,tolerance,kind,verdict,reason,source\n"
            .to_owned();
    for (target, evaluated) in targets.iter().zip(evaluated) {
        for one in &evaluated.numbers {
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

/// Returns the table of all claims of the targets as CSV.
pub fn claims_csv(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> String {
    let mut text =
        "target,id,claim,published,first_mean,second_mean,difference,low,high,pairs,held,unit,over,verdict,reason,source\n"
            .to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), shown);
    for (target, evaluated) in targets.iter().zip(evaluated) {
        for one in &evaluated.claims {
            let (row, difference) = (&one.row, one.difference);
            let reason = match &one.verdict {
                ClaimVerdict::NotRun(cause) => cause.as_str(),
                _ => "",
            };
            let fields = [
                &target.name,
                &row.id,
                &row.claim,
                &row.published,
                &number(one.means.map(|means| means[0])),
                &number(one.means.map(|means| means[1])),
                &number(difference.map(|difference| difference.mean)),
                &number(difference.and_then(|difference| difference.low)),
                &number(difference.and_then(|difference| difference.high)),
                &difference.map_or(String::new(), |difference| difference.n.to_string()),
                &one.held.to_string(),
                &row.unit,
                &row.over,
                one.verdict.name(),
                reason,
                &row.source,
            ];
            text += &fields.map(field).join(",");
            text.push('\n');
        }
    }
    text
}

/// Formats a value with four significant digits, or the digits before the point if there are more.
pub fn rounded(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 12) as usize)
}

/// Returns the table of claims of all targets for the page; empty without claims.
fn claims_section(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> String {
    let all: Vec<(&PublishedTarget, &JudgedClaim)> = targets
        .iter()
        .zip(evaluated)
        .flat_map(|(target, evaluated)| evaluated.claims.iter().map(move |claim| (target, claim)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\n<a id=\"claims\"></a>\n\n## Comparisons over repetitions\n\n\
         Comparisons that papers report from one run or a few, repeated here over further inputs. Each pair of runs has the same input; the\n\
         difference is positive if the pair agrees with the comparison. A comparison *holds* if the 95 % confidence interval of the mean\n\
         difference is above 0, and is *open* if the interval includes 0: the published difference may be right, but these repetitions do not\n\
         show it. Our runs follow the rules of the sections below, which are not the authors' programs, so that an open comparison is no\n\
         statement about the authors' systems.\n\n\
         | target | comparison | published | ours | mean difference (95 % interval) | pairs that agree | over | verdict |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (target, one) in all {
        let row = &one.row;
        let means = one.means.map_or(String::new(), |[a, b]| format!("{}, {}", rounded(a), rounded(b)));
        let difference = one.difference.map_or(String::new(), |difference| {
            let ends = difference.low.zip(difference.high);
            let ends = ends.map_or(String::new(), |(low, high)| format!(" ({} to {})", rounded(low), rounded(high)));
            format!("{}{ends} {}", rounded(difference.mean), row.unit).trim_end().to_owned()
        });
        let pairs = one.difference.map_or(String::new(), |difference| format!("{} of {}", one.held, difference.n));
        let verdict = match &one.verdict {
            ClaimVerdict::NotRun(cause) => format!("not run: {cause}"),
            verdict => verdict.name().to_owned(),
        };
        let _ = writeln!(
            text,
            "| [{}](#{}) | {} | {} | {means} | {difference} | {pairs} | {} | {verdict} |",
            target.name, target.name, row.claim, row.published, row.over
        );
    }
    text
}

/// The columns of counts in tables of the page.
fn count_cells(counts: [usize; 3]) -> String {
    let [within, outside, not_run] = counts;
    format!("{within} | {outside} | {not_run}")
}

/// Returns the page about all targets in Markdown.
pub fn page(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> String {
    let of_kind = |judged: &[Judged], kind: NumberKind| counts(judged.iter().filter(|one| one.row.kind == kind));
    let all: Vec<&Judged> = evaluated.iter().flat_map(|evaluated| &evaluated.numbers).collect();
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
    for (target, evaluated) in targets.iter().zip(evaluated) {
        let judged = &evaluated.numbers;
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
    text += &claims_section(targets, evaluated);
    for (target, evaluated) in targets.iter().zip(evaluated) {
        text += &section(target, evaluated);
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
A row of `claims.csv` compares two sides of a plan: `id`, `plan`, `with` (parameters of both sides, with the seeds of the pairs), `first`,\n\
`order` (`<` or `>`), `second` (parameters of each side, or `values` and numbers), `reading`, and the texts `claim`, `published`, `unit`,\n\
`over` (what differs between the pairs) and `source`.\n\n\
`-o DIR` keeps the prepared inputs beside a copy of each plan, so that `plimsoll run` executes it in that folder.\n";

/// Returns the section of a target.
fn section(target: &PublishedTarget, evaluated: &Evaluated) -> String {
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
    if !evaluated.predictions.is_empty() {
        let _ = write!(
            text,
            "\nThe file `experiments/published/{}/predictions.csv` has a predicted completion time and a 95 % interval for each of {} \
             jobs under a policy. It was committed before it was compared with the physical runs, and is unchanged.\n",
            target.name,
            evaluated.predictions.len()
        );
    }
    text += "\n| number | ours | published | unit | tolerance | kind | verdict |\n|---|---|---|---|---|---|---|\n";
    for one in &evaluated.numbers {
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
