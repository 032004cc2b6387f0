"""A room (a group of modules) imports only from earlier rooms. The tests read imports from the sources without
executing them."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import belated

PACKAGE = Path(belated.__file__).parent
CORE = Path(__file__).parents[2] / "src"

# Each room may import the rooms that precede it in this list.
PYTHON_ROOMS = (
    *("_core", "errors", "warn", "short_repr", "hints", "space", "optimizers", "papers", "store", "study", "run"),
    *("simulate", "functions"),
    *("plotting", "integrations", "replays", "serve", "cli", "__main__"),
)
# {room: the rooms that it may import, and no others}. Only the rooms in `USERS` may import the package as its users do.
ALLOWED = {
    "store": {"_core", "errors", "short_repr", "warn"},
    "simulate": {"_core", "short_repr"},
    "functions": {"_core", "space"},
}
USERS = {"integrations", "replays"}

# The packages that an integration may import when it is loaded: the integrated package and its dependencies.
INTEGRATED = {
    "belated.integrations.sklearn": {"joblib", "sklearn"},
    "belated.integrations.sklearn_resource": {"joblib", "sklearn"},
    "belated.integrations.sklearn_spaces": {"sklearn"},
    "belated.integrations.joblib_tasks": {"joblib"},
    "belated.integrations.optuna": {"optuna"},
    "belated.integrations.lightgbm": {"lightgbm"},
    "belated.integrations.xgboost": {"xgboost"},
    # The modules that the command `belated serve` imports when it is called.
    "belated.serve.app": {"fastapi", "starlette"},
    "belated.serve.connections": {"h11", "uvicorn"},
    "belated.serve.messages": {"pydantic"},
    "belated.serve.problems": {"starlette"},
    "belated.serve.studies": {"anyio"},
    "belated.integrations.ray.checkpoint": {"ray"},
    "belated.integrations.ray.search": {"ray"},
    "belated.integrations.ray.space": {"ray"},
    "belated.integrations.ray.tasks": {"ray"},
}

RUST_ROOMS = (
    *("error", "random", "numerics", "delays", "curves", "problem", "ledger", "gp", "maximize", "strategy"),
    *("stopping", "optimizer", "snapshot", "python"),
)
# The rooms that must not import a model.
MODEL_FREE = ("ledger/", "strategy/mod.rs")
MODEL = {"gp"}


def module_name(path):
    parts = ["belated", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
KNOWN = {*MODULES, "belated._core"}


def statements(node, later=False):
    """Yield each import of a module, and whether it is in a function or only for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, later
        else:
            for_types = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            in_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from statements(child, later or for_types or in_function)


def imports(name):
    """For each import of a module, return (line, imported module, whether the import is left out when the module is
    loaded); `from belated import x` imports belated.x."""
    for statement, later in statements(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            found = [alias.name for alias in statement.names]
        else:
            assert statement.level == 0, f"{name}:{statement.lineno}: relative import"
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            found = [each if each in KNOWN else statement.module for each in names]
        yield from ((statement.lineno, each, later) for each in dict.fromkeys(found))


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


def test_imports_are_not_circular():
    """Imports inside functions and imports for type checkers count, too."""
    graph = {}
    for name in MODULES:
        graph[name] = set()
        for _, module, _ in imports(name):
            if module.split(".")[0] != "belated":
                continue
            parts = module.split(".")
            # Importing a.b.c also imports a.b. The package `belated` is left out, because it is imported in any case.
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
        for line, module, later in imports(name)
        if not later and module.split(".")[0] not in light | INTEGRATED.get(name, set())
    ]
    assert not heavy, "\n".join(heavy)


def test_only_integrations_import_integrations():
    wrong = [
        f"{name}:{line} imports {module}"
        for name in MODULES
        for line, module, _ in imports(name)
        if room(module) == "integrations" and room(name) != "integrations"
    ]
    assert not wrong, "\n".join(wrong)


def rust_paths():
    """Return (file, line, room) for each path `crate::room` in the sources. Tests and comments are left out."""
    for path in sorted(CORE.rglob("*.rs")):
        file = path.relative_to(CORE).as_posix()
        if file.endswith("tests.rs") or "/tests/" in file:
            continue
        source, _, _ = path.read_text(encoding="utf-8").partition("#[cfg(test)]")
        # Comments are replaced by spaces, so line numbers do not change.
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
def test_the_log_and_the_trait_do_not_import_models():
    models = [f"{file}:{line} imports {there}" for file, line, there in rust_paths() if there in MODEL]
    wrong = [each for each in models if each.startswith(MODEL_FREE)]
    assert not wrong, "\n".join(wrong)


