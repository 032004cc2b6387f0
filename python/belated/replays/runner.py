"""Running a replay: its options, its seeds, its runs in parallel processes, and the requested output."""

import json
import multiprocessing
import os
import signal
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any
from unittest.mock import patch

import numpy as np

from belated import plotting
from belated._core import BelatedError, InvalidSetting, __version__
from belated.replays.report import Report, write_json
from belated.run.processes import ctrl_c_blocked

#: Library → the extra that installs the library, unless this extra is "replays".
EXTRAS = {"matplotlib": "plot", "torch": "torch", "torchvision": "torch", "xgboost": "xgboost"}

# : Options that only some replays have, and name in `Replay.options`.
OWN_OPTIONS = ("given", "quick", "keep")

ONE_THREAD = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BELATED_NUM_THREADS")
}


Setting = tuple[Any, ...]
#: The result of a run, as JSON data.
Result = dict[str, Any]


class MissingExtra(BelatedError, ImportError):
    """A library that an extra installs is missing."""


class MissingData(BelatedError, FileNotFoundError):
    """A data file that a replay needs, or a folder to write to, does not exist."""


@dataclass(frozen=True)
class Options:
    """Options of the command line. If runs or iterations are 0, the replay's default is used instead."""

    runs: int = 0
    seed: int = 0
    data: Path | None = None
    json: Path | None = None
    plot: Path | None = None
    faithful: bool = False
    iterations: int = 0
    workers: int | None = None
    given: bool = False
    quick: bool = False
    keep: Path | None = None


@dataclass(frozen=True)
class Replay:
    """A replay of experiments of a paper.

    Attributes
    ----------
    name, text : str
        The name on the command line, and a text whose first line describes the replay.
    make : callable
        A function of the options that returns the report of the replay. In these options, the defaults of runs and
        iterations are filled in.
    table, figure : callable
        Return the table and the figure of a report.
    runs, iterations : int
        The defaults of the options ``--runs`` and ``--iterations``. Iterations are 0 if the replay does not count
        iterations.
    quick_runs, quick_iterations : int
        The defaults with ``--quick``, if they differ from `runs` and `iterations`.
    needs : sequence of str
        The libraries that the replay imports.
    options : sequence of str
        The options of this replay that not all replays have.
    """

    name: str
    text: str | None
    make: Callable[[Options], Report]
    table: Callable[[Report], str]
    figure: Callable[[Report], Any]
    runs: int
    iterations: int = 0
    quick_runs: int = 0
    quick_iterations: int = 0
    needs: Sequence[str] = ()
    options: Sequence[str] = ()

    @property
    def description(self) -> str:
        """The first line of the text."""
        return (self.text or "").partition("\n")[0].rstrip(".").replace("`", "")

    def run(self, options: Options) -> Report:
        """Return the report, which contains the results of the replay and the options that it used."""
        runs, iterations = self.runs, self.iterations
        if options.quick:
            runs, iterations = self.quick_runs or runs, self.quick_iterations or iterations
        filled = replace(options, runs=options.runs or runs, iterations=options.iterations or iterations)
        how = {"belated": __version__, "runs": filled.runs, "seed": filled.seed, "faithful": filled.faithful}
        return how | self.make(filled)

    def draw(self, report: Report, path: Path) -> None:
        """Draw the figure of a report into a file, with a title: the description and the number of runs."""
        figure, runs = self.figure(report), report["runs"]
        title = f"{self.description} ({runs}\N{NO-BREAK SPACE}{'run' if runs == 1 else 'runs'})"
        title = fill(title, int(12 * figure.get_figwidth()))  # the mean width of a letter is less than 1/12 inch
        figure.suptitle(title, fontsize="medium")
        figure.set_figheight(figure.get_figheight() + 0.17 * (title.count("\n") + 1))
        plotting.save(figure, path)


def execute(replay: Replay, options: Options) -> Report:
    """Run a replay, print its table, and write the requested files."""
    for option in OWN_OPTIONS:
        if getattr(options, option) and option not in replay.options:
            raise InvalidSetting(f"--{option} is not an option of the replay {replay.name}: leave it out")
    require(*replay.needs, "tqdm", *(["matplotlib"] if options.plot else []))
    for path in (options.json, options.plot):
        if path is not None and not path.absolute().parent.is_dir():
            raise MissingData(f"cannot write {path}: there is no folder {path.absolute().parent}")
    report = replay.run(options)
    print(replay.table(report))
    if options.json is not None:
        write_json(report, options.json)
        print(f"Numbers: {options.json}")
    if options.plot is not None:
        replay.draw(report, options.plot)
        print(f"Figure: {options.plot}")
    return report


