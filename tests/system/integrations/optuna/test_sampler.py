"""`BelatedSampler` passes Optuna's tests of samplers, chooses the points of `BayesOpt`, and checks its arguments."""

import functools
import importlib.util
import itertools
import multiprocessing
import pickle

import numpy as np
import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedSampler  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, events, f, log_of, sampler_of, study_of  # noqa: E402

# Optuna's own tests.

if importlib.util.find_spec("optuna.testing.pytest_samplers") is None:

    @pytest.mark.skip(reason="this version of Optuna comes without its tests of samplers")
    def test_optuna_tests_of_samplers():
        pass

else:
    from optuna.testing.pytest_samplers import (
        BasicSamplerTestCase,
        MultiObjectiveSamplerTestCase,
        RelativeSamplerTestCase,
    )

    class TestOptunaTestsOfSamplers(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
        @pytest.fixture
        def sampler(self):
            return lambda: BelatedSampler(warn_independent_sampling=False)


# Comparisons with belated's loop.


@pytest.fixture(params=["memory", "journal", "database"])
def opened(request, url, tmp_path):
    """Return a function that opens the storage again, as a new process would."""
    if request.param == "database":
        return lambda: optuna.storages.RDBStorage(url)
    if request.param == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal"))
        return lambda: optuna.storages.JournalStorage(backend)
    storage = optuna.storages.InMemoryStorage()
    return lambda: storage


@pytest.mark.parametrize(("direction", "in_flight"), [("minimize", 1), ("maximize", 4)])
def test_points_equal_the_points_of_belateds_loop_with_late_or_missing_values(opened, direction, in_flight):
    rng = np.random.default_rng(in_flight)
    own = bl.BayesOpt(SPACE, direction=direction, seed=3)
    trials, running = [], []
    for k in range(24):
        if k % 9 == 0:
            study = study_of(opened(), direction=direction)
        trials.append(own.suggest())
        assert study.ask(DISTRIBUTIONS).params == trials[k].params
        running.append(k)
        if len(running) < in_flight:
            continue
        k = running.pop(int(rng.integers(in_flight)))
        value = f(trials[k].params)
        if k % 7 == 3:
            own.fail(k)
            study.tell(k, state=TrialState.FAIL)
        elif k % 7 == 5:
            own.fail(k)
            study.tell(k, state=TrialState.PRUNED)  # the trial ends without a reported value
        else:
            own.observe(k, value)
            study.tell(k, value)
    derived = log_of(study)
    # The samplers derive the log of belated's loop, bit for bit, including the fitted hyperparameters.
    assert events(derived) == events(own._log)
    assert sum("note" in event["what"].get("Suggested", {}) for event in events(own._log)) > 5


def ask_and_tell(url, n):
    study = study_of(url)
    for _ in range(n):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))


def test_another_process_continues_bit_for_bit(url):
    ask_and_tell(url, 13)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=ask_and_tell, args=(url, 5))
    process.start()
    process.join()
    assert process.exitcode == 0
    own = bl.BayesOpt(SPACE, direction="minimize", seed=3)
    for trial in study_of(url).trials:
        suggested = own.suggest()
        assert suggested.params == trial.params
        own.observe(suggested, f(suggested.params))
    assert own.n_trials == 18


@pytest.mark.parametrize(
    "optimizer",
    [
        bl.RandomSearch,
        functools.partial(bl.BayesOpt, acquisition="thompson", clock="seconds"),
        functools.partial(bl.BayesOpt, acquisition="ucb", pending=bl.Censor(), window=10, initial=3),
        bl.TreeSearch,
    ],
)
def test_any_optimizer_continues_in_a_new_sampler(optimizer):
    whole, parts, storage = study_of(name="whole", optimizer=optimizer), None, optuna.storages.InMemoryStorage()
    for k in range(14):
        if k % 5 == 0:
            parts = study_of(storage, optimizer=optimizer)
        points = []
        for study in (whole, parts):
            trial = study.ask(DISTRIBUTIONS)
            points.append(trial.params)
            study.tell(trial, f(trial.params))
        assert points[0] == points[1]


def test_a_sampler_may_serve_several_studies_in_turn():
    shared = sampler_of()
    mixed = [optuna.create_study(study_name=name, sampler=shared) for name in "ab"]
    alone = [optuna.create_study(study_name=name, sampler=sampler_of()) for name in "ab"]
    for k in range(8):
        for i, study in itertools.chain(enumerate(mixed), enumerate(alone)):
            trial = study.ask(DISTRIBUTIONS)
            study.tell(trial, f(trial.params) * (1 + i) - k * i)
    for one, other in zip(mixed, alone, strict=True):
        assert [trial.params for trial in one.trials] == [trial.params for trial in other.trials]


