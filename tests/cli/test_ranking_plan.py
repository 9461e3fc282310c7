"""Tests of `crowdveil plan --comparisons`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Refusal, Run
from tests.cli.test_json_output import check

ASKED = ("plan", "--comparisons", "20,100", "--epsilon", "1,3", "--items", 100, "--workers", 50)


def test_plan_of_a_ranking_is_one_document(run: Run) -> None:
    """--json prints the document of the schema, which plan.json repeats; the picture is beside it."""
    printed = run(*ASKED, "--wrong-pairs", 0.2, "--out", "planned", "--json").stdout
    document = json.loads(printed)

    check(document, "plan-ranking")
    assert printed == Path("planned", "plan.json").read_text("utf-8")
    assert Path("planned", "plan.svg").read_text("utf-8").startswith("<svg")
    assert [one["epsilon"] for one in document["reports"]] == [1.0, 3.0, None]


def test_plan_of_a_ranking_as_text(run: Run) -> None:
    """The table has a row for each number of comparisons, and a column for each epsilon and for none."""
    printed = run(*ASKED).stdout

    assert "17.5 % ties" in printed
    assert printed.split("\n\n")[1].splitlines()[0].split() == ["comparisons", "1", "3", "none"]
    assert len(printed.split("\n\n")[1].splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--comparisons", 20, "--tasks", 3), "leave out --tasks"),
        (("--comparisons", 20, "--share", 0.1), "leave out --"),
        (("--comparisons", 2.5), "whole numbers"),
        (("--wrong-pairs", 0.1), "--wrong-pairs requires --comparisons"),
    ],
)
def test_options_that_do_not_go_with_a_ranking(run: Run, words: tuple[object, ...], message: str) -> None:
    """Options of truths are refused with --comparisons, and those of a ranking without it."""
    assert message in run("plan", *words, code=2).stderr


def test_numbers_out_of_range(refusal: Refusal) -> None:
    """What the function refuses is refused."""
    assert "ties must be above 0" in refusal("plan", "--comparisons", 20, "--ties", 2)
