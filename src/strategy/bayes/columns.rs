//! The columns of a row of the model. A row is the encoded point followed by the encoded context.

use std::ops::Range;
use std::sync::Arc;

use crate::gp::fit::FitSettings;
use crate::gp::kernel::{Category, Descriptors, KernelFamily};
use crate::problem::{Coordinate, Domain, columns};

/// The dimension of each column, and properties of the dimensions.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// For each column, the index of the dimension to which the column belongs. All columns of a category belong to one
    /// dimension.
    pub dimension: Vec<usize>,
    /// The number of dimensions.
    pub dimensions: usize,
    /// For each dimension, the root mean square distance between two random points, measured in the columns of the
    /// dimension. Every spread is divided by the root mean square distance between two uniform numbers in [0, 1].
    pub spreads: Vec<f64>,
    /// The columns of each category with two or more choices.
    pub categories: Vec<Category>,
    /// The columns of each categorical context with two or more choices.
    pub contexts: Vec<Range<usize>>,
    /// Whether any parameter of the point is discrete.
    pub discrete: bool,
    /// The columns of numeric parameters in a box. A monotone map may stretch these columns.
    pub numbers: Vec<usize>,
}

impl Columns {
    /// Creates the columns of a point followed by the columns of its context.
    pub fn of(domain: &Domain, context: &[Coordinate]) -> Self {
        let (mut dimension, mut spreads) = (Vec::new(), Vec::new());
        let mut add = |width: usize, spread: f64| {
            dimension.resize(dimension.len() + width, spreads.len());
            spreads.push(spread);
        };
        let parameters = match domain {
            Domain::Candidates(rows) => rows.coordinates(),
            Domain::Box(product) => &product[..],
        };
        parameters.iter().for_each(|c| add(c.width(), spread(c)));
        context.iter().for_each(|c| add(c.width(), spread(c)));
        let first = domain.width();
        let of_context = columns(context).map(|(_, at)| first + at.start..first + at.end);
        let of_context: Vec<Range<usize>> = of_context.collect();
        let contexts = of_context.iter().filter(|at| at.len() > 1).cloned();
        let contexts = contexts.collect();
        let all = columns(parameters).map(|(_, at)| at).chain(of_context);
        let categories = all.filter(|at| at.len() > 1).map(Category::from).collect();
        let numbers = columns(domain.product().map_or(&[], |product| product));
        let numbers = numbers.filter(|(c, _)| is_number(c));
        let numbers = numbers.map(|(_, at)| at.start).collect();
        Self {
            dimension,
            dimensions: spreads.len(),
            categories,
            contexts,
            spreads,
            numbers,
            discrete: parameters.iter().any(|c| c.levels() > Some(1)),
        }
    }

    /// Adds descriptors to categories. Each item consists of the first column of a category, and of the vectors of its
    /// choices.
    pub fn described(mut self, descriptors: &[(usize, Vec<Vec<f64>>)]) -> Self {
        for (start, vectors) in descriptors {
            let mut categories = self.categories.iter_mut();
            if let Some(category) = categories.find(|each| each.columns.start == *start) {
                category.descriptors = Some(Arc::new(Descriptors::new(vectors.clone())));
            }
        }
        self
    }

    /// Creates columns, each of which is a separate dimension.
    #[cfg(test)]
    pub fn plain(width: usize) -> Self {
        Self {
            dimension: (0..width).collect(),
            dimensions: width,
            categories: Vec::new(),
            contexts: Vec::new(),
            spreads: vec![1.0; width],
            discrete: false,
            numbers: Vec::new(),
        }
    }

    /// The choices of the categorical contexts in an encoded context, as bits.
    pub fn choices(&self, context: &[f64]) -> Vec<u64> {
        let first = self.width() - context.len();
        let columns = self.contexts.iter().cloned().flatten();
        columns
            .map(|column| context[column - first].to_bits())
            .collect()
    }

    pub fn width(&self) -> usize {
        self.dimension.len()
    }

