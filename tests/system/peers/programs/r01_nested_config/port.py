"""belated: a nested space, steps on a logarithmic scale, and the solvers as a choice."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import belated as bl


def train(params):
    X, y = load_breast_cancer(return_X_y=True)
    features = PolynomialFeatures(**params["features"], include_bias=False)
    model = LogisticRegression(**params["model"], random_state=0)
    pipeline = make_pipeline(StandardScaler(), features, StandardScaler(), model)
    return cross_val_score(pipeline, X[:, :6], y, cv=3).mean()


space = {
    "features": {"degree": (1, 3), "interaction_only": [True, False]},
    "model": {
        "C": bl.Real(0.01, 10, log=True, step=0.01),
        "max_iter": bl.Integer(10, 200, log=True, step=10),
        "solver": ["lbfgs", "liblinear"],
    },
}
result = bl.maximize(train, space, n_trials=10, n_workers=2, seed=0)
print(result.best_params_, "best value:", result.best_value_)
