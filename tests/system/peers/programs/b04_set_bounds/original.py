"""bayesian-optimization: a search over wide bounds continues within narrow bounds."""

from bayes_opt import BayesianOptimization
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import cross_val_score

X, y = load_diabetes(return_X_y=True)


def score(log_rate, subsample):
    model = GradientBoostingRegressor(
        learning_rate=10**log_rate,
        subsample=subsample,
        n_estimators=60,
        max_depth=2,
        random_state=0,
    )
    return cross_val_score(model, X, y, cv=3).mean()


pbounds = {"log_rate": (-4, 0), "subsample": (0.2, 1)}
optimizer = BayesianOptimization(score, pbounds, random_state=1, verbose=0)
optimizer.maximize(init_points=5, n_iter=7)

best = optimizer.max["params"]["log_rate"]
optimizer.set_bounds({"log_rate": (best - 0.5, best + 0.5)})
optimizer.maximize(init_points=0, n_iter=8)
print(len(optimizer.res), "steps, best value:", optimizer.max["target"])
