"""`suggest(shared=...)`: all trials of a batch have the values of its first trial."""

import pickle

import numpy as np
import pytest

import belated as bl
from belated.errors import InvalidPoint, InvalidSetting, InvalidSpace

THETA = {"lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1, "targets": "raw"}
SPACE = {"T": (20.0, 90.0), "kind": ["a", "b", "c"], "n": (1, 4), "x": (0.0, 1.0)}


def informed(optimizer, n=12):
    rng = np.random.default_rng(0)
    for trial in optimizer.suggest(n=n):
        optimizer.observe(trial, float(rng.normal()))
    return optimizer


def made(kind=bl.BayesOpt, space=SPACE, **arguments):
    if kind is bl.BayesOpt:
        arguments = {"surrogate": bl.GP(**THETA), "initial": bl.Initial(4)} | arguments
    return kind(space, seed=0, **arguments)


@pytest.mark.parametrize("n_observed", [0, 12])
@pytest.mark.parametrize("shared", [["T"], ["kind"], ["kind", "n"], ["T", "kind"], ["T", "kind", "n", "x"]])
@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_all_trials_have_the_shared_values(kind, shared, n_observed):
    opt = made(kind)
    if n_observed:
        informed(opt, n_observed)
    before = opt._log.n_events()
    trials = opt.suggest(n=4, shared=shared)
    assert opt._log.n_events() == before + 4
    assert all(len({trial.params[name] for trial in trials}) == 1 for name in shared)
    if "x" not in shared:
        assert len({trial.params["x"] for trial in trials}) == 4


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson", "ucb_pe", "max_variance"])
def test_every_acquisition_shares(acquisition):
    opt = informed(made(acquisition=acquisition))
    assert len({trial.params["T"] for trial in opt.suggest(n=3, shared=["T"])}) == 1
    assert len({trial.params["kind"] for trial in opt.suggest(n=3, shared=["kind"], fixed={"T": 33.0})}) == 1


@pytest.mark.parametrize("n_observed", [0, 12])
@pytest.mark.parametrize("fixed", [None, {"n": [2, 3]}])
@pytest.mark.parametrize("shared", [["T"], ["kind"], ["T", "kind", "n"]])
@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_the_batch_equals_a_suggestion_followed_by_fixed_values(kind, shared, fixed, n_observed):
    opt, twin = (informed(made(kind), n_observed) if n_observed else made(kind) for _ in range(2))
    for _ in range(2):
        batch = opt.suggest(n=4, shared=shared, fixed=fixed)
        first = twin.suggest(fixed=fixed)
        values = {name: first.params[name] for name in shared}
        others = twin.suggest(n=3, fixed={**(fixed or {}), **values})
        assert [trial.params for trial in batch] == [trial.params for trial in [first, *others]]
        for trial, other in zip(batch, [first, *others], strict=True):
            opt.observe(trial, trial.params["x"])
            twin.observe(other, other.params["x"])


def test_shared_values_keep_linear_constraints():
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}
    for kind in (bl.BayesOpt, bl.RandomSearch):
        opt = kind(space, constraints=[bl.Mixture(["a", "b", "c"])], seed=0)
        for _ in range(3):
            trials = opt.suggest(n=3, shared=["a"])
            assert len({trial.params["a"] for trial in trials}) == 1
            assert len({trial.params["b"] for trial in trials}) == 3
            for trial in trials:
                assert abs(sum(trial.params.values()) - 1) < 1e-9
                opt.observe(trial, trial.params["b"])
        # With two values, the third one is determined.
        trials = opt.suggest(n=2, shared=["a", "b"])
        assert trials[0].params == pytest.approx(trials[1].params, abs=1e-12)


@pytest.mark.parametrize("fixed", [None, {"y": (0.2, 0.9)}])
@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_free_parameters_do_not_depend_on_the_shared_value(kind, fixed):
    opt = kind({"T": (0.0, 1.0), "x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    points = [list(opt.suggest(n=1, shared=["T"], fixed=fixed)[0].params.values()) for _ in range(60)]
    correlations = np.corrcoef(np.array(points).T)[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < 0.4).all()  # 3 standard errors


def test_candidates_share_columns():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 4, 60), rng.integers(0, 2, 60), rng.random(60)]).astype(float)
    for kind in (bl.BayesOpt, bl.RandomSearch):
        opt = kind(candidates=rows, seed=0)
        for _ in range(3):
            trials = opt.suggest(n=4, shared=[0, 1], fixed={0: [1.0, 2.0]})
            assert len({tuple(trial.params[:2]) for trial in trials}) == 1
            assert trials[0].params[0] in (1.0, 2.0)
            assert len({trial.index for trial in trials}) == 4
            for trial in trials:
                opt.observe(trial, float(trial.params.sum()))


