//! Allocation policies behind one trait, [`Policy`]: a policy decides which user is served next.
//!
//! The engine keeps the books. Before every launch it requests from the policy the ranks of the users concerned; a policy has no part in
//! placement, gangs, blocking and retries. To add a policy, write one file that implements [`Policy`] and declares it in a static
//! [`PolicyRow`], add it to the list in `spec.rs`, and add a row to `docs/policies.md`. The command line and every generic test find the
//! policy through a [`Catalogue`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod across;
mod afs;
mod asset;
mod bmf;
mod branches;
mod by_share;
mod by_usage;
mod ceei;
mod decay;
mod drf;
mod environment;
mod expr;
mod fair_tree;
mod fifo;
mod hdrf;
mod karma;
mod keys;
mod line;
mod longterm;
mod maxmin;
mod metric;
mod multifactor;
mod only;
mod pnorm;
mod price;
mod psdsf;
mod queue_file;
mod quota;
mod registry;
mod resolve;
mod slot;
mod spec;
mod target;
mod tetris;
mod time_based;
mod tsf;
mod values;

/// Files of queues, and the functions that read their values.
pub mod queues {
    pub use super::queue_file::{
        Bound, ONE, OptionalAmounts, QueueEntry, QueueFile, QueueKey, amounts, bounds, choice, integer, list, name,
        number, truth, truth_value, word, words,
    };
}

use by_share::ByShare;
use by_usage::{ByUsage, Renewal, UsageRule};

pub use environment::RunEnvironment;
pub use expr::{Clause, NAMES, Name, Of, ValueUnit, key_value, order_by};
pub use metric::{JOB_COLUMNS, JobColumns, MetricFunction};
pub use plimsoll_sim::policy::job_order;
pub use plimsoll_sim::policy::{
    Ask, Capabilities, Cause, Explain, Gang, GroupLevel, GroupLimits, GroupNode, GroupTree, Groups, Head, JobOrder,
    Lens, Needs, Owners, Planner, Policy, Preemption, PreemptsFor, Queue, Rank, Reason, Reclaims, Room, RunningTasks,
    RunningView, Shares, Spot, Stale, Status, Unreturned, Verdict, Victims, WaitList, enough,
};
pub use price::{Prices, ShareNorm};
pub use queue_file::{QueueEntry, QueueFile, QueueKey};
pub use quota::{Amount, GroupEntry, GroupOrder, LabelTree, Quota, QuotaFile, Reclaim, Variant};
pub use registry::{Code, NamedPolicy, PlanGroups, Registry};
pub use resolve::{Parameter, Resolve};
pub use spec::{
    Catalogue, Parsed, PolicyRow, PolicySpec, ROWS, RankOrder, Setup, StaticEquivalent, WITHOUT_SCHEDULERS,
};
pub use target::{Target, TargetSolver};
