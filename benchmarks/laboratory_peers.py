"""Optimizers that choose rows of laboratory tables.

``ask(n)`` returns the indices of n rows, and ``tell(rows, values)`` passes the results of rows. Each optimizer keeps
track of its pending rows. All optimizers maximise.
"""

import json
import warnings

import numpy as np

import belated as bl


class Belated:
    """`BayesOpt` with default settings. If the setting "descriptors" is true, categories have their descriptors."""

    packages = ()

    def __init__(self, table, seed, settings):
        settings = json.loads(settings) if settings else {}
        self.table = table
        self.optimizer = self.make(table, seed, settings.pop("descriptors", False)).set_params(**settings)
        self.trials = {}

    @staticmethod
    def make(table, seed, descriptors):
        if table.space is None:
            return bl.BayesOpt(candidates=table.encoded, seed=seed)
        space = table.space
        if descriptors:
            space = {name: bl.Categorical(each.choices, descriptors=table.descriptors[name])
                     if name in table.descriptors else each for name, each in space.items()}  # fmt: skip
        return bl.BayesOpt(space, seed=seed)

    def ask(self, n):
        trials = self.optimizer.suggest(n=n)
        rows = [trial.index if self.table.space is None else self.table.find(trial.params) for trial in trials]
        for row, trial in zip(rows, trials, strict=True):
            self.trials.setdefault(row, []).append(trial)
        return rows

    def tell(self, rows, values):
        for row, value in zip(rows, values, strict=True):
            self.optimizer.observe(self.trials[row].pop(0), value)


class Random:
    """Random rows without repetition."""

    packages = ()

    def __init__(self, table, seed, settings):
        self.order = iter(np.random.default_rng(seed).permutation(len(table.rows)).tolist())

    def ask(self, n):
        return [next(self.order) for _ in range(n)]

    def tell(self, rows, values):
        pass


class BoTorch:
    """The acquisition qLogNEI with X_pending, maximised over all rows that were not tried. A batch is chosen greedily.

    The model is fitted again for each batch. Numbers are scaled to [0, 1]. If there are categories, the model is a
    MixedSingleTaskGP, otherwise a SingleTaskGP. Rows are random until two results have arrived.
    """

    packages = ("botorch", "gpytorch", "torch")

    def __init__(self, table, seed, settings):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.torch, self.rng = torch, np.random.default_rng(seed)
        self.categories = table.categories
        low, high = table.encoded.min(axis=0), table.encoded.max(axis=0)
        scaled = (table.encoded - low) / np.where(high > low, high - low, 1.0)
        scaled[:, self.categories] = table.encoded[:, self.categories]
        self.points = torch.tensor(scaled, dtype=torch.double)
        self.tried, self.observed, self.values = [], [], []

    def tell(self, rows, values):
        self.observed += rows
        self.values += values

    def ask(self, n):
        rest = np.setdiff1d(np.arange(len(self.points)), self.tried)
        initial = len(self.values) < 2
        rows = self.rng.choice(rest, n, replace=False).tolist() if initial else self._propose(n, rest)
        self.tried += rows
        return rows

    def _propose(self, n, rest):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement

        observed = self.points[self.observed]
        out = self.tried[len(self.observed) :]
        rows = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self._fit(observed, self.torch.tensor(self.values, dtype=self.torch.double).unsqueeze(-1))
            for _ in range(n):
                pending = self.points[out + rows] if out + rows else None
                acquisition = qLogNoisyExpectedImprovement(model, observed, prune_baseline=True, X_pending=pending)
                rest = np.setdiff1d(rest, rows)
                with self.torch.no_grad():
                    parts = self.points[rest].unsqueeze(-2).split(500)
                    scores = self.torch.cat([acquisition(part) for part in parts])
                rows.append(int(rest[int(scores.argmax())]))
        return rows

    def _fit(self, points, values):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        transform = Standardize(1)
        if self.categories:
            model = MixedSingleTaskGP(points, values, cat_dims=self.categories, outcome_transform=transform)
        else:
            model = SingleTaskGP(points, values, outcome_transform=transform)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model


