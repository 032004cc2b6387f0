"""Copies of an optimizer, and a study with its log, continue bit for bit, in situations that random histories rarely
reach."""

import copy
import json
import math
import multiprocessing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import belated as bl
from belated import _core
from tests.clock import Clock
from tests.contract.optimizers import strategies
from tests.contract.optimizers.strategies import core_of, replayed, twin_of
from tests.contract.store.memory import MemoryStore
from tests.unit.optimizers import constrained

ROUTES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": twin_of, "events": replayed}
GIVEN = bl.GP(lengthscale=0.4, signal_std=1.0, noise_std=0.1)
QUICK = bl.GP(n_restarts=1)
BOX = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
ROWS = np.random.default_rng(1).random((30, 2))
CURVE = bl.Curve(12)
# The limits of a transform of these values overflow.
EXTREMES = [0.0, -1.7e308, 5e-324, 0.0, -1.7e308, 5e-324, 0.0, -1e300, 1e300, -1e300, -1e300, 0.0, 0.0, 1e300]
EXTREMES += [1.7e308, 5e-324, 1e300]


def cliff(params, bad=-1e6):
    """A smooth function with very bad values in one corner."""
    x, y = params["x"], params["y"]
    return bad if x > 0.8 and y > -0.5 else -((x - 0.4) ** 2) - (y + 0.3) ** 2


def notes(opt):
    return [json.loads(note) for trial in opt.trials if (note := trial._record.note)]


# The steps. Step k of a history is the same for an optimizer, its copies and its study.


def observe_each(value):
    """Suggest a trial and observe it."""

    def step(opt, k):
        trial = opt.suggest()
        trial.observe(float(value(trial.params, k)))

    return step


def observe_late(value, n=1, lag=3):
    """Suggest n trials and observe the trials that are `lag` steps older."""

    def step(opt, k):
        opt.suggest(n)
        for trial in opt.trials[max(0, (k - lag) * n) : max(0, (k - lag + 1) * n)]:
            trial.observe(float(value(trial.params, k)))

    return step


def outlier(opt, k):
    observe_each(lambda p, k: cliff(p, 0.0))(opt, k)
    if k == 20:
        opt.add({"x": 0.01, "y": 0.01}, -1e8)


def often_fails(context=None):
    """Some failed trials are abandoned or get a value later, and some trials are in flight."""

    def step(opt, k):
        trial, what = opt.suggest(context=context), np.random.default_rng(k).integers(6)
        if what < 3:
            trial.fail()
            if what == 1:
                trial.abandon()
            elif what == 2 and k % 3 == 0:
                trial.observe(0.5)
        elif what < 5:
            trial.observe(math.sin(k))

    return step


def invalid_pairs_fail(opt, k):
    trial = opt.suggest()
    if (trial.params["solver"], trial.params["penalty"]) in {("lbfgs", "l1"), ("liblinear", "none")}:
        trial.fail()
    else:
        trial.observe(float(len(trial.params["solver"])))


def arrive(opt, k):
    """Suggest a trial, and observe the trials whose delay has passed. A tenth of the trials is lost."""
    time = opt._time if isinstance(opt, bl.Study) else opt.time
    if time is not None:
        time.now = float(k)
    trial = opt.suggest()
    for pending in opt.pending:
        u = np.random.default_rng(pending.number).random(2)
        if u[0] >= 0.1 and trial.number - pending.number > -4.0 * math.log(u[1]):
            pending.observe(1.0 + math.sin(6 * pending.params["x"]))


def report_curve(opt, k):
    """Three trials report in turn, until each is stopped or has its value."""
    running = [(trial, 1) for trial in opt.suggest(2 if k % 3 else 3)]
    while running:
        trial, step = running.pop(0)
        x = trial.params["x"]
        trial.report(-((x - 0.3) ** 2) - (1 - step / 12) * math.exp(-0.1 * step * (3 + x)), step)
        if step == 12:
            trial.observe(trial.curve[12])
        elif not trial.should_stop():
            running.append((trial, step + 1))


