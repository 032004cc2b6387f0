"""Optimizers behind one interface: the method `suggest` returns a handle and parameters; `observe` takes the handle and
a value. In settings with a horizon, `observe` and `fail` also get the simulated duration of the evaluation, which only
the optimizers of this package use.

All optimizers maximise, and each optimizer keeps track of its pending points.
"""

import json
import re
import warnings
from importlib import metadata

from grid_peers import BoTorchGrid

import belated as bl


class Unavailable(Exception):
    """The error for an optimizer that is not installed, does not exist, or cannot search the space."""


class Belated:
    """An optimizer of this package: ``belated:{"acquisition": "ucb", "surrogate__kernel": "matern52"}``."""

    packages = ()

    @staticmethod
    def make(space, seed, settings):
        return bl.BayesOpt(space, seed=seed).set_params(**settings)

    def __init__(self, space, seed, settings):
        settings = json.loads(settings) if settings else {}
        self.optimizer = self.make(space, seed, settings)

    @property
    def clock(self):
        return self.optimizer.clock

    def set_params(self, **settings):
        self.optimizer.set_params(**settings)

    def suggest(self):
        trial = self.optimizer.suggest()
        return trial, trial.params

    def observe(self, trial, value, duration=None):
        self.optimizer.observe(trial, value, duration=duration)

    def fail(self, trial, duration=None):
        self.optimizer.fail(trial, duration=duration)

    def add(self, points, values):
        """Add points that another program has started. Points without a value are pending; for each pending point, the
        method returns a handle and parameters, as `suggest` does."""
        trials = self.optimizer.add(points, values)
        return [(trial, trial.params) for trial in trials if trial.value is None]


class Random(Belated):
    """Uniformly random points."""

    @staticmethod
    def make(space, seed, settings):
        return bl.RandomSearch(space, seed=seed, **settings)


class Algorithm(Belated):
    """An algorithm, given by the name of the algorithm in the literature: ``belated-algorithm:GP-BUCB``, or
    ``belated-algorithm:`` with settings that contain a "name"."""

    @staticmethod
    def make(space, seed, settings):
        return bl.algorithm(space=space, seed=seed, **settings)

    def __init__(self, space, seed, settings):
        super().__init__(space, seed, settings if settings.startswith("{") else json.dumps({"name": settings}))


def _require_box(space, name):
    for parameter, dimension in space.items():
        if not isinstance(dimension, bl.Real):
            raise Unavailable(f"{parameter}={dimension} is not a Real: this adapter of {name} searches boxes only")


class BoTorch:
    """BoTorch's recommended method for noisy results and pending points: qLogNEI with a SingleTaskGP and X_pending.

    The model is fitted again for each suggestion. The first max(5, 2d) points are Sobol points. Further Sobol points
    are suggested until two results have arrived, because standardising needs two results.

    Settings: ``initial``, the number of Sobol points; ``analytic``, true to replace qLogNEI by LogEI over the best
    value, for sequential evaluations without noise; and the arguments of `optimize_acqf`.
    """

    packages = ("botorch", "gpytorch", "torch")

    def __init__(self, space, seed, settings):
        import torch

        _require_box(space, "BoTorch")
        torch.manual_seed(seed)
        self.torch = torch
        self.space = bl.Space(space)
        self.sobol = torch.quasirandom.SobolEngine(self.space.width, scramble=True, seed=seed)
        self.settings = {"num_restarts": 10, "raw_samples": 512} | (json.loads(settings) if settings else {})
        self.n_initial = self.settings.pop("initial", max(5, 2 * self.space.width))
        self.analytic = self.settings.pop("analytic", False)
        self.points, self.values = [], {}

    def suggest(self):
        if self.analytic and len(self.values) < len(self.points):
            raise Unavailable("analytic LogEI knows no points that are out: pass one evaluation at a time")
        initial = len(self.points) < self.n_initial or len(self.values) < 2
        point = self.sobol.draw(1, dtype=self.torch.double)[0] if initial else self._propose()
        self.points.append(point)
        return len(self.points) - 1, self.space.decode(point.numpy())

    def observe(self, number, value, duration=None):
        self.values[number] = value

    def add(self, points, values):
        first = len(self.points)
        self.points += [self.torch.tensor(self.space.encode(point), dtype=self.torch.double) for point in points]
        self.values |= {first + i: value for i, value in enumerate(values) if value is not None}
        return [(first + i, points[i]) for i, value in enumerate(values) if value is None]

    def _propose(self):
        from botorch.acquisition import LogExpectedImprovement, qLogNoisyExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        d, double = self.space.width, self.torch.double
        box = self.torch.stack([self.torch.zeros(d, dtype=double), self.torch.ones(d, dtype=double)])
        observed = self.torch.stack([self.points[number] for number in self.values])
        values = self.torch.tensor(list(self.values.values()), dtype=double).unsqueeze(-1)
        out = [point for number, point in enumerate(self.points) if number not in self.values]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SingleTaskGP(
                observed, values, input_transform=Normalize(d, bounds=box), outcome_transform=Standardize(1)
            )
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            if self.analytic:
                acquisition = LogExpectedImprovement(model, values.max())
            else:
                acquisition = qLogNoisyExpectedImprovement(
                    model, observed, prune_baseline=True, X_pending=self.torch.stack(out) if out else None
                )
            points, _ = optimize_acqf(acquisition, box, q=1, **self.settings)
        return points[0]


