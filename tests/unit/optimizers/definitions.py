"""An independent implementation of the posterior after a history of trials: one dense solve in numpy."""

import json
import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from hypothesis import assume
from scipy.special import betaln, log_ndtr, ndtr, ndtri

import belated as bl
from belated.optimizers.settings import Acquisition, PendingPolicy

BOX = {
    "x": (-1.0, 3.0),
    "lr": bl.Real(1e-4, 1.0, log=True),
    "n": (2, 7),
    "m": bl.Integer(1, 64, log=True),
    "c": ["u", "v", "w"],
}
ROWS = np.random.default_rng(5).normal(size=(40, 2)) * [1.0, 100.0]
CONTEXT = {"age": (0.0, 50.0), "site": ["a", "b"]}

# {name of a class of optimizers: the arguments that the class requires}.
REQUIRED = {"BPEDelay": {"horizon": 2_000_000, "lengthscale": 0.3, "noise_std": 0.1}}


def settings_of(opt):
    """The settings of an optimizer that the functions below use, under short names."""
    params = opt.get_params()
    names = {name: f"surrogate__{name}" for name in ("kernel", "mean", "targets")}
    names |= {"floor": "pending__floor", "late": "pending__late", "lie": "pending__value", "n_nearest": "pending__k"}
    names |= {"n_initial": "initial__n", "predictive_std": "acquisition__predictive_std"}
    names |= {name: name for name in ("window", "direction")}
    values = {name: params.get(param) for name, param in names.items()}
    for argument, family in (("acquisition", Acquisition), ("pending", PendingPolicy)):
        kind = type(opt._settings()[argument])
        values[argument] = next((short for short, each in family.shorthand.items() if each is kind), None)
    return SimpleNamespace(**values)


def unit(value, low, high, log=False):
    return math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)


def one_hot(value, choices):
    return [float(value == choice) for choice in choices]


def encoded(trial):
    """Return the row of a trial in the model: numbers in the unit cube, one-hot choices, and then the context."""
    if trial.x is None:
        p = trial.params
        row = [unit(p["x"], -1, 3), unit(p["lr"], 1e-4, 1, True), unit(p["n"], 2, 7), unit(p["m"], 1, 64, True)]
        row += one_hot(p["c"], "uvw")
    else:
        low, high = ROWS.min(axis=0), ROWS.max(axis=0)
        row = list((trial.x - low) / (high - low))
    if trial.context is not None:
        row += [unit(trial.context["age"], 0, 50), *one_hot(trial.context["site"], "ab")]
    return row


def spreads(trial):
    """For each column of a row, return the root mean square distance of random points, divided by the root mean square
    distance of uniform numbers in [0, 1]."""

    def choice(n):
        return [math.sqrt(6 * (2 - 2 / n))] * n

    row = [1.0, 1.0]
    if trial.x is None:
        steps = np.linspace(0, 1, 6)
        row += [math.sqrt(6 * 2 * steps.var()), 1.0, *choice(3)]
    return np.array(row + [1.0, *choice(2)] if trial.context is not None else row)


