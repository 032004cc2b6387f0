"""Kandasamy et al. 2017, Figure 3: a convolutional network of six layers, trained by four workers in real time.

The network has five convolutional layers and a dense layer (appendix C.3). Skip connections lead from the first to the
third layer and from the third to the fifth layer. The skip connections are linear maps, because the numbers of filters
may differ. The number of filters of each convolutional layer and the number of nodes of the dense layer are tuned
within [16, 256]. A larger network takes longer to train, so results arrive out of order. All methods run for the same
time. In the paper, this time is 2 hours on four graphics cards. An evaluation trains for 20 epochs on 10,000 images,
computes the accuracy on 10,000 other images, and takes 4 to 16 minutes. At the end, the best network of each method is
trained four times as long, and its accuracy on test images is computed.

The paper does not state the other settings. Here kernels have size 3. Max-pooling has size 4 after the first layer and
size 2 after the third layer. After the fifth layer, max-pooling takes the maxima of a 2 × 2 grid. The activation is
ReLU. After the dense layer, a linear layer returns a score for each class. Training uses Adam with rate 1e-3 on batches
of 16. The 12 initial points are uniformly random, and are the same for all methods of a run.

By default, an evaluation trains for 2 epochs on 1,000 images, and each method runs for 2 minutes. On a processor, an
evaluation then takes about as many seconds as it took minutes in the paper. `--faithful` uses the paper's numbers.
CIFAR-10's binary files are read from `--data`. If these files are missing, MNIST's 10,000 test digits replace the
images, and the output says so.

``--keep DIR`` keeps each finished run, so that a stopped replay can continue. The first runs of all methods come before
any second run.
"""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

import belated as bl
from belated.plotting.figures import DASHES
from belated.replays import report, training
from belated.replays.images import N_CLASSES, cifar_or_digits
from belated.replays.report import Report
from belated.replays.runner import Options, Replay, process_pool, run_all, seed_of

Train = Callable[..., float]
Params = dict[str, Any]

ALGORITHMS = ("synBUCB", "synTS", "asyRAND", "asyEI", "asyHUCB", "asyTS")
N_WORKERS = 4
N_INITIAL = 12
FILTERS = (16, 256)
LAYERS = ("filters_1", "filters_2", "filters_3", "filters_4", "filters_5", "nodes")
LEARNING_RATE = 1e-3
BATCH_SIZE = 16
LONGER = 4  # before its test, the best network is trained this number of times as long
N_TIMES = 61  # number of points of a curve


@dataclass(frozen=True)
class Scale:
    """The amount of training of a network, and the time for which a method searches.

    Attributes
    ----------
    images : (int, int, int)
        Numbers of images for training, validation and testing.
    epochs : int
    seconds : float
        The time of one run of one method.
    """

    images: tuple[int, int, int]
    epochs: int
    seconds: float


SMALL = Scale((1_000, 1_000, 1_000), 2, 120.0)
FAITHFUL = Scale((10_000, 10_000, 10_000), 20, 7200.0)


@dataclass
class Search:
    """One run of one method: values in order of arrival, their times in seconds since the start, and final results."""

    started: float
    arrivals: list[float]
    values: list[float]
    durations: list[float]
    test: float = np.nan

    def take(self, _: Any, trial: bl.Trial) -> None:
        """Record a trial that has just been observed, as a callback of a run."""
        if trial.value is not None:
            self.arrivals.append(monotonic() - self.started)
            self.values.append(trial.value)
            self.durations.append(trial.duration or np.nan)

    def result(self) -> dict[str, Any]:
        """Return the data of the search that a stored result contains."""
        return {name: value for name, value in vars(self).items() if name != "started"}

    @classmethod
    def from_result(cls, result: dict[str, Any]) -> "Search":
        """Make a search from a stored result, in which null stands for NaN. The clock of the search starts at 0."""
        return cls(0.0, **{name: np.array(value, dtype=float).tolist() for name, value in result.items()})


