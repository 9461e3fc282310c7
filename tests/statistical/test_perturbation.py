"""The vectorised simulation, the devices and the certified table are one distribution.

Each test: 400 workers, 300 tasks, 120,000 cells (about 72,000 NULL, over 10,000 of each label where there are
four); chi-square per input symbol; the false-alarm rate is 1e-4 per symbol, and seeds are fixed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.mechanisms.laplace import Laplace
from crowdveil.mechanisms.randomized_response import OneLayer, RandomizedResponse
from crowdveil.randomness import Seeded, seeded
from crowdveil.simulate import bernoulli, categorical_crowd, numeric_crowd, perturb_reports

FALSE_ALARM = 1e-4
WORKERS, TASKS, SPARSITY = 400, 300, 0.6
LABELS = Categories(("G", "P", "R", "X"), ordered=True)
DIGITS = Scale(0, 9)

MECHANISMS = [
    RandomizedResponse(alphabet=LABELS, epsilon=1.0),
    RandomizedResponse(alphabet=LABELS, epsilon=4.0),
    RandomizedResponse(alphabet=LABELS, epsilon=1.0, participation="public"),
    OneLayer(alphabet=LABELS, epsilon=2.0),
    Laplace(alphabet=DIGITS, epsilon=3.0),
    Laplace(alphabet=DIGITS, epsilon=3.0, participation="public"),
]


@dataclass(frozen=True)
class Replayed:
    """The words of a seed, behind the face of a device: takes the device path, yet repeats."""

    inner: Seeded
    simulation = False

    def words(self, count):
        """Words of the seed."""
        return self.inner.words(count)


def answers_for(mechanism):
    """A crowd that answers in the mechanism's alphabet, every label often."""
    sizes: dict[str, Any] = {"workers": WORKERS, "tasks": TASKS, "sparsity": SPARSITY, "source": seeded(21)}
    if isinstance(mechanism.alphabet, Scale):
        return numeric_crowd(**sizes, truth=lambda generator, count: generator.uniform(0, 9, count)).answers
    return categorical_crowd(**sizes, labels=mechanism.alphabet).answers


def dense(reports):
    """Codes indexed [task, worker], NULL as the code after the last label."""
    table = np.full((TASKS, WORKERS), reports.labels)
    table[reports.task, reports.worker] = reports.value
    return table


def transitions(answers, reports, mechanism):
    """Count cells by what was answered and what was sent, indexed [input, output]."""
    size = mechanism.alphabet.size + 1
    pairs = dense(answers).ravel() * size + dense(reports).ravel()
    channel = mechanism.channel()
    return np.bincount(pairs, minlength=size**2).reshape(size, size)[: len(channel.inputs), : len(channel.outputs)]


def alarms(counts, table):
    """Input symbols whose row of counts differs from that of the table."""
    pvalues = [
        chisquare(row, row.sum() * shares / shares.sum()).pvalue for row, shares in zip(counts, table, strict=True)
    ]
    return [symbol for symbol, pvalue in enumerate(pvalues) if pvalue <= FALSE_ALARM]


@pytest.fixture(params=["vectorised", "device"])
def source(request):
    """A seeded source for either path."""
    return seeded(22) if request.param == "vectorised" else Replayed(seeded(23))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_reports_follow_the_certified_table(mechanism, source):
    """What each answer and each NULL turns into has the frequencies of the channel's row."""
    answers = answers_for(mechanism)

    counts = transitions(answers, perturb_reports(answers, mechanism, source), mechanism)

    assert [] == alarms(counts, mechanism.channel().probabilities)


@pytest.mark.parametrize("mechanism", MECHANISMS[:2], ids=str)
def test_a_table_that_is_5_percent_wrong_is_noticed(mechanism, source):
    """If 5 % of the largest entry of each row stood in the next column, every row would raise the alarm."""
    answers = answers_for(mechanism)
    wrong = mechanism.channel().probabilities.copy()
    rows, largest = np.arange(len(wrong)), wrong.argmax(axis=1)
    moved = 0.05 * wrong[rows, largest]
    wrong[rows, largest] -= moved
    wrong[rows, (largest + 1) % wrong.shape[1]] += moved

    counts = transitions(answers, perturb_reports(answers, mechanism, source), mechanism)

    assert list(range(len(wrong))) == alarms(counts, wrong)


def test_made_up_labels_do_not_show_where_answers_are(monkeypatch):
    """A NULL cell next to an answered one turns into a label as often as any other, across many chunks.

    Two-sided comparison of about 29,000 neighbours of answers with about 43,000 other NULL cells.
    """
    monkeypatch.setattr(bernoulli, "SUCCESSES_PER_CHUNK", 500)
    mechanism = MECHANISMS[0]
    answers = answers_for(mechanism)
    given = dense(answers).ravel() < LABELS.size
    sent = dense(perturb_reports(answers, mechanism, seeded(26))).ravel() < LABELS.size
    empty, after_answer = ~given[1:], given[:-1]
    table = [
        [(sent[1:] & empty & side).sum(), (~sent[1:] & empty & side).sum()] for side in (after_answer, ~after_answer)
    ]

    assert chi2_contingency(np.array(table)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("axis", [0, 1], ids=["per worker", "per task"])
def test_made_up_labels_are_spread_evenly(axis):
    """Made-up labels per worker, and per task, scatter as independent coin flips do (chi-square of that many rows)."""
    mechanism = MECHANISMS[0]
    answers = answers_for(mechanism)
    empty = dense(answers) == LABELS.size
    made_up = (dense(perturb_reports(answers, mechanism, seeded(27))) < LABELS.size) & empty
    table = np.stack((made_up.sum(axis=axis), (empty & ~made_up).sum(axis=axis)))

    assert chi2_contingency(table).pvalue > FALSE_ALARM
