"""The life cycle as users see it: what is accepted, what is refused, and what stays the same."""

import copy
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sklearn.base import clone

import belated as bl

BOX = {"x": (-1.0, 1.0), "n": (1, 8)}
ROWS = np.array([[i, i % 3] for i in range(12)], dtype=float)
KINDS = [bl.RandomSearch, bl.BayesOpt]

both = pytest.mark.parametrize("kind", KINDS)


def objective(params):
    return -((params["x"] - 0.3) ** 2) - 0.01 * params["n"]


def run(opt, n, sign=1.0, lag=3):
    """Suggest n trials and observe each of them `lag` suggestions later; the suggested params."""
    suggested = []
    for _ in range(n):
        suggested.append(opt.suggest())
        if len(suggested) > lag:
            trial = suggested[-1 - lag]
            trial.observe(sign * objective(trial.params))
    return [trial.params for trial in suggested]


# Suggesting.


@both
def test_suggestions_lie_in_the_space(kind):
    opt = kind({"a": bl.Real(1e-4, 100, log=True), "b": (1, 4), "c": ["u", "v", None]}, seed=1)
    for trial in opt.suggest(n=3) + [opt.suggest() for _ in range(12)]:
        params = trial.params
        assert 1e-4 <= params["a"] <= 100 and params["b"] in (1, 2, 3, 4) and params["c"] in ("u", "v", None)
        trial.observe(params["b"] + math.log(params["a"]))


@both
def test_suggestions_are_candidates(kind):
    opt = kind(candidates=ROWS, seed=1)
    for _ in range(15):
        trial = opt.suggest()
        assert (trial.x == ROWS[trial.index]).all()
        trial.observe(-trial.x[0])
    assert (opt.best_params_ == ROWS[opt.best_trial_.index]).all()


@both
def test_one_or_many(kind):
    opt = kind(BOX, seed=0)
    assert isinstance(opt.suggest(), bl.Trial)
    assert [trial.number for trial in opt.suggest(n=2)] == [1, 2]
    assert [trial.number for trial in opt.suggest(n=np.int64(1))] == [3]
    assert opt.suggest(n=0) == [] and opt.n_trials == 4
    for n in (-1, 1.5, "2", True, [1]):
        with pytest.raises(bl.InvalidSetting, match="^n="):
            opt.suggest(n=n)
    assert opt.n_trials == 4


@both
def test_a_seed_decides_everything(kind):
    assert run(kind(BOX, seed=3), 15) == run(kind(BOX, seed=3), 15)
    assert run(kind(BOX, seed=3), 15) != run(kind(BOX, seed=4), 15)
    unseeded = kind(BOX)
    assert run(unseeded, 15) == run(kind(BOX, seed=unseeded.seed_), 15)
    assert unseeded.seed is None


def test_enqueued_points_come_first():
    opt = bl.BayesOpt(BOX, seed=0)
    opt.enqueue({"x": 0.5, "n": 3})
    opt.enqueue([{"x": -1.0, "n": 8}, {"x": 1.0, "n": 1}])
    assert [trial.params["n"] for trial in opt.suggest(n=3)] == [3, 8, 1]
    with pytest.raises(bl.InvalidPoint):
        opt.enqueue([{"x": 0.0, "n": 1}, {"x": 2.0, "n": 1}])
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    opt.enqueue(7)
    opt.enqueue(ROWS[[4, 2]])
    assert [trial.index for trial in opt.suggest(n=3)] == [7, 4, 2]


# Observing.


@both
@pytest.mark.parametrize(
    "value", [1.5, 2, np.float32(1.5), np.int64(2), np.array(1.5), Decimal("1.5"), -0.0, 1e308, -5e-324]
)
def test_values_that_are_numbers(kind, value):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    trial.observe(value)
    assert trial.value == float(value) and isinstance(trial.value, float)


