//! Allocation policies behind one small trait: which user is served next.
//!
//! The engine keeps the books and asks the policy, before every launch, for the place in line of the users concerned;
//! everything else (placement, gangs, blocking, retries) stays out of a policy. To add one: write one file that
//! implements [`Policy`] and declares it in a static [`PolicyRow`], name it in the list in `spec.rs`, and give it a row in
//! `docs/policies.md`; the command line and every generic test pick it up from [`PolicySpec::all`].

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod across;
mod afs;
mod asset;
mod bmf;
mod branches;
mod ceei;
mod decay;
mod drf;
mod expr;
mod fair_tree;
mod fifo;
mod hdrf;
mod karma;
mod keys;
mod line;
mod longterm;
mod maxmin;
mod multifactor;
mod only;
mod pnorm;
mod price;
mod psdsf;
mod quota;
mod registry;
mod resolve;
mod slot;
mod spec;
mod target;
mod tetris;
mod time_based;
mod tsf;

pub use expr::{Clause, Measure, NAMES, Name, Of};
pub use plimsoll_sim::policy::inside;
pub use plimsoll_sim::policy::{
    Ask, Displaces, Gang, GroupLevel, GroupLimits, GroupNode, GroupTree, Groups, Inside, Lens, Needs, Owners, Policy,
    Preemption, Queue, Rank, Reason, Room, RunningTasks, RunningView, Shares, Spot, Stale, Unreturned, Verdict,
    Victims, enough,
};
pub use price::{Prices, Shape};
pub use quota::{Amount, GroupEntry, GroupOrder, LabelTree, Quota, QuotaFile, Reclaim, Variant};
pub use registry::{Code, NamedPolicy, Registry};
pub use resolve::{Parameter, Resolve};
pub use spec::{Counterpart, Parsed, PolicyRow, PolicySpec, Setup};
pub use target::{Target, TargetSolver};
