//! Coincident curves: finds them, and describes them under the chart.
//!
//! Where curves coincide for a part of their length, dashes over solid lines show both (`lines`). Curves that coincide from end to end need
//! a note.

use super::lines::Join;
use super::scale::{drawable, shown};
use super::{Chart, Series};

/// Largest distance of curves that look the same to a reader, as a fraction of the vertical extent.
const NEAR: f64 = 0.005;

/// Returns the note on coincident curves; it names the panels by their headings, unless the same curves coincide in all of them.
/// `extent` is the vertical extent.
pub(super) fn coinciding_note(
    chart: &Chart,
    join: Join,
    panels: &[(&str, Vec<&Series>)],
    extent: (f64, f64),
) -> Option<String> {
    let groups: Vec<(&str, Vec<String>)> =
        panels.iter().map(|(title, series)| (*title, groups(chart, join, series, extent))).collect();
    let some: Vec<&(&str, Vec<String>)> = groups.iter().filter(|(_, groups)| !groups.is_empty()).collect();
    let first = some.first()?;
    if some.len() == panels.len() && some.iter().all(|(_, groups)| *groups == first.1) {
        return Some(format!("Coinciding curves: {}", first.1.join("; ")));
    }
    let each = some.iter().map(|(title, groups)| format!("{} ({title})", groups.join("; ")));
    Some(format!("Coinciding curves: {}", each.collect::<Vec<_>>().join("; ")))
}

/// Returns the names of coincident curves, as `a = b`.
fn groups(chart: &Chart, join: Join, series: &[&Series], extent: (f64, f64)) -> Vec<String> {
    let mut groups: Vec<Vec<&Series>> = Vec::new();
    let drawn = |one: &&&Series| one.points.iter().any(|p| shown(&chart.x, p.0) && shown(&chart.y, p.1));
    for one in series.iter().filter(drawn) {
        match groups.iter_mut().find(|group| are_alike(chart, join, group[0], one, extent)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let names = |group: &Vec<&Series>| group.iter().map(|one| one.label.as_str()).collect::<Vec<_>>().join(" = ");
    groups.iter().filter(|group| group.len() > 1).map(names).collect()
}

/// Returns whether two curves nearly coincide wherever either has a point. Cost: O(points).
fn are_alike(chart: &Chart, join: Join, a: &Series, b: &Series, (low, high): (f64, f64)) -> bool {
    let place = |y: f64| if chart.y.log { y.ln() } else { y };
    let near = NEAR * (place(high) - place(low)).abs();
    let (mut at_a, mut at_b) = (CurveWalk::new(&a.points, join), CurveWalk::new(&b.points, join));
    let mut all: Vec<f64> = a.points.iter().chain(&b.points).map(|point| point.0).filter(|x| drawable(*x)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all.into_iter().all(|x| match (at_a.value(x), at_b.value(x)) {
        (Some(a), Some(b)) => (place(a) - place(b)).abs() <= near,
        (None, None) => true,
        _ => false,
    })
}

/// Evaluates a curve at increasing places.
struct CurveWalk<'a> {
    points: &'a [(f64, f64)],
    join: Join,
    next: usize,
}

impl<'a> CurveWalk<'a> {
    fn new(points: &'a [(f64, f64)], join: Join) -> CurveWalk<'a> {
        CurveWalk { points, join, next: 0 }
    }

    /// Returns the value at `x`, which must not decrease from call to call. If several points have the same x, the last one counts.
    fn value(&mut self, x: f64) -> Option<f64> {
        while self.points.get(self.next).is_some_and(|point| point.0 <= x) {
            self.next += 1;
        }
        let before = self.points[self.next.checked_sub(1)?];
        let after = self.points.get(self.next);
        let value = match (self.join, after) {
            _ if before.0 == x => before.1,
            (_, None) => return None,
            (Join::Steps, Some(_)) => before.1,
            (Join::Straight, Some(after)) => before.1 + (after.1 - before.1) * (x - before.0) / (after.0 - before.0),
        };
        drawable(value).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;

    #[test]
    fn curves_on_one_another_are_named() {
        let chart = Chart::new(Axis::number("x"), Axis::number("y"));
        let one = Series::new("a", vec![(0.0, 0.0), (2.0, 2.0)]);
        let same = Series::new("b", vec![(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
        let other = Series::new("c", vec![(0.0, 0.0), (1.0, 1.1), (2.0, 2.0)]);
        let panels = |titles: [&'static str; 2]| {
            [(titles[0], vec![&one, &same, &other]), (titles[1], vec![&one, &other])].to_vec()
        };
        let note = |join, panels: &[(&str, Vec<&Series>)]| super::coinciding_note(&chart, join, panels, (0.0, 2.0));
        assert_eq!(note(Join::Straight, &panels(["", ""])[..1]).as_deref(), Some("Coinciding curves: a = b"));
        assert_eq!(note(Join::Straight, &panels(["p", "q"])).as_deref(), Some("Coinciding curves: a = b (p)"));
        assert_eq!(note(Join::Straight, &panels(["p", "q"])[1..]), None);
        assert_eq!(note(Join::Steps, &panels(["p", "q"])), None, "a step at 1 is none at 2");
        let held = Series::new("d", vec![(0.0, 3.0), (1.0, 3.0), (2.0, 3.0)]);
        let long = Series::new("e", vec![(0.0, 3.0), (2.0, 3.0)]);
        assert!(are_alike(&chart, Join::Steps, &held, &long, (0.0, 3.0)));
        let short = Series::new("f", vec![(0.0, 3.0), (1.0, 3.0)]);
        assert!(!are_alike(&chart, Join::Steps, &held, &short, (0.0, 3.0)), "a curve that ends is another");
    }
}
