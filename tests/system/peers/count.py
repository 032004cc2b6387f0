"""Print how many lines of code the programs of other packages have, and their ports to belated.

Run it as ``python tests/system/peers/count.py``. A line counts if it has code: empty lines, comments and docstrings do
not count. All programs are formatted by the same rules, see ``programs/ruff.toml``. The first line of a docstring names
the package and describes the program. In a port, the text below this line is the note of the table. If the note begins
with "Longer:", it gives the reason why the port may have more lines than the original.
"""

import ast
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


@dataclass(frozen=True)
class Program:
    """A program of another package, and its port."""

    folder: Path

    @property
    def id(self) -> str:
        """The id in the table of programs, for example O1."""
        letter, number = self.folder.name[0], self.folder.name[1:3]
        return f"{letter.upper()}{int(number)}"

    @property
    def original(self) -> Path:
        return self.folder / "original.py"

    @property
    def port(self) -> Path:
        return self.folder / "port.py"

    @property
    def title(self) -> str:
        return _docstring(self.original).partition("\n")[0]

    @property
    def note(self) -> str:
        return " ".join(_docstring(self.port).partition("\n")[2].split())

    @property
    def may_be_longer(self) -> bool:
        return self.note.startswith("Longer:")


def programs() -> list[Program]:
    """Return the programs in the order of their folders."""
    return [Program(path.parent) for path in sorted(PROGRAMS.glob("*/port.py"))]


def n_lines(source: str) -> int:
    """Return the number of lines with code, without docstrings."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            docstrings |= _range(node.body[0].lineno, node.body[0].end_lineno)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines |= _range(token.start[0], token.end[0])
    return len(lines - docstrings)


def _range(first: int, last: int | None) -> set[int]:
    return set(range(first, (last or first) + 1))


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def lines_of(program: Program) -> tuple[int, int]:
    """Return the lines of the original and of the port."""
    original, port = (n_lines(path.read_text(encoding="utf-8")) for path in (program.original, program.port))
    return original, port


def table() -> str:
    """Return the counts as a table in Markdown."""
    rows = ["| id | program | original | port | difference | note |", "|---|---|---|---|---|---|"]
    total = [0, 0]
    for program in programs():
        original, port = lines_of(program)
        total[0] += original
        total[1] += port
        rows.append(f"| {program.id} | {program.title} | {original} | {port} | {port - original:+d} | {program.note} |")
    rows.append(f"| all | | {total[0]} | {total[1]} | {total[1] - total[0]:+d} | |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
