"""How the command line starts as a process of its own: what no command needs is not loaded."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from crowdveil.cli import main

UNUSED = "pandas"
"""Where it is installed, pyarrow loads it with its first array, for a quarter of a second. Commands read files only."""


class _Absent(MetaPathFinder):
    """Answers whoever looks for pandas that it is not there."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Refuse one module, and leave all others to the next finder."""
        if name == UNUSED:
            raise ModuleNotFoundError(f"{UNUSED} is not used by the command line", name=UNUSED)


def start() -> None:
    """Run the command line; in a program that goes on afterwards, call `main` instead."""
    sys.meta_path.insert(0, _Absent())
    main(prog_name="crowdveil")
