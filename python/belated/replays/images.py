"""Images for the replays that train networks: MNIST's digits, CIFAR-10, and random parts of these data sets.

Both data sets can be read from a folder; reading needs only numpy. Without a folder, torchvision downloads MNIST to
torch's folder for downloads.
"""

import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from belated.replays.runner import MissingData, require

#: MNIST's files, with or without .gz: (images, classes) of the 60,000 training digits and of the 10,000 test digits.
TRAINING_DIGITS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
OTHER_DIGITS = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
#: The files of CIFAR-10's binary version: 50,000 images for training, and 10,000 test images.
TRAINING_CIFAR = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
OTHER_CIFAR = ("test_batch.bin",)
CIFAR_SHAPE = (3, 32, 32)

N_CLASSES = 10


@dataclass(frozen=True)
class Images:
    """Images and their classes.

    Attributes
    ----------
    pixels : array (n, channels, height, width)
        Bytes.
    classes : array (n,)
        Whole numbers from 0 to 9.
    """

    pixels: NDArray[np.uint8]
    classes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.classes)

    def parts(self, sizes: Sequence[int], seed: int = 0) -> "list[Images]":
        """Return disjoint random parts of these sizes. The parts depend only on the images, the sizes and the seed."""
        if sum(sizes) > len(self):
            raise MissingData(f"{sum(sizes)} images are needed, and there are {len(self)}")
        parts = np.split(np.random.default_rng(seed).permutation(len(self))[: sum(sizes)], np.cumsum(sizes)[:-1])
        return [Images(self.pixels[rows], self.classes[rows]) for rows in parts]


@lru_cache(maxsize=1)
def mnist(data: Path | None) -> tuple[Images, Images, str]:
    """Return digits for training, digits for validation, and a line that describes the source of the digits.

    Parameters
    ----------
    data : Path, optional
        A folder with MNIST's files: all four files for the usual 60,000 and 10,000 digits, or the two files of the
        10,000 test digits. In the second case, 70 % of the test digits are used for training. None: torchvision
        downloads the files.
    """
    if data is not None and find(data, TRAINING_DIGITS[0]) is None:
        digits = _digits(data, OTHER_DIGITS)
        n_training = round(0.7 * len(digits))
        training, validation = digits.parts([n_training, len(digits) - n_training])
        which = f"MNIST's {len(digits):,} test digits: {n_training:,} for training, {len(validation):,} for validation"
        return training, validation, which
    training, validation = _digits(data, TRAINING_DIGITS), _digits(data, OTHER_DIGITS)
    return training, validation, f"MNIST, {len(training):,} digits for training, {len(validation):,} for validation"


@lru_cache(maxsize=1)
def cifar_or_digits(data: Path | None, sizes: tuple[int, int, int]) -> tuple[Images, Images, Images, str]:
    """Return images for training, validation and testing, and a line that describes the source of the images.

    If the folder has CIFAR-10's binary files, all images come from these files; test images come from the test batch.
    Otherwise MNIST's 10,000 test digits replace the images.

    Parameters
    ----------
    data : Path, optional
        A folder with CIFAR-10's binary files or MNIST's test digits; None: torchvision downloads the digits.
    sizes : (int, int, int)
        Numbers of images for training, validation and testing. If digits are used, these numbers are at most half, a
        quarter and a quarter of the number of digits.
    """
    n_training, n_validation, n_test = sizes
    if data is not None and find(data, OTHER_CIFAR[0]) is not None:
        training, validation = _cifar(data, TRAINING_CIFAR).parts([n_training, n_validation])
        (test,) = _cifar(data, OTHER_CIFAR).parts([n_test])
        which = "CIFAR-10"
    else:
        digits = _digits(data, OTHER_DIGITS)
        half, quarter = len(digits) // 2, len(digits) // 4
        wanted = [min(n_training, half), min(n_validation, quarter), min(n_test, quarter)]
        training, validation, test = digits.parts(wanted)
        which = f"MNIST's {len(digits):,} test digits, which stand in for CIFAR-10 ({OTHER_CIFAR[0]} is not there)"
    numbers = f"{len(training):,} for training, {len(validation):,} for validation, {len(test):,} for testing"
    return training, validation, test, f"{which}: {numbers}"


