"""Build the wheel of this checkout for this platform, and check the wheel.

maturin and the programs that check wheels are installed in a temporary virtual environment. On Linux, Zig links the
wheel, so that it runs with glibc 2.17 (manylinux2014), or with musl 1.2 if ``--target`` ends with ``musl``. A wheel
works with every CPython from 3.10 on. With ``--sdist`` the source distribution is also built.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ["abi3audit", "auditwheel; sys_platform == 'linux'", "maturin>=1.9,<2", "twine", "ziglang"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder of the wheel (default: dist)")
    parser.add_argument("--target", help="the Rust target, if it is not this platform")
    parser.add_argument("--sdist", action="store_true", help="also build the source distribution")
    args = parser.parse_args()
    on_linux = sys.platform == "linux"

    build = ["build", "--release", "--locked"]
    if on_linux:
        is_musl = (args.target or "").endswith("musl")
        build += ["--zig", "--compatibility", "musllinux_1_2" if is_musl else "manylinux2014"]
    if args.target:
        build += ["--target", args.target]

    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        environ = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        # The messages of panics name source files. The folders of this machine are left out of these names.
        folders = {ROOT: "belated", Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")): "cargo"}
        remapped = [f"--remap-path-prefix={folder}={name}" for folder, name in folders.items()]
        environ["RUSTFLAGS"] = " ".join([os.environ.get("RUSTFLAGS", ""), *remapped]).strip()

        def run(*command: "str | Path") -> None:
            print("+", *command, flush=True)
            subprocess.run([programs / command[0], *command[1:]], cwd=ROOT, env=environ, check=True)

        run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TOOLS)
        new = Path(folder) / "new"
        run("maturin", *build, "--out", new)
        (wheel,) = new.glob("*.whl")
        run("abi3audit", "--strict", "--verbose", wheel)
        if on_linux:
            run("auditwheel", "show", wheel)
        if args.sdist:
            run("maturin", "sdist", "--out", new)
        files = sorted(new.iterdir())
        run("twine", "check", "--strict", *files)
        args.out.mkdir(parents=True, exist_ok=True)
        for path in files:
            (args.out / path.name).write_bytes(path.read_bytes())
            print(f"{args.out / path.name}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
