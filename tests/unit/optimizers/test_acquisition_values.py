"""Suggestions on a grid, compared with formulas that use the public predictions."""

import pytest
from scipy.stats import norm

import belated as bl

GRID = [{"k": k} for k in range(31)]
GIVEN = bl.GP(kernel="matern52", lengthscale=0.3, signal_std=1.0, noise_std=0.5, mean="zero", targets="raw")
DATA = {30: 0.3, 6: -0.6, 20: 1.0, 23: -0.3, 8: -0.3, 13: -0.8, 11: 0.5, 2: -0.1}


def with_data(**settings):
    opt = bl.BayesOpt({"k": bl.Integer(0, 30)}, surrogate=GIVEN, initial=0, seed=0, **settings)
    opt.add([{"k": k} for k in DATA], list(DATA.values()))
    return opt


@pytest.mark.parametrize("incumbent", ["posterior_mean", "best_value"])
def test_improvement_is_measured_from_the_chosen_incumbent(incumbent):
    opt = with_data(acquisition=bl.LogEI(incumbent=incumbent), pending="ignore")
    mean, std = opt.predict(GRID)
    best = max(DATA.values()) if incumbent == "best_value" else max(mean[k] for k in DATA)
    u = (mean - best) / std
    improvement = std * (u * norm.cdf(u) + norm.pdf(u))
    assert opt.suggest().params["k"] == improvement.argmax()


def test_the_two_incumbents_differ_where_values_are_noisy():
    chosen = {
        name: with_data(acquisition=bl.LogEI(incumbent=name), pending="ignore").suggest().params["k"]
        for name in ("posterior_mean", "best_value")
    }
    assert chosen["posterior_mean"] != chosen["best_value"]
    assert bl.algorithm("GP-EI", {"k": (0.0, 1.0)}).acquisition.incumbent == "best_value"


@pytest.mark.parametrize("window", [None, 50.0])
def test_nu_counts_a_pending_trial_until_its_lease_expires(tmp_path, window):
    """nu_t is the sum of beta_t and the standard deviations at all trials whose values may still arrive."""
    now = [0.0]
    opt = with_data(acquisition=bl.UCB(1.0), pending=bl.Censor(floor=-1.0, repeats=True), window=window)
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt, time=lambda: now[0])
    out = study.suggest(3, expires_after=10.0)
    for seconds, arriving in ((5.0, out), (10.5, [])):
        now[0] = seconds
        mean, std = study.predict(GRID, pending=True)
        nu = 1.0 + sum(std[trial.params["k"]] for trial in arriving)
        expected = int((mean + nu * std).argmax())
        trial = study.suggest()
        assert trial.params["k"] == expected
        study.abandon(trial)
