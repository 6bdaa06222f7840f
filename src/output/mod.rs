//! The output of runs: tables, figures of results, bundles and the report page.

mod group_sheet;
pub mod headline;
pub mod html;
pub mod left_over;
mod marks;
pub mod over_commit;
pub mod overview;
pub mod page;

pub use plimsoll_charts::{escape, figure, font, paper, raster};
pub use plimsoll_figures::{gallery, numbers, picture, requests, sequence, shares, stamp};
pub use plimsoll_results::{comparison, crate_json, folder, manifest, provenance, read, schema, shell, verify};
pub use plimsoll_store::{archive, file, frame, lock, parquet, portable, sealed, table, trace};
