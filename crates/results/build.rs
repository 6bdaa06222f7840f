//! Passes the commit of the sources to the program if they are in a Git repository.
//!
//! This is the last commit that changed a source of the program, so that equal sources produce equal bytes of results. It is determined
//! again only if a source changes. The suffix `+changes` means that the sources have uncommitted changes.

use std::path::Path;
use std::process::Command;

/// The sources of the program, below the root of the workspace.
const SOURCES: [&str; 5] = ["crates", "page", "src", "Cargo.toml", "Cargo.lock"];

/// The packages that use this script, with their folders and the root of the workspace seen from there.
const PACKAGES: [(&str, &str, &str); 2] =
    [("plimsoll-results", "crates/results", "../.."), ("plimsoll-page", "page", "..")];

fn main() {
    let script = Path::new(root()).join("crates/results/build.rs");
    println!("cargo:rerun-if-changed={}", script.display());
    if !is_in_workspace() {
        return packaged().into_iter().for_each(|commit| println!("cargo:rustc-env=PLIMSOLL_COMMIT={commit}"));
    }
    // A source that is missing, as in a package of a registry, would cause a run at every build.
    let there = SOURCES.iter().map(|source| Path::new(root()).join(source)).filter(|source| source.exists());
    there.for_each(|source| println!("cargo:rerun-if-changed={}", source.display()));
    if let Some(commit) = commit().or_else(packaged) {
        println!("cargo:rustc-env=PLIMSOLL_COMMIT={commit}");
    }
}

/// Returns the row of this package. Panics: only if another package uses this script (programmer error).
fn package() -> (&'static str, &'static str, &'static str) {
    let name = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    PACKAGES.into_iter().find(|(known, ..)| *known == name).expect("a package of the list")
}

fn root() -> &'static str {
    package().2
}

/// Returns whether this package is in the folder of its workspace, rather than among the vendored sources of another project.
fn is_in_workspace() -> bool {
    let Some(here) = std::env::var_os("CARGO_MANIFEST_DIR") else { return false };
    let there = Path::new(&here).join(root()).join(package().1);
    matches!((std::fs::canonicalize(there), std::fs::canonicalize(here)), (Ok(there), Ok(here)) if there == here)
}

/// Returns the last commit that changed a source. Returns `None` without Git, and in a folder that is not the root of a repository, such as
/// sources unpacked from a registry.
fn commit() -> Option<String> {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR")?).join(root());
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&root).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if std::fs::canonicalize(top).ok()? != std::fs::canonicalize(&root).ok()? {
        return None;
    }
    let of_sources = |args: &[&str]| git(&[args, &["--"], &SOURCES].concat());
    let commit = of_sources(&["log", "-1", "--format=%H"])?;
    let changes = of_sources(&["status", "--porcelain"])?;
    (commit.len() >= 40).then(|| if changes.is_empty() { commit } else { format!("{commit}+changes") })
}

/// Returns the commit that Cargo recorded when it packed the sources for a registry.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let commit = text.split("\"sha1\": \"").nth(1)?.split('"').next()?;
    (commit.len() >= 40).then(|| commit.to_owned())
}
