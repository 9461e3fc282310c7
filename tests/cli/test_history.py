"""`--history` of infer, next and review: earlier results and gold counts, and what is refused."""

from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows, write_label_studio


@pytest.fixture
def earlier(run: Run) -> Path:
    """Return the folder of an earlier estimate of the labels."""
    run("infer", "labels.csv", "--out", "earlier")
    return Path("earlier")


@pytest.mark.parametrize("name", ["", "workers.csv"])
def test_an_earlier_result_is_the_prior_of_the_workers(earlier: Path, run_json: RunJson, name: str) -> None:
    """The folder or its workers.csv; the number of known workers is printed."""
    plain = run_json("infer", "labels.csv", "--out", "plain")
    known = run_json("infer", "labels.csv", "--history", earlier / name, "--out", "found")

    assert plain["history"] is None
    assert "workers are known by ability" in known["history"]
    assert rows("plain/workers.csv") != rows("found/workers.csv")


@pytest.mark.parametrize("verb", [("next", "--budget", 3), ("review",)])
def test_next_and_review_fit_with_the_history(earlier: Path, run_json: RunJson, verb: tuple[object, ...]) -> None:
    """Both change with a history of perfect workers."""
    workers = sorted({row["worker"] for row in rows("labels.csv")})
    lines = [f"{worker},{20 if place % 2 else 4},20" for place, worker in enumerate(workers)]
    Path("gold-counts.csv").write_text("\n".join(["worker,correct,answers", *lines]) + "\n", encoding="utf-8")
    command, *options = verb

    assert run_json(command, "labels.csv", *options) != run_json(
        command, "labels.csv", *options, "--history", "gold-counts.csv"
    )


def test_histories_that_do_not_fit_are_refused(earlier: Path, refusal: Refusal, run: Run) -> None:
    """Strangers, other labels, a method without a place for it, a saved fit, a file without a quality."""
    given = ("infer", "labels.csv", "--out", "found", "--history")
    Path("strangers.csv").write_text("worker,correct,answers\nnobody,1,2\n", encoding="utf-8")

    Path("twice.csv").write_text("worker,worker,correct,answers\nann,bob,1,2\n", encoding="utf-8")
    Path("none.csv").write_text("worker,correct,answers\n", encoding="utf-8")

    assert "no worker of the reports" in refusal(*given, "strangers.csv")
    assert "no worker of the reports" in refusal(*given, "none.csv")
    assert "one column of each name" in refusal(*given, "twice.csv")
    assert "cannot use a worker history" in refusal(*given, earlier, "--method", "majority-vote")
    assert "saved fit" in refusal(*given, earlier, "--save-fit", "fit.npz")
    assert "needs an ability" in refusal(*given, "labels.csv")
    assert "same labels" in refusal(*given, earlier, "--labels", "yes,maybe,no,never")


def export_of(path: str, mails: list[str], first: int) -> None:
    """Write an export of six tasks by workers who are mail addresses, the third of whom answers otherwise."""
    answers = [
        {mail: [("cat", "dog")[(task + (place == 2)) % 2]] for place, mail in enumerate(mails)} for task in range(6)
    ]
    write_label_studio(path, "choices", answers, first=first)


@pytest.mark.parametrize("verb", [("infer", "--out", "found"), ("next", "--budget", 3), ("review",)])
def test_numbers_given_by_two_imports_are_never_the_same_worker(
    folder: Path, run: Run, refusal: Refusal, verb: tuple[object, ...]
) -> None:
    """The first address of each export is worker-1, whoever it is."""
    export_of("monday.json", ["ann@x.org", "bob@x.org", "cy@x.org"], 0)
    export_of("tuesday.json", ["cy@x.org", "bob@x.org", "ann@x.org"], 6)
    run("infer", "monday.json", "--out", "earlier")
    command, *options = verb

    assert "hold within one import" in refusal(command, "tuesday.json", *options, "--history", "earlier")


def test_numbered_names_in_a_table_are_named(folder: Path, run: Run, run_json: RunJson) -> None:
    """A table of imported answers has no mark of its import, so that a warning must do."""
    export_of("monday.json", ["ann@x.org", "bob@x.org", "cy@x.org"], 0)
    export_of("tuesday.json", ["cy@x.org", "bob@x.org", "ann@x.org"], 6)
    run("infer", "monday.json", "--out", "earlier")
    run("import", "label-studio", "tuesday.json", "--out", "tuesday.csv")

    warnings = run_json("infer", "tuesday.csv", "--history", "earlier", "--out", "found")["warnings"]

    assert ["Names such as worker-1"] == [text[:22] for text in warnings if "two imports" in text]


def test_a_history_of_the_same_tasks_is_named(earlier: Path, run_json: RunJson) -> None:
    """The same answers would count twice; other tasks are no reason to warn."""
    header, *lines = Path("labels.csv").read_text(encoding="utf-8").splitlines()
    Path("others.csv").write_text("\n".join([header, *(f"other-{line}" for line in lines)]) + "\n", encoding="utf-8")
    same, other = (
        run_json("infer", source, "--history", earlier, "--out", "found")["warnings"]
        for source in ("labels.csv", "others.csv")
    )

    assert any("count twice" in text for text in same)
    assert not any("count twice" in text for text in other)