@both
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 1j, np.complex128(1), "1", b"1", True, np.bool_(True), None, [1.0], (1.0, 2.0)]
    + [np.array([1.0]), np.zeros((1, 1)), np.array("1"), {}, 10**400, Decimal("NaN"), np.timedelta64(1, "s")],
)
def test_values_that_are_not(kind, value):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    with pytest.raises(bl.InvalidValue, match="trial 0"):
        opt.observe(trial, value)
    assert trial.state == "pending" and trial.value is None and opt.pending_ == [trial]
    trial.observe(1.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_second_value(direction):
    opt = bl.RandomSearch(BOX, direction=direction, seed=0)
    trial = opt.suggest()
    trial.observe(1.5)
    trial.observe(1.5)
    with pytest.raises(bl.AlreadyObserved, match=r"trial 0 has the value 1\.5 already.*amend=True"):
        trial.observe(2.5)
    for report in (trial.fail, trial.abandon):
        with pytest.raises(bl.AlreadyObserved, match=r"trial 0 has the value 1\.5"):
            report()
    assert trial.value == 1.5
    trial.observe(2.5, amend=True)
    assert trial.value == opt.best_value_ == 2.5


@both
def test_flags_are_keywords(kind):
    opt = kind(BOX, seed=0)
    trial = opt.suggest()
    for report in (lambda: opt.observe(trial, 1.0, True), lambda: trial.observe(1.0, True)):
        with pytest.raises(TypeError):
            report()
    assert trial.state == "pending"


@both
def test_unknown_trials(kind):
    opt, other = kind(BOX, seed=0), kind(BOX, seed=0)
    opt.suggest()
    foreign = other.suggest()
    for trial in (foreign, 1, -1, 2**70, 0.0, "0", None, True):
        for report in (lambda trial: opt.observe(trial, 1.0), opt.fail, opt.abandon):
            with pytest.raises(bl.UnknownTrial):
                report(trial)
    with pytest.raises(KeyError):
        opt.trial(5)
    assert opt.trial(0).state == "pending"


def test_a_copy_that_went_its_own_way_is_foreign():
    opt = bl.RandomSearch(BOX, seed=0)
    away = pickle.loads(pickle.dumps(opt))
    away.enqueue({"x": 0.125, "n": 2})
    foreign = away.suggest()
    with pytest.raises(bl.UnknownTrial):
        opt.observe(foreign, 1.0)
    opt.suggest()
    with pytest.raises(bl.UnknownTrial):
        opt.observe(foreign, 1.0)


class LifeCycle(RuleBasedStateMachine):
    """Any order of reports leaves every trial in the state that a dictionary would remember."""

    def __init__(self):
        super().__init__()
        self.opt = bl.RandomSearch({"x": (0.0, 1.0)}, direction="minimize", seed=0)
        self.known = []

    def some(self, data, *states):
        numbers = [i for i, (state, _) in enumerate(self.known) if state in states]
        return data.draw(st.sampled_from(numbers))

    def any_in(self, *states):
        return any(state in states for state, _ in self.known)

    @rule(n=st.integers(1, 3))
    def suggest(self, n):
        assert [trial.number for trial in self.opt.suggest(n=n)] == list(range(len(self.known), len(self.known) + n))
        self.known += [("pending", None)] * n

    @rule(value=st.one_of(st.none(), st.floats(-5, 5)))
    def add(self, value):
        assert self.opt.add({"x": 0.5}, value).number == len(self.known)
        self.known.append(("pending" if value is None else "observed", value))

    @precondition(lambda self: self.any_in("pending", "failed", "abandoned"))
    @rule(data=st.data(), value=st.floats(-5, 5))
    def observe(self, data, value):
        number = self.some(data, "pending", "failed", "abandoned")
        self.opt.observe(number, value)
        self.known[number] = ("observed", value)

    @precondition(lambda self: self.any_in("observed"))
    @rule(data=st.data(), value=st.floats(-5, 5), amend=st.booleans())
    def observe_again(self, data, value, amend):
        number = self.some(data, "observed")
        if amend:
            self.opt.observe(number, value, amend=True)
            self.known[number] = ("observed", value)
        elif value == self.known[number][1]:
            self.opt.observe(number, value)
        else:
            with pytest.raises(bl.AlreadyObserved):
                self.opt.observe(number, value)

    @precondition(lambda self: self.any_in("pending"))
    @rule(data=st.data(), method=st.sampled_from(["fail", "abandon"]))
    def give_up(self, data, method):
        number = self.some(data, "pending")
        getattr(self.opt, method)(number)
        self.known[number] = ({"fail": "failed", "abandon": "abandoned"}[method], None)

    @precondition(lambda self: self.any_in("pending"))
    @rule(data=st.data(), value=st.sampled_from([math.nan, math.inf, "1", None, [1.0]]))
    def observe_nonsense(self, data, value):
        with pytest.raises(bl.InvalidValue):
            self.opt.observe(self.some(data, "pending"), value)

    @rule()
    def travel(self):
        self.opt = pickle.loads(pickle.dumps(self.opt))

    @invariant()
    def agree(self):
        assert [(trial.state, trial.value) for trial in self.opt.trials] == self.known
        assert [trial.number for trial in self.opt.pending_] == [
            i for i, (state, _) in enumerate(self.known) if state == "pending"
        ]
        values = [value for _, value in self.known if value is not None]
        assert self.opt.best_value_ == (min(values) if values else None)


TestLifeCycle = LifeCycle.TestCase
TestLifeCycle.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


# Direction and clock.


@pytest.mark.parametrize(
    "arguments",
    [
        ({}, {}),
        ({"acquisition": "ucb", "pending": bl.Censor(-2.0)}, {"acquisition": "ucb", "pending": bl.Censor(2.0)}),
        ({"surrogate": bl.GP(mean=0.5)}, {"surrogate": bl.GP(mean=-0.5)}),
        ({"pending": bl.Liar(0.5)}, {"pending": bl.Liar(-0.5)}),
        ({"pending": bl.Liar("min")}, {"pending": bl.Liar("max")}),
        ({"acquisition": "thompson"}, {"acquisition": "thompson"}),
    ],
    ids=str,
)
def test_minimizing_mirrors_maximizing(arguments):
    upwards, mirrored = arguments
    up = bl.BayesOpt(BOX, seed=5, **upwards)
    down = bl.BayesOpt(BOX, direction="minimize", seed=5, **mirrored)
    assert run(up, 20) == run(down, 20, sign=-1.0)
    assert up.best_value_ == -down.best_value_ and up.best_params_ == down.best_params_
    assert up.recommend() == down.recommend()
    points = [{"x": 0.0, "n": 1}, {"x": 0.9, "n": 8}]
    (mean, std), (mirror, same) = up.predict(points), down.predict(points)
    assert (mean == -mirror).all() and (std == same).all()
    assert down.get_params(deep=False) == up.get_params(deep=False) | mirrored | {"direction": "minimize"}


def test_the_clock_in_seconds_is_asked():
    times = iter([0.0, 1.0, 4.0, 9.0, 9.5])
    opt = bl.RandomSearch(BOX, clock="seconds", time=lambda: next(times), seed=0)
    first, second = opt.suggest(), opt.suggest()
    first.observe(1.0)
    second.observe(1.0)
    assert [trial.delay for trial in opt.trials] == [4.0, 8.0]
    assert bl.RandomSearch(BOX, clock="seconds").suggest().suggested_at > 1e9
    for answer in (math.nan, None, "now"):
        opt = bl.RandomSearch(BOX, clock="seconds", time=lambda answer=answer: answer)
        with pytest.raises(bl.InvalidSetting, match="time"):
            opt.suggest()


# Adding.


@both
def test_add_in_a_space(kind):
    opt = kind(BOX, seed=0)
    one = opt.add({"x": 0.5, "n": 3}, 1.0)
    assert (one.state, one.value, one.params) == ("observed", 1.0, {"x": 0.5, "n": 3})
    waiting = opt.add({"x": 0.5, "n": 4})
    assert waiting.state == "pending"
    table = pd.DataFrame({"n": [1, 2], "x": [0.0, 1.0]})
    for params in (table, table.to_dict("records")):
        for values in ([3.0, 2.0], np.array([3.0, 2.0]), pd.Series([3.0, 2.0])):
            assert [trial.value for trial in opt.add(params, values)] == [3.0, 2.0]
    assert [trial.state for trial in opt.add(table, [3.0, None])] == ["observed", "pending"]
    assert [trial.state for trial in opt.add(table)] == ["pending"] * 2
    assert opt.add([]) == []
    assert opt.best_value_ == 3.0


def test_add_candidates():
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    assert opt.add(3, 1.0).index == 3
    assert opt.add(ROWS[4], 1.0).index == 4
    assert opt.add([5.0, 2.0]).index == 5
    assert [trial.index for trial in opt.add(ROWS[6:8], [1.0, 2.0])] == [6, 7]
    assert [trial.index for trial in opt.add([8, 9], [1.0, 2.0])] == [8, 9]
    assert [trial.index for trial in opt.add(pd.DataFrame(ROWS[:2]))] == [0, 1]


@both
def test_add_all_or_nothing(kind):
    opt = kind(BOX, seed=0)
    good, bad = {"x": 0.0, "n": 1}, {"x": 2.0, "n": 1}
    for params, values, error in [
        (bad, 1.0, bl.InvalidPoint),
        ({"x": 0.0}, 1.0, bl.InvalidPoint),
        (good, math.nan, bl.InvalidValue),
        (good, [1.0], bl.InvalidValue),
        ([good, bad], [1.0, 2.0], bl.InvalidPoint),
        ([good, good], [1.0, math.nan], bl.InvalidValue),
        ([good, good], [1.0], bl.InvalidValue),
        ([good, good], 1.0, bl.InvalidValue),
        (pd.DataFrame([good, good]), pd.Series([1.0, math.nan]), bl.InvalidValue),
        (pd.DataFrame([good, {"x": math.nan, "n": 1}]), [1.0, 2.0], bl.InvalidPoint),
    ]:
        with pytest.raises(error):
            opt.add(params, values)
        assert opt.n_trials == 0


# Context.


@both
def test_contexts(kind):
    opt = kind(BOX, context={"age": (0.0, 100.0), "ward": ["a", "b"]}, seed=0)
    trial = opt.suggest(context={"ward": "b", "age": 25.0})
    assert trial.context == {"age": 25.0, "ward": "b"}
    for context in (None, {}, {"age": 25.0}, {"age": 101.0, "ward": "a"}, {"age": 1.0, "ward": "a", "x": 0.0}, 3):
        for ask in (
            lambda context: opt.suggest(context=context),
            lambda context: opt.add({"x": 0.0, "n": 1}, 1.0, context=context),
            lambda context: opt.recommend(context=context),
        ):
            with pytest.raises(bl.InvalidContext, match="context"):
                ask(context)
    assert opt.n_trials == 1
    contexts = [{"age": 1.0, "ward": "a"}, {"age": 2.0, "ward": "b"}]
    points = [{"x": 0.0, "n": 1}, {"x": 1.0, "n": 2}]
    assert [trial.context for trial in opt.add(points, [0.0, 1.0], context=contexts)] == contexts
    assert [trial.context for trial in opt.add(points, context=pd.DataFrame(contexts))] == contexts
    assert [trial.context for trial in opt.add(points, context=contexts[0])] == [contexts[0]] * 2
    with pytest.raises(bl.InvalidContext, match="1 entries for 2 points"):
        opt.add(points, context=contexts[:1])


@both
def test_an_undeclared_context(kind):
    opt = kind(BOX, seed=0)
    with pytest.raises(bl.InvalidContext, match="not declared"):
        opt.suggest(context={"age": 1.0})
    with pytest.raises(bl.InvalidContext, match="not declared"):
        opt.add({"x": 0.0, "n": 1}, context={"age": 1.0})
    assert opt.n_trials == 0


def test_the_model_learns_across_contexts():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, context={"z": (0.0, 1.0)}, seed=0)
    grid = np.linspace(0, 1, 6)
    points = [{"x": x} for x in grid for _ in grid]
    contexts = [{"z": z} for _ in grid for z in grid]
    values = [-((p["x"] - c["z"]) ** 2) for p, c in zip(points, contexts, strict=True)]
    opt.add(points, values, context=contexts)
    opt.suggest(context={"z": 0.5})
    for z in (0.1, 0.9):
        assert opt.recommend(context={"z": z})["x"] == pytest.approx(z, abs=0.15)
        mean, _ = opt.predict([{"x": 0.1}, {"x": 0.9}], context={"z": z})
        assert (mean[0] > mean[1]) == (z < 0.5)


