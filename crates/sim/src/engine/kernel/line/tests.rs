//! Compares lines and offers with linear scans.

use super::*;
use crate::cluster::Placement;
use plimsoll_base::units::Resources;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

#[test]
fn agrees_with_a_scan_of_a_sorted_map() {
    for (seed, users, dims) in [(1, 20, 2), (2, 3000, 2), (3, 400, 3), (4, 5, 1)] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut line, mut map) = (Line::new(dims), BTreeMap::new());
        let mut at: Vec<Option<LineKey>> = vec![None; users];
        for _ in 0..20_000 {
            let user = rng.random_range(0..users);
            match at[user].take() {
                Some(place) => {
                    line.remove(&place);
                    map.remove(&place);
                }
                None => {
                    let place =
                        LineKey { rank: Rank::new(rng.random_range(0..8)), tie: user as u64, ..LineKey::default() };
                    let need: Vec<u64> = (0..dims).map(|_| rng.random_range(0..20)).collect();
                    line.insert(place, QueueId(user as u32), &need);
                    map.insert(place, (QueueId(user as u32), need));
                    at[user] = Some(place);
                }
            }
            let free: Vec<Vec<u64>> =
                (0..rng.random_range(0..4)).map(|_| (0..dims).map(|_| rng.random_range(0..6)).collect()).collect();
            let offers = Offers::for_line(&line, &free);
            let (rank, tie) = (Rank::new(rng.random_range(0..8)), rng.random_range(0..users as u64));
            let from = LineKey { rank, tie, ..LineKey::default() };
            let from = rng.random_bool(0.5).then_some(from);
            let wanted = map
                .range(from.unwrap_or_default()..)
                .find(|(_, (_, need))| free.iter().any(|free| need.iter().zip(free).all(|(need, free)| need <= free)))
                .map(|(place, (user, _))| (*place, *user));
            assert_eq!(line.first_fitting(from.as_ref(), &offers), wanted);
            assert_eq!(line.first(), map.first_key_value().map(|(place, (user, _))| (*place, *user)));
            assert_eq!(line.len(), map.len());
        }
    }
}

/// Runs rounds that fill freed machines, while queues leave the line and join it again before or after others. Demands have few values, so
/// that every demand is a class, or more values than there are classes.
#[test]
fn what_is_kept_up_to_date_finds_what_a_scan_finds() {
    for (seed, dims, values) in [(1, 2, 6), (2, 2, 60), (3, 3, 30), (4, 1, 9)] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let capacities = vec![Resources([40; plimsoll_base::units::MAX_DIMS]); 50];
        let (mut line, mut offers) = (Line::new(dims), Offers::new(dims));
        let mut waiting: Vec<(LineKey, QueueId, Vec<u64>)> = Vec::new();
        let (mut found, mut next) = (0, 0);
        for _ in 0..400 {
            let mut machines = Machines::new(dims, Placement::FirstFit, &capacities);
            let freed: Vec<MachineId> = (0..50).map(MachineId).filter(|_| rng.random_ratio(1, 5)).collect();
            for &machine in &freed {
                let taken: Vec<u64> = (0..dims).map(|_| rng.random_range(0..=40)).collect();
                machines.allocate(machine, &taken);
            }
            offers.read(freed.iter().copied(), &machines);
            for _ in 0..rng.random_range(0..40) {
                match rng.random_range(0..4) {
                    0 if !waiting.is_empty() => {
                        let at = rng.random_range(0..waiting.len());
                        line.remove(&waiting.swap_remove(at).0);
                    }
                    1 if !freed.is_empty() => {
                        let machine = freed[rng.random_range(0..freed.len())];
                        let part: Vec<u64> =
                            (0..dims).map(|d| rng.random_range(0..=machines.free(machine).0[d])).collect();
                        machines.allocate(machine, &part);
                        assert!(offers.less(machine, &machines, line.classes()));
                    }
                    _ => {
                        next += 1;
                        let rank = Rank::new(rng.random_range(0..8));
                        let place = LineKey { rank, tie: next, ..LineKey::default() };
                        let need: Vec<u64> = (0..dims).map(|_| rng.random_range(0..values)).collect();
                        line.insert(place, QueueId(next as u32), &need);
                        waiting.push((place, QueueId(next as u32), need));
                    }
                }
                offers.bound(line.classes());
                let fits = |need: &[u64]| freed.iter().any(|machine| machines.fits(*machine, need));
                let scan =
                    waiting.iter().filter(|(.., need)| fits(need)).min().map(|(place, queue, _)| (*place, *queue));
                assert_eq!(line.first_fitting(None, &offers), scan);
                found += usize::from(scan.is_some());
            }
        }
        assert!(found > 500, "{found}");
    }
}
