"""A hash of the decisions of each of about 200 short runs, which cover every strategy, setting and kind of study.

A change that must not affect decisions is checked by comparing the output before and after the change:

    python benchmarks/hashes.py > before.txt
    python benchmarks/hashes.py --against before.txt

The hash of a run covers the suggested points, the predictions, the recommended point, the window and the estimated
delays, bit for bit. Hashes are comparable only on the same machine. Results arrive late and out of order, and some
trials fail or are abandoned. The runs of `hash_runs.py` also compare the live object with a copy after every event.
"""

import argparse
import contextlib
import json
import math
import os
import random
import sys
import tempfile
import warnings

os.environ.setdefault("BELATED_NUM_THREADS", "1")

import numpy as np
from hash_runs import CANDIDATES, CONTINUOUS, MIXED, Digest, checked_runs

import belated as bl

STEPS = 9
PHASED = {"candidates": CANDIDATES, "horizon": 40, "lengthscale": 0.3, "signal_std": 1.0, "noise_std": 0.1}
FIDELITY = bl.Fidelity(1, 9, cost=bl.PowerCost(1.0, 1.0))


class Clock:
    """A clock that the run sets."""

    now = 0.0

    def __call__(self):
        return self.now


def value_of(params, context=None):
    """A function with one maximum, for points of every domain; a context moves the maximum."""
    numbers = params.values() if isinstance(params, dict) else np.atleast_1d(params)
    codes = [float(each) if not isinstance(each, str) else float(ord(each) % 5) for each in numbers]
    shift = 0.0 if context is None else context["age"] / 50.0
    return -sum((math.tanh(code / 3.0) - 0.3 - shift) ** 2 for code in codes)


def run(opt, n=40, waiting=3, clock=None, context=False, fidelity=False, std=False, durations=False, accidents=True):
    """Make a run with late results, and return its hash."""
    rng, digest, pending = random.Random(7), Digest(), []
    for number in range(n):
        if clock is not None:
            clock.now += rng.expovariate(0.1)
        arguments = {"context": {"age": rng.uniform(0.0, 50.0)}} if context else {}
        trial = opt.suggest(**arguments)
        digest.add(trial.number, trial.params, trial.fidelity if fidelity else None)
        pending.append((trial, arguments.get("context")))
        if len(pending) <= waiting:
            continue
        late, at = pending.pop(rng.randrange(len(pending)))
        if accidents and number % 11 == 9:
            late.fail()
        elif accidents and number % 11 == 6:
            late.abandon()
        else:
            value = value_of(late.params, at) + (0.1 * rng.gauss(0.0, 1.0) if std else 0.0)
            facts = ({"std": 0.1} if std else {}) | ({"duration": 1.0 + 5.0 * rng.random()} if durations else {})
            opt.observe(late, value, **facts)
    digest.add(opt.best_value_, opt.best_params_)
    return finished(opt, digest, context)


def finished(opt, digest, context=False):
    """Add the estimates of an optimizer after a run, and return the hash."""
    at = {"context": {"age": 20.0}} if context else {}
    recommended = opt.recommend(**at)
    digest.add(recommended)
    with contextlib.suppress(bl.BelatedError):  # only some strategies have a model
        digest.add(*(np.asarray(each) for each in opt.predict([recommended], **at)))
    delays = opt.delays_
    digest.add(delays.n_arrived, delays.n_failed, delays.n_abandoned)
    if delays.unknown is None:
        digest.add(*delays.quantile(0.5), *delays.mean())
    window = getattr(opt, "window_", None)
    digest.add(None if window is None else float(window))
    return digest.hash.hexdigest()[:16]


def run_with_curves(opt, n=30, waiting=3):
    """Make a run in which trials report curves and the rule of the optimizer stops trials."""
    rng, digest, pending, n_stopped = random.Random(8), Digest(), [], 0
    for _ in range(n):
        trial = opt.suggest()
        digest.add(trial.number, trial.params)
        pending.append((trial, [1]))
        while len(pending) > waiting:
            i = rng.randrange(len(pending))
            each, (step,) = pending[i]
            value = value_of(each.params) - 1.0 / step
            opt.report(each, step=step, value=value)
            if step < STEPS and opt.should_stop(each):
                digest.add(each.number, step)
                n_stopped += 1
                pending.pop(i)
            elif step == STEPS:
                opt.observe(each, value)
                pending.pop(i)
            else:
                pending[i][1][0] = step + 1
    digest.add(n_stopped, opt.best_value_)
    return finished(opt, digest)


