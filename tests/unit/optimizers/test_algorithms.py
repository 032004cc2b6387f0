"""`algorithm` returns the optimizer that a paper describes under the given name."""

import math
import os

import numpy as np
import pytest

import belated as bl
from belated.study.definition import definition_of

FULL = os.environ.get("BELATED_FULL") == "1"
SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


SMOOTH = {"nu": 1.0, "rho": 0.95}
RANGE, NOISE, BOUND = {"bound__range": 1.0}, {"bound__noise_std": 0.1}, {"bound__b": 1.0}
POO, MF = {"horizon": 100}, {"fidelity": bl.Fidelity(0.0, 1.0)}
NEEDED = {
    "GP-UCB-SDF": {"window": 20},
    "GP-TS-SDF": {"window": 20},
    "PCTS-DUCB1": SMOOTH | RANGE,
    "PCTS-DUCB1-sigma": SMOOTH | NOISE,
    "PCTS-DUCBV": SMOOTH | BOUND,
    "HOO": SMOOTH | RANGE,
    "POO": SMOOTH | RANGE | POO,
    "MFHOO": SMOOTH | RANGE | MF,
    "MFPOO": SMOOTH | RANGE | MF | POO,
    "MFPOO-UCB1-sigma": SMOOTH | NOISE | MF | POO,
    "MFPOO-UCBV": SMOOTH | BOUND | MF | POO,
}


def needed(name):
    """Return the required arguments of an algorithm."""
    if name.startswith("BPE"):
        return {"horizon": 100, "lengthscale": 0.3, "noise_std": 0.1}
    return NEEDED.get(name, {})


@pytest.mark.parametrize("name", bl.algorithms())
def test_every_name_runs(name):
    opt = bl.algorithm(name, SPACE, seed=0, **needed(name))
    for i in range(12):
        trial = opt.suggest()
        if i % 3:
            trial.observe(-((trial.params["x"] - 0.3) ** 2))
    assert opt.n_trials == 12 and len(opt.pending) == 4


@pytest.mark.parametrize("name", bl.algorithms())
def test_every_name_runs_on_candidates_or_refuses_them(name):
    candidates = np.linspace(0, 1, 20).reshape(-1, 1)
    if type(bl.algorithm(name, SPACE, **needed(name))) is bl.TreeSearch or name in ("LP", "PLAyBOOK", "AEGiS"):
        with pytest.raises(bl.errors.InvalidSetting):
            bl.algorithm(name, candidates=candidates, **needed(name))
        return
    opt = bl.algorithm(name, candidates=candidates, seed=0, **needed(name))
    for _ in range(8):
        trial = opt.suggest()
        trial.observe(trial.x[0])
    assert 0 <= trial.index < 20


@pytest.mark.parametrize(
    "name, acquisition, pending",
    [
        ("GP-UCB-SDF", bl.UCB, bl.Censor),
        ("GP-TS-SDF", bl.ThompsonSampling, bl.Censor),
        ("GP-UCB", bl.UCB, bl.Ignore),
        ("asy-TS", bl.ThompsonSampling, bl.Ignore),
        ("GP-BUCB", bl.UCB, bl.Hallucinate),
        ("GP-BTS", bl.ThompsonSampling, bl.Hallucinate),
        ("GP-EI", bl.LogEI, bl.Ignore),
        ("seqTS", bl.ThompsonSampling, bl.Ignore),
        ("synTS", bl.ThompsonSampling, bl.Ignore),
        ("asyTS", bl.ThompsonSampling, bl.Ignore),
        ("asyHTS", bl.ThompsonSampling, bl.Hallucinate),
        ("asyUCB", bl.UCB, bl.Ignore),
        ("asyHUCB", bl.UCB, bl.Hallucinate),
        ("asyEI", bl.LogEI, bl.Ignore),
        ("synBUCB", bl.UCB, bl.Hallucinate),
        ("synUCBPE", bl.papers.UCBPE, bl.Hallucinate),
        ("AEGiS", bl.papers.AEGiS, bl.Ignore),
    ],
)
def test_settings_that_define_an_algorithm_cannot_be_replaced(name, acquisition, pending):
    opt = bl.algorithm(name, SPACE, window=7)
    settings = opt._settings()
    assert (type(settings["acquisition"]), type(settings["pending"]), opt.window) == (acquisition, pending, 7)
    same = bl.algorithm(name, SPACE, window=7, acquisition=settings["acquisition"], pending=settings["pending"])
    assert same._settings() == settings
    for other in ("ucb" if acquisition is not bl.UCB else "thompson", bl.papers.MaxVariance()):
        with pytest.raises(bl.errors.InvalidSetting, match=f"differs from {name}"):
            bl.algorithm(name, SPACE, window=7, acquisition=other)
    for other in ("ignore" if pending is not bl.Ignore else "censor", bl.Liar()):
        with pytest.raises(bl.errors.InvalidSetting, match=f"differs from {name}"):
            bl.algorithm(name, SPACE, window=7, pending=other)


