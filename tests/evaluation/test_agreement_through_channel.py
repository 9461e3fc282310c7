"""Agreement behind a channel: exact without noise, centred on the answers' own value with it."""

import numpy as np
import pytest

from crowdveil.channels.alphabet import Alphabet, Categories, Scale
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.evaluation.agreement import agreement
from crowdveil.evaluation.agreement_through_channel import agreement_through_channel
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate.perturbation import perturb

COLOURS, POINTS = Categories(("red", "green", "blue")), Scale(0, 3)


@pytest.fixture(params=[COLOURS, POINTS], ids=["labels", "scale"])
def crowd(request: pytest.FixtureRequest) -> Reports:
    """300 tasks, 12 workers, half of the cells answered, errors that grow with the worker."""
    alphabet: Alphabet = request.param
    source = np.random.default_rng(11)
    truth = source.integers(0, alphabet.size, 300)
    wrong = source.random((12, 300)) < np.linspace(0.1, 0.6, 12)[:, None]
    value = np.where(wrong, source.integers(0, alphabet.size, (12, 300)), truth)
    worker, task = np.nonzero(source.random((12, 300)) < 0.5)
    names = np.arange(300).astype(str), np.arange(12).astype(str)
    return Reports(
        task.astype(np.int32), worker.astype(np.int32), value[worker, task].astype(np.int16), *names, alphabet
    )


def test_without_noise_it_is_the_agreement_of_the_answers(crowd: Reports) -> None:
    """The identity channel gives the values of `agreement`, with intervals of about the same width."""
    assert crowd.alphabet is not None
    found = agreement_through_channel(crowd, Channel.identity(crowd.alphabet, "public"))
    plain = agreement(crowd)

    assert (plain.tasks, plain.answers, plain.single) == (found.tasks, found.answers, found.single)
    assert plain.pairwise.value == pytest.approx(found.pairwise.value)
    for metric, alpha in plain.alphas.items():
        assert alpha.value == pytest.approx(found.alphas[metric].value)
        assert alpha.high - alpha.low == pytest.approx(found.alphas[metric].high - found.alphas[metric].low, rel=0.25)
    assert found.workers is None


@pytest.mark.slow
@pytest.mark.parametrize("participation", ["public", "protected"])
def test_noise_is_corrected(crowd: Reports, participation: Participation) -> None:
    """Over 40 collections the mean of alpha is that of the answers, which raw reports miss by far."""
    assert crowd.alphabet is not None
    mechanism = RandomizedResponse(alphabet=crowd.alphabet, epsilon=2.5, participation=participation)
    channel, sent = mechanism.channel(), [perturb(crowd, mechanism, seeded(seed)) for seed in range(40)]
    found = [agreement_through_channel(reports, channel) for reports in sent]
    # With protected participation every pair has the same weight, as with this identity channel.
    plain = agreement_through_channel(crowd, Channel.identity(crowd.alphabet, participation))
    metric = next(iter(plain.alphas))
    values = np.array([one.alphas[metric].value for one in found])
    shares = np.array([one.pairwise.value for one in found])
    raw = agreement(sent[0]).alphas[metric].value

    assert plain.alphas[metric].value == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(40))
    assert plain.pairwise.value == pytest.approx(shares.mean(), abs=4 * shares.std() / np.sqrt(40))
    assert abs(raw - plain.alphas[metric].value) > 4 * values.std() / np.sqrt(40)
    held = [one.alphas[metric].low <= plain.alphas[metric].value <= one.alphas[metric].high for one in found]
    assert np.mean(held) >= 0.85


def test_assigned_cells_count_only(crowd: Reports) -> None:
    """With an assignment of the answered cells, protected participation without noise gives the same agreement."""
    assert crowd.alphabet is not None
    names = crowd.tasks[crowd.task], crowd.workers[crowd.worker]
    assigned = Assignment.from_arrays(*names, tasks=crowd.tasks, workers=crowd.workers)
    channel = Channel.identity(crowd.alphabet, "protected")

    everyone = agreement_through_channel(crowd, channel).alphas["nominal"]
    asked = agreement_through_channel(crowd, channel, assignment=assigned).alphas["nominal"]

    assert tuple(everyone) == pytest.approx(tuple(asked))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_noise_that_leaves_nothing_gives_no_value(crowd: Reports, epsilon: float) -> None:
    """A coefficient is in its range, or not known: over 20 collections with much noise neither is left out."""
    assert crowd.alphabet is not None
    mechanism = RandomizedResponse(alphabet=crowd.alphabet, epsilon=epsilon, participation="public")
    sent = [perturb(crowd, mechanism, seeded(seed)) for seed in range(20)]
    found = [agreement_through_channel(reports, mechanism.channel()) for reports in sent]
    alphas = np.array([alpha for one in found for alpha in one.alphas.values()])

    assert np.isnan(alphas[:, 0]).mean() > 0.5
    assert (np.isnan(alphas) | (np.abs(alphas) <= 1)).all()


def test_what_cannot_be_corrected_is_refused(crowd: Reports) -> None:
    """Two answers with the same reports, and tasks with one report, are refused."""
    assert crowd.alphabet is not None
    labels = crowd.alphabet.size
    rows = ((1, 1),) * labels
    blind = Channel(crowd.alphabet, "public", crowd.alphabet.names[:2], rows)
    sent = Reports(
        crowd.task, crowd.worker, np.minimum(crowd.value, 1), crowd.tasks, crowd.workers, blind.report_alphabet
    )
    with pytest.raises(SettingsError, match="distinguish"):
        agreement_through_channel(sent, blind)
    single = Reports(crowd.task[:1], crowd.worker[:1], crowd.value[:1], crowd.tasks, crowd.workers, crowd.alphabet)
    with pytest.raises(ReportsError, match="two workers"):
        agreement_through_channel(single, Channel.identity(crowd.alphabet, "public"))
