"""Checks of the built site: ``python docs/check_site.py site``.

Pages do not request files from other hosts. Links within the site are valid, and every public name has a page. The page
of an optimizer describes every argument. Images have alternative texts.
"""

import inspect
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import belated

DOCS = Path(__file__).parent
# The attributes that make a browser request a file while it displays a page.
REQUESTED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("use", "href")}
REQUESTED_RELS = {"stylesheet", "preload", "icon", "preconnect", "modulepreload", "prefetch"}
# The pages that describe all arguments.
OPTIMIZERS = ("BayesOpt", "RandomSearch", "TreeSearch", "BPEDelay", "maximize")


class Page(HTMLParser):
    """The anchors, the links, the requested files and the images without an alternative text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.requests: list[str] = []
        self.unnamed: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.requests += [values[name] for name in values if (tag, name) in REQUESTED]
        if tag == "link" and REQUESTED_RELS & set(values.get("rel", "").split()):
            self.requests.append(values["href"])
        self.requests += re.findall(r"url\(([^)]*)\)", values.get("style", ""))
        if tag == "img" and values.get("alt", values.get("src")) == values.get("src"):
            self.unnamed.append(values.get("src", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])


def is_foreign(url: str) -> bool:
    """Return whether a browser requests this URL from another host."""
    return bool(urlsplit(url.strip("'\" ")).netloc)


def faults(site: Path) -> list[str]:
    """Return a line for each fault of the site."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    found = [] if pages else [f"{site} does not contain a site"]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name} requests {url}" for url in page.requests if is_foreign(url)]
        found += [f"{name} has {image} without an alternative text" for image in page.unnamed]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} links to {link}, which does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name} links to {link}, but the page does not have this anchor")
    for path in site.rglob("*.css"):
        urls = re.findall(r"url\(([^)]*)\)|@import\s+([\"'][^\"']*)", path.read_text(encoding="utf-8"))
        found += [f"{path.name} requests {url}" for url in map("".join, urls) if is_foreign(url)]
    names = set(belated.__all__) - {"Params", "__version__", "errors", "papers", "plotting"}
    names |= {f"{module}.{name}" for module in ("errors", "papers") for name in getattr(belated, module).__all__}
    found += [f"{name} has no page" for name in sorted(names) if not (site / "api" / f"belated.{name}.html").exists()]
    for name in OPTIMIZERS:
        page = site / "api" / f"belated.{name}.html"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        arguments = inspect.signature(getattr(belated, name)).parameters
        found += [f"{page.name} lacks {each}" for each in arguments if text and f"<strong>{each}</strong>" not in text]
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]))
    print("\n".join(lines) or "no faults were found")
    sys.exit(bool(lines))