def test_incidental_settings_of_a_paper_can_be_changed():
    plain = bl.algorithm("GP-UCB-SDF", SPACE, window=5)
    assert plain.surrogate.kernel == "squared_exponential" and plain.acquisition == bl.UCB(beta=1.0)
    changed = bl.algorithm(
        "GP-UCB-SDF", SPACE, window=5, surrogate__kernel="matern52", pending="censor", acquisition__beta=2.0
    )
    assert changed.surrogate.kernel == "matern52" and changed.acquisition.beta == 2.0
    whole = bl.algorithm("GP-UCB", SPACE, surrogate=bl.GP(ard=False), acquisition=bl.UCB())
    assert whole.surrogate == bl.GP(ard=False) and whole.acquisition == bl.UCB()
    assert bl.algorithm("GP-UCB", SPACE, surrogate=bl.GP(ard=False), surrogate__n_restarts=1).surrogate == bl.GP(
        ard=False, n_restarts=1
    )


@pytest.mark.parametrize("name", ["GP-UCB-SDF", "GP-TS-SDF"])
def test_sdf_discards_late_values_as_its_paper_does(name):
    def next_after_a_late_value(**option):
        optimizer = bl.algorithm(name, SPACE, window=2, seed=0, pending__floor=-1.0, initial=2, **option)
        for _ in range(6):
            trial = optimizer.suggest()
            if trial.number:
                trial.observe(-trial.params["x"])
        optimizer.observe(0, 5.0)
        assert optimizer.best_value_ == 5.0
        return optimizer.suggest().params

    assert bl.algorithm(name, SPACE, window=2).get_params()["pending"] == bl.Censor(late="discard", repeats=True)
    assert next_after_a_late_value() == next_after_a_late_value(pending__late="discard")
    assert next_after_a_late_value() != next_after_a_late_value(pending__late="accept")


@pytest.mark.parametrize("name", NEEDED)
def test_missing_arguments_of_an_algorithm_are_named(name):
    for argument in NEEDED[name]:
        others = {other: value for other, value in NEEDED[name].items() if other != argument}
        for option in ({}, {argument: None}):
            with pytest.raises(bl.errors.InvalidSetting, match=f"^{argument} is missing: {name} "):
                bl.algorithm(name, SPACE, **others, **option)
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        bl.algorithm(name, SPACE)
    message = str(caught.value)
    assert "\n" not in message and all(argument in message for argument in NEEDED[name])
    assert ("nu=1, rho=0.95" in message) == ("nu" in NEEDED[name])
    assert ("the largest" in message) == ("horizon" in NEEDED[name])


def test_required_arguments_may_be_fields_of_a_setting():
    bl.algorithm("PCTS-DUCB1-sigma", SPACE, bound=bl.papers.DUCB1Sigma(noise_std=0.1), **SMOOTH)
    bl.algorithm("HOO", SPACE, bound=bl.papers.DUCB1(range=1.0), **SMOOTH)
    for bound in ("ducb1", bl.papers.DUCB1()):
        with pytest.raises(bl.errors.InvalidSetting, match="^bound__range is missing"):
            bl.algorithm("HOO", SPACE, bound=bound, **SMOOTH)


def two_peaks(u):
    """Return a function with the maximum 1 in a small ball, and a local maximum of 0.6 in a larger ball."""
    from_best, from_local = (math.dist(u, [at] * len(u)) for at in (0.85, 0.2))
    return max(0.0, 0.6 - 3 * from_local, 1 - 10 * from_best)


@pytest.mark.parametrize("name", ["HOO", "PCTS-DUCB1", "PCTS-DUCB1-sigma", "PCTS-DUCBV", "POO"])
@pytest.mark.parametrize("d, delay, noise", [(1, 30, 0.1), (2, 1, 0.0)])
def test_trees_with_the_constants_of_the_theorems_leave_a_local_maximum(name, d, delay, noise):
    """With shares of the observed values in their place, up to half of the runs stayed at the local maximum."""
    smooth = {"nu": 20 * d**0.5, "rho": 0.5 ** (1 / d)}
    for seed in range(3 if FULL else 1):
        rng = np.random.default_rng(seed)
        constants = NEEDED[name] | smooth | ({"horizon": 2000} if name == "POO" else {})
        optimizer = bl.algorithm(name, {f"x{i}": (0.0, 1.0) for i in range(d)}, seed=seed, **constants)
        waiting, values = [], []
        for _ in range(2000):
            waiting.append(optimizer.suggest())
            values.append(two_peaks([*waiting[-1].params.values()]))
            if len(waiting) > delay:
                trial = waiting.pop(0)
                trial.observe(values[trial.number] + noise * rng.standard_normal())
        assert max(values[1000:]) > 0.7


@pytest.mark.parametrize(
    "name, bound", [("HOO", bl.papers.DUCB1), ("PCTS-DUCBV", bl.papers.DUCBV), ("POO", bl.papers.DUCB1)]
)
def test_trees_have_the_bound_of_their_name(name, bound):
    optimizer = bl.algorithm(name, SPACE, **needed(name))
    assert type(optimizer) is bl.TreeSearch and type(optimizer._settings()["bound"]) is bound
    with pytest.raises(bl.errors.InvalidSetting, match=f"differs from {name}"):
        bl.algorithm(name, SPACE, **needed(name) | {"bound": bl.papers.DUCB1Sigma(noise_std=0.1)})


