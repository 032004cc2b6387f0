"""Functions that write small files of digits in MNIST's format, for the tests."""

import gzip

import numpy as np

from belated.replays.images import OTHER_DIGITS


def idx(array):
    """Return the bytes of an IDX file. The function follows the description of the format and does not use the reader's
    code."""
    array = np.asarray(array, dtype=np.uint8)
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def write(folder, names, pixels, classes, compress=True):
    """Write files of images and classes in a folder."""
    for name, array in zip(names, (pixels, classes), strict=True):
        content = idx(array)
        (folder / f"{name}.gz").write_bytes(gzip.compress(content)) if compress else (folder / name).write_bytes(
            content
        )


def drawn(n, seed=0):
    """Return images of noise with a bright square. The position of the square depends on the class."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 10
    pixels = rng.integers(0, 40, (n, 28, 28))
    for image, c in zip(pixels, classes, strict=True):
        row, column = 9 * (c // 4), 7 * (c % 4)
        image[row : row + 6, column : column + 6] += 200
    return pixels.astype(np.uint8), classes.astype(np.uint8)


def folder_of_digits(folder, n):
    """A folder with test digits."""
    write(folder, OTHER_DIGITS, *drawn(n))
    return folder
