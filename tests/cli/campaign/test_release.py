"""`crowdveil campaign serve` and `campaign close`, `export` and `purge`: the words that a curator reads."""

from collections.abc import Callable
from pathlib import Path

import pytest

import crowdveil.service.server
from crowdveil.channels.alphabet import Categories
from crowdveil.service.store import Store
from tests.campaign.builders import BuiltCampaign, build_campaign, response
from tests.cli.conftest import Run

ASKED = "asked/campaign.json"


@pytest.fixture
def served(run: Run, monkeypatch: pytest.MonkeyPatch) -> BuiltCampaign:
    """A campaign of three workers that was registered, and is not served any more."""
    built = build_campaign()
    built.write(Path("asked"))
    monkeypatch.setattr(crowdveil.service.server, "run", lambda *_: None)
    run("campaign", "serve", ASKED, "--port", 0)
    return built


def answer(built: BuiltCampaign, *slots: int) -> None:
    """Store a report of each of these slots."""
    store = Store.open("sqlite:///asked/reports.sqlite")
    for slot in slots:
        store.store_report(built.campaign.digest, built.tokens[slot], f"{slot:032x}", b"\0\1\2\3")
    store.close()


def test_serve_names_the_pages_and_the_curators_token(run: Run, served: BuiltCampaign) -> None:
    """The addresses and the file of the token are printed, not the token; the database is closed to others."""
    text = run("campaign", "serve", ASKED, "--port", 0).stdout

    assert "/a/" in text
    assert "by this service from 2100-01-30 (UTC) on" in text
    assert "token in asked/curator-token.txt" in text
    assert Path("asked/curator-token.txt").read_text().strip() not in text
    assert 0o600 == Path("asked/reports.sqlite").stat().st_mode & 0o777


def test_serve_refuses_plain_http_beyond_loopback(refusal: Callable[..., str], served: BuiltCampaign) -> None:
    """A public address needs TLS or a proxy."""
    assert "Give --behind-proxy" in refusal("campaign", "serve", ASKED, "--host", "0.0.0.0")


def test_a_database_that_does_not_answer_is_refused(refusal: Callable[..., str], served: BuiltCampaign) -> None:
    """A file that is no database and a server that is not there end in one sentence that does not show the URL."""
    Path("notes.sqlite").write_text("no database, but a text that is long enough\n" * 9)

    for url in ("sqlite:///notes.sqlite", "postgresql://somebody:secret@127.0.0.1:1/asked"):
        text = refusal("campaign", "serve", ASKED, "--port", 0, "--database", url)
        assert "the database must answer" in text
        assert "secret" not in text


def test_the_life_of_a_campaign(run: Run, refusal: Callable[..., str], served: BuiltCampaign) -> None:
    """Close, export, infer and purge say what they did; a purged campaign is not served again."""
    answer(served, 0, 2)

    assert "after the campaign was closed" in refusal("campaign", "export", ASKED, "--out", "collected")
    assert "after it was closed" in refusal("campaign", "purge", ASKED, "--yes")
    assert "reports  2" in run("campaign", "close", ASKED).stdout
    assert "2 with a report" in run("campaign", "export", ASKED, "--out", "collected").stdout
    run("infer", "collected/reports.csv", "--out", "found")
    assert "must be confirmed" in (asked := refusal("campaign", "purge", ASKED))
    assert "due on 2100-01-30 (UTC)" in asked
    text = run("campaign", "purge", ASKED, "--yes").stdout
    assert "all: 2" in text
    assert "backups and exported files are not covered" in text
    assert "must not be purged" in refusal("campaign", "export", ASKED, "--out", "again")
    assert "a purged campaign cannot be served" in refusal("campaign", "serve", ASKED, "--port", 0)


def test_an_export_names_what_a_spreadsheet_reads_as_a_formula(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A label that begins with an equals sign is in a warning of the export."""
    built = build_campaign(channels=[response(Categories(("=1+1", "no", "maybe")))])
    built.write(Path("asked"))
    monkeypatch.setattr(crowdveil.service.server, "run", lambda *_: None)
    run("campaign", "serve", ASKED, "--port", 0)
    answer(built, 0, 2)
    run("campaign", "close", ASKED)

    assert "reads '=1+1' in the CSV as a formula" in run("campaign", "export", ASKED, "--out", "collected").stdout


def test_below_the_least_number_nothing_is_said(run: Run, refusal: Callable[..., str], served: BuiltCampaign) -> None:
    """With one report, of at least two, no command states a count or writes a file."""
    answer(served, 1)

    assert "fewer than 2: nothing is released" in run("campaign", "close", ASKED).stdout
    assert "nothing is released below" in refusal("campaign", "export", ASKED, "--out", "collected")
    assert not Path("collected").exists()
    assert "all: fewer than 2" in run("campaign", "purge", ASKED, "--yes").stdout


def test_a_campaign_that_was_not_served_is_refused(refusal: Callable[..., str], folder: Path) -> None:
    """Without a database there is nothing to close, and none is made."""
    build_campaign().write(Path("asked"))

    assert "must have been served" in refusal("campaign", "close", ASKED)
    assert not Path("asked/reports.sqlite").exists()


def test_a_database_of_another_campaign_is_refused(refusal: Callable[..., str], served: BuiltCampaign) -> None:
    """A campaign is found by its hash only."""
    build_campaign().write(Path("other"))
    database = "sqlite:///asked/reports.sqlite"

    assert "must hold the campaign" in refusal("campaign", "close", "other/campaign.json", "--database", database)
