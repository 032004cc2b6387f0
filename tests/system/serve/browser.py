"""Steps that several tests of the page need."""

import time

PATIENCE = 30


def wait(browser, condition):
    """Wait until a condition of the page is true; return its value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, browser.find_element("tag name", "body").text
        time.sleep(0.1)
    return found


def text(browser, name):
    """Return the visible text of an element, which the page may draw again at any time."""
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + PATIENCE
    while True:
        try:
            return browser.find_element("id", name).text
        except StaleElementReferenceException:
            if time.monotonic() > end:
                raise


def log_in(browser, running, token=None, fragment=""):
    """Open the page in a tab that has no token, and enter the token."""
    # The page stores the token again when an answer arrives, so the storage is cleared in a page without scripts.
    browser.get(running.address + "/no-such-page")
    browser.execute_script("sessionStorage.clear()")
    browser.get_log("browser")  # forget the messages of earlier tests
    open_page(browser, running, fragment)
    browser.find_element("id", "token").send_keys(token or running.token)
    browser.find_element("css selector", "#login button").click()


def open_page(browser, running, fragment=""):
    """Open the page."""
    browser.get("about:blank")  # a browser does not reload a page if only the URL's fragment changes
    browser.get(running.address + "/" + fragment)


def shown(browser):
    """Wait until the page shows a study."""
    wait(browser, lambda: "Observed" in text(browser, "figures"))


def complaints(browser):
    """Return the errors in the browser's console, except failed requests such as 401."""
    return [entry["message"] for entry in browser.get_log("browser") if "status of 4" not in entry["message"]]


def set_width(browser, width):
    """Set the width of the page. Some systems limit the width of windows; this emulation does not."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def overflow(browser):
    """Return the number of pixels by which the page exceeds the window's width."""
    return browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


def paths_of(browser, selector):
    """Return the paths of shapes. The page may draw them again at any time, so they are read at once."""
    found = f"return [...document.querySelectorAll('{selector}')].map(each => each.getAttribute('d'))"
    return browser.execute_script(found)


def dots_of(browser):
    """Return the places of the dots in the chart of values, in pixels."""
    parts = [part for path in paths_of(browser, "#chart .values") for part in path.split("M")[1:]]
    return [tuple(map(float, part.removesuffix("h0").split(" "))) for part in parts]
