//! Calls the verbs of the kernel in random order, without rounds and extensions. Its sums must agree, and every task must end once.

use super::*;
use crate::record::{Fate, TaskRecord};
use crate::workload::{TaskSet, Workload};
use plimsoll_base::units::{Dim, MachineId, Span, Unit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A policy that ranks by arrival.
struct ByArrival;

impl Policy for ByArrival {
    fn rank(&self, queue: &Queue, _: &Books) -> crate::policy::Rank {
        crate::policy::Rank::new(u128::from(queue.release.0) << 64 | u128::from(queue.place))
    }
}

impl crate::policy::Capabilities for ByArrival {}

/// The number of tasks that finished, and of stopped tasks.
#[derive(Default)]
struct Ends {
    finished: u32,
    stopped: u32,
}

impl crate::record::Recorder for Ends {
    fn tasks(&mut self, tasks: &TaskRecord) -> Result<()> {
        let ends = if tasks.fate == Fate::Finished { &mut self.finished } else { &mut self.stopped };
        *ends += tasks.count;
        Ok(())
    }
}

const MACHINES: u32 = 4;

fn cluster() -> Cluster {
    let dims = vec![Dim { name: "cpu".into(), unit: Unit::Milli }];
    Cluster { dims, capacities: vec![Resources::from_slice(&[8]); MACHINES as usize], ..Cluster::default() }
}

/// Returns jobs of one row with up to six equal tasks.
fn workload(rng: &mut ChaCha8Rng) -> Workload {
    let dims = vec![Dim { name: "cpu".into(), unit: Unit::Milli }];
    let (mut workload, mut submit) = (Workload { dims, ..Workload::default() }, 0);
    for number in 0..40 {
        submit += rng.random_range(0..3u64);
        let job = workload.job(&format!("job-{number}"));
        let user = UserId(workload.users.intern(&format!("user-{}", number % 5)));
        workload.sets.push(TaskSet {
            job,
            user,
            submit: Time(submit),
            duration: Span(rng.random_range(1..9)),
            tasks: rng.random_range(1..7),
            demand: Resources::from_slice(&[rng.random_range(1..5)]),
            ..TaskSet::default()
        });
    }
    workload.finish()
}

/// Launches tasks of the first set of each user until none has room.
fn launch_all(kernel: &mut Kernel) {
    for user in (0..kernel.books().users() as u32).map(UserId) {
        while let Some(slot) = kernel.first(user)
            && let Some(machine) = kernel.find_machine(slot)
        {
            let queue = kernel.set(slot).queue;
            kernel.launch(slot, &[(machine, 1)]);
            kernel.queue_served(queue);
        }
    }
    kernel.start_launched().expect("tables hold all ends");
}

#[test]
fn verbs_in_random_order_keep_the_sums_and_lose_no_task() {
    for seed in 0..20 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let workload = workload(&mut rng);
        let tasks: u32 = workload.sets.iter().map(|set| set.tasks).sum();
        let (mut source, mut policy, mut ends) = (workload.source(), ByArrival, Ends::default());
        let context = RunContext::lent(&mut source, &mut policy, &mut ends);
        let settings = Settings { victims: Some(Victims::of_all()), ..Settings::default() };
        let mut kernel = Kernel::new(context, &Needs::default(), cluster().into(), Weights::default(), settings);
        let mut reserved: Vec<(MachineId, Resources)> = Vec::new();
        let mut stopped = 0;
        while let Some(next) = [kernel.next_arrival().expect("rows"), kernel.next_end()].into_iter().flatten().min() {
            kernel.advance(next).expect("no recorder fails");
            kernel.finish_due().expect("no recorder fails");
            kernel.arrive().expect("valid rows");
            let machine = MachineId(rng.random_range(0..MACHINES));
            match rng.random_range(0..6) {
                0 if kernel.machines().is_present(machine) => kernel.remove_machine(machine),
                1 if kernel.machines().free(machine).0[0] > 0 => {
                    let part = Resources::from_slice(&[1]);
                    kernel.reserve(machine, &part);
                    reserved.push((machine, part));
                }
                2 => {
                    let ticket = kernel.victims().and_then(|victims| victims.all().next()).map(|(_, ticket)| *ticket);
                    if let Some(ticket) = ticket {
                        let before = kernel.books().total_running();
                        kernel.stop(&[ticket], 1, Fate::Preempted).expect("no livelock");
                        assert_eq!(kernel.books().total_running(), before - 1);
                        stopped += 1;
                    }
                }
                _ => {}
            }
            if rng.random_bool(0.5) {
                for machine in (0..MACHINES)
                    .map(MachineId)
                    .filter(|machine| !kernel.machines().is_present(*machine))
                    .collect::<Vec<_>>()
                {
                    kernel.restore_machine(machine);
                }
                reserved.drain(..).for_each(|(machine, part)| kernel.release_reservation(machine, &part));
            }
            launch_all(&mut kernel);
            kernel.audit();
            kernel.settle().expect("no recorder fails");
        }
        kernel.close(false).expect("no recorder fails");
        let left = kernel.books().total_waiting();
        drop(kernel);
        assert_eq!((u64::from(ends.finished) + left, ends.stopped), (u64::from(tasks), stopped), "seed {seed}");
    }
}

/// Each reader gets the changes of its kinds once and in order, whatever other readers have read.
#[test]
fn the_change_log_keeps_changes_until_their_readers_read_them() {
    let (gangs, locality) = (Reader(0), Reader(1));
    let mut log = changes::ChangeLog::new(&[ChangeKinds::FREED, ChangeKinds::QUEUES], None);
    let (freed, left) = (Change::Freed(MachineId(3)), Change::Left(SetSlot::FIRST));
    log.push(freed);
    log.push(Change::Ended { machine: MachineId(1), amount: 1 });
    log.push(left);
    assert!(matches!(log.next(locality), Some(Change::Left(_))));
    assert!(log.next(locality).is_none());
    log.push(left);
    assert!(matches!(log.next(gangs), Some(Change::Freed(MachineId(3)))));
    assert!(log.next(gangs).is_none());
    assert!(matches!(log.next(locality), Some(Change::Left(_))));
    assert!(log.next(locality).is_none() && log.next(gangs).is_none());
    // A reader that never reads keeps only changes of the kinds that it has subscribed to.
    (0..100).for_each(|_| log.push(freed));
    while log.next(gangs).is_some() {}
    assert!(log.is_empty());
}
