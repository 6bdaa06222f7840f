//! Predictions of completion times with intervals, as a table: written before a comparison, and kept beside the numbers of a target.

use super::evaluate::Evaluated;
use super::outcome::RunOutcome;
use super::parameters::Parameters;
use super::target::PublishedTarget;

/// The predicted completion time of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedJob {
    /// The plan.
    pub plan: String,
    /// The policy.
    pub policy: String,
    /// The job.
    pub job: String,
    /// The completion time without random factors, in seconds.
    pub completion_s: f64,
    /// The interval in seconds.
    pub interval_s: [f64; 2],
}

/// Returns the predictions of a run; none if it has no intervals.
pub(super) fn predicted(plan: &str, parameters: &Parameters, outcome: &RunOutcome) -> Vec<PredictedJob> {
    let times: std::collections::HashMap<&str, f64> = outcome
        .jobs
        .iter()
        .filter_map(|job| Some((job.job.as_str(), (job.finish? - job.submit) as f64 / 1e6)))
        .collect();
    let one = |(job, low, high): &(String, f64, f64)| {
        Some(PredictedJob {
            plan: plan.to_owned(),
            policy: parameters.policy.clone().unwrap_or_default(),
            job: job.clone(),
            completion_s: *times.get(job.as_str())?,
            interval_s: [*low, *high],
        })
    };
    outcome.intervals.iter().filter_map(one).collect()
}

/// Returns the predictions of all targets as CSV.
pub fn predictions_csv(targets: &[PublishedTarget], evaluated: &[Evaluated]) -> String {
    let mut text = "target,plan,policy,job,completion_s,low_s,high_s\n".to_owned();
    for (target, evaluated) in targets.iter().zip(evaluated) {
        for PredictedJob { plan, policy, job, completion_s, interval_s: [low, high] } in &evaluated.predictions {
            text += &format!("{},{plan},{policy},{job},{completion_s:.3},{low:.3},{high:.3}\n", target.name);
        }
    }
    text
}
