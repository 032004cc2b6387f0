"""Write the tables of measurements in the pages of docs/ from data/replays/ and data/measurements/.

    python benchmarks/page_tables.py          # write the tables into docs/
    python benchmarks/page_tables.py check    # list differences and numbers without a source

Each file of the two folders has the name of a page. A file of data/measurements/ has these entries:

* ``tables``: name → command, commit, header and rows. The results were made by the command at the commit; for results
  from before this file existed, the commit is the one that recorded them. An empty command means that the program is
  not part of the repository.
* ``settings``: numbers in the text of the page that are settings, not results.

A file of data/replays/ has the same entries, but its tables have the names of their runs instead of a command and a
commit. It also has these entries:

* ``runs``: name → command, commit, seeds, counts, minutes on two cores, and a sample of replay_samples.py.
* ``results``: the rows of the page's main table. A row names its run, and has a figure, what was compared, the
  published outcome, our outcome, and a verdict.

A table stands on the page between the lines ``<!-- table: NAME -->`` and ``<!-- end of table -->``. The main table of
a replay has the name *results*. The page replays.md has the table *overview* of all replays. In a section with such a
table, each number of the text must occur in a table of the page or in its settings.
"""

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA, DOCS = ROOT / "benchmarks" / "data", ROOT / "docs"
OVERVIEW = "replays"
TABLE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?(?![\w]|\.\d)")
#: Numbers in these parts of a text are not results: code, addresses of links, comments, formulas, and references.
IGNORED = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->|(?:figures?|tables?|appendix|section|theorem|footnote|algorithm|eq\.)\s+[\d.]+"
    r"(?:\([a-z]\)(?:[–-]\([a-z]\))?)?(?:(?:, | and |–)[\d.]+(?:\([a-z]\))?)*",
    re.DOTALL | re.IGNORECASE,
)

Page = Mapping[str, Any]


def read() -> dict[str, Page]:
    """Return name of a page → its results."""
    files = [*sorted(DATA.glob("replays/*.json")), *sorted(DATA.glob("measurements/*.json"))]
    return {file.stem: {"results": []} | json.loads(file.read_text(encoding="utf-8")) for file in files}


def write(file: Path, page: Page) -> None:
    """Write the results of a page, with one line for each row of a table."""
    names = [key for key in page if key != "tables"]
    lines = ["{", ' "tables": {']
    for i, (name, table) in enumerate(page["tables"].items(), 1):
        facts = [f"   {_json(key)}: {_json(table[key])}," for key in table if key != "rows"]
        rows = ["    " + _json(row) for row in table["rows"]]
        lines += [f"  {_json(name)}: {{", *facts, '   "rows": [', ",\n".join(rows), "   ]"]
        lines += ["  }," if i < len(page["tables"]) else "  }"]
    lines += [" }," if names else " }", ",\n".join(f" {_json(name)}: {_json(page[name])}" for name in names), "}"]
    file.write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def tables(name: str, pages: Mapping[str, Page]) -> dict[str, str]:
    """Return name → table, for a page."""
    page = pages[name]
    rows = []
    for result in page["results"]:
        run = page["runs"][result["run"]]
        cells = [f"`{run['command']}`", run["counts"], run["minutes"]]
        rows.append([result["what"], *cells, result["published"], result["ours"], result["verdict"]])
    header = ["", "command", "counts", "minutes on two cores", "published", "ours", "verdict"]
    made = {"results": markdown(header, rows)} if rows else {}
    made |= {key: markdown(table["header"], table["rows"]) for key, table in page["tables"].items()}
    if name == OVERVIEW:
        made["overview"] = overview(pages)
    return made


def overview(pages: Mapping[str, Page]) -> str:
    """Return the table of all replays."""
    rows = []
    for name, page in pages.items():
        for result in page["results"]:
            run = page["runs"][result["run"]]
            link = f"[{result['verdict']}]({'#results' if name == OVERVIEW else f'{name}.md'})"
            rows.append([result["what"], result["figure"], f"`{run['command']}`", run["minutes"], link])
    return markdown(["replay", "figures", "command", "minutes on two cores", "outcome"], rows)


def written(name: str, pages: Mapping[str, Page]) -> str:
    """Return the text of a page with its tables."""
    made = tables(name, pages)
    return TABLE.sub(lambda found: found[1] + "\n" + made[found[2]] + "\n" + found[3], text_of(name))


def text_of(name: str) -> str:
    """Return the text of a page."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, without signs."""
    return {number.lstrip("-−").replace(",", "") for number in NUMBER.findall(IGNORED.sub(" ", text))}


def unknown_numbers(name: str, pages: Mapping[str, Page]) -> set[str]:
    """Return the numbers in the text of a page that neither its tables nor its settings contain."""
    cells = " ".join(tables(name, pages).values())
    known = numbers(cells.replace("`", " ")) | set(pages[name]["settings"])
    found = set()
    for section in re.split(r"^(?=## )", text_of(name), flags=re.MULTILINE):
        if TABLE.search(section):
            found |= numbers(TABLE.sub(" ", section))
    return found - known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=["check"])
    check = parser.parse_args().what == "check"
    pages = read()
    for name in pages:
        text = written(name, pages)
        if check and text != text_of(name):
            print(f"{name}.md differs from its results")
        if not check:
            (DOCS / f"{name}.md").write_text(text, encoding="utf-8")
        if missing := unknown_numbers(name, pages):
            print(f"{name}.md has numbers without a source: {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
