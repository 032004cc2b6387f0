//! Tests of searches with excluded members.

use ndarray::Array2;

use super::{cube, integer, search_without};
use crate::maximize::Maximizer;
use crate::maximize::excluded::Excluded;
use crate::problem::{Coordinate, Domain};

/// Repeats the search n times, excluding the results of earlier searches, and returns the values in order.
fn taken_in_turn(f: &dyn Fn(&[f64]) -> f64, domain: &Domain, n: usize) -> Vec<f64> {
    let mut taken: Vec<(Vec<f64>, Option<usize>)> = Vec::new();
    let mut values = Vec::new();
    for seed in 0..n {
        let points = taken.iter().map(|(x, row)| (x.as_slice(), *row));
        let excluded = Excluded::new(domain, points);
        let value = |x: &[f64], g: &mut [f64]| {
            g.fill(0.0);
            f(x)
        };
        let maximizer = Maximizer::default();
        let found = search_without(value, domain, &[], &maximizer, &excluded, seed as u64);
        assert!(domain.contains(&found.point));
        assert!(!excluded.contains(domain, &found.point));
        values.push(found.value);
        taken.push((found.point, found.index));
    }
    values
}

#[test]
fn excluded_members_of_finite_domains_are_not_returned_while_others_are_left() {
    let list = Domain::candidates(Array2::from_shape_fn((300, 1), |(i, _)| i as f64)).unwrap();
    let grid = Domain::new_box(vec![
        integer(0, 19, false),
        Coordinate::Categorical { n: 3 },
    ])
    .unwrap();
    let rough = |x: &[f64]| {
        (17.0 * x[0]).sin()
            + x.iter()
                .skip(1)
                .zip(0..)
                .map(|(x, i)| x * f64::from(i))
                .sum::<f64>()
    };
    for (domain, n) in [(list, 300), (grid, 60)] {
        let mut values = taken_in_turn(&rough, &domain, n);
        assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
        values.dedup();
        assert!(values.len() > n / 2);
    }
}

#[test]
fn excluded_members_of_large_discrete_boxes_are_not_returned_while_others_are_left() {
    // The domain has 1,200 members, too many to enumerate, and repeated searches find them all.
    let domain = Domain::new_box(vec![
        integer(0, 39, false),
        integer(0, 9, false),
        Coordinate::Categorical { n: 3 },
    ])
    .unwrap();
    let hill = |x: &[f64]| x[3] - (x[0] - 0.6).powi(2) - (x[1] - 0.3).powi(2);
    let values = taken_in_turn(&hill, &domain, 1200);
    let mut sorted = values.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(values[0], sorted[0]);
    for i in 0..40 {
        assert!(
            values[i] > sorted[2 * i + 10],
            "{i}: {} {}",
            values[i],
            sorted[i]
        );
    }
}

#[test]
fn if_all_members_are_excluded_the_exclusion_is_ignored() {
    for (domain, width) in [
        (
            Domain::candidates(Array2::from_shape_fn((7, 1), |(i, _)| i as f64)).unwrap(),
            1,
        ),
        (
            Domain::new_box(vec![Coordinate::Categorical { n: 7 }]).unwrap(),
            7,
        ),
    ] {
        let all: Vec<Vec<f64>> = match &domain {
            Domain::Candidates(points) => points.rows().into_iter().map(|x| x.to_vec()).collect(),
            Domain::Box(coordinates) => (0..7)
                .map(|i| {
                    let mut x = vec![0.0; width];
                    coordinates[0].write(i, &mut x);
                    x
                })
                .collect(),
        };
        let excluded = Excluded::new(
            &domain,
            all.iter().zip(0..).map(|(x, i)| (x.as_slice(), Some(i))),
        );
        assert!(excluded.is_all_of(&domain));
        let last = |x: &[f64], _: &mut [f64]| x[width - 1];
        let found = search_without(last, &domain, &[], &Maximizer::default(), &excluded, 1);
        assert_eq!(found.point, all[6]);
        // If all members except one are excluded and all values are NaN, the remaining member is returned.
        let excluded = Excluded::new(
            &domain,
            all[1..]
                .iter()
                .zip(1..)
                .map(|(x, i)| (x.as_slice(), Some(i))),
        );
        let found = search_without(
            |_, _| f64::NAN,
            &domain,
            &[],
            &Maximizer::default(),
            &excluded,
            1,
        );
        assert_eq!(found.point, all[0]);
    }
    // Members with an active continuous coordinate cannot be excluded.
    let line = cube(1);
    let excluded = Excluded::new(&line, [([0.5].as_slice(), None)]);
    assert!(excluded.is_empty() && !excluded.is_all_of(&line));
}
