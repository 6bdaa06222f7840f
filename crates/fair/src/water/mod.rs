//! The water level among sibling groups: the quota of one resource that each has right now.
//!
//! Every group is a bucket as wide as its ratio; the total is poured over all of them at once, and the level at which
//! it is used up decides every group's runtime quota ([`Standing::runtime`]). All of it is exact: integers in, the
//! level a fraction of two 64-bit numbers, comparisons by cross-multiplication in 128 bits.
//!
//! [`Water`] keeps the level under changes of one group in O(log groups); [`by_selection`] finds it from nothing and says
//! the same. No rounding rule lives here beyond the floor, and no hierarchy.
//!
//! With `A` and `R` the amounts and ratios of the break points up to `h` (those of points where a group enters counted
//! negatively), the amount handed out at level `h` is `base + A + h (open - R)`: that one formula serves both
//! [`Semantics`], and every method here looks for the first break point at which it reaches the target.
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

pub use group::{Group, LIMIT, Semantics, Standing, UnusedMin};
pub use level::Level;
pub use pool::{GroupId, Water};
pub use selection::by_selection;
