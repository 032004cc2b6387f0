"""For each folder of the package and the core, count the lines of code without blank lines, comments and docstrings.

python benchmarks/count_lines.py
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, CORE = ROOT / "python" / "belated", ROOT / "src"
WRAPPER = ("space", "optimizers", "hints.py", "hints")

# Tokens that are not code.
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

# The pattern first tries strings and characters, so `//` inside a string is not taken for a comment.
RUST = re.compile(
    r"""(?P<code>b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\[^u]|\\u\{\w+\})')"""
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)",
    re.DOTALL | re.VERBOSE,
)
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\(\w+\))?\s+)?mod\s+\w+\s*(?P<opens>[;{])")


def python_lines(source: str) -> int:
    """Return the number of lines with a token that is neither a comment nor part of a docstring."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.update(range(first.lineno, first.end_lineno + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def rust_lines(source: str) -> tuple[int, int]:
    """Count lines that are neither comments nor blank. Return the number of lines of code and the number of lines in
    `#[cfg(test)]` modules."""
    source = RUST.sub(lambda found: found["code"] or "\n" * found[0].count("\n"), source)
    # The contents of strings are removed first, so that braces inside strings are not counted.
    braces = RUST.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), source)
    tests = 0
    while found := TEST_MODULE.search(braces):
        end, depth = found.end(), int(found["opens"] == "{")
        while depth:
            depth += {"{": 1, "}": -1}.get(braces[end], 0)
            end += 1
        tests += filled(source[found.start() : end])
        source = source[: found.start()] + source[end:]
        braces = braces[: found.start()] + braces[end:]
    return filled(source), tests


def filled(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def folder(path: Path, root: Path) -> str:
    return path.relative_to(root).parts[0]


def report(title: str, counts: Counter[str]) -> None:
    print(f"\n{title}")
    for name, lines in sorted(counts.items(), key=lambda each: -each[1]):
        print(f"  {name:<24}{lines:>7}")
    print(f"  {'total':<24}{counts.total():>7}")


def sources(root: Path, pattern: str) -> Iterable[tuple[Path, str]]:
    return ((path, path.read_text(encoding="utf-8")) for path in sorted(root.rglob(pattern)))


def main() -> None:
    python: Counter[str] = Counter()
    for path, source in sources(PACKAGE, "*.py"):
        python[folder(path, PACKAGE)] += python_lines(source)
    rust: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for path, source in sources(CORE, "*.rs"):
        lines, in_tests = rust_lines(source)
        if path.name == "tests.rs" or "tests" in path.relative_to(CORE).parts[:-1]:
            lines, in_tests = 0, lines + in_tests
        rust[folder(path, CORE)] += lines
        tests[folder(path, CORE)] += in_tests
    report("python/belated", python)
    print(f"  {'space, optimizers, hints':<24}{sum(python[name] for name in WRAPPER):>7}")
    report("src", rust)
    report("src, tests", +tests)


if __name__ == "__main__":
    main()
