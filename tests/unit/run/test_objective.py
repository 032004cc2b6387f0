"""Users' functions: how they are called, what they may return, and which functions are refused."""

import functools
import multiprocessing
import operator
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belated as bl
from belated.run.objective import read_returned
from tests.ids import without_address
from tests.unit.run.runs import METHODS, ROWS, SPACE, forks

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def run(f, space=SPACE, n_trials=3, **arguments):
    return bl.maximize(f, space, n_trials=n_trials, seed=0, **arguments)


def values(result):
    return [trial.value for trial in result.trials]


def xs(result):
    return [trial.params["x"] for trial in result.trials]


# How f is called.


class Method:
    def call(self, params):
        return params["x"]

    def __call__(self, params):
        return params["x"]


def of_params(params):
    return params["x"]


def passes_on(f):
    @functools.wraps(f)
    def passing(*args, **kwargs):
        return f(*args, **kwargs)

    return passing


def by_name(f):
    @functools.wraps(f)
    def named(params):
        return f(**params)

    return named


@pytest.mark.parametrize(
    "f",
    [
        of_params,
        lambda p, scale=1.0: scale * p["x"],
        lambda p, *rest, **more: p["x"],
        lambda *args: args[0]["x"],
        Method().call,
        Method(),
        functools.partial(lambda scale, p: scale * p["x"], 1.0),
        passes_on(of_params),
        by_name(lambda x, n: x),
        operator.itemgetter("x"),
        lambda p, /: p["x"],
    ],
)
def test_functions_of_the_params(f):
    best = run(f)
    assert values(best) == xs(best)


def test_builtins_are_called_with_the_params():
    assert values(run(len)) == [2.0] * 3
    best = bl.maximize(max, candidates=ROWS, n_trials=3)
    assert values(best) == [max(trial.x) for trial in best.trials]


def note(params, trial):
    trial.attrs["number"] = trial.number
    params.clear()
    return trial.params["x"]


@pytest.mark.parametrize(
    "f",
    [
        note,
        lambda params, trial=None: note(params, trial),
        lambda params, *, trial: note(params, trial),
        lambda params, trial, /: note(params, trial),
        lambda trial, params: note(params, trial),
        lambda params, verbose=False, trial=None: note(params, trial),
        lambda *args, trial: note(*args, trial),
        lambda trial: note({}, trial),
        passes_on(note),
    ],
)
def test_a_parameter_named_trial_gets_the_trial(f):
    best = run(f)
    assert values(best) == xs(best)
    assert [trial.attrs for trial in best.trials] == [{"number": trial.number} for trial in best.trials]


def test_the_trial_of_candidates_has_the_row():
    def f(x, trial):
        assert (trial.params == x).all()
        x[:] = -1
        return trial.params[0]

    best = bl.maximize(f, candidates=ROWS, n_trials=4)
    assert values(best) == [trial.x[0] for trial in best.trials]


@METHODS
@forks
def test_the_trial_in_processes(method):
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        best = run(note, n_trials=5, executor=pool)
    assert values(best) == xs(best)
    assert [trial.attrs for trial in best.trials] == [{"number": trial.number} for trial in best.trials]


# The run refuses these functions before it starts a trial.


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda params, data: 1.0, r"cannot be called with one dict.*'data'.*: write lambda p: f\(p, data=…\)$"),
        (lambda: 1.0, "cannot be called with one dict"),
        (lambda params, data, trial: 1.0, "cannot be called with one dict.*'data'"),
        (3, "^f=3 is not usable: pass a function"),
        (None, "^f=None is not usable"),
    ],
)
def test_functions_that_are_refused(f, message):
    opt = bl.RandomSearch(BOX)
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.maximize(f, optimizer=opt, n_trials=3)
    assert opt.n_trials == 0


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, *, y: x + y,
        lambda y, x, c=1: x + y,
        lambda x, y, trial: x + y,
        lambda **params: params["x"] + params["y"],
    ],
)
def test_the_advice_for_functions_of_the_names_runs_them(f):
    opt = bl.RandomSearch(BOX)
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        bl.maximize(f, optimizer=opt, n_trials=3)
    assert opt.n_trials == 0
    advice = str(caught.value).partition("write ")[2]
    result = bl.maximize(eval(advice, {"f": f}), optimizer=opt, n_trials=3)
    assert values(result) == [sum(trial.params.values()) for trial in result.trials]


def test_a_function_of_one_name_may_mean_the_dict():
    opt = bl.RandomSearch({"x": (0.0, 1.0)})
    with pytest.raises(bl.errors.InvalidSetting, match=r"write lambda p: f\(\*\*p\), or rename x if it is that dict$"):
        bl.maximize(lambda x: x, optimizer=opt, n_trials=3)
    assert opt.n_trials == 0


