"""belated: random search covers a grid, and BayesOpt replaces CMA-ES.

CMA-ES is refused.
"""

from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import belated as bl

X, y = load_diabetes(return_X_y=True)


def score(params):
    return cross_val_score(make_pipeline(StandardScaler(), SVR(**params)), X, y, cv=3).mean()


grid = {"C": [1.0, 100.0, 10000.0], "gamma": [1e-4, 1e-2, 1.0], "epsilon": 1.0}
by_grid = bl.maximize(score, optimizer=bl.RandomSearch(grid, seed=0), n_trials=9)
space = {
    "C": bl.Real(1e0, 1e4, log=True),
    "gamma": bl.Real(1e-4, 1e0, log=True),
    "epsilon": bl.Real(0.1, 10.0, log=True),
}
result = bl.maximize(score, space, n_trials=40, seed=0)
print(len(by_grid.trials), "points:", by_grid.best_value_)
for name, importance in result.importances().items():
    print(f"{name}: {importance:.2f}")
print("best value:", result.best_value_, result.best_params_)
