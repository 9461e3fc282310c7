"""Campaigns in rounds, replayed: cuts that follow the estimates, and epsilon that stays what it is."""

import numpy as np
import pytest

from crowdveil import Gaussian, QuantizedResponse, Reports, Scale
from crowdveil.errors import SettingsError
from crowdveil.randomness import seeded
from crowdveil.simulate import numeric_crowd, perturb_in_rounds

SCALE = Scale(0, 9)
PUBLIC = Gaussian(prior_mean=4.0, prior_deviation=2.0, tolerance=0.02)
CUT = QuantizedResponse(alphabet=SCALE, epsilon=4.0, cuts=(4,)).channel()


def test_cutting_at_the_estimate_beats_one_cut_for_all() -> None:
    """150 workers, 40 tasks, truths N(4, 2), epsilon 4 (seed 0): three rounds err by less than 0.75 of one cut."""
    crowd = numeric_crowd(
        workers=150, tasks=40, sparsity=0.5, truth=lambda rng, n: rng.normal(4, 2, n), source=seeded(0)
    )
    errors = []
    for rounds in (1, 3):
        sent = perturb_in_rounds(crowd.answers, CUT, seeded(1), epsilon=4.0, rounds=rounds, estimator=PUBLIC)
        found = PUBLIC.fit(sent.reports, channel=sent.channel)
        errors.append(np.abs(found.truth - crowd.truth).mean())

        assert sent.channel.guarantee.epsilon == pytest.approx(4.0, abs=1e-9)
        assert len(sent.reports.workers) == 150

    assert errors[1] < 0.75 * errors[0]


def test_rounds_need_workers() -> None:
    """More rounds than workers, or none, are refused."""
    answers = Reports.from_arrays([1], ["a"], [3], alphabet=SCALE)

    for rounds in (0, 2):
        with pytest.raises(SettingsError, match="rounds must be in"):
            perturb_in_rounds(answers, CUT, seeded(1), epsilon=1.0, rounds=rounds, estimator=PUBLIC)


def test_a_public_prior_by_label_reaches_the_fits_between_rounds() -> None:
    """Where every truth is publicly known to be 7 nearly for sure, the second round is cut next to it."""
    crowd = numeric_crowd(workers=12, tasks=6, sparsity=0.5, truth=lambda rng, n: rng.normal(2, 1, n), source=seeded(0))
    prior = {str(label): 0.99991 if label == 7 else 0.00001 for label in range(10)}
    sent = perturb_in_rounds(
        crowd.answers, CUT, seeded(1), epsilon=0.1, rounds=2, estimator=Gaussian(tolerance=0.1), prior=prior
    )

    assert {"0..3", "4..9"} < set(sent.channel.report_alphabet.names)
    assert set(sent.channel.report_alphabet.names) - {"0..3", "4..9"} <= {"0..6", "7..9", "0..7", "8..9"}
