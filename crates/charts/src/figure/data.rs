//! The data that a figure shows, as a table with one row per point, bar or box; it is written as CSV beside the figure.

use crate::escape::csv_line;

use super::{BarPanel, BubbleSeries, BucketPool, Category, Panel, Stacks};

/// A table of the drawn values. Numbers are written so that they parse to the same bits; absent values are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with one text per column.
    pub rows: Vec<Vec<String>>,
}

impl Data {
    /// Creates a table without rows.
    pub fn new<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) -> Data {
        Data { columns: columns.into_iter().map(|name| name.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    /// Creates the table of curves. `names` are the columns of panel, series, x and y. The columns `low`, `high` and `n` exist if a curve
    /// has a band or counts.
    pub fn of_panels(names: [&str; 4], panels: &[Panel]) -> Data {
        let all = || panels.iter().flat_map(|panel| &panel.series);
        let (bands, counts) = (all().any(|one| one.band.is_some()), all().any(|one| !one.n.is_empty()));
        let more = [("low", bands), ("high", bands), ("n", counts)];
        let mut data =
            Data::new(names.into_iter().chain(more.iter().filter(|(_, there)| *there).map(|(name, _)| *name)));
        for panel in panels {
            for one in &panel.series {
                let mut band = one.band.iter().flatten().peekable();
                for (at, &(x, y)) in one.points.iter().enumerate() {
                    let mut row = vec![panel.title.clone(), one.label.clone(), number(x), number(y)];
                    // A band has no entry for a point without an interval; its entries are in the order of the points.
                    let ends = band.next_if(|ends| ends.0 == x).map(|&(_, low, high)| [number(low), number(high)]);
                    if bands {
                        row.extend(ends.unwrap_or_default());
                    }
                    if counts {
                        row.push(one.n.get(at).map(u64::to_string).unwrap_or_default());
                    }
                    data.rows.push(row);
                }
            }
        }
        data
    }

    /// Creates the table of bars. `names` are the columns of panel, category, series and height.
    pub fn of_bars(names: [&str; 4], categories: &[Category], panels: &[BarPanel]) -> Data {
        let mut data = Data::new(names.into_iter().chain(["low", "high", "n"]));
        for panel in panels {
            for one in &panel.series {
                for (category, value) in categories.iter().zip(&one.values) {
                    let Some(value) = value else { continue };
                    let mut row = vec![panel.title.clone(), category.label.clone(), one.label.clone()];
                    row.push(number(value.mean));
                    // A whisker without length is no interval.
                    let ends = (value.low < value.high).then(|| [number(value.low), number(value.high)]);
                    row.extend(ends.unwrap_or_default());
                    row.push(if value.n > 0 { value.n.to_string() } else { String::new() });
                    data.rows.push(row);
                }
            }
        }
        data
    }

    /// Creates the table of bubbles. `names` are the columns of series, x, y and size.
    pub fn of_bubbles(names: [&str; 4], series: &[BubbleSeries]) -> Data {
        let mut data = Data::new(names);
        for one in series {
            let row = |&(x, y, size): &(f64, f64, f64)| vec![one.label.clone(), number(x), number(y), number(size)];
            data.rows.extend(one.points.iter().map(row));
        }
        data
    }

    /// Creates the table of buckets, with one row per bucket.
    pub fn of_pools(pools: &[BucketPool]) -> Data {
        let mut data = Data::new(["pool", "level", "group", "ratio", "base", "rim", "lent", "used"]);
        for pool in pools {
            for one in &pool.buckets {
                let names = [pool.title.clone(), number(pool.level), one.label.clone()];
                let numbers = [one.width, one.base, one.rim, one.lent, one.used.unwrap_or(f64::NAN)].map(number);
                data.rows.push(names.into_iter().chain(numbers).collect());
            }
        }
        data
    }

    /// Creates the table of stacked bars, with one row per layer of a bar. `names` are the columns of panel, bar, layer and height.
    pub fn of_stacks(names: [&str; 4], categories: &[Category], layers: &[String], panels: &[Stacks]) -> Data {
        let mut data = Data::new(names);
        for panel in panels {
            for (layer, values) in layers.iter().zip(&panel.layers) {
                for (category, value) in categories.iter().zip(values) {
                    let Some(value) = value else { continue };
                    data.rows.push(vec![panel.title.clone(), category.label.clone(), layer.clone(), number(*value)]);
                }
            }
        }
        data
    }

    /// Formats the table as CSV with a header, without empty columns.
    pub fn csv(&self) -> String {
        let filled = |at: &usize| self.rows.is_empty() || self.rows.iter().any(|row| !row[*at].is_empty());
        let kept: Vec<usize> = (0..self.columns.len()).filter(filled).collect();
        let mut text = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            text += &csv_line(kept.iter().map(|&at| row[at].as_str()));
        }
        text
    }
}

/// Formats a number; empty if it is not finite.
pub fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Series;

    #[test]
    fn rows_carry_their_intervals_and_counts() {
        let with = Series {
            band: Some(vec![(2.0, 0.25, 0.75)]),
            n: vec![1, 5],
            ..Series::new("a, b", vec![(1.0, f64::NAN), (2.0, 0.5)])
        };
        let panels = [Panel { title: String::new(), series: vec![with, Series::new("c", vec![(1.0, 3.0)])] }];
        let data = Data::of_panels(["panel", "policy", "load", "wait_s"], &panels);
        let expected = "policy,load,wait_s,low,high,n\n\"a, b\",1,,,,1\n\"a, b\",2,0.5,0.25,0.75,5\nc,1,3,,,\n";
        assert_eq!(data.csv(), expected);
        assert_eq!(Data::new(["a", "b"]).csv(), "a,b\n");
        // A spreadsheet does not evaluate a name as a formula, and a number remains a number.
        let series = [Series::new("=HYPERLINK(\"x\",\"y\")", vec![(-1.5, -1e-9)]), Series::new("-", vec![(1.0, 2.0)])];
        let panel = Panel { title: "@a".to_owned(), series: series.to_vec() };
        let expected = "panel,policy,x,y\n'@a,\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\",-1.5,-0.000000001\n'@a,'-,1,2\n";
        assert_eq!(Data::of_panels(["panel", "policy", "x", "y"], &[panel]).csv(), expected);
    }
}
