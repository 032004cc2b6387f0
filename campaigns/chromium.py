"""A headless Chromium that tests and fault programs drive."""

import shutil
from importlib.util import find_spec

PROGRAMS = ("chromium", "google-chrome")


def missing():
    """Return the program or package that a browser needs but this machine lacks, or None."""
    if find_spec("selenium") is None:
        return "selenium is not installed"
    if not any(map(shutil.which, PROGRAMS)) or shutil.which("chromedriver") is None:
        return "chromium and chromedriver are not installed"
    return None


def browser(*arguments, downloads=None, logs=("browser",)):
    """Start a browser, which stores files in the folder `downloads`, and return its driver.

    `logs` has the kinds of messages that `get_log` returns: "browser" are those of the console, "performance" are
    events of the network.
    """
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, PROGRAMS)))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *arguments):
        options.add_argument(argument)
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
