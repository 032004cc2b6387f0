//! The region of a cell, which consists of one part of each coordinate: an interval or a range of levels. Regions can
//! be halved and sampled.

use std::ops::Range;

use rand::RngExt;

use crate::problem::{Cell, Coordinate, Product, columns};
use crate::random::Rng;
use crate::strategy::tree::settings::Sample;

/// Identifies a half of a cell: 0 is the lower half, and 1 is the upper half.
pub type Side = usize;

/// A box, and the columns that encode each coordinate.
#[derive(Debug, Clone)]
pub struct Space {
    product: Product,
    columns: Vec<Range<usize>>,
    width: usize,
}

/// A region, which contains a part of each coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    parts: Vec<Cell>,
}

impl Space {
    pub fn new(product: &Product) -> Self {
        let columns: Vec<Range<usize>> = columns(product).map(|(_, at)| at).collect();
        Self {
            width: columns.last().map_or(0, |at| at.end),
            product: product.clone(),
            columns,
        }
    }

    /// The region of the whole box.
    pub fn whole(&self) -> Region {
        Region {
            parts: self.product.iter().map(Coordinate::whole).collect(),
        }
    }

    /// The coordinate along which a region should be halved next: the longest (of equal lengths the first) that can be
    /// halved and is active in the whole region. `None` if the region cannot be halved.
    pub fn longest_side(&self, region: &Region) -> Option<usize> {
        let mut longest = (0.0, None);
        for (i, coordinate) in self.product.iter().enumerate() {
            let part = region.parts[i];
            let length = coordinate.share(part);
            if length > longest.0
                && coordinate.split(part).is_some()
                && self.product.is_active_throughout(i, &region.parts)
            {
                longest = (length, Some(i));
            }
        }
        longest.1
    }

    /// Replaces a region by one of its halves along a coordinate that can be halved.
    pub fn halve(&self, region: &mut Region, coordinate: usize, side: Side) {
        if let Some((lower, upper)) = self.product[coordinate].split(region.parts[coordinate]) {
            region.parts[coordinate] = if side == 0 { lower } else { upper };
        }
    }

    /// The half of a region in which x lies. The region must contain x.
    pub fn side_of(&self, region: &Region, coordinate: usize, x: &[f64]) -> Side {
        let own = &x[self.columns[coordinate].clone()];
        match self.product[coordinate].split(region.parts[coordinate]) {
            Some((_, Cell::Interval(middle, _))) => usize::from(own[0] >= middle),
            Some((_, Cell::Range(first, _))) => {
                usize::from(self.product[coordinate].index(own) >= first)
            }
            None => 0,
        }
    }

    /// A member of the domain in a region: either a uniform draw or the centre of the region.
    pub fn sample(&self, region: &Region, sample: Sample, rng: &mut Rng) -> Vec<f64> {
        let mut x = vec![0.0; self.width];
        let parts = region.parts.iter().zip(&self.columns);
        for (coordinate, (part, at)) in self.product.iter().zip(parts) {
            let u = match sample {
                Sample::Uniform => rng.random(),
                Sample::Centre => 0.5,
            };
            coordinate.write_within(*part, u, &mut x[at.clone()]);
        }
        self.product.hold_inactive(&mut x);
        x
    }
}
