"""Lists that were given, and assigned cells: what a guarantee needs to be public."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.channels.alphabet import Categories
from crowdveil.channels.certificate import LISTS_MARK
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.data.assignment import Assignment, affordable_workers_per_task, assignment_with_gold
from crowdveil.data.public_lists import ALL_LISTS, join_words, missing_lists
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.crowd import contents_of_crowd_json, read_crowd
from crowdveil.folder.perturbed_collection import write_collection
from crowdveil.folder.write_collection import write_reports
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import secure, seeded
from crowdveil.simulate import categorical_crowd, perturb, perturb_cells
from crowdveil.simulate.channel_assignment import ChannelAssignment
from crowdveil.simulate.perturbed_collection import perturb_collection

LABELS = Categories(("no", "yes"))
NAMES = {"tasks": ["a", "b"], "workers": ["u", "v"]}
MECHANISM = RandomizedResponse(alphabet=LABELS, epsilon=1.0)


def answers(*given: str, duplicates: str = "error") -> Reports:
    """Return three answers, read with some of the lists."""
    lists = {**NAMES, "alphabet": LABELS}
    columns = ["a", "a", "b"], ["u", "v", "v"], ["no", "yes", "no"]
    chosen = {name: lists[name] for name in given}
    return Reports.from_arrays(*columns, duplicates=duplicates, **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [(), ("tasks",), ("workers",), ("alphabet",), ("tasks", "workers", "alphabet")])
def test_reading_says_which_lists_were_given(given: tuple[str, ...], tmp_path: Path) -> None:
    """Arrays, CSV files and both ways of putting rows in order count what was given, and nothing else."""
    wanted = {"labels" if name == "alphabet" else name for name in given}
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\na,u,no\na,v,yes\nb,v,no\nb,v,no\n")
    lists = {**NAMES, "alphabet": LABELS}
    read = Reports.from_csv(path, duplicates="first", **{name: lists[name] for name in given})  # type: ignore[arg-type]

    assert wanted == answers(*given).public_lists == answers(*given, duplicates="all").public_lists == read.public_lists


def test_what_does_not_say_so_is_not_public(tmp_path: Path) -> None:
    """Constructed reports and opened folders have no public lists by default."""
    made = Reports([0], [0], [0], np.array(["a"]), np.array(["u"]), LABELS)  # type: ignore[arg-type]
    made.with_public_lists(ALL_LISTS).save(tmp_path)

    assert frozenset() == made.public_lists == Reports.open(tmp_path).public_lists
    assert ALL_LISTS == made.with_public_lists(ALL_LISTS).public_lists
    assert made.worker is made.with_public_lists(ALL_LISTS).worker


def test_what_is_sent_has_the_lists_of_the_answers() -> None:
    """Devices, the vectorised path and a table of channels neither add nor lose a list."""
    held = answers("tasks", "alphabet")
    channel = MECHANISM.channel()
    asked = Assignment.from_arrays(["a", "a", "b"], ["u", "v", "v"])
    sent = [
        perturb(held, MECHANISM, secure()),
        perturb(held, MECHANISM, seeded(1)),
        perturb_cells(held, channel, seeded(1)),
        perturb_cells(held, channel, seeded(1), assignment=asked),
    ]

    assert [{"tasks", "labels"}] * 4 == [one.public_lists for one in sent]
    crowd = categorical_crowd(workers=3, tasks=4, labels=LABELS, sparsity=0.5, source=seeded(1))
    assert ALL_LISTS == crowd.answers.public_lists


def test_needed_lists_follow_from_participation() -> None:
    """Protected participation needs all lists, public participation the labels only."""
    assert ("labels", "tasks", "workers") == missing_lists((), "protected")
    assert ("labels",) == missing_lists(("tasks",), "public")
    assert ("tasks",) == missing_lists(("labels", "workers"), "protected")
    assert ("labels, tasks and workers", "tasks") == (join_words(["labels", "tasks", "workers"]), join_words(["tasks"]))


@pytest.mark.parametrize("missing", ["labels", "tasks", "workers"])
def test_the_library_refuses_what_the_command_refuses(missing: str, tmp_path: Path) -> None:
    """`campaign collect` without a seed refuses a list taken from answers; with permission it writes no epsilon."""
    held = answers("tasks", "workers", "alphabet").with_public_lists(ALL_LISTS - {missing})
    setup = ChannelAssignment(mechanism=MECHANISM)

    with pytest.raises(SettingsError, match=f"{missing} taken from the answers"):
        perturb_collection(held, setup)
    collection = perturb_collection(held, setup, lists_from_answers=True)
    write_collection(tmp_path, collection)
    written = (tmp_path / "crowd.json").read_text()

    assert () == collection.accounts
    assert "epsilon" not in written
    assert [missing] == read_crowd(tmp_path / "crowd.json")["lists_from_answers"]


def test_a_crowd_describes_no_guarantee_that_its_lists_do_not_carry() -> None:
    """Whatever guarantee is passed, `contents_of_crowd_json` says why there is none: missing lists, or a simulation."""
    protected, public = Guarantee(epsilon=1.0), Guarantee(epsilon=1.0, participation="public")
    hidden = contents_of_crowd_json(answers("alphabet"), mechanism="mine", guarantee=protected, simulation=False)
    seen = contents_of_crowd_json(answers("alphabet"), mechanism="mine", guarantee=public, simulation=False)
    mixed = contents_of_crowd_json(
        answers("alphabet"), mechanism="mine", guarantee=public, participation="protected", simulation=False
    )
    held = answers("tasks", "workers", "alphabet")
    made_up = contents_of_crowd_json(held, mechanism="mine", guarantee=protected, simulation=True)

    assert hidden["guarantee"].startswith("none: tasks and workers were taken from the answers")
    assert (str(public), []) == (seen["guarantee"], seen["lists_from_answers"])
    assert (hidden["guarantee"], ["tasks", "workers"]) == (mixed["guarantee"], mixed["lists_from_answers"])
    assert made_up["guarantee"].startswith("none: a simulation carries no privacy; ")


def test_lists_from_answers_are_not_written_with_a_certificate_of_privacy(tmp_path: Path) -> None:
    """A certificate without the mark of lists from answers is refused where lists are missing; a marked one is not."""
    held = answers("alphabet")
    channel = MECHANISM.channel()
    table = ChannelTable(channels=(channel,), choice=((0,),))
    marked = replace(channel, mechanism=channel.mechanism + LISTS_MARK)
    for one in (channel, table):
        crowd = contents_of_crowd_json(
            held, mechanism="mine", guarantee=one.guarantee, simulation=False, certificate=one.certificate()
        )
        with pytest.raises(SettingsError, match="must be marked as without privacy"):
            write_reports(tmp_path, held, one.certificate(), crowd)
    sealed = marked.certificate()
    crowd = contents_of_crowd_json(
        held, mechanism="mine", guarantee=marked.guarantee, simulation=False, certificate=sealed
    )
    write_reports(tmp_path, held, sealed, crowd)

    assert ["tasks", "workers"] == read_crowd(tmp_path / "crowd.json")["lists_from_answers"]


@given(tasks=st.integers(1, 30), workers=st.integers(1, 20), data=st.data())
def test_a_balanced_assignment_is_balanced(tasks: int, workers: int, data: st.DataObject) -> None:
    """Every task gets as many different workers as asked; loads differ by at most one."""
    per_task = data.draw(st.integers(1, workers))

    drawn = Assignment.balanced(np.arange(tasks), np.arange(workers), per_task, seeded(0))

    assert [per_task] * tasks == np.bincount(drawn.task, minlength=tasks).tolist()
    assert tasks * per_task == len(set(zip(drawn.task, drawn.worker, strict=True)))
    assert np.ptp(drawn.per_worker) <= 1


def test_draws_differ() -> None:
    """Two secure draws of 100 cells are not the same (chance below 1e-100)."""
    first, second = (Assignment.balanced(np.arange(100), np.arange(100), 1, secure()) for _ in range(2))

    assert (first.worker != second.worker).any()


def test_more_workers_than_there_are_cannot_be_asked() -> None:
    """The error names the number of workers."""
    with pytest.raises(SettingsError, match=r"per_task must be in 1\.\.3, the number of workers, got 4"):
        Assignment.balanced(["t"], ["a", "b", "c"], 4, seeded(0))


def test_cells_are_sorted_and_held_to_the_lists() -> None:
    """Names that are listed without a cell stay; the cells come in the order of tasks, then workers."""
    assignment = Assignment.from_arrays(["u", "t"], ["b", "a"], tasks=["t", "u", "v"], workers=["a", "b"])

    assert ["t", "u", "v"] == assignment.tasks.tolist()
    assert [(0, 0), (1, 1)] == list(zip(assignment.task, assignment.worker, strict=True))
    assert 2 == len(assignment)


def test_a_cell_is_assigned_once() -> None:
    """Repeated cells are refused, by number."""
    with pytest.raises(ReportsError, match="a worker is assigned a task once, 1 cells repeat"):
        Assignment.from_arrays(["t", "t"], ["a", "a"])


def test_cells_are_put_into_other_lists() -> None:
    """Aligned cells count task-major in the other lists' order; a name they lack is refused."""
    assignment = Assignment.from_arrays(["t", "u"], ["a", "b"])

    assert [1, 4] == assignment.cells_in_codes_of_lists(np.array(["u", "x", "t"]), np.array(["a", "b"])).tolist()
    with pytest.raises(ReportsError, match=r"every assigned worker must be listed.*b"):
        assignment.cells_in_codes_of_lists(np.array(["t", "u"]), np.array(["a"]))