def takes_time(opt, k):
    trial = opt.suggest()
    x = ROWS[trial.index]
    duration = float(np.exp(4 * x[0]))
    if k % 5 == 4:
        trial.fail(duration=duration)
    else:
        trial.observe(-float(((x - 0.4) ** 2).sum()), duration=duration)


def at_fidelities(opt, k):
    if k % 4 == 0:
        opt.enqueue({"x": 0.5 * math.cos(k), "y": 0.5}, fidelity=3)
        opt.add({"x": 0.25, "y": math.sin(k)}, 1.0, fidelity=20)
    for trial in opt.suggest(2):
        trial.observe(-cliff(trial.params, 0.0) + 0.3 / trial.fidelity)


def run_elsewhere(opt, k):
    trial = opt.suggest()
    if k % 4 == 2:
        trial.fail()
    trial.observe(math.sin(k), params={"x": math.sin(7 * k), "y": 0.5} if k % 3 == 0 else None)
    if k % 4 == 3:
        opt.observe(trial.number - 2, math.cos(k), params={"x": 0.0, "y": math.sin(k)}, amend=True)


def cover_the_design(opt, k):
    if k == 0:
        opt.add([{"x": float(x), "y": float(y)} for x, y in 4 * ROWS[:5] - 2], [0.5] * 5)
    opt.suggest().observe(float(k))


def enqueue_partly(opt, k):
    opt.enqueue({"x": 0.5})
    opt.enqueue({})
    for trial in opt.suggest(3):
        trial.observe(cliff(trial.params, 0.0))


def report_facts(opt, k):
    first, second, third = opt.suggest(3, context={"age": float(k % 7)})
    attrs = {"ü": [10**30, 0.1, None], "run": {"k": k}}
    first.observe(k / 3, std=0.1, cost=2.5, duration=0.7, attrs=attrs)
    second.fail(error=ValueError(f"no such\nkernel {k}"), attrs={"worker": k})
    opt.observe(first, 2 / 3, replicate=True, attrs={"run": 2})
    if k % 2:
        opt.observe(first, k / 7, amend=True)
        third.observe(0.1, std=0.2)


def in_rounds(seed):
    """Results arrive two steps late, some fail, and some are amended later."""

    def step(opt, k):
        opt.suggest(1 + (k + seed) % 2)
        rng = np.random.default_rng([seed, k])
        for trial in opt.pending[:-3]:
            trial.fail() if rng.random() < 0.2 else trial.observe(rng.normal(), replicate=rng.random() < 0.2)
        if k % 4 == seed:
            opt.add(int(rng.integers(15)), 0.5)
            opt.observe(opt.best_trial_, rng.normal(), amend=True)
            opt.enqueue(int(rng.integers(15)))

    return step


# The situations.


@dataclass
class Situation:
    make: Any
    step: Any
    n: int = 16
    #: Whether the optimizer is in the situation when it is copied.
    reached: Any = lambda opt: True


def of(cls=bl.BayesOpt, space=BOX, **arguments):
    place = {} if "candidates" in arguments else {"space": space}
    return lambda: cls(**({"seed": 3} | place | arguments))


def auto_window(surrogate, clock):
    time = {"seconds": Clock, "iterations": lambda: None}[clock]
    window = {"pending": bl.Censor(0.0, late="discard"), "window": "auto", "initial": 2, "acquisition": "ucb"}
    return lambda: of(space={"x": (0.0, 1.0)}, surrogate=surrogate, clock=clock, time=time(), **window)()


def learnt_failures(opt):
    return any("success" in note for note in notes(opt))


def stopped_some(opt):
    return sum(trial.state == "stopped" for trial in opt.trials) >= 3


