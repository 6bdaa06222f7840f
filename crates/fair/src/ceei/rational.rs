//! Fractions among CEEI allocations: guessed from the floats, then verified without rounding.
//!
//! Tasks are algebraic numbers in general. They are fractions if only one resource has a price, or if the number of resources with a price
//! equals the number of users, as in all examples of the DRF paper. Verification is sufficient: feasible tasks are optimal if there are
//! prices at which each user buys exactly them (conditions of Karush, Kuhn and Tucker).

use super::super::{Exact, Instance, Number, Problem, linear};
use super::Market;

/// Instances with more users than this are solved in floats only.
const USERS: usize = 64;

/// The largest denominator that is guessed.
const DENOMINATOR: f64 = 1e6;

/// The relative distance from the float at which a guess is accepted.
const NEAR: f64 = 1e-13;

/// Returns the tasks and the unit prices as fractions, if they are fractions of moderate size.
pub fn recognise(instance: &Instance, problem: &Problem, market: &Market) -> Option<(Vec<Exact>, Vec<Exact>)> {
    let users = instance.users();
    if users.len() > USERS {
        return None;
    }
    let guess = |i: usize| {
        let user = &users[i];
        match &user.tasks {
            _ if instance.lacking(user).is_some() => Some(Exact::ZERO),
            Some(tasks) if market.tasks()[i] >= problem.tasks()[i] => Some(tasks.clone()),
            _ => fraction(market.tasks()[i]),
        }
    };
    let tasks: Vec<Exact> = (0..users.len()).map(guess).collect::<Option<_>>()?;
    let priced: Vec<usize> = (0..problem.dims()).filter(|&r| market.prices()[r] > 0.0).collect();
    for (r, capacity) in instance.capacity().iter().enumerate() {
        let used = users.iter().zip(&tasks).fold(Exact::ZERO, |sum, (user, x)| &sum + &(&user.demand[r] * x));
        if used > *capacity || (priced.contains(&r) && used != *capacity) {
            return None;
        }
    }
    let prices = unit_prices(instance, &tasks, &priced)?;
    Some((tasks, prices))
}

/// Computes prices at which each user buys exactly these tasks.
///
/// A user with unlimited tasks, or that runs fewer tasks than it has, pays its weight: `d . p = w / x`. These equations are solved in the
/// normal form of least squares, which is regular if they have one solution. All equations are then verified.
fn unit_prices(instance: &Instance, tasks: &[Exact], priced: &[usize]) -> Option<Vec<Exact>> {
    let (mut bound, mut sated) = (Vec::new(), Vec::new());
    for (user, x) in instance.users().iter().zip(tasks) {
        let row: Vec<Exact> = priced.iter().map(|&r| user.demand[r].clone()).collect();
        let weight = user.one_weight()?;
        if instance.lacking(user).is_some() || user.tasks.as_ref().is_some_and(Number::is_zero) {
            continue;
        }
        if !x.is_positive() {
            return None;
        }
        let of = if user.tasks.as_ref() == Some(x) { &mut sated } else { &mut bound };
        of.push((row, weight / x));
    }
    let size = priced.len();
    let mut normal = vec![Exact::ZERO; size * (size + 1)];
    for (row, pays) in &bound {
        for a in 0..size {
            for b in 0..=size {
                let other = if b < size { &row[b] } else { pays };
                normal[a * (size + 1) + b] = &normal[a * (size + 1) + b] + &(&row[a] * other);
            }
        }
    }
    let found = linear::solve(&mut normal, size)?;
    let pay = |row: &[Exact]| row.iter().zip(&found).fold(Exact::ZERO, |sum, (need, price)| &sum + &(need * price));
    let clears = found.iter().all(|price| !price.is_negative())
        && bound.iter().all(|(row, pays)| pay(row) == *pays)
        && sated.iter().all(|(row, most)| pay(row) <= *most);
    let mut prices = vec![Exact::ZERO; instance.capacity().len()];
    for (&r, price) in priced.iter().zip(found) {
        prices[r] = price;
    }
    clears.then_some(prices)
}

/// Returns the simplest fraction near a float, by its continued fraction.
fn fraction(value: f64) -> Option<Exact> {
    // The last two convergents.
    let ((mut a0, mut b0), (mut a1, mut b1)) = ((0.0, 1.0), (1.0, 0.0));
    let mut rest = value;
    for _ in 0..40 {
        let whole = rest.floor();
        (a0, a1) = (a1, whole * a1 + a0);
        (b0, b1) = (b1, whole * b1 + b0);
        if !(b1 <= DENOMINATOR && a1 < 9e15) {
            return None;
        }
        if (a1 / b1 - value).abs() <= NEAR * value.abs() {
            return Some(Exact::ratio(a1 as i64, b1 as i64));
        }
        rest = 1.0 / (rest - whole);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_found_and_others_are_not() {
        for (a, b) in [(45, 11), (100, 31), (1500, 31), (3, 1), (1, 999_983), (0, 1)] {
            assert_eq!(fraction(a as f64 / b as f64), Some(Exact::ratio(a, b)));
        }
        for value in [std::f64::consts::PI, 2f64.sqrt(), f64::NAN, f64::INFINITY] {
            assert_eq!(fraction(value), None);
        }
    }
}
