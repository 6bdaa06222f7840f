//! Chooses columns of a log for the columns of a trace, by their names and values.

use super::profile::Profile;

/// Names of columns with the same content, without separators and in small letters; the first ones are preferred.
const JOB: &[&str] = &[
    "jobid",
    "jobidraw",
    "jobname",
    "job",
    "jobnumber",
    "applicationid",
    "appid",
    "workflowid",
    "collectionid",
    "podname",
    "pod",
    "vmid",
    "containerid",
    "runid",
    "requestid",
    "uuid",
    "id",
    "taskid",
    "name",
];
const USER: &[&str] = &[
    "user",
    "username",
    "userid",
    "uid",
    "owner",
    "submitter",
    "tenant",
    "tenantid",
    "account",
    "organization",
    "org",
    "team",
    "group",
    "groupid",
    "project",
    "subscriptionid",
    "namespace",
    "vc",
    "virtualcluster",
    "queue",
    "cluster",
];
const SUBMIT: &[&str] = &[
    "submit",
    "submittime",
    "submittedtime",
    "submitted",
    "submittedat",
    "submitts",
    "tssubmit",
    "submissiontime",
    "submission",
    "subtime",
    "arrival",
    "arrivaltime",
    "creationtime",
    "createtime",
    "createdat",
    "created",
    "creationtimestamp",
    "taskcreatetime",
    "queued",
    "queuedat",
    "enqueuetime",
    "timestamp",
    "time",
];
const START: &[&str] = &[
    "start",
    "starttime",
    "startedat",
    "started",
    "startts",
    "begin",
    "begintime",
    "launchtime",
    "scheduledtime",
    "scheduled",
    "runstart",
];
const END: &[&str] = &[
    "end",
    "endtime",
    "endedat",
    "ended",
    "endts",
    "finish",
    "finishtime",
    "finished",
    "finishedat",
    "stop",
    "stoptime",
    "completiontime",
    "completed",
    "completedat",
    "deletiontime",
    "deleted",
];
const DURATION: &[&str] = &[
    "duration",
    "durations",
    "durationsec",
    "durationseconds",
    "durationms",
    "durationus",
    "runtime",
    "runtimes",
    "runtimesec",
    "runtimems",
    "elapsed",
    "elapsedraw",
    "elapseds",
    "servicetime",
    "executiontime",
    "exectime",
    "walltimeused",
    "lifetime",
];
const TASKS: &[&str] = &[
    "tasks",
    "numtasks",
    "taskcount",
    "taskscount",
    "instnum",
    "instancenum",
    "instances",
    "numinstances",
    "workernum",
    "numworkers",
    "workers",
    "nodecount",
    "replicas",
    "nnodes",
    "nodenum",
    "nodes",
];
const CPU: &[&str] = &[
    "cpu",
    "cpus",
    "cores",
    "ncpus",
    "cpunum",
    "numcpus",
    "cpucount",
    "cpurequest",
    "requestcpu",
    "cpurequested",
    "reqcpus",
    "allocpus",
    "alloccpus",
    "plancpu",
    "vcpus",
    "vcpu",
    "corecount",
    "numcores",
    "ncores",
    "processors",
    "procs",
    "cpumilli",
];
const GPU: &[&str] = &[
    "gpu",
    "gpus",
    "numgpus",
    "gpunum",
    "gpucount",
    "ngpus",
    "gpurequest",
    "requestgpu",
    "reqgpus",
    "plangpu",
    "numgpu",
    "gpumilli",
];
const ESTIMATE: &[&str] =
    &["estimate", "timelimit", "timelimitraw", "walltime", "requestedtime", "reqtime", "timerequested"];
const STATE: &[&str] = &["state", "status", "phase", "jobstatus", "jobstate", "exitstatus", "result"];

const EVENT: &[&str] = &["event", "eventtype", "eventid", "eventname", "action", "type"];

/// Units behind a name.
const UNITS: [&str; 14] =
    ["", "s", "sec", "secs", "seconds", "ms", "us", "h", "hours", "min", "mins", "minutes", "days", "utc"];

/// The columns that were found.
#[derive(Debug, Default)]
pub struct Choice<'p> {
    /// The job.
    pub job: Option<&'p Profile>,
    /// The user.
    pub user: Option<&'p Profile>,
    /// The time of submission.
    pub submit: Option<&'p Profile>,
    /// The start.
    pub start: Option<&'p Profile>,
    /// The end.
    pub end: Option<&'p Profile>,
    /// The duration.
    pub duration: Option<&'p Profile>,
    /// The number of tasks.
    pub tasks: Option<&'p Profile>,
    /// Cores.
    pub cpu: Option<&'p Profile>,
    /// GPUs.
    pub gpu: Option<&'p Profile>,
    /// Memory.
    pub memory: Option<&'p Profile>,
    /// The estimate of the duration.
    pub estimate: Option<&'p Profile>,
    /// The state of the job.
    pub state: Option<&'p Profile>,
    /// The kind of an event.
    pub event: Option<&'p Profile>,
    /// All columns of times in text.
    pub times: Vec<&'p str>,
}

