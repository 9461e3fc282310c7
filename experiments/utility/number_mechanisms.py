"""Errors through mechanisms for numbers with known workers, by epsilon and the number of answers to a task.

    python -m experiments.utility.number_mechanisms > experiments/utility/results/number_mechanisms.csv

Scale 0 to 10, truths equally likely, half of the workers with a standard deviation of 1 and half with 5, every worker
answers every task, participation public. With known workers the posterior is exact: no inference does better.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from experiments.rows import four_digits, write_rows

from crowdveil import QuantizedResponse, Scale
from crowdveil.channels.channel import Channel
from crowdveil.design.channel_design import design_channel, normal_worker_model
from crowdveil.mechanisms import MECHANISMS, DesignObjective
from crowdveil.planning import NumberCrowd, PlannedCampaign
from crowdveil.planning.bayes_error import bayes_errors

SCALE, SIGMAS = Scale(0, 10), (1.0, 5.0)
ANSWERS = {
    0.5: (5, 10, 30, 100, 300),
    1.0: (3, 5, 10, 30, 100),
    2.0: (2, 3, 5, 10, 30, 100),
    4.0: (1, 2, 3, 5, 10, 30),
}
"""Answers to a task, by epsilon."""
CLOSED = ("randomized-response", "laplace", "staircase", "piecewise", "ogpm", "square-wave")
QUANTIZED, DESIGNED, UNPROTECTED = "quantized-response", "designed", "unprotected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Mean absolute error of the exact posterior with known workers, and its standard error.

    Attributes:
        epsilon, answers, mechanism: of a cell, to a task, and its name; "unprotected" for the answers themselves.
        error, deviation: mean and its standard error over drawn tasks.
        constant: error of the best constant.
    """

    epsilon: float
    answers: int
    mechanism: str
    error: float
    deviation: float
    constant: float


def campaign_of(answers: int) -> PlannedCampaign:
    """Return the campaign with as many workers as answers to a task."""
    prior = np.full(SCALE.size, 1 / SCALE.size)
    objective = DesignObjective(
        alphabet=SCALE,
        prior=prior,
        worker_model=normal_worker_model(SCALE, SIGMAS),
        participation_rate=1.0,
        participation="public",
    )
    crowd = NumberCrowd(alphabet=SCALE, prior=prior, sigmas=SIGMAS)
    return PlannedCampaign(objective=objective, crowd=crowd, tasks=1, workers=answers)


def channels(campaign: PlannedCampaign, epsilon: float) -> dict[str, Channel | None]:
    """Return the channel of each mechanism by its name."""
    made: dict[str, Channel | None] = {
        name: MECHANISMS[name](alphabet=SCALE, epsilon=epsilon, participation="public").channel() for name in CLOSED
    }
    made[QUANTIZED] = QuantizedResponse.for_objective(campaign.objective, epsilon).channel()
    made[DESIGNED] = design_channel(campaign.objective, epsilon, null_apart=True)
    return made | {UNPROTECTED: None}


def rows_with_known_workers() -> Iterator[Row]:
    """Yield the row of each mechanism, by epsilon and answers."""
    for epsilon, sizes in ANSWERS.items():
        for answers in sizes:
            campaign = campaign_of(answers)
            for name, channel in channels(campaign, epsilon).items():
                found = bayes_errors(campaign, channel)
                yield Row(
                    epsilon=epsilon,
                    answers=answers,
                    mechanism=name,
                    error=found.known_classes,
                    deviation=found.sampling_variance**0.5,
                    constant=campaign.crowd.constant_error,
                )


if __name__ == "__main__":
    write_rows(sys.stdout, Row, rows_with_known_workers(), four_digits)
