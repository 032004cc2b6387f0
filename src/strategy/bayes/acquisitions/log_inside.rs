//! The logarithm of the probability that f(x) lies between two bounds, and a penalty where this probability is small.
//!
//! Notation: a = (low − mu)/sigma and b = (high − mu)/sigma; φ and Φ are the standard normal density and distribution;
//! P = Φ(b) − Φ(a); R is Mills' ratio, Φ(−t) = φ(t) R(t). One of the bounds may be infinite.

use super::formula::{Moments, OfMoments};
use crate::numerics::special::{exp_nonpositive, log_cdf, mills_ratio, normal_quantile};
use crate::strategy::units::UnitsHere;

/// 1/√(2π)
pub(super) const FRAC_1_SQRT_2_PI: f64 = 0.398_942_280_401_432_7;

/// Larger standardised bounds count as this number, so that squares and products stay finite.
pub(super) const LIMIT: f64 = 1e20;

/// The smallest half of an interval.
const MIN_HALF: f64 = 1e-300;

/// P and its relative slopes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside {
    /// P = factor·exp(exponent), where the exponent is 0 or −t²/2 for a point t of the interval.
    pub factor: f64,
    pub exponent: f64,
    /// The derivative of log P(a + t, b + t) with respect to t at t = 0: (φ(b) − φ(a))/P.
    pub by_shift: f64,
    /// The derivative of log P(t a, t b) with respect to t at t = 1: (b φ(b) − a φ(a))/P.
    pub by_stretch: f64,
}

/// Computes P. The interval is mirrored if its centre c is positive, so that −a ≥ |b|.
///
/// * If b ≤ 0, P = φ(b)·(R(−b) − φ(a)/φ(b)·R(−a)).
/// * If b > 0, P = 1 − φ(b) R(b) − φ(a) R(−a).
/// * If the interval is so narrow that the differences would cancel, P is integrated term by term. With the half h of
///   the interval, P = 2h φ(c) S and S = Σ_j He_2j(c) h^2j / (2j + 1)!, where He_k are the Hermite polynomials, He_k' =
///   k He_(k−1). The slopes of log P = log φ(c) + log 2h + log S follow from the derivatives of S.
///
/// The function has no branches and is inlined, so that loops that call it are vectorised.
#[inline(always)]
pub(super) fn inside(a: f64, b: f64) -> Inside {
    let mirrored = a + b > 0.0;
    let (a, b) = if mirrored { (-b, -a) } else { (a, b) };
    let near = if b.abs() < LIMIT { b.abs() } else { LIMIT };
    let far = if -a < 10.0 * LIMIT { -a } else { 10.0 * LIMIT };
    let straddles = b > 0.0;
    let (near_ratio, far_ratio) = (mills_ratio(near).0, mills_ratio(far).0);
    let at_near = -0.5 * near * near;
    // φ(a)/φ(b)
    let decay = exp_nonpositive(-0.5 * (far - near) * (far + near));
    let density = FRAC_1_SQRT_2_PI
        * if straddles {
            exp_nonpositive(at_near)
        } else {
            1.0
        };
    let (tails, signed) = match straddles {
        true => (near_ratio + decay * far_ratio, near),
        false => (near_ratio - decay * far_ratio, -near),
    };
    let wide = if straddles {
        1.0 - density * tails
    } else {
        density * tails
    };
    let wide_exponent = if straddles { 0.0 } else { at_near };
    let ratio = density / wide;
    let wide_shift = ratio * (1.0 - decay);
    let wide_stretch = ratio * (signed + far * decay);

    let half = 0.5 * (b - a);
    let is_narrow = 2.0 * half * (1.0 + far) <= 1.0;
    let half = if half > MIN_HALF { half } else { MIN_HALF };
    let centre = 0.5 * (a + b);
    let centre = if centre > -LIMIT { centre } else { -LIMIT };
    // The terms He_k(c) h^k of a recurrence, for odd and even k.
    let (x, square) = (centre * half, half * half);
    let (mut even, mut odd) = (1.0, x);
    let (mut s, mut by_centre, mut by_half) = (1.0, 0.0, 0.0);
    for (k, inverse) in INVERSE_FACTORIALS {
        even = x * odd - (k - 1.0) * square * even;
        s += inverse * even;
        by_centre += k * inverse * odd;
        by_half += k * inverse * even;
        odd = x * even - k * square * odd;
    }
    let (by_centre, by_half) = (by_centre * half / s, by_half / s);
    let narrow_shift = by_centre - centre;

    let by_shift = if is_narrow { narrow_shift } else { wide_shift };
    Inside {
        factor: match is_narrow {
            true => 2.0 * FRAC_1_SQRT_2_PI * half * s,
            false => wide,
        },
        exponent: match is_narrow {
            true => -0.5 * centre * centre,
            false => wide_exponent,
        },
        by_shift: if mirrored { -by_shift } else { by_shift },
        by_stretch: match is_narrow {
            true => 1.0 + by_half + centre * narrow_shift,
            false => wide_stretch,
        },
    }
}

