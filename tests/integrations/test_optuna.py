"""BelatedSampler in Optuna: Optuna's own tests of samplers, and studies beside belated's own loop."""

import functools
import importlib.util
import itertools
import json
import multiprocessing
import pickle
import threading
import warnings
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import belated as bl
from belated.study.from_optuna import dimension_of

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedSampler  # noqa: E402
from belated.integrations.optuna_log import NOTE, OptunaLog  # noqa: E402

DISTRIBUTIONS = {
    "decay": FloatDistribution(1e-4, 1.0, log=True),
    "kind": CategoricalDistribution(["a", "b", None]),
    "layers": IntDistribution(1, 9, step=2),
    "rate": FloatDistribution(-1.0, 2.0),
    "share": FloatDistribution(0.0, 0.5, step=0.1),
}
SPACE = {
    "decay": bl.Real(1e-4, 1.0, log=True),
    "kind": bl.Categorical(["a", "b", None]),
    "layers": bl.Integer(1, 9, step=2),
    "rate": bl.Real(-1.0, 2.0),
    "share": bl.Real(0.0, 0.5, step=0.1),
}


def f(params):
    kind = {"a": 0.0, "b": 1.0, None: 0.5}[params["kind"]]
    return (np.log10(params["decay"]) + 2) ** 2 + kind + params["layers"] / 9 + params["rate"] ** 2 + params["share"]


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


@pytest.fixture
def url(tmp_path):
    """That of an SQLite file."""
    return f"sqlite:///{tmp_path / 'optuna.db'}"


def sampler_of(**arguments):
    return BelatedSampler(**{"seed": 3, "search_space": DISTRIBUTIONS, "warn_independent_sampling": False} | arguments)


def study_of(storage=None, name="s", direction="minimize", **arguments):
    """The study of this name, opened anew, with a new sampler."""
    if isinstance(storage, str):
        storage = optuna.storages.RDBStorage(storage)
    return optuna.create_study(
        storage=storage,
        study_name=name,
        direction=direction,
        sampler=sampler_of(**arguments),
        load_if_exists=True,
    )


def log_of(study):
    """The events that a new sampler would derive from a study, but for the note of the last suggestion."""
    sampler = sampler_of()
    copy = optuna.create_study(direction=study.direction, sampler=sampler)
    copy.add_trials(study.trials)
    copy.ask(DISTRIBUTIONS)
    return sampler._log._core


def events(core):
    return [json.loads(event) for event in core.events(0)]


# Optuna's own tests.

if importlib.util.find_spec("optuna.testing.pytest_samplers") is None:

    @pytest.mark.skip(reason="this version of Optuna comes without its tests of samplers")
    def test_optuna_tests_of_samplers():
        pass

else:
    from optuna.testing.pytest_samplers import (
        BasicSamplerTestCase,
        RelativeSamplerTestCase,
        SingleOnlySamplerTestCase,
    )

    class TestOptunaTestsOfSamplers(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
        @pytest.fixture
        def sampler(self):
            return lambda: BelatedSampler(warn_independent_sampling=False)


# Beside belated's own loop.


@pytest.fixture(params=["memory", "journal", "database"])
def opened(request, url, tmp_path):
    """A function that opens a storage, as a new process would."""
    if request.param == "database":
        return lambda: optuna.storages.RDBStorage(url)
    if request.param == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal"))
        return lambda: optuna.storages.JournalStorage(backend)
    storage = optuna.storages.InMemoryStorage()
    return lambda: storage


@pytest.mark.parametrize(("direction", "in_flight"), [("minimize", 1), ("maximize", 4)])
def test_points_are_those_of_the_own_loop_when_values_come_late_or_never(opened, direction, in_flight):
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
            own.abandon(k)
            study.tell(k, state=TrialState.PRUNED)
        else:
            own.observe(k, value)
            study.tell(k, value)
    derived = log_of(study)
    # Bit for bit, the hyperparameters included, which were fitted by several samplers.
    assert events(derived) == events(own._log)
    assert sum("note" in event.get("Suggested", {}) for event in events(own._log)) > 5


def ask_and_tell(url, n):
    study = study_of(url)
    for _ in range(n):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))


def test_another_process_goes_on_bit_for_bit(url):
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
def test_any_optimizer_goes_on_in_a_new_sampler(optimizer):
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


# Trials of other processes.


