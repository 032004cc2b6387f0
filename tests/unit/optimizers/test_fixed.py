"""`suggest(fixed=...)` holds parameters, and a partial `enqueue` is completed in the same way."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl
from belated.errors import InvalidPoint, InvalidSetting, InvalidSpace

THETA = {"lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1}
GP = bl.GP(**THETA)
SPACE = {
    "T": (20.0, 90.0),
    "rate": bl.Real(1e-4, 1.0, log=True),
    "grid": bl.Real(0.0, 1.0, step=0.1),
    "n": (1, 8),
    "width": bl.Integer(1, 512, log=True),
    "batch": bl.Ordinal([16, 32, 64]),
    "solvent": ["water", "ether", None],
    "kernel": ["rbf", "poly", "linear"],
    "degree": bl.Integer(1, 5, when={"kernel": "poly"}),
    "gamma": bl.Real(0.1, 10.0, log=True, when={"kernel": ["rbf", "poly"]}),
}


def f(params):
    """Return a value that depends on every number of params."""
    numbers = [value for value in params.values() if isinstance(value, (int, float)) and value is not None]
    return float(np.sin(np.sum(np.log1p(np.abs(numbers)))))


def informed(optimizer, n=12):
    for trial in optimizer.suggest(n=n):
        optimizer.observe(trial, f(trial.params))
    return optimizer


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_suggestions_hold_random_values_of_random_spaces(data):
    """Every suggestion has the fixed values bit for bit, and belongs to the space."""
    names = data.draw(
        st.lists(st.sampled_from([name for name in SPACE if name not in ("degree", "gamma")]), min_size=1)
    )
    names = [name for name in SPACE if name in names or (name in ("degree", "gamma") and "kernel" in names)]
    space = bl.Space({name: SPACE[name] for name in names})
    some = data.draw(st.lists(st.sampled_from(names), unique=True))
    source = bl.RandomSearch(space, seed=data.draw(st.integers(0, 10**6))).suggest().params
    fixed = {name: source[name] for name in some if name in source}
    made = {
        "bayes": lambda: bl.BayesOpt(space, surrogate=GP, initial=bl.Initial(3), seed=1),
        "ts": lambda: bl.BayesOpt(space, surrogate=GP, acquisition="thompson", initial=bl.Initial(2), seed=1),
        "random": lambda: bl.RandomSearch(space, seed=1),
    }
    opt = made[data.draw(st.sampled_from(sorted(made)))]()
    n_observed = data.draw(st.integers(0, 5))
    for trial in opt.suggest(n=n_observed):
        opt.observe(trial, f(trial.params))
    for trial in opt.suggest(n=3, fixed=fixed):
        assert {name: trial.params[name] for name in fixed} == fixed
        assert opt.domain.decode(opt.domain.encode(trial.params)).keys() == trial.params.keys()


@pytest.mark.parametrize(
    ("fixed", "allowed"),
    [
        ({"T": 60.0}, lambda p: p["T"] == 60.0),
        ({"T": [30.0, 60.0, 61.5]}, lambda p: p["T"] in (30.0, 60.0, 61.5)),
        ({"T": (55.0, 60.0)}, lambda p: 55.0 <= p["T"] <= 60.0),
        ({"rate": (1e-3, 2e-3)}, lambda p: 1e-3 <= p["rate"] <= 2e-3),
        ({"rate": 0.1}, lambda p: p["rate"] == 0.1),
        ({"grid": (0.25, 0.55)}, lambda p: p["grid"] in (0.3, 0.4, 0.5) or round(p["grid"], 9) in (0.3, 0.4, 0.5)),
        ({"n": (3, 5)}, lambda p: 3 <= p["n"] <= 5),
        ({"n": [1, 8]}, lambda p: p["n"] in (1, 8)),
        ({"width": (60, 70)}, lambda p: 60 <= p["width"] <= 70),
        ({"batch": [16, 64]}, lambda p: p["batch"] in (16, 64)),
        ({"solvent": ["ether", None]}, lambda p: p["solvent"] in ("ether", None)),
        ({"solvent": None}, lambda p: p["solvent"] is None),
        ({"kernel": "linear"}, lambda p: "gamma" not in p and "degree" not in p),
        ({"kernel": ["linear", "poly"]}, lambda p: p["kernel"] != "rbf" and ("degree" in p) == (p["kernel"] == "poly")),
        ({"degree": 3}, lambda p: p["kernel"] == "poly" and p["degree"] == 3),
        ({"gamma": (1.0, 2.0)}, lambda p: p["kernel"] != "linear" and 1.0 <= p["gamma"] <= 2.0),
        ({"degree": [2, 4], "T": 60.0}, lambda p: p["degree"] in (2, 4) and p["T"] == 60.0),
    ],
)
@pytest.mark.parametrize("n_observed", [0, 12])
def test_values_lists_and_ranges_of_every_kind(fixed, allowed, n_observed):
    opt = bl.BayesOpt(SPACE, surrogate=GP, initial=bl.Initial(6), seed=0)
    if n_observed:
        informed(opt, n_observed)
    trials = opt.suggest(n=6, fixed=fixed)
    assert all(allowed(trial.params) for trial in trials)
    assert len({str(trial.params) for trial in trials}) == 6


ACQUISITIONS = ["log_ei", "ucb", "thompson", "ucb_pe", "max_variance", "aegis"]


@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_every_acquisition_holds_values(acquisition):
    space = {"T": (20.0, 90.0), "x": (0.0, 1.0), "y": (0.0, 1.0)}
    opt = informed(bl.BayesOpt(space, acquisition=acquisition, surrogate=GP, initial=bl.Initial(4), seed=3), 8)
    trials = opt.suggest(n=4, fixed={"T": 33.3})
    assert [trial.params["T"] for trial in trials] == [33.3] * 4
    assert len({(trial.params["x"], trial.params["y"]) for trial in trials}) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"acquisition": "ucb", "pending": "local_penalization"},
        {"acquisition": "ucb", "pending": "playbook"},
        {"acquisition": "ucb", "pending": "ignore"},
        {"acquisition": "ucb", "pending": bl.Censor(), "window": 4},
        {"acquisition": "ucb", "search": bl.Search(direct=200)},
        {"acquisition": "ucb", "search": bl.Search(multistart=(64, 4))},
        {"initial": bl.Initial(6, how="uncertainty")},
        {"initial": bl.Initial(6, how="uniform")},
        {"context": {"day": ["mo", "tu"]}},
        {"curve": bl.Curve(5)},
    ],
    ids=str,
)
def test_every_setting_holds_values(arguments):
    space = {"T": (20.0, 90.0), "x": (0.0, 1.0), "y": (0.0, 1.0)}
    opt = bl.BayesOpt(space, **({"initial": bl.Initial(3), "seed": 0} | arguments))
    context = {"context": {"day": "mo"}} if "context" in arguments else {}
    for _ in range(4):
        for trial in opt.suggest(n=3, fixed={"T": 33.3}, **context) + opt.suggest(n=1, **context):
            if trial.number % 2:
                opt.observe(trial, f(trial.params))
    assert {trial.params["T"] for trial in opt.trials if trial.number % 4 != 3} == {33.3}


def test_failures_under_fixed_values():
    opt = bl.BayesOpt(SPACE, initial=bl.Initial(3), seed=0)
    for trial in opt.suggest(n=12, fixed={"kernel": "poly"}):
        opt.fail(trial) if trial.number % 3 == 0 else opt.observe(trial, f(trial.params))
    assert all(trial.params["kernel"] == "poly" for trial in opt.suggest(n=4, fixed={"kernel": "poly"}))


def brute_force(opt, points):
    values = opt.acquisition_at(points)
    return points[int(np.argmax(values))]


@pytest.mark.parametrize("seed", range(8))
def test_on_a_grid_the_suggestion_is_the_best_matching_point(seed):
    """The second route: the largest value of `acquisition_at` among all grid points with the fixed values."""
    levels = {"a": [0, 1, 2, 3, 4], "b": ["u", "v", "w"], "c": [16, 32, 64]}
    space = {"a": (0, 4), "b": ["u", "v", "w"], "c": bl.Ordinal(levels["c"])}
    opt = bl.BayesOpt(space, acquisition=bl.LogEI(), surrogate=GP, initial=bl.Initial(5), seed=seed)
    informed(opt, 12)
    rng = np.random.default_rng(seed)
    name = rng.choice(list(levels))
    value = levels[name][rng.integers(len(levels[name]))]
    fixed = {name: value}
    grid = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
    pending = [trial.params for trial in opt.pending]
    points = [p for p in grid if p[name] == value and p not in pending]
    expected = brute_force(opt, points)
    assert opt.suggest(fixed=fixed).params == expected


@pytest.mark.parametrize("seed", range(4))
def test_among_candidates_the_suggestion_is_the_best_matching_row(seed):
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, 4, 80), rng.random(80), rng.random(80)]).astype(float)
    opt = bl.BayesOpt(candidates=rows, surrogate=GP, initial=bl.Initial(5), seed=seed)
    for trial in opt.suggest(n=10):
        opt.observe(trial, float(np.sin(5 * trial.params.sum())))
    for fixed, match in [
        ({0: 2.0}, rows[:, 0] == 2.0),
        ({0: [1, 3]}, rows[:, 0] % 2 == 1),
        ({1: (0.5, 1)}, rows[:, 1] >= 0.5),
    ]:
        other = copy.deepcopy(opt)
        found = np.flatnonzero(match)
        best = found[int(np.argmax(other.acquisition_at(rows[found])))]
        assert (other.suggest(fixed=fixed).params == rows[best]).all()
        assert all(match[trial.index] for trial in other.suggest(n=5, fixed=fixed))


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb"])
@pytest.mark.parametrize("seed", range(3))
def test_in_a_box_the_suggestion_is_the_maximum_on_the_slice(seed, acquisition):
    space = {"T": (20.0, 90.0), "x": (0.0, 1.0), "y": bl.Real(1.0, 100.0, log=True)}
    opt = informed(bl.BayesOpt(space, acquisition=acquisition, surrogate=GP, initial=bl.Initial(4), seed=seed), 10)
    u = np.linspace(0, 1, 101)
    grid = [{"T": 41.7, "x": x, "y": 100.0**v} for x in u for v in u]
    before = copy.deepcopy(opt)
    largest = before.acquisition_at(grid).max()
    found = opt.suggest(fixed={"T": 41.7})
    assert before.acquisition_at(found.params) >= largest - 1e-3
    # The same values as a range with equal ends, and as a list with one value.
    for same in ([41.7], (41.7, 41.7)):
        assert before.acquisition_at(copy.deepcopy(before).suggest(fixed={"T": same}).params) >= largest - 1e-3


def test_constraints_hold_together_with_fixed_values():
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": ["u", "v"]}
    for kind in (bl.BayesOpt, bl.RandomSearch):
        opt = kind(space, constraints=[lambda p: p["a"] + p["b"] <= 1.0], seed=0)
        for trial in opt.suggest(n=12, fixed={"a": 0.75}):
            assert trial.params["a"] == 0.75 and trial.params["b"] <= 0.25
            opt.observe(trial, trial.params["b"])
        for trial in opt.suggest(n=3, fixed={"a": 0.75, "c": "u"}) + opt.suggest(n=3, fixed={"b": 0.5}):
            assert trial.params["a"] + trial.params["b"] <= 1.0
        with pytest.raises(InvalidSpace):
            opt.suggest(fixed={"a": 1.0, "b": 1.0})
        assert opt.suggest(fixed={"a": 0.25, "b": 0.25, "c": "v"}).params == {"a": 0.25, "b": 0.25, "c": "v"}
        with pytest.raises(InvalidSpace):
            opt.suggest(fixed={"a": 1.0, "b": 1.0, "c": "v"})


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_everything_fixed_is_the_point_itself(kind):
    space = {"x": (0.0, 1.0), "n": (1, 8), "cache": 200}
    opt = kind(space, seed=0)
    for fixed in ({"x": 0.1, "n": 3}, {"x": 0.1, "n": 3, "cache": 200}):
        trials = opt.suggest(n=3, fixed=fixed)
        assert [trial.params for trial in trials] == [{"x": 0.1, "n": 3, "cache": 200}] * 3
        for trial in trials:
            opt.observe(trial, 1.0, std=0.0)
    rows = np.arange(12.0).reshape(6, 2)
    opt = kind(candidates=rows, seed=0)
    for _ in range(3):
        trial = opt.suggest(fixed={0: 4.0, 1: 5.0})
        assert trial.index == 2
        opt.observe(trial, 1.0, std=0.0)


@pytest.mark.parametrize("kind", [bl.BayesOpt, bl.RandomSearch])
def test_each_matching_point_is_tried_before_a_point_is_repeated(kind):
    """A domain that is finite only under the fixed values is searched without replacement."""
    opt = kind({"x": (0.0, 1.0), "n": (1, 4)}, seed=2)
    found = [trial.params["n"] for trial in opt.suggest(n=4, fixed={"x": 0.5})]
    assert sorted(found) == [1, 2, 3, 4]
    assert len(opt.suggest(n=4, fixed={"x": 0.5})) == 4  # more trials than points


def test_a_range_or_list_around_pending_trials():
    opt = informed(bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, surrogate=GP, seed=0), 6)
    opt.suggest(n=200)
    trials = opt.suggest(n=4, fixed={"x": [0.25, 0.75], "y": (0.5, 0.6)})
    assert all(t.params["x"] in (0.25, 0.75) and 0.5 <= t.params["y"] <= 0.6 for t in trials)


def test_the_model_does_not_depend_on_fixed_values():
    """After the trials of a restricted batch are withdrawn, suggestions equal the suggestions without the batch."""
    first = informed(bl.BayesOpt({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0), 12)
    data = pickle.dumps(first)
    restored = pickle.loads(data)
    restored.suggest(n=3, fixed={"x": 0.5})
    other = pickle.loads(pickle.dumps(restored))
    assert [t.params for t in restored.suggest(n=3)] == [t.params for t in other.suggest(n=3)]
    with pytest.raises(InvalidPoint):
        first.suggest(n=3, fixed={"x": 2.0})
    assert first.suggest().params == pickle.loads(data).suggest().params


def test_the_initial_design_spreads_over_the_other_parameters():
    opt = bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 1.0)}, initial=bl.Initial(16), seed=0)
    x = np.sort([trial.params["x"] for trial in opt.suggest(n=16, fixed={"T": 60.0})])
    gaps = np.diff(np.concatenate([[0], x, [1]]))
    assert gaps.max() < 2.7 / 16  # of 16 random points, the largest gap exceeds this with probability 0.6


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"T": 95.0}, r"fixed\['T'\]=95.0 is not usable"),
        ({"T": "hot"}, r"fixed\['T'\]='hot' is not usable"),
        ({"T": float("nan")}, "not usable"),
        ({"T": []}, "not usable"),
        ({"T": [60.0, 95.0]}, "not usable"),
        ({"T": (60.0, 50.0)}, "not usable"),
        ({"T": (10.0, 50.0)}, "not usable"),
        ({"T": (60.0, float("inf"))}, "not usable"),
        ({"n": 2.5}, "not usable"),
        ({"n": (2.2, 2.7)}, "not usable"),
        ({"grid": 0.55}, "not usable"),
        ({"batch": 48}, "not usable"),
        ({"solvent": "wine"}, "not usable"),
        ({"Temp": 60.0}, "not a parameter"),
        ({3: 60.0}, "not a parameter"),
        ({"kernel": "rbf", "degree": 3}, "inactive"),
        ({"kernel": ["rbf", "linear"], "degree": [3, 4]}, "inactive"),
        ([("T", 60.0)], "pass a dict"),
        (60.0, "pass a dict"),
    ],
)
def test_bad_values_are_refused(fixed, message):
    opt = informed(bl.BayesOpt(SPACE, surrogate=GP, initial=bl.Initial(2), seed=0), 3)
    n_events = opt._log.n_events()
    with pytest.raises(InvalidPoint, match=message):
        opt.suggest(n=2, fixed=fixed)
    assert opt._log.n_events() == n_events


def test_constants_and_candidates_are_checked():
    opt = bl.BayesOpt({"x": (0.0, 1.0), "cache": 200}, seed=0)
    assert opt.suggest(fixed={"cache": 200}).params["cache"] == 200
    with pytest.raises(InvalidPoint):
        opt.suggest(fixed={"cache": 300})
    opt = bl.RandomSearch(candidates=[[0.0, 1.0], [1.0, 1.0]], seed=0)
    for fixed in ({2: 1.0}, {"x": 1.0}, {0: 0.5}, {0: "a"}, {-1: 1.0}, {0: 0.0, 1: [2.0]}):
        with pytest.raises(InvalidPoint):
            opt.suggest(fixed=fixed)
    assert opt.n_trials == 0


def test_strategies_without_restrictions_refuse():
    tree = bl.TreeSearch({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0)
    with pytest.raises(InvalidSetting, match="TreeSearch does not support fixed"):
        tree.suggest(fixed={"x": 0.5})
    with pytest.raises(InvalidSetting, match="TreeSearch does not support shared"):
        tree.suggest(n=2, shared=["x"])
    assert tree.n_trials == 0
    tree.enqueue({"x": 0.5})
    assert tree.suggest().params["x"] == 0.5


# Enqueued points.


@pytest.mark.parametrize("n_observed", [0, 3, 12])
@pytest.mark.parametrize("fixed", [{"T": 60.0}, {"degree": 3}, {"kernel": "linear", "n": 2}, {}])
def test_a_partial_enqueue_is_completed_as_a_fixed_suggestion(n_observed, fixed):
    opt = bl.BayesOpt(SPACE, surrogate=GP, initial=bl.Initial(3), seed=0)
    if n_observed:
        informed(opt, n_observed)
    other = copy.deepcopy(opt)
    opt.enqueue(fixed)
    assert opt.suggest().params == other.suggest(fixed=fixed).params


def test_a_queue_that_disagrees_with_fixed_values_waits():
    opt = informed(bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 1.0)}, surrogate=GP, seed=0), 8)
    opt.enqueue([{"T": 40.0}, {"T": 60.0, "x": 0.5}, {"x": 0.125}])
    assert [t.params["T"] for t in opt.suggest(n=2, fixed={"T": 60.0})] == [60.0, 60.0]
    assert opt.suggest(fixed={"T": (30.0, 50.0)}).params["T"] == 40.0
    assert opt.suggest(fixed={"T": [20.0, 60.0]}).params == {"T": 60.0, "x": 0.5}
    assert opt.suggest(fixed={"T": 21.0}).params == {"T": 21.0, "x": 0.125}
    assert not any(opt._log.queued())


def test_a_partial_point_with_tight_constraints_is_still_suggested():
    def tight(p):
        return p["a"] < 0.5 or abs(p["b"] - 0.123) < 1e-4

    opt = bl.BayesOpt({"a": (0.0, 1.0), "b": (0.0, 1.0)}, constraints=[tight], seed=5)
    opt.enqueue({"a": 0.75})
    params = opt.suggest().params
    assert params["a"] == 0.75 and tight(params)


# Studies.


def test_two_handles_of_a_study_and_repeated_requests(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    make = lambda: bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 1.0)}, surrogate=GP, seed=0)  # noqa: E731
    first = bl.Study("oven", store=store, optimizer=make())
    second = bl.Study("oven", store=store)
    twin = make()
    for study in (first, second, first):
        found = study.suggest(n=3, fixed={"T": 60.0}, key=f"batch {study.n_trials}")
        expected = twin.suggest(n=3, fixed={"T": 60.0})
        assert [t.params for t in found] == [t.params for t in expected]
        for trial, own in zip(found, expected, strict=True):
            study.observe(trial, f(trial.params))
            twin.observe(own, f(own.params))
    again = second.suggest(n=3, fixed={"T": 60.0}, key="batch 0")
    assert [trial.number for trial in again] == [0, 1, 2]
    with pytest.raises(InvalidSetting):
        second.suggest(n=3, fixed={"T": 61.0}, key="batch 0")
    with pytest.raises(InvalidPoint):
        second.suggest(n=3, fixed={"T": 961.0})
    shared = first.suggest(n=4, shared=["T"])
    assert [t.params for t in shared] == [t.params for t in twin.suggest(n=4, shared=["T"])]


def test_a_run_holds_the_fixed_values():
    opt = bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 2.0)}, seed=0)
    waiting = opt.suggest()

    def f(params):
        return -((params["T"] / 50 - params["x"]) ** 2)

    result = bl.maximize(f, optimizer=opt, n_trials=8, fixed={"T": 60.0}, retry_pending=True)
    assert [trial.params["T"] == 60.0 for trial in result.trials] == [False, *[True] * 8]
    assert result.trials[0] == waiting
    for limit in ({"n_trials_total": 12}, {"timeout": 0.2}):
        result = bl.maximize(f, optimizer=opt, fixed={"T": (60.0, 65.0)}, **limit)
        assert result.trials and all(60.0 <= trial.params["T"] <= 65.0 for trial in result.trials)
    n = len(opt.trials)
    with pytest.raises(bl.errors.InvalidPoint, match="fixed has 'S', which is not a parameter"):
        bl.maximize(f, optimizer=opt, n_trials=1, fixed={"S": 1.0})
    assert len(opt.trials) == n


@pytest.mark.parametrize("noise", [None, 0.0])
def test_recommend_returns_a_point_with_the_fixed_values(noise):
    opt = bl.BayesOpt({"T": (20.0, 90.0), "x": (0.0, 2.0)}, surrogate=bl.GP(noise_std=noise), seed=0)
    for trial in opt.suggest(n=14):
        trial.observe(-((trial.params["T"] / 50 - trial.params["x"]) ** 2))
    found = opt.recommend(fixed={"T": 60.0})
    assert found["T"] == 60.0 and abs(found["x"] - 1.2) < 0.1
    assert opt.recommend(fixed={"T": 60.0, "x": 0.7}) == {"T": 60.0, "x": 0.7}
    assert all(50.0 <= point["T"] <= 60.0 for point in opt.recommend(n=3, fixed={"T": (50.0, 60.0)}))
    # An observed point is found again.
    observed = opt.trials[3].params
    assert observed in opt.recommend(n=2, fixed=observed)
    for refused in ({"T": 100.0}, {"y": 1.0}):
        with pytest.raises(bl.errors.InvalidPoint):
            opt.recommend(fixed=refused)


def test_recommend_with_fixed_values_keeps_constraints_choices_and_candidates():
    def value(params):
        return -((params["x"] - 0.7) ** 2) + {"a": 0.0, "b": -0.3, "c": 0.2}[params["s"]]

    def constraint(params):
        return params["x"] <= 0.5

    opt = bl.BayesOpt({"s": ["a", "b", "c"], "x": (0.0, 1.0)}, constraints=[constraint], seed=0)
    for trial in opt.suggest(n=12):
        trial.observe(value(trial.params))
    found = opt.recommend(fixed={"s": ["a", "b"]})
    assert found["s"] == "a" and 0.45 < found["x"] <= 0.5
    with pytest.raises(bl.errors.NotFitted, match="with the fixed values whose params satisfy the constraints"):
        opt.recommend(fixed={"s": "a", "x": 0.9})
    rows = [{"s": s, "x": x / 10} for s in "abc" for x in range(11)]
    for kind in (bl.BayesOpt, bl.RandomSearch):
        opt = kind(candidates=rows, seed=0)
        for trial in opt.suggest(n=20):
            trial.observe(value(trial.params))
        assert opt.recommend(fixed={"s": "b"})["s"] == "b"
    tree = bl.TreeSearch({"x": (0.0, 1.0)}, seed=0)
    tree.suggest().observe(1.0)
    with pytest.raises(bl.errors.InvalidSetting, match="fixed"):
        tree.recommend(fixed={"x": 0.5})


def test_recommend_with_fixed_values_where_no_point_lies_within_a_bound():
    outcomes = {"y": bl.Maximize(), "purity": bl.AtLeast(0.9)}
    opt = bl.BayesOpt({"T": (0.0, 1.0), "x": (0.0, 1.0)}, outcomes=outcomes, seed=0)
    for trial in opt.suggest(n=10):
        trial.observe({"y": trial.params["x"], "purity": 0.3 * trial.params["T"]})
    with pytest.warns(bl.BelatedWarning, match="within their bounds with probability"):
        assert opt.recommend(fixed={"T": 0.25})["T"] == 0.25


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_none_stands_for_an_inactive_parameter(missing):
    space = {name: SPACE[name] for name in ("T", "solvent", "kernel", "degree", "gamma")}
    space["depth"] = bl.Categorical([None, 2], when={"degree": [1, 2], "kernel": "poly"})
    optimizer = informed(bl.RandomSearch(space, seed=0))
    linear = {"kernel": "linear", "degree": missing, "gamma": missing, "depth": missing}
    assert optimizer.suggest(fixed=linear).params.keys() == {"T", "solvent", "kernel"}
    for kernel in (["rbf", "linear"], "rbf"):
        assert "degree" not in optimizer.suggest(fixed={"kernel": kernel, "degree": missing}).params
    fixed = {"kernel": "poly", "degree": (3, 5), "depth": missing}
    assert "depth" not in optimizer.suggest(fixed=fixed).params
    assert optimizer.suggest(fixed={"kernel": "poly", "degree": 1, "depth": None}).params["depth"] is None
    assert optimizer.suggest(fixed={"solvent": None}).params["solvent"] is None
    for active in ({"kernel": "poly"}, {"kernel": ["rbf", "poly"]}, {}):
        with pytest.raises(
            InvalidPoint, match=r"fixed\['degree'\]=.*or fix \['kernel'\] to values at which 'degree' is"
        ):
            optimizer.suggest(fixed=active | {"degree": missing})
    with pytest.raises(InvalidPoint, match=r"fixed\['T'\]=\w+ is not usable: pass a real number"):
        optimizer.suggest(fixed={"T": missing})
