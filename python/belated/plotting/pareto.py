"""Plot of the trials of a search with several objectives, with the front that no other trial dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSetting
from belated.errors import NotFitted
from belated.optimizers.outcomes import Goal, Minimize, Outcomes, is_within
from belated.optimizers.trial import Trial
from belated.optimizers.trials import Reading
from belated.plotting import figures
from belated.plotting.figures import LOOKS, ORANGE, PURPLE, RED, Axes

_N_PREDICTED = 20


def plot_pareto(search: Reading, ax: Any = None, *, context: Mapping[str, Any] | None = None) -> NDArray[np.object_]:
    """Plot the trials by their objectives, and the front `pareto_` as a staircase.

    Dots are the trials in which both objectives of the axes were observed. Pale dots do not count: an outcome is not
    within its bounds, or an outcome with bounds or a third objective is missing. If only one of the two objectives was
    observed, a thin line shows its value. Values that a trial of the front dominates lie on the worse side of the
    staircase. With three objectives, the staircase belongs to the two objectives of the axes, and trials of the front
    may lie on its worse side. Trials that were run outside the domain or that a revision left out are not drawn.

    Dashed lines are the references of `hypervolume`, from which values are worthless; dotted lines are references that
    were not declared and are computed from the front. Triangles are the predicted front: the points that
    ``recommend(n=20)`` returns, at the means that `predict` returns for each objective, with bars of two standard
    deviations on each side. Points that probably violate the bounds of other outcomes are left out. The predicted front
    is not drawn without a model, before all objectives and outcomes with bounds have a value, or if a study was opened
    without the functions of its constraints.

    Parameters
    ----------
    search : Result, Study or Optimizer
        A search with two or three objectives. If a result is given, the trials of its run are drawn, and the front
        contains all trials of its optimizer.
    ax : matplotlib Axes or array of Axes, optional
        The axes to draw on: one for two objectives, and three for three. Default None: the axes of a new figure.
    context : mapping, optional
        The context of the predicted front, if a context was declared. Default None: if a context was declared, the
        predicted front is not drawn.

    Returns
    -------
    ndarray of Axes
        One axes for each pair of objectives, in the order of the declaration: the first objective of the pair is on the
        horizontal axis.

    Raises
    ------
    InvalidSetting
        `search` is not a result, study or optimizer, or does not have several objectives; or the number of axes is
        wrong.
    InvalidContext
        The context was not declared, or is out of its space.

    Examples
    --------
    >>> import belated as bl
    >>> search = bl.RandomSearch({"x": (0.0, 1.0)}, outcomes={"yield": "maximize", "cost": "minimize"}, seed=0)
    >>> for trial in search.suggest(n=20):
    ...     trial.observe({"yield": trial.params["x"], "cost": trial.params["x"] ** 2})
    >>> [ax] = bl.plotting.plot_pareto(search)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('yield\\n(maximized)', 'cost\\n(minimized)')
    """
    problem = figures.checked_search(search, "plot_pareto")._source._current_problem()
    if not problem.front:
        raise InvalidSetting("plot_pareto needs several objectives, and this search has one: use plot_convergence")
    pairs = list(combinations(problem.front, 2))
    made = figures.panels(len(pairs), ax, 2)
    front = search.pareto_
    log = search._source._current_log()
    references = dict(zip(problem.front, log.reference([trial.number for trial in front]), strict=True))
    predicted = _predicted(search, context)
    trials = [trial for trial in search.trials if not trial.outside and trial.left_out is None]
    for (x, y), each in zip(pairs, made, strict=True):
        goals = (problem.outcomes[x], problem.outcomes[y])
        _draw_trials(each, problem.outcomes, trials, (x, y))
        _draw_references(each, goals, (references[x], references[y]))
        if predicted:
            _draw_predicted(each, *predicted[x], *predicted[y])
        _draw_front(each, [(trial.values[x], trial.values[y]) for trial in front], goals)
        xlabel, ylabel = (figures.value_label(search, name).replace(" (", "\n(") for name in (x, y))
        each.set(xlabel=xlabel, ylabel=ylabel)
        each.grid(alpha=0.3)
        if not any(trial.values.keys() & {x, y} for trial in trials):
            figures.add_note(each, "no values" if trials else "no trials")
    figures.add_legend(made, below=ax is None)
    figures.tidy(made)
    return made


def _predicted(search: Reading, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the means and stds of each objective at the recommended points; an empty dict if they are not known."""
    source = search._source
    if not source._has_model or (context is None and source._problem.context_space is not None):
        return {}
    try:
        points = search.recommend(context, n=_N_PREDICTED)
        within = search.predict_feasible(points, context) >= 0.5
        front = source._problem.front if within.any() else []
        return {name: np.array(search.predict(points, context, outcome=name))[:, within] for name in front}
    except (NotFitted, InvalidSetting):
        return {}  # an outcome does not have a value, or a study was opened without its constraints


