//! Sorts the orders that a control gives at one instant.

use std::collections::HashSet;

use super::{Progress, Remote};
use crate::backend::{Batch, ControlOrder};

impl Remote<'_> {
    /// Sorts starts, ends and releases of one instant in the order of grants and completions, as in a run without a control. Messages that
    /// take different routes may arrive in another order.
    pub(super) fn in_order(&self, orders: &mut [ControlOrder]) {
        let number = |batch: &Batch| match self.batches.get(batch)? {
            Progress::Granted { number, .. } | Progress::Done { number, .. } | Progress::Over(.., number) => {
                Some(*number)
            }
            Progress::Running(_) => None,
        };
        let kinds: [fn(&ControlOrder) -> Option<&Batch>; 3] = [
            |order| if let ControlOrder::Start(batch) = order { Some(batch) } else { None },
            |order| if let ControlOrder::Over(batch) = order { Some(batch) } else { None },
            |order| if let ControlOrder::Free(batch) = order { Some(batch) } else { None },
        ];
        // If there are orders to split, halt or stop batches, all orders keep their sequence.
        if orders.iter().any(|order| {
            matches!(order, ControlOrder::Split { .. } | ControlOrder::Halt(_) | ControlOrder::Stop { .. })
        }) {
            return;
        }
        let mut original: Option<Vec<ControlOrder>> = None;
        for of_kind in kinds {
            let places: Vec<usize> =
                (0..orders.len()).filter(|at| of_kind(&orders[*at]).and_then(number).is_some()).collect();
            if places.is_sorted_by_key(|at| of_kind(&orders[*at]).and_then(number)) {
                continue;
            }
            original.get_or_insert_with(|| orders.to_vec());
            let mut sorted: Vec<ControlOrder> = places.iter().map(|at| orders[*at]).collect();
            sorted.sort_by_key(|order| of_kind(order).and_then(number));
            places.into_iter().zip(sorted).for_each(|(at, order)| orders[at] = order);
        }
        let Some(original) = original else { return };
        // A batch must be over before its units are free; otherwise the original sequence is restored.
        let mut free: HashSet<Batch> = HashSet::new();
        let early = |order: &ControlOrder| match order {
            ControlOrder::Free(batch) => {
                free.insert(*batch);
                false
            }
            ControlOrder::Over(batch) => free.contains(batch),
            _ => false,
        };
        if orders.iter().any(early) {
            orders.copy_from_slice(&original);
        }
    }
}