def kernel(name, lengthscale, variance, a, b):
    a, b = a / lengthscale, b / lengthscale
    r = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    return (
        variance
        * {
            "squared_exponential": lambda: np.exp(-(r**2) / 2),
            "matern52": lambda: (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
            "matern32": lambda: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "matern12": lambda: np.exp(-r),
            "linear": lambda: 1 + a @ b.T,
        }[name]()
    )


KERNELS = ["matern52", "squared_exponential", "matern32", "matern12", "linear"]


class Dense:
    """The posterior at a given time, computed by one dense solve from θ and the public data of the trials.

    `suggested` contains the numbers of the trials that were suggested, not added. `now` is the time.
    """

    def __init__(self, opt, suggested, now, theta, pending, suggests=False, units=None):
        its = settings_of(opt)
        self.name, (self.lengthscale, self.variance, self.noise) = its.kernel, theta
        sign = -1 if its.direction == "minimize" else 1
        window = math.inf if its.window is None else its.window
        trials = opt.trials
        times = [trials[number].suggested_at for number in suggested] + [now] * suggests

        def discarded(trial):
            """Return whether the trial's window has passed: its value arrived after the window, or at the last
            suggestion the trial had been pending for longer than the window."""
            if its.late != "discard" or trial.number not in suggested:
                return False
            if trial.state == "pending":
                return any(time - trial.suggested_at > window for time in times)
            return trial.state == "observed" and trial.delay > window

        # The model of f does not contain rows for failures, which have a separate model.
        rows = [t for t in trials if t.state == "observed" or discarded(t)]
        self.ended, self.log = [t for t in trials if t.state in ("observed", "failed")], opt._log
        self.n_trials = opt.n_trials  # the log grows after this moment
        self.values = [sign * t.value for t in rows if t.state == "observed" and not discarded(t)]
        worst = min(self.values, default=None)
        floor = next((f for f in (None if its.floor is None else sign * its.floor, worst) if f is not None), 0.0)
        # If `units` is given, θ and the unit of the targets were chosen in a fit; otherwise the unit is computed here.
        self.fitted = units is not None
        self.center, self.scale = self.units(its, sign, floor) if units is None else units
        targets = [floor if discarded(trial) else sign * trial.value for trial in rows]
        self.n_rows = len(rows)
        # A value's `std` is used as its noise, unless the value arrived after the window.
        self.known = [None if discarded(t) or t.std is None else t.std for t in rows]
        width = self.lengthscale.size
        x = np.array([encoded(t) for t in rows]).reshape(-1, width)
        arriving = [t for t in trials if t.state == "pending" and not discarded(t)] if pending else []
        if its.pending == "ignore":
            arriving = []
        if its.pending in ("hallucinate", "liar", "nearest"):
            arriving = [t for t in arriving if now - t.suggested_at <= window]
        tail = np.array([encoded(t) for t in arriving]).reshape(-1, width)
        self.observed = x
        self.x = np.vstack([x, tail])
        if its.pending == "censor":
            targets += [floor] * len(tail)
        if its.pending == "liar":
            # The smallest and the largest value, with the user's sign.
            lies = {"min": np.min, "max": np.max, "mean": np.mean}
            lie = sign * its.lie if its.lie not in lies else self.center
            if its.lie in lies and self.values:
                lie = sign * lies[its.lie](sign * np.array(self.values))
            targets += [lie] * len(tail)
        self.y = (np.array(targets) - self.center) / self.scale
        unit = self.unit_of_noise(opt)
        noise = [self.noise if std is None else (std / unit) ** 2 for std in self.known]
        self.a = self.covariance(self.x) + np.diag(noise + [self.noise] * len(tail))
        # d is the number of parameters, not the number of columns.
        d = len(opt.domain) if opt.candidates is None else opt.domain.width
        d += len(opt.context_space or ())
        self.d = d
        wanted = its.mean == "estimated" or (its.mean == "auto" and d >= 5)
        self.estimated = wanted and its.targets == "standardized" and its.pending != "censor" and not self.fitted
        if self.estimated:
            # The prior mean is the constant with the largest posterior density, with prior N(0, 1) in the model's unit.
            n = self.n_rows
            weights = np.linalg.solve(self.a[:n, :n], np.ones(n))
            mean = weights @ self.y[:n] / (1 + weights.sum())
            self.center += mean * self.scale
            self.y -= mean
        if its.pending == "nearest" and len(tail):
            means = self.predict(x)[0] if len(x) else np.zeros(0)
            distance = (((tail[:, None] - x[None]) / self.lengthscale) ** 2).sum(axis=2)
            near = np.argsort(distance, axis=1, kind="stable")[:, : its.n_nearest]
            if len(x) > its.n_nearest:
                # Skip examples in which rounding could decide which point is nearer.
                ordered = np.sort(distance, axis=1)
                assume((np.diff(ordered, axis=1)[:, its.n_nearest - 1] > 1e-9 * (1 + ordered.max())).all())
            self.y = np.append(self.y, means[near].mean(axis=1) if len(x) else np.zeros(len(tail)))

    def success(self, z):
        """Call the function `success` with lengthscales at the mode of their prior, but at least 1/2. Return None if
        all trials succeeded."""
        trials = {trial.number: trial for trial in self.ended}
        ended = [trials[number] for number in ended_in_order(self.log) if number in trials]
        failed = np.array([t.state == "failed" for t in ended], dtype=bool)
        if not failed.any():
            return None
        x = np.array([encoded(t) for t in ended])
        mode = math.exp(math.sqrt(2) + 0.5 * math.log(self.d) - 3)
        return success(x, failed, z, np.maximum(mode * spreads(self.ended[0]), 0.5), self.n_trials)

    def units(self, its, sign, floor):
        """Return the prior mean of f and the unit of the model."""
        y = np.array(self.values)
        largest = np.abs(y).max(initial=0)
        if its.pending == "censor" and y.size:
            largest = max(largest, abs(floor))
        if its.targets == "raw":
            center, scale = 0.0, 1.0
        elif its.pending == "censor":
            center, scale = floor, np.abs(y - floor).max(initial=0)
        else:
            center, scale = (y.mean(), y.std()) if y.size else (0.0, 0.0)
        if largest == 0 or scale <= 1e-12 * largest:
            scale = largest or 1.0  # if all values are equal, the unit is 1
        if its.mean == "median":
            center = np.median(y) if y.size else center
        elif its.mean not in ("zero", "estimated", "auto"):
            center = sign * its.mean
        return center, scale

    def unit_of_noise(self, opt):
        """Return the unit of the last fit, or the current unit without a fit."""
        if not any(std is not None for std in self.known):
            return 1.0
        if self.fitted:
            return self.scale
        notes = [note for note in (opt._log.trial(number).note for number in opt._log.numbers(None)) if note]
        return json.loads(notes[-1])["scale"] if notes else self.scale

    def covariance(self, a, b=None):
        return kernel(self.name, self.lengthscale, self.variance, a, a if b is None else b)

    def predict(self, z):
        """Means and variances. Hallucinated rows do not change the mean, so the mean is computed without targets for
        these rows."""
        n = len(self.y)
        mean = self.covariance(z, self.x[:n]) @ np.linalg.solve(self.a[:n, :n], self.y)
        k = self.covariance(z, self.x)
        prior = np.array([self.covariance(row[None])[0, 0] for row in z])
        return mean, prior - (k * np.linalg.solve(self.a, k.T).T).sum(axis=1)

    def weights(self, z):
        """Return the norm of w at each row of z, where the posterior mean is w'y.

        An error δA of the matrix changes the mean by w'δA A⁻¹y. With a linear kernel, w is large far from the rows.
        """
        n = len(self.y)
        return np.linalg.norm(np.linalg.solve(self.a[:n, :n], self.covariance(z, self.x[:n]).T), axis=0)

    def tolerance(self):
        """Return a bound on the effect of rounding. The bound is the condition number times a few units in the last
        place.

        If the signal variance is given, the noise variance is at least a thousandth of the signal variance, and the
        effect is at most 1e-8 in the model's units. If the signal variance is fitted, the effect may be larger.
        """
        return 1e-14 * (np.linalg.cond(self.a) if len(self.a) else 1.0) + 1e-12


def ended_in_order(log):
    """Return the numbers of the observed and failed trials in the order in which they ended, read from the log."""
    ended, n_trials = [], 0
    for event in log.events(0):
        kind, facts = happened(event)
        number = facts.get("trial", n_trials)
        n_trials += kind in ("Suggested", "Added")
        if kind == "Abandoned" and number in ended:
            ended.remove(number)
        is_value = kind == "Added" and facts["results"]
        if (is_value or kind in ("New", "Amended", "Failed")) and number not in ended:
            ended.append(number)
    return ended


def happened(event):
    """Return the kind of an event and its fields. The kind of a report is what happened to its first result."""
    [(kind, facts)] = json.loads(event)["what"].items()
    if kind == "Resulted":
        [_, kind] = facts["results"][0]
    return (kind if isinstance(kind, str) else next(iter(kind))), facts


@dataclass
class Success:
    """The terms of the model of success at some rows."""

    log_term: np.ndarray  # log(1 - s + s P)
    shortfall: np.ndarray  # the amount by which the mean label is below 0
    weight: float  # the weight of the shortfall, in units of the acquisition
    avoids: bool
    excludes: bool


def evidence_of_rates(failed, change):
    """Return the evidence of a rate of failures that changes before each trial with probability `change`, and the
    probability that the next trial fails. The recursion is over the last moment of a change."""

    def one_rate(part):
        k, n = sum(part), len(part)
        return np.exp(betaln(0.5 + k, 0.5 + n - k) - betaln(0.5, 0.5))

    def evidence(labels):
        before = [1.0]
        for end in range(1, len(labels) + 1):
            weights = ((change if start else 1.0) * (1 - change) ** (end - start - 1) for start in range(end))
            parts = (before[start] * one_rate(labels[start:end]) for start in range(end))
            before.append(sum(weight * part for weight, part in zip(weights, parts, strict=True)))
        return before[-1]

    failed = [bool(each) for each in failed]
    now = evidence(failed)
    return now, evidence([*failed, True]) / now


@dataclass(frozen=True)
class Region:
    """A model of a region in which trials fail."""

    label: float  # of a failed trial; successes have the label 1
    prior_mean: float
    noise: float
    variance: float  # P = Phi(mean / sqrt(variance of the latent label + this variance))
    levels: tuple[float, float]  # bounds between the levels of P

    def moments(self, x, failed, z, lengthscale):
        """Return the mean and the variance of the latent label at the rows z."""
        k = kernel("matern32", lengthscale, 1.0, z, x)
        weights = np.linalg.solve(kernel("matern32", lengthscale, 1.0, x, x) + self.noise * np.eye(len(x)), k.T).T
        labels = np.where(failed, self.label, 1.0) - self.prior_mean
        return self.prior_mean + weights @ labels, 1.0 - (weights * k).sum(axis=1)

    def predictions(self, x, failed, lengthscale):
        """For each row, yield the predicted mean of its label and P, given the earlier rows."""
        for i in range(len(x)):
            mean, variance = self.moments(x[:i], failed[:i], x[i : i + 1], lengthscale)
            yield mean[0], ndtr(mean / np.sqrt(variance + self.variance))[0]

    def likelihoods(self, x, failed, lengthscale):
        """Yield the probability of each result given the earlier results, and the level of P."""
        seen = []
        for fails, (_, p) in zip(failed, self.predictions(x, failed, lengthscale), strict=True):
            p = np.clip(p, 0.1, 0.9)
            level = int(np.searchsorted(self.levels, p))
            similar = [other for at, other in seen if at == level]
            yield (similar.count(fails) + (1 - p if fails else p)) / (len(similar) + 1), level
            seen.append((level, fails))


CERTAIN = Region(label=-4.25, prior_mean=1.0, noise=1e-4, variance=0.01, levels=(0.1, 0.5))
WITH_ACCIDENTS = Region(label=-1.0, prior_mean=0.0, noise=0.3, variance=0.3, levels=(0.3, 0.5))


def success_rate(results, prior):
    return (results.count(False) + prior) / (len(results) + 1)


def explanation_with_accidents(x, failed, lengthscale):
    """Return the evidence of a region with accidents, and the rates of success where success was predicted to be less
    and to be more frequent than before."""
    evidence, results = 1.0, ([], [])
    found = WITH_ACCIDENTS.predictions(x, failed, lengthscale)
    ones = WITH_ACCIDENTS.predictions(x, np.zeros(len(x), bool), lengthscale)  # the labels of successes are 1
    for i, ((label, _), (one, _)) in enumerate(zip(found, ones, strict=True)):
        before = [bool(each) for each in failed[:i]]
        q = success_rate(before, 0.5)
        mu = (label - (2 * q - 1) * one) / np.sqrt(1 - (2 * q - 1) ** 2)
        p = np.clip(ndtr(ndtri(q) + mu), 0.03, 0.97) if len(set(before)) == 2 else q
        evidence *= 1 - p if failed[i] else p
        results[int(mu >= 0)].append(bool(failed[i]))
    q = success_rate([bool(each) for each in failed], 0.5)
    return evidence, [success_rate(each, q) for each in results]


def success(x, failed, z, lengthscale=0.5, number=None):
    """Return the terms of the model of success at the rows z.

    The rows x are in the order in which the trials ended. `number` is the number of the next trial. Without it, all
    trials have ended.
    """
    lengthscale = np.broadcast_to(lengthscale, x.shape[1])
    failed = np.asarray(failed, bool)
    pairs = list(CERTAIN.likelihoods(x, failed, lengthscale))
    at = {level: [bool(f) for f, (_, other) in zip(failed, pairs, strict=True) if other == level] for level in range(3)}
    rates = [success_rate(at[0] + at[1], 0.1), success_rate(at[2], 0.9)]
    certain = np.prod([each for each, _ in pairs])
    with_accidents, others = explanation_with_accidents(x, failed, lengthscale)
    of_accidents = list(WITH_ACCIDENTS.likelihoods(x, failed, lengthscale))
    later = [np.log([each for each, _ in found][len(x) // 2 :]).sum() for found in (pairs, of_accidents)]
    has_accidents = later[1] > later[0] + 3.0
    model, levels = (WITH_ACCIDENTS, of_accidents) if has_accidents else (CERTAIN, pairs)
    lowest = [bool(f) for f, (_, level) in zip(failed, levels, strict=True) if level == 0]
    constant, next_constant = evidence_of_rates(failed, 0.0)
    changing, next_fails = evidence_of_rates(failed, 0.05)
    region = (certain + with_accidents) / 2
    region /= region + constant + changing
    few_succeed = success_rate(lowest, 0.1) <= 0.3
    excludes = region > 0.5 and few_succeed and not all(failed)
    # The next trial succeeds with a probability that is proportional to the sum of these terms over the explanations.
    regions = [(certain / 2, rates), (with_accidents / 2, others)]
    depends = sum(weight * max(high - low, 0) for weight, (low, high) in regions)
    largest = sum(weight * high for weight, (_, high) in regions)
    share = depends / (constant * (1 - next_constant) + changing * (1 - next_fails) + largest)
    has_risen = changing > constant and 1 - next_fails < 0.7 * (1 - next_constant)
    # A part of the suggestions avoids points although none is excluded.
    turn = (len(x) if number is None else number) * (5**0.5 - 1) / 2 % 1
    part = max(share, region if sum(~failed) <= 3 else 0, 0.5 if has_risen else 0)
    avoids = excludes or (next_fails > 0.5 and turn < part)
    mean, variance = model.moments(x, failed, z, lengthscale)
    log_p = log_ndtr(mean / np.sqrt(variance + model.variance))
    return Success(
        log_term=log_p if avoids else np.log1p(share * np.expm1(log_p)),
        shortfall=np.minimum(mean + 1e-9, 0),
        weight=1e3 if avoids else 0.0,
        avoids=avoids,
        excludes=excludes,
    )
