"""A campaign in rounds, replayed: who reports when, and where the later rounds cut."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.channel_table import ChannelTable
from crowdveil.errors import SettingsError
from crowdveil.estimators import Gaussian
from crowdveil.randomness import Source
from crowdveil.reports import Reports
from crowdveil.rounds import Round, cut_table, join_rounds, next_cuts
from crowdveil.simulate.campaigns import perturb_cells


def perturb_in_rounds(
    answers: Reports,
    first: Channel | ChannelTable,
    source: Source,
    *,
    epsilon: float,
    rounds: int,
    estimator: Gaussian,
    prior: Mapping[str, float] | None = None,
) -> Round:
    """Return what all devices would have sent if the workers were dealt to rounds in turn, in the order of their list.

    The first round goes through `first`; from then on every task is cut at its estimate from all reports so far
    (`next_cuts`).

    Args:
        answers: unprotected answers, at most one per cell.
        first: what the cells of the first round go through; a table must name all workers or none.
        source: `secure()`, or `seeded(n)` for an experiment, which protects nobody.
        epsilon: privacy loss of one cell in the later rounds, in nats; participation as in `first`.
        rounds: how many, from 1 to the number of workers.
        estimator: infers the truths between rounds.
        prior: public prior probability of each label, known to it.

    Raises:
        SettingsError: no rounds, or more than workers.
    """
    if not 1 <= rounds <= len(answers.workers):
        raise SettingsError("there must be a worker for each round, and one round", value=rounds)
    alphabet = first.alphabet
    participation = first.guarantee.participation
    channel: Channel | ChannelTable = first
    done: list[Round] = []
    for turn in range(rounds):
        part = _of_workers(answers, np.arange(len(answers.workers)) % rounds == turn)
        done.append(Round(reports=perturb_cells(part, channel, source), channel=channel))
        so_far = join_rounds(done)
        if turn + 1 < rounds:
            found = estimator.fit(so_far.reports, channel=so_far.channel, prior=prior)
            cuts = next_cuts(found.tasks, found.posterior, alphabet)
            channel = cut_table(alphabet, epsilon, cuts, participation=participation)
    return so_far


def _of_workers(answers: Reports, chosen: NDArray[np.bool_]) -> Reports:
    """Return the answers of some workers, over all tasks."""
    inside = chosen[answers.worker]
    worker = (np.cumsum(chosen) - 1)[answers.worker[inside]]
    workers = answers.workers[chosen]
    codes = answers.task[inside], worker, answers.value[inside]
    return Reports(*codes, answers.tasks, workers, answers.alphabet, answers.public_lists)
