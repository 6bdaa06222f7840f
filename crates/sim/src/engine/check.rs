//! Checks whether the options of a run can be combined, and whether they fit the policy and the control.

use super::kernel::Partitions;
use super::round::backfill;
use super::settings::{ClusterSetting, SETTINGS};
use super::{OnBlocked, OnFailure, Options, PreemptFor};
use crate::cluster::{Cluster, Placement};
use crate::policy::{Policy, PreemptsFor};
use plimsoll_base::error::{Error, Result};

/// Checks whether a policy can run on a cluster with these options; [`run`](super::run) calls this first. Errors: [`Error::Mismatch`] for
/// options that cannot be combined, and for labels of the policy that no machine carries.
pub fn check(policy: &dyn Policy, cluster: &Cluster, options: &Options) -> Result<()> {
    let needs = &policy.needs();
    let wrong = |problem: &str| Err(Error::Mismatch { problem: problem.to_owned() });
    if options.slowdown.is_some() && cluster.memory().is_none() {
        return wrong("machines slow down by the memory that tasks use, and there is none in the workload");
    }
    let devices = cluster.hardware.is_some() && options.placement != Placement::Pooled;
    let reserves = options.preempt.is_some() || options.hoard.is_some() || needs.preempts_for == PreemptsFor::ForOthers;
    if devices && reserves {
        return wrong("room cannot be reserved (preempt, hoard) where devices have identities");
    }
    if devices && !needs.lens.is_plain() {
        return wrong("a policy of slots knows no devices; compare it without 'devices'");
    }
    if needs.by_machine && options.on_blocked != OnBlocked::Skip {
        return wrong("a policy that ranks users by machine has no first in line; expected on_blocked = 'skip'");
    }
    if needs.by_machine && options.hoard.is_some() {
        return wrong("gangs hold no room (hoard) under a policy that ranks users by machine; leave 'hoard' out");
    }
    if needs.after_launches && options.on_blocked.backfills() {
        return wrong(
            "this policy ranks again after every launch, and backfilling does not; expected on_blocked = 'skip' or 'stop'",
        );
    }
    let share = options.preempt.is_some_and(|preempt| preempt.whom == PreemptFor::Share);
    if share && policy.shares().is_none() {
        return wrong(
            "tasks are stopped for fair shares (preempt_for = 'share'), and this policy's ranks are no shares; expected drf, \
             asset, maxmin, only, pnorm or slot, or preempt_for = 'urgent'",
        );
    }
    if options.preemption_limits.costs() && options.slowdown.is_some() {
        return wrong(
            "what a stopped task has done is not known on machines that slow down; leave out slowdown, or checkpoint and \
             restart_delay",
        );
    }
    if options.preemption_limits.costs() && options.faults.is_some_and(|faults| faults.backup.is_some()) {
        return wrong(
            "a backup instance would begin at no checkpoint; leave out 'backup' in faults, or checkpoint and restart_delay",
        );
    }
    if let Some(order) = &options.job_order {
        order.in_cluster(&cluster.dims, &cluster.total())?;
    }
    let by_order = options.preempt.is_some_and(|preempt| preempt.whom == PreemptFor::Order);
    if by_order && options.job_order.is_none() {
        return wrong(
            "tasks are stopped for those that come first in the order (preempt_for = 'order'), and the order is the usual one; \
             expected a policy with an order, such as line/srpt or drf/las, or preempt_for = 'urgent'",
        );
    }
    if let (Some(order), Some(_), false) = (&options.job_order, options.preempt, share || by_order) {
        // Under another job order, a preempted task could be the next task of its user again, before the more urgent task that made the
        // request.
        let problem = "urgent tasks ask for room by priority (preempt), and inside users the order is another";
        return wrong(&format!("{problem} ('{}'); leave one of them out", order.name()));
    }
    if options.faults.is_some_and(|faults| faults.backup.is_some()) && options.on_failure == OnFailure::Lose {
        return wrong(
            "a task with a backup is not lost with one machine; leave out 'backup' in faults or on_failure = 'lose'",
        );
    }
    if options.placement == Placement::Pooled && !cluster.speeds.is_empty() {
        return wrong("a pooled cluster has no individual machines, and these have speeds; expected another placement");
    }
    if options.on_blocked.backfills() {
        backfill::check(needs, options)?;
    }
    Partitions::check(&needs.labels, cluster, options.placement)
}

/// Checks whether a control can execute the decisions of such a run. Errors: [`Error::Mismatch`].
pub fn check_control(cluster: &Cluster, options: &Options) -> Result<()> {
    let refused = SETTINGS.iter().filter(|setting| (setting.is_set)(options, cluster));
    let supported = |setting: &ClusterSetting| setting.control_supports.is_some_and(|supports| supports(options));
    let why = refused.filter(|setting| !supported(setting)).find_map(|setting| setting.control);
    let Some(why) = why else { return Ok(()) };
    Err(Error::Mismatch {
        problem: format!("a control plane cannot be combined with a run where {why}; remove one of them"),
    })
}
