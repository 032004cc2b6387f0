//! The units of f in each context.
//!
//! A categorical context, such as a batch of material or an instrument, may shift all values of f and multiply them by a
//! factor. If the evidence is strong ([`fit_group_units`](crate::gp::group_units::fit_group_units)), the model uses
//! comparable values (y − offset)/scale, with the offset and the scale of the context of y. Continuous contexts have
//! neither.

use std::ops::Range;

use crate::curves::PseudoObservation;
use crate::gp::group_units::GroupUnits;
use crate::strategy::units::{Units, UnitsHere};

/// The units of f in each context: one item per column of the categorical contexts, or none if they are equal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContextUnits {
    /// The columns of each categorical context.
    categories: Vec<Range<usize>>,
    units: Vec<GroupUnits>,
    width: usize,
}

impl ContextUnits {
    /// Creates the units, where `categories` are the columns of the categorical contexts in rows of this width. If
    /// `units` is empty, all contexts have equal units.
    pub fn new(categories: &[Range<usize>], units: &[GroupUnits], width: usize) -> Self {
        let categories = match units.is_empty() {
            true => Vec::new(),
            false => categories.to_vec(),
        };
        Self {
            categories,
            units: units.to_vec(),
            width,
        }
    }

    /// Whether all contexts have equal units.
    pub fn are_equal(&self) -> bool {
        self.units.is_empty()
    }

    /// The units in the context of an encoded row. A row may lack the first columns. Without the columns of a context, its
    /// offset is 0 and its scale is 1.
    pub fn of(&self, row: &[f64]) -> GroupUnits {
        let missing = self.width.saturating_sub(row.len());
        let mut all = GroupUnits::default();
        let columns = self.categories.iter().cloned().flatten();
        for (column, units) in columns.zip(&self.units) {
            if column >= missing && row[column - missing] > 0.5 {
                all.offset += units.offset;
                all.scale *= units.scale;
            }
        }
        all
    }

    /// The mean of the offsets, and the geometric mean of the scales, of all choices of every context.
    pub fn mean(&self) -> GroupUnits {
        let mut all = GroupUnits::default();
        let mut from = 0;
        for category in &self.categories {
            let units = &self.units[from..from + category.len()];
            let n = units.len() as f64;
            all.offset += units.iter().map(|each| each.offset).sum::<f64>() / n;
            all.scale *= (units.iter().map(|each| each.scale.ln()).sum::<f64>() / n).exp();
            from += category.len();
        }
        all
    }

    /// The conversion between targets and values of f in the context of an encoded row.
    pub fn units(&self, units: Units, row: &[f64]) -> UnitsHere {
        UnitsHere {
            here: self.of(row),
            units,
        }
    }

    /// The comparable pseudo-observation.
    pub fn comparable_pseudo(&self, pseudo: PseudoObservation, row: &[f64]) -> PseudoObservation {
        if self.units.is_empty() {
            return pseudo;
        }
        let here = self.of(row);
        PseudoObservation {
            value: here.comparable(pseudo.value),
            variance: pseudo.variance / (here.scale * here.scale),
            noise: pseudo.noise / (here.scale * here.scale),
        }
    }
}
