//! Figures of Plimsoll as SVG, PNG and PDF: charts of plain numbers, drawn at the size of the paper that they are for.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod escape;
pub mod figure;
pub mod font;
pub mod paper;
pub mod raster;
