"""Names of parametrized tests."""

import re


def without_address(value):
    """Return the repr of a value without the addresses of objects. In a parallel test run, the addresses of objects
    differ between processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
