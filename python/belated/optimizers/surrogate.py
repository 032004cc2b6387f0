"""The fitted model, with hyperparameters in the units of the parameters and of f."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import GaussianProcess
from belated.optimizers.problem import Problem
from belated.optimizers.trial import html_table, rounded
from belated.space.candidates import Candidates, NamedCandidates
from belated.space.dimensions import Categorical, Integer, Ordinal, Real

Lengthscale: TypeAlias = float | dict[Any, float] | tuple[float, ...]


@dataclass(frozen=True)
class Surrogate:
    """The Gaussian process that an optimizer or study has fitted to its values.

    The property ``surrogate_`` returns it. A lengthscale is the distance over which f changes noticeably. A parameter
    with a small lengthscale is important. A parameter is unimportant if its lengthscale is much larger than its range.

    Attributes
    ----------
    kernel : str
        "matern52", "matern32", "matern12", "squared_exponential" or "linear".
    lengthscales : dict
        The lengthscale of each parameter and of each context variable by name, in the parameter's own units. With
        ``log=True`` the unit is a decade: 1.0 is a factor of ten. For an `Ordinal` the unit is the step from one value
        to the next. A `Categorical` has one number: a change from one choice to another is a step of 1 in the columns
        of both choices. However, if the choices of a `Categorical` have different lengthscales, the entry is a dict
        with one number for each choice (a tuple if some choices are not hashable). The columns of candidates have the
        names x0, x1, ….
    descriptor_lengthscales : dict
        The lengthscale of the descriptors of each `Categorical` by name, if the model uses descriptors. If this number
        is small, choices with different descriptors have different values. The root mean square distance between two
        choices is the same with and without descriptors, so both lengthscales of a `Categorical` can be compared.
    signal_std : float
        Standard deviation of f around its mean, in units of f. If bad values are compressed, this number describes f at
        good values.
    noise_std : float
        Standard deviation of the noise, in units of f, for values that were reported without a ``std``.
    mean : float
        Prior mean of f. Far from all data, the model predicts this value. If the choices of a context have different
        offsets and scales, the mean and the standard deviations belong to an average context.
    log_evidence : float
        log p(values | hyperparameters), a density in units of f. This number can be compared between models of the same
        values.
    n_observed : int
        Number of rows that the model was fitted to: the observed values, and also failed trials if they count as bad
        values.

    Examples
    --------
    >>> import belated as bl
    >>> optimizer = bl.BayesOpt({"x": (-2.0, 2.0), "y": (0.0, 1.0)}, seed=0)
    >>> for trial in optimizer.suggest(n=12):
    ...     trial.observe(trial.params["x"] ** 2)
    >>> model = optimizer.surrogate_
    >>> list(model.lengthscales), model.n_observed
    (['x', 'y'], 12)
    >>> model.lengthscales["y"] > model.lengthscales["x"]      # f does not depend on y, which spans 1
    True
    """

    kernel: str
    lengthscales: dict[str, Lengthscale]
    descriptor_lengthscales: dict[str, float]
    signal_std: float
    noise_std: float
    mean: float
    log_evidence: float
    n_observed: int

    def __repr__(self) -> str:
        shown = [field.name for field in fields(self) if getattr(self, field.name) != {}]
        facts = [f"{name}={rounded(getattr(self, name))}" for name in shown]
        return f"Surrogate({', '.join(facts)})"

    def _repr_html_(self) -> str:
        facts = [(field.name, rounded(getattr(self, field.name))) for field in fields(self)]
        lengthscales = [(f"lengthscale of {name}", rounded(value)) for name, value in self.lengthscales.items()]
        descriptors = self.descriptor_lengthscales.items()
        lengthscales += [(f"lengthscale of the descriptors of {name}", rounded(value)) for name, value in descriptors]
        return html_table(["Surrogate", ""], facts[:1] + lengthscales + facts[3:])


def surrogate_of(problem: Problem, model: GaussianProcess, mean: float, scale: float, log_slope: float) -> Surrogate:
    """Convert a model of targets (0 at the prior mean of f, in units of `scale`) to the problem's units.

    `log_slope` is the log density of the values minus the log density of the targets.
    """
    domain, contexts = problem.domain, problem.context_space
    lengthscale, start = model.lengthscale, domain.width
    lengthscales: dict[str, Lengthscale]
    if isinstance(domain, Candidates):
        spans = np.ptp(domain.x.astype(float), axis=0)
        # A column with a single value is not rescaled.
        scaled = lengthscale[:start] * np.where(spans > 0, spans, 1.0)
        lengthscales = {f"x{i}": each for i, each in enumerate(scaled.tolist())}
    elif isinstance(domain, NamedCandidates):
        lengthscales = _of_columns(domain, lengthscale[:start])
    else:
        lengthscales = _by_name(domain.items(), lengthscale[:start])
    if contexts is not None:
        lengthscales |= _by_name(contexts.items(), lengthscale[start:])
    named = [] if isinstance(domain, Candidates) else list(domain.items())
    named += [] if contexts is None else list(contexts.items())
    described = [name for name, each in named if isinstance(each, Categorical) and each.uses_descriptors]
    return Surrogate(
        kernel=model.kernel,
        lengthscales=lengthscales,
        # The list is empty if the model does not use descriptors.
        descriptor_lengthscales=dict(zip(described, model.descriptor_lengthscale.tolist(), strict=False)),
        signal_std=scale * math.sqrt(model.variance),
        noise_std=scale * math.sqrt(model.noise),
        mean=mean,
        # p(y) = p(z) Π dz/dy
        log_evidence=model.log_marginal_likelihood() + log_slope,
        n_observed=model.n_observed,
    )


def _by_name(dimensions: Any, lengthscale: NDArray[np.float64]) -> dict[str, Lengthscale]:
    """Return lengthscales by name, converted from encoded columns to the units of the dimensions."""
    found: dict[str, Lengthscale] = {}
    start = 0
    for name, dimension in dimensions:
        columns = lengthscale[start : start + dimension.width].tolist()
        start += dimension.width
        if columns:  # a constant has no columns
            is_choice = isinstance(dimension, Categorical)
            found[name] = _by_choice(dimension.choices, columns) if is_choice else columns[0] * _unit(dimension)
    return found


def _of_columns(candidates: NamedCandidates, lengthscale: NDArray[np.float64]) -> dict[str, Lengthscale]:
    """Return the lengthscales of named columns in their units."""
    found: dict[str, Lengthscale] = {}
    start = 0
    for name, dimension in candidates.items():
        width = len(dimension.choices) if isinstance(dimension, Categorical) else 1
        columns = lengthscale[start : start + width].tolist()
        if isinstance(dimension, Categorical):
            found[name] = _by_choice(dimension.choices, columns)
        else:
            found[name] = columns[0] * (_unit(dimension) or 1.0)  # a column with a single number is not rescaled
        start += width
    return found


def _by_choice(choices: Sequence[Any], columns: list[float]) -> Lengthscale:
    if len(set(columns)) == 1:
        return columns[0]
    try:
        by_choice = dict(zip(choices, columns, strict=True))
    except TypeError:  # a choice is not hashable
        by_choice = {}
    # 1 and True are different choices, but equal as keys.
    return by_choice if len(by_choice) == len(choices) else tuple(columns)


def _unit(dimension: Real | Integer | Ordinal) -> float:
    """Return the lengthscale in the dimension's own units that corresponds to 1 in the encoded column."""
    if isinstance(dimension, Ordinal):
        # The values have equal distances; the unit is the step from one value to the next.
        return float(len(dimension.values) - 1)
    if dimension.log:
        return math.log10(dimension.high) - math.log10(dimension.low)
    return float(dimension.high) - float(dimension.low)
