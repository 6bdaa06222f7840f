//! The clock and the queue of future events, shared by the engine and the control plane.
//!
//! Entries leave in order of [`EventKey`]: time, class, then insertion order. An entry is packed into one 128-bit number; a struct with
//! the same fields takes twice the time. The event of an entry is in a slab with generations, so cancelling is cheap and an outdated
//! ticket is harmless.
//!
//! Only the next entries are in order: a sorted list, and a heap of entries that were scheduled later than the list was sorted. Both are
//! small enough for the cache. All other entries are in unsorted tiers, each of which covers a range of times. When a tier is reached, it
//! is halved repeatedly (a quicksort that sorts no more than necessary), and its earliest part is sorted. With 100,000 future events, a
//! single heap costs a cache miss per level.

use std::cmp::Reverse;

use dary_heap::QuaternaryHeap;
use prefetch_index::prefetch_index;

use plimsoll_base::units::Time;

/// The order of events: by time, then lower classes first, then in the order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    /// The instant.
    pub time: Time,
    /// Order among classes of events at one instant, 0 to 3.
    pub class: u8,
    /// Order of scheduling within time and class.
    pub sequence: u32,
}

const SEQUENCE_BITS: u32 = 30;

impl EventKey {
    fn pack(self, slot: u32) -> u128 {
        let tail = u64::from(self.class) << 62 | u64::from(self.sequence) << 32 | u64::from(slot);
        u128::from(self.time.0) << 64 | u128::from(tail)
    }

    fn unpack(entry: u128) -> (EventKey, u32) {
        let tail = entry as u64;
        let sequence = (tail >> 32) as u32 & ((1 << SEQUENCE_BITS) - 1);
        (EventKey { time: Time((entry >> 64) as u64), class: (tail >> 62) as u8, sequence }, tail as u32)
    }
}

/// A handle of a scheduled event, to read or cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

impl Ticket {
    /// Returns the ticket as one number, which [`Ticket::from_key`] converts back.
    pub fn key(self) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.generation)
    }

    /// Returns the ticket of a number.
    pub fn from_key(key: u64) -> Ticket {
        Ticket { slot: (key >> 32) as u32, generation: key as u32 }
    }
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct AgendaEntry<E> {
    generation: u32,
    event: Option<E>,
}

/// The maximum number of entries in the heap. Beyond it the later half of the next entries becomes a tier.
const NEAR: usize = 1024;

/// Unsorted entries. No entry is before `from`, and all are before the entries of the next tier.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Tier {
    from: u128,
    entries: Vec<Reverse<u128>>,
}

impl Tier {
    /// Removes the later half of the entries and returns it as a tier.
    fn split(entries: &mut Vec<Reverse<u128>>) -> Tier {
        let half = entries.len() / 2;
        let (_, Reverse(from), _) = entries.select_nth_unstable_by_key(half, |Reverse(entry)| *entry);
        Tier { from: *from, entries: entries.split_off(half) }
    }
}

/// All entries; they leave in order.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Entries {
    /// The next entries, the latest first.
    sorted: Vec<Reverse<u128>>,
    /// Entries before the first tier that were scheduled since `sorted` was sorted.
    near: QuaternaryHeap<Reverse<u128>>,
    /// Tiers, the latest first.
    far: Vec<Tier>,
    len: usize,
}

impl Entries {
    fn push(&mut self, entry: u128) {
        self.len += 1;
        let later = self.far.partition_point(|tier| tier.from > entry);
        if let Some(tier) = self.far.get_mut(later) {
            return tier.entries.push(Reverse(entry));
        }
        self.near.push(Reverse(entry));
        if self.near.len() > NEAR {
            let mut near = std::mem::take(&mut self.sorted);
            near.extend(self.near.drain());
            self.far.push(Tier::split(&mut near));
            near.sort_unstable();
            self.sorted = near;
        }
    }