def run_of_a_study(make):
    """Make a run of a study through two handles; the second handle reads the study from its store."""
    with tempfile.TemporaryDirectory() as folder:
        first = run(bl.Study("s", f"sqlite:///{folder}/s.db", make()))
        other = bl.Study.load("s", f"sqlite:///{folder}/s.db")
        digest = Digest()
        digest.add(first, [(trial.number, trial.params) for trial in other.suggest(n=3)])
        return finished(other, digest)


def run_of_a_function(**arguments):
    """Make a run of `maximize` in the calling thread."""
    digest = Digest()
    result = bl.maximize(value_of, CONTINUOUS, n_trials=20, seed=4, progress=False, **arguments)
    digest.add(result.best_value_, result.best_params_)
    return digest.hash.hexdigest()[:16]


def algorithm(name):
    """Return an optimizer for a name of the literature, with the settings that it needs."""
    settings = {
        "GP-UCB-SDF": {"window": 6},
        "GP-TS-SDF": {"window": 6},
        "BPE-Delay": PHASED,
        "BPE": PHASED,
    }.get(name, {})
    if bl.algorithms()[name].startswith(("Wang", "Bubeck", "Grill", "Sen")):
        constant = "noise_std" if name.endswith("sigma") else "b" if name.endswith("V") else "range"
        settings = {"nu": 1.0, "rho": 0.95, f"bound__{constant}": 0.1 if constant == "noise_std" else 1.0}
        settings |= {"horizon": 40} if "POO" in name else {}
    if "candidates" not in settings:
        settings = {"space": CONTINUOUS} | settings
    if name.startswith("MF"):
        settings["fidelity"] = FIDELITY
    return bl.algorithm(name, **settings, seed=1)


def runs():
    """Yield (name, function that returns the hash) of each run."""
    for name in bl.algorithms():
        yield f"algorithm {name}", lambda name=name: run(algorithm(name), fidelity=name.startswith("MF"))
    spaces = {"continuous": CONTINUOUS, "mixed": MIXED}
    for acquisition in ("log_ei", "ucb", "thompson", "max_variance", "ucb_pe"):
        for domain, space in spaces.items():
            yield (
                f"{acquisition} {domain}",
                lambda a=acquisition, s=space: run(bl.BayesOpt(s, acquisition=a, seed=2)),
            )
        yield (
            f"{acquisition} candidates",
            lambda a=acquisition: run(bl.BayesOpt(candidates=CANDIDATES, acquisition=a, seed=2)),
        )
    for pending in ("integrate", "hallucinate", "ignore", "censor", "liar", "nearest"):
        for acquisition in ("log_ei", "ucb"):
            if (pending, acquisition) == ("integrate", "ucb"):
                continue  # not supported
            window = {"window": 6} if pending == "censor" else {}
            arguments = {"acquisition": acquisition, "pending": pending} | window
            yield (
                f"pending {pending} {acquisition}",
                lambda a=arguments: bayes(a),
            )
    for kernel in ("matern52", "matern32", "squared_exponential"):
        yield f"kernel {kernel}", lambda k=kernel: bayes({"surrogate": bl.GP(kernel=k)})
    surrogates = {
        "isotropic": bl.GP(ard=False),
        "no noise": bl.GP(noise_std=0.0),
        "plain targets": bl.GP(targets="standardized", inputs="plain"),
        "refit every 2": bl.GP(refit_every=2),
    }
    for name, surrogate in surrogates.items():
        yield f"surrogate {name}", lambda s=surrogate: bayes({"surrogate": s})
    yield "minimize", lambda: bayes({"direction": "minimize"})
    yield "initial 8", lambda: bayes({"initial": 8})
    yield "std", lambda: run(bl.BayesOpt(CONTINUOUS, seed=2), std=True)
    yield "constraints", lambda: bayes({"constraints": [lambda p: p["x"] + p["y"] <= 2.0]})
    for name in ("log_ei", "ucb", "thompson"):
        yield f"context {name}", lambda a=name: run(contextual(a), context=True)
    for clock in ("iterations", "seconds"):
        for name in ("log_ei", "ucb", "thompson"):
            yield f"window auto {clock} {name}", lambda a=name, c=clock: automatic_window(a, c)
        yield f"window 6 {clock}", lambda c=clock: automatic_window("ucb", c, 6.0)
        yield f"RandomSearch {clock}", lambda c=clock: timed(bl.RandomSearch, c)
    for policy in ("accept", "discard"):
        yield f"late {policy}", lambda p=policy: automatic_window("ucb", "iterations", 4.0, late=p)
    for per in ("time", "cost"):
        yield f"per {per}", lambda p=per: per_amount(p)
    for name, rule in stopping_rules().items():
        for cls in (bl.BayesOpt, bl.RandomSearch):
            if name != "model" or cls is bl.BayesOpt:
                yield f"curve {name} {cls.__name__}", lambda c=cls, r=rule: curves(c, r)
    for domain, space in spaces.items():
        yield f"RandomSearch {domain}", lambda s=space: run(bl.RandomSearch(s, seed=2))
        yield f"TreeSearch {domain}", lambda s=space: run(bl.TreeSearch(s, seed=2), n=60)
    yield "RandomSearch candidates", lambda: run(bl.RandomSearch(candidates=CANDIDATES, seed=2))
    for bound in ("ducb1", "ducbv"):
        yield (
            f"TreeSearch {bound} fidelity",
            lambda b=bound: run(bl.TreeSearch(CONTINUOUS, bound=b, fidelity=FIDELITY, seed=2), n=60, fidelity=True),
        )
    studies = {
        "BayesOpt": lambda: bl.BayesOpt(CONTINUOUS, seed=3),
        "mixed": lambda: bl.BayesOpt(MIXED, seed=3),
        "RandomSearch": lambda: bl.RandomSearch(MIXED, seed=3),
        "TreeSearch": lambda: bl.TreeSearch(MIXED, seed=3),
        "SDF": lambda: algorithm("GP-UCB-SDF"),
    }
    for name, make in studies.items():
        yield f"study {name}", lambda m=make: run_of_a_study(m)
    yield "maximize", run_of_a_function
    yield "maximize ucb", lambda: run_of_a_function(acquisition="ucb")
    yield from checked_runs()


