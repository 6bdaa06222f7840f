//! A sequence of linear programs in fractions, each over the optima of the previous ones.
//!
//! The revised simplex method: the inverse of the basis is stored, and columns stay sparse. The column with the steepest gain is raised.
//! After many steps without gain, the first column with a gain is raised instead, until a step gains. This guarantees termination (Bland,
//! Mathematics of Operations Research 1977). A column with a price is fixed at the end of a program: it is 0 at every optimum, so the next
//! program stays among the optima without a restart. Arithmetic is exact; there are no tolerances.

use crate::{Exact, Number};

/// Numbers by row or column; missing entries are 0.
pub type Sparse = Vec<(usize, Exact)>;

/// The number of consecutive steps without gain after which the first column with a gain is raised. Any number is correct, but raising the
/// first column takes many more steps.
const PATIENCE: usize = 30;

/// The points `x >= 0` with `row . x <= bound` for all rows, and a corner of this polytope.
#[derive(Clone, Debug)]
pub struct Polytope {
    /// The original entries of each column by row. The first columns are the slacks of the bounds.
    columns: Vec<Sparse>,
    /// Whether each column is fixed at 0.
    shut: Vec<bool>,
    /// The basic column of each row; `values` has its value.
    basis: Vec<usize>,
    values: Vec<Exact>,
    inverse: Vec<Vec<Exact>>,
}

impl Polytope {
    /// Creates a polytope with these bounds, at least 0, and with the slacks as its only variables: columns 0, 1, ... in the order of the
    /// rows.
    pub fn new(bounds: Vec<Exact>) -> Polytope {
        let rows = bounds.len();
        let unit = |row: usize| (0..rows).map(|at| if at == row { Exact::ONE } else { Exact::ZERO }).collect();
        Polytope {
            columns: (0..rows).map(|row| vec![(row, Exact::ONE)]).collect(),
            shut: vec![false; rows],
            basis: (0..rows).collect(),
            values: bounds,
            inverse: (0..rows).map(unit).collect(),
        }
    }

    /// Adds a variable with these entries in the rows. Returns its column.
    pub fn add(&mut self, entries: Sparse) -> usize {
        self.columns.push(entries);
        self.shut.push(false);
        self.columns.len() - 1
    }

    /// Returns whether a column is fixed at 0.
    pub fn is_shut(&self, column: usize) -> bool {
        self.shut[column]
    }

    /// Returns the value of a column at the current corner.
    pub fn value(&self, column: usize) -> Exact {
        let row = self.basis.iter().position(|&of| of == column);
        row.map_or(Exact::ZERO, |row| self.values[row].clone())
    }

    /// Moves to a corner that maximises the sum of these columns, and restricts the polytope to its optima.
    ///
    /// Panics: if the sum is unbounded (a programmer error).
    pub fn raise(&mut self, objective: &Sparse) {
        let mut worth = vec![Exact::ZERO; self.columns.len()];
        objective.iter().for_each(|(column, value)| worth[*column] = value.clone());
        let mut prices = vec![Exact::ZERO; self.basis.len()];
        for (row, &of) in self.inverse.iter().zip(&self.basis) {
            add(&mut prices, &worth[of], row);
        }
        let mut idle = 0;
        loop {
            let gain = |column: usize| &worth[column] - &times(&self.columns[column], &prices);
            let gains = (0..worth.len()).filter(|&column| !self.shut[column]).map(|column| (gain(column), column));
            let mut gaining = gains.filter(|(gain, _)| gain.is_positive());
            let steepest = |best: (Exact, usize), next: (Exact, usize)| if next.0 > best.0 { next } else { best };
            let entering = if idle > PATIENCE { gaining.next() } else { gaining.reduce(steepest) };
            let Some((gain, entering)) = entering else { break };
            let falls: Vec<Exact> = self.inverse.iter().map(|row| times(&self.columns[entering], row)).collect();
            let leaving = self.leaving(&falls).expect("every column is bounded");
            idle = if self.values[leaving].is_zero() { idle + 1 } else { 0 };
            self.pivot(leaving, entering, &falls);
            add(&mut prices, &gain, &self.inverse[leaving]);
        }
        for (column, worth) in worth.iter().enumerate() {
            self.shut[column] |= (worth - &times(&self.columns[column], &prices)).is_negative();
        }
    }

