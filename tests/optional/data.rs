//! Real traces that are too large for the repository or may not be redistributed. They are in `../shared/data`, or in the folder that
//! `PLIMSOLL_SHARED_DATA` names.

use std::path::{Path, PathBuf};

use crate::docs::root;
use crate::traces::{good, jobs};
use crate::{Missing, Outcome};

/// A trace: its format, its path, and machines for it.
pub type File = (&'static str, &'static str, &'static str);

/// The traces to import and replay.
pub const FILES: [File; 4] = [
    ("swim", "swim/FB-2009_samples_24_times_1hr_0.tsv", "100x16c32g"),
    ("alibaba-2017", "alibaba-2017/batch_task.csv", "1300x64c1norm"),
    ("swf", "swf/NASA-iPSC-1993-3.1-cln.swf", "1x128c"),
    ("openb", "openb-2023/openb_pod_list_default.csv", "1213x96c768g8gpu"),
];

pub fn round_trips((format, file, machines): File) -> Outcome {
    let folder = std::env::var_os("PLIMSOLL_SHARED_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = folder.join(file);
    if !path.is_file() {
        return Err(Missing(format!("no {}", path.display())));
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let (csv, parquet, again) = (dir.path().join("t.csv"), dir.path().join("t.parquet"), dir.path().join("u.csv"));
    good(&["import", &text(&path), "-o", &text(&csv)]);
    good(&["import", &text(&csv), "-o", &text(&parquet)]);
    good(&["import", &text(&parquet), "-o", &text(&again)]);
    let read = |path: &Path| std::fs::read(path).expect("readable");
    assert!(read(&csv) == read(&again), "CSV to Parquet and back differs");
    // Ten million tasks twice would take too long.
    if format != "alibaba-2017" {
        assert_eq!(jobs(dir.path(), &text(&csv), machines, &[]), jobs(dir.path(), &text(&path), machines, &[]));
    }
    Ok(())
}
