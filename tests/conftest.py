"""Settings that all tests share."""

import os
import signal

from hypothesis import settings

# Deadlines measure the machine, not the code. Continuous integration runs the same examples each time, people new ones.
settings.register_profile("belated", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("belated")

# A job in the background of a shell starts with Ctrl-C ignored, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
