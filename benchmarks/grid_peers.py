"""BoTorch on a grid of mixed parameters, some of which may be conditional."""

import json
import warnings

import numpy as np
from grids import Grid

from belated import Categorical


class BoTorchGrid:
    """The acquisition qLogNEI with X_pending is maximised over random untried points of the grid, and over the
    neighbours of the best observed points.

    The model is fitted again for each suggestion, starting from the last hyperparameters, as in Ax. Ordered parameters
    and categories of two choices are encoded as columns in [0, 1] with equally spaced levels. If there are categories
    of three or more choices, the model is a MixedSingleTaskGP with a categorical kernel for these categories. Otherwise
    the model is a SingleTaskGP. An inactive parameter is encoded as its middle level. As in Ax, a failed point is not
    suggested again, and the model does not use it. The first max(5, 2d) points of d parameters are Sobol points.
    Further Sobol points are suggested until two results have arrived.

    Settings: ``candidates``, the number of random points (2,000), and ``best``, the number of points whose neighbours
    are added (5).
    """

    packages = ("botorch", "gpytorch", "torch")

    def __init__(self, space, seed, settings):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch = torch
        self.rng = np.random.default_rng(seed)
        self.grid = Grid(space)
        self.settings = {"candidates": 2000, "best": 5} | (json.loads(settings) if settings else {})
        d = len(self.grid.names)
        self.n_initial = max(5, 2 * d)
        self.sobol = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed)
        several = [isinstance(each, Categorical) and each.n_levels > 2 for each in self.grid.dimensions]
        self.categories = np.flatnonzero(several)
        level = np.where(self.grid.active, self.grid.rows, (self.grid.sizes - 1) // 2)
        middle = np.where(self.grid.active, level / (self.grid.sizes - 1), 0.5)
        self.columns = torch.tensor(np.where(several, level, middle), dtype=torch.double)
        self.rows, self.values, self.failed = [], {}, set()
        self.fitted = {}  # hyperparameters

    def suggest(self):
        initial = len(self.rows) < self.n_initial or len(self.values) < 2
        self.rows.append(self._initial() if initial else self._propose())
        return len(self.rows) - 1, self.grid.params(self.rows[-1])

    def observe(self, number, value, duration=None):
        self.values[number] = value

    def fail(self, number, duration=None):
        self.failed.add(number)

    def _initial(self):
        point = self.sobol.draw(1, dtype=self.torch.double).numpy()
        levels = np.minimum((point * self.grid.sizes).astype(int), self.grid.sizes - 1)
        return int(self.grid.numbers_of(levels)[0])

    def _propose(self):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        observed = self.columns[[self.rows[number] for number in self.values]]
        out = [row for number, row in enumerate(self.rows) if number not in self.values and number not in self.failed]
        choices = self._choices()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._fit(observed, self.torch.tensor(list(self.values.values()), dtype=self.torch.double))
            acquisition = qLogNoisyExpectedImprovement(
                model, observed, prune_baseline=True, X_pending=self.columns[out] if out else None
            )
            with self.torch.no_grad():
                parts = self.columns[choices].unsqueeze(-2).split(500)
                scores = self.torch.cat([acquisition(part) for part in parts])
        return int(choices[int(scores.argmax())])

    def _choices(self):
        """Return the untried rows. If every row has been tried, return all rows."""
        untried = np.ones(len(self.grid.rows), dtype=bool)
        untried[self.rows] = False
        if not untried.any():
            return np.arange(len(untried))
        some = np.flatnonzero(untried)
        some = self.rng.choice(some, min(self.settings["candidates"], len(some)), replace=False)
        near = np.concatenate([self.grid.neighbours(self.rows[number]) for number in self._best()])
        return np.unique(np.concatenate([some, near[untried[near]]]))

    def _best(self):
        """Return the numbers of the best observed points."""
        return sorted(self.values, key=self.values.get, reverse=True)[: self.settings["best"]]

    def _fit(self, points, values):
        model = self._model(points, values.unsqueeze(-1))
        self.fitted = fit(model, self.fitted)
        return model

    def _model(self, points, values):
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.models.transforms import Standardize

        if len(self.categories):
            return MixedSingleTaskGP(
                points, values, cat_dims=self.categories.tolist(), outcome_transform=Standardize(1)
            )
        return SingleTaskGP(points, values, outcome_transform=Standardize(1))


def fit(model, start):
    """Fit a model of BoTorch, starting from the hyperparameters in a dict. Return the fitted hyperparameters."""
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.mlls import ExactMarginalLogLikelihood

    for name, parameter in model.named_parameters():
        parameter.data.copy_(start.get(name, parameter.data))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
