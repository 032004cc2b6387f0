"""Ax: shares of a mixture, with linear constraints on the parameters."""

import math

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig


def strength(cement, slag, ash):
    water = 1 - cement - slag - ash
    binder = cement + 0.7 * slag + 0.4 * ash
    return 80 * binder * math.exp(-12 * (water - 0.35 * binder) ** 2) - 30 * cement**2


client = Client(random_seed=0)
client.configure_experiment(
    parameters=[
        RangeParameterConfig(name="cement", bounds=(0.1, 0.8), parameter_type="float"),
        RangeParameterConfig(name="slag", bounds=(0.0, 0.6), parameter_type="float"),
        RangeParameterConfig(name="ash", bounds=(0.0, 0.4), parameter_type="float"),
    ],
    parameter_constraints=["cement + slag + ash <= 0.85", "slag <= 2.0 * ash + 0.1"],
)
client.configure_optimization(objective="strength")
for _ in range(15):
    for index, parameters in client.get_next_trials(max_trials=1).items():
        client.complete_trial(trial_index=index, raw_data={"strength": strength(**parameters)})
_, _, best, _ = client.get_best_parameterization(use_model_predictions=False)
print("best value:", client.summarize(trial_indices=[best])["strength"].item())
