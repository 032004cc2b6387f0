//! A random point of the Pareto set of (mu, sigma): the points for which no point of the domain has a larger posterior
//! mean mu and a larger standard deviation sigma.
//!
//! The set is approximated by the points that no other examined point dominates. The examined points are an evenly
//! spread sample, the ends of the set (the maxima of mu and of sigma), the best observed points, and random steps from
//! the set so far, in rounds of decreasing length.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, concatenate};
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::error::{Result, check};
use crate::gp::GaussianProcess;
use crate::maximize::Maximizer;
use crate::problem::{Domain, Member};
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer};
use crate::strategy::bayes::acquisitions::max_variance::MaxVariance;
use crate::strategy::bayes::choose::search::{MEAN, Search};
use crate::strategy::bayes::choose::spacing::is_separated;
use crate::strategy::bayes::terms::Terms;

/// The number of evenly spread points.
const N_EVEN: usize = 1024;
/// The number of random steps in each round, and the standard deviations of the steps.
const N_STEPS: usize = 256;
const STEPS: [f64; 6] = [0.2, 0.1, 0.05, 0.02, 0.01, 0.005];

impl Search<'_, '_> {
    /// A random point of the Pareto set, for a box without a context. Points near the `abandoned` ones are left out, if
    /// others are left.
    pub(super) fn point_of_pareto_set(
        &mut self,
        gp: &GaussianProcess,
        terms: &mut Terms,
        maximizer: &Maximizer,
        abandoned: ArrayView2<f64>,
    ) -> Result<Member> {
        let domain = self.scope.domain;
        let mut points = domain.quasi_random(N_EVEN, self.call.rng);
        let ends: [&dyn Formula; 2] = [&MEAN, &MaxVariance {}];
        for formula in ends {
            let end = self.best(&mut Scorer::new(gp, formula, &[]), maximizer)?;
            points
                .push_row(ArrayView1::from(&end.point))
                .expect("a point of the domain");
        }
        points = concatenate![Axis(0), points, self.best_observed];
        if let Some(pool) = self.scope.pool {
            points = concatenate![Axis(0), points, pool.points()];
        }
        let mut set = self.undominated(gp, terms, points, abandoned)?;
        for length in STEPS {
            check(self.call.stop)?;
            let rng = &mut *self.call.rng;
            let mut moved = Array2::zeros((N_STEPS, domain.width()));
            for mut row in moved.rows_mut() {
                let mut x = set.row(rng.random_range(0..set.nrows())).to_vec();
                for x in &mut x {
                    *x += length * rng.sample::<f64, _>(StandardNormal);
                }
                domain.snap(&mut x);
                row.assign(&ArrayView1::from(&x));
            }
            set = self.undominated(gp, terms, concatenate![Axis(0), set, moved], abandoned)?;
        }
        let chosen = self.call.rng.random_range(0..set.nrows());
        Ok(Member::new(set.row(chosen).to_vec(), None))
    }

    /// Returns the undominated points among the feasible points where trials succeed, and that are not near `abandoned`
    /// points. If trials fail at every feasible point, the undominated feasible points are returned. Without a feasible
    /// point, all points are compared.
    fn undominated(
        &self,
        gp: &GaussianProcess,
        terms: &mut Terms,
        mut points: Array2<f64>,
        abandoned: ArrayView2<f64>,
    ) -> Result<Array2<f64>> {
        let keep = |points: &mut Array2<f64>, kept: &[usize]| {
            if !kept.is_empty() {
                *points = points.select(Axis(0), kept);
            }
        };
        let feasible = self.query.feasible_members().of_rows(points.view())?;
        let kept: Vec<usize> = (0..points.nrows()).filter(|&i| feasible[i]).collect();
        keep(&mut points, &kept);
        if abandoned.nrows() > 0
            && let Domain::Box(product) = self.scope.domain
        {
            let is_new = |i: &usize| is_separated(product, &points.row(*i).to_vec(), abandoned);
            let kept: Vec<usize> = (0..points.nrows()).filter(is_new).collect();
            keep(&mut points, &kept);
        }
        let lifted = self.lifted(&points);
        let mut is_kept = vec![true; points.nrows()];
        for term in terms {
            let mut added = vec![0.0; points.nrows()];
            term.scorer(&[]).values(lifted.view(), &mut added);
            let both = is_kept.iter_mut().zip(added);
            both.for_each(|(is_kept, added)| *is_kept &= !term.excludes(added));
        }
        let kept: Vec<usize> = (0..points.nrows()).filter(|&i| is_kept[i]).collect();
        keep(&mut points, &kept);
        let (mean, variance) = gp.predict(self.lifted(&points).view());
        keep(&mut points, &pareto_set(&mean, &variance));
        Ok(points)
    }

    /// The rows of the model at points of the searched domain.
    fn lifted(&self, points: &Array2<f64>) -> Array2<f64> {
        match self.query.restriction() {
            None => points.clone(),
            Some(restriction) => restriction.lift_rows(points.view()),
        }
    }
}

/// The pairs (a_i, b_i) that no other pair dominates, in the order of decreasing a. Of equal pairs, the first counts.
fn pareto_set(a: &[f64], b: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..a.len()).collect();
    order.sort_by(|&i, &j| a[j].total_cmp(&a[i]).then(b[j].total_cmp(&b[i])));
    let mut largest = f64::NEG_INFINITY;
    order.retain(|&i| {
        let is_kept = b[i] > largest;
        largest = largest.max(b[i]);
        is_kept
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::tests::wave;

    #[test]
    fn pareto_set_is_the_set_of_pairs_that_no_pair_dominates() {
        for (n, scale) in [(1, 1.0), (60, 1e3), (60, 2.0)] {
            // With the small scale, many pairs are equal after rounding. Adding 0 makes −0 equal to 0.
            let pairs = wave(n, 2, 0.7).mapv(|x| (scale * x).round() + 0.0);
            let (a, b) = (pairs.column(0).to_vec(), pairs.column(1).to_vec());
            let dominates =
                |j: usize, i: usize| a[j] >= a[i] && b[j] >= b[i] && (a[j] > a[i] || b[j] > b[i]);
            let expected = (0..n).filter(|&i| {
                let is_first = (0..i).all(|j| (a[i], b[i]) != (a[j], b[j]));
                is_first && (0..n).all(|j| !dominates(j, i))
            });
            let mut found = pareto_set(&a, &b);
            found.sort();
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
