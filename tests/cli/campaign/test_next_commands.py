"""Each command of a campaign prints the one that comes next, and that one works as it is printed."""

import secrets
import shlex
from pathlib import Path

import pytest

import crowdveil.campaign.service.server
from crowdveil.campaign.planning.creation import write_new_campaign_folder
from crowdveil.campaign.rules.report import ReportFile
from crowdveil.campaign.rules.token import Token
from crowdveil.campaign.service.store import Store
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms import Laplace
from tests.campaign.builders import BuiltCampaign, body_of, build_campaign, build_questions, response
from tests.cli.conftest import Run, rows

SLOTS = 8
CHANNELS = [
    response(Categories(("no", "yes")), 1.0),
    Laplace(alphabet=Scale(0, 4), epsilon=2.0, participation="protected").channel(),
]


def asked(url: str | None) -> BuiltCampaign:
    """Write the folder of a campaign of two questions, whose workers are asked all tasks."""
    built = build_questions(CHANNELS, [3, 2], [range(5)] * SLOTS, url=url)
    write_new_campaign_folder(Path("essays"), built.campaign, built.parts)
    return built


def tokens() -> list[Token]:
    """Return the tokens of the links that were written."""
    return [Token.from_text(row["link"].rpartition(".")[2]) for row in rows("essays/links.csv")]


def body(slot: int, built: BuiltCampaign) -> bytes:
    """Return a body with some symbols."""
    return body_of([(slot >> task) % 2 for task in range(5)], built.campaign)


def following(run: Run, command: list[str]) -> list[str]:
    """Run a command and return the words of the next one that it prints; empty without one."""
    lines = run(*command).stdout.splitlines()
    found = [line.partition("crowdveil ")[2] for line in lines if line.startswith("next ")]
    assert len(found) <= 1
    return shlex.split(found[0]) if found else []


def followed(run: Run, command: list[str]) -> list[list[str]]:
    """Run a command and all that are printed as next; return the commands."""
    done = [command]
    while command := following(run, command):
        done.append(command)
    return done


def test_the_commands_without_a_service_lead_to_the_page_of_results(run: Run) -> None:
    """From the links to the page of both questions, with no word of our own but the folder of the files handed in."""
    built = asked(None)
    invite = ["campaign", "invite", "essays"]
    page = following(run, invite)
    collect = following(run, page)
    Path("received").mkdir()
    for token in tokens():
        report = ReportFile(token, secrets.token_hex(16), body(token.slot, built))
        Path(f"received/{token.slot}.json").write_bytes(report.to_bytes(built.campaign))
    done = followed(run, collect)

    assert ["campaign page", "campaign collect", "infer collected", "report collected"] == [
        " ".join(words[:2]) for words in (page, *done)
    ]
    assert all(f"Question {number} of 2" in Path("collected/report.html").read_text("utf-8") for number in (1, 2))


def test_the_commands_of_a_service_lead_to_the_page_of_results(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the links over the end of the collection to the page; a database that was named stays named."""
    monkeypatch.setattr(crowdveil.campaign.service.server, "run", lambda *_: None)
    built = asked("https://grades.example.org")
    serve = following(run, ["campaign", "invite", "essays"])
    database = ["--database", "sqlite:///other.sqlite"]
    close = following(run, [*serve, "--port", "0", *database])
    store = Store.open("sqlite:///other.sqlite")
    for token in tokens():
        store.store_report(built.campaign.digest, token, secrets.token_hex(16), body(token.slot, built))
    store.close()
    done = followed(run, close)

    assert ["campaign close", "campaign export", "infer collected", "report collected"] == [
        " ".join(words[:2]) for words in done
    ]
    assert [database] * 2 == [[word for word in words if word in database] for words in done[:2]]
    assert Path("collected/report.html").is_file()


def test_the_commands_of_a_survey_lead_to_the_page_of_shares(run: Run) -> None:
    """From the links to the sentence of a board, with title and question of the campaign, epsilon and certificate."""
    answers = Categories(("no", "yes"))
    built = build_campaign(
        channels=[response(answers, 2.0)], tasks=1, slots=40, url=None, content={"title": "Exams <of> 2026"}
    )
    write_new_campaign_folder(Path("essays"), built.campaign, built.parts)
    collect = following(run, following(run, ["campaign", "invite", "essays"]))
    Path("received").mkdir()
    for token in tokens():
        sent = body_of([token.slot % 3], built.campaign)
        report = ReportFile(token, secrets.token_hex(16), sent)
        Path(f"received/{token.slot}.json").write_bytes(report.to_bytes(built.campaign))
    done = followed(run, collect)
    page = Path("shares.html").read_text("utf-8")

    assert ["campaign collect", "share collected"] == [" ".join(words[:2]) for words in done]
    assert "Exams &lt;of&gt; 2026" in page
    assert "say &#39;yes&#39; to &#39;Picture 0&#39; (40 people asked)" in page
    assert "epsilon 2 per answer, participation protected" in page
    assert built.campaign.certificates[0]["sha256"] in page
    assert "truth:" not in page
    assert "w0000" not in page


@pytest.mark.parametrize("labels", [True, False])
def test_a_collection_of_many_labels_also_names_the_command_of_opinions(run: Run, labels: bool) -> None:
    """A campaign does not say whether its tasks have one right answer: with labels `collect` names both commands."""
    built = build_campaign(channels=[CHANNELS[0 if labels else 1]], tasks=5, slots=40, url=None)
    write_new_campaign_folder(Path("essays"), built.campaign, built.parts)
    collect = following(run, following(run, ["campaign", "invite", "essays"]))
    Path("received").mkdir()
    for token in tokens():
        report = ReportFile(token, secrets.token_hex(16), body(token.slot, built))
        Path(f"received/{token.slot}.json").write_bytes(report.to_bytes(built.campaign))
    printed = " ".join(run(*collect).stdout.split())

    assert "next crowdveil infer" in printed
    assert labels == ("opinions crowdveil share collected --page shares.html" in printed)
