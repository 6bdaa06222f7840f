//! Checks bundles, which may be from any source: the listed files exist, are unchanged, and are the only ones.
//!
//! No file is unpacked to disk. Figures, statistics and pages must also have been generated from the tables of the bundle, as far as its
//! manifests state their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_base::error::{Error, Result};
use plimsoll_store::archive::Archive;
use serde::Deserialize;
use serde_json::Value;

use crate::crate_json::encoded;
use crate::files::{EXPERIMENT, MADE, RECEIPTS, RO_CRATE, STUDY};
use crate::folder::{add_sources, digest_of_sources, of_cell};
use crate::manifest::{Manifest, below};

/// The part of a description that is checked.
#[derive(Deserialize)]
struct BundleDescription {
    #[serde(rename = "@graph")]
    graph: Vec<Entity>,
}

#[derive(Deserialize)]
struct Entity {
    #[serde(rename = "@id")]
    id: String,
    /// A name, or a list of names.
    #[serde(rename = "@type", default)]
    kind: Value,
    about: Option<Link>,
    #[serde(rename = "hasPart", default)]
    parts: Vec<Link>,
    #[serde(rename = "contentSize")]
    size: Option<String>,
    sha256: Option<String>,
}

impl Entity {
    /// Returns whether the entity has this kind; an entity may have several kinds.
    fn is(&self, kind: &str) -> bool {
        self.kind == kind || self.kind.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    }
}

#[derive(Deserialize)]
struct Link {
    #[serde(rename = "@id")]
    id: String,
}

/// The result of a successful check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of files, without the description.
    pub files: usize,
    /// Uncompressed size in bytes.
    pub size: u64,
}

/// Checks a bundle: it unpacks to plain files in one folder, contains the required description, contains every listed file with its size
/// and digest, and lists every file. Files are read in pieces, and no further than the listed size.
///
/// Errors: [`Error::Trace`] with the first problem.
pub fn verify(path: &Path) -> Result<Verified> {
    let mut archive = Archive::open(path)?;
    let wrong = |name: &str, what: &str| Error::trace(path, 0, "", format!("{}: {what}", name.escape_debug()));
    let names = archive.names();
    let top = top(&names);
    let file = format!("{top}{RO_CRATE}");
    let text = archive.text(&file)?;
    let json: BundleDescription = serde_json::from_str(&text).map_err(|error| wrong(&file, &error.to_string()))?;
    let mut entities: BTreeMap<&str, &Entity> = BTreeMap::new();
    for entity in &json.graph {
        if entities.insert(&entity.id, entity).is_some() {
            return Err(wrong(&entity.id, "it is described twice"));
        }
    }
    let descriptor =
        entities.get(RO_CRATE).filter(|entity| entity.about.as_ref().is_some_and(|about| about.id == "./"));
    descriptor.ok_or_else(|| wrong(&file, "it does not state that it describes this bundle"))?;
    let root = entities.get("./").ok_or_else(|| wrong(&file, "the bundle itself is not described"))?;
    let listed: BTreeSet<&str> = root.parts.iter().map(|part| part.id.as_str()).collect();
    let below = names.iter().filter_map(|name| Some((encoded(name.strip_prefix(&top)?), name)));
    let files: BTreeMap<String, &String> = below.filter(|(id, _)| id != RO_CRATE).collect();
    let mut left = files.clone();
    let mut found = Verified { files: 0, size: 0 };
    for entity in json.graph.iter().filter(|entity| entity.is("File")) {
        let id = entity.id.as_str();
        let name = left.remove(id).ok_or_else(|| wrong(id, "it is listed but missing"))?;
        let size: Option<u64> = entity.size.as_ref().and_then(|size| size.parse().ok());
        let Some((size, sha256)) = size.zip(entity.sha256.as_ref()) else {
            return Err(wrong(name, "the description has no size or no digest of it"));
        };
        let sum = archive.sum(name, size)?;
        if sum.size != size || sum.sha256 != *sha256 {
            return Err(wrong(name, "it is not as it was packed: size or digest differ"));
        }
        if !listed.contains(id) {
            return Err(wrong(name, "it is not a part of the bundle (hasPart)"));
        }
        found = Verified { files: found.files + 1, size: found.size.saturating_add(size) };
    }
    if let Some(name) = left.values().next() {
        return Err(wrong(name, "it is present but not listed"));
    }
    let is_there = |id: &str| match entities.get(id) {
        Some(part) if part.is("Dataset") => {
            files.range(id.to_owned()..).next().is_some_and(|(file, _)| file.starts_with(id))
        }
        _ => id == RO_CRATE || files.contains_key(id),
    };
    let parts = || json.graph.iter().flat_map(|entity| &entity.parts);
    if let Some(part) = parts().find(|part| !is_there(&part.id)) {
        return Err(wrong(&part.id, "it is listed as a part (hasPart) but missing"));
    }
    check_sources(path, &mut archive, &names)?;
    match found.files {
        0 => Err(wrong(&file, "it lists no files")),
        _ => Ok(found),
    }
}

