"""Verdicts of comparisons, which follow from the results of paired runs by one rule.

A verdict is "better" or "worse" if the two-sided Wilcoxon signed-rank test of the differences rejects their symmetry
about 0 at the level 0.05, after Holm's correction over all comparisons of the replay, and "undecided" otherwise.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from belated.replays.report import Array, Report, format_table

LEVEL = 0.05
BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"
Key = TypeVar("Key", bound=Hashable)


def verdicts(pairs: Mapping[Key, tuple[ArrayLike, ArrayLike]]) -> dict[Key, str]:
    """Return the verdict on the first of two regrets, for each comparison.

    Parameters
    ----------
    pairs : mapping
        Comparison → the regrets (n,) of the first and of the second method in the same n runs. A run in which one of
        them is NaN does not count.
    """
    differences = {key: _differences(*pair) for key, pair in pairs.items()}
    corrected = holm({key: p_value(each) for key, each in differences.items()})
    return {key: _verdict(differences[key], p) for key, p in corrected.items()}


def comparisons(
    settings: Iterable[Report], names: Sequence[str], pairs: Iterable[tuple[str, str]], key: str = "values"
) -> list[Report]:
    """Return the verdicts on the values of algorithms, of which larger values are better, against their rivals.

    Parameters
    ----------
    settings : iterable of dict
        The results of one algorithm each: the entries `names`, "algorithm", and the values of all runs.
    names : sequence of str
        Settings are compared if these entries are the same.
    pairs : iterable of tuples
        Algorithm and rival. A pair is left out where one of the two did not run.
    key : str
        The name of the values. If one algorithm has more runs than the other, its first runs are compared.
    """
    groups: dict[tuple[Any, ...], dict[str, Array]] = {}
    for each in settings:
        group = groups.setdefault(tuple(each[name] for name in names), {})
        group[each["algorithm"]] = -np.asarray(each[key], dtype=float)
    regrets: dict[tuple[Any, ...], tuple[Array, Array]] = {}
    for (where, group), (one, other) in product(groups.items(), list(pairs)):
        if one in group and other in group:
            pair, n = (*where, one, other), min(len(group[one]), len(group[other]))
            regrets[pair] = group[one][:n], group[other][:n]
    keys = (*names, "algorithm", "rival", "verdict")
    return [dict(zip(keys, (*pair, verdict), strict=True)) for pair, verdict in verdicts(regrets).items()]


def table(compared: Sequence[Report]) -> str:
    """Return a table with the verdicts of a replay, and a title that states the rule."""
    title = f"Verdicts: Wilcoxon tests of paired runs at the level {LEVEL}, with Holm's correction\n"
    return title + format_table(list(compared[0]), [[*map(str, each.values())] for each in compared])


def p_value(differences: ArrayLike) -> float:
    """Return the probability of the two-sided Wilcoxon signed-rank test, 1 if all differences are 0."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def holm(probabilities: Mapping[Key, float]) -> dict[Key, float]:
    """Return the probabilities, corrected by the method of Holm (1979)."""
    corrected, largest = {}, 0.0
    for i, (key, p) in enumerate(sorted(probabilities.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(probabilities) - i) * p))
        corrected[key] = largest
    return {key: corrected[key] for key in probabilities}


def _differences(first: ArrayLike, second: ArrayLike) -> Array:
    differences: Array = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    kept: Array = differences[~np.isnan(differences)]
    return kept


def _verdict(differences: Array, p: float) -> str:
    if p >= LEVEL:
        return UNDECIDED
    # The sign of the sum of the signed ranks, which the test is about.
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    return BETTER if float(np.sign(differences) @ ranks) < 0 else WORSE
