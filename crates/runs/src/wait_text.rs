//! The sentences that explain why a job waited.
//!
//! The same functions serve the terminal, the JSON output and Python, so that they cannot disagree.

use std::collections::{BTreeMap, BTreeSet};

use crate::sinks::fate_name;
use crate::wait_log::{JobWait, WaitInterval, rounded_mean};
use plimsoll_base::units::{Dim, Span, Time, resource_name, trim_float};
use plimsoll_metrics::numbers::{count, thousands};
use plimsoll_sim::engine::{BlockReason, MissingRoom, RankedBefore, StoppedTasks};
use plimsoll_sim::policy::Reason;

/// The waits of a run, with the names that their texts need.
#[derive(Clone, Debug)]
pub struct WaitReport {
    /// The resources.
    pub dims: Vec<Dim>,
    /// The names of the policy's groups, by index.
    pub groups: Vec<String>,
    /// Whether the engine serves users in the rank order of the policy. Otherwise the policy plans machines in an order of its own.
    pub in_rank_order: bool,
    /// The description of the policy, if it is known.
    pub rule: Option<&'static str>,
    /// The waits.
    pub waits: Vec<JobWait>,
}

/// The number of causes that have a sentence of their own.
const CAUSES: usize = 2;

/// The number of users that a sentence names.
const NAMED: usize = 3;

/// The part of a wait below which a cause has no sentence: 1 / 100.
const MINOR: u64 = 100;

/// The shortest wait after the first start that has a sentence.
const AFTER: Span = Span::from_secs(1);

/// The intervals with one cause, and their total length.
#[derive(Clone)]
struct WaitCause<'a> {
    intervals: Vec<&'a WaitInterval>,
    total: Span,
}

impl WaitReport {
    /// Returns three to six sentences: the wait, its main causes with amounts, and the users that held the missing resource.
    pub fn sentences(&self, wait: &JobWait) -> Vec<String> {
        let total = wait.wait();
        let subject = format!("Job {} of user {}", wait.job, wait.user);
        let submitted = format!("it was submitted at {} s", instant(wait.submit));
        let mut sentences = vec![match wait.start {
            Some(start) if total == Span::ZERO => {
                format!(
                    "{subject} did not wait: its first task started at {} s, when it was submitted.",
                    instant(start)
                )
            }
            Some(start) => format!(
                "{subject} waited {} s: {submitted}, and its first task started at {} s.",
                seconds(total),
                instant(start)
            ),
            None => format!(
                "{subject} had waited {} s at the end of the run and never started: {submitted}.",
                seconds(total)
            ),
        }];
        sentences.extend(self.causes(wait));
        // Rows that may not start yet do not wait for the scheduler.
        let may_start =
            |interval: &&WaitInterval| !matches!(interval.reason, BlockReason::Stage | BlockReason::Submission);
        let waits: Vec<&WaitInterval> = wait.after.iter().filter(may_start).collect();
        let after = Span(waits.iter().map(|interval| interval.length().0).sum());
        if let Some(main) = causes(&waits).first().filter(|_| after >= AFTER) {
            sentences.push(format!(
                "After its first start, some of its tasks waited for {} s in all; for {} of this time {}.",
                seconds(after),
                percent(main.total, after),
                self.cause(main)
            ));
        }
        sentences.extend(stops(wait));
        sentences
    }

    /// Returns the sentences about the main causes of a wait.
    fn causes(&self, wait: &JobWait) -> Vec<String> {
        let total = wait.wait();
        let causes = causes(&wait.before.iter().collect::<Vec<_>>());
        let is_major = |cause: &WaitCause| cause.total.0.saturating_mul(MINOR) >= total.0;
        let major = causes.iter().take(CAUSES).take_while(|cause| is_major(cause)).count().max(1).min(causes.len());
        let (mut sentences, mut named) = (Vec::new(), false);
        for cause in &causes[..major] {
            let lead = match () {
                () if causes.len() == 1 => "All the time".to_owned(),
                () if (total.0 - cause.total.0).saturating_mul(MINOR) < total.0 => "Almost all the time".to_owned(),
                () => format!("For {} s ({})", seconds(cause.total), percent(cause.total, total)),
            };
            sentences.push(format!("{lead} {}.", self.cause(cause)));
            // The users that held the resource are named once, for the longest cause with a missing resource.
            if !named && cause.intervals.iter().any(|one| !one.holders.is_empty()) {
                named = true;
                sentences.push(self.holders(cause, &wait.user));
            }
        }
        let rest = &causes[major..];
        let left = Span(rest.iter().map(|cause| cause.total.0).sum());
        if left.0.saturating_mul(MINOR) >= total.0 && left > Span::ZERO {
            let (mut clauses, mut names) = (BTreeSet::new(), Vec::new());
            for cause in rest {
                let clause = self.cause(cause);
                if clauses.insert(clause.clone()) {
                    names.push(if rest.len() <= CAUSES {
                        clause
                    } else {
                        cause.intervals[0].reason.row().name.to_owned()
                    });
                }
            }
            names.dedup();
            let (lead, joined) = match rest.len() <= CAUSES {
                true => (String::new(), names.join("; for a part of it ")),
                false => ("the reasons were ".to_owned(), names.join(", ")),
            };
            sentences.push(format!("For the other {} s {lead}{joined}.", seconds(left)));
        }
        sentences.extend(self.started(&wait.before, &wait.user));
        sentences
    }

