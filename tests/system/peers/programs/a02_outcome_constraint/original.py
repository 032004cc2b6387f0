"""Ax: accuracy is maximized under a constraint on the number of nodes; one metric is tracked."""

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


def evaluate(parameters):
    forest = RandomForestClassifier(random_state=0, **parameters).fit(X, y)
    return {
        "accuracy": forest.score(X_test, y_test),
        "nodes": sum(tree.tree_.node_count for tree in forest.estimators_),
        "training_accuracy": forest.score(X, y),
    }


client = Client(random_seed=0)
client.configure_experiment(
    parameters=[
        RangeParameterConfig(name="n_estimators", bounds=(3, 60), parameter_type="int"),
        RangeParameterConfig(name="max_depth", bounds=(1, 10), parameter_type="int"),
        RangeParameterConfig(name="max_features", bounds=(0.05, 1.0), parameter_type="float"),
    ]
)
client.configure_optimization(objective="accuracy", outcome_constraints=["nodes <= 500"])
client.configure_tracking_metrics(["training_accuracy"])
for _ in range(15):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        client.complete_trial(trial_index=index, raw_data=evaluate(parameters))
table = client.summarize()
allowed = table[table["nodes"] <= 500]
print(table["training_accuracy"].describe())
print(len(allowed), "of 15 allowed, best value:", allowed["accuracy"].max())
