//! The order of task sets inside a user, chosen separately from the policy among users (`drf/srpt`).
//!
//! The default order, `priority`, is by priority, release, arrivals before rows that a stage released, and row. All other orders are
//! defined in this file. Each compares task sets by one number, and breaks ties by the default order. A user has one queue for each set of
//! machines that its tasks require; if two of its queues tie, the older queue is first.
//!
//! A job's *size* is the sum of tasks times duration over all its rows. Its *attained service* is the total time that its tasks have run so
//! far, including stopped tasks. Sizes use the user's estimate (the trace's `estimate_s`); `sjf:true` and `srpt:true` use the true
//! duration, like an oracle.

use std::sync::{Arc, LazyLock};

use plimsoll_base::error::{Error, Result, nearest};
use plimsoll_base::units::{Dim, JobId, MAX_DIMS, Resources, Span, Time, UserId, span};

/// The data of a job that an order may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobView {
    /// Number of its waiting tasks.
    pub waiting: u64,
    /// Number of its running tasks.
    pub running: u64,
    /// The size in task-microseconds, from the durations of [`JobOrder::size_source`]; 0 if the order uses no sizes.
    pub size: u128,
    /// The size of the unfinished tasks in task-microseconds, minus the time that running tasks have run so far; at least 0.
    pub left: u128,
    /// The attained service: in task-microseconds or, by an order that is [`JobOrder::by_demand`], in microseconds of the whole cluster
    /// times [`WHOLE`].
    pub attained: u128,
    /// The attained service by resource, in base units times microseconds, if the order is [`JobOrder::by_resource`].
    pub service: Option<[u128; MAX_DIMS]>,
}

/// The number of steps into which the whole cluster is divided; the part of it that a task demands is counted in these steps.
pub const WHOLE: u64 = 1 << 20;

/// The data of a waiting task set that an order may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetView<'a> {
    /// The user that it belongs to.
    pub user: UserId,
    /// The job that it belongs to.
    pub job_id: JobId,
    /// The instant of its submission.
    pub submit: Time,
    /// The earliest instant at which its tasks could have started.
    pub release: Time,
    /// Position among all sets released at the instant `release`: arrivals before rows that a stage released, then by row.
    pub place: u64,
    /// Number of its waiting tasks.
    pub waiting: u32,
    /// Number of tasks of its row, whatever their state.
    pub tasks: u32,
    /// The demand of each of its tasks, by resource.
    pub demand: &'a [u64],
    /// Its priority, 0 (most urgent) to 9.
    pub priority: u8,
    /// The deadline of its tasks.
    pub deadline: Option<Time>,
    /// The duration of each of its tasks, as the user estimates it.
    pub estimate: Option<Span>,
    /// Its job.
    pub job: JobView,
}

/// The duration used for job sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSource {
    /// No duration: the order does not use sizes.
    Nothing,
    /// The user's estimate: a row without one is an error.
    Estimate,
    /// The true duration.
    Truth,
}

/// An order of a user's task sets, owned by the runs that use it. It must be stateless: a set's key is a function of the set and the
/// instant alone, and changes only when tasks of its job start, end or are stopped, unless [`JobOrder::moves`] or [`JobOrder::drifts`].
pub trait JobOrder: Send + Sync {
    /// Returns the name behind the slash.
    fn name(&self) -> &str;

    /// Returns a description in one sentence.
    fn meaning(&self) -> &'static str;

    /// Returns the publication that defines the order.
    fn source(&self) -> &'static str;

    /// Returns the key of a set; the set with the lowest key is next.
    fn key(&self, set: &SetView, now: Time) -> u128;

    /// Returns the durations used for [`JobView::size`] and [`JobView::left`].
    fn size_source(&self) -> SizeSource {
        SizeSource::Nothing
    }

    /// Returns whether service is two-dimensional: weighted by the largest part of the cluster, over all resources, that a task demands. A
    /// task that demands less than a step of [`WHOLE`] counts as one step.
    fn by_demand(&self) -> bool {
        false
    }

    /// Returns whether [`JobView::service`] is used.
    fn by_resource(&self) -> bool {
        false
    }

    /// Returns the next time at which the key of a job's sets changes although no task of the job starts or ends. Returns `None` if the
    /// key never changes, or changes continuously. `_rate` is the service that its running tasks attain per microsecond.
    fn changes(&self, _job: &JobView, _rate: u128, _now: Time) -> Option<Time> {
        None
    }

