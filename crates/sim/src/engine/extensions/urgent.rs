//! Preemption by priority: urgent tasks may stop less urgent ones, of the users that the rule permits.
//!
//! The rules are in `docs/cluster.md`, "Priorities and giving back".

use std::ops::ControlFlow;

use super::gather::Gathered;
use crate::books::{Books, Partition};
use crate::policy::{Ask, Groups, Preemption, Queue, RunningView, Victims};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::named;
use plimsoll_base::units::UserId;

named! {
    /// The users with tasks that may be asked.
    PreemptFrom {
        Any "any": "Anybody's",
        SameUser "same-user": "The asker's own",
        SameGroup "same-group": "Those of the asker's quota group",
        AboveQuota "above-quota":
            "Tasks of users in a quota group, or below one, with an allocation above its runtime quota",
    }
}

/// The rule that stops tasks of lower priority, the least urgent first, until some machine has room.
pub struct Urgent {
    from: PreemptFrom,
    /// The last requesting user with the version of the running tasks, and whether each user may be asked, by id and partition; users
    /// beyond the end may be.
    eligible: (Option<(u64, UserId)>, Vec<bool>),
}

impl Urgent {
    pub fn new(from: PreemptFrom) -> Urgent {
        Urgent { from, eligible: (None, Vec::new()) }
    }
}

impl Preemption for Urgent {
    fn propose(
        &mut self,
        queue: &Queue,
        ask: &Ask,
        running: &dyn RunningView,
        books: &Books,
    ) -> Result<Option<Victims>> {
        let requester = Some((running.version(), queue.user));
        if self.eligible.0 != requester {
            self.eligible = (requester, eligible(self.from, queue.user, running, books)?);
        }
        let (eligible, partitions) = (&self.eligible.1, books.partitions());
        let mut gathered = Gathered::default();
        let mut found = None;
        running.all(&mut |tasks| {
            if tasks.priority <= queue.priority {
                return ControlFlow::Break(());
            }
            if !eligible.get(tasks.user.index() * partitions + tasks.partition.index()).copied().unwrap_or(true) {
                return ControlFlow::Continue(());
            }
            found = gathered.add(ask, running, (tasks.key, tasks.machine, tasks.count), tasks.footprint);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Ok(found)
    }
}

/// Returns whether each user may be asked, by id and partition; users beyond the end may be. Errors: a policy without the required quota
/// groups.
fn eligible(from: PreemptFrom, requester: UserId, running: &dyn RunningView, books: &Books) -> Result<Vec<bool>> {
    let partitions = books.partitions();
    let users = 0..books.users() as u32;
    let all = |may: bool| std::iter::repeat_n(may, partitions);
    if from == PreemptFrom::Any {
        return Ok(Vec::new());
    }
    if from == PreemptFrom::SameUser {
        return Ok(users.flat_map(|user| all(user == requester.0)).collect());
    }
    let Some(groups) = running.groups() else {
        let problem = format!("victims are restricted to '{}', and the policy has no quota groups", from.name());
        return Err(Error::Mismatch { problem });
    };
    let group = |user: u32| groups.tree().group_of(running.name(UserId(user)));
    if from == PreemptFrom::SameGroup {
        let own = group(requester.0);
        return Ok(users.flat_map(|user| all(own.is_some() && group(user) == own)).collect());
    }
    above_quota(groups, running, books)
}

/// Returns for each user, by id and partition, whether its group or one above has an allocation above its runtime quota. Errors: the
/// policy's.
fn above_quota(groups: &dyn Groups, running: &dyn RunningView, books: &Books) -> Result<Vec<bool>> {
    let (tree, levels, dims) = (groups.tree(), groups.levels()?, books.dims());
    let group = |user: u32| tree.group_of(running.name(UserId(user)));
    let mut held = vec![0u64; levels.len()];
    let resources = tree.groups.first().map_or(0, |about| about.limits.len());
    let mut above = vec![false; tree.groups.len()];
    let partitions = books.partitions() as u8;
    let who = (0..books.users() as u32).flat_map(|user| (0..partitions).map(move |at| (user, Partition(at))));
    for (user, partition) in who.clone() {
        let mut next = group(user).map(|group| tree.place_in(group, partition));
        while let Some(at) = next {
            for d in 0..resources.min(dims) {
                held[at * resources + d] += books.partition(partition).allocated(UserId(user))[d];
            }
            next = tree.groups[at].parent;
        }
    }
    for (at, above) in above.iter_mut().enumerate() {
        *above = (0..resources).any(|d| held[at * resources + d] > levels[at * resources + d].runtime);
    }
    let over = |(user, partition): (u32, Partition)| {
        let leaf = group(user).map(|group| tree.place_in(group, partition));
        std::iter::successors(leaf, |at| tree.groups[*at].parent).any(|at| above[at])
    };
    Ok(who.map(over).collect())
}
