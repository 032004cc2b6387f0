"""belated: BayesOpt with earlier points and values, and plots of its model.

Forests are refused: the model is a Gaussian process. There is no matrix of plots.
"""

import itertools

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)


def error(params):
    model = GradientBoostingRegressor(**params, n_estimators=30, random_state=0)
    return -cross_val_score(model, X, y, cv=3).mean()


space = {
    "max_depth": (1, 6),
    "learning_rate": bl.Real(1e-3, 1.0, log=True),
    "subsample": (0.3, 1.0),
}
points = [[3, 0.1, 1.0], [1, 0.1, 1.0], [2, 0.03, 0.5]]
known = [dict(zip(space, point, strict=True)) for point in points]
optimizer = bl.BayesOpt(space, direction="minimize", initial=8, seed=0)
optimizer.add(known, [error(params) for params in known])
result = bl.minimize(error, optimizer=optimizer, n_trials=20)
bl.plotting.save(bl.plotting.plot_slice(result)[0], "slices.png")
for pair in itertools.combinations(space, 2):
    bl.plotting.save(bl.plotting.plot_contour(result, list(pair))[0], f"{'-'.join(pair)}.png")
print("best value:", result.best_value_, result.best_params_)
