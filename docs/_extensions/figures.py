"""The figures of the page of benchmarks, drawn from the tables of other pages and from benchmarks/data/."""

import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1]
DATA = DOCS.parent / "benchmarks" / "data"
# The colours of Okabe and Ito (2008), which colour-blind readers can distinguish.
COLOURS = {
    "belated": "#0072B2",
    "BoTorch": "#D55E00",
    "Optuna GPSampler": "#009E73",
    "Optuna TPE": "#CC79A7",
    "random": "#777777",
}
LABELS = {"belated": "belated", "optuna-gp": "Optuna GPSampler", "optuna-tpe": "Optuna TPE", "random": "random"}
plt.rcParams.update({"figure.dpi": 110, "savefig.bbox": "tight", "axes.spines.top": False, "axes.spines.right": False})


def table(page: str, first: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the first table on a page whose header begins with the cell `first`."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    starts = [i for i, row in enumerate(rows) if row[0].startswith(first)]
    if not starts:
        raise ValueError(f"{page} does not contain a table whose first cell begins with {first!r}")
    start = starts[0]
    body = []
    for row in rows[start + 2 :]:
        if len(row) != len(rows[start]) or row[0] == first:
            break
        body.append(row)
    return rows[start], body


def number(text: str) -> tuple[float, float]:
    """Return the number of a cell and its standard error, which are NaN if the cell does not have them."""
    if text == "–":
        return np.nan, np.nan
    found = [float(part) for part in re.findall(r"-?\d+\.?\d*", text.replace("−", "-"))]
    return found[0], found[1] if "±" in text else np.nan


def problems() -> Figure:
    """Draw the scores on the problems that were held out, from the page of comparisons."""
    _, rows = table("compared.md", "problem")
    figure, ax = plt.subplots(figsize=(8, 4.8))
    for column, (name, colour) in enumerate(COLOURS.items(), 1):
        cells = [number(row[column]) for row in rows]
        y = np.arange(len(rows))[::-1] + 0.12 * (3 - column)
        x, error = np.transpose(cells)
        ax.errorbar(x, y, xerr=error, fmt="o", color=colour, label=name, markersize=5)
    ax.set_yticks(np.arange(len(rows))[::-1], [row[0] for row in rows])
    ax.set_xlabel("mean log10 regret (lower is better)")
    ax.grid(axis="x", alpha=0.3)
    ax.legend(loc="upper center", bbox_to_anchor=(0.2, -0.14), ncols=3, frameon=False)
    return figure


def tables() -> Figure:
    """Draw the regret of each optimizer against completed evaluations, as means over the tables of two groups."""
    curves = defaultdict(list)
    for file in ("tables_belated", "tables_peers"):
        for line in gzip.decompress((DATA / f"{file}.jsonl.gz").read_bytes()).splitlines():
            record = json.loads(line)
            curves[record["optimizer"], record["setting"]].append(np.log10(np.maximum(record["regret"], 1e-3)))
    settings = {setting for _, setting in curves}
    ours = {name for name in settings if (DATA / f"{name}.npz").exists()}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    groups = {"networks": settings - ours, "estimators of scikit-learn": ours}
    for ax, (title, group) in zip(axes, groups.items(), strict=True):
        for optimizer, label in LABELS.items():
            runs = [np.array(curves[optimizer, setting]) for setting in sorted(group)]
            mean = np.mean([each.mean(axis=0) for each in runs], axis=0)
            error = np.sqrt(sum(each.var(axis=0, ddof=1) / len(each) for each in runs)) / len(runs)
            x = np.arange(1, len(mean) + 1)
            ax.plot(x, 10**mean, color=COLOURS[label], label=label)
            band = 10 ** (mean - 2 * error), 10 ** (mean + 2 * error)
            ax.fill_between(x, *band, color=COLOURS[label], alpha=0.15, lw=0)
        ax.set(title=f"{len(group)} tables of {title}", xlabel="completed evaluations", yscale="log")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("relative regret")
    axes[0].legend(frameon=False)
    return figure


def times() -> Figure:
    """Draw the computing time of a suggestion, from the page of computing times."""
    header, rows = table("prices.md", "observations")
    columns = {
        "belated, later": ("warm", "belated", 0.5),
        "belated, first": ("cold", "belated", 1.0),
        "Optuna GPSampler": ("Optuna GPSampler", "Optuna GPSampler", 1.0),
        "BoTorch": ("BoTorch", "BoTorch", 1.0),
    }
    figure, ax = plt.subplots(figsize=(8, 2.9))
    for k, (label, (column, colour, alpha)) in enumerate(columns.items()):
        values = [number(row[header.index(column)])[0] for row in rows]
        y = np.arange(len(rows))[::-1] + 0.2 * (1.5 - k)
        bars = ax.barh(y, values, height=0.18, color=COLOURS[colour], alpha=alpha, label=label)
        ax.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=8)
    ax.set_yticks(np.arange(len(rows))[::-1], [f"{row[0]} observations" for row in rows])
    ax.set(xscale="log", xlim=(1, 30000), xlabel="milliseconds for a suggestion")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, frameon=False)
    return figure
