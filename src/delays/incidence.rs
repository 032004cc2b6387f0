//! Estimates without a family: Kaplan–Meier and Aalen–Johansen.
//!
//! At the j-th distinct time, n_j trials are at risk, a_j arrive and f_j fail, d_j = a_j + f_j. The probability that a
//! trial neither arrives nor fails before the next time is S_j = Π_{i≤j} (1 − d_i/n_i) (Kaplan and Meier 1958), with
//! Greenwood's variance S_j² Σ_{i≤j} d_i/(n_i (n_i − d_i)). The cumulative incidence of arrivals is I_j = Σ_{i≤j}
//! S_{i−1} a_i/n_i (Aalen and Johansen 1978).

use super::records::{Ending, Records, Resolution};

/// The estimates at the distinct times of arrivals and failures, up to the last arrival. Beyond the last arrival the
/// data do not determine the estimate.
#[derive(Default)]
pub struct Incidence {
    pub times: Vec<f64>,
    /// The probability that a trial has neither arrived nor failed, and its variance.
    pub survival: Vec<f64>,
    pub survival_variance: Vec<f64>,
    /// The probability that a trial has arrived, and its variance.
    pub arrived: Vec<f64>,
    pub arrived_variance: Vec<f64>,
}

impl Incidence {
    pub fn of(records: &Records) -> Self {
        let groups = &records.groups;
        let last = groups.iter().rposition(|g| g.1 == Ending::Arrived);
        let mut at_risk: f64 = groups.iter().map(|g| g.2).sum();
        let mut estimate = Self::default();
        let (mut survival, mut arrived, mut greenwood) = (1.0, 0.0, 0.0);
        // Sums of the variance of I (Marubini and Valsecchi 1995): Σ (I − I_j)² d_j/(n_j (n_j − d_j))
        // + Σ S_{j−1}² a_j (n_j − a_j)/n_j³ − 2 Σ (I − I_j) S_{j−1} a_j/n_j². With R_j = I − I_j, these sums have a
        // recursion: when I grows by δ, each R_j grows by δ.
        let (mut squares, mut own, mut crossed, mut linear, mut cross_weight) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        let mut j = 0;
        while j <= last.unwrap_or(0) {
            let time = groups[j].0;
            let here = groups[j..].iter().take_while(|g| g.0 == time);
            let (mut counts, mut n_groups) = ([0.0; 3], 0);
            for group in here {
                counts[group.1 as usize] += group.2;
                n_groups += 1;
            }
            j += n_groups;
            let [a, f, censored] = counts;
            // On the clock of iterations, the delay of a trial in flight at age k is above k − 1, but may be k.
            let exposed = match records.resolution {
                Resolution::Iterations => at_risk - censored,
                Resolution::Exact | Resolution::Rounded(_) => at_risk,
            };
            let d = a + f;
            if d > 0.0 {
                let growth = survival * a / exposed;
                squares += growth * (2.0 * linear + growth * greenwood);
                linear += growth * greenwood;
                crossed += growth * cross_weight;
                arrived += growth;
                own += survival * survival * a * (exposed - a) / exposed.powi(3);
                cross_weight += survival * a / (exposed * exposed);
                // If d_j = n_j, S and the later growth are 0.
                if exposed > d {
                    greenwood += d / (exposed * (exposed - d));
                }
                survival *= 1.0 - d / exposed;
                estimate.times.push(time);
                estimate.survival.push(survival);
                estimate
                    .survival_variance
                    .push(survival * survival * greenwood);
                estimate.arrived.push(arrived);
                let variance: f64 = squares + own - 2.0 * crossed;
                estimate.arrived_variance.push(variance.max(0.0));
            }
            at_risk -= d + censored;
        }
        estimate
    }

    /// Returns `Records::early`. On the clock of iterations, a trial of age k may still arrive with delay k.
    pub fn early(&self, records: &Records) -> f64 {
        let until = |n: usize| n.checked_sub(1).map_or(0.0, |last| self.arrived[last]);
        let all = until(self.times.len());
        let (mut sum, mut total) = (0.0, 0.0);
        for (age, _, weight) in records.groups.iter().filter(|g| g.1 == Ending::Censored) {
            let elapsed = records.resolution.elapsed(*age);
            let before = until(self.times.partition_point(|&t| t <= elapsed)) / all;
            // Trials that were just suggested count little, because few results have arrived with a smaller delay.
            sum += weight * before * (1.0 - before);
            total += weight * before;
        }
        if total > 0.0 { sum / total } else { 0.0 }
    }
}