def require(*libraries: str) -> None:
    """Raise `MissingExtra` unless all these libraries are installed."""
    missing = [library for library in libraries if find_spec(library) is None]
    if missing:
        extras = ",".join(sorted({EXTRAS.get(library, "replays") for library in missing}))
        packages = ["scikit-learn" if library == "sklearn" else library for library in missing]
        raise MissingExtra(f"this needs {', '.join(packages)}: pip install 'belated[{extras}]'")


def seed_of(seed: int, *keys: int | str) -> int:
    """Return a seed for one purpose in one run. The seed depends only on the arguments, and not on the process."""
    words = [key if isinstance(key, int) else zlib.crc32(key.encode()) for key in keys]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0])


def run_all(
    function: Callable[..., Result], settings: Iterable[Any], options: Options, label: str, data: Sequence[str] = ()
) -> dict[Any, list[Result]]:
    """Run all settings, and return a dict from each setting to the list of its results, one for each run.

    The first run of every setting comes before the second run of any setting. A stopped replay therefore has the
    results of a replay with fewer runs.

    Parameters
    ----------
    function : callable
        A picklable function of a setting, a run and the options. Its result is JSON data, and depends only on these
        arguments and on the data.
    settings : iterable of tuples
        The settings. The entries of a setting are parts of the name under which a result is stored.
    label : str
        Text in front of the progress bar.
    data : sequence of str
        Further parts of this name, which identify the data.
    """
    settings = list(dict.fromkeys(settings))
    tasks = [(setting, run) for run in range(options.runs) for setting in settings]
    named = {kept_name(*task, options, data): task for task in tasks}
    results = kept_map(partial(_call, function, options), named, options.keep, options.workers, label)
    found: dict[Any, list[Result]] = {setting: [] for setting in settings}
    for (setting, _), result in zip(tasks, results.values(), strict=True):
        found[setting].append(result)
    return found


def kept_name(setting: Setting, run: int, options: Options, data: Sequence[str] = ()) -> str:
    """Return a name that contains all data that the result of a run depends on."""
    parts = [*map(str, setting), *data, f"T{options.iterations}", f"seed{options.seed}", f"run{run}"]
    return "_".join([*parts, *(["faithful"] if options.faithful else [])]).replace(", ", "-")


def _call(function: Callable[..., Result], options: Options, task: tuple[Setting, int]) -> Result:
    return function(*task, options)


def kept_map(
    function: Callable[[Any], Result], tasks: Mapping[str, Any], folder: Path | None, n_workers: int | None, label: str
) -> dict[str, Result]:
    """Run tasks as `parallel_map` does, and store results in a folder, so that an interrupted replay can continue.

    Parameters
    ----------
    function : callable
        A module-level function of one task. The task can be pickled, and the result is JSON data.
    tasks : mapping
        Name → task. A result is stored under the name, which must contain all data that the result depends on.
    folder : Path, optional
        The folder in which results are stored. The folder is created if it does not exist. By default results are not
        stored.
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
    results = {}
    for name, file in files.items():
        try:
            results[name] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            problem = f"{file} does not contain a stored result ({error}): delete it to make it again"
            raise InvalidSetting(problem) from None
    return results


def _keep(task: tuple[Callable[[Any], Result], Any, Path]) -> None:
    """Write a result to its file, completely or not at all."""
    function, argument, file = task
    part = file.with_suffix(f".{os.getpid()}.part")
    write_json(function(argument), part)
    part.replace(file)


def parallel_map(function: Callable[[Any], Any], tasks: Sequence[Any], n_workers: int | None, label: str) -> list[Any]:
    """Return the results of ``function`` for every task, in the order of the tasks, with a progress bar.

    Each task contains its seeds, so the results do not depend on the number of processes.

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

    # Runs differ in length, so the time that remains is computed from the mean time of all runs.
    bar_settings: dict[str, Any] = {"desc": label, "unit": "run", "smoothing": 0}
    if n_workers == 0:
        return [function(task) for task in tqdm(tasks, **bar_settings)]
    n_workers = min(n_workers or os.cpu_count() or 1, len(tasks))
    with process_pool(n_workers) as pool, tqdm(total=len(tasks), **bar_settings) as bar:
        with ctrl_c_blocked():
            futures: list[Future[Any]] = [pool.submit(function, task) for task in tasks]
        for future in as_completed(futures):
            future.result()
            bar.update()
        return [future.result() for future in futures]


@contextmanager
def process_pool(n_workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start processes with one thread each.

    The ``with`` block ends when all tasks are done. If the block raises an exception, the processes are terminated.
    """
    others = set(multiprocessing.active_children())
    with (
        # Libraries in the new processes read these environment variables when they are loaded.
        patch.dict(os.environ, ONE_THREAD),
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


def _begin_worker() -> None:
    """Prepare a worker: ignore Ctrl-C, after which the parent ends its workers; end if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
