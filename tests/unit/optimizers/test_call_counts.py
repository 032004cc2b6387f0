"""The work of a call in Python: the numbers of calls are small and do not depend on the number of trials, and existing
attributes do not reach `__getattr__`, which searches for similar names."""

import pickle
import sys

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.optimizers.trials import Reading
from belated.run.objective import RunningTrial
from belated.store.memory import MemoryStore

BOX = {"x": (0.0, 1.0), "n": (1, 8)}
FEW = {"a": ["p", "q"], "b": (1, 4)}
FIXED = bl.GP(lengthscale=0.5, signal_std=1.0, noise_std=0.1)
N_CANDIDATES = 20
MANY = 10_000
# The check of a window calls these functions. Their first calls prepare numpy, which is not counted.
np.quantile([0.0], [0.5])
bl.RandomSearch(BOX)._log.arrivals(in_wall_time=False)


def model(**arguments):
    """Return a function that makes a `BayesOpt` on a small space; the model is not fitted, so suggestions are quick."""
    return lambda **more: bl.BayesOpt(FEW, surrogate=FIXED, seed=0, **arguments, **more)


def eliminates(**more):
    rows = np.arange(float(N_CANDIDATES))[:, None]
    return bl.BPEDelay(candidates=rows, horizon=4000, lengthscale=5.0, noise_std=0.1, seed=0, **more)


OPTIMIZERS = {
    "RandomSearch": lambda **more: bl.RandomSearch(BOX, seed=0, **more),
    "TreeSearch": lambda **more: bl.TreeSearch(BOX, seed=0, **more),
    "log_ei": model(),
    "ucb": model(acquisition="ucb"),
    "thompson": model(acquisition="thompson"),
    "window": model(window=100.0),
    "window auto": model(acquisition="ucb", pending=bl.Censor(floor=-3.0), window="auto"),
    "BPEDelay": eliminates,
    "window of GP-UCB-SDF": lambda **more: bl.algorithm("GP-UCB-SDF", FEW, window=50, surrogate=FIXED, seed=0, **more),
    "POO": lambda **more: bl.TreeSearch(BOX, horizon=4000, seed=0, **more),
}
# `report` and `should_stop` need a curve.
CURVES = ("RandomSearch", "log_ei", "window")
# The largest numbers of calls, of an optimizer and of a study in memory.
LIMITS = {"suggest": (30, 120), "params": (25, 25), "observe": (25, 95), "report": (30, 110), "should_stop": (60, 80)}
# The check of a window counts the results so far.
CHECK = 100
each_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)
each_owner = pytest.mark.parametrize("stored", [False, True])


def opened(name, stored, **more):
    optimizer = OPTIMIZERS[name](**more)
    return bl.Study("s", MemoryStore(), optimizer) if stored else optimizer


def calls(function):
    """Return the number of calls of Python and C functions that a function makes, and its result."""
    n = 0

    def count(frame, event, arg):
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return n - 1, result  # the call that ends the profile is left out


def grow(source, n):
    """Observe or add trials until there are n trials."""
    rng = np.random.default_rng(source.n_trials)
    missing = n - source.n_trials
    if n == MANY:
        for trial in source.suggest(n=missing):
            source.observe(trial, rng.random())
        return
    points = rng.integers(N_CANDIDATES, size=missing).tolist()
    if isinstance(source.domain, bl.Space):
        names = list(source.domain)
        values = [("pq"[each % 2] if "a" in names else 0.5, 1 + each % 4) for each in points]
        points = [dict(zip(names, each, strict=True)) for each in values]
    source.add(points, rng.random(missing).tolist())


def cycle(source, curve):
    """Return the number of calls of each method in the life cycle of a trial."""
    counts = {}
    counts["suggest"], trial = calls(source.suggest)
    counts["params"], _ = calls(lambda: trial.params)
    if curve:
        counts["report"], _ = calls(lambda: source.report(trial, 0.5, 1))
        counts["should_stop"], _ = calls(lambda: source.should_stop(trial))
    counts["observe"], _ = calls(lambda: source.observe(trial, 0.5))
    return counts


def largest(source, curve):
    """Return the largest number of calls of each method in several life cycles."""
    cycle(source, curve)  # the first suggestion reads the trials that were added
    found = [cycle(source, curve) for _ in range(8)]
    return {name: max(each[name] for each in found) for name in found[0]}


