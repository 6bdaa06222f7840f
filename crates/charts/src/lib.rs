//! Figures of Plimsoll as SVG, PNG and PDF: charts of plain numbers, drawn at the final size for a paper.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod figure;
pub mod font;
pub mod paper;
pub mod raster;

pub use plimsoll_base::escape;
