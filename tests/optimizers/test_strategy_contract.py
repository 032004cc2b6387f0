"""What every strategy must do. A class of `Optimizer.registry` is tested with no line here, but for arguments that it
requires: it passes for all that an optimizer can be asked for, or refuses that at construction."""

import gc
import itertools
import json
import multiprocessing
import os
import pickle
import signal
import threading
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import belated as bl
from belated import _core
from belated.optimizers.names import family_of
from tests.optimizers.definitions import REQUIRED
from tests.store.memory import MemoryStore

FULL = os.environ.get("BELATED_FULL") == "1"
SECONDS = 120

DOMAINS = {
    "mixed": {
        "space": {
            "x": (-1.0, 3.0),
            "lr": bl.Real(1e-4, 1.0, log=True),
            "n": (2, 7),
            "m": bl.Integer(1, 64, log=True),
            "c": ["u", "v", "w"],
        }
    },
    "continuous": {"space": {"x": (-1.0, 3.0), "y": (0.0, 1.0)}},
    "discrete": {"space": {"n": (2, 7), "c": ["u", "v", "w"]}},
    "conditional": {
        "space": {
            "x": bl.Real(-1.0, 3.0, when={"c": "u"}),
            "n": bl.Integer(2, 7),
            "m": bl.Integer(1, 64, log=True, when={"c": ["u", "v"], "n": [2, 3, 4]}),
            "c": bl.Ordinal(["u", "v", "w"]),
            "k": "constant",
        }
    },
    "candidates": {"candidates": np.random.default_rng(5).normal(size=(15, 2)) * [1.0, 100.0]},
}
CONTEXT = {"age": (0.0, 50.0), "site": ["a", "b"]}
FIDELITY = bl.Fidelity(2, 50, cost=bl.PowerCost(0.1, 2.0), bias=3.0)

# What can be asked for besides a space, and the words by which it is refused.
FEATURES = {
    "candidates": (DOMAINS["candidates"], "candidates"),
    "context": (DOMAINS["mixed"] | {"context": CONTEXT}, "context"),
    "seconds": (DOMAINS["mixed"] | {"clock": "seconds"}, 'clock="seconds"'),
    "conditional": (DOMAINS["conditional"], "conditional"),
    "fidelity": (DOMAINS["mixed"] | {"fidelity": FIDELITY}, "fidelity"),
}

# Fits that take less time than those of the defaults.
QUICK = {"BayesOpt": {"surrogate": bl.GP(n_restarts=1, n_refit_restarts=1, refit_every=4), "initial": 3}}


class Stopped(Exception):
    """What interrupted calls raise here in place of KeyboardInterrupt, which would stop pytest."""


class Clock:
    """Seconds that pass when a test says so; it can be out of order."""

    def __init__(self):
        self.now, self.broken = 0.0, False

    def __call__(self):
        if self.broken:
            raise ZeroDivisionError
        return self.now


# Every strategy, with every combination of the values that its arguments take.


def strategies():
    """(name, class) of every strategy of the package."""
    known = sorted(bl.Optimizer.registry.items())
    return [(name, cls) for name, cls in known if cls.__module__.startswith("belated.")]


def variants():
    """(class, arguments) for every strategy and every combination of its families of values that it takes."""
    for name, cls in strategies():
        quick = REQUIRED.get(name, {}) | QUICK.get(name, {})
        families = {field.name: family_of(cls, field.name) for field in fields(cls)}
        choices = {
            argument: list(family.shorthand)
            for argument, family in families.items()
            if family is not None and family.shorthand and argument not in quick
        }
        for values in itertools.product(*choices.values()):
            arguments = quick | dict(zip(choices, values, strict=True))
            try:
                cls(**DOMAINS["continuous"], **arguments)
            except bl.InvalidSetting as error:
                assert any(argument in str(error) for argument in choices)  # two that do not go together
            else:
                yield pytest.param(cls, arguments, id="-".join([name, *values]))


