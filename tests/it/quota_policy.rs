//! Quota groups in the simulation: small cases calculated manually, and random cases compared with a simulator that
//! recomputes all quotas as fractions, from their definition, before every round.

use std::path::{Path, PathBuf};

use plimsoll::books::{Books, Weights};
use plimsoll::cluster::{Cluster, ClusterSpec};
use plimsoll::engine::{self, OnBlocked, Options, Ties};
use plimsoll::error::Result;
use plimsoll::policy::{Quota, QuotaFile, Setup};
use plimsoll::record::{Decision, Recorder, State, StuckRecord, TaskRecord, Turn};
use plimsoll::units::{Resources, Time};
use plimsoll::workload::{CsvTrace, Input, Source};

use crate::quota_slow::{CaseResult, Starts, draw, slow};

#[derive(Default)]
struct GroupEvents {
    starts: Starts,
    refusals: u64,
    /// Per group: the overdue amount that could not be reclaimed, times seconds.
    unreturned: Vec<[u64; 2]>,
}

impl Recorder for GroupEvents {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let mut name = String::new();
        tasks.name.render(&mut name);
        for task in tasks.first..tasks.first + u64::from(tasks.count) {
            let attempt = u64::from(tasks.attempt);
            self.starts.insert((name.clone(), task, attempt), Some(tasks.start.0 / 1_000_000));
        }
        Ok(())
    }

    fn stuck(&mut self, stuck: &StuckRecord) -> Result<()> {
        let mut name = String::new();
        stuck.name.render(&mut name);
        let attempt = u64::from(stuck.attempt);
        self.starts.extend((stuck.first..stuck.first + stuck.tasks).map(|task| ((name.clone(), task, attempt), None)));
        Ok(())
    }

    fn interval(&mut self, from: Time, to: Time, state: &State) -> Result<()> {
        self.unreturned.resize(state.groups.expect("groups").tree().groups.len(), [0; 2]);
        for one in state.groups.expect("groups").unreturned() {
            for (sum, amount) in self.unreturned[one.group].iter_mut().zip(one.amount.0) {
                *sum += amount * (to.since(from).0 / 1_000_000);
            }
        }
        Ok(())
    }

    fn wants_decisions(&self) -> bool {
        true
    }

    fn decided(&mut self, decision: &Decision, _books: &Books) -> Result<()> {
        self.refusals += u64::from(matches!(decision.turn, Turn::NotAdmitted(_)));
        Ok(())
    }
}

/// Replays rows on a pool, under groups. A row may end with a column that marks its tasks as stable.
pub fn replay<R: Recorder>(groups: &str, rows: &str, machines: &str, on_blocked: OnBlocked, mut recorder: R) -> R {
    let stable = rows.lines().next().is_some_and(|row| row.split(',').count() > 8);
    let stable = if stable { ",stable" } else { "" };
    let text = format!("job,user,submit_s,duration_s,tasks,cpu,memory_gib,priority{stable}\n{rows}");
    let mut source = CsvTrace::new(&Input::Bytes(PathBuf::from("drawn.csv"), text.as_bytes().into())).expect("a trace");
    let spec = ClusterSpec::parse("machines", machines).expect("machines");
    let cluster = Cluster::new(&spec, source.dims()).expect("a cluster");
    let weights = Weights::default();
    let setup = Setup { dims: &cluster.dims, capacity: cluster.total(), machines: 1, weights: &weights, labels: None };
    let file = QuotaFile::parse(Path::new("groups.toml"), groups).unwrap_or_else(|error| panic!("{error}\n{groups}"));
    let mut policy = Quota::new(&file, &setup).expect("a policy");
    let options = Options { on_blocked, ties: Ties::LowestId, audit: true, ..Options::default() };
    engine::run(&mut source, &mut policy, cluster, weights.clone(), &options, &mut recorder).expect("a run");
    recorder
}

/// Returns the start of each task of a job on a pool, in seconds.
fn starts(groups: &str, rows: &str, machines: &str, job: &str) -> Vec<Option<u64>> {
    let heard = replay(groups, rows, machines, OnBlocked::Skip, GroupEvents::default());
    heard.starts.iter().filter(|((name, ..), _)| name == job).map(|(_, start)| *start).collect()
}

