//! Faults of tasks: failing attempts with retries, stragglers, and backup instances (`backups.rs`).
//!
//! Faults are drawn for each attempt of each task (by row, number and attempt) from a stream of its own. So every policy meets the same
//! faults in the same attempts of the same tasks, whatever the order of launches. A closed loop is the exception: its rows are numbered in
//! the order of submission, which depends on the policy.
//!
//! Failures of machines are in `machine_events`, failures of the control plane in the crate `control`.

use std::cmp::Reverse;
use std::collections::HashMap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::backups::{Backup, Backups};
use super::extension::Extension;
use crate::engine::kernel::pace::{MOST, ONE, millionths, scaled};
use crate::engine::kernel::{Attempt, Attempts, ChangeKinds, Kernel, Reader, Running};
use crate::engine::outcome::Outcome;
use crate::record::Fate;
use crate::workload::synthetic::random::{numbered, stream};
use plimsoll_base::checkpoint::{Checkpoint, Visitor};
use plimsoll_base::error::{Error, Result};
use plimsoll_base::units::{Span, Time};
use plimsoll_base::visit_values;

/// The rules for how tasks fail, straggle and are backed up.
///
/// As text: parts such as `fail=0.02,retries=3,straggle=0.05x4,backup=0.9x3`, each at most once and in any order. An attempt fails with
/// the chance `fail`, at an instant that is uniform over its run time. A failed task is retried up to `retries` times, and then given up.
/// An attempt is a straggler with the chance before the `x`; its run time is then multiplied by the factor after the `x`. For backups see
/// `backups.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The chance that an attempt fails, in millionths.
    fail: u64,
    /// The maximum number of retries of a task after failures.
    retries: u64,
    /// The chance that an attempt is a straggler, and the factor of its run time, both in millionths.
    straggle: (u64, u64),
    /// The rule for backup instances; no backups if absent.
    pub backup: Option<Backup>,
}

/// The default number of retries: Hadoop makes four attempts (`mapreduce.map.maxattempts`).
const RETRIES: u64 = 3;

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |value: u64| value as f64 / ONE as f64;
        write!(f, "fail={},retries={}", part(self.fail), self.retries)?;
        write!(f, ",straggle={}x{}", part(self.straggle.0), part(self.straggle.1))?;
        self.backup.iter().try_for_each(|rule| write!(f, ",backup={}x{}", part(rule.ended), part(rule.longer)))
    }
}

impl std::str::FromStr for Faults {
    type Err = Error;

    fn from_str(text: &str) -> Result<Faults> {
        const MOST_RETRIES: u64 = 1000;
        const PARTS: &str = "parts such as fail=0.02,retries=3,straggle=0.05x4,backup=0.9x3, each at most once";
        let mut faults = Faults { fail: 0, retries: RETRIES, straggle: (0, ONE), backup: None };
        let mut seen = Vec::new();
        for given in text.split(',').map(str::trim) {
            let wrong = |expected: &str| Error::plan("faults", format!("'{given}'"), expected);
            let (name, value) = given.split_once('=').map_or((given, ""), |(name, value)| (name.trim(), value.trim()));
            if seen.contains(&name) {
                return Err(wrong(PARTS));
            }
            seen.push(name);
            match name {
                "fail" => {
                    faults.fail = chance(value).ok_or_else(|| wrong("a chance from 0 to 1, such as fail=0.02"))?
                }
                "retries" => {
                    let retries = value.parse().ok().filter(|retries| *retries <= MOST_RETRIES);
                    faults.retries = retries.ok_or_else(|| wrong("a whole number up to 1000, such as retries=3"))?;
                }
                "straggle" => {
                    let expected = "a chance from 0 to 1 and a factor from 1 to 1000, such as straggle=0.05x4";
                    faults.straggle = times(value).ok_or_else(|| wrong(expected))?;
                }
                "backup" => {
                    let expected = "a share above 0, up to 1, and a factor from 1 to 1000, such as backup=0.9x3";
                    let rule = times(value).filter(|(ended, _)| *ended > 0);
                    let (ended, longer) = rule.ok_or_else(|| wrong(expected))?;
                    faults.backup = Some(Backup { ended, longer });
                }
                _ => return Err(wrong(PARTS)),
            }
        }
        Ok(faults)
    }
}

/// Parses a chance or a share, in millionths.
fn chance(text: &str) -> Option<u64> {
    millionths(text).filter(|chance| *chance <= ONE)
}

/// Parses a chance and a factor from 1, such as `0.05x4`, in millionths.
fn times(text: &str) -> Option<(u64, u64)> {
    let (part, factor) = text.split_once('x')?;
    let factor = millionths(factor).filter(|factor| (ONE..=MOST).contains(factor))?;
    Some((chance(part)?, factor))
}

/// The faults of a run, drawn attempt by attempt.
#[derive(Clone, Debug)]
pub struct Draws {
    faults: Faults,
    stream: ChaCha8Rng,
}

