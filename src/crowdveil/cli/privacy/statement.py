"""`crowdveil statement`: the statement of privacy of a folder, a certificate or a campaign."""

from __future__ import annotations

from pathlib import Path

import click

from crowdveil.cli.display import as_text, json_document, printable, printing, shuffled_data
from crowdveil.cli.options import PATH, json_option, require_shuffling_usage, shuffling_options
from crowdveil.cli.verb import Verb


@click.command(
    cls=Verb,
    example="crowdveil statement asked/campaign.json",
    main_options=("answers", "shuffled", "delta"),
    short_help="Print the statement of privacy that can be filed.",
)
@click.argument("source", type=PATH)
@click.option(
    "--answers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Largest number of answers of one worker, with a certificate.",
)
@click.option("--delta", type=float, metavar="D", help="With --shuffled: probability left out, such as 1e-6.")
@shuffling_options
@json_option
def statement(
    source: Path,
    answers: int | None,
    delta: float | None,
    shuffled: int | None,
    linked: int | None,
    as_json: bool,
) -> None:
    """Print the statement of privacy of SOURCE: a folder of reports or results, a certificate.json or a campaign.json.

    One paragraph names the mechanism and its parameters, epsilon of a single answer (cell), of a worker and of the
    whole collection, and the participation; a list names what is not covered. Epsilon stands in it only with a
    certificate that was checked; that of a folder is checked against its reports. With --shuffled a second paragraph
    says what a curator learns if another party mixes the reports.

    Exit codes: 0 stated; 1 a claim of the file is false; 2 wrong usage; 3 nothing was stated for another reason.
    """
    require_shuffling_usage(shuffled, linked, delta, alone=True)
    from crowdveil.privacy.statement import sentences, statement_text, with_shuffling
    from crowdveil.release.privacy_statement import state_source

    found, facts = state_source(source, answers=answers)
    found = with_shuffling(found, reports=shuffled, delta=delta, linked=linked)
    text = statement_text(found, facts)
    answer, worker = found.per_answer, found.per_worker
    data = {
        "subject": found.subject,
        "privacy": found.status,
        "statement": list(sentences(found)),
        "mechanism": found.mechanism,
        "participation": None if answer is None else answer.participation,
        "epsilon_per_answer": None if answer is None else answer.epsilon,
        "answers_per_worker": found.cells or None,
        "epsilon_per_worker": None if worker is None else worker.epsilon,
        "epsilon_of_collection": None if worker is None else worker.epsilon,
        "shuffled": shuffled_data(found.shuffled),
        "campaign": found.campaign,
        "certificate_sha256": found.certificate_sha256,
        "facts": dict(facts),
        "not_covered": list(found.not_covered),
        "text": text,
    }
    with printing():
        click.echo(as_text(json_document(data)) if as_json else printable(text.rstrip("\n")))
