"""Ray Tune: a run is killed after some trials, and a second process restores it."""

import os
import signal
import subprocess
import sys
import time

from ray import tune

PATH = os.path.abspath("results")


def train(config):
    time.sleep(0.2)
    return {"loss": (config["x"] - 1) ** 2 + (config["y"] + 2) ** 2}


class Kill(tune.Callback):
    def on_trial_complete(self, iteration, trials, trial, **info):
        if sys.argv[1:] == ["killed"] and sum(t.is_finished() for t in trials) == 5:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if not sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "killed"])
    if tune.Tuner.can_restore(f"{PATH}/run"):
        tuner = tune.Tuner.restore(f"{PATH}/run", train)
    else:
        tuner = tune.Tuner(
            train,
            param_space={"x": tune.uniform(-5, 5), "y": tune.uniform(-5, 5)},
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                num_samples=12,
                max_concurrent_trials=2,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(name="run", storage_path=PATH, callbacks=[Kill()]),
        )
    results = tuner.fit()
    print(len(results), "trials, best value:", results.get_best_result().metrics["loss"])
