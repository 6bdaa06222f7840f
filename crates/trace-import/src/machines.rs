//! Writes the machines of a log as a machines file: `[machines]` of a mapping has a column for each column of the file.

use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::{Input, Quality};

use crate::bind::RowFrame;
use crate::expr::evaluate;
use crate::input::{LogRow, Rows};
use crate::mapping::Mapping;
use crate::number::Fraction;
use crate::report::RowReport;
use crate::tables::{Chain, Interrupt, assign};
use crate::value::{Valued, short};

/// The machines of a log.
#[derive(Clone, Debug)]
pub struct ImportedMachines {
    /// The machines file in CSV.
    pub csv: Vec<u8>,
    /// The counts of rows.
    pub quality: Quality,
}

/// Reads the machines of a log by `[machines]` of a mapping; returns `None` if the mapping has none.
///
/// Errors: a name is no column; the table has no file; no row is usable; with `strict`, a row with an impossible value.
pub fn import_machines(
    mapping: &Mapping,
    inputs: &[Input],
    strict: bool,
    interrupt: Interrupt,
) -> Result<Option<ImportedMachines>> {
    let Some(spec) = &mapping.machines else { return Ok(None) };
    let table = &mapping.tables[spec.table];
    let files = assign(mapping, inputs)?.swap_remove(spec.table);
    if files.is_empty() {
        let problem =
            format!("table '{}' has no file; expected a name such as {}", table.name, table.files.join(" or "));
        return Err(spec.place.wrong("machines", problem));
    }
    mapping.clock.restart();
    let mut chain = Chain::open(table, files, interrupt)?;
    let mut report = RowReport::new("machines", strict);
    report.paths = chain.paths();
    let scope = chain.scope(table);
    let mut columns = Vec::new();
    for (name, is_amount, formula) in &spec.columns {
        columns.push((name.as_str(), *is_amount, scope.bind(name, formula)?));
    }
    let mut file = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| Error::Mismatch { problem: format!("the machines cannot be written: {error}") };
    file.write_record(columns.iter().map(|(name, ..)| name)).map_err(failed)?;
    let (mut row, mut number, mut kept) = (LogRow::default(), 0, 0);
    loop {
        let read = match chain.next(&mut row) {
            Ok(false) => break,
            Ok(true) => Ok(()),
            Err(Error::Trace { line, path, column, problem }) if line > 0 => {
                Err(Error::Trace { line, path, column, problem })
            }
            Err(error) => return Err(error),
        };
        number += 1;
        let frame = RowFrame { scope: &scope, row: &row, number, joined: &[], lets: &[] };
        let fields = read.and_then(|()| {
            let field = |(name, is_amount, formula): &(&str, bool, _)| -> Result<(String, bool)> {
                let value = evaluate(formula, &frame, &mapping.clock);
                let text = match is_amount {
                    false => value.map(|value| value.into_text().map(|text| text.into_owned())),
                    true => value.and_then(|value| value.number(&mapping.clock)).and_then(amount),
                };
                let text = text.map_err(|problem| Error::trace(scope.path_of(row.file), row.line, name, problem))?;
                Ok((text.clone().unwrap_or_default(), text.is_none() && *is_amount))
            };
            columns.iter().map(field).collect::<Result<Vec<_>>>()
        });
        match fields {
            Err(error) => report.count_row(Err(error))?,
            Ok(fields) => {
                report.count_row(Ok(()))?;
                match fields.iter().position(|(_, is_absent)| *is_absent) {
                    Some(at) => report.drop_row(&format!("no {}", columns[at].0), row.line, row.file),
                    None => {
                        file.write_record(fields.iter().map(|(text, _)| text)).map_err(failed)?;
                        kept += 1;
                    }
                }
            }
        }
    }
    report.check("machines", kept)?;
    let csv = file.into_inner().map_err(|error| failed(error.into_error().into()))?;
    Ok(Some(ImportedMachines { csv, quality: report.quality }))
}

/// Returns the text of an amount. Errors: it is negative.
fn amount(number: Option<Fraction>) -> Valued<Option<String>> {
    match number {
        Some(number) if number.is_negative() => Err(format!("{} is negative", short(&number.to_string()))),
        number => Ok(number.map(|number| number.to_string())),
    }
}
