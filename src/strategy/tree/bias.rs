//! C, the bias of low fidelities: |f_z − f| ≤ ζ(z) = C·(1 − z); declared, or estimated from two trials at one point.
//!
//! As the authors' code has it, C = √2·|f_0.8 − f_0.2|/0.6 at the centre, and 1.4 times as much whenever two values in a
//! cell are further apart than C and the cell's width allow (Wang et al. 2022).

use crate::domain::Fidelity;
use crate::ledger::{Ledger, TrialNumber};

/// The fidelities of the two trials.
const PROBES: [f64; 2] = [0.8, 0.2];
/// What C is multiplied by when it is contradicted.
const GROWTH: f64 = 1.4;

/// What is known of the bias.
#[derive(Debug, Clone)]
pub enum Bias {
    /// Every trial is a full evaluation.
    None,
    Declared(f64),
    Estimated(Estimate),
}

/// The estimate.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// The fidelities of the trials that it is made from, and these trials.
    fidelities: [f64; 2],
    probes: Vec<TrialNumber>,
    constant: Option<f64>,
}

impl Bias {
    pub fn new(fidelity: Option<&Fidelity>) -> Self {
        match fidelity {
            None => Self::None,
            Some(Fidelity {
                bias: Some(bias), ..
            }) => Self::Declared(*bias),
            Some(fidelity) => Self::Estimated(Estimate {
                fidelities: PROBES.map(|z| fidelity.nearest(z)),
                probes: Vec::new(),
                constant: None,
            }),
        }
    }

    /// C, if it is known.
    pub fn constant(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Declared(bias) => Some(*bias),
            Self::Estimated(estimate) => estimate.constant,
        }
    }

    /// The fidelity of the next of the two trials.
    pub fn next_probe(&self) -> Option<f64> {
        match self {
            Self::Estimated(estimate) => {
                let n = estimate.probes.len();
                estimate.fidelities.get(n).copied()
            }
            _ => None,
        }
    }

    /// A suggestion began: one of the two trials, if these have not begun yet.
    pub fn start(&mut self, number: TrialNumber, log: &Ledger) {
        if let Self::Estimated(estimate) = self
            && estimate.probes.len() < PROBES.len()
            && log.trials()[number].note().is_some()
        {
            estimate.probes.push(number);
        }
    }

    /// A trial got a value, as `others` in its cell have, over which f varies by `width` at most; `measured` gives the
    /// value, if there is one, and the fidelity of a trial.
    pub fn update(
        &mut self,
        number: TrialNumber,
        others: impl Iterator<Item = TrialNumber>,
        width: f64,
        measured: impl Fn(TrialNumber) -> (Option<f64>, f64),
    ) {
        let Self::Estimated(estimate) = self else {
            return;
        };
        let apart = |a: TrialNumber, b: TrialNumber| {
            let ((value_a, z_a), (value_b, z_b)) = (measured(a), measured(b));
            Some(((value_a? - value_b?).abs(), (z_a - z_b).abs()))
        };
        if let [a, b] = estimate.probes[..]
            && (number == a || number == b)
        {
            let estimated = apart(a, b).filter(|(_, between)| *between > 0.0);
            let estimated = estimated.map(|(apart, between)| 2.0_f64.sqrt() * apart / between);
            estimate.constant = estimated.filter(|constant| *constant > 0.0);
        }
        for other in others {
            if let (Some(constant), Some((apart, between))) =
                (&mut estimate.constant, apart(number, other))
                && apart > *constant * between + width
                && between > 0.0
            {
                *constant *= GROWTH;
            }
        }
    }

    /// Drops trials that were taken back.
    pub fn rewind(&mut self, log: &Ledger) {
        if let Self::Estimated(estimate) = self {
            let n = log.trials().len();
            estimate.probes.retain(|number| *number < n);
        }
    }
}
