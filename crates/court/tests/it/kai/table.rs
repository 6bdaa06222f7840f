//! Cases of the KAI scheduler's own tests in a short notation. Jobs are listed from the oldest to the youngest, as the source creates
//! them. A job of several tasks starts and stops as a whole, unless the source gives it a minimum of one task. Priorities are those of
//! the source: train 50, preemptible interactive 75, build 100, inference 125. The source never stops build and inference jobs. In these
//! tests their queue is marked as not preemptible (`fixed`) if that matters.
//!
//! Not covered: preemption delays, search back-off, node affinities, moves to another node, minimums between one task and all tasks,
//! queues with both preemptible and non-preemptible jobs, and gangs that run on several nodes.

use crate::decide;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Appends queues, each given as `NAME:PARENT:DESERVED:WEIGHT[:PRIORITY[:LIMIT]][:fixed]`.
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

/// Appends jobs, each given as `NAME:QUEUE:GPUS[xTASKS[!]][@NODE][^PRIORITY][/JOB]`; `!` marks a gang.
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

/// Returns a state. `nodes` has the number of GPUs of each node, separated by blanks; a single number is the capacity of the cluster.
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

/// Returns the names with their numbers of tasks: `a` is one task of `a`, `ax2` are two.
fn counted<'a>(list: impl Iterator<Item = (&'a str, u32)>) -> Vec<String> {
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    list.for_each(|(name, tasks)| *sums.entry(name).or_default() += tasks);
    sums.into_iter().map(|(name, tasks)| if tasks == 1 { name.to_owned() } else { format!("{name}x{tasks}") }).collect()
}

/// A case: its name, the nodes, the queues, the running jobs, the waiting jobs, the expected victims and the expected starts. In the
/// field of queues, text after `|` is further TOML of the state.
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
