//! Shares of users in small examples, and laws on random jobs.

use super::*;
use crate::random::PythonRandom;
use crate::table::Rates;
use plimsoll_base::units::Time;

fn job(id: u32, entity: u32, scale: u32) -> ActiveJob {
    ActiveJob {
        id,
        kind: id,
        scale,
        weight: 1,
        entity,
        arrival: Time(0),
        remaining: 1_000_000_000,
        done: 0,
        deadline: None,
    }
}

fn rates(rows: &[&[f64]]) -> Rates {
    Rates::from_rows(rows).expect("rates")
}

/// Returns the rounds of each job on each type in `rounds` rounds of 360 s.
fn counts(accounts: &mut Accounts, view: &View<'_>, rounds: u32) -> Vec<u64> {
    let n = view.capacity.len();
    let mut counts = vec![0; view.jobs.len() * n];
    for _ in 0..rounds {
        for (at, j) in accounts.round(view, Span::from_secs(360)) {
            counts[at * n + j] += 1;
            accounts.charge(&view.jobs[at], j, Span::from_secs(360));
        }
    }
    counts
}

fn view<'a>(jobs: &'a [ActiveJob], rates: &'a Rates, capacity: &'a [u32]) -> View<'a> {
    View { now: Time(0), jobs, rates, capacity }
}

/// Two users, one accelerator: equal time, whatever the number of jobs. A user with a job of two accelerators runs half as often.
#[test]
fn dominant_shares_are_equal() {
    let ones = rates(&[&[1.0], &[1.0], &[1.0]]);
    let jobs = [job(0, 0, 1), job(1, 1, 1), job(2, 1, 1)];
    let mut accounts = Accounts::new(ShareRule::Drf, &[0, 1], &[], &[1]);
    // The first job of user 1 always fits.
    assert_eq!(counts(&mut accounts, &view(&jobs, &ones, &[1]), 100), [50, 50, 0]);
    let jobs = [job(0, 0, 2), job(1, 1, 1), job(2, 1, 1)];
    let mut accounts = Accounts::new(ShareRule::Drf, &[0, 1], &[], &[2]);
    assert_eq!(counts(&mut accounts, &view(&jobs, &ones, &[2]), 100), [50, 50, 50]);
}

/// The dominant type decides: user 0 runs only on type a, user 1 only on b, user 2 on both and faster on a.
#[test]
fn the_dominant_type_decides() {
    let own = rates(&[&[1.0, 0.0], &[0.0, 1.0], &[4.0, 1.0]]);
    let jobs = [job(0, 0, 1), job(1, 1, 1), job(2, 2, 1)];
    let mut accounts = Accounts::new(ShareRule::Drf, &[0, 1, 2], &[], &[1, 1]);
    let counts = counts(&mut accounts, &view(&jobs, &own, &[1, 1]), 300);
    // User 2 takes a when it is first and b when only b is free; all dominant shares are equal at the end.
    assert_eq!(counts[0] + counts[4], 300, "{counts:?}");
    assert_eq!(counts[3] + counts[5], 300, "{counts:?}");
    let shares = [counts[0], counts[3], counts[4].max(counts[5])];
    assert!(shares.iter().max().unwrap_or(&0) - shares.iter().min().unwrap_or(&0) <= 1, "{counts:?}");
}

/// Quotas of 3 and 1 of 4 accelerators: with demand everywhere 3 and 1 run. User 1 alone borrows all; a wide job saves its quota.
#[test]
fn quotas_are_guaranteed_and_lent() {
    let ones = rates(&[&[1.0][..]; 8]);
    let narrow: Vec<ActiveJob> = (0..8).map(|id| job(id, id % 2, 1)).collect();
    let quotas = [(0, 3), (1, 1)];
    let mut accounts = Accounts::new(ShareRule::Quota, &[0, 1], &quotas, &[4]);
    let ran = counts(&mut accounts, &view(&narrow, &ones, &[4]), 20);
    assert_eq!(ran, [20, 20, 20, 0, 20, 0, 0, 0]);
    let alone: Vec<ActiveJob> = narrow.iter().copied().filter(|job| job.entity == 1).collect();
    let mut accounts = Accounts::new(ShareRule::Quota, &[0, 1], &quotas, &[4]);
    assert_eq!(counts(&mut accounts, &view(&alone, &ones, &[4]), 5), [5; 4]);
    // User 1's job needs two accelerators: with a quota of 1 it is entitled to every second round.
    let mut jobs = narrow[..7].to_vec();
    jobs.retain(|job| job.entity == 0);
    jobs.push(job(7, 1, 2));
    let mut accounts = Accounts::new(ShareRule::Quota, &[0, 1], &quotas, &[4]);
    let ran = counts(&mut accounts, &view(&jobs, &ones, &[4]), 40);
    assert!((19..=20).contains(&ran[4]), "{ran:?}");
    assert_eq!(ran.iter().take(4).sum::<u64>() + 2 * ran[4], 160, "no accelerator is idle: {ran:?}");
}

