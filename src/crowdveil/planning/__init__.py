"""Planning of campaigns: expected error, choice of mechanism and epsilon, and number of workers."""

from crowdveil.planning.bayes_error import BayesErrors, bayes_errors
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import CANDIDATE_NAMES, Candidate, Cost, candidates
from crowdveil.planning.plan import EPSILONS, MAX_WORKERS, Alternative, Plan, PlanRow, plan
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities, coarsen_prior, coarsen_scale
from crowdveil.planning.prediction import INTERVAL_LEVEL, Prediction, predict, real_set_summary, with_pilot
from crowdveil.planning.shared_mistakes import Pilot
from crowdveil.planning.summary import verdict
from crowdveil.planning.worker_budget import plan_budgets

__all__ = [
    "CANDIDATE_NAMES",
    "EPSILONS",
    "INTERVAL_LEVEL",
    "MAX_WORKERS",
    "Alternative",
    "BayesErrors",
    "Campaign",
    "Candidate",
    "Cost",
    "LabelCrowd",
    "NumberCrowd",
    "Pilot",
    "Plan",
    "PlanRow",
    "Prediction",
    "bayes_errors",
    "beta_abilities",
    "candidates",
    "coarsen_prior",
    "coarsen_scale",
    "plan",
    "plan_budgets",
    "predict",
    "real_set_summary",
    "verdict",
    "with_pilot",
]
