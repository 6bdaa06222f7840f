//! The output of runs: tables, figures of results, bundles and the report page.

pub mod crate_json;
pub mod folder;
pub mod gallery;
mod group_sheet;
pub mod headline;
pub mod html;
pub mod left_over;
pub mod manifest;
mod marks;
pub mod numbers;
pub mod over_commit;
pub mod overview;
pub mod page;
pub mod picture;
pub mod provenance;
pub mod read;
pub mod requests;
pub mod schema;
pub mod sequence;
pub mod shares;
pub mod shell;
pub mod stamp;
pub mod verify;

pub use plimsoll_charts::{escape, figure, font, paper, raster};
pub use plimsoll_store::{archive, file, frame, lock, parquet, portable, sealed, table, trace};
