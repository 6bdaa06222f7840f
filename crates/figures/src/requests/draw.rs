//! Draws the requested figures. This file has the parts that all kinds share: the chart around the data, and the caption.

use plimsoll_base::error::Result;
use plimsoll_charts::figure::{Axis, Chart, Data, Measure};

use super::check::FigureRequest;
use super::field::{Field, FigureColumn};
use super::kind::Stat;
use super::kinds::Draw;
use super::rows::{FigureRow, Whole};
use crate::gallery::{Drawn, Gallery};
use plimsoll_metrics::numbers::capital;

/// Heights in points: of a panel with the text below it, and of the margins around all panels.
const PANEL: f64 = 120.0;
const AROUND: f64 = 40.0;

/// Maximum number of panels side by side.
const COLUMNS: usize = 3;

/// The number of jobs or tasks; a value computed from fewer has a hollow marker.
pub(super) const FEW: u64 = 10;

/// A drawing with its data and description.
pub(super) struct Picture {
    pub svg: String,
    pub data: Data,
    /// A description of its content, without a full stop.
    pub caption: String,
}

impl FigureRequest {
    /// Draws the figure. Errors: a damaged table.
    pub(super) fn draw(&self, whole: &Whole) -> Result<Gallery> {
        let draw = match self.kind.row().map(|kind| &kind.draw) {
            None => return Ok(Gallery::default()),
            Some(Draw::Differences(draw)) => {
                return Ok(match draw(self, whole)? {
                    Some(picture) => self.gallery(picture),
                    None => Gallery::without(&self.name, "there is nothing to compare"),
                });
            }
            Some(Draw::Rows(draw)) => draw,
        };
        let rows = self.rows(whole)?;
        if !rows.there {
            return Ok(Gallery::without_table(&self.name, self.table));
        }
        if rows.rows.is_empty() {
            return Ok(Gallery::without(&self.name, "no row has a value to show"));
        }
        Ok(self.gallery(draw(self, &rows)))
    }

    fn gallery(&self, picture: Picture) -> Gallery {
        let caption = self.caption.clone().unwrap_or_else(|| format!("{}.", picture.caption));
        let svg = self.paper.zoomed(picture.svg);
        let figure = Drawn { name: self.name.clone(), caption, svg, data: picture.data };
        Gallery { figures: vec![figure], notes: Vec::new() }
    }

    /// Returns the chart around `panels` panels.
    pub(super) fn chart(&self, panels: usize, x: Axis, y: Axis) -> Chart {
        let with = |at: usize, axis: Axis| {
            let label = self.labels[at].clone().unwrap_or(axis.label);
            Axis { label, log: axis.log || self.log[at], range: self.ranges[at].or(axis.range), ..axis }
        };
        let mut chart = Chart::new(with(0, x), with(1, y));
        chart.title.clone_from(&self.title);
        if panels > 1 {
            // The fewest columns for that number of rows, so that the last row is not nearly empty.
            let rows = panels.div_ceil(COLUMNS);
            (chart.size_pt, chart.columns) =
                ((Chart::PAGE.0, AROUND + PANEL * rows as f64), Some(panels.div_ceil(rows)));
        }
        self.paper.fit(chart, panels)
    }

    /// Returns the lower and upper bound of the shown quantity, given some of its values: at least 0 if none is negative, and at most 1
    /// for fractions.
    pub(super) fn bounds(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
        let part =
            self.y.iter().all(FigureColumn::is_part) && self.scale.iter().all(|scale| *scale == 1.0) && high <= 1.0;
        (if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY }, if part { 1.0 } else { f64::INFINITY })
    }

    /// Returns the axis of the shown quantity: one column, or several columns of one measure.
    pub(super) fn y_axis(&self) -> Axis {
        let first = self.y[0].axis();
        let axis = match &self.y[..] {
            // A scale changes the unit of the column.
            [only] if self.scale != [1.0] => Axis::number(only.heading.clone()),
            [_] => first,
            all if all.iter().any(|one| one.measure() != all[0].measure()) => Axis::number("Value"),
            _ => match first.measure {
                Measure::Fraction => Axis::fraction("Share"),
                measure if measure.is_time() => Axis { measure, ..Axis::number("Time") },
                _ => Axis::number("Value"),
            },
        };
        match self.stat {
            Stat::Mean => axis,
            Stat::Count => Axis::number("Number"),
            stat => Axis { label: format!("{}{}", stat.words(), lower(&axis.label)), ..axis },
        }
    }

    /// Describes the shown quantities.
    pub(super) fn subject(&self) -> String {
        let names: Vec<String> = self.y.iter().map(|column| column.heading.clone()).collect();
        let what = match self.y.len() {
            1 => names[0].clone(),
            _ => {
                let (last, first) = names.split_last().expect("there are two or more");
                let first: Vec<String> = first.iter().map(|name| lower(name)).collect();
                capital(&format!("{} and {}", first.join(", "), lower(last)))
            }
        };
        match self.stat {
            Stat::Mean => what,
            stat => format!("{}{}", stat.words(), lower(&what)),
        }
    }

    /// Describes the x field: ` by load`, or empty.
    pub(super) fn by(&self) -> String {
        match &self.x {
            Some(Field::Column(column)) if column.name == "bin" => " by job size".to_owned(),
            None | Some(Field::Metric) => String::new(),
            Some(field) => format!(" by {}", field.name().replace('_', " ")),
        }
    }

    /// Returns `jobs` or `tasks` if the rows of the table represent or count them.
    pub(super) fn counts(&self) -> Option<&'static str> {
        use plimsoll_results::schema::Table;
        match self.table {
            Table::Jobs | Table::Bins => Some("jobs"),
            Table::Tasks | Table::Demands => Some("tasks"),
            _ => None,
        }
    }
}

/// Converts the first letter to lower case, unless the word is in capitals.
pub(super) fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let second = letters.clone().next().is_some_and(char::is_lowercase);
    match first {
        Some(first) if second && !text.starts_with("Jain") => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

/// Formats the remark on means over seeds, and on the settings that are averaged within each seed.
pub(super) fn over((least, most): (usize, usize), averaged: &[String], whiskers: &str) -> String {
    let what = if averaged.is_empty() { "runs" } else { "seeds" };
    let within = list(averaged);
    let number = if least == most { most.to_string() } else { format!("{least} to {most}") };
    match (most, averaged.is_empty()) {
        (0 | 1, true) => String::new(),
        (0 | 1, false) => format!("; means over {within}"),
        (_, true) => format!("; means over {number} {what} with {whiskers} of 95 % confidence intervals"),
        (_, false) => format!(
            "; means over {number} {what}, each seed the mean over {within}, with {whiskers} of 95 % confidence intervals"
        ),
    }
}

/// Formats names as a list: `a, b and c`.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Splits rows by panel and curve, each in the order of first appearance.
pub(super) fn split(rows: &[FigureRow]) -> (Vec<String>, Vec<super::rows::Series>, Vec<Vec<Vec<&FigureRow>>>) {
    let (mut facets, mut series) = (super::rows::NameOrder::new(), super::rows::NameOrder::new());
    let mut groups: Vec<Vec<Vec<&FigureRow>>> = Vec::new();
    for row in rows {
        let (facet, one) = (facets.place(&row.facet), series.place(&row.series));
        groups.resize_with(groups.len().max(facet + 1), Vec::new);
        let panel = &mut groups[facet];
        panel.resize_with(panel.len().max(one + 1), Vec::new);
        panel[one].push(row);
    }
    (facets.all, series.all, groups)
}
