"""Training of image classifiers with torch on one thread. A seed gives the same weights in any process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from belated.replays.images import Images

VALIDATION_BATCH = 1000


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the ``with``, make torch draw from this seed and compute on one thread; then restore torch's state."""
    import torch

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(n_threads)


def train(
    network: Any, images: Images, *, epochs: int, batch_size: int, learning_rate: float, decay: float = 0.0
) -> None:
    """Train a network in place with mini-batches, cross-entropy and Adam. In epoch e the rate is lr / (1 + decay·e)."""
    import torch

    pixels, classes = tensors(images)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate / (1 + decay * epoch)
        for rows in torch.randperm(len(images)).split(batch_size):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(pixels[rows]), classes[rows]).backward()
            optimizer.step()


def accuracy(network: Any, images: Images) -> float:
    """Return the share of images whose class gets the highest score. A score of NaN counts as 0."""
    import torch

    pixels, classes = tensors(images)
    network.eval()
    with torch.inference_mode():
        found = torch.cat([network(batch).nan_to_num().argmax(dim=1) for batch in pixels.split(VALIDATION_BATCH)])
    return float((found == classes).float().mean())


def tensors(images: Images) -> tuple[Any, Any]:
    """Return pixels between 0 and 1, and classes."""
    import torch

    pixels = torch.from_numpy(images.pixels.astype(np.float32) / 255)
    # If channels are last in memory, a convolution with few channels takes about half the time on a processor.
    return pixels.contiguous(memory_format=torch.channels_last), torch.from_numpy(images.classes)
