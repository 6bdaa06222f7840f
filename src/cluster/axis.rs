//! Classes of amounts, a quarter of an octave wide.

/// How many octaves below the largest machine have classes of their own; less than that is one class.
const OCTAVES: u32 = 12;

/// Classes in an octave, as a power of two.
const PARTS: u32 = 2;

/// The classes of one resource: class 0 begins at nothing, the last one has no end.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// What is taken from an amount's raw class.
    offset: u32,
    /// The least amount of each class and those above it.
    pub least: Vec<u64>,
}

impl Axis {
    /// Classes for amounts up to about `most`; at most 49.
    pub fn new(most: u64) -> Axis {
        let top = raw(most.max(1));
        let offset = top.saturating_sub(OCTAVES << PARTS);
        let mut axis = Axis { offset, least: vec![0] };
        for class in offset + 1..=top {
            let (octave, part) = (class >> PARTS, u128::from(class & ((1 << PARTS) - 1)));
            // Rounded up: below four some classes of an octave are empty.
            axis.least.push((((part + (1 << PARTS)) << octave).div_ceil(1 << PARTS)) as u64);
        }
        axis
    }

    pub fn class(&self, amount: u64) -> usize {
        if amount == 0 {
            return 0;
        }
        (raw(amount).saturating_sub(self.offset) as usize).min(self.least.len() - 1)
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
            let axis = Axis::new(most);
            assert!(axis.least.len() <= 49 && axis.least.is_sorted(), "{:?}", axis.least);
            for amount in (0..2000).chain([most / 3, most - 1, most]).filter(|amount| *amount <= most) {
                let class = axis.class(amount);
                assert!(axis.least[class] <= amount, "{amount} of {most}");
                assert!(axis.least.get(class + 1).is_none_or(|least| *least > amount), "{amount} of {most}");
            }
            assert_eq!(axis.class(u64::MAX), axis.least.len() - 1);
        }
    }
}
