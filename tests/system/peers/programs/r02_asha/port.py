"""belated: ASHA stops networks by the values that their function yields."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import belated as bl


def train(params):
    X, X_valid, y, y_valid = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = SGDClassifier(learning_rate="constant", random_state=0, **params)
    for _ in range(27):
        model.partial_fit(X / 16, y, classes=np.arange(10))
        yield model.score(X_valid / 16, y_valid)


space = {"eta0": bl.Real(1e-5, 1.0, log=True), "alpha": bl.Real(1e-7, 1e-1, log=True)}
optimizer = bl.BayesOpt(space, curve=bl.Curve(27), stopping="asha", seed=0)
result = bl.maximize(train, optimizer=optimizer, n_trials=20, n_workers=2)
epochs = sum(len(trial.curve) for trial in result.trials)
print(epochs, "epochs, best value:", result.best_value_)
