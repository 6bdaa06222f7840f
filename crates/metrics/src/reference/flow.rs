//! The flow of a user with unfinished work, and its rows.

use plimsoll_base::units::UserId;

/// A row in progress: its tasks end when the user's progress reaches `end`.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct FlowRow {
    pub end: f64,
    /// The recording order. Rows that end together are ordered by it. The counter wraps after 2^32 rows.
    pub number: u32,
    /// The slot in [`FlowRows`].
    pub slot: u32,
}

impl FlowRow {
    /// Returns a number that sorts by the end of the row. The bits of positive floats sort like the floats.
    pub fn pack(self) -> u128 {
        u128::from(self.end.to_bits()) << 64 | u128::from(self.number) << 32 | u128::from(self.slot)
    }

    pub fn unpack(key: u128) -> FlowRow {
        FlowRow { end: f64::from_bits((key >> 64) as u64), number: (key >> 32) as u32, slot: key as u32 }
    }
}

/// The time at which the first row of a user ends if nothing changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowEnd {
    pub at: f64,
    pub user: UserId,
}

impl FlowEnd {
    /// Returns a number that sorts by time and user. Comparing two numbers takes fewer instructions than comparing two pairs.
    pub fn pack(self) -> u128 {
        u128::from(self.at.to_bits()) << 64 | u128::from(self.user.0)
    }

    pub fn unpack(end: u128) -> FlowEnd {
        FlowEnd { at: f64::from_bits((end >> 64) as u64), user: UserId(end as u32) }
    }
}

/// The tasks and the demand of each row in progress; slots are reused.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct FlowRows {
    dims: usize,
    /// For each row, twice the number of tasks, plus 1 if it is measured; and the demand of a task.
    facts: Vec<u64>,
    spare: Vec<u32>,
}

impl FlowRows {
    /// Creates a store without rows, for demands of this number of resources.
    pub fn new(dims: usize) -> FlowRows {
        FlowRows { dims, facts: Vec::new(), spare: Vec::new() }
    }

    /// Stores a row: the number of tasks (less than 2^63), whether it is measured, and the demand of each task. Returns the slot.
    pub fn keep(&mut self, tasks: u64, is_measured: bool, needs: &[u64]) -> u32 {
        let width = self.dims + 1;
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.facts.resize(self.facts.len() + width, 0);
            (self.facts.len() / width - 1) as u32
        });
        let facts = &mut self.facts[slot as usize * width..][..width];
        facts[0] = tasks << 1 | u64::from(is_measured);
        // A loop over few resources is faster than a call of memcpy.
        facts[1..].iter_mut().zip(needs).for_each(|(fact, need)| *fact = *need);
        slot
    }

    /// Returns the number of tasks of a row, whether it is measured, and the demand of each task.
    pub fn get(&self, slot: u32) -> (u64, bool, &[u64]) {
        let width = self.dims + 1;
        let facts = &self.facts[slot as usize * width..][..width];
        (facts[0] >> 1, facts[0] & 1 == 1, &facts[1..])
    }

    pub fn free(&mut self, slot: u32) {
        self.spare.push(slot);
    }
}

/// The progress of a user's work. All flows are visited whenever shares are solved, so other data are stored separately.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Flow {
    pub user: UserId,
    /// The number of measured rows.
    pub measured: u64,
    pub tasks: u64,
    /// The mean dominant share of the current taskswhen shares were last solved. `stale` is whether the tasks have changed since then.
    pub size: f64,
    pub stale: bool,
    /// The seconds at full speed that each task has progressed since the flow became active.
    pub progress: f64,
    /// The row that ends first; it has no meaning while there are no tasks.
    pub first: FlowRow,
    /// The growth of progress per second, 0 to 1.
    pub pace: f64,
    /// The number of tasks that may run at the same time; infinite if the user is fully served.
    pub allowed: f64,
    /// The time of the last update.
    pub since: f64,
    /// The time at which the first row ends if nothing changes; infinite without progress.
    pub expected: f64,
    /// The unfinished measured work; `rate` is the measured work done per second at full speed.
    pub left: f64,
    pub rate: f64,
    /// The sum of the ages of the work when it was served; see [`ServedWork`](super::ServedWork).
    pub delay: f64,
}

impl Flow {
    /// Creates the flow of a user whose first row is about to begin.
    pub fn new(user: UserId, now: f64, delay: f64) -> Flow {
        Flow {
            user,
            measured: 0,
            tasks: 0,
            size: 0.0,
            stale: true,
            progress: 0.0,
            first: FlowRow { end: 0.0, number: 0, slot: 0 },
            pace: 1.0,
            allowed: f64::INFINITY,
            since: now,
            expected: f64::INFINITY,
            left: 0.0,
            rate: 0.0,
            delay,
        }
    }

    /// Advances the flow to `now`.
    pub fn pass(&mut self, now: f64) {
        let span = now - self.since;
        let done = self.pace * span;
        let served = (self.rate * done).min(self.left);
        self.delay += (self.left - served / 2.0) * span;
        self.left -= served;
        self.progress += done;
        self.since = now;
    }

    /// Sets the pace, so that the current tasks share the allowed number of running tasks.
    pub fn adjust(&mut self) {
        self.pace = (self.allowed / self.tasks as f64).min(1.0);
    }

    /// Stores the time at which the first row will end. Returns the end, if there is one.
    pub fn expect(&mut self) -> Option<FlowEnd> {
        let ends = self.pace > 0.0;
        let at = self.since + (self.first.end - self.progress).max(0.0) / self.pace;
        self.expected = if ends { at } else { f64::INFINITY };
        ends.then_some(FlowEnd { at, user: self.user })
    }
}
