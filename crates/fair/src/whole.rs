//! Whole tasks: the discrete counterparts of the divisible mechanisms, by progressive filling one task at a time.
//!
//! The lowest user in the order gets one more task, until no user's task fits, or with [`OnBlocked::Stop`] until the first task that does
//! not fit. No task finishes, so a user whose task did not fit gets no further task in that room. Comparisons are exact, and ties are
//! broken by a given rule. Sources: Ghodsi et al., NSDI 2011, Algorithm 1 and theorem 7 (DRF); Parkes, Procaccia and Shah, EC 2012
//! (SequentialMinMax).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::filling::weighted_shares;
use super::{Allocation, Exact, Instance, Limit, Mechanism, Norm, Number, Slots, Tasks, User};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;
pub use plimsoll_base::named::OnBlocked;

/// The key of the order: the user with the lowest key is served next.
#[derive(Clone)]
pub enum ServingKey {
    /// The norm of the user's current shares: DRF's Algorithm 1 for [`Norm::Largest`]. Users with a norm of 0 are served first, in
    /// ascending order of their dominant shares.
    Before(Norm),
    /// The norm of the user's shares with one more task: SequentialMinMax for [`Norm::Largest`].
    After(Norm),
    /// The user's tasks over its tasks in a divisible allocation; users without tasks in that allocation come last.
    Target(Arc<dyn Mechanism>),
    /// The user's slots over its weight. A task takes one slot and no resource, as in [`Slots`].
    Slots(Slots),
}

named! {
    /// The order among users with equal keys.
    Ties {
        LeastRecentlyServed "least-recently-served": "The user with the earliest latest task, users without any first; then the first in the instance",
        LowestId "lowest-id": "The user that the instance names first",
        HighestId "highest-id": "The user that the instance names last: gives the order of the DRF paper's Table 1",
    }
}

/// The capacity that is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillingRoom {
    /// The capacity as one pool, whether or not it consists of machines.
    #[default]
    Pool,
    /// One machine after the other, each until no more tasks can be placed: the construction of theorem 7 (with [`OnBlocked::Stop`]). A
    /// capacity without machines counts as one machine.
    EachMachine,
}

/// Progressive filling with whole tasks.
///
/// Each user except the blocked ones is within one task of the others: when user `i` got its last task, no user that could still get one
/// was lower. A fractional number of tasks is rounded down. A user for which not even one task fits gets nothing and does not block others,
/// as in the simulation. Cost: O(resources + log users) per task, and O(users) per machine; more than 30 million tasks are an error.
#[derive(Clone)]
pub struct WholeTasks {
    /// The key of the order.
    pub order: ServingKey,
    /// The rule for a task that does not fit.
    pub on_blocked: OnBlocked,
    /// The order among users with equal keys.
    pub ties: Ties,
    /// The capacity that is filled.
    pub onto: FillingRoom,
}

impl Mechanism for WholeTasks {
    /// Computes the allocation. The limit of a blocked user is the used-up resource (all slots, for slots), else [`Limit::WholeTask`]; the
    /// latter also applies to users after the user that ended the filling.
    fn allocate(&self, instance: &Instance) -> Result<Allocation> {
        let mut pool = Pool::new(self, instance)?;
        pool.fill(self, |_| {});
        let limits = (0..instance.users().len()).map(|i| pool.limit(i, instance)).collect();
        let tasks = pool.tasks.iter().map(|&tasks| Exact::from(tasks)).collect();
        Ok(Allocation::new(Tasks::Exact(tasks), limits))
    }
}

impl WholeTasks {
    /// Returns the users in the order of their tasks, one entry per task. A user that needs nothing has all its tasks before the first
    /// decision and does not appear. Errors: those of [`WholeTasks::allocate`].
    pub fn decisions(&self, instance: &Instance) -> Result<Vec<usize>> {
        let mut log = Vec::new();
        Pool::new(self, instance)?.fill(self, |user| log.push(user));
        Ok(log)
    }

