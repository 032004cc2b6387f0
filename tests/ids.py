"""Names of parametrized tests."""

import re


def without_address(value):
    """Return the text of a value without addresses of objects, which differ between the processes of a parallel run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))