# What is known.


@both
def test_nothing_is_known_at_first(kind):
    opt = kind(BOX, seed=0)
    assert (opt.best_trial_, opt.best_params_, opt.best_value_) == (None, None, None)
    assert (opt.trials, opt.pending_, opt.n_trials) == ([], [], 0)
    with pytest.raises(bl.NotFitted):
        opt.recommend()


def test_predictions_pass_through_the_data():
    opt = bl.BayesOpt(BOX, direction="minimize", seed=0)
    for trial in opt.suggest(n=20):
        trial.observe(100.0 - 10 * objective(trial.params))
    with pytest.raises(bl.NotFitted):
        bl.BayesOpt(BOX).predict([{"x": 0.0, "n": 1}])
    opt.suggest()
    seen = [trial.params for trial in opt.trials[:20]]
    values = np.array([trial.value for trial in opt.trials[:20]])
    mean, std = opt.predict(seen)
    assert mean.shape == std.shape == (20,) and (std >= 0).all()
    assert mean == pytest.approx(values, abs=0.2 * values.std())
    recommended = opt.recommend()
    assert opt.predict(recommended)[0] <= mean.min() + 1e-3 * values.std()
    assert objective(recommended) >= sorted(objective(params) for params in seen)[-3]


def test_predictions_on_candidates():
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    opt.add(range(12), [-((row[0] - 4) ** 2) for row in ROWS])
    opt.suggest()
    mean, std = opt.predict()
    assert mean.shape == (12,) and int(mean.argmax()) == 4
    assert opt.recommend().tolist() == ROWS[4].tolist()
    for some in ([2, 7], ROWS[[2, 7]]):
        assert opt.predict(some)[0] == pytest.approx(mean[[2, 7]], rel=1e-9)


