//! Tests of the search in boxes whose discrete coordinates interact.

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

use super::search;
use crate::maximize::Maximizer;
use crate::problem::{Coordinate, Domain};
use crate::random::Rng;

#[test]
fn the_best_of_interacting_choices_is_found() {
    // Every two of the five categoricals add a random value for their two choices. The best x depends on the sum of all
    // choices.
    let mut coordinates = vec![Coordinate::Categorical { n: 5 }; 5];
    coordinates.push(Coordinate::Continuous);
    let domain = Domain::new_box(coordinates).unwrap();
    let mut missed = 0;
    for surface in 0..20 {
        let mut rng = Rng::seed_from_u64(surface);
        let pairs: Vec<f64> = (0..625).map(|_| rng.sample(StandardNormal)).collect();
        let height = |choices: &[usize]| -> f64 {
            let both = (0..5).flat_map(|k| (0..k).map(move |l| (k, l)));
            both.map(|(k, l)| pairs[(5 * k + choices[k]) * 25 + 5 * l + choices[l]])
                .sum()
        };
        let all = (0..3125).map(|i| [i % 5, i / 5 % 5, i / 25 % 5, i / 125 % 5, i / 625]);
        let best = all.map(|choices| height(&choices)).fold(f64::MIN, f64::max);
        let f = |x: &[f64], g: &mut [f64]| {
            let choice = |k: usize| (0..5).find(|c| x[5 * k + c] == 1.0).unwrap_or(0);
            let choices: Vec<usize> = (0..5).map(choice).collect();
            let centre = choices.iter().sum::<usize>() as f64 / 20.0;
            g.fill(0.0);
            g[25] = -8.0 * (x[25] - centre);
            height(&choices) - 4.0 * (x[25] - centre).powi(2)
        };
        let found = search(f, &domain, &[], &Maximizer::default(), surface);
        assert!(found.value <= best);
        missed += u64::from(found.value < best - 1e-6);
    }
    assert!(missed <= 1, "missed {missed} of 20");
}
