"""Optimizers of several objectives that get the outcomes of a trial one after another.

The interface is the same as in outcome_peers.py: ``suggest()`` returns the params of the next trial, and ``tell(number,
values)`` passes the outcomes of a trial that have come. After a run, ``recommend(n)`` returns the params of up to n
points.
"""

import json

import numpy as np
import outcome_peers
import peers
from front_problems import most_volume, nondominated
from outcome_peers import WholeTrials
from outcome_problems import Box

import belated as bl

N_RECOMMENDED = 10


class Belated(outcome_peers.Belated):
    """`BayesOpt` with default settings. The bounds of the objectives are the reference of the problem."""

    def __init__(self, problem, seed, settings):
        if not hasattr(bl.BayesOpt, "pareto_"):
            raise peers.Unavailable("BayesOpt of this version of belated has a single objective")
        goals = {name: self._goal(problem.directions[name], problem.reference[name]) for name in problem.outcomes}
        domain = {"space": problem.space} if problem.candidates is None else {"candidates": problem.candidates}
        self.optimizer = bl.BayesOpt(**domain, outcomes=goals, seed=seed)
        self.optimizer.set_params(**(json.loads(settings) if settings else {}))
        self.trials = []

    @staticmethod
    def _goal(direction, reference):
        return bl.Minimize(at_most=reference) if direction == "minimize" else bl.Maximize(at_least=reference)

    def recommend(self, n):
        return self.optimizer.recommend(n=n)


class BelatedFree(Belated):
    """`BayesOpt` that is not told the reference."""

    @staticmethod
    def _goal(direction, reference):
        return direction


class BelatedWhole(WholeTrials, Belated):
    """`BayesOpt`, which gets no outcome of a trial before all of them are there."""


class _Chosen:
    """Recommends complete trials by their observed values: one after another, each with the most additional
    hypervolume. The class comes first among the bases."""

    def __init__(self, problem, seed, settings):
        super().__init__(problem, seed, settings)
        self.problem, self.suggested, self.parts = problem, [], {}

    def suggest(self):
        self.suggested.append(super().suggest())
        return self.suggested[-1]

    def tell(self, number, values):
        super().tell(number, values)
        self.parts[number] = self.parts.get(number, {}) | values

    def recommend(self, n):
        problem = self.problem
        numbers = [number for number, part in self.parts.items() if len(part) == len(problem.outcomes)]
        values = {name: [self.parts[number][name] for number in numbers] for name in problem.outcomes}
        chosen = most_volume(problem.losses(values), problem.reference_losses, n)
        return [self.suggested[numbers[i]] for i in chosen]


class Random(_Chosen, outcome_peers.Random):
    """Uniformly random points."""


class _Several:
    """A sampler of Optuna for several objectives. The study keeps track of the running trials. The class comes before a
    sampler among the bases."""

    def __init__(self, problem, seed, settings):
        self.directions = [problem.directions[name] for name in problem.outcomes]
        super().__init__(problem.space, seed, settings)
        self.trials = []

    def suggest(self):
        trial, params = super().suggest()
        self.trials.append(trial)
        return params

    def tell(self, number, values):
        self.observe(self.trials[number], list(values.values()))


class OptunaTPE(_Chosen, WholeTrials, _Several, peers.OptunaTPE):
    """Tree-structured Parzen estimators; the trials of the first fronts are the good trials (MOTPE)."""


class OptunaGP(_Chosen, WholeTrials, _Several, peers.OptunaGP):
    """Gaussian processes, log expected hypervolume improvement."""


class OptunaNSGA2(_Chosen, WholeTrials, _Several, peers.Optuna):
    """NSGA-II. Optuna's default is a population of 50, which is half of a run; here the default is 20."""

    @staticmethod
    def sampler(optuna, seed, **settings):
        return optuna.samplers.NSGAIISampler(seed=seed, **{"population_size": 20, **settings})


class _Hypervolume:
    """qLogNEHVI with X_pending and the models of `outcome_peers`. The class comes before an optimizer of outcome_peers
    among the bases."""

    def _merit(self, values):
        return self.problem.losses({name: [value] for name, value in values.items()})[0]

    def _best(self):
        """Return the numbers of trials on the observed front, those with the most hypervolume first."""
        numbers = list(self.values)
        losses = np.array([self.values[number] for number in numbers])
        chosen = most_volume(losses, self.problem.reference_losses, self.settings["best"])
        rest = [i for i in np.flatnonzero(nondominated(losses)).tolist() if i not in chosen]
        return [numbers[i] for i in [*chosen, *rest][: self.settings["best"]]]

    def _acquisition(self, points):
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective

        signs = self.torch.tensor(self.problem.signs, dtype=self.torch.double)
        model, given = self._fitted(points)
        return qLogNoisyExpectedHypervolumeImprovement(
            model,
            ref_point=(-self.problem.reference_losses).tolist(),
            objective=GenericMCMultiOutputObjective(lambda samples, X=None: -signs * samples),
            **given,
        )


class BoTorchBox(_Chosen, _Hypervolume, outcome_peers.BoTorchBox):
    """The acquisition is maximised over the box."""


class BoTorchTable(_Chosen, _Hypervolume, outcome_peers.BoTorchTable):
    """The acquisition is maximised over random untried points, and over the neighbours of the observed front."""


def botorch(problem, seed, settings):
    return (BoTorchBox if isinstance(problem, Box) else BoTorchTable)(problem, seed, settings)


botorch.packages = peers.BoTorch.packages

PEERS = {
    "belated": Belated,
    "belated-free": BelatedFree,
    "belated-whole": BelatedWhole,
    "random": Random,
    "optuna-tpe": OptunaTPE,
    "optuna-nsga2": OptunaNSGA2,
    "optuna-gp": OptunaGP,
    "botorch": botorch,
}
