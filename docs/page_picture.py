"""Draw ``_static/page.png``, the picture of the page of `belated serve`: ``python docs/page_picture.py``.

It needs selenium, Chromium and chromedriver, and runs in the folder of the repository.
"""

import sys
import tempfile
import time
from pathlib import Path
from shutil import which

sys.path[:0] = [str(Path(__file__).parents[1])]

from check_search import browser_of  # noqa: E402

import belated as bl  # noqa: E402
from campaigns.service import Service  # noqa: E402

TEXTS = ["41,8", "98.5", "43.2", "97 %"]
HIDE = "for (const each of document.querySelectorAll('#study > :not(#work), #updated, header')) each.hidden = true"


def main() -> None:
    """Draw the worklist of a plate in which somebody types values."""
    from selenium.webdriver import Keys

    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/studies.db"
        outcomes = {"yield": "maximize", "purity": bl.Record()}
        space = {"T": (20.0, 120.0), "solvent": ["water", "ethanol"]}
        study = bl.Study("coupling", url, bl.RandomSearch(space, outcomes=outcomes, seed=0))
        study.suggest(n=6, attrs=[{"well": f"A{i}"} for i in range(1, 7)], expires_after=36 * 3600)
        browser = browser_of(which("chromium") or "google-chrome", which("chromedriver") or "chromedriver")
        try:
            with Service(url) as running:
                metrics = {"width": 1000, "height": 540, "deviceScaleFactor": 1, "mobile": False}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                browser.get(running.address)
                browser.find_element("id", "token").send_keys(running.token, Keys.ENTER)
                while not browser.find_elements("css selector", ".box"):
                    time.sleep(0.1)
                browser.find_element("css selector", ".box").click()
                for text in TEXTS:
                    browser.switch_to.active_element.send_keys(text, Keys.ENTER)
                time.sleep(3)
                browser.execute_script(HIDE)
                browser.save_screenshot(str(Path(__file__).with_name("_static") / "page.png"))
                browser.execute_script("ownEntries().forEach(drop)")
        finally:
            browser.quit()


if __name__ == "__main__":
    main()
