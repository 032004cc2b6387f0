"""Checks of the built site's search: ``python docs/check_search.py site``.

A browser opens the pages from files. Each query has its section as the first result, and a page that a result opens
exists. The check needs selenium, Chromium and chromedriver; without them it prints a message and succeeds.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

# What users type, and the section that answers it.
FIRST = {
    "correct a value": "runs.html#correct-a-value",
    "withdraw": "runs.html#withdraw-a-value",
    "excel": "tables.html#excel-and-csv-files",
    "fix a parameter": "spaces.html#fix-a-parameter",
    "reproducible": "runs.html#reproducible-results-and-seeds",
    "reproducible results": "runs.html#reproducible-results-and-seeds",
    "change bounds": "studies.html#change-bounds-parameters-or-constraints",
    "gpu": "processes.html#one-gpu-for-each-worker",
    "stop early": "curves.html#stop-trials-early",
    "several objectives": "outcomes.html#several-objectives",
    "windows": "install.html#windows-and-macos",
    "macos": "install.html#windows-and-macos",
    "seed": "questions.html#are-suggestions-the-same-with-the-same-seed",
    "undo result": "questions.html#a-result-was-wrong-how-do-i-change-undo-delete-or-withdraw-it",
    "multi-objective": "questions.html#does-it-do-multi-objective-optimisation-with-a-pareto-front",
    "widen search space": "questions.html#can-i-widen-the-search-space-while-trials-run",
    "missing results": "questions.html#which-results-are-still-missing",
    "gpu per worker": "processes.html#one-gpu-for-each-worker",
    "early stopping of poor runs": "curves.html#stop-trials-early",
    "widen the search range": "questions.html#can-i-widen-the-search-space-while-trials-run",
    "keep one parameter fixed": "spaces.html#fix-a-parameter",
    "read an excel file": "tables.html#excel-and-csv-files",
    "enter results from excel": "questions.html#how-do-i-enter-results-from-excel-in-a-study",
    "well plate": "questions.html#the-values-of-a-well-plate-are-all-shifted-what-do-i-declare",
    "ternary": "spaces.html#ternary-diagrams",
    "typo": "excel.html#a-typo",
    "cheap price": "questions.html#some-points-are-cheap-others-have-a-high-price-can-it-prefer-the-cheap-ones",
    "forbidden": "questions.html#a-solvent-is-forbidden-from-now-on-how-do-i-keep-the-study",
    "report for the boss": "laboratory.html#a-report-for-the-boss",
}


def browser_of(chromium: str, driver: str):
    """Return a browser without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, Service(driver))


def results(browser, site: Path, query: str) -> list[str]:
    """Return the pages that a search finds, the best first, as paths within the site with their anchors."""
    from selenium.webdriver.support.wait import WebDriverWait

    browser.get(f"{site.resolve().as_uri()}/search.html?q={query.replace(' ', '+')}")
    WebDriverWait(browser, 30).until(lambda _: browser.find_elements("css selector", "#search-results .search-summary"))
    done = "return document.querySelector('#search-results .search-summary').innerText"
    WebDriverWait(browser, 30).until(lambda _: browser.execute_script(done))
    links = "return [...document.querySelectorAll('#search-results li > a')].map(a => a.href)"
    return [link.removeprefix(f"{site.resolve().as_uri()}/").split("?")[0] for link in browser.execute_script(links)]


def faults(site: Path, browser) -> list[str]:
    """Return a line for each query whose first result is another page, and for each error in the console."""
    found = []
    for query, section in FIRST.items():
        shown = results(browser, site, query)
        if shown[:1] != [section]:
            found.append(f"{query!r} finds {', '.join(shown[:3]) or 'nothing'} instead of {section}")
        found += [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    return found


def main(site: Path) -> int:
    """Print the faults of a site; return the exit code."""
    chromium, driver = which("chromium") or which("google-chrome"), which("chromedriver")
    if not (chromium and driver and find_spec("selenium")):
        print("the search was not checked: Chromium, chromedriver or selenium is not installed")
        return 0
    browser = browser_of(chromium, driver)
    try:
        lines = faults(site, browser)
    finally:
        browser.quit()
    print("\n".join(lines) or f"the search finds the sections of {len(FIRST)} queries")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
