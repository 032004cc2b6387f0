"""belated: each study has a file of its own, and files are listed and deleted.

There are no functions to list, copy and delete the studies of one store.
"""

from pathlib import Path

from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import cross_val_score

import belated as bl

X, y = load_diabetes(return_X_y=True)
space = {"alpha": bl.Real(1e-4, 1e1, log=True), "l1_ratio": (0.0, 1.0)}


def score(params):
    return cross_val_score(ElasticNet(**params), X, y, cv=5).mean()


for _ in range(2):
    study = bl.Study("net", "sqlite:///net.db", bl.BayesOpt(space, seed=0))
    bl.maximize(score, optimizer=study, n_trials=10)

optimizer = bl.BayesOpt(space, seed=1)
optimizer.add(study.trials_dataframe())
copy = bl.Study("copy", "sqlite:///copy.db", optimizer)
bl.maximize(score, optimizer=copy, n_trials=5)
print(sorted(path.stem for path in Path().glob("*.db")))
del study
for path in Path().glob("net.db*"):
    path.unlink()
for path in Path().glob("*.db"):
    study = bl.Study.load(path.stem, f"sqlite:///{path}")
    print(study.name, study.n_trials, "best value:", study.best_value_)
