"""What all replays share: options, seeds, runs spread over processes, means with standard errors, tables and files."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated._core import BelatedError

Array = NDArray[np.float64]

#: The extras that bring libraries which "experiments" does not.
EXTRAS = {"matplotlib": "plot"}

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}


def seed_of(seed: int, *keys: int | str) -> int:
    """A seed for one purpose of one run: the same in every process, whatever ran before."""
    words = [key if isinstance(key, int) else zlib.crc32(key.encode()) for key in keys]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0])


def spread(work: Callable[[Any], Any], tasks: Sequence[Any], n_workers: int | None, label: str) -> list[Any]:
    """Results of ``work`` on every task, in the order of the tasks, with a progress bar.

    Each task carries its own seeds, so that the number of processes changes nothing but the time.

    Parameters
    ----------
    work : callable
        A module-level function of one picklable task.
    n_workers : int, optional
        Processes; by default one per processor. 0 works in this process.
    label : str
        Written in front of the progress bar.
    """
    from tqdm.auto import tqdm

    if n_workers == 0:
        return [work(task) for task in tqdm(tasks, desc=label, unit="run")]
    n_workers = min(n_workers or os.cpu_count() or 1, len(tasks))
    not_ours = set(multiprocessing.active_children())
    with (
        _environment(ONE_THREAD),
        ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"), initializer=_begin_worker) as pool,
        tqdm(total=len(tasks), desc=label, unit="run") as bar,
    ):
        futures: list[Future[Any]] = [pool.submit(work, task) for task in tasks]
        try:
            for future in as_completed(futures):
                future.result()
                bar.update()
        except BaseException:
            # Ctrl-C, or a run that failed: do not wait for what is still running.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - not_ours:
                process.terminate()
            raise
        return [future.result() for future in futures]


def mean_stderr(runs: ArrayLike) -> tuple[Array, Array]:
    """Mean over the first axis and its standard error, with the biased standard deviation (ddof 0) as published."""
    runs = np.asarray(runs, dtype=float)
    return runs.mean(axis=0), runs.std(axis=0) / math.sqrt(len(runs))


def pm(mean: float, stderr: float, digits: int = 2) -> str:
    """Mean ± standard error."""
    return f"{mean:.{digits}f} ± {stderr:.{digits}f}"


def seconds(setting: dict[str, Any]) -> str:
    """The cell of seconds per suggestion."""
    return f"{setting['seconds_per_suggestion']:.4f}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain-text table: the first column left-aligned, the others right-aligned."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    layout = "  ".join([f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])])
    lines = [layout.format(*line).rstrip() for line in rows]
    return "\n".join([layout.format(*header), "-" * len(layout.format(*header)), *lines])


def carry_out(module: ModuleType, options: Options) -> dict[str, Any]:
    """Run a replay, print its table, and write the files that were asked for."""
    require(*module.NEEDS, "tqdm", *(["matplotlib"] if options.plot else []))
    for path in (options.json, options.plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise MissingData(f"cannot write {path}: there is no folder {path.absolute().parent}")
    report: dict[str, Any] = module.run(options)
    print(module.table(report))
    if options.json is not None:
        options.json.write_text(json.dumps(_jsonable(report), allow_nan=False, indent=1) + "\n", encoding="utf-8")
        print(f"Numbers: {options.json}")
    if options.plot is not None:
        module.draw(report, options.plot)
        print(f"Figure: {options.plot}")
    return report


def require(*libraries: str) -> None:
    """Raise `MissingExtra` unless all these libraries are installed."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        extras = ",".join(sorted({EXTRAS.get(library, "experiments") for library in missing}))
        raise MissingExtra(f"this needs {', '.join(missing)}: pip install 'belated[{extras}]'")


def about(options: Options, n_runs: int) -> dict[str, Any]:
    """What a report says about the command that made it."""
    import belated._core

    return {"belated": belated._core.__version__, "runs": n_runs, "seed": options.seed, "faithful": options.faithful}


def _jsonable(value: Any) -> Any:
    """Plain lists, dicts and numbers; NaN and infinities, which JSON lacks, become null."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started inside; libraries read them once, when loaded."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, which ends its workers; and end with the parent if that dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class MissingExtra(BelatedError, ImportError):
    """A library of the ``experiments`` extra that is not installed."""


class MissingData(BelatedError, FileNotFoundError):
    """A data file that a replay needs, or a folder to write to, that is not there."""


@dataclass(frozen=True)
class Options:
    """What the command line says: None means the replay's default."""

    runs: int | None = None
    seed: int = 0
    data: Path | None = None
    json: Path | None = None
    plot: Path | None = None
    faithful: bool = False
    iterations: int | None = None
    workers: int | None = None
