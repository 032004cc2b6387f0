//! Branch-free elementary functions: exp for x ≤ 0, sin and cos, and Mills' ratio of the normal distribution. All but
//! [`log_cdf`] are inlined, so that loops that call them are vectorised.
//!
//! The functions do not use fused multiply-add, so the bits are the same on every machine.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// 1.5·2⁵². Adding this constant to x rounds x to an integer, whose bits are the low bits of the sum.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// Returns exp(x) for x ≤ 0, with an error of at most 2 ulp. With x = k·ln 2 + f, a Taylor polynomial gives exp(f), and
/// 2^k is written to the exponent bits.
///
/// If x is the difference of two large terms, rounding may make x positive. An x above 1 counts as 1.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x > 1.0 { 1.0 } else { x };
    let clamped = if x < -708.0 { -708.0 } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let f = (clamped - k * LN2_HIGH) - k * LN2_LOW;
    let mut p = 1.0 / 6_227_020_800.0; // 1/13!
    for inverse in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = p * f + inverse;
    }
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { p * scale }
}

/// Returns Mills' ratio R = (1 − Φ(a))/φ(a) and 1 − a R for a ≥ 0, with errors up to 1e-12. The log expected
/// improvement is computed from these two numbers.
///
/// R/t is a Chebyshev series in t = 4/(4 + a), which maps a to (0, 1]. For large a, where 1 − a R would cancel, the
/// series 1 − a R = 1/a² − 3/a⁴ + 15/a⁶ − … in u = 1/a² is summed.
#[inline(always)]
pub(crate) fn mills_ratio(a: f64) -> (f64, f64) {
    const SERIES: [f64; 24] = [
        0.608_140_107_128_760_1,
        0.471_063_643_644_870_86,
        0.139_239_162_274_095_4,
        0.030_403_993_036_051_142,
        0.004_340_177_035_931_943,
        0.000_200_905_300_182_491_41,
        -6.300_873_370_135_883e-5,
        -1.184_592_981_764_529_4e-5,
        6.331_472_841_497_064e-7,
        3.851_017_459_978_25e-7,
        -2.118_740_157_515_424e-9,
        -1.296_334_650_273_668e-8,
        -7.070_323_319_150_624e-11,
        4.871_641_594_722_769e-10,
        -6.229_863_742_068_917_6e-12,
        -1.989_312_179_862_211_5e-11,
        1.154_603_544_788_804_7e-12,
        8.227_140_310_560_963e-13,
        -1.091_346_010_952_432_5e-13,
        -3.075_177_959_808_193_5e-14,
        8.103_543_395_521_696e-15,
        7.633_098_896_831_416e-16,
        -5.045_935_068_926_838e-16,
        1.792_548_875_355_647e-17,
    ];
    let t = 4.0 / (4.0 + a);
    // Clenshaw's recurrence on [−1, 1].
    let s = 2.0 * t - 1.0;
    let (mut b1, mut b2) = (0.0, 0.0);
    for c in SERIES[1..].iter().rev() {
        (b1, b2) = (2.0 * s * b1 - b2 + c, b1);
    }
    let ratio = t * (SERIES[0] + s * b1 - b2);
    let u = 1.0 / (a * a);
    let far = u * (1.0 - u * (3.0 - u * (15.0 - u * (105.0 - 945.0 * u))));
    (ratio, if a > 50.0 { far } else { 1.0 - a * ratio })
}