def test_local_penalties_have_either_acquisition():
    for name, policy in (("LP", bl.papers.LocalPenalization), ("PLAyBOOK", bl.papers.PLAyBOOK)):
        for acquisition in ("ucb", bl.UCB(1.0), "log_ei", bl.LogEI(incumbent="best_value")):
            settings = bl.algorithm(name, SPACE, acquisition=acquisition)._settings()
            assert settings["pending"] == policy()
            assert isinstance(acquisition, str) or settings["acquisition"] == acquisition
        assert bl.algorithm(name, SPACE, acquisition__beta=1.0).acquisition == bl.UCB(1.0)
        with pytest.raises(bl.errors.InvalidSetting, match=f"differs from {name}"):
            bl.algorithm(name, SPACE, pending="ignore")


def test_names_are_found_in_upper_or_lower_case():
    for name in bl.algorithms():
        lower, upper = (bl.algorithm(each, SPACE, seed=0, **needed(name)) for each in (name.lower(), name.upper()))
        assert definition_of(lower) == definition_of(upper)


def test_algorithms_lists_the_papers():
    papers = bl.algorithms()
    assert papers["GP-BTS"].startswith("Chowdhury & Gopalan 2019") and papers["GP-UCB-SDF"].startswith("Verma")


def test_unknown_names():
    with pytest.raises(bl.errors.InvalidSetting, match="did you mean GP-UCB-SDF"):
        bl.algorithm("gp-ucb-sfd", SPACE)
    for name in ("simulated annealing", None, 3):
        with pytest.raises(bl.errors.InvalidSetting, match="pass one of"):
            bl.algorithm(name, SPACE)


@pytest.mark.parametrize(
    "name, argument, advice",
    [
        ("GP-UCB-SDF", {"windw": 20}, "windw=20 is not an argument of GP-UCB-SDF: did you mean window"),
        ("GP-UCB", {"random_state": 0}, "did you mean seed"),
        ("GP-UCB", {"beta": 2.0}, "did you mean acquisition__beta"),
        ("GP-UCB", {"noise": 2.0}, "did you mean surrogate__noise_std"),
        ("GP-UCB", {"surrogate__krnel": 2.0}, "did you mean surrogate__kernel"),
        ("GP-UCB", {"pending__floor": 2.0}, r"not a field of Ignore: did you mean pending=bl.Censor\(floor="),
        ("GP-UCB", {"window__m": 2.0}, "window__m=2.0 is not an argument of"),
        ("asyRAND", {"window": 20}, "asyRAND"),
    ],
    ids=str,
)
def test_unknown_arguments(name, argument, advice):
    with pytest.raises(bl.errors.InvalidSetting, match=advice):
        bl.algorithm(name, SPACE, **argument)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("MFPOO-UCB1-sigma", bl.papers.DUCB1Sigma(noise_std=0.1)), ("MFPOO-UCBV", bl.papers.DUCBV(b=1.0))],
)
def test_the_bound_of_mfpoo_is_in_its_name(name, bound):
    """If there are no delays, PCTS uses the bounds UCB1-sigma and UCB-V, and is the same search as `MFPOO` with these
    bounds."""
    level = bl.Fidelity(0.0, 1.0, cost=bl.PowerCost(0.05, 3), bias=0.5)

    def points(optimizer):
        for _ in range(60):
            trial = optimizer.suggest()
            trial.observe(-((trial.params["x"] - 0.3) ** 2) - trial.params["y"])
        return [(trial.params, trial.fidelity) for trial in optimizer.trials]

    arguments = {"fidelity": level, "horizon": 60, "seed": 0}
    named = bl.algorithm(name, SPACE, **arguments | NEEDED[name] | {"fidelity": level, "horizon": 60})
    direct = bl.TreeSearch(SPACE, bound=bound, front=False, **SMOOTH, **arguments)
    assert len(named.trees_) > 1 and points(named) == points(direct)
    with pytest.raises(bl.errors.InvalidSetting):
        bl.algorithm(name, SPACE, horizon=60)


@pytest.mark.parametrize("seed", range(2, 12))
def test_the_pareto_set_of_aegis_leaves_out_points_that_were_just_abandoned(seed):
    optimizer = bl.algorithm("AEGiS", space={"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=seed, direction="maximize")
    first = optimizer.suggest()
    optimizer.add(first.params, -1e8)  # the far value leaves one point in the set
    first.abandon()
    optimizer.suggest().fail()
    abandoned = []
    for trial in (optimizer.suggest() for _ in range(12)):
        here = (trial.params["x"], trial.params["y"])
        assert all(np.hypot(*np.subtract(here, there)) > 1e-3 for there in abandoned)
        if trial.number >= 4:
            trial.abandon()
            abandoned.append(here)
