"""`crowdveil.share`: shares by task and group through channels, with weights and refusals."""

import math
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil import Categories, Channel, ChannelTable, RandomizedResponse, Reports, Shares, seeded
from crowdveil.errors import CrowdveilError, ReportsError, SettingsError

YES_NO = Categories(("no", "yes"))
LEVELS: tuple[Channel, ...] = tuple(RandomizedResponse(alphabet=YES_NO, epsilon=e).channel() for e in (1.0, 3.0))


def frame(yes: int, no: int) -> dict[str, list[Any]]:
    """Return answers to one task."""
    return {"task": ["q"] * (yes + no), "worker": [*range(yes + no)], "label": ["yes"] * yes + ["no"] * no}


def survey(answers: Any, channels: tuple[Channel, ...] = LEVELS[:1], seed: int = 1) -> tuple[Reports, Any]:
    """Return reports of codes of answers (2 is none), channels in turn, and the channel or table of channels."""
    workers = np.array([f"w{number}" for number in range(len(answers))])
    sent = np.empty(len(answers), dtype=int)
    for place, one in enumerate(channels):
        part = slice(place, None, len(channels))
        sent[part] = one.sample(np.asarray(answers)[part], seeded(seed + place))
    kept = sent < 2
    reports = Reports.from_arrays(
        ["q"] * int(kept.sum()), workers[kept], np.array(YES_NO.names)[sent[kept]],
        alphabet=YES_NO, tasks=["q"], workers=workers.tolist(),
    )  # fmt: skip
    if len(channels) == 1:
        return reports, channels[0]
    return reports, ChannelTable.by_worker(channels, {name: k % len(channels) for k, name in enumerate(workers)})


def test_answers_have_plain_proportions() -> None:
    """Without a channel shares are those of the answers; a task without an answer has none, and all of [0, 1]."""
    reports = Reports.from_arrays(["a"] * 4, [1, 2, 3, 4], ["no", "yes", "yes", "yes"], tasks=["a", "b"])
    found = crowdveil.share(reports)

    assert (0.25, 0.75) == (found["a", "no"].share, found["a", "yes"].share)
    assert math.isnan(found["b", "yes"].share)
    assert (0.0, 1.0) == (found["b", "yes"].low, found["b", "yes"].high)
    assert found["a", "no"].high == pytest.approx(1 - found["a", "yes"].low, abs=1e-5)


def test_the_frame_evidence_and_json_hold_the_same_rows() -> None:
    """Rows, columns, Arrow and JSON agree; nan is null."""
    found = crowdveil.share(frame(30, 70), by={worker: "ab"[worker % 2] for worker in range(100)})
    columns, table, (first, *_) = found.columns(), found.to_arrow(), found.to_json()

    assert [row.share for row in found] == columns["share"].tolist() == table["share"].to_pylist()
    assert len(found) == 6 == table.num_rows
    assert ["", "group", "group"] == [one["by"] for one in found.to_json()]
    assert None is first["symbols"][0]["lowest"]
    assert "1 task, 2 groups, 2 symbols; 95 % intervals" in repr(found)


def test_a_group_alone_has_the_shares_of_its_workers() -> None:
    """Shares of a group are those of a collection of its workers only, through one channel."""
    answers = np.random.default_rng(1).choice(3, p=(0.6, 0.2, 0.2), size=300)
    reports, channel = survey(answers)
    groups = {str(name): "ab"[place % 2] for place, name in enumerate(reports.workers)}
    whole = crowdveil.share(reports, channel=channel, by=groups)
    own = [str(name) for name in reports.workers[::2]]
    kept = np.isin(reports.workers[reports.worker], own)
    alone = Reports.from_arrays(
        ["q"] * int(kept.sum()), reports.workers[reports.worker][kept], np.array(YES_NO.names)[reports.value[kept]],
        alphabet=YES_NO, tasks=["q"], workers=own,
    )  # fmt: skip
    part = crowdveil.share(alone, channel=channel)

    for label in ("no", "yes", ""):
        row = whole["q", label, "group", "a"]
        assert row[5:10] == pytest.approx(part["q", label][5:10], abs=1e-6, nan_ok=True)
        assert 150 == row.asked


