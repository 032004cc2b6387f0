"""belated: a run is killed after some trials, and a second process continues its study.

`retry_pending` evaluates the trials of the killed run again.
"""

import os
import signal
import subprocess
import sys
import time

import belated as bl


def train(params):
    time.sleep(0.2)
    return (params["x"] - 1) ** 2 + (params["y"] + 2) ** 2


def kill(optimizer, trial):
    if sys.argv[1:] == ["killed"] and trial.number == 5:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if not sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "killed"])
    optimizer = bl.BayesOpt({"x": (-5.0, 5.0), "y": (-5.0, 5.0)}, direction="minimize", seed=0)
    study = bl.Study("run", "sqlite:///run.db", optimizer)
    run = dict(n_trials_total=12, n_workers=2, retry_pending=True, callbacks=[kill])
    bl.minimize(train, optimizer=study, **run)
    print(study.n_trials, "trials, best value:", study.best_value_)