def test_columns_that_do_not_exist_are_refused():
    opt = bl.BayesOpt(candidates=[[0.0, 1.0], [1.0, 1.0]], seed=0)
    for column in (2, -1, "2", "x", "1" * 5000):
        with pytest.raises(InvalidSetting):
            opt.suggest(shared=[column])
        with pytest.raises(InvalidPoint):
            opt.suggest(fixed={column: 1.0})


@pytest.mark.parametrize("n_observed", [0, 8])
def test_parameters_with_many_values(n_observed):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 50, 400), rng.random(400)]).astype(float)
    for opt, name in (
        (bl.BayesOpt(candidates=rows, seed=0), 0),
        (bl.BayesOpt({"n": (1, 1000), "x": (0.0, 1.0)}, seed=0), "n"),
    ):
        for trial in opt.suggest(n=n_observed):
            opt.observe(trial, float(rng.normal()))
        for fixed in (None, {name: (5, 45)}):
            trials = opt.suggest(n=3, shared=[name], fixed=fixed)
            found = {trial.params[name] for trial in trials}
            assert len(found) == 1 and (fixed is None or 5 <= found.pop() <= 45)


def test_enqueued_points_determine_the_shared_values():
    opt = informed(made())
    opt.enqueue([{"T": 40.0}, {"kind": "b"}, {"T": 40.0, "kind": "a", "n": 1, "x": 0.5}, {"T": 50.0}])
    trials = opt.suggest(n=4, shared=["T"])
    assert [trial.params["T"] for trial in trials] == [40.0] * 4
    assert trials[1].params["kind"] == "b" and trials[2].params["x"] == 0.5
    assert opt.suggest(n=2, shared=["kind"])[0].params["T"] == 50.0


def test_batches_are_reproduced_from_the_log_and_errors_leave_it_unchanged(tmp_path):
    opt, twin = informed(made()), informed(made())
    copied = pickle.loads(pickle.dumps(opt))
    points = [trial.params for trial in opt.suggest(n=3, shared=["T"])]
    assert points == [trial.params for trial in twin.suggest(n=3, shared=["T"])]
    assert points == [trial.params for trial in copied.suggest(n=3, shared=["T"])]
    # After the batch, the twins go on alike, and a restored copy does, too.
    restored = pickle.loads(pickle.dumps(opt))
    assert opt.suggest().params == twin.suggest().params == restored.suggest().params
    n_events = opt._log.n_events()
    for shared in (["Temp"], "T", [3], [["T"]], {"T": 1}, 5):
        with pytest.raises(InvalidSetting):
            opt.suggest(n=2, shared=shared)
    with pytest.raises(InvalidPoint):
        opt.suggest(n=2, shared=["T"], fixed={"T": 3.0})
    assert opt._log.n_events() == n_events
    assert opt.suggest(n=0, shared=["T"]) == []
    assert len(opt.suggest(n=2, shared=[])) == 2


def test_parameters_with_conditions_are_not_shared():
    space = {"kernel": ["rbf", "poly"], "degree": bl.Integer(1, 5, when={"kernel": "poly"}), "cache": 3}
    opt = bl.BayesOpt(space, seed=0)
    with pytest.raises(InvalidSetting, match="conditions"):
        opt.suggest(n=2, shared=["degree"])
    trials = opt.suggest(n=3, shared=["kernel", "cache"])
    assert len({trial.params["kernel"] for trial in trials}) == 1


def test_constraints_hold_for_the_whole_batch():
    opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=[lambda p: p["a"] + p["b"] <= 0.4], seed=1)
    for _ in range(3):
        for trial in opt.suggest(n=4, shared=["a"]):
            assert trial.params["a"] + trial.params["b"] <= 0.4
            opt.observe(trial, trial.params["a"] - trial.params["b"])
    with pytest.raises(InvalidSpace):
        opt.suggest(n=2, shared=["a"], fixed={"b": 0.5})


def test_an_interrupted_batch_leaves_the_log_unchanged():
    calls = []

    def interrupting(params):
        calls.append(params)
        if len(calls) > 3000:
            raise KeyboardInterrupt
        return True

    opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=[interrupting], initial=bl.Initial(2), seed=1)
    for trial in opt.suggest(n=4):
        opt.observe(trial, trial.params["a"])
    n_events, data = opt._log.n_events(), opt._log.to_bytes()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(50):
            opt.suggest(n=4, shared=["a"])
            data, n_events = opt._log.to_bytes(), opt._log.n_events()
    assert opt._log.n_events() == n_events and opt._log.to_bytes() == data