    /// Returns whether keys change with time while tasks of the job run. Such keys are recomputed before every round.
    fn moves(&self) -> bool {
        false
    }

    /// Returns whether keys change with time while tasks wait. The keys of all waiting sets are then recomputed before every round.
    fn drifts(&self) -> bool {
        false
    }

    /// Returns the order for a cluster with these resources and this capacity, or `None` if it is the same for every cluster. Errors: the
    /// order uses a resource that the cluster and the workload do not have.
    fn in_cluster(&self, _dims: &[Dim], _capacity: &Resources) -> Result<Option<Arc<dyn JobOrder>>> {
        Ok(None)
    }
}

impl PartialEq for dyn JobOrder {
    fn eq(&self, other: &dyn JobOrder) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn JobOrder {}

impl std::fmt::Debug for dyn JobOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An order that is a function of a set and the instant.
struct SetOrder {
    name: &'static str,
    meaning: &'static str,
    source: &'static str,
    size_source: SizeSource,
    moves: bool,
    key: fn(&SetView, Time) -> u128,
}

impl JobOrder for SetOrder {
    fn name(&self) -> &str {
        self.name
    }

    fn meaning(&self) -> &'static str {
        self.meaning
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn key(&self, set: &SetView, now: Time) -> u128 {
        (self.key)(set, now)
    }

    fn size_source(&self) -> SizeSource {
        self.size_source
    }

    fn moves(&self) -> bool {
        self.moves
    }
}

/// The name of the default order, which has no key; see the header of this file.
pub const USUAL: &str = "priority";

const FIFO: SetOrder = SetOrder {
    name: "fifo",
    meaning: "By arrival, whatever the priority.",
    source: "folklore",
    size_source: SizeSource::Nothing,
    moves: false,
    key: |set, _| u128::from(set.release.0) << 64 | u128::from(set.place),
};

const SJF: SetOrder = SetOrder {
    name: "sjf",
    meaning: "The job of the least size first, as its user estimates it.",
    source: "Smith, Naval Research Logistics Quarterly 1956 (shortest processing time)",
    size_source: SizeSource::Estimate,
    moves: false,
    key: |set, _| set.job.size,
};

const SJF_TRUE: SetOrder = SetOrder {
    name: "sjf:true",
    meaning: "The job of the least true size first.",
    size_source: SizeSource::Truth,
    ..SJF
};

const SRPT: SetOrder = SetOrder {
    name: "srpt",
    meaning: "The job with the least size left first, as its user estimates it.",
    source: "Schrage, Operations Research 1968",
    size_source: SizeSource::Estimate,
    moves: true,
    key: |set, _| set.job.left,
};

const SRPT_TRUE: SetOrder = SetOrder {
    name: "srpt:true",
    meaning: "The job with the least true size left first.",
    size_source: SizeSource::Truth,
    ..SRPT
};

const LAS: SetOrder = SetOrder {
    name: "las",
    meaning: "The job that has attained the least service first.",
    source: "Nuyens and Wierman, Performance Evaluation 2008 (foreground-background)",
    size_source: SizeSource::Nothing,
    moves: true,
    key: |set, _| set.job.attained,
};

const EDF: SetOrder = SetOrder {
    name: "edf",
    meaning: "The set with the earliest deadline first, those without one last.",
    source: "Liu and Layland, Journal of the ACM 1973",
    size_source: SizeSource::Nothing,
    moves: false,
    key: |set, _| set.deadline.map_or(u128::MAX, |deadline| u128::from(deadline.0)),
};

/// Two-dimensional attained service in queues, as in Tiresias: a job moves to the next queue at each of these amounts of service, and
/// within a queue jobs are ordered by arrival.
struct Queues {
    name: String,
    /// The thresholds in microseconds of the whole cluster, in ascending order.
    thresholds: Vec<u64>,
}

impl JobOrder for Queues {
    fn name(&self) -> &str {
        &self.name
    }

    fn meaning(&self) -> &'static str {
        "The job in the first of several queues, by arrival; it moves to the next after a threshold of attained service."
    }