@each_owner
@pytest.mark.parametrize(("name", "curve"), [(each, False) for each in OPTIMIZERS] + [(each, True) for each in CURVES])
def test_the_number_of_calls_is_small_and_does_not_depend_on_the_number_of_trials(name, curve, stored):
    source = opened(name, stored, **({"curve": bl.Curve(3), "stopping": bl.ASHA()} if curve else {}))
    grow(source, 10)
    few = largest(source, curve)
    grow(source, MANY if name in ("RandomSearch", "TreeSearch") else 1000)
    many = largest(source, curve)
    checks = CHECK if "window" in name else 0
    for what, n in many.items():
        more = checks if what == "suggest" else 0
        assert max(n, few[what]) <= LIMITS[what][stored] + more, (what, few, many)
        assert n <= few[what] + more, (what, few, many)


@each_owner
def test_the_number_of_calls_for_a_row_of_a_table_does_not_grow_with_the_table(stored):
    counts = []
    for n in (200, 2000):
        source = opened("RandomSearch", stored)
        table = pd.DataFrame({"x": np.linspace(0, 1, n), "n": np.arange(n) % 8 + 1, "value": np.linspace(0, 1, n)})
        table["day"] = [f"day {i}" for i in range(n)]
        counts.append(calls(lambda source=source, table=table: source.add(table, attrs=["day"]))[0] / n)
    assert counts[1] <= counts[0] <= 250


@pytest.fixture
def missed(monkeypatch):
    """The names that reached `__getattr__`."""
    names = []

    def recorded(original):
        def record(self, name):
            names.append((type(self).__name__, name))
            return original(self, name)

        return record

    for cls in (Reading, RunningTrial):
        monkeypatch.setattr(cls, "__getattr__", recorded(cls.__getattr__))
    return names


def use(source, curve=False):
    """Use every state of a trial and the members that read trials and the model."""
    first, second, third = source.suggest(n=3)
    if curve:
        first.report(0.5, 1)
        first.should_stop()
        second.stop()
    first.observe(1.0)
    second.observe(0.5)
    third.fail(error="lost")
    source.abandon(source.suggest())
    source.enqueue(first.params if first.index is None else first.index)
    source.add(first.params if first.index is None else first.index, 0.75)
    for _ in range(12):
        source.suggest().observe(0.5)
    for trial in source.trials:
        repr(trial)
        assert trial.number >= 0 and trial.params is not None
    assert source.best_value_ == 1.0 and source.recommend() is not None
    if source._optimizer._has_model:
        source.predict([first.params])
    source.trials_dataframe(delays=True)
    str(source.forecast())
    source.overdue()
    repr(source)
    source._repr_html_()


@each_owner
@each_optimizer
def test_attributes_that_exist_are_found_without_a_search(name, stored, missed):
    source = opened(name, stored)
    use(source)
    if not stored:
        pickle.loads(pickle.dumps(source)).suggest()
        source.get_params()
    assert missed == []


@pytest.mark.parametrize("name", CURVES)
def test_attributes_of_curves_are_found_without_a_search(name, missed):
    use(opened(name, False, curve=bl.Curve(3), stopping=bl.ASHA()), curve=True)
    assert missed == []


@each_owner
@each_optimizer
def test_attributes_in_a_run_and_its_result_are_found_without_a_search(name, stored, missed):
    def f(params, trial):
        trial.attrs["n"] = trial.number
        if trial.number == 3:
            raise ValueError
        return 0.5

    source = opened(name, stored)
    with pytest.warns(bl.BelatedWarning, match="trial 3 failed"):
        result = bl.maximize(f, optimizer=source, n_trials=8, progress=False)
    assert result.n_trials == 8 and result.n_failed == 1
    assert result.best_value_ == 0.5 and result.best_trial_.attrs
    repr(result)
    result._repr_html_()
    result.trials_dataframe()
    assert missed == []


@each_optimizer
def test_plots_find_attributes_without_a_search(name, missed):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    source = opened(name, False)
    use(source)
    missed.clear()
    bl.plotting.plot_trials(source)
    bl.plotting.plot_delays(source)
    bl.plotting.plot_convergence(source)
    pyplot.close("all")
    assert missed == []
