//! Elementary functions without branches, which vectorise where they are inlined: exp of what is not positive, sin and cos.
//!
//! No fused multiply-add: every machine gives the same bits.

/// 1.5·2⁵²: adding it rounds to an integer, which then stands in the low bits.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// exp(x) for x ≤ 0 to 2 ulp, branch-free: x = k·ln 2 + f, a Taylor polynomial in f, and 2^k put into the exponent.
#[inline(always)]
pub(crate) fn exp_nonpositive(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
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

/// (sin x, cos x) to a few ulp of 1 for |x| up to a million: x = k·π/2 + r, Taylor polynomials in r, then the quadrant.
#[inline(always)]
pub(crate) fn sine_and_cosine(x: f64) -> (f64, f64) {
    // π/2 in three parts of 33 bits, so that k times each of the first two is exact.
    const HALF_PI: [f64; 3] = [
        1.570_796_326_734_125_6,
        6.077_100_506_303_966e-11,
        2.022_266_248_795_950_6e-21,
    ];
    // Of a phase beyond a billion seven digits are left at most, of one beyond 2⁵² nothing: it counts as 0.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn own_exponential_is_within_two_ulp(x in -708.0f64..=0.0) {
            let exact = x.exp();
            prop_assert!((exp_nonpositive(x) - exact).abs() <= 2.0 * f64::EPSILON * exact);
        }

        #[test]
        fn own_sine_and_cosine_are_within_a_few_ulp_of_one(x in -1e6f64..1e6) {
            let (sin, cos) = sine_and_cosine(x);
            prop_assert!((sin - x.sin()).abs() <= 2.0 * f64::EPSILON);
            prop_assert!((cos - x.cos()).abs() <= 2.0 * f64::EPSILON);
        }

        #[test]
        fn sine_and_cosine_of_anything_are_on_the_circle(x in prop::num::f64::ANY) {
            let (sin, cos) = sine_and_cosine(x);
            prop_assert!(x.is_nan() || (sin * sin + cos * cos - 1.0).abs() < 1e-14, "{sin} {cos}");
            if x.abs() < 1e9 {
                prop_assert!((sin - x.sin()).abs() < 1e-6 && (cos - x.cos()).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn exponential_underflows_to_zero_and_is_one_at_zero() {
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert_eq!(exp_nonpositive(-1e9), 0.0);
        assert_eq!(exp_nonpositive(f64::NEG_INFINITY), 0.0);
    }

    #[test]
    fn sine_and_cosine_of_the_axes_are_exact() {
        assert_eq!(sine_and_cosine(0.0), (0.0, 1.0));
        let (sin, cos) = sine_and_cosine(std::f64::consts::FRAC_PI_2);
        assert!(sin == 1.0 && cos.abs() < 1e-16);
    }
}
