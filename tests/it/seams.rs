//! The engine's services for custom policies: preemption of running tasks, integrals of users' allocations, and the reasons of decisions as
//! data.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll::books::{Books, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec, Placement, Shortage};
use plimsoll::engine::{self, Options, Outcome, Preempt, PreemptFor, PreemptFrom, RunContext};
use plimsoll::error::Result;
use plimsoll::policy::job_order::ORDERS;
use plimsoll::policy::{
    Ask, Capabilities, Lens, Needs, Policy, Preemption, PreemptsFor, Queue, Rank, Reason, Room, RunningView, Verdict,
    Victims,
};
use plimsoll::record::{Decision, Fate, Launch, Recorder, State, TaskRecord, Turn};
use plimsoll::units::{MachineId, Span, Time, UserId};
use plimsoll::workload::{CsvTrace, Input, Source};

/// Replays rows `job,user,submit_s,duration_s,cpu,stable` on one machine with `cores` cores.
fn replay(policy: &mut dyn Policy, rows: &str, cores: u32, recorder: &mut dyn Recorder) -> Result<Outcome> {
    run(policy, rows, cores, recorder, Options::default())
}

fn run(
    policy: &mut dyn Policy,
    rows: &str,
    cores: u32,
    recorder: &mut dyn Recorder,
    options: Options,
) -> Result<Outcome> {
    let text = format!("job,user,submit_s,duration_s,cpu,stable\n{rows}");
    let mut source = CsvTrace::new(&Input::Bytes(PathBuf::from("rows.csv"), text.into_bytes().into()))?;
    let spec = ClusterSpec::parse("machines", &format!("1x{cores}c"))?;
    let cluster = Cluster::new(&spec, source.dims())?;
    let options = Options { placement: Placement::FirstFit, audit: true, ..options };
    engine::run(&mut source, policy, cluster, Weights::default(), &options, recorder)
}

/// Serves by arrival. For tasks of the user that appears first, preempts the tasks that `choose` selects among the running tasks of other
/// users.
struct Bully {
    room: Room,
    /// Selects the tasks to preempt. Tasks are batches of the running tasks: key and count.
    choose: fn(Vec<(u64, u32)>) -> Vec<(u64, u32)>,
}

