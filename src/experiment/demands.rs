//! What was submitted, by stage and rounded demand.

use std::collections::BTreeMap;

/// How many tasks asked for what.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands {
    kinds: BTreeMap<(Option<Box<str>>, Vec<u64>), u64>,
}

impl Demands {
    pub fn add(&mut self, stage: Option<&str>, demand: &[u64], tasks: u64) {
        let rounded = demand.iter().map(|&amount| eighth(amount)).collect();
        *self.kinds.entry((stage.map(Into::into), rounded)).or_default() += tasks;
    }

    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &[u64], u64)> {
        self.kinds.iter().map(|((stage, demand), tasks)| (stage.as_deref(), demand.as_slice(), *tasks))
    }
}

/// An amount rounded down to an eighth of the power of two below it.
fn eighth(amount: u64) -> u64 {
    let step = 1u64 << (63 - (amount | 8).leading_zeros()).saturating_sub(3);
    amount / step * step
}
