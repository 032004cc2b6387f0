"""bayesian-optimization: at most 60 support vectors, a constraint on a measured quantity."""

import numpy as np
from bayes_opt import BayesianOptimization
from scipy.optimize import NonlinearConstraint
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_breast_cancer(return_X_y=True)


def model(log_C, log_gamma):
    return make_pipeline(StandardScaler(), SVC(C=10**log_C, gamma=10**log_gamma))


def accuracy(log_C, log_gamma):
    return cross_val_score(model(log_C, log_gamma), X, y, cv=3).mean()


def support_vectors(log_C, log_gamma):
    return model(log_C, log_gamma).fit(X, y)[-1].n_support_.sum()


optimizer = BayesianOptimization(
    f=accuracy,
    constraint=NonlinearConstraint(support_vectors, -np.inf, 60),
    pbounds={"log_C": (-1, 3), "log_gamma": (-4, 0)},
    random_state=4,
    verbose=0,
)
optimizer.maximize(init_points=6, n_iter=14)
allowed = sum(step["allowed"] for step in optimizer.res)
print(allowed, "of 20 allowed, best value:", optimizer.max["target"])
