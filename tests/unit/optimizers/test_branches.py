"""The minimum share of the trials that each branch of a conditional space gets."""

import collections
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

SPACE = {
    "kind": ["flat", "peak", "low"],
    "x": bl.Ordinal([*range(20)], when={"kind": "flat"}),
    "y": bl.Ordinal([*range(20)], when={"kind": "peak"}),
    "z": bl.Ordinal([*range(20)], when={"kind": "low"}),
}
TWO = {"kind": ["a", "b"], **{f"x{i}": bl.Real(0.0, 1.0, when={"kind": "a"}) for i in range(5)}}
TWO |= {"y": bl.Real(0.0, 1.0, when={"kind": "b"})}


def value(params):
    """A plateau, a choice with very different values, and a choice that is bad everywhere."""
    match params:
        case {"kind": "flat", "x": x}:
            return 0.85 + 0.001 * (x % 3)
        case {"kind": "peak", "y": y}:
            return 0.8 * 0.6 ** (7 * y % 20)
        case {"kind": "low", "z": z}:
            return 0.1 + 0.001 * z


def below_minimum(opt):
    """Return the choices of which one must be suggested next, from the definition of the rule."""
    trials = {kind: [trial for trial in opt.trials if trial.params["kind"] == kind] for kind in SPACE["kind"]}
    values = {kind: sorted(t.value for t in own if t.value is not None) for kind, own in trials.items()}
    best = max((own[-1] for own in values.values() if own), default=-np.inf)

    def is_open(kind):
        if not any(values.values()) or best in values[kind]:
            return True
        if sum(trial.state == "failed" for trial in trials[kind]) > len(values[kind]):
            return False
        match values[kind]:
            case [*_, second, first]:
                return first + 3 * (first - second) >= best
        return True

    n = {kind: len(own) for kind, own in trials.items() if is_open(kind)}
    share = 0.6 * sum(n.values()) / max(len(n), 1)
    short = [kind for kind in n if n[kind] < min(share, 20) and share >= 1]
    return [kind for kind in short if n[kind] == min(n[each] for each in short)]


def run(f=value, n=60, space=SPACE, seed=0):
    opt = bl.BayesOpt(space, seed=seed)
    for _ in range(n):
        trial = opt.suggest()
        result = f(trial.params)
        if result is None:
            trial.fail()
        else:
            trial.observe(result)
    return opt


def counts(opt, name="kind"):
    return collections.Counter(trial.params[name] for trial in opt.trials)


def test_a_choice_that_is_bad_everywhere_does_not_get_a_share():
    for seed in range(5):
        assert counts(run(seed=seed))["low"] < 0.6 * 60 / 3


def good(params):
    """A noisy function of the parameters of choice a."""
    noise = np.random.default_rng(round(1e6 * params["x0"])).normal()
    return 1 - sum((1 + i) * (params[f"x{i}"] - 0.3) ** 2 for i in range(5)) + 0.02 * noise


def added(space=TWO, n=30):
    """Return an optimizer with n trials of choice a, after the initial design."""
    opt = bl.BayesOpt(space, seed=0, initial=1)
    opt.suggest()
    for x in np.random.default_rng(0).random((n, 5)):
        params = {"kind": "a", **{f"x{i}": value for i, value in enumerate(x)}}
        opt.add(params, good(params))
    return opt


THREE = TWO | {"kind": ["a", "b", "c"], "z": bl.Real(0.0, 1.0, when={"kind": "c"})}


def test_a_choice_without_results_gets_its_share_of_pending_trials():
    assert [trial.params["kind"] for trial in added().suggest(n=8)] == ["b"] * 8
    kinds = collections.Counter(trial.params["kind"] for trial in added(THREE).suggest(n=11))
    assert kinds["a"] == 0 and min(kinds["b"], kinds["c"]) >= 5


@pytest.mark.parametrize("values", [[], [0.0], [0.0, -3.0]])
def test_a_choice_that_nearly_always_fails_does_not_get_a_share(values):
    first = iter(values)
    opt = run(lambda params: next(first, None) if params["kind"] == "b" else good(params), 100, TWO)
    assert counts(opt)["b"] < 20


@pytest.mark.parametrize("is_measured", [True, False])
def test_a_choice_whose_values_are_beyond_a_bound_does_not_get_a_share(is_measured):
    opt = bl.BayesOpt(TWO, seed=0, outcomes={"v": "maximize", "m": bl.AtMost(1.0)})
    for _ in range(100):
        trial = opt.suggest()
        match trial.params:
            case {"kind": "a"}:
                trial.observe({"v": good(trial.params), "m": 0.0})
            case _:
                trial.observe({"v": 0.0, "m": 9.0} if is_measured else {"m": 9.0})
    assert counts(opt)["b"] < 20


def test_a_choice_whose_trials_are_stopped_does_not_get_a_share():
    opt = bl.BayesOpt(TWO, seed=0, curve=bl.Curve(10), stopping="median")
    for _ in range(100):
        trial = opt.suggest()
        is_bad = trial.params["kind"] == "b"
        trial.report(-9.0 if is_bad else good(trial.params), 1)
        if is_bad:
            trial.stop()
        else:
            trial.observe(good(trial.params))
    assert counts(opt)["b"] < 20


