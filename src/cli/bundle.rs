//! `plimsoll bundle`: packs results into one file that others can check and run again, and checks such files.
//!
//! A bundle is a zip file with the plan, input files, tables, figures, the commands that reproduce them, and an RO-Crate description.
//! Results that are incomplete, or with changed inputs, are refused. The same results give the same bytes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Context;
use crate::error::{Error, Result};
use crate::output::archive::{Content, Sum, write};
use crate::output::bundle::{BundleContents, collect};
use crate::output::crate_json::{Author, Publication, describe, is_orcid};
use crate::output::escape::printable;
use crate::output::files::{PUBLISHED_TARGETS, REPORT, RO_CRATE, RUN};
use crate::output::numbers::count;
use crate::output::provenance::{COMMIT, VERSION};
use crate::output::shell;
use crate::output::verify::verify;

/// Pack results for publication: plan, input files, tables, figures and an RO-Crate description, in one zip file
///
/// Incomplete results are rejected, and so are input files that have changed since the run or are outside the current
/// folder. The same results give the same bytes.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  plimsoll bundle results/facebook
  plimsoll bundle results/load-sweep -o load-sweep.zip --license CC-BY-4.0 \\
      --author 'Josiah Carberry' --orcid 0000-0002-1825-0097
  plimsoll bundle --verify load-sweep.zip")]
pub struct Args {
    /// A folder that `run` or `replay -o` has written, or with --verify a bundle
    path: PathBuf,
    /// The file to write [default: NAME.zip]
    #[arg(long, short, value_name = "RO_CRATE")]
    output: Option<PathBuf>,
    /// An author of the results; may be given several times
    #[arg(long, value_name = "NAME")]
    author: Vec<String>,
    /// Their ORCID iDs, in the order of the authors
    #[arg(long, value_name = "ID", requires = "author")]
    orcid: Vec<String>,
    /// The licence of the results, by its SPDX name, such as CC-BY-4.0
    #[arg(long, value_name = "SPDX")]
    license: Option<String>,
    /// Pack input files up to this size; only the digests of larger files are kept
    #[arg(long, value_name = "MIB", default_value_t = 100)]
    largest: u64,
    /// Pack incomplete results and list the missing or damaged runs in the bundle
    #[arg(long)]
    incomplete: bool,
    /// Check that a bundle is complete and unmodified
    #[arg(long, conflicts_with_all = ["output", "author", "license", "largest", "incomplete"])]
    verify: bool,
}

pub fn run(args: &Args, context: &Context) -> Result<()> {
    if args.verify {
        let found = verify(&args.path)?;
        let (path, files, size) = (args.path.display(), count(found.files as u64, "file"), found.size);
        return context.out(&format!("{path}: {files}, {size} bytes when unpacked, all unmodified\n"));
    }
    let authors = authors(args)?;
    if let Some(licence) = args.license.as_ref().filter(|name| !name.chars().all(is_spdx)) {
        return Err(Error::plan("--license", format!("'{licence}'"), "the SPDX name of a licence, such as CC-BY-4.0"));
    }
    let largest = args.largest.saturating_mul(1 << 20);
    let packed = collect(&args.path, largest)?;
    if packed.missing.parts > 0 {
        let examples = &packed.missing.examples;
        let shown: Vec<&str> = examples.iter().take(5).map(String::as_str).collect();
        let more = if examples.len() > shown.len() { "; .." } else { "" };
        let lacking = format!("{} ({}{more})", count(packed.missing.parts as u64, "part"), shown.join("; "));
        if !args.incomplete {
            // The recorded command is not printed: the folder may come from another person.
            let remedy = match packed.replay {
                None => "`plimsoll run` and its plan",
                Some(_) => "`plimsoll replay` and the same arguments",
            };
            let problem = format!(
                "{} is not complete: {lacking} missing or damaged; complete it with {remedy}, or pack it as it is with \
                 --incomplete",
                args.path.display()
            );
            return Err(Error::Mismatch { problem });
        }
        context.warn(&format!("not complete: {lacking} missing or damaged; the bundle lists them"));
    }
    let output = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.zip", packed.name)));
    let mut entries = entries(&packed)?;
    let sums: BTreeMap<String, Sum> =
        entries.iter().map(|(name, content)| Ok((name.clone(), content.sum()?))).collect::<Result<_>>()?;
    let about = Publication {
        name: packed.name.clone(),
        question: packed.question.clone().unwrap_or_else(|| format!("Results of the experiment {}", packed.name)),
        date: packed.made["finished_unix_s"].as_u64().map_or_else(|| "1970-01-01".to_owned(), date),
        authors,
        licence: args.license.clone(),
        command: packed.made["command"].as_str().unwrap_or_default().to_owned(),
        plan: packed.replay.is_none().then(|| plan_at(&packed)),
        results: results(&packed),
        inputs: packed.inputs.keys().cloned().collect(),
        elsewhere: packed.elsewhere.clone(),
    };
    let description = describe(&about, &sums);
    entries.insert(RO_CRATE.to_owned(), Content::Bytes(description.into_bytes()));
    write(&output, &packed.name, &entries, &sums)?;
    if !packed.unlisted.is_empty() {
        let shown: Vec<&str> = packed.unlisted.iter().take(5).map(String::as_str).collect();
        let more = if packed.unlisted.len() > shown.len() { ", .." } else { "" };
        context.warn(&format!("not packed, since they do not belong to these results: {}{more}", shown.join(", ")));
    }
    for (name, sum) in &packed.elsewhere {
        context.print_message(&format!("{name} ({} bytes) is not packed, only its digest", sum.size));
    }
    if args.author.is_empty() || args.license.is_none() {
        context
            .print_message("without --author and --license the bundle names neither its author nor its terms of use");
    }
    context.out(&format!("{}\n", output.display()))?;
    let runs = if packed.has_runs { format!("{} and ", count(packed.runs as u64, "run")) } else { String::new() };
    context.print_message(&format!("{runs}{}", count(entries.len() as u64, "file")));
    Ok(())
}

