"""All trials as a pandas DataFrame."""

from collections.abc import Sequence
from typing import Any

from belated._core import TrialRecord
from belated.optimizers.problem import Problem
from belated.optimizers.report import TrialError, merged_attrs
from belated.optimizers.trial import utc
from belated.space.space import Space


def run_prefix(space: Space) -> str:
    """Return the prefix of the columns for the points that were run.

    If the space has both ``x`` and ``run_x``, the column of the parameter ``run_x`` is ``params_run_x``. Underscores
    are therefore added to the prefix until all columns have different names.
    """
    prefix = "run_"
    while any(f"{prefix}{name}" in space for name in space):
        prefix += "_"
    return f"params_{prefix}"


def trials_dataframe(problem: Problem, records: Sequence[TrialRecord]) -> Any:
    """Return the trials as a DataFrame, for `Optimizer.trials_dataframe`."""
    try:
        import pandas
    except ImportError:
        raise ImportError("trials_dataframe needs pandas: pip install pandas") from None
    columns: dict[str, list[Any]] = {
        "number": [record.number for record in records],
        "state": [record.state for record in records],
        "value": [record.value for record in records],
        "std": [record.std for record in records],
        "cost": [record.cost for record in records],
        "duration": [record.duration for record in records],
        "suggested_at": [record.suggested_at for record in records],
        "observed_at": [record.observed_at for record in records],
        "delay": [
            None if record.observed_at is None else record.observed_at - record.suggested_at for record in records
        ],
        "started_at": [utc(record.started_at) for record in records],
        "finished_at": [utc(record.finished_at) for record in records],
        "error": [None if record.error is None else str(TrialError(*record.error)) for record in records],
    }
    if problem.fidelity is not None:
        columns["fidelity"] = [problem.fidelity_of(record.fidelity) for record in records]
    runs = [record.run for record in records]
    if isinstance(problem.domain, Space):
        params_at, names = problem.domain.params_at, list(problem.domain)
        points = [params_at(record.place) for record in records]
        columns |= {f"params_{name}": [point.get(name) for point in points] for name in names}
        if any(run is not None for run in runs):
            run_points = [{} if run is None else params_at(run) for run in runs]
            prefix = run_prefix(problem.domain)
            columns |= {f"{prefix}{name}": [point.get(name) for point in run_points] for name in names}
    else:
        columns["index"] = [record.place for record in records]
        if any(run is not None for run in runs):
            columns["index_run"] = runs
    contexts = problem.context_space
    if contexts is not None:
        decoded = [contexts.params_at(list(record.context)) for record in records]
        columns |= {f"context_{name}": [context[name] for context in decoded] for name in contexts}
    attrs = [merged_attrs(record.attrs) for record in records]
    keys = dict.fromkeys(key for each in attrs for key in each)
    columns |= {f"attrs_{key}": [each.get(key) for each in attrs] for key in keys}
    return pandas.DataFrame(columns)
