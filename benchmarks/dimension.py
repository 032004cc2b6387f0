"""Problems with many dimensions: the group "dimension" of compare.py. Values have no noise, and one evaluation runs at
a time.

Notation: d dimensions x_1 … x_d. All problems are maximised. The score is defined in compare.py.

The first problem is Hartmann6, which depends only on x_1 … x_6. The second problem is Rosenbrock, which depends on all
dimensions: −Σ_j 100 (x_{j+1} − x_j²)² + (1 − x_j)² over j = 1 … d − 1. The third problem replaces an SVM problem of the
literature, whose data set of 385 features is not bundled. A support vector regression predicts the digit from the 64
pixels of scikit-learn's digits. The parameters are C, epsilon, gamma and one scale for each pixel, so d = 67. The
objective is minus the root mean squared error on validation images. The validation error itself is used as the regret,
because the smallest possible error is unknown.
"""

import functools

import numpy as np
from problems import Noise, Setting, always

from belated import Real, functions
from belated.functions import Function, box
from belated.simulate import Uniform

N_TRAIN, N_VALIDATION = 200, 400


def hartmann6(d):
    """Return Hartmann6 of the first six coordinates; the function ignores the remaining coordinates."""
    formula = functions.HARTMANN6.formula
    optimum = functions.HARTMANN6.optimum
    return Function(f"hartmann6-of-{d}", box(*[(0.0, 1.0)] * d), optimum, lambda x: formula(x[:6]))


def rosenbrock(d):
    """Return Rosenbrock's function in d dimensions."""
    return Function(f"rosenbrock-{d}", box(*[(-5.0, 10.0)] * d), 0.0, _rosenbrock)


def _rosenbrock(x):
    x = np.asarray(x)
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


@functools.cache
def _digits():
    """Return the pixels in [0, 1] and the digits of the training images and of the validation images."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(digits))[: N_TRAIN + N_VALIDATION]
    train, validation = np.split(rows, [N_TRAIN])
    return pixels[train] / 16, digits[train], pixels[validation] / 16, digits[validation]


def _svr(values):
    from sklearn.svm import SVR

    *scales, c, epsilon, gamma = values
    train, target, validation, truth = _digits()
    model = SVR(C=c, epsilon=epsilon, gamma=gamma).fit(train * scales, target)
    return -float(np.sqrt(np.mean((model.predict(validation * scales) - truth) ** 2)))


SVR_DIGITS = Function(
    "svr-digits",
    {f"scale{j}": Real(0.1, 10.0, log=True) for j in range(64)}
    | {
        "C": Real(0.01, 100.0, log=True),
        "epsilon": Real(0.01, 1.0, log=True),
        "gamma": Real(1e-3, 1.0, log=True),
    },
    0.0,
    _svr,
)


def _setting(function):
    return Setting(always(function), Uniform(), 300, workers=1, noise=Noise(0.0))


SETTINGS = {
    **{f"hartmann6-of-{d}": _setting(hartmann6(d)) for d in (20, 50, 100)},
    **{f"rosenbrock-{d}": _setting(rosenbrock(d)) for d in (20, 50, 100)},
    "svr-digits-67": _setting(SVR_DIGITS),
}
GROUPS = {"dimension": SETTINGS}
