//! Preemption for fair shares, its limits and costs: schedules computed manually, and laws that hold on any workload.

use std::path::PathBuf;

use plimsoll::books::Weights;
use plimsoll::cluster::{Cluster, ClusterSpec, Placement};
use plimsoll::engine::{self, Faults, Options, Preempt, PreemptFor, PreemptFrom, PreemptionLimits};
use plimsoll::error::Result;
use plimsoll::policy::{BUILT_IN, Registry, Setup};
use plimsoll::record::{Fate, Recorder, TaskRecord};
use plimsoll::units::Span;
use plimsoll::workload::{CsvTrace, Input, Source};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::workloads::{chance, pick};

/// Equal tasks that ran together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub job: String,
    pub user: u32,
    pub first: u64,
    pub count: u32,
    pub start: u64,
    pub finish: u64,
    pub fate: Fate,
    /// Wasted run time of each task.
    lost: u64,
    duration: u64,
}

#[derive(Default)]
struct Log(Vec<Ran>);

impl Recorder for Log {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let finish = tasks.finish.expect("an end");
        let mut job = String::new();
        tasks.name.render(&mut job);
        self.0.push(Ran {
            job,
            user: tasks.user.0,
            first: tasks.first,
            count: tasks.count,
            start: tasks.start.0,
            finish: finish.0,
            fate: tasks.fate,
            lost: tasks.lost(finish.since(tasks.start)).0,
            duration: tasks.duration.0,
        });
        Ok(())
    }
}

/// Replays rows of a trace with this header on these machines.
pub fn replay(policy: &str, header: &str, rows: &str, machines: &str, options: &Options) -> Result<Vec<Ran>> {
    let text = format!("{header}\n{rows}");
    let mut source = CsvTrace::new(&Input::Bytes(PathBuf::from("rows.csv"), text.into_bytes().into()))?;
    let spec = ClusterSpec::parse("machines", machines)?;
    let cluster = Cluster::new(&spec, source.dims())?;
    let weights = Weights::default();
    let setup = Setup {
        dims: &cluster.dims,
        capacity: cluster.total(),
        machines: cluster.capacities.len() as u64,
        weights: &weights,
        labels: None,
    };
    let named = Registry::new(BUILT_IN).policy(policy)?;
    let mut policy = named.build(&setup)?;
    let mut log = Log::default();
    let options = Options { audit: true, job_order: named.job_order.clone(), ..*options };
    engine::run(&mut source, &mut *policy, cluster, weights.clone(), &options, &mut log)?;
    Ok(log.0)
}

const SECOND: u64 = 1_000_000;

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

fn preempt(whom: PreemptFor, within: u64) -> Options {
    let preempt = Some(Preempt { within: seconds(within), whom, from: PreemptFrom::Any });
    Options { placement: Placement::FirstFit, preempt, ..Options::default() }
}

fn with(options: Options, preemption_limits: PreemptionLimits) -> Options {
    Options { preemption_limits, ..options }
}

/// User, number of the first task, number of tasks, start, end, fate, and wasted run time of each task. Times are in seconds.
type Line = (u32, u64, u32, u64, u64, Fate, u64);

fn lines(ran: &[Ran]) -> Vec<Line> {
    let line = |ran: &Ran| {
        let second = |at: u64| at / SECOND;
        (ran.user, ran.first, ran.count, second(ran.start), second(ran.finish), ran.fate, second(ran.lost))
    };
    ran.iter().map(line).collect()
}

const BY_PRIORITY: &str = "job,user,submit_s,duration_s,tasks,cpu,priority";
const PLAIN: &str = "job,user,submit_s,duration_s,tasks,cpu";

/// Returns the rows of a batch task of 60 s and of urgent tasks of 10 s that are submitted at these seconds, for one core.
fn batch(urgent_at: &[u64]) -> String {
    let urgent = urgent_at.iter().enumerate().map(|(at, second)| format!("u{at},b,{second},10,1,1,0\n"));
    std::iter::once("batch,a,0,60,1,1,9\n".to_owned()).chain(urgent).collect()
}

use Fate::{Failed, Finished, GivenUp, Preempted};

