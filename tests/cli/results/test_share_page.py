"""Tests of `crowdveil share --page`."""

import json
from errno import ENOSPC
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, written


@pytest.fixture
def survey(folder: Path) -> None:
    """Write the answers of a survey, and the list of those asked."""
    rows = [f"cheated,p{number},{'yes' if number < 30 else 'no'}" for number in range(90)]
    Path("answers.csv").write_text("\n".join(["task,worker,label", *rows, ""]), "utf-8")
    Path("asked.csv").write_text("\n".join(["worker", *(f"p{number}" for number in range(100)), ""]), "utf-8")
    Path("tasks.csv").write_text("task\ncheated\n", "utf-8")


def test_page_of_protected_reports(run: Run, survey: None) -> None:
    """The command writes the page with the epsilon of the certificate, names it, and replaces an earlier one."""
    lists = ("--labels", "no,yes", "--tasks", "tasks.csv", "--workers", "asked.csv")
    run("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, *lists, "--out", "sent")
    words = ("share", "sent/reports.csv", "--page", "shares.html", "--title", "Exams", "--json")
    first = json.loads(run(*words).stdout)
    again = json.loads(run(*words).stdout)
    texts = Path("shares.html").read_text("utf-8")

    assert (first["files"], again["replaced"]) == (["shares.html"], ["shares.html"])
    assert "epsilon 2 per answer, participation protected" in texts
    assert "no answer, of those asked" in texts


@pytest.mark.parametrize("option", ["--title", "--lead"])
def test_options_of_the_page_need_a_page(option: str, run: Run, survey: None) -> None:
    """A title or a label that is read first is refused without a page."""
    assert f"{option} requires --page" in run("share", "answers.csv", option, "no", code=2).stderr


def test_page_and_table_have_two_names(run: Run, survey: None) -> None:
    """One name for both would leave one of them: it is refused before anything is read."""
    words = ("share", "answers.csv", "--out", "a.html", "--page", "./a.html")
    assert "--out and --page are two files" in run(*words, code=2).stderr


def test_the_lead_is_an_option(run: Run, refusal: Refusal, survey: None) -> None:
    """The label that a board reads first is stated; one that is none is refused with the option."""
    run("share", "answers.csv", "--page", "shares.html", "--lead", "no")

    assert "say &#39;no&#39; to" in Path("shares.html").read_text("utf-8")
    assert "Labels are no, yes: --lead yes." in refusal("share", "answers.csv", "--page", "x.html", "--lead", "maybe")


def test_page_and_table_are_written_together(run: Run, survey: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the table cannot be written, the earlier page stays; the next run replaces both."""
    words = ("share", "answers.csv", "--out", "shares.csv", "--page", "shares.html")
    run(*words)
    before = [Path(name).read_bytes() for name in ("shares.csv", "shares.html")]

    def full(*_: object) -> None:
        raise OSError(ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("crowdveil.storage.tables.write_table", full)
        run(*words, "--title", "Exams", code=75)
    assert before == [Path(name).read_bytes() for name in ("shares.csv", "shares.html")]
    run(*words, "--title", "Exams")
    assert "Exams" in Path("shares.html").read_text("utf-8")
    assert {"answers.csv", "asked.csv", "tasks.csv", "shares.csv", "shares.html"} <= written(".")
    assert not [path for path in Path().iterdir() if path.is_dir()]
