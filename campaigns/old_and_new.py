"""Check that two versions of belated behave alike: python campaigns/old_and_new.py --old ENVIRONMENT/bin/python

The wheel of the old version is installed in the environment of the given interpreter, and this program runs with the
new version. Each version plays the same random histories in a process of its own. A history is a study with two handles
or an optimizer without a store. Its calls suggest, report, amend, withdraw, add, enqueue, revise, repeat keys, and open
the study again; some calls are made by a process that is killed after them. After every call, all data of all trials,
the best trial, the delays, the forecast, the worklist, and the next suggestion of a copy must be equal, and so must the
type of the error if a call was refused. The program prints JSON.
"""

import contextlib
import copy
import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import harness
from revised_problems import STEPS, context_of, domain_of, names_of, random_point, random_problem, random_revision

import belated as bl

VERBS = {
    "suggest": 10,
    "observe": 14,
    "amend": 2,
    "replicate": 1,
    "fail": 2,
    "abandon": 2,
    "withdraw": 3,
    "report": 4,
    "stop": 1,
    "add": 2,
    "enqueue": 2,
    "again": 2,
    "revise": 2,
    "open": 2,
    "wait": 2,
}
AFTER = ("amend", "replicate", "withdraw")
IN_STUDIES = ("again", "revise", "replicate")  # an optimizer without a store has neither keys nor revisions

# What a study declares, beside its outcomes.
DECLARED = ("direction", "clock", "domain", "context_space")

# Settings with which a suggestion takes little time.
FIXED = bl.GP(kernel="matern52", lengthscale=0.5, signal_std=1.0, noise_std=0.1)


def optimizers():
    """Return the kinds of optimizers: functions of the arguments of a domain."""
    return {
        "RandomSearch": bl.RandomSearch,
        "BayesOpt": lambda **domain: bl.BayesOpt(**domain, initial=3),
        "hallucinate": lambda **domain: bl.BayesOpt(**domain, initial=2, surrogate=FIXED, pending="hallucinate"),
        "ucb": lambda **domain: bl.BayesOpt(**domain, initial=2, surrogate=FIXED, acquisition="ucb", pending="ignore"),
        "window": lambda **domain: bl.BayesOpt(
            **domain, initial=2, surrogate=FIXED, window=4.0, acquisition="thompson", pending=bl.Censor(-3.0)
        ),
        "tree": lambda curve=None, **domain: bl.TreeSearch(**domain),
    }


class Clock:
    """The clock of a history, which copies of an optimizer share."""

    now = 0.0


def time():
    return Clock.now