def test_trials_that_start_at_the_same_time_are_chosen_as_one_batch():
    own = bl.BayesOpt(SPACE, direction="minimize", seed=3)
    study = study_of()
    for _ in range(12):
        trial, mine = study.ask(DISTRIBUTIONS), own.suggest()
        study.tell(trial, f(trial.params))
        own.observe(mine, f(mine.params))
    batch = [trial.params for trial in own.suggest(n=3)]
    trials = [study.ask() for _ in range(3)]
    # The samplers of three processes, of which the last one is the first to choose.
    points = {}
    for i in (2, 0, 1):
        points[i] = sampler_of().sample_relative(study, trials[i]._cached_frozen_trial, DISTRIBUTIONS)
    assert points[2] == batch[2]
    assert len({tuple(point.values()) for point in points.values()}) == 3
    in_order = study_of(name="t")
    in_order.add_trials(study.trials[:12])
    trials = [in_order.ask() for _ in range(3)]
    for i in range(3):
        assert sampler_of().sample_relative(in_order, trials[i]._cached_frozen_trial, DISTRIBUTIONS) == batch[i]


def test_a_trial_without_a_point_is_drafted_for_a_minute_only():
    study, other = study_of(), study_of(name="t")
    dead = optuna.trial.create_trial(state=TrialState.RUNNING)
    dead.datetime_start = datetime.now() - timedelta(minutes=2)
    study.add_trial(dead)
    # So it leaves no trace: the first point is the first one.
    assert study.ask(DISTRIBUTIONS).params == other.ask(DISTRIBUTIONS).params


def test_points_in_flight_are_not_suggested_again_by_threads():
    space = {"i": IntDistribution(0, 3), "j": CategoricalDistribution(["a", "b", "c"])}
    study = optuna.create_study(sampler=sampler_of(search_space=space))
    points, barrier = [], threading.Barrier(4)

    def objective(trial):
        points.append((trial.suggest_int("i", 0, 3), trial.suggest_categorical("j", ["a", "b", "c"])))
        barrier.wait()  # until four are in flight
        return points[-1][0]

    study.optimize(objective, 20, n_jobs=4)
    assert [len(set(points[k : k + 4])) for k in range(0, 20, 4)] == [4] * 5


def optimize(url, n):
    study_of(url).optimize(lambda t: f({name: t._suggest(name, each) for name, each in DISTRIBUTIONS.items()}), n)


def test_processes_share_a_database(url):
    study = study_of(url)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=optimize, args=(url, 6)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    trials = study.trials
    assert [trial.state for trial in trials] == 12 * [TrialState.COMPLETE]
    assert len({tuple(trial.params.values()) for trial in trials}) == 12
    assert len(log_of(study).numbers("observed")) == 12


def test_results_are_ordered_by_what_suggestions_knew():
    study = study_of()
    for _ in range(3):
        study.ask(DISTRIBUTIONS)
    study.tell(1, 1.0)
    study.ask(DISTRIBUTIONS)  # knows of trial 1
    study.tell(2, 2.0)
    study.tell(0, 0.0)
    study.ask(DISTRIBUTIONS)  # and of 0 and 2
    study.tell(4, 4.0)
    told = [next(iter(each.values())) for each in events(log_of(study))]
    order = [facts.get("number", "start") for facts in told]
    assert order == ["start", "start", "start", 1, "start", 0, 2, "start", 4]


STEPS = st.sampled_from(["ask", "ask", "start", "sample", "complete", "complete", "fail", "prune"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 9), st.booleans()), max_size=30))
@settings(max_examples=40)
def test_a_log_that_is_followed_is_the_one_derived_at_once(steps):
    """Whatever happens in which order, and whichever of two processes samples."""
    ends = {"complete": TrialState.COMPLETE, "fail": TrialState.FAIL, "prune": TrialState.PRUNED}
    study = study_of(optimizer=functools.partial(bl.BayesOpt, initial=3))
    samplers = [study.sampler, sampler_of(optimizer=functools.partial(bl.BayesOpt, initial=3))]
    started, sampled = [], []
    for step, i, other in [*steps, ("ask", 0, False), ("ask", 0, True)]:
        study.sampler = samplers[other]
        if step in ("ask", "start"):
            started.append(study.ask())
        if step == "ask" or (step == "sample" and started):
            trial = started.pop(-1 if step == "ask" else i % len(started))
            for name, distribution in DISTRIBUTIONS.items():
                trial._suggest(name, distribution)
            sampled.append(trial)
        elif step in ends and sampled:
            trial = sampled.pop(i % len(sampled))
            study.tell(trial, float(i) if step == "complete" else None, state=ends[step])
    for sampler, last in zip(samplers, sampled[-2:], strict=True):
        before = [trial for trial in study.trials if trial.number < sampled[-2].number]
        followed = sampler._log
        whole = OptunaLog(followed.optimizer)
        whole._follow(whole._derive(before, None))
        n = whole._core.n_events()
        assert followed._core.events(0)[:n] == whole._core.events(0)
        assert followed._core.n_events() - n == last.number - sampled[-2].number


