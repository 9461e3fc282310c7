"""`crowdveil account`: exact and claimed epsilon per cell and per worker."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from crowdveil.cli.display import (
    account_rows,
    composition_rows,
    print_result,
    shuffled_data,
    warning_rows,
    worker_loss,
)
from crowdveil.cli.options import (
    DELTA,
    POSITIVE,
    MechanismOptions,
    alphabet_options,
    mechanism_options,
    mechanism_settings,
    require_shuffled_options,
    required_alphabet,
    shuffling_options,
)
from crowdveil.cli.verb import Verb

if TYPE_CHECKING:
    from crowdveil.channels.alphabet import Alphabet
    from crowdveil.design.mechanism_from_settings import MechanismSettings

EXAMPLE = """crowdveil account --mechanism randomized-response
          --epsilon 3 --labels no,yes --tasks 100"""


@click.command(
    cls=Verb,
    values={"own": MechanismOptions, "requested": mechanism_settings, "alphabet": required_alphabet},
    example=EXAMPLE,
    main_options=("epsilon", "budget", "labels", "delta", "shuffled"),
    short_help="Show exact and claimed epsilon before collecting.",
)
@mechanism_options
@alphabet_options
@click.option(
    "--tasks",
    type=POSITIVE,
    required=True,
    help="Cells of one worker: all tasks if participation is protected, else the largest number of answers.",
)
@click.option("--rounds", type=POSITIVE, default=1, help="Campaigns with the same tasks.")
@click.option("--delta", type=DELTA, help="Also show (epsilon, delta) at this delta, such as 1e-6.")
@shuffling_options
def account(
    requested: MechanismSettings,
    alphabet: Alphabet,
    tasks: int,
    rounds: int,
    delta: float | None,
    shuffled: int | None,
    linked: int | None,
) -> None:
    """Show the total privacy loss: claimed and exact epsilon, per cell and per worker, over all rounds.

    A cell is one worker's answer to one task; a worker's loss is that of all cells together. With protected
    participation epsilon also hides whether a worker answered. With --delta the loss is also shown as (epsilon, delta),
    and --budget is the epsilon at this delta. With --shuffled another party mixes the reports on each task, and the
    curator learns less.
    """
    require_shuffled_options(shuffled, linked, delta)
    from crowdveil.design.mechanism_from_settings import (
        build_mechanism,
        description_with_parameters,
        mechanism_parameters_by_name,
        settings_within_budget,
        short_description,
        warnings_of_unused_budget,
    )
    from crowdveil.privacy.accounting import account as rows_of
    from crowdveil.privacy.composition import composed_losses
    from crowdveil.privacy.shuffling import shuffled_guarantees

    requested = settings_within_budget(requested, alphabet, tasks=tasks, cells=tasks * rounds, delta=delta)
    mechanism = build_mechanism(requested, alphabet, tasks=tasks)
    accounts = [asdict(row) for row in rows_of(mechanism, tasks=tasks, rounds=rounds)]
    composed = [] if delta is None else composed_losses(mechanism, tasks=tasks, rounds=rounds, delta=delta)
    compositions = [asdict(row) for row in composed]
    figures = None
    if shuffled is not None and delta is not None:
        figures = shuffled_guarantees(
            mechanism, tasks=tasks, rounds=rounds, reports=shuffled, delta=delta, linked=linked or 1
        )
    data = {
        "mechanism": mechanism.name,
        "description": description_with_parameters(mechanism),
        "parameters": mechanism_parameters_by_name(mechanism),
        "accounts": accounts,
        "compositions": compositions,
        "shuffled": shuffled_data(figures),
        "warnings": warnings_of_unused_budget(requested, worker_loss(accounts, compositions)),
    }
    rows = [("mechanism", short_description(mechanism)), *account_rows(accounts), *composition_rows(compositions)]
    rows += [] if figures is None else [("shuffled", sentence) for sentence in figures.sentences]
    print_result(data, [*rows, *warning_rows(data)])
