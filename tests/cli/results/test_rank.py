"""`crowdveil rank`: its files, JSON, columns, known orders, certificates and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.channels.guarantee import Participation
from tests.cli.conftest import Refusal, Run, RunJson, rows, write, written

SAMPLE = Path(__file__).parents[3] / "docs" / "samples" / "comparisons.csv"


def test_files(run: Run) -> None:
    """The folder has ranks, workers and pairs; a second run replaces them."""
    for _ in range(2):
        run("rank", SAMPLE, "--out", "ranked")

    assert written("ranked") == {"ranks.csv", "workers.csv", "pairs.csv"}
    assert rows("ranked/ranks.csv")[0]["item"] == "aspen"
    assert len(rows("ranked/pairs.csv")) == 10
    assert rows("ranked/workers.csv")[0]["worker"] == "p11"


def test_same_as_python(run: Run) -> None:
    """The command and the function give the same ranks."""
    run("rank", SAMPLE, "--out", "ranked")
    answers = rows(SAMPLE)
    found = cv.rank({name: [row[name] for row in answers] for name in answers[0]}).to_arrow().to_pydict()

    assert [row["item"] for row in rows("ranked/ranks.csv")] == found["item"]
    assert [float(row["score"]) for row in rows("ranked/ranks.csv")] == pytest.approx(found["score"])


def test_json(run_json: RunJson) -> None:
    """The document has the ranks, the pairs told apart, and the triples."""
    found = run_json("rank", SAMPLE)

    assert (found["pairs"], found["groups"], found["triples"]) == (10, 1, 10)
    assert found["ranks"]["items"][0]["item"] == "aspen"


def test_other_files_are_kept(run: Run, refusal: Refusal) -> None:
    """A table of another origin, or the comparisons themselves, are not replaced."""
    Path("ranked").mkdir()
    write("ranked/ranks.csv", "item", "mine")

    assert "ranks.csv" in refusal("rank", SAMPLE, "--out", "ranked")


def test_stated_columns(run_json: RunJson, refusal: Refusal) -> None:
    """Columns are stated by options, which the refusal of unknown ones names."""
    write("c.csv", "one,other,who,said", "a,b,w,left", "b,c,w,b")
    named = ("--left-column", "one", "--right-column", "other", "--worker-column", "who", "--label-column", "said")

    assert run_json("rank", "c.csv", *named)["comparisons"] == 2
    assert "--left-column, --right-column, --worker-column, --label-column" in refusal("rank", "c.csv")


def test_known_orders(run_json: RunJson, refusal: Refusal) -> None:
    """Known orders of a file are used; items that were not compared are refused."""
    write("gold.csv", "left,right,label", "fir,aspen,right", "birch,elm,birch")
    write("other.csv", "left,right,label", "fir,oak,right")

    assert run_json("rank", SAMPLE, "--gold", "gold.csv")["known_orders"] == 2
    assert "'oak'" in refusal("rank", SAMPLE, "--gold", "other.csv")


def test_reports_with_certificate(run_json: RunJson, refusal: Refusal) -> None:
    """Reports are read through the certificate in their folder, with the rate of participation if it is hidden."""
    random = np.random.default_rng(1)
    kinds: tuple[Participation, ...] = ("public", "protected")
    for place, participation in enumerate(kinds):
        alphabet = cv.Categories(("left", "tie", "right"))
        channel = cv.RandomizedResponse(alphabet=alphabet, epsilon=3.0, participation=participation).channel()
        folder = Path(f"sent{place}")
        folder.mkdir()
        (folder / "certificate.json").write_text(json.dumps(channel.certificate()), "utf-8")
        reports = random.choice(channel.outputs, 60)
        lines = [f"{'ab'[n % 2]},{'cd'[n % 3 % 2]},w{n % 5},{report}" for n, report in enumerate(reports)]
        write(f"sent{place}/reports.csv", "left,right,worker,label", *lines)

    assert run_json("rank", "sent0/reports.csv")["channel_used"]
    assert run_json("rank", "sent0/reports.csv")["intransitive"] is None
    assert run_json("rank", "sent1/reports.csv", "--participation-rate", 0.9)["comparisons"] == 60
    assert "needs participation_rate" in refusal("rank", "sent1/reports.csv")
    assert "goes with a channel" in refusal("rank", SAMPLE, "--participation-rate", 0.9)


def test_refusals(refusal: Refusal) -> None:
    """An item against itself, an unknown winner, one item and blocks of answers are refused, with the row."""
    write("itself.csv", "left,right,worker,label", "a,b,w,left", "a,a,w,left")
    write("winner.csv", "left,right,worker,label", "a,b,w,c")

    assert "itself.csv, line 3: an item cannot be compared with itself" in refusal("rank", "itself.csv")
    assert "winner.csv, line 2: the answer to a comparison must be" in refusal("rank", "winner.csv")
    assert "comparisons are read from files" in refusal("rank", "dataset:duchenne")


def test_record_of_inputs(run: Run) -> None:
    """The record of the folder names comparisons, certificate and gold by their digests, whatever the order of rows."""
    write("one.csv", "left,right,worker,label", "a,b,u,left", "b,c,u,left", "a,c,v,right")
    write("other.csv", "left,right,worker,label", "a,c,v,right", "a,b,u,left", "b,c,u,left")
    write("gold.csv", "left,right,label", "a,b,left")

    def inputs(*words: object) -> list[dict[str, object]]:
        run("rank", *words, "--out", "ranked")
        files = json.loads(Path("ranked/.crowdveil.json").read_text("utf-8"))["files"]
        return next(file["inputs"] for file in files if file["name"] == "ranks.csv")

    assert inputs("one.csv") == inputs("other.csv")
    stated = inputs("one.csv", "--gold", "gold.csv", "--public-gold")
    assert [(one["role"], one["public"]) for one in stated] == [("reports", False), ("gold", True)]
    assert not inputs("one.csv", "--gold", "gold.csv")[1]["public"]


def test_statement_of_a_ranking(run: Run, refusal: Refusal) -> None:
    """A folder of a ranking of answers states no privacy; one whose ranks were changed is refused."""
    run("rank", SAMPLE, "--out", "ranked")

    assert "No privacy guarantee is stated" in run("statement", "ranked").stdout
    path = Path("ranked/ranks.csv")
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert "unchanged" in refusal("statement", "ranked")


def test_files_of_others_are_kept(run: Run, refusal: Refusal) -> None:
    """A file that no command wrote is neither replaced nor removed."""
    Path("ranked").mkdir()
    Path("kept").mkdir()
    write("ranked/pairs.csv", "mine")

    assert "is not an output of crowdveil" in refusal("rank", SAMPLE, "--out", "ranked")
    assert Path("ranked/pairs.csv").read_text("utf-8") == "mine\n"
    assert not Path("ranked/ranks.csv").exists()
    write("kept/notes.txt", "mine")
    run("rank", SAMPLE, "--out", "kept")
    assert Path("kept/notes.txt").exists()


def test_page(run: Run) -> None:
    """The page stands beside the folder, and names no worker."""
    done = run("rank", SAMPLE, "--page", "page.html", "--title", "Trees")
    page = Path("page.html").read_text("utf-8")

    assert "page.html" in done.stdout
    assert '<h1><bdi class="foreign">Trees</bdi></h1>' in page
    assert "p11" not in page
    assert "--title requires --page" in run("rank", SAMPLE, "--title", "Trees", code=2).stderr


def test_repeated_comparisons(run_json: RunJson, refusal: Refusal) -> None:
    """A pair that a worker compares again counts each time, or once, or is refused with its row."""
    write("again.csv", "left,right,worker,label", "a,b,u,left", "a,c,u,left", "b,a,u,left", "a,b,v,tie")

    assert run_json("rank", "again.csv")["comparisons"] == 4
    assert run_json("rank", "again.csv", "--duplicates", "first")["comparisons"] == 3
    found = refusal("rank", "again.csv", "--duplicates", "error")
    assert "again.csv, line 4: a worker compares a pair once" in found
    assert "--duplicates last" in found


def test_next_comparisons(run: Run) -> None:
    """The next comparisons are written, the most informative first; options of answers are refused."""
    run("next", SAMPLE, "--comparisons", "--budget", 4, "--out", "next.csv")
    found = rows("next.csv")

    assert [*found[0]] == ["left", "right", "information", "comparisons"]
    assert len(found) == 4
    assert all(row["left"] != row["right"] for row in found)
    gains = [float(row["information"]) for row in found]
    assert gains == sorted(gains, reverse=True)
    refused = run("next", SAMPLE, "--comparisons", "--budget", 4, "--per-worker", 2, code=2)
    assert "--per-worker cannot be used with --comparisons" in refused.stderr
