//! The logarithm of noisy expected hypervolume improvement for two or three objectives. The improvement is averaged
//! over fantasies, and every fantasy has a separate front (Daulton et al. 2021). The computation uses logarithms (Ament
//! et al. 2023).
//!
//! Notation: M is the number of objectives and m the number of fantasies; mu_ij is the mean of objective i under
//! fantasy j, and sigma_i is the standard deviation; l_i and u_i are the bounds of a box of [`Cells`]; a = (mu_ij −
//! l_i)/sigma_i and b = (mu_ij − u_i)/sigma_i; h, φ, Φ and Mills' ratio R are as in [`super::log_ei`]. The objectives
//! are independent given the data, so the expected improvement under a fantasy is the sum of Π_i sigma_i D_i over the
//! boxes, where D = h(a) − h(b) is the integral of Φ from b to a.

use multiversion::multiversion;

use super::log_inside::{FRAC_1_SQRT_2_PI, LIMIT};
use super::log_sum::{Terms, improve};
use crate::numerics::hypervolume::{Cells, Sides};
use crate::numerics::simd::dot;
use crate::numerics::special::{exp_nonpositive, mills_ratio};

/// Larger D count as this number. The product of two such D and the largest h of [`improve`] is finite.
const MAX_DIFFERENCE: f64 = 1e75;

/// Sets the exponents of the terms to log Σ_boxes Π_i D_i under each fantasy, and the factors to 1. Overwrites each mean
/// with the derivative of the exponent with respect to this mean, multiplied by sigma, and writes the derivatives with
/// respect to sigma, multiplied by sigma, to `by_std`. `scratch` is a buffer.
///
/// Shapes: means and by_std (M, m); stds (M,); cells (m,).
pub(super) fn log_improvements(
    means: &mut [f64],
    stds: &[f64],
    cells: &[Cells],
    by_std: &mut [f64],
    of_fantasies: &mut Terms,
    scratch: &mut Vec<f64>,
) {
    let (m, n) = (cells.len(), stds.len());
    let largest = |cells: &Cells| cells.len().max(cells.sides[0].levels.len());
    let longest = cells.iter().map(largest).max().unwrap_or(0);
    scratch.resize((2 * n + 2 + N_BUFFERS) * longest, 0.0);
    let ([factors, exponents], rest) = split(scratch, longest);
    let (slopes, buffer) = rest.split_at_mut(2 * n * longest);
    for (j, cells) in cells.iter().enumerate() {
        let k = cells.len();
        let mut terms = Terms {
            factors: &mut factors[..k],
            exponents: &mut exponents[..k],
        };
        // The last objective has no upper bounds. It sets the terms, and the others multiply them.
        for (i, side) in cells.sides.iter().enumerate().rev() {
            let (mean, precision) = (means[i * m + j], 1.0 / stds[i]);
            let (slopes, _) = split(&mut slopes[2 * i * longest..], k);
            if i == n - 1 {
                start(side, mean, precision, slopes, buffer, &mut terms);
            } else {
                bound(side, mean, precision, slopes, buffer, &mut terms);
            }
        }
        of_fantasies.exponents[j] = terms.log_mean() + (k as f64).ln();
        for i in 0..n {
            let ([by_mean, by_one_std], _) = split(&mut slopes[2 * i * longest..], k);
            means[i * m + j] = dot(by_mean, terms.factors);
            by_std[i * m + j] = dot(by_one_std, terms.factors);
        }
    }
    of_fantasies.factors.fill(1.0);
}

/// The number of arrays in the buffer of [`start`] and [`bound`].
const N_BUFFERS: usize = 13;

/// Returns N arrays of length n, and the rest of the buffer.
fn split<const N: usize>(mut buffer: &mut [f64], n: usize) -> ([&mut [f64]; N], &mut [f64]) {
    let arrays = [(); N].map(|()| {
        let (array, rest) = std::mem::take(&mut buffer).split_at_mut(n);
        buffer = rest;
        array
    });
    (arrays, buffer)
}

/// Sets out_k to the entry of `from` with index k of `indices`.
fn gather(from: &[f64], indices: &[usize], out: &mut [f64]) {
    for (out, &index) in out.iter_mut().zip(indices) {
        *out = from[index];
    }
}

