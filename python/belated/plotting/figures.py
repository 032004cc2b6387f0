"""The functions and colours that all plots share: figures, axes and labels."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from belated._core import InvalidSetting
from belated.errors import NotFitted
from belated.optimizers.outcomes import Minimize, is_beyond
from belated.optimizers.trial import Trial
from belated.optimizers.trials import Reading
from belated.short_repr import short_repr
from belated.space.candidates import Candidates
from belated.space.space import Space

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Axes: TypeAlias = "matplotlib.axes.Axes"
Figure: TypeAlias = "matplotlib.figure.Figure"

MILLIMETRES_PER_PANEL = (92, 74)  # width, height
_FIGURE_WIDTH = 7.6  # inches; texts of the normal sizes stay readable if the figure is reduced to 600 pixels

# The colours of Okabe and Ito (2008), which people with any colour vision can distinguish.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#8C8C8C"
PALETTE = (BLUE, RED, GREEN, ORANGE, PURPLE, "#56B4E9", "black", GREY)
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))  # to distinguish curves without colour

# State or category of trials → colour and marker. The markers differ, so that plots can be read in grey.
LOOKS = {
    "observed": (BLUE, "o"),
    "late": (ORANGE, "D"),
    "failed": (RED, "X"),
    "abandoned": (GREY, "v"),
    "stopped": ("#4D4D4D", "s"),
    "withdrawn": (GREY, "x"),
    "pending": (GREEN, ">"),
    "beyond a bound": (BLUE, "o"),
    "outside the space": (GREY, "o"),
    "marked": (PURPLE, "^"),
    "forbidden": (GREEN, ">"),
}
#: The categories of trials that are drawn as hollow markers, because they cannot be used as they are.
HOLLOW = ("beyond a bound", "outside the space", "marked", "forbidden")


class AxesArray(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of axes that notebooks do not print after the figure: IPython calls `_ipython_display_` instead."""

    def _ipython_display_(self) -> None:
        pass


def draw_trials(ax: Axes, at: Any, label: str, **look: Any) -> None:
    """Draw markers at places (horizontal, vertical), with the look of a category of trials."""
    colour, marker = LOOKS[label]
    look = {"color": colour, "markersize": 5, **look}
    if label in HOLLOW:
        look |= {"markerfacecolor": "none", "markeredgewidth": 1.2, "alpha": 1.0}
    ax.plot(*at, marker, label=label, **look)


def digits(number: float, span: float) -> str:
    """Return a number as text, with the digits that a range of width `span` earns.

    The last digit is at most a thousandth of the range: in the range from 0 to 1, 2.857e-15 is 0.
    """
    if not span > 0 or not math.isfinite(span):
        return f"{number:.4g}"
    place = 3 - math.floor(math.log10(span))
    rounded = round(number, place)
    if rounded and (place > 7 or abs(rounded) >= 1e7):
        return f"{rounded:.{max(1, place + math.floor(math.log10(abs(rounded))) + 1)}g}"
    text = f"{rounded + 0.0:.{max(place, 0)}f}"  # the sum of -0.0 and 0.0 is 0.0
    return text.rstrip("0").rstrip(".") if "." in text else text


def checked_search(search: Reading, what: str) -> Reading:
    """Return `search` if it is a result, study or optimizer; otherwise raise an error."""
    if not isinstance(search, Reading):
        raise InvalidSetting(
            f"search={short_repr(search)} cannot be drawn by {what}: pass the result of a run, a study or an optimizer"
        )
    return search


def space_of(search: Reading, what: str) -> Space:
    """Return the space of a search; raise an error if its parameters do not have names."""
    domain = checked_search(search, what).domain
    if isinstance(domain, Candidates):
        raise InvalidSetting(f"{what} needs a space of named parameters, and this search has candidates without names")
    return domain


def checked_names(given: Any, names: Sequence[str]) -> list[str]:
    """Return the names of parameters in `given`; raise an error if a name is unknown."""
    wanted = [given] if isinstance(given, str) else list(given)
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise InvalidSetting(f"names={short_repr(given)} is not usable: pass names out of {list(names)}")
    return wanted


def axes_for(ax: Axes | None, rows: int = 0) -> Axes:
    """Return the given axes, or the axes of a new figure that is high enough for `rows` rows of text."""
    if ax is not None:
        return ax
    width, height = _pyplot().rcParams["figure.figsize"]
    made: Axes = new_figure((width, max(height, 0.25 * rows)))[1][0, 0]
    return made


