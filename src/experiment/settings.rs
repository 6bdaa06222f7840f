//! Functions that all settings use, for their names in messages and for time spans.

use crate::error::{Error, Result};
use crate::units::{Span, Time, span};

/// The origin of settings, which determines their names in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Keys of a plan.
    InPlan,
    /// Options of the command line.
    OnCommandLine,
}

/// The plan keys and their options, where the names differ.
const OPTIONS: [(&str, &str); 5] = [
    ("policies", "--policy"),
    ("properties", "--property"),
    ("domains", "--domain"),
    ("workload.format", "--from"),
    ("cluster.events", "--machine-events"),
];

impl SettingOrigin {
    /// Returns the name of a plan key in messages.
    pub fn key(self, key: &str) -> String {
        let option = || OPTIONS.iter().find(|(known, _)| key.ends_with(known)).map(|(_, option)| (*option).to_owned());
        let word = key.rsplit('.').next().unwrap_or(key);
        match self {
            SettingOrigin::InPlan => key.to_owned(),
            SettingOrigin::OnCommandLine => option().unwrap_or_else(|| format!("--{}", word.replace('_', "-"))),
        }
    }

    /// If the settings are in a plan, adds the key that names the file to an I/O error.
    pub fn of_file(self, key: &str, error: Error) -> Error {
        match (self, &error) {
            (SettingOrigin::InPlan, Error::Io { .. }) => error.of_key(key),
            _ => error,
        }
    }
}

/// Parses a span above 0.
pub fn positive_span(key: &str, text: &str) -> Result<Span> {
    let expected = "a time span above 0 such as 90s, 15m or 2h";
    match span(text) {
        Ok(span) if span > Span::ZERO => Ok(span),
        _ => Err(Error::plan(key, format!("'{text}'"), expected)),
    }
}

/// Parses a horizon.
pub fn horizon(key: &str, text: &str) -> Result<Time> {
    positive_span(key, text).map(|span| Time::ZERO + span)
}
