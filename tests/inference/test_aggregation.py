"""One call from a frame of answers to a frame of truths."""

import warnings
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdveil import (
    Categories,
    DawidSkene,
    HierarchicalDawidSkene,
    RandomizedResponse,
    Reports,
    aggregate,
    compare,
    conclude,
    draw_gold,
)
from crowdveil.answers.write_reports import ordered_reports_table
from crowdveil.errors import ReportsError
from crowdveil.inference.methods import SLOW_WORK
from crowdveil.inference.scores.metrics import score
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd, perturb_reports


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Return a simulated crowd of 40 workers on 60 tasks."""
    return categorical_crowd(workers=40, tasks=60, labels=Categories(("no", "yes")), sparsity=0.5, source=seeded(1))


def frame_of(reports: Reports) -> pd.DataFrame:
    """Return reports as a pandas frame of text."""
    return ordered_reports_table(reports).to_pandas().astype(str)


def test_one_call_is_the_fit_of_the_default_method(crowd: Crowd) -> None:
    """Truths and workers are those of the default of the command line."""
    frame = frame_of(crowd.answers)

    tasks, workers = aggregate(frame, with_workers=True)

    expected = HierarchicalDawidSkene().fit(Reports.from_frame(frame))
    pd.testing.assert_frame_equal(expected.to_frame(frame), tasks)
    pd.testing.assert_frame_equal(expected.to_frame(frame, "workers"), workers)


def test_numbers_have_a_default_of_their_own() -> None:
    """A column of numbers gives numbers with intervals."""
    columns = {"item": ["a", "a", "b"], "rater": [1, 2, 1], "value": [1.0, 2.0, 5.0]}

    found = aggregate(columns, worker="rater")

    assert ["item", "truth", "low", "high", "reports"] == list(found)
    assert [1.5, 5.0] == found["truth"]


def test_the_channel_reads_reports(crowd: Crowd) -> None:
    """With a channel the reports are read through it, and truths are labels of answers; without gold nothing else."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=2.0, participation="public")
    reports = perturb_reports(crowd.answers, mechanism, seeded(2))
    frame: Any = pl.from_arrow(ordered_reports_table(reports))

    found = aggregate(frame, channel=mechanism.channel())

    expected = HierarchicalDawidSkene().fit(
        Reports.from_frame(frame, alphabet=mechanism.alphabet), channel=mechanism.channel()
    )
    np.testing.assert_array_equal(expected.confidence, found["confidence"].to_numpy())


def test_protected_participation_needs_the_lists_of_tasks_and_workers(crowd: Crowd) -> None:
    """Lists pass to the reader; all their tasks are in the result."""
    mechanism = RandomizedResponse(alphabet=Categories(("no", "yes")), epsilon=3.0)
    reports = perturb_reports(crowd.answers, mechanism, seeded(2))

    found = aggregate(
        ordered_reports_table(reports),
        channel=mechanism.channel(),
        tasks=[*map(str, crowd.answers.tasks.tolist()), "extra"],
        workers=list(map(str, crowd.answers.workers.tolist())),
    )

    assert isinstance(found, pa.Table)
    assert "extra" in found["task"].to_pylist()


def test_gold_has_the_types_of_the_frame() -> None:
    """Known truths by integer task and boolean label guide the fit."""
    frame = pd.DataFrame({"task": [1, 1, 2], "worker": [1, 2, 1], "label": [True, True, False]})

    assert [False, False] == aggregate(frame, gold={1: False})["truth"].tolist()


GOLD = {"task": [1, 2, 3], "truth": ["yes", "no", "yes"]}
KINDS: dict[str, Any] = {
    "pandas": pd.DataFrame(GOLD),
    "categories": pd.DataFrame(GOLD).astype({"truth": "category"}),
    "polars": pl.DataFrame(GOLD),
    "lazy polars": pl.LazyFrame(GOLD),
    "arrow": pa.table(GOLD),
    "columns": GOLD,
    "arrays": {name: np.array(column) for name, column in GOLD.items()},
    "named label": pd.DataFrame(GOLD).rename(columns={"truth": "label"}),
}


