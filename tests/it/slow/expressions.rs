//! The orders inside a user that are written as expressions, from their published definitions: `docs/policies.md`, "Expressions".
//!
//! Numbers are multiples of 2^-64 in big integers, as the documentation states: quotients and products are rounded down, logarithms to the
//! nearest multiple. A logarithm is a series in 300 fractional digits.

use std::cell::RefCell;
use std::collections::HashMap;

use num_bigint::{BigInt, Sign};

use super::Row;
use super::order::Job;

/// An order that has no name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Tang et al., 2009, with the wait at the present instant.
    Wfp3,
    /// The same as RLScheduler computes it, without the present instant.
    Wfp3Published,
    /// Tang et al., 2009.
    Unicep,
    UnicepPublished,
    /// Carastan-Santos and de Camargo, SC 2017.
    F1,
    /// Tiresias, NSDI 2019: the shortest remaining service.
    Srsf,
    /// Tiresias: service in cores times seconds, in queues.
    Service,
    /// The least laxity.
    Laxity,
    /// A square root of the time since the tasks could have started.
    Root,
}

impl Written {
    pub const ALL: [Written; 9] = [
        Written::Wfp3,
        Written::Wfp3Published,
        Written::Unicep,
        Written::UnicepPublished,
        Written::F1,
        Written::Srsf,
        Written::Service,
        Written::Laxity,
        Written::Root,
    ];

    /// Returns the text after `order`.
    pub fn text(self) -> &'static str {
        match self {
            Written::Wfp3 => "-(age / estimate) ** 3 * tasks",
            Written::Wfp3Published => "((1 + submit) / estimate) ** 3 * tasks",
            Written::Unicep => "-(age + 0.000000000000001) / (log2(tasks + 0.000000000000001) * estimate)",
            Written::UnicepPublished => {
                "(1 + submit - 0.000000000000001) / (log2(tasks + 0.000000000000001) * estimate)"
            }
            Written::F1 => {
                "log10(if(estimate == 0, 0.1, estimate)) * tasks + 870 * log10(if(submit == 0, 0.1, submit))"
            }
            Written::Srsf => "job_left * demand[cpu]",
            Written::Service => "if(job_service[cpu] < 0.00000001, 0, 1) * 1000000 + submit",
            Written::Laxity => "deadline - now - estimate",
            Written::Root => "estimate - sqrt(wait)",
        }
    }
}

/// The fractional digits of a value.
const PLACES: u32 = 64;

fn most() -> BigInt {
    BigInt::from(1) << (124 + PLACES)
}

/// Returns the greatest integer that is not above a quotient.
fn floor(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    if rest.sign() == Sign::NoSign || rest.sign() == denominator.sign() { quotient } else { quotient - 1 }
}

fn times(a: &BigInt, b: &BigInt) -> BigInt {
    floor(&(a * b), &(BigInt::from(1) << PLACES)).clamp(-most(), most())
}

fn over(a: &BigInt, b: &BigInt) -> BigInt {
    match (a.sign(), b.sign()) {
        (Sign::NoSign, _) => BigInt::ZERO,
        (Sign::Plus, Sign::NoSign) => most(),
        (Sign::Minus, Sign::NoSign) => -most(),
        _ => floor(&(a << PLACES), b).clamp(-most(), most()),
    }
}

fn ratio(numerator: i64, denominator: u64) -> BigInt {
    floor(&(BigInt::from(numerator) << PLACES), &denominator.into())
}

fn seconds(micros: u128) -> BigInt {
    floor(&(BigInt::from(micros) << PLACES), &1_000_000.into())
}

/// Returns the natural logarithm of a positive number with 300 fractional digits, by the series of the inverse hyperbolic tangent.
fn natural(value: &BigInt, places: u32) -> BigInt {
    const DIGITS: u32 = 300;
    let series = |numerator: &BigInt, denominator: &BigInt| {
        let z = floor(&(numerator << DIGITS), denominator);
        let square = (&z * &z) >> DIGITS;
        let (mut power, mut sum, mut k) = (z, BigInt::ZERO, 1);
        while power.magnitude() > BigInt::from(1).magnitude() {
            sum += floor(&power, &k.into());
            power = (&power * &square) >> DIGITS;
            k += 2;
        }
        sum * 2
    };
    let one = BigInt::from(1) << DIGITS;
    let exponent = value.bits() as i64 - 1;
    let mantissa: BigInt = (value << DIGITS) >> exponent;
    series(&1.into(), &3.into()) * (exponent - i64::from(places)) + series(&(&mantissa - &one), &(&mantissa + &one))
}