class Player:
    """Plays one history. All random numbers come from `chance`, so that both versions make the same calls."""

    def __init__(self, chance, folder):
        self.chance, self.folder, self.count, self.keys = chance, Path(folder), 0, {}
        Clock.now = 100.0
        self.path, self.n_copies = self.folder / "s.db", 0
        self.problem = random_problem(chance)
        make = optimizers()[chance.choice(list(optimizers()))]
        clock = chance.choice(["iterations", "seconds"])
        arguments = {"seed": 3, "clock": clock, "time": time}
        try:
            made = make(**domain_of(self.problem), **arguments)
        except (bl.BelatedError, TypeError):
            made = bl.RandomSearch(**domain_of(self.problem), **arguments)
        self.is_study = chance.random() < 0.8
        self.handles = [bl.Study("s", harness.url(self.path), made, time=time)] if self.is_study else [made]
        if self.is_study:
            self.handles.append(self.loaded(self.path))

    def loaded(self, path):
        return bl.Study.load("s", harness.url(path), time=time)

    def close(self):
        if self.is_study:
            harness.close(*self.handles)

    # The calls.

    def step(self):
        """Make one random call. Return it as text, with the type of the error if it was refused."""
        chance = self.chance
        Clock.now += chance.choice([0.0, 0.5, 1.0, 7.0])
        self.count += 1
        verbs = {verb: often for verb, often in VERBS.items() if self.is_study or verb not in IN_STUDIES}
        verb = chance.choices(list(verbs), verbs.values())[0]
        handle = chance.choice(self.handles)
        is_killed = self.is_study and chance.random() < 0.06
        if not handle.n_trials and verb not in ("add", "enqueue", "revise", "open"):
            verb = "suggest"
        if verb == "wait":
            Clock.now += chance.choice([10.0, 1e4])
            return "wait"
        if verb == "open":
            self.open_again()
            return verb
        if verb == "revise":
            return self.revise(handle)
        method, arguments = verb, self.arguments(verb)
        if verb == "again":
            method, arguments = arguments or ("suggest", {})
        elif "key" in arguments:
            self.keys[arguments["key"]] = method, arguments
        text = f"{verb} {shorter(arguments)}{' and is killed' if is_killed else ''}"
        if is_killed and self.killed(method, arguments):
            return text
        return f"{text}: {self.made(handle, method, arguments)}"

    def made(self, handle, method, arguments):
        """Make a call of a handle; return what it returned or raised, as text."""
        if method in ("amend", "replicate"):
            method, arguments = "observe", arguments | {method: True}
        try:
            found = getattr(handle, method)(**copy.deepcopy(arguments))
        except (bl.BelatedError, TypeError) as error:
            return type(error).__name__
        found = found if isinstance(found, list) else [found]
        return " ".join("None" if each is None else f"{each.number}" for each in found)

    def killed(self, method, arguments):
        """Make a call in a process that is killed after it. Return whether the call was made in such a process."""
        if not hasattr(os, "fork"):
            return False
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self.made(self.loaded(self.path), method, arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        return True

    def open_again(self):
        """Replace all handles by new ones."""
        if self.is_study:
            harness.close(*self.handles)
            self.handles = [self.loaded(self.path) for _ in self.handles]
        else:
            self.handles = [self.copied()]

    def copied(self):
        """Return a copy whose calls do not affect the handles."""
        if not self.is_study:
            return pickle.loads(pickle.dumps(self.handles[0]))
        self.n_copies += 1
        path = self.folder / f"copy{self.n_copies}.db"
        with contextlib.closing(sqlite3.connect(self.path)) as source, contextlib.closing(sqlite3.connect(path)) as to:
            source.backup(to)
        return self.loaded(path)

    def arguments(self, verb):
        """Return random arguments of a call."""
        chance, problem = self.chance, self.problem
        key = {"key": f"k{self.count}"} if self.is_study and chance.random() < 0.4 else {}
        at = {"context": random_point(chance, context_of(problem))} if problem["context"] else {}
        number = {"trial": self.number(verb)}
        if verb == "again":
            return chance.choice(list(self.keys.values())) if self.keys else None
        if verb == "suggest":
            found = {"n": chance.choice([1, 1, 2, 3])} | at | key
            if problem["rows"] is None and chance.random() < 0.2:
                name = chance.choice(names_of(problem))
                found["fixed"] = {name: random_point(chance, problem)[name]}
            if self.is_study and chance.random() < 0.3:
                found["expires_after"] = chance.choice([1.0, 20.0])
            return found
        if verb == "add":
            point = self.given(far=True)
            found = {"params": point} | at | ({"value": self.value()} if chance.random() < 0.7 else {})
            return found | ({"attrs": {"row": self.count}} if "value" in found and chance.random() < 0.3 else {})
        if verb == "enqueue":
            point = self.given()
            if isinstance(point, dict) and chance.random() < 0.4:
                point = {name: point[name] for name in chance.sample(list(point), len(point) - 1)}
            return {"params": point}
        if verb == "report":
            return number | {"value": self.count / 7, "step": chance.randint(1, STEPS)}
        if verb == "stop":
            return number
        if verb in ("observe", "amend", "replicate"):
            found = number | {"value": self.value()} | key
            if verb != "amend" and chance.random() < 0.2:
                found["params"] = self.given(far=True)
            if chance.random() < 0.3:
                found |= chance.choice([{"std": 0.1}, {"cost": 2.0}, {"duration": 3.0}, {"attrs": {"who": self.count}}])
            return found
        outcome = chance.choice([None, *(problem["outcomes"] or ())])
        found = number | ({} if outcome is None else {"outcome": outcome})
        if verb == "fail" and chance.random() < 0.5:
            return found | {"error": "broken"}
        if verb == "withdraw" and chance.random() < 0.5:
            return found | {"reason": "leak"}
        return found

    def number(self, verb):
        """Return the number of a trial, which is usually in a state that suits the verb."""
        trials = self.handles[0].trials
        found = [trial.number for trial in trials if (trial.state == "pending") == (verb not in AFTER)]
        return self.chance.choice(found if found and self.chance.random() < 0.7 else range(len(trials) + 1))

    def given(self, far=False):
        found = random_point(self.chance, self.problem, far)
        return list(found.values()) if 0 in found else found

    def value(self):
        """Return a value, or the values of some outcomes."""
        chance, names = self.chance, self.problem["outcomes"]
        if names is None:
            return round(chance.gauss(0, 1), 3)
        reported = chance.sample(list(names), chance.randint(1, len(names)))
        return {name: round(chance.gauss(0, 1), 3) for name in reported}

    def revise(self, handle):
        """Make a random revision, and return it as text."""
        revision = random_revision(self.chance, self.problem)
        problem = revision.pop("problem")
        arguments = domain_of(problem) | revision
        made = self.made(handle, "revise", arguments)
        if made == "None":
            self.problem = problem
        return f"revise {shorter(arguments)}: {made}"

    # What is compared.

    def seen(self):
        """Return all that a user can read, and the next suggestion of a copy, as text for each name."""
        handle = self.chance.choice(self.handles)
        found = {f"trial {trial.number}": text_of(facts(trial)) for trial in reading(lambda: handle.trials) or ()}
        copied = self.copied()
        at = {"context": random_point(self.chance, context_of(self.problem))} if self.problem["context"] else {}
        found |= {
            "pending": text_of(reading(lambda: [trial.number for trial in handle.pending])),
            "best": text_of(reading(lambda: [handle.best_trial_, handle.best_value_, handle.best_params_])),
            "delays": text_of(reading(lambda: delays(handle))),
            "overdue": text_of(reading(lambda: [(each.trial.number, each) for each in handle.overdue()])),
            "forecast": text_of(reading(lambda: forecast(handle))),
            "problem": text_of(reading(lambda: [getattr(handle, name) for name in DECLARED])),
            "next": text_of(reading(lambda: suggested(copied.suggest(**at)))),
        }
        if self.is_study:
            found["worklist"] = text_of(reading(lambda: handle.worklist().to_csv()))
            harness.close(copied)
        return found


def shorter(arguments):
    """Return the arguments of a call as text."""
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def reading(read):
    """Return what a function returns, or the type of the error."""
    try:
        return read()
    except (bl.BelatedError, TypeError) as error:
        return type(error).__name__


def facts(trial):
    """Return all data of a trial."""
    names = [name for name, each in vars(type(trial)).items() if isinstance(each, property) and name[0] != "_"]
    return {name: getattr(trial, name) for name in names}


def delays(handle):
    found = handle.delays_
    waiting = [found.arrival_probability(trial, 2.0) for trial in handle.pending]
    return [repr(found), found.unknown, found.mean(), found.quantile(0.5), found.quantile(0.95), *waiting]


def forecast(handle):
    return str(handle.forecast(by=3.0))


def suggested(trials):
    """Return the data of suggested trials."""
    return [(each.number, each.params, each.fidelity) for each in (trials if isinstance(trials, list) else [trials])]


def text_of(found):
    """Return data as text, without the names of classes that versions may name differently."""
    if isinstance(found, dict):
        return "{" + ", ".join(f"{name!r}: {text_of(each)}" for name, each in found.items()) + "}"
    if isinstance(found, (list, tuple)):
        return "[" + ", ".join(map(text_of, found)) + "]"
    return repr(found.tolist() if hasattr(found, "tolist") else found)


def play(histories, length, seed):
    """Play histories, and print a line of JSON for each call."""
    warnings.simplefilter("ignore")
    for number in range(histories):
        with harness.folder(memory=True) as folder:
            player = Player(random.Random(f"{seed} {number}"), folder)
            for _ in range(length):
                call = player.step()
                print(json.dumps([number, call, player.seen()]), flush=True)
            player.close()


# The comparison.


def player_of(interpreter, histories, length, seed):
    """Start a process that plays histories, with the version that the environment of the interpreter has."""
    program = f"import old_and_new; old_and_new.play({histories}, {length}, {seed})"
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BELATED_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, "1") | {"PYTHONHASHSEED": "0"}
    if interpreter != sys.executable:
        environment.pop("PYTHONPATH", None)
    return subprocess.Popen(
        [interpreter, "-c", program], stdout=subprocess.PIPE, text=True, env=environment, cwd=Path(__file__).parent
    )