/// Checks that figures, statistics and pages were generated from the tables of the bundle, as far as its `made.json` files state the
/// sources. Errors: [`Error::Trace`] with the first file for which this is not so.
fn check_sources(path: &Path, archive: &mut Archive, names: &[String]) -> Result<()> {
    for list in names.iter().filter(|name| name.rsplit('/').next() == Some(MADE)) {
        let folder = list.strip_suffix(MADE).unwrap_or_default();
        // An input file may have the name of a manifest; it is skipped.
        let Ok(made) = serde_json::from_str::<Manifest>(&archive.text(list)?) else { continue };
        if made.sources.is_empty() {
            continue;
        }
        let study = format!("{folder}{STUDY}");
        let cells = match names.contains(&study) {
            true => {
                serde_json::from_str::<SweepCells>(&archive.text(&study)?).map(|study| study.cells).unwrap_or_default()
            }
            false => vec![(String::new(), Value::Null)],
        };
        let mut tables = BTreeMap::new();
        for (cell, _) in cells {
            let place = below(Path::new(""), &of_cell(Path::new(""), &cell));
            let inside = if place.is_empty() { folder.to_owned() } else { format!("{folder}{place}/") };
            let contents = format!("{inside}{EXPERIMENT}");
            if !names.contains(&contents) {
                continue;
            }
            let Ok(contents) = serde_json::from_str(&archive.text(&contents)?) else { continue };
            let receipts = format!("{inside}{RECEIPTS}/");
            for name in names.iter().filter_map(|name| name.strip_prefix(&receipts)) {
                let text = archive.text(&format!("{receipts}{name}"))?;
                add_sources(&mut tables, &contents, &place, (name, &text));
            }
        }
        let digest = digest_of_sources(&tables);
        // An incomplete bundle omits some of the files.
        let mut there = made.sources.iter().filter(|(name, _)| names.contains(&format!("{folder}{name}")));
        if let Some((name, _)) = there.find(|(_, made)| **made != digest) {
            let name = format!("{folder}{name}").escape_debug().to_string();
            return Err(Error::trace(
                path,
                0,
                "",
                format!("{name}: it was made from other tables than the bundle has"),
            ));
        }
    }
    Ok(())
}

/// The cells in the description of a sweep.
#[derive(Deserialize)]
struct SweepCells {
    cells: Vec<(String, Value)>,
}

/// Returns the folder of all files, with `/` at its end; empty if there is none.
fn top(names: &[String]) -> String {
    let first = names.first().and_then(|name| name.find('/').map(|at| &name[..=at])).unwrap_or_default();
    let all = names.iter().all(|name| name.starts_with(first));
    if all { first.to_owned() } else { String::new() }
}
