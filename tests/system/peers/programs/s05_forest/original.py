"""scikit-optimize: forest_minimize with earlier points and values, and plots of its model."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score
from skopt import forest_minimize
from skopt.plots import plot_objective
from skopt.space import Integer, Real

X, y = load_diabetes(return_X_y=True)


def error(x):
    model = GradientBoostingRegressor(
        max_depth=x[0], learning_rate=x[1], subsample=x[2], n_estimators=30, random_state=0
    )
    return -cross_val_score(model, X, y, cv=3).mean()


space = [
    Integer(1, 6, name="max_depth"),
    Real(1e-3, 1.0, prior="log-uniform", name="learning_rate"),
    Real(0.3, 1.0, name="subsample"),
]
x0 = [[3, 0.1, 1.0], [1, 0.1, 1.0], [2, 0.03, 0.5]]
y0 = [error(x) for x in x0]
res = forest_minimize(
    error, space, base_estimator="ET", x0=x0, y0=y0, n_calls=20, n_initial_points=5, random_state=0
)
plot_objective(res, n_points=10, n_samples=20)
plt.savefig("objective.png")
print("best value:", res.fun, res.x)
