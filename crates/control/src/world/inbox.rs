//! The service time of FuxiMaster: messages queue until the ones before them are processed.
//!
//! FuxiMaster processes all queued messages as one batch and answers at the end: the busier it is, the more it decides in one round. A
//! heartbeat without news has no service time.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::net::Letter;
use super::plan::{Cost, Script};
use super::{CLOCKS, Event, World};
use crate::master;
use crate::message::{Endpoint, Message};
use plimsoll_base::units::{Span, Time};
use plimsoll_sim::workload::synthetic::random::stream;

/// The load of FuxiMaster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MasterLoad {
    /// Processed requests.
    pub requests: u64,
    /// Total service time.
    pub busy: Span,
    /// The time from the arrival of each request to its answer, in microseconds; empty without a service time.
    pub response_us: Vec<u64>,
    /// The largest number of waiting messages.
    pub peak: u64,
    /// Granted units.
    pub granted: u64,
}

/// FuxiMaster's queue of messages, and the batch in service.
#[derive(Debug)]
pub(super) struct Inbox {
    cost: Cost,
    rng: ChaCha8Rng,
    waiting: Vec<Letter>,
    at_work: Vec<Letter>,
    /// When the current batch began, and when the last one was finished.
    since: Option<Time>,
    decided: Option<Time>,
    pub load: MasterLoad,
}

impl Inbox {
    pub fn new(script: &Script) -> Inbox {
        let rng = stream(script.seed, "control/desk");
        let (waiting, at_work) = Default::default();
        Inbox {
            cost: script.decide.clone(),
            rng,
            waiting,
            at_work,
            since: None,
            decided: None,
            load: MasterLoad::default(),
        }
    }

    /// Returns whether a scheduling round may run at this instant.
    pub fn is_free(&self, now: Time) -> bool {
        self.since.is_none() || self.decided == Some(now)
    }

    fn cost(&mut self) -> Span {
        match &self.cost {
            Cost::Constant(span) => *span,
            Cost::Measured(spans) => spans[self.rng.random_range(0..spans.len())],
        }
    }

    /// Ends the current batch and adds its time to the load.
    pub fn rest(&mut self, now: Time) {
        let busy = self.since.take().map_or(Span::ZERO, |since| now.since(since));
        self.load.busy = Span(self.load.busy.0 + busy.0);
    }

    /// Removes all messages after the death of FuxiMaster.
    pub fn clear(&mut self, now: Time) {
        self.rest(now);
        self.decided = None;
        self.waiting.clear();
        self.at_work.clear();
    }
}

/// Returns whether a message needs service by FuxiMaster.
fn is_request(message: &Message) -> bool {
    !matches!(message, Message::TuboBeat { restarted: false, .. } | Message::AppBeat { .. })
}

impl World {
    /// Queues a message for FuxiMaster; without a service time, it is processed at once.
    pub(super) fn put_in_inbox(&mut self, mut letter: Letter) {
        if self.inbox.cost.is_nothing() {
            self.inbox.load.requests += u64::from(is_request(&letter.message));
            return self.master_input(master::MasterInput::Message(letter.message));
        }
        letter.arrived = self.now;
        self.inbox.waiting.push(letter);
        let there = (self.inbox.waiting.len() + self.inbox.at_work.len()) as u64;
        self.inbox.load.peak = self.inbox.load.peak.max(there);
        if self.inbox.since.is_none() {
            self.begin();
        }
    }

    /// Starts the next batch with all queued messages.
    fn begin(&mut self) {
        let inbox = &mut self.inbox;
        inbox.at_work = std::mem::take(&mut inbox.waiting);
        let mut total = Span::ZERO;
        let mut last: Option<(Endpoint, Time)> = None;
        for at in 0..inbox.at_work.len() {
            let letter = &inbox.at_work[at];
            // Messages that a peer sent in one batch are one request.
            let same = last == Some((letter.from, letter.arrived));
            if is_request(&letter.message) && !same {
                last = Some((letter.from, letter.arrived));
                inbox.load.requests += 1;
                total = Span(total.0 + inbox.cost().0);
            }
        }
        inbox.since = Some(self.now);
        self.after(total, CLOCKS, Event::Decided(self.epoch));
    }

    /// Processes the messages of a finished batch. A scheduling round follows, and then the messages that arrived in the meantime.
    pub(super) fn decided(&mut self, epoch: u32) {
        if epoch != self.epoch || self.inbox.since.is_none() {
            return;
        }
        for letter in std::mem::take(&mut self.inbox.at_work) {
            if is_request(&letter.message) {
                self.inbox.load.response_us.push(self.now.since(letter.arrived).0);
            }
            self.master_input(master::MasterInput::Message(letter.message));
        }
        self.inbox.rest(self.now);
        self.inbox.decided = Some(self.now);
        if !self.inbox.waiting.is_empty() {
            self.begin();
        }
    }
}