fn is_spdx(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-.+".contains(c)
}

fn authors(args: &Args) -> Result<Vec<Author>> {
    if let Some(wrong) = args.orcid.iter().find(|orcid| !is_orcid(orcid)) {
        let expected = "an ORCID iD with a correct check digit, such as 0000-0002-1825-0097";
        return Err(Error::plan("--orcid", format!("'{wrong}'"), expected));
    }
    if args.orcid.len() > args.author.len() {
        return Err(Error::plan("--orcid", args.orcid.len(), "at most one for every --author"));
    }
    let orcid = |at: usize| args.orcid.get(at).cloned();
    Ok(args.author.iter().enumerate().map(|(at, name)| Author { name: name.clone(), orcid: orcid(at) }).collect())
}

fn results(packed: &BundleContents) -> String {
    format!("results/{}/", packed.name)
}

/// Returns the path of the plan in the bundle.
fn plan_at(packed: &BundleContents) -> String {
    format!("{}{}.toml", packed.base, packed.name)
}

/// Returns all files of a bundle except its description. Errors: an input has the path of the plan.
fn entries(packed: &BundleContents) -> Result<BTreeMap<String, Content>> {
    let bytes = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    let mut entries = BTreeMap::new();
    entries.insert("README.md".to_owned(), bytes(&readme(packed)?));
    entries.insert("CITATION.cff".to_owned(), bytes(include_str!("../../CITATION.cff")));
    if let Some(command) = &packed.replay {
        // This file ensures that the base folder exists, even without inputs.
        entries.insert(format!("{}command.txt", packed.base), bytes(&format!("{command}\n")));
    } else {
        // A plan's requests for figures are not part of a run's identity; they are stored with the results.
        let figures = if packed.figures.is_empty() { String::new() } else { format!("\n{}", packed.figures) };
        entries.insert(plan_at(packed), bytes(&format!("{}{figures}", packed.plan)));
    }
    for (name, input) in &packed.inputs {
        if entries.insert(name.clone(), input.clone()).is_some() {
            let problem =
                format!("the plan reads {name}, which is also the path of the plan in the bundle: rename one");
            return Err(Error::Mismatch { problem });
        }
    }
    for (name, file) in &packed.files {
        entries.insert(format!("{}{name}", results(packed)), file.clone());
    }
    Ok(entries)
}

/// Describes the tables and statistics, one line per item; without runs, the figures.
fn tables(packed: &BundleContents) -> String {
    let name = &packed.name;
    match packed.has_runs {
        true => format!(
            "- `results/{name}/statistics/`: means and paired differences with 95 % confidence intervals, as Parquet and CSV\n\
             - `results/{name}/**/runs/`, `users/`, ..: all tables; `plimsoll schema` describes their columns\n"
        ),
        false if packed.replay.is_some() => String::new(),
        false => {
            format!("- `results/{name}/figures/`: the figures, with their data as CSV; tables, if any, beside them\n")
        }
    }
}

fn has_report(packed: &BundleContents) -> bool {
    packed.files.contains_key(REPORT)
}