/// Returns (sin x, cos x). For |x| up to a million, the error is at most a few ulp of 1. With x = k·π/2 + r, Taylor
/// polynomials give sin r and cos r, and k gives the quadrant.
#[inline(always)]
pub(crate) fn sine_and_cosine(x: f64) -> (f64, f64) {
    // The number π/2 in three parts of 33 bits. The products of k with the first two parts are exact.
    const HALF_PI: [f64; 3] = [
        1.570_796_326_734_125_6,
        6.077_100_506_303_966e-11,
        2.022_266_248_795_950_6e-21,
    ];
    // A phase beyond 1e9 counts as 0, because its sine would have at most seven correct digits. Beyond 2⁵², all digits
    // of the sine would be wrong.
    let x = if x.abs() > 1e9 { 0.0 } else { x };
    let shifted = x * std::f64::consts::FRAC_2_PI + SHIFT;
    let k = shifted - SHIFT;
    let quadrant = shifted.to_bits() & 3;
    let r = ((x - k * HALF_PI[0]) - k * HALF_PI[1]) - k * HALF_PI[2];
    let z = r * r;
    let mut sin = 1.0 / 355_687_428_096_000.0; // 1/17!
    for coefficient in [
        -1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ] {
        sin = sin * z + coefficient;
    }
    let sin = sin * r;
    let mut cos = 1.0 / 20_922_789_888_000.0; // 1/16!
    for coefficient in [
        -1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -0.5,
        1.0,
    ] {
        cos = cos * z + coefficient;
    }
    let (s, c) = if quadrant & 1 == 0 {
        (sin, cos)
    } else {
        (cos, sin)
    };
    let sign = |negative: bool| if negative { -1.0 } else { 1.0 };
    (
        s * sign(quadrant & 2 != 0),
        c * sign((quadrant + 1) & 2 != 0),
    )
}

/// Returns log Φ(u) and its derivative φ(u)/Φ(u). For u < 0, Φ(u) = φ(u) R(−u) with Mills' ratio R.
pub(crate) fn log_cdf(u: f64) -> (f64, f64) {
    let log_density = -0.5 * u * u - 0.5 * (2.0 * PI).ln();
    if u > 0.0 {
        let cdf = 0.5 * libm::erfc(-u * FRAC_1_SQRT_2);
        (cdf.ln(), log_density.exp() / cdf)
    } else {
        let (ratio, _) = mills_ratio(-u);
        (log_density + ratio.ln(), 1.0 / ratio)
    }
}

/// Returns the standard normal quantile Φ⁻¹(u) for 0 < u < 1, with a relative error of about 1e-16 (algorithm AS 241,
/// PPND16, of Wichura 1988).
pub(crate) fn normal_quantile(u: f64) -> f64 {
    let q = u - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        let [numerator, denominator] = &CENTRE;
        return q * polynomial(numerator, r) / polynomial(denominator, r);
    }
    let r = (-libm::log(u.min(1.0 - u))).sqrt();
    let ([numerator, denominator], shift) = match r <= 5.0 {
        true => (&SIDES, 1.6),
        false => (&TAILS, 5.0),
    };
    let r = r - shift;
    (polynomial(numerator, r) / polynomial(denominator, r)).copysign(q)
}

/// Returns Σ_k c_k r^k by Horner's rule.
fn polynomial(coefficients: &[f64; 8], r: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * r + c)
}

