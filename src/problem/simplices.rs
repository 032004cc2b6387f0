//! Exact uniform draws from the points of a box that satisfy linear constraints, by simplices and rejection.
//!
//! A band low ≤ Σ a_i x_i ≤ high is a sum Σ |a_i| y_i of distances y_i ≥ 0 from a corner of the box. Without the upper
//! bounds of y, the sum s of m uniform points has a density proportional to s^(m−1), and the shares |a_i| y_i / s have
//! the law Dirichlet(1, …, 1). Points beyond an upper bound, or outside other bands, are drawn again.

use rand::{RngExt, SeedableRng};
use rand_distr::Exp1;

use super::band::{Band, TOLERANCE};
use crate::random::Rng;

/// Draws are exact if at least `MIN_ACCEPTED` of `N_TRIALS` points are accepted. A chain takes as long per point as
/// some dozens of rejected points.
const N_TRIALS: usize = 512;
const MIN_ACCEPTED: usize = 10;

/// Proposals for points of a box, and the bands that they may violate.
#[derive(Clone, Debug, PartialEq)]
pub struct Simplices {
    /// The ranges of the coordinates. Coordinates without a simplex are uniform.
    ranges: Vec<(f64, f64)>,
    simplices: Vec<Simplex>,
    others: Vec<Band>,
}

#[derive(Clone, Debug, PartialEq)]
struct Simplex {
    /// The coordinates i, their coefficients |a_i|, the bound from which y_i is measured, and its direction, ±1.
    terms: Vec<(usize, f64, f64, f64)>,
    /// The range of the sum Σ |a_i| y_i.
    low: f64,
    high: f64,
}

impl Simplices {
    /// Creates the draws from a set of dimension k. `ranges` must be the ranges of the coordinates in this set. None if
    /// few points would be accepted, or if bands with equalities have coordinates in common.
    pub fn new(ranges: &[(f64, f64)], bands: &[Band], k: usize) -> Option<Self> {
        let mut found = Self {
            ranges: ranges.to_vec(),
            simplices: Vec::new(),
            others: Vec::new(),
        };
        let is_fixed = |i: usize| ranges[i].1 - ranges[i].0 <= TOLERANCE;
        let mut taken: Vec<bool> = (0..ranges.len()).map(is_fixed).collect();
        let mut dimension = taken.iter().filter(|taken| !**taken).count();
        let mut order: Vec<&Band> = bands.iter().collect();
        order.sort_by_key(|band| !band.is_equality());
        for band in order {
            let free: Vec<(usize, f64)> = band.terms().filter(|(i, _)| !is_fixed(*i)).collect();
            let is_equality = band.is_equality();
            let usable = !free.is_empty() && free.iter().all(|(i, _)| !taken[*i]);
            let simplex = usable.then(|| Simplex::new(ranges, band, &free));
            match simplex.filter(|simplex| is_equality || simplex.is_smaller(ranges)) {
                Some(simplex) => {
                    free.iter().for_each(|(i, _)| taken[*i] = true);
                    dimension -= usize::from(is_equality);
                    found.simplices.push(simplex);
                }
                None if is_equality && !free.is_empty() => return None,
                None => found.others.push(band.clone()),
            }
        }
        let mut rng = Rng::seed_from_u64(0);
        let accepted = (0..N_TRIALS).filter(|_| found.propose(&mut rng).is_some());
        (dimension == k && accepted.count() >= MIN_ACCEPTED).then_some(found)
    }

    /// Draws a uniform point.
    pub fn sample(&self, rng: &mut Rng) -> Vec<f64> {
        loop {
            if let Some(x) = self.propose(rng) {
                return x;
            }
        }
    }

    fn propose(&self, rng: &mut Rng) -> Option<Vec<f64>> {
        let mut x: Vec<f64> = self.ranges.iter().map(|(low, _)| *low).collect();
        let mut is_drawn = vec![false; x.len()];
        for simplex in &self.simplices {
            simplex.write(&mut x, rng);
            for (i, ..) in &simplex.terms {
                is_drawn[*i] = true;
                let (low, high) = self.ranges[*i];
                if x[*i] < low - TOLERANCE || x[*i] > high + TOLERANCE {
                    return None;
                }
            }
        }
        for (i, (low, high)) in self.ranges.iter().enumerate() {
            if !is_drawn[i] {
                x[i] = low + (high - low) * rng.random::<f64>();
            }
        }
        let inside = |band: &Band| {
            let sum = band.sum(&x);
            sum >= band.low - TOLERANCE && sum <= band.high + TOLERANCE
        };
        self.others.iter().all(inside).then_some(x)
    }
}

impl Simplex {
    /// The simplex at the corner where the sum is least, or at the opposite corner if that simplex is smaller.
    fn new(ranges: &[(f64, f64)], band: &Band, free: &[(usize, f64)]) -> Self {
        let low_end = |(i, a): (usize, f64)| a * if a > 0.0 { ranges[i].0 } else { ranges[i].1 };
        let least: f64 = band.terms().map(low_end).sum();
        let width: f64 = free
            .iter()
            .map(|(i, a)| a.abs() * (ranges[*i].1 - ranges[*i].0))
            .sum();
        let low = (band.low - least).clamp(0.0, width);
        let high = (band.high - least).clamp(low, width);
        let from_low = high <= width - low;
        let term = |(i, a): (usize, f64)| match (a > 0.0) == from_low {
            true => (i, a.abs(), ranges[i].0, 1.0),
            false => (i, a.abs(), ranges[i].1, -1.0),
        };
        let (low, high) = match from_low {
            true => (low, high),
            false => (width - high, width - low),
        };
        Self {
            terms: free.iter().copied().map(term).collect(),
            low: if band.is_equality() { high } else { low },
            high,
        }
    }

    /// Whether the volume is smaller than the volume of the box of the coordinates.
    fn is_smaller(&self, ranges: &[(f64, f64)]) -> bool {
        let m = self.terms.len() as f64;
        let share = 1.0 - libm::pow(self.low / self.high, m);
        let sides = self.terms.iter().map(|(i, a, ..)| {
            let (low, high) = ranges[*i];
            libm::log(a * (high - low))
        });
        m * libm::log(self.high) + libm::log(share) - libm::lgamma(m + 1.0) < sides.sum()
    }

    fn write(&self, x: &mut [f64], rng: &mut Rng) {
        let sum = match self.low < self.high {
            true => {
                let m = self.terms.len() as f64;
                let least = libm::pow(self.low / self.high, m);
                let share = least + (1.0 - least) * rng.random::<f64>();
                self.high * libm::pow(share, 1.0 / m)
            }
            false => self.high,
        };
        let mut total = 0.0;
        for (i, ..) in &self.terms {
            x[*i] = rng.sample(Exp1);
            total += x[*i];
        }
        for (i, a, bound, direction) in &self.terms {
            x[*i] = bound + direction * sum * x[*i] / (total * a);
        }
    }
}
