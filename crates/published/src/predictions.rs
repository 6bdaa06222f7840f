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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::digest::git_blob_of;
    use super::*;

    /// The files of predictions were committed before the comparison.
    #[test]
    fn committed_predictions_are_unchanged() {
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published");
        for (target, id) in [
            ("muri", "bdec0feb6714eb792ba8c99ac2673dd86d15504c"),
            ("shockwave", "12c04abba957da0adad474c6786e56e581cecce1"),
        ] {
            let found = git_blob_of(&targets.join(target).join("predictions.csv")).expect("readable");
            assert_eq!(found, id, "{target}");
        }
    }

    #[test]
    fn predictions_have_the_times_of_their_jobs() {
        let job = |name: &str, finish| super::super::outcome::JobOutcome {
            job: name.to_owned(),
            submit: 1_000_000,
            finish,
            ..Default::default()
        };
        let outcome = RunOutcome {
            jobs: vec![job("a", Some(3_500_000)), job("b", None)],
            intervals: vec![("a".to_owned(), 2.0, 3.0), ("b".to_owned(), 1.0, 2.0)],
            ..RunOutcome::default()
        };
        let parameters = Parameters::parse("policy=srtf").expect("parameters");
        let found = predicted("prediction", &parameters, &outcome);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].policy.as_str(), found[0].completion_s, found[0].interval_s), ("srtf", 2.5, [2.0, 3.0]));
    }
}
