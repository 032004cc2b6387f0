"""The replays read images from files that the tests write, and from MNIST's files if they are available."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import belated as bl
from belated.replays import images
from belated.replays.images import OTHER_CIFAR, OTHER_DIGITS, TRAINING_CIFAR, TRAINING_DIGITS, Images, read_idx
from tests.system.replays.digits import drawn, folder_of_digits, idx, write

DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_data = pytest.mark.skipif(DATA is None, reason="BELATED_DATA does not name the data folder")


@pytest.fixture(autouse=True)
def nothing_kept():
    images.mnist.cache_clear()
    images.cifar_or_digits.cache_clear()


@given(arrays(np.uint8, array_shapes(max_dims=4, max_side=5)), st.booleans())
def test_an_idx_file_is_read_as_it_was_written(tmp_path_factory, array, compress):
    path = tmp_path_factory.mktemp("idx") / ("a.gz" if compress else "a")
    path.write_bytes(gzip.compress(idx(array)) if compress else idx(array))
    np.testing.assert_array_equal(read_idx(path), array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\x89PNG....", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\0", "not an IDX file of bytes"),  # 0x0D: floats
        (b"\0\0\x08\x03\0\0\0\x02", "ends too early"),
        (idx(np.zeros((2, 3)))[:-1], "ends too early"),
        (idx(np.zeros((2, 3))) + b"\0", "too late"),
    ],
)
def test_a_file_in_another_format_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "digits"
    path.write_bytes(content)
    with pytest.raises(bl.BelatedError, match=f"digits.*{message}.*get it again"):
        read_idx(path)


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"no gzip" + content])
def test_a_damaged_archive_is_refused_by_name(tmp_path, damage):
    path = tmp_path / "digits.gz"
    path.write_bytes(damage(gzip.compress(idx(np.arange(200).reshape(2, 100)))))
    with pytest.raises(bl.BelatedError, match=r"digits\.gz cannot be read"):
        read_idx(path)


@pytest.mark.parametrize("compress", [True, False])
def test_all_four_files_give_the_usual_training_and_test_images(tmp_path, compress):
    parts = [drawn(30, seed=1), drawn(20, seed=2)]
    for names, part in zip((TRAINING_DIGITS, OTHER_DIGITS), parts, strict=True):
        write(tmp_path, names, *part, compress=compress)
    *found, which = images.mnist(tmp_path)
    assert which == "MNIST, 30 digits for training, 20 for validation"
    for part, (pixels, classes) in zip(found, parts, strict=True):
        np.testing.assert_array_equal(part.pixels[:, 0], pixels)
        np.testing.assert_array_equal(part.classes, classes)


def test_70_percent_of_the_test_digits_train_and_the_others_validate(tmp_path):
    training, validation, which = images.mnist(folder_of_digits(tmp_path, 50))
    assert (len(training), len(validation)) == (35, 15)
    assert which == "MNIST's 50 test digits: 35 for training, 15 for validation"
    everything = sorted(map(bytes, [*training.pixels, *validation.pixels]))
    assert everything == sorted(map(bytes, drawn(50)[0]))
    again, *_ = images.mnist.__wrapped__(tmp_path)
    np.testing.assert_array_equal(again.pixels, training.pixels)


@needs_data
def test_the_10000_digits_are_mnists():
    training, validation, _ = images.mnist(DATA)
    assert training.pixels.shape == (7000, 1, 28, 28) and validation.pixels.shape == (3000, 1, 28, 28)
    counts = np.bincount(np.concatenate([training.classes, validation.classes]))
    assert list(counts) == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    # Digits are in the middle of the image. A zero has a hole in the middle; a one does not.
    middle = [training.pixels[training.classes == c, 0, 13:15, 13:15].mean() for c in (0, 1)]
    assert middle[0] < 40 < 200 < middle[1]


@pytest.mark.parametrize("present", [(), OTHER_DIGITS[:1], OTHER_DIGITS[1:], (*TRAINING_DIGITS, OTHER_DIGITS[0])])
def test_error_for_missing_files_names_them_and_the_folder(tmp_path, present):
    for name in present:
        (tmp_path / name).write_bytes(idx(np.zeros((5, 28, 28) if "images" in name else 5)))
    with pytest.raises(bl.BelatedError, match=r"t10k-images-idx3-ubyte.*--data FOLDER"):
        images.mnist(tmp_path)


@pytest.mark.parametrize(
    ("pixels", "classes", "message"),
    [
        (np.zeros((5, 28, 28)), np.zeros(4), r"\(5, 28, 28\).*\(4,\)"),
        (np.zeros((5, 28)), np.zeros(5), r"\(5, 28\)"),
        (np.zeros((5, 28, 28)), np.full(5, 10), "classes other than 0 to 9"),
        (np.zeros((0, 28, 28)), np.zeros(0), "or none"),
    ],
)
def test_images_and_classes_that_do_not_fit_are_refused(tmp_path, pixels, classes, message):
    write(tmp_path, OTHER_DIGITS, pixels, classes)
    with pytest.raises(bl.BelatedError, match=message):
        images.mnist(tmp_path)


def cifar_file(path, n, seed=0):
    """Write a file in CIFAR-10's binary format; return its pixels and classes."""
    rng = np.random.default_rng(seed)
    pixels, classes = rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8), rng.integers(0, 10, n, dtype=np.uint8)
    path.write_bytes(b"".join(bytes([c]) + image.tobytes() for c, image in zip(classes, pixels, strict=True)))
    return pixels, classes