thread_local! {
    /// The logarithms so far, by base and value.
    static LOGARITHMS: RefCell<HashMap<(u64, BigInt), BigInt>> = RefCell::default();
}

/// Returns the logarithm of a positive value to a base.
fn log(base: u64, value: &BigInt) -> BigInt {
    let known = LOGARITHMS.with_borrow(|known| known.get(&(base, value.clone())).cloned());
    known.unwrap_or_else(|| {
        let result = computed_log(base, value);
        LOGARITHMS.with_borrow_mut(|known| known.insert((base, value.clone()), result.clone()));
        result
    })
}

fn computed_log(base: u64, value: &BigInt) -> BigInt {
    let quotient: BigInt = natural(value, PLACES) << (PLACES + 1);
    // Rounds to the nearest multiple: half of the next odd number below the doubled quotient.
    floor(&(floor(&quotient, &natural(&base.into(), 0)) + 1), &2.into())
}

/// Returns the value of an order for a row.
fn value(written: Written, row: &Row, released: u64, job: &Job, now: u64) -> BigInt {
    let estimate_us = row.estimate.expect("a row with an estimate");
    let (estimate, submit) = (seconds(estimate_us.into()), seconds(row.submit.into()));
    let tasks = BigInt::from(row.tasks) << PLACES;
    let (one, tiny) = (ratio(1, 1), ratio(1, 1_000_000_000_000_000));
    let age = seconds((now - row.submit).into());
    let cube = |x: BigInt| times(&times(&x, &x), &x);
    match written {
        Written::Wfp3 => times(&-cube(over(&age, &estimate)), &tasks),
        Written::Wfp3Published => times(&cube(over(&(one + submit), &estimate)), &tasks),
        Written::Unicep => over(&-(age + &tiny), &times(&log(2, &(tasks + &tiny)), &estimate)),
        Written::UnicepPublished => over(&(one + submit - &tiny), &times(&log(2, &(tasks + &tiny)), &estimate)),
        Written::F1 => {
            let positive = |value: BigInt| if value == BigInt::ZERO { ratio(1, 10) } else { value };
            let weighted = times(&ratio(870, 1), &log(10, &positive(submit)));
            times(&log(10, &positive(estimate)), &tasks) + weighted
        }
        // In thousandths of a core times microseconds, exactly.
        Written::Srsf => {
            let rows = job.rows.iter();
            let open: u64 = rows.map(|(row, ended)| row.estimate.unwrap_or(0) * (row.tasks - ended)).sum();
            BigInt::from(open.saturating_sub(job.running.iter().sum())) * row.demand[0]
        }
        Written::Service => {
            // Thousandths of a core times microseconds, of which 10^9 are a core for a second.
            let service: u128 = job.served.iter().map(|(demand, ran)| u128::from(demand[0]) * u128::from(*ran)).sum();
            BigInt::from(if service < 10 { 0 } else { 1_000_000_000_000u64 }) + row.submit
        }
        // In microseconds, exactly; a row without a deadline has the latest.
        Written::Laxity => BigInt::from(row.deadline.unwrap_or(u64::MAX)) - now - estimate_us,
        Written::Root => estimate - (seconds((now - released).into()) << PLACES).sqrt(),
    }
}

/// Returns the key of a row: the first 120 bits of its value, which is what the engine compares.
pub fn key(written: Written, row: &Row, released: u64, job: &Job, now: u64) -> BigInt {
    let value = value(written, row, released, job, now);
    let lost = value.bits().saturating_sub(120);
    let kept: BigInt = (BigInt::from_biguint(Sign::Plus, value.magnitude().clone()) >> lost) << lost;
    if value.sign() == Sign::Minus { -kept } else { kept }
}
