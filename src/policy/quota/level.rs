//! The level of one set of siblings in one resource, found anew by sorting: the obvious way, and the twin of the fast one.

use std::cmp::Ordering;

use super::file::Variant;

/// A fraction of two 64-bit numbers, the second above 0, compared exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fraction(pub u64, pub u64);

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        (u128::from(self.0) * u128::from(other.1)).cmp(&(u128::from(other.0) * u128::from(self.1)))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

/// What of a group decides: what it has at level 0, what it has when there is enough, and how fast it gets there
/// (0 exactly if it is there from the start).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub base: u64,
    pub reach: u64,
    pub ratio: u64,
}

/// Siblings that share a total.
#[derive(Clone, Debug)]
pub(super) struct Siblings {
    variant: Variant,
    total: u64,
    members: Vec<Standing>,
    level: Option<Fraction>,
}

impl Siblings {
    pub fn new(variant: Variant, members: usize) -> Siblings {
        Siblings { variant, total: 0, members: vec![Standing::default(); members], level: None }
    }

    pub fn set_total(&mut self, total: u64) {
        if std::mem::replace(&mut self.total, total) != total {
            self.level = None;
        }
    }

    pub fn change(&mut self, member: usize, standing: Standing) {
        if std::mem::replace(&mut self.members[member], standing) != standing {
            self.level = None;
        }
    }

    /// The lowest level at which the total is handed out, or all that is asked for.
    pub fn level(&mut self) -> Fraction {
        *self.level.get_or_insert_with(|| find(self.variant, &self.members, self.total))
    }

    /// The runtime quota, rounded down.
    pub fn runtime(&mut self, member: usize) -> u64 {
        let Fraction(above, below) = self.level();
        let Standing { base, reach, ratio } = self.members[member];
        let poured = u128::from(above) * u128::from(ratio) / u128::from(below);
        let runtime = match self.variant {
            Variant::MinPlusShare => u128::from(base) + poured,
            Variant::MaxMinLevel => poured.max(u128::from(base)),
        };
        runtime.min(u128::from(reach)) as u64
    }

    /// The lowest level at which a member's runtime quota is this, if any level above 0 is.
    pub fn level_for(&self, member: usize, runtime: u64) -> Option<Fraction> {
        let Standing { base, reach, ratio } = self.members[member];
        let rising = ratio > 0 && (base + 1..=reach).contains(&runtime);
        rising.then(|| match self.variant {
            Variant::MinPlusShare => Fraction(runtime - base, ratio),
            Variant::MaxMinLevel => Fraction(runtime, ratio),
        })
    }
}

/// Walks the levels at which members start and stop to rise, in order, up to where the target is handed out.
fn find(variant: Variant, members: &[Standing], total: u64) -> Fraction {
    let sum = |part: fn(&Standing) -> u64| members.iter().map(|member| i128::from(part(member))).sum::<i128>();
    let target = i128::from(total).min(sum(|member| member.reach)) - sum(|member| member.base);
    if target <= 0 {
        return Fraction(0, 1);
    }
    // Of those that rise: what is handed out at level h is `handed + h open`.
    let (mut handed, mut open) = (0i128, 0i128);
    let mut points: Vec<(Fraction, bool)> = Vec::new();
    for member in members.iter().filter(|member| member.ratio > 0) {
        let from_ground = variant == Variant::MinPlusShare || member.base == 0;
        let stop = if variant == Variant::MinPlusShare { member.reach - member.base } else { member.reach };
        points.push((Fraction(stop, member.ratio), false));
        if from_ground {
            open += i128::from(member.ratio);
        } else {
            points.push((Fraction(member.base, member.ratio), true));
        }
    }
    points.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (Fraction(amount, ratio), starts) in points {
        let (amount, ratio) = (i128::from(amount), i128::from(ratio));
        if open > 0 && (target - handed) * ratio <= amount * open {
            break;
        }
        let sign = if starts { 1 } else { -1 };
        handed -= sign * amount;
        open += sign * ratio;
    }
    Fraction((target - handed) as u64, open as u64)
}