    /// Returns a cause with its amounts, as a clause.
    fn cause(&self, cause: &WaitCause) -> String {
        let first = cause.intervals[0];
        match &first.reason {
            BlockReason::TooLarge => "a task of it fits no machine, even an empty one".to_owned(),
            BlockReason::Submission => "its further rows were submitted later".to_owned(),
            BlockReason::Stage => "an earlier stage of the job had not ended".to_owned(),
            BlockReason::Unknown => "the control plane had not delivered its request to the scheduler".to_owned(),
            BlockReason::Victims { asked, machine, .. } => {
                format!(
                    "{} on machine {} had been asked to make room and had not left",
                    count(*asked, "task"),
                    machine.0
                )
            }
            BlockReason::Rule(Reason::Quota { group, resource, .. }) => {
                let group =
                    self.groups.get(*group as usize).map_or("its queue".to_owned(), |name| format!("group {name}"));
                let amount = |amount| self.amount(Some(*resource), amount);
                let limit = first.limit.map(|limit| format!(" ({})", amount(u128::from(limit)))).unwrap_or_default();
                let short = amount(mean(cause, |one| one.short));
                format!(
                    "the quota of {group}{limit} was used up: its next task would have exceeded it by {short} on average"
                )
            }
            BlockReason::Rule(Reason::Rule(rule) | Reason::NoRoom(rule)) => {
                format!("the policy did not admit it: {rule}")
            }
            BlockReason::Own { missing, .. } => {
                let short = missing.map(|_| format!("; {}", self.short(cause))).unwrap_or_default();
                format!("other jobs of its user came first: {}{short}", list(&behind(cause), "job"))
            }
            BlockReason::Rank(before) => self.ranked(cause, before),
            BlockReason::Place { label, inside, outside, .. } => {
                let place = label.as_ref().map_or("its location".to_owned(), |label| format!("its label '{label}'"));
                format!(
                    "only machines outside {place} had room: {} had, and the {} that it may use had not",
                    count(u64::from(*outside), "machine"),
                    count(u64::from(*inside), "machine")
                )
            }
            BlockReason::Resources(_) | BlockReason::Fragmented(_) if self.in_rank_order => {
                format!("no other task came first in rank order, but {}", self.short(cause))
            }
            BlockReason::Resources(_) | BlockReason::Fragmented(_) => self.short(cause),
            BlockReason::Gang(missing) => {
                let short = mean(cause, |one| one.short);
                let short = match short {
                    0 => "enough was free in total, and not on enough machines".to_owned(),
                    short => format!("the others lacked {} on average", self.amount(missing.resource, short)),
                };
                format!(
                    "{} of the {} that start together had room at the beginning; {short}",
                    missing.room,
                    count(u64::from(missing.together), "task"),
                )
            }
            BlockReason::Busy => "it had room, and the scheduler was down or busy".to_owned(),
            BlockReason::Untried => {
                "it had room, and the scheduler waited for its next cycle or reserved the room".to_owned()
            }
            BlockReason::Starting => "the control plane was starting its tasks".to_owned(),
        }
    }

    fn ranked(&self, cause: &WaitCause, before: &RankedBefore) -> String {
        let others = count(u64::from(before.users), "other user");
        let short = match (&before.missing, &before.first_missing) {
            (Some(_), _) => self.short(cause),
            (None, Some(first)) => format!(
                "it had room itself, but {} lacked {}, and tasks after it had to wait",
                before.job,
                self.amount(first.resource, u128::from(first.short))
            ),
            (None, None) => "it had room itself, and may not start before them".to_owned(),
        };
        format!(
            "tasks of other users came first in rank order (at the beginning {} of {others}; the first in order: {}); {short}",
            count(before.tasks, "task"),
            list(&behind(cause), "user")
        )
    }