/// Returns the commands that reproduce the results in a folder `again`, and compare them.
///
/// Errors: the results have neither a plan nor the command of a replay.
fn commands(packed: &BundleContents) -> Result<String> {
    let results = format!("results/{}", packed.name);
    let compare = match packed.has_runs {
        true => shell::line(["plimsoll", "compare", &results, "again"]),
        false => shell::line(["diff", "-r", "-x", RUN, &results, "again"]),
    };
    let Some(replay) = &packed.replay else {
        return Ok(format!("{}\n{compare}\n", shell::line(["plimsoll", "run", &plan_at(packed), "-o", "again"])));
    };
    let words = shell::words(replay).unwrap_or_default();
    let is_of = |command: &str| {
        words.first().is_some_and(|word| word == "plimsoll") && words.get(1).is_some_and(|word| word == command)
    };
    if is_of("published") {
        // The targets are among the results; `DATA` is the folder of the inputs that the targets declare.
        let named = words.iter().skip(2).map(String::as_str);
        let targets = format!("{results}/{PUBLISHED_TARGETS}");
        let more = ["--targets", targets.as_str(), "--data", "DATA", "-o", "again"];
        return Ok(format!(
            "{}\n{compare}\n",
            shell::line(["plimsoll", "published"].into_iter().chain(named).chain(more))
        ));
    }
    if !is_of("replay") {
        let problem = format!("the command of these results is not a replay: {}", replay.escape_debug());
        return Err(Error::Mismatch { problem });
    }
    let mut words = words;
    let up = "../".repeat(packed.base.matches('/').count());
    words.extend(["-o".to_owned(), format!("{up}again")]);
    words.extend(has_report(packed).then(|| "--report".to_owned()));
    Ok(format!("(cd {} && {})\n{compare}\n", shell::quoted(&packed.base), shell::line(words)))
}

/// Returns the instructions to obtain this version of the program.
fn program() -> String {
    let place = match env!("CARGO_PKG_REPOSITORY") {
        "" => "a clone of its repository".to_owned(),
        url => format!("a clone of <{url}>"),
    };
    let at = match COMMIT.map(|commit| commit.split_once('+').map_or((commit, ""), |(commit, _)| (commit, "changed"))) {
        None => format!("at version {VERSION}"),
        Some((commit, "")) => format!("at commit {commit} (`git checkout {commit}`)"),
        Some((commit, _)) => format!("at commit {commit} with changes that were not committed"),
    };
    format!(
        "Plimsoll {VERSION} made these results. It is free software (MIT or Apache 2.0, see `CITATION.cff`). In {place} {at}, \
         with a Rust toolchain ({} or newer) and a C compiler for its linker,\n\n```sh\ncargo install --path . \
         --locked\n```\n\nputs `plimsoll` on your path.",
        env!("CARGO_PKG_RUST_VERSION")
    )
}

fn readme(packed: &BundleContents) -> Result<String> {
    let name = &packed.name;
    let question = packed.question.as_ref().map(|question| format!("{question}\n\n")).unwrap_or_default();
    let what = if packed.has_runs { count(packed.runs as u64, "run") } else { "Results".to_owned() };
    let mut text = format!(
        "# {name}\n\n{question}{what} of an experiment with Plimsoll, a discrete-event simulator for the fair sharing of \
         clusters.\n\n",
    );
    if packed.missing.parts > 0 {
        text += &format!("**Not complete**: {} missing or damaged.\n\n", count(packed.missing.parts as u64, "part"));
        text += &packed.missing.examples.iter().map(|part| format!("- {part}\n")).collect::<String>();
        text.push('\n');
    }
    let plan = match packed.replay {
        None => format!("- `{}`: the plan, with the files that it reads beside it\n", plan_at(packed)),
        Some(_) if !packed.has_runs => format!(
            "- `results/{name}/published.csv`, `claims.csv`: numbers and comparisons with their verdicts; `inputs.csv`: the input files with \
             source, size and digest; `targets/`: plans and expected values\n"
        ),
        Some(_) => format!("- `{}`: the files that were read\n", packed.base),
    };
    if has_report(packed) {
        text += &format!("- `results/{name}/report.html`: figures, plan and provenance on one page\n");
    }
    text += &format!(
        "{}{plan}\
         - `ro-crate-metadata.json`: every file with its SHA-256 digest, the authors, and how the files were made (RO-Crate 1.1)\n\
         - `CITATION.cff`: how to cite the program\n\n",
        tables(packed),
    );
    let verify = shell::line(["plimsoll", "bundle", "--verify", &format!("{name}.zip")]);
    text += &format!(
        "## Reproduction\n\n{}\n\nThen, in the folder of this file:\n\n```sh\n{}```\n\nThe same program on the same \
         plan gives the same bytes, whatever the number of threads or machines, so the comparison finds no difference. `{verify}` \
         checks the digests of the bundle as it was packed.\n",
        program(),
        commands(packed)?
    );
    if !packed.elsewhere.is_empty() {
        text += &format!("\nInput files that are not in this bundle; paths are relative to `{}`:\n\n", packed.base);
        for (name, sum) in &packed.elsewhere {
            text += &format!("- `{name}`: {} bytes, SHA-256 {}\n", sum.size, sum.sha256);
        }
    }
    // Names of policies and files, and the question, may contain any text.
    Ok(printable(&text))
}

/// Returns the date of an instant, in the proleptic Gregorian calendar and UTC: `YYYY-MM-DD`.
fn date(unix_s: u64) -> String {
    // Eras of 400 years begin on the first of March, so that a leap day is the last day of its year.
    let days = unix_s / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (unix_s, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_290_363, "2026-11-21"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(unix_s), expected);
        }
    }
}
