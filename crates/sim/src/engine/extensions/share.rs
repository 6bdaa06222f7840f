//! Preemption for fair shares: tasks of users that are behind may stop tasks of users that are ahead. The receiving user must stay behind
//! the giving one.
//!
//! A user gets room only if its share with the task is at most that of each giver without the tasks that it gives. This is the first of
//! Kueue's strategies for fair sharing ("LessThanOrEqualToFinalShare"), here with the policy's own ranks. Afterwards the giver is not
//! behind the receiver, so it cannot reclaim from it until another change occurs. The rules are in `docs/cluster.md`, "Room for fair
//! shares".

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::gather::{add, covers, short};
use crate::books::Books;
use crate::engine::kernel::Kernel;
use crate::policy::{Ask, Pending, Policy, Preemption, Queue, Rank, Room, RunningTasks, RunningView, Shares, Victims};
use plimsoll_base::error::Result;
use plimsoll_base::units::{MachineId, Resources, UserId};

/// The rule that chooses victims by the shares of users, the user that is furthest ahead first.
#[derive(Default)]
pub struct ShareOrder {
    /// All users with running tasks and their shares, for a version of the running tasks.
    ahead: (Option<u64>, Vec<(Rank, UserId)>),
}

/// The room on one machine: free amounts and those of the victims chosen so far.
struct Offer {
    room: Resources,
    asked: Vec<(u64, u32)>,
}

/// The tasks that one user would give on one machine.
#[derive(Default)]
struct GivenRoom {
    amounts: Resources,
    gangs: HashSet<u32>,
}

/// Returns the share and the allocation of a user after these gains and losses.
fn after(shares: &dyn Shares, user: UserId, pending: Pending, books: &Books) -> (Rank, Resources) {
    let mut held = Resources::from_slice(books.allocated(user));
    add(&mut held, &pending.gains.0, 1);
    subtract(&mut held, &pending.losses.0, 1);
    (shares.rank_with(user, held.slice(books.dims()), books), held)
}

/// Returns the position of a user among the requesting ones: its share with all of its requests.
pub fn turn(policy: &dyn Policy, user: UserId, pending: Pending, books: &Books) -> Rank {
    policy.shares().map_or(Rank::default(), |shares| after(shares, user, pending, books).0)
}

fn subtract(sum: &mut Resources, each: &[u64], count: u32) {
    sum.0.iter_mut().zip(each).for_each(|(sum, each)| *sum = sum.saturating_sub(each * u64::from(count)));
}

impl ShareOrder {
    /// Returns the users ahead of a share after their pending losses, the furthest first; among equal ones the last to appear first.
    fn ahead_of(&mut self, share: Rank, shares: &dyn Shares, running: &dyn RunningView, books: &Books) -> Vec<UserId> {
        let users = || (0..books.users() as u32).map(UserId).filter(|user| books.running(*user) > 0);
        if self.ahead.0 != Some(running.version()) {
            let rank = |user| (after(shares, user, Pending::default(), books).0, user);
            self.ahead = (Some(running.version()), users().map(rank).collect());
            self.ahead.1.sort_unstable_by_key(|at| Reverse(*at));
        }
        let held = self.ahead.1.iter().take_while(|(rank, _)| *rank > share);
        let left = |(rank, user): &(Rank, UserId)| match running.pending(*user).losses {
            Resources::ZERO => (*rank, *user),
            losses => (after(shares, *user, Pending { losses, ..Pending::default() }, books).0, *user),
        };
        let mut ahead: Vec<(Rank, UserId)> = held.map(left).filter(|(rank, _)| *rank > share).collect();
        ahead.sort_unstable_by_key(|at| Reverse(*at));
        ahead.into_iter().map(|(_, user)| user).collect()
    }
}

impl Preemption for ShareOrder {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let Some(shares) = running.shares() else { return Ok(None) };
        let (now, mut then) = after(shares, queue.user, running.pending(queue.user), books);
        add(&mut then, ask.footprint, 1);
        // If the allocation would exceed the capacity, no victims can make room for the task.
        if !covers(books.offered(), &then.0) {
            return Ok(None);
        }
        let with = shares.rank_with(queue.user, then.slice(books.dims()), books);
        let mut there: HashMap<MachineId, Offer> = HashMap::new();
        for user in self.ahead_of(now, shares, running, books) {
            let losses = running.pending(user).losses;
            let mut given: HashMap<MachineId, GivenRoom> = HashMap::new();
            let mut found = None;
            running.of_users(&[user], &mut |tasks| {
                let offer = || Offer { room: running.free(tasks.machine), asked: Vec::new() };
                let offer = there.entry(tasks.machine).or_insert_with(offer);
                let given = given.entry(tasks.machine).or_default();
                let fair = |amounts: Resources| {
                    let mut losses = losses;
                    add(&mut losses, &amounts.0, 1);
                    after(shares, user, Pending { losses, ..Pending::default() }, books).0 >= with
                };
                if give(tasks, offer, given, ask.footprint, fair) && covers(&offer.room, ask.footprint) {
                    found = Some(std::mem::take(&mut offer.asked));
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            if let Some(tasks) = found {
                return Ok(Some(Victims { tasks, room: Room::Kept, cause: None }));
            }
        }
        Ok(None)
    }
}

/// Adds as many of a user's tasks to an offer as are needed and fair. Returns whether any were added.
fn give(
    tasks: &RunningTasks,
    offer: &mut Offer,
    given: &mut GivenRoom,
    need: &[u64],
    fair: impl Fn(Resources) -> bool,
) -> bool {
    let most = short(need, &offer.room, tasks.footprint).min(u64::from(tasks.count)) as u32;
    let with = |count: u32| {
        let mut amounts = given.amounts;
        match tasks.gang {
            Some(gang) if given.gangs.contains(&gang.number) => {}
            Some(gang) => add(&mut amounts, tasks.footprint, gang.tasks),
            None => add(&mut amounts, tasks.footprint, count),
        }
        amounts
    };
    let Some(count) = (1..=most).rev().find(|count| fair(with(*count))) else { return false };
    given.amounts = with(count);
    given.gangs.extend(tasks.gang.map(|gang| gang.number));
    add(&mut offer.room, tasks.footprint, count);
    offer.asked.push((tasks.key, count));
    true
}

/// Returns whether a user stays behind all givers after these gains and losses.
pub fn stays_behind(kernel: &Kernel, user: UserId, gains: Resources, givers: &HashMap<UserId, Pending>) -> bool {
    let Some(shares) = kernel.policy().shares() else { return false };
    let with = after(shares, user, Pending { gains, ..Pending::default() }, kernel.books()).0;
    let without = |(giver, pending): (&UserId, &Pending)| after(shares, *giver, *pending, kernel.books()).0;
    givers.iter().map(without).all(|without| without >= with)
}
