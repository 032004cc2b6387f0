"""Optimizers that get the outcomes of a trial one after another.

``suggest()`` returns the params of the next trial; the trials are numbered in this order. ``tell(number, values)``
passes the outcomes of a trial that have come, and is called again when others come. Each optimizer keeps track of the
missing outcomes. An optimizer of whole trials is told a trial when all its outcomes are there.
"""

import json
import warnings

import numpy as np
import peers
from grid_peers import BoTorchGrid, fit
from outcome_problems import Box

import belated as bl


class WholeTrials:
    """Collects the outcomes of each trial, and calls ``finish(number, values)`` when the last one has come. The class
    comes before an optimizer among the bases."""

    def __init__(self, problem, seed, settings):
        super().__init__(problem, seed, settings)
        self.outcomes, self.parts = problem.outcomes, {}

    def tell(self, number, values):
        part = self.parts.setdefault(number, {})
        part |= values
        if len(part) == len(self.outcomes):
            self.finish(number, {name: part[name] for name in self.outcomes})

    def finish(self, number, values):
        super().tell(number, values)


class Belated:
    """`BayesOpt` with default settings."""

    packages = ()

    def __init__(self, problem, seed, settings):
        if not hasattr(bl, "AtMost"):
            raise peers.Unavailable("this version of belated has no outcomes")
        outcomes = {problem.objective: problem.direction}
        outcomes |= {name: self._declared(bound) for name, bound in problem.bounds.items()}
        domain = {"space": problem.space} if problem.candidates is None else {"candidates": problem.candidates}
        self.optimizer = bl.BayesOpt(**domain, outcomes=outcomes, seed=seed)
        self.optimizer.set_params(**(json.loads(settings) if settings else {}))
        self.trials = []

    @staticmethod
    def _declared(bound):
        if np.isinf(bound.low):
            return bl.AtMost(bound.high)
        return bl.AtLeast(bound.low) if np.isinf(bound.high) else bl.Between(bound.low, bound.high)

    def suggest(self):
        self.trials.append(self.optimizer.suggest())
        return self.trials[-1].params

    def tell(self, number, values):
        self.optimizer.observe(self.trials[number], values)


class BelatedWhole(WholeTrials, Belated):
    """`BayesOpt`, which gets no outcome of a trial before all of them are there."""


class Random:
    """Uniformly random points."""

    packages = ()

    def __init__(self, problem, seed, settings):
        self.search = peers.Random(problem.space, seed, settings)

    def suggest(self):
        return self.search.suggest()[1]

    def tell(self, number, values):
        pass


class _Modelled:
    """qLogNEI with constraints, X_pending and a ModelListGP. The class comes before an optimizer among the bases.

    The model of an outcome is fitted to the trials of which this outcome has come. The trials of which all outcomes
    have come are the baseline, and the other trials are pending. The margin of a bound is divided by the standard
    deviation of the observed values, because the default temperature ``eta`` of the smoothed constraints, 1e-3, does
    not depend on the units; Ax standardises outcomes. A fit starts from the last hyperparameters, as in BoTorch's
    tutorial. Points are Sobol points until two trials are complete.
    """

    def __init__(self, problem, seed, settings):
        super().__init__(problem.space, seed, settings)
        self.problem, self.told = problem, []
        self.fits = {}  # the hyperparameters of each outcome

    def suggest(self):
        self.told.append({})
        return super().suggest()[1]

    def tell(self, number, values):
        told = self.told[number]
        told |= values
        if len(told) == len(self.problem.outcomes):
            self.values[number] = self._merit(told)

    def _merit(self, values):
        """Return a number that is larger for a better trial. Every feasible trial is better than every other trial."""
        problem = self.problem
        if problem.feasible(values):
            return 1.0 - float(problem.regret(values))
        excess = [
            max(*bound.excess(values[name]), 0.0) / problem.spread[name] for name, bound in problem.bounds.items()
        ]
        return -1.0 - sum(excess)

    def _observed(self, name):
        """Return the numbers of the trials of which an outcome has come, and its values."""
        numbers = [number for number, told in enumerate(self.told) if name in told]
        return numbers, self.torch.tensor([self.told[number][name] for number in numbers], dtype=self.torch.double)

    def _fitted(self, points):
        """Return the models of the outcomes, and the arguments of an acquisition for the baseline and the pending
        points; ``points`` are all points tried so far."""
        from botorch.models import ModelListGP

        models = []
        for name in self.problem.outcomes:
            numbers, values = self._observed(name)
            models.append(self._model(points[numbers], values.unsqueeze(-1)))
            self.fits[name] = fit(models[-1], self.fits.get(name, {}))
        # The trial that is being suggested has an entry in `told`, but no point yet.
        out = [number for number in range(len(points)) if number not in self.values]
        given = {"X_baseline": points[sorted(self.values)], "X_pending": points[out] if out else None}
        return ModelListGP(*models), given | {"prune_baseline": True}

    def _acquisition(self, points):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import GenericMCObjective

        problem, constraints = self.problem, []
        for j, name in enumerate(problem.outcomes):
            if name in problem.bounds:
                unit = float(self._observed(name)[1].std()) or 1.0
                constraints += self._constraints(j, problem.bounds[name], unit)
        model, given = self._fitted(points)
        return qLogNoisyExpectedImprovement(
            model,
            objective=GenericMCObjective(lambda samples, X=None: problem.sign * samples[..., 0]),
            constraints=constraints,
            **given,
        )

    @staticmethod
    def _constraints(j, bound, unit):
        found = [lambda samples: (bound.low - samples[..., j]) / unit] if np.isfinite(bound.low) else []
        return found + ([lambda samples: (samples[..., j] - bound.high) / unit] if np.isfinite(bound.high) else [])


