//! Cases of the KAI scheduler's own tests, written short. Jobs are listed the oldest first, as those tests make them; a job of several
//! tasks starts and stops as a whole unless the test has a minimum of one. Priorities are the tests': train 50, preemptible
//! interactive 75, build 100, inference 125; the last two are never stopped, which a queue says here (`fixed`).
//!
//! Not here: preemption delays and search back-off, node affinities, moves to another node, minimums between one and all, jobs of one
//! queue of which some may be stopped and others not, gangs that run on several nodes.

use crate::decide;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// `NAME:PARENT:DESERVED:WEIGHT[:PRIORITY[:LIMIT]][:fixed]`.
fn queues(text: &mut String, list: &str) {
    for queue in list.split_whitespace() {
        let (queue, fixed) = queue.strip_suffix(":fixed").map_or((queue, false), |queue| (queue, true));
        let parts: Vec<&str> = queue.split(':').collect();
        let _ = write!(
            text,
            "[[group]]\nname = \"{}\"\nparent = \"{}\"\ndeserved = {{ gpu = {} }}\nweight = {}\npreemptible = {}\n",
            parts[0], parts[1], parts[2], parts[3], !fixed
        );
        if let Some(priority) = parts.get(4) {
            let _ = writeln!(text, "priority = {priority}");
        }
        if let Some(limit) = parts.get(5) {
            let _ = writeln!(text, "limit = {{ gpu = {limit} }}");
        }
    }
}

/// `NAME:QUEUE:GPUS[xTASKS[!]][@NODE][^PRIORITY][/JOB]`; `!` is a gang.
fn jobs(text: &mut String, kind: &str, list: &str) {
    for item in list.split_whitespace() {
        let (item, job) = item.split_once('/').map_or((item, None), |(item, job)| (item, Some(job)));
        let (item, priority) = item.split_once('^').unwrap_or((item, "50"));
        let (item, node) = item.split_once('@').map_or((item, None), |(item, node)| (item, Some(node)));
        let (item, gang) = item.strip_suffix('!').map_or((item, false), |item| (item, true));
        let (item, tasks) = item.split_once('x').unwrap_or((item, "1"));
        let [name, queue, gpus] = item.split(':').collect::<Vec<_>>()[..] else { panic!("{item}") };
        let _ = write!(
            text,
            "[[{kind}]]\nname = \"{name}\"\ndemand = {{ gpu = {gpus} }}\ntasks = {tasks}\npriority = {priority}\ngang = {gang}\n"
        );
        let _ = match job {
            Some(job) => writeln!(text, "user = \"{job}\""),
            None => writeln!(text, "group = \"{queue}\""),
        };
        if let Some(node) = node {
            let _ = writeln!(text, "machine = \"n{node}\"");
        }
    }
}

/// A state: GPUs of a node, or of several, with a blank between.
fn state(nodes: &str, list: &str, running: &str, waiting: &str, more: &str) -> String {
    let nodes: Vec<&str> = nodes.split(' ').collect();
    let mut text = String::new();
    match nodes[..] {
        [one] => text += &format!("[capacity]\ngpu = {one}\n"),
        _ => nodes.iter().enumerate().for_each(|(at, gpus)| {
            let _ = writeln!(text, "[[machine]]\nname = \"n{at}\"\ngpu = {gpus}");
        }),
    }
    let _ = writeln!(text, "{more}");
    queues(&mut text, list);
    jobs(&mut text, "running", running);
    jobs(&mut text, "waiting", waiting);
    text
}

/// Names and tasks: `a` is one task, `ax2` two.
fn counted<'a>(list: impl Iterator<Item = (&'a str, u32)>) -> Vec<String> {
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    list.for_each(|(name, tasks)| *sums.entry(name).or_default() += tasks);
    sums.into_iter().map(|(name, tasks)| if tasks == 1 { name.to_owned() } else { format!("{name}x{tasks}") }).collect()
}

/// The name of a case, nodes, queues, jobs that run, jobs that wait; jobs that are stopped and that start.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

pub fn play(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (name, nodes, list, running, waiting, stopped, started) in cases {
        let (list, more) = list.split_once('|').unwrap_or((list, ""));
        let answer = decide("kai", &state(nodes, list, running, waiting, more));
        let of = |list: &'static str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let got = (
            counted(answer.evicted.iter().map(|(name, tasks)| (name.as_str(), *tasks))),
            counted(answer.launched.iter().map(|(name, tasks)| (name.as_str(), *tasks))),
        );
        if got != (of(stopped), of(started)) {
            wrong.push(format!("{name}: {got:?}, not [{stopped}] and [{started}]"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
