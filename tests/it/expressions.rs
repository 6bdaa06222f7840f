//! Policies that are written as expressions make the same decisions, task by task, as built-in policies and as policies in Rust.

use std::path::Path;

use plimsoll::books::Books;
use plimsoll::cli::{Call, Stop};
use plimsoll::error::Result;
use plimsoll::output::schema::Table;
use plimsoll::policy::{
    Ask, BUILT_IN, Capabilities, NamedPolicy, Policy, Queue, Rank, Reason, Registry, Setup, Stale, Verdict,
};
use plimsoll::units::{Time, UserId};

use crate::frame::Frame;
use crate::property::search;
use crate::replay::outcomes;
use crate::slow::{Inside, OnBlocked, Outcome, Placement};
use crate::twin::command;
use crate::workloads::{Case, Weighting};

const CASES: u32 = 60;

/// Pairs of policies that must make the same decisions.
type Pairs = &'static [(&'static str, &'static str)];

/// Pairs with built-in policies; users may have weights.
const WITH_BUILT_IN: Pairs = &[
    ("drf", "expr:(max(held[r] / (capacity[r] * weight[r])))"),
    ("asset", "expr:(sum(held[r] / (capacity[r] * weight[r])))"),
    ("maxmin:cpu", "expr:(rank held[cpu] / weight[cpu])"),
    ("fifo", "expr:(release * 1000000000000 * 1000000000000000 + place)"),
];

/// Pairs with job orders inside users.
const ORDERED: Pairs = &[
    ("drf/las", "expr:(max(held[r] / capacity[r]); order job_attained)"),
    ("drf/srpt", "expr:(max(held[r] / capacity[r]); order job_left)"),
    ("drf/sjf", "expr:(max(held[r] / capacity[r]); order job_size)"),
    ("drf/edf", "expr:(max(held[r] / capacity[r]); order 2 * deadline - 7)"),
    ("asset/fifo", "expr:(sum(held[r] / capacity[r]))/fifo"),
    ("line/las", "expr:(order job_attained)"),
    ("line/edf", "expr:(order deadline)"),
    ("expr:(order release)", "expr:(order -wait)"),
    ("expr:(order submit)", "expr:(order log(1 + submit) - 0 * now)"),
    ("expr:(running; order job_left)", "expr:(running + 0 * key; order sqrt(job_left))"),
    ("expr:(running * 1000000 - 2 * release; order release)", "expr:(running * 1000000 - 2 * key; order release)"),
];

/// Pairs with the policies of [`Own`].
const WRITTEN_OUT: Pairs = &[
    ("waits", "expr:(-waiting)"),
    ("served", "expr:(service[cpu])"),
    ("aged", "expr:(held[cpu] - (now - release) / 100)"),
    ("crowd", "expr:(if(total_running > 3, held[cpu], -held[cpu]))"),
    ("capped", "expr:(max(held[r] / capacity[r]); admit held[cpu] + tasks * demand[cpu] <= capacity[cpu] / 2)"),
    ("empty", "expr:(running; admit total_held[memory] == 0 or running > 0)"),
];

/// Policies in simple Rust code, without optimisations.
struct Own {
    name: &'static str,
    capacity: u64,
    now: u64,
    running: u64,
    /// By user, the cores at the end of the last instant, and the integral of the cores over time up to `now`.
    served: Vec<(u64, i128)>,
}

/// An offset that makes negative values positive.
const MIDDLE: i128 = 1 << 100;

impl Policy for Own {
    fn prepare(&mut self, now: Time, books: &Books, _changed: &[UserId]) -> Result<Stale> {
        let span = i128::from(now.0 - self.now);
        self.served.resize(books.users(), (0, 0));
        self.served.iter_mut().for_each(|(cores, sum)| *sum += i128::from(*cores) * span);
        (self.now, self.running) = (now.0, books.total_running());
        Ok(Stale::All)
    }

