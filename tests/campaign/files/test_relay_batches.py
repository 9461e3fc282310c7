"""The curator's reading of batches: the set of reports alone counts, and what a relay doubles or invents does not."""

import secrets
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from crowdveil.campaign.files.campaign_reports import EXPORT_FILES
from crowdveil.campaign.files.relay_batches import read_batches
from crowdveil.campaign.files.report_files import write_collections
from crowdveil.campaign.relay.sealing import new_key, seal_body
from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import make_batches
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.storage.crowd import ASSIGNMENT_FILE
from tests.campaign.builders import build_campaign, relay_of_key

BODIES = [bytes((0, 1, 2)), bytes((2, 2, 0)), bytes((1, 3, 1)), bytes((0, 0, 0))]


def relayed(key: Any, unit: str = "report", slots: int = 6) -> Campaign:
    """Return a campaign of three tasks with a relay."""
    return build_campaign(tasks=3, slots=slots, content={"relay": relay_of_key(key, unit)}).campaign


def stored(folder: Path, batches: list[bytes]) -> Path:
    """Write batches into a new folder, each under its SHA-256."""
    folder.mkdir()
    for batch in batches:
        (folder / f"{sha256(batch).hexdigest()}.batch").write_bytes(batch)
    return folder


@pytest.mark.parametrize("unit", ["report", "cell"])
def test_the_folder_depends_on_the_set_of_reports_only(tmp_path: Path, unit: str) -> None:
    """Another order of arrival, other batches and other seals of the same reports give the same bytes."""
    key = new_key()
    campaign = relayed(key, unit)
    written = []
    for number, bodies in enumerate((BODIES, BODIES[::-1])):
        sealed = [seal_body(campaign, body) for body in bodies]
        parts = [sealed] if number else [sealed[:2], sealed[2:]]
        batches = [batch for part in parts for batch in make_batches(campaign, part)]
        opened = read_batches(stored(tmp_path / f"batches{number}", batches), campaign, key)
        write_collections(tmp_path / f"out{number}", campaign, opened)
        written.append({path.name: path.read_bytes() for path in (tmp_path / f"out{number}").iterdir()})

    names = {*EXPORT_FILES} - {ASSIGNMENT_FILE}
    assert [written[0][name] for name in names] == [written[1][name] for name in names]
    assert ASSIGNMENT_FILE not in written[0]


def test_whole_reports_stay_together(tmp_path: Path) -> None:
    """The codes of each report are those of one body."""
    key = new_key()
    campaign = relayed(key)
    batches = make_batches(campaign, [seal_body(campaign, body) for body in BODIES])
    opened = read_batches(stored(tmp_path / "batches", batches), campaign, key)

    assert sorted(map(tuple, BODIES)) == [report.codes for report in opened.accepted]
    assert list(range(4)) == [report.slot for report in opened.accepted]


def test_what_a_relay_doubles_or_damages_does_not_count(tmp_path: Path) -> None:
    """A sealed report in two batches counts once; bytes that do not open, and unknown symbols, do not count."""
    key = new_key()
    campaign = relayed(key)
    sealed = [seal_body(campaign, body) for body in BODIES[:2]]
    invented = [secrets.token_bytes(campaign.sent_bytes), seal_body(campaign, b"\xee\xee\xee")]
    batches = [*make_batches(campaign, sealed), *make_batches(campaign, [sealed[0], *invented])]
    folder = stored(tmp_path / "batches", [*batches, b"no batch"])
    (folder / "copy.batch").write_bytes(batches[0])
    opened = read_batches(folder, campaign, key)

    assert 2 == len(opened.accepted)
    assert 3 == opened.refused
    expected = ["accepted", "accepted", "copy of an accepted file", "refused (not json)"]
    assert expected == sorted(opened.states.values())


def test_a_damaged_batch_is_refused_whole(tmp_path: Path) -> None:
    """A batch of which one byte changed since it was stored is refused: the rest of its reports is no random sample."""
    key = new_key()
    campaign = relayed(key)
    sealed = [seal_body(campaign, body) for body in BODIES]
    first, second = make_batches(campaign, sealed[:2])[0], make_batches(campaign, sealed[2:])[0]
    folder = stored(tmp_path / "batches", [first])
    damaged = second[:-1] + bytes((second[-1] ^ 1,))
    (folder / f"{sha256(second).hexdigest()}.batch").write_bytes(damaged)
    opened = read_batches(folder, campaign, key)

    assert (2, 0) == (len(opened.accepted), opened.refused)
    assert ["accepted", "refused (its SHA-256 is not its name)"] == sorted(opened.states.values())


def test_more_reports_than_links_are_refused(tmp_path: Path) -> None:
    """A relay that invents reports beyond the number of links is found out."""
    key = new_key()
    campaign = relayed(key, slots=3)
    batches = [
        batch for _ in range(2) for batch in make_batches(campaign, [seal_body(campaign, body) for body in BODIES[:2]])
    ]

    with pytest.raises(ReportsError, match="invented"):
        read_batches(stored(tmp_path / "batches", batches), campaign, key)


def test_reports_that_are_forwarded_twice_are_not_lost(tmp_path: Path) -> None:
    """A relay that starts again from a backup forms other batches of the same reports: each counts once."""
    key = new_key()
    campaign = relayed(key, slots=4)
    sealed = [seal_body(campaign, body) for body in BODIES]
    first = make_batches(campaign, sealed)
    other = next(made for made in iter(lambda: make_batches(campaign, sealed), None) if made != first)  # 1 in 24 equals
    batches = [*first, *other]
    opened = read_batches(stored(tmp_path / "batches", batches), campaign, key)

    assert (4, 4) == (len(opened.accepted), opened.refused)


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    """With another key no report counts, and nothing is written."""
    campaign = relayed(new_key())
    batches = make_batches(campaign, [seal_body(campaign, body) for body in BODIES])
    opened = read_batches(stored(tmp_path / "batches", batches), campaign, new_key())

    assert (0, 4) == (len(opened.accepted), opened.refused)
    with pytest.raises(SettingsError, match="nothing is released"):
        write_collections(tmp_path / "out", campaign, opened)
    assert not (tmp_path / "out").exists()


def test_opened_reports_are_not_written_beside_an_earlier_question(tmp_path: Path) -> None:
    """The folder of a question of another campaign is refused and kept, and nothing is written beside it."""
    key = new_key()
    campaign = relayed(key)
    batches = make_batches(campaign, [seal_body(campaign, body) for body in BODIES])
    opened = read_batches(stored(tmp_path / "batches", batches), campaign, key)
    (tmp_path / "out" / "question-1").mkdir(parents=True)

    with pytest.raises(SettingsError, match="only the questions and reports of the campaign"):
        write_collections(tmp_path / "out", campaign, opened)
    assert ["question-1"] == [path.name for path in (tmp_path / "out").iterdir()]
