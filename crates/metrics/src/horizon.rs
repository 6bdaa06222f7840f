//! Service delays of a run that is cut off at a horizon.
//!
//! At the horizon H the reference has served R cluster-seconds of a user's work. The first R cluster-seconds that the user submits are
//! *judged*. With submitted work S(t), the policy's service P(t) and the service R(t) of the reference, the delays are
//!
//! - in the reference `∫ (min(S(t), R) − R(t)) dt / R`,
//! - under the policy `∫ (min(S(t), R) − min(P(t), R)) dt / R`,
//!
//! both from 0 to H, and `min(P(H), R) / R` is the part of the judged work that the policy has served. Work that is served by H neither
//! under the policy nor in the reference is not judged. It would have the same age in both delays, and would bring their ratio near 1 for
//! any policy.
//!
//! If all work is served by H both under the policy and in the reference, these delays equal those of a run without a horizon.

use crate::work::ServedWork;
use plimsoll_base::units::Time;

/// The largest relative deviation of sums of work that counts as a rounding error.
const ROUNDING: f64 = 1e-9;

/// The submitted and the served work of a user, in cluster-seconds.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct HorizonLog {
    submitted: Vec<(Time, f64)>,
    served: Vec<Served>,
}

/// Work that is served evenly between two instants.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Served {
    start: Time,
    end: Time,
    work: f64,
}

/// The service of a user's judged work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedService {
    /// The mean age of the work when the reference serves it, in seconds.
    pub fair_delay: f64,
    /// The mean age of the work when the policy serves it, in seconds.
    pub delay: f64,
    /// The part of the judged work that the policy has served, 0 to 1.
    pub served: f64,
}

impl JudgedService {
    /// Returns the delay in the reference over the delay under the policy, times the served part; `None` without a delay.
    pub fn speed(&self) -> Option<f64> {
        (self.delay > 0.0).then(|| self.fair_delay / self.delay * self.served)
    }
}

impl HorizonLog {
    /// Records the submission of work.
    pub fn submitted(&mut self, at: Time, work: f64) {
        match self.submitted.last_mut() {
            Some((last, sum)) if *last == at => *sum += work,
            _ => self.submitted.push((at, work)),
        }
    }

    /// Records work that is served evenly between two instants.
    pub fn served(&mut self, (start, end): (Time, Time), work: f64) {
        match self.served.last_mut() {
            Some(last) if (last.start, last.end) == (start, end) => last.work += work,
            _ => self.served.push(Served { start, end, work }),
        }
    }

    /// Returns the work that the policy has served by the horizon.
    pub fn total_served(&self) -> f64 {
        self.served.iter().fold(0.0, |sum, served| sum + served.work)
    }

    /// Returns whether the policy has served this amount of work, up to rounding errors.
    pub fn has_served(&self, work: f64) -> bool {
        self.total_served() >= work * (1.0 - ROUNDING)
    }

    /// Judges the user's work. `fair` is the service of all of the user's work in the reference, and `left` the work that the reference
    /// has not served at the horizon. Returns `None` if the reference has served nothing. Cost: O(n log n) for n records.
    pub fn judge(&self, horizon: Time, fair: ServedWork, left: f64) -> Option<JudgedService> {
        let work = fair.work - left;
        if work <= fair.work * ROUNDING {
            return None;
        }
        let (judged, others) = self.ages(horizon, work);
        let delay = (judged - self.area(horizon, work)) / work;
        let served = if self.has_served(work) { 1.0 } else { self.total_served() / work };
        Some(JudgedService { fair_delay: (fair.delay - others) / work, delay, served })
    }

    /// Returns the sum of amount times age at the horizon, for the first `work` cluster-seconds that were submitted and for the rest.
    fn ages(&self, horizon: Time, work: f64) -> (f64, f64) {
        let mut submitted = self.submitted.clone();
        submitted.sort_by_key(|(at, _)| *at);
        let (mut before, mut judged, mut others) = (0.0, 0.0, 0.0);
        for (at, part) in submitted {
            let age = horizon.since(at).seconds();
            let counted = part.min(f64::max(work - before, 0.0));
            judged += counted * age;
            others += (part - counted) * age;
            before += part;
        }
        (judged, others)
    }

    /// Integrates the served work, at most `work`, up to the horizon.
    fn area(&self, horizon: Time, work: f64) -> f64 {
        // The rate grows at the start of a record and falls at its end.
        let mut changes: Vec<(Time, f64, i32)> = Vec::with_capacity(2 * self.served.len());
        for served in &self.served {
            let rate = served.work / served.end.since(served.start).seconds().max(1e-6);
            changes.extend([(served.start, rate, 1), (served.end, -rate, -1)]);
        }
        changes.sort_by_key(|(at, ..)| *at);
        let (mut now, mut rate, mut open, mut done, mut area) = (Time::ZERO, 0.0, 0, 0.0, 0.0);
        for (at, change, count) in changes {
            let span = at.since(now).seconds();
            if done + rate * span >= work {
                break;
            }
            area += (done + rate * span / 2.0) * span;
            done += rate * span;
            (now, open) = (at, open + count);
            rate = if open == 0 { 0.0 } else { rate + change };
        }
        let rest = horizon.since(now).seconds();
        let to_all = if rate > 0.0 { ((work - done) / rate).clamp(0.0, rest) } else { rest };
        let reached = (done + f64::max(rate, 0.0) * to_all).min(work);
        area + (done + reached) / 2.0 * to_all + reached * (rest - to_all)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use plimsoll_base::units::Span;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{found} is not {wanted}");
    }

