"""Tangent of participation along the ability: against finite differences and loops."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil import OneCoin
from crowdveil.estimators.confusion.credible_intervals import (
    AbilityTangent,
    CompleteDataSummary,
    marginalize_participation,
)
from tests.estimators.dense import channels, random_reports, sent_alphabet, summary_of


def table(ability: float) -> np.ndarray:
    """Return one-coin's confusion of three labels."""
    return np.where(np.eye(3, dtype=bool), ability, (1 - ability) / 2)


def test_the_tangent_keeps_participation_at_its_maximum() -> None:
    """The slope is minus the mixed derivative over the second derivative in participation, by finite differences."""
    channel, rng = channels()["randomized response, protected"], np.random.default_rng(0)
    summary = summary_of(random_reports(rng, sent_alphabet(channel), tasks=7, workers=4, share=0.75), channel)
    abilities, shares, cells, step = np.array([0.4, 0.6, 0.7, 0.9]), np.array([0.2, 0.5, 0.6, 0.9]), 11.0, 1e-6
    parameters = replace(
        OneCoin().initialize(summary), participation=shares, participation_pseudo_counts=cells, is_initial=False
    )
    rate, reports = parameters.pool.participation, rng.uniform(0.5, 9.0, (4, 3, 4))
    tables = np.array([table(ability) for ability in abilities])
    complete_data_summary = CompleteDataSummary(abilities, np.ones(4), np.array([0.3, -0.2, 0.1, 0.0]))
    right = np.repeat(abilities[:, None], 3, axis=1)
    before = AbilityTangent(right, np.ones((4, 3)), tables)

    found, tangent = marginalize_participation(complete_data_summary, before, parameters, reports)

    def reported(ability: float, share: float) -> np.ndarray:
        return (1 - share) * channel.probabilities[3] + share * table(ability) @ channel.probabilities[:3]

    assert tangent.participation is not None
    for worker, (ability, share) in enumerate(zip(abilities, shares, strict=True)):
        curvature = np.zeros((2, 2))
        climb = 0.0
        for z in range(3):
            for y in range(4):
                at = reported(ability, share)[z, y]
                slopes = [
                    (reported(ability + step, share) - reported(ability - step, share))[z, y] / (2 * step * at),
                    (reported(ability, share + step) - reported(ability, share - step))[z, y] / (2 * step * at),
                ]
                curvature += reports[worker, z, y] * np.outer(slopes, slopes)
                climb += reports[worker, z, y] * slopes[1]
        bend = cells * (rate / share**2 + (1 - rate) / (1 - share) ** 2)
        climb += cells * (rate / share - (1 - rate) / (1 - share))
        follows = -curvature[0, 1] / (curvature[1, 1] + bend)
        assert pytest.approx(follows, rel=1e-6) == tangent.participation[worker]
        assert pytest.approx(follows**2 * bend, rel=1e-6) == np.broadcast_to(found.prior_information, 4)[worker]
        moved = complete_data_summary.excess[worker] + ability * (1 - ability) * follows * climb
        assert pytest.approx(moved, rel=1e-5) == found.excess[worker]