def test_small_groups_are_joined_or_not_shown() -> None:
    """Groups below the least number are one; if it is still too small, it is not shown, and a note says so."""
    few = dict.fromkeys(range(6), "x") | dict.fromkeys(range(6, 12), "y") | dict.fromkeys(range(12, 100), "z")
    joined = crowdveil.share(frame(30, 70), by=few)
    hidden = crowdveil.share(frame(30, 70), by=few | dict.fromkeys(range(5, 12), "z"))

    assert ["", "z", "others (x, y)"] == [group.name for group in joined.groups]
    assert "2 groups of fewer than 10 workers are joined" in " ".join(joined.notes)
    assert ["", "z"] == [group.name for group in hidden.groups]
    assert "1 group (5 workers) of fewer than 10 workers is not shown" in " ".join(hidden.notes)


def test_simultaneous_intervals_share_the_error() -> None:
    """Each of five intervals has the level 99 % if all hold with 95 %; two labels have one interval."""
    five = frame(30, 70) | {"label": [*"abcde"] * 20}
    together, alone = crowdveil.share(five, simultaneous=True), crowdveil.share(five, level=0.99)
    two = crowdveil.share(frame(30, 70), simultaneous=True)

    assert np.allclose(together.low, alone.low)
    assert np.allclose(together.high, alone.high)
    assert np.allclose(two.low, crowdveil.share(frame(30, 70)).low)


def test_equal_weights_change_only_the_method() -> None:
    """Weights of 2 give the same estimates, by sums, with nearly the same interval."""
    plain, weighted = (
        crowdveil.share(frame(30, 70)),
        crowdveil.share(frame(30, 70), weights=dict.fromkeys(range(100), 2)),
    )

    assert ("score", "sums") == (plain.method, weighted.method)
    assert np.allclose(plain.share, weighted.share)
    assert np.allclose(plain.low, weighted.low, atol=0.01)


def test_channels_chosen_by_the_answer_do_not_bias() -> None:
    """Of 40,000 people those who say yes choose the weaker channel more often: the share .10 is within 4 errors."""
    rng = np.random.default_rng(2)
    level = np.repeat([0, 1], 20_000)
    answers = (rng.random(40_000) < np.where(level == 1, 0.05, 0.15)).astype(int)
    order = np.stack((np.flatnonzero(level == 0), np.flatnonzero(level == 1)), axis=1).ravel()
    reports, channel = survey(answers[order], LEVELS)
    found = crowdveil.share(reports, channel=channel)["q", "yes"]

    assert abs(found.unclipped - 0.10) < 4 * found.standard_error < 0.06
    assert found.low < 0.10 < found.high


def test_pooled_tasks_have_workers_as_units() -> None:
    """Copies of a task say nothing new: pooled, their interval is that of one task by sums."""
    one = frame(30, 70)
    copies = {"task": [*"abc"] * 100, "worker": np.repeat(one["worker"], 3), "label": np.repeat(one["label"], 3)}
    pooled = crowdveil.share(copies, pooled=True)
    single = crowdveil.share(one, weights=dict.fromkeys(range(100), 1))

    more = math.sqrt((1 - 1 / 300) / (1 - 1 / 100))  # 100 units, not 300 cells, estimate the variance

    assert np.allclose(pooled.low, single.low, atol=1e-3)
    assert np.allclose(pooled.standard_error, more * single.standard_error, atol=1e-6)
    assert (300, "all tasks") == (pooled.asked[0, 0], pooled.tasks[0])


