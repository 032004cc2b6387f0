"""The literature's names make the optimizers that the papers describe."""

import numpy as np
import pytest

import belated as bl

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.mark.parametrize("name", bl.algorithms())
def test_every_name_runs(name):
    opt = bl.algorithm(name, SPACE, seed=0)
    for i in range(12):
        trial = opt.suggest()
        if i % 3:
            trial.observe(-((trial.params["x"] - 0.3) ** 2))
    assert opt.n_trials == 12 and len(opt.pending_) == 4


@pytest.mark.parametrize("name", bl.algorithms())
def test_every_name_runs_on_candidates(name):
    opt = bl.algorithm(name, candidates=np.linspace(0, 1, 20).reshape(-1, 1), seed=0)
    for _ in range(8):
        trial = opt.suggest()
        trial.observe(trial.x[0])
    assert 0 <= trial.index < 20


@pytest.mark.parametrize(
    "name, acquisition, pending",
    [
        ("GP-UCB-SDF", "ucb", "censor"),
        ("GP-TS-SDF", "thompson", "censor"),
        ("GP-UCB", "ucb", "ignore"),
        ("asy-TS", "thompson", "ignore"),
        ("GP-BUCB", "ucb", "hallucinate"),
        ("GP-BTS", "thompson", "hallucinate"),
        ("GP-EI", "log_ei", "ignore"),
    ],
)
def test_essence(name, acquisition, pending):
    opt = bl.algorithm(name, SPACE, window=7)
    assert (opt.acquisition, opt.pending, opt.window) == (acquisition, pending, 7)
    with pytest.raises(bl.InvalidSetting, match=f"would not be {name}"):
        bl.algorithm(name, SPACE, acquisition="ucb" if acquisition != "ucb" else "thompson")
    with pytest.raises(bl.InvalidSetting, match=f"would not be {name}"):
        bl.algorithm(name, SPACE, pending="ignore" if pending != "ignore" else "censor")


def test_what_a_paper_happens_to_use_can_be_changed():
    assert bl.algorithm("GP-UCB-SDF", SPACE).kernel == "squared_exponential"
    assert bl.algorithm("GP-UCB-SDF", SPACE, kernel="matern52", pending="censor").kernel == "matern52"


def test_unknown_names():
    with pytest.raises(bl.InvalidSetting, match="did you mean GP-UCB-SDF"):
        bl.algorithm("gp-ucb-sfd", SPACE)
    for name in ("simulated annealing", None, 3):
        with pytest.raises(bl.InvalidSetting, match="pass one of"):
            bl.algorithm(name, SPACE)


def test_unknown_arguments():
    with pytest.raises(bl.InvalidSetting, match=r"\['windw'\] are no arguments of GP-UCB-SDF"):
        bl.algorithm("GP-UCB-SDF", SPACE, windw=20)
    with pytest.raises(bl.InvalidSetting, match="asyRAND"):
        bl.algorithm("asyRAND", SPACE, window=20)
