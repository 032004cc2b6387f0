"""belated: the model of each trial is kept in a dict, and the best model is used afterwards.

The dict is in memory, as the attachments of `Trials` are; a study stores only JSON data.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import belated as bl

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.6, random_state=0)
models = {}


def train(params, trial):
    model = models[trial.number] = SVC(**params).fit(X, y)
    trial.attrs["n_support"] = int(model.n_support_.sum())
    return 1 - model.score(X_valid, y_valid)


space = {"C": bl.Real(0.01, 100, log=True), "gamma": bl.Real(1e-5, 1e-1, log=True)}
result = bl.minimize(train, space, n_trials=25, seed=0)
best = result.best_trial_
model = models[best.number]
print(best.attrs["n_support"], "support vectors, test accuracy", model.score(X_test, y_test))
print("best value:", best.value)
