//! All states, breadth first.
//!
//! Each part of a state is stored once and numbered. A state is a key of eleven part numbers (44 bytes), since millions of states consist
//! of the same few thousand FuxiMasters, Tubos and queues. The search is breadth first, so no violation is nearer to the first state than
//! the one that is found first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use super::state::{APPS, Chief, Host, Ledger, Line, MACHINES, Masters, State};
use super::step::{Action, Model};
use super::watch::Seen;

/// The parts of a state, numbered.
pub type Key = [u32; PARTS];
const PARTS: usize = 3 + 2 * APPS + 2 * MACHINES;

/// A quick hash: multiply and rotate (the hash of the Rust compiler and of Firefox).
#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

type Table<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Stores each value once.
struct Bank<T> {
    items: Vec<Arc<T>>,
    index: Table<Arc<T>, u32>,
}

impl<T: Hash + Eq> Bank<T> {
    fn new() -> Bank<T> {
        Bank { items: Vec::new(), index: Table::default() }
    }

    /// Returns the number of a value. `known` is a value with its number; often it is the same value, which saves the search.
    fn number(&mut self, item: &Arc<T>, known: Option<(&Arc<T>, u32)>) -> u32 {
        if let Some((_, number)) = known.filter(|(other, _)| Arc::ptr_eq(item, other)) {
            return number;
        }
        if let Some(&number) = self.index.get(item) {
            return number;
        }
        let number = self.items.len() as u32;
        self.items.push(item.clone());
        self.index.insert(item.clone(), number);
        number
    }

    fn get(&self, number: u32) -> Arc<T> {
        self.items[number as usize].clone()
    }
}

/// All parts of all states.
struct Parts {
    chiefs: Bank<Chief>,
    apps: Bank<Masters>,
    hosts: Bank<Host>,
    inboxes: Bank<Vec<Line>>,
    ledgers: Bank<Ledger>,
}

impl Parts {
    fn key(&mut self, state: &State, from: Option<(&State, &Key)>) -> Key {
        let mut key = [0; PARTS];
        let mut at = 0;
        macro_rules! part {
            ($bank:ident, $part:ident $([$n:expr])?) => {
                let known = from.map(|(state, key)| (&state.$part $([$n])?, key[at]));
                key[at] = self.$bank.number(&state.$part $([$n])?, known);
                at += 1;
            };
        }
        part!(chiefs, chief);
        part!(ledgers, ledger);
        for n in 0..APPS {
            part!(apps, apps[n]);
        }
        for n in 0..MACHINES {
            part!(hosts, hosts[n]);
        }
        for n in 0..1 + APPS + MACHINES {
            part!(inboxes, inboxes[n]);
        }
        debug_assert_eq!(at, PARTS);
        key
    }

    fn state(&self, key: &Key) -> State {
        State {
            chief: self.chiefs.get(key[0]),
            ledger: self.ledgers.get(key[1]),
            apps: std::array::from_fn(|n| self.apps.get(key[2 + n])),
            hosts: std::array::from_fn(|n| self.hosts.get(key[2 + APPS + n])),
            inboxes: std::array::from_fn(|n| self.inboxes.get(key[2 + APPS + MACHINES + n])),
        }
    }
}

