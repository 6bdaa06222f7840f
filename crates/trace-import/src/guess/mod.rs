//! Writes a first mapping for a log: the columns that were recognised and why, and the facts that the user must state.
//!
//! A line with `?` is a question to the user. A mapping with an open question about a required column is not complete, so that importing
//! with it is an error.

mod choose;
mod comma;
mod profile;
mod sample;

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll_base::error::Result;
use plimsoll_sim::workload::Input;
use plimsoll_sim::workload::formats::detect;

use self::choose::{Choice, TimeUnit, time_unit};
use self::comma::CommaStyle;
use self::profile::Profile;
use self::sample::LogSample;
use crate::shipped::recognise;

/// A text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The words that are no names of columns in expressions.
const WORDS: [&str; 10] = ["if", "then", "else", "and", "or", "not", "missing", "true", "false", "row"];

/// The name of a column in an expression: in backticks if it is no identifier, the position if several columns have the name.
fn column(profile: &Profile) -> String {
    let name = profile.name.as_str();
    if profile.is_repeated {
        return format!("${}", profile.place);
    }
    let first = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let plain = first && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') && !WORDS.contains(&name);
    if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}

/// The expression of a column of numbers or times.
fn amount(profile: &Profile) -> String {
    let name = column(profile);
    match profile.commas.style() {
        CommaStyle::Absent => name,
        CommaStyle::Decimal | CommaStyle::Unclear => format!("replace({name}, ',', '.')"),
        CommaStyle::DecimalGroups => format!("replace(replace({name}, '.', ''), ',', '.')"),
        CommaStyle::Groups => format!("replace({name}, ',', '')"),
    }
}

/// The expression of a column in its unit.
fn in_unit(formula: String, unit: &TimeUnit) -> String {
    unit.factor.map_or(formula.clone(), |factor| format!("{formula} * {factor}"))
}

/// Makes a text safe for a comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Guesses a mapping for the files of a log; the first file decides. Errors: the file cannot be read.
pub fn guess(inputs: &[Input]) -> Result<String> {
    let Some(input) = inputs.first() else { return Ok(String::new()) };
    let file = comment(&crate::bind::file_name(input.path()));
    if let Some(format) = detect(input)? {
        return Ok(format!(
            "# {file} is in the format {format}: {}.\n# It needs no mapping: plimsoll trace import {file} --from {format}\n",
            format.describe()
        ));
    }
    for input in inputs {
        if let Some(shipped) = recognise(input)? {
            let file = comment(&crate::bind::file_name(input.path()));
            return Ok(format!(
                "# {file} is recognised by its content as {0}. This is the shipped mapping, which --from {0} uses.\n{1}",
                shipped.name, shipped.text
            ));
        }
    }
    let sample = LogSample::read(input)?;
    let mut text = format!("# A first mapping for {file}, guessed from {} rows.\n", sample.rows.len());
    let _ =
        writeln!(text, "# A line with ? is a question: answer it and remove the #, or delete the line.\nmapping = 1");
    if let Some(problem) = &sample.problem {
        let (wrong, rows) = (sample.wrong, sample.rows.len() + sample.wrong);
        let first = problem.lines().next().unwrap_or_default();
        let _ = writeln!(text, "# ? {wrong} of the first {rows} rows cannot be read: {}", comment(first));
    }
    let repeated: BTreeSet<&str> =
        sample.profiles.iter().filter(|profile| profile.is_repeated).map(|profile| profile.name.as_str()).collect();
    for name in repeated {
        let _ = writeln!(
            text,
            "# ? several columns have the name {}; the mapping uses their positions, such as $1",
            comment(name)
        );
    }
    let choice = Choice::new(&sample.profiles);
    write_input(&mut text, &sample);
    write_time(&mut text, &choice);
    write_trace(&mut text, &choice);
    write_rest(&mut text, &sample, &choice);
    write_rows(&mut text, input, &sample);
    for other in inputs.iter().skip(1) {
        let name = comment(&crate::bind::file_name(other.path()));
        let _ =
            writeln!(text, "# ? {name} was not examined; if it has other columns, it needs a [[table]] with a join.");
    }
    Ok(text)
}

fn write_input(text: &mut String, sample: &LogSample) {
    let _ = writeln!(text, "\n[input]\n# {}", comment(&sample.looks));
    for (key, value) in &sample.settings {
        let _ = writeln!(text, "{key} = {value}");
    }
    let minus: Vec<&str> =
        sample.profiles.iter().filter(|profile| profile.has_minus_one()).map(|profile| profile.name.as_str()).collect();
    if !minus.is_empty() {
        let _ = writeln!(
            text,
            "# missing = [\"-1\"]   # ? does -1 mean an unknown value in {}",
            comment(&minus.join(", "))
        );
    }
}