class Optuna:
    """A sampler of Optuna, used with ask and tell on a study in memory. The study keeps track of the pending trials."""

    packages = ("optuna",)
    directions = ("maximize",)

    def __init__(self, space, seed, settings):
        import optuna

        optuna.logging.disable_default_handler()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = self.sampler(optuna, seed, **(json.loads(settings) if settings else {}))
        self.study = optuna.create_study(directions=self.directions, sampler=sampler)
        self.space = bl.Space(space)
        self.distributions = {name: self._distribution(optuna, each) for name, each in self.space.items()}
        self.conditional = any(dimension.when is not None for dimension in self.space.values())

    @staticmethod
    def _distribution(optuna, dimension):
        if isinstance(dimension, bl.Categorical):
            return optuna.distributions.CategoricalDistribution(dimension.choices)
        if isinstance(dimension, bl.Ordinal):
            return optuna.distributions.IntDistribution(0, dimension.n_levels - 1)
        integer = isinstance(dimension, bl.Integer)
        kind = optuna.distributions.IntDistribution if integer else optuna.distributions.FloatDistribution
        return kind(dimension.low, dimension.high, log=dimension.log)

    def suggest(self):
        trial = self.study.ask(None if self.conditional else self.distributions)
        params = {}
        for name, distribution in self.distributions.items():  # parents come before their children
            dimension = self.space[name]
            conditions = (dimension.when or {}).items()
            if all(parent in params and params[parent] in values for parent, values in conditions):
                value = self._value(trial, name, distribution)
                params[name] = dimension.member(value) if isinstance(dimension, bl.Ordinal) else value
        return trial, params

    @staticmethod
    def _value(trial, name, distribution):
        """Return the value of a parameter; some samplers draw the value only at this call."""
        if hasattr(distribution, "choices"):
            return trial.suggest_categorical(name, distribution.choices)
        kind = trial.suggest_int if isinstance(distribution.low, int) else trial.suggest_float
        return kind(name, distribution.low, distribution.high, log=distribution.log)

    def observe(self, trial, value, duration=None):
        self.study.tell(trial, value)

    def fail(self, trial, duration=None):
        import optuna

        self.study.tell(trial, state=optuna.trial.TrialState.FAIL)

    def add(self, points, values):
        import optuna

        for point, value in zip(points, values, strict=True):
            given = {
                name: self.space[name].level(each) if isinstance(self.space[name], bl.Ordinal) else each
                for name, each in point.items()
            }
            if value is None:
                self.study.enqueue_trial(given)
            else:
                distributions = {name: self.distributions[name] for name in given}
                self.study.add_trial(optuna.create_trial(params=given, distributions=distributions, value=value))
        return [self.suggest() for value in values if value is None]


