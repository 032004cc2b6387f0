"""A convolutional network with a few hundred weights, in numpy, for images of 8 × 8 pixels.

The network has one layer of 3 × 3 filters, the rectifier or the hyperbolic tangent, the mean of each 2 × 2 block, and a
linear layer. It is trained on the cross-entropy by stochastic gradient descent with momentum. A call of `partial_fit`
is one epoch.
"""

import numpy as np

SIDE, FILTER = 8, 3
OUT = SIDE - FILTER + 1
POOLED = OUT // 2


def patches(x):
    """Return the 3 × 3 patches of images (n, 64), as an array (n, 36, 9)."""
    images = x.reshape(-1, SIDE, SIDE)
    windows = np.lib.stride_tricks.sliding_window_view(images, (FILTER, FILTER), axis=(1, 2))
    return windows.reshape(len(x), OUT * OUT, FILTER * FILTER)


class SmallNetwork:
    """A classifier for images of 8 × 8 pixels.

    Parameters
    ----------
    filters : int
    rate : float
        The learning rate.
    momentum : float
    batch : int
    init : float
        The initial weights are normal with the standard deviation init/√(number of inputs).
    activation : {"relu", "tanh"}
    seed : int
        Determines the initial weights and the order of the rows.
    """

    def __init__(self, filters, rate, momentum, batch, init, activation, seed):
        self.rate, self.momentum, self.batch, self.activation = rate, momentum, batch, activation
        self.rng = np.random.default_rng(seed)
        n_inputs = filters * POOLED * POOLED
        self.weights = [
            init / FILTER * self.rng.normal(size=(FILTER * FILTER, filters)),
            np.zeros(filters),
            init / np.sqrt(n_inputs) * self.rng.normal(size=(n_inputs, 10)),
            np.zeros(10),
        ]
        self.velocity = [np.zeros_like(weight) for weight in self.weights]

    def forward(self, x):
        """Return the patches, the activations (n, 36, filters), the inputs of the last layer, and the logits."""
        filters, offset, last, bias = self.weights
        seen = patches(x)
        sums = seen @ filters + offset
        active = np.maximum(sums, 0) if self.activation == "relu" else np.tanh(sums)
        blocks = active.reshape(len(x), POOLED, 2, POOLED, 2, -1).mean(axis=(2, 4))
        inputs = blocks.reshape(len(x), -1)
        return seen, active, inputs, inputs @ last + bias

    def partial_fit(self, x, y, classes=None):
        """Train for one epoch on images (n, 64) with the labels 0 to 9."""
        order = self.rng.permutation(len(x))
        for start in range(0, len(x), self.batch):
            rows = order[start : start + self.batch]
            seen, active, inputs, logits = self.forward(x[rows])
            if not np.isfinite(logits).all():
                raise ArithmeticError("overflow in the network")
            errors = np.exp(logits - logits.max(axis=1, keepdims=True))
            errors /= errors.sum(axis=1, keepdims=True)
            errors[np.arange(len(rows)), y[rows]] -= 1
            errors /= len(rows)
            blocks = (errors @ self.weights[2].T).reshape(len(rows), POOLED, 1, POOLED, 1, -1)
            blocks = np.broadcast_to(blocks / 4, (len(rows), POOLED, 2, POOLED, 2, blocks.shape[-1]))
            slopes = (active > 0) if self.activation == "relu" else 1 - active**2
            sums = blocks.reshape(active.shape) * slopes
            gradients = [np.tensordot(seen, sums, ([0, 1], [0, 1])), sums.sum(axis=(0, 1))]
            gradients += [inputs.T @ errors, errors.sum(axis=0)]
            for weight, velocity, gradient in zip(self.weights, self.velocity, gradients, strict=True):
                velocity *= self.momentum
                velocity -= self.rate * gradient
                weight += velocity
        return self

    def predict(self, x):
        """Return the labels of images (n, 64)."""
        return self.forward(x)[-1].argmax(axis=1)
