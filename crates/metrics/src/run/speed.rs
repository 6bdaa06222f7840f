//! The speed of the service of users relative to ideal fair sharing ([`Reference`](crate::Reference)).

use super::fairness::{gap, jain};
use super::{Metrics, float};
use plimsoll_base::column::{Topic, Unit};

pub(super) static METRICS: Metrics = Metrics {
    runs: &[
        float(
            "speed_jain",
            "Jain index of the speeds of all users with work (table users): the same users and the same work under every policy; under a horizon the work that fair sharing serves by then",
            |run| jain(&run.speeds),
        )
        .unit(Unit::Index)
        .higher()
        .words("Jain index of speeds")
        .key_headline(Topic::Sharing, "Jain", 1),
        float("speed_gap", "largest minus smallest speed of a user", |run| gap(&run.speeds))
            .lower()
            .words("Gap of speeds"),
        float("speed_min", "speed of the slowest user", |run| run.speeds.iter().copied().reduce(f64::min))
            .higher()
            .words("Speed of the slowest user")
            .key_headline(Topic::Sharing, "slowest", 2),
        float(
            "work_unserved",
            "share of the measured work submitted before the horizon (until) that is not served by then, dominant share times duration; null without a horizon",
            |run| run.unserved,
        )
        .unit(Unit::Share)
        .lower()
        .words("Work not served at the horizon"),
    ],
    fairness: &[],
};
