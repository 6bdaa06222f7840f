//! Limits for the memory of the users of a run, and for the memory of rows that several runs share.
//!
//! The memory of a run grows with the number of distinct users, which is unknown for a streamed trace: [`MemoryGuard`] estimates the
//! further need of the run. [`RowMemory`] limits the rows of all workloads in use at one time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_base::error::{Error, Result};

/// The estimated bytes per user. On a trace with ten million users and two resources, with the default tables, 550 bytes were measured.
const USER: u64 = 600;

/// The number of users at the first check.
const FIRST: usize = 1 << 20;

/// The largest memory for rows that runs share, in bytes. docs/performance.md states the bytes per row.
pub const ROW_MEMORY: u64 = 1 << 30;

/// Shared rows may take one `PART`-th of the free memory.
const PART: u64 = 4;

/// The remaining memory, in bytes, for rows that runs share.
#[derive(Clone, Debug)]
pub(super) struct RowMemory(Arc<AtomicU64>);

impl RowMemory {
    /// Allows `most` bytes, and at most a quarter of the free memory.
    pub fn new(most: u64) -> RowMemory {
        RowMemory(Arc::new(AtomicU64::new(free().map_or(most, |free| most.min(free / PART)))))
    }

    /// Returns an empty reservation.
    pub fn reservation(&self) -> Reservation {
        Reservation { left: self.0.clone(), bytes: 0 }
    }
}

/// Memory of the rows of one workload. It is returned when the reservation is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    left: Arc<AtomicU64>,
    bytes: u64,
}

impl Reservation {
    /// Reserves further bytes. Returns `false`, and reserves nothing, if fewer bytes were left.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        self.bytes += if taken.is_ok() { bytes } else { 0 };
        taken.is_ok()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Checks that the memory is sufficient for one run.
#[derive(Debug)]
pub(super) struct MemoryGuard {
    /// The number of users at the next check.
    next: usize,
    /// Returns the free bytes; `None` if the system does not report them.
    free: fn() -> Option<u64>,
}

impl Default for MemoryGuard {
    fn default() -> Self {
        MemoryGuard { next: FIRST, free }
    }
}

impl MemoryGuard {
    /// Checks, each time that the number of users has doubled, whether the memory suffices for twice the number. Errors:
    /// [`Error::Mismatch`] with an estimate if it does not.
    pub fn check(&mut self, users: usize) -> Result<()> {
        if users < self.next {
            return Ok(());
        }
        self.next = users.saturating_mul(2);
        let (needed, gibibytes) =
            ((users as u64).saturating_mul(USER), |bytes: u64| bytes as f64 / (1u64 << 30) as f64);
        match (self.free)() {
            Some(free) if free < needed => {
                let problem = format!(
                    "the workload has {users} users so far; as many again need about {:.1} GiB more, and {:.1} GiB are free: \
                     make fewer runs at once (-j 1), or distinguish fewer users (trace import --tenants)",
                    gibibytes(needed),
                    gibibytes(free)
                );
                Err(Error::Mismatch { problem })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the bytes that this process may still allocate: limited by the machine, the control group, and the address space.
fn free() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = || number(&read("/proc/meminfo")?, "MemAvailable:", 1024);
    let group = || {
        let number = |name: &str| read(&format!("/sys/fs/cgroup/memory.{name}"))?.trim().parse::<u64>().ok();
        Some(number("max")?.saturating_sub(number("current")?))
    };
    let space = || {
        let limit = number(&read("/proc/self/limits")?, "Max address space", 1)?;
        Some(limit.saturating_sub(number(&read("/proc/self/status")?, "VmSize:", 1024)?))
    };
    [machine(), group(), space()].into_iter().flatten().min()
}

/// Returns the first number in the line that starts with `word`, times `unit`; `None` if a word such as `unlimited` is in its place.
fn number(text: &str, word: &str, unit: u64) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_before_memory_does() {
        let mut room = MemoryGuard { next: 1000, free: || Some(3 << 20) };
        assert!(room.check(999).is_ok() && room.check(2000).is_ok() && room.check(3999).is_ok());
        assert!(room.check(4000).is_ok(), "2.3 MiB more fit");
        let message = room.check(8000).expect_err("4.6 MiB more do not fit").to_string();
        assert!(message.contains("8000 users so far") && message.contains("-j 1"), "{message}");
        assert!(MemoryGuard { next: 1000, free: || None }.check(usize::MAX).is_ok());
    }

    #[test]
    fn reservations_share_a_limit() {
        let memory = RowMemory(Arc::new(AtomicU64::new(100)));
        let (mut one, mut two) = (memory.reservation(), memory.reservation());
        assert!(one.grow(60) && two.grow(40) && !two.grow(1));
        drop(one);
        assert!(two.grow(60) && !two.grow(1));
        drop(two);
        assert!(memory.reservation().grow(100) && RowMemory::new(0).0.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn what_the_system_tells_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         3221225472           unlimited            bytes\n";
        assert_eq!(number(limits, "Max address space", 1), Some(3 << 30));
        assert_eq!(number(limits, "Max data size", 1), None);
        assert_eq!(number("MemTotal: 9 kB\nMemAvailable:   12 kB\n", "MemAvailable:", 1024), Some(12 << 10));
        if cfg!(target_os = "linux") {
            assert!(free().is_some_and(|free| free > 1 << 20));
        }
    }
}
