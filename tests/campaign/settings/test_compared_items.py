"""Campaigns of comparisons: the file of pairs, the draw of sides, tables of two symbols and three, and refusals."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from crowdveil.campaign.files.campaign_reports import verb_of_results
from crowdveil.campaign.planning.chosen_mechanism import mechanism_of_campaign_settings
from crowdveil.campaign.planning.creation import create_campaign
from crowdveil.campaign.settings.build import build_campaign
from crowdveil.campaign.settings.compared_items import draw_sides, pairs_of_tasks, read_compared_pairs
from crowdveil.campaign.settings.settings_file import CampaignSettings, read_settings
from crowdveil.channels.compared_pairs import COMPARISON_ANSWERS, pair_of_name
from crowdveil.errors import CrowdveilError
from crowdveil.randomness import seeded

SETTINGS = {
    "title": '"Trees"',
    "question": '"Which tree do you prefer?"',
    "consent": '"Randomized on this device."',
    "open": "{ from = 2026-01-10, until = 2099-12-31 }",
    "min_reports": "2",
    "participation": '"protected"',
    "answers": "{ comparisons = true }",
    "tasks": '{ file = "pairs.csv", per_worker = 4 }',
    "workers": "{ count = 40 }",
    "privacy": '{ mechanism = "designed", budget_per_worker = 8 }',
}
PAIRS = "left,right\n" + "".join(f"{a},{b}\n" for a, b in combinations("abcd", 2))


def settings_file(folder: Path, table: str = PAIRS, **changes: str | None) -> Path:
    """Write a settings file with changes (None leaves a line out) and the pairs; return its path."""
    lines = [f"{key} = {value}" for key, value in {**SETTINGS, **changes}.items() if value is not None]
    (folder / "pairs.csv").write_text(table, "utf-8")
    path = folder / "campaign.toml"
    path.write_text("\n".join(lines), "utf-8")
    return path


def build(source: CampaignSettings) -> Any:
    """Return campaign, parts and mechanisms, drawn from a seed."""
    return build_campaign(source, seeded(1), build=mechanism_of_campaign_settings(source).build)


def test_pairs_have_two_tasks(tmp_path: Path) -> None:
    """Each pair is a task in both orders, with the texts of its items at their sides, by default their names."""
    table = "left,right,left_text,right_text,list\na,b,An oak.,A pine.,trees\na,c,,,\n"
    path = settings_file(tmp_path, table, tasks='{ file = "pairs.csv" }')
    source = read_settings(path)

    assert source.alphabet == COMPARISON_ANSWERS
    assert [task.id for task in source.tasks] == ["trees|a|b", "trees|b|a", "a|c", "c|a"]
    assert source.tasks[0].text == "Left: An oak.\nRight: A pine."
    assert source.tasks[1].text == "Left: A pine.\nRight: An oak."
    assert source.tasks[2].text == "Left: a\nRight: c"
    assert read_compared_pairs(tmp_path / "pairs.csv", "de-AT").rows[3].task.text == "Links: c\nRechts: a"


def test_sides_are_drawn() -> None:
    """Each slot has as many pairs as asked, none in both orders; both orders are drawn about equally often."""
    lists = draw_sides(10, 400, 5, [frozenset()] * 400, seeded(3))

    assert {len(own) for own in lists} == {5}
    assert all(list(own) == sorted(own) for own in lists)
    assert {len(pairs) for pairs in pairs_of_tasks(lists)} == {5}
    turned = sum(task % 2 for own in lists for task in own)
    assert 900 < turned < 1100
    assert {task for own in lists for task in own} == set(range(20))


def test_excluded_pairs_are_excluded_in_both_orders() -> None:
    """A slot that must not get one order of a pair gets neither."""
    lists = draw_sides(3, 50, None, [frozenset({2})] * 50, seeded(3))

    assert {*pairs_of_tasks(lists)} == {frozenset({0, 2})}


def test_a_worker_spends_epsilon_for_each_pair(tmp_path: Path) -> None:
    """The promise is the number of pairs of a worker times epsilon, within the budget, in one order each."""
    campaign, parts, mechanisms = build(read_settings(settings_file(tmp_path)))
    lists = [own for part in parts for own in part.lists]

    assert campaign.cells == 4
    assert campaign.epsilon <= 2.0
    assert campaign.worker_epsilon <= 8.0
    assert mechanisms[0].channel().outputs == ("left", "tie", "right", "NULL")
    assert all(len({pair_of_name(campaign.tasks[task].id).question for task in own}) == 4 for own in lists)


@pytest.mark.parametrize(
    ("changes", "outputs"),
    [
        ({"privacy": '{ mechanism = "plan", epsilon_per_answer = 1 }'}, ("left", "right", "NULL")),
        ({"participation": '"public"', "privacy": '{ mechanism = "plan", epsilon_per_answer = 1 }'}, ("left", "right")),
        ({"privacy": '{ mechanism = "designed", epsilon_per_answer = 4 }'}, ("left", "tie", "right", "NULL")),
        ({"expected": "{ answered = 0.9, ties = 0.6 }"}, ("left", "tie", "right", "NULL")),
        ({"participation": '"public"', "expected": "{ ties = 0.4 }"}, ("left", "tie", "right")),
        ({"privacy": '{ mechanism = "randomized-response", epsilon_per_answer = 1 }'}, COMPARISON_ANSWERS.names),
    ],
)
def test_symbols(tmp_path: Path, changes: dict[str, str], outputs: tuple[str, ...]) -> None:
    """Two symbols or three follow from epsilon, ties and participation, which reports show if it is protected."""
    channel = build(read_settings(settings_file(tmp_path, **changes)))[0].channels[0]
    assert channel.null_output is not None or changes.get("participation") == '"public"'

    assert channel.outputs[: len(outputs)] == outputs
    assert channel.alphabet == COMPARISON_ANSWERS


def test_expected_order(tmp_path: Path) -> None:
    """A new campaign says the expected share of wrong pairs, and no share of wrong labels."""
    created = create_campaign(settings_file(tmp_path), tmp_path / "made")
    (asked,) = created.questions

    assert asked.expected is None
    assert asked.survey is None
    assert asked.order is not None
    assert (asked.order.items, asked.order.comparisons) == (4, 80)
    assert 0.05 < asked.order.protected[0] < asked.order.protected[1] < 0.3
    assert asked.order.unprotected[1] < asked.order.protected[0]


def test_a_drawn_order_is_not_worth_asking(tmp_path: Path) -> None:
    """A campaign after which the order is hardly known is refused, unless it is made anyway."""
    weak = settings_file(tmp_path, privacy='{ mechanism = "designed", epsilon_per_answer = 0.1 }')
    with pytest.raises(CrowdveilError, match="the expected share of wrongly ordered pairs must be at most"):
        create_campaign(weak, tmp_path / "made")

    assert create_campaign(weak, tmp_path / "made", anyway=True).campaign.cells == 4


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ("left,right\na,b\nb,a\n", "a pair is listed once, in whatever order"),
        ("left,right\na,a\n", "an item cannot be compared with itself"),
        ("left,right\na|b,c\n", "and no |"),
        ("left,right\na,\n", "right"),
        ("left,text\na,b\n", "the first row must name the columns left, right"),
        ("left,right,picture\na,b,c\n", "the first row must name the columns"),
    ],
)
def test_refused_pairs(tmp_path: Path, table: str, rule: str) -> None:
    """Pairs that break a rule are refused."""
    with pytest.raises(CrowdveilError) as refused:
        read_settings(settings_file(tmp_path, table, tasks='{ file = "pairs.csv" }'))

    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"answers": "{ comparisons = false }"}, "answers.comparisons must be true"),
        ({"answers": "{ comparisons = true, ordered = true }"}, "ordered"),
        ({"privacy": '{ mechanism = "designed", levels = [1, 2] }'}, "privacy.levels"),
        ({"privacy": '{ mechanism = "laplace", epsilon_per_answer = 1 }'}, "privacy.mechanism 'laplace'"),
        ({"expected": "{ ability = 0.8 }"}, "expected.ability"),
        ({"expected": "{ ties = 1.5 }"}, "ties must be above 0"),
        ({"tasks": '{ file = "pairs.csv", per_worker = 7 }'}, "per_worker"),
        ({"workers": "{ count = 2 }", "tasks": '{ file = "pairs.csv", per_worker = 2 }'}, "every task needs a worker"),
        (
            {"service": '{ url = "https://a.org", purge_after_days = 3 }',
             "relay": '{ operator = "x", least_batch = 2, unit = "cell" }', "tasks": '{ file = "pairs.csv" }'},
            "a relay",
        ),
    ],
)  # fmt: skip
def test_refused_settings(tmp_path: Path, changes: dict[str, str], rule: str) -> None:
    """Settings that comparisons cannot have are refused."""
    with pytest.raises(CrowdveilError) as refused:
        build(read_settings(settings_file(tmp_path, **changes)))

    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("labels", "ids", "refused"),
    [
        ('"left", "tie", "right"', ("a|b", "x|b|c"), True),
        ('"left", "tie", "right"', ("a|b", "c"), False),
        ('"left", "tie", "right"', ("a|b", "c|"), False),
        ('"left", "right"', ("a|b", "b|c"), False),
    ],
)
def test_labels_are_not_read_as_comparisons(tmp_path: Path, labels: str, ids: tuple[str, ...], refused: bool) -> None:
    """A campaign of labels that its results would take for comparisons is refused; others have truths."""
    changes = {"answers": f"{{ labels = [{labels}] }}", "tasks": '{ file = "tasks.csv" }'}
    path = settings_file(tmp_path, **changes, privacy='{ mechanism = "randomized-response", epsilon_per_answer = 2 }')
    (tmp_path / "tasks.csv").write_text("id,text\n" + "".join(f"{name},Which?\n" for name in ids), "utf-8")
    if refused:
        with pytest.raises(CrowdveilError, match="would be read as comparisons"):
            read_settings(path)
    else:
        assert verb_of_results(build(read_settings(path))[0]) == "infer"


def test_several_questions_are_refused(tmp_path: Path) -> None:
    """Comparisons are the only question of their campaign."""
    path = settings_file(tmp_path, question=None, answers=None)
    labels = '[[question]]\ntext = "Which?"\nanswers = { comparisons = true }\n[[question]]\ntext = "How?"\n'
    path.write_text(path.read_text("utf-8") + "\n" + labels + "answers = { comparisons = true }\n", "utf-8")

    with pytest.raises(CrowdveilError, match="asks one question through one table"):
        read_settings(path)
