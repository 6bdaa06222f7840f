//! What comes out: tables, figures, images of them, and the report page. Only here polars and plotters are known.

pub mod archive;
pub mod crate_json;
mod escape;
pub mod failover;
pub mod figure;
pub mod folder;
pub mod font;
pub mod gallery;
mod group_sheet;
pub mod headline;
pub mod html;
pub mod made;
pub mod numbers;
pub mod overview;
pub mod page;
pub mod paper;
pub mod picture;
pub mod provenance;
pub mod raster;
pub mod read;
pub mod requests;
pub mod schema;
pub mod sequence;
pub mod shares;
pub mod stamp;
pub mod table;
pub mod trace;
