//! Backfilling in the reference implementation. Usage and reservations are a list of boxes; a box has an interval and amounts. Every query
//! scans all boxes.

/// A box: amounts that are used or reserved from one instant until just before another.
pub struct Held {
    pub from: u64,
    pub until: u64,
    pub need: Vec<u64>,
}

/// Returns the expected end of a task: later than its start, and later than `now` if its estimate is over.
pub fn expected_end(start: u64, estimate: u64, now: u64) -> u64 {
    (start + estimate).max(start + 1).max(now + 1)
}

/// Returns whether there is room for another box.
fn fits(capacity: &[u64], held: &[Held], wanted: &Held) -> bool {
    // The total usage grows only at the beginnings of boxes.
    let begins = held.iter().map(|other| other.from).filter(|from| (wanted.from..wanted.until).contains(from));
    begins.chain([wanted.from]).all(|instant| {
        let there = |other: &&Held| other.from <= instant && instant < other.until;
        (0..capacity.len()).all(|r| {
            let used: u64 = held.iter().filter(there).map(|other| other.need[r]).sum();
            used + wanted.need[r] <= capacity[r]
        })
    })
}

/// Returns the earliest box of a task from now on.
pub fn earliest(capacity: &[u64], held: &[Held], need: &[u64], estimate: u64, now: u64) -> Held {
    let mut instants: Vec<u64> = held.iter().map(|other| other.until).filter(|until| *until > now).collect();
    instants.push(now);
    instants.sort();
    let at = |from: u64| Held { from, until: expected_end(from, estimate, now), need: need.to_vec() };
    let found = instants.into_iter().map(at).find(|wanted| fits(capacity, held, wanted));
    found.expect("a task that fits an empty pool fits when all boxes have ended")
}