VARIANTS = list(variants())
every_strategy = pytest.mark.parametrize("cls", [cls for _, cls in strategies()], ids=lambda cls: cls.__name__)
every_variant = pytest.mark.parametrize("cls, arguments", VARIANTS)


def made(cls, **arguments):
    """An optimizer with these arguments, and those that it requires."""
    return cls(**REQUIRED.get(cls.__name__, {}), **arguments)


def supported(cls, feature):
    """Whether a class takes a feature; where it refuses, whether by name is for a test of its own."""
    try:
        made(cls, **FEATURES[feature][0])
    except bl.BelatedError:
        return False
    return True


@every_strategy
def test_a_space_is_searched(cls):
    for name in ("mixed", "continuous", "discrete"):
        made(cls, **DOMAINS[name])


@every_strategy
@pytest.mark.parametrize("feature", FEATURES)
def test_what_is_not_supported_is_refused_by_name(cls, feature):
    asked, words = FEATURES[feature]
    if supported(cls, feature):
        opt = made(cls, **asked, seed=0)
        context = a_context(opt, np.random.default_rng(0))
        assert opt.suggest(context=context).state == "pending"
        return
    with pytest.raises(bl.InvalidSetting) as caught:
        made(cls, **asked)
    assert cls.__name__ in str(caught.value) and words in str(caught.value)
    # What is refused to the constructor is refused to everything else that makes an optimizer.
    opt = made(cls, **DOMAINS["mixed"], seed=0)
    with pytest.raises(bl.InvalidSetting):
        opt.set_params(**({"space": None} if "space" not in asked else {}), **asked)
    assert opt.suggest().number == 0


# Histories.


KINDS = (
    *["suggest"] * 6,
    *["batch", "observe", "observe", "observe", "observe", "late", "amend", "replicate", "fail", "abandon"],
    *["add", "add pending", "enqueue", "wait", "recommend", "predict"],
)
CUTS = ("exception", "interrupt", "propose")
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6)), min_size=4, max_size=30 if FULL else 20)


@st.composite
def situations(draw, cls):
    """Arguments that every strategy shares, within what this one supports."""
    domains = [name for name in DOMAINS if name not in FEATURES or supported(cls, name)]
    arguments = dict(DOMAINS[draw(st.sampled_from(domains))])
    if supported(cls, "context") and draw(st.booleans()):
        arguments["context"] = CONTEXT
    if supported(cls, "seconds") and draw(st.booleans()):
        arguments["clock"] = "seconds"
    if supported(cls, "fidelity") and draw(st.booleans()):
        arguments["fidelity"] = FIDELITY
    arguments["direction"] = draw(st.sampled_from(["maximize", "minimize"]))
    arguments["seed"] = draw(st.integers(0, 2**64 - 1))
    if "window" in {field.name for field in fields(cls)}:
        arguments["window"] = draw(st.sampled_from([None, 1.5, 4.0]))
    return arguments