def find(data: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, or its gzipped form, or None if both are missing."""
    return next((path for path in (data / name, data / f"{name}.gz") if path.exists()), None)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array in an IDX file of bytes, the format of MNIST. Files with the suffix ``.gz`` are decompressed.

    The format is two zero bytes, the type (8: bytes), the number of dimensions, each size as a big-endian 32-bit
    integer, then the bytes in C order.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, OSError) as error:
        raise MissingData(f"{path} cannot be read ({error}): get it again") from error
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise MissingData(f"{path} is not an IDX file of bytes: get it again")
    start = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, start, 4))
    if len(content) < start or len(content) - start != math.prod(shape):
        raise MissingData(f"{path} ends too early, or too late, for an array of shape {shape}: get it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_cifar(path: Path) -> Images:
    """Return the images in a file of CIFAR-10's binary version.

    In this format an image is one byte for the class, then 1024 bytes of red, 1024 of green and 1024 of blue, row by
    row.
    """
    content = path.read_bytes()
    size = 1 + math.prod(CIFAR_SHAPE)
    if not content or len(content) % size:
        raise MissingData(f"{path} has {len(content)} bytes, not a multiple of {size}: get CIFAR-10's binary version")
    rows = np.frombuffer(content, np.uint8).reshape(-1, size)
    return _checked(path, rows[:, 1:].reshape(-1, *CIFAR_SHAPE), rows[:, 0])


def _digits(data: Path | None, names: tuple[str, str]) -> Images:
    """Return the digits in a folder, or from torchvision."""
    if data is None:
        return _torchvision_mnist(train=names == TRAINING_DIGITS)
    first, second = (find(data, name) for name in names)
    if first is None or second is None:
        raise MissingData(_how_to_get_digits(f"there is no {names[0]} or no {names[1]} in {data}"))
    pixels, classes = read_idx(first), read_idx(second)
    if pixels.ndim != 3 or classes.shape != pixels.shape[:1]:
        shapes = f"{first} has the shape {pixels.shape} and {second} {classes.shape}"
        raise MissingData(f"{shapes}, and (n, height, width) and (n,) are expected: get them again")
    return _checked(second, pixels[:, None], classes)


def _cifar(data: Path, names: Sequence[str]) -> Images:
    """Return CIFAR-10's images from the files of these names in a folder."""
    missing = [name for name in names if not (data / name).exists()]
    if missing:
        raise MissingData(f"there is no {' and no '.join(missing)} in {data}: put all files of CIFAR-10 there")
    files = [read_cifar(data / name) for name in names]
    return Images(np.concatenate([f.pixels for f in files]), np.concatenate([f.classes for f in files]))


def _checked(path: Path, pixels: NDArray[np.uint8], classes: NDArray[np.uint8]) -> Images:
    if len(classes) == 0 or classes.max() >= N_CLASSES:
        raise MissingData(f"{path} has classes other than 0 to {N_CLASSES - 1}, or none: get it again")
    return Images(pixels, classes.astype(np.int64))


def _torchvision_mnist(train: bool) -> Images:
    """Return MNIST from torchvision's loader, which downloads it at the first call."""
    require("torch", "torchvision")
    import torch
    from torchvision.datasets import MNIST

    folder = Path(torch.hub.get_dir()) / "datasets"
    try:
        digits = MNIST(folder, train=train, download=True)
    except Exception as error:  # without a network, behind a proxy, …: each layer raises different exceptions
        raise MissingData(_how_to_get_digits(f"torchvision could not download MNIST ({error})")) from error
    return Images(digits.data.numpy()[:, None], digits.targets.numpy().astype(np.int64))


def _how_to_get_digits(problem: str) -> str:
    return (
        f"this replay needs MNIST's digits, but {problem}. Put {OTHER_DIGITS[0]}.gz and {OTHER_DIGITS[1]}.gz into a "
        f"folder, with {TRAINING_DIGITS[0]}.gz and {TRAINING_DIGITS[1]}.gz for all 70,000, and give it: --data FOLDER"
    )