def make(options: Options) -> Report:
    """Run the six methods one after another, so that each method has all workers."""
    scale = FAITHFUL if options.faithful else SMALL
    training_part, *_, which = cifar_or_digits(options.data, scale.images)  # raises an error before any process starts
    n_workers = N_WORKERS if options.workers is None else options.workers
    # The name of a stored result contains the data, the number of workers and the seconds of a search.
    images = f"{'cifar' if which.startswith('CIFAR') else 'digits'}{len(training_part)}"
    data = [images, f"workers{n_workers}", f"{scale.seconds:g}s"]
    settings = [(algorithm,) for algorithm in ALGORITHMS]
    # Make these runs in this process, because each run uses all workers.
    function = partial(run_task, scale=scale, n_workers=n_workers)
    kept = run_all(function, settings, replace(options, workers=0), "cifar", data)
    searches = {algorithm: [Search.from_result(each) for each in results] for (algorithm,), results in kept.items()}
    seconds = scale.seconds
    if options.iterations:
        seconds = max(found.arrivals[-1] for runs in searches.values() for found in runs)
    times = np.linspace(0.0, seconds, N_TIMES)
    described = [summarise(algorithm, runs, times) for algorithm, runs in searches.items()]
    return {"images": which, "workers": n_workers, "times": times, "settings": described}


def run_task(setting: tuple[str], run: int, options: Options, scale: Scale, n_workers: int) -> dict[str, Any]:
    """Run one method once, and test the best network of the run."""
    (algorithm,) = setting
    # All initial points are enqueued.
    settings: dict[str, Any] = {} if algorithm.endswith("RAND") else {"initial__n": 0}
    optimizer = bl.algorithm(algorithm, space(), seed=seed_of(options.seed, "optimizer", algorithm, run), **settings)
    for point in initial_points(np.random.default_rng(seed_of(options.seed, "initial", run))):
        optimizer.enqueue(point)
    train = partial(evaluate, data=options.data, scale=scale, seed=seed_of(options.seed, "training", run))
    n_trials = N_INITIAL + options.iterations if options.iterations else None
    batch = max(1, n_workers) if algorithm.startswith("syn") else None
    if n_workers == 0:
        return search(optimizer, train, None, batch, scale.seconds, n_trials).result()
    with process_pool(n_workers) as pool:
        # Each process loads torch and the images before the clock starts.
        list(pool.map(partial(prepare, options.data), [scale] * n_workers))
        return search(optimizer, train, pool, batch, scale.seconds, n_trials).result()


def search(
    optimizer: Any, train: Train, pool: Executor | None, batch: int | None, seconds: float, n_trials: int | None
) -> Search:
    """Evaluate the optimizer's suggestions until the time is over, or until there are `n_trials` trials.

    Parameters
    ----------
    batch : int, optional
        The number of trials that start at the same time, when all workers are free. None: one trial whenever a worker
        is free.
    n_trials : int, optional
        The number of trials. If this number is given, the time is not limited.
    """
    found = Search(monotonic(), [], [], [])
    end = found.started + seconds
    while (monotonic() < end) if n_trials is None else (optimizer.n_trials < n_trials):
        with warnings.catch_warnings():
            # Evaluations are still running when a run ends by its timeout, so the warning about running evaluations is
            # ignored.
            warnings.filterwarnings("ignore", message=".*at the timeout", category=bl.BelatedWarning)
            # A timeout must be positive, and the time may have ended since the loop checked it.
            timeout = None if n_trials is not None else max(end - monotonic(), 1e-3)
            ends: dict[str, Any] = {"n_trials": batch, "n_trials_total": n_trials, "timeout": timeout}
            bl.maximize(train, optimizer=optimizer, executor=pool, callbacks=[found.take], progress=False, **ends)
    if found.values:
        test, params = partial(train, longer=LONGER), optimizer.best_params_
        found.test = test(params) if pool is None else pool.submit(test, params).result()
    return found


def table(found: Report) -> str:
    """Return a table of the best network's accuracy at the end and after longer training, and of evaluation counts."""
    header = ["method", "evaluations", "seconds each", "validation %", "test %"]
    rows = []
    for s in found["settings"]:
        spans = [_span(s["evaluations"], 0), _span(s["seconds_per_evaluation"], 1)]
        # A cell is empty if a run ended before its first evaluation.
        pairs = [(s[f"{part}_mean"], s[f"{part}_stderr"]) for part in ("validation", "test")]
        rows.append([s["algorithm"], *spans, *("" if np.isnan(p[0]) else report.plus_minus(*p)[0] for p in pairs)])
    end = f"{found['times'][-1]:.0f} seconds of {found['workers'] or 1} workers, {found['runs']} runs"
    return f"{found['images']}.\n\n{end}:\n{report.format_table(header, rows)}"


