//! Formats outcomes as tables.

use super::outcome::{Amount, Outcome};
use crate::cli::printout::Printout;
use crate::cli::screen::{Alignment, Grid};
use crate::fair::{Exact, Instance, Limit};
use crate::output::numbers::number;

/// Maximum length of a printed fraction. The JSON output has all fractions.
const FRACTION: usize = 24;

/// Formats one outcome as a table.
pub fn table(instance: &Instance, outcome: &Outcome) -> Printout {
    let resources = instance.resources();
    let weighted = instance.users().iter().any(|user| user.one_weight() != Some(&Exact::ONE));
    let fractions = outcome.users.iter().any(|user| fraction(&user.tasks).is_some());
    let mut columns: Vec<(String, Alignment)> =
        vec![("user".to_owned(), Alignment::Left), ("tasks".to_owned(), Alignment::Right)];
    if fractions {
        columns.push(("exactly".to_owned(), Alignment::Left));
    }
    columns.extend(resources.iter().map(|name| (name.clone(), Alignment::Right)));
    columns.extend(resources.iter().map(|name| (format!("{name} %"), Alignment::Right)));
    columns.extend([("dominant".to_owned(), Alignment::Left), ("share %".to_owned(), Alignment::Right)]);
    if weighted {
        columns.push(("/ weight".to_owned(), Alignment::Right));
    }
    let placed = outcome.allocation.spread.is_some();
    if placed {
        columns.push(("runs on".to_owned(), Alignment::Left));
    }
    columns.push(("stopped by".to_owned(), Alignment::Left));

    let mut rows = Vec::new();
    for (user, holding) in instance.users().iter().zip(&outcome.users) {
        let mut row = vec![user.name.clone(), shown(&holding.tasks)];
        if fractions {
            row.push(fraction(&holding.tasks).map(|text| format!("= {text}")).unwrap_or_default());
        }
        row.extend(holding.allocation.iter().map(shown));
        row.extend(holding.shares.iter().map(percent));
        row.push(holding.dominant.map_or("-".to_owned(), |r| resources[r].clone()));
        row.push(percent(&Some(holding.dominant_share.clone())));
        if weighted {
            row.push(percent(&Some(holding.level.clone())));
        }
        if placed {
            row.push(machines(instance, &holding.on));
        }
        row.push(match holding.limit {
            Limit::Demand => "all its tasks run".to_owned(),
            Limit::Resource(r) if instance.capacity()[r].is_positive() => format!("{} is used up", resources[r]),
            Limit::Resource(r) => format!("there is no {}", resources[r]),
            Limit::Slots => "all slots are taken".to_owned(),
            Limit::Machines => "its machines are full".to_owned(),
            Limit::WholeTask => "one more task does not fit".to_owned(),
        });
        rows.push(row);
    }
    rows.push(Vec::new());
    let mut total = |name: &str, amounts: Vec<String>, shares: Vec<String>| {
        let mut row = vec![name.to_owned()];
        row.resize(if fractions { 3 } else { 2 }, String::new());
        rows.push(row.into_iter().chain(amounts).chain(shares).collect());
    };
    total("used", outcome.used.iter().map(shown).collect(), outcome.utilisation.iter().map(percent).collect());
    let capacity = instance.capacity().iter().map(|amount| shown(&Amount::Exact(amount.clone())));
    total("capacity", capacity.collect(), Vec::new());
    if let Some(prices) = &outcome.allocation.prices {
        total("price", prices.iter().map(|price| number(Some(*price))).collect(), Vec::new());
    }
    let mut text = Printout::from(format!("{}\n\n", outcome.policy));
    text += Grid::new(columns, rows);
    if let Some(certificate) = &outcome.allocation.certificate {
        text += format!("certified: residual {:.1e}, gap {:.1e}\n", certificate.residual, certificate.gap);
    }
    text
}

/// Returns the machines with running tasks, each with the number of these tasks; the JSON output contains every machine.
fn machines(instance: &Instance, on: &[Amount]) -> String {
    const SHOWN: usize = 4;
    let some = instance.machines().iter().zip(on).filter(|(_, tasks)| tasks.float() > 0.0);
    let mut all: Vec<String> = some.map(|(machine, tasks)| format!("{}: {}", machine.name, shown(tasks))).collect();
    if all.len() > SHOWN {
        let more = all.split_off(SHOWN).len();
        all.push(format!("{more} more"));
    }
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn shown(amount: &Amount) -> String {
    number(Some(amount.float()))
}

fn percent(share: &Option<Amount>) -> String {
    share.as_ref().map_or("-".to_owned(), |share| format!("{:.1}", 100.0 * share.float()))
}

/// Returns an exact number that is not an integer as a fraction, if the fraction is short enough to be readable.
pub(super) fn fraction(amount: &Amount) -> Option<String> {
    let exact = amount.exact().filter(|exact| !exact.is_integer())?;
    Some(exact.to_string()).filter(|text| text.len() <= FRACTION)
}