def test_one_parameter_of_another_name_is_the_params():
    best = run(lambda z: z["x"], BOX)
    assert values(best) == xs(best)


# Return values of f.


class Tensor:
    """A tensor of a package that is unknown to numpy."""

    def __init__(self, value, shape):
        self.value, self.shape = value, shape

    def item(self):
        return self.value

    def tolist(self):
        return self.value


@pytest.mark.parametrize(
    "returned",
    [
        *(0.5, np.float32(0.5), np.array(0.5), np.array([0.5]), np.array([[0.5]]), Tensor(0.5, ()), Tensor(0.5, (1,))),
        *(
            {"value": 0.5},
            {"value": np.array([0.5]), "std": None, "cost": None, "attrs": None},
            {"value": 0.5, "attrs": {}},
        ),
    ],
)
def test_one_number(returned):
    trial = run(lambda p: returned, n_trials=1).trials[0]
    assert (trial.value, trial.std, trial.cost, trial.attrs) == (0.5, None, None, {})


@pytest.mark.filterwarnings("ignore:trial 0 failed:belated.BelatedWarning")
@pytest.mark.parametrize(
    "returned",
    [(0.9, 76.0), (1, 2), [0.9, 76.0], (0.5, np.nan), (np.nan, 0.5), (np.float32(0.5), np.array(0.1))]
    + [np.array([0.9, 76.0]), Tensor([0.9, 76.0], (2,))],
    ids=without_address,
)
def test_two_numbers_without_names_are_refused_with_both_readings(returned):
    with pytest.raises(bl.errors.RunError) as raised:
        run(lambda p: returned, n_trials=1)
    [trial] = raised.value.result.trials
    assert trial.state == "failed" and trial.value is None and trial.std is None
    first, second = (repr(number) for number in (returned if isinstance(returned, (tuple, list)) else [0.9, 76.0]))
    for name in ("std", "cost"):
        assert f"{{'value': {first}, '{name}': {second}}}" in str(trial.error)


class Shaped:
    """Objects whose shape is invalid, and objects with a shape and without the method `item`."""

    def __init__(self, shape):
        self.shape = shape

    def __repr__(self):
        return "Shaped"


def test_a_mapping():
    def f(params, trial):
        trial.attrs |= {"written": 1, "both": "written"}
        return {"value": 0.5, "std": 0.0, "cost": 3, "attrs": {"returned": [None, 2.5], "both": "returned"}}

    trial = run(f, n_trials=1).trials[0]
    assert (trial.value, trial.std, trial.cost) == (0.5, 0.0, 3.0)
    assert trial.attrs == {"written": 1, "both": "returned", "returned": [None, 2.5]}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"loss": 0.5}, "a mapping with the unknown key 'loss': return a number, or"),
        ({}, "a mapping without the key 'value'"),
        ({"value": None}, "with value=None, which is not one finite number"),
        ({"value": (0.5, 0.1)}, "not one finite number"),
        (None, "did you forget `return`"),
        ({"value": 0.5, "std": -0.1}, "with std=-0.1, which is not a finite number >= 0"),
        ({"value": 0.5, "std": "0.1"}, "with std='0.1', which is not"),
        ({"value": 0.5, "cost": -np.inf}, "with cost=-inf, which is not"),
        ((1.0, 0.1, 0.2), "not one finite number: return a number, or a mapping.*; for several objectives"),
        ((1.0, -3.0), "two numbers without names: for several objectives, declare"),
        ((1.0, "0.1"), "not one finite number: return"),
        ((), "not one finite number"),
        (np.nan, "not one finite number"),
        (np.ones(3), "not one finite number"),
        *((each, "not one finite number") for each in (np.inf, "0.5", 1j, True, [1.0], np.zeros(0))),
        (Shaped(1), "not one finite number"),
        (Shaped((1,)), "not one finite number"),
        (Shaped(None), "not one finite number"),
    ],
    ids=without_address,
)
def test_unusable_returned_values_fail(returned, message):
    opt = bl.RandomSearch(SPACE, seed=0)
    opt.add({"x": 0.5, "n": 1}, 1.0)
    with (
        pytest.warns(bl.BelatedWarning, match=f"^trial 1 failed: f returned .*{message}"),
        pytest.raises(bl.errors.RunError),
    ):
        bl.maximize(lambda p: returned, optimizer=opt, n_trials=1)
    assert opt.trial(1).state == "failed" and opt.best_value_ == 1.0
    assert "f returned" in str(opt.trial(1).error)


class Local(str):
    """A string of a class that a worker cannot send."""

    def __reduce__(self):
        raise TypeError("cannot be sent")


def hostile_attrs(params, trial):
    trial.attrs |= {"f": lambda: 0, "n": params["n"], "s": Local("a")}
    if params["n"] == 7:
        trial.attrs = 3
    if params["n"] == 8:
        raise OSError("no such level")
    return {"value": 1.0, "attrs": {"more": {1, params["n"]}}} if params["n"] < 7 else 1.0


