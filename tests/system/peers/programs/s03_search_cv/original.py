"""scikit-optimize: BayesSearchCV over a pipeline, with several spaces and numbers of points."""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from skopt import BayesSearchCV
from skopt.space import Categorical, Integer, Real

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:600], y[:600], random_state=0)
pipeline = Pipeline([("select", SelectKBest()), ("model", SVC())])
svc = {
    "select__k": Integer(10, 64),
    "model": Categorical([SVC()]),
    "model__C": Real(1e-2, 1e3, prior="log-uniform"),
    "model__gamma": Real(1e-5, 1e0, prior="log-uniform"),
}
forest = {
    "select__k": Integer(10, 64),
    "model": Categorical([RandomForestClassifier(n_estimators=20, random_state=0)]),
    "model__max_depth": Integer(2, 12),
}
search = BayesSearchCV(pipeline, [(svc, 12), (forest, 6)], cv=3, random_state=0)
search.fit(X_train, y_train)
print("test:", search.score(X_test, y_test), search.best_params_)
print("best value:", search.best_score_)
