"""Estimates of the final values of pruned trials from the learning curves of trials that went further."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import median
from typing import NamedTuple


class Curve(NamedTuple):
    """A trial's reports by step, and its final value."""

    reported: Mapping[int, float]
    final: float


class Stop(NamedTuple):
    """A pruned trial's reports by step, its last step, and the value reported there."""

    reported: Mapping[int, float]
    step: int
    value: float


class _Level(NamedTuple):
    """Statistics at a step, computed from the trials that went further. All values are to be maximised."""

    # The reports of these trials at this step, in increasing order.
    reports: list[float]
    # For each of these reports: the worst final value among the trials that have a report at least as large.
    bounds: list[float]
    # The median over these trials of the difference, final value − report.
    gain: float


def impute(stops: Mapping[int, Stop], completed: Sequence[Curve], *, minimize: bool) -> dict[int, float]:
    """Estimate the final values of pruned trials; the result has the keys of `stops`.

    The estimate for a pruned trial is its last report plus the median gain of the trials that went further. These
    trials are the completed trials, and the trials that were pruned at a later step. The gain of a trial is its final
    value minus its report at the last step of the pruned trial. If a trial that went further was also pruned, its
    estimate is used as its final value. The estimate is not better than the final value of any trial that went further
    and was ahead at this step. The estimate is also not better than the best final value of a completed trial. If the
    trials that went further do not have a report up to this step, the estimate is the worse of two values: the last
    report, and the worst final value.
    """
    sign = -1.0 if minimize else 1.0
    curves = [Curve(each.reported, sign * each.final) for each in completed]
    finals = [each.final for each in curves]
    estimates: dict[int, float] = {}
    for step in sorted({stop.step for stop in stops.values()}, reverse=True):
        level = _level(step, curves, sign)
        here = [(key, stop) for key, stop in stops.items() if stop.step == step]
        for key, stop in here:
            estimates[key] = _estimate(sign * stop.value, level, finals)
        curves += [Curve(stop.reported, estimates[key]) for key, stop in here]
    return {key: sign * value for key, value in estimates.items()}


def _estimate(report: float, level: _Level | None, finals: list[float]) -> float:
    """Return the estimate for a trial with this last report. `finals` are the final values of completed trials."""
    cautious = min([report, *finals])
    if level is None:
        return cautious
    estimate = report + level.gain
    if not math.isfinite(estimate):  # differences of large numbers overflow
        estimate = cautious
    at = bisect_left(level.reports, report)
    ahead = level.bounds[at] if at < len(level.bounds) else math.inf
    return min(estimate, ahead, max(finals, default=math.inf))


def _level(step: int, curves: Sequence[Curve], sign: float) -> _Level | None:
    found = [(_report_at(curve.reported, step), curve.final) for curve in curves]
    pairs = sorted((sign * report, final) for report, final in found if report is not None)
    if not pairs:
        return None
    bounds = list(accumulate((final for _, final in reversed(pairs)), min))[::-1]
    return _Level([report for report, _ in pairs], bounds, median(final - report for report, final in pairs))


def _report_at(reported: Mapping[int, float], step: int) -> float | None:
    """Return the last finite report up to this step."""
    if math.isfinite(reported.get(step, math.nan)):
        return reported[step]
    before = [each for each, value in reported.items() if each <= step and math.isfinite(value)]
    return reported[max(before)] if before else None