    fn peek(&mut self) -> Option<u128> {
        if self.sorted.is_empty() && self.near.is_empty() {
            self.come_near();
        }
        // A later entry is less, because the entries are reversed.
        self.sorted.last().max(self.near.peek()).map(|Reverse(entry)| *entry)
    }

    /// Sorts the earliest tier, or its earliest part.
    fn come_near(&mut self) {
        let Some(Tier { mut entries, .. }) = self.far.pop() else { return };
        while entries.len() > NEAR {
            self.far.push(Tier::split(&mut entries));
        }
        entries.sort_unstable();
        self.sorted = entries;
    }

    fn pop(&mut self) -> Option<u128> {
        let next = self.peek()?;
        self.len -= 1;
        if self.sorted.last() == Some(&Reverse(next)) {
            self.sorted.pop();
        } else {
            self.near.pop();
        }
        Some(next)
    }

    /// Removes all entries and returns them, in no particular order.
    fn drain(&mut self) -> Vec<u128> {
        self.len = 0;
        let mut all = std::mem::take(&mut self.sorted);
        all.extend(self.near.drain());
        self.far.drain(..).for_each(|tier| all.extend(tier.entries));
        all.into_iter().map(|Reverse(entry)| entry).collect()
    }
}

/// Future events. Scheduling and popping cost O(log n), cancelling O(1); an entry takes 16 bytes and its event.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Agenda<E> {
    entries: Entries,
    slab: Vec<AgendaEntry<E>>,
    free: Vec<u32>,
    sequence: u32,
    live: usize,
}

impl<E> Default for Agenda<E> {
    fn default() -> Agenda<E> {
        Agenda { entries: Entries::default(), slab: Vec::new(), free: Vec::new(), sequence: 0, live: 0 }
    }
}

