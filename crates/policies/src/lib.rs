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
mod ceei;
mod decay;
mod drf;
mod fifo;
mod line;
mod longterm;
mod maxmin;
mod only;
mod pnorm;
mod price;
mod quota;
mod registry;
mod resolve;
mod slot;
mod spec;
mod target;

pub use plimsoll_sim::policy::inside;
pub use plimsoll_sim::policy::{
    Ask, Displaces, Gang, GroupLevel, GroupLimits, GroupNode, GroupTree, Groups, Inside, Lens, Needs, Owners, Policy,
    Preemption, Queue, Rank, Reason, Room, RunningTasks, RunningView, Stale, Unreturned, Verdict, Victims, enough,
};
pub use price::{Prices, Shape};
pub use quota::{Amount, GroupEntry, GroupOrder, LabelTree, Quota, QuotaFile, Reclaim, Variant};
pub use registry::{NamedPolicy, Registry};
pub use resolve::{Parameter, Resolve};
pub use spec::{Counterpart, Parsed, PolicyRow, PolicySpec, Setup};
pub use target::{Target, TargetSolver};
