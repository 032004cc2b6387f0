"""The pages of docs/ and the blocks of Python in them."""

import ast
import re
from dataclasses import dataclass
from doctest import DocTestParser
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
# Pages that show a program for another package, and then the same program for belated.
COMPARISONS = sorted(DOCS.glob("from_*.md"))
# All other pages; their blocks continue one another.
GUIDES = sorted(set(DOCS.glob("*.md")) - set(COMPARISONS))


@dataclass(frozen=True)
class Block:
    """A fenced block of Python."""

    page: Path
    line: int
    #: The heading above the block.
    heading: str
    #: The package of the block: the word after ``python``; empty for belated.
    package: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line} ({self.heading})"

    @property
    def source(self) -> str:
        """The code after as many empty lines as it has lines before it on the page. Errors then name the line of the
        page."""
        return "\n" * self.line + self.code


def blocks(page: Path, ours: bool = False) -> list[Block]:
    """The blocks of Python of a page, in order; with `ours` only the blocks for belated."""
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
    """Whether a block is an interpreter session with its output."""
    return block.code.startswith(">>> ")


def is_program(block: Block) -> bool:
    """Whether a block runs its code only under ``if __name__ == "__main__"``, as processes require."""
    return 'if __name__ == "__main__":' in block.code


def source_of(block: Block) -> str:
    """The code of a block, without the output of a session."""
    if not is_session(block):
        return block.code
    return "".join(example.source for example in DocTestParser().get_examples(block.code))


def n_statements(code: str) -> int:
    """The number of statements, including nested statements."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(code)))