SVM = {"C": bl.Real(1e-2, 1e2, log=True), "kernel": ["rbf", "poly"]}
NESTED = {"model": bl.Choice({"svm": SVM, "tree": {"depth": (1, 9)}}), "scale": {"mean": [True, False]}}
SOLVERS = {"solver": ["lbfgs", "saga", "liblinear"], "penalty": ["l1", "l2", "none"], "C": bl.Ordinal([0.01, 1, 100])}
FIDELITY = bl.Fidelity(2, 50, cost=bl.PowerCost(0.1, 2.0), bias=1.0)
CLOSE = np.array([[0.1, 1e-308], [np.nextafter(0.1, 1), 3.0]])
WIDE = {"n": bl.Integer(1, 10**6, log=True), "x": bl.Real(1e-300, 1e300, log=True)}
NUMPY = {"pending": bl.Censor(np.float64(-1)), "window": 3, "surrogate": bl.GP(lengthscale=np.array([0.3, 0.4]))}
DELAYS = {"no": "none", "estimated": "estimated", "known": bl.papers.SubExponential(2, xi=1, b=0.2)}
# The rounds end after 5, 15, 28, … suggestions.
BPE = strategies.DOMAINS["candidates"] | {"horizon": 24, "lengthscale": 0.4, "noise_std": 0.3}
cycle = observe_each(lambda p, k: k % 5)
constrained_value = observe_late(lambda p, k: constrained.value(p), n=3, lag=2)

SITUATIONS = {
    "warped targets": Situation(of(), observe_each(lambda p, k: cliff(p)), 24, lambda opt: "warp" in notes(opt)[-1]),
    "outlier after a fit": Situation(of(), outlier, 24, lambda opt: min(t.value for t in opt.trials) == -1e8),
    "extreme values": Situation(
        of(candidates=ROWS, initial=4, seed=7), observe_each(lambda p, k: EXTREMES[k]), len(EXTREMES)
    ),
    "failures": Situation(of(), often_fails(), 26, learnt_failures),
    "failures in a context": Situation(
        of(space=BOX | {"c": ["a", "b"]}, context={"z": (0.0, 1.0)}), often_fails({"z": 0.5}), 26, learnt_failures
    ),
    "failures of candidates": Situation(of(candidates=ROWS), often_fails(), 26, learnt_failures),
    "repeated failures": Situation(
        of(space=SOLVERS), invalid_pairs_fail, 34, lambda opt: len({repr(t.params) for t in opt.trials}) < opt.n_trials
    ),
    **{
        f"window of {kind} model on {clock}": Situation(
            auto_window(surrogate, clock), arrive, 36, lambda opt: opt.window_ is not None
        )
        for kind, surrogate in (("a fitted", QUICK), ("a given", GIVEN))
        for clock in ("iterations", "seconds")
    },
    "discarded late values": Situation(
        of(pending=bl.Censor(-1.0, late="discard"), window=1, surrogate=QUICK),
        observe_late(lambda p, k: math.sin(k)),
        reached=lambda opt: any(trial.delay > 1 for trial in opt.trials if trial.state == "observed"),
    ),
    **{
        f"constraints of {name} with {cls.__name__}": Situation(
            of(cls, space, constraints=constraints), constrained_value, 8
        )
        for name, (space, constraints) in constrained.SPACES.items()
        for cls in (bl.BayesOpt, bl.RandomSearch)
    },
    "UCB-PE under constraints": Situation(
        of(space=constrained.CUBE, constraints=[constrained.below_one], acquisition="ucb_pe"), constrained_value, 8
    ),
    "trials that the model stops": Situation(of(curve=CURVE, surrogate=QUICK), report_curve, 12, stopped_some),
    "trials that a rule stops": Situation(
        of(bl.RandomSearch, curve=CURVE, stopping="median"), report_curve, 16, stopped_some
    ),
    "choices per time": Situation(of(candidates=ROWS, acquisition=bl.LogEI(per="time")), takes_time),
    "fidelities of a tree": Situation(
        of(bl.TreeSearch, fidelity=FIDELITY, direction="minimize"),
        at_fidelities,
        60,
        lambda opt: opt.trees_[0].depth > 4 and len({trial.fidelity for trial in opt.trials}) > 4,
    ),
    "values measured elsewhere": Situation(
        of(direction="minimize"), run_elsewhere, reached=lambda opt: any(t._record.run for t in opt.trials)
    ),
    "a design that is covered": Situation(of(initial=12, surrogate=GIVEN), cover_the_design, 11),
    "partial points of the model": Situation(of(), enqueue_partly, 8),
    "partial points at random": Situation(of(bl.RandomSearch), enqueue_partly, 8),
    "facts of reports": Situation(of(context={"age": (0, 100)}, direction="minimize"), report_facts, 8),
    "nested space": Situation(of(space=NESTED, initial=4), cycle),
    "large numbers": Situation(of(bl.RandomSearch, WIDE, seed=2**64 - 1), cycle),
    "candidates that differ by rounding": Situation(of(bl.RandomSearch, candidates=CLOSE), cycle),
    "numbers of NumPy": Situation(of(**NUMPY), cycle),
    **{
        f"rounds of BPE with {name} delays, seed {seed}": Situation(
            of(bl.BPEDelay, seed=seed, delay=delay, **BPE), in_rounds(seed), 15, lambda opt: opt.round_ >= 2
        )
        for name, delay in DELAYS.items()
        for seed in range(3)
    },
}
every_situation = pytest.mark.parametrize("situation", SITUATIONS)


