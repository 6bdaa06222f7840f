//! Charts: plain numbers in, one SVG text out.
//!
//! There is one drawing path. plotters draws at ten times the final size, since its coordinates are integers. The SVG has the final size in
//! points, so a chart is ready for a column of a paper; `raster` converts it to PNG or PDF. A policy has the same colour, dashes, marker
//! and hatch in every figure. The bytes depend on the arguments only.
//!
//! Not modelled: interaction. Values that an axis cannot show (zeros on a logarithmic axis) are counted in a note under the chart, never
//! dropped silently.

mod alike;
mod bars;
mod boxes;
mod bubbles;
mod buckets;
mod canvas;
mod data;
mod forest;
mod frame;
mod grid;
mod hatch;
mod heat;
mod legend;
mod lines;
mod many;
mod names;
mod points;
mod scale;
mod sequence;
mod stacked;
mod style;
#[cfg(test)]
mod tests;
mod thin;
mod timeline;

pub use bars::{BarPanel, BarSeries, Category, Interval, bar_panels, bars};
pub use boxes::{BoxPanel, BoxSeries, Spread, boxes};
pub use bubbles::{BubbleSeries, bubbles};
pub use buckets::{Bucket, BucketPool, buckets};
pub use data::{Data, number as exactly};
pub use forest::{ForestPanel, ForestRow, ROW as FOREST_ROW, forest, ranks};
pub use grid::{GridRow, GridSection, GridWords, Mark, grid};
pub use heat::{HeatPanel, ROW as HEAT_ROW, heat};
pub use lines::{Join, MARKED, Panel, Series, cdf, cdf_panels, ecdf, lines, small_multiples};
pub use many::MANY;
pub use points::points;
pub use scale::time_unit;
pub use sequence::{SequenceRow, SequenceStep, Tone, sequence};
pub use stacked::{Stacks, stacked};
pub use style::{LineStyle, line_styles};
pub use timeline::{
    TimelineBody, TimelineCell, TimelineChart, TimelineCurves, TimelineEvent, TimelineMarks, timeline, timeline_columns,
};

/// The kind of numbers along an axis; it selects the unit and the format of the tick labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Plain numbers; the label states the unit, if there is one.
    #[default]
    Number,
    /// Seconds; the axis selects a unit from µs to days and adds it to the label.
    Seconds,
    /// Seconds that are shown in seconds, as in tables; the axis adds the unit to the label.
    PlainSeconds,
    /// A fraction of one, shown in percent.
    Fraction,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity, with its unit unless the measure adds one.
    pub label: String,
    /// The kind of its numbers.
    pub measure: Measure,
    /// Whether the axis is logarithmic.
    pub log: bool,
    /// The least and the largest value shown; derived from the data if absent.
    pub range: Option<(f64, f64)>,
    /// The values with a tick, in ascending order, if a linear axis has room for all; selected by the axis if empty.
    pub ticks: Vec<f64>,
}

impl Measure {
    /// Returns whether the numbers are seconds.
    pub fn is_time(self) -> bool {
        matches!(self, Measure::Seconds | Measure::PlainSeconds)
    }
}

impl Axis {
    /// Creates a linear axis of plain numbers.
    pub fn number(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// Creates a linear axis of seconds.
    pub fn seconds(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), measure: Measure::Seconds, ..Axis::default() }
    }

    /// Creates a linear axis of fractions, in percent.
    pub fn fraction(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), measure: Measure::Fraction, ..Axis::default() }
    }

    /// Makes the axis logarithmic.
    pub fn log(mut self) -> Axis {
        self.log = true;
        self
    }

    /// Sets the range of the axis.
    pub fn range(mut self, low: f64, high: f64) -> Axis {
        self.range = Some((low, high));
        self
    }
}

/// Returns the note under a chart about points that a logarithmic axis cannot show.
fn hidden_note(hidden: usize) -> Option<String> {
    match hidden {
        0 => None,
        1 => Some("1 point at or below 0 is not shown".to_owned()),
        _ => Some(format!("{hidden} points at or below 0 are not shown")),
    }
}

/// A chart without its data.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The heading; papers use the caption instead.
    pub title: Option<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Width and height in points (1/72 inch); the height grows if a legend leaves too little room.
    pub size_pt: (f64, f64),
    /// Number of panels side by side in small multiples; derived from the width if absent.
    pub columns: Option<usize>,
    /// The key of the baseline curve, which is drawn behind each curve if curves have panels of their own.
    pub reference: Option<String>,
}

impl Chart {
    /// One column of an ACM page, in points.
    pub const COLUMN: (f64, f64) = (241.0, 150.0);

    /// The whole width of an ACM page, in points.
    pub const PAGE: (f64, f64) = (506.0, 180.0);

    /// Creates a chart of one column.
    pub fn new(x: Axis, y: Axis) -> Chart {
        Chart { title: None, x, y, size_pt: Chart::COLUMN, columns: None, reference: None }
    }
}