def test_a_note_that_another_order_contradicts_is_dropped():
    study = study_of()
    for _ in range(14):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))
    trials = study.trials
    notes = [
        k for k, trial in enumerate(trials) if "note" in json.loads(trial.system_attrs[NOTE]["event"])["Suggested"]
    ]
    late = optuna.create_study(direction="minimize", sampler=sampler_of())
    late.add_trials([trials[notes[-1]], *trials[:10]])  # now it is the first trial
    assert late.ask(DISTRIBUTIONS).params.keys() == DISTRIBUTIONS.keys()
    assert "note" not in events(late.sampler._log._core)[0]["Suggested"]


def test_notes_of_another_optimizer_are_left_alone():
    study = study_of()
    for _ in range(12):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))
    study.sampler = sampler_of(optimizer=functools.partial(bl.BayesOpt, acquisition="ucb"))
    study.ask(DISTRIBUTIONS)
    started = [next(iter(each)) for each in events(study.sampler._log._core)]
    assert started.count("Added") == 12
    reference = bl.BayesOpt(SPACE, direction="minimize", seed=3, acquisition="ucb")
    for trial in study.trials[:12]:
        reference.observe(reference.add(trial.params), trial.value)
    assert reference.suggest().params == study.trials[12].params


# What becomes of which trial.


def states_of(study, **arguments):
    """The state of each trial in the log from which the next one is chosen."""
    study.sampler = sampler_of(**arguments)
    study.ask(DISTRIBUTIONS)
    core = study.sampler._log._core
    return [core.trial(number).state for number in range(len(core))]


def test_stale_trials_are_not_pending_until_their_value_comes():
    study = study_of()
    study.ask(DISTRIBUTIONS)
    old = study.trials[0]
    old.datetime_start = datetime.now() - timedelta(seconds=100)
    other = optuna.create_study(sampler=sampler_of())
    other.add_trial(old)
    assert states_of(other, stale_after=1000) == ["pending"]
    assert states_of(other, stale_after=50) == ["abandoned", "pending"]
    assert states_of(other) == ["pending"] * 3
    other.tell(0, 1.5)
    assert states_of(other, stale_after=50) == ["observed", "pending", "pending", "pending"]


def test_infeasible_and_infinite_values_count_as_failed():
    def violated(trial):
        return (-1.0, trial.params["rate"] - 1.0)

    study = study_of(constraints_func=violated)
    for value in (1.0, float("inf"), -float("inf"), 2.0, 3.0, 4.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    expected = [
        "failed" if trial.params["rate"] > 1.0 or abs(trial.value) == float("inf") else "observed"
        for trial in study.trials
    ]
    assert states_of(study) == expected and expected.count("failed") > 2
    assert [trial.system_attrs["constraints"] for trial in study.trials[:6]] == [
        [-1.0, trial.params["rate"] - 1.0] for trial in study.trials[:6]
    ]
    error = study.sampler._log._core.trial(1).error
    assert error == ("", "its value is inf", None)


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="new in Optuna 5")
def test_constraints_that_the_objective_sets_count_too():
    study = study_of()
    for value in (1.0, -1.0, 0.0):
        trial = study.ask(DISTRIBUTIONS)
        trial.set_constraint("memory", value)
        study.tell(trial, 1.0)
    assert states_of(study) == ["failed", "observed", "observed"]


def test_a_constraint_that_is_nan_is_refused():
    study = study_of(constraints_func=lambda trial: [float("nan")])
    with pytest.raises(bl.InvalidSetting, match="constraints_func returned NaN"):
        study.tell(study.ask(DISTRIBUTIONS), 1.0)