    fn settled(&mut self, _now: Time, _changed: &[UserId], books: &Books) -> Option<Time> {
        let users = self.served.iter_mut().enumerate();
        users.for_each(|(user, (cores, _))| *cores = books.allocated(UserId(user as u32))[0]);
        None
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        let (held, waiting) = (i128::from(books.allocated(queue.user)[0]), i128::from(books.waiting(queue.user)));
        let value = match self.name {
            "waits" => -waiting,
            "served" => self.served[queue.user.index()].1,
            // The unit is 10^-8 cores.
            "aged" => 100_000 * held - i128::from(self.now - queue.release.0),
            "crowd" if self.running > 3 => held,
            "crowd" => -held,
            "empty" => books.running(queue.user).into(),
            _ => {
                let share = |d: usize| {
                    let others: u64 = books
                        .capacity()
                        .slice(books.dims())
                        .iter()
                        .enumerate()
                        .filter(|(e, _)| *e != d)
                        .map(|(_, c)| *c)
                        .product();
                    i128::from(books.allocated(queue.user)[d]) * i128::from(others)
                };
                (0..books.dims()).map(share).max().unwrap_or(0)
            }
        };
        Rank::new((MIDDLE + value) as u128)
    }

    fn admit(&self, queue: &Queue, ask: &Ask, books: &Books) -> Verdict {
        let yes = match self.name {
            "capped" => 2 * (books.allocated(queue.user)[0] + u64::from(ask.tasks) * ask.demand[0]) <= self.capacity,
            "empty" => books.total_held().0[1] == 0 || books.running(queue.user) > 0,
            _ => true,
        };
        if yes { Verdict::Yes } else { Verdict::No(Reason::Rule("not now")) }
    }
}

impl Capabilities for Own {}

fn read_tasks(out: &Path, policy: &str) -> std::result::Result<Vec<(String, Outcome)>, String> {
    Ok(outcomes(&Frame::read(&Table::Tasks.path(out, policy, 0))?))
}

fn registry() -> Registry {
    WRITTEN_OUT.iter().fold(Registry::new(BUILT_IN), |registry, (name, _)| {
        let make = move |setup: &Setup| -> Result<Box<dyn Policy>> {
            Ok(Box::new(Own { name, capacity: setup.capacity.0[0], now: 0, running: 0, served: Vec::new() }))
        };
        registry.with(NamedPolicy::new(*name, make))
    })
}

/// Replays a case under both policies of all pairs. Returns an error that describes the first difference.
fn difference(case: &Case, pairs: Pairs) -> std::result::Result<(), String> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).expect("writable");
    write("trace.csv", case.csv());
    if let Some(text) = case.weights_csv() {
        write("weights.csv", text);
    }
    let case = Case { policies: Vec::new(), ..case.clone() };
    let mut command = command(&case, dir.path());
    for (one, other) in pairs {
        command.args(["--policy", one, "--policy", other]);
    }
    let args = std::iter::once("plimsoll".into()).chain(command.get_args().map(Into::into));
    let called = Call::parse(args)?.execute(&registry(), &Stop::default());
    // If no task starts, the run fails, but only after it has written its tables.
    if called.code > 1 {
        return Err(called.problem);
    }
    pairs.iter().try_for_each(|(one, other)| {
        let tasks = |name: &str| {
            let mut tasks = read_tasks(&dir.path().join("out"), name)?;
            tasks.sort_by_key(|(job, task)| (job.clone(), task.task, task.start, task.machine));
            Ok::<_, String>(tasks)
        };
        let (built_in, written) = (tasks(one)?, tasks(other)?);
        let pair = built_in.iter().zip(&written).find(|(one, other)| one != other);
        match pair {
            Some((one_task, other_task)) => Err(format!("{one}: {one_task:?}\n{other}: {other_task:?}")),
            None if built_in.len() != written.len() => {
                Err(format!("{one}: {} tasks, {}", built_in.len(), written.len()))
            }
            None => Ok(()),
        }
    })
}

fn compare(pairs: Pairs, draw: fn(u64) -> Case) {
    if let Err(broken) = search(file!(), CASES, draw, Case::smaller, |case| difference(case, pairs)) {
        let case = broken.case;
        panic!(
            "a case differs\n{}\nweights: {:?}\n{}\n{}",
            case.csv(),
            case.weights_csv(),
            case.spec(),
            broken.problem
        );
    }
}

