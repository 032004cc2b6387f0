"""After 60 trials on a bowl every strategy has a smaller regret than random search."""

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
SEEDS = range(4)
STRATEGIES = {
    "random": lambda seed: bl.RandomSearch(SPACE, seed=seed),
    "tree": lambda seed: bl.TreeSearch(SPACE, seed=seed),
    **{
        name: lambda seed, name=name: bl.BayesOpt(SPACE, acquisition=name, seed=seed)
        for name in ("ucb", "log_ei", "thompson")
    },
}


def regret(strategy, seed, failing):
    """Return the regret after 60 trials, with four trials in flight. The given share of the trials fails at random."""
    opt, rng = STRATEGIES[strategy](seed), np.random.default_rng(seed)
    in_flight = opt.suggest(n=4)
    while in_flight:
        trial = in_flight.pop(int(rng.integers(len(in_flight))))
        if rng.random() < failing:
            trial.fail()
        else:
            x, y = trial.params["x"], trial.params["y"]
            trial.observe(-((x - 0.3) ** 2) - (y - 0.7) ** 2)
        if opt.n_trials < 60:
            in_flight.append(opt.suggest())
    return -opt.best_value_


@pytest.mark.parametrize("failing", [0.0, 0.1])
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "random"])
def test_strategies_beat_random_search(strategy, failing):
    ours, random = (np.log10([regret(name, seed, failing) + 1e-12 for seed in SEEDS]) for name in (strategy, "random"))
    ahead = random - ours
    assert ahead.mean() > 2 * ahead.std(ddof=1) / np.sqrt(len(SEEDS))
    # For every seed, the regret with a model is at most 1 % of the regret of random search.
    assert strategy == "tree" or ahead.min() > 2
