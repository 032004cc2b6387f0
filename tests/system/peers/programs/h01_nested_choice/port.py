"""belated: conditions say which parameters belong to a model and to a kernel.

The names of the parameters are flat.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import belated as bl

X, y = load_wine(return_X_y=True)

space = {
    "type": ["svm", "tree"],
    "C": bl.Real(1e-3, 1e3, log=True, when={"type": "svm"}),
    "kernel": bl.Categorical(["linear", "rbf", "poly"], when={"type": "svm"}),
    "gamma": bl.Real(1e-4, 10, log=True, when={"kernel": "rbf"}),
    "degree": bl.Integer(2, 5, when={"kernel": "poly"}),
    "max_depth": bl.Integer(1, 8, when={"type": "tree"}),
}


def error(params):
    kind = {"svm": SVC, "tree": DecisionTreeClassifier}[params.pop("type")]
    model = kind(random_state=0, **params)
    return 1 - cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


result = bl.minimize(error, space, n_trials=30, seed=0)
print(result.best_params_, "best value:", result.best_value_)
