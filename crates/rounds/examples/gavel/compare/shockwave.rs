//! Shockwave's comparison of policies on 32 GPUs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::{Filter, Tally};

/// Compares the summaries of policies.
pub fn shockwave(
    _: &Path,
    _: &Filter,
    _: &mut BTreeMap<String, Tally>,
    _: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}
