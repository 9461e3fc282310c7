"""Words of a curator in everything that promises something: in quotes, or in lines with the mark of foreign words."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crowdveil.campaign.planning.creation import write_new_campaign_folder
from crowdveil.campaign.rules.canonical_json import canonical_bytes
from crowdveil.campaign.statement.document import campaign_statement
from crowdveil.cli import main
from crowdveil.display.quotes import quoted
from crowdveil.privacy.statement import statement_sentences
from crowdveil.standalone import device as one_file
from crowdveil.standalone.checks import ClaimLog, Refused, check_certificate, digest
from crowdveil.standalone.device import Device
from crowdveil.standalone.verification import verify
from tests.campaign.builders import BuiltCampaign
from tests.campaign.hostile import (
    MARK,
    false_promise,
    hostile_campaign,
    hostile_channel,
    outside_quotes,
    outside_quotes_of_page,
    write_picture,
)


@pytest.fixture
def built(tmp_path: Path) -> BuiltCampaign:
    """Return the campaign of twelve workers without a service, in the folder `essays`."""
    made = hostile_campaign(url=None, slots=12)
    made.write(tmp_path / "essays")
    write_picture(tmp_path / "essays")
    return made


def run(*words: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, list(map(str, words)))


def test_words_of_others_cannot_leave_their_quotes() -> None:
    """Quotes and line ends inside are escaped or joined; a plain number has no quotes."""
    assert ["7", "-0.5", "'7 %'", '"it\'s"', "'a\\'b\"c'", "'a b'"] == list(
        map(quoted, ("7", "-0.5", "7 %", "it's", "a'b\"c", "a\nb"))
    )


def test_the_terminal_marks_every_word_of_the_curator(
    built: BuiltCampaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Promise, tasks, answers, kept answers, prompts and the ledger have no word of the curator without the mark."""
    prompts: list[str] = []
    labels = hostile_channel().alphabet.names
    replies = [*labels, *labels, "", "", "", "", "yes"]

    def reply(prompt: str) -> str:
        prompts.append(prompt)
        return replies.pop(0)

    monkeypatch.setattr("builtins.input", reply)
    with Device(built.link(0).text, tmp_path / "home", tmp_path / "essays") as device:
        device.open()
        one_file.ask(device)
        one_file.run(device, None, tmp_path, None)
    one_file.print_ledger(one_file.read_ledger(tmp_path / "home"))
    printed = capsys.readouterr().out

    assert MARK in printed
    assert MARK not in outside_quotes("\n".join([printed, *prompts]))
    assert ["Your answer [no answer]: "] * 4 + ["Your answer [as it is]: "] * 4 == prompts[:-1]
    assert 8 == printed.count("Your answer so far:\n  | CHECKED") + prompts.count("Your answer [no answer]: ")


def test_a_refused_answer_names_the_tasks_in_quotes(built: BuiltCampaign, tmp_path: Path) -> None:
    """The sentence on a task that is not the worker's holds the names of the own ones in quotes."""
    (tmp_path / "my.csv").write_text("task,label\nnone,x\n")
    done = run(
        "campaign", "answer", built.link(0).text, "--answers", tmp_path / "my.csv", "--files", tmp_path / "essays",
        "--home", tmp_path / "home",
    )  # fmt: skip

    assert (1, True) == (done.exit_code, MARK in done.output)
    assert MARK not in outside_quotes(done.output)


@pytest.mark.parametrize("command", ["verify", "statement", "audit"])
def test_what_is_said_of_a_document_quotes_its_names(built: BuiltCampaign, tmp_path: Path, command: str) -> None:
    """`verify`, `statement` and `audit` of a campaign and of a resealed certificate say nothing in its names."""
    certificate = tmp_path / "certificate.json"
    certificate.write_bytes(canonical_bytes(built.campaign.certificates[0]))
    for file in (tmp_path / "essays" / "campaign.json", certificate):
        done = run(command, file)

        assert 0 == done.exit_code, done.output
        assert MARK not in outside_quotes(done.output)


