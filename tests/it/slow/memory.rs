//! Past usage that decays, from its definition alone: `docs/memory.md`.

/// The half-life (if absent, usage never decays) and the length of the accounting period, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub half_life: Option<u64>,
    pub period: u64,
}

impl Memory {
    /// Returns the text of the setting.
    pub fn text(self) -> String {
        match self.half_life {
            None => format!("inf:{}us", self.period),
            Some(0) => format!("0:{}us", self.period),
            Some(half_life) => format!("{half_life}us:{}us", self.period),
        }
    }

    /// Returns the part of an amount that remains after one period, in steps of 2^-32.
    fn factor(self) -> u128 {
        let factor = match self.half_life {
            None => 1.0,
            Some(0) => 0.0,
            Some(half_life) => 0.5_f64.powf(self.period as f64 / half_life as f64),
        };
        (factor * 4_294_967_296.0) as u128
    }

    /// Returns the remainder of an amount after one period.
    pub fn left(self, amount: u128) -> u128 {
        (amount * self.factor()) >> 32
    }

    /// Returns the moving average of the allocation, sampled at the ends of periods, in steps of 2^-32, plus the charges for starts.
    /// Each entry of `held` is an amount, its start and its end.
    pub fn average(self, held: &[(u64, u64, u64)], now: u64) -> u128 {
        let forgotten = (1 << 32) - self.factor();
        let charges = |from: u64, to: u64| -> u128 {
            held.iter().filter(|it| (from..to).contains(&it.1)).map(|it| u128::from(it.0) * forgotten).sum()
        };
        let mut average = 0;
        for end in (self.period..=now).step_by(self.period as usize) {
            let sample = held.iter().filter(|(_, from, to)| *from < end && end <= *to);
            let sample: u128 = sample.map(|it| u128::from(it.0)).sum();
            average = self.left(average + charges(end - self.period, end)) + sample * forgotten;
        }
        average + charges(now / self.period * self.period, now + 1)
    }

    /// Returns the decayed usage of the periods that have ended by `now`. Each entry of `held` is an amount, its start and its end.
    pub fn past(self, held: &[(u64, u64, u64)], now: u64) -> u128 {
        let mut past = 0;
        for end in (self.period..=now).step_by(self.period as usize) {
            let begin = end - self.period;
            let within = |&(amount, from, to): &(u64, u64, u64)| {
                u128::from(amount) * u128::from(to.min(end).saturating_sub(from.max(begin)))
            };
            past = self.left(past) + held.iter().map(within).sum::<u128>();
        }
        past
    }
}