def new_figure(size: tuple[float, float], rows: int = 1, columns: int = 1, **share: Any) -> tuple[Figure, Any]:
    """Return a new figure of a size in inches, and its axes as an array of rows and columns."""
    pyplot = _pyplot()
    figure, made = pyplot.subplots(rows, columns, squeeze=False, layout="constrained", figsize=size, **share)
    # Dark text on a transparent figure could not be read in a dark notebook.
    figure.set_facecolor((*figure.get_facecolor()[:3], 1.0))
    return figure, made


def panels(n: int, given: Any, columns: int = 3, **share: Any) -> AxesArray:
    """Return n axes: the given axes, or the axes of a new figure with at most `columns` axes in a row."""
    if given is None:
        columns = min(n, columns)
        rows = -(-n // columns)
        width = max(1.4, min(6.4, _FIGURE_WIDTH / columns))
        size = (width * columns, 0.8 * width * rows + 0.4)  # the legend is 0.4 inches high
        figure, made = new_figure(size, rows, columns, **share)
        for unused in made.flat[n:]:
            figure.delaxes(unused)
        given = made.flat[:n]
    found: AxesArray = np.asarray(given, dtype=object).ravel().view(AxesArray)
    if len(found) != n:
        raise InvalidSetting(f"ax has {len(found)} axes, and {n} are needed: pass as many, or leave it out")
    return found


def finished(ax: Axes, *, legend: bool | str = True, axis: Any = "both", **labels: Any) -> Axes:
    """Return axes with these labels and limits, a grid along `axis`, and a legend, which may be "inside"."""
    ax.set(**labels)
    ax.grid(alpha=0.3, axis=axis)
    if legend:
        add_legend([ax], inside=legend == "inside")
    tidy([ax])
    return ax


def draw_intervals(ax: Axes, at: Any, low: Any, middle: Any, high: Any, label: str | None, state: str) -> None:
    """Draw predictions with intervals against known numbers, with the look of a state of trials.

    The lines of known numbers within their intervals are the paler, the more numbers there are; the others are dark.
    """
    colour, marker = LOOKS[state]
    look: Any = {"color": colour, "markersize": 5 if len(at) <= 30 else 4, "elinewidth": 1}
    drawn = ax.errorbar(at, middle, yerr=[middle - low, high - middle], fmt=marker, label=label, **look)
    pale = min(0.7, 25 / max(len(at), 1))
    within = (low <= at) & (at <= high)
    drawn.lines[0].set_alpha(0.7)
    drawn.lines[2][0].set_color([(colour, pale) if each else (ink(ax), 0.8) for each in within])


def finished_predictions(
    ax: Axes, known: Any, predicted: Any, is_within: Any, level: int, what: str, *, scale: str, **labels: Any
) -> Axes:
    """Return axes of predicted against known numbers, with the diagonal; the title counts the known numbers that are
    within their intervals of `level` percent."""
    ends = [min(known.min(), predicted.min()), max(known.max(), predicted.max())]
    ax.plot(ends, ends, color=ink(ax), linestyle="--", linewidth=1)
    title = f"{int(is_within.sum())} of {len(known)} {what} in their interval"
    ylabel = f"Predicted from the others, {level} % interval"
    return finished(ax, xscale=scale, yscale=scale, ylabel=ylabel, title=title, **labels)


def add_legend(axes: Any, below: bool = False, inside: bool = False) -> None:
    """Add one legend for all axes: below the figure, inside the axes if there is room, or to their right.

    If the figure has no layout that reserves space for the legend, the legend is inside the last axes. Axes without
    labelled artists and texts get the text "no trials".
    """
    entries = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    settings: dict[str, Any] = {"handles": list(entries.values()), "labels": list(entries), "fontsize": "small"}
    if entries and below:
        figure = axes[-1].figure
        for columns in range(max(1, min(len(entries), int(figure.get_figwidth() / 1.1))), 0, -1):
            legend = figure.legend(loc="outside lower center", ncols=columns, **settings)
            if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
                break
            legend.remove()
    elif entries:
        legend = axes[-1].legend(**settings)
        has_layout = axes[-1].figure.figure.get_layout_engine() is not None
        if has_layout and not (inside and not covered_lines(axes[-1], legend)):
            axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **settings)
    else:
        for ax in axes:
            if not ax.texts:
                add_note(ax, "no trials")


