"""Settings that all tests share."""

import os

from hypothesis import settings

# Deadlines measure the machine, not the code. Continuous integration plays the same examples each time; people explore.
settings.register_profile("belated", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("belated")
