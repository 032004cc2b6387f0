//! A Gaussian process of trials that is kept between suggestions.
//!
//! The rows of the last fit, the *base*, are factorised together, and later rows are appended one by one, always in the
//! same order. Therefore the process depends, bit for bit, only on the rows, and not on earlier calls.

use std::ops::Range;

use ndarray::Array2;

use crate::error::{Result, Stop, check};
use crate::gp::kernel::{Category, KernelFamily};
use crate::gp::{GaussianProcess, Hyperparameters, RowNoise};
use crate::ledger::TrialNumber;

/// The version of a factor. A cache that was computed from a factor stays valid while the version is the same, even if
/// rows are appended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Version {
    pub generation: u64,
    /// The number of rows that were factorised together. Later rows were appended one by one.
    pub base: usize,
}

/// The process and the trials of its rows.
pub struct KeptProcess {
    pub gp: GaussianProcess,
    pub version: Version,
    trials: Vec<TrialNumber>,
    noise: Vec<RowNoise>,
    n_moves: usize,
}

/// The rows and hyperparameters that a process should have.
pub struct Wanted<'a> {
    pub family: KernelFamily,
    pub theta: &'a Hyperparameters,
    pub categories: &'a [Category],
    pub trials: &'a [TrialNumber],
    pub noise: &'a [RowNoise],
    /// Returns the encoded points of some rows.
    pub points: &'a dyn Fn(Range<usize>) -> Array2<f64>,
    /// The number of rows that are factorised together.
    pub base: usize,
    /// The number of points of ended trials that had been corrected when these rows were computed.
    pub n_moves: usize,
}

impl KeptProcess {
    /// Returns the kept process after appending the rows that it lacks. If the kept process does not consist of the
    /// first wanted rows, the process is new, and has the next `generation`. Set the targets afterwards.
    pub fn update(
        kept: Option<Self>,
        wanted: &Wanted,
        generation: u64,
        stop: &mut Stop,
    ) -> Result<Self> {
        let mut process = match kept {
            Some(kept) if kept.starts(wanted) => kept,
            _ => {
                let base = wanted.base;
                let mut gp = GaussianProcess::new(wanted.family, wanted.theta)?
                    .with_categories(wanted.categories);
                gp.append_noisy_rows((wanted.points)(0..base).view(), &wanted.noise[..base])?;
                Self {
                    gp,
                    version: Version {
                        generation: generation + 1,
                        base,
                    },
                    trials: wanted.trials[..base].to_vec(),
                    noise: wanted.noise[..base].to_vec(),
                    n_moves: wanted.n_moves,
                }
            }
        };
        for i in process.trials.len()..wanted.trials.len() {
            check(stop)?;
            let point = (wanted.points)(i..i + 1);
            process
                .gp
                .append_noisy_rows(point.view(), &wanted.noise[i..=i])?;
            process.trials.push(wanted.trials[i]);
            process.noise.push(wanted.noise[i]);
        }
        Ok(process)
    }

    /// Whether the rows of this process are the first of the wanted rows.
    fn starts(&self, wanted: &Wanted) -> bool {
        self.gp.kernel().family == wanted.family
            && self.gp.hyperparameters() == *wanted.theta
            && self.version.base == wanted.base
            && self.n_moves == wanted.n_moves
            && wanted.trials.starts_with(&self.trials)
            && wanted.noise.starts_with(&self.noise)
    }
}
