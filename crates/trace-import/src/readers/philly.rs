//! Philly's `cluster_job_log.json`: jobs with attempts, each with its machines and GPUs.

use serde_json::Value;

use super::{RecordReader, items, text};

/// One row for each job: the first start, the end of the last attempt, the GPUs of the largest attempt.
pub static READER: RecordReader = RecordReader {
    name: "philly",
    columns: &["jobid", "user", "vc", "status", "submitted_time", "attempts", "start_time", "end_time", "gpus"],
    records: Some(&[]),
    convert: |job| {
        if !job.is_object() {
            return Err("is no job of the form {\"jobid\": ..., \"attempts\": [...]}".to_owned());
        }
        let attempts = items(&job["attempts"]);
        let known = |time: &Value| Some(text(time)).filter(|time| !time.is_empty() && time != "None");
        let start = attempts.iter().find_map(|attempt| known(&attempt["start_time"]));
        let end = attempts.last().and_then(|attempt| known(&attempt["end_time"]));
        let gpus =
            |attempt: &Value| items(&attempt["detail"]).iter().map(|part| items(&part["gpus"]).len()).sum::<usize>();
        let most = attempts.iter().map(gpus).max().unwrap_or(0);
        Ok(vec![vec![
            text(&job["jobid"]),
            text(&job["user"]),
            text(&job["vc"]),
            text(&job["status"]),
            text(&job["submitted_time"]),
            attempts.len().to_string(),
            start.unwrap_or_default(),
            end.unwrap_or_default(),
            most.to_string(),
        ]])
    },
};