def difference(old, new):
    """Return the first difference between two lines, or None."""
    if old[1] != new[1]:
        return f"the calls differ: {old[1]} and {new[1]}"
    for name in old[2] | new[2]:
        if old[2].get(name) != new[2].get(name):
            one, other = str(old[2].get(name)), str(new[2].get(name))
            start = max(0, len(os.path.commonprefix([one, other])) - 100)
            one, other = (each[start : start + 300] for each in (one, other))
            return f"{name} differs after {old[1]}:\n  old {one}\n  new {other}"
    return None


def run(old="", histories=300, length=25, seed=0, limit=None):
    """Return all results."""
    if not old:
        raise SystemExit("--old: the path of the Python interpreter of an environment that has the old version")
    deadline, failures = harness.Deadline(limit), harness.Failures()
    counts, failed = Counter(calls=0, histories=0, refused=0), set()
    players = [player_of(interpreter, histories, length, seed) for interpreter in (old, sys.executable)]
    try:
        for lines in zip(*(player.stdout for player in players), strict=True):
            first, second = map(json.loads, lines)
            counts += Counter(calls=1, refused=first[1].rsplit(": ", 1)[-1].isidentifier() and first[1][-4:] != "None")
            counts["histories"] = first[0] + 1
            if first[0] not in failed and (found := difference(first, second)):
                failed.add(first[0])
                failures.append(f"history {first[0]}: {found}")
            if deadline.over():
                break
        else:
            if any(player.wait() != 0 for player in players):
                failures.append("a process that plays ended with an error")
    except ValueError as error:
        failures.append(f"a process that plays ended early: {error}")
    finally:
        for player in players:
            player.kill()
            player.wait()
    return dict(counts) | failures.figures()


if __name__ == "__main__":
    sys.exit(harness.main(__doc__, run, old="", histories=300, length=25, seed=0))
