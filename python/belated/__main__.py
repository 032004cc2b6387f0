"""The command `belated` as ``python -m belated``."""

import sys

from belated.cli import main

if __name__ == "__main__":
    sys.exit(main())
