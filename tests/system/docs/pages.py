"""The pages of docs/ and the blocks of Python in them."""

import ast
import re
from dataclasses import dataclass
from doctest import DocTestParser
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
# Pages that show a program for another package, and then the same program for belated.
COMPARISONS = sorted(DOCS.glob("from_*.md"))
# Pages that show only programs for belated; each block of a page continues the blocks above it.
GUIDES = sorted(set(DOCS.glob("*.md")) - set(COMPARISONS))


@dataclass(frozen=True)
class Block:
    """A fenced block of Python."""

    page: Path
    line: int
    #: The heading above the block.
    heading: str
    #: The package of the block, given after the word ``python``; empty for belated.
    package: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line} ({self.heading})"

    @property
    def source(self) -> str:
        """The block's code, preceded by an empty line for each line above the block, so that line numbers in errors are
        line numbers of the page."""
        return "\n" * self.line + self.code


def blocks(page: Path, ours: bool = False) -> list[Block]:
    """Return the blocks of Python on a page, in order; with `ours=True` only the blocks for belated."""
    found: list[Block] = []
    heading, start, package = "", None, ""
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if start is not None:
            if line == "```":
                code = "\n".join(lines[start : number - 1]) + "\n"
                found.append(Block(page, start, heading, package, code))
                start = None
        elif fence := re.fullmatch(r"```python ?(\w*)", line):
            start, package = number, fence[1]
        elif line.startswith("## "):
            heading = line.removeprefix("## ")
    return [block for block in found if not (ours and block.package)]


def is_session(block: Block) -> bool:
    """Return whether a block is an interpreter session with output."""
    return block.code.startswith(">>> ")


def is_program(block: Block) -> bool:
    """Return whether a block runs its code under ``if __name__ == "__main__"``, as worker processes require."""
    return 'if __name__ == "__main__":' in block.code


def source_of(block: Block) -> str:
    """Return the code of a block; the output of a session is left out."""
    if not is_session(block):
        return block.code
    return "".join(example.source for example in DocTestParser().get_examples(block.code))


def n_statements(code: str) -> int:
    """Return the number of statements in the code, including nested statements."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(code)))
