//! The output: tables, the figures of results, and the report page. Only here polars is known.

pub mod archive;
pub mod crate_json;
pub mod failover;
pub mod file;
pub mod folder;
pub mod gallery;
mod group_sheet;
pub mod headline;
pub mod html;
pub mod lock;
pub mod made;
mod marks;
pub mod numbers;
pub mod overview;
pub mod page;
pub mod parquet;
pub mod picture;
pub mod portable;
pub mod provenance;
pub mod read;
pub mod requests;
pub mod schema;
pub mod sealed;
pub mod sequence;
pub mod shares;
pub mod shell;
pub mod stamp;
pub mod table;
pub mod trace;
pub mod verify;

pub use plimsoll_charts::{escape, figure, font, paper, raster};
