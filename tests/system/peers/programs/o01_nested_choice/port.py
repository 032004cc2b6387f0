"""belated: groups of parameters are nested in the choice of a model.

Longer: the space is declared before the function that reads it.
"""

from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import belated as bl

X, y = load_wine(return_X_y=True)

svc = {"C": bl.Real(1e-3, 1e3, log=True), "gamma": bl.Real(1e-4, 1e1, log=True)}
network = {"alpha": bl.Real(1e-6, 1e-1, log=True), "n_layers": (1, 3)}
for i in range(3):
    network[f"units_{i}"] = bl.Integer(4, 32, log=True, when={"n_layers": list(range(i + 1, 4))})


def accuracy(params):
    [(kind, p)] = params["model"].items()
    if kind == "svc":
        model = SVC(**p)
    else:
        layers = [p[f"units_{i}"] for i in range(p["n_layers"])]
        model = MLPClassifier(layers, alpha=p["alpha"], solver="lbfgs", max_iter=40, random_state=0)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


space = {"model": bl.Choice({"svc": svc, "network": network})}
result = bl.maximize(accuracy, space, n_trials=20, seed=0)
print("best value:", result.best_value_, result.best_params_)