    /// Returns each user's stage, and the increment of its key per task.
    fn units(&self, instance: &Instance) -> Result<Vec<(ServingStages, Exact)>> {
        let users = instance.users();
        match &self.order {
            ServingKey::Before(norm) | ServingKey::After(norm) => {
                Ok(users.iter().map(|user| unit_of_norm(*norm, instance, user)).collect())
            }
            ServingKey::Slots(_) => {
                let unit = |user| Ok((ServingStages::Second, &Exact::ONE / Slots::weight(user)?));
                users.iter().map(unit).collect()
            }
            ServingKey::Target(mechanism) => {
                let unit = |target: Exact| match target.is_positive() {
                    true => (ServingStages::Second, &Exact::ONE / &target),
                    false => (ServingStages::Last, Exact::ONE),
                };
                Ok(match mechanism.allocate(instance)?.tasks {
                    Tasks::Exact(targets) => targets.into_iter().map(unit).collect(),
                    Tasks::Float(targets) => {
                        targets.into_iter().map(of_target).map(|t| t.map(unit)).collect::<Result<_>>()?
                    }
                })
            }
        }
    }
}

fn of_target(value: f64) -> Result<Exact> {
    Exact::of_float(value).ok_or_else(|| Error::NotConverged {
        solver: "the mechanism that sets targets".to_owned(),
        problem: format!("a target of {value} tasks"),
    })
}

fn unit_of_norm(norm: Norm, instance: &Instance, user: &User) -> (ServingStages, Exact) {
    let length = |norm: Norm| {
        let float = || norm.float(weighted_shares(instance, user).into_iter());
        norm.exact(instance, user).or_else(|| Exact::of_float(float())).expect("norms of finite shares are finite")
    };
    let unit = length(norm);
    if unit.is_zero() { (ServingStages::First, length(Norm::Largest)) } else { (ServingStages::Second, unit) }
}

/// The stages, which are served one after the other, independently of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServingStages {
    First,
    Second,
    Last,
}

/// A user in the serving order.
#[derive(Debug, PartialEq, Eq)]
struct QueuedUser {
    stage: ServingStages,
    key: Exact,
    tie: usize,
    user: usize,
}

impl Ord for QueuedUser {
    /// Compares such that the greatest user is served next.
    fn cmp(&self, other: &QueuedUser) -> Ordering {
        let rank = |next: &QueuedUser| (next.stage, next.tie);
        let (own, others) = (rank(self), rank(other));
        others.0.cmp(&own.0).then_with(|| other.key.cmp(&self.key)).then_with(|| others.1.cmp(&own.1))
    }
}

