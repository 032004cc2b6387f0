//! Named parameters with conditions: which parameters are active, and how points are encoded.
//!
//! Notation: a point in the user's units is a list of numbers, one per parameter. None stands for a parameter that is
//! missing or inactive.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conditions::{Condition, Conditions};
use super::declarations::{
    Declaration, Role, check_names, check_width, conditions, list, without_constants,
};
use super::lattice::{self, Lattice};
use super::linear::{Linear, LinearSet, TOLERANCE, Weighted};
use super::parameter::Kind;
use super::restriction::{Allowed, Held, Restriction, Unusable};
use super::{Coordinate, Domain, Parameter, Product, columns};
use crate::error::{Error, Result};

/// The parameters of a search space or of contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Space {
    role: Role,
    declared: Vec<Declaration>,
    /// The conditions among all parameters, including constants.
    conditions: Conditions,
    /// The positions of the searched parameters (all but constants) among all parameters.
    searched: Vec<usize>,
    /// The columns of the searched parameters.
    at: Vec<std::ops::Range<usize>>,
    linear: Vec<Linear>,
    domain: Arc<Domain>,
}

/// The largest number of combinations of discrete parameters that are examined for conditional parameters in linear
/// constraints.
const MAX_PATTERNS: u64 = 10_000;
/// The largest numbers of linear constraints on continuous parameters and of parameters in these. The time of a
/// suggestion grows with their cube.
const MAX_LINEAR: usize = 64;
/// The largest number of steps with which the points of a lattice are counted.
const MAX_SUMS: f64 = 1e6;
/// A part of a mixture is 0 or at least this share of the total.
const LEAST_PART: f64 = 1e-9;
/// A part may be at its bound if the bound differs from the sum of two parts by this share of the total.
const ROUNDING: f64 = 1e-11;

impl Space {
    /// Creates a space. Refuses conditions on unknown or continuous parameters, conditions that can never hold, circles
    /// of conditions, and spaces without searched parameters or with too many columns.
    pub fn new(role: Role, declared: Vec<Declaration>) -> Result<Self> {
        let conditions = conditions(role, &declared)?;
        check_width(role, &declared)?;
        let is_searched = |i: &usize| !declared[*i].parameter.is_constant();
        let searched: Vec<usize> = (0..declared.len()).filter(is_searched).collect();
        let of_searched = without_constants(role, &declared, &searched, &conditions)?;
        let coordinates = searched
            .iter()
            .map(|&i| declared[i].parameter.kind().coordinate());
        let product = Product::new(coordinates.collect(), of_searched);
        Ok(Self {
            role,
            declared,
            conditions,
            searched,
            at: columns(&product).map(|(_, at)| at).collect(),
            linear: Vec::new(),
            domain: Arc::new(Domain::Box(product)),
        })
    }

