"""Campaigns of comparisons: from the settings over devices without a service to the ranking of the reports."""

import json
from pathlib import Path

import pytest

from crowdveil.channels.compared_pairs import pair_of_name
from tests.campaign.settings.test_compared_items import settings_file
from tests.cli.conftest import Refusal, Run, RunJson, rows, write
from tests.cli.test_json_output import check

MANY = '{ mechanism = "designed", epsilon_per_answer = 6 }'


def answer_all(run: Run, folder: str, people: int) -> None:
    """Answer a campaign by its links: each worker prefers the item first in the alphabet, and skips one task."""
    campaign = json.loads(Path(folder, "campaign.json").read_bytes())
    lists = json.loads(Path(folder, "parts", "0000.json").read_bytes())["tasks"]
    for link in rows(f"{folder}/links.csv")[:people]:
        tasks = [campaign["tasks"][task]["id"] for task in lists[int(link["slot"])]]
        said = ["left" if pair_of_name(task).left < pair_of_name(task).right else "right" for task in tasks]
        answers = [f"{task},{label}" for task, label in zip(tasks, said, strict=True)]
        answers.pop(int(link["slot"]) % len(answers))
        write("mine.csv", "task,label", *answers)
        run("campaign", "answer", link["link"], "--answers", "mine.csv", "--files", folder, "--out", "handed",
            "--home", f"home{link['slot']}")  # fmt: skip


@pytest.mark.slow
def test_from_settings_to_ranks(folder: Path, run: Run, run_json: RunJson) -> None:
    """Devices randomize comparisons whose sides the sealed assignment states; `rank` orders the items."""
    settings_file(folder, privacy=MANY, workers="{ count = 20 }")
    made = run_json("campaign", "new", "campaign.toml", "--out", "made")
    run("campaign", "invite", "made")
    answer_all(run, "made", 20)
    run("campaign", "collect", "handed", "--campaign", "made/campaign.json", "--out", "collected")
    found = run_json("rank", "collected")

    check(made, "campaign-new")
    assert made["expected"] is None
    assert made["order"]["items"] == 4
    assert (found["comparisons"], found["channel_used"]) == (80, True)
    assert [one["item"] for one in found["ranks"]["items"]] == ["a", "b", "c", "d"]
    assert "of the comparisons asked are answered" in " ".join(found["warnings"])


def test_plan_of_settings(folder: Path, run: Run, run_json: RunJson, refusal: Refusal) -> None:
    """`plan --campaign` plans the ranking of the settings; options of truths are refused."""
    settings_file(folder)
    planned = run_json("plan", "--campaign", "campaign.toml")
    order = run_json("campaign", "new", "campaign.toml", "--out", "made")["order"]

    check(planned, "plan-ranking")
    assert [one["comparisons"] for one in planned["expected"]] == [80, 80]
    assert {key: planned["expected"][0][key] for key in ("low", "high")} == pytest.approx(order["protected"])
    assert "not for truths" in run("plan", "--campaign", "campaign.toml", "--target-error", 0.2, code=2).stderr


def test_text_of_a_new_campaign(folder: Path, run: Run) -> None:
    """The pairs, the table and the expected share of wrong pairs are printed."""
    settings_file(folder, expected="{ ties = 0.05 }")
    shown = run("campaign", "new", "campaign.toml", "--out", "made").stdout

    assert "40 workers, 6 pairs in two orders, 4 tasks to a worker" in shown
    assert "name one of: left, right\n" in shown
    assert "of the pairs wrongly ordered; unprotected" in shown
    assert "crowdveil rank orders the items" in shown