    /// Settings for a fit of all hyperparameters with priors, where all columns of a dimension share a lengthscale.
    pub fn fit_settings(&self, family: KernelFamily, n_restarts: usize) -> FitSettings {
        FitSettings {
            categories: self.categories.clone(),
            dimensions: self.dimensions,
            spreads: self.spreads.clone(),
            ..FitSettings::new(family, self.dimension.clone(), n_restarts)
        }
    }
}

/// Integers with at least this many levels are treated as continuous and uniformly distributed.
const MANY_LEVELS: u64 = 32;

/// Whether a monotone map may stretch the coordinate, which must not have few levels.
fn is_number(coordinate: &Coordinate) -> bool {
    coordinate.is_ordered() && coordinate.levels().is_none_or(|n| n >= MANY_LEVELS)
}

/// The spread of a coordinate, as in [`Columns::spreads`]. The mean square distance between two independent draws from
/// a distribution is twice its variance. For uniform numbers in [0, 1], the mean square distance is 1/6. The mean square
/// distance between two random choices out of n is 2(1 − 1/n).
fn spread(coordinate: &Coordinate) -> f64 {
    let mean_square = match (coordinate.choices(), coordinate.levels()) {
        (Some(n @ 2..), _) => 2.0 - 2.0 / n as f64,
        (None, Some(levels @ 2..MANY_LEVELS)) => {
            let n = levels as f64;
            let positions: Vec<f64> = (0..levels).map(|i| coordinate.position(i)).collect();
            let mean = positions.iter().sum::<f64>() / n;
            let squares = positions.iter().map(|u| (u - mean).powi(2));
            2.0 * squares.sum::<f64>() / n
        }
        _ => return 1.0,
    };
    (6.0 * mean_square).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_category_form_one_dimension() {
        let category = Coordinate::Categorical { n: 3 };
        let domain = Domain::new_box(vec![Coordinate::Continuous, category]).unwrap();
        let columns = Columns::of(&domain, &[category, Coordinate::Continuous]);
        assert_eq!(columns.dimension, [0, 1, 1, 1, 2, 2, 2, 3]);
        assert_eq!((columns.width(), columns.dimensions), (8, 4));
        assert_eq!(columns.numbers, [0]);
        assert_eq!(columns.categories, [1..4, 4..7].map(Category::from));
        assert_eq!(columns.contexts, std::slice::from_ref(&(4..7)));
        assert_eq!(columns.spreads, [1.0, 8f64.sqrt(), 8f64.sqrt(), 1.0]);
        let list = Domain::candidates(ndarray::arr2(&[[0.0, 1.0], [1.0, 0.5]])).unwrap();
        assert_eq!(Columns::of(&list, &[]), Columns::plain(2));
    }

    fn integer(low: i64, high: i64, log: bool) -> Coordinate {
        Coordinate::Integer { low, high, log }
    }

    #[test]
    fn spreads_equal_the_spreads_of_random_points() {
        for (coordinate, expected) in [
            (integer(0, 1, false), 3f64.sqrt()),
            (integer(0, 2, false), 2f64.sqrt()),
            (integer(1, 2, true), 3f64.sqrt()),
            (integer(7, 7, false), 1.0),
            (integer(0, 1000, false), 1.0),
            (Coordinate::Categorical { n: 1 }, 1.0),
            (Coordinate::Categorical { n: 2 }, 6f64.sqrt()),
        ] {
            assert!(
                (spread(&coordinate) - expected).abs() < 1e-12,
                "{coordinate:?}"
            );
        }
        // The mean square distance over all pairs of five levels: 2(1 + 4 + 9 + 16 + ...)/25/16.
        let pairs = (0..5).flat_map(|a| (0..5).map(move |b| f64::from(a - b) / 4.0));
        let mean_square = pairs.map(|d| d * d).sum::<f64>() / 25.0;
        let found = spread(&integer(1, 5, false));
        assert!((found - (6.0 * mean_square).sqrt()).abs() < 1e-12);
    }
}
