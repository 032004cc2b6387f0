"""Every strategy with the arguments and calls that it supports, and random histories, for the contract tests."""

import contextlib
import itertools
import os
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import belated as bl
from belated.optimizers.values import family_of
from belated.space.candidates import LISTS
from tests.unit.optimizers.definitions import REQUIRED

FULL = os.environ.get("BELATED_FULL") == "1"

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
    "named": {
        "candidates": {
            "x": [*np.random.default_rng(6).normal(size=12).round(2), 0.0, 1.0, 1.0],
            "n": [2, 3, None, 4, 5] * 3,
            "c": ["u", "v", None, "w", "v"] * 3,
            "on": [True] * 8 + [False] * 7,
        }
    },
}


def feasible(params):
    return params.get("n", 2) <= 6 and params.get("x", 0.0) <= 2.5


CONTEXT = {"age": (0.0, 50.0), "site": ["a", "b"]}
FIDELITY = bl.Fidelity(2, 50, cost=bl.PowerCost(0.1, 2.0), bias=3.0)
OUTCOMES = {"f": "minimize", "g": bl.AtMost(1.0), "h": bl.Record()}
FRONT = {"f": "minimize", "g": bl.Maximize(at_least=0.5), "h": bl.AtMost(3.0)}

# For each optional feature: words of the error that a strategy raises if it does not support the feature.
FEATURES = {
    "candidates": (DOMAINS["candidates"], "candidates"),
    "context": (DOMAINS["mixed"] | {"context": CONTEXT}, "context"),
    "seconds": (DOMAINS["mixed"] | {"clock": "seconds"}, 'clock="seconds"'),
    "conditional": (DOMAINS["conditional"], "conditional"),
    "fidelity": (DOMAINS["mixed"] | {"fidelity": FIDELITY}, "fidelity"),
    "constraints": (DOMAINS["mixed"] | {"constraints": [feasible]}, "constraints"),
    "curve": (DOMAINS["mixed"] | {"curve": bl.Curve(5)}, "curve"),
}

# Settings whose fits are faster than with the defaults.
QUICK = {"BayesOpt": {"surrogate": bl.GP(n_restarts=1, n_refit_restarts=1, refit_every=4), "initial": 3}}


class Clock:
    """A clock that the test sets; the time may also decrease."""

    def __init__(self):
        self.now, self.broken = 0.0, False

    def __call__(self):
        if self.broken:
            raise ZeroDivisionError
        return self.now


# Every strategy, with every combination of values of its arguments.


def strategies():
    """(name, class) of every strategy of the package."""
    known = sorted(bl.Optimizer.registry.items())
    return [(name, cls) for name, cls in known if cls.__module__.startswith("belated.")]


def variants():
    """(class, arguments) for every strategy and every combination of argument values that it supports."""
    for name, cls in strategies():
        quick = REQUIRED.get(name, {}) | QUICK.get(name, {})
        families = {field.name: family_of(cls, field.name) for field in fields(cls)}
        choices = {
            argument: list(family.shorthand)
            for argument, family in families.items()
            if family is not None and family.shorthand and argument not in (*quick, "stopping")
        }
        for values in itertools.product(*choices.values()):
            arguments = quick | dict(zip(choices, values, strict=True))
            try:
                cls(**DOMAINS["continuous"], **arguments)
            except bl.errors.InvalidSetting as error:
                assert any(argument in str(error) for argument in choices)  # the pair is not supported
            else:
                yield pytest.param(cls, arguments, id="-".join([name, *values]))


VARIANTS = list(variants())
assert {variant.values[0] for variant in VARIANTS} == {cls for _, cls in strategies()}
every_strategy = pytest.mark.parametrize("cls", [cls for _, cls in strategies()], ids=lambda cls: cls.__name__)
every_variant = pytest.mark.parametrize("cls, arguments", VARIANTS)


def made(cls, **arguments):
    """Construct an optimizer with its required arguments and the given arguments."""
    return cls(**REQUIRED.get(cls.__name__, {}), **arguments)


def supported(cls, feature):
    """Return whether a class supports a feature. If the class does not support the feature, another test checks the
    error."""
    return accepts(cls, REQUIRED.get(cls.__name__, {}) | FEATURES[feature][0])


def accepts(cls, arguments):
    """Return whether an optimizer can have these arguments."""
    try:
        cls(**arguments)
    except bl.BelatedError:
        return False
    return True


# Histories.


