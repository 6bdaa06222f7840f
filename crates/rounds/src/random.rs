//! The Mersenne Twister with the derived draws of Python's `random.Random`.
//!
//! Gavel's type order, its FIFO and its Gandiva draw from `random.Random(seed)`. This generator returns the same sequence (checked against
//! CPython in the tests). Source: Matsumoto and Nishimura 1998, `mt19937ar.c`; CPython, `Modules/_randommodule.c` and `Lib/random.py`.

const WORDS: usize = 624;
const SHIFT: usize = 397;

/// A generator that returns the numbers of Python's `random.Random(seed)`.
#[derive(Clone, Debug)]
pub struct PythonRandom {
    state: [u32; WORDS],
    next: usize,
}

impl PythonRandom {
    /// Creates the generator of `random.Random(seed)`.
    pub fn new(seed: u64) -> PythonRandom {
        let low = seed as u32;
        let high = (seed >> 32) as u32;
        let key: &[u32] = if high == 0 { &[low] } else { &[low, high] };
        let mut state = [0u32; WORDS];
        state[0] = 19_650_218;
        for i in 1..WORDS {
            let before = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        for _ in 0..WORDS {
            let mixed = (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_664_525);
            state[i] = (state[i] ^ mixed).wrapping_add(key[j]).wrapping_add(j as u32);
            (i, j) = (i + 1, (j + 1) % key.len());
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        for _ in 1..WORDS {
            let mixed = (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(1_566_083_941);
            state[i] = (state[i] ^ mixed).wrapping_sub(i as u32);
            i += 1;
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, next: WORDS }
    }

    /// Returns the next 32 bits.
    pub fn word(&mut self) -> u32 {
        if self.next == WORDS {
            for i in 0..WORDS {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
                let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + SHIFT) % WORDS] ^ (y >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Returns `random()`: a number in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// Returns `_randbelow(n)`: a number in `0..n`. `n` must be positive and below 2^32.
    pub fn below(&mut self, n: usize) -> usize {
        let bits = usize::BITS - n.leading_zeros();
        loop {
            let drawn = (self.word() >> (32 - bits)) as usize;
            if drawn < n {
                return drawn;
            }
        }
    }

    /// Returns the positions that `sample(items, 2)` selects from `n` items. `n` must be at least 2.
    pub fn sample_two(&mut self, n: usize) -> (usize, usize) {
        let first = self.below(n);
        // Up to this length Python moves the last item to the place of the selected one; above, it draws until the position is new.
        if n <= 21 {
            let second = self.below(n - 1);
            return (first, if second == first { n - 1 } else { second });
        }
        loop {
            let second = self.below(n);
            if second != first {
                return (first, second);
            }
        }
    }

    /// Permutes `items` as `shuffle(items)` does.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_python() {
        // CPython 3: random.Random(0).random() and so on.
        let mut random = PythonRandom::new(0);
        assert_eq!([random.unit(), random.unit()], [0.8444218515250481, 0.7579544029403025]);
        let mut items = [0, 1, 2, 3, 4];
        PythonRandom::new(5).shuffle(&mut items);
        assert_eq!(items, [0, 1, 3, 2, 4]);
        let mut random = PythonRandom::new(3);
        // random.Random(3).sample(range(5), 2), twice, then of range(30).
        assert_eq!([random.sample_two(5), random.sample_two(5), random.sample_two(30)], [(1, 4), (2, 3), (20, 18)]);
        let mut random = PythonRandom::new((1 << 40) + 7);
        assert_eq!((random.unit(), random.below(10)), (0.6137037779936511, 9));
    }
}