def test_pending_trials_in_predictions():
    opt = bl.BayesOpt(BOX, acquisition="ucb", pending="hallucinate", seed=0)
    run(opt, 25, lag=1)
    waiting = opt.add({"x": -0.9, "n": 8})
    without, with_ = (opt.predict(waiting.params, pending=pending) for pending in (False, True))
    assert with_[0] == pytest.approx(without[0], rel=1e-6, abs=1e-9)
    assert with_[1] < without[1]


def test_dataframe():
    opt = bl.RandomSearch({"x": (0.0, 1.0), "value": ["u", "v"]}, context={"age": (0, 9)}, seed=0)
    opt.add({"x": 0.5, "value": "u"}, 2.0, context={"age": 3})
    opt.suggest(context={"age": 4})
    table = opt.trials_dataframe()
    assert list(table["number"]) == [0, 1] and list(table["state"]) == ["observed", "pending"]
    assert table["value"][0] == 2.0 and math.isnan(table["value"][1])
    assert list(table["context_age"]) == [3, 4] and table["params_x"][0] == 0.5 and table["params_value"][0] == "u"
    again = bl.RandomSearch(candidates=ROWS, seed=0)
    assert len(again.trials_dataframe()) == 0
    again.suggest(n=2)
    assert list(again.trials_dataframe()["index"]) == [trial.index for trial in again.trials]