impl Policy for Bully {
    fn needs(&self) -> Needs {
        Needs { preempts_for: PreemptsFor::ForOthers, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}

impl Capabilities for Bully {
    fn preemption(&mut self) -> Option<&mut dyn Preemption> {
        Some(self)
    }
}

impl Preemption for Bully {
    fn propose(
        &mut self,
        queue: &Queue,
        _ask: &Ask,
        running: &dyn RunningView,
        _books: &Books,
    ) -> Result<Option<Victims>> {
        let mut others = Vec::new();
        running.all(&mut |tasks| {
            if tasks.user != queue.user {
                others.push((tasks.key, tasks.count));
            }
            ControlFlow::Continue(())
        });
        let tasks = (self.choose)(others);
        let wanted = queue.user == UserId(0) && !tasks.is_empty();
        Ok(wanted.then_some(Victims { tasks, room: self.room, cause: None }))
    }
}

/// Job, start and end in seconds, and fate of tasks, in the order of their ends.
#[derive(Default)]
struct Ends(Vec<(String, u64, u64, Fate)>);

impl Recorder for Ends {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut name = String::new();
        tasks.name.render(&mut name);
        let second = |time: Time| time.0 / 1_000_000;
        self.0.push((name, second(tasks.start), second(tasks.finish.expect("an end")), tasks.fate));
        Ok(())
    }
}

fn ends(
    room: Room,
    choose: fn(Vec<(u64, u32)>) -> Vec<(u64, u32)>,
    rows: &str,
) -> Result<Vec<(String, u64, u64, Fate)>> {
    let mut ends = Ends::default();
    replay(&mut Bully { room, choose }, rows, 2, &mut ends)?;
    Ok(ends.0)
}

fn end(job: &str, start: u64, end: u64, fate: Fate) -> (String, u64, u64, Fate) {
    (job.to_owned(), start, end, fate)
}

/// At 2 s job `b1` of the first user needs both cores. Jobs `c0` and `d0` run, and `e0` has waited longer for one core.
const ROWS: &str = "a0,a,0,1,1,false\nc0,c,0,10,1,false\nd0,d,1,10,1,false\ne0,e,1,3,1,false\nb1,a,2,4,2,false\n";

#[test]
fn room_is_kept_for_the_task_that_others_are_stopped_for() {
    let ended = ends(Room::Kept, |others| others, ROWS).expect("a run");
    let early = &ended[..4];
    let stopped = |job, start| end(job, start, 2, Fate::Preempted);
    assert_eq!(
        early,
        [end("a0", 0, 1, Fate::Finished), stopped("d0", 1), stopped("c0", 0), end("b1", 2, 6, Fate::Finished)]
    );
    assert_eq!(
        ended.iter().filter(|(_, _, _, fate)| *fate == Fate::Finished).count(),
        5,
        "all five jobs finish: {ended:?}"
    );
}

/// The preempted task restarts at once, since it arrived first, so the preemption gains nothing. The instant ends nevertheless, since a
/// task that has just started is not preempted.
#[test]
fn room_that_is_left_open_goes_to_the_first_in_line() {
    let rows = "a0,a,0,1,1,false\nc0,c,0,10,2,false\nb1,a,2,4,2,false\n";
    let open = ends(Room::Open, |others| others, rows).expect("a run");
    let kept = ends(Room::Kept, |others| others, rows).expect("a run");
    assert!(kept.contains(&end("b1", 2, 6, Fate::Finished)), "{kept:?}");
    let again = [end("c0", 1, 2, Fate::Preempted), end("c0", 2, 12, Fate::Finished), end("b1", 12, 16, Fate::Finished)];
    assert_eq!(open[1..], again);
}

#[test]
fn a_proposal_that_makes_no_sense_is_an_error() {
    let wrong: [fn(Vec<(u64, u32)>) -> Vec<(u64, u32)>; 2] =
        [|_| vec![(u64::MAX, 1)], |others| others.into_iter().map(|(key, count)| (key, count + 1)).collect()];
    for choose in wrong {
        let message = ends(Room::Kept, choose, ROWS).expect_err("no such tasks").to_string();
        assert!(message.contains("do not run or may not be stopped"), "{message}");
    }
}

#[test]
fn no_rule_sees_stable_tasks() {
    let rows = ROWS.replace("10,1,false", "10,1,true");
    let ended = ends(Room::Kept, |others| others, &rows).expect("a run");
    let stable = ended.iter().filter(|(job, ..)| job == "c0" || job == "d0");
    assert_eq!(
        stable.cloned().collect::<Vec<_>>(),
        [end("c0", 0, 10, Fate::Finished), end("d0", 1, 11, Fate::Finished)]
    );
}

/// Ranks queues by the number of their user alone.
struct InTurn;

impl Policy for InTurn {
    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.user.0))
    }
}

impl Capabilities for InTurn {}

/// Job `j` has two rows. Its attained service grows while its second row waits, because its first row runs. No task of the job waited when
/// the first row started.
#[test]
fn attained_service_grows_while_a_job_waits() {
    let rows = "l,u,0,300,1,false\nj,u,0,1000,1,false\nj,u,100,10,1,false\n\
                k,u,100,150,1,false\nk,u,160,20,1,false\nm,u,160,1000,1,false\n";
    let las = ORDERS.iter().find(|order| order.name() == "las").cloned();
    let mut ended = Ends::default();
    run(&mut InTurn, rows, 3, &mut ended, Options { job_order: las, ..Options::default() }).expect("a run");
    let starts = |job: &str| -> Vec<u64> {
        ended.0.iter().filter(|(name, ..)| name == job).map(|(_, start, ..)| *start).collect()
    };
    assert_eq!((starts("k"), starts("j"), starts("m")), (vec![100, 300], vec![320, 0], vec![250]));
}

