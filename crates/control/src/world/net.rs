//! The network: how long a message takes, whether it arrives, and how often.

use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{Network, Script};
use crate::message::{Message, Node};
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// Which life of the receiver it is meant for.
    pub life: u32,
    /// When it was sent.
    pub sent: Time,
    /// The message.
    pub message: Message,
}

/// The network with its dice.
pub(super) struct Net {
    network: Network,
    rng: ChaCha8Rng,
    /// When the last message from one to another arrives, where order is kept.
    last: HashMap<(Node, Node), Time>,
    calm: Time,
    now: Time,
    /// Messages sent so far.
    pub sent: u64,
    /// Of them, those that need not travel.
    pub idle: u64,
}

impl Net {
    pub fn new(script: &Script) -> Net {
        let rng = stream(script.seed, "control/network");
        Net {
            network: script.network,
            rng,
            last: HashMap::new(),
            calm: script.calm(),
            now: Time::ZERO,
            sent: 0,
            idle: 0,
        }
    }

    /// The shortest time a message takes.
    pub fn shortest(&self) -> Span {
        self.network.delay.0
    }

    /// Whether a message that need not travel would arrive.
    pub fn arrives(&mut self) -> bool {
        self.sent += 1;
        self.idle += 1;
        !self.dice(self.network.lost)
    }

    /// A chance in a million; none of it once the last fault is over.
    fn dice(&mut self, chance: u32) -> bool {
        chance > 0 && self.now <= self.calm && self.rng.random_range(0..1_000_000) < chance
    }

    /// When a letter arrives: not at all, once or twice.
    pub fn carry(&mut self, now: Time, letter: Letter) -> Vec<(Time, Letter)> {
        self.now = now;
        if self.dice(self.network.lost) {
            return Vec::new();
        }
        let double = self.dice(self.network.doubled);
        let mut copies = Vec::with_capacity(1 + usize::from(double));
        if double {
            copies.push((self.arrival(&letter), letter.clone()));
        }
        copies.push((self.arrival(&letter), letter));
        copies
    }

    fn arrival(&mut self, letter: &Letter) -> Time {
        let (from, to) = self.network.delay;
        let at = self.now + Span(self.rng.random_range(from.0..=to.0));
        if !self.network.ordered || from == to {
            return at;
        }
        let last = self.last.entry((letter.from, letter.to)).or_default();
        *last = at.max(*last);
        *last
    }
}
