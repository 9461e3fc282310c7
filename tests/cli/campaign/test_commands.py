"""`campaign invite`, `page`, `serve`, `close`, `export`, `purge`, `collect`, `answer --spent`: what a curator reads."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

import crowdveil.campaign.service.server
from crowdveil.campaign.rules.document import Relay
from crowdveil.campaign.service.store import Store
from crowdveil.cli import main
from crowdveil.standalone.device import add_to_ledger
from tests.campaign.builders import PUBLIC_KEY, BuiltCampaign, build_campaign, ledger_line
from tests.cli.conftest import Run, RunJson


def make(name: str, url: str | None) -> None:
    """Write a campaign of three workers into a new folder."""
    from crowdveil.campaign.planning.creation import write_new_campaign_folder

    built = build_campaign(url=url)
    write_new_campaign_folder(Path(name), built.campaign, built.parts)


def test_links_are_written_and_not_shown(run: Run) -> None:
    """The command, given the folder or its campaign.json, names the files and the start of the hash, and no link."""
    make("essays", "https://grades.example.org")

    text = run("campaign", "invite", "essays").stdout
    replaced = run("campaign", "invite", "essays/campaign.json", "--replace", 2).stdout

    assert "3, each for one report" in text
    assert "essays/links.csv" in text
    assert "the old link of worker 2" in replaced
    assert "essays/link-0002.csv" in replaced
    assert "keeps the old one if that has stored a report" in replaced
    assert "#1." not in text + replaced


def test_a_second_report_is_accepted_with_a_replacement_only(run: Run, refusal: Callable[..., str]) -> None:
    """The option goes with --replace; without a service a replacement needs it."""
    make("survey", None)
    run("campaign", "invite", "survey", "--accept-second-report", code=2)
    run("campaign", "invite", "survey")

    assert "the epsilons of both reports add up" in refusal("campaign", "invite", "survey", "--replace", 0)
    run("campaign", "invite", "survey", "--replace", 0, "--accept-second-report")


def test_a_link_is_replaced_by_name(run: Run, run_json: RunJson, refusal: Callable[..., str]) -> None:
    """A worker is named as in the list; a near name is suggested, and what names two workers is refused."""
    from crowdveil.campaign.planning.creation import write_new_campaign_folder

    built = build_campaign(url="https://grades.example.org")
    write_new_campaign_folder(Path("essays"), built.campaign, built.parts, names=["Ada", "Ben", "0"])
    run("campaign", "invite", "essays")

    assert 1 == run_json("campaign", "invite", "essays", "--replace", "Ben")["replaced_slot"]
    assert Path("essays/link-0001.csv").exists()
    assert "Did you mean 'Ada'?" in refusal("campaign", "invite", "essays", "--replace", "Adah")
    assert "write slot:0 or slot:2" in refusal("campaign", "invite", "essays", "--replace", "0")


def test_the_page_is_written_with_its_hash(run: Run) -> None:
    """The command prints the SHA-256 of the file; the same campaign gives the same file again."""
    build_campaign(url=None).write(Path("survey"))

    first = run("campaign", "page", "survey", "--out", "device.html").stdout
    second = run("campaign", "page", "survey", "--out", "device.html").stdout

    digest = sha256(Path("device.html").read_bytes()).hexdigest()
    assert digest in first
    assert digest in second


def test_an_edited_campaign_has_no_page(run: Run, refusal: Callable[..., str]) -> None:
    """A title that was changed after the links were made gives another campaign, which no link names."""
    build_campaign(url=None, content={"title": "Before"}).write(Path("survey"))
    run("campaign", "page", "survey", "--out", "device.html")
    document = Path("survey/campaign.json")
    assert b'"Before"' in document.read_bytes()
    document.write_bytes(document.read_bytes().replace(b'"Before"', b'"Behind"'))

    assert "the tokens are of another campaign" in refusal("campaign", "page", "survey", "--out", "other.html")
    assert not Path("other.html").exists()


ASKED = "asked/campaign.json"


@pytest.fixture
def served(run: Run, monkeypatch: pytest.MonkeyPatch) -> BuiltCampaign:
    """A campaign of three workers that was registered, and is not served any more."""
    built = build_campaign()
    built.write(Path("asked"))
    monkeypatch.setattr(crowdveil.campaign.service.server, "run", lambda *_: None)
    run("campaign", "serve", ASKED, "--port", 0)
    return built


def answer(built: BuiltCampaign, *slots: int) -> None:
    """Store a report of each of these slots."""
    store = Store.open("sqlite:///asked/reports.sqlite")
    for slot in slots:
        store.store_report(built.campaign.digest, built.tokens[slot], f"{slot:032x}", b"\0\1\2\3")
    store.close()


def test_serve_names_the_pages_and_the_curators_token(run: Run, served: BuiltCampaign) -> None:
    """Given the folder, it prints the addresses and the file of the token, not the token; the database is closed."""
    text = run("campaign", "serve", "asked", "--port", 0).stdout

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

    assert "after the campaign is closed" in refusal("campaign", "export", ASKED, "--out", "collected")
    assert "must be closed before" in refusal("campaign", "purge", ASKED, "--yes")
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


def test_batches_of_a_relay_need_the_key(tmp_path: Path) -> None:
    """Without the key sealed batches are not read as report files: the error names --key, and nothing is written."""
    relay = Relay("The library", PUBLIC_KEY, 2, "cell")
    folder = build_campaign(content={"relay": relay}).write(tmp_path / "essays")
    (tmp_path / "batches").mkdir()
    words = ["campaign", "collect", str(tmp_path / "batches"), "--campaign", str(folder / "campaign.json")]
    result = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "collected")])

    assert 2 == result.exit_code
    assert "--key" in result.output
    assert not (tmp_path / "collected").exists()


@pytest.mark.slow
def test_spent_shows_the_sum_and_the_loss_at_a_delta(run: Run, run_json: RunJson) -> None:
    """Eighty answers of 0.1 to two hosts: the sum is 8, less at delta 1e-6."""
    same = ledger_line(cells=1, numerator=1_105_170, denominator=1_000_000)
    home = Path("home")
    home.mkdir()
    for number in range(80):
        add_to_ledger(
            home, [{**same, "campaign": f"{number:043}", "report": f"{number:032}", "host": f"host{number % 2}"}]
        )

    data = run_json("campaign", "answer", "--spent", "--delta", 1e-6, "--home", "home")
    text = " ".join(run("campaign", "answer", "--spent", "--home", "home").stdout.split())

    assert pytest.approx(8.0, abs=0.002) == data["epsilon_all_campaigns"]
    assert ["host0", "host1", None] == [row["host"] for row in data["spent"]]
    assert data["spent"][-1]["exact"] < 7
    assert "to all curators epsilon 8.000, the sum" in text or "to all curators epsilon 7.99" in text