def test_clusters_are_the_units() -> None:
    """Twenty clusters of equal answers give the error of 20 single answers, with 19 degrees of freedom."""
    answers = {"task": ["q"] * 100, "worker": [*range(100)], "label": np.repeat([*["yes"] * 6, *["no"] * 14], 5)}
    found = crowdveil.share(answers, clusters={worker: worker // 5 for worker in range(100)})
    single = crowdveil.share(frame(6, 14), weights=dict.fromkeys(range(20), 1))

    error = single["q", "yes"].standard_error * math.sqrt((1 - 1 / 100) / (1 - 1 / 20))

    assert found["q", "yes"].standard_error == pytest.approx(error, abs=1e-6)


def test_known_totals_weight_the_groups() -> None:
    """Half of 80 f and a tenth of 20 m say yes; with equal totals the share is .3, by hand with its error."""
    labels = ["yes"] * 40 + ["no"] * 40 + ["yes"] * 2 + ["no"] * 18
    answers = {"task": ["q"] * 100, "worker": [*range(100)], "label": labels}
    sex = {worker: "f" if worker < 80 else "m" for worker in range(100)}
    found = crowdveil.share(answers, by=sex, totals={"f": 500, "m": 500})["q", "yes"]

    assert found.unclipped == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(0.5 * math.sqrt(0.25 / 80 + 0.09 / 20), abs=1e-6)


def test_what_nonresponse_can_hide() -> None:
    """A fifth without an answer may all have said yes, or none: the bounds are of those asked."""
    workers = [*range(100)]
    answers = {"task": ["q"] * 80, "worker": workers[:80], "label": ["yes"] * 20 + ["no"] * 60}
    found = crowdveil.share(answers, tasks=["q"], workers=workers)["q", "yes"]

    assert (0.2, 0.4) == (found.lowest, found.highest)
    assert (0.4, 1 / 7) == (found.with_response_ratio(0.5), found.with_response_ratio(2.0))
    assert (100, 80) == (found.asked, found.reports)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a level of 1": ({"level": 1}, "level must be above 0 and below 1, got 1. Such as level=0.95."),
    "a level as text": ({"level": "95"}, "level must be a number, got '95'"),
    "groups of a stranger": ({"by": {"ann": "f"}}, "groups must be of workers who were asked, got 'ann'"),
    "groups without workers": (
        {"by": {"sex": ["f"]}},
        "groups must have the column 'worker' and another one, got 'sex'",
    ),
    "a path": ({"by": "groups.csv"}, "groups must be a table of workers, got 'str'"),
    "a worker twice": ({"by": {"worker": [1, 1], "sex": ["f", "m"]}}, "one row for each worker, got '1'"),
    "a weight of 0": ({"weights": dict.fromkeys(range(100), 0)}, "weights must be positive numbers"),
    "a missing weight": ({"weights": {0: 1}}, "got 'none of worker 1'"),
    "two weights": ({"weights": {"worker": [1], "a": [1], "b": [2]}}, "weights must be one column"),
    "totals without groups": ({"totals": {"f": 1}}, "totals need one column of groups"),
    "other totals": (
        {"totals": {"f": 1}, "by": dict.fromkeys(range(100), "m")},
        "totals must be of the groups by 'group'",
    ),
    "no groups at all": ({"min_group": 0}, "min_group must be at least 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_rule_and_value(name: str) -> None:
    """Each bad argument is refused with its rule, the value, and a hint."""
    given, message = REFUSED[name]

    with pytest.raises(SettingsError) as refused:
        crowdveil.share(frame(30, 70), **given)

    assert message in str(refused.value)
    assert refused.value.hint


def test_numbers_and_repeated_answers_are_refused() -> None:
    """A share needs labels, and counts a worker once; a path is no frame."""
    with pytest.raises(ReportsError, match="Give the scale of the numbers, or their labels: alphabet"):
        crowdveil.share(Reports.from_arrays(["a"], [1], [0.5], numeric=True))
    with pytest.raises(ReportsError, match="a worker answers a task once"):
        crowdveil.share(Reports.from_arrays(["a", "a"], [1, 1], ["x", "y"], duplicates="all"))
    with pytest.raises(CrowdveilError):
        crowdveil.share("answers.csv")


def test_a_row_that_does_not_exist_is_a_key_error() -> None:
    """Rows are found by task and label, and by column and group."""
    found: Shares = crowdveil.share(frame(30, 70))

    for place in (("r", "yes"), ("q", "maybe"), ("q", "yes", "sex", "f"), ("q", "")):
        with pytest.raises(KeyError):
            found[place]


def test_one_cluster_leaves_all_shares_possible() -> None:
    """One sampled unit tells nothing of the others: no interval of width 0, no error, no test."""
    answers = frame(10, 30)
    schools = {worker: "a" if worker < 20 else "b" for worker in answers["worker"]}
    found = crowdveil.share(answers, clusters=schools, by=schools)
    row = found["q", "yes", "group", "a"]

    assert (0.5, 0.0, 1.0) == (row.share, row.low, row.high)
    assert math.isnan(row.standard_error)
    assert math.isnan(found.tests[0].p_value)
    assert found.differences[0].low < 0 < found.differences[0].high


def test_a_column_of_many_names_takes_no_square_of_time() -> None:
    """A name for each of 50,000 workers, and a worker who is there twice, are found at once."""
    answers = frame(25_000, 25_000)
    found = crowdveil.share(answers, by={"worker": answers["worker"], "name": answers["worker"]})
    assert found.groups[1].name.startswith("others (")
    with pytest.raises(SettingsError, match="one row for each worker, got '49999'"):
        crowdveil.share(answers, by={"worker": [*answers["worker"], 49_999], "name": ["x"] * 50_001})


def test_what_nonresponse_can_hide_is_weighted() -> None:
    """Forty without an answer stand for nine people each: of 90 % nothing is known."""
    answers, silent = frame(10, 30), [*range(40, 80)]
    options: dict[str, Any] = {"tasks": ["q"], "workers": [*answers["worker"], *silent]}
    nine = dict.fromkeys(answers["worker"], 1.0) | dict.fromkeys(silent, 9.0)
    row = crowdveil.share(answers, weights=nine, **options)["q", "yes"]
    assert (0.025, 0.925) == (row.lowest, row.highest)

    halves = {worker: "ab"[worker % 2] for worker in options["workers"]}
    row = crowdveil.share(answers, by=halves, totals={"a": 9, "b": 1}, **options)["q", "yes"]
    assert math.isnan(row.lowest)
    assert math.isnan(row.highest)


def test_few_clusters_have_a_note() -> None:
    """Five clusters are too few for the level to be sure; ten of equal size are enough, of unequal size are not."""
    answers = frame(10, 30)
    five, ten = ({worker: worker // size for worker in answers["worker"]} for size in (8, 4))
    unequal = {worker: max(worker - 30, 0) for worker in answers["worker"]}
    note = "Weights and sizes count as 5 effective clusters; of fewer than 10 intervals may be too narrow."

    assert (note,) == crowdveil.share(answers, clusters=five).notes
    assert () == crowdveil.share(answers, clusters=ten).notes
    assert "1.6 effective clusters" in crowdveil.share(answers, clusters=unequal).notes[0]


def test_unequal_weights_have_a_note() -> None:
    """Weights that leave few people effective, of all or of a stratum of the totals, are named; equal ones are not."""
    answers = frame(60, 240)
    workers = answers["worker"]
    heavy = {worker: 10.0 if worker % 60 < 2 else 0.01 for worker in workers}
    halves = {worker: "ab"[worker % 2] for worker in workers}
    equal = dict.fromkeys(workers, 2.0)

    (said,) = crowdveil.share(answers, weights=heavy).notes
    also, of_whom = crowdveil.share(answers, weights=heavy, by=halves, totals={"a": 1, "b": 1}).notes

    assert said.startswith("Weights and sizes count as 10.5 effective people;")
    assert "count as 5.2 effective people in a group of the totals" in also
    assert (of_whom,) == crowdveil.share(answers, weights=equal, by=halves, totals={"a": 1, "b": 1}).notes


def test_totals_say_of_whom_the_shares_are() -> None:
    """With protected participation totals weight those who would answer, else all people, and the result says which."""
    halves = {f"w{number}": "ab"[number % 2] for number in range(200)}
    reports, channel = survey([0] * 100 + [1] * 60 + [2] * 40)
    hidden = crowdveil.share(reports, channel=channel, by=halves, totals={"a": 1, "b": 3})
    plain = crowdveil.share(frame(30, 70), by=dict.fromkeys(range(100), "a"), totals={"a": 1})

    assert ("answers", "everyone") == (hidden.totals, plain.totals)
    assert ("answers", "everyone") == (hidden["q", "yes"].of, plain["q", "yes"].of)
    assert ("asked", "answers") == (hidden["q", ""].of, plain["q", "yes", "group", "a"].of)
    assert ["everyone", "everyone", "answers", "answers"] == plain.columns()["of"].tolist()
    assert "of those people of the population who would answer" in hidden.notes[-1]
    assert "if in each group those without an answer would answer like the others" in plain.notes[-1]
    assert "yes, of all people, 30.0 %" in str(plain)
    assert "" == crowdveil.share(frame(30, 70)).totals


@pytest.mark.parametrize("ratio", [0, -1, math.inf, math.nan, "2", True])
def test_a_response_ratio_that_is_none_is_refused(ratio: Any) -> None:
    """A ratio is a positive, finite number."""
    answers = {"task": ["q"] * 20, "worker": [*range(20)], "label": ["yes", "no"] * 10}

    with pytest.raises(SettingsError, match="ratio must be"):
        crowdveil.share(answers)["q", "yes"].with_response_ratio(ratio)