impl<E> Agenda<E> {
    /// Returns the number of events that are scheduled and not cancelled.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Returns whether there are no future events.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Schedules an event of a class (0 to 3) at an instant.
    pub fn schedule(&mut self, time: Time, class: u8, event: E) -> Ticket {
        debug_assert!(class < 4, "two bits hold a class");
        if self.sequence == (1 << SEQUENCE_BITS) - 1 {
            self.renumber();
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slab.push(AgendaEntry { generation: 0, event: None });
                u32::try_from(self.slab.len() - 1).expect("fewer than 2^32 events at once")
            }
        };
        let entry = &mut self.slab[slot as usize];
        entry.event = Some(event);
        self.entries.push(EventKey { time, class, sequence: self.sequence }.pack(slot));
        self.sequence += 1;
        self.live += 1;
        Ticket { slot, generation: entry.generation }
    }

    /// Cancels a scheduled event and returns it; `None` if it has already happened or was already cancelled.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        let entry = self.slab.get_mut(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)?;
        let event = entry.event.take();
        self.live -= usize::from(event.is_some());
        event
    }

    /// Returns a scheduled event; `None` if it has happened or was cancelled.
    pub fn get(&self, ticket: Ticket) -> Option<&E> {
        self.slab.get(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)?.event.as_ref()
    }

    /// Returns a scheduled event for modification; `None` if it has happened or was cancelled.
    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut E> {
        let entry = self.slab.get_mut(ticket.slot as usize).filter(|entry| entry.generation == ticket.generation)?;
        entry.event.as_mut()
    }

    /// Returns all scheduled events, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.slab.iter().filter_map(|entry| entry.event.as_ref())
    }

    /// Returns the instant of the next event.
    pub fn next_time(&mut self) -> Option<Time> {
        if self.entries.len == self.live {
            return self.entries.peek().map(|entry| EventKey::unpack(entry).0.time);
        }
        while let Some(entry) = self.entries.peek() {
            let (key, slot) = EventKey::unpack(entry);
            if self.slab[slot as usize].event.is_some() {
                return Some(key.time);
            }
            self.entries.pop();
            self.release(slot);
        }
        None
    }

    /// Prefetches the next few events into the cache. Returns the next event, or `None` if there is none, if it was cancelled, or if it is
    /// still in a tier.
    pub fn fetch_ahead(&self) -> Option<&E> {
        let slot = |entry: u128| EventKey::unpack(entry).1 as usize;
        let Entries { sorted, near, .. } = &self.entries;
        // Events in the heap were scheduled recently. The following slot is prefetched too, since an event may span two cache lines.
        for Reverse(later) in &sorted[sorted.len().saturating_sub(3)..] {
            prefetch_index(&self.slab, slot(*later));
            prefetch_index(&self.slab, slot(*later) + 1);
        }
        let Reverse(next) = *sorted.last().max(near.peek())?;
        self.slab[slot(next)].event.as_ref()
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<(EventKey, E)> {
        while let Some(entry) = self.entries.pop() {
            let (key, slot) = EventKey::unpack(entry);
            let event = self.slab[slot as usize].event.take();
            self.release(slot);
            if let Some(event) = event {
                self.live -= 1;
                return Some((key, event));
            }
        }
        None
    }

    /// Frees a slot, which may be used again only after its entry has left the heap or its tier.
    fn release(&mut self, slot: u32) {
        let entry = &mut self.slab[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// Renumbers all entries in their order, once in a billion events.
    fn renumber(&mut self) {
        let mut entries = self.entries.drain();
        entries.sort_unstable();
        self.sequence = 0;
        for entry in entries {
            let (key, slot) = EventKey::unpack(entry);
            self.entries.push(EventKey { sequence: self.sequence, ..key }.pack(slot));
            self.sequence += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::collections::BTreeMap;

    #[test]
    fn equal_times_leave_by_class_and_then_as_they_came() {
        let mut agenda = Agenda::default();
        for (time, class, name) in [(5, 1, "a"), (5, 0, "b"), (3, 2, "c"), (5, 1, "d"), (5, 0, "e")] {
            agenda.schedule(Time(time), class, name);
        }
        let order: Vec<&str> = std::iter::from_fn(|| agenda.pop().map(|(_, name)| name)).collect();
        assert_eq!(order, ["c", "b", "e", "a", "d"]);
    }

    /// Events are at few or at many instants, and are enough for several tiers. In the last phase more events leave than arrive.
    #[test]
    fn agrees_with_a_sorted_map_under_random_use() {
        for (seed, steps, instants) in [(1, 60_000, 50), (2, 60_000, 1 << 40), (3, 60_000, 3)] {
            agree(seed, steps, instants);
        }
    }

    fn agree(seed: u64, steps: u64, instants: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut agenda, mut map, mut tickets) = (Agenda::default(), BTreeMap::new(), Vec::new());
        let mut tiers = 0;
        for step in 0..steps {
            if step == steps / 2 {
                agenda.renumber();
            }
            tiers = tiers.max(agenda.entries.far.len());
            // First more events are scheduled than leave, then fewer.
            let coming = if step < steps * 2 / 3 { 12 } else { 3 };
            match rng.random_range(0..20) {
                draw if draw < coming => {
                    let now = map.keys().next().map_or(0, |(time, _, _): &(Time, u8, u64)| time.0);
                    let (time, class) = (Time(now + rng.random_range(0..instants)), rng.random_range(0..4));
                    tickets.push((agenda.schedule(time, class, step), (time, class, step)));
                    map.insert((time, class, step), step);
                }
                18.. if !tickets.is_empty() => {
                    let (ticket, key) = tickets.swap_remove(rng.random_range(0..tickets.len()));
                    assert_eq!(agenda.cancel(ticket), map.remove(&key));
                    assert_eq!(agenda.cancel(ticket), None);
                }
                _ => {
                    assert_eq!(agenda.next_time(), map.keys().next().map(|key| key.0));
                    assert_eq!(agenda.pop().map(|(_, event)| event), map.pop_first().map(|(_, event)| event));
                }
            }
            assert_eq!(agenda.len(), map.len());
        }
        assert!(tiers > 1 && agenda.entries.far.is_empty(), "tiers came ({tiers}) and went");
    }
}
