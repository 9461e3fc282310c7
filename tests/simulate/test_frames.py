"""Reports of a frame by one call: kinds of frames, public lists, and the way back through the channel."""

import warnings
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdveil
from crowdveil import Categories, Laplace, RandomizedResponse, Reports, Scale, seeded
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.simulate import categorical_crowd
from tests.quality.test_frames import MAKERS, columns

LABELS = Categories(("no", "yes"))
VOTES: dict[str, list[Any]] = {
    "task": [3, 1, 1, 2],
    "worker": ["w", "v", "w", "v"],
    "label": ["no", "no", "yes", "yes"],
}
LISTS: dict[str, Any] = {"tasks": [1, 2, 3], "workers": ["v", "w"]}
MECHANISM = RandomizedResponse(alphabet=LABELS, epsilon=1.0)


@pytest.mark.parametrize("kind", MAKERS)
def test_reports_are_frames_of_the_same_kind(kind: str) -> None:
    """Each kind of frame gives its own kind, and one seed the same reports."""
    answers = MAKERS[kind](VOTES)
    sent = crowdveil.perturb(answers, MECHANISM, seeded(4), **LISTS)

    assert type(answers) is type(sent)
    assert columns(crowdveil.perturb(VOTES, MECHANISM, seeded(4), **LISTS)) == columns(sent)
    assert all(isinstance(task, int) for task in columns(sent)["task"])


@pytest.mark.parametrize("missing", [["tasks"], ["workers"], ["tasks", "workers"]])
def test_secure_reports_need_public_lists(missing: list[str]) -> None:
    """With protected participation, a list taken from the answers would show who answered."""
    given = {name: listed for name, listed in LISTS.items() if name not in missing}
    with pytest.raises(SettingsError, match="were taken from the answers") as caught:
        crowdveil.perturb(VOTES, MECHANISM, **given)

    assert all(f"{name}=" in caught.value.hint for name in missing)
    assert len(columns(crowdveil.perturb(VOTES, MECHANISM, seeded(1), **given))["task"]) >= 0


def test_public_participation_needs_the_labels_only() -> None:
    """Where everyone may see who answered, each answer gives one report."""
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation="public")
    sent = columns(crowdveil.perturb(VOTES, mechanism))

    assert sorted(zip(VOTES["task"], VOTES["worker"], strict=True)) == sorted(
        zip(sent["task"], sent["worker"], strict=True)
    )


def test_rows_do_not_show_the_order_of_the_answers() -> None:
    """The same answers in another order give the same rows from one seed."""
    other = {name: column[::-1] for name, column in VOTES.items()}

    assert columns(crowdveil.perturb(VOTES, MECHANISM, seeded(9), **LISTS)) == columns(
        crowdveil.perturb(other, MECHANISM, seeded(9), **LISTS)
    )


def test_numbers_on_a_scale_stay_numbers() -> None:
    """Reports of a scale are numbers of the column `value`."""
    grades = {"task": [1, 2], "worker": ["v", "v"], "value": [3.0, 7.0]}
    mechanism = Laplace(alphabet=Scale(0, 10, 1), epsilon=2.0, participation="public")
    sent = crowdveil.perturb(pd.DataFrame(grades), mechanism)

    assert ["task", "worker", "value"] == list(sent.columns)
    assert "float64" == str(sent["value"].dtype)
    assert set(sent["value"]) <= set(range(11))


def test_truths_come_back_through_the_channel() -> None:
    """`aggregate` with the channel finds most truths of a perturbed frame, and `Reports` give `Reports`."""
    crowd = categorical_crowd(workers=60, tasks=50, labels=LABELS, sparsity=0.0, source=seeded(1))
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=2.0)
    reports = crowdveil.perturb(crowd.answers, mechanism, seeded(2))
    assert isinstance(reports, Reports)
    rows = {
        "task": [str(crowd.answers.tasks[task]) for task in crowd.answers.task],
        "worker": [str(crowd.answers.workers[worker]) for worker in crowd.answers.worker],
        "label": [LABELS.names[value] for value in crowd.answers.value],
    }
    lists: dict[str, Any] = {"tasks": crowd.answers.tasks.tolist(), "workers": crowd.answers.workers.tolist()}
    sent = crowdveil.perturb(rows, mechanism, seeded(2), **lists)
    found = crowdveil.aggregate(sent, channel=mechanism.channel(), **lists)

    right = [truth == crowd.gold[task] for task, truth in zip(found["task"], found["truth"], strict=True)]
    assert len(reports) == len(sent["task"])
    assert sum(right) > 40


def test_reports_read_as_answers_are_warned_of() -> None:
    """A pandas frame of reports is known as one, copies too; with its channel there is nothing to say."""
    sent = crowdveil.perturb(pd.DataFrame(VOTES), MECHANISM, seeded(4), **LISTS).copy()
    options: dict[str, Any] = {"alphabet": LABELS, **LISTS}

    with pytest.warns(UserWarning, match=r"reports of randomized-response.*give channel=mechanism.channel\(\)"):
        crowdveil.agreement(pd.concat([sent, sent.assign(worker="x")]), alphabet=LABELS)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "These are reports")
        crowdveil.aggregate(sent, channel=MECHANISM.channel(), **LISTS)
        crowdveil.aggregate(pd.DataFrame(VOTES), **options)


def test_answers_outside_the_labels_are_refused() -> None:
    """An answer that the mechanism does not know is named."""
    with pytest.raises(ReportsError, match="maybe"):
        crowdveil.perturb({"task": [1], "worker": ["v"], "label": ["maybe"]}, MECHANISM, seeded(1))


def test_kinds_are_what_they_say() -> None:
    """The table of kinds holds the frames that the library promises."""
    assert {pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table, duckdb.DuckDBPyRelation, dict} == {
        type(make(VOTES)) for make in MAKERS.values()
    }


@pytest.mark.parametrize("participation", ["nobody", "one", "all"])
@pytest.mark.parametrize("kind", ["str", "category", "int64", "Int64"])
def test_no_type_follows_from_the_answers(participation: str, kind: str) -> None:
    """Whoever answered, and however the frame stores its columns, the types are those of the given lists."""
    count = {"nobody": 0, "one": 1, "all": 4}[participation]
    answers = pd.DataFrame({name: column[:count] for name, column in VOTES.items()}).astype({"task": kind})
    if kind == "category":
        answers = answers.astype("category")
    sent = crowdveil.perturb(answers, MECHANISM, **LISTS)
    usual = crowdveil.perturb(pd.DataFrame(VOTES), MECHANISM, **LISTS)

    assert usual.dtypes.tolist() == sent.dtypes.tolist()
    assert not sent.isna().any().any()
    assert set(sent["task"]) <= set(LISTS["tasks"])


def test_comparisons_are_refused() -> None:
    """A frame of comparisons is refused with the way that randomizes them; infer and aggregate name rank."""
    compared = {"left": ["a", "b"], "right": ["b", "c"], "worker": ["v", "w"], "label": ["left", "tie"]}

    with pytest.raises(SettingsError, match="frames of comparisons are not randomized by perturb") as refused:
        crowdveil.perturb(compared, MECHANISM, seeded(1))
    assert "sample of the channel" in str(refused.value)
    with pytest.raises(ReportsError, match="Comparisons of two items are read by rank"):
        crowdveil.aggregate(compared)