/// The keys of all states, and a hash table of their positions in the list (open addressing).
struct Keys {
    list: Vec<Key>,
    slots: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl Keys {
    fn slot(&self, key: &Key) -> usize {
        let mut hasher = Quick::default();
        key.iter().for_each(|&word| hasher.write_u32(word));
        let mask = self.slots.len() - 1;
        let mut slot = hasher.finish() as usize & mask;
        while self.slots[slot] != EMPTY && self.list[self.slots[slot] as usize] != *key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Returns the number of a key and whether the key is new.
    fn insert(&mut self, key: Key) -> (u32, bool) {
        if self.list.len() * 2 >= self.slots.len() {
            self.slots = vec![EMPTY; (self.slots.len() * 2).max(1 << 16)];
            for at in 0..self.list.len() {
                let slot = self.slot(&self.list[at]);
                self.slots[slot] = at as u32;
            }
        }
        let slot = self.slot(&key);
        if self.slots[slot] != EMPTY {
            return (self.slots[slot], false);
        }
        let number = self.list.len() as u32;
        self.slots[slot] = number;
        self.list.push(key);
        (number, true)
    }
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// Whether all states within the bounds were visited.
    pub complete: bool,
    pub states: usize,
    pub transitions: u64,
    /// The largest distance between the first state and another state, in steps.
    pub depth: usize,
    /// The longest line of messages.
    pub longest: usize,
    /// The number of states at rest: only a fault can change them.
    pub rests: usize,
    /// The largest number of steps to a state at rest without further faults.
    pub to_rest: usize,
    /// Different FuxiMasters, application masters, Tubos, queues and ledgers.
    pub parts: [usize; 5],
    /// Violated invariants, each with a description and the actions that lead to a nearest violating state.
    pub violations: Vec<(&'static str, String, Vec<Action>)>,
    /// The recovery paths that were taken in any step.
    pub paths: std::collections::BTreeSet<&'static str>,
}

/// Explores all states, or stops when an invariant of `until` is violated.
pub fn search(model: &Model, until: &[&str]) -> Found {
    let (chiefs, apps, hosts) = (Bank::new(), Bank::new(), Bank::new());
    let mut parts = Parts { chiefs, apps, hosts, inboxes: Bank::new(), ledgers: Bank::new() };
    let mut keys = Keys { list: Vec::new(), slots: Vec::new() };
    let mut parents: Vec<u32> = Vec::new();
    // For each state its first successor without a fault, or the state itself if it is at rest.
    let mut calmer: Vec<u32> = Vec::new();
    let mut found = Found::default();
    let first = model.first();
    keys.insert(parts.key(&first, None));
    parents.push(EMPTY);
    let (mut at, mut level) = (0, 1);
    while at < keys.list.len() {
        if at == level {
            found.depth += 1;
            level = keys.list.len();
        }
        let key = keys.list[at];
        let state = parts.state(&key);
        let mut seen = Seen::default();
        seen.state(&model.setup, &state);
        let calm = model.calm(&state).len();
        if calm == 0 {
            seen.rest(model, &state);
            found.rests += 1;
            calmer.push(at as u32);
        }
        found.longest = state.lines().map(|line| line.letters.len()).max().unwrap_or(0).max(found.longest);
        note(model, &parts, &keys, &parents, &mut found, seen, at, None);
        for (nth, action) in model.actions(&state).into_iter().enumerate() {
            let mut seen = Seen::default();
            let next = model.apply(&state, action, &mut seen);
            let (number, new) = keys.insert(parts.key(&next, Some((&state, &key))));
            if new {
                parents.push(at as u32);
            }
            if nth == 0 && calm > 0 {
                calmer.push(number);
            }
            found.transitions += 1;
            note(model, &parts, &keys, &parents, &mut found, seen, at, Some(action));
        }
        at += 1;
        if found.violations.iter().any(|(invariant, ..)| until.contains(invariant)) {
            break;
        }
    }
    found.states = keys.list.len();
    found.complete = at == keys.list.len();
    if found.complete {
        settle(model, &parts, &keys, &parents, &calmer, &mut found);
    }
    found.parts = [
        parts.chiefs.items.len(),
        parts.apps.items.len(),
        parts.hosts.items.len(),
        parts.inboxes.items.len(),
        parts.ledgers.items.len(),
    ];
    found
}

/// Records the observations. A new violation is recorded with the actions that lead to it.
#[allow(clippy::too_many_arguments)]
fn note(
    model: &Model,
    parts: &Parts,
    keys: &Keys,
    parents: &[u32],
    found: &mut Found,
    seen: Seen,
    at: usize,
    last: Option<Action>,
) {
    for (invariant, what) in seen.violations {
        if !found.violations.iter().any(|(known, ..)| *known == invariant) {
            let mut way = path_to(model, parts, keys, parents, at);
            way.extend(last);
            found.violations.push((invariant, what, way));
        }
    }
    found.paths.extend(seen.paths);
}

/// Returns the actions that lead from the first state to a state.
fn path_to(model: &Model, parts: &Parts, keys: &Keys, parents: &[u32], mut at: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    while parents[at] != EMPTY {
        let parent = parents[at] as usize;
        let (from, to) = (parts.state(&keys.list[parent]), parts.state(&keys.list[at]));
        let leads = |action: &Action| model.apply(&from, *action, &mut Seen::default()) == to;
        actions.push(model.actions(&from).into_iter().find(leads).expect("a parent leads to its child"));
        at = parent;
    }
    actions.reverse();
    actions
}

/// Checks that every state reaches a state at rest without further faults, and records the largest number of steps.
fn settle(model: &Model, parts: &Parts, keys: &Keys, parents: &[u32], calmer: &[u32], found: &mut Found) {
    // Per state: the steps to rest plus one; 0 if not known yet; `ON_WAY` if the state is on the current path.
    const ON_WAY: u32 = u32::MAX;
    let mut steps = vec![0_u32; calmer.len()];
    for start in 0..calmer.len() {
        let mut walked = Vec::new();
        let mut at = start;
        while steps[at] == 0 && calmer[at] as usize != at {
            steps[at] = ON_WAY;
            walked.push(at);
            at = calmer[at] as usize;
        }
        if steps[at] == ON_WAY {
            let what = "the cluster never comes to rest".to_owned();
            found.violations.push(("I8", what, path_to(model, parts, keys, parents, at)));
            return;
        }
        steps[at] = steps[at].max(1);
        let mut count = steps[at];
        while let Some(at) = walked.pop() {
            count += 1;
            steps[at] = count;
        }
        found.to_rest = found.to_rest.max(count as usize - 1);
    }
}
