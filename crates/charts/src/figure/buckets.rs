//! Water in buckets: the division of a resource among groups, as drawn in the Fuxi article.
//!
//! The width of a bucket is its group's ratio, so that areas are amounts. The water has the same level in all buckets that are not full.
//! Minimums, which are granted before the water, are drawn as a dark base: below the water's zero, unless they count as water.

use plotters::style::RGBColor;

use super::Axis;
use super::canvas::{Anchor, Canvas, GREY, INK, LIGHT, LayerGroup, Pen, TextDirection};
use super::names::{SMALL, TEXT, TICK, lines};
use super::scale::{RangeEnds, Scale, drawable};
use crate::font;

/// The bucket of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    /// Its name.
    pub label: String,
    /// The note under the name.
    pub note: String,
    /// The width, which is the ratio. A bucket without width has no water and is only counted.
    pub width: f64,
    /// The height of its base, per unit of width.
    pub base: f64,
    /// The height of the rim above the water's zero.
    pub rim: f64,
    /// The height of the part of its minimum that the group does not request and lends.
    pub lent: f64,
    /// The height of the usage, from the bottom of the base, if known.
    pub used: Option<f64>,
}

/// The groups of one parent that share one resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BucketPool {
    /// The heading.
    pub title: String,
    /// The height of the water.
    pub level: f64,
    /// Whether bases are below the water's zero instead of being part of the water.
    pub sunk: bool,
    /// The groups; they are drawn in the order of their rims.
    pub buckets: Vec<Bucket>,
}

/// Layout in points: the sheet's width with one column and with several, and the parts of a panel.
const WIDTHS: (f64, f64) = (300.0, 506.0);
const AXIS: f64 = 38.0;
const HEADING: f64 = 16.0;
const WATER: f64 = 110.0;
const NAMES: f64 = 24.0;
/// The height of the names if they are rotated, and their maximum length.
const TURNED: (f64, f64) = (46.0, 40.0);
const LEGEND: f64 = 16.0;
/// The height of a further row of the legend.
const ENTRY: f64 = 10.0;
const MARGIN: f64 = 6.0;

/// The least width of a panel next to another one.
const PANEL: f64 = 200.0;

/// If any pool has more buckets than this, each pool has a row of its own.
const CROWD: usize = 12;

/// Rims above this multiple of the water level are cut, unless a usage is higher.
const ABOVE: f64 = 2.6;

const SURFACE: RGBColor = RGBColor(0, 114, 178);
const BLUE: RGBColor = RGBColor(144, 202, 240);
const DARK: RGBColor = RGBColor(70, 92, 110);
const MISSING: RGBColor = RGBColor(240, 240, 240);
const USED: RGBColor = RGBColor(213, 94, 0);

/// The length of the usage line beyond its bucket.
const OVER: f64 = 1.5;

/// Draws pools as panels: two per row if they are small and the sheet of the given width has room for both.
pub fn buckets(pools: &[BucketPool], given: Option<f64>) -> String {
    let crowded = pools.iter().any(|pool| pool.buckets.len() > CROWD);
    let room = given.map_or(2, |width| if width < 2.0 * PANEL { 1 } else { 2 });
    let columns = if crowded { 1 } else { pools.len().clamp(1, room) };
    let rows = pools.len().div_ceil(columns).max(1);
    let width = given.unwrap_or(if columns == 1 && !crowded { WIDTHS.0 } else { WIDTHS.1 });
    let sheet = |(at, pool)| {
        let left = (at % columns) as f64 * width / columns as f64;
        Sheet::new(pool, (left + AXIS, left + width / columns as f64 - MARGIN))
    };
    let mut sheets: Vec<Sheet> = pools.iter().enumerate().map(sheet).collect();
    let headings = |(sheet, pool): (&Sheet, &BucketPool)| sheet.heading(pool).len();
    let more = sheets.iter().zip(pools).map(headings).max().unwrap_or(1).saturating_sub(1);
    let heading = HEADING + more as f64 * (TEXT + 1.0);
    let height = heading + WATER + if sheets.iter().any(Sheet::turns) { TURNED.0 } else { NAMES };
    let any = |of: fn(&Bucket) -> bool| pools.iter().flat_map(|pool| &pool.buckets).any(of);
    let keys = keys(width, any(|bucket| bucket.lent > 0.0), any(|bucket| bucket.used.is_some()));
    let below = LEGEND + ENTRY * (keys.len() - 1) as f64;
    let mut canvas = Canvas::new(width, rows as f64 * height + below + MARGIN, "Quota groups as buckets of water");
    for (at, (sheet, pool)) in sheets.iter_mut().zip(pools).enumerate() {
        sheet.top = (at / columns) as f64 * height + heading;
        sheet.draw(&mut canvas, pool);
    }
    let bottom = rows as f64 * height + LEGEND - 2.0;
    canvas.layer(LayerGroup::class("legend"), |pen| {
        for (nth, row) in keys.iter().enumerate() {
            legend(pen, bottom + ENTRY * nth as f64, width, row);
        }
    });
    canvas.finish()
}

