"""belated: flat names, rounding in the function, and the solvers as a choice.

`best_params_` has the values before rounding.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import belated as bl


def train(params):
    X, y = load_breast_cancer(return_X_y=True)
    degree, only = params.pop("degree"), params.pop("interaction_only")
    features = PolynomialFeatures(degree, interaction_only=only, include_bias=False)
    params["C"] = round(params["C"], 2)
    params["max_iter"] = 10 * round(params["max_iter"] / 10)
    model = LogisticRegression(**params, random_state=0)
    pipeline = make_pipeline(StandardScaler(), features, StandardScaler(), model)
    return cross_val_score(pipeline, X[:, :6], y, cv=3).mean()


space = {
    "degree": (1, 3),
    "interaction_only": [True, False],
    "C": bl.Real(0.01, 10, log=True),
    "max_iter": bl.Integer(10, 200, log=True),
    "solver": ["lbfgs", "liblinear"],
}
result = bl.maximize(train, space, n_trials=10, n_workers=2, seed=0)
print(result.best_params_, "best value:", result.best_value_)