#[test]
fn urgent_tasks_and_other_orders_do_not_go_together() {
    let options = Options {
        preempt: Some(Preempt { within: Span::ZERO, whom: PreemptFor::Urgent, from: PreemptFrom::Any }),
        job_order: ORDERS.first().cloned(),
        ..Options::default()
    };
    let message =
        run(&mut InTurn, "a,u,0,1,1,false\n", 1, &mut Ends::default(), options).expect_err("two orders").to_string();
    assert!(message.contains("by priority (preempt)") && message.contains("'fifo'"), "{message}");
}

/// Sums the allocation of each user times the length of each interval, for comparison with the engine's integrals.
struct Served(Vec<u128>);

struct Counting;

impl Policy for Counting {
    fn needs(&self) -> Needs {
        Needs { integrals: true, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, books: &Books) -> Rank {
        Rank::new(books.service(queue.user, 0))
    }

    fn admit(&self, queue: &Queue, _ask: &Ask, books: &Books) -> Verdict {
        // At most one task per user runs at a time, so that some users wait while others run.
        if books.running(queue.user) == 0 { Verdict::Yes } else { Verdict::No(Reason::Rule("one at a time")) }
    }
}

impl Capabilities for Counting {}

impl Recorder for Served {
    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        self.0.resize(state.books.users(), 0);
        for (user, sum) in self.0.iter_mut().enumerate() {
            *sum += u128::from(state.books.allocated(UserId(user as u32))[0]) * u128::from(to.since(from).0);
        }
        Ok(())
    }

    fn settled(&mut self, _now: Time, _changed: &[UserId], books: &Books) -> Result<()> {
        self.0.resize(books.users(), 0);
        for (user, sum) in self.0.iter().enumerate() {
            assert_eq!(books.service(UserId(user as u32), 0), *sum, "user {user}");
        }
        Ok(())
    }

    fn wants_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision, _books: &Books) -> Result<()> {
        if let Turn::NotAdmitted(reason) = decision.turn {
            assert_eq!(reason, Reason::Rule("one at a time"));
        }
        Ok(())
    }
}

#[test]
fn integrals_are_what_users_held_times_how_long() {
    let row = |at: u64| {
        let (user, submit, duration, cpu) = (at * 7 % 3, at / 2, 1 + at * 5 % 11, 1 + at % 2);
        format!("j{at},u{user},{submit},{duration},{cpu},false\n")
    };
    let mut served = Served(Vec::new());
    let rows: String = (0..60).map(row).collect();
    replay(&mut Counting, &rows, 4, &mut served).expect("a run");
    assert!(served.0.iter().all(|sum| *sum > 0), "{:?}", served.0);
}

/// Serves by arrival. The lens decides whether tasks reserve their demand or slots.
struct Arrival(Lens);

impl Policy for Arrival {
    fn needs(&self) -> Needs {
        Needs { lens: self.0, ..Needs::default() }
    }

    fn rank(&self, queue: &Queue, _books: &Books) -> Rank {
        Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}

impl Capabilities for Arrival {}

/// The shortages that blocked turns report, in order.
#[derive(Default)]
struct Blocked(Vec<Option<Shortage>>);

impl Recorder for Blocked {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision, _books: &Books) -> Result<()> {
        if let Turn::Blocked(short) = decision.turn {
            self.0.push(short);
        }
        Ok(())
    }
}

