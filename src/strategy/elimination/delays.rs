//! Estimation of the delay model from the log. The delay model consists of the mean, ξ and b in Assumption 3.3, and
//! describes the trials that return a result.
//!
//! The delay of an observed trial is known. The delay of a trial that is in flight, failed or abandoned is at least the
//! age of the trial (right-censored). The distribution of delays is estimated as in Kaplan and Meier 1958. The estimate
//! has probability p_j at the observed delay τ_j. On the clock in iterations, a result that arrives before the next
//! suggestion has delay 0. If all results have delay 0, the length t_r of a round is q_r.

use crate::delays::Ending;
use crate::ledger::View;
use crate::problem::Clock;
use crate::strategy::elimination::settings::SubExponential;

/// The grid on which b is chosen. The three constants are the largest b (in standard deviations of the delay), the
/// number of values of b, and the number of values of b per factor of 2.
const B_LARGEST: f64 = 16.0;
const N_B: usize = 24;
const B_PER_OCTAVE: f64 = 3.0;
/// The moment-generating function is evaluated at this number of arguments η on each side of 0.
const N_ETA: usize = 12;

/// Estimates the delay model. ξ and b are chosen to minimise the bound on delays, in which `log_term` is log(3T/δ).
/// Before the first result has arrived, this function returns `None`.
pub fn estimate(log: View, now: f64, clock: Clock, log_term: f64) -> Option<SubExponential> {
    let delays = log.delays(now, None);
    let least = match clock {
        Clock::Iterations => 1.0,
        Clock::Seconds => 0.0,
    };
    let ages = delays.ages.iter().map(|age| (age - least).max(0.0));
    let arrived = delays
        .endings
        .iter()
        .map(|ending| *ending == Ending::Arrived);
    let distribution = kaplan_meier(ages.zip(arrived).collect());
    if distribution.is_empty() {
        return None;
    }
    Some(sub_exponential(&distribution, log_term))
}

/// Returns the pairs (τ_j, p_j) in increasing order of τ_j. `delays` contains the delay or age of each suggested trial, and
/// whether the trial has a result. The probabilities are normalised: Σ p_j = 1. The list is empty if all delays are
/// censored.
fn kaplan_meier(mut delays: Vec<(f64, bool)>) -> Vec<(f64, f64)> {
    // If the delay of a result equals the age of a trial without a result, the delay is sorted before the age.
    delays.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let (mut surviving, mut at_risk) = (1.0, delays.len());
    let mut distribution = Vec::new();
    for group in delays.chunk_by(|a, b| a.0 == b.0) {
        let ended = group.iter().filter(|(_, there)| *there).count();
        if ended > 0 {
            let p = surviving * ended as f64 / at_risk as f64;
            distribution.push((group[0].0, p));
            surviving -= p;
        }
        at_risk -= group.len();
    }
    let total: f64 = distribution.iter().map(|(_, p)| p).sum();
    distribution.iter_mut().for_each(|(_, p)| *p /= total);
    distribution
}

/// Returns the pair ξ, b that gives the smallest bound on delays. Only pairs that satisfy Assumption 3.3 are
/// considered.
fn sub_exponential(distribution: &[(f64, f64)], log_term: f64) -> SubExponential {
    let mean: f64 = distribution.iter().map(|(tau, p)| p * tau).sum();
    let variance: f64 = distribution
        .iter()
        .map(|(tau, p)| p * (tau - mean) * (tau - mean))
        .sum();
    let std = variance.sqrt();
    if std == 0.0 {
        return SubExponential {
            mean,
            xi: 0.0,
            b: 0.0,
        };
    }
    let log_mgf = |eta: f64| {
        let exponents = distribution.iter().map(|(tau, _)| eta * (tau - mean));
        let largest = exponents.clone().fold(0.0, f64::max);
        let weighted = exponents
            .zip(distribution)
            .map(|(e, (_, p))| p * libm::exp(e - largest));
        largest + libm::log(weighted.sum::<f64>())
    };
    let mut best: Option<(f64, SubExponential)> = None;
    for i in 0..N_B {
        let b = std * B_LARGEST * libm::exp2(-(i as f64) / B_PER_OCTAVE);
        // ξ² is the supremum of 2 log E exp(η(τ − E τ)) / η² over |η| ≤ 1/b. The limit of the quotient at η = 0 is the
        // variance.
        let squared = (1..=N_ETA).fold(variance, |largest, j| {
            let eta = j as f64 / (N_ETA as f64 * b);
            let of = |eta: f64| 2.0 * log_mgf(eta) / (eta * eta);
            largest.max(of(eta)).max(of(-eta))
        });
        let xi = squared.sqrt();
        let bound = (xi * (2.0 * log_term).sqrt()).max(2.0 * b * log_term);
        if best.is_none_or(|(least, _)| bound < least) {
            best = Some((bound, SubExponential { mean, xi, b }));
        }
    }
    best.map_or_else(SubExponential::default, |(_, delay)| delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn poisson_delays_have_their_known_parameters() {
        // log E exp(η(τ − μ)) = μ(exp η − 1 − η). The supremum is at η = 1/b, so ξ² = 2μ(exp(1/b) − 1 − 1/b) b².
        let p = |k: f64| libm::exp(k * 50.0_f64.ln() - 50.0 - libm::lgamma(k + 1.0));
        let law: Vec<(f64, f64)> = (0..400).map(|k| (f64::from(k), p(f64::from(k)))).collect();
        let found = sub_exponential(&law, 12.0);
        assert!((found.mean - 50.0).abs() < 1e-9, "{found:?}");
        let exact = (100.0 * ((1.0 / found.b).exp() - 1.0 - 1.0 / found.b)).sqrt() * found.b;
        assert!((found.xi / exact - 1.0).abs() < 1e-9, "{found:?} {exact}");
    }

    #[test]
    fn ages_are_right_censored() {
        // The data are three delays and the ages of two trials without results. Before normalisation, the probabilities
        // of the delays are 1/5, 4/5 · 1/3 and 8/15 · 1/2. The sum of these probabilities is 11/15.
        let delays = vec![
            (7.0, false),
            (2.0, true),
            (3.0, false),
            (6.0, true),
            (5.0, true),
        ];
        let found = kaplan_meier(delays);
        let expected = [(2.0, 0.2), (5.0, 4.0 / 15.0), (6.0, 4.0 / 15.0)];
        for ((tau, p), (at, weight)) in found.iter().zip(expected) {
            assert!(*tau == at && (p - weight / (11.0 / 15.0)).abs() < 1e-14);
        }
        assert!(kaplan_meier(vec![(3.0, false)]).is_empty());
    }

    proptest! {
        #[test]
        fn the_bound_holds_for_the_observed_delays(delays in prop::collection::vec(0.0f64..1e3, 1..40)) {
            let n = delays.len() as f64;
            let largest = delays.iter().copied().fold(0.0, f64::max);
            let found = sub_exponential(&kaplan_meier(delays.into_iter().map(|d| (d, true)).collect()), 30.0);
            let bound = found.mean + (found.xi * 60.0_f64.sqrt()).max(60.0 * found.b);
            // By the Chernoff bound at log 3T/δ = 30, a delay above the bound has a probability of at most e⁻³⁰, which
            // is below 1/n. Each of the n delays has probability 1/n, so no delay exceeds the bound.
            prop_assert!(largest <= bound * (1.0 + 1e-9) + 1e-9, "{found:?} {n}");
        }
    }
}
