//! The counts at the end of a run.

use plimsoll_base::units::Time;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// The end of the run: the last event, or the horizon.
    pub end: Time,
    /// Rows taken from the source.
    pub rows: u64,
    /// Tasks launched.
    pub launched: u64,
    /// Instants with events.
    pub instants: u64,
    /// The maximum number of tasks that ran at once.
    pub peak_running: u64,
    /// Requests of waiting tasks for the room of others.
    pub asks: u64,
    /// Withdrawn requests.
    pub asks_withdrawn: u64,
    /// The number of times that a gang released its reservations because its patience ended.
    pub hoards_given_up: u64,
    /// Asked tasks that were stopped because they had not ended at the deadline.
    pub forced: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Backup instances created.
    pub backups: u64,
    /// Backups that ended before the first instance of their task.
    pub backups_won: u64,
}
