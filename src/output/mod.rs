//! What comes out: tables, figures, images of them, and the report page. Only here polars and plotters are known.

mod escape;
pub mod figure;
pub mod font;
pub mod html;
pub mod raster;
pub mod schema;
pub mod table;
pub mod trace;
