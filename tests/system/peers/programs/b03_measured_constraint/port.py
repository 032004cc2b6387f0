"""belated: at most 60 support vectors, an outcome with a bound."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def measure(params):
    model = make_pipeline(StandardScaler(), SVC(**params))
    n_support = model.fit(X, y)[-1].n_support_.sum()
    return {"accuracy": cross_val_score(model, X, y, cv=3).mean(), "support": n_support}


space = {"C": bl.Real(0.1, 1e3, log=True), "gamma": bl.Real(1e-4, 1.0, log=True)}
outcomes = {"accuracy": "maximize", "support": bl.AtMost(60)}
result = bl.maximize(measure, space, outcomes=outcomes, n_trials=20, initial=6, seed=1)
allowed = sum(trial.values["support"] <= 60 for trial in result.trials)
print(allowed, "of 20 allowed, best value:", result.best_value_)
