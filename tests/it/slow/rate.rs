//! The speed of tasks on over-committed machines.

/// Full speed, in millionths.
pub const ONE: u128 = 1_000_000;

/// The slowdown of machines by the load of their second resource: the text of the setting, and its points (load and slowdown in
/// millionths).
pub type Curve = (&'static str, &'static [(u64, u64)]);

/// Returns the progress of a task in a microsecond, in millionths. `own` is the memory of the task, `used` the memory of all tasks on its
/// machine, and `memory` the memory of the machine.
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
