"""Running replays: options, seeds, runs in parallel processes, and the requested output."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from belated._core import BelatedError, InvalidSetting, __version__
from belated.experiments.report import write_json

#: Library → the extra that installs it, if it is not "experiments".
EXTRAS = {"matplotlib": "plot", "torch": "torch", "torchvision": "torch", "xgboost": "xgboost"}

#: Options of only some replays. These replays name the options in their ``OPTIONS``.
OWN_OPTIONS = ("given", "quick", "keep")

ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}


class MissingExtra(BelatedError, ImportError):
    """A library of an extra is not installed."""


class MissingData(BelatedError, FileNotFoundError):
    """A data file that a replay needs, or a folder to write to, does not exist."""


@dataclass(frozen=True)
class Options:
    """Options of the command line; None means the default of the replay."""

    runs: int | None = None
    seed: int = 0
    data: Path | None = None
    json: Path | None = None
    plot: Path | None = None
    faithful: bool = False
    iterations: int | None = None
    workers: int | None = None
    given: bool = False
    quick: bool = False
    keep: Path | None = None


def execute(module: ModuleType, options: Options) -> dict[str, Any]:
    """Run a replay, print its table, and write the requested files."""
    for option in OWN_OPTIONS:
        if getattr(options, option) and option not in getattr(module, "OPTIONS", ()):
            name = module.__name__.rpartition(".")[2].replace("_", "-")
            raise InvalidSetting(f"--{option} is not an option of the replay {name}: leave it out")
    require(*module.NEEDS, "tqdm", *(["matplotlib"] if options.plot else []))
    for path in (options.json, options.plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise MissingData(f"cannot write {path}: there is no folder {path.absolute().parent}")
    report: dict[str, Any] = module.run(options)
    print(module.table(report))
    if options.json is not None:
        write_json(report, options.json)
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
    """Return the part of a report that describes how it was made."""
    return {"belated": __version__, "runs": n_runs, "seed": options.seed, "faithful": options.faithful}


def seed_of(seed: int, *keys: int | str) -> int:
    """Return a seed for one purpose of one run. It depends only on the arguments and is the same in every process."""
    words = [key if isinstance(key, int) else zlib.crc32(key.encode()) for key in keys]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0])


def kept_map(
    function: Callable[[Any], dict[str, Any]],
    tasks: Mapping[str, Any],
    folder: Path | None,
    n_workers: int | None,
    label: str,
) -> dict[str, dict[str, Any]]:
    """Run tasks as `parallel_map` does, and keep results in a folder, so that an interrupted replay can continue.

    Parameters
    ----------
    function : callable
        A module-level function of one picklable task, whose result is JSON data.
    tasks : mapping
        Name → task. A result is stored under the name, which must contain all data that the result depends on.
    folder : Path, optional
        The folder of the results, which is created if it does not exist. By default the results are not kept.
    n_workers, label
        As for `parallel_map`.

    Raises
    ------
    InvalidSetting
        A file in the folder is damaged.
    """
    if folder is None:
        return dict(zip(tasks, parallel_map(function, list(tasks.values()), n_workers, label), strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.json" for name in tasks}
    missing = [(function, task, files[name]) for name, task in tasks.items() if not files[name].exists()]
    if missing:
        parallel_map(_keep, missing, n_workers, label)
    return {name: _kept(file) for name, file in files.items()}


def _kept(file: Path) -> dict[str, Any]:
    """Return a result from its file."""
    try:
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidSetting(f"{file} does not contain a stored result ({error}): delete it to make it again") from None
    return result


def _keep(task: tuple[Callable[[Any], dict[str, Any]], Any, Path]) -> None:
    """Write a result to its file, completely or not at all."""
    function, argument, file = task
    part = file.with_suffix(f".{os.getpid()}.part")
    write_json(function(argument), part)
    part.replace(file)


def parallel_map(function: Callable[[Any], Any], tasks: Sequence[Any], n_workers: int | None, label: str) -> list[Any]:
    """Return the results of ``function`` for every task, in the order of the tasks, with a progress bar.

    Each task carries its own seeds, so that the number of processes does not change the results.

    Parameters
    ----------
    function : callable
        A module-level function of one picklable task.
    n_workers : int, optional
        Number of processes, by default the number of processors. 0 calls the function in this process.
    label : str
        Text in front of the progress bar.
    """
    from tqdm.auto import tqdm

    if n_workers == 0:
        return [function(task) for task in tqdm(tasks, desc=label, unit="run")]
    n_workers = min(n_workers or os.cpu_count() or 1, len(tasks))
    with process_pool(n_workers) as pool, tqdm(total=len(tasks), desc=label, unit="run") as bar:
        futures: list[Future[Any]] = [pool.submit(function, task) for task in tasks]
        for future in as_completed(futures):
            future.result()
            bar.update()
        return [future.result() for future in futures]


@contextmanager
def process_pool(n_workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes with one thread each.

    At its end, the ``with`` block waits until all tasks are done. If the block raises an exception, the processes are
    terminated.
    """
    others = set(multiprocessing.active_children())
    with (
        _environment(ONE_THREAD),
        ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"), initializer=_begin_worker) as pool,
    ):
        try:
            yield pool
        except BaseException:
            # After Ctrl-C or a failed run, do not wait for the runs in progress.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
            raise


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes started in the ``with``; libraries read them when they are loaded."""
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
    """Ignore Ctrl-C, because the parent then ends its workers. End if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
