//! Reduces the points of a curve without a visible difference. The sheet is divided into columns narrower than the resolution of print; the
//! first, lowest, highest and last point of each column are kept.

/// Columns per typographic point of width.
const COLUMNS_PER_POINT: f64 = 2.0;

/// Curves with at most this many points are not thinned.
const ENOUGH: usize = 600;

/// Thins a curve given in points of the final size; x must not decrease.
pub(super) fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= ENOUGH {
        return points;
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| column_of(a.0) == column_of(b.0)) {
        let extreme = |above: fn(f64, f64) -> bool| {
            (1..column.len()).fold(0, |best, at| if above(column[at].1, column[best].1) { at } else { best })
        };
        let mut picks = [0, extreme(|a, b| a < b), extreme(|a, b| a > b), column.len() - 1];
        picks.sort_unstable();
        for (nth, &pick) in picks.iter().enumerate() {
            if nth == 0 || pick != picks[nth - 1] {
                kept.push(column[pick]);
            }
        }
    }
    kept
}

fn column_of(x: f64) -> i64 {
    (x * COLUMNS_PER_POINT).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_keeps_its_extremes_and_ends() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at) / 500.0, f64::from(at % 7))).collect();
        points[50_001].1 = 99.0;
        points[50_002].1 = -99.0;
        let thinned = thin(points.clone());
        assert!(thinned.len() <= 200 * 2 * 4 + 4, "{}", thinned.len());
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert!(thinned.contains(&points[50_001]) && thinned.contains(&points[50_002]));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_short_curve_stays() {
        let points = vec![(0.0, 1.0), (0.0, 2.0), (0.1, 0.0)];
        assert_eq!(thin(points.clone()), points);
    }
}