    /// Returns the clause about the resource that was missing for most of the time of a cause.
    fn short(&self, cause: &WaitCause) -> String {
        let Some((cause, missing)) = main_resource(cause) else {
            return "it lacked room for some of the time".to_owned();
        };
        let need = self.amount(missing.resource, u128::from(missing.need));
        let free = mean(&cause, |one| one.free);
        let total = self.amount(missing.resource, mean(&cause, |one| one.capacity));
        if missing.in_total {
            return format!(
                "the cluster was full: a task needs {need}, and {} of {total} was free on average",
                self.number(missing.resource, free)
            );
        }
        let place = if missing.of_devices { "device" } else { "machine" };
        format!(
            "no {place} had {need} free, although {} of {total} was free in total on average",
            self.number(missing.resource, free)
        )
    }

    /// Returns the sentence about the users that held the missing resource of a cause.
    fn holders(&self, cause: &WaitCause, own: &str) -> String {
        let resource = main_resource(cause).map(|(_, missing)| missing.resource);
        let resource = resource.unwrap_or(match cause.intervals[0].reason {
            BlockReason::Rule(Reason::Quota { resource, .. }) => Some(resource),
            _ => None,
        });
        let cause = main_resource(cause).map_or_else(|| cause.clone(), |(cause, _)| cause);
        let mut integrals: BTreeMap<&str, u128> = BTreeMap::new();
        for (user, integral) in cause.intervals.iter().flat_map(|one| &one.holders) {
            *integrals.entry(user).or_default() += integral;
        }
        let mut held: Vec<(&str, u128)> =
            integrals.into_iter().map(|(user, integral)| (user, rounded_mean(integral, cause.total))).collect();
        held.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let name = match resource {
            None => "slots were".to_owned(),
            Some(d) => format!("{} was", resource_name(&self.dims[usize::from(d)].name)),
        };
        let sum = |held: &[(&str, u128)]| held.iter().map(|(_, amount)| amount).sum::<u128>();
        // Names would mislead if many users hold about equal parts.
        if let [(_, largest), ..] = held[..]
            && sum(&held[..held.len().min(NAMED)]) * 4 < sum(&held)
        {
            let most = self.amount(resource, largest);
            return format!(
                "Meanwhile the {name} allocated to {} users, to none more than {most} on average.",
                held.len()
            );
        }
        let shown: Vec<String> = held
            .iter()
            .take(NAMED)
            .map(|(user, amount)| {
                let own = if *user == own { "its own user " } else { "" };
                format!("{own}{user} ({})", self.amount(resource, *amount))
            })
            .collect();
        let more = match held.len().saturating_sub(NAMED) {
            0 => String::new(),
            1 => " and one other user".to_owned(),
            more => format!(" and {more} other users"),
        };
        format!("Meanwhile the {name} allocated to {}{more}, on average.", shown.join(", "))
    }

    /// Returns the sentence about the tasks that started while a job waited, for a policy that plans machines in an order of its own.
    fn started(&self, intervals: &[WaitInterval], own: &str) -> Option<String> {
        let mut by_user: BTreeMap<&str, u64> = BTreeMap::new();
        for (user, tasks) in intervals.iter().flat_map(|one| &one.started) {
            *by_user.entry(user).or_default() += tasks;
        }
        let mut users: Vec<(&str, u64)> = by_user.into_iter().collect();
        users.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let total: u64 = users.iter().map(|(_, tasks)| tasks).sum();
        let user = |(user, tasks): &(&str, u64)| {
            format!("{}{user} ({})", if *user == own { "its own user " } else { "" }, thousands(*tasks))
        };
        let shown: Vec<String> = users.iter().take(NAMED).map(user).collect();
        let more = match users.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {}", count(more as u64, "other user")),
        };
        // The mean size, if most of the tasks started while one resource was missing.
        let resource = |one: &&WaitInterval| one.missing_resource();
        let main = intervals.iter().max_by_key(|one| one.started.values().sum::<u64>()).and_then(|one| resource(&one));
        let same: Vec<&WaitInterval> = intervals.iter().filter(|one| main.is_some() && resource(one) == main).collect();
        let tasks: u64 = same.iter().flat_map(|one| one.started.values()).sum();
        let size = match main {
            Some(resource) if tasks > 0 => {
                let mean = same.iter().map(|one| one.started_amount).sum::<u128>() / u128::from(tasks);
                format!(", with a mean of {}", self.amount(resource, mean))
            }
            _ => String::new(),
        };
        let rule = self.rule.map(|rule| format!(" ({})", rule.trim_end_matches('.'))).unwrap_or_default();
        (total > 0).then(|| {
            format!(
                "Meanwhile the scheduler, by its own rule{rule}, started {} on machines that the job may use{size}: of {}{more}.",
                count(total, "other task"),
                shown.join(", ")
            )
        })
    }

    /// Returns the name of the cause of a stop, as in the table tasks.
    pub fn fate(&self, stop: &StoppedTasks) -> &'static str {
        fate_name(stop.fate)
    }

    /// Returns the cause of an interval in one line of a table.
    pub fn detail(&self, interval: &WaitInterval) -> String {
        self.cause(&WaitCause { intervals: vec![interval], total: interval.length() })
    }

    /// Returns an amount of a resource without its unit, or a number of slots.
    fn number(&self, resource: Option<u8>, amount: u128) -> String {
        let text = self.amount(resource, amount);
        text.split(' ').next().unwrap_or_default().to_owned()
    }

    /// Returns an amount of a resource with its unit, or a number of slots.
    pub fn amount(&self, resource: Option<u8>, amount: u128) -> String {
        let amount = u64::try_from(amount).unwrap_or(u64::MAX);
        match resource {
            None if amount == 1 => "1 slot".to_owned(),
            None => format!("{amount} slots"),
            Some(resource) => self.dims[usize::from(resource)].display(amount),
        }
    }
}

