//! Lists of jobs by the generator of Gavel (Narayanan et al., OSDI 2020): for seeds that have no stored list.
//!
//! Jobs are drawn from Python's `random.Random(seed + 2)`, gaps of arrivals from `random.Random(seed + 3)`. Per job: the number of accelerators
//! (1 with probability 0.7, 2 with 0.1, 4 with 0.15, 8 with 0.05), the duration on V100 (60 * 10^U(3, 4) s with probability 0.2, else 60 *
//! 10^U(1.5, 3) s), and the type, which is drawn again while a job of several accelerators meets a type without a distributed mode.

use plimsoll_rounds::random::PythonRandom;

/// The types of jobs in the order of the generator; the first 19 have a distributed mode.
const TYPES: [&str; 26] = [
    "resnet18-16",
    "resnet18-32",
    "resnet18-64",
    "resnet18-128",
    "resnet18-256",
    "resnet50-16",
    "resnet50-32",
    "resnet50-64",
    "resnet50-128",
    "transformer-16",
    "transformer-32",
    "transformer-64",
    "transformer-128",
    "transformer-256",
    "lm-5",
    "lm-10",
    "lm-20",
    "lm-40",
    "lm-80",
    "recommendation-512",
    "recommendation-1024",
    "recommendation-2048",
    "recommendation-4096",
    "recommendation-8192",
    "a3c",
    "cyclegan",
];

/// The number of types with a distributed mode.
const DISTRIBUTED: usize = 19;

/// Returns the lines of a list of jobs with the columns of the stored ones. With `single`, each job uses one accelerator.
pub(super) fn lines(seed: u64, jobs: usize, single: bool) -> Vec<String> {
    let (mut draw, mut gap) = (PythonRandom::new(seed + 2), PythonRandom::new(seed + 3));
    let mut lines = vec!["job,unit_arrival,job_type,scale_factor,duration_v100_s".to_owned()];
    let mut arrival = 0.0;
    for job in 0..jobs {
        let scale = match draw.unit() {
            u if u < 0.7 => 1,
            u if u <= 0.8 => 2,
            u if u <= 0.95 => 4,
            _ => 8,
        };
        let (from, to) = if draw.unit() >= 0.8 { (3.0, 4.0) } else { (1.5, 3.0) };
        let duration = 60.0 * 10f64.powf(from + (to - from) * draw.unit());
        let scale = if single { 1 } else { scale };
        let job_type = loop {
            let drawn = draw.below(TYPES.len());
            if scale == 1 || drawn < DISTRIBUTED {
                break TYPES[drawn];
            }
        };
        lines.push(format!("{job},{arrival:.9},{job_type},{scale},{duration:.6}"));
        arrival -= (1.0 - gap.unit()).ln();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first jobs of the stored lists of seed 0.
    #[test]
    fn stored_lists_are_repeated() {
        let multi = lines(0, 4, false);
        let expected = [
            "0,0.000000000,resnet18-64,8,68344.350106",
            "1,0.271762303,transformer-16,1,31016.609146",
            "2,1.057527586,recommendation-2048,1,2146.608837",
            "3,1.519491884,recommendation-8192,1,7386.674820",
        ];
        assert_eq!(multi[1..], expected);
        assert_eq!(lines(0, 4, true)[1], "0,0.000000000,resnet18-64,1,68344.350106");
    }
}
