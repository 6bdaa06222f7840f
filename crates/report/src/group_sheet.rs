//! The quota groups of each policy in the report: guarantees and the time below them, from the `groups` table.

use plimsoll_base::error::Result;
use plimsoll_metrics::Interval;
use plimsoll_results::read::{Part, Results};
use plimsoll_results::schema::Table;

use crate::html::HtmlTable as Sheet;
use crate::page::{cell, mean, number_column, over_seeds, text_column};

/// Maximum number of groups of a policy with a row.
const GROUPS_MOST: usize = 20;

/// A group under a policy: its constant columns, and one value per resource, seed by seed.
struct SheetRow {
    policy: usize,
    name: String,
    times: [Vec<Option<f64>>; 4],
    borrowed: Vec<Vec<Option<f64>>>,
    unreturned: Vec<Vec<Option<f64>>>,
}

/// Columns that are the same in all rows of a group, with their headings.
const TIMES: [(&str, &str, &str); 4] = [
    ("below min s", "below_min_any_s", "time with an allocation below the requested part of its minimum"),
    ("returns", "returns", "number of returns of lent amounts"),
    ("mean s", "return_mean_s", "mean duration of these returns"),
    ("longest s", "return_max_s", "longest of these returns"),
];

/// Returns one row per policy and group; with many groups, only the groups that were longest below their minimum. `None` without groups.
pub(crate) fn groups(results: &Results) -> Result<Option<Sheet>> {
    let names: Vec<&str> = ["group", "label", "resource", "borrowed_s", "unreturned_s"]
        .into_iter()
        .chain(TIMES.map(|(_, column, _)| column))
        .collect();
    let parts = results.table(Table::Groups, &names, None)?;
    let mut rows: Vec<SheetRow> = Vec::new();
    for part in &parts {
        add(results, part, &mut rows)?;
    }
    let mut shown: Vec<&SheetRow> = Vec::new();
    for policy in rows.chunk_by(|a, b| a.policy == b.policy) {
        let below = |row: &SheetRow| mean(&row.times[0]).map_or(0.0, |mean: Interval| mean.mean);
        let mut longest: Vec<usize> = (0..policy.len()).collect();
        longest.sort_by(|&a, &b| below(&policy[b]).total_cmp(&below(&policy[a])).then(a.cmp(&b)));
        longest.truncate(GROUPS_MOST);
        longest.sort_unstable();
        shown.extend(longest.into_iter().map(|at| &policy[at]));
    }
    let mut columns = vec![text_column("policy"), text_column("group")];
    columns.extend(TIMES.map(|(heading, _, about)| number_column(heading, about)));
    let borrowed = |name: &str| number_column(&format!("borrowed {name} h"), "usage above its minimum, times hours");
    columns.extend(results.dims.iter().map(|dim| borrowed(&dim.name)));
    // The column is omitted if all its values are zero.
    let kept = rows.iter().flat_map(|row| row.unreturned.iter().flatten()).any(|hours| hours.is_some_and(|h| h > 0.0));
    let unreturned = |name: &str| {
        let about = "allocation above its runtime quota that could not be reclaimed, times hours: tasks marked stable are never stopped";
        number_column(&format!("not given back {name} h"), about)
    };
    columns.extend(results.dims.iter().filter(|_| kept).map(|dim| unreturned(&dim.name)));
    let left_out = match rows.len() - shown.len() {
        0 => String::new(),
        n => format!("; {n} groups that were below their min for less time are omitted"),
    };
    let caption = format!("Quota groups{}{left_out}", over_seeds(results));
    let cells = |row: &&SheetRow| -> Vec<String> {
        let names = [results.contents.policies[row.policy].clone(), row.name.clone()];
        let unreturned = row.unreturned.iter().filter(|_| kept);
        let values = row.times.iter().chain(&row.borrowed).chain(unreturned);
        names.into_iter().chain(values.map(|values| cell(mean(values)))).collect()
    };
    let sheet = Sheet { caption, columns, rows: shown.iter().map(cells).collect(), ..Sheet::default() };
    Ok((!sheet.rows.is_empty()).then_some(sheet))
}

/// Adds the values of a run to the rows of its policy.
fn add(results: &Results, part: &Part, rows: &mut Vec<SheetRow>) -> Result<()> {
    let first = rows.iter().position(|row| row.policy == part.policy).unwrap_or(rows.len());
    let (groups, labels) = (part.names("group")?, part.names("label")?);
    let name = |(group, label): (&String, String)| {
        if label.is_empty() { group.clone() } else { format!("{group} ({label})") }
    };
    let names: Vec<String> = groups.iter().zip(labels).map(name).collect();
    let (resources, borrowed) = (part.names("resource")?, part.numbers("borrowed_s")?);
    let unreturned = part.numbers("unreturned_s")?;
    let times = TIMES.iter().map(|(_, column, _)| part.numbers(column)).collect::<Result<Vec<_>>>()?;
    let mut at = first;
    for (line, (name, resource)) in names.iter().zip(&resources).enumerate() {
        // The rows of a group are adjacent, and groups have the same order in every run.
        at += usize::from(line > 0 && names[line - 1] != *name);
        if at == rows.len() {
            let none = vec![Vec::new(); results.dims.len()];
            let (borrowed, unreturned) = (none.clone(), none);
            rows.push(SheetRow {
                policy: part.policy,
                name: name.clone(),
                times: Default::default(),
                borrowed,
                unreturned,
            });
        }
        if let Some(d) = results.dims.iter().position(|dim| dim.name == *resource) {
            let hours = |seconds: &[Option<f64>]| seconds[line].map(|seconds| seconds / 3600.0);
            rows[at].borrowed[d].push(hours(&borrowed));
            rows[at].unreturned[d].push(hours(&unreturned));
        }
        if line == 0 || names[line - 1] != *name {
            for (values, column) in rows[at].times.iter_mut().zip(&times) {
                values.push(column[line]);
            }
        }
    }
    Ok(())
}
