"""Plans of real sets from public facts, and the errors measured on them.

Sets are planned as `crowdveil plan` does by default: labels or scale, numbers of tasks and workers and the share of
answered cells are public; abilities, deviations and the prior are defaults. The mechanism is randomized response. The
measured error is that of `perturb` and `infer` on the gold tasks, the mean of two seeds. Sets with fewer than a hundred
gold tasks, and populations of cities, which have no public scale, are left out.

    python -m experiments.utility.real_sets [SET...] > experiments/utility/results/real_sets.csv
"""

import math
import sys
from dataclasses import dataclass, replace

import numpy as np
from experiments.rows import four_digits, write_rows

from crowdveil import Categories, DawidSkene, Gaussian, RandomizedResponse, Reports, Scale
from crowdveil.answers.datasets import Dataset, load
from crowdveil.channels.guarantee import Participation
from crowdveil.comparison.demo.crowds import every_nth_task
from crowdveil.design.channel_design import normal_worker_model, one_coin_confusion
from crowdveil.inference.scores.metrics import score
from crowdveil.mechanisms import DesignObjective
from crowdveil.planning import LabelCrowd, NumberCrowd, PlannedCampaign, beta_abilities, predict_campaign_error
from crowdveil.planning.population import AssumedCrowd
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

ABILITY, DEVIATIONS = 0.75, (0.1, 0.5)
"""Defaults of `crowdveil plan`: mean ability; deviations as shares of the range."""
SCALES = {
    "n_emotion": Scale(-100, 100, 10),
    "snow_valence": Scale(-100, 100, 10),
    "weather_temperature": Scale(0, 120, 5),
}
EVERY = {"weather_temperature": 16}
"""Stride of the tasks that are used, to save time."""
LABELS = (
    "adult2",
    "bluebird",
    "d_possent",
    "d_product",
    "dog",
    "duchenne",
    "s_rel",
    "snow_rte",
    "snow_wsd",
    "web_zhou",
)
CONDITIONS: tuple[tuple[Participation, float], ...] = (
    ("protected", 2.0),
    ("protected", 4.0),
    ("public", 2.0),
    ("public", 4.0),
    ("public", math.inf),
)
"""Participation and epsilon per cell; infinite epsilon means unprotected answers."""
SEEDS = (7_000, 7_001)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One set under one condition.

    Errors are shares of wrong labels, or mean absolute errors on the scale; `low` and
    `high` are the ends of the interval for a crowd as assumed, constants the errors of the best constants.
    """

    set: str
    kind: str
    participation: str
    epsilon: float
    planned: float
    low: float
    high: float
    planned_constant: float
    measured: float
    measured_constant: float
    gold: int
    tasks: int
    workers: int


def answers_of(name: str, data: Dataset) -> Reports:
    """Return the answers of a set on its labels or its public scale."""
    if name in SCALES:
        answers = every_nth_task(data.answers, EVERY.get(name, 1))
        return replace(answers, value=SCALES[name].encode(answers.value), alphabet=SCALES[name])
    alphabet = data.answers.alphabet
    assert isinstance(alphabet, Categories)
    return replace(data.answers, alphabet=replace(alphabet, ordered=data.kind == "ordinal"))


def campaign_of(answers: Reports, participation: Participation) -> PlannedCampaign:
    """Return the campaign of a set with the defaults of `crowdveil plan`."""
    alphabet = answers.alphabet
    crowd: AssumedCrowd
    prior = np.full(alphabet.size, 1 / alphabet.size)
    if isinstance(alphabet, Scale):
        sigmas = tuple(share * alphabet.range for share in DEVIATIONS)
        crowd, table = NumberCrowd(alphabet=alphabet, prior=prior, sigmas=sigmas), normal_worker_model(alphabet, sigmas)
    else:
        crowd = LabelCrowd(alphabet=alphabet, prior=prior, abilities=beta_abilities(ABILITY))
        table = one_coin_confusion(alphabet.size, ABILITY)
    tasks, workers = len(answers.tasks), len(answers.workers)
    objective = DesignObjective(
        alphabet=alphabet,
        prior=prior,
        worker_model=table,
        participation_rate=len(answers) / (tasks * workers),
        participation=participation,
    )
    return PlannedCampaign(objective=objective, crowd=crowd, tasks=tasks, workers=workers)


def measured(campaign: PlannedCampaign, answers: Reports, data: Dataset, epsilon: float) -> tuple[float, float, int]:
    """Return the mean error over the seeds, that of the best constant, and the number of gold tasks."""
    found = []
    for seed in SEEDS[:1] if math.isinf(epsilon) else SEEDS:
        mechanism = mechanism_of(campaign, epsilon)
        reports = answers if mechanism is None else perturb_reports(answers, mechanism, seeded(seed))
        channel = None if mechanism is None else mechanism.channel()
        estimator = Gaussian() if isinstance(campaign.crowd, NumberCrowd) else DawidSkene()
        estimate = estimator.fit(reports, channel=channel, prior=campaign.prior)
        found.append(score(estimate, data.gold, error=campaign.crowd.error_name))
    return float(np.mean([one.error for one in found])), found[0].baseline, found[0].scored


def mechanism_of(campaign: PlannedCampaign, epsilon: float) -> RandomizedResponse | None:
    """Return the mechanism; None for unprotected answers."""
    if math.isinf(epsilon):
        return None
    return RandomizedResponse(alphabet=campaign.crowd.alphabet, epsilon=epsilon, participation=campaign.participation)


def rows_of(name: str) -> list[Row]:
    """Return planned and measured errors of one set under every condition."""
    data, rows = load(name), list[Row]()
    answers = answers_of(name, data)
    for participation, epsilon in CONDITIONS:
        campaign = campaign_of(answers, participation)
        planned = predict_campaign_error(campaign, mechanism_of(campaign, epsilon))
        error, constant, gold = measured(campaign, answers, data, epsilon)
        rows.append(
            Row(
                set=name,
                kind="numbers" if name in SCALES else "labels",
                participation=participation,
                epsilon=epsilon,
                planned=planned.error,
                low=planned.low,
                high=planned.high,
                planned_constant=campaign.crowd.constant_error,
                measured=error,
                measured_constant=constant,
                gold=gold,
                tasks=campaign.tasks,
                workers=campaign.workers,
            )
        )
    return rows


if __name__ == "__main__":
    names = sys.argv[1:] or (*LABELS, *SCALES)
    write_rows(sys.stdout, Row, (row for name in names for row in rows_of(name)), shown=four_digits)