class OptunaGP(Optuna):
    """Gaussian process, log expected improvement."""

    packages = ("optuna", "torch", "scipy")

    @staticmethod
    def sampler(optuna, seed, **settings):
        return optuna.samplers.GPSampler(seed=seed, **settings)


class OptunaTPE(Optuna):
    """Tree-structured Parzen estimators; pending trials count as bad trials."""

    @staticmethod
    def sampler(optuna, seed, **settings):
        return optuna.samplers.TPESampler(seed=seed, **{"constant_liar": True, **settings})


class CMAES:
    """CMA-ES (covariance matrix adaptation) with pycma's defaults. The search starts from the middle of the box.

    While all points of a generation are pending, further points are drawn from the generation's distribution. A
    generation ends when the number of results of the generation equals pycma's population size. Later results are not
    used.

    Settings: ``sigma``, the first standard deviation in units of the box (0.25), and options of pycma.
    """

    packages = ("cma",)

    def __init__(self, space, seed, settings):
        import cma

        _require_box(space, "CMA-ES")
        self.space = bl.Space(space)
        options = {"sigma": 0.25} | (json.loads(settings) if settings else {})
        sigma = options.pop("sigma")
        # pycma replaces seed 0 by the current time.
        options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9} | options
        self.strategy = cma.CMAEvolutionStrategy([0.5] * self.space.width, sigma, options)
        self.points, self.waiting = [], []
        self.first, self.values = 0, {}  # number of the generation

    def suggest(self):
        if not self.waiting:
            self.waiting = self.strategy.ask(None if self.first == len(self.points) else 1)
        self.points.append(self.waiting.pop(0))
        return len(self.points) - 1, self.space.decode(self.points[-1])

    def observe(self, number, value, duration=None):
        if number < self.first:
            return
        self.values[number] = -value  # pycma minimises
        if len(self.values) == self.strategy.popsize:
            self.strategy.tell([self.points[each] for each in self.values], list(self.values.values()))
            self.first, self.values = len(self.points), {}


OPTIMIZERS = {
    "belated": Belated,
    "belated-algorithm": Algorithm,
    "random": Random,
    "botorch": BoTorch,
    "botorch-grid": BoTorchGrid,
    "cma": CMAES,
    "optuna-gp": OptunaGP,
    "optuna-tpe": OptunaTPE,
}


def parse(text, kinds=OPTIMIZERS):
    """Parse ``kind``, ``kind:settings`` or ``label=kind:settings``; return (label, class, settings).

    Examples
    --------
    >>> parse('wide=belated:{"acquisition": "ucb", "acquisition__beta": 3}')
    ('wide', <class '...Belated'>, '{"acquisition": "ucb", "acquisition__beta": 3}')
    """
    labelled = re.fullmatch(r"([\w.+-]+)=(.*)", text)
    label, spec = labelled.groups() if labelled else (text, text)
    kind, _, settings = spec.partition(":")
    if kind not in kinds:
        raise Unavailable(f"{kind!r} is not an optimizer: pass one of {list(kinds)}")
    return label, kinds[kind], settings


def label(text):
    """Return the label in ``label=kind:settings``; without a label, return the text."""
    found = re.match(r"([\w.+-]+)=", text)
    return found[1] if found else text


def make(text, space, seed, kinds=OPTIMIZERS):
    """Construct the optimizer that the text describes."""
    _, kind, settings = parse(text, kinds)
    try:
        return kind(space, seed, settings)
    except ImportError as error:
        raise Unavailable(f"{text} needs {error.name}: pip install 'belated[compare]'") from error


def versions(text, kinds=OPTIMIZERS):
    """Return the versions of the packages that an optimizer uses."""
    packages = ("numpy", *parse(text, kinds)[1].packages)
    return {"belated": bl.__version__} | {package: metadata.version(package) for package in packages}
