//! Imports of texts, for the tests of mappings.

use plimsoll_base::error::Result;
use plimsoll_base::tree::Place;
use plimsoll_sim::workload::{Input, Workload};
use plimsoll_trace_import::{ImportOptions, Mapping, import};

/// Imports files, each a name and a text, by a mapping.
pub fn try_import(map: &str, files: &[(&str, &str)], strict: bool) -> Result<Workload> {
    let input = |(name, text): &(&str, &str)| Input::Bytes(name.into(), text.as_bytes().to_vec().into());
    let inputs: Vec<Input> = files.iter().map(input).collect();
    let mapping = Mapping::parse("mapping", &Place::whole_text("map.toml", map))?;
    import(&mapping, &inputs, ImportOptions { strict, tenants: None })
}

/// Imports files that are valid.
pub fn imported(map: &str, files: &[(&str, &str)]) -> Workload {
    try_import(map, files, false).unwrap_or_else(|error| panic!("{error}\n{map}"))
}

/// Returns the message of an import that fails.
pub fn refusal(map: &str, files: &[(&str, &str)]) -> String {
    try_import(map, files, false).expect_err(map).to_string()
}

/// Returns job, submit time and duration in seconds of each row.
pub fn rows(workload: &Workload) -> Vec<(String, f64, f64)> {
    let row = |set: &plimsoll_sim::workload::TaskSet| {
        (workload.job_name(set.job), set.submit.seconds(), set.duration.seconds())
    };
    workload.sets.iter().map(row).collect()
}

/// Checks that a warning has a text.
pub fn warns(workload: &Workload, text: &str) {
    let warnings = &workload.quality.warnings;
    assert!(warnings.iter().any(|warning| warning.contains(text)), "{text}: {warnings:#?}");
}