const TWO: &str = "[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n";

#[test]
fn two_groups_lend_and_return() {
    // While a is alone, it may use all cores. The request of b reduces the quota of a to a half, but running tasks continue.
    let rows = "1,a,0,10,4,1,1,0\n2,a,1,10,4,1,1,0\n3,b,1,10,4,1,1,0\n";
    assert_eq!(starts(TWO, rows, "1x4c4g", "1"), [Some(0); 4]);
    for job in ["2", "3"] {
        assert_eq!(starts(TWO, rows, "1x4c4g", job), [Some(10), Some(10), Some(20), Some(20)], "job {job}");
    }
}

#[test]
fn above_its_quota_a_group_launches_nothing_or_keeps_what_runs() {
    // Group a uses 4 of 6 cores when b arrives at 1 s. One task of a ends at 2 s.
    let rows = "1,a,0,2,1,1,1,0\n2,a,0,9,3,1,1,0\n3,a,1,9,3,1,1,0\n4,b,1,9,6,1,1,0\n";
    let (wait, never) = (TWO.to_owned(), format!("reclaim = 'never'\n{TWO}"));
    // Under `wait` both quotas are 3. Group b takes the free cores at 1 s and at 2 s. Group a starts tasks again when its other tasks have
    // ended.
    assert_eq!(starts(&wait, rows, "1x6c6g", "3"), [Some(9); 3]);
    assert_eq!(starts(&wait, rows, "1x6c6g", "4")[..4], [Some(1), Some(1), Some(2), Some(10)]);
    // Under `never` each quota covers the running tasks first. The quotas of a and b are 4 + 1 and 1 at 1 s, 4 + 1/2 and 1 + 1/2 (rounded
    // down) at 2 s, and 1 + 2 and 1 + 2 at 9 s.
    assert_eq!(starts(&never, rows, "1x6c6g", "3"), [Some(1), Some(9), Some(9)]);
    assert_eq!(starts(&never, rows, "1x6c6g", "4")[..4], [Some(1), Some(9), Some(9), Some(10)]);
}

#[test]
fn after_a_while_what_was_lent_is_taken_back() {
    // Group a uses 4 of 4 cores when b arrives at 2 s. At 5 s two tasks are stopped: the least urgent first, and of equally urgent tasks
    // the latest.
    let rows = "1,a,0,9,1,1,1,5\n2,a,0,9,2,1,1,2\n3,a,1,9,1,1,1,2\n4,b,2,9,2,1,1,0\n";
    let groups = format!("reclaim = 'kill-after:3s'\n{TWO}");
    assert_eq!(starts(&groups, rows, "1x4c4g", "4"), [Some(5), Some(5)]);
    // The stopped tasks keep their place in line and wait for quota until tasks of the group end.
    assert_eq!(starts(&groups, rows, "1x4c4g", "1"), [Some(0), Some(9)]);
    assert_eq!(starts(&groups, rows, "1x4c4g", "2"), [Some(0), Some(0)]);
    assert_eq!(starts(&groups, rows, "1x4c4g", "3"), [Some(1), Some(9)]);
}

#[test]
fn stable_tasks_are_never_taken_back() {
    // Group a uses 4 of 4 cores when b arrives at 2 s. At 5 s two tasks would be stopped, but all except one are stable.
    let rows = "1,a,0,9,3,1,1,5,true\n2,a,1,9,1,1,1,0,false\n3,b,2,9,2,1,1,0,false\n";
    let groups = format!("reclaim = 'kill-after:3s'\n{TWO}");
    let heard = replay(&groups, rows, "1x4c4g", OnBlocked::Skip, GroupEvents::default());
    let starts = |job: &str| -> Vec<Option<u64>> {
        heard.starts.iter().filter(|((name, ..), _)| name == job).map(|(_, start)| *start).collect()
    };
    assert_eq!(starts("1"), [Some(0); 3]);
    assert_eq!(starts("2"), [Some(1), Some(9)], "the urgent task is stopped, since the others are stable");
    assert_eq!(starts("3"), [Some(5), Some(9)]);
    // From 5 s until the stable tasks end at 9 s, a uses one core and one GiB above its half.
    assert_eq!(heard.unreturned, [[4 * 1000, 4 * 1024], [0, 0]]);
}

