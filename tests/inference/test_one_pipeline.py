"""Function, frames and command give one result: they are outlets of one pipeline."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import crowdveil
from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.cli import main
from crowdveil.inference.infer import infer
from crowdveil.mechanisms import Laplace, RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.registry import ESTIMATOR_ENTRIES
from crowdveil.simulate import categorical_crowd, numeric_crowd

LABELS = Categories(("low", "middle", "high"), ordered=True)
SCALE = Scale(0, 10, 1)
KINDS = ("categorical", "numeric")


def crowd(kind: str) -> Any:
    """Make a crowd of labels in order, or of numbers on a scale."""
    if kind == "categorical":
        return categorical_crowd(workers=12, tasks=40, labels=LABELS, sparsity=0.5, source=seeded(4))
    return numeric_crowd(workers=12, tasks=40, scale=SCALE, sparsity=0.5, source=seeded(4))


def command(folder: Path, *words: object) -> tuple[pa.Table, pa.Table]:
    """Run `crowdveil infer` and return the truths and workers that it wrote, bit for bit."""
    result = CliRunner().invoke(
        main, ["infer", *map(str, words), "--format", "parquet", "--out", str(folder / "found")]
    )
    assert 0 == result.exit_code, result.output
    return pq.read_table(folder / "found" / "truths.parquet"), pq.read_table(folder / "found" / "workers.parquet")


def assert_same_bits(expected: pa.Table, actual: pa.Table) -> None:
    """Check that two tables have equal columns, numbers bit for bit."""
    for name in actual.column_names:
        one, other = (np.asarray(table[name].to_pylist()) for table in (expected, actual))
        if one.dtype.kind == "f":
            assert one.tobytes() == other.astype(one.dtype).tobytes(), name
        else:
            assert one.tolist() == other.tolist(), name


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ESTIMATOR_ENTRIES)
def test_command_frames_and_function_have_the_same_bits(method: str, tmp_path: Path) -> None:
    """For every method, `infer`, `aggregate` and `crowdveil infer` give the same truths and workers, bit for bit."""
    kind = ESTIMATOR_ENTRIES[method].capabilities.kind
    made = crowd(kind)
    table = ordered_reports_table(made.answers)
    if kind == "numeric":
        table = table.set_column(2, "value", table.column(2).cast(pa.string()).cast(pa.float64()))
    with open(tmp_path / "answers.csv", "wb") as stream:
        write_table(stream, table)
    options: Any = {"alphabet": LABELS if kind == "categorical" else SCALE}
    words = ("--labels", ",".join(LABELS.names), "--ordered") if kind == "categorical" else ("--scale", "0:10:1")
    frame = {name: table[name].to_pylist() for name in table.column_names}

    found = infer(frame, method, **options)
    tasks, workers = crowdveil.aggregate(table, method, with_workers=True, **options)
    written = command(tmp_path, tmp_path / "answers.csv", "--method", method, *words)

    for expected, estimated, framed in zip(
        written, (found.estimate.tasks_frame(), found.estimate.workers_frame()), (tasks, workers), strict=True
    ):
        assert_same_bits(expected, estimated)
        assert_same_bits(expected, framed)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "method", [name for name, entry in ESTIMATOR_ENTRIES.items() if entry.capabilities.reads_channel]
)
def test_outlets_agree_behind_a_channel(method: str, tmp_path: Path) -> None:
    """For every method that reads a channel, function and command agree on the reports of `perturb`, bit for bit."""
    kind = ESTIMATOR_ENTRIES[method].capabilities.kind
    made = crowd(kind)
    mechanism: Any = (
        RandomizedResponse(alphabet=LABELS, epsilon=2.0)
        if kind == "categorical"
        else Laplace(alphabet=SCALE, epsilon=2.0)
    )
    for name, column in (("task", made.answers.tasks), ("worker", made.answers.workers)):
        (tmp_path / f"{name}s.csv").write_text("\n".join([name, *map(str, column.tolist())]) + "\n", "utf-8")
    with open(tmp_path / "answers.csv", "wb") as stream:
        write_table(stream, ordered_reports_table(made.answers))
    alphabet = ("--labels", ",".join(LABELS.names), "--ordered") if kind == "categorical" else ("--scale", "0:10:1")
    words = ["perturb", tmp_path / "answers.csv", *alphabet, "--epsilon", 2, "--seed", 3, "--out", tmp_path / "sent"]
    words += ["--mechanism", mechanism.name, "--tasks", tmp_path / "tasks.csv", "--workers", tmp_path / "workers.csv"]
    sent = CliRunner().invoke(main, list(map(str, words)))
    assert 0 == sent.exit_code, sent.output
    channel = crowdveil.Channel.from_certificate((tmp_path / "sent" / "certificate.json").read_bytes())
    reports = crowdveil.Reports.from_csv(
        tmp_path / "sent" / "reports.csv",
        alphabet=channel.report_alphabet,
        tasks=list(map(str, made.answers.tasks.tolist())),
        workers=list(map(str, made.answers.workers.tolist())),
    )

    found = infer(reports, method, channel=channel)
    written = command(tmp_path, tmp_path / "sent" / "reports.csv", "--method", method)

    for expected, estimated in zip(
        written, (found.estimate.tasks_frame(), found.estimate.workers_frame()), strict=True
    ):
        assert_same_bits(expected, estimated)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_outlets_agree_on_gold(tmp_path: Path) -> None:
    """With gold that combines methods, function, frames and command give the same truths, bit for bit."""
    made = crowd("categorical")
    table = ordered_reports_table(made.answers)
    with open(tmp_path / "answers.csv", "wb") as stream:
        write_table(stream, table)
    gold = dict(list(made.gold.items())[:25])
    rows = "".join(f"{task},{truth}\n" for task, truth in gold.items())
    (tmp_path / "gold.csv").write_text("task,truth\n" + rows, "utf-8")

    found = infer(table, gold=gold, alphabet=LABELS)
    framed = crowdveil.aggregate(table, gold=gold, alphabet=LABELS)
    written, _ = command(
        tmp_path,
        tmp_path / "answers.csv",
        "--gold",
        tmp_path / "gold.csv",
        "--labels",
        ",".join(LABELS.names),
        "--ordered",
    )

    assert found.gold_line is not None
    assert_same_bits(written, found.estimate.tasks_frame())
    assert_same_bits(written, framed)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_outlets_agree_on_truths_with_labels_of_their_own(tmp_path: Path) -> None:
    """A panel is one result from function, frames and command, bit for bit."""
    made = crowd("numeric")
    table = ordered_reports_table(made.answers)
    table = table.set_column(2, "value", table.column(2).cast(pa.string()).cast(pa.float64()))
    with open(tmp_path / "scores.csv", "wb") as stream:
        write_table(stream, table)

    found = infer(table, truths=["no", "yes"])
    framed = crowdveil.aggregate(table, truths=["no", "yes"])
    written, _ = command(tmp_path, tmp_path / "scores.csv", "--truths", "no,yes")

    assert found.panel is not None
    assert_same_bits(written, found.estimate.tasks_frame())
    assert_same_bits(written, framed)
