//! Small systems of linear equations, solved exactly for exact numbers.

use super::Number;

/// Solves `size` equations in as many unknowns by elimination. Returns the values of the unknowns.
///
/// `rows` is row-major, `size + 1` entries per row, the right-hand side last. Returns `None` if a pivot is 0, which means that the system
/// is singular. Each step takes the largest pivot, which matters for floats only. Cost: O(size³).
pub fn solve<N: Number>(rows: &mut [N], size: usize) -> Option<Vec<N>> {
    let width = size + 1;
    for step in 0..size {
        let height = |row: &usize| rows[row * width + step].float().abs();
        let candidates = (step..size).filter(|row| !rows[row * width + step].is_zero());
        let pivot = candidates.max_by(|a, b| height(a).total_cmp(&height(b)))?;
        for column in step..width {
            rows.swap(pivot * width + column, step * width + column);
        }
        let (above, below) = rows.split_at_mut((step + 1) * width);
        let top = &above[step * width..];
        for row in below.chunks_exact_mut(width) {
            if row[step].is_zero() {
                continue;
            }
            let factor = row[step].over(&top[step]);
            for column in step..width {
                row[column] = row[column].minus(&factor.times(&top[column]));
            }
        }
    }
    let mut answer = vec![N::zero(); size];
    for step in (0..size).rev() {
        let row = &rows[step * width..][..width];
        let known = (step + 1..size).fold(N::zero(), |sum, column| sum.plus(&row[column].times(&answer[column])));
        answer[step] = row[size].minus(&known).over(&row[step]);
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exact;

    #[test]
    fn fractions_come_out_and_singular_systems_do_not() {
        let numbers = |values: &[i64]| values.iter().map(|&value| Exact::ratio(value, 1)).collect::<Vec<_>>();
        let answer = solve(&mut numbers(&[0, 2, 1, 3, 4, 5]), 2).expect("regular");
        assert_eq!(answer, [Exact::ONE, Exact::ratio(1, 2)]);
        assert_eq!(solve(&mut numbers(&[1, 2, 3, 2, 4, 6]), 2), None);
        assert_eq!(solve(&mut [0.5, 2.0], 1), Some(vec![4.0]));
    }
}