impl PartialOrd for QueuedUser {
    fn partial_cmp(&self, other: &QueuedUser) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The capacity to fill, of resources or of slots, and the number of tasks of each user.
struct Pool {
    /// The number of equal machines, and the capacity of each.
    rooms: Vec<(u64, Vec<Exact>)>,
    /// The resources that are used up on all machines.
    used_up: Vec<bool>,
    /// Whether the capacity consists of slots.
    slots: bool,
    /// The requirement of one task: pairs of a resource and an amount above 0.
    takes: Vec<Vec<(usize, Exact)>>,
    /// The number of whole tasks; `None` means unlimited.
    all: Vec<Option<u64>>,
    units: Vec<(ServingStages, Exact)>,
    /// Whether each user may get tasks.
    served: Vec<bool>,
    tasks: Vec<u64>,
    /// The number of each user's latest task among all tasks, from 1; 0 for a user without any.
    latest: Vec<usize>,
    decisions: usize,
}

impl Pool {
    fn new(whole: &WholeTasks, instance: &Instance) -> Result<Pool> {
        let users = instance.users();
        let units = whole.units(instance)?;
        let takes: Vec<Vec<(usize, Exact)>> = match &whole.order {
            ServingKey::Slots(_) => vec![vec![(0, Exact::ONE)]; users.len()],
            _ => users.iter().map(needs).collect(),
        };
        let rooms = match (&whole.order, whole.onto, instance.machines()) {
            (ServingKey::Slots(slots), FillingRoom::Pool, _) => vec![(1, vec![slots.total(instance)])],
            (ServingKey::Slots(slots), FillingRoom::EachMachine, _) => {
                vec![(instance.machine_count(), vec![Exact::from(u64::from(slots.per_machine))])]
            }
            (_, FillingRoom::Pool, _) | (_, FillingRoom::EachMachine, []) => vec![(1, instance.capacity().to_vec())],
            (_, FillingRoom::EachMachine, groups) => {
                groups.iter().map(|group| (group.count, group.capacity.clone())).collect()
            }
        };
        let used_up = vec![true; rooms.first().map_or(0, |(_, capacity)| capacity.len())];
        // A number beyond 64 bits is treated as unlimited: no filling reaches it task by task.
        let whole_number = |tasks: &Exact| tasks.floor().parts().map(|(number, _)| number.unsigned_abs());
        let all: Vec<Option<u64>> = users.iter().map(|user| user.tasks.as_ref().and_then(whole_number)).collect();
        let fits = |takes: &[(usize, Exact)], room: &[Exact]| takes.iter().all(|(r, amount)| *amount <= room[*r]);
        let somewhere = |i: usize| rooms.iter().any(|(_, room)| fits(&takes[i], room));
        let served = (0..users.len()).map(|i| instance.lacking(&users[i]).is_none() && somewhere(i)).collect();
        let most = most_tasks(&rooms, &takes);
        if most > MOST_TASKS {
            let expected = format!("at most {MOST_TASKS:e}, because tasks are served one by one; use a larger unit");
            return Err(Error::plan("whole tasks", format!("up to {most:.1e} of them"), expected));
        }
        let needs_nothing = |i: usize| if takes[i].is_empty() { all[i].unwrap_or(u64::MAX) } else { 0 };
        let tasks = (0..users.len()).map(needs_nothing).collect();
        let (slots, latest) = (matches!(whole.order, ServingKey::Slots(_)), vec![0; users.len()]);
        Ok(Pool { rooms, used_up, slots, takes, all, units, served, tasks, latest, decisions: 0 })
    }

    /// Fills one room after another, and calls `decided` for each task.
    fn fill(&mut self, whole: &WholeTasks, mut decided: impl FnMut(usize)) {
        for (count, capacity) in std::mem::take(&mut self.rooms) {
            for _ in 0..count {
                let mut left = capacity.clone();
                self.fill_room(whole, &mut left, &mut decided);
                self.used_up.iter_mut().zip(&left).for_each(|(used_up, left)| *used_up &= left.is_zero());
            }
        }
    }

    /// Serves all users in order from the rest of one room.
    fn fill_room(&mut self, whole: &WholeTasks, left: &mut [Exact], decided: &mut impl FnMut(usize)) {
        let ahead = u64::from(matches!(whole.order, ServingKey::After(_)));
        let next = |pool: &Pool, user: usize| {
            let (stage, unit) = &pool.units[user];
            let key = &Exact::from(pool.tasks[user] + ahead) * unit;
            let tie = match whole.ties {
                Ties::LeastRecentlyServed => match pool.latest[user] {
                    0 => user,
                    latest => pool.latest.len() + latest,
                },
                Ties::LowestId => user,
                Ties::HighestId => usize::MAX - user,
            };
            QueuedUser { stage: *stage, key, tie, user }
        };
        let wants = |pool: &Pool, user: usize| pool.all[user].is_none_or(|all| pool.tasks[user] < all);
        let starts = (0..self.tasks.len()).filter(|&i| self.served[i] && !self.takes[i].is_empty() && wants(self, i));
        let mut line: BinaryHeap<QueuedUser> = starts.map(|user| next(self, user)).collect();
        while let Some(QueuedUser { user, .. }) = line.pop() {
            let takes = &self.takes[user];
            if takes.iter().any(|(r, amount)| *amount > left[*r]) {
                match whole.on_blocked {
                    OnBlocked::Skip => continue,
                    OnBlocked::Stop => break,
                }
            }
            takes.iter().for_each(|(r, amount)| left[*r] = &left[*r] - amount);
            self.tasks[user] += 1;
            self.decisions += 1;
            self.latest[user] = self.decisions;
            decided(user);
            if wants(self, user) {
                line.push(next(self, user));
            }
        }
    }

