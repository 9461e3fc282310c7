"""Protected reports without the list of those asked are refused by every verb, and read with the lists."""

from pathlib import Path

import pytest

import crowdveil
from crowdveil import HierarchicalDawidSkene, Reports
from crowdveil.channels.channel import Channel
from crowdveil.errors import ReportsError
from tests.cli.conftest import Refusal, Run, RunJson, write

ASKED, ANSWERED = 400, 200
VERBS = {
    "infer": ("--out", "found"),
    "share": (),
    "agreement": (),
    "review": (),
    "conclude": ("--gold", "gold.csv", "--random"),
    "next": ("--budget", 3),
    "data draw-gold": ("--out", "drawn.csv", "--number", 2),
    "data encode": ("--out", "blocks"),
}
"""Verbs that read reports, with the options that they need."""
LISTS = ("--tasks", "tasks.csv", "--workers", "workers.csv")


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Stand in a folder with a survey of two questions that half of those asked answered, without its crowd.json."""
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{task},p{person},{'yes' if person % 10 == 0 else 'no'}" for task in ("q", "r") for person in range(ANSWERED)
    ]
    write("answers.csv", "task,worker,label", *rows)
    write("tasks.csv", "task", "q", "r")
    write("workers.csv", "worker", *(f"p{person}" for person in range(ASKED)))
    write("gold.csv", "task,truth", "q,no")
    run(
        *("perturb", "answers.csv", "--mechanism", "randomized-response", "--epsilon", 2, "--labels", "no,yes"),
        *(*LISTS, "--out", "sent"),
    )
    Path("two").mkdir()
    for name in ("reports.csv", "certificate.json"):
        Path("two", name).write_bytes(Path("sent", name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_reports_of_unknown_cells(verb: str, survey: Path, refusal: Refusal) -> None:
    """Two of three files are refused, with the three ways out, and nothing is written."""
    before = sorted(path.name for path in survey.iterdir())

    refused = refusal(*verb.split(), "two/reports.csv", *VERBS[verb])

    assert "need the lists of all tasks and workers that were asked" in refused
    assert "crowd.json" in refused
    assert before == sorted(path.name for path in survey.iterdir())


@pytest.mark.parametrize("verb", ["share", "agreement"])
def test_lists_give_what_the_crowd_gives(verb: str, survey: Path, run_json: RunJson) -> None:
    """With the lists of all who were asked the results are those of the whole collection."""
    whole, listed = run_json(verb, "sent/reports.csv"), run_json(verb, "two/reports.csv", *LISTS)

    for name in ("shares", "alpha", "agreement", "pairwise"):
        assert whole.get(name) == listed.get(name)


def test_half_a_list_is_not_enough(survey: Path, refusal: Refusal) -> None:
    """Workers without tasks, or tasks without workers, leave it unknown which cells were asked."""
    for words in (LISTS[:2], LISTS[2:]):
        assert "need the lists" in refusal("share", "two/reports.csv", *words)


def test_lists_beside_a_crowd_are_refused(survey: Path, refusal: Refusal) -> None:
    """A crowd.json lists those asked: other lists beside it are refused."""
    assert "lists of tasks and workers cannot be given" in refusal("share", "sent/reports.csv", *LISTS)


def test_statement_and_page_refuse_them_too(survey: Path, refusal: Refusal, run: Run) -> None:
    """No statement rests on reports of unknown cells."""
    assert "need the lists" in refusal("statement", "two")


def test_blocks_are_read_with_the_lists(survey: Path, run: Run, run_json: RunJson) -> None:
    """Encoded reports without a crowd.json need the lists again, and must have their names."""
    run("data", "encode", "two/reports.csv", *LISTS, "--out", "blocks")

    listed, whole = run_json("share", "blocks", *LISTS), run_json("share", "sent/reports.csv")

    assert whole["shares"] == listed["shares"]


def test_python_refuses_them_everywhere(survey: Path) -> None:
    """Frames, reports and estimators are refused alike; with `tasks` and `workers` they are read."""
    channel = Channel.from_certificate(Path("sent/certificate.json").read_bytes())
    alone = Reports.from_csv("two/reports.csv", alphabet=channel.report_alphabet)
    listed = Reports.from_csv(
        "two/reports.csv",
        alphabet=channel.report_alphabet,
        tasks=["q", "r"],
        workers=[f"p{person}" for person in range(ASKED)],
    )
    calls = (
        lambda reports: crowdveil.aggregate(reports, channel=channel),
        lambda reports: crowdveil.infer(reports, channel=channel),
        lambda reports: crowdveil.agreement(reports, channel=channel),
        lambda reports: crowdveil.review(reports, channel=channel),
        lambda reports: HierarchicalDawidSkene().fit(reports, channel=channel),
        lambda reports: crowdveil.share(reports, channel=channel),
    )

    for call in calls:
        with pytest.raises(ReportsError, match="need the lists of all tasks and workers"):
            call(alone)
        call(listed)
