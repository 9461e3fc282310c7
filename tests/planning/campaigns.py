"""Small campaigns shared by the tests of planning."""

from typing import Any

import numpy as np

from crowdveil.channels.alphabet import Categories, Scale
from crowdveil.channels.guarantee import Participation
from crowdveil.design.channel_design import normal_worker_model, one_coin_confusion
from crowdveil.mechanisms import DesignObjective
from crowdveil.planning import LabelCrowd, NumberCrowd, PlannedCampaign

SCALE = Scale(0, 4)


def of_labels(
    *,
    labels: int = 3,
    tasks: int = 60,
    workers: int = 40,
    rate: float = 0.5,
    participation: Participation = "protected",
    abilities: tuple[float, ...] = (0.6, 0.9),
    prior: tuple[float, ...] = (),
    ordered: bool = False,
    **more: Any,
) -> PlannedCampaign:
    """Return a campaign of labels a, b, ...; the prior is uniform by default."""
    alphabet = Categories(tuple("abcdefghij"[:labels]), ordered)
    shares = np.array(prior) if prior else np.full(labels, 1 / labels)
    objective = DesignObjective(
        alphabet=alphabet,
        prior=shares,
        worker_model=one_coin_confusion(labels, float(np.mean(abilities))),
        participation_rate=rate,
        participation=participation,
    )
    crowd = LabelCrowd(alphabet=alphabet, prior=shares, abilities=abilities)
    return PlannedCampaign(objective=objective, crowd=crowd, tasks=tasks, workers=workers, **more)


def of_numbers(
    *,
    tasks: int = 20,
    workers: int = 60,
    rate: float = 0.5,
    participation: Participation = "protected",
    sigmas: tuple[float, ...] = (0.5, 2.0),
    **more: Any,
) -> PlannedCampaign:
    """Return a campaign on the scale 0..4 whose truths lie low; the prior is known to inference."""
    prior = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    objective = DesignObjective(
        alphabet=SCALE,
        prior=prior,
        worker_model=normal_worker_model(SCALE, sigmas),
        participation_rate=rate,
        participation=participation,
    )
    crowd = NumberCrowd(alphabet=SCALE, prior=prior, sigmas=sigmas)
    return PlannedCampaign(objective=objective, crowd=crowd, tasks=tasks, workers=workers, prior_public=True, **more)