def rust_source(path):
    """Return the source of a file without comments, up to the first `#[cfg(test)]` of a module."""
    source = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\b", source)[0]


def used_paths(tree):
    """Return the paths of a use tree as lists of segments: `a::{b, c::d}` is a::b and a::c::d."""
    prefix, brace, rest = tree.partition("{")
    segments = [each.strip() for each in prefix.split("::") if each.strip()]
    if not brace:
        return [[each.split(" as ")[0].strip() for each in segments]]
    inner, depth, start, parts = rest[: rest.rindex("}")], 0, 0, []
    for i, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(inner[start:i])
            start = i + 1
    parts.append(inner[start:])
    return [segments + path for part in parts if part.strip() for path in used_paths(part)]


def rust_modules():
    """Return {path of a module: file} for the modules of the core. Both a/mod.rs and a.rs are the module a."""
    files = {}
    for path in sorted(CORE.rglob("*.rs")):
        parts = path.relative_to(CORE).with_suffix("").parts
        if parts[-1] == "tests" or "tests" in parts:
            continue
        files[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = path
    return files


RUST_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+((?:crate|super|self|\w+)\s*::[^;]*);")
RUST_TYPE = re.compile(r"\b(?:struct|enum|union|trait|type)\s+(\w+)")
RUST_INHERENT = re.compile(r"^impl(?:<[^{]*?>)?\s+(\w+)(?:<[^{]*?>)?\s*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
RUST_METHOD = re.compile(r"\bfn\s+(\w+)")


def absolute(path, module, names, files):
    """Convert a path in a module to a path from the root of the crate. Return None if the path starts at another crate
    or at a type of the module."""
    here = list(module)
    if path[0] == "crate":
        here, path = [], path[1:]
    elif path[0] in names:
        here, path = list(names[path[0]]), path[1:]
    elif path[0] not in ("self", "super") and (*module, path[0]) not in files:
        return None
    while path and path[0] in ("self", "super"):
        here, path = here[:-1] if path[0] == "super" else here, path[1:]
    return (*here, *[each for each in path if each != "self"])


def rust_imports(sources=None):
    """For each module of the core, return the modules that it uses. A use is a `use`, a path in the code, or a method
    that the other module adds to a type.

    A use of a re-exported item is a use of the module that defines the item. Two uses are allowed: a module names the
    items that it re-exports (an enum of the kinds in its folder), and the registration of the bindings names all
    classes.
    """
    sources = sources or {module: rust_source(path) for module, path in rust_modules().items()}
    exported, names, found = {}, {}, {}
    for module, source in sources.items():
        names[module], found[module] = {}, []
        for public, tree in RUST_USE.findall(source):
            for path in used_paths(tree):
                there = absolute(path, module, {}, sources)
                if there and public:
                    exported[(*module, there[-1])] = there
                elif there:
                    found[module].append(there)
                    names[module][there[-1]] = there
        # The loop reads paths in the code: full paths, and paths that start at a module that was imported by `use`.
        for path in re.findall(r"(?<![\w:])\w+(?:::\w+)+", RUST_USE.sub("", source)):
            there = absolute(path.split("::"), module, names[module], sources)
            if there:
                found[module].append(there)

    def resolved(path):
        """Return the module that defines the item of this path."""
        seen = set()
        while path not in seen and path not in sources:
            seen.add(path)
            for n in range(len(path), 0, -1):
                if path[:n] in exported and path[:n] not in sources:
                    path = (*exported[path[:n]], *path[n:])
                    break
        while path and path not in sources:
            path = path[:-1]
        return path

    found["python",] = []
    graph = {module: {resolved(path) for path in paths} for module, paths in found.items()}
    for caller, module in added_methods(sources, names, resolved):
        graph[caller].add(module)
    graph = {module: {each for each in there if each and each != module} for module, there in graph.items() if module}
    return {"::".join(module): {"::".join(each) for each in there} for module, there in graph.items()}


def added_methods(sources, names, resolved):
    """Return (caller, module) for each call of a method that the module adds to another module's type. Only methods
    with a unique name are found. The type's own module may call the method, because a type may be split over two
    files."""
    defined = {}
    for module, source in sources.items():
        for name in RUST_METHOD.findall(source):
            defined.setdefault(name, set()).add(module)
    for module, source in sources.items():
        own = set(RUST_TYPE.findall(source))
        for type_name, body in RUST_INHERENT.findall(source):
            home = resolved(names[module].get(type_name, module))
            if type_name in own:
                continue
            for method in RUST_METHOD.findall(body):
                for caller in sources if defined[method] == {module} else ():
                    if caller not in (home, module) and re.search(rf"(?:\.|::){method}\(", sources[caller]):
                        yield caller, module


def cycles(graph):
    """Use Tarjan's algorithm to return the sets of modules that reach each other by imports."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for there in sorted(graph[node]):
            if there not in index:
                visit(there)
                low[node] = min(low[node], low[there])
            elif there in stack:
                low[node] = min(low[node], index[there])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


@needs_sources
def test_imports_of_the_core_are_not_circular():
    assert not cycles(rust_imports())


@pytest.mark.parametrize(
    "sources",
    [
        {("a",): "use crate::b::Y;", ("b",): "use crate::a::X;"},
        {("a",): "fn f() -> crate::b::Y {}", ("b",): "use crate::a::X;"},
        {("a",): "pub mod b; fn f() -> b::Y {}", ("a", "b"): "use super::X;"},
        {("a",): "pub mod b; pub mod c; pub use c::Z;", ("a", "b"): "use crate::a::Z;", ("a", "c"): "use super::b::Y;"},
        {("a",): "use crate::b; fn f() -> b::Y {}", ("b",): "use crate::a::X;"},
        {
            ("a",): "pub struct X;",
            ("b",): "use crate::a::X;\nuse crate::c::Y;\nimpl X {\n    fn f(&self) {}\n}\n",
            ("c",): "x.f();",
        },
    ],
    ids=["use", "path", "child", "export", "imported module", "method"],
)
def test_a_cycle_of_the_core_is_found(sources):
    assert len(cycles(rust_imports({(): "", **sources}))) == 1


def test_public_names():
    """Further names belong in `belated.errors`, `belated.papers` or another module."""
    runs = ["maximize", "minimize", "Result", "RunningTrial", "StopRun", "NoImprovement", "ValueReached", "Study"]
    optimizers = ["BayesOpt", "RandomSearch", "TreeSearch", "BPEDelay", "Optimizer", "Trial", "algorithm", "algorithms"]
    spaces = ["Real", "Integer", "Ordinal", "Categorical", "Choice", "Space", "Params", "Fidelity", "PowerCost"]
    spaces += ["Linear", "Mixture", "Cardinality"]
    outcomes = ["Minimize", "Maximize", "AtMost", "AtLeast", "Between", "Record"]
    curves = ["Curve", "ASHA", "MedianStopping", "ModelStopping"]
    acquisitions = ["LogEI", "UCB", "ThompsonSampling", "GP", "Initial", "Search"]
    policies = ["Integrate", "Hallucinate", "Ignore", "Censor", "Liar"]
    others = ["BelatedError", "BelatedWarning", "plotting", "errors", "papers", "__version__"]
    names = [*runs, *optimizers, *spaces, *outcomes, *curves, *acquisitions, *policies, *others]
    assert sorted(belated.__all__) == sorted(names) and len(names) == 54 + 1
    for module in (belated, belated.errors, belated.papers):
        assert all(hasattr(module, name) for name in module.__all__)


def test_dir_lists_only_the_public_names():
    assert [name for name in dir(belated) if not name.startswith("__")] == sorted(
        set(belated.__all__) - {"__version__"}
    )


def test_files_do_not_import_private_names_of_others():
    """`test_imports_are_not_circular` also covers the imports inside functions."""
    wrong = []
    for name, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "belated":
                private = [alias.name for alias in node.names if alias.name.startswith("_") and alias.name != "_core"]
                private = [each for each in private if not each.startswith("__")]
                wrong += [f"{name}:{node.lineno} imports {each} of {node.module}" for each in private]
    assert not wrong, "\n".join(wrong)