    fn source(&self) -> &'static str {
        "Gu et al., NSDI 2019 (Tiresias: discretised two-dimensional least attained service)"
    }

    fn key(&self, set: &SetView, _now: Time) -> u128 {
        let attained = set.job.attained / u128::from(WHOLE);
        let queue = self.thresholds.iter().take_while(|threshold| u128::from(**threshold) <= attained).count();
        (queue as u128) << 64 | u128::from(set.submit.0)
    }

    fn by_demand(&self) -> bool {
        true
    }

    fn changes(&self, job: &JobView, rate: u128, now: Time) -> Option<Time> {
        let thresholds = self.thresholds.iter().map(|threshold| u128::from(*threshold) * u128::from(WHOLE));
        let left = { thresholds }.find(|threshold| *threshold > job.attained)? - job.attained;
        let span = (rate > 0).then(|| left.div_ceil(rate))?;
        u64::try_from(u128::from(now.0) + span).ok().map(Time)
    }

    fn moves(&self) -> bool {
        true
    }
}

const QUEUES: &str = "tiresias:";

/// Returns the order `tiresias:SPAN[,SPAN...]`. Errors: the expected form.
fn queues(name: &str) -> Result<Arc<dyn JobOrder>> {
    let spans = name.trim_start_matches(QUEUES).split(',').map(|text| span(text).map(|span| span.0));
    let thresholds = spans.collect::<std::result::Result<Vec<u64>, _>>().unwrap_or_default();
    if thresholds.is_empty() || thresholds[0] == 0 || !thresholds.is_sorted_by(|a, b| a < b) {
        let expected = "rising spans above 0 for which a job may have the whole cluster, such as tiresias:10s,2m";
        return Err(Error::plan("policy", format!("'{name}'"), expected));
    }
    Ok(Arc::new(Queues { name: name.to_owned(), thresholds }))
}

/// All orders except the default one, as listed for users; an order with parameters appears with example values.
pub static ORDERS: LazyLock<Vec<Arc<dyn JobOrder>>> = LazyLock::new(|| {
    let orders = [FIFO, SJF, SJF_TRUE, SRPT, SRPT_TRUE, LAS, EDF].map(|order| Arc::new(order) as Arc<dyn JobOrder>);
    let tiresias = queues("tiresias:10s,2m").expect("rising spans");
    orders.into_iter().chain([tiresias]).collect()
});

/// Splits a policy's name into the part before its last slash and the order after the slash; `None` is the default order. Text after a
/// slash that is no order belongs to the policy's argument if there is a colon before the slash (such as the path of a quota file).
/// Errors: [`Error::Plan`] for such text without a colon before the slash, and for invalid queue thresholds.
pub fn split(name: &str) -> Result<(&str, Option<Arc<dyn JobOrder>>)> {
    let Some((policy, suffix)) = name.rsplit_once('/') else { return Ok((name, None)) };
    if suffix == USUAL {
        return Ok((policy, None));
    }
    if suffix.starts_with(QUEUES) {
        return queues(suffix).map(|order| (policy, Some(order)));
    }
    if let Some(order) = ORDERS.iter().find(|order| order.name() == suffix) {
        return Ok((policy, Some(Arc::clone(order))));
    }
    if policy.contains(':') {
        return Ok((name, None));
    }
    let known: Vec<&str> = std::iter::once(USUAL).chain(ORDERS.iter().map(|order| order.name())).collect();
    let hint = nearest(suffix, known.iter().copied());
    let hint = hint.map(|hint| format!(" (did you mean '{policy}/{hint}'?)")).unwrap_or_default();
    let expected = format!("an order inside a user after the slash{hint}: {}", known.join(", "));
    Err(Error::plan("policy", format!("'{name}'"), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_stands_behind_the_last_slash() {
        let of = |name| split(name).map(|(policy, order)| (policy, order.map(|order| order.name().to_owned())));
        assert_eq!(of("drf").expect("a name"), ("drf", None));
        assert_eq!(of("drf/priority").expect("a name"), ("drf", None));
        assert_eq!(of("quota:a/b.toml").expect("a name"), ("quota:a/b.toml", None));
        assert_eq!(of("quota:a/b.toml/las").expect("a name"), ("quota:a/b.toml", Some("las".to_owned())));
        assert_eq!(of("drf/srpt:true").expect("a name"), ("drf", Some("srpt:true".to_owned())));
        let message = split("drf/srtp").unwrap_err().to_string();
        assert!(message.contains("did you mean 'drf/srpt'"), "{message}");
        assert_eq!(of("line/tiresias:10s,1h").expect("a name"), ("line", Some("tiresias:10s,1h".to_owned())));
        for bad in ["line/tiresias:", "line/tiresias:1h,10s", "line/tiresias:0s", "line/tiresias:x"] {
            let message = split(bad).expect_err("no spans").to_string();
            assert!(message.contains("rising spans"), "{message}");
        }
    }
}
