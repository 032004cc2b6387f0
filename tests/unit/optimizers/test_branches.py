"""The least share of the trials that each choice gets on which other parameters depend."""

import collections
import pickle
import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

SPACE = {
    "kind": ["flat", "peak", "low"],
    "x": bl.Ordinal([*range(20)], when={"kind": "flat"}),
    "y": bl.Ordinal([*range(20)], when={"kind": "peak"}),
    "z": bl.Ordinal([*range(20)], when={"kind": "low"}),
}


def value(params):
    """A plateau, a choice with very different values, and a choice that is bad everywhere."""
    match params:
        case {"kind": "flat", "x": x}:
            return 0.85 + 0.001 * (x % 3)
        case {"kind": "peak", "y": y}:
            return 0.8 * 0.6 ** (7 * y % 20)
        case {"kind": "low", "z": z}:
            return 0.1 + 0.001 * z


def neglected(opt):
    """Return the choices of which one must be suggested next, or None, from the definition of the rule."""
    trials = {kind: [trial for trial in opt.trials if trial.params["kind"] == kind] for kind in SPACE["kind"]}
    values = {kind: sorted(t.value for t in own if t.value is not None) for kind, own in trials.items()}
    best = max(own[-1] for own in values.values() if own)

    def is_open(kind):
        match values[kind]:
            case []:
                return all(trial.state in ("pending", "abandoned") for trial in trials[kind])
            case [_]:
                return True
            case [*_, second, first]:
                return first + 3 * (first - second) >= best

    n = {kind: len(own) for kind, own in trials.items() if is_open(kind)}
    share = 0.6 * sum(n.values()) / len(n)
    short = [kind for kind in n if n[kind] < min(share, 20)]
    return [kind for kind in short if n[kind] == min(n[each] for each in short)]


def run(f=value, n=60, space=SPACE, seed=0, **arguments):
    opt = bl.BayesOpt(space, seed=seed)
    for _ in range(n):
        trial = opt.suggest(**arguments)
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


def test_a_choice_without_results_gets_a_share_of_the_pending_trials():
    opt = bl.BayesOpt(SPACE, seed=0)
    opt.add({"kind": "flat", "x": 0}, 0.5)
    for trial in opt.suggest(n=60):
        assert trial.value is None
    assert min(counts(opt).values()) >= 0.6 * 60 / 3


def test_a_choice_that_always_fails_does_not_get_a_share():
    opt = run(lambda params: None if params["kind"] == "peak" else value(params), n=50)
    assert counts(opt)["peak"] < 0.6 * 50 / 3


def test_a_choice_does_not_get_more_trials_than_it_has_points():
    space = SPACE | {"z": bl.Ordinal([*range(3)], when={"kind": "low"})}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt = run(lambda params: np.random.default_rng(len(repr(params))).normal(), n=30, space=space)
    assert counts(opt)["low"] >= 3


def test_fixed_values_are_kept():
    opt = run(n=20, fixed={"kind": ["flat", "low"]})
    assert "peak" not in counts(opt)
    opt = run(n=20, fixed={"kind": "low"})
    assert set(counts(opt)) == {"low"}


def test_a_choice_that_is_no_longer_offered_is_not_suggested(tmp_path):
    study = bl.Study("s", f"sqlite:///{tmp_path}/s.db", bl.BayesOpt(SPACE, seed=0))
    for _ in range(20):
        trial = study.suggest()
        trial.observe(value(trial.params))
    study.revise(space={"kind": ["flat", "low"], "x": SPACE["x"], "z": SPACE["z"]})
    new = [study.suggest() for _ in range(20)]
    assert "peak" not in {trial.params["kind"] for trial in new}


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
        expected = neglected(opt) if number >= 3 else []
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
