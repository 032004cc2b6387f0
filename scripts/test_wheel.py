"""Install the wheel from a folder in a new virtual environment, and use the package.

The Python that runs this program makes the environment. numpy is downloaded first. pip then installs belated and numpy
from their wheels, without the index, and without cargo on the path. The program prints the time from the start of this
installation to the first suggestion, and the CPU time of ``import belated`` after ``import numpy``.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

FIRST_SUGGESTION = "import belated as bl; bl.BayesOpt({'x': (-1.0, 1.0)}, seed=0).suggest()"

# After the initial design of four points, the last suggestions come from a model.
RUN = """
import belated as bl

space = {"x": (-1.0, 1.0), "kind": ["a", "b"]}

def f(params):
    return -params["x"] ** 2 - (params["kind"] == "b")

result = bl.maximize(f, space, n_trials=12, seed=0)
assert result.best_value_ > -0.1, result.best_value_

study = bl.Study("smoke", "sqlite:///smoke.db", bl.BayesOpt(space, seed=0))
first, second = study.suggest(n=2)
study.observe(second, 0.5)
study = bl.Study.load("smoke", "sqlite:///smoke.db")
study.observe(first, 0.25)
assert study.best_value_ == 0.5 and not study.pending
"""

IMPORT = """
import time
import numpy
start = time.process_time()
import belated
print(time.process_time() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheelhouse", type=Path, help="the folder of the wheel")
    parser.add_argument("--numpy", default="numpy", help="requirement of numpy (default: %(default)s)")
    args = parser.parse_args()

    names = ("cargo", "cargo.exe")
    folders = os.environ["PATH"].split(os.pathsep)
    without_cargo = [each for each in folders if not any((Path(each) / name).exists() for name in names)]
    environ = {**os.environ, "PATH": os.pathsep.join(without_cargo), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    with tempfile.TemporaryDirectory() as folder:
        home, wheels = Path(folder, "venv"), Path(folder, "wheels")
        venv.create(home, with_pip=True)
        programs = home / ("Scripts" if os.name == "nt" else "bin")

        def run(program: str, *arguments: "str | Path") -> str:
            command = [programs / program, *arguments]
            done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{program} {arguments} failed:\n{done.stdout}{done.stderr}")
            return done.stdout

        pip, only_wheels = ("-m", "pip", "--quiet"), ("--only-binary", ":all:")
        run("python", *pip, "download", *only_wheels, "--dest", wheels, args.numpy)
        start = time.perf_counter()
        sources = ("--no-index", "--find-links", args.wheelhouse.resolve(), "--find-links", wheels)
        run("python", *pip, "install", *only_wheels, *sources, "belated")
        run("python", "-c", FIRST_SUGGESTION)
        elapsed = time.perf_counter() - start

        run("python", "-c", RUN)
        environ["OPENBLAS_NUM_THREADS"] = "1"  # other threads of numpy may still be starting when belated is imported
        assert "study" in run("belated", "--help")
        seconds = statistics.median(float(run("python", "-c", IMPORT)) for _ in range(20))
        numpy = run("python", "-c", "import numpy; print(numpy.__version__)").strip()
    print(f"The wheel works with Python {platform.python_version()} and numpy {numpy}.")
    print(f"Installation and first suggestion: {elapsed:.1f} s. Import: {seconds * 1000:.0f} ms of CPU time.")


if __name__ == "__main__":
    main()
