"""`crowdveil account`: what an epsilon adds up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import account_data, account_rows, show
from crowdveil.cli.options import alphabet_options, json_option, mechanism_options

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.workflow import MechanismWanted


@click.command(short_help="Show claimed and exact epsilon, per cell and per worker.")
@mechanism_options
@alphabet_options
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Cells of one worker: all tasks if participation is protected, else the most that one worker answers.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=1, metavar="R", help="Campaigns with the same tasks.")
@json_option
def account(wanted: MechanismWanted, alphabet: Alphabet | None, tasks: int, rounds: int, as_json: bool) -> None:
    """Show what an epsilon adds up to: claimed and exact, per cell and per worker, over all rounds.

    A cell is one worker's answer to one task. A worker's loss is that of all the worker's cells together. Participation
    is protected if the epsilon also hides whether a cell was answered, public if everyone may see that.
    """
    from crowdveil.accounting import account as rows_of
    from crowdveil.workflow import build_mechanism, describe, parameters

    if alphabet is None:
        raise click.UsageError("Say what an answer can be: --labels or --scale.")
    mechanism = build_mechanism(wanted, alphabet, tasks=tasks)
    accounts = account_data(rows_of(mechanism, tasks=tasks, rounds=rounds))
    data = {
        "mechanism": mechanism.name,
        "description": describe(mechanism),
        "parameters": parameters(mechanism),
        "accounts": accounts,
    }
    rows = [("mechanism", describe(mechanism)), *account_rows(accounts)]
    show(data, rows, as_json=as_json)