#[test]
fn a_task_is_spared_until_it_has_run_long_enough() {
    let run = |min_run: u64| {
        let preemption_limits = PreemptionLimits { min_run: seconds(min_run), ..PreemptionLimits::default() };
        let options = with(preempt(PreemptFor::Urgent, 0), preemption_limits);
        lines(&replay("drf", BY_PRIORITY, &batch(&[5]), "1x1c", &options).expect("a run"))
    };
    let at_once = [(0, 0, 1, 0, 5, Preempted, 5), (1, 0, 1, 5, 15, Finished, 0), (0, 0, 1, 15, 75, Finished, 0)];
    assert_eq!(run(0), at_once);
    assert_eq!(run(5), at_once, "at 5 s the task has run for 5 s");
    let later = [(0, 0, 1, 0, 30, Preempted, 30), (1, 0, 1, 30, 40, Finished, 0), (0, 0, 1, 40, 100, Finished, 0)];
    assert_eq!(run(30), later, "preemption occurs at 30 s without another event");
    assert_eq!(run(90), [(0, 0, 1, 0, 60, Finished, 0), (1, 0, 1, 60, 70, Finished, 0)]);
}

#[test]
fn no_more_are_stopped_than_the_limit_allows() {
    let rows = "batch,a,0,60,3,1,9\nu0,b,10,100,3,1,0\n";
    let run = |limit: &str| {
        let limit = Some(limit.parse().expect("a limit"));
        let options = with(preempt(PreemptFor::Urgent, 0), PreemptionLimits { limit, ..PreemptionLimits::default() });
        let ran = replay("drf", BY_PRIORITY, rows, "1x3c", &options).expect("a run");
        let stops = ran.iter().filter(|ran| ran.fate == Preempted);
        stops.map(|ran| (ran.finish / SECOND, ran.count)).collect::<Vec<_>>()
    };
    assert_eq!(run("5/20s"), [(10, 1); 3]);
    assert_eq!(run("1/20s"), [(10, 1), (30, 1), (50, 1)], "the last urgent task waits 40 s");
    assert_eq!(run("2/30s"), [(10, 1), (10, 1), (40, 1)]);
}

/// A gang that is larger than the limit is not preempted. A task of another user is preempted instead.
#[test]
fn a_gang_is_stopped_whole_or_not_at_all() {
    let header = "job,user,submit_s,duration_s,tasks,cpu,priority,gang";
    let rows = "gang,a,0,60,3,1,9,true\nsingle,c,0,60,1,1,8,false\nu0,b,10,10,1,1,0,false\n";
    let run = |most: &str| {
        let limit = Some(format!("{most}/20s").parse().expect("a limit"));
        let options = with(preempt(PreemptFor::Urgent, 0), PreemptionLimits { limit, ..PreemptionLimits::default() });
        let ran = replay("drf", header, rows, "1x4c", &options).expect("a run");
        let stops = ran.iter().filter(|ran| ran.fate == Preempted);
        stops.map(|ran| (ran.user, ran.count)).collect::<Vec<_>>()
    };
    assert_eq!((run("3"), run("2")), (vec![(0, 3)], vec![(1, 1)]));
}

#[test]
fn a_stopped_task_resumes_from_its_last_checkpoint() {
    let run = |checkpoint: u64, delay: u64, urgent: &[u64]| {
        let preemption_limits = PreemptionLimits {
            checkpoint: seconds(checkpoint),
            restart_delay: seconds(delay),
            ..PreemptionLimits::default()
        };
        let options = with(preempt(PreemptFor::Urgent, 0), preemption_limits);
        lines(&replay("drf", BY_PRIORITY, &batch(urgent), "1x1c", &options).expect("a run"))
    };
    // 20 s of the 25 s are saved, so that 40 s of work are left.
    let resumed = [(0, 0, 1, 0, 25, Preempted, 5), (1, 0, 1, 25, 35, Finished, 0), (0, 0, 1, 35, 75, Finished, 0)];
    assert_eq!(run(10, 0, &[25]), resumed);
    // The restart delay takes 3 s more, which are wasted.
    let delayed = [(0, 0, 1, 0, 25, Preempted, 5), (1, 0, 1, 25, 35, Finished, 0), (0, 0, 1, 35, 78, Finished, 3)];
    assert_eq!(run(10, 3, &[25]), delayed);
    // Without checkpoints the task restarts from its beginning, after the delay of 3 s.
    let anew = [(0, 0, 1, 0, 25, Preempted, 25), (1, 0, 1, 25, 35, Finished, 0), (0, 0, 1, 35, 98, Finished, 3)];
    assert_eq!(run(0, 3, &[25]), anew);
    // The second attempt works from 38 s to 48 s and is preempted exactly at a checkpoint; 30 s are saved in total. The third attempt is
    // preempted before its restart delay is over.
    let thrice = [
        (0, 0, 1, 0, 25, Preempted, 5),
        (1, 0, 1, 25, 35, Finished, 0),
        (0, 0, 1, 35, 48, Preempted, 3),
        (1, 0, 1, 48, 58, Finished, 0),
        (0, 0, 1, 58, 60, Preempted, 2),
        (1, 0, 1, 60, 70, Finished, 0),
        (0, 0, 1, 70, 103, Finished, 3),
    ];
    assert_eq!(run(10, 3, &[25, 48, 60]), thrice);
}

