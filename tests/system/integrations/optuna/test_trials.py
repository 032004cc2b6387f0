"""`BelatedSampler` reads the trials of an Optuna study in every state, including trials of other processes."""

import functools
import itertools
import json
import multiprocessing
import threading
from datetime import datetime, timedelta
from time import sleep

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from belated.integrations import optuna_log  # noqa: E402
from belated.integrations.optuna_log import NOTE, OptunaLog  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, events, f, log_of, sampler_of, study_of  # noqa: E402

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
    # Each trial is sampled in a separate process with a separate sampler. The last trial chooses its point first.
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


@pytest.mark.parametrize("optimizer", [bl.BayesOpt, bl.RandomSearch])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_trials_that_sample_in_another_order_have_the_points_of_their_numbers(optimizer, order):
    """The objective computes before its first call of ``suggest_*``, which chooses the point of the trial."""
    own = optimizer(SPACE, direction="minimize", seed=3)
    study = study_of(optimizer=optimizer)
    trials = [study.ask() for _ in order]
    for number in order:
        for name, distribution in DISTRIBUTIONS.items():
            trials[number]._suggest(name, distribution)
    assert [trial.params for trial in study.trials] == [trial.params for trial in own.suggest(n=4)]
    # The next point also equals the next suggestion of `BayesOpt`.
    assert study.ask(DISTRIBUTIONS).params == own.suggest().params


@pytest.mark.parametrize("optimizer", [bl.BayesOpt, bl.RandomSearch])
@pytest.mark.parametrize("n_results", [0, 12])
@given(
    st.lists(st.tuples(st.sampled_from(["start", "start", "sample", "fail", "wait"]), st.integers(0, 9)), max_size=30)
)
@settings(max_examples=20)
def test_no_point_is_suggested_twice_in_any_order_of_sampling(optimizer, n_results, steps):
    """The space is continuous, so equal points would be an error. Some of the drafted points are never used."""
    study = study_of(optimizer=optimizer)
    for _ in range(n_results):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))
    started = []
    with pytest.MonkeyPatch.context() as patch:
        for step, i in [*steps, *3 * [("start", 0), ("sample", 9)], *3 * [("sample", 0)]]:
            if step == "start":
                started.append(study.ask())
            elif step == "sample" and started:
                trial = started.pop(i % len(started))
                for name, distribution in DISTRIBUTIONS.items():
                    trial._suggest(name, distribution)
            elif step == "fail" and started:
                study.tell(started.pop(i % len(started)), state=TrialState.FAIL)
            elif step == "wait":
                later = optuna_log.monotonic() + 100
                patch.setattr(optuna_log, "monotonic", lambda later=later: later)
    points = [tuple(trial.params.values()) for trial in study.trials if trial.params]
    assert len(set(points)) == len(points) >= n_results + 3


def test_objectives_that_compute_before_they_sample_have_different_points():
    study = study_of()
    barrier = threading.Barrier(4)

    def objective(trial):
        barrier.wait()
        sleep(0.01 * (3 - trial.number % 4))  # trials that start later sleep for less time
        return f({name: trial._suggest(name, each) for name, each in DISTRIBUTIONS.items()})

    study.optimize(objective, 8, n_jobs=4)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 8


@pytest.mark.parametrize("hours", [-5, 0, 5])
def test_a_trial_without_a_point_is_drafted_for_a_minute_only(monkeypatch, hours):
    """The sampler uses the clock of the process in which it runs, so the trial's start time does not matter."""
    seconds = 1000.0
    monkeypatch.setattr(optuna_log, "monotonic", lambda: seconds)
    study, own = study_of(), bl.BayesOpt(SPACE, direction="minimize", seed=3)
    dead = optuna.trial.create_trial(state=TrialState.RUNNING)
    dead.datetime_start = datetime.now() + timedelta(hours=hours)
    study.add_trial(dead)
    batch = own.suggest(n=2)
    assert study.ask(DISTRIBUTIONS).params == batch[1].params
    seconds += 61
    drafted = study_of(name="t")
    drafted.add_trial(dead)
    # The second computed point is not used, so the next trial has the third point.
    assert study.ask(DISTRIBUTIONS).params == own.suggest().params
    # A process that has not seen the dead trial computes a point for this trial, too.
    assert drafted.ask(DISTRIBUTIONS).params == batch[1].params
    seconds += 61
    alone = study_of(name="u")
    alone.sampler = drafted.sampler
    alone.add_trial(dead)
    # The process of this sampler now ignores the dead trial: the next point is the first point of the batch.
    assert alone.ask(DISTRIBUTIONS).params == batch[0].params


