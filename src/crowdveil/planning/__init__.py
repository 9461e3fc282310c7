"""Before anyone is asked: what error to expect at an epsilon, which mechanism to use, how many workers it takes."""

from crowdveil.planning.bayes_error import Bounds, bounds
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import KINDS, LINES, Candidate, Cost, Kind, candidates
from crowdveil.planning.model_error import DEPARTURES, Departure, experience
from crowdveil.planning.plan import EPSILONS, Plan, Row, plan
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities, coarser, merged
from crowdveil.planning.search import MOST_WORKERS, Way
from crowdveil.planning.simulation import LEVEL, Prediction, predict
from crowdveil.planning.summary import verdict

__all__ = [
    "DEPARTURES",
    "EPSILONS",
    "KINDS",
    "LEVEL",
    "LINES",
    "MOST_WORKERS",
    "Bounds",
    "Campaign",
    "Candidate",
    "Cost",
    "Departure",
    "Kind",
    "LabelCrowd",
    "NumberCrowd",
    "Plan",
    "Prediction",
    "Row",
    "Way",
    "beta_abilities",
    "bounds",
    "candidates",
    "coarser",
    "experience",
    "merged",
    "plan",
    "predict",
    "verdict",
]
