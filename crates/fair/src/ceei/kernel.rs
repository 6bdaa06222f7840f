//! The inner loops, in a form that compilers vectorise. The number of lanes is fixed, so that results are bit-identical whether or not the
//! code is vectorised.

/// The number of users processed together: a few columns of them stay in the first-level cache.
pub const CHUNK: usize = 256;

/// The number of independent partial sums.
const LANES: usize = 8;

/// The lower bound of a payment, which keeps 0/0 out of the sums.
const LEAST_PAY: f64 = 1e-290;

/// Returns `sum a_i b_i`.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    total(sums) + rest
}

/// Adds `factor * column` to `into`.
pub fn add_scaled(into: &mut [f64], factor: f64, column: &[f64]) {
    for (into, value) in into.iter_mut().zip(column) {
        *into += factor * value;
    }
}

/// Computes the tasks that users buy at the price `pay` per task: `x = min(tasks, weight / pay)`. Also computes how fast they fall with the
/// price: `x / pay` if the number of tasks does not bind, else 0.
pub fn buy(pay: &[f64], weight: &[f64], tasks: &[f64], bought: &mut [f64], fall: &mut [f64]) {
    for i in 0..pay.len() {
        let pay = pay[i].max(LEAST_PAY);
        let wanted = weight[i] / pay;
        bought[i] = wanted.min(tasks[i]);
        fall[i] = if wanted < tasks[i] { wanted / pay } else { 0.0 };
    }
}

/// Returns the users' spending on the step at `pay + at * step`, `sum step_i x_i`, and how fast it falls with `at`.
pub fn spent(pay: &[f64], step: &[f64], at: f64, weight: &[f64], tasks: &[f64]) -> (f64, f64) {
    let (mut values, mut falls) = ([0.0; LANES], [0.0; LANES]);
    let whole = pay.len() - pay.len() % LANES;
    let one = |i: usize| {
        let pay = (pay[i] + at * step[i]).max(LEAST_PAY);
        let wanted = weight[i] / pay;
        let fall = if wanted < tasks[i] { step[i] * step[i] * wanted / pay } else { 0.0 };
        (step[i] * wanted.min(tasks[i]), fall)
    };
    for start in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            let (value, fall) = one(start + lane);
            values[lane] += value;
            falls[lane] += fall;
        }
    }
    (whole..pay.len()).map(one).fold((total(values), total(falls)), |(value, fall), (v, f)| (value + v, fall + f))
}

/// Returns the sum of the lanes, in a fixed order.
fn total(sums: [f64; LANES]) -> f64 {
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
}