def test_points_that_were_given_count_where_they_were_run():
    study = study_of()
    point = {"decay": 0.5, "kind": "b", "layers": 3, "rate": 0.25, "share": 0.2}
    study.enqueue_trial(point)
    study.enqueue_trial({"rate": 1.5})  # in part
    for _ in range(2):
        study.tell(study.ask(DISTRIBUTIONS), 1.0)
    assert states_of(study) == ["observed", "observed"]
    log = study.sampler._log
    first, second = (log.space.decode(log._core.trial(i).point) for i in range(2))
    assert first == pytest.approx(point) and second == pytest.approx(study.trials[1].params)
    assert second["rate"] == pytest.approx(1.5)
    assert not any(log._core.trial(i).suggested for i in range(2))


def test_fixed_parameters_and_hyperband_work_with_it():
    study = study_of(search_space=None)
    study.sampler = optuna.samplers.PartialFixedSampler({"kind": "b"}, study.sampler)
    study.optimize(lambda t: f({name: t._suggest(name, each) for name, each in DISTRIBUTIONS.items()}), 8)
    assert {trial.params["kind"] for trial in study.trials} == {"b"}
    assert set(study.sampler._base_sampler._log.space) == DISTRIBUTIONS.keys() - {"kind"}

    def steps(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(9):
            trial.report(x + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    pruned = optuna.create_study(sampler=sampler_of(search_space=None), pruner=optuna.pruners.HyperbandPruner(1, 9))
    pruned.optimize(steps, 20)
    assert {trial.state for trial in pruned.trials} >= {TrialState.COMPLETE, TrialState.PRUNED}


# Spaces.


def test_the_space_is_what_all_completed_trials_have():
    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return value + trial.suggest_float("only_a", 0.0, 1.0)
        return value + trial.suggest_float("shift", 0.0, 1.0 + trial.number)

    study = optuna.create_study(sampler=sampler_of(search_space=None))
    study.optimize(objective, 12)
    expected = optuna.search_space.intersection_search_space(study.trials)
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]) == expected
    assert expected.keys() == {"x", "kind"} == set(study.sampler._log.space)
    assert all(("only_a" in trial.params) is (trial.params["kind"] == "a") for trial in study.trials)


def test_the_first_trial_tells_the_space_to_those_that_start_beside_it():
    study = study_of(search_space=None)
    first = study.ask(DISTRIBUTIONS)
    own = bl.BayesOpt(SPACE, direction="minimize", seed=3)
    own.add(first.params)
    for _ in range(7):
        assert study.ask(DISTRIBUTIONS).params == own.suggest().params
    study.tell(3, 1.0)
    own.observe(3, 1.0)
    assert study.ask(DISTRIBUTIONS).params == own.suggest().params


def test_independent_values_fill_each_range_evenly_in_every_process():
    study = optuna.create_study(study_name="same")
    frozen = [study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(16)]
    samplers = [sampler_of(seed=5) for _ in range(16)]
    values = np.array(
        [
            [sampler.sample_independent(study, trial, name, FloatDistribution(0.0, 8.0)) for name in "xy"]
            for sampler, trial in zip(samplers, frozen, strict=True)
        ]
    )
    for block in (values[:8], values[8:]):
        assert sorted(np.floor(block[:, 0])) == sorted(np.floor(block[:, 1])) == list(range(8))
    assert not np.array_equal(np.floor(values[:8]), np.floor(values[8:]))
    kinds = [samplers[0].sample_independent(study, t, "k", CategoricalDistribution("abcd")) for t in frozen[:8]]
    assert sorted(kinds) == list("aabbccdd")


def test_without_a_seed_the_processes_of_a_study_agree_and_studies_differ(url):
    points = []
    for name in ("s", "s", "other"):
        study = study_of(url, name=name, seed=None)
        trial = study.trials[0] if study.trials else study.ask(DISTRIBUTIONS)
        number = study._storage.get_trial(trial._trial_id)
        points.append(sampler_of(seed=None).sample_relative(study, number, DISTRIBUTIONS))
    assert points[0] == points[1] != points[2]


