"""An objective, the declarations of its space for Optuna and for belated, and studies with a `BelatedSampler`."""

import json

import numpy as np
import pytest

import belated as bl
from belated._core import without_time

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from belated.integrations.optuna import BelatedSampler  # noqa: E402

DISTRIBUTIONS = {
    "decay": FloatDistribution(1e-4, 1.0, log=True),
    "kind": CategoricalDistribution(["a", "b", None]),
    "layers": IntDistribution(1, 9, step=2),
    "rate": FloatDistribution(-1.0, 2.0),
    "share": FloatDistribution(0.0, 0.5, step=0.1),
}
SPACE = {
    "decay": bl.Real(1e-4, 1.0, log=True),
    "kind": bl.Categorical(["a", "b", None]),
    "layers": bl.Integer(1, 9, step=2),
    "rate": bl.Real(-1.0, 2.0),
    "share": bl.Real(0.0, 0.5, step=0.1),
}


def f(params):
    kind = {"a": 0.0, "b": 1.0, None: 0.5}[params["kind"]]
    return (np.log10(params["decay"]) + 2) ** 2 + kind + params["layers"] / 9 + params["rate"] ** 2 + params["share"]


def sampler_of(**arguments):
    return BelatedSampler(**{"seed": 3, "search_space": DISTRIBUTIONS, "warn_independent_sampling": False} | arguments)


def study_of(storage=None, name="s", direction="minimize", **arguments):
    """Open the study with this name again, with a new sampler."""
    if isinstance(storage, str):
        storage = optuna.storages.RDBStorage(storage)
    return optuna.create_study(
        storage=storage,
        study_name=name,
        direction=direction,
        sampler=sampler_of(**arguments),
        load_if_exists=True,
    )


def log_of(study):
    """Return the events that a new sampler derives from a study, without the note of the last suggestion."""
    sampler = sampler_of()
    copy = optuna.create_study(direction=study.direction, sampler=sampler)
    copy.add_trials(study.trials)
    copy.ask(DISTRIBUTIONS)
    return sampler._log._core


def events(core):
    """Return the events of a log without their wall-clock times."""
    return [json.loads(without_time(event)) for event in core.events(0)]
