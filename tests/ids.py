"""Names of parametrized tests."""

import re


def without_address(value):
    """Return the repr of a value without the addresses of objects. The addresses differ between the processes of a
    parallel test run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
