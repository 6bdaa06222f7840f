//! What comes out: figures, images of them, and the report page. Everything here takes plain structs.

mod escape;
pub mod figure;
pub mod font;
pub mod html;
pub mod raster;