KINDS = (
    *["suggest"] * 6,
    *["batch", "observe", "observe", "observe", "observe", "late", "amend", "replicate", "fail", "abandon"],
    "withdraw",
    *["add", "add pending", "enqueue", "wait", "recommend", "predict", "repeat", "report", "report", "ask"],
)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6)), min_size=4, max_size=30 if FULL else 20)


@st.composite
def situations(draw, cls, given):
    """Return shared arguments that this class supports, together with the given arguments of the class."""
    domains = [name for name, domain in DOMAINS.items() if accepts(cls, given | domain)]
    arguments = dict(DOMAINS[draw(st.sampled_from(domains))])

    def drawn(**option):
        return accepts(cls, given | arguments | option) and draw(st.booleans())

    if drawn(context=CONTEXT):
        arguments["context"] = CONTEXT
    if drawn(clock="seconds"):
        arguments["clock"] = "seconds"
    if drawn(fidelity=FIDELITY):
        arguments["fidelity"] = FIDELITY
    if drawn(constraints=[feasible]):
        arguments["constraints"] = [feasible]
    if "fidelity" not in arguments and drawn(curve=bl.Curve(5)):
        arguments |= {"curve": bl.Curve(5), "stopping": draw(st.sampled_from([None, "asha", "median"]))}
    if drawn(outcomes=OUTCOMES):
        arguments["outcomes"] = OUTCOMES
    elif drawn(outcomes=FRONT):
        arguments["outcomes"] = FRONT
    else:
        arguments["direction"] = draw(st.sampled_from(["maximize", "minimize"]))
    arguments["seed"] = draw(st.integers(0, 2**64 - 1))
    if "window" in {field.name for field in fields(cls)}:
        windows = [None] if "outcomes" in arguments else [None, 1.5, 4.0]
        arguments["window"] = draw(st.sampled_from(windows))
    return arguments


def histories(n):
    """Run a test on n random histories of every variant. With BELATED_FULL=1, run the test on 1,000 histories of every
    strategy."""

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
            @given(situation=situations(cls, arguments), steps=STEPS, data=st.data())
            def examples(situation, steps, data):
                test(lambda: make(cls, situation | arguments), steps, data)

            examples()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def make(cls, arguments):
    time = {"time": Clock()} if arguments.get("clock") == "seconds" else {}
    return cls(**arguments, **time)


def is_front(opt):
    return bool(opt._problem.front)  # a revision may have added outcomes


def best_of(opt):
    """Return the best trials: a list of the best trial, or the front."""
    if is_front(opt):
        return opt.pareto_
    return [] if opt.best_trial_ is None else [opt.best_trial_]


def a_point(opt, rng):
    if isinstance(opt.domain, LISTS):
        index = int(rng.integers(15))
        return opt.domain.params_at(index) if isinstance(opt.domain, bl.Space) and rng.random() < 0.5 else index
    every = {
        "x": 4 * rng.random() - 1,
        "y": rng.random(),
        "lr": 10 ** (-4 * rng.random()),
        "n": int(rng.integers(2, 8)),
        "m": int(rng.integers(1, 65)),
        "c": "uvw"[rng.integers(3)],
        "k": "constant",
    }
    if opt.get_params().get("constraints"):
        every |= {"x": min(every["x"], 2.5), "n": min(every["n"], 6)}
    return {
        name: every[name]
        for name, dimension in opt.domain.items()
        if all(every[parent] in values for parent, values in (dimension.when or {}).items())
    }


def a_measured_point(opt, number):
    """Return a random point where a trial may have been run. Some points are beyond a bound, or are not candidates."""
    rng = np.random.default_rng([number, 1])
    point = a_point(opt, rng)
    if number % 3:
        return point
    if isinstance(opt.domain, LISTS):
        if isinstance(opt.domain, bl.Space):
            return {"x": 3 * rng.normal(), "c": "uvw"[rng.integers(3)], "on": bool(rng.integers(2))}
        return (rng.normal(size=2) * [2.0, 200.0]).tolist()
    for name in rng.permutation([name for name in point if name in ("x", "y", "lr", "m")])[:2]:
        moved = {"x": 12 * rng.random() - 5, "y": 3 * rng.random() - 1, "lr": 10 ** (4 * rng.random() - 6)}
        point[str(name)] = (moved | {"m": int(rng.integers(1, 200))})[name]
    return point


def a_context(opt, rng):
    context = {"age": 10.0 * rng.integers(6), "site": "ab"[rng.integers(2)]}
    return None if opt.context_space is None else context


def a_fidelity(opt, rng):
    """Return a random fidelity for about half of the trials, and None for the remaining trials. If the optimizer does
    not declare a fidelity, return None without drawing a number."""
    if opt._problem.fidelity is None:
        return None
    return int(rng.integers(2, 51)) if rng.random() < 0.5 else None


