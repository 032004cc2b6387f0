//! The plain tree, a simple reference implementation of tree search.

use std::collections::BTreeMap;

use crate::ledger::State;
use crate::optimizer::Optimizer;
use crate::problem::Domain;
use crate::strategy::tree::note::Place;
use crate::strategy::tree::region::{Region, Space};

/// The path from the root to a cell, as a list of sides.
pub type Path = Vec<usize>;

/// The plain tree, which stores only the trials of each cell and recomputes all other quantities.
pub struct Plain {
    pub space: Space,
    /// The visited cells in order of creation, and the trials of each cell.
    pub created: Vec<Path>,
    pub trials: BTreeMap<Path, Vec<usize>>,
    homes: Vec<Path>,
    /// The scale: the best value minus the median, computed again when the number of values reaches `next_scale`.
    pub scale: f64,
    next_scale: usize,
}

/// The constants of the bounds.
pub struct Constants {
    pub kind: &'static str,
    /// R, σ or b.
    pub spread: f64,
    pub nu: f64,
    pub rho: f64,
    pub log_t: f64,
}

impl Plain {
    pub fn new(domain: &Domain) -> Self {
        let Domain::Box(product) = domain else {
            unreachable!()
        };
        Self {
            space: Space::new(product),
            created: Vec::new(),
            trials: BTreeMap::new(),
            homes: Vec::new(),
            scale: 1.0,
            next_scale: 2,
        }
    }

    pub fn region(&self, path: &[usize]) -> Region {
        let mut region = self.space.whole();
        for &side in path {
            let coordinate = self.space.longest_side(&region).unwrap();
            self.space.halve(&mut region, coordinate, side);
        }
        region
    }

    pub fn visit(&mut self, path: Path) {
        if !self.trials.contains_key(&path) {
            self.created.push(path.clone());
        }
        self.trials.entry(path).or_default();
    }

    /// Visits and returns the cell of the point x.
    pub fn settle(&mut self, x: &[f64]) -> Path {
        let (mut path, mut region) = (Path::new(), self.space.whole());
        while self.trials.contains_key(&path) {
            let Some(coordinate) = self.space.longest_side(&region) else {
                break;
            };
            let side = self.space.side_of(&region, coordinate, x);
            self.space.halve(&mut region, coordinate, side);
            path.push(side);
        }
        self.visit(path.clone());
        path
    }

    /// Puts a trial into a cell.
    pub fn place(&mut self, number: usize, path: Path) {
        if let Some(home) = self.homes.get(number) {
            let others = self.trials.get_mut(home).unwrap();
            others.retain(|other| *other != number);
            self.homes[number] = path.clone();
        } else {
            self.homes.push(path.clone());
        }
        self.trials.get_mut(&path).unwrap().push(number);
    }

    pub fn path_of(&self, place: Place) -> Path {
        match place {
            Place::Old(node) => self.created[node as usize].clone(),
            Place::New { parent, side } => {
                let mut path = self.created[parent as usize].clone();
                path.push(side);
                path
            }
        }
    }

    /// Updates the scale after an event, if the number of values has increased by 1/8.
    pub fn rescale(&mut self, optimizer: &Optimizer) {
        let known = optimizer.ledger().view().trials();
        let mut values: Vec<f64> = known.filter_map(|trial| trial.value()).collect();
        let n = values.len();
        if n >= self.next_scale {
            self.next_scale = n + (n / 8).max(1);
            values.sort_by(f64::total_cmp);
            let scale = values[n - 1] - values[n / 2];
            if scale > 0.0 {
                self.scale = scale;
            }
        }
    }

    /// The mean by which the front ranks a cell, or `None` unless the cell has a result, can be halved and has a half
    /// that does not exist yet. A failed cell is ranked by the mean of the smallest enclosing cell that has values, as
    /// long as at most four nested cells have failed.
    pub fn open_mean(&self, path: &Path, optimizer: &Optimizer) -> Option<f64> {
        self.space.longest_side(&self.region(path))?;
        let lacks = |side| {
            let mut half = path.clone();
            half.push(side);
            !self.trials.contains_key(&half)
        };
        if !lacks(0) && !lacks(1) {
            return None;
        }
        let known = optimizer.ledger().view();
        let has_failed = |path: &[usize]| {
            let mut numbers = self.trials[path].iter();
            numbers.any(|i| known.of(*i).state() == State::Failed)
        };
        let mean = |path: &[usize]| {
            let values = self.trials.get(path)?.iter();
            let values: Vec<f64> = values.filter_map(|i| known.of(*i).value()).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (!values.is_empty()).then_some(mean)
        };
        self.trials.get(path)?;
        if mean(path).is_some() || !has_failed(path) {
            return mean(path);
        }
        let around = (0..path.len()).rev().map(|depth| &path[..depth]);
        let without = around.clone().take_while(|around| mean(around).is_none());
        let n_failed = 1 + without.filter(|around| has_failed(around)).count();
        let nearest = around.clone().find_map(mean).filter(|_| n_failed <= 4);
        Some(nearest.unwrap_or(f64::NEG_INFINITY))
    }