def test_points_in_flight_are_not_suggested_again_by_threads():
    space = {"i": IntDistribution(0, 3), "j": CategoricalDistribution(["a", "b", "c"])}
    study = optuna.create_study(sampler=sampler_of(search_space=space))
    points, barrier = [], threading.Barrier(4)

    def objective(trial):
        points.append((trial.suggest_int("i", 0, 3), trial.suggest_categorical("j", ["a", "b", "c"])))
        barrier.wait()  # wait until four trials are in flight
        return points[-1][0]

    study.optimize(objective, 20, n_jobs=4)
    assert [len(set(points[k : k + 4])) for k in range(0, 20, 4)] == [4] * 5


@pytest.mark.filterwarnings("ignore:every point has been observed")
@pytest.mark.parametrize("seed", range(10))
def test_points_in_flight_differ_although_results_come_between_trials_that_sample_out_of_order(seed):
    """A trial that samples first assumes points for the trials with smaller numbers; new results change these
    points."""
    random = np.random.default_rng(seed)
    space = {"i": IntDistribution(0, 3), "j": CategoricalDistribution(["a", "b", "c"])}
    study = optuna.create_study(sampler=sampler_of(search_space=space))
    started, in_flight = [], []
    for _ in range(60):
        while len(started) + len(in_flight) < 4:
            started.append(study.ask())
        step = random.choice(["sample", "tell"]) if started and in_flight else "sample" if started else "tell"
        if step == "sample":
            trial = started.pop(random.integers(len(started)))
            for name, distribution in space.items():
                trial._suggest(name, distribution)
            in_flight.append(trial)
        else:
            trial = in_flight.pop(random.integers(len(in_flight)))
            study.tell(trial, trial.params["i"] + "bca".index(trial.params["j"]))
        points = [tuple(trial.params.values()) for trial in in_flight]
        assert len(set(points)) == len(points)


def test_points_of_other_threads_are_read_before_the_next_point_is_chosen(url):
    """A thread reads the trials while another thread samples, and then waits until the other thread has finished."""
    study, read = study_of(url), []

    def optimizer(space, **settings):
        if not read:
            read.append(study.sampler.infer_relative_search_space(study, trials[1]._cached_frozen_trial))
        return bl.BayesOpt(space, **settings)

    study.sampler = sampler_of(search_space=None, optimizer=optimizer)
    study.add_trial(optuna.trial.create_trial(params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}, value=1))
    trials = [study.ask(), study.ask()]
    trials[0]._suggest("x", FloatDistribution(0, 1))
    frozen = trials[1]._cached_frozen_trial
    study.sampler.sample_relative(study, frozen, read[0])
    assert len(study.sampler._log._core) == 2  # both other trials are in the log


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


def test_results_precede_the_suggestions_that_used_them():
    study = study_of()
    for _ in range(3):
        study.ask(DISTRIBUTIONS)
    study.tell(1, 1.0)
    study.ask(DISTRIBUTIONS)  # at this suggestion the result of trial 1 is known
    study.tell(2, 2.0)
    study.tell(0, 0.0)
    study.ask(DISTRIBUTIONS)  # at this suggestion the results of trials 0 and 2 are also known
    study.tell(4, 4.0)
    told = [next(iter(each["what"].values())) for each in events(log_of(study))]
    order = [facts.get("trial", "start") for facts in told]
    assert order == ["start", "start", "start", 1, "start", 0, 2, "start", 4]


STEPS = st.sampled_from(["ask", "ask", "start", "sample", "complete", "complete", "fail", "prune"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 9), st.booleans()), max_size=30))
@settings(max_examples=40)
def test_a_log_updated_step_by_step_equals_one_derived_at_once(steps):
    """Trials of two processes start, sample and end in random order."""
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
            for k in range(i % 4):
                trial.report(float(i * k), k)
            study.tell(trial, float(i) if step == "complete" else None, state=ends[step])
    for sampler, last in zip(samplers, sampled[-2:], strict=True):
        before = [trial for trial in study.trials if trial.number < sampled[-2].number]
        followed = sampler._log
        whole = OptunaLog(followed.optimizer)
        whole._follow(whole._derive(before, None))
        n = whole._core.n_events()
        assert followed._core.events(0)[:n] == whole._core.events(0)
        assert followed._core.n_events() - n == last.number - sampled[-2].number


