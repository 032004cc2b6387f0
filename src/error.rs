//! Everything that can go wrong, one variant per kind, each message saying what to do about it.

use thiserror::Error;

/// The core's error. The bindings turn each variant into a Python exception of its own.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// A domain that cannot be searched: empty, inverted, not finite, of no width.
    #[error("{0}")]
    InvalidSpace(String),

    /// A setting outside its documented range, or two that contradict each other.
    #[error("{name}={got} is not usable: {expected}")]
    InvalidSetting {
        name: &'static str,
        got: String,
        expected: &'static str,
    },

    /// A definition in JSON that is not one of an optimizer.
    #[error("{got} does not define an optimizer: {expected}")]
    InvalidDefinition { got: String, expected: String },

    /// A value that is not one finite number.
    #[error(
        "value={got} for trial {number} is not a finite number; observe a finite value, or call fail or abandon (the trial is unchanged)"
    )]
    InvalidValue { number: usize, got: f64 },

    /// A standard deviation of noise that cannot be one.
    #[error(
        "std={got} for trial {number} is not a finite number of 0 or above; give the standard deviation of the value's noise (the trial is unchanged)"
    )]
    InvalidDeviation { number: usize, got: f64 },

    /// A cost that cannot be one.
    #[error(
        "cost={got} for trial {number} is not a finite number of 0 or above; give what the evaluation cost (the trial is unchanged)"
    )]
    InvalidCost { number: usize, got: f64 },

    /// A duration that cannot be one.
    #[error(
        "duration={got} for trial {number} is not a finite number of 0 or above; give the seconds that the evaluation took (the trial is unchanged)"
    )]
    InvalidDuration { number: usize, got: f64 },

    /// Attributes that are no JSON object.
    #[error(
        "attrs={0} is not a JSON object; give names and values, nested no deeper than 127 levels"
    )]
    InvalidAttrs(String),

    /// A point that does not belong to the domain.
    #[error("{0}")]
    InvalidPoint(String),

    /// A context of the wrong width, or not finite.
    #[error("{0}")]
    InvalidContext(String),

    /// A fidelity outside of [0, 1], or where none is declared.
    #[error("{0}")]
    InvalidFidelity(String),

    /// A time that is not finite, or missing where the clock needs one.
    #[error("now={got} is not usable: {expected}")]
    InvalidTime { got: f64, expected: &'static str },

    /// Constraints that no point is known to satisfy.
    #[error(
        "none of {tried} points tried satisfies the constraints; loosen them or narrow the space, or add the value of a point that satisfies them"
    )]
    NoFeasiblePoint { tried: usize },

    /// Rows or targets whose shapes do not fit together.
    #[error("{0}")]
    Shape(String),

    /// A trial number that was never given out.
    #[error(
        "trial {number} is unknown: this optimizer has {known} trials, numbered from 0; pass a trial that its suggest or add returned"
    )]
    UnknownTrial { number: usize, known: usize },

    /// A second, different value for a trial, or a failure after a value.
    #[error(
        "trial {number} has the value {value} already; pass amend=True to replace it, or replicate=True to keep both"
    )]
    AlreadyObserved { number: usize, value: f64 },

    /// A covariance matrix that stays singular after every rung of the jitter ladder.
    #[error(
        "the covariance matrix is not positive definite (pivot {pivot}), even with jitter {jitter:e}; raise the noise"
    )]
    NotPositiveDefinite { pivot: usize, jitter: f64 },

    /// Targets whose weights in the posterior are beyond the range of a double.
    #[error(
        "targets as large as {largest:e} overflow in the posterior; scale the values down (targets=\"standardized\" does)"
    )]
    Overflow { largest: f64 },

    /// Something that the strategy declares it cannot do.
    #[error("{strategy} does not support {what}: leave it out, or use {}", supporting(.what))]
    Unsupported {
        strategy: &'static str,
        what: &'static str,
    },

    /// A suggestion more than the strategy was made for.
    #[error(
        "the horizon of {horizon} suggestions leaves none after these {steps}: ask for fewer at once, or make another optimizer, with a longer horizon"
    )]
    HorizonReached { horizon: usize, steps: usize },

    /// Saved bytes of another version of the format.
    #[error(
        "the saved optimizer has format {found}, and this belated reads format {known}: use the version that wrote it"
    )]
    UnknownFormat { found: u8, known: u8 },

    /// Saved bytes that do not decode to an optimizer.
    #[error("the saved state cannot be read: {0}")]
    Corrupt(String),

    /// The caller asked to stop (Ctrl-C); nothing was changed.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

pub type Result<T> = std::result::Result<T, Error>;

/// Asked now and then by long computations; `Break` makes them return [`Error::Interrupted`].
pub type Stop<'a> = dyn FnMut() -> std::ops::ControlFlow<()> + 'a;

/// `Err(Interrupted)` once the caller wants to stop.
pub fn check(stop: &mut Stop) -> Result<()> {
    match stop() {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// The strategies that support something that others do not.
fn supporting(what: &str) -> &'static str {
    match what {
        "a context" => "BayesOpt or RandomSearch",
        "a fidelity" => "RandomSearch or TreeSearch",
        "candidates" => "BayesOpt, BPEDelay or RandomSearch",
        _ => "BayesOpt, RandomSearch or TreeSearch",
    }
}