    /// Whether the front could have chosen this cell: it is new, and its parent is the best of all cells not deeper
    /// than the parent.
    pub fn is_of_front(&self, path: &Path, optimizer: &Optimizer) -> bool {
        let parent = match path.split_last() {
            Some((_, parent)) if !self.trials.contains_key(path) => parent.to_vec(),
            _ => return false,
        };
        let Some(mean) = self.open_mean(&parent, optimizer) else {
            return false;
        };
        let others = self
            .trials
            .keys()
            .filter(|other| other.len() <= parent.len());
        let mut means = others.filter_map(|other| self.open_mean(other, optimizer));
        means.all(|other| other <= mean || other <= mean + 1e-9)
    }

    /// The B value of a cell, computed from the values and failures in its subtree. `around`: the mean and the optimism
    /// of the smallest enclosing cell that has values, or (0, 1) without such a cell.
    fn b_value(
        &self,
        path: &Path,
        around: (f64, f64),
        optimizer: &Optimizer,
        constants: &Constants,
    ) -> f64 {
        let Some(own) = self.trials.get(path) else {
            return f64::INFINITY;
        };
        let known = optimizer.ledger().view();
        let failed = self.below(path);
        let failed = failed.filter(|number| known.of(*number).state() == State::Failed);
        let failed = failed.count() as f64;
        let inside = self.mean_and_optimism(path, optimizer, constants);
        let (mean, optimism) = inside.unwrap_or(around);
        let n_values = self.below(path).filter_map(|i| known.of(i).value()).count() as f64;
        // p⁺ solves p⁺ − p = 2·√(p⁺(1 − p⁺)/n), where p is the rate of success.
        let n = n_values + failed;
        let (mut low, mut high) = (n_values / n, 1.0);
        for _ in 0..200 {
            let p = (low + high) / 2.0;
            match p - n_values / n < 2.0 * (p * (1.0 - p) / n).sqrt() {
                true => low = p,
                false => high = p,
            }
        }
        let upper = match (inside, failed) {
            (None, 0.0) => f64::INFINITY,
            (None, _) => mean + optimism * low / (1.0 - low),
            (Some(_), 0.0) => mean + optimism,
            (Some(_), _) => mean + optimism * low,
        };
        if self.space.longest_side(&self.region(path)).is_some() {
            let half = |side| {
                let mut path = path.clone();
                path.push(side);
                self.b_value(&path, (mean, optimism), optimizer, constants)
            };
            return upper.min(half(0).max(half(1)));
        }
        let in_flight = |number: &usize| known.of(*number).state() == State::Pending;
        match own.iter().any(in_flight) {
            true => f64::NEG_INFINITY,
            false => upper,
        }
    }

    /// Returns the trials in the subtree of a cell.
    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = usize> + 'a {
        let below = self.trials.range(path.clone()..);
        let below = below.take_while(move |(other, _)| other.starts_with(path));
        below.flat_map(|(_, numbers)| numbers.iter().copied())
    }

    /// Returns the mean of the values in the subtree of a cell, and the optimism (the upper bound minus the mean), or
    /// `None` without values.
    fn mean_and_optimism(
        &self,
        path: &Path,
        optimizer: &Optimizer,
        constants: &Constants,
    ) -> Option<(f64, f64)> {
        let known = optimizer.ledger().view();
        let values: Vec<f64> = self
            .below(path)
            .filter_map(|i| known.of(i).value())
            .collect();
        let s = values.len() as f64;
        let mean = values.iter().sum::<f64>() / s;
        let variance = values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / s;
        let log_t = constants.log_t;
        let bonus = match constants.kind {
            "DUCB1" | "DUCB1Sigma" => constants.spread * (2.0 * log_t / s).sqrt(),
            _ => (2.0 * variance * log_t / s).sqrt() + 3.0 * constants.spread * log_t / s,
        };
        let width = constants.nu * constants.rho.powi(path.len() as i32);
        (!values.is_empty()).then_some((mean, bonus + width))
    }

    /// Checks that the cell is a leaf, and that every half on the path to it has at least the B value of the other
    /// half.
    pub fn is_best_leaf(
        &self,
        path: &Path,
        optimizer: &Optimizer,
        constants: &Constants,
    ) -> Result<(), String> {
        let mut around = (0.0, 1.0);
        for (depth, &side) in path.iter().enumerate() {
            let parent = path[..depth].to_vec();
            let inside = self.mean_and_optimism(&parent, optimizer, constants);
            around = inside.unwrap_or(around);
            let half = |side| {
                let mut half = parent.clone();
                half.push(side);
                self.b_value(&half, around, optimizer, constants)
            };
            let (chosen, other) = (half(side), half(1 - side));
            let room = 1e-9 * other.abs().max(1.0);
            if !(chosen == other || chosen >= other - room) {
                return Err(format!(
                    "{path:?} at {depth}: B {chosen} where {other} is larger"
                ));
            }
        }
        let is_new = !self.trials.contains_key(path);
        match is_new || self.space.longest_side(&self.region(path)).is_none() {
            true => Ok(()),
            false => Err(format!("{path:?} is not a leaf")),
        }
    }
}
