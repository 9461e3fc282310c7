"""`data draw-gold`, `next --gold` and `conclude`: one draw from file to file."""

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run, RunJson, rows


@pytest.fixture
def drawn(folder: Path, run: Run) -> list[dict[str, str]]:
    """Write 60 tasks of three workers, draw 20 of them, and write their truths into gold.csv."""
    lines = [
        f"t{task},{who},{'yes' if (task + (who == 'c' and task % 5 == 0)) % 2 else 'no'}"
        for task in range(60)
        for who in "abc"
    ]
    Path("many.csv").write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    run("data", "draw-gold", "many.csv", "--number", 20, "--seed", 3, "--out", "drawn.csv")
    found = rows("drawn.csv")
    with Path("gold.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ["task", "truth", "seed"])
        writer.writeheader()
        writer.writerows(row | {"truth": "yes" if int(row["task"][1:]) % 2 else "no"} for row in found)
    return found


def test_the_next_tasks_extend_the_draw(drawn: list[dict[str, str]], run: Run) -> None:
    """`next --gold` lists the tasks after those of the file: together they are one larger draw."""
    run("next", "many.csv", "--gold", "gold.csv", "--budget", 5, "--out", "more.csv")
    run("data", "draw-gold", "many.csv", "--number", 25, "--seed", 3, "--out", "all.csv")

    assert rows("all.csv") == drawn + rows("more.csv")


def test_conclusions_are_printed_and_written(drawn: list[dict[str, str]], run: Run, run_json: RunJson) -> None:
    """Prevalences, the difference asked for and accuracies are in table, file and JSON, from 20 known truths."""
    words = ("conclude", "many.csv", "--gold", "gold.csv", "--compare", "a,c", "--out", "conclusions.csv")
    shown, data, found = run(*words).stdout, run_json(*words), rows("conclusions.csv")

    assert ["prevalence"] * 2 + ["difference"] + ["accuracy"] * 3 == [row["quantity"] for row in found]
    assert "20 of 60 tasks, the first tasks of the draw with seed 3" in shown
    assert "difference of a less c, on the 60 tasks of both: " in shown
    assert "accuracy of c, on its 60 tasks: " in shown
    assert ["60"] * 6 == [row["tasks"] for row in found]
    assert data["conclusions"]["of"] == len(found)


def test_gold_with_a_gap_is_refused(drawn: list[dict[str, str]], refusal: Refusal) -> None:
    """A hard task that was left out is named; without a seed the draw must be stated."""
    lines = Path("gold.csv").read_text().splitlines(keepends=True)
    Path("gold.csv").write_text("".join(lines[:3] + lines[4:]))
    assert drawn[2]["task"] in refusal("conclude", "many.csv", "--gold", "gold.csv")

    Path("gold.csv").write_text("task,truth\n" + "".join(line.rsplit(",", 1)[0] + "\n" for line in lines[1:]))
    assert "--random" in refusal("conclude", "many.csv", "--gold", "gold.csv")