    /// Returns the judged service of 1,000 units of work submitted at once. The reference serves a tenth of this work evenly by 100 s,
    /// with a mean age of 50 s.
    fn tenth(served: &[(u64, u64, f64)]) -> JudgedService {
        let mut log = HorizonLog::default();
        log.submitted(at(0), 1000.0);
        served.iter().for_each(|&(start, end, work)| log.served((at(start), at(end)), work));
        let fair = ServedWork { work: 1000.0, delay: 100.0 * 50.0 + 900.0 * 100.0 };
        log.judge(at(100), fair, 900.0).expect("judged work")
    }

    #[test]
    fn a_user_that_gets_nothing_has_speed_0_however_little_the_reference_serves() {
        let nothing = tenth(&[]);
        near(nothing.fair_delay, 50.0);
        near(nothing.delay, 100.0);
        assert_eq!((nothing.served, nothing.speed()), (0.0, Some(0.0)));
    }

    #[test]
    fn what_a_policy_serves_beyond_the_reference_is_not_judged() {
        // The policy serves as the reference does: a tenth, evenly.
        near(tenth(&[(0, 100, 100.0)]).speed().expect("a delay"), 1.0);
        // The policy is ten times as fast: it serves the first tenth by 10 s.
        let all = tenth(&[(0, 100, 1000.0)]);
        near(all.delay, 5.0);
        near(all.speed().expect("a delay"), 10.0);
        // The policy serves half of the judged work, 50 of 100 units. The mean age is (50 + 100) / 2.
        let half = tenth(&[(0, 100, 50.0)]);
        near(half.delay, 75.0);
        near(half.served, 0.5);
        near(half.speed().expect("a delay"), 50.0 / 75.0 * 0.5);
    }

    #[test]
    fn work_of_which_the_reference_serves_nothing_is_not_judged() {
        let mut log = HorizonLog::default();
        log.submitted(at(5), 3.0);
        assert_eq!(log.judge(at(5), ServedWork { work: 3.0, delay: 0.0 }, 3.0), None);
        assert_eq!(HorizonLog::default().judge(at(5), ServedWork::default(), 0.0), None);
    }

    /// The reference implementation, which integrates the definition second by second. All rates are constant within a second.
    fn slow(horizon: u64, log: &HorizonLog, fair_curve: &[f64]) -> JudgedService {
        let whole = fair_curve[horizon as usize];
        let submitted =
            |t: u64| -> f64 { log.submitted.iter().filter(|(submit, _)| *submit <= at(t)).map(|(_, work)| work).sum() };
        let served = |t: u64| -> f64 {
            let part = |one: &Served| {
                let (start, end) = (one.start.0 as f64 / 1e6, one.end.0 as f64 / 1e6);
                one.work * ((t as f64 - start) / (end - start)).clamp(0.0, 1.0)
            };
            log.served.iter().map(part).sum()
        };
        let (mut fair, mut own) = (0.0, 0.0);
        for t in 0..horizon {
            let cap = submitted(t).min(whole);
            fair += cap - (fair_curve[t as usize] + fair_curve[t as usize + 1]) / 2.0;
            // The curve may reach the limit `whole` within the second.
            let (low, high) = (served(t), served(t + 1));
            let mean = match (low >= whole, high > whole) {
                (true, _) => whole,
                (false, false) => (low + high) / 2.0,
                (false, true) => {
                    let part = (whole - low) / (high - low);
                    (low + whole) / 2.0 * part + whole * (1.0 - part)
                }
            };
            own += cap - mean;
        }
        JudgedService { fair_delay: fair / whole, delay: own / whole, served: (served(horizon) / whole).min(1.0) }
    }

    #[test]
    fn random_services_are_judged_as_the_definition_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(40);
        let (mut ahead, mut behind) = (0, 0);
        for case in 0..500 {
            let horizon = rng.random_range(5..60u64);
            let mut log = HorizonLog::default();
            let mut works: Vec<(u64, f64)> = (0..rng.random_range(1..6))
                .map(|_| (rng.random_range(0..horizon), f64::from(rng.random_range(1..50u32))))
                .collect();
            // Rows are not always recorded in order.
            works.iter().for_each(|&(submit, work)| log.submitted(at(submit), work));
            works.sort_by_key(|(submit, _)| *submit);
            let all: f64 = works.iter().map(|(_, work)| work).sum();
            // The reference serves up to `pace` of the submitted work per second.
            let pace = rng.random_range(0.1..20.0);
            let mut curve = vec![0.0];
            for t in 0..horizon {
                let there: f64 = works.iter().filter(|(submit, _)| *submit <= t).map(|(_, work)| work).sum();
                curve.push(f64::min(curve[t as usize] + pace, there));
            }
            for &(submit, work) in &works {
                let start = rng.random_range(submit..=horizon);
                if start < horizon {
                    let end = rng.random_range(start + 1..=horizon);
                    log.served((at(start), at(end)), work * f64::from(rng.random_range(1..=4u32)) / 4.0);
                }
            }
            let area: f64 = (0..horizon as usize)
                .map(|t| {
                    let there =
                        works.iter().filter(|(submit, _)| *submit <= t as u64).map(|(_, work)| work).sum::<f64>();
                    there - (curve[t] + curve[t + 1]) / 2.0
                })
                .sum();
            let done = curve[horizon as usize];
            let found = log.judge(at(horizon), ServedWork { work: all, delay: area }, all - done).expect("judged work");
            let slow = slow(horizon, &log, &curve);
            near(found.fair_delay, slow.fair_delay);
            near(found.delay, slow.delay);
            near(found.served, slow.served);
            assert!(found.delay > -1e-9, "case {case}: {found:?}");
            ahead += usize::from(log.total_served() > done);
            behind += usize::from(log.total_served() < done);
        }
        assert!(ahead > 50 && behind > 50, "the cases are one-sided: {ahead} ahead, {behind} behind");
    }
}