def play(opt, what, number):
    """Make one random step of a history. Two optimizers in the same state make the same step.

    With outcomes, a step that reports an outcome may be refused, because only this outcome has ended.
    """
    refused = (bl.errors.AlreadyObserved, bl.errors.InvalidValue) if opt.get_params().get("outcomes") else ()
    with contextlib.suppress(*refused):
        step(opt, what, number)


def step(opt, what, number):
    rng = np.random.default_rng(number)
    value = float(np.round(3 * rng.normal(), 1))
    outcomes = opt.get_params().get("outcomes") or {}
    # The values of some outcomes, or the value.
    values = {name: value + i for i, name in enumerate(outcomes) if number >> i & 1 or not i} or value
    of = {"outcome": [None, *outcomes][number % (len(outcomes) + 1)]}
    std = 0.1 + (number % 7) / 10 if number % 4 == 0 else None
    context = a_context(opt, rng)
    if what == "suggest":
        opt.suggest(context=context, fidelity=a_fidelity(opt, rng))
    elif what == "batch":
        opt.suggest(n=1 + number % 4, context=context, fidelity=a_fidelity(opt, rng))
    elif what == "add":
        point = a_measured_point(opt, number)
        opt.add(point, values, context=context, std=std, fidelity=a_fidelity(opt, rng))
    elif what == "add pending":
        opt.add(a_measured_point(opt, number), context=context, fidelity=a_fidelity(opt, rng))
    elif what == "enqueue":
        for _ in range(1 + number % 2):
            opt.enqueue(a_point(opt, rng), fidelity=a_fidelity(opt, rng))
    elif what == "wait":
        clock = clock_of(opt)
        if clock is not None:
            clock.now += 3 * rng.random()
    elif what == "recommend":
        if best_of(opt) and not (is_front(opt) and opt.context_space is not None):
            opt.recommend(context)  # the front of a context may be empty
    elif what == "predict":
        if opt._optimizer._has_model and best_of(opt):
            name = {"outcome": "g"} if is_front(opt) else {}
            opt.predict([a_point(opt, rng) for _ in range(2)], context, pending=bool(number % 2), **name)
    else:
        ended = ("observed",)
        states = {"late": ("failed", "abandoned", "withdrawn"), "withdraw": ("observed", "failed", "stopped")}
        states |= dict.fromkeys(("amend", "replicate", "repeat"), ended)
        if outcomes:
            states["withdraw"] += ("pending",)
        states = states.get(what, ("pending",))
        if what in ("report", "ask") and opt.get_params().get("curve") is None:
            return
        trials = [trial for trial in opt.trials if trial.state in states]
        if trials:
            trial = trials[number % len(trials)]
            attrs = {"number": number} if number % 3 == 0 else None
            if what == "abandon":
                trial.abandon(**of)
            elif what == "withdraw":
                trial.withdraw(reason="contaminated" if number % 2 else None, **of)
            elif what == "report":
                trial.report(value, max(trial.curve, default=0) % 5 + 1, attempt=number % 2)
            elif what == "ask":
                trial.should_stop()
            elif what == "repeat":
                n_events, known = core_of(opt).n_events(), trial.values if outcomes else trial.value
                trial.observe(known)
                with pytest.raises(bl.errors.AlreadyObserved):
                    trial.observe({name: y + 1.0 for name, y in known.items()} if outcomes else known + 1.0)
                assert core_of(opt).n_events() == n_events
            elif what == "fail":
                trial.fail(error=ValueError(f"{number}") if number % 2 else None, attrs=attrs, **of)
            else:
                facts = {"std": std, "cost": 2.0 if number % 5 == 0 else None, "attrs": attrs}
                facts["params"] = a_measured_point(opt, number // 6) if number % 6 == 1 else None
                trial.observe(values, amend=what == "amend", replicate=what == "replicate", **facts)


def clock_of(opt):
    time = opt._time if isinstance(opt, bl.Study) else opt.time
    return time if isinstance(time, Clock) else None


def core_of(opt):
    return opt._log.core if isinstance(opt, bl.Study) else opt._log


def twin_of(opt):
    return pickle.loads(pickle.dumps(opt))


def replayed(opt):
    """Return the copy of the optimizer that another process would make from the definition and the events of the
    log."""
    other = twin_of(opt)
    fresh = opt._new_core()
    fresh.extend(opt._log.events(0))
    vars(other)["_log"] = fresh
    return other
