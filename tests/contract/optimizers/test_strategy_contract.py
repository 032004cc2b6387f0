"""Requirements on every strategy. The tests cover every class in `Optimizer.registry`; only the required arguments of a
new class must be added to this file. The constructor of a class raises an error for each feature that the class does
not support."""

import contextlib
import gc
import json
import multiprocessing
import signal
import threading

import numpy as np
import pytest
from hypothesis import strategies as st

import belated as bl
from belated import _core
from tests.contract.optimizers.strategies import (
    DOMAINS,
    FEATURES,
    OUTCOMES,
    a_context,
    a_point,
    clock_of,
    core_of,
    every_strategy,
    histories,
    made,
    play,
    replayed,
    supported,
    twin_of,
)
from tests.contract.store.memory import MemoryStore

SECONDS = 120
CUTS = ("exception", "interrupt", "propose")


class Stopped(BaseException):
    """The exception that the signal handler of these tests raises; KeyboardInterrupt would stop pytest."""


@every_strategy
def test_every_strategy_supports_every_kind_of_space(cls):
    for name in ("mixed", "continuous", "discrete"):
        made(cls, **DOMAINS[name])


@every_strategy
@pytest.mark.parametrize("feature", FEATURES)
def test_unsupported_features_are_refused_by_name(cls, feature):
    asked, words = FEATURES[feature]
    if supported(cls, feature):
        opt = made(cls, **asked, seed=0)
        context = a_context(opt, np.random.default_rng(0))
        assert opt.suggest(context=context).state == "pending"
        return
    with pytest.raises(bl.errors.InvalidSetting) as caught:
        made(cls, **asked)
    assert cls.__name__ in str(caught.value) and words in str(caught.value)
    # Arguments that the constructor refuses are also refused by `set_params`.
    opt = made(cls, **DOMAINS["mixed"], seed=0)
    with pytest.raises(bl.errors.InvalidSetting):
        opt.set_params(**({"space": None} if "space" not in asked else {}), **asked)
    assert opt.suggest().number == 0


def assert_same(one, other):
    """Check that two optimizers have the same log, and make the same suggestions next, one at a time and in a batch."""
    assert core_of(one).events(0) == core_of(other).events(0)
    assert core_of(one).to_bytes() == core_of(other).to_bytes()
    for number in (4, 5):
        for opt in (one, other):
            play(opt, "batch", number)
    assert core_of(one).events(0) == core_of(other).events(0)


@histories(2)
def test_copies_made_at_any_moment_continue_bit_for_bit(make, steps, data):
    opt = make()
    moment = data.draw(st.integers(0, len(steps)))
    for step in steps[:moment]:
        play(opt, *step)
    copies = [twin_of(opt), replayed(opt)]
    for step in steps[moment:]:
        for each in (opt, *copies):
            play(each, *step)
    for copy in copies:
        assert_same(twin_of(opt), copy)


REVISIONS = ({"direction": "maximize"}, {"space": DOMAINS["continuous"]["space"]}, {"outcomes": OUTCOMES}, {})


@histories(2)
def test_a_log_that_is_folded_after_each_event_equals_a_log_that_is_folded_at_once(make, steps, data):
    store = MemoryStore("here")
    study = bl.Study("s", store, make())
    given = {"time": clock_of(study), "constraints": study.get_params().get("constraints")}
    moment = data.draw(st.integers(0, len(steps)))
    for place, step in enumerate(steps):
        if place == moment:
            with contextlib.suppress(bl.BelatedError):
                study.revise(**data.draw(st.sampled_from(REVISIONS)))
        play(study, *step)
        core_of(study).status(study._source._problem.wall_time())  # folds the events
    other = bl.Study.load("s", store, **given)
    found = []
    for each in (study, other):
        context = a_context(each, np.random.default_rng(0))
        numbers = None if context is None else each.context_space.numbers(context)
        drafts = core_of(each).propose(3, numbers, each._source._problem.wall_time())
        found.append([draft.text for draft in drafts])
    assert found[0] == found[1]