/// k and 1/(k + 1)! for k = 2, 4, …, 16.
const INVERSE_FACTORIALS: [(f64, f64); 8] = [
    (2.0, 1.0 / 6.0),
    (4.0, 1.0 / 120.0),
    (6.0, 1.0 / 5_040.0),
    (8.0, 1.0 / 362_880.0),
    (10.0, 1.0 / 39_916_800.0),
    (12.0, 1.0 / 6_227_020_800.0),
    (14.0, 1.0 / 1_307_674_368_000.0),
    (16.0, 1.0 / 355_687_428_096_000.0),
];

/// The acquisition log P(low ≤ f(x) ≤ high).
#[derive(Debug, Clone, Copy)]
pub struct LogProbabilityInside {
    pub low: f64,
    pub high: f64,
}

impl LogProbabilityInside {
    /// The bounds in the units of targets in a context. A missing bound is infinite.
    pub fn of((low, high): (f64, f64), units: UnitsHere) -> Self {
        let target = |bound: f64| match bound.is_finite() {
            true => units.target(bound),
            false => bound,
        };
        Self {
            low: target(low),
            high: target(high),
        }
    }

    fn inside(&self, at: Moments) -> Inside {
        let std = at.std();
        inside((self.low - at.mean) / std, (self.high - at.mean) / std)
    }
}

impl OfMoments for LogProbabilityInside {
    fn in_units_of_f(&self, value: f64, _scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value
    }

    fn value(&self, at: Moments) -> f64 {
        let inside = self.inside(at);
        inside.exponent + inside.factor.ln()
    }

    // ∂a/∂mu = ∂b/∂mu = −1/sigma,  ∂a/∂sigma = −a/sigma,  ∂b/∂sigma = −b/sigma
    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let (inside, std) = (self.inside(at), at.std());
        let value = inside.exponent + inside.factor.ln();
        (value, -inside.by_shift / std, -inside.by_stretch / std)
    }
}

/// The penalty weight·min(0, u − q), where Φ(u) = P(low ≤ f(x) ≤ high) and Φ(q) is the least probability. With one
/// bound, u is the distance of mu from the bound in units of sigma. If the weight is large and any point has the least
/// probability, the point with the largest sum of an acquisition and the penalty has it. If all points have less, the
/// point with the largest probability has the largest sum.
#[derive(Debug, Clone, Copy)]
pub struct ShortfallOfInside {
    pub bounds: LogProbabilityInside,
    pub least_probability: f64,
    pub weight: f64,
}

/// The tolerance for comparing u with q. A rounding error does not cause a penalty where u equals q.
const ROUNDING: f64 = 1e-9;

impl ShortfallOfInside {
    /// weight·(u − q) where it is negative, and 0 elsewhere; and the derivative with respect to log P.
    fn of(&self, log_p: f64) -> (f64, f64) {
        let u = quantile_of_logarithm(log_p);
        let excess = u - normal_quantile(self.least_probability) + ROUNDING;
        match excess < 0.0 {
            true => (self.weight * excess, self.weight / log_cdf(u).1),
            false => (0.0, 0.0),
        }
    }
}

impl OfMoments for ShortfallOfInside {
    fn in_units_of_f(&self, value: f64, _scale: f64, _value_of: &dyn Fn(f64) -> f64) -> f64 {
        value
    }

