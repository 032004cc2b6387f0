//! Local penalties: factors between 0 and 1 that keep an acquisition away from the points of pending trials.
//!
//! Notation: mu and sigma are the posterior mean and standard deviation given the observed values; M is the best
//! observed value; x_j are the points of pending trials; distances are between encoded points. If f has a slope of at
//! most L, its maximum has a distance of at least (M − f(x_j))/L from x_j.

use ndarray::{Array2, ArrayView2};

use crate::error::Result;
use crate::gp::{GaussianProcess, Workspace};
use crate::maximize::constrained::Allowed;
use crate::maximize::excluded::Excluded;
use crate::maximize::{Maximizer, maximize};
use crate::numerics::lbfgsb::{Tolerance, minimize};
use crate::numerics::special::log_cdf;
use crate::problem::{Domain, Objective};
use crate::random::Call;
use crate::strategy::bayes::acquisitions::formula::{Formula, Scorer, floored_std};
use crate::strategy::bayes::acquisitions::log_above::LogAbove;
use crate::strategy::bayes::settings::pending::Penalizer;
use crate::strategy::bayes::terms::Term;

/// The effort of a search for the minimum of an acquisition, and the largest effort of a search for the largest slope of
/// mu. PLAyBOOK searches once for each pending trial. With many pending trials, the effort of each of these searches is
/// [`TOTAL_EFFORT`] divided by the number of pending trials, but at least [`MIN_EFFORT`].
const EFFORT: f64 = 2.0;
const MIN_EFFORT: f64 = 0.1;
const TOTAL_EFFORT: f64 = 16.0;

/// If mu is flat, [`FLAT`] is used as the slope, as in the code of both papers.
const MIN_SLOPE: f64 = 1e-7;
const FLAT: f64 = 10.0;

/// Larger numbers would overflow when they are squared.
const LARGEST: f64 = 1e150;

/// The smallest distance. The logarithm and the gradient of a distance of 0 do not exist.
const MIN_DISTANCE: f64 = 1e-12;

/// The step of the finite difference of gradients, in units of the lengthscales.
const STEP: f64 = 1e-5;

/// The tolerance of the last local search, so that maxima are accurate to rounding errors.
const FINE: Tolerance = Tolerance {
    projected_gradient: 1e-12,
    relative_reduction: 1e-15,
    max_iterations: 50,
};

/// The penalty of a pending trial.
struct Factor {
    point: Vec<f64>,
    /// M − mu(x_j).
    gap: f64,
    /// sigma(x_j).
    std: f64,
    /// L or L_j.
    slope: f64,
}

impl Factor {
    /// The logarithm of the penalty, and its derivative with respect to the distance.
    fn log(&self, penalizer: Penalizer, distance: f64) -> (f64, f64) {
        match penalizer {
            Penalizer::Soft => {
                let u = (self.slope * distance - self.gap) / self.std;
                let (log, by_u) = log_cdf(u.clamp(-LARGEST, LARGEST));
                (log, by_u * (self.slope / self.std))
            }
            Penalizer::Hard => {
                let a = self.slope * distance / (self.gap.abs() + self.std);
                let a = a.clamp(1.0 / LARGEST, LARGEST);
                let log = match a < 1.0 {
                    true => a.ln() - 0.2 * a.powi(5).ln_1p(),
                    false => -0.2 * a.powi(-5).ln_1p(),
                };
                (log, 1.0 / (distance * (1.0 + a.powi(5))))
            }
        }
    }
}

/// The sum of the logarithms of the penalties of all pending trials.
pub struct LocalPenalty {
    penalizer: Penalizer,
    factors: Vec<Factor>,
}

impl LocalPenalty {
    /// The penalties of the trials at the rows of `points`. `gp` is the posterior given the observed values, of which
    /// `best` is the best.
    pub fn new(
        penalizer: Penalizer,
        gp: &GaussianProcess,
        points: ArrayView2<f64>,
        best: f64,
        domain: &Domain,
        call: &mut Call,
    ) -> Result<Self> {
        let effort = match penalizer {
            Penalizer::Soft => EFFORT,
            Penalizer::Hard => (TOTAL_EFFORT / points.nrows() as f64).clamp(MIN_EFFORT, EFFORT),
        };
        let (mean, variance) = gp.predict(points);
        let mut factors: Vec<Factor> = Vec::with_capacity(points.nrows());
        for (x, (mean, variance)) in points
            .rows()
            .into_iter()
            .zip(mean.into_iter().zip(variance))
        {
            let slope = match (penalizer, factors.last()) {
                (Penalizer::Soft, Some(last)) => last.slope,
                _ => {
                    let reach = |lengthscale: f64| match penalizer {
                        Penalizer::Soft => 1.0,
                        Penalizer::Hard => lengthscale,
                    };
                    let reaches = || gp.kernel().lengthscale.iter().map(|l| reach(*l));
                    let lower = x.iter().zip(reaches()).map(|(x, r)| (x - r).max(0.0));
                    let upper = x.iter().zip(reaches()).map(|(x, r)| (x + r).min(1.0));
                    largest_slope(gp, (lower.collect(), upper.collect()), domain, effort, call)?
                }
            };
            factors.push(Factor {
                point: x.to_vec(),
                gap: best - mean,
                std: floored_std(variance),
                slope,
            });
        }
        Ok(Self { penalizer, factors })
    }