def test_trials_that_were_run_at_another_choice_count_for_the_suggested_choice():
    opt, suggested = bl.BayesOpt(TWO, seed=0), []
    for number in range(100):
        trial = opt.suggest()
        suggested.append(trial.params["kind"])
        if suggested[-1] == "b":
            trial.observe(-1.0, params={"kind": "a", **dict.fromkeys(["x0", "x1", "x2", "x3", "x4"], number % 10 / 10)})
        else:
            trial.observe(good(trial.params))
    assert suggested[50:].count("a") > 5


def test_points_without_noise_are_not_repeated_while_other_points_are_left():
    space = SPACE | {"z": bl.Ordinal([0, 1, 2], when={"kind": "low"})}
    opt = bl.BayesOpt(space, seed=0, surrogate=bl.GP(noise_std=0.0))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="every point")
        for number in range(43):
            trial = opt.suggest()
            trial.observe(number % 7 + (trial.params["kind"] == "low"))
    assert len({repr(trial.params) for trial in opt.trials}) == 43


def test_points_that_were_run_instead_of_others_are_not_repeated():
    opt = bl.BayesOpt(SPACE, seed=0, surrogate=bl.GP(noise_std=0.0))
    for z in range(20):
        opt.suggest(fixed={"kind": "flat"}).observe(float(z % 4), params={"kind": "low", "z": z})
    assert "low" not in {trial.params["kind"] for trial in opt.suggest(n=4)}


def test_choices_with_the_same_parameters_are_one_branch():
    space = {"solvent": [f"s{i}" for i in range(8)], "x": (0.0, 1.0), "salt": bl.Real(0.0, 1.0, when={"solvent": "s0"})}
    opt = bl.BayesOpt(space, seed=0, initial=1)
    opt.suggest()
    for x in np.random.default_rng(0).random(80):
        opt.add({"solvent": "s7", "x": x}, x)
    assert [trial.params["solvent"] for trial in opt.suggest(n=6)] == ["s0"] * 6


def test_a_recorded_outcome_that_fails_does_not_close_a_branch():
    outcomes = {"v": "maximize", "r": bl.Record()}
    opt = bl.BayesOpt(TWO, seed=0, initial=1, outcomes=outcomes)
    for number in range(20):
        params = {"kind": "a", **dict.fromkeys(["x0", "x1", "x2", "x3", "x4"], number / 20)}
        opt.add(params, {"v": good(params), "r": 0.0})
    for y in (0.1, 0.5, 0.9):
        opt.add({"kind": "b", "y": y}, {"v": y}).fail(outcome="r")
    assert [trial.params["kind"] for trial in opt.suggest(n=3)] == ["b"] * 3


def test_many_choices_are_not_tried_in_turn():
    kinds = [f"k{i}" for i in range(50)]
    space = {"kind": kinds, "T": (0.0, 1.0), **{f"x{kind}": bl.Real(0.0, 1.0, when={"kind": kind}) for kind in kinds}}
    opt = run(lambda params: params["T"] + (params["kind"] == "k3"), n=40, space=space)
    assert len(counts(opt)) < 30


def test_fixed_values_are_kept():
    opt = added(THREE)
    kinds = [trial.params["kind"] for trial in opt.suggest(n=8, fixed={"kind": ["a", "b"]})]
    assert kinds == ["b"] * 8
    assert {trial.params["kind"] for trial in opt.suggest(n=20, fixed={"kind": "a"})} == {"a"}


def test_a_choice_that_is_no_longer_offered_is_not_suggested(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", added(THREE))
    study.revise(space=TWO)
    assert [study.suggest().params["kind"] for _ in range(8)] == ["b"] * 8


def test_constraints_hold_for_every_choice():
    opt = bl.BayesOpt(SPACE, seed=0, constraints=[lambda params: params["kind"] != "peak"])
    for _ in range(30):
        trial = opt.suggest()
        trial.observe(value(trial.params))
    assert "peak" not in counts(opt)


def test_several_categories_get_shares():
    space = {
        "model": ["a", "b"],
        "x": bl.Real(0.0, 1.0, when={"model": "a"}),
        "y": bl.Real(0.0, 1.0, when={"model": "b"}),
        "scaler": ["none", "power"],
        "p": bl.Real(0.0, 1.0, when={"scaler": "power"}),
    }
    opt = bl.BayesOpt(space, seed=0)
    opt.add({"model": "a", "x": 0.5, "scaler": "none"}, 1.0)
    opt.suggest(n=40)
    for name in ("model", "scaler"):
        assert min(counts(opt, name).values()) >= 0.6 * 41 / 2 - 1


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 5),
    st.lists(
        st.sampled_from(["value", "noise", "constant", "huge", "fail", "abandon", "wait"]), min_size=10, max_size=50
    ),
)
def test_the_open_choice_with_the_fewest_trials_is_suggested_if_it_lacks_its_share(seed, results):
    opt, noise = bl.BayesOpt(SPACE, seed=seed, initial=3), np.random.default_rng(seed)
    opt.add({"kind": "flat", "x": 0}, 0.85)
    for number, result in enumerate(results):
        expected = below_minimum(opt) if number >= 3 else []
        trial = opt.suggest()
        assert not expected or trial.params["kind"] in expected
        match result:
            case "value":
                trial.observe(value(trial.params))
            case "noise":
                trial.observe(noise.normal())
            case "constant":
                trial.observe(0.5)
            case "huge":
                trial.observe(1e12)
            case "fail":
                trial.fail()
            case "abandon":
                trial.abandon()
    copy = pickle.loads(pickle.dumps(opt))
    assert [copy.suggest().params for _ in range(3)] == [opt.suggest().params for _ in range(3)]
