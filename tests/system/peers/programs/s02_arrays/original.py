"""scikit-optimize: ask and tell in batches, with arrays, and the predictions of the model."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from skopt import Optimizer
from skopt.space import Real

X, y = load_breast_cancer(return_X_y=True)


def error(x):
    model = make_pipeline(StandardScaler(), SVC(C=x[0], gamma=x[1]))
    return 1 - cross_val_score(model, X, y, cv=3).mean()


dimensions = [Real(1e-3, 1e3, prior="log-uniform"), Real(1e-5, 1e1, prior="log-uniform")]
opt = Optimizer(dimensions, n_initial_points=6, random_state=0)
for _ in range(8):
    points = opt.ask(n_points=3)
    opt.tell(points, [error(x) for x in points])
points, values = np.array(opt.Xi), np.array(opt.yi)
grid = np.column_stack([np.ones(5), np.logspace(-4, 0, 5)])
mean, std = opt.models[-1].predict(opt.space.transform(grid.tolist()), return_std=True)
print(points.shape, values.shape, mean.round(2), std.round(2))
print("best value:", values.min(), points[values.argmin()])
