"""`crowdveil statement`: the statement of privacy of a folder, a certificate or a campaign."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

import crowdveil
from crowdveil.cli.display import checked_stdout, document_of_running_command, json_text, printable
from crowdveil.cli.options import FILE_PATH, POSITIVE
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.errors import SettingsError


@click.command(
    cls=Verb,
    example="crowdveil statement asked/campaign.json",
    main_options=("answers", "responsible", "out"),
    short_help="Write a privacy statement for an ethics board.",
)
@click.argument("source", type=FILE_PATH)
@click.option("--answers", type=POSITIVE, help="Largest number of answers of one worker, with a certificate.")
@click.option("--responsible", metavar="NAME", help="Party responsible for the collection; the heading names it.")
@click.option("--out", type=FILE_PATH, help="HTML file of the statement, for print or PDF.")
def statement(
    source: Path,
    answers: int | None,
    responsible: str | None,
    out: Path | None,
) -> None:
    """Print the privacy statement of SOURCE: a folder of reports or results, a certificate.json or a campaign.json.

    The heading has date, version and responsible party. The text below it begins with the worst case for a person. It
    states the mechanism and its parameters, epsilon of a single answer (cell), of a worker and of the whole collection,
    and the participation. A list names what is not covered. Epsilon is stated only with a certificate that was checked;
    the certificate of a folder is checked against its reports.

    Exit codes: 0 stated; 1 a claim of the file is false; 2 wrong usage; 3 nothing was stated for another reason.
    """
    from crowdveil.campaign.statement.collection import statement_of_source
    from crowdveil.campaign.statement.source import read_stated_source
    from crowdveil.files.atomic_write import Outputs, write_outputs
    from crowdveil.pages.statement_page import statement_page
    from crowdveil.privacy.statement import statement_sentences, statement_text

    outputs = None if out is None else Outputs(folder=out.parent, names=(out.name,), kind="statement of privacy")
    replaced = [] if outputs is None else outputs.check_replaced_files(inputs=[source])
    found, facts = statement_of_source(read_stated_source(source, answers=answers))
    filed = _date_version_and_responsible_rows(responsible)
    text = statement_text(found, facts, filed)
    if outputs is not None:
        write_outputs(outputs, {outputs.names[0]: statement_page(found, facts, filed)})
    answer, worker = found.per_answer, found.per_worker
    data = {
        "subject": found.subject,
        "privacy": found.status,
        "statement": list(statement_sentences(found)),
        "mechanism": found.mechanism,
        "participation": None if answer is None else answer.participation,
        "epsilon_per_answer": None if answer is None else answer.epsilon,
        "answers_per_worker": found.cells or None,
        "epsilon_per_worker": None if worker is None else worker.epsilon,
        "epsilon_of_collection": None if worker is None else worker.epsilon,
        "campaign": found.campaign,
        "certificate_sha256": found.certificate_sha256,
        "facts": dict(facts),
        "not_covered": list(found.not_covered),
        "filed": dict(filed),
        "text": text,
        "files": [] if outputs is None else list(map(str, outputs.paths)),
        "replaced": list(map(str, replaced)),
    }
    with checked_stdout():
        click.echo(json_text(document_of_running_command(data)) if wants_json() else printable(text.rstrip("\n")))


def _date_version_and_responsible_rows(responsible: str | None) -> list[tuple[str, str]]:
    """Return date, version and responsible party.

    Raises:
        SettingsError: the name has other signs than letters, digits, punctuation and spaces.
    """
    responsible = None if responsible is None else responsible.replace("\N{NO-BREAK SPACE}", " ")
    if responsible is not None and not (responsible.strip() and responsible.isprintable()):
        raise SettingsError(
            "the responsible party must be named in printing characters",
            value=responsible,
            hint="Give a name (--responsible), or leave the option out.",
        )
    named = "not named (--responsible NAME)" if responsible is None else responsible
    today = datetime.now(UTC).date().isoformat()
    return [("Date (UTC)", today), ("Version", f"crowdveil {crowdveil.__version__}"), ("Responsible", named)]