def _span(numbers: list[float], digits: int) -> str:
    return f"{min(numbers):.{digits}f} - {max(numbers):.{digits}f}" if numbers else ""


def figure(found: Report) -> Any:
    """Return Figure 3, left: the best validation accuracy against time."""
    labels: dict[str, Any] = {"xlabel": "Time (s)", "ylabel": "Validation accuracy (%)", "dashes": DASHES}
    return report.draw_panels([report.panel(found["settings"], x=found["times"], **labels)], columns=1)


def summarise(algorithm: str, runs: Sequence[Search], times: np.ndarray) -> Report:
    """Return the entries of a method in the table and the figure; accuracies in %."""
    curves = []
    for found in runs:
        best = np.concatenate([[np.nan], np.maximum.accumulate(100 * np.array(found.values))])
        curves.append(best[np.searchsorted(found.arrivals, times, side="right")])
    mean, stderr = report.mean_stderr(curves)
    test_mean, test_stderr = report.mean_stderr([100 * found.test for found in runs])
    described = {"algorithm": algorithm, "validation_mean": mean[-1], "validation_stderr": stderr[-1]}
    described |= {"test_mean": test_mean, "test_stderr": test_stderr, "curve_mean": mean, "curve_stderr": stderr}
    return described | {
        "evaluations": [len(found.values) for found in runs],
        "seconds_per_evaluation": [seconds for found in runs for seconds in found.durations],
        "accuracy_per_run": [found.values for found in runs],
        "arrival_per_run": [found.arrivals for found in runs],
    }


def space() -> dict[str, Any]:
    """Return the space: the number of filters of each layer, and the number of nodes of the dense layer."""
    return {layer: bl.Integer(*FILTERS) for layer in LAYERS}


def initial_points(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return points drawn uniformly from the space."""
    drawn = rng.integers(FILTERS[0], FILTERS[1] + 1, (N_INITIAL, len(LAYERS)))
    return [dict(zip(LAYERS, map(int, row), strict=True)) for row in drawn]


def prepare(data: Path | None, scale: Scale) -> None:
    """Load in this process the modules and images that an evaluation needs."""
    import torch  # noqa: F401

    cifar_or_digits(data, scale.images)


def evaluate(
    params: Params, trial: bl.RunningTrial | None = None, *, data: Path | None, scale: Scale, seed: int, longer: int = 1
) -> float:
    """Train a network and return its validation accuracy; if `longer` is above 1, return its test accuracy.

    Weights and shuffling differ from trial to trial, so the values are noisy, as in the paper.
    """
    images, validation, test, _ = cifar_or_digits(data, scale.images)
    with training.seeded(seed_of(seed, 0 if trial is None else 1 + trial.number)):
        made = network([params[layer] for layer in LAYERS], images.pixels.shape[1])
        training.train(made, images, epochs=longer * scale.epochs, batch_size=BATCH_SIZE, learning_rate=LEARNING_RATE)
        return training.accuracy(made, validation if longer == 1 else test)


def network(sizes: list[int], channels: int) -> Any:
    """The network with these numbers of filters, nodes and channels, for images of at least 8 × 8 pixels."""
    import torch
    from torch import nn

    *filters, nodes = sizes

    def convolution(n_in: int, n_out: int) -> Any:
        return nn.Conv2d(n_in, n_out, 3, padding=1)

    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(map(convolution, [channels, *filters[:-1]], filters))
            # The skip connections are linear maps for each pixel.
            self.skips = nn.ModuleList([nn.Conv2d(filters[i], filters[i + 2], 1, bias=False) for i in (0, 2)])
            self.dense = nn.Linear(4 * filters[-1], nodes)
            self.scores = nn.Linear(nodes, N_CLASSES)

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(torch.relu(self.layers[0](x)), 4)
            pairs = (self.layers[1:3], self.layers[3:5])
            for (second, third), skip, pooling in zip(pairs, self.skips, (2, 1), strict=True):
                x = torch.relu(third(torch.relu(second(x))) + skip(x))
                x = nn.functional.max_pool2d(x, pooling)
            x = nn.functional.adaptive_max_pool2d(x, 2).flatten(1)
            return self.scores(torch.relu(self.dense(x)))

    return Network()


REPLAYS = [Replay("cifar", __doc__, make, table, figure, runs=3, needs=["torch"], options=["keep"])]
