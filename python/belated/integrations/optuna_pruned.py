"""Estimates of the final values of pruned trials, from the learning curves of completed trials."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple


class Stop(NamedTuple):
    """The last step of a pruned trial, and the value reported there."""

    step: int
    value: float


class Curve(NamedTuple):
    """The values that a completed trial reported, by step, and its final value."""

    reported: Mapping[int, float]
    final: float


class _Level(NamedTuple):
    """What completed trials tell about a step; larger values are better."""

    # Their reports at this step, in increasing order.
    reports: list[float]
    # For each of these the worst final value of the trials from there on; last, the best final value of all.
    bounds: list[float]
    # The median of final value − report.
    gain: float


def impute(stops: Mapping[int, Stop], curves: Sequence[Curve], *, minimize: bool) -> dict[int, float]:
    """Estimate the final values of pruned trials; the result has the keys of `stops`.

    An estimate is the last report plus the median gain of the completed trials from that step to their end. A pruned
    trial does not become better than a completed one that was ahead of it at that step, nor better than the best
    completed trial. Where no completed trial reported anything up to that step, the estimate is the last report, but not
    better than the worst completed trial.
    """
    sign = -1.0 if minimize else 1.0
    finals = [sign * curve.final for curve in curves]
    levels: dict[int, _Level | None] = {}
    imputed = {}
    for key, (step, value) in stops.items():
        if step not in levels:
            levels[step] = _level(step, curves, sign)
        level, report = levels[step], sign * value
        if level is None:
            imputed[key] = sign * min([report, *finals])
            continue
        estimate = report + level.gain
        # Differences of large numbers may overflow.
        estimate = estimate if math.isfinite(estimate) else min(finals)
        imputed[key] = sign * min(estimate, level.bounds[bisect_left(level.reports, report)])
    return imputed


def _level(step: int, curves: Sequence[Curve], sign: float) -> _Level | None:
    found = [(_report_at(curve.reported, step), curve.final) for curve in curves]
    pairs = sorted((sign * report, sign * final) for report, final in found if report is not None)
    if not pairs:
        return None
    best = max(sign * curve.final for curve in curves)
    worst_from = list(accumulate((final for _, final in reversed(pairs)), min))[::-1]
    return _Level([report for report, _ in pairs], [*worst_from, best], median(final - report for report, final in pairs))


def _report_at(reported: Mapping[int, float], step: int) -> float | None:
    """The last finite report up to this step."""
    if math.isfinite(reported.get(step, math.nan)):
        return reported[step]
    before = [each for each, value in reported.items() if each <= step and math.isfinite(value)]
    return reported[max(before)] if before else None