@pytest.mark.parametrize("gold", KINDS.values(), ids=KINDS)
def test_gold_is_a_frame_of_any_kind(gold: Any) -> None:
    """Tasks and truths of a frame guide the fit, score it, and compare mechanisms as those of a mapping do."""
    votes = {"task": [1, 1, 2, 2, 3, 3], "worker": [*"vwvwvw"], "label": ["no", "no", "yes", "no", "yes", "yes"]}
    known = {1: "yes", 2: "no", 3: "yes"}

    assert aggregate(votes, gold=gold) == aggregate(votes, gold=known)
    estimate = DawidSkene().fit(votes)
    assert score(estimate, gold) == score(estimate, known)
    given: Any = {"epsilons": [1.0], "seed": 1}
    found, expected = (compare(["randomized-response"], votes, gold=one, **given) for one in (gold, known))
    assert found.rows == expected.rows


def test_numbers_of_labels_in_a_half_filled_frame_of_gold_are_labels() -> None:
    """An empty truth makes pandas read labels 0, 1, 2 as floats; they are the labels of the answers."""
    votes = pd.DataFrame({"task": [1, 1, 2, 2, 3, 3], "worker": list("vwvwvw"), "label": [0, 1, 2, 2, 1, 1]})
    gold = pd.read_csv(StringIO("task,truth,seed\n1,2,5\n2,2,5\n3,,5\n"))

    assert "float64" == str(gold["truth"].dtype)
    assert aggregate(votes, gold={1: 2, 2: 2})["truth"].tolist() == aggregate(votes, gold=gold)["truth"].tolist()
    assert 2 == aggregate(votes, gold=gold)["truth"].tolist()[0]


def test_gold_that_was_drawn_is_concluded_from_with_its_seed() -> None:
    """The frame of `draw_gold` with the truths that are known so far needs no seed beside it."""
    answers = {"task": [*range(40)] * 3, "worker": [w for w in "uvw" for _ in range(40)], "label": [*"nnyn"] * 30}
    drawn = pd.DataFrame(draw_gold(answers, 20, seed=1))
    drawn.loc[:14, "truth"] = ["nnyn"[task % 4] for task in drawn["task"][:15]]
    known = dict(zip(drawn["task"][:15], drawn["truth"][:15], strict=True))

    assert conclude(answers, drawn) == conclude(answers, known, seed=1)
    with pytest.raises(ReportsError, match="must be the first tasks"):
        conclude(answers, drawn.drop(index=3))


def test_a_fit_that_does_not_converge_warns(crowd: Crowd) -> None:
    """A frame shows no steps: too few of them are a warning."""
    with pytest.warns(UserWarning, match="NOT CONVERGED after 2 steps: truths still changed"):
        aggregate(crowd.answers, DawidSkene(max_steps=2))


@pytest.mark.parametrize(
    ("labels", "warned"),
    [
        (["yes", "Yes", "no", "no"], "different labels: .* merges them"),
        (["yes", "NA", "no", "no"], "Read as labels: 'NA'"),
    ],
)
def test_labels_of_several_spellings_or_for_no_answer_are_warned_of(labels: list[str], warned: str) -> None:
    """Python warns of what the command line warns of, unless the labels are stated."""
    frame = pd.DataFrame({"task": [1, 1, 2, 2], "worker": ["a", "b", "a", "b"], "label": labels})

    with pytest.warns(UserWarning, match=warned):
        aggregate(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aggregate(frame, alphabet=Categories(tuple(dict.fromkeys(labels))))


def test_a_long_fit_is_announced_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that takes long on these answers warns, and others do not."""
    monkeypatch.setitem(SLOW_WORK, "glad", (3, 0))
    answers = {"task": [1, 1, 2], "worker": [*"aba"], "label": ["yes", "yes", "no"]}

    with pytest.warns(UserWarning, match="glad takes more than ten seconds, or many minutes, for 3 reports"):
        aggregate(answers, "glad")
