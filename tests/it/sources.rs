//! Copies of the sources, which tests change and build.

use std::collections::BTreeMap;
use std::path::Path;

use crate::replay::files;

/// The folders and files that a build of the workspace and its tests requires.
const PARTS: [&str; 13] = [
    "Cargo.lock",
    "Cargo.toml",
    "CITATION.cff",
    "benches",
    "crates",
    "docs",
    "examples",
    "experiments",
    "page",
    "python",
    "src",
    "tests",
    "traces",
];

/// Returns the folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Copies the files that a build requires, with the given contents of changed files by name. Files of an earlier copy that are the same keep
/// their times, so that only changed crates are built again; files that no longer exist are removed.
pub fn copy_sources(to: &Path, changed: &BTreeMap<&str, String>) {
    let mut kept = Vec::new();
    for part in PARTS {
        let from = root().join(part);
        for file in if from.is_dir() { files(&from) } else { vec![from] } {
            let name = file.strip_prefix(root()).expect("below the root");
            let content = match changed.get(&*name.to_string_lossy()) {
                Some(text) => text.clone().into_bytes(),
                None => std::fs::read(&file).expect("readable"),
            };
            let target = to.join(name);
            if std::fs::read(&target).is_ok_and(|old| old == content) {
                kept.push(target);
                continue;
            }
            std::fs::create_dir_all(target.parent().expect("a folder")).expect("writable");
            std::fs::write(&target, content).expect("writable");
            kept.push(target);
        }
        for file in files(&to.join(part)).into_iter().filter(|file| !kept.contains(file)) {
            std::fs::remove_file(file).expect("removable");
        }
        kept.clear();
    }
}
