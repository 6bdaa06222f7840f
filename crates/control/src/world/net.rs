//! The network: how long a message takes, whether it arrives, and how often.

use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{Network, Script};
use crate::message::{Endpoint, Message};
use crate::setup::AppId;
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The sender.
    pub from: Endpoint,
    /// The receiver.
    pub to: Endpoint,
    /// Which life of the receiver it is meant for.
    pub life: u32,
    /// When it was sent.
    pub sent: Time,
    /// When FuxiMaster found it on its desk.
    pub arrived: Time,
    /// The message.
    pub message: Message,
}

/// The network with its dice.
pub(super) struct Net {
    network: Network,
    rng: ChaCha8Rng,
    /// Messages of one to FuxiMaster, or of FuxiMaster to one, are gathered for so long.
    batch: Span,
    /// When the last message from one to another left and arrives, where that matters; by application.
    last: HashMap<Option<AppId>, HashMap<(Endpoint, Endpoint), (Time, Time)>>,
    /// Until when messages are lost and doubled.
    calm: Time,
    now: Time,
    /// Messages sent so far.
    pub sent: u64,
    /// Heartbeats that were carried, and how long the application masters lived that are over, in microseconds.
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

    /// The same, which loses and doubles nothing from some time on.
    pub fn until(self, calm: Time) -> Net {
        Net { calm, ..self }
    }

    /// A chance in a million.
    fn dice(&mut self, chance: u32) -> bool {
        chance > 0 && self.now <= self.calm && self.rng.random_range(0..1_000_000) < chance
    }

    /// How long a message takes.
    pub fn delay(&mut self) -> Span {
        let (from, to) = self.network.delay;
        if from == to { from } else { Span(self.rng.random_range(from.0..=to.0)) }
    }

    /// When a message leaves, together with the batch for the same peer.
    fn leaves(&self, from: Endpoint, to: Endpoint) -> Time {
        let gathered = (from == Endpoint::Master) != (to == Endpoint::Master);
        match self.now.0.div_ceil(self.batch.0.max(1)) {
            periods if gathered && self.batch > Span::ZERO => Time(periods * self.batch.0),
            _ => self.now,
        }
    }

    /// The arrivals of a letter: none, one or two.
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

    /// An application is over.
    pub fn forget(&mut self, app: AppId) {
        self.last.remove(&Some(app));
    }
}

/// The application that sends or receives a letter.
fn app_of(letter: &Letter) -> Option<AppId> {
    [letter.from, letter.to].into_iter().find_map(|node| match node {
        Endpoint::App(app, _) => Some(app),
        _ => None,
    })
}
