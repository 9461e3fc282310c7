"""The model of workers behind a channel as loops over every cell, NULL cells included: slow, and plain to check."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import NULL, Alphabet, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import coded_and_summarized
from crowdveil.em.kernels.dispatch import encoded_block_for_kernels
from crowdveil.em.model import GoldBlock, Summary
from crowdveil.em.observation_model import ObservationModel, observation_model
from crowdveil.estimators.confusion.parameters import CrowdParameters
from crowdveil.estimators.dawid_skene import DawidSkene
from crowdveil.mechanisms import Laplace, RandomizedResponse

LABELS = Categories(("a", "b", "c"), ordered=True)
Table = NDArray[np.float64]


def lopsided_channel() -> Channel:
    """Return a channel that treats no two symbols alike: its NULL column depends on the answer, so on the truth."""
    rows = [[0.5, 0.1, 0.15, 0.25], [0.2, 0.45, 0.25, 0.1], [0.05, 0.25, 0.5, 0.2], [0.1, 0.2, 0.05, 0.65]]
    return Channel.from_probabilities(LABELS, "protected", (*LABELS.names, NULL), np.array(rows), None, "lopsided")


def blocks_channel() -> Channel:
    """Return a channel whose reports are blocks of labels, fewer than the answers can be."""
    rows = [[0.6, 0.15, 0.25], [0.5, 0.25, 0.25], [0.15, 0.6, 0.25], [0.2, 0.2, 0.6]]
    return Channel.from_probabilities(LABELS, "protected", ("a or b", "c", NULL), np.array(rows), None, "blocks")


def channels() -> dict[str, Channel]:
    """Return channels of every kind that estimators read, over three labels."""
    scale = Scale(1, 3)
    return {
        "randomized response, protected": RandomizedResponse(alphabet=LABELS, epsilon=1.5).channel(),
        "randomized response, public": RandomizedResponse(
            alphabet=LABELS, epsilon=1.0, participation="public"
        ).channel(),
        "laplace, protected": Laplace(alphabet=scale, epsilon=2.0).channel(),
        "laplace, constant": Laplace(alphabet=scale, epsilon=2.0, null_value=1.0).channel(),
        "laplace, public": Laplace(alphabet=scale, epsilon=1.0, participation="public").channel(),
        "lopsided": lopsided_channel(),
        "blocks": blocks_channel(),
        "identity, protected": Channel.identity(LABELS, "protected"),
        "identity, public": Channel.identity(LABELS, "public"),
    }


def sent_alphabet(channel: Channel) -> Alphabet:
    """Return what a non-NULL report can be."""
    names = tuple(name for name in channel.outputs if name != NULL)
    return channel.alphabet if names == channel.alphabet.names else Categories(names)


def random_reports(rng: np.random.Generator, alphabet: Alphabet, tasks: int, workers: int, share: float) -> Reports:
    """Draw reports at random; the last task and the last worker have none."""
    given = rng.random((tasks, workers)) < share
    given[-1], given[:, -1] = False, False
    task, worker = np.nonzero(given)
    value = rng.integers(0, alphabet.size, len(task))
    return Reports(task, worker, value, np.arange(tasks), np.arange(workers), alphabet)


def one_block(reports: Reports, gold: NDArray[Any] | None = None) -> GoldBlock:
    """Return all reports as one block; no gold by default."""
    (block,) = reports.blocks()
    known = np.full(block.tasks, -1) if gold is None else gold
    return GoldBlock(
        block, known, encoded_block_for_kernels(block, len(reports.workers), reports.labels, compiled=False)
    )


class Cell(NamedTuple):
    """What one cell sent, as an output of the channel it went through; None where nothing was sent."""

    report: int | None
    channel: Channel


def channel_at(channel: Channel | ChannelTable | None, task: int, worker: int) -> Channel:
    """Return the channel that a cell goes through; codes are names here."""
    if isinstance(channel, ChannelTable):
        return channel.channels[channel.choice[channel.workers.get(str(worker), 0)][channel.tasks.get(str(task), 0)]]
    assert channel is not None
    return channel


def cells(reports: Reports, parameters: CrowdParameters, assigned: set[tuple[int, int]] | None) -> list[list[Cell]]:
    """Return every cell, [task][worker]; a cell that is not assigned sends nothing."""
    table = []
    for task in range(len(reports.tasks)):
        row = []
        for worker in range(len(reports.workers)):
            channel = channel_at(parameters.summary.channel, task, worker)
            sends = assigned is None or (task, worker) in assigned
            row.append(Cell(channel.null_output if sends else None, channel))
        table.append(row)
    assert reports.alphabet is not None
    for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True):
        channel = table[task][worker].channel
        table[task][worker] = Cell(channel.outputs.index(reports.alphabet.names[value]), channel)
    return table


def answer_probability(parameters: CrowdParameters, worker: int, truth: int, symbol: int) -> float:
    """P(answer symbol | truth) of one worker; the symbol after the labels is NULL."""
    share = float(parameters.participation[worker])
    if symbol == parameters.pool.labels:
        return 1 - share
    return share * float(parameters.confusion[worker, truth, symbol])


def symbols(channel: Channel) -> Iterable[int]:
    """Return the codes of the channel's inputs."""
    return range(len(channel.inputs))


