"""belated: a trial fails if its model has more than 60 support vectors.

The model learns where trials fail, but not from their numbers of support vectors.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def accuracy(params):
    model = make_pipeline(StandardScaler(), SVC(**params))
    n_support = model.fit(X, y)[-1].n_support_.sum()
    if n_support > 60:
        raise RuntimeError(f"{n_support} support vectors")
    return cross_val_score(model, X, y, cv=3).mean()


space = {"C": bl.Real(0.1, 1e3, log=True), "gamma": bl.Real(1e-4, 1.0, log=True)}
result = bl.maximize(accuracy, space, n_trials=20, initial=6, seed=1, catch=RuntimeError)
allowed = sum(trial.state == "observed" for trial in result.trials)
print(allowed, "of 20 allowed, best value:", result.best_value_)
