"""belated: groups of parameters are nested; conditions assign parameters to kernels."""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import belated as bl

X, y = load_wine(return_X_y=True)

svm = {
    "C": bl.Real(1e-3, 1e3, log=True),
    "kernel": ["linear", "rbf", "poly"],
    "gamma": bl.Real(1e-4, 10, log=True, when={"kernel": "rbf"}),
    "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
}
space = {"model": bl.Choice({"svm": svm, "tree": {"max_depth": (1, 8)}})}


def error(params):
    [(kind, arguments)] = params["model"].items()
    model = {"svm": SVC, "tree": DecisionTreeClassifier}[kind](random_state=0, **arguments)
    return 1 - cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


result = bl.minimize(error, space, n_trials=30, seed=0)
print(result.best_params_, "best value:", result.best_value_)
