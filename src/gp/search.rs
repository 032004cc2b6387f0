//! The local searches of a fit on one subset of the rows (a level, see [`super::levels`]). L-BFGS-B runs from every
//! start, in parallel if this is faster.
//!
//! Notation: p = (log ℓ…, log σ_f², log λ).

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::evidence::{Data, Evidence};
use super::fit_settings::FitSettings;
use crate::error::{Error, Result, Stop, check};
use crate::numerics::lbfgsb::{Tolerance, minimize};
use crate::numerics::threads::pool;

/// The smallest number of rows for which searches run in parallel. With fewer rows, starting threads takes more time
/// than parallel searches save.
pub(super) const PARALLEL_FROM: usize = 40;

/// The tolerance of all levels except the last level. This tolerance is sufficient to rank the starts.
pub(super) const COARSE: Tolerance = Tolerance {
    projected_gradient: 1e-3,
    relative_reduction: 3e-4,
    max_iterations: 40,
};

/// The tolerance of the levels after the coarsest level. A tight tolerance is not needed, because the next fit starts
/// from the result.
pub(super) const FINE: Tolerance = Tolerance {
    projected_gradient: 1e-3,
    relative_reduction: 1e-5,
    max_iterations: 15,
};

/// The tolerance of the final search if there is only one level.
pub(super) const ONLY: Tolerance = Tolerance {
    projected_gradient: 1e-4,
    relative_reduction: 1e-7,
    max_iterations: 200,
};

/// The end point of a search: p, and minus the log evidence (times prior) at p.
pub(super) type End = (Vec<f64>, f64);

/// The end point with the largest evidence, or `None` if the evidence is infinite at every end point. Of equal end
/// points, the first is returned.
pub(super) fn best(ends: Vec<End>) -> Option<End> {
    let finite = ends.into_iter().filter(|(_, value)| value.is_finite());
    finite.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The objective at one level of a fit.
#[derive(Clone, Copy)]
pub(super) struct Problem<'d, 'a> {
    pub data: Data<'d>,
    pub settings: &'a FitSettings,
    /// Lower and upper bounds of p.
    pub bounds: &'a (Vec<f64>, Vec<f64>),
    pub tolerance: &'a Tolerance,
}

impl<'d, 'a> Problem<'d, 'a> {
    /// Returns a problem with the same settings and different data.
    pub(super) fn on<'o>(self, data: Data<'o>) -> Problem<'o, 'a>
    where
        'd: 'o,
    {
        Problem { data, ..self }
    }

    /// Returns the end point of one search. The search stops if `cancelled` returns true.
    fn search(&self, start: &[f64], cancelled: &mut dyn FnMut() -> bool) -> End {
        let mut evidence = Evidence::new(self.data);
        // The objective is divided by half the number of rows, because the curvature of the evidence is proportional to
        // the number of rows. The first step of L-BFGS-B is as long as the gradient. Without the division, this step
        // could reach a distant bound.
        let unit = 0.5 * self.data.y.len() as f64;
        let mut objective = |p: &[f64], gradient: &mut [f64]| {
            if cancelled() {
                gradient.fill(0.0);
                return f64::INFINITY;
            }
            let settings = self.settings;
            let value = settings.value_and_gradient(&mut evidence, p, gradient, cancelled);
            gradient.iter_mut().for_each(|g| *g /= -unit);
            value / -unit
        };
        let (lower, upper) = self.bounds;
        let (p, minimum) = minimize(&mut objective, start, lower, upper, self.tolerance);
        (p, minimum * unit)
    }

    /// Searches from every start, and returns the end point of each search. The result does not depend on the number of
    /// threads.
    pub(super) fn search_all(&self, starts: &[Vec<f64>], stop: &mut Stop) -> Result<Vec<End>> {
        let Some(pool) = pool().filter(|_| self.data.y.len() >= PARALLEL_FROM) else {
            let mut ends = Vec::with_capacity(starts.len());
            for start in starts {
                let mut interrupted = false;
                ends.push(self.search(start, &mut || {
                    interrupted = interrupted || stop() == ControlFlow::Break(());
                    interrupted
                }));
                check(stop)?;
            }
            return Ok(ends);
        };
        let cancelled = AtomicBool::new(false);
        let (sender, receiver) = mpsc::channel();
        let mut ends = vec![(Vec::new(), f64::INFINITY); starts.len()];
        pool.in_place_scope(|scope| {
            for (i, start) in starts.iter().enumerate() {
                let (sender, cancelled) = (sender.clone(), &cancelled);
                scope.spawn(move |_| {
                    let end = self.search(start, &mut || cancelled.load(Ordering::Relaxed));
                    sender.send((i, end)).ok();
                });
            }
            drop(sender);
            // This thread waits for the results, and checks `stop` at intervals.
            loop {
                match receiver.recv_timeout(Duration::from_millis(20)) {
                    Ok((i, end)) => ends[i] = end,
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if stop() == ControlFlow::Break(()) {
                    cancelled.store(true, Ordering::Relaxed);
                }
            }
        });
        if cancelled.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(ends)
    }
}