@given(budget=st.floats(0.5, 30), epsilon=st.floats(0.1, 5), tasks=st.integers(1, 60), workers=st.integers(1, 60))
def test_an_assignment_within_a_budget_overspends_for_nobody(
    budget: float, epsilon: float, tasks: int, workers: int
) -> None:
    """The worker with the most tasks spends at most the budget; one more worker for each task would overspend."""
    try:
        per_task = affordable_workers_per_task(budget, epsilon, tasks=tasks, workers=workers)
    except SettingsError:
        assert workers * int(budget / epsilon + 1e-9) < tasks
        return
    drawn = Assignment.balanced(np.arange(tasks), np.arange(workers), per_task, seeded(1))

    assert int(drawn.per_worker.max()) * epsilon <= budget * (1 + 1e-12)
    more = per_task + 1
    assert more > workers or -(-more * tasks // workers) * epsilon > budget * (1 - 1e-12)


@given(workers=st.integers(1, 20), gold=st.integers(1, 12), others=st.integers(1, 20), data=st.data())
def test_gold_tasks_are_mixed_in_evenly(workers: int, gold: int, others: int, data: st.DataObject) -> None:
    """Each worker has the asked number of gold tasks, gold tasks are used evenly, and other tasks as without gold."""
    per_worker, per_task = data.draw(st.integers(1, gold)), data.draw(st.integers(1, workers))
    tasks = data.draw(st.permutations(range(gold + others)))
    known = tasks[:gold]

    drawn = assignment_with_gold(sorted(tasks), range(workers), per_task, seeded(0), gold=known, per_worker=per_worker)
    is_gold = np.isin(drawn.tasks[drawn.task], known)

    assert [per_worker] * workers == np.bincount(drawn.worker[is_gold], minlength=workers).tolist()
    assert np.ptp(np.bincount(drawn.task, minlength=gold + others)[known]) <= 1
    assert {per_task} == set(np.bincount(drawn.task, minlength=gold + others)[tasks[gold:]].tolist())
    assert np.ptp(drawn.per_worker) <= 1


@pytest.mark.parametrize(
    ("gold", "per_worker", "rule"),
    [
        (["x"], 1, "gold tasks are listed among the tasks"),
        (["t", "t"], 1, "a gold task is named once"),
        (["t"], 2, r"gold tasks per worker must be in 1\.\.1"),
        (["t", "u"], 1, "some tasks must not be gold"),
    ],
)
def test_gold_that_cannot_be_mixed_in_is_refused(gold: list[str], per_worker: int, rule: str) -> None:
    """Each rule on gold tasks is named."""
    with pytest.raises(SettingsError, match=rule):
        assignment_with_gold(["t", "u"], ["a", "b"], 1, seeded(0), gold=gold, per_worker=per_worker)
