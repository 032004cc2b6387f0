"""belated: BelatedSearchCV over a pipeline, with one space whose conditions name the model.

The search divides the points between the models. A list of (space, n) is accepted too.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

import belated as bl
from belated.integrations.sklearn import BelatedSearchCV

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:600], y[:600], random_state=0)
svc, forest = SVC(), RandomForestClassifier(n_estimators=20, random_state=0)
pipeline = Pipeline([("select", SelectKBest()), ("model", svc)])
space = {
    "select__k": (10, 64),
    "model": [svc, forest],
    "model__C": bl.Real(1e-2, 1e3, log=True, when={"model": svc}),
    "model__gamma": bl.Real(1e-5, 1e0, log=True, when={"model": svc}),
    "model__max_depth": bl.Integer(2, 12, when={"model": forest}),
}
search = BelatedSearchCV(pipeline, space, n_iter=18, cv=3, random_state=0)
search.fit(X_train, y_train)
print("test:", search.score(X_test, y_test), search.best_params_)
print("best value:", search.best_score_)
