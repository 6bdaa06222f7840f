//! Reads the users of groups from a separate list: a CSV with the columns `user` and `group`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::file::QuotaFile;
use plimsoll_base::error::{Result, did_you_mean};
use plimsoll_base::rows::{InputColumn, InputRow, InputRows, Separator};

const EXPECTED: &str = "the columns user and group";

/// Adds the users of a list to the groups of a file. A name that ends in `*` matches all names with this beginning, as in the file.
///
/// Errors: [`Error::Io`](plimsoll_base::error::Error::Io), and [`Error::Trace`](plimsoll_base::error::Error::Trace) with line and column
/// for other columns, an unknown group, a group that has child groups, and a user with two groups or two rows.
pub(super) fn read(path: &Path, file: &mut QuotaFile) -> Result<()> {
    let above: HashSet<usize> = file.groups.iter().filter_map(|group| group.parent).collect();
    let places: HashMap<String, usize> =
        file.groups.iter().enumerate().map(|(at, group)| (group.name.clone(), at)).collect();
    let all =
        |(at, group): (usize, &super::GroupEntry)| group.users.iter().map(move |user| (user.clone(), at)).collect();
    let mut owners: HashMap<String, usize> = file.groups.iter().enumerate().flat_map::<Vec<_>, _>(all).collect();
    let mut rows = InputRows::open(path, Separator::Comma)?;
    let mut columns = None;
    while let Some(row) = rows.read()? {
        let Some((user, group)) = columns else {
            columns = Some(header(&row)?);
            continue;
        };
        row.expect_fields(2..=2, EXPECTED)?;
        let (name, under) = (row.name(user)?, row.name(group)?);
        let Some(&at) = places.get(under) else {
            let hint = did_you_mean(under, places.keys().map(String::as_str));
            return Err(row.wrong(
                group,
                &format!("is no group{hint}"),
                &format!("a group of {}", file.path.display()),
            ));
        };
        if above.contains(&at) {
            return Err(row.wrong(group, "has groups under it", "one of those"));
        }
        if let Some(other) = owners.insert(name.to_owned(), at) {
            let problem = format!("is in group '{}' already", file.groups[other].name);
            return Err(row.wrong(user, &problem, "each user once"));
        }
        file.groups[at].users.push(name.to_owned());
    }
    match columns {
        Some(_) => Ok(()),
        None => Err(plimsoll_base::error::Error::trace(path, 1, "", format!("is empty; expected {EXPECTED}"))),
    }
}

/// Returns the columns of user and group.
fn header(row: &InputRow) -> Result<(InputColumn<'static>, InputColumn<'static>)> {
    row.expect_fields(2..=2, EXPECTED)?;
    let name = |at| row.text(InputColumn::new(at, "")).map(|name| name.trim_start_matches('\u{feff}'));
    match (name(0)?, name(1)?) {
        ("user", "group") => Ok((InputColumn::new(0, "user"), InputColumn::new(1, "group"))),
        ("group", "user") => Ok((InputColumn::new(1, "user"), InputColumn::new(0, "group"))),
        (first, second) => Err(row.error("", format!("has the columns '{first}' and '{second}'; expected {EXPECTED}"))),
    }
}
