"""Planning of campaigns: expected error, choice of mechanism and epsilon, and number of workers."""

from crowdveil.planning.bayes_error import bayes_errors
from crowdveil.planning.campaign import PlannedCampaign
from crowdveil.planning.candidates import CANDIDATE_NAMES, candidates
from crowdveil.planning.plan import EPSILONS, MAX_WORKERS, Plan, plan_campaign
from crowdveil.planning.plan_sentences import finding_sentences
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities, coarsen_prior, coarsen_scale
from crowdveil.planning.prediction import Prediction, predict_campaign_error, with_crowd_of_pilot
from crowdveil.planning.shared_mistakes import Pilot
from crowdveil.planning.worker_budget import plan_of_worker_budgets

__all__ = [
    "CANDIDATE_NAMES",
    "EPSILONS",
    "MAX_WORKERS",
    "LabelCrowd",
    "NumberCrowd",
    "Pilot",
    "Plan",
    "PlannedCampaign",
    "Prediction",
    "bayes_errors",
    "beta_abilities",
    "candidates",
    "coarsen_prior",
    "coarsen_scale",
    "finding_sentences",
    "plan_campaign",
    "plan_of_worker_budgets",
    "predict_campaign_error",
    "with_crowd_of_pilot",
]
