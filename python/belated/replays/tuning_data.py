"""Data for the replays that tune classifiers: 20 newsgroups and MNIST, and the digits that replace them.

Notation: n is the number of rows. x (n, columns) is dense or sparse, and y (n,) has the classes, whole numbers from 0.
The classes are spread evenly over the rows, so the first n rows contain about the same number of rows of each class.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from belated.replays import images
from belated.replays.runner import MissingData

#: scikit-learn's name of the file of 20 newsgroups.
NEWSGROUPS_FILE = "20news-bydate_py3.pkz"
BUNDLED = "scikit-learn's {:,} bundled digits"
NAMES = {"newsgroups": "20 newsgroups", "mnist": "MNIST"}


@dataclass(frozen=True)
class Source:
    """The source of the rows.

    Attributes
    ----------
    kind : str
        "newsgroups" and "mnist" come from `folder` or from scikit-learn's loaders. "digits" are bundled with
        scikit-learn.
    folder : Path, optional
    n_rows : int
    words : str
        Description of the data, for the output.
    is_stand_in : bool
        Whether these data replace the paper's.
    """

    kind: str
    folder: Path | None
    n_rows: int
    words: str
    is_stand_in: bool = False


def find(wanted: str, data: Path | None, *, bundled: bool = False) -> Source:
    """Return the best available source: a folder with the paper's data, scikit-learn's loaders, or a replacement.

    Parameters
    ----------
    wanted : {"newsgroups", "mnist"}
    data : Path, optional
        A folder that may contain `NEWSGROUPS_FILE`, MNIST's four files, or the two files of its 10,000 test digits.
    bundled : bool
        Use the digits that are bundled with scikit-learn.

    Raises
    ------
    MissingData
        Files of digits in the folder cannot be read.
    """
    if bundled:
        return _source("digits", None, BUNDLED, is_stand_in=True)
    folder = data if data is not None and _holds(wanted, data) else None
    try:
        return _source(wanted, folder, f"{NAMES[wanted]}, {{:,}} rows")
    except MissingData:
        raise
    except Exception as error:  # without a network, behind a proxy, …: each layer raises different exceptions
        why = f", which stand in for {NAMES[wanted]} (it cannot be loaded: {error})"
    if data is not None and images.find(data, images.OTHER_DIGITS[0]) is not None:
        found = _source("mnist", data, "MNIST's {:,} digits", is_stand_in=True)
    else:
        found = _source("digits", None, BUNDLED, is_stand_in=True)
    return replace(found, words=found.words + why)


def _source(kind: str, folder: Path | None, words: str, is_stand_in: bool = False) -> Source:
    """Return a source whose rows have been read. `words` has a placeholder for the number of rows."""
    n_rows = len(read(kind, folder)[1])
    return Source(kind, folder, n_rows, words.format(n_rows), is_stand_in)


def _holds(wanted: str, data: Path) -> bool:
    """Return whether a folder has the paper's data."""
    if wanted == "newsgroups":
        return (data / NEWSGROUPS_FILE).exists()
    return images.find(data, images.TRAINING_DIGITS[0]) is not None


@lru_cache(maxsize=1)
def read(kind: str, folder: Path | None) -> tuple[Any, NDArray[np.int64]]:
    """Return x and y of a source of this kind, read from a folder or by scikit-learn's loaders."""
    x, found = READERS[kind](folder)
    y = np.asarray(found, dtype=np.int64)
    order = fair_order(y)
    return x[order], y[order]


def fair_order(y: NDArray[np.int64], seed: int = 0) -> NDArray[np.int64]:
    """Return a random order of the rows in which the classes alternate: first one row of each class, then another, …"""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    rank = np.empty(len(y), dtype=np.int64)
    for each in np.unique(y):
        of_class = y[shuffled] == each
        rank[of_class] = np.arange(np.sum(of_class))
    return np.asarray(shuffled[np.argsort(rank, kind="stable")], dtype=np.int64)


def _newsgroups(folder: Path | None) -> tuple[Any, ArrayLike]:
    """Return the training posts as sparse tf-idf weights of their words."""
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import TfidfVectorizer

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Retry downloading")
        found = fetch_20newsgroups(
            data_home=folder, subset="train", download_if_missing=folder is None, n_retries=1, delay=0.1
        )
    return TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(found.data), found.target


def _mnist(folder: Path | None) -> tuple[Any, ArrayLike]:
    """Return the pixels, between 0 and 1, of all digits in a folder, or of the 70,000 digits from OpenML."""
    if folder is not None:
        parts = images.mnist(folder)[:2]
        pixels, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("pixels", "classes"))
        return pixels.reshape(len(pixels), -1).astype(np.float32) / 255, y
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A network error occurred")
        found = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff", n_retries=1, delay=0.1)
    return found.data.astype(np.float32) / 255, found.target.astype(np.int64)


def _bundled(_: Path | None) -> tuple[Any, ArrayLike]:
    """Return digits of 8 × 8 pixels between 0 and 1."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return x.astype(np.float32) / 16, y


READERS: Mapping[str, Callable[[Path | None], tuple[Any, ArrayLike]]] = {
    "newsgroups": _newsgroups,
    "mnist": _mnist,
    "digits": _bundled,
}
