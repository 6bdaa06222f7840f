//! The error type of the project: the problem, its place, and the accepted values.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::tree::Place;

/// A result with the project's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of inputs, plans, runs and outputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened, read or created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A trace, weights or machines file is malformed.
    #[error("{}{}{}: {problem}", path.display(), line_part(*line), column_part(column))]
    Trace {
        /// The file.
        path: PathBuf,
        /// The line (1 is the header); 0 if unknown.
        line: u64,
        /// The name of the column; may be empty.
        column: String,
        /// The problem, the value, and the accepted values.
        problem: String,
    },
    /// A plan or a command-line value is wrong.
    #[error("{key}: {value} is not accepted; expected {expected}")]
    Plan {
        /// The key or the option.
        key: String,
        /// The given value, quoted if it is text.
        value: String,
        /// The accepted values.
        expected: String,
        /// The wrong item, if the value is a list.
        item: Option<usize>,
    },
    /// A plan or another file of settings is wrong.
    #[error("{}", place.marked(problem))]
    Placed {
        /// The file, and the place in it.
        place: Place,
        /// The key, the problem, and the accepted keys or values.
        problem: String,
    },
    /// A policy does not support the resources or the weights of a run.
    #[error("policy {policy}: {value} is not accepted; expected {expected}")]
    Policy {
        /// The policy.
        policy: String,
        /// The unsupported value.
        value: String,
        /// The accepted values.
        expected: String,
    },
    /// An unknown policy name.
    #[error("unknown policy '{name}'{}; known: {known}", suggestion_part(suggestion))]
    UnknownPolicy {
        /// The given name.
        name: String,
        /// The nearest known name; may be empty.
        suggestion: String,
        /// The nearest names, and the location of the full list.
        known: String,
    },
    /// The workload and the cluster do not match, or an operation does not apply.
    #[error("{problem}")]
    Mismatch {
        /// The problem, and its remedy.
        problem: String,
    },
    /// Shares cannot be compared exactly within the width of a rank.
    #[error("capacities or weights are too fine to compare {policy} shares exactly: {problem}")]
    CapacityTooFine {
        /// The policy.
        policy: String,
        /// The numbers concerned, and the numbers to round.
        problem: String,
    },
    /// A solver could not certify its solution.
    #[error("{solver} did not converge: {problem}")]
    NotConverged {
        /// The solver.
        solver: String,
        /// The condition that is violated, and by how much.
        problem: String,
    },
    /// A user-defined policy or metric failed.
    #[error("{code}{}: {problem}", instant_part(*at))]
    CodeFailed {
        /// The policy or metric, such as `policy mine`.
        code: String,
        /// The instant of the run, if the run had begun.
        at: Option<crate::units::Time>,
        /// The problem, and its place in the code.
        problem: String,
    },
    /// Scenarios did not have the expected outcome.
    #[error("{problem}")]
    Unexpected {
        /// The scenarios and their outcomes.
        problem: String,
    },
    /// No task ran during the run.
    #[error("{problem}")]
    Idle {
        /// The runs concerned, and the reason.
        problem: String,
    },
    /// Tasks preempt one another without progress.
    #[error("{problem}")]
    Livelock {
        /// The jobs and the period, and the settings that would prevent it.
        problem: String,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {message}", path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// The user pressed Ctrl-C, or a termination signal arrived.
    #[error("interrupted; nothing half-written was kept")]
    Interrupted,
}

fn instant_part(at: Option<crate::units::Time>) -> String {
    at.map(|at| format!(" at {} s", at.seconds())).unwrap_or_default()
}

fn line_part(line: u64) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}

fn column_part(column: &str) -> String {
    if column.is_empty() { String::new() } else { format!(", column '{column}'") }
}

fn suggestion_part(suggestion: &str) -> String {
    if suggestion.is_empty() { String::new() } else { format!(" (did you mean '{suggestion}'?)") }
}

