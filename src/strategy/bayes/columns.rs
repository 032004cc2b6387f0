//! The columns of a row of the model: point and context, encoded.

use crate::domain::{Coordinate, Domain};

/// Which dimension each column belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// The dimension of each column, 0, 1, …: the columns of a category belong to one.
    pub dimension: Vec<usize>,
    /// How many dimensions there are.
    pub dimensions: usize,
}

impl Columns {
    /// The columns of a point followed by those of a context.
    pub fn of(domain: &Domain, context: &[Coordinate]) -> Self {
        let widths: Vec<usize> = match domain {
            Domain::Candidates(list) => vec![1; list.ncols()],
            Domain::Box(product) => product.iter().map(Coordinate::width).collect(),
        };
        let widths = widths
            .into_iter()
            .chain(context.iter().map(Coordinate::width));
        let mut dimension = Vec::new();
        let mut dimensions = 0;
        for width in widths {
            dimension.resize(dimension.len() + width, dimensions);
            dimensions += 1;
        }
        Self {
            dimension,
            dimensions,
        }
    }

    /// Columns of which each is a dimension.
    #[cfg(test)]
    pub fn plain(width: usize) -> Self {
        Self {
            dimension: (0..width).collect(),
            dimensions: width,
        }
    }

    pub fn width(&self) -> usize {
        self.dimension.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_category_are_one_dimension() {
        let category = Coordinate::Categorical { n: 3 };
        let domain = Domain::new_box(vec![Coordinate::Continuous, category.clone()]).unwrap();
        let columns = Columns::of(&domain, &[category, Coordinate::Continuous]);
        assert_eq!(columns.dimension, [0, 1, 1, 1, 2, 2, 2, 3]);
        assert_eq!((columns.width(), columns.dimensions), (8, 4));
        let list = Domain::candidates(ndarray::arr2(&[[0.0, 1.0], [1.0, 0.5]])).unwrap();
        assert_eq!(Columns::of(&list, &[]), Columns::plain(2));
    }
}