    /// Returns the row that reaches 0 first when the values of the basis fall at these rates; of equal rows the one of the lowest column.
    fn leaving(&self, falls: &[Exact]) -> Option<usize> {
        let falling = (0..falls.len()).filter(|&row| falls[row].is_positive());
        falling.map(|row| (&self.values[row] / &falls[row], self.basis[row], row)).min().map(|(.., row)| row)
    }

    fn pivot(&mut self, leaving: usize, entering: usize, falls: &[Exact]) {
        let part = &Exact::ONE / &falls[leaving];
        let mut top = std::mem::take(&mut self.inverse[leaving]);
        top.iter_mut().filter(|value| !value.is_zero()).for_each(|value| *value = &*value * &part);
        let rise = &self.values[leaving] * &part;
        for (row, fall) in falls.iter().enumerate().filter(|(row, fall)| *row != leaving && !fall.is_zero()) {
            let less = &Exact::ZERO - fall;
            add(&mut self.inverse[row], &less, &top);
            self.values[row] = &self.values[row] - &(fall * &rise);
        }
        (self.inverse[leaving], self.values[leaving], self.basis[leaving]) = (top, rise, entering);
    }
}

/// Returns the sum of the products.
fn times(sparse: &Sparse, dense: &[Exact]) -> Exact {
    let products: Vec<Exact> = sparse.iter().map(|(at, value)| value * &dense[*at]).collect();
    products.iter().sum()
}

/// Adds `factor` times `others` to `numbers`.
fn add(numbers: &mut [Exact], factor: &Exact, others: &[Exact]) {
    if factor.is_zero() {
        return;
    }
    for (number, other) in numbers.iter_mut().zip(others).filter(|(_, other)| !other.is_zero()) {
        *number = &*number + &(factor * other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a polytope with these bounds and columns.
    fn polytope(bounds: &[i64], columns: &[&[(i64, i64)]]) -> Polytope {
        let mut polytope = Polytope::new(bounds.iter().map(|&bound| Exact::ratio(bound, 1)).collect());
        for column in columns {
            polytope.add(column.iter().map(|&(above, below)| Exact::ratio(above, below)).enumerate().collect());
        }
        polytope
    }

    /// The example of Beale, Naval Research Logistics Quarterly 1955: raising the steepest column alone would cycle.
    #[test]
    fn it_ends_where_the_steepest_column_alone_does_not() {
        let columns: [&[(i64, i64)]; 4] = [
            &[(1, 4), (1, 2), (0, 1)],
            &[(-60, 1), (-90, 1), (0, 1)],
            &[(-1, 25), (-1, 50), (1, 1)],
            &[(9, 1), (3, 1), (0, 1)],
        ];
        let mut polytope = polytope(&[0, 0, 1], &columns);
        let worth = [(3, 4), (-150, 1), (1, 50), (-6, 1)];
        polytope.raise(
            &worth.iter().enumerate().map(|(at, &(above, below))| (3 + at, Exact::ratio(above, below))).collect(),
        );
        let expected = [(1, 25), (0, 1), (1, 1), (0, 1)].map(|(above, below)| Exact::ratio(above, below));
        assert_eq!([3, 4, 5, 6].map(|column| polytope.value(column)), expected);
    }

    #[test]
    fn a_second_program_stays_at_the_optimum_of_the_first() {
        // x + y <= 4 and x + 2 z <= 3. The first program maximises x + y, and the second one maximises the new variable z.
        let mut polytope = polytope(&[4, 3], &[&[(1, 1), (1, 1)], &[(1, 1), (0, 1)]]);
        polytope.raise(&vec![(2, Exact::ONE), (3, Exact::ONE)]);
        assert!(polytope.is_shut(0) && !polytope.is_shut(1));
        let new = polytope.add(vec![(1, Exact::from(2))]);
        polytope.raise(&vec![(new, Exact::ONE)]);
        let found = [new, 2, 3].map(|column| polytope.value(column));
        assert_eq!(found, [Exact::ratio(3, 2), Exact::ZERO, Exact::from(4)]);
    }
}
