"""`crowdveil campaign answer`: a worker's answers to a campaign, randomized on this computer and sent once."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import loss_bounds_text, print_result
from crowdveil.cli.options import CAMPAIGN_FOLDER, DELTA, FILE_PATH, FOLDER_PATH, Parsed
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.display.counts import number_of

if TYPE_CHECKING:
    from crowdveil.campaign.rules.document import Campaign


def parse_positive_decimal(text: str) -> Decimal:
    """Return a positive number, exact; ValueError for other text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not (number.is_finite() and number > 0):
        raise ValueError(f"{text!r} is not a positive number.")
    return number


EXACT_EPSILON = Parsed("E", parse_positive_decimal)


def _seal(campaign: Campaign, body: bytes) -> bytes:
    """Return a body encrypted to the curator's key; the package for it is loaded only for a campaign with a relay."""
    from crowdveil.campaign.files.curator_key import require_sealing

    sealed: bytes = require_sealing().seal_body(campaign, body)
    return sealed


@click.command(
    cls=Verb,
    example="crowdveil campaign answer 'https://x.example.org/a/#1....' --answers my.csv",
    main_options=("answers", "files", "out", "level", "budget", "spent", "delta", "home"),
    short_help="Answer a campaign from this computer, randomized here.",
)
@click.argument("link", required=False)
@click.option("--answers", type=FILE_PATH, help="CSV file with the columns task and label. [default: ask here]")
@click.option("--files", type=CAMPAIGN_FOLDER, help="Without a service: folder with campaign.json, parts and pictures.")
@click.option("--out", type=FOLDER_PATH, default=".", help="Without a service: folder for the report file.")
@click.option(
    "--level",
    type=int,
    metavar="N",
    help="Privacy level, if the campaign offers several. [default: 1, the most private]",
)
@click.option("--budget", type=EXACT_EPSILON, help="Warn if epsilon over all campaigns on this computer exceeds E.")
@click.option("--spent", is_flag=True, help="Show the epsilon spent on this computer so far, then stop; needs no LINK.")
@click.option("--delta", type=DELTA, help="With --spent: also show (epsilon, delta) at this delta, such as 1e-6.")
@click.option("--home", type=FOLDER_PATH, help="Folder for records and ledger. [default: ~/.crowdveil]")
def answer(
    link: str | None,
    answers: Path | None,
    files: Path | None,
    out: Path,
    level: int | None,
    budget: Decimal | None,
    spent: bool,
    delta: float | None,
    home: Path | None,
) -> None:
    """Answer the campaign at LINK on this computer; only a randomized report leaves it.

    The command checks the campaign against the link, and its tables in exact integers. It replaces each answer (a cell)
    once with a random symbol; if participation is protected, it does so for each cell without an answer, too. It stores
    the report, then sends it; until the service confirms it, this call and later ones send the same bytes again. The
    ledger in the home folder adds up epsilon, the privacy loss, over all campaigns on this computer.
    """
    from crowdveil.campaign.device import answer_campaign
    from crowdveil.standalone.checks import epsilon, shown
    from crowdveil.standalone.device import HOME, read_ledger

    home = home or HOME
    if spent:
        _print_losses_in_ledger(home, delta, link=link)
        return
    if link is None:
        raise click.UsageError("Missing argument 'LINK' (or --spent).")
    if delta is not None:
        raise click.UsageError("--delta requires --spent.")
    if answers is None and (wants_json() or not sys.stdin.isatty()):
        raise click.UsageError("Give --answers FILE: there is no terminal to ask in.")
    with redirect_stdout(sys.stderr if wants_json() else sys.stdout):
        device, report = answer_campaign(
            link, answers=answers, home=home, files=files, out=out, budget=budget, level=level, sealing=_seal
        )
    data = {
        "campaign": device.name,
        "state": device.record["state"],
        "epsilon_all_campaigns": float(shown(epsilon(read_ledger(home)))),
        "ledger": str(home / "ledger.json"),
        "spent": [],
        "files": [] if report is None else [str(report)],
    }
    if wants_json():
        print_result(data, [])


def _print_losses_in_ledger(home: Path, delta: float | None, *, link: str | None) -> None:
    """Print the ledger's losses to each host, and to all: the sum, and at a delta."""
    if link is not None:
        raise click.UsageError("--spent covers all campaigns: leave out LINK.")
    from crowdveil.channels.certificate import refusals_as
    from crowdveil.errors import DeviceError
    from crowdveil.privacy.composition import ledger_losses
    from crowdveil.standalone.checks import epsilon, shown
    from crowdveil.standalone.device import read_ledger

    with refusals_as(DeviceError):
        lines = read_ledger(home)
    losses = [] if delta is None else ledger_losses(lines, delta)
    hosts = sorted({str(line["host"]) for line in lines})
    sums = [(host, [line for line in lines if line["host"] == host]) for host in hosts]
    rows = [(f"to {host}", f"epsilon {shown(epsilon(own))}, the sum") for host, own in sums]
    rows.append(("to all curators", f"epsilon {shown(epsilon(lines))}, the sum"))
    rows += [
        (
            "together" if loss.host is None else f"to {loss.host}",
            f"{loss_bounds_text(asdict(loss))}, {number_of(loss.cells, 'cell')}",
        )
        for loss in losses
    ]
    data = {
        "campaign": None,
        "state": None,
        "epsilon_all_campaigns": float(shown(epsilon(lines))),
        "ledger": str(home / "ledger.json"),
        "spent": [asdict(loss) for loss in losses],
    }
    print_result(data, rows)
