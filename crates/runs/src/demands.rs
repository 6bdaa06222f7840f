//! Counts the submitted tasks by stage and kind of demand.

use std::collections::BTreeMap;

/// Counts tasks by demand. Demands are of one kind if they are equal in every resource after rounding: each amount is rounded down to a
/// multiple of an eighth of the largest power of two that does not exceed it. A kind is represented by the mean demand of its tasks, which
/// is their demand if all have the same demand.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Demands {
    kinds: BTreeMap<(Option<Box<str>>, Vec<u64>), Tally>,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Tally {
    tasks: u64,
    /// The sum of the tasks' demands, by resource.
    sums: Vec<u128>,
}

impl Demands {
    pub fn add(&mut self, stage: Option<&str>, demand: &[u64], tasks: u64) {
        let rounded = demand.iter().map(|&amount| eighth(amount)).collect();
        let kind = self.kinds.entry((stage.map(Into::into), rounded)).or_default();
        kind.tasks += tasks;
        kind.sums.resize(demand.len(), 0);
        for (sum, &amount) in kind.sums.iter_mut().zip(demand) {
            *sum += u128::from(amount) * u128::from(tasks);
        }
    }

    /// Returns the stage, the mean demand in base units, and the number of tasks of each kind.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, impl Iterator<Item = f64>, u64)> {
        self.kinds.iter().filter(|(_, kind)| kind.tasks > 0).map(|((stage, _), kind)| {
            let mean = kind.sums.iter().map(|&sum| sum as f64 / kind.tasks as f64);
            (stage.as_deref(), mean, kind.tasks)
        })
    }
}

/// Rounds an amount down to a multiple of an eighth of the largest power of two that does not exceed it.
fn eighth(amount: u64) -> u64 {
    let step = 1u64 << (63 - (amount | 8).leading_zeros()).saturating_sub(3);
    amount / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_stands_for_its_tasks_with_their_mean() {
        let mut demands = Demands::default();
        // A core is 1000 base units, which are rounded down to 960.
        demands.add(None, &[1000, 0], 7);
        demands.add(Some("map"), &[1000, 2048], 1);
        demands.add(Some("map"), &[1020, 2048], 3);
        let kinds: Vec<_> = demands.iter().map(|(stage, mean, tasks)| (stage, mean.collect(), tasks)).collect();
        assert_eq!(kinds, [(None, vec![1000.0, 0.0], 7), (Some("map"), vec![1015.0, 2048.0], 4)]);
    }
}