def covered_lines(ax: Axes, legend: Any) -> list[Any]:
    """Return the lines and bands of axes that a legend inside the axes covers, at least in part."""
    _place_texts([ax])
    box = legend.get_window_extent()
    found: list[Any] = []
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        is_line = line.get_linestyle() != "None"
        if path.intersects_bbox(box, filled=False) if is_line else box.count_contains(path.vertices):
            found.append(line)
    for band in ax.collections:
        paths = [band.get_transform().transform_path(path) for path in band.get_paths()]
        found += [band] if any(path.intersects_bbox(box) for path in paths) else []
    return found


def add_note(ax: Axes, text: str) -> None:
    """Write a text in the middle of axes that do not show a value, and remove the numbers of the vertical axis."""
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none"}
    ax.annotate(text, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", bbox=ground, zorder=5)
    ax.tick_params(axis="y", which="both", left=False, labelleft=False)


def tidy(axes: Any) -> None:
    """Choose the ticks of logarithmic axes, and rotate or leave out texts that overlap."""
    for ax in axes:
        for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if axis.get_scale() == "log":
                _choose_log_ticks(axis, low, high)
    draw = partial(_place_texts, axes)
    draw()
    if crowded := _overlapping(axes, "xaxis", shown_labels):
        for axis in crowded:
            axis.set_tick_params(rotation=90)
        draw()
    ways = (("xaxis", {"rotation": 90}), ("yaxis", {"rotation": 0, "ha": "right", "va": "center"}))
    for which, turned in 2 * ways:  # labels of one axis that are turned leave less space for labels of the other axis
        if _overlapping(axes, which, lambda axis: [axis.label] if axis.label.get_text() else []):
            for ax in axes:
                getattr(ax, which).label.set(**turned)
            draw()
    for which in ("xaxis", "yaxis"):
        while crowded := _overlapping(axes, which, shown_labels):
            for axis in crowded:
                texts = [label.get_text() for label in axis.get_ticklabels()]
                axis.set_ticks(axis.get_majorticklocs()[::2], texts[::2])
            draw()


def _place_texts(axes: Any) -> None:
    """Compute the positions of the texts and legends of axes.

    The layout of a figure is computed only if these are all its panels. If a figure is filled panel by panel, its
    layout is not known before the last one.
    """
    figure = axes[0].figure.figure
    if all(ax in axes or ax.get_subplotspec() is None for ax in figure.axes):
        figure.draw_without_rendering()
    else:
        for ax in axes:
            ax.get_tightbbox()


def _overlapping(axes: Any, which: str, texts: Callable[[Any], list[Any]]) -> list[Any]:
    """Return the axes ("xaxis" or "yaxis") of which a text overlaps another text."""
    found = [getattr(ax, which) for ax in axes]
    boxes = [(axis, text.get_window_extent()) for axis in found for text in texts(axis)]
    pairs = [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    return [axis for axis in found if any(axis in pair for pair in pairs)]


def shown_labels(axis: Any) -> list[Any]:
    """Return the tick labels of an axis that are visible."""
    low, high = sorted(axis.get_view_interval())
    found = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
    return [label for at, label in found if low <= at <= high and label.get_text() and label.get_visible()]


def _choose_log_ticks(axis: Any, low: float, high: float) -> None:
    """Label powers of 10 if the axis has at least two; otherwise also label numbers between the powers."""
    from matplotlib import ticker

    axis.set_minor_formatter(ticker.NullFormatter())
    if high < 100 * low:
        axis.set_minor_locator(ticker.NullLocator())
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)) if high >= 10 * low else ticker.MaxNLocator(5))
        axis.set_major_formatter(ticker.FuncFormatter(lambda number, _: digits(number, abs(number))))


def integer_ticks(axis: Any) -> None:
    """Restrict the ticks of an axis to integers; the limits of the axis must be final."""
    from matplotlib.ticker import MaxNLocator

    low, high = axis.get_view_interval()
    # If the limits contain fewer than two integers, the locator would choose fractions.
    least = 1 if high - low < 2 else 2
    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=least))


def shortened(name: Any, length: int = 20) -> str:
    """Return a text of at most `length` characters; the middle of a longer text is replaced by dots."""
    text = str(name)
    return text if len(text) <= length else f"{text[: length - 6]}…{text[-5:]}"