/// 3 of 4 cores are used. A task of 2 cores lacks one core. A gang of three tasks of one core finds room for its first task on the machine,
/// so that no shortage is reported; in a pool the gang lacks two cores for all its tasks together. Under slots one slot is missing.
#[test]
fn a_task_that_fits_nowhere_says_what_is_short() {
    let blocked = |lens: Lens, placement: Placement, row: &str| {
        let text = format!("job,user,submit_s,duration_s,tasks,cpu,gang\nr0,a,0,10,1,3,false\n{row}");
        let mut source =
            CsvTrace::new(&Input::Bytes(PathBuf::from("rows.csv"), text.into_bytes().into())).expect("rows");
        let cluster = Cluster::new(&ClusterSpec::parse("machines", "1x4c").expect("machines"), source.dims());
        let (options, mut heard) = (Options { placement, ..Options::default() }, Blocked::default());
        let weights = Weights::default();
        let cluster = cluster.expect("a cluster");
        engine::run(&mut source, &mut Arrival(lens), cluster, weights, &options, &mut heard).expect("a run");
        heard.0
    };
    let cpu = |amount: u64| vec![Some(Shortage { resource: Some(0), amount })];
    let (task, gang) = ("r1,b,1,5,1,2,false\n", "r1,b,1,5,3,1,true\n");
    assert_eq!(blocked(Lens::Plain, Placement::FirstFit, task), cpu(1000));
    assert_eq!(blocked(Lens::Plain, Placement::FirstFit, gang), [None]);
    assert_eq!(blocked(Lens::Plain, Placement::Pooled, gang), cpu(2000));
    let slot = [Some(Shortage { resource: None, amount: 1 })];
    assert_eq!(blocked(Lens::Slots(1), Placement::FirstFit, task), slot);
}

/// A run begins with three running tasks, two of user a and one of user b. From then on it is stepped from instant to instant.
#[test]
fn a_run_begins_from_a_state_and_is_stepped() {
    let rows = "job,user,submit_s,duration_s,tasks,cpu\nr0,a,0,10,2,1\nr1,b,0,4,1,1\nw0,b,0,5,1,1\nw1,a,0,1,1,1\n";
    let input = Input::Bytes(PathBuf::from("rows.csv"), rows.as_bytes().into());
    let mut source = CsvTrace::new(&input).expect("a trace");
    let spec = ClusterSpec::parse("machines", "2x2c").expect("machines");
    let cluster = Arc::new(Cluster::new(&spec, source.dims()).expect("a cluster"));
    let options = Options { placement: Placement::FirstFit, audit: true, ..Options::default() };
    let (mut policy, mut recorder) = (Counting, Ends::default());
    let weights = Weights::default();
    let parties = RunContext::lent(&mut source, &mut policy, &mut recorder);
    let mut engine = engine::Engine::new(parties, Arc::clone(&cluster), weights, &options).expect("a run");
    engine.begin(&[(MachineId(1), 2)], Time::ZERO).expect("room for two");
    let full = engine.begin(&[(MachineId(1), 1)], Time::ZERO).expect_err("no room for a third").to_string();
    assert_eq!(full, "no room is left for 1 of its tasks beside those before it");
    drop(engine);

    let mut source = CsvTrace::new(&input).expect("a trace");
    let (mut policy, mut recorder) = (Counting, Ends::default());
    let weights = Weights::default();
    let parties = RunContext::lent(&mut source, &mut policy, &mut recorder);
    let mut engine = engine::Engine::new(parties, cluster, weights, &options).expect("a run");
    engine.begin(&[(MachineId(1), 2)], Time::ZERO).expect("room for two");
    engine.begin(&[(MachineId(0), 1)], Time::ZERO).expect("room for one");
    let seconds = |engine: &mut engine::Engine| engine.step().expect("an instant").map(|time| time.0 / 1_000_000);
    assert_eq!(seconds(&mut engine), Some(0));
    // The policy admits one task per user at a time, so `w0` and `w1` wait until the running tasks of their user have ended.
    let state = |engine: &engine::Engine| [0, 1].map(|user| engine.books().running(UserId(user)));
    assert_eq!(state(&engine), [2, 1]);
    assert_eq!(seconds(&mut engine), Some(4));
    assert_eq!(state(&engine), [2, 1]);
    assert_eq!([seconds(&mut engine), seconds(&mut engine), seconds(&mut engine)], [Some(9), Some(10), Some(11)]);
    assert_eq!(seconds(&mut engine), None);
    engine.finish().expect("an end");
    let ended: Vec<(&str, u64, u64)> =
        recorder.0.iter().map(|(job, start, end, _)| (job.as_str(), *start, *end)).collect();
    assert_eq!(ended, [("r1", 0, 4), ("w0", 4, 9), ("r0", 0, 10), ("w1", 10, 11)]);
}

