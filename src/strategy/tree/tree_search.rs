//! The strategy, which chooses the next point and the recommended point in the tree.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView1};
use serde_json::{Value, json};

use crate::error::{Error, Result, Stop, check, refuse};
use crate::ledger::{TrialNumber, View};
use crate::maximize::excluded::key_of_row;
use crate::maximize::feasible::{Feasible, MAX_TRIES};
use crate::problem::fidelity::TOLERANCE;
use crate::problem::{Domain, Fidelity, Member, Position};
use crate::random::{Call, Rng};
use crate::strategy::from_settings::{FromSettings, as_json};
use crate::strategy::tree::bias::Bias;
use crate::strategy::tree::fold::Forest;
use crate::strategy::tree::instance::{Instance, Nu};
use crate::strategy::tree::note::{self, Place, Step};
use crate::strategy::tree::partition::{Partition, ROOT};
use crate::strategy::tree::region::{Region, Space};
use crate::strategy::tree::settings::{
    Bound, DUCB1, DUCB1Sigma, DUCBV, Recommended, Sample, Settings,
};
use crate::strategy::{Proposal, Query, Recommendation, Setup, Strategy, Supports};
use rand::RngExt;

/// The largest number of points that are tried in a cell to find a feasible point, and the sizes of the first and of
/// the largest batch of such points.
const CELL_TRIES: usize = 512;
const BATCHES: (usize, usize) = (4, 128);

/// Hierarchical optimistic optimisation (HOO) or, with delays, PCTS (Wang et al. 2022, Algorithm 1).
pub struct TreeSearch {
    settings: Settings,
    /// The declared fidelity, or `None` if every trial is a full evaluation.
    fidelity: Option<Fidelity>,
    forest: Forest,
}

/// A suggested point, and the steps that led to the suggestion.
struct Advanced {
    steps: Vec<Step>,
    x: Vec<f64>,
    /// The fidelity chosen by the strategy.
    z: f64,
}

impl TreeSearch {
    /// Returns the leaf that is reached from the root by descending into the half with the larger B value. Ties are
    /// broken at random.
    fn choose(&self, instance: usize, rng: &mut Rng) -> (Place, Region) {
        let (partition, instance) = (&self.forest.partition, &self.forest.instances[instance]);
        let space = partition.space();
        let (mut at, mut region) = (ROOT, space.whole());
        while instance.is_visited(at) {
            let node = partition.node(at);
            let Some(coordinate) = node.split() else {
                break;
            };
            let [lower, upper] = instance.slots(at, partition);
            let side = match node.empty {
                [true, false] => 1,
                [false, true] => 0,
                _ if lower == upper => rng.random_range(0..2),
                _ => usize::from(upper > lower),
            };
            space.halve(&mut region, coordinate, side);
            match node.child(side) {
                Some(child) => at = child,
                None => return (Place::New { parent: at, side }, region),
            }
        }
        (Place::Old(at), region)
    }

    /// Draws a random depth, finds the best cell of the front down to this depth, and chooses a half of this cell.
    /// `None` if the front is not used in this turn or does not contain such a cell.
    fn choose_of_front(&mut self, instance: usize, rng: &mut Rng) -> Option<(Place, Region)> {
        let partition = &self.forest.partition;
        let instance = &mut self.forest.instances[instance];
        let depth = rng.random_range(0..instance.front_turn()?);
        let parent = instance.best_down_to(depth, partition)?;
        let side = match instance.open_halves(parent, partition) {
            [true, true] => rng.random_range(0..2),
            [is_open, _] => usize::from(!is_open),
        };
        let node = partition.node(parent);
        let mut region = partition.region(parent);
        partition.space().halve(&mut region, node.split()?, side);
        let place = match node.child(side) {
            Some(child) => Place::Old(child),
            None => Place::New { parent, side },
        };
        Some((place, region))
    }

    /// The allowed fidelity that is nearest to z_h.
    fn fidelity_at(&self, instance: usize, depth: u32) -> f64 {
        let z = self.forest.instances[instance].fidelity(depth);
        self.fidelity
            .as_ref()
            .map_or(1.0, |fidelity| fidelity.nearest(z))
    }

    /// Returns the number of this cell if this instance can share an evaluation that was made for another instance.
    fn shared(&self, instance: usize, place: Place) -> Option<u32> {
        let Place::Old(node) = place else {
            return None;
        };
        let cell = self.forest.partition.node(node);
        let is_new = !self.forest.instances[instance].is_visited(node);
        let z = self.fidelity_at(instance, cell.depth);
        let is_shared = is_new && cell.own.has_trial() && f64::from(cell.own.z) >= z - TOLERANCE;
        is_shared.then_some(node)
    }

    fn depth_of(&self, place: Place) -> u32 {
        let partition = &self.forest.partition;
        match place {
            Place::Old(node) => partition.node(node).depth,
            Place::New { parent, .. } => partition.node(parent).depth + 1,
        }
    }