def short_choices(choices: Sequence[Any], length: int = 12) -> list[str]:
    """Return a text of at most `length` characters for each choice; if texts were equal, the parts that differ."""
    texts = [str(choice) for choice in choices]
    if len({shortened(text, length) for text in texts}) < len(texts):
        start = len(commonprefix(texts))
        end = min(len(commonprefix([text[::-1] for text in texts])), min(map(len, texts)) - start)
        texts = [f"{'…' * (start > 0)}{text[start : len(text) - end]}{'…' * (end > 0)}" for text in texts]
    return [shortened(text, length) for text in texts]


def ink(ax: Axes) -> Any:
    """Return the colour of the labels of axes, which is visible on the ground of the figure."""
    return ax.xaxis.label.get_color()


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    return pyplot


def check_max_params(max_params: Any, least: int) -> None:
    """Raise an error if `max_params` is not an integer from `least` on."""
    if not isinstance(max_params, (int, np.integer)) or isinstance(max_params, bool) or max_params < least:
        raise InvalidSetting(f"max_params={short_repr(max_params)} is not usable: pass an integer >= {least}")


def by_importance(search: Reading, names: Sequence[str], context: Any, outcome: str | None, caller: str) -> list[str]:
    """Return names of parameters in the order of their total effects (`plot_importance`), the largest first."""
    drawn, draws = search._total_effects(context, caller, outcome)
    effects = dict(zip(drawn, np.median(draws, axis=0), strict=True))
    return sorted(names, key=lambda name: -effects[name])


def note_left_out(names: Sequence[str], width: float) -> str:
    """Return a text that says which parameters were left out, in lines for a figure of a width in inches."""
    if not names:
        return ""
    shown = [shortened(name) for name in names[:10]] + [f"{len(names) - 10} more"] * (len(names) > 10)
    return textwrap.fill(f"Less important and not shown: {', '.join(shown)}", int(13 * width))


def value_label(search: Reading, outcome: str | None = None) -> str:
    """Return the label of an axis of values of an outcome; None means the objective."""
    problem = search._source._problem
    name = outcome or problem.objective or "Value"
    if name in problem.front:
        direction = "minimize" if isinstance(problem.outcomes[name], Minimize) else "maximize"
    elif name in (problem.objective, "Value"):
        direction = search.direction
    else:
        return shortened(name)
    return f"{shortened(name)} ({direction}d)"


def results(search: Reading, outcome: str | None) -> list[tuple[Trial, str, float | None]]:
    """Return each trial with the state and the value of an outcome; None means the objective.

    Trials that lie outside, or that a revision left out, are not returned.
    """
    name = outcome or search._source._problem.objective
    shown = [trial for trial in search.trials if not trial.outside and trial.left_out is None]
    if name is None:
        return [(trial, trial.state, trial.value) for trial in shown]
    return [(trial, each.state, each.value) for trial in shown for each in [trial.outcomes[name]]]


def category(search: Reading, trial: Trial, state: str) -> str:
    """Return the category in which a trial is drawn, as a key of `LOOKS`, from the state of one of its outcomes."""
    source = search._source
    if state == "pending":
        return "pending" if source._why_forbidden(trial._record) is None else "forbidden"
    if state != "observed":
        return state
    constraints, is_left_out = source._constraints, trial.outside or trial.left_out is not None
    if is_left_out or (constraints is not None and constraints.first_violated(trial.params_run) is not None):
        return "outside the space"
    if is_beyond(source._problem.outcomes, trial.values):
        return "beyond a bound"
    return "marked" if trial.marks else "observed"


def by_category(search: Reading, outcome: str | None) -> dict[str, list[tuple[Trial, float | None]]]:
    """Return the trials of `results` with their values, by category (`LOOKS`), without abandoned and withdrawn ones."""
    found: dict[str, list[tuple[Trial, float | None]]] = {label: [] for label in LOOKS}
    for trial, state, value in results(search, outcome):
        found[category(search, trial, state)].append((trial, value))
    return {label: own for label, own in found.items() if own and label not in ("abandoned", "withdrawn")}


def values(search: Reading, outcome: str | None) -> list[float]:
    """Return the observed values of an outcome; None means the objective."""
    known = [trial.value if outcome is None else trial.values.get(outcome) for trial in search.trials]
    return [value for value in known if value is not None]


#: The hatch of points that constraints exclude.
HATCH = "\\\\\\"

