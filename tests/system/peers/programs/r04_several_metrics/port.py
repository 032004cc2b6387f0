"""belated: one metric is the value, and the others are attributes and columns of the table."""

import time

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

import belated as bl


def train(params):
    X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    forest = RandomForestClassifier(random_state=0, **params).fit(X, y)
    start = time.perf_counter()
    p = forest.predict_proba(X_test)
    attrs = {
        "accuracy": accuracy_score(y_test, p.argmax(axis=1)),
        "seconds": time.perf_counter() - start,
    }
    return {"value": log_loss(y_test, p), "attrs": attrs}


space = {"n_estimators": (10, 99), "max_features": (0.05, 1.0)}
result = bl.minimize(train, space, n_trials=10, n_workers=2, seed=0)
table = result.trials_dataframe()
columns = ["params_n_estimators", "value", "attrs_accuracy", "attrs_seconds"]
print(table[columns].sort_values("value"))
print("most accurate:", max(result.trials, key=lambda trial: trial.attrs["accuracy"]).params)
print("best value:", result.best_value_)
