//! Tests of sorted runs of records in temporary files.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::number::Fraction;

fn spill(memory: u64) -> Spill {
    Spill { memory, folder: std::env::temp_dir() }
}

fn records(sorted: &Sorted) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = sorted.cursor().expect("readable");
    let mut records = Vec::new();
    while cursor.advance().expect("readable") {
        records.push((cursor.key().to_owned(), cursor.value().to_owned()));
    }
    assert!(!cursor.advance().expect("readable"), "the end stays the end");
    records
}

#[test]
fn spilled_records_are_in_the_order_of_a_sorted_map() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for (count, memory) in [(0, 0), (1, 0), (3000, u64::MAX), (3000, 100_000), (300, 0), (9000, 600), (20_000, 600)] {
        let mut want = std::collections::BTreeMap::new();
        let mut sorter = spill(memory).sorter();
        for number in 0..count {
            let length = rng.random_range(0..if number % 1000 == 7 { 40_000 } else { 24 });
            let mut key: Vec<u8> = (0..length).map(|_| rng.random_range(0..3)).collect();
            key.extend_from_slice(&(number as u32).to_be_bytes());
            let value = vec![number as u8; rng.random_range(0..9)];
            sorter.push(&key, &value).expect("writable");
            want.insert(key, value);
        }
        let sorted = sorter.finish().expect("writable");
        assert_eq!(sorted.is_spilled(), count > 1 && memory < 200_000, "{count} records in {memory} bytes");
        let want: Vec<_> = want.into_iter().collect();
        // The records may be read several times.
        assert!(records(&sorted) == want && records(&sorted) == want, "{count} records in {memory} bytes");
    }
}

/// Compares fractions of any size: their floors, then the inverses of the rests. (`Fraction` compares doubles if a product exceeds 128 bits.)
fn exact_order(a: (i128, i128), b: (i128, i128)) -> std::cmp::Ordering {
    let rest = |(numerator, denominator): (i128, i128)| (denominator, numerator.rem_euclid(denominator));
    a.0.div_euclid(a.1).cmp(&b.0.div_euclid(b.1)).then_with(|| match (rest(a), rest(b)) {
        ((_, 0), (_, 0)) => std::cmp::Ordering::Equal,
        ((_, 0), _) => std::cmp::Ordering::Less,
        (_, (_, 0)) => std::cmp::Ordering::Greater,
        (a, b) => exact_order(b, a),
    })
}

#[test]
fn keys_are_in_the_order_of_their_values() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let part = |rng: &mut ChaCha8Rng| {
        let bits = rng.random_range(0..120);
        i128::from(rng.random::<i64>()) << 56 >> bits
    };
    let mut fractions: Vec<Fraction> = (0..600)
        .filter_map(|_| Fraction::reduced(part(&mut rng), part(&mut rng).abs().max(1)))
        .chain((-9..9).map(Fraction::from))
        .collect();
    for big in [i128::MAX, i128::MAX - 1, i128::MAX - 2] {
        fractions.extend([Fraction::reduced(big - 1, big), Fraction::reduced(1, big)].into_iter().flatten());
        fractions.extend(Fraction::reduced(big, 1).into_iter().chain(Fraction::reduced(-big, 1)));
    }
    let key = |value: &Fraction| Encoder::default().key_fraction(*value).bytes.clone();
    for a in &fractions {
        let mut bytes = Encoder::default();
        bytes.fraction(*a);
        assert_eq!(Decoder::new(&bytes.bytes).fraction().expect("a fraction"), *a);
        for b in &fractions {
            assert_eq!(key(a).cmp(&key(b)), exact_order(a.parts(), b.parts()), "{a} and {b}");
        }
    }
    let texts: Vec<Vec<u8>> =
        (0..300).map(|_| (0..rng.random_range(0..6)).map(|_| [0, 1, 0xff][rng.random_range(0..3)]).collect()).collect();
    let key = |text: &[u8], number: u64| Encoder::default().key_text(text).key_sequence(number).bytes.clone();
    for (a, b) in texts.iter().zip(texts.iter().rev()) {
        assert_eq!(key(a, 1).cmp(&key(b, 0)), (a, 1).cmp(&(b, 0)), "{a:?} and {b:?}");
        assert_eq!(Decoder::split_sequence(&key(a, 7)).expect("a key").1, 7);
    }
}

#[test]
fn values_are_read_back_and_cut_records_are_errors() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..500 {
        let (whole, signed) = (rng.random::<u64>() >> rng.random_range(0..64), rng.random::<i64>());
        let mut bytes = Encoder::default();
        bytes.integer(whole).signed(signed).optional(None).optional(Some(whole)).text(None).text(Some("é")).slice(b"x");
        let mut from = Decoder::new(&bytes.bytes);
        assert_eq!((from.integer().ok(), from.signed().ok()), (Some(whole), Some(signed)));
        assert_eq!((from.optional().ok(), from.optional().ok()), (Some(None), Some(Some(whole))));
        assert_eq!((from.text().ok(), from.text().ok()), (Some(None), Some(Some("é"))));
        assert_eq!((from.slice().ok(), from.is_empty()), (Some(&b"x"[..]), true));
        let cut = &bytes.bytes[..bytes.bytes.len() - 1];
        let mut from = Decoder::new(cut);
        _ = (from.integer(), from.signed(), from.optional(), from.optional(), from.text(), from.text());
        assert!(from.slice().expect_err("cut").to_string().contains("damaged"));
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_with_its_name() {
    let mut sorter = Spill { memory: 0, folder: "/absent/folder".into() }.sorter();
    sorter.push(b"a", b"").expect("in memory");
    let message = sorter.push(b"b", b"").expect_err("no such folder").to_string();
    assert!(message.contains("/absent/folder"), "{message}");
}