    /// Adds linear constraints. Refuses constraints on unknown parameters or on parameters that are not linear Reals,
    /// constraints that contradict each other, and mixtures whose step does not fit.
    pub fn with_linear(mut self, linear: Vec<Linear>) -> Result<Self> {
        if linear.is_empty() {
            return Ok(self);
        }
        let mut declared = self.declared.clone();
        for each in linear.iter().filter(|each| each.step.is_some()) {
            self.check_terms(each)?;
            let step = each.step.unwrap_or_default();
            for (name, _) in &each.terms {
                let at = declared.iter().position(|other| other.name == *name);
                let own = at.map(|i| &mut declared[i].parameter);
                if let Some(Parameter::Real(real)) = own {
                    *real = real.with_step(step)?;
                }
            }
        }
        let stepped = Space::new(self.role, declared)?;
        let Domain::Box(product) = stepped.domain.as_ref() else {
            return Ok(self);
        };
        let (mut weighted, mut numbers, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        for (number, each) in linear.iter().enumerate() {
            stepped.check_terms(each)?;
            if stepped.is_discrete(each) {
                rows.push((each, stepped.row(each)?));
            } else {
                weighted.push(stepped.weighted(each));
                numbers.push(number);
            }
        }
        let terms = weighted.iter().flat_map(|each| &each.terms);
        let named: BTreeSet<usize> = terms.map(|term| term.0).collect();
        if named.len().max(weighted.len()) > MAX_LINEAR {
            return Err(Error::InvalidSpace(format!(
                "constraints has {} linear constraints on {} parameters: give at most {MAX_LINEAR} of each",
                weighted.len(),
                named.len()
            )));
        }
        let lattices = stepped.lattices(rows)?;
        let column: Vec<usize> = stepped.at.iter().map(|at| at.start).collect();
        if product.has_conditions(&weighted) && product.combinations() > MAX_PATTERNS {
            return Err(Error::InvalidSpace(format!(
                "constraints contain parameters with when=, and the space has more than {MAX_PATTERNS} combinations \
                 of its choices: drop when= for these parameters"
            )));
        }
        let patterns = product.patterns(&weighted);
        let product = product.clone();
        let set = LinearSet::new(weighted, lattices, &column, &patterns);
        let set = set
            .map_err(|(found, active)| stepped.contradiction(&found, &active, &linear, &numbers))?;
        self = stepped;
        self.domain = Arc::new(Domain::Box(product.with_linear(set)));
        self.linear = linear;
        Ok(self)
    }

    /// The formulas of the linear constraints that hold wherever the others hold.
    pub fn redundant(&self) -> Vec<String> {
        let set = self.domain.product().and_then(Product::linear);
        let (discrete, continuous): (Vec<&Linear>, Vec<&Linear>) =
            self.linear.iter().partition(|each| self.is_discrete(each));
        let numbers = set.map(LinearSet::redundant).unwrap_or_default();
        let found = numbers.into_iter().map(|i| continuous[i]);
        // The bounds of the other parameters are not taken into account.
        let is_redundant = |each: &&Linear| {
            self.row(each).is_ok_and(|row| {
                let ends = |of: fn(&[u64]) -> Option<&u64>| -> u64 {
                    row.terms
                        .iter()
                        .filter_map(|(_, weights)| of(weights))
                        .sum()
                };
                let least = ends(|weights| weights.iter().min()) as i64;
                let most = ends(|weights| weights.iter().max()) as i64;
                row.low <= least && most <= row.high
            })
        };
        let found = found.chain(discrete.into_iter().filter(is_redundant));
        found.map(Linear::formula).collect()
    }

    /// Whether a constraint is on discrete parameters.
    fn is_discrete(&self, linear: &Linear) -> bool {
        let mut kinds = linear
            .terms
            .iter()
            .map(|term| self.kind(self.searched[self.place(&term.0)]));
        kinds.any(|kind| kind.coordinate() != Coordinate::Continuous)
    }

    /// Refuses a linear constraint whose terms or bounds are not usable.
    fn check_terms(&self, linear: &Linear) -> Result<()> {
        let formula = linear.formula();
        let refuse = |why: String| Err(Error::InvalidSpace(format!("constraint {formula} {why}")));
        let mut named = BTreeSet::new();
        for (name, a) in &linear.terms {
            let searched = self
                .searched
                .iter()
                .find(|&&i| self.declared[i].name == *name);
            let Some(&i) = searched else {
                let names = list(self.searched.iter().map(|&i| &self.declared[i].name));
                return refuse(format!(
                    "has {name:?}, which is not searched: name parameters of {names}"
                ));
            };
            let parameter = &self.declared[i].parameter;
            let zero = parameter.kind().checked(*a);
            let number = "a Real or an Integer without log";
            let coordinate = parameter.kind().coordinate();
            let (is_usable, expected) = match (parameter.whole(), linear.step) {
                (Parameter::Real(real), Some(step)) => (
                    parameter.offered().is_none() && real.linear_range(Some(step)).is_some(),
                    "a Real without log, whose bounds are multiples of the step apart,",
                ),
                _ if linear.counts => (
                    coordinate != Coordinate::Continuous && zero == Some(*a),
                    "a boolean, an integer or a Real with a step that may be 0",
                ),
                (Parameter::Real(real), None) if coordinate == Coordinate::Continuous => {
                    (real.linear_range(None).is_some(), number)
                }
                (Parameter::Real(_) | Parameter::Integer(_), None) => (
                    !matches!(coordinate, Coordinate::Integer { log: true, .. }),
                    number,
                ),
                _ => (false, number),
            };
            if !is_usable {
                return refuse(format!(
                    "has {name:?}, which is not {expected}: leave it out, or change the parameter"
                ));
            }
            let is_parent = self.conditions.is_parent[i] || !self.conditions.when[i].is_empty();
            if coordinate != Coordinate::Continuous && is_parent {
                return refuse(format!(
                    "has {name:?}, which has when= or is in when= of another parameter: leave it out, or replace the \
                     condition by a value 0 of the other parameter"
                ));
            }
            if !a.is_finite() || (*a == 0.0 && !linear.counts) || !named.insert(name) {
                return refuse(format!(
                    "has {a:?} for {name:?}: give one finite coefficient, not 0, for each parameter"
                ));
            }
            if linear.step.is_some() && !self.conditions.when[i].is_empty() {
                return refuse(format!(
                    "has a step, and {name:?} has when=: leave out one of them"
                ));
            }
        }
        let is_continuous = |(name, _): &&(String, f64)| {
            self.kind(self.searched[self.place(name)]).coordinate() == Coordinate::Continuous
        };
        let (continuous, discrete): (Vec<_>, Vec<_>) = linear.terms.iter().partition(is_continuous);
        if let (Some((real, _)), Some((stepped, _))) = (continuous.first(), discrete.first())
            && linear.step.is_none()
        {
            return refuse(format!(
                "has {stepped:?}, which has steps, and {real:?}, which has none: give {real:?} a step, or write the \
                 constraint as a function of the params"
            ));
        }
        let (low, high) = (linear.at_least, linear.at_most);
        let is_finite = low.iter().chain(&high).all(|bound| bound.is_finite());
        let is_ordered = low.zip(high).is_none_or(|(low, high)| low <= high);
        match linear.terms.is_empty() || !is_finite || !is_ordered || (low, high) == (None, None) {
            true => {
                refuse("is not usable: give parameters, and finite bounds in order".to_string())
            }
            false => Ok(()),
        }
    }

    /// The range (low, high) of searched parameter k, which is a number.
    fn range(&self, k: usize) -> (f64, f64) {
        let parameter = &self.declared[self.searched[k]].parameter;
        match (parameter.n_levels(), parameter.whole()) {
            (Some(n), _) => (parameter.kind().member(0), parameter.kind().member(n - 1)),
            (None, Parameter::Real(real)) => real.linear_range(None).unwrap_or_default(),
            _ => (0.0, 0.0),
        }
    }

    /// The number of a parameter among the searched parameters.
    fn place(&self, name: &str) -> usize {
        let found = self
            .searched
            .iter()
            .position(|&i| self.declared[i].name == name);
        found.unwrap_or_default()
    }

    fn weighted(&self, linear: &Linear) -> Weighted {
        let term = |(name, a): &(String, f64)| {
            let k = self.place(name);
            let (low, high) = self.range(k);
            (k, a * (high - low), a * low)
        };
        Weighted {
            terms: linear.terms.iter().map(term).collect(),
            low: linear.at_least.unwrap_or(f64::NEG_INFINITY),
            high: linear.at_most.unwrap_or(f64::INFINITY),
        }
    }

    /// A constraint on discrete parameters in whole numbers, by a common unit of the steps.
    fn row(&self, linear: &Linear) -> Result<WeightRow> {
        let refuse = |why: &str| {
            let step = linear.step.map(|step| format!(" with step={step:?}"));
            let (formula, step) = (linear.formula(), step.unwrap_or_default());
            Err(Error::InvalidSpace(format!(
                "constraint {formula}{step} {why}"
            )))
        };
        let too_large =
            "has too many points: use larger steps, or write it as a function of the params";
        let kinds = linear.terms.iter().map(|(name, a)| {
            let k = self.place(name);
            let kind = self.kind(self.searched[k]);
            (k, kind, kind.coordinate().levels().unwrap_or_default(), *a)
        });
        let kinds: Vec<(usize, &dyn Kind, u64, f64)> = kinds.collect();
        if kinds.iter().map(|each| each.2 as f64).sum::<f64>() > MAX_SUMS {
            return refuse(too_large);
        }
        let (low, high) = (
            linear.at_least.unwrap_or(f64::NEG_INFINITY),
            linear.at_most.unwrap_or(f64::INFINITY),
        );
        if linear.counts {
            let count = |&(k, kind, n, zero): &(usize, &dyn Kind, u64, f64)| {
                let zero = kind.level(zero);
                (k, (0..n).map(|level| u64::from(level != zero)).collect())
            };
            return Ok(WeightRow {
                terms: kinds.iter().map(count).collect(),
                low: low.ceil() as i64,
                high: high.floor().min(kinds.len() as f64) as i64,
            });
        }
        // a_i p_i = a_i p_i(0) + c_i k_i, where k_i is the level.
        let slopes = kinds
            .iter()
            .map(|(_, kind, _, a)| a * (kind.member(1) - kind.member(0)));
        let slopes: Vec<f64> = slopes.collect();
        let unit = slopes
            .iter()
            .fold(0.0, |unit, c| common_unit(unit, c.abs()));
        let is_whole =
            |number: f64| (number - number.round()).abs() <= 1e-6 * number.abs().max(1.0);
        let at_least = kinds
            .iter()
            .zip(&slopes)
            .map(|((_, kind, n, a), c)| a * kind.member(0) + c.min(0.0) * (n - 1) as f64);
        let at_least: f64 = at_least.sum();
        let steps = |bound: f64| {
            let steps = (bound - at_least) / unit;
            if is_whole(steps) {
                steps.round()
            } else {
                steps
            }
        };
        let most: f64 = kinds
            .iter()
            .zip(&slopes)
            .map(|((_, _, n, _), c)| c.abs() / unit * (n - 1) as f64)
            .sum();
        // The total of a mixture is a multiple of the step up to rounding. Other bounds are as exact as their check.
        let slack = TOLERANCE * most;
        let (low, high) = match linear.step {
            Some(_) => (steps(low).ceil(), steps(high).floor()),
            None => (
                ((low - at_least) / unit - slack).ceil(),
                ((high - at_least) / unit + slack).floor(),
            ),
        };
        let (low, high) = (low.max(-1.0), high.min(most + 1.0));
        if linear.step.is_some() && low > high {
            return refuse(
                "does not have a point: total minus the sum of the lower bounds must be a multiple of step",
            );
        }
        let are_whole = slopes
            .iter()
            .all(|c| is_whole(c / unit) && c.abs() / unit < MAX_SUMS);
        if !are_whole || high * kinds.len() as f64 > MAX_SUMS {
            return refuse(too_large);
        }
        let weights = kinds.iter().zip(&slopes).map(|((k, _, n, _), c)| {
            let weight = (c.abs() / unit).round() as u64;
            let level = |level| weight * if *c < 0.0 { n - 1 - level } else { level };
            (*k, (0..*n).map(level).collect())
        });
        Ok(WeightRow {
            terms: weights.collect(),
            low: low as i64,
            high: high as i64,
        })
    }

    /// The lattices of constraints on discrete parameters. Constraints with common parameters are in one lattice.
    fn lattices(&self, rows: Vec<(&Linear, WeightRow)>) -> Result<Vec<Lattice>> {
        let mut groups: Vec<Vec<(&Linear, WeightRow)>> = Vec::new();
        for row in rows {
            let is_near = |group: &Vec<(&Linear, WeightRow)>| {
                let mut terms = group.iter().flat_map(|(_, other)| &other.terms);
                terms.any(|(k, _)| row.1.terms.iter().any(|term| term.0 == *k))
            };
            let (near, others) = groups.into_iter().partition(is_near);
            groups = others;
            let near: Vec<Vec<_>> = near;
            groups.push(near.into_iter().flatten().chain([row]).collect());
        }
        groups.iter().map(|group| self.lattice(group)).collect()
    }

    fn lattice(&self, group: &[(&Linear, WeightRow)]) -> Result<Lattice> {
        let mut parts: Vec<(usize, lattice::Part)> = Vec::new();
        for (j, (_, row)) in group.iter().enumerate() {
            for (k, weights) in &row.terms {
                let found = parts.iter().position(|(other, _)| other == k);
                let at = found.unwrap_or_else(|| {
                    let part = lattice::Part {
                        coordinate: self.kind(self.searched[*k]).coordinate(),
                        at: self.at[*k].clone(),
                        weights: vec![vec![0; group.len()]; weights.len()],
                    };
                    parts.push((*k, part));
                    parts.len() - 1
                });
                let levels = parts[at].1.weights.iter_mut().zip(weights);
                levels.for_each(|(level, weight)| level[j] = *weight);
            }
        }
        let parts: Vec<lattice::Part> = parts.into_iter().map(|(_, part)| part).collect();
        let bounds: Vec<(i64, i64)> = group.iter().map(|(_, row)| (row.low, row.high)).collect();
        let formulas = || {
            let formulas = group.iter().map(|(linear, _)| linear.formula());
            formulas.collect::<Vec<_>>().join(" and ")
        };
        let too_large = || {
            Error::InvalidSpace(format!(
                "constraint {} has too many points: use larger steps, or write it as a function of the params",
                formulas()
            ))
        };
        // A mixture counts its points with one step for each entry of the table.
        let is_mixture = group.len() == 1 && group[0].0.step.is_some();
        if !is_mixture && Lattice::size(&parts, &bounds) > MAX_SUMS {
            return Err(too_large());
        }
        let found = Lattice::new(parts, bounds);
        if found.as_ref().is_some_and(|lattice| !lattice.is_counted()) {
            return Err(too_large());
        }
        found.ok_or_else(|| {
            let what = match group.len() {
                1 => "cannot hold within the bounds of its parameters",
                _ => "contradict each other within the bounds of the parameters",
            };
            let noun = if group.len() == 1 {
                "constraint"
            } else {
                "constraints"
            };
            Error::InvalidSpace(format!("{noun} {} {what}: change or drop one", formulas()))
        })
    }

    /// The error for constraints that no point satisfies.
    fn contradiction(
        &self,
        found: &[usize],
        active: &[bool],
        linear: &[Linear],
        numbers: &[usize],
    ) -> Error {
        let formulas = found.iter().map(|&i| linear[numbers[i]].formula());
        let formulas = formulas.collect::<Vec<_>>().join(" and ");
        let terms = found.iter().flat_map(|&i| &linear[numbers[i]].terms);
        let inactive: BTreeSet<&String> = terms
            .map(|term| &term.0)
            .filter(|name| !active[self.place(name)])
            .collect();
        let place = match inactive.is_empty() {
            true => String::new(),
            false => format!(
                " where {} count as 0, because they are inactive",
                list(inactive)
            ),
        };
        let what = match found.len() {
            1 => "cannot hold within the bounds of its parameters",
            _ => "contradict each other within the bounds of the parameters",
        };
        Error::InvalidSpace(format!(
            "constraints {formulas} {what}{place}: change or drop one"
        ))
    }

    /// A linear constraint that the numbers of a point violate by more than a tolerance, with the sum.
    fn violated(
        &self,
        numbers: &[Option<f64>],
        tolerance: impl Fn(&Linear) -> f64,
    ) -> Option<(&Linear, f64)> {
        let violated = |each: &&Linear| {
            let (sum, rounding) = self.sum(each, numbers);
            let slack = rounding + tolerance(each);
            each.at_most.is_some_and(|high| sum > high + slack)
                || each.at_least.is_some_and(|low| sum < low - slack)
        };
        let found = self.linear.iter().find(violated)?;
        Some((found, self.sum(found, numbers).0))
    }

    /// Σ a_i p_i or the number of nonzero parameters, and by how much rounding may change it.
    fn sum(&self, linear: &Linear, numbers: &[Option<f64>]) -> (f64, f64) {
        let mut total = (0.0, 0.0);
        for (name, a) in &linear.terms {
            let k = self.place(name);
            let number = numbers.get(k).copied().flatten();
            if linear.counts {
                total.0 += f64::from(u8::from(number.is_some_and(|number| number != *a)));
                continue;
            }
            let (low, high) = self.range(k);
            total.0 += a * number.unwrap_or(0.0);
            total.1 += TOLERANCE * a.abs() * (high - low);
        }
        total
    }

    /// Refuses the numbers of a point that violate a linear constraint.
    pub(crate) fn check_linear(&self, numbers: &[Option<f64>]) -> Result<()> {
        match self.violated(numbers, |_| 0.0) {
            None => Ok(()),
            Some((linear, sum)) => Err(self.role.error(&format!(
                " violate {}: the sum is {sum:?}",
                linear.formula()
            ))),
        }
    }

    fn kind(&self, i: usize) -> &dyn Kind {
        self.declared[i].parameter.kind()
    }

    /// The value of a constant, or None if parameter i is searched.
    fn constant(&self, i: usize) -> Option<f64> {
        let parameter = &self.declared[i].parameter;
        parameter.is_constant().then(|| parameter.kind().member(0))
    }

    /// The encoded domain of the parameters that are searched.
    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The positions of the searched parameters among all parameters.
    pub(crate) fn searched(&self) -> &[usize] {
        &self.searched
    }

    /// The first column of each parameter whose choices have descriptors, and the vectors of its choices.
    pub(crate) fn descriptors(&self) -> Vec<(usize, Vec<Vec<f64>>)> {
        let searched = self.searched.iter().zip(&self.at);
        let described = searched.filter_map(|(&i, at)| match self.declared[i].parameter.whole() {
            Parameter::Described(choices) => Some((at.start, choices.vectors().to_vec())),
            _ => None,
        });
        described.collect()
    }

    /// Whether some values of a parameter are not suggested.
    pub(crate) fn has_offered(&self) -> bool {
        let offered = |each: &Declaration| each.parameter.offered().is_some();
        self.declared.iter().any(offered)
    }

    /// The number of parameters, including constants.
    pub(crate) fn n_parameters(&self) -> usize {
        self.declared.len()
    }

    /// Whether each parameter is active. A parameter is inactive if one of its parents is not given.
    pub(crate) fn active(&self, numbers: &[Option<f64>]) -> Vec<bool> {
        self.conditions.active(&self.levels(numbers))
    }

    /// Returns the numbers of a point, and fills in the constants.
    ///
    /// Refuses a point in which an active parameter is missing, or an inactive parameter is given. `unknown`:
    /// undeclared names, formatted for the message. NaN stands for a value that the caller refuses.
    pub(crate) fn complete(
        &self,
        numbers: &[Option<f64>],
        unknown: &[String],
    ) -> Result<Vec<Option<f64>>> {
        let n = self.declared.len();
        let levels = self.levels(numbers);
        let mut active = vec![true; n];
        // Whether a parameter is active and missing, or would be active at some values of missing parameters.
        let mut unsettled = vec![false; n];
        for &i in &self.conditions.order {
            let met = |Condition(parent, allowed): &Condition| {
                active[*parent] && allowed.binary_search(&levels[*parent]).is_ok()
            };
            let own = &self.conditions.when[i];
            let is_active = own.iter().all(met);
            unsettled[i] = match is_active {
                true => levels[i] == NO_LEVEL,
                false => own.iter().all(|each| unsettled[each.0] || met(each)),
            };
            active[i] = is_active;
            if !active[i] && !unsettled[i] && numbers[i].is_some() {
                return Err(self.inactive(i, numbers[i]));
            }
        }
        let given = |i: usize| numbers[i].is_some() || self.constant(i).is_some();
        let is_named = |i: usize| active[i] || numbers[i].is_some();
        self.check_names(|i| given(i) || !active[i], is_named, unknown)?;
        let number = |i: usize| active[i].then(|| self.constant(i).or(numbers[i])).flatten();
        Ok((0..n).map(number).collect())
    }

    /// Refuses names that are not in the space.
    pub(crate) fn check_known(&self, unknown: &[String]) -> Result<()> {
        self.check_names(|_| true, |_| true, unknown)
    }

    /// The columns of a point that `complete` returned.
    pub(crate) fn encode(&self, numbers: &[Option<f64>]) -> Vec<f64> {
        let searched = self.only_searched(numbers);
        self.encode_searched(|k| searched[k])
    }

    /// Returns the columns of a point, given the number of each searched parameter (None if inactive).
    pub(crate) fn encode_searched(&self, number: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
        let mut x = vec![0.0; self.domain.width()];
        for (k, (&i, at)) in self.searched.iter().zip(&self.at).enumerate() {
            let kind = self.kind(i);
            match number(k) {
                Some(number) => kind.encode(number, &mut x[at.clone()]),
                None => x[at.clone()].fill(kind.coordinate().inactive()),
            }
        }
        x
    }

    /// The numbers of the searched parameters (None if inactive) at the point nearest to these columns, with rounded
    /// parts of mixtures.
    pub(crate) fn decode_searched(&self, x: &[f64]) -> Vec<Option<f64>> {
        let mut numbers = self.decode_exactly(x);
        self.round_parts(&mut numbers, |_, number| number);
        numbers
    }

    /// Rounds the parts of mixtures: a part that is smaller than [`LEAST_PART`] of the total becomes 0, and its amount
    /// is added to the largest part for which the point remains a member. If no such part exists, the small part is not
    /// changed. `closest` returns the number nearest to a number that parameter k may have.
    pub(crate) fn round_parts(
        &self,
        numbers: &mut [Option<f64>],
        closest: impl Fn(usize, f64) -> f64,
    ) {
        let bounded = |k: usize, number: f64| {
            let (low, high) = self.range(k);
            closest(k, number).clamp(low, high)
        };
        for mixture in &self.linear {
            let total = mixture.total().unwrap_or_default();
            let (least, rounding) = (LEAST_PART * total.abs(), ROUNDING * total.abs());
            let is_tiny = |number: f64| number != 0.0 && number.abs() < least;
            if !numbers.iter().flatten().any(|&number| is_tiny(number)) {
                continue;
            }
            let places = mixture.terms.iter().map(|term| self.place(&term.0));
            let mut parts: Vec<(usize, f64)> =
                places.filter_map(|k| Some((k, numbers[k]?))).collect();
            parts.sort_by(|one, other| other.1.total_cmp(&one.1));
            let off = |numbers: &[Option<f64>]| {
                let amounts = parts.iter().filter_map(|part| numbers[part.0]);
                (amounts.sum::<f64>() - total).abs()
            };
            for &(k, amount) in parts.iter().rev() {
                if !is_tiny(amount) || bounded(k, 0.0) != 0.0 {
                    continue;
                }
                let mut without = numbers.to_vec();
                without[k] = Some(0.0);
                let with_amount_at = |&(to, _): &(usize, f64)| {
                    let mut point = without.clone();
                    let number = point[to].as_mut().filter(|_| to != k)?;
                    let sum = *number + amount;
                    *number = bounded(to, sum);
                    let is_near = (*number - sum).abs() <= rounding && !is_tiny(*number);
                    (is_near && self.is_member(&point)).then_some(point)
                };
                // The sum may be as near to the total without this part.
                let is_near = off(&without) <= off(numbers) && self.is_member(&without);
                let found = match is_near {
                    true => Some(without.clone()),
                    false => parts.iter().find_map(with_amount_at),
                };
                if let Some(point) = found {
                    numbers.copy_from_slice(&point);
                }
            }
        }
    }

    /// The numbers of the searched parameters (None if inactive) at the point nearest to these columns.
    pub(super) fn decode_exactly(&self, x: &[f64]) -> Vec<Option<f64>> {
        let active = self.domain.product().and_then(|product| product.active(x));
        let is_active = |k: usize| active.as_ref().is_none_or(|active| active[k]);
        let all = self.searched.iter().zip(&self.at).enumerate();
        let number = |(k, (i, at)): (usize, (&usize, &std::ops::Range<usize>))| {
            is_active(k).then(|| self.kind(*i).decode(&x[at.clone()]))
        };
        all.map(number).collect()
    }

    /// The number of one parameter (None if inactive) at the point nearest to these columns.
    pub(super) fn number_at(&self, parameter: usize, x: &[f64]) -> Option<f64> {
        let Some(k) = self.searched.iter().position(|&i| i == parameter) else {
            return self.constant(parameter);
        };
        let active = self.domain.product().and_then(|product| product.active(x));
        let is_active = active.is_none_or(|active| active[k]);
        is_active.then(|| self.kind(parameter).decode(&x[self.at[k].clone()]))
    }

    /// The numbers of all parameters (None if inactive) at the point nearest to these columns.
    pub(crate) fn decode(&self, x: &[f64]) -> Vec<Option<f64>> {
        self.spread(&self.decode_searched(x))
    }

    /// Selects the numbers of the searched parameters from the numbers of all parameters.
    pub(crate) fn only_searched(&self, numbers: &[Option<f64>]) -> Vec<Option<f64>> {
        self.searched.iter().map(|&i| numbers[i]).collect()
    }

    /// Returns the numbers of all parameters, given the numbers of the searched parameters (None if inactive).
    pub(crate) fn spread(&self, searched: &[Option<f64>]) -> Vec<Option<f64>> {
        let constants = (0..self.declared.len()).map(|i| self.constant(i));
        let mut numbers: Vec<Option<f64>> = constants.collect();
        for (&i, number) in self.searched.iter().zip(searched) {
            numbers[i] = *number;
        }
        if !self.conditions.is_empty() {
            let active = self.active(&numbers);
            for (number, active) in numbers.iter_mut().zip(active) {
                *number = number.filter(|_| active);
            }
        }
        numbers
    }

    /// Refuses n numbers that are not a point of this space. A point has one number per searched parameter (None if
    /// inactive).
    pub(crate) fn check(&self, n: usize, number: impl Fn(usize) -> Option<f64>) -> Result<()> {
        let is_value = |kind: &dyn Kind, number| kind.checked(number) == Some(number);
        self.check_numbers(n, number, is_value, |kind| kind.expected())
    }

    /// Refuses numbers that cannot be the point of a measurement. A measurement may lie beyond bounds and between steps.
    pub(crate) fn check_measured(&self, numbers: &[Option<f64>]) -> Result<()> {
        let is_usable = |kind: &dyn Kind, number| kind.measured(number) == Some(number);
        let expected = |kind: &dyn Kind| kind.expected_measured();
        self.check_numbers(numbers.len(), |k| numbers[k], is_usable, expected)
    }

    /// Whether each number of a point is a value of its parameter, and the linear constraints hold.
    pub(crate) fn is_member(&self, numbers: &[Option<f64>]) -> bool {
        self.all(numbers, |kind, number| kind.checked(number) == Some(number))
            && self.violated(numbers, |_| 0.0).is_none()
    }

    /// Whether a number of a measurement lies beyond a bound, or a sum misses its bounds by more than the tolerance.
    pub(crate) fn is_beyond(&self, numbers: &[Option<f64>]) -> bool {
        !self.all(numbers, |kind, number| !kind.is_beyond(number))
            || self.violated(numbers, |each| each.tolerance).is_some()
    }

    fn all(&self, numbers: &[Option<f64>], holds: impl Fn(&dyn Kind, f64) -> bool) -> bool {
        let mut kinds = self.searched.iter().map(|&i| self.kind(i)).zip(numbers);
        kinds.all(|(kind, number)| number.is_none_or(|number| holds(kind, number)))
    }

    /// Refuses n numbers, unless each number is usable and the active parameters have numbers.
    fn check_numbers(
        &self,
        n: usize,
        number: impl Fn(usize) -> Option<f64>,
        is_usable: impl Fn(&dyn Kind, f64) -> bool,
        expected: impl Fn(&dyn Kind) -> String,
    ) -> Result<()> {
        if n != self.searched.len() {
            let names = list(self.searched.iter().map(|&i| &self.declared[i].name));
            let message = format!(" has {n} numbers; give one for each of {names}");
            return Err(self.role.error(&message));
        }
        for (k, &i) in self.searched.iter().enumerate() {
            if let Some(number) = number(k)
                && !is_usable(self.kind(i), number)
            {
                let (name, expected) = (&self.declared[i].name, expected(self.kind(i)));
                let message = format!("['{name}']={number:?} is not usable: pass {expected}");
                return Err(self.role.error(&message));
            }
        }
        // A parent has a number if and only if it is active, because parents are checked by the same rule.
        let meets = |Condition(parent, levels): &Condition| {
            let kind = self.kind(self.searched[*parent]);
            number(*parent).is_some_and(|number| levels.binary_search(&kind.level(number)).is_ok())
        };
        let product = self.domain.product();
        let own = |k: usize| product.map_or(&[][..], |product| product.conditions_of(k));
        match (0..n).all(|k| number(k).is_some() == own(k).iter().all(meets)) {
            true => Ok(()),
            false => Err(self
                .role
                .error(" needs a number for each active parameter, and none for inactive ones")),
        }
    }

    /// Refuses numbers of searched parameters if no member has them.
    pub(crate) fn check_part(&self, numbers: &[Option<f64>]) -> Result<()> {
        let held = numbers.iter();
        let held = held.map(|number| number.map(|number| Held::Values(vec![number])));
        let held: Vec<Option<Held>> = held.collect();
        self.restrict(&held, "params").map(|_| ())
    }

    /// The restriction to the members with these values of the searched parameters. A parameter with values is active
    /// at each of these members. The other parameters have offered values. `argument` is the name of the argument in
    /// messages.
    pub(crate) fn restrict(&self, held: &[Option<Held>], argument: &str) -> Result<Restriction> {
        if held.len() != self.searched.len() {
            let n = self.searched.len();
            let message = format!(
                "{argument} has {} entries; give one for each of {n}",
                held.len()
            );
            return Err(Error::InvalidPoint(message));
        }
        let is_active: Vec<bool> = held.iter().map(Option::is_some).collect();
        let own = held.iter().enumerate();
        let own = own.map(|(k, held)| self.held_or_offered(self.searched[k], held.as_ref()));
        let held: Vec<Option<Held>> = own.collect();
        let allowed = held.iter().enumerate().map(|(k, held)| {
            let held = held.as_ref();
            held.map(|held| self.allowed(self.searched[k], held, argument))
                .transpose()
        });
        let allowed: Result<Vec<Option<Allowed>>> = allowed.collect();
        Restriction::of_box(&self.domain, allowed?, &is_active, held).map_err(|found| {
            let name = |k: usize| &self.declared[self.searched[k]].name;
            Error::InvalidPoint(match found {
                Unusable::Inactive(k) => format!(
                    "{argument}['{}'] is inactive where the other values of {argument} hold: leave it out, as it needs {}",
                    name(k),
                    self.in_words(self.searched[k])
                ),
                Unusable::Listed(k) => format!(
                    "{argument}['{}'] is a list of values, and the parameter has linear constraints: pass one value, or a \
                     range (low, high)",
                    name(k)
                ),
                Unusable::Contradiction => {
                    let formulas = self.linear.iter().map(Linear::formula);
                    format!(
                        "{argument} contradicts the linear constraints ({}): change or leave out a value",
                        formulas.collect::<Vec<_>>().join(", ")
                    )
                }
            })
        })
    }

    /// The values that parameter i may have in a suggestion, given the values that a request allows.
    fn held_or_offered(&self, i: usize, held: Option<&Held>) -> Option<Held> {
        match (self.declared[i].parameter.offered(), held) {
            (Some(offered), None) => Some(Held::Values(offered.to_vec())),
            (Some(offered), Some(Held::Range(low, high))) => {
                let inside = offered.iter().copied();
                let inside = inside.filter(|number| (*low..=*high).contains(number));
                Some(Held::Values(inside.collect()))
            }
            (_, held) => held.cloned(),
        }
    }

    /// The allowed part of the coordinate of parameter i.
    fn allowed(&self, i: usize, held: &Held, argument: &str) -> Result<Allowed> {
        let kind = self.kind(i);
        let refuse = |got: String, expected: &str| {
            Err(Error::InvalidPoint(format!(
                "{argument}['{}']={got} is not usable: pass {expected}",
                self.declared[i].name
            )))
        };
        let column = |number: f64| {
            let mut u = [0.0];
            kind.encode(number, &mut u);
            u[0]
        };
        let coordinate = kind.coordinate();
        match held {
            Held::Values(values) => {
                let unusable = values.iter().find(|&&v| kind.checked(v) != Some(v));
                if let Some(number) = unusable {
                    return refuse(format!("{number:?}"), &kind.expected());
                }
                if values.is_empty() {
                    return refuse("[]".to_string(), &kind.expected());
                }
                Ok(match coordinate.levels() {
                    Some(_) => {
                        let mut levels: Vec<u64> = values.iter().map(|&v| kind.level(v)).collect();
                        levels.sort_unstable();
                        levels.dedup();
                        Allowed::Levels(levels)
                    }
                    None => {
                        let mut columns: Vec<f64> = values.iter().map(|&v| column(v)).collect();
                        columns.sort_by(f64::total_cmp);
                        columns.dedup();
                        Allowed::Columns(columns)
                    }
                })
            }
            Held::Range(low, high) => {
                let got = format!("({low:?}, {high:?})");
                let is_inside = |end: f64| end.is_finite() && !kind.is_beyond(end);
                let is_range = low <= high && is_inside(*low) && is_inside(*high);
                if !coordinate.is_ordered() || !is_range {
                    return refuse(
                        got,
                        "(low, high) with low <= high inside the bounds of a number",
                    );
                }
                let Some(n) = coordinate.levels() else {
                    return Ok(Allowed::Interval(column(*low), column(*high)));
                };
                let (mut first, mut last) = (kind.level(*low), kind.level(*high));
                first += u64::from(kind.member(first) < *low);
                if kind.member(last) > *high {
                    last = last.wrapping_sub(1);
                }
                match first <= last && last < n {
                    true => Ok(Allowed::Steps(first, last)),
                    false => refuse(got, "a range with at least one value"),
                }
            }
        }
    }

    /// The level of each parameter: 0 for a constant, `NO_LEVEL` for a missing parameter.
    fn levels(&self, numbers: &[Option<f64>]) -> Vec<u64> {
        let level = |(i, number): (usize, &Option<f64>)| match number {
            _ if self.constant(i).is_some() => 0,
            Some(number) if !number.is_nan() => self.kind(i).level(*number),
            _ => NO_LEVEL,
        };
        numbers.iter().enumerate().map(level).collect()
    }

    fn inactive(&self, i: usize, number: Option<f64>) -> Error {
        let number = number.filter(|number| !number.is_nan());
        let label = |number| format!("={}", self.kind(i).label(number));
        self.role.error(&format!(
            "['{}']{} is inactive here: leave it out, as it needs {}",
            self.declared[i].name,
            number.map(label).unwrap_or_default(),
            self.in_words(i)
        ))
    }

    /// The conditions of a parameter in words, such as: kernel='poly' and n in [1, 2].
    fn in_words(&self, i: usize) -> String {
        let words = self.conditions.when[i]
            .iter()
            .map(|Condition(parent, levels)| {
                let (name, kind) = (&self.declared[*parent].name, self.kind(*parent));
                let label = |level: &u64| kind.label(kind.member(*level));
                let labels: Vec<String> = levels.iter().map(label).collect();
                match &labels[..] {
                    [one] => format!("{name}={one}"),
                    several => format!("{name} in [{}]", several.join(", ")),
                }
            });
        words.collect::<Vec<_>>().join(" and ")
    }

    fn check_names(
        &self,
        is_there: impl Fn(usize) -> bool,
        is_named: impl Fn(usize) -> bool,
        unknown: &[String],
    ) -> Result<()> {
        let names = self.declared.iter().map(|each| &each.name);
        check_names(self.role, names, is_there, is_named, unknown)
    }
}

/// A constraint on discrete parameters: low ≤ Σ w_i(k_i) ≤ high. Each term has the number of the searched parameter and
/// the weights of its levels.
struct WeightRow {
    terms: Vec<(usize, Vec<u64>)>,
    low: i64,
    high: i64,
}

/// The largest number of which both numbers are multiples, up to rounding.
fn common_unit(a: f64, b: f64) -> f64 {
    let least = 1e-9 * a.max(b);
    let (mut a, mut b) = (a, b);
    while b > least {
        let rest = a % b;
        (a, b) = (b, if b - rest <= least { 0.0 } else { rest });
    }
    a
}

/// The saved form of a space, which is read through the constructor and its checks.
type Saved = (Role, Vec<Declaration>, Vec<Linear>);

impl TryFrom<Saved> for Space {
    type Error = Error;

    fn try_from((role, declared, linear): Saved) -> Result<Self> {
        Space::new(role, declared)?.with_linear(linear)
    }
}

impl From<Space> for Saved {
    fn from(space: Space) -> Self {
        (space.role, space.declared, space.linear)
    }
}

/// The level of a missing parameter, which does not satisfy any condition.
const NO_LEVEL: u64 = u64::MAX;
