"""Verma et al. 2022, Figure 2 (e)-(h): a convolutional network on MNIST, six algorithms, late results.

The network of the paper (appendix C.2) has one convolutional layer (8 channels, kernels of size 3), max-pooling of size
3, and one dense layer of 8 nodes with ReLU. It is trained with Adam. The batch size in [128, 512] and the learning rate
and its decay in [1e-6, 1] are tuned. The paper does not state the other settings, so the figures need not agree. Here
there are 2 epochs, and the rate of epoch e is lr / (1 + decay·e). The learning rate and the decay have log scales; the
batch size has a linear scale. The 8 nodes are followed by a linear layer with a score for each of the ten digits.
Pixels are between 0 and 1. Initial weights and shuffling are the same for all trials of a run.

The digits are MNIST's usual 60,000 and 10,000 from torchvision. If a download is impossible, `--data` names a folder
with MNIST's files. If the folder has only the 10,000 test digits, 70 % of them are used for training.

``--keep DIR`` keeps each finished run, so that a stopped replay can continue. All settings make their first run before
the second runs begin.
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from belated.experiments import training
from belated.experiments.images import N_CLASSES, mnist
from belated.experiments.papers import verma
from belated.experiments.replays import lr
from belated.experiments.runner import Options, about, kept_map, seed_of

DEFAULT_RUNS = 10
NEEDS = ("torch",)
OPTIONS = ("keep",)
EPOCHS = 2
BATCH_SIZE = (128, 512)
CHANNELS = 8
KERNEL = 3
POOLING = 3
NODES = 8


def run(options: Options) -> dict[str, Any]:
    """All runs of the six algorithms under both delay settings."""
    digits, _, which = mnist(options.data)  # raises an error before any process starts if the data are missing
    n_runs = options.runs or DEFAULT_RUNS
    tasks = verma.tasks(options, n_runs, partial(lr.initial_points, batch_size=BATCH_SIZE))
    names = [name(task, options.seed, len(digits)) for task in tasks]
    by_run = dict(sorted(zip(names, tasks, strict=True), key=lambda named: named[1].run))
    function = partial(run_task, training_seed=options.seed)
    kept = kept_map(function, by_run, options.keep, options.workers, "cnn")
    # Converted to floats, because stored runs have null in place of the NaN before a first result.
    results = [verma.RunResult(np.array(kept[each]["error"], dtype=float), kept[each]["seconds"]) for each in names]
    return about(options, n_runs) | {"images": which, "settings": verma.summarise(results, n_runs)}


def name(task: verma.Task, seed: int, n_digits: int) -> str:
    """Return a name with all data that a result depends on. The number of training digits identifies the data."""
    parts = (task.algorithm, task.delays, f"n{n_digits}", f"T{len(task.delay) - verma.N_INITIAL}", f"seed{seed}")
    return "_".join([*parts, f"run{task.run}", *(["faithful"] if task.faithful else [])])


def table(report: dict[str, Any]) -> str:
    """Mean ± standard error of the best converted validation error."""
    return f"{report['images']}.\n\n{verma.tables(report['settings'])}"


def draw(report: dict[str, Any], path: Path) -> None:
    """Figure 2 (e)-(h)."""
    verma.draw(report["settings"], path)


def run_task(task: verma.Task, training_seed: int) -> dict[str, Any]:
    """One run of one algorithm."""
    seed = seed_of(training_seed, "training", task.run)
    result = verma.run_task(task, lr.space(BATCH_SIZE), lambda params: accuracy(task.data, seed, **params))
    return {"error": result.error, "seconds": result.seconds}


@lru_cache(maxsize=1024)
def accuracy(data: Path | None, seed: int, batch_size: int, learning_rate: float, decay: float) -> float:
    """Train with these hyperparameters and return the accuracy on the validation part. Each point is trained once."""
    training_part, validation, _ = mnist(data)
    with training.seeded(seed):
        made = network()
        training.train(
            made, training_part, epochs=EPOCHS, batch_size=batch_size, learning_rate=learning_rate, decay=decay
        )
        return training.accuracy(made, validation)


def network(side: int = 28) -> Any:
    """Return the network for square images of this many pixels a side, with one channel."""
    from torch import nn

    pooled = (side - KERNEL + 1) // POOLING
    return nn.Sequential(
        nn.Conv2d(1, CHANNELS, KERNEL),
        # ReLU and the maximum can be exchanged. Taking the maximum first is faster.
        nn.MaxPool2d(POOLING),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(CHANNELS * pooled**2, NODES),
        nn.ReLU(),
        nn.Linear(NODES, N_CLASSES),
    )
