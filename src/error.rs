//! The one error type: what is wrong, where, and what would be accepted.

use std::path::PathBuf;

/// A result with the project's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong with an input, a plan or an output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened, read or created.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A trace, weights or machines file is malformed.
    #[error("{}{}{}: {problem}", path.display(), line_part(*line), column_part(column))]
    Trace {
        /// The file.
        path: PathBuf,
        /// The line (1 is the header), or 0 where none applies.
        line: u64,
        /// The column's name, or empty.
        column: String,
        /// What is wrong, the value, and what would be accepted.
        problem: String,
    },
    /// A plan or a command-line value is wrong.
    #[error("{key}: {value} is not accepted; expected {expected}")]
    Plan {
        /// The key or the option.
        key: String,
        /// What was given, quoted where it is text.
        value: String,
        /// What would be accepted.
        expected: String,
    },
    /// A plan file does not parse; the message carries line, column and the accepted keys.
    #[error("{}: {message}", path.display())]
    PlanSyntax {
        /// The plan.
        path: PathBuf,
        /// The parser's message.
        message: String,
    },
    /// A policy name that nobody knows.
    #[error("unknown policy '{name}'{}; known: {known}", suggestion_part(suggestion))]
    UnknownPolicy {
        /// The name given.
        name: String,
        /// The nearest known name, or empty.
        suggestion: String,
        /// All names.
        known: String,
    },
    /// The workload and the cluster do not go together.
    #[error("{problem}")]
    Mismatch {
        /// What does not match, and how to mend it.
        problem: String,
    },
    /// Shares cannot be compared exactly within the width of a rank.
    #[error("capacities or weights are too fine to compare {policy} shares exactly: {problem}")]
    CapacityTooFine {
        /// The policy.
        policy: String,
        /// Which numbers, and what to round.
        problem: String,
    },
    /// A solver could not certify its solution.
    #[error("{solver} did not converge: {problem}")]
    NotConverged {
        /// The solver.
        solver: String,
        /// What is left of which condition.
        problem: String,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {message}", path.display())]
    Output {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// Ctrl-C, or a termination signal.
    #[error("interrupted; nothing half-written was kept")]
    Interrupted,
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
    /// An [`Error::Io`] at `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io { path: path.into(), source }
    }

    /// An [`Error::Plan`].
    pub fn plan(key: impl Into<String>, value: impl std::fmt::Display, expected: impl Into<String>) -> Error {
        Error::Plan { key: key.into(), value: value.to_string(), expected: expected.into() }
    }

    /// The same error under the name that the user wrote: an option, or a key with its table.
    pub fn under(self, key: &str) -> Error {
        match self {
            Error::Plan { value, expected, .. } => Error::Plan { key: key.to_owned(), value, expected },
            other => other,
        }
    }

    /// An [`Error::Trace`].
    pub fn trace(path: impl Into<PathBuf>, line: u64, column: &str, problem: impl Into<String>) -> Error {
        Error::Trace { path: path.into(), line, column: column.to_owned(), problem: problem.into() }
    }

    /// An [`Error::Output`].
    pub fn output(path: impl Into<PathBuf>, message: impl std::fmt::Display) -> Error {
        Error::Output { path: path.into(), message: message.to_string() }
    }

    /// The process's exit code: 2 when the input was wrong, 130 when interrupted, 1 when the run failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Output { .. } | Error::NotConverged { .. } => 1,
            Error::Interrupted => 130,
            _ => 2,
        }
    }
}

/// The candidate nearest to `word`, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .map(|(_, candidate)| candidate)
}
