//! The count, mean and sum of squared deviations of a set of values.

/// Moments of a set of values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    pub count: u32,
    pub mean: f64,
    /// The sum of squared deviations Σ (y − mean)².
    pub m2: f64,
}

impl Moments {
    /// The moments of `count` equal values.
    pub fn of_equal(count: u32, value: f64) -> Self {
        Self {
            count,
            mean: if count == 0 { 0.0 } else { value },
            m2: 0.0,
        }
    }

    /// The moments of the union of two sets of values (Chan, Golub and LeVeque 1979).
    pub fn merge(self, other: Self) -> Self {
        if other.count == 0 {
            return self;
        }
        if self.count == 0 {
            return other;
        }
        let (n_a, n_b) = (f64::from(self.count), f64::from(other.count));
        let share = n_b / (n_a + n_b);
        // Differences and squares of huge values may overflow: a bound may be infinite, but not NaN.
        let delta = other.mean - self.mean;
        Self {
            count: self.count + other.count,
            mean: self.mean * (1.0 - share) + other.mean * share,
            m2: self.m2 + other.m2 + delta * delta * n_a * share,
        }
    }

    /// The variance, computed with the divisor n.
    pub fn variance(self) -> f64 {
        self.m2 / f64::from(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Moments {
        let each = values.iter().map(|y| Moments::of_equal(1, *y));
        each.fold(Moments::default(), Moments::merge)
    }

    proptest! {
        #[test]
        fn merged_moments_equal_the_moments_of_all_values(
            values in prop::collection::vec(-1e3..1e3f64, 1..40), at: prop::sample::Index,
        ) {
            let (a, b) = values.split_at(at.index(values.len()));
            let merged = of(a).merge(of(b));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(merged.count as usize, values.len());
            prop_assert!((merged.mean - mean).abs() < 1e-9);
            prop_assert!((merged.variance() - variance).abs() < 1e-6);
        }
    }

    #[test]
    fn equal_values_have_zero_variance_and_their_value_as_mean() {
        for n in 1..50 {
            let moments = of(&vec![0.1; n]);
            assert!((moments.mean - 0.1).abs() < 1e-16 && moments.variance() < 1e-30);
        }
        assert_eq!(Moments::of_equal(0, f64::NAN), Moments::default());
    }
}