def histories(n):
    """A decorator: n random histories of every variant; 1,000 of every strategy with BELATED_FULL=1."""

    def decorate(test):
        @every_variant
        def run(cls, arguments):
            n_variants = sum(each.values[0] is cls for each in VARIANTS)
            count = -(-1000 // n_variants) if FULL else max(n, 20 // n_variants)

            @settings(
                max_examples=count,
                database=None,
                phases=[phase for phase in Phase if phase != Phase.explain],
                suppress_health_check=list(HealthCheck),
            )
            @given(situation=situations(cls), steps=STEPS, data=st.data())
            def examples(situation, steps, data):
                test(lambda: make(cls, situation | arguments), steps, data)

            examples()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def make(cls, arguments):
    time = {"time": Clock()} if arguments.get("clock") == "seconds" else {}
    return cls(**arguments, **time)


def a_point(opt, rng):
    if not isinstance(opt.domain_, bl.Space):
        return int(rng.integers(15))
    every = {
        "x": 4 * rng.random() - 1,
        "y": rng.random(),
        "lr": 10 ** (-4 * rng.random()),
        "n": int(rng.integers(2, 8)),
        "m": int(rng.integers(1, 65)),
        "c": "uvw"[rng.integers(3)],
        "k": "constant",
    }
    return {
        name: every[name]
        for name, dimension in opt.domain_.items()
        if all(every[parent] in values for parent, values in (dimension.when or {}).items())
    }


def a_context(opt, rng):
    context = {"age": 10.0 * rng.integers(6), "site": "ab"[rng.integers(2)]}
    return None if opt.context_space_ is None else context


def a_fidelity(opt, rng):
    """One, or None, of which half the trials are; nothing is drawn where there is none."""
    if opt._problem.fidelity is None:
        return None
    return int(rng.integers(2, 51)) if rng.random() < 0.5 else None


def play(opt, what, number):
    """One step; the same one for two optimizers that are in the same state."""
    rng = np.random.default_rng(number)
    value = float(np.round(3 * rng.normal(), 1))
    std = 0.1 + (number % 7) / 10 if number % 4 == 0 else None
    context = a_context(opt, rng)
    if what == "suggest":
        opt.suggest(context=context, fidelity=a_fidelity(opt, rng))
    elif what == "batch":
        opt.suggest(n=1 + number % 4, context=context, fidelity=a_fidelity(opt, rng))
    elif what == "add":
        opt.add(a_point(opt, rng), value, context=context, std=std, fidelity=a_fidelity(opt, rng))
    elif what == "add pending":
        opt.add(a_point(opt, rng), context=context, fidelity=a_fidelity(opt, rng))
    elif what == "enqueue":
        for _ in range(1 + number % 2):
            opt.enqueue(a_point(opt, rng), fidelity=a_fidelity(opt, rng))
    elif what == "wait":
        clock = clock_of(opt)
        if clock is not None:
            clock.now += 3 * rng.random()
    elif what == "recommend":
        if opt.best_trial_ is not None:
            opt.recommend(context)
    elif what == "predict":
        if opt._has_model and opt.best_trial_ is not None:
            opt.predict([a_point(opt, rng) for _ in range(2)], context, pending=bool(number % 2))
    else:
        ended = ("observed",)
        states = {"late": ("failed", "abandoned"), "amend": ended, "replicate": ended}.get(what, ("pending",))
        trials = [trial for trial in opt.trials if trial.state in states]
        if trials:
            trial = trials[number % len(trials)]
            attrs = {"number": number} if number % 3 == 0 else None
            if what == "abandon":
                trial.abandon()
            elif what == "fail":
                trial.fail(error=ValueError(f"{number}") if number % 2 else None, attrs=attrs)
            else:
                facts = {"std": std, "cost": 2.0 if number % 5 == 0 else None, "attrs": attrs}
                facts["params"] = a_point(opt, rng) if number % 6 == 1 else None
                trial.observe(value, amend=what == "amend", replicate=what == "replicate", **facts)


def clock_of(opt):
    time = opt._time if isinstance(opt, bl.Study) else opt.time
    return time if isinstance(time, Clock) else None


def core_of(opt):
    return opt._log.core if isinstance(opt, bl.Study) else opt._log


def assert_same(one, other):
    """The same log, and the same suggestions from here on, one by one and as a batch."""
    assert core_of(one).events(0) == core_of(other).events(0)
    assert core_of(one).to_bytes() == core_of(other).to_bytes()
    for number in (4, 5):
        for opt in (one, other):
            play(opt, "batch", number)
    assert core_of(one).events(0) == core_of(other).events(0)


def twin_of(opt):
    return pickle.loads(pickle.dumps(opt))


def replayed(opt):
    """As another process has it: the same definition, and the log event by event."""
    other = twin_of(opt)
    fresh = _core.Optimizer(opt.domain_.domain(), json.dumps(opt._definition()))
    fresh.extend(opt._log.events(0))
    vars(other)["_log"] = fresh
    return other


@histories(3)
def test_copies_made_at_any_moment_go_on_bit_for_bit(make, steps, data):
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


@histories(2)
def test_what_was_only_looked_at_leaves_no_trace(make, steps, data):
    opt, never = make(), make()
    for step in steps:
        play(opt, *step)
        if step[0] not in ("recommend", "predict"):
            play(never, *step)
    assert_same(opt, never)


@histories(2)
def test_a_study_goes_on_in_another_instance(make, steps, data):
    opt = make()
    clock = clock_of(opt)
    store = MemoryStore("here")
    studies = [bl.Study("s", store, opt), bl.Study.load("s", store, time=clock)]
    for what, number in steps:
        if what != "wait" or clock is None:
            play(studies[number % 2], what, number)
        play(opt, what, number)
        assert studies[number % 2].n_trials == opt.n_trials
    third = bl.Study.load("s", store, time=clock)
    expected = core_of(opt).to_bytes()
    for study in (*studies, third):
        assert study.n_trials == opt.n_trials
        assert core_of(study).to_bytes() == expected
    play(third, "batch", 4)
    play(opt, "batch", 4)
    assert studies[0].n_trials == opt.n_trials
    assert core_of(studies[0]).to_bytes() == core_of(third).to_bytes() == core_of(opt).to_bytes()


@histories(2)
def test_a_batch_is_its_drafts_one_by_one(make, steps, data):
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
    """A call, with a signal `after` seconds into it whose handler raises, as that of Ctrl-C does."""

    def handler(_signal, _frame):
        raise Stopped

    previous = signal.signal(signal.SIGALRM, handler)
    # Raised in a callback of the garbage collector, an exception would be ignored.
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
    """Ask for a batch that does not come about, in one of three ways."""
    context = a_context(opt, np.random.default_rng(number))
    n = 1 + number % 4
    if how == "interrupt":
        # More than anybody waits for: all of them are logged in the end, or none.
        interrupted(lambda: opt.suggest(n=1_000_000, context=context), [1e-4, 2e-3, 0.01, 0.03][number % 4])
    elif how == "propose":
        encoded = None if context is None else opt.context_space_.encode(context)
        events = opt._log.propose(n, encoded, opt._problem.now())
        assert len(events) == n
    elif clock_of(opt) is not None and number % 2:
        clock_of(opt).broken = True
        with pytest.raises(ZeroDivisionError):
            opt.suggest(n=n, context=context)
        clock_of(opt).broken = False
    else:
        with pytest.raises(bl.InvalidContext):
            opt.suggest(n=n, context={"age": 1.0, "place": "a"})
        with pytest.raises(bl.InvalidContext):
            opt._log.suggest(n, np.array([np.nan, 0.0]), opt._problem.now())


@in_main_thread
@histories(4)
def test_a_batch_that_is_cut_short_leaves_no_trace(make, steps, data):
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


@histories(2)
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
                opt.domain_.locate(point)
                if opt._problem.fidelity is not None:
                    assert opt._problem.fidelity.check(trial.fidelity) == trial.fidelity
                if opt.context_space_ is not None:
                    assert trial.context["site"] == context["site"]
                    assert trial.context["age"] == pytest.approx(context["age"])
                if queue:
                    assert point == queue.pop(0)
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
def test_a_study_goes_on_in_another_process(cls, tmp_path):
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
    assert core_of(study).to_bytes() == core_of(opt).to_bytes()


# Notes.


@every_strategy
def test_a_note_that_is_not_its_own_is_refused(cls):
    opt = made(cls, **DOMAINS["mixed"], seed=0)
    [event] = opt._log.propose(1, None, None)
    facts = json.loads(event)
    for note in ("", "?", "{}", "null", "-1", "1e9", '{"kernel": "matern52"}'):
        facts["Suggested"]["note"] = note
        with pytest.raises(bl.BelatedError):
            opt._log.extend([json.dumps(facts)])
        assert opt.n_trials == 0
    assert opt._log.extend([event]) == [0]