fn write_time(text: &mut String, choice: &Choice<'_>) {
    let times: Vec<&Profile> = [choice.submit, choice.start, choice.end].into_iter().flatten().collect();
    let formatted = times.iter().find(|profile| profile.is_formatted_time());
    let local = times.iter().any(|profile| profile.local_times > 0) || formatted.is_some();
    if !local {
        return;
    }
    let _ = writeln!(text, "\n[time]");
    if let Some(profile) = formatted {
        match &profile.formats[..] {
            [one] => {
                let _ = writeln!(text, "format = {}", quoted(one));
            }
            several => {
                let _ = writeln!(text, "# format = \"?\"   # needed; all values fit {}", several.join(" and "));
            }
        }
    }
    let _ = writeln!(
        text,
        "# zone = \"?\"   # the times have no offset and are read as UTC; an IANA name such as Europe/Berlin"
    );
}

fn line(text: &mut String, key: &str, formula: &str, reason: &str) {
    let _ = writeln!(text, "{key} = {}   # {}", quoted(formula), comment(reason));
}

/// Writes a column of numbers or times. It is a question if the meaning of its commas is unclear.
fn amount_line(text: &mut String, key: &str, formula: &str, reason: &str, columns: &[&Profile]) {
    for profile in columns {
        let name = column(profile);
        match profile.commas.style() {
            CommaStyle::Absent => {}
            CommaStyle::Unclear => {
                let _ = writeln!(
                    text,
                    "# {key} = {}   # ? needed: whether {} has a decimal comma, or replace({name}, ',', '') for groups of digits; {}",
                    quoted(formula),
                    comment(&profile.commas.example),
                    comment(reason)
                );
                return;
            }
            CommaStyle::Groups => {
                return line(text, key, formula, &format!("{reason}; ? the commas are between groups of digits"));
            }
            CommaStyle::Decimal | CommaStyle::DecimalGroups => {
                return line(text, key, formula, &format!("{reason}; ? the comma is a decimal comma"));
            }
        }
    }
    line(text, key, formula, reason);
}

fn write_trace(text: &mut String, choice: &Choice<'_>) {
    let _ = writeln!(text, "\n[trace]");
    match choice.job {
        Some(job) => line(text, "job", &column(job), &format!("by its name; {}", job.describe())),
        None => text.push_str("# job = \"?\"   # no column has a known name; without it each row is a job\n"),
    }
    match choice.user {
        Some(user) => line(text, "user", &column(user), &format!("by its name; {} different", user.distinct.len())),
        None => text.push_str("# user = \"?\"   # no column has a known name; without it each job is a user\n"),
    }
    let submit = choice.submit.or(choice.start);
    match submit {
        Some(submit) => {
            let unit = time_unit(submit, true);
            let start =
                if choice.submit.is_none() { "; ? it is the start: no column has the time of submission" } else { "" };
            let check = if unit.uncertain { "; ? submit_ms or submit_us for other units" } else { "" };
            let reason = format!("by its name; {}; {}{check}{start}", unit.reason, submit.describe());
            amount_line(text, &format!("submit{}", unit.suffix), &in_unit(amount(submit), &unit), &reason, &[submit]);
        }
        None => {
            let times = if choice.times.is_empty() {
                String::new()
            } else {
                format!("; columns of times: {}", choice.times.join(", "))
            };
            let _ = writeln!(text, "# submit = \"?\"   # needed: the time of submission{}", comment(&times));
        }
    }
    if let Some(event) = choice.event {
        let name = comment(&event.name);
        let _ =
            writeln!(text, "# ? {name} may be the kind of an event; a log of events needs a [fold] (docs/mapping.md)");
    }
    write_duration(text, choice);
    if let Some(tasks) = choice.tasks {
        amount_line(text, "tasks", &amount(tasks), &format!("by its name; {}", tasks.describe()), &[tasks]);
        text.push_str("# demand_of = \"job\"   # ? if the demands are those of all tasks together\n");
    }
    write_resources(text, choice);
    if let Some(estimate) = choice.estimate {
        let formula = amount(estimate);
        let _ = writeln!(
            text,
            "# estimate = {}   # ? the unit, and whether it is the user's estimate; {}",
            quoted(&formula),
            comment(&estimate.describe())
        );
    }
}

fn write_duration(text: &mut String, choice: &Choice<'_>) {
    if let Some(duration) = choice.duration {
        let unit = time_unit(duration, false);
        let check = if unit.uncertain { "; ? duration_ms or duration_us for other units" } else { "" };
        let reason = format!("by its name; {}; {}{check}", unit.reason, duration.describe());
        let key = format!("duration{}", unit.suffix);
        amount_line(text, &key, &in_unit(amount(duration), &unit), &reason, &[duration]);
        return;
    }
    match (choice.start, choice.end) {
        (Some(start), Some(end)) => {
            let unit = time_unit(start, true);
            let formula = match unit.factor {
                None => format!("{} - {}", amount(end), amount(start)),
                Some(factor) => format!("({} - {}) * {factor}", amount(end), amount(start)),
            };
            let reason = "the time between two columns, by their names";
            amount_line(text, &format!("duration{}", unit.suffix), &formula, reason, &[end, start]);
        }
        (_, Some(end)) => {
            let name = comment(&end.name);
            let _ = writeln!(
                text,
                "# duration = \"?\"   # needed: the time on a machine without waiting; {name} seems to be the end, no column the start"
            );
        }
        _ => text.push_str("# duration = \"?\"   # needed: the time on a machine without waiting\n"),
    }
}

