//! The input files of a bundle: resolved from the recorded location of the plan, and packed if their digests match.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use super::BundleContents;
use plimsoll_base::error::{Error, Result};
use plimsoll_sim::workload::Input;
use plimsoll_store::archive::{self, Content};

/// The folder of a bundle with the plan and its inputs.
const STUDY: &str = "study";

/// The names of inputs, relative to the folder of the plan, with their BLAKE3 digests. The digest is `None` for an input that could be
/// read only once.
type ReadInputs = BTreeMap<String, Option<String>>;

impl BundleContents {
    /// Adds the input files of the plan to the bundle. Selects a location for the plan in the bundle, such that the plan's paths refer to
    /// the packed files. Files that cannot be packed are added to the missing parts. `read` has the names and digests of the inputs; if it
    /// is `None`, they are read from `run.json`.
    pub(super) fn read_inputs(&mut self, folder: &Path, read: Option<ReadInputs>, largest: u64) -> Result<()> {
        let recorded = || serde_json::from_value(self.made["inputs"].clone()).ok();
        let from = self.made["folder"].as_str().map(|from| folder.join(from));
        self.base = format!("{STUDY}/");
        let read = read.or_else(recorded);
        if read.as_ref().is_some_and(BTreeMap::is_empty) {
            return Ok(());
        }
        let (Some(read), Some(from)) = (read, from) else {
            let problem = "run.json does not list the input files: run the plan again, which keeps complete runs";
            self.missing.add(problem.to_owned());
            return Ok(());
        };
        // The plan's folder is nested so deeply that no path of the plan leads out of the bundle.
        let ups = |name: &String| name.split('/').filter(|part| *part == "..").count();
        self.base += &"plans/".repeat(read.keys().map(ups).max().unwrap_or(0));
        let current = std::env::current_dir().and_then(|path| path.canonicalize());
        let current = current.map_err(|source| Error::io(".", source))?;
        for (name, digest) in &read {
            match self.find(name, digest.as_deref(), &from, largest, &current)? {
                Ok((place, input, size)) if size <= largest => drop(self.inputs.insert(place, input)),
                Ok((_, input, _)) => drop(self.elsewhere.insert(name.clone(), input.sum()?)),
                Err(problem) => self.missing.add(format!("{} ({problem})", name.escape_debug())),
            }
        }
        Ok(())
    }

    /// Returns the location of an input in the bundle, its content, and its size; `name` is relative to `from`, the folder of the plan. The
    /// inner error is the reason why the input cannot be packed.
    fn find(
        &self,
        name: &str,
        digest: Option<&str>,
        from: &Path,
        largest: u64,
        current: &Path,
    ) -> Result<std::result::Result<(String, Content, u64), String>> {
        let refused = |problem: String| Ok(Err(problem));
        let Some(digest) = digest else { return refused("it could be read only once: give it as a file".to_owned()) };
        let Some(place) = place(&self.base, Path::new(name)) else {
            return refused("the plan names it by an absolute path: name it from the plan's folder".to_owned());
        };
        if let Some(problem) = archive::problem(&place) {
            return refused(format!("{problem}: give it another name"));
        }
        let path = match from.join(name).canonicalize() {
            Ok(path) if path.is_file() => path,
            _ => return refused(format!("it is not in {}", from.join(name).display())),
        };
        let size = path.metadata().map_err(|source| Error::io(&path, source))?.len();
        if size <= largest && !path.starts_with(current) {
            let above = path.ancestors().find(|above| current.starts_with(above)).unwrap_or(Path::new("/"));
            let (path, above) = (path.display(), above.display());
            return refused(format!(
                "it is {path}, outside of the current folder: `plimsoll bundle` in {above} packs it"
            ));
        }
        match Input::open(&path)?.digest()? == digest {
            true => Ok(Ok((place, Content::File(path, digest.to_owned()), size))),
            false => refused("it has changed since it was read".to_owned()),
        }
    }
}

/// Resolves a path of a plan against `base`, the folder of the plan in the bundle; `None` if it leads out of the bundle.
fn place(base: &str, below: &Path) -> Option<String> {
    let mut parts: Vec<String> = base.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    for part in below.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?.to_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_plan_stay_in_the_bundle() {
        let at = |base: &str, path: &str| place(base, Path::new(path));
        assert_eq!(at("study/plans/", "../traces/a.csv").as_deref(), Some("study/traces/a.csv"));
        assert_eq!(at("study/", "./quota/a.toml").as_deref(), Some("study/quota/a.toml"));
        assert_eq!(at("study/", "../../a.csv"), None);
        assert_eq!(at("study/", "/a.csv"), None);
    }
}
