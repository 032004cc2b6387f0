"""belated: one combined objective; the Pareto front is computed from attributes.

Longer: several objectives are refused, and the program computes the front.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

import belated as bl

X, y = load_breast_cancer(return_X_y=True)


def score(params):
    tree = DecisionTreeClassifier(**params, random_state=0)
    accuracy = cross_val_score(tree, X, y, cv=3).mean()
    leaves = int(tree.fit(X, y).get_n_leaves())
    return {"value": accuracy - 0.002 * leaves, "attrs": {"accuracy": accuracy, "leaves": leaves}}


def is_dominated(trial):
    a, n = trial.attrs["accuracy"], trial.attrs["leaves"]
    others = [(each.attrs["accuracy"], each.attrs["leaves"]) for each in result.trials]
    return any(b >= a and m <= n and (b, m) != (a, n) for b, m in others)


space = {"max_depth": (1, 10), "ccp_alpha": bl.Real(1e-5, 1e-1, log=True)}
result = bl.maximize(score, space, n_trials=40, seed=0)
front = [trial for trial in result.trials if not is_dominated(trial)]
for trial in front:
    print(trial.number, trial.attrs, trial.params)
print("best value:", max(trial.attrs["accuracy"] for trial in front))