    /// Returns the sum at x, and adds its gradient to `gradient`.
    fn at(&self, x: &[f64], mut gradient: Option<&mut [f64]>) -> f64 {
        let mut sum = 0.0;
        for factor in &self.factors {
            let distance = distance(x, &factor.point).max(MIN_DISTANCE);
            let (log, slope) = factor.log(self.penalizer, distance);
            sum += log;
            if let Some(gradient) = &mut gradient {
                let offsets = x.iter().zip(&factor.point).map(|(x, c)| x - c);
                let terms = gradient.iter_mut().zip(offsets);
                terms.for_each(|(g, offset)| *g += slope * (offset / distance));
            }
        }
        sum
    }
}

impl Term for LocalPenalty {
    fn scorer<'b>(&'b mut self, _context: &'b [f64]) -> Box<dyn Objective + 'b> {
        Box::new(self)
    }
}

impl Objective for LocalPenalty {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        for (x, out) in points.rows().into_iter().zip(out) {
            *out = self.at(&x.to_vec(), None);
        }
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        self.at(x, Some(gradient))
    }
}

/// The logarithm of an acquisition minus its minimum over the domain.
pub fn log_above_minimum<'a>(
    formula: Box<dyn Formula + 'a>,
    gp: &GaussianProcess,
    domain: &Domain,
    call: &mut Call,
) -> Result<Box<dyn Formula + 'a>> {
    let mut negated = Negated(Scorer::new(gp, formula.as_ref(), &[]));
    let minimum = -largest(&mut negated, domain, EFFORT, call)?;
    Ok(Box::new(LogAbove { formula, minimum }))
}

fn distance(x: &[f64], y: &[f64]) -> f64 {
    norm(x.iter().zip(y).map(|(x, y)| x - y))
}

fn norm(entries: impl Iterator<Item = f64>) -> f64 {
    entries.map(|entry| entry * entry).sum::<f64>().sqrt()
}

/// The largest value of an objective over a domain.
fn largest(
    objective: &mut dyn Objective,
    domain: &Domain,
    effort: f64,
    call: &mut Call,
) -> Result<f64> {
    let (none, around) = (Excluded::default(), Array2::zeros((0, domain.width())));
    let maximizer = Maximizer::Default { effort };
    let allowed = Allowed::except(&none);
    let best = maximize(objective, domain, around.view(), &maximizer, allowed, call)?;
    let mut negated = |x: &[f64], gradient: &mut [f64]| {
        let value = objective.value_and_gradient(x, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        -value
    };
    let (lower, upper) = (vec![0.0; domain.width()], vec![1.0; domain.width()]);
    let (_, least) = minimize(&mut negated, &best.point, &lower, &upper, &FINE);
    Ok(best.value.max(-least))
}

/// The largest slope ‖∇mu‖ in the part of the box between `lower` and `upper`.
fn largest_slope(
    gp: &GaussianProcess,
    (lower, upper): (Vec<f64>, Vec<f64>),
    domain: &Domain,
    effort: f64,
    call: &mut Call,
) -> Result<f64> {
    let width = lower.iter().zip(&upper).map(|(l, u)| u - l).collect();
    let mut slope = Slope {
        gp,
        lower,
        width,
        workspace: Workspace::default(),
    };
    let slope = largest(&mut slope, domain, effort, call)?;
    Ok(match slope < MIN_SLOPE || slope.is_nan() {
        true => FLAT,
        false => slope.min(LARGEST),
    })
}

/// The objective ‖∇mu(x)‖ over a part of the box. A point u of the unit cube stands for x = lower + width·u.
struct Slope<'a> {
    gp: &'a GaussianProcess,
    lower: Vec<f64>,
    width: Vec<f64>,
    workspace: Workspace,
}

