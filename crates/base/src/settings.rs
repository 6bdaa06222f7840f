//! Names of settings in messages, and time spans as values of settings.

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
    ("policies", "policy"),
    ("properties", "property"),
    ("domains", "domain"),
    ("workload.format", "from"),
    ("cluster.events", "machine-events"),
];

/// Returns the name of the option for a plan key, without hyphens before it.
pub fn option(key: &str) -> String {
    let other = OPTIONS.iter().find(|(known, _)| key.ends_with(known)).map(|(_, option)| (*option).to_owned());
    other.unwrap_or_else(|| key.rsplit('.').next().unwrap_or(key).replace('_', "-"))
}

impl SettingOrigin {
    /// Returns the name of a plan key in messages.
    pub fn key(self, key: &str) -> String {
        match self {
            SettingOrigin::InPlan => key.to_owned(),
            SettingOrigin::OnCommandLine => format!("--{}", option(key)),
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

/// Parses a span that may be 0. Errors: [`Error::Plan`] under `key`.
pub fn any_span(key: &str, text: &str) -> Result<Span> {
    span(text).map_err(|_| Error::plan(key, format!("'{text}'"), "a time span such as 0s, 30s or 2m"))
}

/// Parses a span above 0. Errors: [`Error::Plan`] under `key`.
pub fn positive_span(key: &str, text: &str) -> Result<Span> {
    let expected = "a time span above 0 such as 90s, 15m or 2h";
    match span(text) {
        Ok(span) if span > Span::ZERO => Ok(span),
        _ => Err(Error::plan(key, format!("'{text}'"), expected)),
    }
}

/// Parses a horizon. Errors: [`Error::Plan`] under `key`.
pub fn horizon(key: &str, text: &str) -> Result<Time> {
    positive_span(key, text).map(|span| Time::ZERO + span)
}