def report_probability(parameters: CrowdParameters, worker: int, truth: int, cell: Cell) -> float:
    """P(report | truth) of one worker: the sum over hidden answers."""
    table = cell.channel.probabilities
    return sum(answer_probability(parameters, worker, truth, x) * table[x, cell.report] for x in symbols(cell.channel))


def dense_posterior(
    reports: Reports, parameters: CrowdParameters, assigned: set[tuple[int, int]] | None = None
) -> tuple[Table, float]:
    """Return posteriors [task, truth] and the log-likelihood, from products over all cells."""
    labels = parameters.pool.labels
    posterior, likelihood = np.zeros((len(reports.tasks), labels)), 0.0
    for task, row in enumerate(cells(reports, parameters, assigned)):
        for truth in range(labels):
            product = float(parameters.class_prior[truth])
            for worker, cell in enumerate(row):
                if cell.report is not None:
                    product *= report_probability(parameters, worker, truth, cell)
            posterior[task, truth] = product
        likelihood += float(np.log(posterior[task].sum()))
        posterior[task] /= posterior[task].sum()
    return posterior, likelihood


def naive_expected_answers(
    reports: Reports, parameters: CrowdParameters, posterior: Table, assigned: set[tuple[int, int]] | None = None
) -> Table:
    """Return how often each worker is expected to have given each answer on each truth, [worker, truth, input]."""
    labels = parameters.pool.labels
    expected = np.zeros((len(reports.workers), labels, len(parameters.pool.model.table)))
    for task, row in enumerate(cells(reports, parameters, assigned)):
        for worker, cell in enumerate(row):
            if cell.report is None:
                continue
            for truth in range(labels):
                total = report_probability(parameters, worker, truth, cell)
                for x in symbols(cell.channel):
                    answer = answer_probability(parameters, worker, truth, x)
                    hidden = answer * cell.channel.probabilities[x, cell.report] / total
                    expected[worker, truth, x] += posterior[task, truth] * hidden
    return expected


def summary_of(
    reports: Reports,
    channel: Channel | ChannelTable | None,
    prior: Table | None = None,
    assignment: Assignment | None = None,
) -> Summary:
    """Return the counts of the reports, with a public prior over the labels if one is given."""
    names = () if reports.alphabet is None else (reports.alphabet if channel is None else channel.alphabet).names
    public = None if prior is None else dict(zip(names, prior.tolist(), strict=True))
    return coded_and_summarized(DawidSkene(), reports, channel, assignment, public)[1]


def model_of(channel: Channel) -> ObservationModel:
    """Return the model of a channel's reports, for one task and one worker."""
    nothing = np.zeros(0, dtype=int)
    reports = Reports(nothing, nothing, nothing, np.arange(1), np.arange(1), sent_alphabet(channel))
    return observation_model(channel, reports, None)[1]


def assert_never_falls(estimate: Estimate) -> None:
    """Assert that the traced log-likelihood rises or stays, but for rounding."""
    trace = np.array(estimate.log_likelihoods)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-9 * np.maximum(1.0, np.abs(trace[1:]))).all()


def share(counts: Table) -> Table:
    """Return exp(E log) of Dirichlet distributed shares, along the last axis."""
    return np.exp(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))
