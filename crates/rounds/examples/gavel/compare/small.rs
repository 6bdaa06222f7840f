//! Figure 11: hierarchical policies on a static list of jobs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::Tally;

/// Compares the levels of hierarchical policies.
pub fn hierarchical(
    _: &Path,
    _: &mut BTreeMap<String, Tally>,
    _: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}
