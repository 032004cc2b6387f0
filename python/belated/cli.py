"""The command line: `belated replay` replays an experiment of a paper.

`belated study` inspects a store of studies, and `belated serve` serves a store over HTTP.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from belated import _core
from belated.serve import command as serve_command
from belated.short_repr import printable
from belated.space.arguments import whole_in_text
from belated.study import commands as study_commands

if TYPE_CHECKING:
    from belated.replays.runner import Replay

# Exit codes. A shell reports 130 after SIGINT and 141 after SIGPIPE. argparse exits with 2 if arguments are invalid.
DONE, FAILED, INTERRUPTED, BROKEN_PIPE = 0, 1, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if sys.stdout is None:
        _report("standard output is closed: redirect it to a file, or to /dev/null")
        return FAILED
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names and help texts may contain characters that the encoding of the terminal lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            arguments = parser().parse_args(argv)
            return int(arguments.command(arguments) or DONE)
        finally:
            # Flush here: a closed pipe then raises an exception, which is handled below.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the pipe, for example `| head`, has closed it. Python flushes standard output again at exit, so
        # replace the pipe with the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        _report("interrupted")
        return INTERRUPTED
    except (_core.BelatedError, OSError, ImportError) as error:  # an optional package may be missing
        _report(error)
        return FAILED


def _report(problem: object) -> None:
    # If standard error is closed, sys.stderr is None, and print would write to standard output.
    if sys.stderr is not None:
        # Messages may contain names and texts of other users, with control characters.
        print(f"belated: {printable(str(problem))}", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    """Return the parser of commands and options. The parsed attribute ``command`` is the function to run."""
    top = argparse.ArgumentParser(prog="belated", description="Black-box optimisation when results come late.")
    top.add_argument("--version", action="version", version=f"belated {_core.__version__}")
    top.set_defaults(command=lambda arguments: top.print_help())
    commands = top.add_subparsers(title="commands", metavar="COMMAND")

    positive, natural = partial(whole, lowest=1), partial(whole, lowest=0)
    replay = commands.add_parser(
        "replay",
        help="replay an experiment of a paper",
        description="Replay an experiment of a paper; without a name, list the replays.",
    )
    replay.add_argument("name", metavar="NAME", nargs="?", type=replay_of, help="which experiment")
    replay.add_argument("--runs", metavar="R", type=positive, default=0, help="repetitions (default: the replay's own)")
    replay.add_argument(
        "--iterations", metavar="T", type=positive, default=0, help="suggestions per run after the initial points"
    )
    replay.add_argument("--seed", metavar="S", type=natural, default=0, help="seed of everything random (default: 0)")
    replay.add_argument("--data", metavar="DIR", type=folder, help="folder with the data and the published runs")
    replay.add_argument("--json", metavar="FILE", type=Path, help="write all numbers to this file")
    replay.add_argument("--plot", metavar="FILE.png", type=Path, help="draw the figure into this file")
    replay.add_argument("--quick", action="store_true", help="a small version that takes minutes (asyts, pcts…)")
    replay.add_argument(
        "--keep",
        metavar="DIR",
        type=Path,
        help="store runs there, and continue with stored ones (asyts, cifar, cnn, pcts…)",
    )
    replay.add_argument("--faithful", action="store_true", help="make the choices of the paper's code")
    replay.add_argument("--given", action="store_true", help="give the kernel instead of fitting it (sdf-synthetic)")
    replay.add_argument(
        "--workers",
        metavar="N",
        type=natural,
        help="worker processes (default: one per processor; 0: run in this process)",
    )
    replay.set_defaults(command=replay_command)
    study_commands.add_to(commands)
    serve_command.add_to(commands)
    return top


def replay_command(arguments: argparse.Namespace) -> None:
    """Execute a replay, or list the replays."""
    from belated import replays
    from belated.replays.runner import Options, execute

    if arguments.name is None:
        found = replays.found()
        width = max(map(len, found))
        for name, replay in found.items():
            print(f"{name:{width}}  {replay.description}")
        return
    settings = {name: value for name, value in vars(arguments).items() if name not in ("name", "command")}
    execute(arguments.name, Options(**settings))


def replay_of(name: str) -> Replay:
    """Return the replay with this name."""
    from belated import replays

    found: Mapping[str, Replay] = replays.found()
    if name not in found:
        raise argparse.ArgumentTypeError(f"there is no replay {name!r}: pass one of {', '.join(found)}")
    return found[name]


def folder(text: str) -> Path:
    """Convert the text of an argument to the path of an existing folder."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def whole(text: str, lowest: int) -> int:
    """Convert the text of an argument to an integer that is at least `lowest`."""
    number = whole_in_text(text)
    if number is None or number < lowest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number ≥ {lowest}")
    return number


if __name__ == "__main__":
    sys.exit(main())