/// One panel: the positions of its buckets, and its vertical scale.
struct Sheet<'a> {
    left: f64,
    right: f64,
    top: f64,
    low: f64,
    high: f64,
    /// The buckets with a width, and their left and right sides.
    standing: Vec<(&'a Bucket, f64, f64)>,
}

impl<'a> Sheet<'a> {
    fn new(pool: &'a BucketPool, (left, right): (f64, f64)) -> Sheet<'a> {
        let sound = |bucket: &&Bucket| {
            let Bucket { width, base, rim, lent, .. } = **bucket;
            [width, base, rim, lent].into_iter().all(|value| drawable(value) && value >= 0.0) && width > 0.0
        };
        let mut chosen: Vec<&Bucket> = pool.buckets.iter().filter(sound).collect();
        chosen.sort_by(|a, b| a.rim.total_cmp(&b.rim));
        let most = |of: &dyn Fn(&Bucket) -> f64| chosen.iter().map(|bucket| of(bucket)).fold(0.0, f64::max);
        let rim = most(&|bucket| bucket.rim);
        let level = if drawable(pool.level) { pool.level.max(0.0) } else { 0.0 };
        let used = most(&|bucket| bucket.used.filter(|used| drawable(*used)).unwrap_or(0.0));
        let cut = if level > 0.0 { rim.min((ABOVE * level).max(used)) } else { rim };
        let sunk = if pool.sunk { most(&|bucket| bucket.base + bucket.lent) } else { 0.0 };
        // Bases may be far larger than the amount shared above them; they are then cut at the edge of the panel.
        let high = 1.08 * if cut > 0.0 { cut } else { sunk.max(1.0) };
        let low = -(1.05 * sunk).min(high);
        let all: f64 = chosen.iter().map(|bucket| bucket.width).sum();
        let gap = (0.12 * (right - left) / chosen.len().max(1) as f64).min(4.0);
        let room = (right - left - gap * (chosen.len() + 1) as f64).max(1.0);
        let mut x = left + gap;
        let standing = chosen.into_iter().map(|bucket| {
            let from = x;
            x += room * bucket.width / all + gap;
            (bucket, from, x - gap)
        });
        Sheet { left, right, top: 0.0, low, high, standing: standing.collect() }
    }

    /// Returns the position of a height, clipped to the panel.
    fn y(&self, height: f64) -> f64 {
        self.top + WATER * (1.0 - ((height - self.low) / (self.high - self.low)).clamp(0.0, 1.0))
    }

    fn draw(&self, canvas: &mut Canvas, pool: &BucketPool) {
        canvas.layer(LayerGroup::class("axis"), |pen| self.axis(pen, pool));
        canvas.layer(LayerGroup::class("buckets"), |pen| {
            for &(bucket, from, to) in &self.standing {
                let (base, water) = match pool.sunk {
                    true => ((-bucket.base, 0.0), (0.0, pool.level.min(bucket.rim))),
                    false => ((0.0, bucket.base), (bucket.base, pool.level.min(bucket.rim).max(bucket.base))),
                };
                let mut fill = |(low, high): (f64, f64), color: &RGBColor| {
                    if high > low {
                        pen.rectangle((from, self.y(high)), (to, self.y(low)), color);
                    }
                };
                fill((water.1, bucket.rim), &MISSING);
                fill(water, &BLUE);
                fill(base, &DARK);
                let (rim, floor) = (self.y(bucket.rim), self.y(base.0.min(0.0)));
                pen.path(&[(from, rim), (from, floor), (to, floor), (to, rim)], &INK, 0.75);
            }
        });
        let group = LayerGroup { dash: &[1.4, 1.4], ..LayerGroup::class("lent") };
        canvas.layer(group, |pen| {
            for &(bucket, from, to) in self.standing.iter().filter(|(bucket, ..)| bucket.lent > 0.0) {
                let (near, far) = match pool.sunk {
                    true => (-bucket.base, -bucket.base - bucket.lent),
                    false => (bucket.base, bucket.base + bucket.lent),
                };
                let (near, far) = (self.y(near), self.y(far));
                pen.path(&[(from, near), (from, far), (to, far), (to, near)], &GREY, 0.75);
            }
        });
        canvas.layer(LayerGroup::class("used"), |pen| {
            let floor = if pool.sunk { 1.0 } else { 0.0 };
            for &(bucket, from, to) in &self.standing {
                if let Some(used) = bucket.used {
                    let y = self.y(used - floor * bucket.base);
                    pen.path(&[(from - OVER, y), (to + OVER, y)], &USED, 1.5);
                }
            }
        });
        let group = LayerGroup { dash: &[2.8, 1.4], ..LayerGroup::class("level") };
        canvas.layer(group, |pen| {
            let y = self.y(pool.level);
            if pool.level > 0.0 {
                pen.path(&[(self.left, y), (self.right, y)], &SURFACE, 1.0);
            }
        });
        canvas.layer(LayerGroup::class("text"), |pen| self.names(pen));
    }

    /// Breaks the heading into lines.
    fn heading(&self, pool: &BucketPool) -> Vec<String> {
        let dry = pool.buckets.len() - self.standing.len();
        let note = if dry > 0 { format!(" ({dry} of ratio 0 not drawn)") } else { String::new() };
        lines(&format!("{}{note}", pool.title), TEXT, self.right - self.left)
    }

    fn axis(&self, pen: &mut Pen, pool: &BucketPool) {
        let middle = (self.left + self.right) / 2.0;
        for (up, line) in self.heading(pool).iter().rev().enumerate() {
            let place = (middle, self.top - 4.5 - up as f64 * (TEXT + 1.0));
            pen.text(line, TEXT, INK, place, Anchor::Middle, TextDirection::Level);
        }
        let scale = Scale::new(
            &Axis::number("").range(self.low, self.high),
            (self.low, self.high),
            RangeEnds::Exact,
            5,
            |_| true,
        );
        for (place, label) in &scale.ticks {
            let y = self.top + WATER * (1.0 - place);
            // Amounts below zero are not measured by the water level.
            if y <= self.y(0.0) + 0.01 {
                pen.path(&[(self.left, y), (self.right, y)], &LIGHT, 0.5);
                pen.path(&[(self.left - TICK, y), (self.left, y)], &INK, 0.75);
                pen.text(
                    &label.text,
                    SMALL,
                    INK,
                    (self.left - TICK - 2.0, y + 0.36 * SMALL),
                    Anchor::End,
                    TextDirection::Level,
                );
            }
        }
        pen.path(&[(self.left, self.top), (self.left, self.top + WATER)], &INK, 0.75);
        pen.path(&[(self.left, self.y(0.0)), (self.right, self.y(0.0))], &INK, 0.75);
        let place = (self.left - AXIS + 9.0, self.top + WATER / 2.0);
        pen.text("Level", TEXT, INK, place, Anchor::Middle, TextDirection::Up);
    }

    /// Returns whether the names must be rotated, because a narrow bucket has no room for its name.
    fn turns(&self) -> bool {
        let narrow = |(bucket, from, to): &(&Bucket, f64, f64)| {
            font::width(&bucket.label, SMALL) > to - from + 3.0 && to - from < 26.0
        };
        self.standing.iter().any(narrow)
    }

    /// Draws names and notes under the buckets; if names are rotated, there are no notes.
    fn names(&self, pen: &mut Pen) {
        let (below, turns) = (self.top + WATER, self.turns());
        for &(bucket, from, to) in &self.standing {
            let (middle, room) = ((from + to) / 2.0, to - from + 3.0);
            if turns {
                let name = font::fit(&bucket.label, SMALL, TURNED.1);
                let place = (middle + 0.36 * SMALL, below + 4.0 + font::width(&name, SMALL) / 2.0);
                if room >= SMALL + 2.0 {
                    pen.text(&name, SMALL, INK, place, Anchor::Middle, TextDirection::Up);
                }
                continue;
            }
            let name = font::fit(&bucket.label, SMALL, room);
            pen.text(&name, SMALL, INK, (middle, below + SMALL + 1.5), Anchor::Middle, TextDirection::Level);
            if font::width(&bucket.note, SMALL) <= room {
                let place = (middle, below + 2.0 * SMALL + 3.0);
                pen.text(&bucket.note, SMALL, GREY, place, Anchor::Middle, TextDirection::Level);
            }
        }
    }
}

/// The item of the drawing that a legend entry explains.
#[derive(Clone, Copy)]
enum Sample {
    Fill(RGBColor),
    Lent,
    Level,
    Used,
}

/// An entry of the legend: its sample, its text, and the width of both.
type Key = (Sample, &'static str, f64);

const SQUARE: f64 = 6.5;

/// Returns the entries of the legend, in as many rows as a sheet of this width needs.
fn keys(width: f64, lent: bool, used: bool) -> Vec<Vec<Key>> {
    let fills = [("must be given", DARK), ("share of the rest", BLUE), ("not granted", MISSING)];
    let mut all: Vec<(Sample, &'static str)> = fills.map(|(text, color)| (Sample::Fill(color), text)).into();
    all.extend(lent.then_some((Sample::Lent, "min not requested")));
    all.push((Sample::Level, "level"));
    all.extend(used.then_some((Sample::Used, "used")));
    let mut rows: Vec<Vec<Key>> = vec![Vec::new()];
    let mut taken = 0.0;
    for (sample, text) in all {
        let line = if matches!(sample, Sample::Level | Sample::Used) { 6.0 } else { 0.0 };
        let room = SQUARE + 3.0 + font::width(text, SMALL) + 10.0 + line;
        if taken + room > width && taken > 0.0 {
            rows.push(Vec::new());
            taken = 0.0;
        }
        taken += room;
        rows.last_mut().expect("there is one").push((sample, text, room));
    }
    rows
}

/// Draws one row of the legend.
fn legend(pen: &mut Pen, baseline: f64, width: f64, row: &[Key]) {
    let all: f64 = row.iter().map(|(.., room)| room).sum();
    let mut x = ((width - all) / 2.0).max(2.0);
    let (top, bottom, middle) = (baseline - SQUARE + 0.8, baseline + 0.8, baseline - 2.5);
    for (sample, text, room) in row {
        let mut indent = SQUARE + 3.0;
        match sample {
            Sample::Fill(color) => {
                pen.rectangle((x, top), (x + SQUARE, bottom), color);
                pen.path(&[(x, top), (x + SQUARE, top), (x + SQUARE, bottom), (x, bottom), (x, top)], &INK, 0.5);
            }
            Sample::Lent => dotted(pen, x, (top, bottom)),
            Sample::Level => {
                for dash in [0.0, 4.4, 8.8] {
                    pen.path(&[(x + dash, middle), (x + dash + 2.8, middle)], &SURFACE, 1.0);
                }
                indent = 14.5;
            }
            Sample::Used => {
                pen.path(&[(x, middle), (x + 11.6, middle)], &USED, 1.5);
                indent = 14.5;
            }
        }
        pen.text(text, SMALL, INK, (x + indent, baseline), Anchor::Start, TextDirection::Level);
        x += room;
    }
}

/// Draws a dotted square, as in the panels.
fn dotted(pen: &mut Pen, x: f64, (top, bottom): (f64, f64)) {
    for side in 0..4 {
        for at in [0.0, 0.4, 0.8] {
            let (near, far) = (at * SQUARE, (at + 0.2) * SQUARE);
            let line = match side {
                0 => [(x + near, top), (x + far, top)],
                1 => [(x + near, bottom), (x + far, bottom)],
                2 => [(x, top + near), (x, top + far)],
                _ => [(x + SQUARE, top + near), (x + SQUARE, top + far)],
            };
            pen.path(&line, &GREY, 0.75);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raster;

    fn bucket(label: &str, width: f64, base: f64, rim: f64) -> Bucket {
        Bucket { label: label.to_owned(), note: "5 of 9".to_owned(), width, base, rim, lent: 0.5, used: Some(base) }
    }

    #[test]
    fn buckets_stand_by_saturation_and_are_as_wide_as_their_ratio() {
        let pool = BucketPool {
            title: "cpu".into(),
            level: 2.0,
            sunk: true,
            buckets: vec![bucket("b", 2.0, 0.5, 3.0), bucket("a", 1.0, 0.0, 1.0), bucket("none", 0.0, 0.0, 0.0)],
        };
        let sheet = Sheet::new(&pool, (0.0, 100.0));
        let names: Vec<&str> = sheet.standing.iter().map(|(bucket, ..)| bucket.label.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let wide = |at: usize| sheet.standing[at].2 - sheet.standing[at].1;
        assert!((wide(1) - 2.0 * wide(0)).abs() < 1e-9);
        assert!(sheet.y(0.0) < WATER && sheet.y(-0.5) > sheet.y(0.0), "the base stands below zero");
        let svg = buckets(std::slice::from_ref(&pool), None);
        for text in ["cpu (1 of ratio 0 not drawn)", "5 of 9", "Level", "must be given"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        // In a column of a paper, the legend has two rows and panels are stacked.
        let narrow = buckets(&[pool.clone(), pool], Some(241.1));
        assert!(narrow.contains(" width=\"241.1\"") && narrow.contains("used"));
        assert!(keys(241.1, true, true).len() == 2 && keys(506.0, true, true).len() == 1);
    }

    #[test]
    fn strange_numbers_never_break_it() {
        for value in [0.0, -1.0, 1e-300, 1e99, f64::NAN, f64::INFINITY] {
            for count in [0, 1, 3, 200] {
                let buckets_of = |sunk| BucketPool {
                    title: "a <name>".into(),
                    level: value,
                    sunk,
                    buckets: vec![bucket("long name of a group", value, value, value); count],
                };
                let svg = buckets(&[buckets_of(true), buckets_of(false), BucketPool::default()], None);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{value}");
                assert!(raster::png(&svg, 1.0, Vec::new()).is_ok(), "{value}");
            }
        }
    }
}
