"""Workers to review: spammers and the credibly bad are listed with their reasons, and no good worker is."""

from pathlib import Path

import numpy as np
import pytest

from crowdveil.channels.alphabet import Categories
from crowdveil.crowd_review.workers import review_workers
from crowdveil.data.reports import Reports
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.folder.crowd import Crowd
from crowdveil.folder.evidence import Evidence
from crowdveil.inference.methods import Method
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.randomness import seeded
from crowdveil.simulate.perturbation import perturb

LABELS = Categories(("no", "yes"))
GOOD, CONSTANT, COIN, BAD, NEW = range(16), 16, 17, 18, 19
"""Workers with ability .9, a worker who always says yes, one who guesses, one with ability .3, one with two answers."""


def answers() -> Reports:
    """Answers of the workers above to 100 tasks."""
    source = np.random.default_rng(4)
    truth = source.integers(0, 2, 100)
    ability = np.array([*[0.9] * 16, 0.5, 0.5, 0.3, 0.5])[:, None]
    value = np.where(source.random((20, 100)) < ability, truth, 1 - truth)
    value[CONSTANT] = 1
    answered = np.ones((20, 100), dtype=bool)
    answered[NEW, 2:] = False
    worker, task = np.nonzero(answered)
    return Reports(task.astype(np.int32), worker.astype(np.int32), value[worker, task].astype(np.int16),
        np.arange(100).astype(str), np.arange(20).astype(str), LABELS)  # fmt: skip


def evidence(reports: Reports, **parts: object) -> Evidence:
    """Evidence without a file."""
    given = {"crowd": None, "channel": None, "certificate": None, "no_channel_reason": "no certificate was found"}
    return Evidence(reports=reports, **{**given, **parts})  # type: ignore[arg-type]


def test_bad_workers_are_listed_with_their_reasons() -> None:
    """The constant, the guessing and the bad worker are listed, in order of the interval's end; nobody else is."""
    review = review_workers(evidence(answers()), Method())
    reasons = {one.worker: " ".join(one.reasons) for one in review.found}

    assert {str(CONSTANT), str(COIN), str(BAD)} == set(reasons)
    assert "All 100 answers are 'yes'." in reasons[str(CONSTANT)]
    assert "by chance" in reasons[str(BAD)]
    assert "The ability is below" in reasons[str(COIN)]
    assert sorted(one.high for one in review.found) == [one.high for one in review.found]


def test_the_bound_decides() -> None:
    """A low bound lists nobody for ability, a high one everybody with an interval below it."""
    none = review_workers(evidence(answers()), Method(), bound=0.01)
    strict = review_workers(evidence(answers()), Method(), bound=0.99)

    assert not any("ability" in reason for one in none.found for reason in one.reasons)
    assert {str(worker) for worker in GOOD} <= {one.worker for one in strict.found}
    assert str(NEW) not in {one.worker for one in none.found}


def test_behind_a_channel_only_intervals_count() -> None:
    """Noise makes intervals wide: the bad worker is listed for ability alone, and no good one is."""
    mechanism = RandomizedResponse(alphabet=LABELS, epsilon=3.0, participation="public")
    sent = perturb(answers(), mechanism, seeded(2))
    review = review_workers(evidence(sent, channel=mechanism.channel()), Method())

    assert review.channel_used
    assert str(BAD) in {one.worker for one in review.found}
    assert set() == {str(worker) for worker in GOOD} & {one.worker for one in review.found}
    assert all(one.reasons == (one.reasons[0],) and "ability" in one.reasons[0] for one in review.found)


def test_what_cannot_be_reviewed_is_refused(tmp_path: Path) -> None:
    """Protected reports without a channel, methods without intervals, and bounds outside (0, 1) are refused."""
    crowd: Crowd = {"mechanism": "two-layer"}  # type: ignore[typeddict-item]
    with pytest.raises(ReportsError, match="noise looks like bad work"):
        review_workers(evidence(answers(), crowd=crowd), Method())
    with pytest.raises(SettingsError, match="intervals"):
        review_workers(evidence(answers()), Method(name="majority-vote"))
    with pytest.raises(SettingsError, match="between 0 and 1"):
        review_workers(evidence(answers()), Method(), bound=1.5)