def readings(opt):
    """Return what users can read of an optimizer or a study, mostly as text or bytes. The first item, the settings, is
    the only one in which an optimizer differs from its study."""
    params = {name: value for name, value in opt.get_params().items() if name != "time"}
    found = [opt.best_trial_ and opt.best_trial_.number, float(getattr(opt, "window_", 0) or 0)]
    found.append(core_of(opt).status(opt._source._problem.wall_time()))
    found += [(trial, trial.curve, trial.error, trial.attrs, trial.fidelity) for trial in opt.trials]
    result = [repr(params), repr(found), core_of(opt).to_bytes(), opt.delays_]
    if "acquisition" in params and opt.best_trial_ is not None:
        context = opt.trials[-1].context
        points = list(range(len(ROWS))) if params["candidates"] is not None else [t.params for t in opt.trials[:9]]
        for pending in (False, True):
            result.append(np.array(opt.predict(points, context, pending=pending)).tobytes())
        if any(trial.duration is not None for trial in opt.trials):
            result.append(repr(opt.durations_.predict(points, context)))
        result += [
            repr((opt.surrogate_, opt.recommend(context))),
            np.array(opt.acquisition_at(points, context)).tobytes(),
        ]
    return result


@every_situation
def test_copies_continue_bit_for_bit(situation):
    case = SITUATIONS[situation]
    opt, copies = case.make(), []
    for k in range(case.n):
        if k == case.n // 2:
            copies += [twin_of(opt), replayed(opt)]
        if k == case.n - 3:
            assert case.reached(opt)
            expected = readings(opt)
            new = [make_copy(opt) for make_copy in ROUTES.values()]
            assert [readings(each) for each in new] == [expected] * len(new)
            copies += new
        for each in (opt, *copies):
            case.step(each, k)
    expected = readings(opt)
    for each in copies:
        assert readings(each) == expected


@every_situation
def test_between_steps_the_model_equals_the_model_of_a_copy(situation):
    case = SITUATIONS[situation]
    opt = case.make()
    for k in range(min(case.n, 16)):
        case.step(opt, k)
        assert readings(opt) == readings(replayed(opt))


@every_situation
def test_a_study_that_is_opened_before_each_step_continues_bit_for_bit(situation):
    case, store = SITUATIONS[situation], MemoryStore("here")
    opt = case.make()
    given = {"time": opt.get_params().get("time"), "constraints": opt.get_params().get("constraints")}
    first = bl.Study("s", store, case.make(), time=given["time"])
    for k in range(case.n):
        study = bl.Study.load("s", store, **given)
        for each in (opt, study):
            case.step(each, k)
    assert readings(study) == readings(first)
    assert readings(study)[1:] == readings(opt)[1:]


def continued(situation, opt):
    """Make the last three steps of a history; return the events without the wall-clock time."""
    case = SITUATIONS[situation]
    for k in range(case.n - 3, case.n):
        case.step(opt, k)
    return [_core.without_time(event) for event in core_of(opt).events(0)]


def test_another_process_continues_bit_for_bit():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for situation, case in SITUATIONS.items():
            opt = case.make()
            for k in range(case.n - 3):
                case.step(opt, k)
            there = pool.apply_async(continued, (situation, twin_of(opt)))
            assert continued(situation, opt) == there.get(timeout=120), situation
