//! Quota groups: the runtime quota of a group is the amount of each resource that it may use at this moment.
//!
//! Each resource and each parent is computed independently. The parent's quota is poured over its groups like water into buckets, with the
//! ratio as floor area and the request as volume, until the water is at one level. A minimum is either excluded from the water and given
//! first ([`Variant::MinPlusShare`]), or counts as water ([`Variant::MaxMinLevel`]). Results are exact fractions, or whole amounts by two
//! kinds of [`Rounding`]. The methods to find the level agree ([`Method`]).
//!
//! Not modelled: time. Source: the first article of the Fuxi series (Alibaba Cloud), sections 2 to 4; Koordinator's elastic quotas for the
//! hierarchy, minimums that are not lent and the largest remainder. docs/quota.md lists the corrections to the article's text.

mod allocation;
mod by_tree;
mod instance;
mod per_user;
mod pour;
mod rounding;
#[cfg(test)]
mod tests;

pub use crate::water::Semantics as Variant;
pub use allocation::{GroupAllocation, GroupShare, Overcommit, Quota, Rounding};
pub use by_tree::by_tree;
pub use instance::{GroupInstance, QuotaGroup, QuotaWarning};
pub use per_user::PerUser;
pub use pour::{Bucket, Method, Poured, filled, pour};