#: The legend entry of points at which the outcomes probably violate a bound.
INFEASIBLE = "bounds probably violated"


def check_values(values: Any, caller: str) -> None:
    """Raise NotFitted if there are no values. The model may be fitted to values that were withdrawn later."""
    if len(values) == 0:
        raise NotFitted(f"{caller} needs values: observe at least one trial first")


def value_scale(log: bool, values: Any) -> str:
    """Return the scale of an axis of values; raise an error if values cannot be shown on a logarithmic axis."""
    lowest = np.min(values, initial=np.inf)
    if log and lowest <= 0:
        raise InvalidSetting(
            f"log={short_repr(log)} needs positive values, and the lowest is {lowest:.4g}: leave log out, or show the "
            "regret with plot_convergence(search, optimum=…)"
        )
    return "log" if log else "linear"


def time_unit(clock: str, longest: float) -> tuple[float, str]:
    """Return a unit that suits times up to `longest`, in units of the clock, and its name."""
    if clock == "iterations":
        return 1.0, "suggestions started"
    units = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}
    name = next((name for name, unit in units.items() if longest >= 3 * unit), "seconds")
    return units.get(name, 1.0), name


def time_scale(clock: str, longest: float, what: str = "Time") -> tuple[float, str]:
    """Return the unit of a time axis up to `longest`, in units of the clock, and the label of the axis."""
    unit, name = time_unit(clock, longest)
    return unit, f"{what} ({name})"


def spans_of(search: Reading, clock: str, what: str) -> list[tuple[Trial, float, float]]:
    """Return each trial with its start and its end, ordered by start; trials whose times are unknown are left out.

    Times are in suggestions started, or in seconds since the first trial. The end of a pending trial is the current
    time. An error is raised if `search` cannot be drawn by `what`, or if the clock is unknown or the search lacks it.
    """
    checked_search(search, what)
    if clock not in ("seconds", "iterations") or (clock == "iterations" and search.clock == "seconds"):
        raise InvalidSetting(
            f"clock={short_repr(clock)} is not usable: pass 'seconds', or 'iterations' for a search that counts them"
        )
    time = search._source._problem.wall_time()
    now = time if clock == "seconds" else search._source._current_log().now(time)
    spans = []
    for trial in search.trials:
        record = trial._record
        start: float | None = record.started_at if clock == "seconds" else record.suggested_at
        end = record.finished_at if clock == "seconds" else record.ended_at
        if record.state == "pending":
            end = now
        if start is not None and end is not None:
            spans.append((trial, start, end))
    first = min((start for _, start, _ in spans), default=0.0) if clock == "seconds" else 0.0
    spans.sort(key=lambda span: (span[1], span[0].number))
    return [(trial, start - first, end - first) for trial, start, end in spans]


def shown_time(search: Reading, clock: str, what: str) -> tuple[list[tuple[Trial, float, float]], float, float, str]:
    """Return the spans of trials (`spans_of`), the end of the time axis, its unit and its label.

    If the current time is more than three times the time of the last start or end of a trial, the axis ends shortly
    after this last event, and its label has the current time.
    """
    spans = spans_of(search, clock, what)
    now = max((end for _, _, end in spans), default=0.0)
    last = max((start if trial.state == "pending" else end for trial, start, end in spans), default=0.0)
    end = 1.1 * last if 0 < 3 * last < now else now
    unit, label = time_scale(clock, end)
    if end < now:
        own_unit, name = time_unit(clock, now)
        label += f"; the current time is {now / own_unit:.3g} {name}"
    return spans, end, unit, label


def grid(n_rows: int, n_columns: int) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its axes, row by row. The figure does not use pyplot or a display."""
    from matplotlib import figure as figures

    width, height = (side / 25.4 for side in MILLIMETRES_PER_PANEL)
    figure = figures.Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
    return figure, list(figure.subplots(n_rows, n_columns, squeeze=False).flat)


def save(drawn: Axes | Figure | NDArray[np.object_], path: str | Path) -> None:
    """Write a figure (or the figure of given axes) to a file; the file's suffix determines the format.

    `drawn` is a figure, or the axes or the array of axes that a plot returned.
    """
    # The empty axes of `plot_contour` do not belong to a figure.
    figure: Any = next(each.figure for each in np.ravel(np.asarray(drawn, dtype=object)) if each.figure is not None)
    figure.savefig(path, dpi=150)