    fn value(&self, at: Moments) -> f64 {
        self.of(self.bounds.value(at)).0
    }

    fn value_and_derivatives(&self, at: Moments) -> (f64, f64, f64) {
        let (log_p, by_mean, by_std) = self.bounds.value_and_derivatives(at);
        let (value, slope) = self.of(log_p);
        (value, slope * by_mean, slope * by_std)
    }
}

/// Returns u with log Φ(u) = log_p, for log_p ≤ 0.
///
/// For small probabilities, u = −t is the fixed point of t² = −2 log_p − log 2π + 2 log R(t).
fn quantile_of_logarithm(log_p: f64) -> f64 {
    if log_p > -600.0 {
        return normal_quantile(log_p.exp().min(1.0 - f64::EPSILON));
    }
    let mut t = (-2.0 * log_p).sqrt();
    for _ in 0..8 {
        let square = -2.0 * log_p - (2.0 * std::f64::consts::PI).ln() + 2.0 * mills_ratio(t).0.ln();
        t = square.sqrt();
    }
    -t
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::f64::consts::LN_2;

    const INFINITY: f64 = f64::INFINITY;
    const NEG_INFINITY: f64 = f64::NEG_INFINITY;

    /// a, b, log P, and the derivatives by shift and stretch, computed with 2000 digits.
    const REFERENCE: [[f64; 5]; 41] = [
        [
            NEG_INFINITY,
            -40.0,
            -804.6084420137538,
            40.02496884720726,
            -1600.9987538882906,
        ],
        [
            NEG_INFINITY,
            -5.0,
            -15.064998393988725,
            5.186503967125842,
            -25.93251983562921,
        ],
        [
            NEG_INFINITY,
            -0.5,
            -1.1759117615936185,
            1.1410777703680646,
            -0.5705388851840323,
        ],
        [NEG_INFINITY, 0.0, -LN_2, 0.7978845608028654, 0.0],
        [
            NEG_INFINITY,
            0.5,
            -0.3689464152886564,
            0.5091604338370335,
            0.25458021691851673,
        ],
        [
            NEG_INFINITY,
            3.0,
            -0.0013508099647481938,
            0.004437839042125664,
            0.013313517126376991,
        ],
        [
            NEG_INFINITY,
            8.0,
            -6.220960574271786e-16,
            5.052271083536895e-15,
            4.041816866829516e-14,
        ],
        [NEG_INFINITY, 40.0, 0.0, 0.0, 0.0],
        [
            40.0,
            INFINITY,
            -804.6084420137538,
            -40.02496884720726,
            -1600.9987538882906,
        ],
        [
            5.0,
            INFINITY,
            -15.064998393988725,
            -5.186503967125842,
            -25.93251983562921,
        ],
        [
            -3.0,
            INFINITY,
            -0.0013508099647481938,
            -0.004437839042125664,
            0.013313517126376991,
        ],
        [NEG_INFINITY, INFINITY, 0.0, 0.0, 0.0],
        [-1.0, 1.0, -0.38171514630212605, 0.0, 0.7088749052272068],
        [-0.3, 0.3, -1.4446744152580375, 0.0, 0.9703584480119783],
        [-0.31, 0.31, -1.4128887019090308, 0.0, 0.9683752302713022],
        [
            -0.5,
            0.118,
            -1.4336852489373693,
            0.18499943948406197,
            0.9343729024277959,
        ],
        [
            -8.0,
            8.0,
            -1.2441921148543576e-15,
            0.0,
            8.083633733659037e-14,
        ],
        [-40.0, 40.0, 0.0, 0.0, 0.0],
        [
            -0.2,
            3.0,
            -0.548337458111794,
            -0.6689812803522834,
            0.15833627016653548,
        ],
        [
            -3.0,
            0.2,
            -0.548337458111794,
            0.6689812803522834,
            0.15833627016653548,
        ],
        [
            1.0,
            2.0,
            -1.9957982691807554,
            -1.3831690466315527,
            -0.9858994976602399,
        ],
        [
            -2.0,
            -1.0,
            -1.9957982691807554,
            1.3831690466315527,
            -0.9858994976602399,
        ],
        [
            5.0,
            5.5,
            -15.133540811271288,
            -5.152101776907269,
            -25.55932680295985,
        ],
        [
            5.0,
            5.16,
            -15.628432476694602,
            -5.069289108575632,
            -24.699755081457425,
        ],
        [
            20.0,
            20.04,
            -204.51150375565257,
            -20.01735890590846,
            -399.69478672599865,
        ],
        [
            20.0,
            20.06,
            -204.2734842484984,
            -20.024131522004186,
            -399.96612269822987,
        ],
        [
            39.0,
            40.0,
            -765.0831565643775,
            -39.02560741993011,
            -1521.998689377274,
        ],
        [
            -40.0,
            -39.0,
            -765.0831565643775,
            39.02560741993011,
            -1521.998689377274,
        ],
        [-40.0, 0.0, -LN_2, 0.7978845608028654, 0.0],
        [0.0, 40.0, -LN_2, -0.7978845608028654, 0.0],
        [
            0.0,
            0.6,
            -1.4883408974119652,
            -0.29111222646643864,
            0.8856590166048459,
        ],
        [
            0.0,
            0.7,
            -1.354654821127271,
            -0.3359540149344142,
            0.8470812551791884,
        ],
        [
            40.0,
            40.000001,
            -814.7344690936271,
            -40.000000499996666,
            -1599.0000399997336,
        ],
        [
            -40.0,
            -39.999999,
            -814.7344290936272,
            39.99999949999667,
            -1598.9999599997338,
        ],
        [
            10.0,
            10.000001,
            -64.73445409191335,
            -10.000000499999166,
            -99.00000999998366,
        ],
        [
            0.0,
            1e-06,
            -14.734449091169115,
            -4.999999999999583e-07,
            0.9999999999996667,
        ],
        [-5e-07, 5e-07, -14.734449091168988, 0.0, 0.9999999999999166],
        [
            3.0,
            3.000000001,
            -26.142204288910715,
            -3.0000000005,
            -8.000000003,
        ],
        [
            40.0,
            40.02,
            -805.2044894885979,
            -40.00868036990528,
            -1599.6945372334935,
        ],
        [
            40.0,
            40.03,
            -804.9663081826858,
            -40.01206865297361,
            -1599.9657077785428,
        ],
        [
            25.0,
            25.1,
            -316.72425941845717,
            -25.03103146060774,
            -625.5531609965589,
        ],
    ];

    fn log_inside(a: f64, b: f64) -> f64 {
        let inside = inside(a, b);
        inside.exponent + inside.factor.ln()
    }

    #[test]
    fn log_probabilities_and_slopes_match_high_precision_values() {
        for [a, b, expected, by_shift, by_stretch] in REFERENCE {
            let found = inside(a, b);
            for (found, expected) in [
                (log_inside(a, b), expected),
                (found.by_shift, by_shift),
                (found.by_stretch, by_stretch),
            ] {
                let error = (found - expected).abs();
                assert!(
                    error <= 1e-11 * expected.abs().max(1.0),
                    "{a} {b}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn one_bound_gives_the_normal_distribution() {
        for i in 0..4000 {
            let u = 0.0213 * f64::from(i) - 42.0;
            let (expected, slope) = log_cdf(u);
            for (a, b, sign) in [(NEG_INFINITY, u, 1.0), (-u, INFINITY, -1.0)] {
                let found = inside(a, b);
                assert!((log_inside(a, b) - expected).abs() < 1e-12 * expected.abs().max(1.0));
                assert!(
                    (sign * found.by_shift - slope).abs() < 1e-12 * slope.max(1.0),
                    "{u}"
                );
                let stretch = u * slope;
                assert!((found.by_stretch - stretch).abs() < 1e-12 * stretch.abs().max(1.0));
            }
        }
    }

    #[test]
    fn probabilities_of_adjacent_intervals_add_up_where_the_formulas_meet() {
        // The interval is narrow if its width times (1 + its farther end) is at most 1.
        for i in 0..400 {
            let a = 0.1 * f64::from(i) - 20.0;
            for width in [0.3, 0.9, 0.999, 1.001, 1.1, 1.9, 3.0] {
                let width = width / (1.0 + a.abs());
                let (b, c) = (a + width, a + 2.0 * width);
                let whole = log_inside(a, c);
                let sum = (log_inside(a, b) - whole).exp() + (log_inside(b, c) - whole).exp();
                assert!((sum - 1.0).abs() < 1e-11, "{a} {width} {sum}");
            }
        }
    }

    #[test]
    fn derivatives_equal_finite_differences() {
        let least_probability = 0.95;
        for (low, high) in [
            (-0.3, 0.4),
            (NEG_INFINITY, 0.4),
            (0.7, INFINITY),
            (0.1, 0.1001),
        ] {
            let bounds = LogProbabilityInside { low, high };
            let penalty = ShortfallOfInside {
                bounds,
                least_probability,
                weight: 2.0,
            };
            for formula in [&bounds as &dyn OfMoments, &penalty] {
                for i in 0..300 {
                    let (mean, std) = (0.0213 * f64::from(i) - 3.0, 0.05 * f64::from(1 + i % 30));
                    let at = |mean: f64, std: f64| Moments {
                        mean,
                        variance: std * std,
                    };
                    let (value, by_mean, by_std) = formula.value_and_derivatives(at(mean, std));
                    assert_eq!(value, formula.value(at(mean, std)));
                    let h = 1e-6 * std;
                    let of = |mean, std| formula.value(at(mean, std));
                    let differences = [
                        (of(mean + h, std) - of(mean - h, std)) / (2.0 * h),
                        (of(mean, std + h) - of(mean, std - h)) / (2.0 * h),
                    ];
                    for (found, expected) in [by_mean, by_std].into_iter().zip(differences) {
                        let size = value.abs().max(1.0) / std;
                        assert!((found - expected).abs() < 1e-5 * size, "{low} {mean} {std}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_shortfall_is_the_distance_of_the_mean_from_a_bound_in_units_of_sigma() {
        let at = |mean: f64, std: f64| Moments {
            mean,
            variance: std * std,
        };
        for least_probability in [0.5, 0.95] {
            let q = normal_quantile(least_probability);
            for std in [0.01, 0.3, 2.0] {
                for i in 0..200 {
                    let mean = 0.05 * f64::from(i) - 5.0;
                    for (low, high, u) in [
                        (NEG_INFINITY, 0.2, (0.2 - mean) / std),
                        (0.2, INFINITY, (mean - 0.2) / std),
                    ] {
                        let penalty = ShortfallOfInside {
                            bounds: LogProbabilityInside { low, high },
                            least_probability,
                            weight: 3.0,
                        };
                        let expected = 3.0 * (u - q).min(0.0);
                        let found = penalty.value(at(mean, std));
                        assert!((found - expected).abs() < 1e-8 * expected.abs().max(1.0));
                        assert!(u + 1e-10 < q || found == 0.0);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_posterior_has_finite_values(
            bounds in prop::array::uniform2(prop::num::f64::NORMAL | prop::num::f64::ZERO),
            side in 0..3,
            mean in prop::num::f64::NORMAL | prop::num::f64::ZERO,
            variance in 0.0f64..1e3,
            exact in prop::bool::ANY,
            near in prop::bool::ANY,
        ) {
            let shrink = if near { 1e-300 } else { 1.0 };
            let [a, b] = bounds.map(|bound| bound.clamp(-1e120, 1e120) * shrink);
            let (low, high) = (a.min(b), a.max(b));
            let (low, high) = match side {
                0 => (low, high),
                1 => (NEG_INFINITY, high),
                _ => (low, INFINITY),
            };
            let at = Moments {
                mean: mean.clamp(-1e120, 1e120),
                variance: if exact { 0.0 } else { variance },
            };
            let bounds = LogProbabilityInside { low, high };
            let penalty = ShortfallOfInside { bounds, least_probability: 0.5, weight: 1.0 };
            for formula in [&bounds as &dyn OfMoments, &penalty] {
                let (value, by_mean, by_std) = formula.value_and_derivatives(at);
                prop_assert!(value.is_finite() && by_mean.is_finite() && by_std.is_finite());
                prop_assert!(value < 1e-12);
            }
        }
    }
}
