//! The negative log-posterior of a family, with its gradient and Hessian.
//!
//! The parameters are θ = (μ_A, s_A, l_N, l_F, μ_F, s_F). Delays of arrivals have location μ_A and scale σ_A = exp(s_A)
//! in log time, and delays of failures, which are Weibull, have μ_F and exp(s_F). With w = (1, exp(l_N), exp(l_F)), the
//! probabilities are (π_A, π_N, π_F) = w/Σw.
//!
//! log L = Σ_arrived log g_A(x) + Σ_failed [l_F + log g_F(x)] + Σ_censored log R(x) − W log Σw, where x is the log of
//! the time, R(x) = 1 − F_A(x) + exp(l_N) + exp(l_F) (1 − F_F(x)), and W is the number of records.

use super::family::Family;
use super::records::{Cells, Records};

/// The number of parameters.
pub const P: usize = 6;
pub const LOCATION: usize = 0;
pub const SPREAD: usize = 1;
pub const NEVER: usize = 2;
pub const FAILS: usize = 3;
pub const FAIL_LOCATION: usize = 4;
pub const FAIL_SPREAD: usize = 5;

/// The family of the delays of failures.
pub const FAILURES: Family = Family::Weibull;

/// Weak priors. Locations are normal around a typical delay with this standard deviation. The log of the spread is
/// normal such that the log of the delay has a standard deviation of about `TYPICAL_LOG_STD`. The probabilities have a
/// Dirichlet prior with the concentration `CONCENTRATION`, which depends on the follow-up; see `concentrations`.
/// benchmarks/delays.py measured these values: wider spreads mistake Weibull delays of trials that may never end for
/// log-normal delays with a long tail.
const LOCATION_STD: f64 = 1.5;
const TYPICAL_LOG_STD: f64 = 0.7;
const SPREAD_STD: f64 = 0.4;
const CONCENTRATION: f64 = 0.5;
const EARLY_FACTOR: f64 = 16.0;

/// The concentrations of the prior for arrivals and for trials that never end. While censored trials are younger than
/// many of the delays so far, the data do not distinguish long delays from trials that never end (Maller and Zhou
/// 1996). With equal concentrations, many trials would be counted as lost early in a study. `early` is 0 if all
/// censored trials are older than the delays so far. benchmarks/delays.py measured the factor.
fn concentrations(early: f64) -> (f64, f64) {
    let factor = 1.0 + EARLY_FACTOR * early;
    (CONCENTRATION * factor, CONCENTRATION / factor)
}

/// A value with its gradient and Hessian.
#[derive(Clone)]
pub struct Expansion {
    pub value: f64,
    pub gradient: [f64; P],
    pub hessian: [[f64; P]; P],
}

impl Expansion {
    const ZERO: Self = Self {
        value: 0.0,
        gradient: [0.0; P],
        hessian: [[0.0; P]; P],
    };

