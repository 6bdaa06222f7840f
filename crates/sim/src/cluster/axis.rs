//! Classes of amounts: a quarter of an octave wide, and a whole one where amounts are small beside the largest machine.
//!
//! Every class costs a bit to change whenever a machine fills up or empties past it, and a full machine that gets a core back
//! passes all classes below one core; a task that small hardly ever has to look for room.

/// How many octaves below the largest machine have classes of a quarter.
const FINE: u32 = 6;

/// How many octaves below those have a class each; less than that is one class.
const COARSE: u32 = 6;

/// Classes in an octave, as a power of two.
const PARTS: u32 = 2;

/// How many raw classes amounts of 64 bits have.
const RAW: usize = 64 << PARTS;

/// The classes of one resource: class 0 begins at nothing, the last one has no end.
#[derive(Clone, Debug)]
pub(super) struct ClassAxis {
    /// The class of each raw class.
    of: [u8; RAW],
    /// The least amount of each class and those above it.
    pub least: Vec<u64>,
}

impl ClassAxis {
    /// Classes for amounts up to about `most`; at most 34.
    pub fn new(most: u64) -> ClassAxis {
        let top = raw(most.max(1));
        let (fine, coarse) = (top.saturating_sub(FINE << PARTS), top.saturating_sub((FINE + COARSE) << PARTS));
        let mut axis = ClassAxis { of: [0; RAW], least: vec![0] };
        for class in 0..RAW as u32 {
            let (octave, part) = (class >> PARTS, u128::from(class & ((1 << PARTS) - 1)));
            if class > coarse && class <= top && (class > fine || part == 0) {
                // Rounded up: below four some classes of an octave are empty.
                axis.least.push((((part + (1 << PARTS)) << octave).div_ceil(1 << PARTS)) as u64);
            }
            axis.of[class as usize] = axis.least.len() as u8 - 1;
        }
        axis
    }

    pub fn class(&self, amount: u64) -> usize {
        if amount == 0 { 0 } else { usize::from(self.of[raw(amount) as usize]) }
    }
}

/// The octave of an amount and the part of it.
fn raw(amount: u64) -> u32 {
    let octave = amount.ilog2();
    let part = ((u128::from(amount) << PARTS) >> octave) as u32 & ((1 << PARTS) - 1);
    (octave << PARTS) + part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_is_theirs() {
        for most in [1, 5, 7, 64_000, 262_144, u64::MAX >> 4] {
            let axis = ClassAxis::new(most);
            assert!(axis.least.len() <= 34 && axis.least.is_sorted(), "{:?}", axis.least);
            for amount in (0..2000).chain([most / 3, most - 1, most]).filter(|amount| *amount <= most) {
                let class = axis.class(amount);
                assert!(axis.least[class] <= amount, "{amount} of {most}");
                assert!(axis.least.get(class + 1).is_none_or(|least| *least > amount), "{amount} of {most}");
            }
            assert_eq!(axis.class(u64::MAX), axis.least.len() - 1);
        }
    }
}
