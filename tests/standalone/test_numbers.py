"""Numbers in other spellings, in every document: texts, lists, spaces, hexadecimal, booleans, floats and null."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.folder import parse_tokens
from crowdveil.campaign.rules.assignment_part import AssignmentPart
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import ReportFile
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import CampaignError, CertificateError
from crowdveil.standalone.checks import ClaimLog, Refused, check_campaign, check_certificate, check_part, digest
from crowdveil.standalone.device import read_ledger
from crowdveil.standalone.verification import verify
from tests.campaign.builders import response
from tests.device_vectors import read_vectors

Reader = Callable[[str, str, Path], object]
"""Reader of a text, of the campaign to which it belongs, and of a folder in which it may write."""


def holding(text: str) -> None:
    """Raise Refused unless every claim of a text holds."""
    if not verify(text.encode()).holds:
        raise Refused("claims")


def ledger_of(text: str, folder: Path) -> object:
    """Return the lines of a ledger in a folder."""
    (folder / "ledger.json").write_text(text, encoding="utf-8")
    return read_ledger(folder)


def library(campaign: str) -> Campaign:
    """Return a campaign, read by the library."""
    return Campaign.from_bytes(campaign.encode())


READERS: dict[str, list[Reader]] = {
    "campaign": [
        lambda text, _, __: check_campaign(text.encode(), ClaimLog()),
        lambda text, _, __: holding(text),
        lambda text, _, __: library(text),
    ],
    "certificate": [
        lambda text, _, __: check_certificate(parsed(text), ClaimLog()),
        lambda text, _, __: holding(text),
        lambda text, _, __: Channel.from_certificate(text),
    ],
    "part": [
        lambda text, asked, __: check_part(text.encode(), check_campaign(asked.encode(), ClaimLog())[0], 0),
        lambda text, asked, __: AssignmentPart.from_bytes(text.encode(), library(asked), 0),
    ],
    "ledger": [lambda text, _, folder: ledger_of(text, folder)],
    "tokens": [lambda text, asked, __: parse_tokens(text.encode(), library(asked))],
    "report": [lambda text, asked, __: ReportFile.from_bytes(text.encode(), library(asked))],
}


def parsed(text: str) -> Any:
    """Return the value of a JSON text; Refused if it is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused("not json") from error


@pytest.mark.parametrize("vector", read_vectors("numbers.json"), ids=lambda one: f"{one['kind']} {one['field']}")
def test_no_reader_takes_another_spelling_of_a_number(vector: dict[str, Any], tmp_path: Path) -> None:
    """Each spelling is refused by each Python reader of the document, and raises no other error."""
    taken = []
    for raw, seal in vector["values"]:
        text, asked = (
            vector.get(name, "").replace('"@"', raw).replace('"#"', f'"{seal}"') for name in ("text", "campaign")
        )
        for place, reader in enumerate(READERS[vector["kind"]]):
            try:
                reader(text, asked, tmp_path)
            except (Refused, CampaignError, CertificateError):
                continue
            taken.append((place, raw))

    assert 10 <= len(vector["values"])
    assert [] == taken


@pytest.mark.parametrize("odd", ["1", [1], "0x1", True, False, 1.0, 1e3, None, " 1", {}])
@pytest.mark.parametrize("field", ["choice", "workers", "tasks"])
def test_no_group_of_a_table_has_another_spelling(field: str, odd: object) -> None:
    """Groups of workers and tasks in a table of certificates, and its choice of channels, are whole numbers."""
    channels = (response(epsilon=1.0), response(epsilon=2.0))
    table = ChannelTable(channels=channels, choice=((0, 1), (1, 0)), workers={"a": 0, "b": 1}, tasks={"t": 0, "u": 1})
    fields = json.loads(json.dumps(table.certificate()))
    if field == "choice":
        fields["choice"][0][1] = odd
    else:
        fields[field]["b" if field == "workers" else "u"] = odd
    text = json.dumps({**fields, "sha256": digest(fields)})

    assert not verify(text.encode()).holds
    with pytest.raises(CertificateError):
        ChannelTable.from_certificate(text)


def own_number(vector: dict[str, Any]) -> str:
    """Return the number, or the text of a report, that stood in the place of the spellings."""
    spelled = [raw for raw, _ in vector["values"]]
    return spelled[8].strip() if vector["kind"] == "report" else json.loads(spelled[0])


@pytest.mark.parametrize("vector", read_vectors("numbers.json"), ids=lambda one: f"{one['kind']} {one['field']}")
def test_the_documents_hold_with_their_own_numbers(vector: dict[str, Any], tmp_path: Path) -> None:
    """The number that stood in the place is accepted: what is refused is its spelling alone."""
    text, asked = vector["text"].replace('"@"', own_number(vector)), vector.get("campaign", "")
    asked = asked.replace('"#"', f'"{sha256(text.encode()).hexdigest()}"')
    if '"#"' in text:
        text = text.replace("#", digest(json.loads(text)))
    for reader in READERS[vector["kind"]]:
        reader(text, asked, tmp_path)
