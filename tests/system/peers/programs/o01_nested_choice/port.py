"""belated: parameters are active under conditions on the model and on the number of layers.

Longer: the space is declared before the function, with one condition for each parameter.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated as bl

X, y = load_wine(return_X_y=True)

space = {
    "model": ["svc", "network"],
    "C": bl.Real(1e-3, 1e3, log=True, when={"model": "svc"}),
    "gamma": bl.Real(1e-4, 1e1, log=True, when={"model": "svc"}),
    "alpha": bl.Real(1e-6, 1e-1, log=True, when={"model": "network"}),
    "n_layers": bl.Integer(1, 3, when={"model": "network"}),
}
for i in range(3):
    space[f"units_{i}"] = bl.Integer(4, 32, log=True, when={"n_layers": list(range(i + 1, 4))})


def accuracy(p):
    if p["model"] == "svc":
        model = SVC(C=p["C"], gamma=p["gamma"])
    else:
        layers = [p[f"units_{i}"] for i in range(p["n_layers"])]
        model = MLPClassifier(layers, alpha=p["alpha"], solver="lbfgs", max_iter=40, random_state=0)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


result = bl.maximize(accuracy, space, n_trials=20, seed=0)
print("best value:", result.best_value_, result.best_params_)