/// A task with 20 s of work is preempted after 7 s at twice the speed. 6 s of the 7 s are saved, which are 12 s of work.
#[test]
fn checkpoints_go_by_running_time_and_save_work() {
    let options = with(
        preempt(PreemptFor::Urgent, 0),
        PreemptionLimits { checkpoint: seconds(3), ..PreemptionLimits::default() },
    );
    let dir = tempfile::tempdir().expect("a temporary folder");
    let machines = dir.path().join("machines.csv");
    std::fs::write(&machines, "cpu,speed\n1,2\n").expect("a writable folder");
    let spec = plimsoll::cluster::file::read(&machines).expect("machines");
    let text = format!("{BY_PRIORITY}\nbatch,a,0,20,1,1,9\nu0,b,7,10,1,1,0\n");
    let input = Input::Bytes(PathBuf::from("rows.csv"), text.into_bytes().into());
    let mut source = CsvTrace::new(&input).expect("a trace");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let (dims, capacity) = (cluster.dims.clone(), cluster.total());
    let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
    let mut policy = Registry::new(BUILT_IN).policy("drf").and_then(|drf| drf.build(&setup)).expect("drf");
    let mut log = Log::default();
    engine::run(&mut source, &mut *policy, cluster, weights.clone(), &options, &mut log).expect("a run");
    let wanted = [(0, 0, 1, 0, 7, Preempted, 1), (1, 0, 1, 7, 12, Finished, 0), (0, 0, 1, 12, 16, Finished, 0)];
    assert_eq!(lines(&log.0), wanted);
}

/// Returns how many tasks of users 0 and 1 start at an instant, and how many tasks are preempted at it.
fn at(ran: &[Ran], second: u64) -> [u32; 3] {
    let sum = |of: &dyn Fn(&Ran) -> bool| ran.iter().filter(|ran| of(ran)).map(|ran| ran.count).sum();
    let started = |user: u32| sum(&|ran: &Ran| ran.user == user && ran.start == second * SECOND);
    [started(0), started(1), sum(&|ran: &Ran| ran.fate == Preempted && ran.finish == second * SECOND)]
}

/// The first user has all twelve cores when the second user submits as many tasks. The second user gets six cores and no more.
#[test]
fn a_user_that_is_behind_gets_its_fair_share_and_no_more() {
    let rows = "a0,a,0,100,12,1\nb0,b,10,100,12,1\n";
    for policy in ["drf", "asset", "maxmin:cpu", "only:cpu", "pnorm:2", "slot:12"] {
        let ran = replay(policy, PLAIN, rows, "1x12c", &preempt(PreemptFor::Share, 0)).expect("a run");
        assert_eq!(at(&ran, 10), [0, 6, 6], "{policy}");
        let instants: Vec<u64> = ran.iter().map(|ran| ran.start / SECOND).collect();
        assert_eq!(ran.iter().filter(|ran| ran.fate == Preempted).map(|ran| ran.count).sum::<u32>(), 6, "{policy}");
        assert_eq!(
            instants.iter().max(),
            Some(&110),
            "{policy}: the remaining tasks start when the first tasks of the second user end"
        );
    }
}

/// Eleven cores cannot be divided equally. The second user gets five, because a sixth would put it ahead of the first user.
#[test]
fn nobody_gets_ahead_of_who_gave() {
    let rows = "a0,a,0,100,11,1\nb0,b,10,100,11,1\n";
    let ran = replay("drf", PLAIN, rows, "1x11c", &preempt(PreemptFor::Share, 0)).expect("a run");
    assert_eq!(at(&ran, 10), [0, 5, 5]);
}

/// Two users that arrive together preempt alternately and receive the same number of cores.
#[test]
fn those_who_come_together_get_the_same() {
    let rows = "a0,a,0,100,12,1\nb0,b,10,100,12,1\nc0,c,10,100,12,1\n";
    let ran = replay("drf", PLAIN, rows, "1x12c", &preempt(PreemptFor::Share, 0)).expect("a run");
    assert_eq!(at(&ran, 10), [0, 4, 8]);
}

