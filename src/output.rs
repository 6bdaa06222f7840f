//! The output of runs under one path: results folders, figures, the report, and the files that contain them.

pub use plimsoll_charts::{escape, figure, font, paper, raster};
pub use plimsoll_figures::{gallery, picture, requests, sequence, shares, stamp, tables, timeline};
pub use plimsoll_metrics::numbers;
pub use plimsoll_report::{headline, html, left_over, over_commit, overview, page};
pub use plimsoll_results::{
    accelerators, bundle, comparison, crate_json, files, folder, manifest, ownership, provenance, read, receipt,
    schema, shell, summary, verify,
};
pub use plimsoll_store::{archive, file, frame, lock, parquet, portable, sealed, table, trace};
