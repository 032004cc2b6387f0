"""The spaces of a `BelatedSearchCV`, and the optimizers that choose candidates from them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from belated._core import InvalidSetting, InvalidSpace
from belated.hints import optimizer_advice
from belated.integrations.arguments import check_optimizer
from belated.integrations.candidates import SearchedSpace, warn_few_points
from belated.integrations.distributions import DistributionSpace
from belated.optimizers.bayes import BayesOpt
from belated.optimizers.curve import Curve
from belated.optimizers.optimizer import Optimizer
from belated.optimizers.outcomes import Maximize
from belated.optimizers.tree import TreeSearch
from belated.run.arguments import count
from belated.short_repr import short_repr
from belated.study.study import Study


def read_spaces(given: Any, n_iter: int) -> list[tuple[DistributionSpace, int]]:
    """Return the spaces of the argument `space` of a search, and the number of candidates of each.

    Parameters
    ----------
    given : mapping, or list of mappings or of tuples (mapping, number of candidates)
    n_iter : int
        The number of candidates of a space that is given without a number.

    Raises
    ------
    InvalidSpace, InvalidSetting
        A space or a number is invalid.

    Examples
    --------
    >>> from belated.integrations.sklearn_spaces import read_spaces
    >>> [number for _, number in read_spaces([({"C": (0.1, 1.0)}, 5), {"C": (1.0, 9.0)}], 20)]
    [5, 20]
    """
    if not isinstance(given, (list, tuple)):
        return [(DistributionSpace(given), n_iter)]
    spaces = []
    for i, each in enumerate(given):
        space, number = each if isinstance(each, tuple) and len(each) == 2 else (each, n_iter)
        if not isinstance(space, Mapping):
            raise InvalidSpace(
                f"space[{i}]={short_repr(each)} is not usable: pass a dict of parameter's name → dimension, "
                "distribution or list, or a tuple (dict, number of candidates)"
            )
        spaces.append((DistributionSpace(space), count(f"the number of candidates of space[{i}]", number, 1)))
    if not spaces:
        raise InvalidSpace(f"space={short_repr(given)} is empty: pass at least one dict")
    return spaces


def with_optimizers(
    spaces: Sequence[tuple[DistributionSpace, int]],
    make: Callable[..., Any] | None,
    random_state: Any,
    curve: Curve | None,
    front: list[str] | None,
) -> list[SearchedSpace]:
    """Return the spaces with new optimizers, given the arguments `optimizer` and `random_state` of a search.

    `front` has the metrics that are the objectives of a front; None if one metric is maximised.
    """
    random = check_random_state(random_state)
    searched = []
    for space, number in spaces:
        seed = int(random.randint(np.iinfo(np.int32).max))
        optimizer = _new_optimizer(make, space, seed, curve, front)
        n_points = math.prod(each.n_levels or math.inf for each in space.space.values())
        if n_points < number and not isinstance(optimizer._optimizer, TreeSearch):
            warn_few_points(int(n_points), number)
            number = int(n_points)
        searched.append(SearchedSpace(optimizer, space, number))
    return searched


def _new_optimizer(
    make: Callable[..., Any] | None, space: DistributionSpace, seed: int, curve: Curve | None, front: list[str] | None
) -> Optimizer | Study:
    make = BayesOpt if make is None else make
    keywords: dict[str, Any] = {} if curve is None else {"curve": curve}
    keywords |= {} if front is None else {"outcomes": dict.fromkeys(front, "maximize")}
    form = f"optimizer(space, seed=seed{''.join(f', {name}={name}' for name in keywords)})"
    advice = f"pass an optimizer's class, or a function that returns one, called as {form}"
    if not callable(make):
        advice += optimizer_advice(make).replace("(space)", "")
        raise InvalidSetting(f"optimizer={short_repr(make)} is not usable: {advice}")
    made: Optimizer | Study = make(space.space, seed=seed, **keywords)
    users, kinds = "candidates of a search", (Optimizer, Study)
    refused = ("context", "fidelity", *(("outcomes",) if front is None else ()))
    check_optimizer(made, space.space, "maximize", advice, users=users, kinds=kinds, refused=refused)
    outcomes = made._problem.outcomes
    if front is not None and {name: type(goal) for name, goal in outcomes.items()} != dict.fromkeys(front, Maximize):
        raise InvalidSetting(
            f"optimizer has outcomes={short_repr(outcomes)}, and the metrics {front} are maximised: pass the argument "
            "outcomes to it"
        )
    found = made._optimizer.curve
    if curve is not None and found != curve:
        raise InvalidSetting(f"optimizer has curve={found!r}, and not {curve!r}: pass the argument curve to it")
    return made
