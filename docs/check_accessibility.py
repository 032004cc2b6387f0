"""Checks of the built site with axe-core: ``python docs/check_accessibility.py site [axe.min.js]``.

Without a path, axe.min.js comes from an installed package: ``pip install axe-playwright-python==0.1.8``. The check
needs selenium, Chromium and chromedriver. The program prints serious and critical findings in the light and the dark
theme, and fails if there are any.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from check_search import browser_of

# The front page, and pages with guides, equations, tables, notebooks, search and classes
PAGES = ["index", "guides", "questions", "runs", "equations", "replays", "from_baybe", "search", "benchmarks"]
PAGES += ["api", "api/belated.BayesOpt", "gallery/quickstart"]
SERIOUS = {"serious", "critical"}
RUN = "const done = arguments[0]; axe.run({resultTypes: ['violations']}).then(found => done(found.violations))"


def installed() -> Path:
    """Return the path of axe.min.js in an installed package."""
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        raise SystemExit("axe.min.js was not found: pass its path, or pip install axe-playwright-python==0.1.8")
    return Path(spec.origin).with_name("axe.min.js")


def findings(browser, url: str, theme: str, axe: str) -> list[str]:
    """Return a line for each serious finding on a page in a theme, ``"light"`` or ``"dark"``."""
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(url)
    browser.execute_script(axe)
    found = []
    for each in browser.execute_async_script(RUN):
        for node in each["nodes"] if each["impact"] in SERIOUS else []:
            why = " ".join(node["failureSummary"].split())
            found.append(f"{url} ({theme}): {each['impact']} {each['id']}: {node['html'][:120]} {why[:300]}")
    return found


def main(site: str, path: str | None) -> int:
    """Print the findings on the pages of a site; return the exit code."""
    axe = (Path(path) if path else installed()).read_text(encoding="utf-8")
    pages = [(Path(site).resolve() / f"{page}.html").as_uri() for page in PAGES]
    browser = browser_of(which("chromium") or "google-chrome", which("chromedriver") or "chromedriver")
    browser.set_script_timeout(120)
    try:
        lines = [line for url in pages for theme in ("light", "dark") for line in findings(browser, url, theme, axe)]
    finally:
        browser.quit()
    print("\n".join(lines) or f"no serious findings on {len(pages)} pages")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
