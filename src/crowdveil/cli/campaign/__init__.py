"""`crowdveil campaign`: campaigns with real people; one file per subcommand."""

import click

from crowdveil.cli.campaign.close import close
from crowdveil.cli.campaign.demo import demo
from crowdveil.cli.campaign.export import export
from crowdveil.cli.campaign.invite import invite
from crowdveil.cli.campaign.new import new
from crowdveil.cli.campaign.page import page
from crowdveil.cli.campaign.purge import purge

SUBCOMMANDS: tuple[click.Command, ...] = (
    new,
    invite,
    page,
    close,
    export,
    purge,
    demo,
)
"""Subcommands, in the order of help."""


class InOrder(click.Group):
    """Group whose help lists the commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of use."""
        return list(self.commands)


@click.group(cls=InOrder, commands=SUBCOMMANDS)
def campaign() -> None:
    """Ask real people: make a campaign, invite workers, collect their reports.

    The answers are randomized on the workers' own devices. The curator receives reports only.
    """
