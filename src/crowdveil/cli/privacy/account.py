"""`crowdveil account`: exact and claimed epsilon per cell and per worker."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from crowdveil.cli.display import account_data, account_rows, composition_rows, print_result
from crowdveil.cli.options import (
    alphabet_options,
    json_option,
    mechanism_options,
    mechanism_settings,
    required_alphabet,
)
from crowdveil.cli.verb import Verb

HELP = """Show the total privacy loss: claimed and exact epsilon, per cell and per worker, over all rounds.

A cell is a single answer: one worker's answer to one task. The loss of a worker is that of all cells of the worker
together. With protected participation epsilon also hides whether a worker answered. With --delta the loss over all
rounds is also shown as (epsilon, delta): exact, by advanced composition, and as the sum."""
EXAMPLE = """crowdveil account --mechanism randomized-response
          --epsilon 3 --labels no,yes --tasks 100"""


@click.command(
    cls=Verb,
    help=HELP,
    example=EXAMPLE,
    main_options=("epsilon", "budget", "labels", "scale"),
    short_help="Show exact and claimed epsilon, per worker and answer.",
)
@mechanism_options
@alphabet_options
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    required=True,
    metavar="N",
    help="Cells of one worker: all tasks if participation is protected, else the most answers of a worker.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=1, metavar="R", help="Campaigns with the same tasks.")
@click.option(
    "--delta", type=float, metavar="D", help="Probability left out, such as 1e-6: also show (epsilon, delta)."
)
@json_option
def account(tasks: int, rounds: int, delta: float | None, as_json: bool, **given: Any) -> None:
    """Build the mechanism, account, print; see `HELP`."""
    requested, alphabet = mechanism_settings(given), required_alphabet(given)
    from crowdveil.privacy.accounting import account as rows_of
    from crowdveil.privacy.composition import composition
    from crowdveil.workflow.mechanism_settings import build_mechanism, describe, parameters, summarize, within_budget

    requested = within_budget(requested, alphabet, tasks=tasks, cells=tasks * rounds)
    mechanism = build_mechanism(requested, alphabet, tasks=tasks)
    accounts = account_data(rows_of(mechanism, tasks=tasks, rounds=rounds))
    composed = [] if delta is None else composition(mechanism, tasks=tasks, rounds=rounds, delta=delta)
    compositions = [asdict(row) for row in composed]
    data = {
        "mechanism": mechanism.name,
        "description": describe(mechanism),
        "parameters": parameters(mechanism),
        "accounts": accounts,
        "compositions": compositions,
    }
    rows = [("mechanism", summarize(mechanism)), *account_rows(accounts), *composition_rows(compositions)]
    print_result(data, rows, as_json=as_json)
