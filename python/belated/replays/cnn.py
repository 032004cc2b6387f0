"""Verma et al. 2022, Figure 2 (e)-(h): a convolutional network on MNIST, six algorithms, late results.

The network of the paper (appendix C.2) has one convolutional layer (8 channels, kernels of size 3), max-pooling of size
3, and one dense layer of 8 nodes with ReLU. It is trained with Adam. Three parameters are tuned: the batch size in
[128, 512], the learning rate in [1e-6, 1], and the decay of the learning rate in [1e-6, 1]. The paper does not state
the other settings, so our results may differ from the paper's. Here training takes 2 epochs, and the learning rate in
epoch e is lr / (1 + decay·e). The learning rate and the decay have log scales; the batch size has a linear scale. After
the 8 nodes, a linear layer returns a score for each of the ten digits. Pixels are between 0 and 1. Initial weights and
shuffling are the same for all trials of a run.

The digits are MNIST's usual 60,000 training digits and 10,000 test digits from torchvision. If torchvision cannot
download the digits, `--data` names a folder with MNIST's files. If the folder has only the 10,000 test digits, 70 % of
them are used for training.

``--keep DIR`` keeps each finished run, so that a stopped replay can continue. The first runs of all settings come
before any second run.
"""

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from belated.replays import lr, training, verma
from belated.replays.images import N_CLASSES, mnist
from belated.replays.report import Report
from belated.replays.runner import Options, Replay, run_all, seed_of

EPOCHS = 2
BATCH_SIZE = (128, 512)
CHANNELS = 8
KERNEL = 3
POOLING = 3
NODES = 8


def make(options: Options) -> Report:
    """All runs of the six algorithms under both delay settings."""
    digits, _, which = mnist(options.data)  # raises an error before any process starts if the data are missing
    # The name of a stored result contains the number of training digits, which identifies the data.
    results = run_all(run_task, verma.SETTINGS, options, "cnn", [f"n{len(digits)}"])
    return {"images": which, "settings": verma.summarise(results)}


def table(report: Report) -> str:
    """Return a table of the mean ± standard error of the best converted validation error."""
    return f"{report['images']}.\n\n{verma.table(report)}"


def run_task(setting: tuple[str, str], run: int, options: Options) -> dict[str, Any]:
    """One run of one algorithm."""
    started = verma.start(setting, run, options, partial(lr.initial_points, batch_size=BATCH_SIZE))
    seed = seed_of(options.seed, "training", run)
    space = lr.space(BATCH_SIZE)
    return verma.run_task(setting, run, options, started, space, lambda each: accuracy(options.data, seed, **each))


@lru_cache(maxsize=1024)
def accuracy(data: Path | None, seed: int, batch_size: int, learning_rate: float, decay: float) -> float:
    """Train with these hyperparameters and return the validation accuracy. Results are cached."""
    training_part, validation, _ = mnist(data)
    with training.seeded(seed):
        made = network()
        training.train(
            made, training_part, epochs=EPOCHS, batch_size=batch_size, learning_rate=learning_rate, decay=decay
        )
        return training.accuracy(made, validation)


def network(side: int = 28) -> Any:
    """Return the network for square images with one channel and this number of pixels per side."""
    from torch import nn

    pooled = (side - KERNEL + 1) // POOLING
    return nn.Sequential(
        nn.Conv2d(1, CHANNELS, KERNEL),
        # ReLU is applied after max-pooling, which is faster than before max-pooling and gives the same result.
        nn.MaxPool2d(POOLING),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(CHANNELS * pooled**2, NODES),
        nn.ReLU(),
        nn.Linear(NODES, N_CLASSES),
    )


REPLAYS = [Replay("cnn", __doc__, make, table, verma.figure, 10, verma.ITERATIONS, needs=["torch"], options=["keep"])]
