//! Random tasks in both formats of traces: the checker accepts them, and both have the same content.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::timeline::check::{TraceContent, json, protobuf};

/// A random attempt of a task: machine, user, start, finish, end.
type RandomTask = (Option<u32>, usize, u64, u64, TaskEnd);

fn texts(users: usize) -> TraceTexts {
    let names: Vec<String> = (0..users).map(|user| format!("user {user} \"ü\\\n")).collect();
    TraceTexts {
        root: "a name: drf".to_owned(),
        about: vec![("plimsoll.plan".to_owned(), "name = \"x\"\n".to_owned())],
        users: slice_names(&names),
        counters: ("CPU in use (cores)".to_owned(), "cores"),
    }
}

fn outcome(end: TaskEnd) -> &'static str {
    match end {
        TaskEnd::Done => "finished",
        TaskEnd::Open => "running",
        TaskEnd::Preempted => "preempted",
        TaskEnd::Failed => "machine-failed",
    }
}

/// Returns attempts in order of completion.
fn attempts(random: &mut ChaCha8Rng) -> Vec<RandomTask> {
    let (users, machines) = (random.random_range(1..40), random.random_range(0..6u32));
    let ends = [TaskEnd::Done, TaskEnd::Open, TaskEnd::Preempted, TaskEnd::Failed];
    let mut tasks: Vec<RandomTask> = (0..random.random_range(0..120))
        .map(|_| {
            let start = random.random_range(0..200);
            let finish = start + random.random_range(0..60);
            let machine = (machines > 0).then(|| random.random_range(0..machines.max(1)));
            (machine, random.random_range(0..users), start, finish, ends[random.random_range(0..ends.len())])
        })
        .collect();
    tasks.sort_by_key(|task| task.3);
    tasks
}

fn fill_with(out: &mut dyn TraceFormat, tasks: &[RandomTask]) {
    let mut groups: BTreeMap<u32, GroupLanes> = BTreeMap::new();
    let mut lanes = 0;
    out.begin().expect("a writable buffer");
    for (nth, &(machine, user, start, finish, end)) in tasks.iter().enumerate() {
        let job = format!("job {nth}");
        let task = TaskRow {
            job: &job,
            task: nth as i64,
            attempt: 0,
            user,
            machine,
            start,
            finish,
            outcome: outcome(end),
            end,
        };
        let group = machine.unwrap_or(user as u32);
        add_task(&mut groups, &mut lanes, &|| format!("group {group}"), &task, out).expect("a writable buffer");
        out.counter(user, finish, nth as f64 / 8.0).expect("a writable buffer");
    }
    out.end().expect("a writable buffer");
}

fn both(tasks: &[RandomTask]) -> (TraceContent, TraceContent) {
    let texts = texts(40);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    fill_with(&mut PerfettoWriter::new(&mut first, &texts), tasks);
    fill_with(&mut ChromeWriter::new(&mut second, &texts), tasks);
    let text = String::from_utf8(second).expect("valid text");
    (protobuf(&first).expect("a valid trace"), json(&text).expect("a valid trace"))
}

#[test]
fn random_traces_follow_the_rules_in_both_formats() {
    for seed in 0..200 {
        let tasks = attempts(&mut ChaCha8Rng::seed_from_u64(seed));
        let (mut packed, json) = both(&tasks);
        // A process of JSON is the second track of protobuf: the first one is the root.
        packed.slices.iter_mut().for_each(|slice| drop(slice.track.remove(0)));
        packed.instants.iter_mut().for_each(|instant| drop(instant.0.remove(0)));
        assert_eq!(packed.slices, json.slices, "seed {seed}");
        assert_eq!(packed.instants, json.instants, "seed {seed}");
        assert_eq!(packed.counters, json.counters, "seed {seed}");
        assert_eq!(packed.slices.len(), tasks.len(), "seed {seed}");
        let mut times: Vec<(u64, u64)> = tasks.iter().map(|task| (task.2 * 1000, task.3 * 1000)).collect();
        let mut drawn: Vec<(u64, u64)> = packed.slices.iter().map(|slice| (slice.start, slice.end)).collect();
        times.sort_unstable();
        drawn.sort_unstable();
        assert_eq!(times, drawn, "seed {seed}");
    }
}

#[test]
fn letters_distinguish_users() {
    let names = |names: &[&str]| slice_names(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    assert_eq!(names(&["ann", "bob"]), ["ann", "bob"]);
    assert_eq!(names(&["user1", "user2"]), ["A user1", "B user2"]);
    assert_eq!(names(&["17"]), ["A 17"]);
    let letters: Vec<String> = [0, 25, 26, 51, 52, 701, 702].map(ordinal).into();
    assert_eq!(letters, ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
}

#[test]
fn the_checker_rejects_broken_traces() {
    let texts = texts(2);
    let task = |start, finish| TaskRow {
        job: "j",
        task: 0,
        attempt: 0,
        user: 0,
        machine: Some(0),
        start,
        finish,
        outcome: "finished",
        end: TaskEnd::Done,
    };
    let written = |tasks: &[TaskRow]| {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let fill = |out: &mut dyn TraceFormat| {
            out.begin().expect("a buffer");
            out.group(0, "machine 0").expect("a buffer");
            out.lane(0, 0, 0).expect("a buffer");
            tasks.iter().for_each(|task| out.task(0, 0, task).expect("a buffer"));
            out.end().expect("a buffer");
        };
        fill(&mut PerfettoWriter::new(&mut first, &texts));
        fill(&mut ChromeWriter::new(&mut second, &texts));
        (first, String::from_utf8(second).expect("valid text"))
    };
    let (good, text) = written(&[task(0, 5), task(5, 9)]);
    assert!(protobuf(&good).is_ok() && json(&text).is_ok());
    // Overlapping slices of one lane.
    let (packed, overlap) = written(&[task(0, 5), task(3, 9)]);
    assert!(protobuf(&packed).expect_err("an overlap").contains("is before"));
    assert!(json(&overlap).expect_err("an overlap").contains("overlap"));
    // A file that is cut, without its first packet, or with its packets twice.
    assert!((1..good.len()).filter(|end| protobuf(&good[..*end]).is_ok()).count() < 6, "only between packets");
    let first = 2 + usize::from(good[1]);
    assert!(protobuf(&good[first..]).expect_err("no first packet").contains("first packet"));
    assert!(protobuf(&[&good[..], &good[..]].concat()).is_err());
    for (from, to) in [
        ("\"dur\":5,", ""),
        ("\"pid\":2,\"tid\":1,\"args\":{\"job\"", "\"pid\":2,\"tid\":5000000000,\"args\":{\"job\""),
        ("\"process_name\"", "\"process_names\""),
        ("\"displayTimeUnit\":\"ms\",", ""),
        ("\"ph\":\"X\"", "\"ph\":\"B\""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        assert!(json(&text.replacen(from, to, 1)).is_err(), "{from}");
    }
}