/// Without quotas the accelerators are divided equally; the first users get the remainder.
#[test]
fn equal_quotas_have_a_remainder() {
    let ones = rates(&[&[1.0][..]; 9]);
    let jobs: Vec<ActiveJob> = (0..9).map(|id| job(id, id / 3, 1)).collect();
    let mut accounts = Accounts::new(ShareRule::Quota, &[0, 1, 2], &[], &[5]);
    assert_eq!(counts(&mut accounts, &view(&jobs, &ones, &[5]), 1), [1, 1, 0, 1, 1, 0, 1, 0, 0]);
}

/// A donor of earlier rounds borrows more later: user 0 has one job for ten rounds while user 1 uses three accelerators; then both want four.
#[test]
fn karma_returns_what_was_lent() {
    let ones = rates(&[&[1.0][..]; 8]);
    let first: Vec<ActiveJob> = (0..5).map(|id| job(id, u32::from(id > 0), 1)).collect();
    let mut accounts = Accounts::new(ShareRule::Karma, &[0, 1], &[], &[4]);
    assert_eq!(counts(&mut accounts, &view(&first, &ones, &[4]), 10), [10, 10, 10, 10, 0]);
    let both: Vec<ActiveJob> = (0..8).map(|id| job(id, id % 2, 1)).collect();
    let later = counts(&mut accounts, &view(&both, &ones, &[4]), 1);
    let of = |entity: usize, counts: &[u64]| counts.iter().skip(entity).step_by(2).sum::<u64>();
    assert_eq!((of(0, &later), of(1, &later)), (3, 1), "{later:?}");
    // In the long run both received the same, as users of equal demand do.
    let more = counts(&mut accounts, &view(&both, &ones, &[4]), 200);
    let total = (10 + of(0, &later) + of(0, &more), 30 + of(1, &later) + of(1, &more));
    assert!(total.0.abs_diff(total.1) <= 2, "{total:?}");
}

/// A user that pauses earns no priority.
#[test]
fn a_pause_earns_nothing() {
    let ones = rates(&[&[1.0][..]; 2]);
    let jobs = [job(0, 0, 1), job(1, 1, 1)];
    for rule in [ShareRule::Drf, ShareRule::Quota] {
        let mut accounts = Accounts::new(rule, &[0, 1], &[(0, 1), (1, 1)], &[1]);
        assert_eq!(counts(&mut accounts, &view(&jobs[..1], &ones, &[1]), 50), [50]);
        let after = counts(&mut accounts, &view(&jobs, &ones, &[1]), 20);
        assert!(after.iter().all(|count| (9..=11).contains(count)), "{rule:?}: {after:?}");
    }
}

/// On random jobs: no type is used beyond its accelerators, and no waiting job fits in a round.
#[test]
fn rounds_are_feasible_and_leave_no_room() {
    let mut random = PythonRandom::new(77);
    for rule in [ShareRule::Drf, ShareRule::Quota, ShareRule::Karma] {
        for _ in 0..100 {
            let count = 1 + random.below(20);
            let jobs: Vec<ActiveJob> =
                (0..count as u32).map(|id| job(id, random.below(4) as u32, [1, 1, 2, 4][random.below(4)])).collect();
            let own: Vec<Vec<f64>> =
                jobs.iter().map(|_| (0..2).map(|_| [0.0, 1.0, 2.0][random.below(3)]).collect()).collect();
            let rows: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
            let (rates, capacity) = (rates(&rows), [3, 5]);
            let view = view(&jobs, &rates, &capacity);
            let mut accounts = Accounts::new(rule, &[0, 1, 2, 3], &[], &capacity);
            for _ in 0..10 {
                let chosen = accounts.round(&view, Span::from_secs(360));
                let mut free = capacity;
                for &(at, j) in &chosen {
                    assert!(own[at][j] > 0.0);
                    free[j] = free[j].checked_sub(jobs[at].scale).expect("room");
                    accounts.charge(&jobs[at], j, Span::from_secs(360));
                }
                let idle = |at: &usize| !chosen.iter().any(|(other, _)| other == at);
                let fits = |at: usize| (0..2).any(|j| own[at][j] > 0.0 && free[j] >= jobs[at].scale);
                assert!(!(0..count).filter(idle).any(fits), "{rule:?} {chosen:?} {free:?}");
            }
        }
    }
}