#[test]
fn who_cannot_give_back_hides_nobody() {
    // Group a exceeds its quota from 2 s on, and b from 4 s on. The tasks of a are stable and still run at 5 s and later. At 7 s, without
    // any other event, two tasks of b are stopped, because its quota is 1.5.
    let groups = "reclaim = 'kill-after:3s'\n[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n\
                  [[group]]\nname = 'c'\nratio = 4\nusers = ['c']\n";
    let rows = "1,a,0,60,6,1,1,5,true\n2,b,1,60,3,1,1,5,false\n3,c,2,60,2,1,1,0,false\n4,c,4,60,7,1,1,0,false\n";
    let heard = replay(groups, rows, "1x9c9g", OnBlocked::Skip, GroupEvents::default());
    let at = |job: &str, second: u64| {
        heard.starts.iter().filter(|((name, ..), start)| name == job && **start == Some(second)).count()
    };
    assert_eq!((at("1", 0), at("2", 1), at("3", 7)), (6, 3, 2));
    assert!(heard.unreturned[0][0] > 0 && heard.unreturned[1..].iter().flatten().all(|amount| *amount == 0));
}

#[test]
fn an_unused_minimum_is_lent_or_kept() {
    let group = |lend: &str| {
        format!(
            "[[group]]\nname = 'a'\nusers = ['a']\n[[group]]\nname = 'b'\nmin = {{ cpu = 2 }}\n{lend}\nusers = ['b']\n"
        )
    };
    let rows = "1,a,0,10,4,1,1,0\n";
    assert_eq!(starts(&group(""), rows, "1x4c4g", "1"), [Some(0); 4]);
    assert_eq!(starts(&group("lend = false"), rows, "1x4c4g", "1"), [Some(0), Some(0), Some(10), Some(10)]);
}

#[test]
fn variants_differ_as_the_smallest_case_says() {
    // The total is 50, the minimums are 10 and 0, the ratios are equal, and each group requests more than the total. The quotas are 30 and
    // 20, or 25 and 25.
    let groups = |variant: &str| {
        format!(
            "variant = '{variant}'\n[[group]]\nname = 'a'\nmin = {{ cpu = 10 }}\nusers = ['a']\n[[group]]\nname = 'b'\nusers = ['b']\n"
        )
    };
    let rows = "1,a,0,10,60,1,1,0\n2,b,0,10,60,1,1,0\n";
    for (variant, a, b) in [("min-plus-share", 30, 20), ("max-min-level", 25, 25)] {
        let first =
            |job| starts(&groups(variant), rows, "1x50c500g", job).iter().filter(|start| **start == Some(0)).count();
        // Memory has no minimums and is not scarce, so that CPU decides.
        assert_eq!((first("1"), first("2")), (a, b), "{variant}");
    }
}

#[test]
fn a_tree_is_not_its_leaves() {
    // The parent of a and b has one sibling, c, so c gets a half. Three equal groups without a parent would get a third each.
    let groups = "[[group]]\nname = 'ab'\n[[group]]\nname = 'a'\nparent = 'ab'\nusers = ['a']\n[[group]]\nname = 'b'\nparent = 'ab'\nusers = ['b']\n[[group]]\nname = 'c'\nusers = ['c']\n";
    let rows = "1,a,0,10,90,1,1,0\n2,b,0,10,90,1,1,0\n3,c,0,10,90,1,1,0\n";
    let count = |job| starts(groups, rows, "1x90c90g", job).iter().filter(|start| **start == Some(0)).count();
    // The quotas of a and b are 22.5 each, rounded down.
    assert_eq!((count("1"), count("2"), count("3")), (22, 22, 45));
}

#[test]
fn inside_a_group_priority_then_fifo_or_fair() {
    let groups = |inside: &str| format!("inside = '{inside}'\n[[group]]\nname = 'g'\ndefault = true\n");
    // x requests all cores first, then y; z is more urgent than both.
    let rows = "1,x,0,10,4,1,1,5\n2,x,1,10,4,1,1,5\n3,y,2,10,4,1,1,5\n4,z,3,10,1,1,1,0\n";
    let at_10 = |inside: &str, job: &str| {
        starts(&groups(inside), rows, "1x4c4g", job).iter().filter(|start| **start == Some(10)).count()
    };
    assert_eq!((at_10("fifo", "4"), at_10("fifo", "2"), at_10("fifo", "3")), (1, 3, 0));
    assert_eq!((at_10("fair", "4"), at_10("fair", "2"), at_10("fair", "3")), (1, 2, 1));
}

