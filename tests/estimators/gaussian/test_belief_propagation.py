"""Messages between workers and tasks: loops over every cell, exact posteriors, tables of channels, assigned cells."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Block, Reports
from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.kernels.numpy_backend import softmax
from crowdveil.estimators.gaussian import belief_propagation, discretization
from crowdveil.estimators.gaussian.belief_propagation import DAMPING, PASSES, Beliefs, Priors, propagate
from crowdveil.estimators.gaussian.estimator import Gaussian, GaussianParameters, fit_known
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.quantized_response import QuantizedResponse
from crowdveil.mechanisms.randomized_response import RandomizedResponse
from tests.estimators.dense_numbers import output_cells, report_probability

Table = NDArray[np.float64]
SMALL = Scale(0, 3)
SILENT_ON_TRUTH = Laplace(alphabet=SMALL, epsilon=2.0, null_value=1.0).channel()
CHANNELS: dict[str, Channel | None] = {
    "none": None,
    "k-RR": RandomizedResponse(alphabet=SMALL, epsilon=1.5).channel(),
    "public": RandomizedResponse(alphabet=SMALL, epsilon=1.5, participation="public").channel(),
    "laplace": SILENT_ON_TRUTH,
    "cuts": QuantizedResponse(alphabet=SMALL, epsilon=1.0, cuts=(1, 3)).channel(),
}
every_channel = pytest.mark.parametrize("name", CHANNELS)
PUBLIC = Gaussian(prior_mean=1.0, prior_deviation=1.0, sigmas=(0.5, 2.0), participations=(0.4,))


def random_reports(channel: Channel | None, tasks: int, workers: int, share: float = 0.6, seed: int = 7) -> Reports:
    """Draw reports in the channel's symbols; every cell reports where NULL sends a label."""
    rng = np.random.default_rng(seed)
    alphabet = SMALL if channel is None else channel.report_alphabet
    full = channel is not None and channel.participation == "protected" and channel.null_output is None
    task, worker = np.nonzero(rng.random((tasks, workers)) < (1.0 if full else share))
    return Reports(
        task, worker, rng.integers(0, alphabet.size, len(task)), np.arange(tasks), np.arange(workers), alphabet
    )


def ready(
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None = None,
    estimator: Gaussian = PUBLIC,
) -> tuple[Block, GaussianParameters]:
    """Return all reports as one block, and parameters with random beliefs of workers (seed 3)."""
    coded, summary = coded_and_summarized(estimator, reports, channel, assignment, None)
    parameters = estimator.initialize(summary)
    (block,) = coded.blocks()
    q = np.random.default_rng(3).dirichlet(np.ones(parameters.q.shape[1]), len(reports.workers))
    return block, replace(parameters, q=q)


def beliefs_of(block: Block, parameters: GaussianParameters, q: Table) -> Beliefs:
    """Return the beliefs without gold."""
    priors = Priors(np.exp(parameters.anonymous_models[0].family), parameters.weights)
    return propagate(block, np.full(block.tasks, np.nan), q, parameters.classes, priors)


def cell_tables(parameters: GaussianParameters, channel: Channel | None) -> dict[int, Table]:
    """R_c[mu, y] for every output, by loops; each indexed [class, truth]."""
    kinds = list(product(parameters.classes.sigmas, parameters.classes.participations))
    outputs = range(4 if channel is None else len(channel.outputs))
    points = parameters.points.tolist()
    return {
        y: np.array([[report_probability(mu, sigma, share, channel, y) for mu in points] for sigma, share in kinds])
        for y in outputs
    }


