//! The network: the delay of each message, its loss and its duplication, and the batching of messages.

use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{Network, Script};
use crate::message::{Endpoint, Message};
use crate::setup::AppId;
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// A message in flight.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The sender.
    pub from: Endpoint,
    /// The receiver.
    pub to: Endpoint,
    /// The life of the receiver that the message is for.
    pub life: u32,
    /// When it was sent.
    pub sent: Time,
    /// When it was put into FuxiMaster's inbox.
    pub arrived: Time,
    /// The message.
    pub message: Message,
}

/// The network with its random stream.
pub(super) struct Net {
    network: Network,
    rng: ChaCha8Rng,
    /// The time for which messages between FuxiMaster and one peer are batched.
    batch: Span,
    /// By application, sender and receiver: when the last message left and when it arrives. Recorded only if messages are batched, or
    /// arrive in order after varying delays.
    last: HashMap<Option<AppId>, HashMap<(Endpoint, Endpoint), (Time, Time)>>,
    /// When messages stop being lost and duplicated.
    calm: Time,
    now: Time,
    /// The number of messages sent so far.
    pub sent: u64,
    /// Delivered heartbeats, and (`lives`) the total lifetime of the completed applications' masters in microseconds.
    pub beats: u64,
    pub lives: u64,
}

impl Net {
    pub fn new(script: &Script) -> Net {
        let rng = stream(script.seed, "control/network");
        Net {
            network: script.network,
            rng,
            batch: script.batch,
            last: HashMap::new(),
            calm: Time::NEVER,
            now: Time::ZERO,
            sent: 0,
            beats: 0,
            lives: 0,
        }
    }

    /// Stops losses and duplicates at an instant.
    pub fn until(self, calm: Time) -> Net {
        Net { calm, ..self }
    }

    /// Draws an event with a chance in millionths.
    fn dice(&mut self, chance: u32) -> bool {
        chance > 0 && self.now <= self.calm && self.rng.random_range(0..1_000_000) < chance
    }

    /// Draws the delay of a message.
    pub fn delay(&mut self) -> Span {
        let (from, to) = self.network.delay;
        if from == to { from } else { Span(self.rng.random_range(from.0..=to.0)) }
    }

    /// Returns when a message leaves, together with the batch for the same peer.
    fn leaves(&self, from: Endpoint, to: Endpoint) -> Time {
        let gathered = (from == Endpoint::Master) != (to == Endpoint::Master);
        match self.now.0.div_ceil(self.batch.0.max(1)) {
            periods if gathered && self.batch > Span::ZERO => Time(periods * self.batch.0),
            _ => self.now,
        }
    }

    /// Returns the arrivals of a message: none, one or two.
    pub fn carry(&mut self, now: Time, letter: Letter) -> Vec<(Time, Letter)> {
        self.now = now;
        let leaves = self.leaves(letter.from, letter.to);
        let key = (letter.from, letter.to);
        let last = self.last.get(&app_of(&letter)).and_then(|last| last.get(&key));
        let together = self.batch > Span::ZERO && last.is_some_and(|(left, _)| *left == leaves && leaves > now);
        self.sent += u64::from(!together);
        if self.dice(self.network.lost) {
            return Vec::new();
        }
        let double = self.dice(self.network.doubled);
        let mut copies = Vec::with_capacity(1 + usize::from(double));
        if double {
            copies.push((self.arrival(&letter, leaves, together), letter.clone()));
        }
        copies.push((self.arrival(&letter, leaves, together), letter));
        copies
    }

    fn arrival(&mut self, letter: &Letter, leaves: Time, together: bool) -> Time {
        let (from, to) = self.network.delay;
        let key = (letter.from, letter.to);
        let last = self.last.get(&app_of(letter)).and_then(|last| last.get(&key));
        if together && let Some((_, arrives)) = last {
            return *arrives;
        }
        let at = leaves + self.delay();
        if self.batch == Span::ZERO && (!self.network.ordered || from == to) {
            return at;
        }
        let last = self.last.entry(app_of(letter)).or_default().entry(key).or_default();
        let arrives = if self.network.ordered { at.max(last.1) } else { at };
        *last = (leaves, arrives);
        arrives
    }

    /// Removes the state of a completed application.
    pub fn forget(&mut self, app: AppId) {
        self.last.remove(&Some(app));
    }
}

/// Returns the application that sends or receives a message.
fn app_of(letter: &Letter) -> Option<AppId> {
    [letter.from, letter.to].into_iter().find_map(|node| match node {
        Endpoint::App(app, _) => Some(app),
        _ => None,
    })
}