@st.composite
def distributions(draw):
    """Any distribution of Optuna of more than one value that belated can search."""
    kind = draw(st.sampled_from(["float", "log", "step", "int", "int log", "int step", "choices"]))
    if kind == "choices":
        choices = st.one_of(st.none(), st.text(max_size=3), st.integers(2, 99), st.floats(0.01, 0.99))
        return CategoricalDistribution(draw(st.lists(choices, min_size=2, max_size=5, unique=True)))
    if kind.startswith("int"):
        low = draw(st.integers(1, 1000) if "log" in kind else st.integers(-1000, 1000))
        high = low + draw(st.integers(1, 10**6))
        step = draw(st.integers(1, high - low)) if "step" in kind else 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return IntDistribution(low, high, log="log" in kind, step=step)
    low = round(draw(st.floats(1e-6, 1e3) if kind == "log" else st.floats(-1e6, 1e6)), 6)
    high = low + draw(st.floats(1e-6, 1e6))
    assume(high > low * (1 + 1e-9))
    step = draw(st.integers(1, 10**4)) * 10.0 ** draw(st.integers(-4, 2)) if kind == "step" else None
    assume(step is None or 1 <= (high - low) / step < 1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution = FloatDistribution(low, high, log=kind == "log", step=step)
    assume(not distribution.single())
    return distribution


@given(distribution=distributions(), seed=st.integers(0, 99), u=st.floats(0.0, 1.0))
@settings(max_examples=100)
def test_values_pass_between_distributions_and_dimensions(distribution, seed, u):
    dimension = dimension_of("x", distribution)
    # Theirs are accepted here, and keep what they are.
    study = optuna.create_study(study_name="s", sampler=optuna.samplers.RandomSampler(seed=seed))
    theirs = study.ask({"x": distribution}).params["x"]
    assert dimension.check(theirs) == (pytest.approx(theirs, rel=1e-9) if isinstance(theirs, float) else theirs)
    # Ours are accepted there.
    columns = [u] if dimension.width == 1 else np.eye(dimension.width)[int(u * (dimension.width - 1))]
    ours = dimension.decode(columns)
    assert distribution._contains(distribution.to_internal_repr(ours))
    assert distribution.to_external_repr(distribution.to_internal_repr(ours)) == ours
    assert type(ours) is type(theirs) or isinstance(distribution, CategoricalDistribution)


@given(st.dictionaries(st.sampled_from("abcd"), distributions(), min_size=1), st.integers(0, 99))
@settings(max_examples=10)
def test_any_space_is_searched(given_space, seed):
    study = optuna.create_study(sampler=BelatedSampler(seed=seed, warn_independent_sampling=False))
    for k in range(7):
        trial = study.ask(given_space)
        assert trial.params.keys() == given_space.keys()
        study.tell(trial, float(np.sin(k)))
    log = study.sampler._log
    assert len(log._core) == 6
    for number in range(6):
        point = log.space.decode(log._core.trial(number).point)
        for name, value in study.trials[number].params.items():
            assert point[name] == (pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value)


# The rest.


def test_it_says_when_it_samples_independently_and_leaves_it_to_another_sampler(caplog):
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


def test_several_objectives_are_refused_before_anything_is_run():
    called = []
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler_of())
    with pytest.raises(bl.InvalidSetting, match="has 2 objectives, and belated optimises one"):
        study.optimize(called.append, 1)
    assert not called


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
        (lambda space, direction, seed: bl.RandomSearch(space, seed=seed), "another direction or seed"),
        (lambda space, direction, seed: bl.RandomSearch(space, direction=direction), "another direction or seed"),
        (
            lambda space, direction, seed: bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=seed),
            "does not search the space",
        ),
        (functools.partial(bl.BayesOpt, context={"day": (0.0, 1.0)}), "optimizer has a context"),
        (functools.partial(bl.TreeSearch, fidelity=bl.Fidelity(1, 9)), "optimizer has a fidelity"),
        (functools.partial(bl.BayesOpt, clock="seconds", time=lambda: 0.0), "optimizer has a time"),
    ],
)
def test_optimizers_that_are_not_usable_are_refused(optimizer, message):
    study = study_of(optimizer=optimizer)
    with pytest.raises(bl.InvalidSetting, match=message):
        study.ask(DISTRIBUTIONS)


@pytest.mark.parametrize("distribution", [IntDistribution(0, 2**50), CategoricalDistribution([1, 1.0, 2])])
def test_distributions_that_cannot_be_searched_are_refused(distribution):
    study = optuna.create_study(sampler=BelatedSampler())
    with pytest.raises(bl.InvalidSpace, match="parameter 'n' has .* which cannot be searched"):
        study.ask({"n": distribution})