@every_channel
def test_messages_equal_loops_over_every_cell(name: str) -> None:
    """Each report's message leaves out what it said before, as the equations say; silent NULLs need none."""
    channel = CHANNELS[name]
    reports = random_reports(channel, 4, 5)
    block, parameters = ready(reports, channel)
    q, tables, cells = parameters.q, cell_tables(parameters, channel), output_cells(reports, channel)
    null = None if channel is None else channel.null_output
    prior = np.exp(parameters.anonymous_models[0].family[0])

    posteriors, worker_scores = [], np.zeros(q.shape)
    for row in cells:
        listed = {i: y for i, y in enumerate(row) if y is not None and y != null}
        silent = np.zeros(len(prior))
        for i, y in enumerate(row):
            if y is not None and i not in listed:
                silent += np.log(q[i] @ tables[y])
        messages = {i: q[i] @ tables[y] for i, y in listed.items()}
        scores = silent + sum(np.log(m) for m in messages.values())
        for _ in range(PASSES):
            belief = prior * np.exp(scores - scores.max())
            belief = belief / belief.sum()
            for i, y in listed.items():
                others = q[i] / (tables[y] @ (belief / messages[i]))
                messages[i] = others / others.sum() @ tables[y]
            scores = DAMPING * scores + (1 - DAMPING) * (silent + sum(np.log(m) for m in messages.values()))
        belief = prior * np.exp(scores - scores.max())
        belief = belief / belief.sum()
        posteriors.append(belief)
        for i, y in enumerate(row):
            if y is not None:
                without = belief / messages[i] if i in listed else belief
                worker_scores[i] += np.log(tables[y] @ without)

    found = beliefs_of(block, parameters, q)

    np.testing.assert_allclose(found.posterior, posteriors, atol=1e-10)
    np.testing.assert_allclose(found.worker_scores, worker_scores, atol=1e-9)


def look_up(tables: dict[int, Table], _task: int, _worker: int, output: int) -> Table:
    """Return R_c[mu, output], the same in all cells."""
    return tables[output]


def settled(block: Block, parameters: GaussianParameters) -> tuple[Table, Table]:
    """Exchange messages until nothing moves, the mixture over classes known; return posteriors of tasks and workers."""
    q = np.tile(np.exp(parameters.log_shares_of_classes), (len(parameters.q), 1))
    for _ in range(60):
        found = beliefs_of(block, parameters, q)
        new = softmax(found.worker_scores + parameters.log_shares_of_classes)[0]
        q = np.sqrt(q * new)
        q = q / q.sum(axis=1, keepdims=True)
    return found.posterior, q


def enumerated(
    parameters: GaussianParameters, cells: list[list[int | None]], table: Callable[[int, int, int], Table]
) -> tuple[Table, Table]:
    """Return the exact posteriors of tasks and workers by going through all classes of all workers.

    `table(task, worker, output)` is R_c[mu, y], indexed [class, truth].
    """
    prior, mixture = np.exp(parameters.anonymous_models[0].family[0]), np.exp(parameters.log_shares_of_classes)
    tasks, workers = np.zeros((len(cells), len(prior))), np.zeros(parameters.q.shape)
    for kinds in product(range(len(mixture)), repeat=len(workers)):
        joint = math.prod(mixture[c] for c in kinds)
        likelihoods = []
        for j, row in enumerate(cells):
            likelihood = prior.copy()
            for i, y in enumerate(row):
                if y is not None:
                    likelihood = likelihood * table(j, i, y)[kinds[i]]
            likelihoods.append(likelihood)
        weight = joint * math.prod(likelihood.sum() for likelihood in likelihoods)
        tasks += [weight * likelihood / likelihood.sum() for likelihood in likelihoods]
        for i, c in enumerate(kinds):
            workers[i, c] += weight
    return tasks / tasks.sum(axis=1, keepdims=True), workers / workers.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "public"])