/// Returns a name in small letters and without separators.
pub fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the spellings of a name that are looked up: the whole name and, of a field in a record, its last part and its record:
/// `spec.cpus` may be `cpus`, and `owner.name` may be `owner`.
fn spellings(name: &str) -> Vec<String> {
    let mut all = vec![plain(name)];
    if let Some((record, field)) = name.rsplit_once('.') {
        match plain(field).as_str() {
            "name" | "id" => all.push(plain(record.rsplit('.').next().unwrap_or(record))),
            field => all.push(field.to_owned()),
        }
    }
    all
}

fn find<'p>(profiles: &'p [Profile], names: &[&str], fits: fn(&Profile) -> bool) -> Option<&'p Profile> {
    let with = |name: &&str| {
        // A name may have a unit behind it.
        let means = |own: &str| own.strip_prefix(*name).is_some_and(|rest| UNITS.contains(&rest));
        // A unit in brackets is no part of the name.
        let same = |profile: &&Profile| {
            let name = profile.name.split(['(', '[']).next().unwrap_or_default();
            spellings(name).iter().any(|own| means(own)) && fits(profile)
        };
        profiles.iter().find(same)
    };
    names.iter().find_map(with)
}

impl<'p> Choice<'p> {
    /// Chooses columns.
    pub fn new(profiles: &'p [Profile]) -> Choice<'p> {
        let any = |profile: &Profile| profile.values > 0;
        Choice {
            job: find(profiles, JOB, any),
            user: find(profiles, USER, any),
            submit: find(profiles, SUBMIT, Profile::is_time),
            start: find(profiles, START, Profile::is_time),
            end: find(profiles, END, Profile::is_time),
            duration: find(profiles, DURATION, Profile::is_number),
            tasks: find(profiles, TASKS, Profile::is_number),
            cpu: find(profiles, CPU, Profile::is_number),
            gpu: find(profiles, GPU, Profile::is_number),
            memory: profiles.iter().find(|profile| {
                let name = plain(&profile.name);
                (name.contains("mem") || name.contains("ram"))
                    && !name.contains("param")
                    && !name.contains("used")
                    && (profile.is_number() || profile.sizes > 0)
            }),
            estimate: find(profiles, ESTIMATE, Profile::is_number),
            event: find(profiles, EVENT, |profile| (2..=12).contains(&profile.distinct.len())),
            times: profiles
                .iter()
                .filter(|profile| profile.is_iso_time() || profile.is_formatted_time())
                .map(|profile| profile.name.as_str())
                .collect(),
            state: find(profiles, STATE, |profile| (1..=20).contains(&profile.distinct.len()) && profile.values > 0),
        }
    }

    /// Returns the positions of the columns that are used, from 1.
    pub fn used(&self) -> Vec<usize> {
        let all = [
            self.job,
            self.user,
            self.submit,
            self.start,
            self.end,
            self.duration,
            self.tasks,
            self.cpu,
            self.gpu,
            self.memory,
            self.estimate,
            self.state,
        ];
        all.into_iter().flatten().map(|profile| profile.place).collect()
    }
}

/// A unit of time with the suffix of a column of a trace, and whether it is certain.
pub struct TimeUnit {
    /// `""`, `"_ms"` or `"_us"`.
    pub suffix: &'static str,
    /// The seconds in larger units.
    pub factor: Option<u32>,
    /// The reason.
    pub reason: &'static str,
    /// Whether the user should check it.
    pub uncertain: bool,
}

/// Derives the unit of a column of times or durations.
pub fn time_unit(profile: &Profile, is_instant: bool) -> TimeUnit {
    let name = profile.name.to_ascii_lowercase().trim_end_matches([')', ']']).to_owned();
    let unit = |suffix, reason, uncertain| TimeUnit { suffix, factor: None, reason, uncertain };
    if !profile.is_number() {
        return unit("", "a time in text", false);
    }
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let last = words.last().copied().unwrap_or_default();
    for (units, factor, reason) in [
        (&["h", "hour", "hours"][..], 3600, "hours by its name"),
        (&["min", "mins", "minute", "minutes"][..], 60, "minutes by its name"),
        (&["d", "day", "days"][..], 86_400, "days by its name"),
    ] {
        if units.contains(&last) && words.len() > 1 {
            return TimeUnit { factor: Some(factor), ..unit("", reason, false) };
        }
    }
    for (units, suffix, reason) in [
        (&["ms", "millis", "milliseconds"][..], "_ms", "milliseconds by its name"),
        (&["us", "micros", "microseconds"][..], "_us", "microseconds by its name"),
        (&["s", "sec", "secs", "seconds", "elapsedraw"][..], "", "seconds by its name"),
    ] {
        if units.contains(&last) {
            return unit(suffix, reason, false);
        }
    }
    match profile.most() {
        most if is_instant && (1e14..1e17).contains(&most) => {
            unit("_us", "microseconds since 1970 by their size", false)
        }
        most if is_instant && (1e11..1e14).contains(&most) => {
            unit("_ms", "milliseconds since 1970 by their size", false)
        }
        most if is_instant && (5e8..1e10).contains(&most) => unit("", "seconds since 1970 by their size", false),
        _ => unit("", "seconds are assumed", true),
    }
}