const RULES: &[Placement] = &[Placement::Pooled, Placement::FirstFit, Placement::BestFit];

#[test]
fn they_do_as_the_built_in_policies() {
    compare(WITH_BUILT_IN, |seed| Case::draw(seed, Weighting::Vector, RULES));
}

#[test]
fn their_orders_are_those_inside_users() {
    compare(ORDERED, |seed| Case { inside: Inside::Usual, ..Case::draw(seed, Weighting::None, RULES).ordered(seed) });
}

#[test]
fn they_do_as_policies_that_are_written_out() {
    compare(WRITTEN_OUT, |seed| Case::draw(seed, Weighting::None, RULES));
}

#[test]
fn where_the_first_in_line_holds_up_all_they_do_the_same() {
    compare(WRITTEN_OUT, |seed| Case { on_blocked: OnBlocked::Stop, ..Case::draw(seed, Weighting::Scalar, RULES) });
}

/// A user waits for machines of both labels, and its next task changes with time under `las`. A rank by demand is up to date. The test
/// compares it with an expression that contains the time, because such an expression is evaluated at every instant.
#[test]
fn a_demand_is_that_of_the_task_that_is_next_now() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("writable");
    write("m.csv", "name,cpu,memory_gib,labels\nx,1,8,a\ny,1,8,b\n");
    let rows = "J2,u,0,10,1,1,0,b\nJ2,u,0,50,1,1,4,b\nv1,v,1,20,1,1,0,b\nW,w,1,50,1,1,2,b\nJ1,u,5,100,2,1,1,a\nD,d,12,1,1,1,0,a\n";
    write("t.csv", &format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib,label\n{rows}"));
    let path = |name: &str| dir.path().join(name).display().to_string();
    let pair = ["expr:(demand[memory])/las", "expr:(demand[memory] + 0 * now)/las"];
    for on_blocked in ["skip", "stop"] {
        let out = dir.path().join(on_blocked);
        let (trace, machines, out_text) = (path("t.csv"), path("m.csv"), out.display().to_string());
        let args = ["plimsoll", "replay", &trace, "--machines", &machines, "--placement", "first-fit", "--tasks"];
        let args = args.into_iter().chain(["--on-blocked", on_blocked, "-o", &out_text]);
        let args = args.chain(pair.into_iter().flat_map(|policy| ["--policy", policy]));
        let called = Call::parse(args.map(Into::into))
            .expect("a command line")
            .execute(&Registry::new(BUILT_IN), &Stop::default());
        assert_eq!((called.code, called.problem.as_str()), (0, ""));
        let tasks = |policy: &str| {
            let mut tasks = read_tasks(&out, policy).expect("a table");
            tasks.sort();
            tasks
        };
        assert_eq!(tasks(pair[0]), tasks(pair[1]), "{on_blocked}");
    }
}

/// A policy has a folder even if its name is too long for a file name.
#[test]
fn an_expression_may_be_long() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(dir.path().join("t.csv"), "job,user,submit_s,duration_s,cpu\na,ann,0,1,1\n").expect("writable");
    let long = format!("expr:({})", ["max(held[r] / (capacity[r] * weight[r]))"; 12].join(" + "));
    let other = long.replacen("max", "min", 1);
    let out = dir.path().join("out");
    let trace = dir.path().join("t.csv").display().to_string();
    let (out_text, policies) = (out.display().to_string(), [long.as_str(), &other]);
    let args =
        ["plimsoll", "replay", &trace, "--machines", "1x1c", "--tasks", "-o", &out_text, "--policy", policies[0]];
    let args = args.into_iter().chain(["--policy", policies[1]]);
    let called =
        Call::parse(args.map(Into::into)).expect("a command line").execute(&Registry::new(BUILT_IN), &Stop::default());
    assert_eq!((called.code, called.problem.as_str()), (0, ""));
    for policy in policies {
        assert_eq!(read_tasks(&out, policy).expect("a table").len(), 1, "{policy}");
    }
}