/// Sets the terms to h(a), and the slopes to the derivatives of log sigma h(a) with respect to the mean and sigma,
/// multiplied by sigma.
fn start(
    side: &Sides,
    mean: f64,
    precision: f64,
    slopes: [&mut [f64]; 2],
    buffer: &mut [f64],
    terms: &mut Terms,
) {
    let ([by_mean, by_std, factors, exponents], _) = split(buffer, side.levels.len());
    by_mean.fill(mean);
    let mut at_levels = Terms { factors, exponents };
    improve(by_mean, &side.levels, precision, by_std, &mut at_levels);
    let [by_mean_of_boxes, by_std_of_boxes] = slopes;
    gather(by_mean, &side.lower, by_mean_of_boxes);
    gather(by_std, &side.lower, by_std_of_boxes);
    gather(at_levels.factors, &side.lower, terms.factors);
    gather(at_levels.exponents, &side.lower, terms.exponents);
}

/// Multiplies the terms by D, and sets the slopes to the derivatives of log sigma D with respect to the mean and sigma,
/// multiplied by sigma.
fn bound(
    side: &Sides,
    mean: f64,
    precision: f64,
    slopes: [&mut [f64]; 2],
    buffer: &mut [f64],
    terms: &mut Terms,
) {
    let (mut at_levels, buffer) = split::<4>(buffer, side.levels.len());
    let n_boxes = side.lower.len();
    let ([width], buffer) = split(buffer, n_boxes);
    let (mut at_a, buffer) = split::<4>(buffer, n_boxes);
    let (mut at_b, _) = split::<4>(buffer, n_boxes);
    evaluate(mean, &side.levels, precision, &mut at_levels);
    for (from, (a, b)) in at_levels.iter().zip(at_a.iter_mut().zip(&mut at_b)) {
        gather(from, &side.lower, a);
        gather(from, &side.upper, b);
    }
    for ((width, &lower), &upper) in width.iter_mut().zip(&side.lower).zip(&side.upper) {
        *width = (side.levels[upper] - side.levels[lower]) * precision;
    }
    integrate(at_a, at_b, width, slopes, terms);
}

/// Writes u = (mean − level)/sigma, φ(u), Φ(−|u|) and h(−|u|) for every level. For u ≤ 0, they are in units of
/// exp(−u²/2).
#[multiversion(targets = "simd")]
fn evaluate(mean: f64, levels: &[f64], precision: f64, out: &mut [&mut [f64]; 4]) {
    let n = levels.len();
    let [us, densities, tails, rests] = out;
    let (us, densities) = (&mut us[..n], &mut densities[..n]);
    let (tails, rests) = (&mut tails[..n], &mut rests[..n]);
    for i in 0..n {
        let u = (mean - levels[i]) * precision;
        let distance = if u.abs() < LIMIT { u.abs() } else { LIMIT };
        let (ratio, rest) = mills_ratio(distance);
        let decay = exp_nonpositive(-0.5 * distance * distance);
        let density = FRAC_1_SQRT_2_PI * if u > 0.0 { decay } else { 1.0 };
        us[i] = if u > 0.0 { u } else { -distance };
        densities[i] = density;
        tails[i] = density * ratio;
        rests[i] = density * rest;
    }
}