impl Draws {
    /// Creates the stream of faults from the seed of a run.
    pub fn new(faults: Faults, seed: u64) -> Draws {
        Draws { faults, stream: stream(seed, "faults of tasks") }
    }

    /// Draws the course of an attempt that would take `span`, for the task with this row in the trace and this number within its job. Run
    /// times are rounded up to the microsecond.
    pub fn draw(&self, row: u64, number: u32, attempt: u32, span: Span) -> Attempt {
        // Each row has a substream, and each attempt a block of the cipher (16 words) in it.
        let mut rng = numbered(&self.stream, row);
        rng.set_word_pos(16 * (u128::from(attempt) << 32 | u128::from(number)));
        // Every attempt draws all three numbers, whatever the settings, so that a change of one chance does not change the outcome of the
        // others.
        let [fails, when, straggles]: [u64; 3] = std::array::from_fn(|_| rng.random_range(0..ONE));
        let (chance, factor) = self.faults.straggle;
        let span = if straggles < chance { scaled(span, factor, ONE) } else { span };
        let fails = fails < self.faults.fail;
        Attempt { span: if fails { scaled(span, when + 1, ONE) } else { span }, fails }
    }
}

impl Attempts for Draws {
    fn attempt(&self, row: u64, number: u32, attempt: u32, span: Span) -> Attempt {
        self.draw(row, number, attempt, span)
    }

    fn fault_free_span(&self, row: u64, number: u32, attempt: u32, span: Span) -> Span {
        let never = Draws { faults: Faults { fail: 0, ..self.faults }, stream: self.stream.clone() };
        never.draw(row, number, attempt, span).span
    }
}

/// The failures so far, and the tasks that may get backups.
pub struct FaultsSoFar {
    retries: u64,
    /// The number of failures of each task that has not ended, by row and number.
    failures: HashMap<(u64, u32), u64>,
    backups: Option<Backups>,
    /// Attempts that failed.
    failed: u64,
    /// Backups that ended before the first instance of their task.
    backups_won: u64,
}

impl FaultsSoFar {
    pub fn new(faults: Faults, reader: &mut dyn FnMut(ChangeKinds) -> Reader) -> FaultsSoFar {
        let backups = faults.backup.map(|rule| Backups::new(reader(ChangeKinds::STARTED | ChangeKinds::AGAIN), rule));
        FaultsSoFar { retries: faults.retries, failures: HashMap::new(), backups, failed: 0, backups_won: 0 }
    }

    /// Handles a failed attempt: its task continues in its other instance, is retried, or is abandoned after the last retry. A gang is
    /// handled as a whole, including its tasks in `due`, which end at the same instant.
    fn fail(&mut self, kernel: &mut Kernel, task: (u64, u32), tasks: Running, due: &mut Vec<Running>) -> Result<()> {
        if let Some(backups) = &mut self.backups
            && backups.goes_on(kernel, task, &tasks)?
        {
            return kernel.finish(tasks, Fate::Failed);
        }
        let failures = self.failures.entry(task).or_default();
        *failures += 1;
        let again = *failures <= self.retries;
        let others = kernel.victims().map(|victims| victims.gang(tasks.set)).unwrap_or_default();
        let others = others.into_iter().filter_map(|other| kernel.cancel(other));
        let mut all: Vec<Running> = std::iter::once(tasks).chain(others).collect();
        if kernel.set(tasks.set).is_gang() {
            all.extend(due.extract_if(.., |other| other.set == tasks.set));
        }
        if again {
            return kernel.restart(all, Fate::Failed);
        }
        for tasks in all {
            let id = (task.0, tasks.first);
            self.failures.remove(&id);
            kernel.finish(tasks, Fate::GivenUp)?;
            self.backups.iter_mut().for_each(|backups| backups.given_up(id));
        }
        Ok(())
    }

    fn apply_changes(&mut self, kernel: &mut Kernel) -> Result<bool> {
        self.backups.as_mut().map_or(Ok(false), |backups| backups.apply_changes(kernel))
    }
}

impl Extension for FaultsSoFar {
    fn next(&self) -> Option<Time> {
        self.backups.as_ref()?.next()
    }

    /// Ends attempts at their end times: successful attempts end their task, failed attempts may be retried.
    fn due(&mut self, kernel: &mut Kernel) -> Result<()> {
        self.apply_changes(kernel)?;
        let mut due = kernel.take_due();
        // If two instances end at one instant, the one that began first counts. Attempts are popped from the end.
        due.sort_unstable_by_key(|tasks| Reverse((tasks.start, kernel.set(tasks.set).row, tasks.first)));
        while let Some(tasks) = due.pop() {
            let set = kernel.set(tasks.set);
            let task = (set.row, tasks.first);
            let superseded = self.backups.as_ref().is_some_and(|backups| backups.is_over(set, &tasks));
            if superseded {
                // The other instance has ended at the same instant.
                kernel.finish(tasks, Fate::Superseded)?;
            } else if tasks.fails {
                self.failed += 1;
                self.fail(kernel, task, tasks, &mut due)?;
            } else {
                self.failures.remove(&task);
                let backup = kernel.set(tasks.set).is_backup();
                self.backups_won += u64::from(backup);
                kernel.finish(tasks, Fate::Finished)?;
                self.backups.as_mut().map_or(Ok(()), |backups| backups.ended(kernel, task, &tasks))?;
            }
        }
        self.apply_changes(kernel)?;
        self.backups.iter_mut().for_each(|backups| backups.make(kernel));
        Ok(())
    }