def bayes(arguments):
    return run(bl.BayesOpt(CONTINUOUS, seed=2, **arguments))


def contextual(acquisition):
    return bl.BayesOpt(CONTINUOUS, context={"age": (0.0, 50.0)}, acquisition=acquisition, seed=2)


def timed(cls, unit, **arguments):
    clock = Clock()
    times = {"clock": "seconds", "time": clock} if unit == "seconds" else {}
    return run(cls(CONTINUOUS, seed=2, **times, **arguments), n=40, clock=clock)


def automatic_window(acquisition, unit, window="auto", late="accept"):
    return timed(bl.BayesOpt, unit, acquisition=acquisition, pending=bl.Censor(late=late), window=window)


def per_amount(per):
    opt = bl.BayesOpt(CONTINUOUS, acquisition=bl.LogEI(per=per), seed=2)
    if per == "time":
        # Trials in flight would be censored at their age on the wall clock.
        return run(opt, waiting=0, durations=True, accidents=False)
    digest, rng = Digest(), random.Random(5)
    for _ in range(20):
        trial = opt.suggest()
        digest.add(trial.params)
        opt.observe(trial, value_of(trial.params), cost=1.0 + rng.random())
    return finished(opt, digest)


def stopping_rules():
    return {"asha": bl.ASHA(), "median": bl.MedianStopping(), "model": bl.ModelStopping(), "none": None}


def curves(cls, rule):
    return run_with_curves(cls(CONTINUOUS, curve=bl.Curve(STEPS), stopping=rule, seed=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="a file with the output of another version; print the runs that differ")
    parser.add_argument("--only", default="", help="make only the runs whose name contains this text")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    before = None
    if arguments.against is not None:
        with open(arguments.against) as file:
            before = json.load(file)
    found = {}
    for name, call in runs():
        if arguments.only in name:
            try:
                found[name] = call()
            except Exception as error:
                raise RuntimeError(f"the run {name!r} failed") from error
    if before is None:
        print(json.dumps(found, indent=1))
        return
    different = [name for name in found if found[name] != before.get(name)]
    print(f"{len(found)} runs, {len(different)} differ: {different}")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
