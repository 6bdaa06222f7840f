//! Queue paths and amounts, which YARN's capacity and fair scheduler have in common.
//!
//! Group names are derived from paths ([`names`]). Resources are written as pairs (`memory-mb=1024, vcores=4`) or in words (`1024 mb, 4
//! vcores`). YARN's megabytes are MiB.

use std::collections::HashMap;

use crate::diagnostics::Diagnostics;
use crate::group::Setting;
use crate::objects::{Written, not_accepted};
use crate::quantity::{Quantities, Quantity, Resource, plain};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::tree::{Place, brief};

/// The root of all paths.
pub const ROOT: &str = "root";

/// Returns the names of groups for paths: the last part, or the whole path if the last part is not unique.
pub fn names(paths: &[String]) -> Vec<String> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let mut counts: HashMap<String, usize> = HashMap::new();
    paths.iter().for_each(|path| *counts.entry(last(path)).or_default() += 1);
    let name = |path: &String| Some(last(path)).filter(|last| counts[last] == 1 && last != ROOT);
    paths.iter().map(|path| name(path).unwrap_or_else(|| path.clone())).collect()
}

/// Returns the resource of a name; amounts of memory without a unit are in MiB.
fn resource(name: &str) -> Resource {
    match name {
        "memory" | "memory-mb" => Resource::mebibytes("memory", 1, 1),
        "vcores" | "cpu" => Resource::units("cpu"),
        "yarn.io/gpu" | "gpu" => Resource::units("gpu"),
        name => Resource::units(&plain(name)),
    }
}

/// Parses amounts such as `memory-mb=1024, vcores=4`; memory may have a unit (`memory=10Gi`). A percentage or a weight gives a note.
///
/// Errors: a part is not an amount.
pub fn pairs(text: &str, key: &str, place: &Place, notes: &mut Diagnostics) -> Result<Quantities> {
    let mut amounts = Quantities::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let wrong = || not_accepted(place, key, part, "resources such as memory=1024, vcores=4");
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        if value.ends_with(['%', 'w']) {
            notes.add(place, format!("{key}: '{}' is not carried over: it is not an amount", brief(part)));
            continue;
        }
        let mut of = resource(name);
        let written = Written { text: value, place, path: format!("{key}: {}", brief(name)) };
        let mut quantity = written.kubernetes()?;
        if of.dim.name == "memory" && value.ends_with(|c: char| c.is_ascii_alphabetic()) {
            // An amount of memory with a unit is in bytes.
            of = Resource::mebibytes("memory", 1, 1 << 20);
            quantity = Quantity::kubernetes(value).map_err(|problem| written.wrong(problem, "an amount of memory"))?;
        }
        if amounts.get(&of.dim).is_some() {
            return Err(place.wrong(key, format!("'{}' is given twice", brief(name))));
        }
        amounts.set(&of.dim, written.amount(&of, &quantity, notes)?);
    }
    if amounts.is_empty() && text.trim().is_empty() {
        return Err(place.wrong(key, "is empty; expected resources such as memory=1024, vcores=4"));
    }
    Ok(amounts)
}

/// Returns the error for an invalid name of a queue.
pub fn wrong_name(place: &Place, key: &str, name: &str) -> Error {
    not_accepted(place, key, name, "the name of a queue, without dots")
}

/// Parses a truth value of Hadoop. Errors: the text is neither `true` nor `false`.
pub fn truth(text: &str, key: &str, place: &Place) -> Result<Setting> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(Setting::Truth(true)),
        "false" => Ok(Setting::Truth(false)),
        _ => Err(not_accepted(place, key, text, "true or false")),
    }
}

/// Parses a number. Errors: the text is not a number, or it is negative.
pub fn number(text: &str, key: String, place: &Place) -> Result<Setting> {
    // Java floats may end with these letters.
    let text = text.trim().trim_end_matches(['f', 'F']);
    let written = Written { text, place, path: key };
    Ok(Setting::Number(written.digits(&written.number()?)?))
}

/// Parses amounts in the words of the fair scheduler: `1024 mb, 4 vcores`. Errors: other words.
pub fn words(text: &str, key: &str, place: &Place, notes: &mut Diagnostics) -> Result<Quantities> {
    let mut amounts = Quantities::default();
    let lower = text.to_ascii_lowercase();
    for part in lower.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(part.len());
        let (digits, unit) = (part[..end].trim(), part[end..].trim());
        let of = match unit {
            "mb" => Resource::mebibytes("memory", 1, 1),
            "vcores" | "vcore" => Resource::units("cpu"),
            _ => {
                let expected = "resources such as '1024 mb, 4 vcores' or 'memory-mb=1024, vcores=4'";
                return Err(not_accepted(place, key, part, expected));
            }
        };
        if amounts.get(&of.dim).is_some() {
            return Err(place.wrong(key, format!("'{unit}' is given twice")));
        }
        let written = Written { text: digits, place, path: key.to_owned() };
        amounts.set(&of.dim, written.amount(&of, &written.number()?, notes)?);
    }
    if amounts.is_empty() {
        return Err(place.wrong(key, "is empty; expected resources such as '1024 mb, 4 vcores'"));
    }
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_names() {
        let paths = ["root.a", "root.b", "root.a.x", "root.b.x", "root.b.root"].map(str::to_owned);
        assert_eq!(names(&paths), ["a", "b", "root.a.x", "root.b.x", "root.b.root"]);
    }

    #[test]
    fn amounts_are_read_in_both_ways() {
        let (place, mut notes) = (Place::whole_text("t", ""), Diagnostics::default());
        let mut both = |text: &str, pair: bool| {
            let read = if pair { pairs } else { words };
            read(text, "k", &place, &mut notes).map(|amounts| amounts.settings().join(" ")).map_err(|e| e.to_string())
        };
        for (text, settings) in [
            ("memory=10240,vcores=12", "cpu = 12 memory_gib = 10"),
            ("memory=10Gi, vcores=2", "cpu = 2 memory_gib = 10"),
            ("vcores=1, memory-mb=1025, yarn.io/gpu=3, a/b=2", "cpu = 1 memory_mib = 1025 gpu = 3 a_b = 2"),
            ("memory=50%,vcores=2", "cpu = 2"),
        ] {
            assert_eq!(both(text, true).as_deref(), Ok(settings), "{text}");
        }
        for (text, settings) in [
            ("1024 mb, 3 vcores", "cpu = 3 memory_gib = 1"),
            ("10000 mb,0vcores", "cpu = 0 memory_mib = 10000"),
            ("2 VCORES , 512MB", "cpu = 2 memory_mib = 512"),
        ] {
            assert_eq!(both(text, false).as_deref(), Ok(settings), "{text}");
        }
        assert_eq!(
            both("memory", true).unwrap_err(),
            "t: k: 'memory' is not accepted; expected resources such as memory=1024, vcores=4"
        );
        assert!(
            both("vcores=x", true).unwrap_err().starts_with("t: k: vcores: 'x' is not a number; expected an amount")
        );
        assert!(both("1024", false).unwrap_err().starts_with("t: k: '1024' is not accepted"));
        assert!(both("1 mb, 2 mb", false).unwrap_err().ends_with("'mb' is given twice"));
    }
}
