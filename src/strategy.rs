//! What proposes the next trial, and the optimizer that joins it to the log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bayes::bayes_opt::{BayesOpt, Settings};
use crate::domain::{Domain, Rng};
use crate::error::{Error, Result, Stop, check};
use crate::gp::GaussianProcess;
use crate::ledger::{Clock, Event, Fitted, Ledger, Point, TrialNumber};
use crate::random_search::RandomSearch;

/// Where the next trial should be, and what was learnt on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub point: Point,
    /// Hyperparameters, if they were fitted for this proposal.
    pub fitted: Option<Fitted>,
    /// Something that did not stop the proposal but that the user should know.
    pub warning: Option<String>,
}

/// The point to use when the search is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    pub point: Point,
    pub mean: f64,
    pub std: f64,
}

/// The posterior of (f − center)/scale that a strategy works with.
#[derive(Debug, Clone)]
pub struct Surrogate {
    pub model: GaussianProcess,
    pub center: f64,
    pub scale: f64,
}

/// When and where a proposal is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Time on the ledger's clock.
    pub now: f64,
    /// Encoded context, empty where none is declared.
    pub context: &'a [f64],
}

/// A rule that chooses the next point from the log alone.
///
/// A strategy may keep what it has computed, but nothing that does not follow from the log: two of them
/// with the same settings, log and random stream propose the same point, bit for bit.
pub trait Strategy: Send {
    fn propose(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Proposal>;

    /// The best point by what the strategy believes; the default knows nothing beyond the values.
    fn recommend(
        &mut self,
        log: &Ledger,
        _query: Query,
        _rng: &mut Rng,
        _stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        Ok(log.best().map(|number| {
            let trial = &log.trials()[number];
            Recommendation {
                point: trial.point.clone(),
                mean: trial.value.unwrap_or(f64::NAN),
                std: f64::NAN,
            }
        }))
    }

    /// The model behind the proposals, if there is one and it has been fitted.
    fn surrogate(
        &mut self,
        _log: &Ledger,
        _query: Query,
        _pending: bool,
    ) -> Result<Option<Surrogate>> {
        Ok(None)
    }
}

/// Which strategy, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Method {
    RandomSearch,
    BayesOpt(Box<Settings>),
}

/// Everything about an optimizer that does not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub domain: Arc<Domain>,
    /// Number of encoded columns of a context.
    pub context_width: usize,
    pub clock: Clock,
    pub seed: u64,
    pub method: Method,
}

impl Definition {
    fn strategy(&self) -> Result<Box<dyn Strategy>> {
        Ok(match &self.method {
            Method::RandomSearch => Box::new(RandomSearch::new(self.domain.clone())),
            Method::BayesOpt(settings) => Box::new(BayesOpt::new(
                self.domain.clone(),
                self.context_width,
                (**settings).clone(),
                &mut self.stream(DESIGN),
            )?),
        })
    }

    /// The generator of suggestion k: a stream of its own, so that nothing else that is drawn shifts it.
    fn stream(&self, k: u64) -> Rng {
        // Streams of one state are correlated; a state of their own for each makes them independent.
        let mut state = self.seed ^ k.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        let state = u128::from(next()) << 64 | u128::from(next());
        Rng::new(state, u128::from(k))
    }
}

/// A log and the strategy that reads it.
pub struct Optimizer {
    definition: Definition,
    ledger: Ledger,
    strategy: Box<dyn Strategy>,
}

/// Streams of `recommend` and of initial designs, out of the way of the trials'.
const RECOMMENDATION: u64 = u64::MAX;
const DESIGN: u64 = u64::MAX - 1;

/// First bytes of a saved optimizer: a name and the version of the format.
const HEADER: &[u8; 8] = b"belated\x01";

impl Optimizer {
    pub fn new(definition: Definition) -> Result<Self> {
        Self::with_ledger(definition.clone(), Ledger::new(definition.clock))
    }

    fn with_ledger(definition: Definition, ledger: Ledger) -> Result<Self> {
        let strategy = definition.strategy()?;
        Ok(Self {
            definition,
            ledger,
            strategy,
        })
    }

    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Starts n trials, each with the ones before it pending; their numbers, and warnings.
    ///
    /// Either all n are logged, or none: on an error, and when the caller stops it.
    pub fn suggest(
        &mut self,
        n: usize,
        context: &[f64],
        told: Option<f64>,
        stop: &mut Stop,
    ) -> Result<(Vec<TrialNumber>, Vec<String>)> {
        self.check_context(context)?;
        self.ledger.now(told)?;
        let mut draft = (n > 1).then(|| self.ledger.clone());
        let result = {
            let ledger = draft.as_mut().unwrap_or(&mut self.ledger);
            let strategy = self.strategy.as_mut();
            suggest_each(&self.definition, ledger, strategy, n, context, told, stop)
        };
        match (result, draft) {
            (Ok(done), Some(draft)) => {
                self.ledger = draft;
                Ok(done)
            }
            (Ok(done), None) => Ok(done),
            (Err(error), _) => {
                // The strategy may have gone ahead of the log; a new one starts from the log alone.
                self.strategy = self.definition.strategy()?;
                Err(error)
            }
        }
    }

    pub fn observe(
        &mut self,
        number: TrialNumber,
        value: f64,
        told: Option<f64>,
        amend: bool,
    ) -> Result<()> {
        let now = self.ledger.now(told)?;
        self.ledger.observe(number, value, now, amend)
    }