@forks
@pytest.mark.parametrize("kind", ["call", "threads", "pool", "processes"])
def test_a_value_is_stored_whatever_is_wrong_with_its_attrs(kind):
    opt = bl.RandomSearch(SPACE, curve=bl.Curve(2))
    opt.enqueue([{"x": 0.5, "n": n} for n in (1, 1, 7, 8)])
    pool = ProcessPoolExecutor(1) if kind == "pool" else None
    workers = {"call": {}, "threads": {"n_workers": 2}, "pool": {"executor": pool}, "processes": {"processes": True}}
    with pytest.warns(bl.BelatedWarning) as warned:
        result = bl.maximize(hostile_attrs, optimizer=opt, n_trials=4, **workers[kind])
    messages = [str(each.message) for each in warned]
    assert sum("the report is stored" in each for each in messages) == 1 and len(messages) == 2
    returned, again, other, raises = result.trials
    assert [trial.value for trial in result.trials] == [1.0, 1.0, 1.0, None]
    for trial in (returned, again):
        assert set(trial.attrs) == {"f", "n", "s", "more"} and "<lambda>" in trial.attrs["f"]
        assert trial.attrs["n"] == 1 and trial.attrs["s"] == "a" and trial.attrs["more"] == "{1}"
    assert other.attrs == {} and "no such level" in str(raises.error) and raises.attrs["n"] == 8
    if pool is not None:
        pool.shutdown()


@pytest.mark.parametrize(
    "attrs", [3, "ab", np.arange(3), [("a", 1)], {3: 1}, {"model": object()}, {"a": {"b": np.nan}}], ids=without_address
)
def test_returned_attrs_that_are_not_json_never_lose_a_value(attrs):
    with pytest.warns(bl.BelatedWarning, match="^trial 0: attrs.*; the report is stored.*; further ones do not warn$"):
        result = run(lambda p: {"value": 0.5, "std": 0.1, "attrs": attrs}, n_trials=2)
    assert [(trial.value, trial.std) for trial in result.trials] == [(0.5, 0.1)] * 2


def test_a_study_keeps_all_returned_fields(tmp_path):
    def f(params, trial):
        trial.attrs["machine"] = "a"
        if params["n"] == 8:
            raise OSError("no such level")
        return {"value": params["x"], "std": 0.25, "cost": 2.0, "attrs": {"n": params["n"]}}

    study = bl.Study("s", f"sqlite:///{tmp_path / 'studies.db'}", bl.RandomSearch(SPACE, seed=0))
    study.enqueue([{"x": 0.5, "n": n} for n in (1, 8)])
    with pytest.warns(bl.BelatedWarning):
        bl.maximize(f, optimizer=study, n_trials=2)
    observed, failed = bl.Study.load("s", study.store).trials
    assert (observed.value, observed.std, observed.cost) == (0.5, 0.25, 2.0) and observed.duration > 0
    assert observed.attrs == {"machine": "a", "n": 1} and failed.attrs == {"machine": "a"}
    assert str(failed.error) == "OSError: no such level" and "in f" in failed.error.traceback


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, st.none() | numbers.map(abs), st.none() | numbers.map(abs))
def test_all_forms_of_a_returned_value_are_equivalent(value, std, cost):
    def outcome(returned):
        return read_returned(pickle.loads(pickle.dumps(returned)), {}, 0.0)

    mapping = {"value": value, "std": std, "cost": cost}
    expected = outcome(mapping)
    assert (expected.value, expected.std, expected.cost, expected.problem) == (value, std, cost, "")
    known = {name: number for name, number in mapping.items() if number is not None}
    assert outcome(known) == outcome({name: np.array([number]) for name, number in known.items()}) == expected
    if std is None and cost is None:
        assert outcome(value) == outcome(np.array(value)) == outcome(np.full((1, 1), value)) == expected


def test_durations_are_measured_where_f_runs(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("belated.run.objective.perf_counter", lambda: float(next(ticks)) ** 2)
    best = run(lambda p: 1.0)
    assert [trial.duration for trial in best.trials] == [1.0, 5.0, 9.0]


async def awaited(params):
    return 1.0


async def yielding(params):
    yield 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("f", [awaited, yielding, functools.partial(awaited), passes_on(awaited)])
def test_async_functions_are_refused(f):
    with pytest.raises(bl.errors.InvalidSetting, match=r"is async, .*: pass a function .*asyncio.run\(f\(params\)\)"):
        run(f)


@pytest.mark.filterwarnings("error", "ignore:trial .* failed:belated.BelatedWarning")
def test_a_result_that_was_not_awaited_is_named():
    with pytest.raises(bl.errors.RunError, match="f returned <coroutine .*, which was not awaited: pass a function"):
        run(lambda params: awaited(params))
