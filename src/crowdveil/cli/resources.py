"""Options that say what a fit may use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from crowdveil.cli.options import as_one

if TYPE_CHECKING:
    from crowdveil.workflow import Resources

ENGINE_NAMES = ("threads", "processes", "dask", "spark")
"""As registered; written out so that help needs no numerical library. A test holds them to the registry."""
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?|)B?", re.IGNORECASE)


def size(text: str) -> int:
    """Read a number of bytes with a unit: 2GB, 1.5 GiB, 500M."""
    parts = SIZE.fullmatch(text.strip())
    if parts is None:
        raise click.BadParameter(f"{text!r} is not a size such as 2GB or 500MB.", param_hint="'--memory'")
    return int(float(parts[1]) * UNITS[parts[2].upper()])


def _resources(*, memory: str | None, engine: str, address: str | None) -> Resources:
    from crowdveil.workflow import Resources

    return Resources(memory=None if memory is None else size(memory), engine=engine, address=address)


resource_options = as_one(
    "resources",
    _resources,
    click.option(
        "--memory",
        metavar="SIZE",
        help="Most private memory of the command (2GB), of fits on other engines than threads; the numbers stay the "
        "same. [default: no limit]",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINE_NAMES),
        default=ENGINE_NAMES[0],
        show_default=True,
        help="Where blocks of reports are worked on; the numbers stay the same.",
    ),
    click.option("--address", metavar="URL", help="dask, spark: a cluster that is there, such as tcp://HOST:8786."),
)