    pub fn fail(&mut self, number: TrialNumber, told: Option<f64>) -> Result<()> {
        let now = self.ledger.now(told)?;
        self.ledger.fail(number, now)
    }

    pub fn abandon(&mut self, number: TrialNumber, told: Option<f64>) -> Result<()> {
        let now = self.ledger.now(told)?;
        self.ledger.abandon(number, now)
    }

    pub fn add(
        &mut self,
        point: Point,
        context: Vec<f64>,
        value: Option<f64>,
        told: Option<f64>,
    ) -> Result<TrialNumber> {
        self.check_point(&point)?;
        self.check_context(&context)?;
        let now = self.ledger.now(told)?;
        self.ledger.add(point, context, value, now)
    }

    pub fn enqueue(&mut self, point: Point) -> Result<()> {
        self.check_point(&point)?;
        self.ledger.enqueue(point);
        Ok(())
    }

    /// The best point by the strategy's belief; None while nothing is observed.
    pub fn recommend(
        &mut self,
        context: &[f64],
        told: Option<f64>,
        stop: &mut Stop,
    ) -> Result<Option<Recommendation>> {
        self.check_context(context)?;
        let now = self.ledger.now(told)?;
        let mut rng = self.definition.stream(RECOMMENDATION);
        self.strategy
            .recommend(&self.ledger, Query { now, context }, &mut rng, stop)
    }

    /// The model; with `pending`, as the next suggestion would see it.
    pub fn surrogate(&mut self, told: Option<f64>, pending: bool) -> Result<Option<Surrogate>> {
        let now = self.ledger.now(told)?;
        let query = Query { now, context: &[] };
        self.strategy.surrogate(&self.ledger, query, pending)
    }

    /// Definition and log: all there is to know.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let state = (&self.definition, self.ledger.events());
        let mut bytes = HEADER.to_vec();
        bytes.extend(
            postcard::to_stdvec(&state).map_err(|error| Error::Corrupt(error.to_string()))?,
        );
        Ok(bytes)
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let body = bytes.strip_prefix(HEADER).ok_or_else(|| {
            Error::Corrupt("it does not start as one of this version does".to_string())
        })?;
        let (definition, events): (Definition, Vec<Event>) =
            postcard::from_bytes(body).map_err(|error| Error::Corrupt(error.to_string()))?;
        let ledger = Ledger::replay(definition.clock, events)?;
        let optimizer = Self::with_ledger(definition, ledger)?;
        for trial in optimizer.ledger.trials() {
            optimizer.check_point(&trial.point)?;
            optimizer.check_context(&trial.context)?;
        }
        Ok(optimizer)
    }

    fn check_point(&self, point: &Point) -> Result<()> {
        let domain = &self.definition.domain;
        if point.x.len() != domain.width() {
            return Err(Error::InvalidPoint(format!(
                "a point of {} columns for a domain of {}; encode it as the domain's rows are",
                point.x.len(),
                domain.width()
            )));
        }
        if point.x.iter().any(|x| !x.is_finite()) {
            return Err(Error::InvalidPoint(
                "a point with NaN or infinite coordinates; give finite ones".to_string(),
            ));
        }
        if let (Some(index), Domain::Candidates(list)) = (point.index, domain.as_ref())
            && index >= list.nrows()
        {
            return Err(Error::InvalidPoint(format!(
                "candidate {index} does not exist: there are {}",
                list.nrows()
            )));
        }
        Ok(())
    }

    fn check_context(&self, context: &[f64]) -> Result<()> {
        let width = self.definition.context_width;
        if context.len() != width {
            return Err(Error::InvalidContext(match (width, context.len()) {
                (0, _) => "a context was given, but none is declared; declare it with context="
                    .to_string(),
                (_, 0) => "a context is declared but none was given; pass context=".to_string(),
                (_, got) => format!("a context of {got} columns, where {width} are declared"),
            }));
        }
        if context.iter().any(|z| !z.is_finite()) {
            return Err(Error::InvalidContext(
                "a context with NaN or infinite entries; give finite ones".to_string(),
            ));
        }
        Ok(())
    }
}

fn suggest_each(
    definition: &Definition,
    ledger: &mut Ledger,
    strategy: &mut dyn Strategy,
    n: usize,
    context: &[f64],
    told: Option<f64>,
    stop: &mut Stop,
) -> Result<(Vec<TrialNumber>, Vec<String>)> {
    let (mut numbers, mut warnings) = (Vec::with_capacity(n), Vec::new());
    for _ in 0..n {
        let now = ledger.now(told)?;
        let (point, fitted, queued) = match ledger.next_queued() {
            Some(point) => (point.clone(), None, true),
            None => {
                let mut rng = definition.stream(ledger.trials().len() as u64);
                let query = Query { now, context };
                let proposal = strategy.propose(ledger, query, &mut rng, stop)?;
                warnings.extend(proposal.warning);
                (proposal.point, proposal.fitted, false)
            }
        };
        check(stop)?;
        numbers.push(ledger.suggest(point, context.to_vec(), now, fitted, queued));
    }
    Ok((numbers, warnings))
}

/// A uniformly random point of a domain.
pub(crate) fn uniform_point(domain: &Domain, rng: &mut Rng) -> Point {
    let (x, index) = domain.sample_uniform(rng);
    Point { x, index }
}