    /// Searches a cell for a feasible point, or returns `None` if none is found.
    fn point_in(
        &self,
        place: Place,
        region: &Region,
        sample: Sample,
        feasible: Feasible,
        log: View,
        call: &mut Call,
    ) -> Result<Option<Vec<f64>>> {
        let space = self.forest.partition.space();
        let first = space.sample(region, sample, call.rng);
        if !feasible.is_constrained() || feasible.holds(&first)? {
            return Ok(Some(first));
        }
        let max_tries = match place {
            Place::Old(ROOT) => MAX_TRIES,
            _ => CELL_TRIES,
        };
        let (mut tried, (mut batch, largest)) = (1, BATCHES);
        while tried < max_tries {
            check(call.stop)?;
            let mut rows = Array2::zeros((batch.min(max_tries - tried), first.len()));
            for mut row in rows.rows_mut() {
                let x = space.sample(region, Sample::Uniform, call.rng);
                row.assign(&ArrayView1::from(&x));
            }
            let passed = feasible.of_rows(rows.view())?;
            if let Some(i) = passed.iter().position(|passed| *passed) {
                return Ok(Some(rows.row(i).to_vec()));
            }
            tried += rows.nrows();
            batch = (2 * batch).min(largest);
        }
        // Suggest the point of an observed, feasible trial in the cell again.
        if let Place::Old(node) = place {
            for number in self.forest.partition.values(node) {
                let x = log.x(number);
                let is_member = log.of(number).position == Position::Member;
                if is_member && feasible.holds(x)? {
                    return Ok(Some(x.to_vec()));
                }
            }
        }
        Ok(None)
    }

    /// Performs turns of the instances, which change the tree, until a point must be evaluated, and returns this point.
    fn advance(&mut self, log: View, query: Query, call: &mut Call) -> Result<Advanced> {
        let mut steps = Vec::with_capacity(1);
        if let Some(z) = self.forest.next_probe() {
            // The trials from which the bias constant is estimated are at the centre of the box, if the centre is
            // feasible.
            let root = Place::Old(ROOT);
            let whole = self.forest.partition.space().whole();
            let found = self.point_in(root, &whole, Sample::Centre, query.feasible, log, call)?;
            let x = found.ok_or(Error::NoFeasiblePoint { tried: MAX_TRIES })?;
            steps.push(Step::Turn(root));
            return Ok(Advanced { steps, x, z });
        }
        loop {
            check(call.stop)?;
            let instance = self.forest.next_instance();
            let (place, region) = match self.choose_of_front(instance, call.rng) {
                Some(chosen) => chosen,
                None => self.choose(instance, call.rng),
            };
            if let Some(node) = self.shared(instance, place) {
                self.forest.turn(Place::Old(node))?;
                steps.push(Step::Turn(place));
                continue;
            }
            let sample = self.settings.sample;
            match self.point_in(place, &region, sample, query.feasible, log, call)? {
                Some(x) => {
                    self.forest.partition.expect(place, &region);
                    steps.push(Step::Turn(place));
                    let z = self.fidelity_at(instance, self.depth_of(place));
                    return Ok(Advanced { steps, x, z });
                }
                None if place == Place::Old(ROOT) => {
                    return Err(Error::NoFeasiblePoint { tried: MAX_TRIES });
                }
                None => {
                    self.forest.mark_empty(place)?;
                    steps.push(Step::Empty(place));
                }
            }
        }
    }

    /// Returns the leaves that have observations, each with its value of the criterion for the recommendation, best
    /// first.
    fn leaves(&self) -> Vec<(f64, u32)> {
        let mut leaves = Vec::new();
        let partition = &self.forest.partition;
        for instance in &self.forest.instances {
            let is_leaf = |node: &u32| {
                let children = [0, 1].map(|side| partition.node(*node).child(side));
                let mut children = children.into_iter().flatten();
                instance.is_visited(*node)
                    && !children.any(|child| instance.moments(child).count > 0)
                    && partition.node(*node).own.moments.count > 0
            };
            for node in (ROOT..partition.len() as u32).filter(is_leaf) {
                let mean = instance.moments(node).mean;
                let depth = partition.node(node).depth;
                let worth = match self.settings.recommendation {
                    Recommended::LowerBound => mean - instance.slack(depth),
                    Recommended::Mean => mean,
                };
                leaves.push((worth, node));
            }
        }
        leaves.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        leaves
    }

    /// Returns the trial with the largest value in a cell.
    fn best_in(&self, node: u32, log: View) -> Option<TrialNumber> {
        let value = |number: &TrialNumber| log.of(*number).value().unwrap_or(f64::NAN);
        let numbers = self.forest.partition.values(node);
        numbers.max_by(|a, b| value(a).total_cmp(&value(b)).then(b.cmp(a)))
    }
}

