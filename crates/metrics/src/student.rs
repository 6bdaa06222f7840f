//! Student's t distribution, for real numbers of degrees of freedom, as Welch's test requires.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the standard distribution, or `None` if `df` is not above 0.
fn student(df: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, df).ok()
}

/// Computes P(|T| ≥ |t|) for Student's T of `df` degrees of freedom: a two-sided p-value, with full relative precision for small values.
/// NaN unless `df` > 0.
pub fn t_tail(t: f64, df: f64) -> f64 {
    student(df).map_or(f64::NAN, |student| 2.0 * student.sf(t.abs()))
}

/// Computes P(T ≥ t): the upper tail alone, for one-sided tests. NaN unless `df` > 0.
pub fn t_above(t: f64, df: f64) -> f64 {
    student(df).map_or(f64::NAN, |student| student.sf(t))
}

/// Returns the t with P(|T| ≤ t) = `level` for Student's T of `df` degrees of freedom. Returns `None` unless `df` > 0 and `level` is inside
/// 0..1 (both ends excluded). Accurate to 1e-9 for up to 20,000 degrees of freedom, and to 1e-5 for 100,000.
pub fn t_quantile(level: f64, df: f64) -> Option<f64> {
    let student = student(df).filter(|_| level > 0.0 && level < 1.0)?;
    Some(student.inverse_cdf(0.5 + 0.5 * level))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

    use super::*;

    /// Computes P(|T| ≤ t) for t = √df tan θ and whole degrees of freedom, as a finite sum: the reference implementation. Source:
    /// Abramowitz and Stegun, 26.7.3 (odd df) and 26.7.4 (even df).
    fn finite_sum(theta: f64, df: u64) -> f64 {
        let (sin, cos) = theta.sin_cos();
        let odd = df % 2;
        // The terms are cos^k θ with coefficients (2·4···)/(3·5···) for odd df and (1·3···)/(2·4···) for even df.
        let (mut term, mut sum) = if odd == 1 { (cos, 0.0) } else { (1.0, 0.0) };
        for k in 0..df / 2 {
            sum += term;
            let next = (2 * k + 1 + odd) as f64;
            term *= cos * cos * next / (next + 1.0);
        }
        if odd == 1 { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
    }

    #[test]
    fn tails_equal_the_finite_sum_for_whole_degrees_of_freedom() {
        for df in (1..=60).chain([99, 100, 999, 1000]) {
            for t in [0.0, 0.01, 0.3, 1.0, 1.9, 2.5, 4.0, 7.5, 20.0] {
                let slow = 1.0 - finite_sum((t / (df as f64).sqrt()).atan(), df);
                let fast = t_tail(t, df as f64);
                assert!((fast - slow).abs() < 1e-11, "{t} of {df}: {fast}, not {slow}");
                assert_eq!(t_tail(-t, df as f64), fast);
            }
        }
    }

    #[test]
    fn tails_equal_those_of_scipy() {
        // scipy 1.17.1: 2 * scipy.stats.t.sf(t, df).
        let table = [
            (0.5, 1.0, 0.704_832_764_699_133_5),
            (2.0, 1.5, 0.224_188_330_356_051_12),
            (3.2, 3.7, 0.036_740_160_709_560_016),
            (1.0, 12.25, 0.336_654_842_749_129_55),
            (8.0, 9.0, 2.213_481_680_940_015_5e-5),
            (40.0, 9.0, 1.898_299_844_933_984e-11),
            (1e4, 4.5, 1.049_838_934_785_752_9e-17),
            (2.5, 99.9, 0.014_047_454_430_625_854),
            (6.0, 500.0, 3.790_442_338_479_296e-9),
            (0.001, 2.2, 0.999_285_495_518_496),
        ];
        for (t, df, exact) in table {
            let given = t_tail(t, df);
            assert!((given / exact - 1.0).abs() < 1e-11, "{t} of {df}: {given:e}, not {exact:e}");
            assert!(
                (t_above(t, df) * 2.0 - given).abs() < 1e-15 && (t_above(-t, df) + given / 2.0 - 1.0).abs() < 1e-15
            );
        }
    }

    #[test]
    fn t_quantiles_equal_the_published_tables() {
        // Each row has the degrees of freedom and the two-sided quantiles for 90, 95 and 99 %.
        let table = [
            (1, 6.313751515, 12.706204736, 63.656741162),
            (2, 2.919985580, 4.302652730, 9.924843201),
            (3, 2.353363435, 3.182446305, 5.840909310),
            (4, 2.131846786, 2.776445105, 4.604094871),
            (5, 2.015048373, 2.570581836, 4.032142984),
            (9, 1.833112933, 2.262157163, 3.249835542),
            (10, 1.812461123, 2.228138852, 3.169272673),
            (19, 1.729132812, 2.093024054, 2.860934606),
            (29, 1.699127027, 2.045229642, 2.756385904),
            (30, 1.697260887, 2.042272456, 2.749995654),
            (100, 1.660234326, 1.983971519, 2.625890521),
            (1000, 1.646378818, 1.962339081, 2.580754698),
        ];
        for (df, at_90, at_95, at_99) in table {
            for (level, exact) in [(0.90, at_90), (0.95, at_95), (0.99, at_99)] {
                let given = t_quantile(level, f64::from(df)).unwrap();
                assert!((given - exact).abs() < 2e-9 * exact, "{level} of {df}: {given}, not {exact}");
            }
        }
    }

    #[test]
    fn tails_turn_quantiles_back() {
        for df in [1.0, 1.3, 2.0, 3.7, 7.0, 30.0, 500.5] {
            for level in [0.1, 0.5, 0.95, 0.999] {
                let t = t_quantile(level, df).unwrap();
                assert!((t_tail(t, df) - (1.0 - level)).abs() < 1e-12, "{level} of {df}");
            }
        }
        assert_eq!(t_tail(0.0, 4.0), 1.0);
    }

    #[test]
    fn t_quantiles_equal_their_closed_forms_and_the_normal_limit() {
        for level in [0.01, 0.1, 0.5, 0.8, 0.95, 0.999, 0.9999] {
            let one = (FRAC_PI_2 * level).tan();
            let two = level * (2.0 / (1.0 - level * level)).sqrt();
            for (df, exact) in [(1.0, one), (2.0, two)] {
                let given = t_quantile(level, df).unwrap();
                assert!((given / exact - 1.0).abs() < 1e-10, "{level} of {df}: {given}, not {exact}");
            }
        }
        // z + (z³ + z) / 4 df, the first terms of the expansion around the normal distribution.
        let z: f64 = 1.959_963_984_540_054;
        assert!((t_quantile(0.95, 20_001.0).unwrap() - z - (z.powi(3) + z) / 80_004.0).abs() < 1e-8);
        for (level, df) in [(0.95, 0.0), (0.0, 5.0), (1.0, 5.0), (-0.5, 5.0), (f64::NAN, 5.0), (0.95, f64::NAN)] {
            assert_eq!(t_quantile(level, df), None);
        }
    }
}