    /// Adds the sum of log g over cells of exact or rounded delays.
    fn add_delays(&mut self, cells: &Cells, family: Family, theta: &[f64; P], location: usize) {
        let spread = location + 1;
        let (mu, inverse) = (theta[location], (-theta[spread]).exp());
        let mut sums = [0.0; 6];
        for ((&low, &high), &weight) in cells.low.iter().zip(&cells.high).zip(&cells.weight) {
            let z = (low - mu) * inverse;
            // With z = (x − μ)/σ: ∂z/∂μ = −1/σ and ∂z/∂s = −z.
            let terms = if low == high {
                // log g = log f(z) − s
                let (value, first, second) = family.log_density(z);
                let s = z * first;
                [
                    value - theta[spread],
                    -first,
                    -s - 1.0,
                    second,
                    z * second + first,
                    z * z * second + s,
                ]
            } else {
                interval(family, z, (high - mu) * inverse)
            };
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += weight * term;
            }
        }
        let [value, m, s, mm, ms, ss] = sums;
        self.value += value;
        self.gradient[location] += m * inverse;
        self.gradient[spread] += s;
        self.hessian[location][location] += mm * inverse * inverse;
        self.hessian[location][spread] += ms * inverse;
        self.hessian[spread][location] += ms * inverse;
        self.hessian[spread][spread] += ss;
    }

    /// Adds the sum of log R over the ages of trials in flight.
    fn add_censored(&mut self, cells: &Cells, family: Family, theta: &[f64; P]) {
        let fails = theta[FAILS] > f64::NEG_INFINITY;
        let (never, failing) = (theta[NEVER].exp(), theta[FAILS].exp());
        let n = if fails { P } else { NEVER + 1 };
        for (&x, &weight) in cells.low.iter().zip(&cells.weight) {
            let (mut r, mut first, mut second) = (never, [0.0; P], [[0.0; P]; P]);
            first[NEVER] = never;
            second[NEVER][NEVER] = never;
            let mut add = |family: Family, factor: f64, location: usize| {
                let spread = location + 1;
                let inverse = (-theta[spread]).exp();
                let z = ((x - theta[location]) * inverse).clamp(-700.0, 700.0);
                let at = family.distribution(z);
                r += factor * at.above;
                let slope = z * at.slope + at.density;
                first[location] = factor * at.density * inverse;
                first[spread] = factor * z * at.density;
                second[location][location] = -factor * at.slope * inverse * inverse;
                second[location][spread] = -factor * slope * inverse;
                second[spread][location] = second[location][spread];
                second[spread][spread] = -factor * z * slope;
                factor * at.above
            };
            add(family, 1.0, LOCATION);
            if fails {
                let share = add(FAILURES, failing, FAIL_LOCATION);
                first[FAILS] = share;
                second[FAILS][FAILS] = share;
                for i in [FAIL_LOCATION, FAIL_SPREAD] {
                    second[FAILS][i] = first[i];
                    second[i][FAILS] = first[i];
                }
            }
            self.value += weight * r.ln();
            let inverse = 1.0 / r;
            for i in 0..n {
                let slope = first[i] * inverse;
                self.gradient[i] += weight * slope;
                for j in 0..n {
                    self.hessian[i][j] += weight * (second[i][j] - slope * first[j]) * inverse;
                }
            }
        }
    }

    /// Adds −W log Σw.
    fn add_normalisation(&mut self, total: f64, theta: &[f64; P]) {
        let sum = 1.0 + theta[NEVER].exp() + theta[FAILS].exp();
        self.value -= total * sum.ln();
        for i in [NEVER, FAILS] {
            let p = theta[i].exp() / sum;
            self.gradient[i] -= total * p;
            self.hessian[i][i] -= total * p;
            for j in [NEVER, FAILS] {
                self.hessian[i][j] += total * p * theta[j].exp() / sum;
            }
        }
    }

    fn add_priors(&mut self, family: Family, theta: &[f64; P], free: &[usize], early: f64) {
        let typical = |family: Family| (TYPICAL_LOG_STD / family.std()).ln();
        let (mut concentration, never) = concentrations(early);
        for &i in free {
            let (centre, std) = match i {
                LOCATION | FAIL_LOCATION => (0.0, LOCATION_STD),
                SPREAD => (typical(family), SPREAD_STD),
                FAIL_SPREAD => (typical(FAILURES), SPREAD_STD),
                _ => {
                    // α log π_i, without the normalisation.
                    let alpha = if i == NEVER { never } else { CONCENTRATION };
                    self.value += alpha * theta[i];
                    self.gradient[i] += alpha;
                    concentration += alpha;
                    continue;
                }
            };
            let u = (theta[i] - centre) / std;
            self.value -= 0.5 * u * u;
            self.gradient[i] -= u / std;
            self.hessian[i][i] -= 1.0 / (std * std);
        }
        self.add_normalisation(concentration, theta);
    }

    fn negate(&mut self) {
        self.value = -self.value;
        let rows = self.hessian.as_flattened_mut().iter_mut();
        self.gradient.iter_mut().chain(rows).for_each(|v| *v = -*v);
    }
}

/// Returns −log L(θ) up to a constant; if `priors` is true, minus the log of the priors. Only coordinates in `free` have
/// priors.
pub fn negative_log(
    records: &Records,
    family: Family,
    theta: &[f64; P],
    free: &[usize],
    priors: bool,
) -> Expansion {
    let mut sum = Expansion::ZERO;
    sum.add_delays(&records.arrived, family, theta, LOCATION);
    if theta[FAILS] > f64::NEG_INFINITY {
        sum.add_delays(&records.failed, FAILURES, theta, FAIL_LOCATION);
        let n = records.failed.total();
        sum.value += n * theta[FAILS];
        sum.gradient[FAILS] += n;
    }
    sum.add_censored(&records.censored, family, theta);
    let total = records.arrived.total() + records.failed.total() + records.censored.total();
    sum.add_normalisation(total, theta);
    if priors {
        sum.add_priors(family, theta, free, records.early);
    }
    sum.negate();
    sum
}

/// Returns log(F(b) − F(a)) and its derivatives with respect to μ, s, (μ, μ), (μ, s) and (s, s), where each derivative
/// with respect to μ is multiplied by σ.
fn interval(family: Family, a: f64, b: f64) -> [f64; 6] {
    let (a, b) = (a.clamp(-700.0, 700.0), b.clamp(-700.0, 700.0));
    let (left, right) = (family.distribution(a), family.distribution(b));
    // The smaller tail has the smaller rounding errors.
    let probability = if a > 0.0 {
        left.above - right.above
    } else {
        right.below - left.below
    };
    let width = b - a;
    if width < 1e-5 || probability < 1e-290 {
        // P ≈ f(c) (b − a). In narrow intervals the centre c has a relative error of (b − a)². If the probability
        // underflows, c is the end that is closest to 0.
        let c = match probability < 1e-290 {
            true => a.max(b.min(0.0)),
            false => 0.5 * (a + b),
        };
        let (value, first, second) = family.log_density(c);
        // The width is proportional to 1/σ.
        return [
            value + width.ln(),
            -first,
            -c * first - 1.0,
            second,
            c * second + first,
            c * c * second + c * first,
        ];
    }
    // The derivatives of F: ∂μ = −f/σ, ∂s = −z f, ∂μμ = f'/σ², ∂μs = (z f' + f)/σ, ∂ss = z² f' + z f.
    let inverse = 1.0 / probability;
    let m = -(right.density - left.density) * inverse;
    let s = -(b * right.density - a * left.density) * inverse;
    let mm = (right.slope - left.slope) * inverse;
    let (upper, lower) = (
        b * right.slope + right.density,
        a * left.slope + left.density,
    );
    let ms = (upper - lower) * inverse;
    let ss = (b * upper - a * lower) * inverse;
    [probability.ln(), m, s, mm - m * m, ms - m * s, ss - s * s]
}