class BoTorchBox(_Modelled, peers.BoTorch):
    """The acquisition is maximised over the box, from the starts of `peers.BoTorch`."""

    def _propose(self):
        from botorch.optim import optimize_acqf

        d, double = self.space.width, self.torch.double
        box = self.torch.stack([self.torch.zeros(d, dtype=double), self.torch.ones(d, dtype=double)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            acquisition = self._acquisition(self.torch.stack(self.points))
            points, _ = optimize_acqf(acquisition, box, q=1, **self.settings)
        return points[0]

    def _model(self, points, values):
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize

        # The points are in the unit cube.
        return SingleTaskGP(points, values, outcome_transform=Standardize(1))


class BoTorchTable(_Modelled, BoTorchGrid):
    """The acquisition is maximised over the points of `BoTorchGrid`: random untried points, and the neighbours of the
    best complete trials."""

    def _propose(self):
        choices = self._choices()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            acquisition = self._acquisition(self.columns[self.rows])
            with self.torch.no_grad():
                parts = self.columns[choices].unsqueeze(-2).split(500)
                scores = self.torch.cat([acquisition(part) for part in parts])
        return int(choices[int(scores.argmax())])


def botorch(problem, seed, settings):
    return (BoTorchBox if isinstance(problem, Box) else BoTorchTable)(problem, seed, settings)


botorch.packages = peers.BoTorch.packages


class _Constrained:
    """A sampler of Optuna with ``constraints_func``, which gives a value for each finite limit. The study keeps track
    of the running trials. The class comes before a sampler among the bases."""

    def __init__(self, problem, seed, settings):
        super().__init__(problem.space, seed, settings)
        self.problem, self.trials = problem, []

    @classmethod
    def sampler(cls, optuna, seed, **settings):
        quiet = {"warn_independent_sampling": False}  # GPSampler chooses conditional parameters at random
        return super().sampler(optuna, seed, constraints_func=_constraints, **(quiet | settings))

    def suggest(self):
        trial, params = super().suggest()
        self.trials.append(trial)
        return params

    def tell(self, number, values):
        problem, trial = self.problem, self.trials[number]
        excess = [each for name, bound in problem.bounds.items() for each in bound.excess(values[name])]
        trial.set_user_attr("constraints", excess)
        self.observe(trial, problem.sign * values[problem.objective])


def _constraints(trial):
    return trial.user_attrs["constraints"]


class OptunaGP(WholeTrials, _Constrained, peers.OptunaGP):
    pass


class OptunaTPE(WholeTrials, _Constrained, peers.OptunaTPE):
    pass


PEERS = {
    "belated": Belated,
    "belated-whole": BelatedWhole,
    "random": Random,
    "botorch": botorch,
    "optuna-gp": OptunaGP,
    "optuna-tpe": OptunaTPE,
}