/// The coefficients of the three rational functions of AS 241: the numerator and the denominator, from the constant
/// term on.
const CENTRE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_854e3,
    ],
];
const SIDES: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_8e-9,
    ],
];
const TAILS: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mills_ratio_equals_the_scaled_error_function() {
        for i in 0..20_000 {
            let a = 1e-3 * i as f64 * (1.0 + 1e-3 * i as f64);
            let (ratio, rest) = mills_ratio(a);
            let expected = (std::f64::consts::PI / 2.0).sqrt() * puruspe::erfcx(a / 2f64.sqrt());
            assert!((ratio / expected - 1.0).abs() < 1e-14, "{a}");
            // The derivative of R is a R − 1.
            if a < 10.0 {
                assert!((rest / (1.0 - a * expected) - 1.0).abs() < 1e-12, "{a}");
            }
        }
        // The two formulas for 1 − a R agree where the function switches between them.
        let (before, after) = (mills_ratio(50.0).1, mills_ratio(50f64.next_up()).1);
        assert!((before / after - 1.0).abs() < 2e-12);
    }

    #[test]
    fn log_cdf_and_its_derivative_match_high_precision_values() {
        // The expected values of log Φ(u) were computed with 60 digits.
        for (u, expected) in [
            (3.0, -0.001_350_809_964_748_192_5),
            (0.5, -0.368_946_415_288_656_35),
            (0.0, -std::f64::consts::LN_2),
            (-0.5, -1.175_911_761_593_618_6),
            (-3.0, -6.607_726_221_510_349),
            (-40.0, -804.608_442_013_753_9),
        ] {
            let (value, slope) = log_cdf(u);
            assert!(
                (value - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                "{u}: {value}"
            );
            let difference = (log_cdf(u + 1e-6).0 - log_cdf(u - 1e-6).0) / 2e-6;
            assert!((slope - difference).abs() < 1e-6 * slope.max(1.0), "{u}");
        }
    }

    proptest! {
        #[test]
        fn exponential_is_within_two_ulp(x in -708.0f64..=0.0) {
            let exact = x.exp();
            prop_assert!((exp_nonpositive(x) - exact).abs() <= 2.0 * f64::EPSILON * exact);
        }

        #[test]
        fn sine_and_cosine_are_within_a_few_ulp_of_one(x in -1e6f64..1e6) {
            let (sin, cos) = sine_and_cosine(x);
            prop_assert!((sin - x.sin()).abs() <= 2.0 * f64::EPSILON);
            prop_assert!((cos - x.cos()).abs() <= 2.0 * f64::EPSILON);
        }

        #[test]
        fn sine_and_cosine_are_on_the_unit_circle_for_every_argument(x in prop::num::f64::ANY) {
            let (sin, cos) = sine_and_cosine(x);
            prop_assert!(x.is_nan() || (sin * sin + cos * cos - 1.0).abs() < 1e-14, "{sin} {cos}");
            if x.abs() < 1e9 {
                prop_assert!((sin - x.sin()).abs() < 1e-6 && (cos - x.cos()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn normal_quantiles_invert_the_distribution_function() {
        // A relative error ε of x changes log Φ(x) by about x²·ε.
        let probabilities = (1..2000).map(|i| f64::from(i) / 2000.0);
        let small = (2..300).map(|k| 10f64.powi(-k));
        for u in probabilities.chain(small) {
            let x = normal_quantile(u);
            let back = 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
            assert!((back / u - 1.0).abs() < 1e-14 * (1.0 + x * x), "{u}");
            if u > 1e-12 {
                let other = -std::f64::consts::SQRT_2 * puruspe::inverfc(2.0 * u);
                assert!((x - other).abs() < 1e-12, "{u} {x} {other}");
            }
        }
        assert_eq!(normal_quantile(0.75), -normal_quantile(0.25));
        assert_eq!(
            normal_quantile(1.0 - 1e-10),
            -normal_quantile(1.0 - (1.0 - 1e-10))
        );
    }

    #[test]
    fn exponential_underflows_to_zero_and_stays_finite_for_positive_arguments() {
        assert_eq!(exp_nonpositive(0.0), 1.0);
        for x in [1e-300, 1e-16, 0.1, 1.0] {
            assert!((exp_nonpositive(x) - x.exp()).abs() <= 2.0 * f64::EPSILON * x.exp());
        }
        for x in [1.0_f64.next_up(), 710.0, 1e8, f64::MAX, f64::INFINITY] {
            assert_eq!(exp_nonpositive(x), exp_nonpositive(1.0), "{x}");
        }
        assert!(exp_nonpositive(f64::NAN).is_nan());
        assert_eq!(exp_nonpositive(-1e9), 0.0);
        assert_eq!(exp_nonpositive(f64::NEG_INFINITY), 0.0);
    }

    /// With a standard deviation of 1e-12, two computations of −u²/2 may differ by up to 1e8.
    #[test]
    fn differences_that_exceed_zero_by_rounding_stay_bounded() {
        for i in 1..1000 {
            let (lead, std) = (-0.37 * f64::from(i), 1e-12);
            let (u, largest) = (lead * (1.0 / std), lead / std);
            let ratio = exp_nonpositive(-0.5 * u * u + 0.5 * largest * largest);
            assert!((0.0..2.72).contains(&ratio), "{lead}: {ratio}");
        }
    }

    #[test]
    fn sine_and_cosine_of_the_axes_are_exact() {
        assert_eq!(sine_and_cosine(0.0), (0.0, 1.0));
        let (sin, cos) = sine_and_cosine(std::f64::consts::FRAC_PI_2);
        assert!(sin == 1.0 && cos.abs() < 1e-16);
    }
}
