//! The points that are suggested before there is a model.

use ndarray::ArrayView1;

use crate::domain::Domain;
use crate::ledger::Point;
use crate::random::Rng;
use crate::strategy::bayes::settings::DesignMethod;
use crate::strategy::uniform_point;

/// Quasi-random points that continue the initial ones, for trials that start before anything is observed.
const N_EXTRA: usize = 128;

/// The first n points: quasi-random ones fill the domain evenly, and there are some more of these; candidates are drawn
/// without replacement.
pub fn initial_design(domain: &Domain, n: usize, how: DesignMethod, rng: &mut Rng) -> Vec<Point> {
    let of_box = |x: ArrayView1<f64>| Point::new(x.to_vec(), None);
    match (domain, how) {
        (Domain::Candidates(list), _) => {
            rand::seq::index::sample(rng, list.nrows(), n.min(list.nrows()))
                .into_iter()
                .map(|i| Point::new(list.row(i).to_vec(), Some(i)))
                .collect()
        }
        (Domain::Box(_), DesignMethod::Uniform) => {
            (0..n).map(|_| uniform_point(domain, rng)).collect()
        }
        (Domain::Box(_), DesignMethod::QuasiRandom) => {
            let points = domain.quasi_random_and_more(n, N_EXTRA, rng);
            points.rows().into_iter().map(of_box).collect()
        }
    }
}