@pytest.mark.parametrize("shape", [(1, 5), (5, 1)])
def test_posteriors_are_exact_where_the_graph_has_no_loop(
    name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task, or one worker: beliefs settle at the posteriors that going through all classes gives.

    To 0.01 with two exchanges a step, to 1e-8 with many.
    """
    channel = CHANNELS[name]
    reports = random_reports(channel, *shape, share=1.0)
    block, parameters = ready(reports, channel)
    tables = cell_tables(parameters, channel)

    exact = enumerated(parameters, output_cells(reports, channel), partial(look_up, tables))
    for passes, tolerance in ((PASSES, 0.01), (40, 1e-8)):
        monkeypatch.setattr(belief_propagation, "PASSES", passes)
        tasks, workers = settled(block, parameters)

        np.testing.assert_allclose(tasks, exact[0], atol=tolerance)
        np.testing.assert_allclose(workers, exact[1], atol=tolerance)


def cuts_by_worker() -> ChannelTable:
    """Cut at 1 for workers 0 to 2, at 2 for the others; the last task is public randomized response."""
    cut = [QuantizedResponse(alphabet=SMALL, epsilon=1.5, cuts=(k,)).channel() for k in (1, 2)]
    open_ = RandomizedResponse(alphabet=SMALL, epsilon=1.5, participation="public").channel()
    return ChannelTable(
        channels=(*cut, open_),
        choice=((0, 2), (1, 2)),
        workers={str(i): int(i > 2) for i in range(5)},
        tasks={"0": 0, "1": 0, "2": 0, "3": 1},
    )


def table_reports(table: ChannelTable, asked: NDArray[np.bool_]) -> Reports:
    """Draw a report that its channel can send in about 60 % of the asked cells (seed 5); task 3 is never NULL."""
    rng = np.random.default_rng(5)
    names, rows = table.report_alphabet.names, []
    for j, i in product(range(4), range(5)):
        channel = table.channels[table.choice[int(i > 2)][int(j == 3)]]
        if asked[j, i] and (j == 3 or rng.random() < 0.6):
            said = [name for name in channel.outputs if name != "NULL"]
            rows.append((j, i, names.index(said[rng.integers(len(said))])))
    task, worker, value = (np.array(column) for column in zip(*rows, strict=True))
    return Reports(task, worker, value, np.arange(4), np.arange(5), table.report_alphabet)


def crowd_through_cuts(*, assigned: bool) -> tuple[ChannelTable, NDArray[np.bool_], Reports, Assignment | None]:
    """Return the table, the asked cells [task][worker], all or assigned, their reports, and the assignment if any."""
    table = cuts_by_worker()
    asked = np.random.default_rng(2).random((4, 5)) < 0.7 if assigned else np.ones((4, 5), dtype=bool)
    reports = table_reports(table, asked)
    assignment = Assignment(np.arange(4), np.arange(5), *np.nonzero(asked)) if assigned else None
    return table, asked, reports, assignment


@pytest.mark.parametrize("assigned", [False, True])
def test_tables_of_channels_give_exact_posteriors_of_known_workers(assigned: bool) -> None:
    """Each cell is read through its own channel; NULL is silent where all report, listed in assigned cells."""
    table, asked, reports, assignment = crowd_through_cuts(assigned=assigned)
    sigma, share = np.array([0.5, 2.0, 0.5, 1.0, 2.0]), np.array([0.3, 0.3, 0.6, 0.6, 0.6])

    found = fit_known(PUBLIC, reports, sigma=sigma, participation=share, channel=table, assignment=assignment)

    names = table.report_alphabet.names
    listed = zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True)
    sent = {(j, i): names[value] for j, i, value in listed}
    _, parameters = ready(reports, table, assignment)
    points, expected = parameters.points, []
    for j in range(4):
        weight = np.exp(-0.5 * (points - 1.0) ** 2)
        for i in np.flatnonzero(asked[j]).tolist():
            channel = table.channels[table.choice[int(i > 2)][int(j == 3)]]
            name = sent.get((j, i), "NULL")
            if name in channel.outputs:
                cell = (float(sigma[i]), float(share[i]), channel, channel.outputs.index(name))
                weight = weight * [report_probability(mu, *cell) for mu in points.tolist()]
        expected.append(weight / weight.sum())
    medians = [discretization.quantiles(np.array([row]), points, (0.5,))[0, 0] for row in expected]
    np.testing.assert_allclose(found.truth, np.clip(medians, 0, 3), atol=1e-8)


def test_gold_numbers_teach_workers() -> None:
    """A known truth is not taken out of its own message: each report says P(report | truth) of its worker."""
    reports = random_reports(None, 2, 3, share=1.0)
    block, parameters = ready(reports, None)
    priors = Priors(np.exp(parameters.anonymous_models[0].family), parameters.weights)

    found = propagate(block, np.array([1.0, 2.0]), parameters.q, parameters.classes, priors)

    expected = np.zeros(parameters.q.shape)
    for t, w, y in zip(reports.task.tolist(), reports.worker.tolist(), reports.value.tolist(), strict=True):
        for c, sigma in enumerate((0.5, 2.0)):
            expected[w, c] += math.log(report_probability((1.0, 2.0)[t], sigma, 1.0, None, y))
    np.testing.assert_allclose(found.worker_scores, expected, atol=1e-9)
