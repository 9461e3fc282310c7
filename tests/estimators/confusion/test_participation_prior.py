"""Beta prior of participation: evidence against integrals, in homogeneous and heterogeneous crowds."""

import numpy as np
import pytest
from scipy.integrate import quad

from crowdveil import Categories, ChannelTable, DawidSkene, RandomizedResponse
from crowdveil.em.deconvolution import AnswerFrequencies, frequencies_of_reports
from crowdveil.em.model import Summary
from crowdveil.estimators.confusion.parameters import CONCENTRATIONS, fit_participation_prior, report_counts
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, perturb
from tests.estimators.dense import channels, random_reports, sent_alphabet, summary_of

LABELS = Categories(("a", "b", "c"))


def sent(answers: int | np.ndarray, epsilon: float) -> tuple[Summary, AnswerFrequencies]:
    """Return counts of 80 workers who answered so many of 300 tasks."""
    numbers = np.broadcast_to(answers, 80)
    crowd = categorical_crowd(
        workers=80, tasks=300, labels=LABELS, answers_per_worker=lambda *_: numbers, source=seeded(1)
    )
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=epsilon)
    summary = summary_of(perturb(crowd.answers, mechanism, seeded(2)), mechanism.channel())
    return summary, frequencies_of_reports(summary)


def test_evidence_is_that_of_normal_priors() -> None:
    """The concentration maximizes the integral over normal participations with quadratic log-likelihoods."""
    summary, pool = sent(np.linspace(20, 160, 80), 2.0)
    table, rate = pool.model.full_table, pool.participation
    answered = sum(pool.label_shares[x] * table[x] for x in range(3))
    logs = np.zeros(len(CONCENTRATIONS))
    for worker in report_counts(summary)[::8]:
        seen = rate * answered + (1 - rate) * table[3]
        rise = sum(n * (answered[y] - table[3, y]) / seen[y] for y, n in enumerate(worker))
        bend = sum(n * ((answered[y] - table[3, y]) / seen[y]) ** 2 for y, n in enumerate(worker))
        for k, strength in enumerate(CONCENTRATIONS):
            deviation = np.sqrt(rate * (1 - rate) / strength)
            logs[k] += np.log(
                quad(
                    lambda x, rise=rise, bend=bend, deviation=deviation: np.exp(
                        rise * deviation * x - 0.5 * bend * (deviation * x) ** 2 - 0.5 * x**2
                    ),
                    -12,
                    12,
                    limit=200,
                )[0]
            )

    assert pool.noise * CONCENTRATIONS[logs.argmax()] == fit_participation_prior(report_counts(summary)[::8], pool, 1.0)


def test_workers_who_answer_alike_are_drawn_to_the_crowd() -> None:
    """If all answer 60 of 300 tasks, the prior outweighs a worker's own cells at epsilon 3."""
    summary, pool = sent(60, 3.0)

    assert fit_participation_prior(report_counts(summary), pool, 5.0) > 300


def test_workers_who_differ_keep_what_reports_say() -> None:
    """If half of the workers answer 20 tasks and half 200, the pseudo-counts stay at their minimum."""
    summary, pool = sent(np.repeat([20, 200], 40), 3.0)

    assert 25.0 == fit_participation_prior(report_counts(summary), pool, 25.0)


def test_nothing_is_learned_where_nothing_is_shrunk() -> None:
    """Without noise or with zero minimum the prior is not fitted."""
    summary, pool = sent(60, 3.0)

    assert 0.0 == fit_participation_prior(report_counts(summary), pool, 0.0)
    assert 0.0 == DawidSkene(shrinkage=0.0).initialize(summary).participation_pseudo_counts


@pytest.mark.parametrize("channel", channels().values(), ids=channels())
def test_counts_are_those_of_all_cells(channel: ChannelTable) -> None:
    """Listed and silent reports of a worker add up to the number of tasks; listed ones are as listed."""
    reports = random_reports(np.random.default_rng(0), sent_alphabet(channel), tasks=7, workers=5, share=0.75)
    summary = summary_of(reports, channel)

    counts = report_counts(summary)

    np.testing.assert_array_equal(counts[:, : summary.symbols], summary.symbol_counts)
    if summary.model.implicit_null_count:
        np.testing.assert_array_equal(counts.sum(axis=1), np.full(5, 7))
