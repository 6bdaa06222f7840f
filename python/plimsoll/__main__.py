"""``python -m plimsoll`` is the command line."""

import sys

from ._cli import main

sys.exit(main())
