"""Several questions through the command line: collected, inferred one by one, and reported on one page."""

import json
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from crowdveil.campaign.rules.report import ReportFile
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.cli import main
from crowdveil.mechanisms import Laplace
from crowdveil.privacy.statement import OTHERS
from tests.campaign.builders import BuiltCampaign, body_of, build_questions, response
from tests.cli.conftest import rows

SLOTS = 8
CHANNELS = [
    response(Categories(("no", "yes")), 1.0),
    Laplace(alphabet=Scale(0, 4), epsilon=2.0, participation="protected").channel(),
]


def run(*words: object) -> dict[str, object]:
    """Return the JSON document of a command that must succeed."""
    result = CliRunner().invoke(main, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def asked_in(tmp_path: Path, channels: Sequence[Channel], tasks: Sequence[int]) -> BuiltCampaign:
    """Write a campaign to `asked` and a report file of each worker, who is asked every task, to `in`; return it."""
    built = build_questions(channels, tasks, [range(sum(tasks))] * SLOTS, url=None)
    built.write(tmp_path / "asked")
    (tmp_path / "in").mkdir()
    for slot, token in enumerate(built.tokens):
        codes = [(slot >> task) % 2 for task in range(sum(tasks))]
        report = ReportFile(token, secrets.token_hex(16), body_of(codes, built.campaign))
        (tmp_path / "in" / f"{slot}.json").write_bytes(report.to_bytes(built.campaign))
    return built


def collect(tmp_path: Path) -> dict[str, object]:
    """Collect the report files into `c`."""
    return run(
        "campaign", "collect", tmp_path / "in", "--campaign", tmp_path / "asked/campaign.json", "--out", tmp_path / "c"
    )


def infer(tmp_path: Path) -> None:
    """Infer both questions of `c` into folders of the same names in `f`."""
    for name in ("question-1", "question-2"):
        run("infer", tmp_path / "c" / name / "reports.csv", "--out", tmp_path / "f" / name)


def refused(*words: object, code: int | None = None) -> str:
    """Return what a command says that must be refused."""
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code in ({1, 3} if code is None else {code}), result.output
    return " ".join(result.output.split())


def test_two_questions_are_reported_on_one_page(tmp_path: Path) -> None:
    """One page has both questions and the sum of a worker; a page of one folder has that question, and the same sum."""
    built = asked_in(tmp_path, CHANNELS, [3, 2])
    folder, collected = tmp_path / "asked", collect(tmp_path)
    infer(tmp_path)
    found, beside = run("report", tmp_path / "f"), run("statement", tmp_path / "f" / "question-2")
    assert built.campaign.worker_epsilon == found["epsilon_per_worker"] == beside["epsilon_per_worker"]
    foreign = build_questions(CHANNELS, [3, 2], [range(5)] * SLOTS).campaign
    (tmp_path / "c" / "question-2" / "campaign.json").write_bytes(foreign.to_bytes())
    apart = run("report", tmp_path / "f" / "question-2", "--out", tmp_path / "apart.html")
    both = run("report", tmp_path / "f", "--campaign", folder / "campaign.json", "--out", tmp_path / "both.html")
    one = run(
        "report", tmp_path / "f" / "question-2", "--campaign", folder / "campaign.json", "--out", tmp_path / "one.html"
    )
    page, other, alone = ((tmp_path / name).read_text("utf-8") for name in ("both.html", "one.html", "apart.html"))

    assert SLOTS == collected["workers"]
    assert (2, 0) == (len(both["questions"]), len(one["questions"]))  # type: ignore[arg-type]
    assert built.campaign.worker_epsilon == both["epsilon_per_worker"] == one["epsilon_per_worker"]
    assert [True, True] == [f"Question {number}?" in page for number in (1, 2)]
    assert [False, True] == [f"Question {number}?" in other for number in (1, 2)]
    assert [True, True] == [f"Question {number} of 2" in page for number in (1, 2)]
    assert [[False, True]] * 2 == [[f": Question {n} of 2" in text for n in (1, 2)] for text in (other, alone)]
    assert "epsilon per answer to this question, participation protected</dt><dd>2</dd>" in other
    assert "epsilon per answer to any question</dt><dd>1 to 2</dd>" in other
    assert None is apart["epsilon_per_worker"]
    assert OTHERS in alone.partition('<div class="notice')[2].partition("</div>")[0].replace("&#39;", "'")
    assert ["epsilon per worker, at most" in text for text in (page, other, alone)] == [True, True, False]


def test_the_collected_folder_is_inferred_and_reported_whole(tmp_path: Path) -> None:
    """`infer` of the folder gives each question what it gives by itself; `report` finds all, and takes the folder."""
    built = asked_in(tmp_path, CHANNELS, [3, 2])
    collect(tmp_path)
    infer(tmp_path)
    whole = run("infer", tmp_path / "c", "--out", tmp_path / "g")
    page = run("report", tmp_path / "g", "--reports", tmp_path / "c", "--out", tmp_path / "page.html")

    assert ["Question 1?", "Question 2?"] == [one["question"] for one in whole["questions"]]  # type: ignore
    for name in ("question-1/truths.csv", "question-1/workers.csv", "question-2/truths.csv", "question-2/workers.csv"):
        assert (tmp_path / "f" / name).read_bytes() == (tmp_path / "g" / name).read_bytes()
    assert 2 == len(page["questions"])  # type: ignore[arg-type]
    assert built.campaign.worker_epsilon == page["epsilon_per_worker"]
    shutil.rmtree(tmp_path / "c" / "question-2")
    assert "has the reports to each" in refused("infer", tmp_path / "c", "--out", tmp_path / "h")


def test_grades_are_on_the_scale_and_joined_to_names(tmp_path: Path) -> None:
    """Each task has its questions together, its name from a file, a point of the scale, and an interval around it."""
    asked_in(tmp_path, CHANNELS, [3, 2])
    collect(tmp_path)
    run("infer", tmp_path / "c")
    (tmp_path / "names.csv").write_bytes("id;text;Name\nt0;x;=Zoë\nt1;y;Bo\nt7;z;Cy\n".encode("utf-16"))
    words = ("report", tmp_path / "c", "--grades", tmp_path / "grades.csv", "--names", tmp_path / "names.csv")
    said = run(*words)
    found = rows(tmp_path / "grades.csv")
    refusal = refused(*words[:2], "--names", tmp_path / "names.csv", code=2)

    assert [("t0", "=Zoë"), ("t0", "=Zoë"), ("t1", "Bo"), ("t1", "Bo"), ("t2", "")] == [
        (row["task"], row["name"]) for row in found
    ]
    assert ["Question 1?", "Question 2?", "Question 1?", "Question 2?", "Question 1?"] == [
        row["question"] for row in found
    ]
    for row in (found[1], found[3]):
        assert 0 <= int(row["low"]) <= int(row["grade"]) <= int(row["high"]) <= 4
        assert "" == row["confidence"]
    assert {row["grade"] for row in found[::2]} <= {"no", "yes"}
    assert all(0.5 <= float(row["confidence"]) <= 1 for row in found[::2])
    assert ["1 task without a name: t2.", "1 task without a result: t7."] == said["warnings"][:2]  # type: ignore[index]
    assert "'=Zoë' in the CSV as a formula" in said["warnings"][2]  # type: ignore[index]
    assert "--names requires --grades" in refusal
    (tmp_path / "names.csv").write_text("task,name\nt0,Ann\nt0,Bo\n")
    assert "line 3: a task has one name" in refused(*words)


def copied(folder: Path, place: Path, *, number: int) -> None:
    """Copy the exported folder of a question, and call it another one in its crowd.json."""
    shutil.rmtree(place)
    shutil.copytree(folder, place)
    crowd = json.loads((place / "crowd.json").read_text("utf-8"))
    crowd["question"][0] = number
    (place / "crowd.json").write_text(json.dumps(crowd), "utf-8")


def test_a_page_has_each_question_once_in_its_own_folder(tmp_path: Path) -> None:
    """A page of a campaign is refused if a question is hidden, swapped, shown twice, or of other tasks."""
    same = [CHANNELS[0], CHANNELS[0]]
    asked_in(tmp_path, same, [2, 2])
    collect(tmp_path)
    infer(tmp_path)
    first, second = (tmp_path / "f" / f"question-{number}" for number in (1, 2))
    page = ("report", tmp_path / "f", "--campaign", tmp_path / "asked/campaign.json", "--out", tmp_path / "p.html")
    second.rename(tmp_path / "hidden")
    hidden = refused(*page)
    first.rename(second)
    (tmp_path / "hidden").rename(first)
    swapped = refused(*page)
    copied(tmp_path / "c/question-1", tmp_path / "c/question-2", number=2)
    infer_again(tmp_path)
    twice = refused(*page)

    assert "needs the results of each, once, in the folder of its number" in hidden
    assert "no reports that name it in place of question 2 of 2" in hidden
    assert "question 2 of 2 in place of question 1 of 2" in swapped
    assert "the reports of an earlier question once more" in twice
    assert not (tmp_path / "p.html").exists()


def infer_again(tmp_path: Path) -> None:
    """Infer both questions of `c` again, into new folders."""
    shutil.rmtree(tmp_path / "f")
    infer(tmp_path)


def test_a_question_with_fewer_tasks_than_were_asked_is_not_reported(tmp_path: Path) -> None:
    """A collection of one question in which another one, of fewer tasks and the same channel, hides is refused."""
    asked_in(tmp_path, [CHANNELS[0], CHANNELS[0]], [3, 2])
    collect(tmp_path)
    copied(tmp_path / "c/question-2", tmp_path / "c/question-1", number=1)
    infer(tmp_path)
    page = refused("report", tmp_path / "f", "--campaign", tmp_path / "asked/campaign.json")

    assert "other tasks than those of question 1" in page


@pytest.mark.parametrize("left", ["question-3/reports.csv", "question-3/crowd.json", "crowd.json", "reports.csv"])
def test_what_is_left_of_another_collection_is_refused_and_kept(tmp_path: Path, left: str) -> None:
    """Neither collect, report nor statement goes on beside what was left of another collection, and none deletes it."""
    asked_in(tmp_path, CHANNELS, [3, 2])
    collect(tmp_path)
    infer(tmp_path)
    for folder in ("c", "f"):
        (tmp_path / folder / left).parent.mkdir(exist_ok=True)
        (tmp_path / folder / left).write_text("task,worker,label\nt0,w0000,yes\n", "utf-8")
    shutil.copy(tmp_path / "asked/campaign.json", tmp_path / "f")
    shutil.copytree(tmp_path / "asked/parts", tmp_path / "f/parts")
    collecting = ("campaign", "collect", tmp_path / "in", "--campaign", tmp_path / "asked/campaign.json")
    for words in ([*collecting, "--out", tmp_path / "c"], ["report", tmp_path / "f"], ["statement", tmp_path / "f"]):
        said = refused(*words)

        assert "only the questions and reports of the campaign" in said
        assert left.partition("/")[0] in said
    assert (tmp_path / "c" / left).read_text("utf-8").startswith("task,worker,label")


def test_a_statement_of_the_folder_of_all_questions_is_that_of_the_campaign(tmp_path: Path) -> None:
    """A folder with the questions and campaign.json states the sum over all of them."""
    built = asked_in(tmp_path, CHANNELS, [3, 2])
    collect(tmp_path)
    shutil.copy(tmp_path / "asked/campaign.json", tmp_path / "c")
    shutil.copytree(tmp_path / "asked/parts", tmp_path / "c/parts")

    assert built.campaign.worker_epsilon == run("statement", tmp_path / "c")["epsilon_per_worker"]
