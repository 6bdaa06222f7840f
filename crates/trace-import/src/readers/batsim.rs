//! Batsim's workloads: jobs that refer to profiles. A delay has a duration, and a composed profile has the sum of its parts.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{RecordReader, items, text};
use crate::number::Fraction;

/// The greatest depth of composed profiles.
const DEEPEST: usize = 32;

/// The keys of a job that have a column.
const KEYS: [&str; 6] = ["id", "subtime", "res", "profile", "walltime", "extra_data"];

/// One row for each job, with the type and the duration of its profile.
pub static READER: RecordReader = RecordReader {
    name: "batsim",
    columns: &[
        "id",
        "subtime",
        "res",
        "profile",
        "walltime",
        "extra_data",
        "profile_type",
        "duration",
        "nb_res",
        "other_keys",
    ],
    records: None,
    convert: |document| {
        let jobs = document["jobs"].as_array().ok_or("has no array 'jobs'; expected a Batsim workload")?;
        let none = Map::new();
        let profiles = document["profiles"].as_object().unwrap_or(&none);
        let mut known = HashMap::new();
        let row = |job: &Value| {
            let mut fields: Vec<String> = KEYS.iter().map(|key| text(&job[*key])).collect();
            let name = text(&job["profile"]);
            fields.push(match profiles.get(&name) {
                Some(profile) => text(&profile["type"]),
                None => "undefined".to_owned(),
            });
            fields.push(
                duration(profiles, &name, DEEPEST, &mut known).map(|number| number.to_string()).unwrap_or_default(),
            );
            fields.push(text(&document["nb_res"]));
            let other = job.as_object().unwrap_or(&none).keys().filter(|key| !KEYS.contains(&key.as_str()));
            fields.push(other.cloned().collect::<Vec<_>>().join(";"));
            fields
        };
        Ok(jobs.iter().map(row).collect())
    },
};

/// Returns the seconds of a profile, or `None` if they depend on a simulation. Each profile is computed once; `known` has the results.
fn duration(
    profiles: &Map<String, Value>,
    name: &str,
    depth: usize,
    known: &mut HashMap<String, Option<Fraction>>,
) -> Option<Fraction> {
    if let Some(seconds) = known.get(name) {
        return *seconds;
    }
    // A profile that contains itself has no duration.
    known.insert(name.to_owned(), None);
    let seconds = computed(profiles, name, depth, known);
    known.insert(name.to_owned(), seconds);
    seconds
}

fn computed(
    profiles: &Map<String, Value>,
    name: &str,
    depth: usize,
    known: &mut HashMap<String, Option<Fraction>>,
) -> Option<Fraction> {
    let profile = profiles.get(name)?;
    match text(&profile["type"]).as_str() {
        "delay" => Fraction::parse(&text(&profile["delay"])),
        "composed" | "sequence" if depth > 0 => {
            let repeat = if profile["repeat"].is_null() {
                Fraction::from(1)
            } else {
                Fraction::parse(&text(&profile["repeat"]))?
            };
            let mut sum = Fraction::ZERO;
            for part in items(&profile["seq"]) {
                sum = sum.plus(duration(profiles, &text(part), depth - 1, known)?)?;
            }
            sum.times(repeat)
        }
        _ => None,
    }
}