/// Groups intervals by reason and resource, the longest total first.
fn causes<'a>(intervals: &[&'a WaitInterval]) -> Vec<WaitCause<'a>> {
    let mut causes: Vec<WaitCause> = Vec::new();
    for &interval in intervals {
        match causes.iter_mut().find(|cause| interval.has_cause_of(cause.intervals[0])) {
            Some(cause) => {
                cause.total = Span(cause.total.0 + interval.length().0);
                cause.intervals.push(interval);
            }
            None => causes.push(WaitCause { intervals: vec![interval], total: interval.length() }),
        }
    }
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.total));
    causes
}

/// Returns the intervals of a cause with the resource that was missing for the longest time, and the missing room in the first of them.
fn main_resource<'a>(cause: &WaitCause<'a>) -> Option<(WaitCause<'a>, MissingRoom)> {
    let mut by_resource: BTreeMap<Option<u8>, Vec<&'a WaitInterval>> = BTreeMap::new();
    for interval in &cause.intervals {
        if let Some(missing) = interval.reason.missing() {
            by_resource.entry(missing.resource).or_default().push(interval);
        }
    }
    let total = |intervals: &[&WaitInterval]| Span(intervals.iter().map(|one| one.length().0).sum());
    let longest = by_resource.into_values().max_by_key(|intervals| total(intervals))?;
    let missing = longest.first()?.reason.missing()?;
    Some((WaitCause { total: total(&longest), intervals: longest }, missing))
}

/// Returns the mean of an integral over the time of a cause.
fn mean(cause: &WaitCause, integral: impl Fn(&WaitInterval) -> u128) -> u128 {
    rounded_mean(cause.intervals.iter().map(|one| integral(one)).sum(), cause.total)
}

/// Returns the users or jobs that came first, the longest first, each with its time.
fn behind(cause: &WaitCause) -> Vec<(String, Span)> {
    let mut spans: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, span) in cause.intervals.iter().flat_map(|one| &one.behind) {
        *spans.entry(name).or_default() += span.0;
    }
    let mut spans: Vec<(String, Span)> = spans.into_iter().map(|(name, us)| (name.to_owned(), Span(us))).collect();
    spans.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    spans
}

fn list(spans: &[(String, Span)], kind: &str) -> String {
    let shown: Vec<String> = match spans {
        [(only, _)] => vec![only.clone()],
        spans => spans.iter().take(NAMED).map(|(name, span)| format!("{name} for {} s", seconds(*span))).collect(),
    };
    match spans.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} other {kind}s", shown.join(", ")),
    }
}

/// Returns the sentence about the stops of a job's tasks, if there were any.
fn stops(wait: &JobWait) -> Option<String> {
    let mut by_fate: BTreeMap<&str, u64> = BTreeMap::new();
    for stop in &wait.stops {
        *by_fate.entry(fate_name(stop.fate)).or_default() += u64::from(stop.tasks);
    }
    let first = wait.stops.first()?;
    let fates: Vec<String> =
        by_fate.iter().map(|(fate, stopped)| format!("{} ({fate})", count(*stopped, "stop"))).collect();
    Some(format!(
        "Running tasks of it were stopped and waited again: {}; the first at {} s.",
        fates.join(", "),
        instant(first.at)
    ))
}

/// Returns a span in seconds: whole seconds from 1000 s on, with one decimal from 10 s on, otherwise with three.
fn seconds(span: Span) -> String {
    match span.seconds() {
        long if long >= 1000.0 => format!("{long:.0}"),
        middle if middle >= 10.0 => trim_float((middle * 10.0).round() / 10.0),
        short => trim_float(short),
    }
}

/// Returns an instant in seconds with at most three decimals.
fn instant(time: Time) -> String {
    trim_float(time.seconds())
}

fn percent(part: Span, whole: Span) -> String {
    let percent = 100.0 * part.0 as f64 / whole.0.max(1) as f64;
    if percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
