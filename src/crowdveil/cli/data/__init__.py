"""`crowdveil data`: data sets at hand and files made from others; `import` is a command of its own."""

import click

from crowdveil.cli.data.assign import assign
from crowdveil.cli.data.datasets import list_sets, show_or_convert_sources
from crowdveil.cli.data.draw_gold import draw_gold
from crowdveil.cli.data.encode import encode
from crowdveil.cli.data.export_results import export_results
from crowdveil.cli.data.synthesize import synthesize
from crowdveil.cli.verb import VerbGroup

SUBCOMMANDS: tuple[click.Command, ...] = (
    list_sets,
    show_or_convert_sources,
    encode,
    assign,
    draw_gold,
    synthesize,
    export_results,
)
"""Subcommands, in the order of help."""


@click.group(
    cls=VerbGroup,
    sections={"Commands": SUBCOMMANDS},
    short_help="List data sets; encode reports, draw gold, release claims, export truths.",
)
def data() -> None:
    """List the public data sets of real answers in the folder CROWDVEIL_DATA, and prepare files.

    The other commands encode reports, assign tasks, draw gold, release synthetic claims and export truths.
    """
