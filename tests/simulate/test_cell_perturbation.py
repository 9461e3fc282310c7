"""Reports of cells that differ: the distribution of each cell's own channel, on assigned cells only."""

import numpy as np
import pytest

from crowdveil import QuantizedResponse, RandomizedResponse, Reports, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.randomness import Source, secure, seeded
from crowdveil.simulate import numeric_crowd, perturb_cells, simulated_assignment
from tests.chi_square import chi_square_p_value

SCALE = Scale(0, 2)


def table() -> ChannelTable:
    """Return two cuts dealt to 400 workers; the second task is not protected."""
    low, high = (QuantizedResponse(alphabet=SCALE, epsilon=1.0, cuts=(at,)).channel() for at in (1, 2))
    return ChannelTable(
        channels=(low, high, Channel.identity(SCALE, "public")),
        choice=((0, 2), (1, 2)),
        workers={str(worker): worker % 2 for worker in range(400)},
        tasks={"0": 0, "1": 1},
    )


def answers() -> Reports:
    """Return answers of 300 of 400 workers, all of them 1, to both tasks."""
    worker = np.tile(np.arange(300), 2)
    return Reports(np.repeat([0, 1], 300), worker, np.ones(600), np.arange(2), np.arange(400), SCALE)


@pytest.mark.parametrize("source", [seeded(1), secure()], ids=["seeded", "secure"])
@pytest.mark.parametrize("assigned", [False, True], ids=["all cells", "assigned cells"])
def test_every_cell_follows_its_channel(source: Source, assigned: bool) -> None:
    """Workers with the first cut send its blocks as often as it says (chi-square, false alarm 1e-6), open cells the
    answer."""
    everything = Assignment(np.arange(2), np.arange(400), np.repeat([0, 1], 400), np.tile(np.arange(400), 2))
    counts, names = np.zeros(3), ("0", "1..2", "NULL")

    for _ in range(20):
        sent = perturb_cells(answers(), table(), source, assignment=everything if assigned else None)
        first = (sent.task == 0) & (sent.worker % 2 == 0) & (sent.worker < 300)
        found = [sent.alphabet.names[code] for code in sent.value[first]]  # type: ignore[union-attr]
        counts += [found.count("0"), found.count("1..2"), 150 - len(found)]
        assert {"1"} == {sent.alphabet.names[code] for code in sent.value[sent.task == 1]}  # type: ignore[union-attr]
        assert 300 == (sent.task == 1).sum()

    assert set(names) == set(table().channels[0].outputs)
    expected = [table().channels[0].probabilities[1, table().channels[0].outputs.index(name)] for name in names]
    assert chi_square_p_value(counts, expected) > 1e-6


def test_cells_that_are_not_assigned_send_nothing() -> None:
    """Reports come from assigned cells only, and a skipped assigned cell may send a label."""
    few = Assignment(np.arange(2), np.arange(400), np.zeros(310, dtype=int), np.arange(310))
    first = answers()
    kept = first.task == 0
    asked = Reports(first.task[kept], first.worker[kept], first.value[kept], first.tasks, first.workers, SCALE)

    sent = perturb_cells(asked, RandomizedResponse(alphabet=SCALE, epsilon=0.5).channel(), seeded(2), assignment=few)

    assert 309 >= sent.worker.max() >= 300
    assert {0} == set(sent.task.tolist())
    with pytest.raises(ReportsError, match="300 were not assigned, 0 repeat a cell"):
        perturb_cells(answers(), table(), seeded(2), assignment=few)


def test_another_alphabet_is_refused() -> None:
    """Answers in other labels than the channel's raise ReportsError."""
    with pytest.raises(ReportsError, match="coded in the channel's labels"):
        perturb_cells(answers(), RandomizedResponse(alphabet=Scale(0, 3), epsilon=1.0).channel(), seeded(0))


def test_an_assignment_around_answers_holds_them() -> None:
    """Every answered cell is in it, and every task has as many cells as asked."""
    crowd = numeric_crowd(workers=20, tasks=10, sparsity=0.8, scale=SCALE, source=seeded(3))
    most = int(crowd.answers.per_task.max())

    drawn = simulated_assignment(crowd.answers, most + 2, seeded(4))

    answered = set(zip(crowd.answers.task.tolist(), crowd.answers.worker.tolist(), strict=True))
    assert answered <= set(zip(drawn.task.tolist(), drawn.worker.tolist(), strict=True))
    assert [most + 2] * 10 == np.bincount(drawn.task).tolist()
    with pytest.raises(SettingsError, match="per_task must be in"):
        simulated_assignment(crowd.answers, most - 1, seeded(4))


def test_progress_counts_the_groups() -> None:
    """One call per pair of groups."""
    calls: list[tuple[int, int]] = []

    perturb_cells(answers(), table(), seeded(5), progress=lambda done, whole: calls.append((done, whole)))

    assert [(1, 4), (2, 4), (3, 4), (4, 4)] == calls