def test_a_sampler_forgets_the_space_of_a_study_of_the_same_name():
    sampler = sampler_of(search_space=None)
    for name in "xy":
        study = optuna.create_study(study_name="s", sampler=sampler)
        study.optimize(lambda trial, name=name: trial.suggest_float(name, 0.0, 1.0), 4)
        assert list(sampler.infer_relative_search_space(study, study.trials[-1])) == [name]


# Arguments and refused studies.


def test_independent_sampling_warns_and_uses_the_other_sampler(caplog):
    optuna.logging.enable_propagation()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    own = optuna.samplers.RandomSampler(seed=1)

    def objective(trial):
        return trial.suggest_float(f"x{trial.number}", 0.0, 1.0)

    try:
        for sampler, n in ((BelatedSampler(seed=0, independent_sampler=own), 1), (sampler_of(search_space=None), 0)):
            caplog.clear()
            study = optuna.create_study(sampler=sampler)
            study.optimize(objective, 2)
            messages = [record.message for record in caplog.records if "sampled independently" in record.message]
            assert len(messages) == n and all("trial 1: parameter 'x1'" in message for message in messages)
    finally:
        optuna.logging.disable_propagation()
    reference = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    reference.optimize(objective, 2)
    study = optuna.create_study(sampler=BelatedSampler(independent_sampler=optuna.samplers.RandomSampler(seed=1)))
    study.optimize(objective, 2)
    assert [trial.params for trial in study.trials] == [trial.params for trial in reference.trials]


def test_a_sampler_can_be_pickled_at_any_moment():
    study = study_of()
    for k in range(12):
        study.tell(study.ask(DISTRIBUTIONS), float(k))
    copy = pickle.loads(pickle.dumps(study))
    assert copy.ask(DISTRIBUTIONS).params == study.ask(DISTRIBUTIONS).params


@pytest.mark.parametrize(
    ("n", "arguments", "message"),
    [(4, {}, "has 4 objectives, and at most 3"), (2, {"curve": bl.Curve(3)}, "has 2 objectives, and learning curves")],
)
def test_objectives_that_are_not_supported_are_refused_before_the_first_evaluation(n, arguments, message):
    called = []
    study = optuna.create_study(directions=["minimize"] * n, sampler=sampler_of(**arguments))
    for call in (lambda: study.optimize(called.append, 1), study.ask, lambda: study.ask(DISTRIBUTIONS)):
        with pytest.raises(bl.errors.InvalidSetting, match=message):
            call()
    assert not called
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed=-1 is not usable"),
        ({"seed": 1.5}, "seed=1.5 is not usable"),
        ({"stale_after": 0}, "stale_after=0 is not usable"),
        ({"stale_after": "1h"}, "stale_after='1h' is not usable"),
        ({"optimizer": "ucb"}, "optimizer='ucb' is not usable"),
        ({"constraints_func": 3}, "constraints_func=3 is not usable"),
        ({"independent_sampler": 3}, "independent_sampler=3 is not usable"),
        ({"search_space": ["x"]}, "search_space=.* is not usable"),
        ({"search_space": {"x": (0.0, 1.0)}}, "search_space=.* is not usable"),
        ({"search_space": {"n": IntDistribution(0, 2**50)}}, "parameter 'n' has .* which cannot be searched"),
    ],
)
def test_arguments_that_are_not_usable_are_refused(arguments, message):
    with pytest.raises(bl.BelatedError, match=message):
        sampler_of(**arguments)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (lambda space, **_: None, "optimizer returned None"),
        (lambda space, direction, seed: bl.RandomSearch(space, seed=seed), "has direction='maximize'"),
        (lambda space, direction, seed: bl.RandomSearch(space, direction=direction), "another seed"),
        (
            lambda space, direction, seed: bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=seed),
            "does not search the given space",
        ),
        (functools.partial(bl.BayesOpt, context={"day": (0.0, 1.0)}), "optimizer has a context"),
        (functools.partial(bl.TreeSearch, fidelity=bl.Fidelity(1, 9)), "optimizer has a fidelity"),
        (functools.partial(bl.BayesOpt, clock="seconds", time=lambda: 0.0), "optimizer has a time"),
    ],
)
def test_optimizers_that_are_not_usable_are_refused(optimizer, message):
    study = study_of(optimizer=optimizer)
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        study.ask(DISTRIBUTIONS)


@pytest.mark.parametrize("distribution", [IntDistribution(0, 2**50), CategoricalDistribution([1, 1.0, 2])])
def test_distributions_that_cannot_be_searched_are_refused(distribution):
    study = optuna.create_study(sampler=BelatedSampler())
    with pytest.raises(bl.errors.InvalidSpace, match="parameter 'n' has .* which cannot be searched"):
        study.ask({"n": distribution})
