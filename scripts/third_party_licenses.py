"""Write THIRD_PARTY_LICENSES: the licenses of the Rust crates whose code is in a wheel.

The crates are the normal dependencies of this package with its feature ``python``, for all platforms of the wheels.
Crates with macros are included, because the code that the macros generate is in a wheel. The texts come from the
sources of the crates, which cargo downloads if they are missing. With ``--check`` nothing is written, and the exit code
is 1 if the file is out of date. If cargo fails, for example without a network, the exit code is 2. Run this program
after each change of Cargo.lock.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "THIRD_PARTY_LICENSES"
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
RULE = "=" * 80

INTRODUCTION = """\
Wheels of belated contain compiled code of the Rust crates below, which have the licenses below. belated itself is
licensed under "MIT OR Apache-2.0" (LICENSE-MIT, LICENSE-APACHE). Some crates are only in the wheels for some platforms.
scripts/third_party_licenses.py wrote this file.

Wheels also contain code of the Rust standard library: "MIT OR Apache-2.0", Copyright (c) The Rust Project Developers,
with tables of Unicode, Inc. under Unicode-3.0. The texts of these licenses are below. Each Rust toolchain contains the
notices of the crates in its standard library (share/doc/rust/COPYRIGHT-library.html).
"""

# The sources of some crates lack the text of this license.
MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def crates() -> list[dict[str, Any]]:
    """Return the packages that are compiled into a wheel, in the order of their names.

    Raises
    ------
    subprocess.CalledProcessError
        If cargo cannot read or download the packages; ``stderr`` has the reason.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--features", "python"]
    command += [part for platform in PLATFORMS for part in ("--filter-platform", platform)]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8").stdout
    metadata = json.loads(output)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    found, open_ids = set(), [root]
    while open_ids:
        node = nodes[open_ids.pop()]
        for dependency in node["deps"]:
            is_normal = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if is_normal and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                open_ids.append(dependency["pkg"])
    return sorted((packages[each] for each in found), key=lambda each: (each["name"], each["version"]))


def texts_of(crate: dict[str, Any]) -> list[str]:
    """Return the texts of the license files of a crate. A crate without such a file has to be licensed under MIT."""
    folder = Path(crate["manifest_path"]).parent
    prefixes = ("license", "licence", "unlicense", "copying", "copyright", "notice")
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.lower().startswith(prefixes)]
    texts = []
    for path in files:
        lines = path.read_text(encoding="utf-8").replace("\f", "\n").splitlines()
        texts.append("\n".join(line.rstrip() for line in lines).strip("\n"))
    # Some crates have only the licenses of code that they took from others: files named COPYING.
    if not any(path.name.lower().startswith(prefixes[:3]) for path in files):
        if crate["license"] != "MIT":
            raise SystemExit(
                f"{crate['name']} {crate['version']} does not contain a license file, and its license is "
                f"{crate['license']}: add the text of this license to scripts/third_party_licenses.py"
            )
        authors = ", ".join(each.partition("<")[0].strip() for each in crate["authors"])
        authors = authors or f"the authors of {crate['name']}"
        texts.append(f"Copyright (c) {authors}\n\n{MIT}")
    return texts


def licenses() -> str:
    """Return the content of the file. A text that several crates share, apart from white space, is given once."""
    listed: list[str] = []
    users: dict[str, tuple[str, list[str]]] = {}
    for crate in crates():
        name = f"{crate['name']} {crate['version']}"
        listed.append(f"{name}: {crate['license']}; {crate['repository'] or 'no repository'}")
        for text in texts_of(crate):
            names = users.setdefault(" ".join(text.split()), (text, []))[1]
            names.append(name)
    sections = []
    for text, names in users.values():
        heading = fill(", ".join(names), len(RULE), break_on_hyphens=False)
        sections.append(f"{RULE}\n{heading}\n{RULE}\n\n{text}\n")
    return "\n".join([INTRODUCTION, "\n".join(listed) + "\n", *sections])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is out of date")
    check = parser.parse_args().check
    try:
        content = licenses()
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr)
        sys.exit(2)
    if not check:
        OUTPUT.write_text(content, encoding="utf-8", newline="\n")
    elif not OUTPUT.exists() or OUTPUT.read_text(encoding="utf-8") != content:
        sys.exit(f"{OUTPUT.name} is out of date: run scripts/third_party_licenses.py")


if __name__ == "__main__":
    main()
