"""belated: a function yields its value after every epoch, and trials are stopped."""

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import belated as bl

X, y = load_digits(return_X_y=True)
X_train, X_valid, y_train, y_valid = train_test_split(X / 16, y, random_state=0)


def train(params):
    model = SGDClassifier(**params, random_state=0)
    for _ in range(20):
        model.partial_fit(X_train, y_train, classes=range(10))
        yield model.score(X_valid, y_valid)


space = {"alpha": bl.Real(1e-6, 1.0, log=True), "loss": ["hinge", "log_loss", "modified_huber"]}
optimizer = bl.BayesOpt(space, curve=bl.Curve(20), stopping="median", seed=0)
result = bl.maximize(train, optimizer=optimizer, n_trials=25)
stopped = [trial for trial in result.trials if trial.state == "stopped"]
print(len(stopped), "trials were stopped, best value:", result.best_value_, result.best_params_)
