"""belated: known settings are enqueued; the optimizer chooses the parameters that they leave open.

Longer: `enqueue` does not take attributes, so the function sets them.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def accuracy(params, trial):
    if trial.number == 2:
        trial.attrs["memo"] = "stumps"
    model = GradientBoostingClassifier(**params, n_estimators=15, random_state=0)
    return cross_val_score(model, X, y, cv=3).mean()


space = {
    "learning_rate": bl.Real(1e-3, 1.0, log=True),
    "max_depth": (1, 6),
    "subsample": (0.3, 1.0),
}
optimizer = bl.BayesOpt(space, seed=0)
optimizer.enqueue({"learning_rate": 0.1, "max_depth": 3, "subsample": 1.0})
optimizer.enqueue({"learning_rate": 0.5})
optimizer.enqueue({"max_depth": 1})
result = bl.maximize(accuracy, optimizer=optimizer, n_trials=20)
print("first:", [trial.params for trial in result.trials[:3]], result.trials[2].attrs)
print("best value:", result.best_value_, result.best_params_)