fn write_resources(text: &mut String, choice: &Choice<'_>) {
    for (resource, found) in [("cpu", choice.cpu), ("gpu", choice.gpu)] {
        let Some(profile) = found else { continue };
        let name = amount(profile);
        let milli = profile.name.to_ascii_lowercase().contains("milli");
        let percent = profile.most() >= 100.0
            && profile.distinct.keys().all(|value| value.trim_end_matches(".0").ends_with(['0', '5']));
        let formula = if milli { format!("{name} / 1000") } else { name.clone() };
        let check =
            if !milli && percent { format!("; ? \"{name} / 100\" if it is in per cent") } else { String::new() };
        amount_line(text, resource, &formula, &format!("by its name; {}{check}", profile.describe()), &[profile]);
    }
    if let Some(memory) = choice.memory {
        let (name, lower) = (amount(memory), memory.name.to_ascii_lowercase());
        let lower = lower.trim_end_matches([')', ']']);
        if memory.sizes > 0 {
            line(text, "memory_gib", &format!("bytes({name}) / 1073741824"), "by its name; sizes such as 16G");
        } else if ["gib", "gb", "_g"].iter().any(|unit| lower.ends_with(unit)) {
            amount_line(text, "memory_gib", &name, "by its name; GiB by its name (? or GB)", &[memory]);
        } else if ["mib", "mb", "_m"].iter().any(|unit| lower.ends_with(unit)) {
            amount_line(text, "memory_mib", &name, "by its name; MiB by its name (? or MB)", &[memory]);
        } else if ["bytes", "_b"].iter().any(|unit| lower.ends_with(unit)) {
            let formula = format!("{name} / 1048576");
            amount_line(text, "memory_mib", &formula, "by its name; bytes by its name", &[memory]);
        } else {
            let units = "memory_gib, memory_mib or memory_norm (a part of the largest machine)";
            let _ = writeln!(
                text,
                "# memory_gib = {}   # ? the unit: {units}; {}",
                quoted(&name),
                comment(&memory.describe())
            );
        }
    }
    if choice.cpu.or(choice.gpu).is_none() {
        text.push_str("# cpu = \"?\"   # needed: at least one resource; cpu = 1 if each task uses one core\n");
    }
}

fn write_rest(text: &mut String, sample: &LogSample, choice: &Choice<'_>) {
    if let Some(state) = choice.state {
        let mut values: Vec<(&String, &u64)> = state.distinct.iter().collect();
        values.sort_by_key(|(value, rows)| (std::cmp::Reverse(**rows), (*value).clone()));
        let shown: Vec<String> = values.iter().take(8).map(|(value, rows)| format!("{value} ({rows})")).collect();
        let first = values.first().map_or("", |(value, _)| value.as_str()).replace('\'', "''");
        let condition = format!("{} == '{first}'", column(state));
        let _ = writeln!(
            text,
            "\n[keep]\n# ? which rows are imported; values of {}: {}",
            comment(&state.name),
            comment(&shown.join(", "))
        );
        let _ = writeln!(text, "# {} = \"another state\"", quoted(&condition));
    }
    let used = choice.used();
    let unread: Vec<String> = sample
        .profiles
        .iter()
        .filter(|profile| !used.contains(&profile.place))
        .map(|profile| {
            let key = if profile.is_repeated { column(profile) } else { profile.name.clone() };
            let name = if profile.is_repeated { format!("{}; ", profile.name) } else { String::new() };
            format!("# {} = \"ignored: ?\"   # {}\n", quoted(&key), comment(&(name + &profile.describe())))
        })
        .collect();
    if !unread.is_empty() {
        let _ = write!(
            text,
            "\n# Columns that are not read; an import lists those without a reason.\n[fields]\n{}",
            unread.concat()
        );
    }
}

fn write_rows(text: &mut String, input: &Input, sample: &LogSample) {
    text.push_str("\n# Three rows of the log:\n");
    for row in sample.rows.iter().take(3) {
        let fields = sample
            .profiles
            .iter()
            .zip(row)
            .map(|(profile, value)| format!("{}={}", profile.name, crate::value::short(value)));
        let _ = writeln!(text, "#   {}", comment(&fields.collect::<Vec<_>>().join(" ")));
    }
    match sample.import(input, text) {
        Ok(lines) => {
            text.push_str("# The same part of the log as a trace, with the answers so far:\n");
            lines.iter().for_each(|line| {
                let _ = writeln!(text, "#   {}", comment(line));
            });
        }
        Err(problem) => {
            let _ = writeln!(text, "# No rows of a trace yet: {}", comment(problem.lines().next().unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests;