def test_cifar_is_used_if_its_files_are_present(tmp_path):
    training = [cifar_file(tmp_path / name, 4, seed)[0] for seed, name in enumerate(TRAINING_CIFAR)]
    test = cifar_file(tmp_path / OTHER_CIFAR[0], 6, seed=9)
    found = images.read_cifar(tmp_path / OTHER_CIFAR[0])
    np.testing.assert_array_equal(found.pixels, test[0])
    np.testing.assert_array_equal(found.classes, test[1])
    *parts, which = images.cifar_or_digits(tmp_path, (12, 7, 6))
    assert which == "CIFAR-10: 12 for training, 7 for validation, 6 for testing"
    used = [set(map(bytes, part.pixels)) for part in parts]
    assert used[0] | used[1] <= set(map(bytes, np.concatenate(training))) and len(used[0] | used[1]) == 19
    assert used[2] == set(map(bytes, test[0]))


def test_digits_replace_a_missing_cifar(tmp_path):
    *parts, which = images.cifar_or_digits(folder_of_digits(tmp_path, 40), (1000, 5, 1000))
    assert which == (
        "MNIST's 40 test digits, which stand in for CIFAR-10 (test_batch.bin is not there): "
        "20 for training, 5 for validation, 10 for testing"
    )
    assert len({bytes(image) for part in parts for image in part.pixels}) == 35


def test_a_half_copied_cifar_is_refused(tmp_path):
    cifar_file(tmp_path / OTHER_CIFAR[0], 3)
    with pytest.raises(bl.BelatedError, match=r"no data_batch_1\.bin and no data_batch_2\.bin.*put all files"):
        images.cifar_or_digits(tmp_path, (2, 2, 2))
    for name in TRAINING_CIFAR:
        cifar_file(tmp_path / name, 3)
    (tmp_path / TRAINING_CIFAR[2]).write_bytes(b"\0" * 3072)
    with pytest.raises(bl.BelatedError, match=r"data_batch_3\.bin has 3072 bytes.*3073.*binary version"):
        images.cifar_or_digits(tmp_path, (2, 2, 2))


def test_more_images_than_there_are_is_refused():
    with pytest.raises(bl.BelatedError, match="6 images are needed, and there are 5"):
        Images(np.zeros((5, 1, 2, 2), np.uint8), np.zeros(5, np.int64)).parts([4, 2])
