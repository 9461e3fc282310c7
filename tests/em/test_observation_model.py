"""Tables of channels and assigned cells: the sparse sums against loops over every cell."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import DawidSkene, MajorityVote, OneCoin, RandomizedResponse, Reports
from crowdveil.answers.assignment import Assignment
from crowdveil.channels.alphabet import NULL
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable, table_by_task
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.observation_model import observation_model
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.estimators.confusion.model import expected_worker_answers, full_report_sums
from crowdveil.estimators.confusion.parameters import CrowdParameters
from crowdveil.published import PrivateDawidSkene
from tests.estimators.dense import (
    LABELS,
    blocks_channel,
    channel_at,
    dense_posterior,
    lopsided_channel,
    naive_expected_answers,
    one_block,
)

TASKS, WORKERS = 6, 5


def response(epsilon: float, participation: str = "protected") -> Channel:
    """Return randomized response over the three labels."""
    return RandomizedResponse(alphabet=LABELS, epsilon=epsilon, participation=participation).channel()  # type: ignore[arg-type]


def tables() -> dict[str, ChannelTable]:
    """Return tables of every kind."""
    halves = {str(worker): worker % 2 for worker in range(WORKERS)}
    thirds = {str(task): task % 3 for task in range(TASKS)}
    pairs = {str(task): task % 2 for task in range(TASKS)}
    return {
        "by worker": ChannelTable.by_worker([lopsided_channel(), blocks_channel()], halves),
        "own epsilons": ChannelTable.by_worker([response(1.0), response(3.0)], halves),
        "by task": table_by_task([lopsided_channel(), blocks_channel(), response(2.0)], thirds),
        "sensitive tasks": table_by_task([response(1.0), Channel.identity(LABELS, "public")], pairs),
        "public": table_by_task([response(1.0, "public"), Channel.identity(LABELS, "public")], pairs),
        "by both": ChannelTable(
            channels=(lopsided_channel(), blocks_channel(), response(2.0)),
            choice=((0, 1), (2, 0)),
            workers=halves,
            tasks=pairs,
        ),
    }


TABLES = tables()
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
each_extent = pytest.mark.parametrize("assigned", [False, True], ids=["all cells", "assigned cells"])


def sent(table: ChannelTable, seed: int, *, assigned: bool) -> tuple[Reports, set[tuple[int, int]] | None]:
    """Draw what a channel could send from each cell, and which cells report."""
    rng = np.random.default_rng(seed)
    asked = [(t, w) for t in range(TASKS) for w in range(WORKERS) if not assigned or rng.random() < 0.7]
    names = table.report_alphabet.names
    rows = []
    for task, worker in asked:
        channel = channel_at(table, task, worker)
        name = str(rng.choice((*channel.outputs, NULL)))
        if name != NULL:
            rows.append((task, worker, names.index(name)))
    columns = np.array(rows, dtype=int).reshape(-1, 3).T
    reports = Reports(columns[0], columns[1], columns[2], np.arange(TASKS), np.arange(WORKERS), table.report_alphabet)
    return reports, set(asked) if assigned else None


def assignment_of(cells: set[tuple[int, int]] | None) -> Assignment | None:
    """Return the assignment of these cells."""
    if cells is None:
        return None
    task, worker = np.array(sorted(cells)).T
    return Assignment(np.arange(TASKS), np.arange(WORKERS), task, worker)


def crowd(
    table: ChannelTable, seed: int, *, assigned: bool
) -> tuple[Reports, Reports, CrowdParameters, set[tuple[int, int]] | None]:
    """Return reports, the same by symbol, parameters that fit them by chance only, and the assigned cells."""
    rng = np.random.default_rng(100 + seed)
    reports, cells = sent(table, seed, assigned=assigned)
    coded, summary = coded_and_summarized(DawidSkene(), reports, table, assignment_of(cells), None)
    parameters = replace(
        DawidSkene().initialize(summary),
        confusion=rng.dirichlet(np.ones(3), size=(WORKERS, 3)),
        class_prior=rng.dirichlet(np.ones(3)),
        is_initial=False,
    )
    if table.protects_participation:
        parameters = replace(parameters, participation=rng.uniform(0.1, 0.9, WORKERS))
    return reports, coded, parameters, cells


@each_table
@each_extent
@pytest.mark.parametrize("seed", range(2))
def test_posteriors_are_the_dense_ones(table: ChannelTable, assigned: bool, seed: int) -> None:
    """Posteriors (and, where all cells are protected, the likelihood) are products over all cells, to 1e-10."""
    reports, coded, parameters, cells = crowd(table, seed, assigned=assigned)

    expected, likelihood = dense_posterior(reports, parameters, cells)
    found = DawidSkene().e_step(one_block(coded), parameters)

    np.testing.assert_allclose(found.posterior, expected, rtol=0, atol=1e-10)
    if all_alike(table):
        assert pytest.approx(likelihood, rel=1e-10) == found.statistics.log_likelihood


@each_table
@each_extent
def test_hidden_answers_are_enumerated(table: ChannelTable, assigned: bool) -> None:
    """Expected answers and participation equal the sums over all cells and what each may hide, to 1e-10."""
    reports, coded, parameters, cells = crowd(table, 3, assigned=assigned)
    posterior, _ = dense_posterior(reports, parameters, cells)
    hidden = naive_expected_answers(reports, parameters, posterior, cells)

    statistics = DawidSkene().e_step(one_block(coded), parameters).statistics
    answers, participation = expected_worker_answers(full_report_sums(statistics, parameters), parameters)

    np.testing.assert_allclose(answers, hidden[:, :, :3], rtol=0, atol=1e-10)
    if table.protects_participation and all_alike(table):
        given = (
            hidden[:, :, :3].sum(axis=(1, 2)) + parameters.participation_pseudo_counts * parameters.pool.participation
        )
        total = hidden.sum(axis=(1, 2)) + parameters.participation_pseudo_counts
        np.testing.assert_allclose(participation, given / total, rtol=0, atol=1e-10)


def all_alike(table: ChannelTable) -> bool:
    """Whether participation is treated alike everywhere; visible NULL is counted only with protected cells."""
    return len({channel.participation for channel in table.channels}) == 1


@pytest.mark.parametrize("method", [DawidSkene(), OneCoin(), MajorityVote()], ids=lambda method: method.name)
def test_everyone_assigned_everything_is_no_assignment(method: DawidSkene | OneCoin | MajorityVote) -> None:
    """NULL reports that are listed say the same as NULL reports that are counted."""
    table = TABLES["by both"]
    reports, _ = sent(table, 5, assigned=False)
    full_table = assignment_of({(task, worker) for task in range(TASKS) for worker in range(WORKERS)})

    counted = method.fit(reports, channel=table)
    listed = method.fit(reports, channel=table, assignment=full_table)

    np.testing.assert_allclose(listed.posterior, counted.posterior, rtol=0, atol=1e-9)
    np.testing.assert_allclose(listed.workers.quality, counted.workers.quality, rtol=0, atol=1e-9)


def test_a_report_from_an_unassigned_cell_is_refused() -> None:
    """A report of an unassigned cell is refused, and the error names the cell."""
    reports = Reports([0, 1], [0, 1], [0, 1], np.arange(2), np.arange(2), LABELS)
    assignment = Assignment(np.arange(2), np.arange(2), np.array([0]), np.array([0]))

    with pytest.raises(ReportsError, match=r"1 report comes from cells that were not assigned.*task 1, worker 1"):
        DawidSkene().fit(reports, channel=response(1.0), assignment=assignment)


def test_a_report_of_another_channel_is_refused() -> None:
    """A block's name from a worker whose channel knows no blocks is refused by name, task and worker."""
    table = ChannelTable.by_worker([response(1.0), blocks_channel()], {"0": 0, "1": 1})
    blocks = table.report_alphabet.names.index("a or b")
    reports = Reports([0, 0], [0, 1], [blocks, blocks], np.arange(1), np.arange(2), table.report_alphabet)

    with pytest.raises(ReportsError, match=r"1 report is not a symbol of its channel.*'a or b' of task 0, worker 0"):
        observation_model(table, reports, None)


def test_estimators_of_one_channel_refuse_tables_and_assignments() -> None:
    """private-dawid-skene says that it reads one channel, and no assignment."""
    table = TABLES["own epsilons"]
    reports, cells = sent(table, 6, assigned=True)

    with pytest.raises(SettingsError, match="one channel, not a table"):
        PrivateDawidSkene().fit(reports, channel=table)
    with pytest.raises(SettingsError, match="cannot use an assignment"):
        PrivateDawidSkene().fit(reports, channel=response(1.0), assignment=assignment_of(cells))
