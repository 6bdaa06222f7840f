//! Tests of the methods against the definition, and of invariants.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::{Exact, Number};

fn exact(value: i64) -> Exact {
    Exact::ratio(value, 1)
}

/// Returns a small amount: often whole, often 0.
fn draw(rng: &mut ChaCha8Rng, most: i64) -> Exact {
    match rng.random_range(0..6) {
        0 => Exact::ZERO,
        1 => Exact::ratio(rng.random_range(0..=2 * most), rng.random_range(1..=7)),
        _ => exact(rng.random_range(0..=most)),
    }
}

/// Returns buckets, some with ratio 0, without room, or with equal saturation; `lows` adds minimums that count as water.
fn buckets(rng: &mut ChaCha8Rng, lows: bool) -> Vec<Bucket<Exact>> {
    let bucket = |rng: &mut ChaCha8Rng| {
        let (a, b) = (draw(rng, 20), draw(rng, 20));
        let low = if lows { a.clone().min(b.clone()) } else { Exact::ZERO };
        Bucket { low, high: a.max(b), ratio: draw(rng, 4) }
    };
    (0..rng.random_range(1..9)).map(|_| bucket(rng)).collect()
}

/// Asserts the definition: each bucket contains `min(high, max(low, h ratio))`. Together they contain the total (or the amount that fits
/// into them), and no lower level achieves this.
fn is_defined(total: &Exact, buckets: &[Bucket<Exact>], poured: &Poured<Exact>) {
    let sum = |of: &dyn Fn(&Bucket<Exact>) -> Exact| buckets.iter().fold(Exact::ZERO, |sum, bucket| &sum + &of(bucket));
    for (bucket, content) in buckets.iter().zip(&poured.content) {
        let share = &poured.level * &bucket.ratio;
        assert_eq!(*content, bucket.high.clone().min(bucket.low.clone().max(share)), "{bucket:?} at {}", poured.level);
    }
    let fits = sum(&|bucket| if bucket.ratio.is_zero() { bucket.low.clone() } else { bucket.high.clone() });
    let given = total.clone().min(fits).max(sum(&|bucket| bucket.low.clone()));
    assert_eq!(poured.content.iter().fold(Exact::ZERO, |sum, content| &sum + content), given);
    if poured.level.is_positive() {
        let below = buckets.iter().map(|bucket| &bucket.low / &bucket.ratio.clone().max(Exact::ratio(1, 1000)));
        // All lower levels are represented by one between the last change point and this level.
        let before = below.filter(|point| *point < poured.level).max().unwrap_or(Exact::ZERO);
        let half = &(&before + &poured.level) * &Exact::ratio(1, 2);
        assert!(filled(buckets, &half) < given, "as much is held at {half} as at {}", poured.level);
    }
}

#[test]
fn all_methods_give_what_is_defined() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (mut rounds, mut at_a_boundary, mut nothing_full) = (0, 0, 0);
    for case in 0..40_000 {
        let buckets = buckets(&mut rng, case % 2 == 1);
        let total = draw(&mut rng, 80);
        let sorted = pour(Method::Sort, &total, &buckets);
        let iterative = pour(Method::Iterative, &total, &buckets);
        assert_eq!((&sorted.content, &sorted.level), (&iterative.content, &iterative.level), "{total} {buckets:?}");
        let tree = by_tree(&total, &buckets).expect("small numbers");
        assert_eq!((&sorted.content, &sorted.level), (&tree.content, &tree.level), "{total} {buckets:?}");
        is_defined(&total, &buckets, &sorted);
        rounds = rounds.max(iterative.rounds);
        let full = |bucket: &&Bucket<Exact>| bucket.high == &sorted.level * &bucket.ratio && bucket.high.is_positive();
        at_a_boundary += usize::from(buckets.iter().any(|bucket| full(&bucket)));
        nothing_full += usize::from(sorted.content.iter().zip(&buckets).all(|(held, bucket)| *held < bucket.high));
    }
    // The draws must include cases without a boundary under the article's strict test.
    assert!(rounds >= 5 && at_a_boundary > 1000 && nothing_full > 1000, "{rounds} {at_a_boundary} {nothing_full}");
}

/// With pairwise coprime denominators the level is a fraction of thousands of digits.
#[test]
fn long_fractions_are_as_defined() {
    let primes: Vec<i64> = (1000..).filter(|n| (2..40).all(|d| n % d != 0)).take(600).collect();
    let bucket = |(i, prime): (usize, &i64)| Bucket {
        low: Exact::ratio(i as i64 % 3, *prime),
        high: Exact::ratio(2 + i as i64 * 7919 % 9973, primes[primes.len() - 1 - i]),
        ratio: Exact::ratio(1 + i as i64 % 97, primes[(i * 7) % primes.len()]),
    };
    let buckets: Vec<Bucket<Exact>> = primes.iter().enumerate().map(bucket).collect();
    for total in [exact(0), exact(1), exact(300), exact(1200), exact(1 << 20)] {
        let poured = pour(Method::Sort, &total, &buckets);
        is_defined(&total, &buckets, &poured);
    }
}

#[test]
fn floats_come_near() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for case in 0..5_000 {
        let exact = buckets(&mut rng, case % 2 == 1);
        let total = draw(&mut rng, 80);
        let floats: Vec<Bucket<f64>> = exact
            .iter()
            .map(|bucket| Bucket { low: bucket.low.to_f64(), high: bucket.high.to_f64(), ratio: bucket.ratio.to_f64() })
            .collect();
        let right = pour(Method::Sort, &total, &exact);
        for method in [Method::Sort, Method::Iterative] {
            let near = pour(method, &total.to_f64(), &floats);
            for (near, right) in near.content.iter().zip(&right.content) {
                assert!((near - right.to_f64()).abs() < 1e-9, "{method:?}: {near} for {right}");
            }
        }
    }
}

