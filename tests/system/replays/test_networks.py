"""The networks of the replays: training agrees with numpy, torchvision provides digits, and a small replay of cnn
runs."""

import os
from pathlib import Path

import numpy as np
import pytest

import belated as bl
from belated import replays
from belated.replays import cifar, cnn, images, training, verma
from belated.replays.images import OTHER_DIGITS, TRAINING_DIGITS, Images
from belated.replays.runner import Options
from tests.system.replays.digits import drawn, folder_of_digits, write

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'belated[torch]'")

DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_data = pytest.mark.skipif(DATA is None, reason="BELATED_DATA does not name the data folder")


@pytest.fixture(autouse=True)
def nothing_kept():
    for function in (images.mnist, images.cifar_or_digits, cnn.accuracy):
        function.cache_clear()


def digits(n):
    pixels, classes = drawn(n)
    return Images(pixels[:, None], classes.astype(np.int64))


def array(tensor):
    return tensor.detach().numpy().astype(float)


def convolved(x, kernel, bias):
    """Convolve images (channels, height, width) with kernels (filters, channels, 3, 3), without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.einsum("cijkl,fckl->fij", windows, kernel) + bias[:, None, None]


def test_the_network_of_the_paper_computed_by_numpy():
    with training.seeded(3):
        network = cnn.network()
    (convolution, dense, last) = [layer for layer in network if hasattr(layer, "weight")]
    some = digits(20)
    pixels, _ = training.tensors(some)
    scores = array(network(pixels))
    for image, found in zip(some.pixels[:3] / 255.0, scores, strict=False):
        # In the paper's order: Apply ReLU, then take the maxima of blocks of 3 x 3 pixels. A row of 26 pixels gives 8
        # maxima; its last 2 pixels are ignored.
        x = np.maximum(convolved(image, array(convolution.weight), array(convolution.bias)), 0.0)
        x = x[:, :24, :24].reshape(8, 8, 3, 8, 3).max(axis=(2, 4)).ravel()
        x = np.maximum(array(dense.weight) @ x + array(dense.bias), 0.0)
        np.testing.assert_allclose(found, array(last.weight) @ x + array(last.bias), atol=1e-5)


def test_the_network_has_8_filters_8_nodes_and_10_scores():
    n = sum(parameter.numel() for parameter in cnn.network().parameters())
    assert n == 8 * (9 + 1) + 8 * (8 * 8 * 8 + 1) + 10 * (8 + 1)


def test_six_layers_have_the_given_numbers_of_filters():
    f1, f2, f3, f4, f5, nodes = sizes = [16, 20, 24, 28, 32, 36]
    for channels, side in [(1, 28), (3, 32), (3, 8)]:
        network = cifar.network(sizes, channels)
        layers = (channels, f1), (f1, f2), (f2, f3), (f3, f4), (f4, f5)
        expected = sum(n_out * (9 * n_in + 1) for n_in, n_out in layers)
        expected += f1 * f3 + f3 * f5 + nodes * (4 * f5 + 1) + 10 * (nodes + 1)
        assert sum(parameter.numel() for parameter in network.parameters()) == expected
        assert network(torch.zeros(2, channels, side, side)).shape == (2, 10)


def test_skip_connections_bypass_layers_with_zero_output():
    with training.seeded(0):
        network = cifar.network([4, 5, 6, 7, 8, 9], 1)
    with torch.no_grad():
        for layer in (network.layers[2], network.layers[4]):  # the third and the fifth layer have skip connections
            layer.weight.zero_()
            layer.bias.zero_()
    image = np.random.default_rng(0).random((1, 28, 28))
    first, (skip_1, skip_3) = network.layers[0], (array(skip.weight)[:, :, 0, 0] for skip in network.skips)
    x = np.maximum(convolved(np.pad(image, ((0, 0), (1, 1), (1, 1))), array(first.weight), array(first.bias)), 0.0)
    x = x.reshape(4, 7, 4, 7, 4).max(axis=(2, 4))
    x = np.maximum(np.einsum("oc,cij->oij", skip_1, x), 0.0)[:, :6, :6].reshape(6, 3, 2, 3, 2).max(axis=(2, 4))
    x = np.maximum(np.einsum("oc,cij->oij", skip_3, x), 0.0)
    # A 2 x 2 grid covers 3 x 3 pixels, so the middle row and the middle column belong to two cells.
    x = np.array([[[c[i : i + 2, j : j + 2].max() for j in (0, 1)] for i in (0, 1)] for c in x]).ravel()
    x = np.maximum(array(network.dense.weight) @ x + array(network.dense.bias), 0.0)
    expected = array(network.scores.weight) @ x + array(network.scores.bias)
    found = array(network(torch.from_numpy(image.astype(np.float32))[None]))[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 1.0])
def test_adam_moves_by_the_rate_of_each_epoch_along_the_gradient(decay):
    some = digits(30)
    with training.seeded(1):
        network = cnn.network()
        pixels, _ = training.tensors(some)
        scores, before = array(network(pixels)), array(network[-1].bias)
        rate = 1e-5  # the learning rate is so small that both epochs have the same gradient
        training.train(network, some, epochs=2, batch_size=30, learning_rate=rate, decay=decay)
    # The gradient of the mean cross-entropy with respect to the last biases. The size of Adam's first steps is the
    # learning rate.
    share = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    gradient = (share - np.eye(10)[some.classes]).mean(axis=0)
    clear = np.abs(gradient) > 1e-3
    assert clear.sum() >= 5
    moved = array(network[-1].bias) - before
    np.testing.assert_allclose(moved[clear], -np.sign(gradient[clear]) * rate * (1 + 1 / (1 + decay)), rtol=0.02)


def test_a_seed_gives_the_same_training_and_leaves_torch_as_it_was():
    state, n_threads = torch.get_rng_state(), torch.get_num_threads()
    trained = []
    for seed in (5, 5, 6):
        with training.seeded(seed):
            network = cnn.network()
            training.train(network, digits(60), epochs=1, batch_size=16, learning_rate=0.01)
        trained.append(array(network[-1].weight))
    np.testing.assert_array_equal(trained[0], trained[1])
    assert np.abs(trained[0] - trained[2]).max() > 0.01
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == n_threads


def test_training_improves_accuracy_unless_the_rate_is_tiny():
    some, others = digits(400).parts([300, 100])
    accuracies = []
    for rate in (1e-2, 1e-6):
        with training.seeded(2):
            network = cnn.network()
            training.train(network, some, epochs=8, batch_size=16, learning_rate=rate)
        accuracies.append(training.accuracy(network, others))
    assert accuracies[0] > 0.8 > 0.4 > accuracies[1]


def test_accuracy_counts_the_highest_scores_also_where_training_diverged():
    some = digits(2500)  # more than one batch
    brightest = np.array([[i * (c == i % 10) for i in range(1, 11)] for c in some.classes], dtype=np.float32)

    class Given(torch.nn.Module):
        def __init__(self, scores):
            super().__init__()
            self.rows = iter(torch.from_numpy(scores).split(training.VALIDATION_BATCH))

        def forward(self, x):
            rows = next(self.rows)
            assert len(rows) == len(x)
            return rows

    scores = np.random.default_rng(0).random((2500, 10), dtype=np.float32) + brightest
    assert training.accuracy(Given(scores), some) == pytest.approx(np.mean(scores.argmax(axis=1) == some.classes))
    diverged = np.full((2500, 10), np.nan, dtype=np.float32)
    assert training.accuracy(Given(diverged), some) == pytest.approx(np.mean(some.classes == 0))


def test_torchvision_provides_the_digits_without_a_folder(tmp_path, monkeypatch):
    pytest.importorskip("torchvision", reason="torchvision is not installed: pip install 'belated[torch]'")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    kept = tmp_path / "datasets" / "MNIST" / "raw"  # where torchvision stores its downloads
    kept.mkdir(parents=True)
    parts = [drawn(30, seed=1), drawn(20, seed=2)]
    for names, part in zip((TRAINING_DIGITS, OTHER_DIGITS), parts, strict=True):
        write(kept, names, *part, compress=False)
    *found, which = images.mnist(None)
    assert which == "MNIST, 30 digits for training, 20 for validation"
    for part, (pixels, classes) in zip(found, parts, strict=True):
        np.testing.assert_array_equal(part.pixels[:, 0], pixels)
        np.testing.assert_array_equal(part.classes, classes)
    *_, which = images.cifar_or_digits(None, (8, 4, 4))
    assert which.startswith("MNIST's 20 test digits, which stand in for CIFAR-10")


def test_error_without_folder_and_network_names_the_files(monkeypatch):
    datasets = pytest.importorskip("torchvision.datasets", reason="torchvision is not installed")

    def no_network(*args, **kwargs):
        raise RuntimeError("no route to host")

    monkeypatch.setattr(datasets, "MNIST", no_network)
    with pytest.raises(bl.BelatedError, match=r"no route to host.*t10k-images.*--data FOLDER"):
        replays.found()["cnn"].run(Options(runs=1))


def test_the_cnn_replay_end_to_end(tmp_path):
    pytest.importorskip("matplotlib")
    data = folder_of_digits(tmp_path, 40)
    report = replays.found()["cnn"].run(Options(runs=1, iterations=2, workers=0, data=data))
    text = cnn.table(report)
    assert text.startswith("MNIST's 40 test digits: 28 for training, 12 for validation.")
    assert all(text.count(f"\n{algorithm} ") == 2 for algorithm in verma.ALGORITHMS)
    assert len(report["settings"]) == 12
    replays.found()["cnn"].draw(report, tmp_path / "cnn.png")
    assert (tmp_path / "cnn.png").read_bytes().startswith(b"\x89PNG")


@needs_data
def test_two_epochs_on_real_digits_improve_the_accuracy():
    point = {"batch_size": 128, "decay": 1e-3}
    assert cnn.accuracy(DATA, 1, learning_rate=1e-2, **point) > 0.5 > cnn.accuracy(DATA, 1, learning_rate=1e-6, **point)