impl Slope<'_> {
    fn gradient_of_mean(&mut self, x: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; x.len()];
        self.gp.mean_at(x, &mut self.workspace);
        let workspace = &mut self.workspace;
        self.gp.gradient(x, 1.0, 0.0, &[], workspace, &mut gradient);
        gradient
    }

    fn x(&self, u: &[f64]) -> Vec<f64> {
        let terms = u.iter().zip(&self.lower).zip(&self.width);
        terms.map(|((u, lower), width)| lower + width * u).collect()
    }
}

impl Objective for Slope<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        for (u, out) in points.rows().into_iter().zip(out) {
            let x = self.x(&u.to_vec());
            *out = norm(self.gradient_of_mean(&x).into_iter());
        }
    }

    // ∇‖g‖ = H e for the Hessian H of mu and e = g/‖g‖. A central difference of g along e replaces H e.
    fn value_and_gradient(&mut self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let x = self.x(u);
        let g = self.gradient_of_mean(&x);
        let slope = norm(g.iter().copied());
        let e: Vec<f64> = g.iter().map(|g| g / slope).collect();
        let lengthscales = &self.gp.kernel().lengthscale;
        let h = STEP / norm(e.iter().zip(lengthscales).map(|(e, l)| e / l));
        if slope == 0.0 || !slope.is_finite() || !(h > 0.0 && h.is_finite()) {
            gradient.fill(0.0);
            return slope;
        }
        let moved = |h: f64| -> Vec<f64> { x.iter().zip(&e).map(|(x, e)| x + h * e).collect() };
        let (after, before) = (moved(h), moved(-h));
        let (after, before) = (
            self.gradient_of_mean(&after),
            self.gradient_of_mean(&before),
        );
        let ends = after.iter().zip(&before).zip(&self.width);
        for (out, ((after, before), width)) in gradient.iter_mut().zip(ends) {
            *out = (after - before) / (2.0 * h) * width;
        }
        slope
    }
}

/// An objective with the opposite sign.
struct Negated<'a>(Scorer<'a>);

impl Objective for Negated<'_> {
    fn values(&mut self, points: ArrayView2<f64>, out: &mut [f64]) {
        self.0.values(points, out);
        out.iter_mut().for_each(|value| *value = -*value);
    }

    fn value_and_gradient(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let value = self.0.value_and_gradient(x, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        -value
    }

    fn lengthscales(&self) -> Option<&[f64]> {
        self.0.lengthscales()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gp::kernel::KernelFamily;
    use crate::gp::tests::{model, wave};
    use crate::problem::Coordinate;
    use crate::random::Rng;
    use rand::SeedableRng;

    #[test]
    fn gradients_equal_finite_differences() {
        let gp = model(KernelFamily::Matern52, 15);
        let pending = wave(3, 2, 5.0).mapv(|x| 0.3 + 0.1 * x);
        let domain = Domain::new_box(vec![Coordinate::Continuous; 2]).unwrap();
        let mut go_on = || std::ops::ControlFlow::Continue(());
        let mut rng = Rng::seed_from_u64(1);
        for penalizer in [Penalizer::Soft, Penalizer::Hard] {
            let call = &mut Call::new(&mut rng, &mut go_on);
            let points = pending.view();
            let penalty = LocalPenalty::new(penalizer, &gp, points, 1.0, &domain, call).unwrap();
            let slope = Slope {
                gp: &gp,
                lower: vec![0.1, 0.2],
                width: vec![0.7, 0.5],
                workspace: Workspace::default(),
            };
            let objectives: [Box<dyn Objective>; 2] = [Box::new(penalty), Box::new(slope)];
            for mut objective in objectives {
                for i in 0..20 {
                    let x = [0.03 + 0.047 * i as f64, 0.9 - 0.041 * i as f64];
                    let mut gradient = [0.0; 2];
                    let value = objective.value_and_gradient(&x, &mut gradient);
                    let mut one = |x: [f64; 2]| {
                        let mut out = [0.0];
                        objective.values(ArrayView2::from_shape((1, 2), &x).unwrap(), &mut out);
                        out[0]
                    };
                    assert_eq!(value, one(x));
                    for j in 0..2 {
                        let (mut up, mut down) = (x, x);
                        up[j] += 1e-6;
                        down[j] -= 1e-6;
                        let difference = (one(up) - one(down)) / 2e-6;
                        let error = (difference - gradient[j]).abs();
                        assert!(error < 1e-5 * difference.abs().max(1.0), "{error}");
                    }
                }
            }
        }
    }
}