/// The adversarial case of the article: in every round only one group has enough.
#[test]
fn the_iterative_method_takes_a_round_for_each_group_at_worst() {
    const GROUPS: i64 = 40;
    let (mut left, mut before) = (exact(1), Exact::ZERO);
    let mut buckets: Vec<Bucket<Exact>> = Vec::new();
    for i in 0..GROUPS {
        // The request is above the amount that the previous round gave to each group, and below the amount that this round gives. The last
        // group never has enough.
        let part = &left / &exact(GROUPS - i);
        let between = &(&before + &part) * &Exact::ratio(1, 2);
        let high = if i + 1 < GROUPS { between } else { exact(1) };
        (left, before) = (&left - &high, part);
        buckets.push(Bucket { low: Exact::ZERO, high, ratio: Exact::ONE });
    }
    let poured = pour(Method::Iterative, &exact(1), &buckets);
    assert_eq!(poured.content, pour(Method::Sort, &exact(1), &buckets).content);
    assert_eq!(poured.rounds, 40);
}

fn one(total: i64, groups: &[(&str, [i64; 3])]) -> GroupInstance {
    let group = |(name, [min, request, ratio]): &(&str, [i64; 3])| {
        let group = QuotaGroup::new(*name, vec![exact(*request)]);
        QuotaGroup { min: vec![exact(*min)], ratio: vec![exact(*ratio)], ..group }
    };
    let groups = groups.iter().map(group).collect();
    GroupInstance::new(vec!["cpu".to_owned()], vec![Some(exact(total))], groups).expect("a good instance")
}

fn runtime(quota: Quota, instance: &GroupInstance) -> Vec<String> {
    let allocation = quota.allocate(instance).expect("solved");
    allocation.groups.iter().map(|group| group.runtime[0].to_string()).collect()
}

/// Total 100 and requests 5, 90, 90. Read literally, the article lends the first group's surplus in every round again and hands out 213.
#[test]
fn a_lender_lends_once() {
    let instance = one(100, &[("a", [0, 5, 1]), ("b", [0, 90, 1]), ("c", [0, 90, 1])]);
    for method in [Method::Sort, Method::Iterative] {
        assert_eq!(runtime(Quota { method, ..Quota::default() }, &instance), ["5", "95/2", "95/2"]);
    }
}

#[test]
fn the_variants_differ_when_a_minimum_is_not_in_proportion() {
    let instance = one(50, &[("a", [10, 30, 1]), ("b", [0, 30, 1])]);
    assert_eq!(runtime(Quota::default(), &instance), ["30", "20"]);
    let level = Quota { variant: Variant::MaxMinLevel, ..Quota::default() };
    assert_eq!(runtime(level, &instance), ["25", "25"]);
}

/// Rounding in each round differs from rounding once at the end, which would give 11, 14 and 8.
#[test]
fn the_largest_remainder_is_taken_in_every_round() {
    let instance = one(33, &[("a", [2, 20, 5]), ("b", [0, 14, 9]), ("c", [4, 19, 2])]);
    assert_eq!(runtime(Quota::default(), &instance), ["79/7", "14", "54/7"]);
    let rounded = Quota { rounding: Rounding::LargestRemainder, ..Quota::default() };
    assert_eq!(runtime(rounded, &instance), ["12", "14", "7"]);
}

/// With weights 7, 1, 8, 7, 9, the 17th unit removes the only unit of the second group.
#[test]
fn the_largest_remainder_is_not_monotone() {
    let at = |total, rounding| {
        let groups = [7, 1, 8, 7, 9].map(|ratio| [0, 20, ratio]);
        let named: Vec<(&str, [i64; 3])> = ["a", "b", "c", "d", "e"].into_iter().zip(groups).collect();
        runtime(Quota { rounding, ..Quota::default() }, &one(total, &named))
    };
    assert_eq!(at(16, Rounding::LargestRemainder), ["4", "1", "4", "3", "4"]);
    assert_eq!(at(17, Rounding::LargestRemainder)[1], "0");
    for total in 0..110 {
        let (before, after) = (at(total, Rounding::Monotone), at(total + 1, Rounding::Monotone));
        let number = |text: &String| text.parse::<i64>().expect("whole");
        assert!(before.iter().zip(&after).all(|(a, b)| number(a) <= number(b)), "{before:?} {after:?}");
    }
}

/// Shows why handing out leftover units in the order of names is not monotone. With ratios 3, 3, 7, 7 and 2 units, the fractions are .3,
/// .3, .7, .7, and the units would go to the first two. With 3 units they are .45, .45, 1.05, 1.05, and the second group would lose its
/// unit.
#[test]
fn a_unit_once_given_stays() {
    let groups = |total| one(total, &[("a", [0, 9, 3]), ("b", [0, 9, 3]), ("c", [0, 9, 7]), ("d", [0, 9, 7])]);
    let rounded = |total| runtime(Quota { rounding: Rounding::Monotone, ..Quota::default() }, &groups(total));
    assert_eq!(rounded(2), ["0", "0", "1", "1"]);
    assert_eq!(rounded(3), ["0", "0", "2", "1"]);
    assert_eq!(rounded(4), ["0", "0", "2", "2"]);
    assert_eq!(rounded(5), ["1", "0", "2", "2"]);
}