@histories(1)
def test_recommend_and_predict_have_no_side_effects(make, steps, data):
    opt, never = make(), make()
    for step in steps:
        play(opt, *step)
        if step[0] not in ("recommend", "predict"):
            play(never, *step)
    assert_same(opt, never)


@histories(1)
def test_a_study_continues_in_another_instance(make, steps, data):
    goes_on_in_another_instance(make, steps, MemoryStore("here"))


# The server is a global variable, because functions with the decorator `histories` cannot use fixtures.
SERVERS = []


@pytest.fixture
def started(postgres):
    SERVERS.append(postgres)


@pytest.mark.usefixtures("started")
@histories(1)
def test_a_study_continues_in_another_instance_in_postgresql(make, steps, data):
    SERVERS[-1].empty()
    goes_on_in_another_instance(make, steps, SERVERS[-1].url())


def goes_on_in_another_instance(make, steps, store):
    opt = make()
    clock = clock_of(opt)
    given = {"time": clock, "constraints": opt.get_params().get("constraints")}
    studies = [bl.Study("s", store, opt), bl.Study.load("s", store, **given)]
    for what, number in steps:
        if number % 5 == 0:
            studies[number % 2] = bl.Study.load("s", store, **given)
        if what != "wait" or clock is None:
            play(studies[number % 2], what, number)
        play(opt, what, number)
        assert studies[number % 2].n_trials == opt.n_trials
    third = bl.Study.load("s", store, **given)
    expected = core_of(opt).to_bytes()
    for study in (*studies, third):
        assert study.n_trials == opt.n_trials
        assert core_of(study).to_bytes() == expected
    play(third, "batch", 4)
    play(opt, "batch", 4)
    assert studies[0].n_trials == opt.n_trials
    assert core_of(studies[0]).to_bytes() == core_of(third).to_bytes() == core_of(opt).to_bytes()


@histories(1)
def test_a_batch_equals_its_proposals_one_by_one(make, steps, data):
    opt = make()
    for what, number in steps:
        if what == "batch":
            other = twin_of(opt)
            n, context = 2 + number % 5, a_context(opt, np.random.default_rng(number))
            opt.suggest(n=n, context=context)
            for _ in range(n):
                other.suggest(context=context)
            assert core_of(opt).to_bytes() == core_of(other).to_bytes()
        else:
            play(opt, what, number)
    assert_same(opt, replayed(opt))


in_main_thread = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread(),
    reason="sends itself a signal, which comes to the main thread",
)


def interrupted(call, after):
    """Make a call and send a signal `after` seconds after its start. The signal's handler raises an exception, as the
    handler of Ctrl-C does."""

    def handler(_signal, _frame):
        raise Stopped

    previous = signal.signal(signal.SIGALRM, handler)
    # Python ignores exceptions in callbacks of the garbage collector.
    gc.disable()
    try:
        with pytest.raises(Stopped):
            signal.setitimer(signal.ITIMER_REAL, after)
            call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        gc.enable()


def cut_short(opt, how, number):
    """Request a batch, and interrupt this request in one of three ways."""
    context = a_context(opt, np.random.default_rng(number))
    n = 1 + number % 4
    if how == "interrupt":
        # The batch is too long to finish during the test. Afterwards the log contains all trials of the batch or none
        # of them.
        interrupted(lambda: opt.suggest(n=1_000_000, context=context), [1e-4, 2e-3, 0.01, 0.03][number % 4])
    elif how == "propose":
        numbers = None if context is None else opt.context_space.numbers(context)
        events = opt._log.propose(n, numbers, opt._problem.wall_time())
        assert [event.number for event in events] == list(range(opt.n_trials, opt.n_trials + n))
    elif clock_of(opt) is not None and number % 2:
        clock_of(opt).broken = True
        with pytest.raises(ZeroDivisionError):
            opt.suggest(n=n, context=context)
        clock_of(opt).broken = False
    else:
        with pytest.raises(bl.errors.InvalidContext):
            opt.suggest(n=n, context={"age": 1.0, "place": "a"})
        with pytest.raises(bl.errors.InvalidContext):
            opt._log.suggest(n, np.array([np.nan, 0.0]), opt._problem.wall_time())


