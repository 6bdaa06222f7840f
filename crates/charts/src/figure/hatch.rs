//! Hatches: they make filled areas distinct without colour, as in grey prints.

use plotters::style::{RGBColor, WHITE};

use super::canvas::{INK, Pen};

/// A pattern of lines over a filled area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hatch {
    /// No lines.
    Plain,
    /// Rising lines.
    Up,
    /// Falling lines.
    Down,
    /// Rising and falling lines.
    Cross,
    /// Horizontal lines.
    Level,
    /// Vertical lines.
    Upright,
    /// Horizontal and vertical lines.
    Grid,
    /// Short horizontal strokes.
    Dots,
    /// Rising lines, wide apart.
    Sparse,
}

/// The order of hatches for names outside of the families.
pub(super) const HATCHES: [Hatch; 9] = [
    Hatch::Plain,
    Hatch::Up,
    Hatch::Down,
    Hatch::Cross,
    Hatch::Level,
    Hatch::Upright,
    Hatch::Grid,
    Hatch::Dots,
    Hatch::Sparse,
];

/// The distance of two lines, in points.
const APART: f64 = 3.2;

/// The width of a line.
const STROKE: f64 = 0.75;

/// A point of the sheet.
type SheetPoint = (f64, f64);

/// Fills a rectangle, from its upper left to its lower right corner.
pub(super) fn filled(pen: &mut Pen, from: SheetPoint, to: SheetPoint, color: RGBColor, hatch: Hatch) {
    pen.rectangle(from, to, &color);
    let light = 0.299 * f64::from(color.0) + 0.587 * f64::from(color.1) + 0.114 * f64::from(color.2) > 135.0;
    let ink = if light { INK } else { WHITE };
    let width = if light { STROKE * 0.8 } else { STROKE };
    for line in lines(from, to, hatch) {
        pen.path(&line, &ink, width);
    }
}

/// Returns the lines of a hatch in a rectangle.
fn lines(from: SheetPoint, to: SheetPoint, hatch: Hatch) -> Vec<[SheetPoint; 2]> {
    let rising = |apart| slanted(from, to, apart, false);
    let falling = |apart| slanted(from, to, apart, true);
    let level = || each(from.1, to.1, APART).map(|y| [(from.0, y), (to.0, y)]).collect::<Vec<_>>();
    let upright = || each(from.0, to.0, APART).map(|x| [(x, from.1), (x, to.1)]).collect::<Vec<_>>();
    match hatch {
        Hatch::Plain => Vec::new(),
        Hatch::Up => rising(APART),
        Hatch::Down => falling(APART),
        Hatch::Cross => [rising(APART * 1.3), falling(APART * 1.3)].concat(),
        Hatch::Level => level(),
        Hatch::Upright => upright(),
        Hatch::Grid => [level(), upright()].concat(),
        Hatch::Dots => each(from.1, to.1, APART * 0.8)
            .flat_map(|y| {
                each(from.0, to.0, APART).map(move |x| [((x - 0.5).max(from.0), y), ((x + 0.5).min(to.0), y)])
            })
            .collect(),
        Hatch::Sparse => rising(APART * 2.2),
    }
}

/// Returns positions between two ends; the first is half a step from `low`.
fn each(low: f64, high: f64, apart: f64) -> impl Iterator<Item = f64> {
    let many = ((high - low) / apart).clamp(0.0, 2000.0).round() as usize;
    (0..many).map(move |nth| low + (nth as f64 + 0.5) * apart).filter(move |at| *at < high)
}

/// Returns diagonals, clipped to the rectangle; they rise to the right unless `falling`.
fn slanted(from: SheetPoint, to: SheetPoint, apart: f64, falling: bool) -> Vec<[SheetPoint; 2]> {
    let (width, height) = (to.0 - from.0, to.1 - from.1);
    let step = apart * std::f64::consts::SQRT_2;
    let line = |offset: f64| {
        // From `offset - height` on the lower edge, equally far to the right and up.
        let (start, end) = ((offset - height).max(0.0), offset.min(width));
        let up = |x: f64| height - (x - (offset - height));
        let place = |x: f64| (if falling { to.0 - x } else { from.0 + x }, from.1 + up(x));
        (start < end).then(|| [place(start), place(end)])
    };
    each(0.0, width + height, step).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_inside_and_patterns_differ() {
        let (from, to) = ((10.0, 20.0), (22.0, 61.0));
        let inside = |&(x, y): &SheetPoint| (10.0..=22.0001).contains(&x) && (20.0..=61.0001).contains(&y);
        let all: Vec<Vec<[SheetPoint; 2]>> = HATCHES.map(|hatch| lines(from, to, hatch)).into();
        assert!(all.iter().flatten().flatten().all(inside));
        assert!(all[0].is_empty() && all[1..].iter().all(|lines| lines.len() > 3));
        assert!(all.iter().enumerate().all(|(at, one)| all[..at].iter().all(|other| other != one)));
        for strange in [((0.0, 0.0), (0.0, 0.0)), ((5.0, 5.0), (1.0, 1.0)), ((0.0, 0.0), (1e9, 1.0))] {
            HATCHES.iter().for_each(|hatch| assert!(lines(strange.0, strange.1, *hatch).len() < 10_000));
        }
    }
}