def _draw_trials(ax: Axes, outcomes: Outcomes, trials: list[Trial], names: tuple[str, str]) -> None:
    """Draw the trials with both objectives as dots, and those with one as lines at its value."""
    colour, marker = LOOKS["observed"]
    whole: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    alone: tuple[list[float], list[float]] = ([], [])
    for trial in trials:
        x, y = (trial.values.get(name) for name in names)
        if x is not None and y is not None:
            (whole if is_within(outcomes, trial.values) else others).append((x, y))
        elif x is not None or y is not None:
            alone[x is None].append(y if x is None else x)  # type: ignore[arg-type]
    for points, alpha, label in ((whole, 0.6, "observed"), (others, 0.2, "does not count")):
        if points:
            ax.plot(*zip(*points, strict=True), marker, color=colour, alpha=alpha, markersize=5, label=label)
    look: Any = {"color": LOOKS["pending"][0], "linewidth": 0.8, "alpha": 0.7, "label": "only one value known"}
    for value in alone[0]:
        ax.axvline(value, **look)
    for value in alone[1]:
        ax.axhline(value, **look)


def _draw_front(ax: Axes, points: list[tuple[float, float]], goals: tuple[Goal, Goal]) -> None:
    """Draw the staircase between the values that these points dominate and the others, to the edges of the axes."""
    if not points:
        return
    signs = np.array([-1.0 if isinstance(goal, Minimize) else 1.0 for goal in goals])
    oriented = signs * np.array(points)
    # From the largest to the smallest value of the first objective; only points that increase the second count.
    order = np.lexsort((-oriented[:, 1], -oriented[:, 0]))
    steps = [oriented[i] for n, i in enumerate(order) if n == 0 or oriented[i, 1] > oriented[order[:n], 1].max()]
    ax.plot(*zip(*points, strict=True), "o", color=ORANGE, markersize=7, markeredgecolor="white", label="front")
    low, high = (np.array(each) for each in zip(ax.get_xlim(), ax.get_ylim(), strict=True))
    worst = np.minimum(signs * low, signs * high)
    corners = [(steps[0][0], worst[1])]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        corners += [(step[0], step[1]), (worst[0] if following is None else following[0], step[1])]
    line = signs * np.array(corners)
    ax.plot(line[:, 0], line[:, 1], color=ORANGE, linewidth=1.5)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _draw_predicted(ax: Axes, x: Any, x_std: Any, y: Any, y_std: Any) -> None:
    look: Any = {"color": PURPLE, "markersize": 5, "elinewidth": 0.8, "label": "predicted ± 2 std"}
    ax.errorbar(x, y, xerr=2 * x_std, yerr=2 * y_std, fmt="^", **look)


def _draw_references(ax: Axes, goals: tuple[Goal, Goal], references: Sequence[float | None]) -> None:
    """Draw declared references as dashed lines, and computed references as dotted lines."""
    for goal, value, line in zip(goals, references, (ax.axvline, ax.axhline), strict=True):
        if value is not None:
            is_declared = any(bound is not None for bound in goal.core[1:])
            style, label = ("--", "reference") if is_declared else (":", "computed reference")
            line(value, color=RED, linestyle=style, linewidth=1, label=label)