def test_a_false_claim_quotes_what_was_found(tmp_path: Path) -> None:
    """An unknown format, field, mechanism, or name of a label that cannot be read stands in quotes."""
    base = hostile_channel().certificate()
    named = {"kind": "categories", "names": [false_promise("x") + "\u200b", "y"], "ordered": False}
    changed = [
        {**base, "format": false_promise("format")},
        {**base, false_promise("field"): 1},
        {**base, f"{MARK}.x": 1},
        {**base, "mechanism": false_promise("mechanism")},
        {**base, "alphabet": named},
    ]
    for fields in changed:
        data = canonical_bytes({**fields, "sha256": digest(fields)})
        found = " ".join(claim.found for claim in verify(data).claims if not claim.holds)
        (tmp_path / "certificate.json").write_bytes(data)
        done = run("verify", tmp_path / "certificate.json")

        with pytest.raises(Refused) as refusal:
            check_certificate(json.loads(data), ClaimLog())
        assert MARK not in refusal.value.name
        assert MARK in found
        assert MARK not in outside_quotes(found)
        assert 0 < done.exit_code
        assert MARK not in outside_quotes(done.output)


def test_the_statement_page_quotes_texts(built: BuiltCampaign, tmp_path: Path) -> None:
    """Title, question and consent stand in quotes on the page to file, and in no sentence of the statement."""
    run("statement", tmp_path / "essays" / "campaign.json", "--out", tmp_path / "s.html")
    page = (tmp_path / "s.html").read_text("utf-8")

    assert MARK in page
    assert MARK not in outside_quotes_of_page(page)
    assert MARK not in " ".join(statement_sentences(campaign_statement(built.campaign)))


def test_the_page_of_results_quotes_names_and_texts(built: BuiltCampaign, tmp_path: Path) -> None:
    """Title, tasks, truths, the best constant and the table of the channel are quoted on a page with the statement."""
    for slot in range(12):
        with Device(built.link(slot).text, tmp_path / f"home{slot}", tmp_path / "essays") as device:
            device.open()
            for cell in range(4):
                device.answer(cell, hostile_channel().alphabet.names[cell % 2])
            device.sample()
            device.save_report(tmp_path / "received")
    asked, out = tmp_path / "essays" / "campaign.json", tmp_path / "page.html"
    for words in (
        ("campaign", "collect", tmp_path / "received", "--campaign", asked, "--out", tmp_path / "got"),
        ("infer", tmp_path / "got" / "reports.csv", "--out", tmp_path / "found"),
        ("report", tmp_path / "found", "--campaign", asked, "--workers", "--out", out),
    ):
        done = run(*words)
        assert 0 == done.exit_code, done.output
    page = out.read_text("utf-8")

    assert {"title", "question", "task", "id", "answer", "report"} == {
        name for name in ("title", "question", "task", "id", "answer", "report") if false_promise(name)[:40] in page
    }
    assert MARK not in outside_quotes_of_page(page)


def test_invitations_quote_title_and_worker(tmp_path: Path) -> None:
    """The cards with links have the title and the names of workers in quotes."""
    made = hostile_campaign(url=None, slots=3)
    names = [false_promise(name) for name in "abc"]
    write_new_campaign_folder(tmp_path / "essays", made.campaign, made.parts, names=names)
    done = run("campaign", "invite", tmp_path / "essays")
    page = (tmp_path / "essays" / "links.html").read_text("utf-8")

    assert 0 == done.exit_code, done.output
    assert all(name in page for name in (false_promise("title"), *names))
    assert MARK not in outside_quotes_of_page(page)


def test_the_least_number_of_reports_is_a_promise_that_is_not_checked(built: BuiltCampaign, tmp_path: Path) -> None:
    """`verify` holds only that it can be reached; `verify` and the statement name the rest as the curator's promise."""
    file = tmp_path / "essays" / "campaign.json"
    checked = json.loads(run("verify", file, "--json").stdout)
    stated = json.loads(run("statement", file, "--json").stdout)
    held = [claim["claim"] for claim in checked["claims"] if "least number" in claim["claim"]]

    assert ["The least number of reports is not above the number of workers."] == held
    assert not any("released" in claim["claim"] for claim in checked["claims"])
    assert any("released below 2 reports: the curator promises it" in text for text in checked["not_checked"])
    assert (
        "2; not checked: the curator promises to release nothing below it" == stated["facts"]["Least number of reports"]
    )
    assert "from 2100-01-30 on; promised, not checked" == stated["facts"]["Reports deleted (UTC)"]
    assert any("The least number of reports, 2: the curator promises" in text for text in stated["not_covered"])
