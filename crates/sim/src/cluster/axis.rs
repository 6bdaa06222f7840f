//! Classes of amounts. A class is a quarter of an octave wide, or a whole octave for amounts that are small compared with the largest
//! machine.
//!
//! Every class costs a bit change whenever a machine's free amount passes it, and if a core of a full machine becomes free, all classes
//! below one core are passed. Small amounts have few classes because small tasks rarely have to search for room.

/// The number of octaves below the largest machine with classes of a quarter octave.
const FINE: u32 = 6;

/// The number of octaves below the fine ones; each has one class. All smaller amounts are one class.
const COARSE: u32 = 6;

/// The binary logarithm of the number of classes in a fine octave.
const PARTS: u32 = 2;

/// The number of raw classes of 64-bit amounts.
const RAW: usize = 64 << PARTS;

/// The classes of one resource: class 0 begins at 0, the last one has no upper limit.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct ClassAxis {
    /// The class of each raw class.
    #[serde(with = "plimsoll_base::checkpoint::array")]
    of: [u8; RAW],
    /// The least amount of each class.
    pub least: Vec<u64>,
}

impl ClassAxis {
    /// Creates at most 34 classes for amounts up to about `most`.
    pub fn new(most: u64) -> ClassAxis {
        let top = raw(most.max(1));
        let (fine, coarse) = (top.saturating_sub(FINE << PARTS), top.saturating_sub((FINE + COARSE) << PARTS));
        let mut axis = ClassAxis { of: [0; RAW], least: vec![0] };
        for class in 0..RAW as u32 {
            let (octave, part) = (class >> PARTS, u128::from(class & ((1 << PARTS) - 1)));
            if class > coarse && class <= top && (class > fine || part == 0) {
                // Rounded up. For amounts below four, some classes of an octave are empty.
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

/// Returns the raw class of an amount: its octave and the quarter within it.
fn raw(amount: u64) -> u32 {
    let octave = amount.ilog2();
    // The bits behind the first one.
    let part = (amount << amount.leading_zeros() << 1) >> (u64::BITS - PARTS);
    (octave << PARTS) + part as u32
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