    /// Reads the change log, because a task with a stopped instance may have another running instance.
    fn stop(&mut self, kernel: &mut Kernel) -> Result<bool> {
        self.apply_changes(kernel)
    }

    fn after_round(&mut self, kernel: &mut Kernel) -> Result<bool> {
        self.apply_changes(kernel).map(|_| false)
    }

    fn count(&self, outcome: &mut Outcome) {
        let backups = self.backups.as_ref().map_or(0, |backups| backups.created);
        (outcome.failures, outcome.backups, outcome.backups_won) = (self.failed, backups, self.backups_won);
    }
}

impl Checkpoint for FaultsSoFar {
    fn visit(&mut self, visitor: &mut Visitor) -> Result<()> {
        let FaultsSoFar { retries: _, failures, backups, failed, backups_won } = self;
        visit_values!(visitor; failures, failed, backups_won);
        visitor.option(backups.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_as_it_is_read() {
        let text = "fail=0.02,retries=1,straggle=0.05x4,backup=0.9x3";
        let faults: Faults = text.parse().expect("all parts");
        assert_eq!(faults.to_string(), text);
        let read = |text: &str| text.parse::<Faults>().expect("parts");
        assert_eq!(read("backup=0.9x3, retries=1 ,straggle=0.05x4,fail=0.02"), faults);
        assert_eq!(read("fail=1").retries, RETRIES);
        let wrong = ["", "fail", "fail=2", "fail=0.1,fail=0.1", "retries=-1", "retries=1001", "straggle=0.1"];
        for wrong in
            wrong.into_iter().chain(["straggle=0.1x0.5", "straggle=2x2", "backup=0x2", "backup=0.9x1001", "lost=1"])
        {
            assert!(wrong.parse::<Faults>().is_err(), "{wrong}");
        }
    }

    /// Checks how often attempts fail and straggle, how long failed ones ran, and that these results do not depend on the other draws. The
    /// bounds are five standard errors.
    #[test]
    fn attempts_are_drawn_with_their_chances() {
        const ATTEMPTS: u32 = 40_000;
        let draws = |text: &str| Draws::new(text.parse().expect("a setting"), 7);
        let of = |draws: &Draws| -> Vec<Attempt> {
            (0..ATTEMPTS).map(|n| draws.draw(u64::from(n % 7), n / 7, n % 3, Span(1_000_000))).collect()
        };
        let all = of(&draws("fail=0.25,straggle=0.1x3"));
        let near = |found: f64, chance: f64, deviation: f64| {
            assert!((found - chance).abs() < 5.0 * deviation / f64::from(ATTEMPTS).sqrt(), "{found}, not {chance}");
        };
        let share = |count: usize| count as f64 / f64::from(ATTEMPTS);
        near(share(all.iter().filter(|attempt| attempt.fails).count()), 0.25, (0.25f64 * 0.75).sqrt());
        let slow = all.iter().filter(|attempt| !attempt.fails && attempt.span == Span(3_000_000)).count();
        near(share(slow), 0.075, (0.075f64 * 0.925).sqrt());
        let certain = of(&draws("fail=1"));
        let ran = certain.iter().map(|attempt| attempt.span.0 as f64 / 1e6).sum::<f64>() / f64::from(ATTEMPTS);
        near(ran, 0.5, (1.0f64 / 12.0).sqrt());
        let other = of(&draws("fail=0.25"));
        assert!(all.iter().zip(&other).all(|(a, b)| a.fails == b.fails), "stragglers shift no failure");
        assert_ne!(of(&Draws::new("fail=0.25".parse().expect("a setting"), 8)), other, "another seed, other faults");
    }

    #[test]
    fn spans_are_rounded_up_and_have_an_end() {
        let straggles = Draws::new("straggle=1x1.5".parse().expect("a setting"), 0);
        let attempt = |span| straggles.draw(0, 0, 0, Span(span)).span.0;
        assert_eq!([attempt(0), attempt(3), attempt(u64::MAX)], [0, 5, u64::MAX]);
        let fails = Draws::new("fail=1".parse().expect("a setting"), 0).draw(0, 0, 0, Span(1));
        assert_eq!(fails, Attempt { span: Span(1), fails: true }, "a failing attempt takes some time");
    }
}
