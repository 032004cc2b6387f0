"""belated: studies in a database are resumed, listed, copied and deleted."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)
store = "sqlite:///studies.db"
space = {"alpha": bl.Real(1e-4, 1e1, log=True), "l1_ratio": (0.0, 1.0)}


def score(params):
    return cross_val_score(ElasticNet(**params), X, y, cv=5).mean()


for _ in range(2):
    study = bl.Study("net", store, bl.BayesOpt(space, seed=0))
    bl.maximize(score, optimizer=study, n_trials=10)

bl.maximize(score, optimizer=study.copy("copy"), n_trials=5)
print([summary.name for summary in bl.Study.list(store)])
bl.Study.delete("net", store)
for summary in bl.Study.list(store):
    print(summary.name, summary.n_trials, "best value:", summary.best_value)