impl Error {
    /// Returns an [`Error::Io`] at `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io { path: path.into(), source }
    }

    /// Returns an [`Error::Plan`], with a suggestion if the value seems to be a misspelt accepted name.
    pub fn plan(key: impl Into<String>, value: impl std::fmt::Display, expected: impl Into<String>) -> Error {
        let (value, expected) = (value.to_string(), expected.into());
        let hint = suggestion_part(meant(&value, &expected).unwrap_or_default());
        Error::Plan { key: key.into(), value: short(&value).into_owned(), expected: expected + &hint, item: None }
    }

    /// Adds the index of the wrong item if the value is a list.
    pub fn item(self, at: usize) -> Error {
        match self {
            Error::Plan { key, value, expected, .. } => Error::Plan { key, value, expected, item: Some(at) },
            other => other,
        }
    }

    /// Replaces the key by the name that the user wrote: an option, or a key with its table.
    pub fn under(self, key: &str) -> Error {
        match self {
            Error::Plan { value, expected, item, .. } => Error::Plan { key: key.to_owned(), value, expected, item },
            other => other,
        }
    }

    /// Adds another kind of accepted value.
    pub fn or(self, also: &str) -> Error {
        match self {
            Error::Plan { key, value, expected, item } => {
                Error::Plan { key, value, expected: format!("{expected}, or {also}"), item }
            }
            other => other,
        }
    }

    /// Returns the error with the key that caused it. An unknown policy and a file that cannot be read also become errors about the key.
    pub fn of_key(self, key: &str) -> Error {
        match self {
            Error::UnknownPolicy { name, known, .. } => {
                Error::plan(key, format!("'{name}'"), format!("one of {known}"))
            }
            Error::Io { path, source } => {
                Error::plan(key, format!("'{}'", path.display()), format!("a file that can be read ({source})"))
            }
            other => other.under(key),
        }
    }

    /// Returns an [`Error::Policy`].
    pub fn policy(policy: impl Into<String>, value: impl Into<String>, expected: impl Into<String>) -> Error {
        Error::Policy { policy: policy.into(), value: value.into(), expected: expected.into() }
    }

    /// Returns an [`Error::Trace`].
    pub fn trace(path: impl Into<PathBuf>, line: u64, column: &str, problem: impl Into<String>) -> Error {
        Error::Trace { path: path.into(), line, column: column.to_owned(), problem: problem.into() }
    }

    /// Returns an [`Error::Output`].
    pub fn output(path: impl Into<PathBuf>, message: impl std::fmt::Display) -> Error {
        Error::Output { path: path.into(), message: message.to_string() }
    }

    /// Returns the exit code of the process: 2 if the input was wrong, 130 if interrupted, 1 if the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Output { .. }
            | Error::NotConverged { .. }
            | Error::Idle { .. }
            | Error::Livelock { .. }
            | Error::CodeFailed { .. }
            | Error::Unexpected { .. } => 1,
            Error::Interrupted => 130,
            _ => 2,
        }
    }
}

/// Shortens a value for a message: keeps at most 200 characters and adds their total number. Quotes around the value are kept.
pub fn short(value: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    let Some((end, _)) = value.char_indices().nth(MOST) else { return value.into() };
    let quote = if value.starts_with('\'') && value.ends_with('\'') { "'" } else { "" };
    format!("{}…{quote} ({} characters)", &value[..end], value.chars().count() - 2 * quote.len()).into()
}

/// Reads every item of a list; an error has the index of its item.
pub fn each<T, V>(items: &[T], read: impl Fn(&T) -> Result<V>) -> Result<Vec<V>> {
    items.iter().enumerate().map(|(at, item)| read(item).map_err(|error| error.item(at))).collect()
}

/// Returns a list of names in words: `a, b or c`.
pub fn either<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        few => few.concat(),
    }
}

/// The largest number of names in a message.
const NAMES_MOST: usize = 8;

/// Describes the accepted names: all of them if they are few, otherwise the nearest ones and the number of the others. `listing` gives the
/// location of the full list; it may be empty.
pub fn alternatives<'a>(word: &str, names: impl IntoIterator<Item = &'a str>, listing: &str) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    let rest = names.len().saturating_sub(NAMES_MOST);
    if rest == 0 {
        return names.join(", ");
    }
    let hint = nearest(word, names.iter().map(|name| stem(name)));
    // Long texts are not names, and the cost of a comparison is the product of the lengths.
    if word.len() <= 100 {
        names.sort_by_cached_key(|name| (hint != Some(stem(name)), rank(word, stem(name))));
    }
    let more = if listing.is_empty() { String::new() } else { format!(": {listing}") };
    format!("{} ({rest} more{more})", names[..NAMES_MOST].join(", "))
}

/// Returns a name without its parameters.
fn stem(name: &str) -> &str {
    name.split(['[', ':']).next().unwrap_or(name)
}

