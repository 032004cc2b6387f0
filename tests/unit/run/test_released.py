"""The memory of a failed evaluation is released at once, without the garbage collector."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import belated as bl
from tests.unit.run.runs import SPACE, failures_expected


class Net:
    """An object that stands for a model."""


class Diverged(Exception):
    """An error with a required argument that is not a string."""

    def __init__(self, net):
        super().__init__(net)
        self.net = net


@dataclass(frozen=True)
class Frozen(Exception):
    net: Net


def plain(net):
    raise MemoryError("out of memory")


def chained(net):
    try:
        plain(net)
    except MemoryError as error:
        raise RuntimeError("no memory") from error


def kept_in_a_local(net):
    try:
        plain(net)
    except MemoryError as error:
        saved = error
    raise saved


def kept_context(net):
    try:
        plain(net)
    except MemoryError as error:
        saved = error  # noqa: F841
        raise RuntimeError("no memory")  # noqa: B904


def missing_attribute(net):
    return net.layers


def in_the_arguments(net):
    raise Diverged(net)


def frozen(net):
    raise Frozen(net)


def group(net):
    try:
        plain(net)
    except MemoryError as error:
        saved = error
    raise ExceptionGroup("several", [saved])  # noqa: F821 (Python 3.11)


KINDS = [plain, chained, kept_in_a_local, kept_context, missing_attribute, in_the_arguments, frozen]
KINDS += [group] if sys.version_info >= (3, 11) else []
nets = []


def n_alive():
    return sum(net() is not None for net in nets)


@pytest.fixture(autouse=True)
def without_garbage_collector():
    nets.clear()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Failing:
    """A function that allocates a net and fails in its calls 2 and 3; it can be sent to a process."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, params, trial):
        trial.attrs["n_alive"] = n_alive()
        net = Net()
        nets.append(weakref.ref(net))
        if len(nets) in (2, 3):
            self.kind(net)
        return params["x"]


@failures_expected
@pytest.mark.parametrize(
    ("kind", "workers"),
    [(kind, workers) for kind in KINDS for workers in ({}, {"timeout": 1e9})] + [(plain, {"processes": True})],
)
def test_objects_of_failed_evaluations_are_released(kind, workers):
    after = []
    result = bl.maximize(
        Failing(kind),
        SPACE,
        n_trials=5,
        seed=0,
        callbacks=[lambda optimizer, trial: after.append(n_alive())],
        **workers,
    )
    assert [trial.attrs["n_alive"] for trial in result.trials] == [0] * 5 and after == [0] * 5
    assert [trial.state for trial in result.trials] == ["observed", "failed", "failed", "observed", "observed"]
    assert f"in {kind.__name__}" in result.trials[1].error.traceback


@failures_expected
@pytest.mark.parametrize("kind", KINDS)
def test_run_error_shows_the_traceback_but_keeps_no_object(kind):
    def f(params):
        net = Net()
        nets.append(weakref.ref(net))
        kind(net)

    with pytest.raises(bl.errors.RunError) as caught:
        bl.maximize(f, SPACE, n_trials=4)
    assert len(nets) == 3 and n_alive() == 0
    cause = caught.value.__cause__
    with pytest.raises(Exception) as raised:
        kind(Net())
    assert type(cause) in (raised.type, RuntimeError) and f"in {kind.__name__}" in str(cause.__cause__)


@failures_expected
def test_objects_of_a_generator_with_a_curve_are_released():
    def f(params):
        yield n_alive()
        net = Net()
        nets.append(weakref.ref(net))
        if len(nets) < 3:
            plain(net)
        yield 1

    space = bl.RandomSearch(SPACE, curve=bl.Curve(2), seed=0)
    result = bl.maximize(f, optimizer=space, n_trials=4, n_workers=1, timeout=1e9)
    assert [trial.curve[1] for trial in result.trials] == [0] * 4 and result.n_failed == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_store", [False, True])
def test_objects_of_an_error_that_is_reported_by_hand_are_released(kind, with_store, tmp_path):
    opt = bl.RandomSearch(SPACE, seed=0)
    owner = bl.Study("s", f"sqlite:///{tmp_path}/s.db", opt) if with_store else opt

    def evaluate(trial):
        net = Net()
        nets.append(weakref.ref(net))
        kind(net)

    for _ in range(2):
        trial = owner.suggest()
        try:
            evaluate(trial)
        except Exception as error:
            owner.fail(trial, error=error)
            assert error.__traceback__ is not None  # the error belongs to the caller
        if kind not in (kept_in_a_local, kept_context, group):  # these errors are part of a reference cycle themselves
            assert n_alive() == 0
        assert f"in {kind.__name__}" in trial.error.traceback


@failures_expected
def test_objects_in_the_threads_of_a_given_executor_are_released():
    with ThreadPoolExecutor(1) as pool:
        result = bl.maximize(Failing(chained), SPACE, n_trials=5, executor=pool)
        assert [trial.attrs["n_alive"] for trial in result.trials] == [0] * 5
