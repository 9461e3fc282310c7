"""Options that say what a fit may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from crowdveil.cli.options import as_one

if TYPE_CHECKING:
    from crowdveil.workflow import Resources

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?", re.IGNORECASE)


def size(text: str) -> int:
    """Read a number of bytes with a unit: 2GB, 1.5 GiB, 500M."""
    parts = SIZE.fullmatch(text.strip())
    if parts is None:
        raise click.BadParameter(f"{text!r} is not a size such as 2GB or 500MB.", param_hint="'--memory'")
    return int(float(parts[1]) * UNITS[parts[2].upper()])


def _resources(*, memory: str | None) -> Resources:
    from crowdveil.workflow import Resources

    return Resources(memory=None if memory is None else size(memory))


resource_options = as_one(
    "resources",
    _resources,
    click.option(
        "--memory",
        metavar="SIZE",
        help="Most memory for blocks of reports and posteriors (2GB); the numbers stay the same. [default: no limit]",
    ),
)