#[test]
fn a_user_of_no_group_is_an_error() {
    let (groups, rows) = (TWO, "1,c,0,1,1,1,1,0\n");
    let message =
        std::panic::catch_unwind(|| replay(groups, rows, "1x4c4g", OnBlocked::Skip, GroupEvents::default())).err();
    let message = message.and_then(|message| message.downcast_ref::<String>().cloned()).expect("a message");
    assert!(message.contains("'c'") && message.contains("default = true"), "{message}");
}

#[test]
fn agrees_with_quotas_computed_anew_from_their_definition() {
    let (mut refusals, mut never, mut stopped, mut unreturned) = (0, 0, 0, 0);
    for seed in 0..2000 {
        let case = draw(seed);
        let machines = format!("1x{}c{}g", case.capacity[0], case.capacity[1]);
        let on_blocked = if seed % 3 == 0 { OnBlocked::Stop } else { OnBlocked::Skip };
        let mut heard = replay(&case.toml, &case.csv, &machines, on_blocked, GroupEvents::default());
        let CaseResult { starts: expected, stopped: stops, unreturned: kept } = slow(&case, on_blocked);
        let differ = expected.iter().filter(|(task, start)| heard.starts.get(*task) != Some(*start));
        let early = |(task, start): &(&(String, u64, u64), &Option<u64>)| {
            let given = heard.starts.get(*task).copied().flatten();
            start.unwrap_or(u64::MAX).min(given.unwrap_or(u64::MAX))
        };
        let differs = differ.min_by_key(early);
        if let Some((task, start)) = differs {
            let given = heard.starts.get(task);
            panic!(
                "seed {seed}, {on_blocked:?}, {machines}: {task:?} at {start:?}, not {given:?}\n{}\n{}",
                case.toml, case.csv
            );
        }
        assert_eq!(heard.starts.len(), expected.len());
        heard.unreturned.resize(kept.len(), [0; 2]);
        assert_eq!(heard.unreturned, kept, "seed {seed}\n{}\n{}", case.toml, case.csv);
        unreturned += usize::from(kept.iter().flatten().any(|amount| *amount > 0));
        refusals += heard.refusals;
        stopped += stops;
        never += expected.values().filter(|start| start.is_none()).count();
    }
    assert!(refusals > 1000 && never > 50, "too easy: {refusals} refusals, {never} tasks that never start");
    assert!(stopped > 500, "too easy: {stopped} tasks were stopped");
    assert!(unreturned > 100, "too easy: stable tasks prevented a reclaim in {unreturned} cases");
}

/// Quotas are rounded down, and the remainder of one group is not given to another. Whole tasks of all groups stay within the cluster.
#[test]
fn quotas_of_a_full_cluster_sum_to_no_more_than_it() {
    let file = QuotaFile::parse(Path::new("groups.toml"), TWO).expect("a file");
    let weights = Weights::default();
    let dims = [plimsoll::units::Dim::parse("cpu").0];
    let capacity = Resources([3, 0, 0, 0, 0, 0, 0, 0]);
    let setup = Setup { dims: &dims, capacity, machines: 1, weights: &weights, labels: None };
    let mut policy = Quota::new(&file, &setup).expect("a policy");
    let mut books = Books::new(1, capacity, capacity, true, weights.clone());
    books.keep_waiting_demand();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        use plimsoll::policy::Policy;
        let user = plimsoll::units::UserId(at as u32);
        books.open(name);
        policy.open(user, name).expect("a user of a group");
        books.queue(user, 10, &[1]);
        policy.prepare(Time::ZERO, &books, &[user]).expect("a round");
    }
    assert_eq!((policy.standing(0).0, policy.standing(1).0), (vec![1], vec![1]));
    assert_eq!((policy.group_of(plimsoll::units::UserId(1)), policy.standing(1).1), (1, vec![0]));
}