class BayBE:
    """A campaign of BayBE with its default recommender. If the setting "descriptors" is true, categories are encoded by
    their descriptors, otherwise one-hot."""

    packages = ("baybe", "botorch", "torch")

    def __init__(self, table, seed, settings):
        import pandas as pd
        import torch
        from baybe import Campaign
        from baybe.objectives import SingleTargetObjective
        from baybe.searchspace import SearchSpace
        from baybe.targets import NumericalTarget
        from baybe.utils.random import set_random_seed

        torch.set_num_threads(1)
        set_random_seed(seed)
        self.table = table
        descriptors = bool(settings) and json.loads(settings)["descriptors"]
        parameters = [self._parameter(j, descriptors) for j in range(len(table.names))]
        rows = pd.DataFrame(table.rows, columns=table.names)
        if table.space is not None:
            space = SearchSpace.from_product(parameters)
        else:
            space = SearchSpace.from_dataframe(rows, parameters)
        self.campaign = Campaign(space, SingleTargetObjective(NumericalTarget("value")))
        self.frame, self.pending = rows, []

    def _parameter(self, j, descriptors):
        import pandas as pd
        from baybe.parameters import CategoricalParameter, CustomDiscreteParameter, NumericalDiscreteParameter

        name, levels = self.table.names[j], self.table.levels[j]
        if j not in self.table.categories:
            return NumericalDiscreteParameter(name, levels)
        if descriptors and name in self.table.descriptors:
            data = pd.DataFrame.from_dict(self.table.descriptors[name], orient="index").loc[levels]
            data = data.loc[:, data.nunique() > 1]
            if data.shape[1]:
                return CustomDiscreteParameter(name, data)
        return CategoricalParameter(name, levels, encoding="OHE")

    def ask(self, n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The recommender of the first batches, which is random, does not accept pending experiments.
            fitted = len(self.campaign.measurements) > 0
            pending = self.frame.loc[self.pending] if self.pending and fitted else None
            found = self.campaign.recommend(batch_size=n, pending_experiments=pending)
        rows = [self._row(record) for record in found.to_dict("records")]
        self.pending += rows
        return rows

    def _row(self, record):
        key = tuple(record[name] for name in self.table.names)
        return self.table.find(dict(zip(self.table.names, key, strict=True)))

    def tell(self, rows, values):
        measured = self.frame.loc[rows].assign(value=values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.campaign.add_measurements(measured)
        for row in rows:
            self.pending.remove(row)


class Optuna:
    """A sampler of Optuna on the space of a full table."""

    def __init__(self, table, seed, settings):
        import peers

        if table.space is None:
            raise peers.Unavailable("the samplers of Optuna do not search lists of candidates")
        self.table, self.handles = table, {}
        self.peer = self.peer_class()(table.space, seed, settings)

    def ask(self, n):
        rows = []
        for _ in range(n):
            handle, params = self.peer.suggest()
            rows.append(self.table.find(params))
            self.handles.setdefault(rows[-1], []).append(handle)
        return rows

    def tell(self, rows, values):
        for row, value in zip(rows, values, strict=True):
            self.peer.observe(self.handles[row].pop(0), value)


class OptunaGP(Optuna):
    packages = ("optuna", "torch", "scipy")

    @staticmethod
    def peer_class():
        import peers

        return peers.OptunaGP


class OptunaTPE(Optuna):
    packages = ("optuna",)

    @staticmethod
    def peer_class():
        import peers

        return peers.OptunaTPE


PEERS = {
    "belated": Belated,
    "random": Random,
    "botorch": BoTorch,
    "baybe": BayBE,
    "optuna-gp": OptunaGP,
    "optuna-tpe": OptunaTPE,
}
