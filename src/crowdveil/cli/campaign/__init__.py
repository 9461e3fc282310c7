"""`crowdveil campaign`: campaigns with real people; one file per subcommand."""

import click

from crowdveil.cli.campaign.answer import answer
from crowdveil.cli.campaign.backup import backup
from crowdveil.cli.campaign.close import close
from crowdveil.cli.campaign.collect import collect
from crowdveil.cli.campaign.demo import demo
from crowdveil.cli.campaign.export import export
from crowdveil.cli.campaign.invite import invite
from crowdveil.cli.campaign.new import init, new
from crowdveil.cli.campaign.page import page
from crowdveil.cli.campaign.purge import purge
from crowdveil.cli.campaign.receive import receive
from crowdveil.cli.campaign.relay import relay
from crowdveil.cli.campaign.serve import serve
from crowdveil.cli.verb import VerbGroup

SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Make one": (init, new, invite, demo),
    "Answer it": (page, answer),
    "Collect with the service": (serve, backup, close, export, purge),
    "Collect files, or through a relay": (collect, relay, receive),
}
"""Subcommands by the heading of help, in the order of use."""


@click.group(cls=VerbGroup, sections=SECTIONS, short_help="Ask real people: make a campaign, invite workers, close it.")
def campaign() -> None:
    """Ask real people: make a campaign, invite workers, close it.

    The workers' own devices randomize the answers. The curator receives reports only.

    \b
    Without a service:
      crowdveil campaign init
      crowdveil campaign new campaign.toml --out essays
      crowdveil campaign invite essays
      crowdveil campaign page essays --out device.html
      crowdveil campaign collect received --campaign essays/campaign.json
                                 --out collected

    \b
    With the service, after new and invite:
      crowdveil campaign serve essays/campaign.json
      crowdveil campaign close essays/campaign.json
      crowdveil campaign export essays/campaign.json --out collected
    """
