//! The common part of all settings: their names where they stand, and time spans.

use crate::error::{Error, Result};
use crate::units::{Span, Time, span};

/// Where settings stand, which is how messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// In a plan.
    InPlan,
    /// On the command line.
    OnCommandLine,
}

/// Options that are not called as the keys of plans are.
const OPTIONS: [(&str, &str); 5] = [
    ("policies", "--policy"),
    ("properties", "--property"),
    ("domains", "--domain"),
    ("workload.format", "--from"),
    ("cluster.events", "--machine-events"),
];

impl SettingOrigin {
    /// The name of a key of a plan.
    pub fn key(self, key: &str) -> String {
        let option = || OPTIONS.iter().find(|(known, _)| key.ends_with(known)).map(|(_, option)| (*option).to_owned());
        let word = key.rsplit('.').next().unwrap_or(key);
        match self {
            SettingOrigin::InPlan => key.to_owned(),
            SettingOrigin::OnCommandLine => option().unwrap_or_else(|| format!("--{}", word.replace('_', "-"))),
        }
    }

    /// An error about a file: in a plan it is about the key that names it.
    pub fn of_file(self, key: &str, error: Error) -> Error {
        match (self, &error) {
            (SettingOrigin::InPlan, Error::Io { .. }) => error.of_key(key),
            _ => error,
        }
    }
}

/// A span above 0.
pub fn positive_span(key: &str, text: &str) -> Result<Span> {
    let expected = "a time span above 0 such as 90s, 15m or 2h";
    match span(text) {
        Ok(span) if span > Span::ZERO => Ok(span),
        _ => Err(Error::plan(key, format!("'{text}'"), expected)),
    }
}

/// A horizon.
pub fn horizon(key: &str, text: &str) -> Result<Time> {
    positive_span(key, text).map(|span| Time::ZERO + span)
}
