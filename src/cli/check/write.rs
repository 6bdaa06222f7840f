//! Writes counterexamples as files, and the grid as a figure.

use std::path::Path;

use super::Matrix;
use crate::error::{Error, Result};
use crate::output::figure::{Data, GridRow, GridSection, GridWords, Mark, grid};
use crate::output::file::write_whole;
use crate::output::provenance::{COMMIT, VERSION};
use crate::properties::{Domain, Finding, Requirement};

/// Writes all counterexamples and records their files.
pub(super) fn files(folder: &Path, matrices: &mut [Matrix]) -> Result<()> {
    let made_with = COMMIT.map(|commit| format!(", commit {commit}")).unwrap_or_default();
    std::fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    for matrix in matrices {
        for column in &mut matrix.columns {
            for (finding, files) in column.findings.iter().zip(&mut column.files) {
                let Some(found) = &finding.counterexample else { continue };
                let domain = match matrix.search.domain {
                    Domain::Positive => String::new(),
                    domain => format!("-{}", domain.name()),
                };
                let stem = format!("{}-{}{domain}", plain(&column.policy), found.requirement.slug());
                for (suffix, text) in found.files() {
                    let name = if suffix.is_empty() { format!("{stem}.toml") } else { format!("{stem}-{suffix}.toml") };
                    let text =
                        format!("# Found by Plimsoll {VERSION}{made_with}, seed {}.\n{text}", matrix.search.seed);
                    files.push(write_whole(&folder.join(name), text.as_bytes())?);
                }
            }
        }
    }
    Ok(())
}

/// Converts a policy's name to a part of a file name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

fn mark(finding: &Finding) -> Mark {
    match (&finding.counterexample, finding.cases) {
        (Some(_), _) => Mark::Fails,
        (None, 0) => Mark::Unknown,
        (None, _) => Mark::Holds,
    }
}

/// Returns the grid as a table: one row per property and policy.
pub(super) fn data(requirements: &[Requirement], matrices: &[Matrix]) -> Data {
    let mut data = Data::new(["domain", "property", "policy", "outcome", "instances"]);
    for matrix in matrices {
        for column in &matrix.columns {
            for (requirement, finding) in requirements.iter().zip(&column.findings) {
                let outcome = match mark(finding) {
                    Mark::Holds => "holds",
                    Mark::Fails => "fails",
                    Mark::Unknown => "not defined",
                };
                let names =
                    [matrix.search.domain.name(), &requirement.title(), &column.policy, outcome].map(str::to_owned);
                data.rows.push(names.into_iter().chain([finding.cases.to_string()]).collect());
            }
        }
    }
    data
}

/// Draws the grid of properties and policies at the given width.
pub(super) fn draw(requirements: &[Requirement], matrices: &[Matrix], width: Option<f64>) -> String {
    let columns: Vec<String> = matrices
        .first()
        .map(|matrix| matrix.columns.iter().map(|column| column.policy.clone()).collect())
        .unwrap_or_default();
    let section = |matrix: &Matrix| GridSection {
        title: if matrices.len() > 1 { matrix.search.domain.meaning().to_owned() } else { String::new() },
        rows: requirements
            .iter()
            .enumerate()
            .map(|(nth, requirement)| GridRow {
                label: requirement.title(),
                marks: matrix.columns.iter().map(|column| mark(&column.findings[nth])).collect(),
            })
            .collect(),
    };
    grid(&columns, &matrices.iter().map(section).collect::<Vec<_>>(), &GridWords::PROPERTIES, width)
}
