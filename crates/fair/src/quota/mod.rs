//! Quota groups: how much of each resource a group may use at this moment, its runtime quota.
//!
//! Every resource by itself, and every parent by itself: the parent's quota is poured over its groups like water into
//! buckets, with the ratio as floor and the request as area, so that the water stands at one level. A minimum is
//! either kept out of the water and given first ([`Variant::MinPlusShare`]), or counts as water
//! ([`Variant::MaxMinLevel`]). Exact fractions; whole amounts by two kinds of [`Rounding`]. The level is found by
//! any of the methods, which agree ([`Method`]).
//!
//! Not modelled: time. Source: the first article of the Fuxi series (Alibaba Cloud), sections 2 to 4; Koordinator's
//! elastic quotas for the hierarchy, minimums that are not lent and the largest remainder. docs/quota.md lists where
//! the article's text is repaired.

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
pub use instance::{Concern, Group, GroupInstance};
pub use per_user::PerUser;
pub use pour::{Bucket, Method, Poured, filled, pour};