/// Returns the distance between a word and a name, or between the word and a part of the name (plus 1) if that is less.
fn rank(word: &str, name: &str) -> usize {
    let parts = name.split(['_', '-', '.']).filter(|part| part.len() > 2).map(|part| distance(word, part) + 1);
    parts.chain([distance(word, name)]).min().unwrap_or(usize::MAX)
}

/// Returns the edit distance between two names, ignoring case.
fn distance(word: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(&word.to_lowercase(), &name.to_lowercase())
}

/// Returns the candidate nearest to `word` if it is near enough. Otherwise returns the only candidate that begins with `word`, or the first
/// one with a first part (before `-` or `_`) near to it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are not names, and the cost of a comparison is the product of the lengths.
    if word.len() > 100 {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4);
    let mut longer = candidates.iter().filter(|candidate| word.len() > 2 && candidate.starts_with(word));
    let part = |candidate: &&&str| {
        let part = candidate.split(['-', '_']).next().unwrap_or_default();
        part.len() > 3 && distance(word, part) <= part.len() / 4
    };
    let mut parts = candidates.iter().filter(part);
    near.map(|(_, candidate)| candidate)
        .or_else(|| longer.next().copied().filter(|_| longer.next().is_none()))
        .or_else(|| parts.next().copied())
}

/// Returns ` (did you mean 'NAME'?)` if a candidate is near enough to `word`, otherwise an empty text.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    suggestion_part(nearest(word, candidates).unwrap_or_default())
}

/// Returns the accepted name that a quoted value probably means. The names are the single words without digits that commas or `or` separate
/// in `expected`. Returns `None` if `expected` contains a suggestion already.
fn meant<'a>(value: &str, expected: &'a str) -> Option<&'a str> {
    let word = value.strip_prefix('\'')?.strip_suffix('\'').filter(|word| !word.is_empty())?;
    if expected.contains("did you mean") {
        return None;
    }
    let list = expected.strip_prefix("one of ").unwrap_or(expected);
    let names = list.split(", ").flat_map(|part| part.split(" or ")).map(str::trim);
    let plain = |name: &&str| name.chars().all(|c| c.is_alphabetic() || "-_:".contains(c)) && !name.is_empty();
    let names: Vec<&str> = names.map(|name| name.split(['[', ':']).next().unwrap_or(name)).filter(plain).collect();
    // A single name is not a choice.
    nearest(word, names.iter().copied()).filter(|name| names.len() > 1 && *name != word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_echoed_in_part() {
        assert_eq!(short("'a b'"), "'a b'");
        assert_eq!(short(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(short(&"é".repeat(201)), format!("{}… (201 characters)", "é".repeat(200)));
        let error = Error::plan("--machines", format!("'{}'", "a|b ".repeat(1 << 20)), "less").to_string();
        assert!(error.contains("…' (4194304 characters)") && error.len() < 300, "{error}");
    }

    #[test]
    fn names_among_others_get_a_suggestion() {
        let said = |value: &str, expected: &str| Error::plan("k", format!("'{value}'"), expected).to_string();
        for (value, expected, name) in [
            ("first_fit", "pooled, first-fit, best-fit or fgd", "first-fit"),
            ("frist", "pooled, first-fit, best-fit or fgd", "first-fit"),
            ("compltion", "wait_mean_s, completion_mean_s, completion_p50_s", "completion_mean_s"),
            ("skp", "skip or stop", "skip"),
            ("low", "lowest-id or highest-id", "lowest-id"),
            ("envy", "feasibility, envy-freeness, pareto-efficiency", "envy-freeness"),
            ("dfr", "one of fifo, slot:K, drf, bmf[:RESOLVE]", "drf"),
        ] {
            assert!(said(value, expected).ends_with(&format!("(did you mean '{name}'?)")), "{}", said(value, expected));
        }
        for (value, expected) in [
            ("slow", "lowest-id or highest-id"),
            ("soon", "a time span above 0 such as 90s, 15m or 2h"),
            ("wet", "ordered or lossy"),
            ("drf", "one of drf, fifo"),
            ("x", "skip or stop (did you mean 'skip'?)"),
            ("slot", "slots per machine, at least 1, such as slot:12"),
        ] {
            assert_eq!(said(value, expected), format!("k: '{value}' is not accepted; expected {expected}"));
        }
    }
}
