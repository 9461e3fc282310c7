"""Simulated crowds, cells through channels, and levels of their workers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from crowdveil import QuantizedResponse, RandomizedResponse, Reports
from crowdveil.answers.assignment import Assignment
from crowdveil.answers.facts.asked import STATED
from crowdveil.campaign.rules.document import Campaign
from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.mechanisms.randomized_response import epsilon_for_flip
from crowdveil.mechanisms.two_layer import TwoLayer
from crowdveil.randomness import Source, secure, seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd, perturb_cells, simulated_assignment
from tests.campaign.builders import build_campaign
from tests.chi_square import chi_square_p_value

LABELS = Categories(("G", "P", "R", "X"), ordered=True)


def constant(number):
    """A draw that is always the same number."""
    return lambda generator, count: np.full(count, number)


def test_numeric_answers_follow_the_recipe():
    """Answers are truth plus noise, rounded and clipped: shares within 5 standard errors (2e-5 in all).

    40,000 expected answers; every truth is 2, half the workers have sigma 1 and half sigma 5.
    """
    crowd = numeric_crowd(workers=2000, tasks=200, sparsity=0.9, truth=constant(2.0), source=seeded(11))
    edges = np.array([-np.inf, *np.arange(0.5, 9), np.inf])
    for sigma in (1.0, 5.0):
        mine = crowd.answers.value[crowd.quality[crowd.answers.worker] == sigma]
        expected = np.diff(norm.cdf((edges - 2.0) / sigma))
        error = np.sqrt(expected * (1 - expected) / len(mine))

        assert (np.abs(np.bincount(mine, minlength=10) / len(mine) - expected) <= 5 * error + 1e-12).all()


def test_half_of_the_workers_are_good():
    """Exactly half of the workers have each standard deviation, not the first half."""
    crowd = numeric_crowd(workers=1000, tasks=3, sparsity=0.5, source=seeded(1))

    assert {1.0: 500, 5.0: 500} == dict(zip(*np.unique(crowd.quality, return_counts=True), strict=True))
    assert 0 < (crowd.quality[:500] == 1.0).sum() < 500


def test_numeric_truth_is_clipped_normal():
    """Truths are standard normal clipped to the scale: their mean is 1 / sqrt(2 pi) within 5 standard errors (6e-7)."""
    crowd = numeric_crowd(workers=1, tasks=100_000, sparsity=0.99, source=seeded(2))

    assert crowd.truth.min() == 0.0
    assert abs(crowd.truth.mean() - 1 / math.sqrt(2 * math.pi)) < 5 * crowd.truth.std() / math.sqrt(100_000)
    assert crowd.gold[1] == crowd.truth[0]


def test_sparsity_is_the_share_of_null_cells():
    """Cells are answered with probability 1 - sparsity, within 5 standard errors (6e-7); all names are listed."""
    crowd = numeric_crowd(workers=3000, tasks=500, sparsity=0.98, source=seeded(3))

    assert abs(len(crowd.answers) - 30_000) < 5 * math.sqrt(1_500_000 * 0.02 * 0.98)
    assert (500, 3000) == (len(crowd.answers.tasks), len(crowd.answers.workers))
    assert np.array_equal(np.arange(1, 501), crowd.answers.tasks)


def test_able_workers_answer_the_truth_and_others_any_other_label():
    """Ability 1 repeats the truth; ability 0 spreads evenly over the other labels (5 standard errors, 6e-7 each)."""
    able = categorical_crowd(workers=3, tasks=50, labels=LABELS, sparsity=0.0, ability=constant(1.0), source=seeded(5))
    unable = categorical_crowd(
        workers=300, tasks=100, labels=LABELS, sparsity=0.0, ability=constant(0.0), source=seeded(6)
    )
    codes = [LABELS.names.index(name) for name in unable.truth]
    shift = (unable.answers.value - np.array(codes)[unable.answers.task]) % 4

    assert np.array_equal(able.truth[able.answers.task], np.array(LABELS.names)[able.answers.value])
    assert (np.abs(np.bincount(shift, minlength=4) / 30_000 - [0, 1 / 3, 1 / 3, 1 / 3]) < 5 * 0.0028).all()
    assert (np.bincount(shift, minlength=4)[0], unable.quality_name) == (0, "ability")


def test_the_prior_gives_the_truths():
    """Labels are truths as often as the prior says: within 5 standard errors (6e-7 each)."""
    prior = (0.7, 0.2, 0.1, 0.0)
    crowd = categorical_crowd(workers=1, tasks=50_000, labels=LABELS, sparsity=0.999, prior=prior, source=seeded(8))
    shares = np.array([(crowd.truth == name).mean() for name in LABELS.names])

    assert (np.abs(shares - prior) <= 5 * np.sqrt(np.array(prior) * (1 - np.array(prior)) / 50_000)).all()


def test_answers_per_worker_are_kept():
    """A number holds for every worker, a draw for each its own, clipped to the number of tasks; no task twice."""
    same = categorical_crowd(workers=40, tasks=30, labels=LABELS, answers_per_worker=6, source=seeded(9))
    own = categorical_crowd(
        workers=4,
        tasks=30,
        labels=LABELS,
        answers_per_worker=lambda generator, count: np.array([0.0, 2.4, 30.0, 999.0]),
        source=seeded(9),
    )

    assert [6] * 40 == same.answers.per_worker.tolist()
    assert [0, 2, 30, 30] == own.answers.per_worker.tolist()
    for crowd in (same, own):
        pairs = list(zip(crowd.answers.task.tolist(), crowd.answers.worker.tolist(), strict=True))

        assert len(pairs) == len(set(pairs))


NUMERIC = {"workers": 2, "tasks": 2, "sparsity": 0.5, "source": seeded(1)}
CATEGORICAL = {"workers": 2, "tasks": 2, "labels": LABELS, "source": seeded(1)}


@pytest.mark.parametrize(
    ("crowd", "settings", "rule"),
    [
        (numeric_crowd, NUMERIC | {"workers": 0}, "at least one worker"),
        (numeric_crowd, NUMERIC | {"sparsity": math.nan}, "sparsity must be in"),
        (numeric_crowd, NUMERIC | {"sigmas": ()}, "standard deviations"),
        (numeric_crowd, NUMERIC | {"sigmas": (1.0, -1.0)}, "standard deviations"),
        (categorical_crowd, CATEGORICAL, "either sparsity or answers_per_worker"),
        (categorical_crowd, CATEGORICAL | {"sparsity": 0.5, "answers_per_worker": 1}, "either sparsity or"),
        (categorical_crowd, CATEGORICAL | {"sparsity": 0.5, "prior": (0.5, 0.5)}, "4 probabilities"),
        (categorical_crowd, CATEGORICAL | {"sparsity": 0.5, "prior": (0.5, 0.5, 0.5, -0.5)}, "4 probabilities"),
        (categorical_crowd, CATEGORICAL | {"sparsity": 1.0}, "sparsity must be in"),
    ],
)
def test_impossible_crowds_are_refused(crowd, settings, rule):
    """Sizes, sparsity, deviations, priors and rules of participation out of range are refused by name."""
    with pytest.raises(SettingsError, match=rule):
        crowd(**settings)


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
        found = [sent.alphabet.names[code] for code in sent.value[first]]
        counts += [found.count("0"), found.count("1..2"), 150 - len(found)]
        assert {"1"} == {sent.alphabet.names[code] for code in sent.value[sent.task == 1]}
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


ALPHABET = Categories(("no", "yes"))
LOW, HIGH, TASKS, WORKERS, SYMBOLS = 0.1, 0.5, 4, 20_000, 3
NODES = (0.1875924740850799, 0.7946544722917661)
"""Nodes of Chebyshev's quadrature on [-1, 1], each with both signs: sqrt((1 -+ 2 / sqrt 5) / 3)."""
FALSE_ALARM = 1e-6


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Return a campaign whose four levels have the flip probabilities of the nodes, the largest one first."""
    middle, half = (LOW + HIGH) / 2, (HIGH - LOW) / 2
    flips = [middle + half * node for node in (NODES[1], NODES[0], -NODES[0], -NODES[1])]
    epsilons = [epsilon_for_flip(flip, SYMBOLS) for flip in flips]
    channels = [RandomizedResponse(alphabet=ALPHABET, epsilon=one).channel() for one in epsilons]
    return build_campaign(channels=channels, tasks=TASKS, content={"levels": 4}).campaign


def two_layer(differing: int) -> float:
    """Return P(one report on all tasks, which differs from the answers in some cells) under the two-layer mechanism."""
    shared = TwoLayer(alphabet=ALPHABET, low=LOW, high=HIGH).distribution_of_shared_flips(TASKS)
    return math.exp(shared.log_report_probability(differing))


@pytest.mark.parametrize("differing", range(TASKS + 1))
def test_the_mixture_of_levels_is_the_hyper_distribution(campaign: Campaign, differing: int) -> None:
    """From the integer tables: the mean over levels of the probability of a report is that of two-layer."""
    found = Fraction(0)
    for channel in campaign.channels:
        keep, flip = (Fraction(entry, channel.denominator) for entry in channel.rows[0][:2])
        found += flip**differing * keep ** (TASKS - differing) / len(campaign.channels)

    assert two_layer(differing) == pytest.approx(float(found), rel=1e-9)


@pytest.mark.slow
def test_reports_of_a_simulated_campaign_follow_the_hyper_distribution(campaign: Campaign) -> None:
    """Levels are drawn uniformly; the number of changed reports of a worker follows two-layer (p above 1e-6)."""
    levels = np.random.default_rng(11).integers(0, 4, WORKERS)
    tasks, workers = (np.array([f"{kind}{k:05}" for k in range(n)]) for kind, n in (("t", TASKS), ("w", WORKERS)))
    task, worker = np.divmod(np.arange(TASKS * WORKERS), WORKERS)
    answers = Reports(task, worker, np.zeros(len(task), dtype=np.int64), tasks, workers, ALPHABET, STATED)
    table = ChannelTable.by_worker(campaign.channels, dict(zip(workers.tolist(), levels.tolist(), strict=True)))

    sent = perturb_cells(answers, table, seeded(12))
    kept = np.bincount(sent.worker[sent.value == 0], minlength=WORKERS)
    counts = np.bincount(TASKS - kept, minlength=TASKS + 1)
    expected = [math.comb(TASKS, h) * (SYMBOLS - 1) ** h * two_layer(h) for h in range(TASKS + 1)]

    assert 1 == pytest.approx(sum(expected))
    assert chi_square_p_value(counts, expected) > FALSE_ALARM