/// Multiplies the terms by D, given the numbers of [`evaluate`] at a and b, and the width w = a − b. Sets the slopes to
/// (Φ(a) − Φ(b))/D and (φ(a) − φ(b))/D. All numbers are in units of exp(−a²/2) if a ≤ 0.
///
/// With h(u) = max(u, 0) + h(−|u|), D is the part of the interval above 0 plus h(−|a|) − h(−|b|). If w is so small that
/// the differences would cancel, they are summed term by term. Since φ⁽ᵏ⁾(a) = (−1)^k He_k(a) φ(a) with the Hermite
/// polynomials He_k, Taylor's formula at a gives, with t_k = He_k(a) w^k:
///
/// * D = w Φ(a) − w² φ(a) Σ_k t_k/(k + 2)!
/// * Φ(a) − Φ(b) = w φ(a) Σ_k t_k/(k + 1)!
/// * φ(a) − φ(b) = −φ(a) Σ_k≥1 t_k/k!
#[multiversion(targets = "simd")]
fn integrate(
    at_a: [&mut [f64]; 4],
    at_b: [&mut [f64]; 4],
    widths: &[f64],
    slopes: [&mut [f64]; 2],
    terms: &mut Terms,
) {
    let n = widths.len();
    let [a, density_a, tail_a, rest_a] = at_a;
    let (a, density_a, tail_a, rest_a) = (&a[..n], &density_a[..n], &tail_a[..n], &rest_a[..n]);
    let [b, density_b, tail_b, rest_b] = at_b;
    let (b, density_b, tail_b, rest_b) = (&b[..n], &density_b[..n], &tail_b[..n], &rest_b[..n]);
    let [by_mean, by_std] = slopes;
    let (by_mean, by_std) = (&mut by_mean[..n], &mut by_std[..n]);
    let (factors, exponents) = (&mut terms.factors[..n], &mut terms.exponents[..n]);
    for i in 0..n {
        let (a, b, width) = (a[i], b[i], widths[i]);
        let (a_is_positive, b_is_positive) = (a > 0.0, b > 0.0);
        let below_a = if a_is_positive { 0.0 } else { -a };
        let below_b = if b_is_positive { 0.0 } else { -b };
        // exp(−b²/2) in units of exp(−a²/2), where positive numbers count as 0
        let gap = if a_is_positive { below_b } else { width };
        let decay = exp_nonpositive(-0.5 * gap * (below_a + below_b));
        let above = if b_is_positive { width } else { a };
        let above = if a_is_positive { above } else { 0.0 };
        let cdf_a = if a_is_positive {
            1.0 - tail_a[i]
        } else {
            tail_a[i]
        };
        let wide_cdf = if b_is_positive {
            tail_b[i] - tail_a[i]
        } else {
            cdf_a - decay * tail_b[i]
        };
        let wide = above + (rest_a[i] - decay * rest_b[i]);
        let wide_density = density_a[i] - decay * density_b[i];

        let is_narrow = width * (1.0 + a.abs()) <= 0.25;
        let (x, square) = (a * width, width * width);
        let (mut before, mut t) = (1.0, x);
        let (mut s0, mut s1, mut s2) = (x, 1.0 + 0.5 * x, 0.5 + x / 6.0);
        for k in 2..N_TERMS {
            (before, t) = (t, x * t - (k - 1) as f64 * square * before);
            s0 += t * INVERSE_FACTORIALS[k];
            s1 += t * INVERSE_FACTORIALS[k + 1];
            s2 += t * INVERSE_FACTORIALS[k + 2];
        }
        let narrow = width * cdf_a - square * density_a[i] * s2;
        let difference = if is_narrow { narrow } else { wide };
        let difference = difference.clamp(f64::MIN_POSITIVE, MAX_DIFFERENCE);
        let inverse = 1.0 / difference;
        let narrow_cdf = width * density_a[i] * s1;
        let narrow_density = -density_a[i] * s0;
        by_mean[i] = inverse * if is_narrow { narrow_cdf } else { wide_cdf };
        by_std[i] = inverse
            * if is_narrow {
                narrow_density
            } else {
                wide_density
            };
        factors[i] *= difference;
        exponents[i] -= 0.5 * below_a * below_a;
    }
}

/// The number of terms of the series for narrow intervals.
const N_TERMS: usize = 12;

