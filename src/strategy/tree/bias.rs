//! The bias constant C of low fidelities: |f_z − f| ≤ ζ(z) = C·(1 − z). C is declared, or estimated from two trials at
//! the same point.
//!
//! As in the code of Wang et al. 2022, the initial estimate is C = √2·|f_0.8 − f_0.2|/0.6 at the centre of the box. C
//! is multiplied by 1.4 if two values in the same cell differ by more than C times the difference of their fidelities
//! plus the bound on the variation of f in the cell.

use crate::ledger::{TrialNumber, View};
use crate::problem::Fidelity;

/// The fidelities of the two trials from which C is estimated.
const PROBES: [f64; 2] = [0.8, 0.2];
/// The factor by which C is multiplied if two values differ by more than C allows.
const GROWTH: f64 = 1.4;

/// The bias constant C, which is absent, declared or estimated.
#[derive(Debug, Clone)]
pub enum Bias {
    /// Every trial is a full evaluation, without bias.
    None,
    Declared(f64),
    Estimated(Estimate),
}

/// The estimate of C from two trials.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// The fidelities of the two trials from which C is estimated, whose numbers are `probes`.
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

    /// The constant C, or `None` if C is not known.
    pub fn constant(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Declared(bias) => Some(*bias),
            Self::Estimated(estimate) => estimate.constant,
        }
    }

    /// The fidelity of the next trial from which C is estimated, or `None` if both trials have started.
    pub fn next_probe(&self) -> Option<f64> {
        match self {
            Self::Estimated(estimate) => {
                let n = estimate.probes.len();
                estimate.fidelities.get(n).copied()
            }
            _ => None,
        }
    }

    /// If fewer than two trials for the estimate of C have started, registers this proposed trial as one of the two.
    pub fn start(&mut self, number: TrialNumber) {
        if let Self::Estimated(estimate) = self
            && estimate.probes.len() < PROBES.len()
        {
            estimate.probes.push(number);
        }
    }

    /// Updates C with the value of a trial. `others`: the other trials with values in the same cell. `width`: the bound
    /// on the variation of f in the cell. `measured` returns the value (if any) and the fidelity of a trial.
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

    /// Removes trials that are no longer in the log.
    pub fn rewind(&mut self, log: View) {
        if let Self::Estimated(estimate) = self {
            let n = log.n_trials();
            estimate.probes.retain(|number| *number < n);
        }
    }
}