/// The waiting task of user a is entered before the running task, and starts in the first round.
#[test]
fn a_run_begins_with_waiting_tasks_before_running_ones() {
    let rows = "job,user,submit_s,duration_s,tasks,cpu\nw0,a,0,5,1,1\nr0,a,0,9,1,1\n";
    let input = Input::Bytes(PathBuf::from("rows.csv"), rows.as_bytes().into());
    let mut source = CsvTrace::new(&input).expect("a trace");
    let spec = ClusterSpec::parse("machines", "1x2c").expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let options = Options { placement: Placement::FirstFit, audit: true, ..Options::default() };
    let (mut policy, mut recorder) = (InTurn, Ends::default());
    let parties = RunContext::lent(&mut source, &mut policy, &mut recorder);
    let mut engine = engine::Engine::new(parties, cluster, Weights::default(), &options).expect("a run");
    assert!(engine.enter(Time::ZERO).expect("a row"));
    engine.begin(&[(MachineId(0), 1)], Time::ZERO).expect("room for one");
    engine.run_idle_round().expect("a round");
    while engine.step().expect("an instant").is_some() {}
    engine.finish().expect("an end");
    let ended: Vec<(&str, u64, u64)> =
        recorder.0.iter().map(|(job, start, end, _)| (job.as_str(), *start, *end)).collect();
    assert_eq!(ended, [("w0", 0, 5), ("r0", 0, 9)]);
}

/// Sends the number of launches of each instant to another thread.
struct Launches(std::sync::mpsc::Sender<(u64, u32)>, u32);

impl Recorder for Launches {
    fn launched(&mut self, launch: &Launch) {
        self.1 += launch.count;
    }

    fn settled(&mut self, now: Time, _: &[UserId], _: &Books) -> Result<()> {
        self.0.send((now.0 / 1_000_000, std::mem::take(&mut self.1))).expect("the receiver exists");
        Ok(())
    }
}

#[test]
fn an_engine_that_owns_its_parties_goes_on_in_another_thread() {
    let rows = "job,user,submit_s,duration_s,tasks,cpu\nj0,a,0,10,1,1\nj1,b,1,4,3,1\n";
    let source = CsvTrace::new(&Input::Bytes(PathBuf::from("rows.csv"), rows.as_bytes().into())).expect("a trace");
    let spec = ClusterSpec::parse("machines", "1x2c").expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let (tell, heard) = std::sync::mpsc::channel();
    let parties = RunContext::own(Box::new(source), Box::new(Counting), Box::new(Launches(tell, 0)));
    let mut engine: engine::Engine<'static> =
        engine::Engine::new(parties, cluster, Weights::default(), &Options::default()).expect("a run");
    assert_eq!(engine.step().expect("an instant"), Some(Time::ZERO));
    let rest = std::thread::spawn(move || {
        while engine.step().expect("an instant").is_some() {}
        engine.finish().expect("an end")
    });
    assert_eq!(rest.join().expect("no panic").launched, 4);
    assert_eq!(heard.iter().collect::<Vec<_>>(), [(0, 1), (1, 1), (5, 1), (9, 1), (10, 0), (13, 0)]);
}
