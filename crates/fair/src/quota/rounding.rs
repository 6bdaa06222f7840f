//! Rounding to whole units. Both functions hand out the total, or the requests if they are less.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pour::{Bucket, Poured};
use crate::{Exact, Number};

/// Applies the largest remainder method (Hamilton) in every round. The rest is split by ratio, and each part is rounded down to whole
/// units. The remaining units go to the largest remainders, ties by name. A group that reaches its request returns the excess for the next
/// round.
///
/// Amounts and total are whole and each `low` is 0. Returns the content of every bucket and the number of rounds. The content adds up to
/// the total, or to the requests if they are less. The content of a group is not monotone in the total. Source: Koordinator,
/// `quotaTree.redistribution` (elastic quota core).
pub fn largest_remainder(total: &Exact, buckets: &[Bucket<Exact>], names: &[&str]) -> (Vec<Exact>, usize) {
    let mut content = vec![Exact::ZERO; buckets.len()];
    let mut taking: Vec<usize> = (0..buckets.len()).filter(|&i| buckets[i].high.is_positive()).collect();
    let mut left = total.clone();
    let mut rounds = 0;
    loop {
        let ratios = taking.iter().fold(Exact::ZERO, |sum, &i| &sum + &buckets[i].ratio);
        if !left.is_positive() || !ratios.is_positive() {
            return (content, rounds);
        }
        rounds += 1;
        let mut rest = left.clone();
        let mut remainders = Vec::with_capacity(taking.len());
        for &i in taking.iter().filter(|&&i| buckets[i].ratio.is_positive()) {
            let share = &(&buckets[i].ratio * &left) / &ratios;
            let whole = share.floor();
            remainders.push((Reverse(&share - &whole), names[i], i));
            rest = &rest - &whole;
            content[i] = &content[i] + &whole;
        }
        remainders.sort();
        for (_, _, i) in remainders {
            if !rest.is_positive() {
                break;
            }
            content[i] = &content[i] + &Exact::ONE;
            rest = &rest - &Exact::ONE;
        }
        left = Exact::ZERO;
        taking.retain(|&i| {
            let hungry = content[i] < buckets[i].high;
            if !hungry {
                left = &left + &(&content[i] - &buckets[i].high);
                content[i] = buckets[i].high.clone();
            }
            hungry
        });
    }
}

/// Hands out whole units one by one: the next unit goes to the group that reaches its next whole unit at the lowest level, ties by name.
///
/// The order of the units does not depend on their number, and no group loses a unit if the total grows: the divisor method of Jefferson
/// and D'Hondt between `low` and `high`. The level of `poured` determines the first units; fewer than one unit per group remain, and no
/// group has less than its exact share rounded down. Amounts and total are whole.
pub fn monotone(poured: &Poured<Exact>, buckets: &[Bucket<Exact>], names: &[&str]) -> Vec<Exact> {
    let mut content: Vec<Exact> = poured.content.iter().map(Exact::floor).collect();
    let mut rest = poured.content.iter().zip(&content).fold(Exact::ZERO, |sum, (all, whole)| &sum + &(all - whole));
    let next = |i: usize, held: &Exact| {
        let bucket = &buckets[i];
        let room = *held < bucket.high && !bucket.ratio.is_zero();
        room.then(|| Reverse((&(held + &Exact::ONE) / &bucket.ratio, names[i], i)))
    };
    let mut queue: BinaryHeap<_> = content.iter().enumerate().filter_map(|(i, held)| next(i, held)).collect();
    while rest.is_positive() {
        let Some(Reverse((_, _, i))) = queue.pop() else { break };
        content[i] = &content[i] + &Exact::ONE;
        rest = &rest - &Exact::ONE;
        queue.extend(next(i, &content[i]));
    }
    content
}