/// 1/k! for k = 0, 1, …
const INVERSE_FACTORIALS: [f64; N_TERMS + 2] = {
    let mut inverse = [1.0; N_TERMS + 2];
    let mut k = 1;
    while k < inverse.len() {
        inverse[k] = inverse[k - 1] / k as f64;
        k += 1;
    }
    inverse
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use crate::strategy::bayes::acquisitions::log_ei;
    use ndarray::{Array2, array};
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;

    /// Returns log (1/m) Σ_j Σ_boxes Π_i sigma_i D_i. Overwrites each mean with the derivative with respect to this mean,
    /// and writes the derivatives with respect to the standard deviations to `by_stds`.
    fn log_improvement(
        means: &mut [f64],
        stds: &[f64],
        cells: &[Cells],
        by_stds: &mut [f64],
        scratch: &mut Vec<f64>,
    ) -> f64 {
        let (m, n) = (cells.len(), stds.len());
        let (mut by_std, mut factors, mut exponents) =
            (vec![0.0; n * m], vec![0.0; m], vec![0.0; m]);
        let mut terms = Terms {
            factors: &mut factors,
            exponents: &mut exponents,
        };
        log_improvements(means, stds, cells, &mut by_std, &mut terms, scratch);
        let mut value = terms.log_mean();
        for (i, std) in stds.iter().enumerate() {
            for (mean, share) in means[i * m..][..m].iter_mut().zip(&*terms.factors) {
                *mean *= share / std;
            }
            by_stds[i] = dot(&by_std[i * m..][..m], terms.factors) / std;
            value += std.ln();
        }
        value
    }

    /// a, b, log D, (Φ(a) − Φ(b))/D and (φ(a) − φ(b))/D, computed with 120 digits.
    const INTERVALS: &str = "
        -40.0 -40.000001 -818.42397258666061 40.024969346892595 1600.998793888055
        -40.0 -40.006 -809.84211652614899 40.027847085603883 1601.2291678751883
        -40.0 -40.0061 -809.82750796752683 40.027893028560684 1601.2328459712915
        -40.0 -40.007 -809.70711352132012 40.028303533918206 1601.2657104306713
        -40.0 -41.0 -808.29856835661996 40.049906657648518 1602.9962663059407
        -40.0 -90.0 -808.29856835661996 40.049906657648518 1602.9962663059407
        -5.0 -5.04 -18.386056291676907 5.2051818641290701 26.126531480694803
        -5.0 -5.042 -18.342293306501488 5.2060805923658366 26.135891184350273
        -5.0 -5.3 -16.957336508029817 5.2946738810259606 27.071312481242745
        -5.0 -9.0 -16.744301162661219 5.3618162412872059 27.809081206427585
        -1.0 -1.1 -4.2201826123360589 1.5643205379229524 1.6411684917623083
        -1.0 -1.2 -3.6040597484965284 1.6016445038854365 1.7559487981592965
        -1.0 -3.0 -2.4897184125251321 1.8967691510910773 2.8642153333412857
        0.0 -1e-09 -21.416413017905299 0.79788456112117524 3.9894228056058765e-10
        0.0 -0.25 -2.183935036172696 0.87662917598899236 0.10900912223138079
        0.0 -0.26 -2.14908146436934 0.87972429856070311 0.11372137011640392
        0.0 -30.0 -0.91893853320467274 1.2533141373155003 1.0
        0.3 -0.2 -1.3475868324927529 0.75873977988301542 -0.037153209695197811
        0.1 -0.1 -2.3025850929940456 0.79655674554057963 0.0
        0.1 -0.15 -2.0995353043908966 0.81171180557807711 0.020187323593418286
        2.0 -2.0 0.69314718055994531 0.47724986805182079 0.0
        8.0 -8.0 2.0794415416798359 0.12499999999999984 0.0
        40.0 -40.0 3.6888794541139363 0.025 0.0
        0.5 0.3 -2.0322884097904255 0.56130699518366716 -0.22377546566473976
        0.5 0.4 -2.6977377508639679 0.53506442054226768 -0.24057841372654214
        3.0 2.95 -2.9971997727299775 0.004786451276579708 -0.014236727285595727
        3.0 2.9 -2.3041815619889284 0.0051673956929454853 -0.015231136716327906
        3.0 0.0 0.95606508939795584 0.19168234752157297 -0.15165079767755252
        9.0 8.99 -4.6051701859881127 1.0756375712229914e-18 -9.6752793362904493e-18
        9.0 8.0 -7.5490376327656557e-17 6.2198319858658308e-16 -5.0512431061797258e-15
        38.0 37.9999 -9.2103403719429862 0.0 -4.1773664706247454e-313
        45.0 40.0 1.6094379124341004 0.0 -2.9265405016766064e-349
        1000000.0 999999.0 0.0 0.0 -1.7368097606480946e-217146806658
        1000000.0 999999.999999 -13.815502943499894 0.0 -1.6221557939715205e-217147240946
        1000000.0 -3.0 13.81551055758212 9.9865010235000835e-7 -4.4318484136316572e-9
        -300.0 -300.0001 -45015.848035158652 300.00338300871155 90001.029827782879
        -300.0 -300.01 -45012.377599883216 300.00614256346251 90002.685592515524
        -2000.0 -2000.0001 -2000017.8285155292 2000.0005483341808 4000001.1933372748
        -2000.0 -2001.0 -2000016.1207442023 2000.00099999925 4000002.9999985
        -0.3 -0.30000000000099997 -28.593146056062708 0.99816596885883175 0.29944979065814859
        30.0 29.99 -4.605170185987935 0.0 -5.1546862131336266e-195
        60.0 -0.001 4.0876817066178905 0.0083957360014446998 -0.0066934841559403816
    ";

    /// The means of both fantasies for each objective, the standard deviations, and the acquisition for the fronts of
    /// [`fronts`], computed with 120 digits from a decomposition into all cells of a grid.
    const IMPROVEMENTS: [&str; 2] = [
        "
        2.0510508 2.2598796 1.0031116 -0.1383386 2.369344 0.008339 0.46441716894053
        -0.3453425 -0.8111881 0.0974275 0.893854 1.474527 0.015676 -2.2895381686993
        0.4003754 -0.3415166 0.4630469 -0.056203 0.421061 0.004419 -4.5828220244964
        -1.3566472 -1.6982959 -1.7098802 -1.650065 2.060472 0.663524 -6.8791732405535
        0.6971264 -0.3590079 -1.8159443 -1.5892894 0.027379 0.697154 -11.511987312405
        -0.2585871 0.3576329 0.8805187 0.3504186 0.00444 0.12458 -18.37429678045
        -11.0818341 -11.181232 0.3178331 0.3347859 1.775786 0.026419 -27.594096343133
        -1.8664026 -1.5185353 -0.254724 -0.9888662 0.330912 0.121541 -45.989820148782
        -22.6211121 -21.9778184 -0.938628 -0.841349 2.272324 0.108638 -68.992324259435
        -0.517352 -0.0699022 -0.4865563 0.5000553 0.03054 0.037293 -115.03234201337
        -6.8905321 -6.2271831 0.7225856 0.2448033 0.381032 0.004532 -183.98786176307
        -1.8756978 -2.5494184 -2.0157547 -2.0371063 0.117996 0.17932 -276.05997633125
        -18.0515942 -18.818878 -13.4395932 -14.0151284 0.712071 0.910722 -460.24907295003
        -0.2541011 -0.7643929 -9.3125717 -8.4049927 0.010331 0.376907 -690.66289202683
        0.395845 -0.3709352 -0.3733343 -0.4816234 0.014094 0.018401 -920.95656642789
        -1.7319155 -2.8847272 -5.0949919 -5.688309 0.034072 0.506657 -1381.3121729546
        -0.4893522 -0.0529365 -4.0494793 -4.421056 0.012871 0.09332 -1842.0105042225
        -0.0358571 0.2548898 -0.6395369 -0.0049301 0.019899 0.004962 -539.21320560534
        -11.4869447 -11.1235361 -0.6220969 -0.655607 0.204643 0.004234 -2301.9351090523
        1.0325385 0.782605 -0.1170056 0.8242167 1.094298 0.015847 -1.139058724085
        -0.1093296 0.8235377 0.2845709 -0.0420234 0.043616 0.263453 -9.1917903303058
        -1.5765115 -0.8472724 -0.2932374 0.1627188 0.109267 0.011616 -138.0059615823
        -88.4028522 -87.9401015 0.6783903 0.0446829 2.638357 0.011789 -575.44469197325
        0.2253923 0.404756 0.0440913 0.9977195 0.009666 0.004486 -4.6047375824745
        ",
        "
        0.4945007 1.0749992 0.9526708 0.3524292 0.8094112 0.5081359 1.881897 2.217264 1.504181 0.48030559104495
        0.2568507 0.1759231 0.3818715 -0.2097317 1.751435 1.8149963 0.003752 0.005719 0.426604 -2.2990036362137
        -3.0043489 -3.0749294 0.4032323 -0.2289715 0.0591382 -0.1832672 2.583483 0.038759 0.601672 -4.5783328347221
        1.5438147 1.2719702 0.8653379 -0.0671121 0.093535 -0.1101421 0.267384 0.01112 0.010855 -6.8851178547172
        0.0021378 -0.0581417 0.569549 -0.3020428 0.3837225 0.6889828 0.031075 0.040641 0.023198 -11.49131334028
        0.3060706 -0.85034 -7.2008117 -6.8771591 -0.049735 -1.2868718 0.136911 1.803971 0.189709 -18.378173171124
        -0.4424559 -0.4604302 -11.2242484 -11.7078682 -0.2230535 -0.4217308 0.822037 2.220672 0.130553 -27.63029370084
        -3.9084168 -3.3362285 -7.5996435 -7.2306089 -0.1068729 0.0015243 1.998639 2.245748 0.014056 -45.9460032144
        0.6643821 0.4015757 -9.7266799 -9.541982 -7.4493599 -7.154403 0.033754 1.503096 0.87351 -68.978223286161
        -3.316546 -3.9587962 -2.9058877 -2.3197061 0.0539155 0.3192597 0.653126 0.148345 0.141193 -115.05021152576
        -2.2384715 -2.0336799 -0.3425743 -0.9493948 -0.0197506 -0.1138941 0.153484 0.133489 0.016041 -184.02802068612
        -0.0019651 0.3234024 -7.6968525 -7.6219404 -0.4208843 0.3684886 0.012905 0.349447 0.010459 -276.30077556474
        0.144177 0.0146088 -46.4208733 -46.6679999 0.1625596 0.3020068 0.024739 1.571305 0.005743 -460.41388122273
        -0.73631 -0.6190389 -45.1572125 -44.9827617 -0.2777567 -1.0070722 0.025499 2.393911 0.033406 -690.67878284195
        -0.4657743 0.1265547 -46.4738216 -46.500587 -1.6994774 -0.7409159 0.019573 1.139756 0.101721 -920.7288600897
        -115.3647304 -116.2235003 -6.1840054 -5.4536812 0.0072544 -0.3461787 2.804413 0.252661 0.004247 -1381.4625074798
        -0.6433014 -0.3091156 -0.1732931 -0.1564974 -101.5292808 -102.7735003 0.023944 0.00543 1.759988 -1841.683055995
        -0.4177493 -0.650851 -27.2073966 -27.8505962 -3.0188399 -3.6282975 0.080654 0.423831 0.161947 -2302.2261526952
        -2.6937414 -2.9166144 0.2268389 -0.0433292 -11.0084348 -10.6070452 0.060213 0.0282 0.228517 -2301.6178624615
        -1.1900773 -1.6328522 -0.3293848 -0.8219869 0.7789117 0.6399815 2.78164 2.79976 0.007719 -1.1279279648522
        -0.0524363 -0.0693402 0.7500462 -6.27e-05 0.4064665 0.0501937 0.052532 0.004738 0.027993 -9.2005919359418
        -14.0048585 -13.9113903 -1.3345987 -0.9501021 -8.61894 -7.8992054 0.922991 0.168595 2.526722 -138.15299340473
        -35.3787183 -34.1858175 -1.0356339 -0.1172524 -0.3264426 0.0873063 1.048567 0.047235 0.044396 -575.33649698088
        0.8939671 0.3130231 0.4123488 0.3223033 0.3204038 0.3519159 0.202796 0.004906 0.183751 -4.5979319326744
        ",
    ];

    fn numbers(line: &str) -> Vec<f64> {
        line.split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect()
    }

    fn table(text: &str) -> Vec<Vec<f64>> {
        text.lines()
            .map(numbers)
            .filter(|row| !row.is_empty())
            .collect()
    }

    fn cells_of(fronts: &[Array2<f64>], reference: &[f64]) -> Vec<Cells> {
        let cells = |front: &Array2<f64>| Cells::new(front.view(), reference);
        fronts.iter().map(cells).collect()
    }

    /// The fronts of two fantasies, and the reference.
    fn fronts(n_objectives: usize) -> ([Array2<f64>; 2], &'static [f64]) {
        match n_objectives {
            2 => {
                let first = array![
                    [1.0, 0.2],
                    [0.8, 0.5],
                    [0.80001, 0.4],
                    [0.5, 0.9],
                    [0.3, 0.9000001],
                    [-0.5, 2.0]
                ];
                let second = array![[0.9, 0.9], [0.2, 1.7], [1.4, -0.3]];
                ([first, second], &[0.0, -0.5])
            }
            _ => {
                let first = array![
                    [1.0, 0.2, 0.5],
                    [0.8, 0.5, 0.5],
                    [0.5, 0.9, 0.1],
                    [0.3, 0.1, 1.2],
                    [0.30001, 0.2, 1.1],
                    [0.6, 0.6, 0.6]
                ];
                let second = array![
                    [0.9, 0.9, 0.2],
                    [0.2, 1.1, 0.9],
                    [1.4, 0.05, 0.3],
                    [0.5, 0.4, 1.0]
                ];
                ([first, second], &[0.0, -0.5, 0.1])
            }
        }
    }

    /// The acquisition and its derivatives with respect to the means and the standard deviations.
    fn evaluated(means: &[f64], stds: &[f64], cells: &[Cells]) -> (f64, Vec<f64>, Vec<f64>) {
        let (mut means, mut by_stds) = (means.to_vec(), vec![0.0; stds.len()]);
        let value = log_improvement(&mut means, stds, cells, &mut by_stds, &mut vec![]);
        (value, means, by_stds)
    }

    /// log D and its slopes.
    fn interval(a: f64, b: f64) -> (f64, f64, f64) {
        let side = Sides {
            levels: vec![-a, -b],
            lower: vec![0],
            upper: vec![1],
        };
        let mut terms = Terms {
            factors: &mut [1.0],
            exponents: &mut [0.0],
        };
        let mut slopes = [0.0; 2];
        let (by_mean, by_std) = slopes.split_at_mut(1);
        let mut buffer = [0.0; 2 * N_BUFFERS];
        bound(&side, 0.0, 1.0, [by_mean, by_std], &mut buffer, &mut terms);
        let log_d = terms.factors[0].ln() + terms.exponents[0];
        (log_d, slopes[0], slopes[1])
    }

    #[test]
    fn integrals_and_slopes_match_high_precision_values() {
        for row in table(INTERVALS) {
            let (log_d, by_mean, by_std) = interval(row[0], row[1]);
            // A relative rounding error ε of a or b changes log D by about ε a².
            let tolerance = 2e-11 + 1e-15 * row[0] * row[0];
            for (found, expected) in [log_d, by_mean, by_std].into_iter().zip(&row[2..]) {
                let error = (found - expected).abs();
                assert!(
                    error <= tolerance * expected.abs().max(1.0),
                    "{row:?} {found} {expected} {error:e}"
                );
            }
        }
    }

    #[test]
    fn integrals_over_adjacent_intervals_add_up_where_the_formulas_meet() {
        // An interval is narrow if its width times (1 + |a|) is at most 1/4.
        for i in 0..400 {
            let a = 0.1 * f64::from(i) - 20.0;
            for width in [1e-6, 0.07, 0.1249, 0.1251, 0.2499, 0.2501, 0.4, 3.0] {
                let width = width / (1.0 + a.abs());
                let (b, c) = (a - width, a - 2.0 * width);
                let [whole, first, second] = [(a, c), (a, b), (b, c)].map(|(a, b)| interval(a, b));
                let shares = [first, second].map(|part| (part.0 - whole.0).exp());
                assert!((shares[0] + shares[1] - 1.0).abs() < 1e-9, "{a} {width}");
                let slope = shares[0] * first.1 + shares[1] * second.1;
                assert!((slope / whole.1 - 1.0).abs() < 1e-8, "{a} {width}");
            }
        }
    }

    #[test]
    fn improvements_match_high_precision_values() {
        for (text, n) in IMPROVEMENTS.into_iter().zip([2, 3]) {
            let (fronts, reference) = fronts(n);
            let cells = cells_of(&fronts, reference);
            for row in table(text) {
                let (means, rest) = row.split_at(2 * n);
                let value = evaluated(means, &rest[..n], &cells).0;
                let error = (value - rest[n]).abs();
                assert!(error <= 1e-11 * rest[n].abs().max(1.0), "{row:?} {value}");
            }
        }
    }

    #[test]
    fn improvements_equal_means_over_draws() {
        let mut rng = Rng::seed_from_u64(5);
        for (n, means, stds) in [
            (2, [0.7, 0.9, 0.6, 1.0].as_slice(), [0.4, 0.7].as_slice()),
            (3, &[0.7, 0.9, 0.3, 0.1, 0.4, 0.9], &[0.4, 0.7, 0.3]),
        ] {
            let (fronts, reference) = fronts(n);
            let cells = cells_of(&fronts, reference);
            let (mut total, mut squares, n_draws) = (0.0, 0.0, 500_000);
            for _ in 0..n_draws {
                let z: Vec<f64> = (0..n).map(|_| rng.sample(StandardNormal)).collect();
                let improvement = |j: usize| {
                    let f = (0..n).map(|i| means[2 * i + j] + stds[i] * z[i]);
                    cells[j].improvement(f.collect::<Vec<_>>().as_slice().into())
                };
                let mean = 0.5 * (improvement(0) + improvement(1));
                total += mean;
                squares += mean * mean;
            }
            let mean = total / f64::from(n_draws);
            let error = ((squares / f64::from(n_draws) - mean * mean) / f64::from(n_draws)).sqrt();
            let found = evaluated(means, stds, &cells).0.exp();
            assert!((found - mean).abs() < 4.0 * error, "{found} {mean} {error}");
        }
    }

    #[test]
    fn derivatives_equal_finite_differences() {
        let mut rng = Rng::seed_from_u64(6);
        for n in [2, 3] {
            let (fronts, reference) = fronts(n);
            let cells = cells_of(&fronts, reference);
            for _ in 0..300 {
                let depth = rng.random_range(-3.0..30.0);
                let stds: Vec<f64> = (0..n)
                    .map(|_| 10f64.powf(rng.random_range(-2.0..0.5)))
                    .collect();
                let means: Vec<f64> = (0..2 * n)
                    .map(|k| rng.random_range(0.0..1.0) - depth * stds[k / 2])
                    .collect();
                let (value, by_means, by_stds) = evaluated(&means, &stds, &cells);
                let difference = |index: usize, of_std: bool| {
                    let at = |sign: f64| {
                        let (mut means, mut stds) = (means.clone(), stds.clone());
                        let std = stds[if of_std { index } else { index / 2 }];
                        let moved = if of_std { &mut stds } else { &mut means };
                        moved[index] += sign * 1e-5 * std;
                        evaluated(&means, &stds, &cells).0
                    };
                    (at(1.0) - at(-1.0)) / 2e-5
                };
                let size = value.abs().max(1.0);
                for (k, slope) in by_means.iter().enumerate() {
                    let (found, expected) = (slope * stds[k / 2], difference(k, false));
                    assert!((found - expected).abs() < 1e-7 * size, "{found} {expected}");
                }
                for (i, slope) in by_stds.iter().enumerate() {
                    let (found, expected) = (slope * stds[i], difference(i, true));
                    assert!((found - expected).abs() < 1e-6 * size, "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn multiplying_an_objective_by_a_power_of_two_scales_the_improvement() {
        for n in [2, 3] {
            let (fronts, reference) = fronts(n);
            let means: Vec<f64> = (0..2 * n).map(|k| (k as f64).sin()).collect();
            let stds: Vec<f64> = (0..n).map(|i| 0.3 + 0.1 * i as f64).collect();
            let (value, by_means, by_stds) =
                evaluated(&means, &stds, &cells_of(&fronts, reference));
            for (objective, power) in (0..n).zip([4, -30, 7]) {
                let factor = 2f64.powi(power);
                let scale = |i: usize| if i == objective { factor } else { 1.0 };
                let fronts = fronts.clone().map(|mut front| {
                    front.column_mut(objective).map_inplace(|p| *p *= factor);
                    front
                });
                let times = |values: &[f64], length: usize| -> Vec<f64> {
                    let scaled = values.iter().enumerate();
                    scaled.map(|(k, v)| v * scale(k / length)).collect()
                };
                let cells = cells_of(&fronts, &times(reference, 1));
                let (scaled, by_scaled_means, by_scaled_stds) =
                    evaluated(&times(&means, 2), &times(&stds, 1), &cells);
                let expected = value + factor.ln();
                assert!((scaled - expected).abs() < 1e-14 * expected.abs().max(10.0));
                assert_eq!(times(&by_scaled_means, 2), by_means);
                assert_eq!(times(&by_scaled_stds, 1), by_stds);
            }
        }
    }

    #[test]
    fn without_points_above_the_reference_the_improvement_is_a_product() {
        let reference = [0.3, -0.2, 0.1];
        for n in [2, 3] {
            // The points do not exceed the reference in the first objective.
            let cells = cells_of(&[Array2::from_elem((4, n), 0.3)], &reference[..n]);
            assert_eq!(cells[0].len(), 1);
            for depth in [-3.0, 0.0, 2.0, 40.0, 1e4] {
                let stds = &[0.5, 0.2, 1.5][..n];
                let means: Vec<f64> = stds.iter().map(|std| 0.1 - depth * std).collect();
                let (value, by_means, _) = evaluated(&means, stds, &cells);
                let mut expected = 0.0;
                for i in 0..n {
                    let (log_h, slope) =
                        log_ei::log_improvement((means[i] - reference[i]) / stds[i]);
                    expected += stds[i].ln() + log_h;
                    assert!((by_means[i] * stds[i] / slope - 1.0).abs() < 1e-10);
                }
                assert!((value - expected).abs() < 1e-12 * expected.abs().max(1.0));
            }
        }
    }

    proptest! {
        #[test]
        fn every_posterior_has_finite_values(
            n in 2usize..=3,
            scale in -12i32..=9,
            means in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 6),
            stds in prop::collection::vec(1e-12f64..1e3, 3),
            floored in prop::bool::ANY,
            points in prop::collection::vec(-1.0f64..1.0, 30),
        ) {
            let factor = 10f64.powi(scale);
            let points: Vec<f64> = points.iter().map(|p| p * factor).collect();
            let fronts = points.chunks(15).map(|points| {
                Array2::from_shape_vec((15 / n, n), points[..15 / n * n].to_vec()).unwrap()
            });
            let cells = cells_of(&fronts.collect::<Vec<_>>(), &[-0.5 * factor, 0.0, 0.0][..n]);
            let means: Vec<f64> = means[..2 * n].iter().map(|m| m.clamp(-1e120, 1e120)).collect();
            let stds: Vec<f64> = stds.iter().map(|s| if floored { 1e-12 } else { *s }).collect();
            let (value, by_means, by_stds) = evaluated(&means, &stds[..n], &cells);
            prop_assert!(value.is_finite(), "{value}");
            prop_assert!(by_means.iter().chain(&by_stds).all(|slope| slope.is_finite()), "{by_means:?} {by_stds:?}");
        }
    }
}