    fn limit(&self, user: usize, instance: &Instance) -> Limit {
        if self.all[user].is_some_and(|all| self.tasks[user] >= all) {
            return Limit::Demand;
        }
        if let Some(r) = instance.lacking(&instance.users()[user]) {
            return Limit::Resource(r);
        }
        match self.takes[user].iter().find(|(r, _)| self.used_up[*r]) {
            Some(_) if self.slots => Limit::Slots,
            Some((r, _)) => Limit::Resource(*r),
            None => Limit::WholeTask,
        }
    }
}

/// The maximum number of whole tasks.
const MOST_TASKS: f64 = 3e7;

/// Returns an upper bound of the number of tasks: the sum over all resources of all rooms, each divided by the smallest demand of the
/// resource.
fn most_tasks(rooms: &[(u64, Vec<Exact>)], takes: &[Vec<(usize, Exact)>]) -> f64 {
    let dims = rooms.first().map_or(0, |(_, room)| room.len());
    let least = |r: usize| takes.iter().flatten().filter(|(of, _)| *of == r).map(|(_, amount)| amount).min();
    let of_room =
        |room: &[Exact]| -> f64 { (0..dims).filter_map(|r| least(r).map(|least| (&room[r] / least).to_f64())).sum() };
    rooms.iter().map(|(count, room)| *count as f64 * of_room(room)).sum()
}

fn needs(user: &User) -> Vec<(usize, Exact)> {
    user.demand.iter().cloned().enumerate().filter(|(_, amount)| amount.is_positive()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[u64]) -> Vec<Exact> {
        values.iter().map(|&value| Exact::from(value)).collect()
    }

    fn instance(capacity: &[u64], demands: &[&[u64]]) -> Instance {
        let users = demands.iter().enumerate().map(|(i, demand)| User::new(format!("user {i}"), numbers(demand)));
        let names = (0..capacity.len()).map(|r| format!("resource {r}")).collect();
        Instance::new(names, numbers(capacity), users.collect()).expect("a good instance")
    }

    fn integral_tasks(order: ServingKey) -> WholeTasks {
        WholeTasks { order, on_blocked: OnBlocked::Skip, ties: Ties::default(), onto: FillingRoom::Pool }
    }

    fn tasks(whole: &WholeTasks, instance: &Instance) -> Vec<f64> {
        whole.allocate(instance).expect("a filling ends").tasks.floats()
    }

    /// The example of Ghodsi et al., NSDI 2011, 4.1 and Table 1.
    #[test]
    fn the_papers_table_1_comes_out_in_its_order() {
        let example = instance(&[9, 18], &[&[1, 4], &[3, 1]]);
        for on_blocked in [OnBlocked::Skip, OnBlocked::Stop] {
            let drf = WholeTasks { on_blocked, ..integral_tasks(ServingKey::Before(Norm::Largest)) };
            assert_eq!(drf.decisions(&example).expect("it ends"), [0, 1, 0, 1, 0]);
            let highest = WholeTasks { ties: Ties::HighestId, ..drf };
            assert_eq!(highest.decisions(&example).expect("it ends"), [1, 0, 0, 1, 0]);
            let allocation = highest.allocate(&example).expect("it ends");
            assert_eq!(allocation.tasks, Tasks::Exact(numbers(&[3, 2])));
            // The first resource is used up.
            assert_eq!(allocation.limits, [Limit::Resource(0), Limit::Resource(0)]);
        }
    }

    #[test]
    fn what_never_fits_blocks_nobody_and_too_many_tasks_are_refused() {
        let stop = WholeTasks { on_blocked: OnBlocked::Stop, ..integral_tasks(ServingKey::Before(Norm::Largest)) };
        assert_eq!(tasks(&stop, &instance(&[10, 10], &[&[1, 11], &[5, 1]])), [0.0, 2.0]);
        let endless = stop.allocate(&instance(&[1 << 40], &[&[1]])).unwrap_err().to_string();
        assert!(endless.contains("one by one"), "{endless}");
    }

    #[test]
    fn blocked_users_are_passed_or_end_it() {
        // When both users have a dominant share of 4/10, the first user is next, and its task no longer fits.
        let example = instance(&[10, 10], &[&[4, 4], &[1, 2]]);
        let drf = integral_tasks(ServingKey::Before(Norm::Largest));
        assert_eq!(tasks(&drf, &example), [1.0, 3.0]);
        let stop = WholeTasks { on_blocked: OnBlocked::Stop, ..drf };
        let allocation = stop.allocate(&example).expect("it ends");
        assert_eq!(allocation.tasks.floats(), [1.0, 2.0]);
        assert_eq!(allocation.limits, [Limit::WholeTask, Limit::WholeTask]);
    }

    /// A key that includes the next task postpones large tasks that compete with small tasks.
    #[test]
    fn shares_before_and_after_a_task_differ() {
        let example = instance(&[10, 10], &[&[6, 1], &[1, 1]]);
        assert_eq!(
            integral_tasks(ServingKey::Before(Norm::Largest)).decisions(&example).expect("it ends"),
            [0, 1, 1, 1, 1]
        );
        assert_eq!(
            integral_tasks(ServingKey::After(Norm::Largest)).decisions(&example).expect("it ends")[..4],
            [1, 1, 1, 1]
        );
        assert_eq!(tasks(&integral_tasks(ServingKey::After(Norm::Largest)), &example), [0.0, 10.0]);
    }

    /// A mechanism that returns a given allocation.
    struct Fixed(Tasks);

    impl Mechanism for Fixed {
        fn allocate(&self, instance: &Instance) -> Result<Allocation> {
            let limits = vec![Limit::Demand; instance.users().len()];
            Ok(Allocation::new(self.0.clone(), limits))
        }
    }

    #[test]
    fn targets_are_approached_in_step() {
        // CEEI gives 45/11 and 18/11 tasks (Ghodsi et al., NSDI 2011, 5.2).
        let example = instance(&[9, 18], &[&[1, 4], &[3, 1]]);
        let exact = Tasks::Exact(vec![Exact::ratio(45, 11), Exact::ratio(18, 11)]);
        for targets in [exact, Tasks::Float(vec![45.0 / 11.0, 18.0 / 11.0])] {
            let near = integral_tasks(ServingKey::Target(Arc::new(Fixed(targets))));
            assert_eq!(near.decisions(&example).expect("it ends"), [0, 1, 0, 0, 1]);
        }
        let one_sided = integral_tasks(ServingKey::Target(Arc::new(Fixed(Tasks::Float(vec![0.0, 2.5])))));
        assert_eq!(one_sided.decisions(&example).expect("it ends"), [1, 1, 1]);
        let none = integral_tasks(ServingKey::Target(Arc::new(Fixed(Tasks::Float(vec![f64::NAN, 2.5])))));
        assert!(none.allocate(&example).expect_err("no number").to_string().contains("a target of NaN tasks"));
    }

    #[test]
    fn what_needs_nothing_or_cannot_be_had_is_settled_first() {
        let mut users = instance(&[10, 10], &[&[1, 0], &[2, 1]]).users().to_vec();
        users.push(User { tasks: Some(Exact::ratio(7, 2)), ..User::new("idle", numbers(&[0, 0])) });
        users[0].tasks = Some(Exact::ratio(5, 2));
        let names = || vec!["cpu".to_owned(), "memory".to_owned()];
        let some = Instance::new(names(), numbers(&[10, 10]), users.clone()).expect("a good instance");
        let drf = integral_tasks(ServingKey::Before(Norm::Largest));
        let allocation = drf.allocate(&some).expect("it ends");
        assert_eq!(allocation.tasks.floats(), [2.0, 4.0, 3.0]);
        assert_eq!(allocation.limits, [Limit::Demand, Limit::Resource(0), Limit::Demand]);
        let none = Instance::new(names(), numbers(&[10, 0]), users).expect("a good instance");
        let stop = WholeTasks { on_blocked: OnBlocked::Stop, ..drf };
        let allocation = stop.allocate(&none).expect("it ends");
        assert_eq!(allocation.tasks.floats(), [2.0, 0.0, 3.0]);
        assert_eq!(allocation.limits, [Limit::Demand, Limit::Resource(1), Limit::Demand]);
    }
}
