//! Quota groups: admission, the order of users, and the eligible victims of urgent tasks.
//!
//! All quotas are recomputed before every round, from their definition (`quota_slow::pour`).

use plimsoll::fair::Exact;
use plimsoll::policy::{GroupOrder, QuotaFile, Reclaim};

use super::simulation::{Simulation, Task};
use super::{Ratio, Row, Whom};
use crate::quota_slow::{Bucket, pour};
use crate::workloads::{RESOURCES, USERS};

/// The rank of a queue's next task: the group's largest allocation relative to its quota among the resources, the group, the task's
/// priority, and the order inside the group (the release under `fifo`, the user's share under `fair`).
pub type Key = (Ratio, usize, u8, (Option<(u64, u8)>, usize), Ratio);

impl Simulation<'_> {
    /// Returns the group of a user.
    fn leaf(&self, quota: &QuotaFile, user: usize) -> usize {
        let named = quota.groups.iter().position(|group| group.users.iter().any(|name| name == USERS[user]));
        named.or_else(|| quota.groups.iter().position(|group| group.default)).expect("a default group")
    }

    /// Returns the groups of a user, its own group first and then the groups above it.
    fn groups(&self, quota: &QuotaFile, user: usize) -> Vec<usize> {
        std::iter::successors(Some(self.leaf(quota, user)), |group| quota.groups[*group].parent).collect()
    }

    /// Returns the total demand of the selected tasks of the users of a group and of the groups under it.
    fn of_group(&self, quota: &QuotaFile, group: usize, d: usize, which: impl Fn(&Task) -> bool) -> u64 {
        let mine = |task: &&Task| which(task) && self.groups(quota, self.rows[task.row].user).contains(&group);
        self.tasks.iter().filter(mine).map(|task| self.rows[task.row].demand[d]).sum()
    }

    fn held_of_group(&self, quota: &QuotaFile, group: usize, d: usize) -> u64 {
        self.of_group(quota, group, d, |task| task.run().is_some())
    }

    /// Returns the request of a group: the demand of the tasks of its own users and the requests of the groups under it. The request of a
    /// group under it is limited to that group's max, and is at least its min if that group does not lend.
    fn request(&self, quota: &QuotaFile, group: usize, d: usize) -> u64 {
        let groups = &quota.groups;
        let asks = |task: &Task| {
            let own = self.leaf(quota, self.rows[task.row].user) == group;
            own && (task.run().is_some() || task.waits())
        };
        let below = (0..groups.len()).filter(|&child| groups[child].parent == Some(group));
        let heard = |child: usize| {
            let (min, max) = limits(quota, child, d);
            let request = self.request(quota, child, d).min(max);
            if groups[child].lend { request } else { request.max(min) }
        };
        self.of_group(quota, group, d, asks) + below.map(heard).sum::<u64>()
    }

    /// Returns the runtime quotas by group and resource.
    pub fn quotas(&self) -> Vec<Vec<u64>> {
        let Some(quota) = &self.world.quota else { return Vec::new() };
        let machines = &self.world.machines;
        let mut quotas = vec![vec![0; machines[0].len()]; quota.groups.len()];
        for d in 0..machines[0].len() {
            self.share_out(quota, None, d, machines.iter().map(|machine| machine[d]).sum(), &mut quotas);
        }
        quotas
    }

    fn share_out(&self, quota: &QuotaFile, parent: Option<usize>, d: usize, total: u64, quotas: &mut [Vec<u64>]) {
        let members = (0..quota.groups.len()).filter(|&group| quota.groups[group].parent == parent);
        let members: Vec<usize> = members.collect();
        let bucket = |&group: &usize| {
            let (min, max) = limits(quota, group, d);
            let demand = self.request(quota, group, d).min(max);
            let mut base = if quota.groups[group].lend { min.min(demand) } else { min };
            if quota.reclaim == Reclaim::Never {
                base = base.max(self.held_of_group(quota, group, d));
            }
            let ratio = Exact::from(quota.groups[group].ratio);
            Bucket { base: Exact::from(base), reach: Exact::from(demand.max(base)), ratio }
        };
        let buckets: Vec<Bucket> = members.iter().map(bucket).collect();
        for (group, amount) in members.into_iter().zip(pour(quota.variant, &buckets, &Exact::from(total))) {
            quotas[group][d] = amount.floor().parts().map_or(0, |(whole, _)| whole as u64);
            self.share_out(quota, Some(group), d, quotas[group][d], quotas);
        }
    }

    /// Returns whether `tasks` more tasks like a queue's next one keep its groups within their quotas.
    pub fn within_quotas(&self, head: usize, tasks: usize) -> bool {
        let Some(quota) = &self.world.quota else { return true };
        let Row { user, demand, .. } = &self.rows[self.tasks[head].row];
        let within = |group: usize| {
            let allows =
                |d: usize| self.held_of_group(quota, group, d) + demand[d] * tasks as u64 <= self.runtime[group][d];
            (0..demand.len()).all(allows)
        };
        self.groups(quota, *user).into_iter().all(within)
    }

    /// Returns the rank of a queue's next task; `None` without groups.
    pub fn key_in_group(&self, head: usize) -> Option<Key> {
        let quota = self.world.quota.as_ref()?;
        let Task { row, .. } = self.tasks[head];
        let Row { user, priority, ref demand, .. } = self.rows[row];
        let group = self.leaf(quota, user);
        let used = |d: usize| match (self.held_of_group(quota, group, d), self.runtime[group][d]) {
            (0, _) => Ratio::ZERO,
            (_, 0) => Ratio::new(1 << 100, 1),
            (held, quota) => Ratio::new(u128::from(held), u128::from(quota)),
        };
        let used = (0..demand.len()).map(used).max().unwrap_or(Ratio::ZERO);
        Some(match quota.inside {
            GroupOrder::Fifo => (used, group, priority, (self.released[row], row), Ratio::ZERO),
            GroupOrder::Fair => (used, group, priority, (None, 0), self.share(user)),
        })
    }

    /// Returns whether a user may request room from another user's tasks. `quotas` are the current runtime quotas.
    pub fn may_ask(&self, requester: usize, other: usize, quotas: &[Vec<u64>]) -> bool {
        let whom = self.world.preempt.map_or(Whom::Any, |(_, whom)| whom);
        match (whom, &self.world.quota) {
            (Whom::SameUser, _) => requester == other,
            (Whom::SameGroup, Some(quota)) => self.leaf(quota, requester) == self.leaf(quota, other),
            (Whom::AboveQuota, Some(quota)) => {
                let above = |group: usize, d: usize| self.held_of_group(quota, group, d) > quotas[group][d];
                let groups = self.groups(quota, other);
                groups.into_iter().any(|group| (0..quotas[group].len()).any(|d| above(group, d)))
            }
            (Whom::Any | Whom::Share, _) | (_, None) => true,
        }
    }
}

/// Returns the min and max of a group for one resource.
fn limits(quota: &QuotaFile, group: usize, d: usize) -> (u64, u64) {
    let group = &quota.groups[group];
    let of = |list: &[(plimsoll::policy::Amount, u64)], absent| {
        list.iter().find(|(amount, _)| amount.dim.name == RESOURCES[d]).map_or(absent, |(_, value)| *value)
    };
    (of(&group.min, 0), of(&group.max, u64::MAX))
}