def test_a_note_that_contradicts_the_order_is_dropped():
    study = study_of()
    for _ in range(14):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))
    trials = study.trials
    notes = [
        k
        for k, trial in enumerate(trials)
        if "note" in json.loads(trial.system_attrs[NOTE]["event"])["what"]["Suggested"]
    ]
    late = optuna.create_study(direction="minimize", sampler=sampler_of())
    trials = [trials[notes[-1]], *trials[:10]]  # the trial with the note becomes the first trial
    for number, trial in enumerate(trials):
        trial.system_attrs = {NOTE: trial.system_attrs[NOTE] | {"number": number}}
    late.add_trials(trials)
    assert late.ask(DISTRIBUTIONS).params.keys() == DISTRIBUTIONS.keys()
    assert "note" not in events(late.sampler._log._core)[0]["what"]["Suggested"]


def test_notes_of_another_optimizer_are_ignored():
    study = study_of()
    for _ in range(12):
        trial = study.ask(DISTRIBUTIONS)
        study.tell(trial, f(trial.params))
    study.sampler = sampler_of(optimizer=functools.partial(bl.BayesOpt, acquisition="ucb"))
    study.ask(DISTRIBUTIONS)
    started = [next(iter(each["what"])) for each in events(study.sampler._log._core)]
    assert started.count("Added") == 12
    reference = bl.BayesOpt(SPACE, direction="minimize", seed=3, acquisition="ucb")
    for trial in study.trials[:12]:
        reference.observe(reference.add(trial.params), trial.value)
    assert reference.suggest().params == study.trials[12].params


# Return the state of each trial in the sampler's optimizer.


def states_of(study, **arguments):
    """Return the state of each trial in the log that the sampler uses to choose the next point."""
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


def test_infinite_values_count_as_failed():
    study = study_of()
    for value in (1.0, float("inf"), -float("inf"), 2.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    assert states_of(study) == ["observed", "failed", "failed", "observed"]
    error = study.sampler._log._core.trial(1).error
    assert error == ("", "its value is inf", None)


def test_given_points_are_observed_where_they_were_run():
    study = study_of()
    point = {"decay": 0.5, "kind": "b", "layers": 3, "rate": 0.25, "share": 0.2}
    study.enqueue_trial(point)
    study.enqueue_trial({"rate": 1.5})  # the parameters that are missing are sampled
    for _ in range(2):
        study.tell(study.ask(DISTRIBUTIONS), 1.0)
    assert states_of(study) == ["observed", "observed"]
    log = study.sampler._log
    first, second = (log.space.params_of(log._core.trial(i)) for i in range(2))
    assert first == pytest.approx(point) and second == pytest.approx(study.trials[1].params)
    assert second["rate"] == pytest.approx(1.5)
    assert not any(log._core.trial(i).suggested for i in range(2))


def test_a_trial_that_optuna_runs_again_counts_as_given():
    study = study_of()
    trial = study.ask(DISTRIBUTIONS)
    study.tell(trial, state=TrialState.FAIL)
    study.tell(study.ask(DISTRIBUTIONS), 2.0)
    # The name of this attribute from Optuna 4.9 on, and its name in earlier versions.
    names = ("RetryHeartbeatStaleTrialCallback", "RetryFailedTrialCallback")
    callback = next(getattr(optuna.storages, name) for name in names if hasattr(optuna.storages, name))
    callback()(study, study.trials[0])
    again = study.trials[2]
    assert again.state == TrialState.WAITING and NOTE in again.system_attrs and again.params == trial.params
    other = optuna.create_study(direction="minimize", sampler=sampler_of())
    other.add_trials([*study.trials, optuna.trial.create_trial(state=TrialState.RUNNING)])
    other.sampler.sample_relative(other, other.trials[3], DISTRIBUTIONS)
    # A waiting trial is not in the log.
    core = other.sampler._log._core
    assert [core.trial(number).state for number in range(len(core))] == ["failed", "observed"]
    for value in (1.0, 2.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    assert study.trials[2].value == 1.0
    assert states_of(study) == ["failed", "observed", "observed", "observed"]
    core = study.sampler._log._core
    assert [core.trial(i).suggested for i in range(4)] == [True, True, False, True]
    assert core.trial(2).place == core.trial(0).place


def test_fixed_parameters_work_with_it():
    study = study_of(search_space=None)
    study.sampler = optuna.samplers.PartialFixedSampler({"kind": "b"}, study.sampler)
    study.optimize(lambda t: f({name: t._suggest(name, each) for name, each in DISTRIBUTIONS.items()}), 8)
    assert {trial.params["kind"] for trial in study.trials} == {"b"}
    assert set(study.sampler._base_sampler._log.space) == DISTRIBUTIONS.keys() - {"kind"}