/// Tasks of the user with the largest share are preempted first.
#[test]
fn who_is_furthest_ahead_gives() {
    let rows = "a0,a,0,100,8,1\nc0,c,1,100,4,1\nb0,b,10,100,3,1\n";
    let ran = replay("drf", PLAIN, rows, "1x12c", &preempt(PreemptFor::Share, 0)).expect("a run");
    let gave: Vec<u32> = ran.iter().filter(|ran| ran.fate == Preempted).map(|ran| ran.user).collect();
    assert_eq!(gave, [0, 0, 0], "the first user has 8, 7 and 6 cores at these preemptions, the other user 4");
}

/// During the notice two tasks of the first user end, on machines that are too small for the request. The first user's remaining allocation
/// is then not larger than the second user's would be, so the request is withdrawn.
#[test]
fn an_ask_that_is_no_longer_fair_is_withdrawn() {
    let run = |ends: u64| {
        let rows = format!("a0,a,0,100,1,2\na1,a,0,{ends},2,1\nb0,b,10,10,1,2\n");
        lines(&replay("drf", PLAIN, &rows, "1x2c,2x1c", &preempt(PreemptFor::Share, 20)).expect("a run"))
    };
    assert_eq!(run(15)[2..], [(0, 0, 1, 0, 100, Finished, 0), (1, 0, 1, 100, 110, Finished, 0)]);
    let stopped = [(0, 0, 1, 0, 30, Preempted, 30), (1, 0, 1, 30, 40, Finished, 0)];
    assert_eq!(run(80)[..2], stopped);
}

/// Two users that are behind alternately do not preempt each other without end: all tasks complete, with at most 40 preemptions per core.
#[test]
fn two_users_do_not_stop_each_other_for_ever() {
    for (tasks, cores) in [(1, 1), (2, 3), (5, 5), (7, 12)] {
        let job = |at: u64| format!("j{at},u{},{at},100,{tasks},1\n", at % 2);
        let rows: String = (0..40).map(job).collect();
        let ran = replay("drf", PLAIN, &rows, &format!("1x{cores}c"), &preempt(PreemptFor::Share, 0)).expect("a run");
        let sum = |fate: Fate| ran.iter().filter(|ran| ran.fate == fate).map(|ran| ran.count).sum::<u32>();
        assert_eq!(sum(Finished), 40 * tasks);
        assert!(sum(Preempted) <= 40 * cores, "{} stops of {cores} cores", sum(Preempted));
    }
}

#[test]
fn policies_without_shares_and_costs_that_are_not_known_are_refused() {
    let rows = "a0,a,0,1,1,1\n";
    let refused = |policy: &str, options: &Options| {
        replay(policy, PLAIN, rows, "1x1c", options).expect_err("refused").to_string()
    };
    for policy in ["fifo", "ceei", "bmf", "longterm:1m:10s", "line"] {
        assert!(refused(policy, &preempt(PreemptFor::Share, 0)).contains("no shares"), "{policy}");
    }
    let costs = PreemptionLimits { checkpoint: seconds(1), ..PreemptionLimits::default() };
    let backups: Faults = "backup=0.5x2".parse().expect("faults");
    let options = Options { faults: Some(backups), preemption_limits: costs, ..Options::default() };
    assert!(refused("drf", &options).contains("no checkpoint"));
}

/// Draws rows of up to four users, with two priorities and some gangs.
fn random_rows(rng: &mut ChaCha8Rng) -> String {
    let mut now = 0;
    let row = |at: u32| {
        now += pick(rng, &[0, 0, 1, 3, 10]);
        let (user, tasks, cpu) = (rng.random_range(0..4), pick(rng, &[1, 1, 2, 3, 6]), pick(rng, &[1, 1, 2]));
        let (duration, gang) = (pick(rng, &[1, 5, 10, 17, 40]), chance(rng, 20));
        format!("j{at},u{user},{now},{duration},{tasks},{cpu},{},{gang}\n", pick(rng, &[0, 9]))
    };
    (0..40).map(row).collect()
}

const WITH_GANGS: &str = "job,user,submit_s,duration_s,tasks,cpu,priority,gang";

