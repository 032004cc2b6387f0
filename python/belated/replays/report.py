"""Reports of replays: means with standard errors, plain-text tables, panels of curves, and JSON."""

import gzip
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated import plotting

Array = NDArray[np.float64]
Report = dict[str, Any]
#: A panel of a figure: curves (label, mean, stderr), arguments of `plotting.plot_curves`, and dotted curves.
Panel = tuple[Sequence[tuple[str, ArrayLike, ArrayLike]], Mapping[str, Any], Sequence[ArrayLike]]


def mean_stderr(runs: ArrayLike) -> tuple[Array, Array]:
    """Return the mean over the first axis and the standard error of the mean (with ddof 0, as published)."""
    runs = np.asarray(runs, dtype=float)
    return runs.mean(axis=0), runs.std(axis=0) / math.sqrt(len(runs))


def values_of(results: Sequence[Mapping[str, Any]], key: str) -> Array:
    """Return an array with the entry `key` of each result; null in a stored result becomes NaN."""
    return np.array([result[key] for result in results], dtype=float)


def readings(duration: float, n: int) -> Array:
    """Return the times at which curves are read, from 0 to the end."""
    return np.linspace(0, duration, n + 1)


def find(settings: Sequence[Report], **entries: Any) -> Report:
    """Return the first setting of a report with these entries."""
    return next(each for each in settings if all(each[key] == value for key, value in entries.items()))


def plus_minus(mean: ArrayLike, stderr: ArrayLike, digits: int = 2) -> list[str]:
    """Return table cells that show means ± standard errors."""
    pairs = zip(np.atleast_1d(mean), np.atleast_1d(stderr), strict=True)
    return [f"{each:.{digits}f} ± {error:.{digits}f}" for each, error in pairs]


def quartiles(values: ArrayLike, digits: int = 3) -> str:
    """Return the table cell that shows the median and the quartiles."""
    low, median, high = np.percentile(np.asarray(values, dtype=float), [25, 50, 75])
    return f"{median:.{digits}g} ({low:.{digits}g} to {high:.{digits}g})"


def seconds(setting: Report) -> str:
    """Return the table cell that shows the seconds per suggestion."""
    return f"{setting['seconds_per_suggestion']:.4f}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain-text table. The first column is left-aligned, and the other columns are right-aligned."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    layout = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
    lines = [layout.format(*line).rstrip() for line in rows]
    return "\n".join([layout.format(*header), "-" * len(layout.format(*header)), *lines])


def panel(
    settings: Iterable[Report],
    labels: Iterable[str] = (),
    dotted: Sequence[ArrayLike] = (),
    among: Iterable[str] = (),
    **arguments: Any,
) -> Panel:
    """Return a panel with the mean curves of settings. By default, the labels are the names of the algorithms.

    If `among` is given, it contains the labels of several panels. A label then has the same style in these panels,
    because each label without a curve has a blank curve.
    """
    settings = list(settings)
    labels = list(labels) or [setting["algorithm"] for setting in settings]
    curves = {label: (label, s["curve_mean"], s["curve_stderr"]) for label, s in zip(labels, settings, strict=True)}
    blank = np.full(len(settings[0]["curve_mean"]), math.nan)
    # A label that begins with an underscore is left out of the legend.
    drawn = [curves.get(label, (f"_{label}", blank, blank)) for label in among or labels]
    return drawn, {"dashes": ["-"], **arguments}, dotted


def draw_panels(panels: Sequence[Panel], columns: int, below: int = 0) -> Any:
    """Return a figure of panels, row by row.

    If `below` is given, one legend with this number of columns is below the panels. Otherwise each panel has a legend.
    """
    figure, axes = plotting.grid(-(-len(panels) // columns), columns)
    for (curves, settings, dotted), ax in zip(panels, axes, strict=False):
        plotting.plot_curves([("_dotted", curve, 0.0) for curve in dotted], ax, dashes=[":"], bands=False)
        plotting.plot_curves(curves, ax, **settings)
        ax.title.set_fontsize("small")
        if dotted:
            ax.plot([], [], color="black", linestyle=":", label="Dotted: as published")
            ax.legend(fontsize="small")
    for ax in axes[len(panels) :]:
        ax.axis("off")
    if below:
        legend_below(figure, below)
    return figure


def legend_below(figure: Any, columns: int) -> None:
    """Replace the legends of the panels by one legend below the panels, which has the labels of all panels.

    The labels are in the order of the panel with the most labels. The figure grows by the height of the legend.
    """
    entries: dict[str, Any] = {}
    for ax in sorted(figure.axes, key=lambda ax: len(ax.get_legend_handles_labels()[1]), reverse=True):
        handles, labels = ax.get_legend_handles_labels()
        entries |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in entries}
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(entries) / columns) + 0.1)
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=columns, fontsize="small")


def read_json(data: Path | None, name: str) -> Any:
    """Return the content of a JSON file in the data folder; None if it is missing. Files ``….gz`` are decompressed."""
    if data is None or not (data / name).is_file():
        return None
    content = (data / name).read_bytes()
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def write_json(report: Report, path: Path) -> None:
    """Write all numbers of a report to a file. NaN and infinities become null, because they do not exist in JSON."""
    path.write_text(json.dumps(_jsonable(report), allow_nan=False, indent=1) + "\n", encoding="utf-8")


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