def test_dataframe_without_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        bl.RandomSearch(BOX).trials_dataframe()


# Copies, threads, settings.


@both
@pytest.mark.parametrize("travel", [lambda opt: pickle.loads(pickle.dumps(opt)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("after", [0, 2, 9, 14])
def test_a_copy_goes_on_as_the_original(kind, travel, after):
    opt = kind(BOX, direction="minimize", seed=2)
    run(opt, after, sign=-1.0)
    opt.enqueue({"x": 0.25, "n": 2})
    twin = travel(opt)
    assert twin.get_params() == opt.get_params() and twin.seed_ == opt.seed_
    assert [(t.number, t.params, t.state, t.value, t.suggested_at, t.observed_at) for t in twin.trials] == [
        (t.number, t.params, t.state, t.value, t.suggested_at, t.observed_at) for t in opt.trials
    ]
    for one in (opt, twin):
        for trial in one.pending_:
            trial.observe(-objective(trial.params))
    assert run(twin, 8, sign=-1.0) == run(opt, 8, sign=-1.0)


@both
def test_threads(kind):
    opt = kind({"x": (0.0, 1.0)}, seed=0)

    def work(_):
        trial = opt.suggest()
        trial.observe(trial.params["x"])
        return trial.number

    with ThreadPoolExecutor(4) as pool:
        numbers = sorted(pool.map(work, range(40)))
    assert numbers == list(range(40)) and not opt.pending_
    assert all(trial.value == trial.params["x"] for trial in opt.trials)


def test_arguments_are_readable_and_settable_as_in_sklearn():
    space = {"x": (0.0, 1.0)}
    opt = bl.BayesOpt(space, window=20, seed=0)
    assert opt.space is space and opt.window == 20 and opt.get_params()["window"] == 20
    assert opt.set_params(window=30, pending="censor") is opt
    assert opt.window == 30 and opt.pending == "censor" and opt.seed == 0
    assert clone(opt).get_params() == opt.get_params()
    with pytest.raises(bl.InvalidSetting, match="windw=3 .*did you mean window"):
        opt.set_params(windw=3)
    with pytest.raises(bl.InvalidSetting, match="pending"):
        opt.set_params(window=40, pending="nonsense")
    assert opt.window == 30
    with pytest.raises(bl.InvalidSetting, match="set_params"):
        opt.window = 50
    opt.suggest()
    with pytest.raises(bl.InvalidSetting, match="too late"):
        opt.set_params(window=40)
    assert opt.window == 30


def test_set_params_does_not_drop_enqueued_points():
    opt = bl.RandomSearch(BOX)
    opt.enqueue({"x": 0.0, "n": 1})
    with pytest.raises(bl.InvalidSetting, match="too late"):
        opt.set_params(seed=3)


@both
@pytest.mark.parametrize(
    "arguments",
    [{}, {"space": BOX, "candidates": ROWS}, {"space": {}}, {"candidates": []}, {"space": ROWS}]
    + [{"space": BOX, "context": context} for context in ({}, {"x": (0.0, 1.0)}, 3)],
    ids=str,
)
def test_spaces_that_cannot_be_searched(kind, arguments):
    with pytest.raises(bl.InvalidSpace):
        kind(**arguments)


@both
@pytest.mark.parametrize(
    "argument",
    [{"seed": value} for value in (-1, 1.5, "0", True, 2**64, np.random.default_rng(0))]
    + [{"clock": "minutes"}, {"clock": None}, {"direction": "up"}, {"direction": ["maximize"]}]
    + [{"time": 3, "clock": "seconds"}, {"time": lambda: 0.0}],
    ids=str,
)
def test_settings_of_all_that_are_refused(kind, argument):
    with pytest.raises(bl.InvalidSetting, match=next(iter(argument))):
        kind(BOX, **argument)


def refused(*fields, values):
    return [(field, value) for field in fields for value in values]


REFUSED = refused("acquisition", "pending", "surrogate", values=("nonsense", 3, bl.Initial()))
REFUSED += refused("initial", values=("nonsense", -1, 2.5, True, bl.GP()))
REFUSED += refused("window", values=(-1, 0, math.nan, math.inf, "20", True, [20]))
REFUSED += refused("Censor.late", "GP.kernel", "GP.refit_clock", "GP.fit_rows", values=("nonsense", 3, None))
REFUSED += refused("Initial.how", "GP.targets", "ThompsonSampling.draws", values=("nonsense", 3))
REFUSED += refused("GP.mean", "UCB.beta", "ThompsonSampling.beta", "Liar.value", values=("nonsense", [1], None, True))
REFUSED += refused("Censor.floor", values=(math.nan, -math.inf, "0", 1j))
REFUSED += refused("GP.signal_std", "GP.noise_std", values=(-1.0, math.nan, "0.1"))
REFUSED += refused("GP.lengthscale", values=(0.0, -1.0, [1.0] * 3, [1.0, -1.0], [1.0, "a"], math.nan, "1", []))
REFUSED += refused("GP.refit_every", "Initial.n", "ThompsonSampling.n_features", values=(-1, 2.5, "3", True))
REFUSED += refused("Integrate.n", "Nearest.k", "GP.n_restarts", values=(-1, 2.5, "3", True))
REFUSED += refused("GP.ard", "GP.priors", "UCB.predictive_std", "ThompsonSampling.widen", values=(1, "yes", []))
REFUSED += refused("GP.initial_theta", values=(1.0, (1.0, 1.0), ("a", 1.0, 1.0), (0.0, 1.0, 1.0)))
REFUSED += refused("LogEI.multistart", "UCB.multistart", values=(1, (1,), (1.5, 2), "default"))
REFUSED += refused("UCB.rkhs_bound", "UCB.delta", values=("1", math.nan))
REFUSED += [("Censor.late", "discard")]

ARGUMENT_OF = {bl.GP: "surrogate", bl.Initial: "initial"}
ARGUMENT_OF |= dict.fromkeys((bl.LogEI, bl.UCB, bl.ThompsonSampling, bl.MaxVariance), "acquisition")
ARGUMENT_OF |= dict.fromkeys((bl.Integrate, bl.Hallucinate, bl.Ignore, bl.Censor, bl.Liar, bl.Nearest), "pending")


@pytest.mark.parametrize("name, value", REFUSED, ids=str)
def test_settings_of_bayes_opt_that_are_refused(name, value):
    kind, _, field = name.rpartition(".")
    with pytest.raises(bl.InvalidSetting, match=field):
        if kind:
            kind = getattr(bl, kind)
            bl.BayesOpt(BOX, **{ARGUMENT_OF[kind]: kind(**{field: value})})
        else:
            bl.BayesOpt(BOX, **{field: value})


def test_settings_of_bayes_opt_that_are_not():
    opt = bl.BayesOpt(
        BOX,
        window=np.int64(20),
        acquisition=bl.UCB("kandasamy"),
        pending=bl.Censor(np.float32(-3)),
        surrogate=bl.GP(lengthscale=(0.5, 0.5), mean="median"),
        initial=4,
    )
    run(opt, 12)
    assert opt.window == 20


def test_the_base_is_not_an_optimizer():
    with pytest.raises(bl.InvalidSetting, match="use BayesOpt"):
        bl.Optimizer(BOX)


def test_repr():
    assert repr(bl.RandomSearch({"x": (0, 1)}, seed=1)) == "RandomSearch(space={'x': (0, 1)}, seed=1)"
    assert repr(bl.BayesOpt(candidates=ROWS, window=5)) == "BayesOpt(window=5, candidates=<12 candidates of 2 columns>)"


def test_html_shows_the_latest_trials():
    opt = bl.RandomSearch(BOX, seed=0)
    opt.add({"x": 0.5, "n": 1}, 0.0)
    opt.suggest(n=15)
    page = opt._repr_html_()
    assert "16 trials, 15 pending, best 0.0" in page
    assert "<td>15</td>" in page and "<td>5</td>" not in page


# Noise that is known.


@pytest.mark.parametrize("std", [-1.0, math.nan, math.inf, "0.1", 1j, [0.1, 0.2]])
def test_a_std_that_cannot_be_one_is_refused(std):
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    trial = opt.suggest()
    for report in (lambda: opt.observe(trial, 1.0, std=std), lambda: opt.add([{"x": 0.5}] * 3, [1.0] * 3, std=std)):
        with pytest.raises(bl.InvalidValue, match="std"):
            report()
        assert opt.n_trials == 1 and trial.state == "pending"


def test_a_std_belongs_to_its_value():
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    trial = opt.suggest()
    trial.observe(1.0, std=0.25)
    trial.observe(1.0)
    trial.observe(1.0, std=0.25)
    assert trial.std == 0.25 and "std=0.25" in repr(trial)
    with pytest.raises(bl.AlreadyObserved):
        trial.observe(1.0, std=0.5)
    trial.observe(1.0, amend=True, std=0.5)
    assert trial.std == 0.5
    trial.observe(2.0, amend=True)
    assert trial.std is None
    added = opt.add([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], [1.0, None, 2.0], std=[0.1, 0.2, None])
    assert [trial.std for trial in added] == [0.1, None, None]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_model_trusts_values_as_far_as_their_std_allows(direction):
    opt = bl.BayesOpt({"x": (0.0, 1.0)}, initial=0, surrogate=bl.GP(refit_every=1), seed=0, direction=direction)
    x = np.linspace(0, 1, 12)
    opt.add([{"x": v} for v in x], np.sin(6 * x), std=0.01)
    opt.add({"x": 0.5}, 8.0, std=50.0)
    opt.suggest()
    mean, std = opt.predict([{"x": 0.5}])
    assert abs(mean[0] - np.sin(3.0)) < 0.1 and std[0] < 0.1
    opt.observe(12, 8.0, amend=True, std=0.01)
    opt.add({"x": 0.97}, np.sin(6 * 0.97), std=0.01)
    opt.suggest()  # fits again: so smooth a model as before could not follow
    assert abs(opt.predict([{"x": 0.5}])[0][0] - 8.0) < 0.5


def test_where_warnings_are_errors_no_trial_is_left_behind():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, initial=2, surrogate=bl.GP(targets="raw"), seed=0)
    for trial in optimizer.suggest(4):
        trial.observe(1.7e308 * (-1) ** trial.number)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bl.BelatedWarning, match="overflow"):
            optimizer.suggest()
    assert not optimizer.pending_
    with pytest.warns(bl.BelatedWarning, match="overflow"):
        assert optimizer.suggest().state == "pending"
