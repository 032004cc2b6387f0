"""Ax: booleans and ordered choices, and a snapshot in JSON from which another process continues."""

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True)


def accuracy(width, learning_rate, nesterovs_momentum):
    network = MLPClassifier(
        (width,),
        solver="sgd",
        learning_rate_init=learning_rate,
        nesterovs_momentum=nesterovs_momentum,
        max_iter=20,
        random_state=0,
    )
    return cross_val_score(make_pipeline(StandardScaler(), network), X, y, cv=3).mean()


lr = RangeParameterConfig("learning_rate", (1e-4, 0.5), parameter_type="float", scaling="log")
width = ChoiceParameterConfig("width", [4, 8, 16, 32], parameter_type="int", is_ordered=True)
nesterov = ChoiceParameterConfig("nesterovs_momentum", [True, False], parameter_type="bool")
client = Client(random_seed=0)
client.configure_experiment(parameters=[width, lr, nesterov])
client.configure_optimization(objective="accuracy")
for _ in range(6):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        client.complete_trial(trial_index=index, raw_data={"accuracy": accuracy(**parameters)})
        client.save_to_json_file("snapshot.json")

later = Client.load_from_json_file("snapshot.json")
for _ in range(6):
    for index, parameters in later.get_next_trials(max_trials=1).items():
        later.complete_trial(trial_index=index, raw_data={"accuracy": accuracy(**parameters)})
        later.save_to_json_file("snapshot.json")
table = later.summarize()
print(len(table), "trials, best value:", table["accuracy"].max())