/// The total run time equals the durations of completed tasks plus the wasted time. No task is preempted before its minimum run time. No
/// span has more preemptions than the limit.
#[test]
fn laws_of_displacing() {
    let mut stops = 0;
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rows = random_rows(&mut rng);
        let rng = &mut rng;
        let (min_run, within, most) = (pick(rng, &[0, 3, 8]), pick(rng, &[5, 20]), pick(rng, &[6, 7, 9]));
        let preemption_limits = PreemptionLimits {
            min_run: seconds(min_run),
            limit: chance(rng, 50).then(|| format!("{most}/{within}s").parse().expect("a limit")),
            checkpoint: seconds(pick(rng, &[0, 0, 1, 4, 7])),
            restart_delay: seconds(pick(rng, &[0, 0, 2, 5])),
        };
        let whom = pick(rng, &[PreemptFor::Urgent, PreemptFor::Share]);
        let faults = chance(rng, 50).then(|| "fail=0.2,retries=1".parse().expect("faults"));
        let options = Options { faults, seed, ..with(preempt(whom, pick(rng, &[0, 2, 10])), preemption_limits) };
        let ran = replay("drf", WITH_GANGS, &rows, "2x6c", &options).expect("a run");
        let us = |ran: &Ran, each: u64| u128::from(each) * u128::from(ran.count);
        let held: u128 = ran.iter().map(|ran| us(ran, ran.finish - ran.start)).sum();
        let lost: u128 = ran.iter().map(|ran| us(ran, ran.lost)).sum();
        let given_up = ran.iter().filter(|ran| ran.fate == GivenUp).map(|ran| u64::from(ran.count)).sum::<u64>();
        let ended = ran.iter().filter(|ran| ran.fate == Finished).map(|ran| u64::from(ran.count)).sum::<u64>();
        assert_eq!(held, lost + useful(&rows, &ran), "seed {seed}");
        assert_eq!(ended + given_up, tasks(&rows), "seed {seed}");
        let mut chosen: Vec<(u64, u64)> = Vec::new();
        for ran in ran.iter().filter(|ran| ran.fate == Preempted) {
            assert!(ran.finish - ran.start >= min_run * SECOND, "seed {seed}: {ran:?}");
            chosen.push((ran.finish, ran.count.into()));
        }
        stops += chosen.len();
        if preemption_limits.limit.is_some() {
            for (to, _) in &chosen {
                let late = chosen.iter().filter(|(at, _)| at <= to && to - at < within * SECOND);
                assert!(late.map(|(_, count)| count).sum::<u64>() <= most, "seed {seed}");
            }
        }
        assert!(ran.iter().all(|ran| ran.fate != Failed || faults.is_some()));
    }
    assert!(stops > 1000, "{stops} stops");
}

fn field(row: &str, at: usize) -> u64 {
    row.split(',').nth(at).and_then(|field| field.parse().ok()).expect("a number")
}

fn tasks(rows: &str) -> u64 {
    rows.lines().map(|row| field(row, 4)).sum()
}

/// Returns the total duration of the completed tasks in microseconds: that of all tasks except abandoned ones.
fn useful(rows: &str, ran: &[Ran]) -> u128 {
    let all: u64 = rows.lines().map(|row| field(row, 3) * field(row, 4) * SECOND).sum();
    // An abandoned task did not execute its remaining work, and the saved progress of its earlier attempts is part of its wasted time.
    let given_up = ran.iter().filter(|ran| ran.fate == GivenUp);
    let whole = |ran: &Ran| u64::from(ran.count) * (ran.duration + (ran.lost - (ran.finish - ran.start)));
    u128::from(all - given_up.map(whole).sum::<u64>())
}

/// Limits and costs without an effect change no outcome.
#[test]
fn without_settings_nothing_changes() {
    for seed in 0..50 {
        let rows = random_rows(&mut ChaCha8Rng::seed_from_u64(seed));
        let options = preempt(PreemptFor::Urgent, seed % 3);
        let zero = "1000000/1us".parse().expect("a limit");
        let none = PreemptionLimits { limit: Some(zero), ..PreemptionLimits::default() };
        let [plain, other] = [options.clone(), with(options, none)]
            .map(|options| replay("drf", WITH_GANGS, &rows, "2x6c", &options).expect("a run"));
        assert_eq!(plain, other, "seed {seed}");
        assert_eq!(plain.iter().map(|ran| ran.lost).sum::<u64>(), lost_by_stops(&plain));
    }
}

fn lost_by_stops(ran: &[Ran]) -> u64 {
    ran.iter().filter(|ran| ran.fate == Preempted).map(|ran| ran.finish - ran.start).sum()
}