impl FromSettings for TreeSearch {
    type Settings = Settings;

    fn new(setup: &Setup, settings: Settings, _rng: &mut Rng) -> Result<Self> {
        settings.check()?;
        let Domain::Box(product) = setup.domain.as_ref() else {
            return Err(Error::Unsupported {
                strategy: "TreeSearch",
                what: "candidates",
            });
        };
        let has_fidelity = setup.fidelity.is_some();
        let nu = match (settings.nu, has_fidelity) {
            (Some(nu), _) => Nu::Given(nu),
            (None, false) => Nu::Scale,
            (None, true) => Nu::Spread(0.0),
        };
        let rhos = settings.rhos(product.len(), has_fidelity).into_iter();
        let instances = rhos.map(|rho| {
            let instance = Instance::new(nu, rho, settings.bound);
            match settings.has_front(has_fidelity) {
                true => instance.with_front(),
                false => instance,
            }
        });
        let partition = Partition::new(Space::new(product));
        Ok(Self {
            forest: Forest::new(
                partition,
                instances.collect(),
                settings.refresh,
                Bias::new(setup.fidelity.as_ref()),
            ),
            fidelity: setup.fidelity.clone(),
            settings,
        })
    }

    fn values() -> Vec<Value> {
        vec![
            as_json(Bound::DUCB1(DUCB1::default())),
            as_json(Bound::DUCB1Sigma(DUCB1Sigma::default())),
            as_json(Bound::DUCBV(DUCBV::default())),
        ]
    }
}

impl Strategy for TreeSearch {
    fn supports(&self) -> Supports {
        Supports {
            outcomes: false,
            contexts: false,
            candidates: false,
            conditions: true,
            linear: false,
            fidelity: true,
            restrictions: false,
        }
    }

    fn catch_up(&mut self, log: View) -> Result<()> {
        self.forest.catch_up(log)
    }

    fn rewind(&mut self, log: View) {
        self.forest.rewind(log);
    }

    fn propose(&mut self, log: View, query: Query, call: &mut Call) -> Result<Proposal> {
        self.forest.update_bounds();
        self.forest.begin();
        let advanced = self.advance(log, query, call);
        // Undo the steps, which are applied again, from the note, when the suggestion is logged.
        self.forest.undo();
        let Advanced { steps, x, z } = advanced?;
        Ok(Proposal {
            fidelity: self.fidelity.is_some().then(|| query.fidelity.unwrap_or(z)),
            note: Some(note::to_text(&steps)),
            ..Proposal::at(Member::new(x, None))
        })
    }

    fn check_note(&mut self, log: View, text: &str) -> Result<()> {
        self.forest.catch_up(log)?;
        self.forest.check(&note::from_text(text)?)
    }

    /// The best points of the best leaves. By the settings, the best leaf has the largest mean − ν·ρ^h or the largest
    /// mean.
    fn recommend(
        &mut self,
        log: View,
        query: Query,
        n: usize,
        call: &mut Call,
    ) -> Result<Vec<Recommendation>> {
        self.forest.update_bounds();
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        for (_, node) in self.leaves() {
            if found.len() == n {
                break;
            }
            check(call.stop)?;
            let Some(number) = self.best_in(node, log) else {
                continue;
            };
            let is_new = seen.insert(key_of_row(ArrayView1::from(log.x(number))));
            if !is_new || !query.feasible.holds(log.x(number))? {
                continue;
            }
            let moments = self.forest.partition.node(node).own.moments;
            found.push(Recommendation {
                point: log.member(number),
                mean: moments.mean,
                std: match moments.count {
                    0 | 1 => f64::NAN,
                    _ => moments.variance().sqrt(),
                },
            });
        }
        Ok(found)
    }

    fn check_revised(&self, log: View) -> Result<()> {
        match (0..log.n_trials()).find_map(|number| log.left_out(number)) {
            None => Ok(()),
            Some(reason) => Err(refuse(
                "revise",
                format!("a space that leaves out a trial ({reason})"),
                "TreeSearch needs the cell of every trial; give a space that has all points",
            )),
        }
    }

    fn status(&mut self, _log: View, _now: f64, _stop: &mut Stop) -> Result<Option<Value>> {
        self.forest.update_bounds();
        let partition = &self.forest.partition;
        let nodes = || ROOT..partition.len() as u32;
        let instances = self.forest.instances.iter().map(|instance| {
            let visited = nodes().filter(|node| instance.is_visited(*node));
            let depths = visited.map(|node| partition.node(node).depth);
            json!({
                "nu": instance.nu(),
                "rho": instance.rho(),
                "n_cells": depths.clone().count(),
                "depth": depths.max().unwrap_or(0),
            })
        });
        Ok(Some(json!({"instances": instances.collect::<Vec<_>>()})))
    }
}
