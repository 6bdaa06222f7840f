//! Tables, figures and the report: the only place that knows polars and plotters.

pub mod schema;
pub mod table;
pub mod trace;
