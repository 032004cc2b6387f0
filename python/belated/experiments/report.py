"""Reports of replays: means with standard errors, plain-text tables, and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def mean_stderr(runs: ArrayLike) -> tuple[Array, Array]:
    """Return the mean over the first axis and its standard error (biased standard deviation, ddof 0, as published)."""
    runs = np.asarray(runs, dtype=float)
    return runs.mean(axis=0), runs.std(axis=0) / math.sqrt(len(runs))


def plus_minus(mean: float, stderr: float, digits: int = 2) -> str:
    """Return mean ± standard error as text."""
    return f"{mean:.{digits}f} ± {stderr:.{digits}f}"


def seconds(setting: dict[str, Any]) -> str:
    """Return the cell of seconds per suggestion."""
    return f"{setting['seconds_per_suggestion']:.4f}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain-text table, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    layout = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
    lines = [layout.format(*line).rstrip() for line in rows]
    return "\n".join([layout.format(*header), "-" * len(layout.format(*header)), *lines])


def write_json(report: dict[str, Any], path: Path) -> None:
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
