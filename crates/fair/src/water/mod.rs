//! The water level among sibling groups: the current quota of one resource of each group.
//!
//! Each group is a bucket whose width is its ratio. The total is poured over all buckets at once, and the level at which it is used up
//! determines each group's runtime quota ([`ReducedGroup::runtime`]). All arithmetic is exact: inputs are integers, the level is a fraction
//! of two 64-bit numbers, comparisons cross-multiply in 128 bits.
//!
//! [`Water`] maintains the level under changes of one group in O(log groups). [`by_selection`] computes the same level from scratch. This
//! module only rounds down and does not support a hierarchy.
//!
//! Let `A` and `R` be the sums of amounts and ratios of the break points up to `h` (points where a group enters count negatively). The
//! amount handed out at level `h` is `base + A + h (open - R)`. This formula is valid for both [`Semantics`]. Each method searches for the
//! first break point at which this amount reaches the target.
//!
//! Source: the first article on FuxiMaster, sections 3 and 4; its claim of O(log N) per change.

mod group;
mod level;
mod node;
mod order;
mod pool;
mod seek;
mod selection;
#[cfg(test)]
mod tests;

pub use group::{Group, LIMIT, ReducedGroup, Semantics, UnusedMin};
pub use level::Level;
pub use pool::{GroupId, Water};
pub use selection::by_selection;
