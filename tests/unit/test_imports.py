"""Imports go one way: a room imports only from rooms before it, read from the sources without importing them."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import belated

PACKAGE = Path(belated.__file__).parent
CORE = Path(__file__).parents[2] / "src"

# A room may import the rooms before it.
PYTHON_ROOMS = (
    *("_core", "warn", "short_repr", "space", "optimizers", "store", "study", "run", "simulate", "functions"),
    *("plotting", "integrations", "experiments", "serve", "cli"),
)
# Rooms that may import fewer than those before them, and the only rooms that may import the package as its users do.
ALLOWED = {
    "store": {"_core", "short_repr", "warn"},
    "simulate": {"_core", "short_repr"},
    "functions": {"_core", "space"},
}
USERS = {"integrations", "experiments"}

# What integrations, which no other module imports, may load at once: the package that they are for, and what it needs.
INTEGRATED = {
    "belated.integrations.sklearn": {"joblib", "sklearn"},
    "belated.integrations.joblib_tasks": {"joblib"},
    "belated.integrations.optuna": {"optuna"},
    # Imported by the command `belated serve` when it is called.
    "belated.serve.app": {"fastapi", "starlette"},
    "belated.serve.connections": {"uvicorn"},
    "belated.serve.messages": {"pydantic"},
    "belated.serve.studies": {"anyio"},
    "belated.integrations.ray.checkpoint": {"ray"},
    "belated.integrations.ray.search": {"ray"},
    "belated.integrations.ray.space": {"ray"},
    "belated.integrations.ray.tasks": {"ray"},
}

RUST_ROOMS = (
    *("error", "random", "numerics", "domain", "ledger", "gp", "acquisition", "maximize", "strategy"),
    *("optimizer", "snapshot", "python"),
)
# What knows no model.
MODEL_FREE = ("ledger/", "strategy/mod.rs")
MODEL = {"gp", "acquisition"}


def module_name(path):
    parts = ["belated", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
KNOWN = {*MODULES, "belated._core"}


def statements(node, in_function=False):
    """(import statement, whether it stands in a function) of a module, without those for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, in_function
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from statements(child, in_function or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)))


def imports(name):
    """(line, module, whether in a function) of each import of a module; `from belated import x` imports belated.x."""
    for statement, in_function in statements(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found = [alias.name for alias in statement.names]
        else:
            assert statement.level == 0, f"{name}:{statement.lineno}: relative import"
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            found = [each if each in KNOWN else statement.module for each in names]
        yield from ((statement.lineno, each, in_function) for each in dict.fromkeys(found))


def room(module):
    return (module.split(".") + [""])[1]


def test_every_module_belongs_to_a_room():
    assert {room(module) for module in MODULES} <= {"", *PYTHON_ROOMS}


def test_rooms_import_only_rooms_before_them():
    wrong = []
    for name in MODULES:
        here = room(name)
        if not here:
            continue
        before = ALLOWED.get(here, set(PYTHON_ROOMS[: PYTHON_ROOMS.index(here)])) | {here}
        if here in USERS:
            before |= {""}
        for line, module, _ in imports(name):
            if module.split(".")[0] == "belated" and room(module) not in before:
                wrong.append(f"{name}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_there_is_no_circle():
    graph = {}
    for name in MODULES:
        graph[name] = set()
        for _, module, _ in imports(name):
            if module.split(".")[0] != "belated":
                continue
            parts = module.split(".")
            # Importing a.b.c runs a.b as well; the package itself is being imported in any case.
            needed = {".".join(parts[:n]) for n in range(2, len(parts) + 1)} if len(parts) > 1 else {module}
            graph[name] |= {each for each in needed if not f"{name}.".startswith(f"{each}.")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' <- '.join(error.args[1])}")


def test_modules_load_without_heavy_libraries():
    light = {"belated", "numpy", *sys.stdlib_module_names}
    heavy = [
        f"{name}:{line} imports {module}"
        for name in MODULES
        for line, module, in_function in imports(name)
        if not in_function and module.split(".")[0] not in light | INTEGRATED.get(name, set())
    ]
    assert not heavy, "\n".join(heavy)


def test_integrations_are_imported_by_integrations_alone():
    wrong = [
        f"{name}:{line} imports {module}"
        for name in MODULES
        for line, module, _ in imports(name)
        if room(module) == "integrations" and room(name) != "integrations"
    ]
    assert not wrong, "\n".join(wrong)


def rust_paths():
    """(file, line, room) of each path `crate::room` in the sources, tests and comments left out."""
    for path in sorted(CORE.rglob("*.rs")):
        file = path.relative_to(CORE).as_posix()
        if file.endswith("tests.rs") or "/tests/" in file:
            continue
        source, _, _ = path.read_text(encoding="utf-8").partition("#[cfg(test)]")
        # Comments become spaces, so that lines keep their numbers.
        source = re.sub(r"//[^\n]*", "", source)
        for match in re.finditer(r"\bcrate::(?:(\w+)|\{([^;]*)\};)", source):
            line = source.count("\n", 0, match.start()) + 1
            if match[1]:
                yield file, line, match[1]
            else:
                outermost = re.sub(r"\{[^{}]*\}", "", match[2])
                yield from ((file, line, each) for each in re.findall(r"(?:^|,)\s*(\w+)", outermost))


needs_sources = pytest.mark.skipif(not CORE.is_dir(), reason="the sources of the core are not here")


@needs_sources
def test_rooms_of_the_core_import_only_rooms_before_them():
    upwards = []
    for file, line, there in rust_paths():
        here = file.split("/")[0].removesuffix(".rs")
        if here == "lib" or there not in RUST_ROOMS:
            continue
        if RUST_ROOMS.index(there) > RUST_ROOMS.index(here):
            upwards.append(f"{file}:{line} imports {there}")
    assert not upwards, "\n".join(upwards)


@needs_sources
def test_the_log_and_the_trait_know_no_model():
    models = [f"{file}:{line} imports {there}" for file, line, there in rust_paths() if there in MODEL]
    wrong = [each for each in models if each.startswith(MODEL_FREE)]
    assert not wrong, "\n".join(wrong)


def test_dir_lists_the_public_names_alone():
    assert [name for name in dir(belated) if not name.startswith("__")] == sorted(
        set(belated.__all__) - {"__version__"}
    )


def test_files_are_short_and_import_no_underscore_names_of_others():
    """The imports inside functions are part of `test_there_is_no_circle`."""
    wrong = []
    for name, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        n_lines = source.count("\n")
        if n_lines > 500:
            wrong.append(f"{name} has {n_lines} lines")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "belated":
                private = [alias.name for alias in node.names if alias.name.startswith("_") and alias.name != "_core"]
                private = [each for each in private if not each.startswith("__")]
                wrong += [f"{name}:{node.lineno} imports {each} of {node.module}" for each in private]
    assert not wrong, "\n".join(wrong)
