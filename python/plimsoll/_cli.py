"""The command line: ``plimsoll`` and ``python -m plimsoll``."""

import sys

from ._plimsoll import main as _main


def main() -> int:
    """Runs the program with the arguments of this process; returns its exit code."""
    return _main(["plimsoll", *sys.argv[1:]])
