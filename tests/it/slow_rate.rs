//! How fast tasks go on over-committed machines, for both slow simulators.

use crate::slow::ONE;

/// How machines slow down by the load of their second resource: as text, and its points of loads and slowdowns, in
/// millionths.
pub type Curve = (&'static str, &'static [(u64, u64)]);

/// Returns the progress of a task that uses `own` in a microsecond, in millionths, if the tasks of its machine use `used` of its memory.
pub fn rate((text, curve): Curve, used: u128, memory: u64, own: u64) -> u128 {
    if used == 0 {
        return ONE;
    }
    let load = (used * ONE).checked_div(u128::from(memory)).unwrap_or(1000 * ONE);
    let load = load.min(1000 * ONE);
    let point = |at: usize| (u128::from(curve[at].0), u128::from(curve[at].1));
    if load <= point(0).0 {
        return ONE;
    }
    let segment = (1..curve.len()).find(|&at| load <= point(at).0).unwrap_or(curve.len() - 1);
    let ((x0, y0), (x1, y1)) = (point(segment - 1), point(segment));
    let slowdown = y0 + (load - x0) * (y1 - y0) / (x1 - x0);
    let slowdown = match text.ends_with("by size") && memory > 0 {
        true => ONE + (slowdown - ONE) * u128::from(own.min(memory)) / u128::from(memory),
        false => slowdown,
    };
    ONE * ONE / slowdown
}
