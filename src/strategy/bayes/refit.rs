//! The fit of the hyperparameters: to which rows, and where it starts.

use crate::error::{Result, Stop};
use crate::gp::Target;
use crate::gp::evidence::Data;
use crate::gp::fit::fit_families;
use crate::ledger::Ledger;
use crate::random::Rng;
use crate::strategy::Query;
use crate::strategy::bayes::BayesOpt;
use crate::strategy::bayes::note::Fit;
use crate::strategy::bayes::settings::FitRows;

impl BayesOpt {
    /// θ for the rows there are, and for the tail where it takes part in fits.
    pub(super) fn refit(
        &mut self,
        log: &Ledger,
        query: Query,
        rng: &mut Rng,
        stop: &mut Stop,
    ) -> Result<Fit> {
        let gp_settings = self.settings.gp();
        let with_tail = match gp_settings.fit_rows {
            FitRows::Observed => false,
            FitRows::All => true,
            FitRows::Policy => self.settings.pending().is_censor(),
        };
        let mut targets = self.training.targets(log);
        let mut numbers = self.training.rows().to_vec();
        let mut noise = self.training.row_noise(targets.scale);
        if with_tail {
            let tail = match self.training.posterior(log, query, stop)? {
                Some(posterior) => {
                    targets = posterior.targets;
                    let means = posterior
                        .gp
                        .tail_means(posterior.tail.rows.view(), &posterior.tail.targets);
                    targets.values.extend(means);
                    posterior.tail
                }
                None => {
                    let tail = self.training.tail(log, query, targets.levels);
                    // Before any θ the posterior mean is that of the prior.
                    targets.values.extend(tail.targets.iter().map(prior_mean));
                    tail
                }
            };
            numbers.extend(&tail.trials);
            noise.resize(numbers.len(), None);
        }
        let x = self.training.encode(log, &numbers);
        let mut fit_settings = gp_settings.fit_settings(&self.columns);
        let start = match self.training.fit() {
            Some(fit) => {
                // The last θ is the best start there is; another one tries whether the data have changed their mind.
                fit_settings.n_restarts = gp_settings.n_refit_restarts;
                fit.theta.clone()
            }
            None => gp_settings.first_theta(&self.columns),
        };
        // A fit needs two matrices of its own, and its end makes this factor useless as a rule.
        self.training.drop_factor();
        let data = Data {
            x: x.view(),
            y: &targets.values,
            noise: &noise,
            about_mean: self.settings.estimates_mean(self.columns.dimensions),
        };
        let families = gp_settings.families();
        let (family, theta) = fit_families(data, &start, &fit_settings, &families, rng, stop)?;
        Ok(Fit {
            family,
            theta,
            rows: Some(self.training.rows().len()),
            scale: targets.scale,
            success: self.fit_success(log, rng, stop)?,
        })
    }
}

/// A tail row's target before any θ.
fn prior_mean(target: &Target) -> f64 {
    match target {
        Target::Value(y) => *y,
        Target::PosteriorMean | Target::NearestMean(_) => 0.0,
    }
}