@in_main_thread
@histories(2)
def test_an_interrupted_batch_does_not_change_the_optimizer(make, steps, data):
    opt, never = make(), make()
    cuts = data.draw(st.lists(st.tuples(st.sampled_from(CUTS), st.integers(0, 10**6)), min_size=1, max_size=4))
    places = sorted(data.draw(st.integers(0, len(steps))) for _ in cuts)
    for place, step in enumerate([*steps, ("wait", 0)]):
        for at, (how, number) in zip(places, cuts, strict=True):
            if at == place:
                before = core_of(opt).to_bytes()
                cut_short(opt, how, number)
                assert core_of(opt).to_bytes() == before == core_of(never).to_bytes()
        for each in (opt, never):
            play(each, *step)
    assert_same(opt, never)


@histories(1)
def test_suggestions_lie_in_the_domain_and_queued_points_come_first(make, steps, data):
    opt = make()
    queue = []
    for what, number in steps:
        rng = np.random.default_rng(number)
        context = a_context(opt, rng)
        if what == "enqueue":
            point = a_point(opt, rng)
            opt.enqueue(point)
            queue.append(point)
        elif what in ("suggest", "batch"):
            for trial in opt.suggest(n=1 + number % 3, context=context):
                point = trial.index if trial.index is not None else trial.params
                opt.domain.locate(point)
                if opt._problem.fidelity is not None:
                    assert opt._problem.fidelity.check(trial.fidelity) == trial.fidelity
                if opt.context_space is not None:
                    assert trial.context["site"] == context["site"]
                    assert trial.context["age"] == pytest.approx(context["age"])
                if queue:
                    assert opt.domain.locate(point) == opt.domain.locate(queue.pop(0))
                    assert opt._log.trial(trial.number).note is None
        else:
            play(opt, what, number)
    assert_same(opt, replayed(opt))


# Other processes.


def go_on(store, name, channel):
    study = bl.Study.load(name, store)
    study.observe(0, 0.5)
    channel.send([trial.params for trial in study.suggest(n=3)])


@every_strategy
def test_a_study_continues_in_another_process(cls, tmp_path):
    opt = made(cls, **DOMAINS["mixed"], seed=3)
    store = f"sqlite:///{tmp_path / 'studies.db'}"
    study = bl.Study("s", store, opt)
    for each in (study, opt):
        each.suggest(n=6)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=go_on, args=(store, "s", there))
    child.start()
    try:
        assert here.poll(SECONDS), "the child never answered"
        suggested = here.recv()
    finally:
        child.join(SECONDS)
        child.kill()
    opt.observe(0, 0.5)
    assert suggested == [trial.params for trial in opt.suggest(n=3)]
    assert study.suggest().params == opt.suggest().params
    # The child process does not use the constant wall-clock time of these tests.
    events = [[_core.without_time(event) for event in core_of(each).events(0)] for each in (study, opt)]
    assert events[0] == events[1]


# Notes.


@every_strategy
def test_notes_with_another_format_are_refused(cls):
    opt = made(cls, **DOMAINS["mixed"], seed=0)
    [draft] = opt._log.propose(1, None, None)
    facts, event = json.loads(draft.text), draft.text
    for note in ("", "?", "{}", "null", "-1", "1e9", '{"kernel": "matern52"}'):
        facts["what"]["Suggested"]["note"] = note
        with pytest.raises(bl.BelatedError):
            opt._log.extend([json.dumps(facts)])
        assert opt.n_trials == 0
    assert opt._log.extend([event]) == [0]
