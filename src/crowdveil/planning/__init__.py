"""Planning of campaigns: expected error, choice of mechanism and epsilon, and number of workers."""

from crowdveil.planning.bayes_error import BayesErrors, bayes_errors
from crowdveil.planning.campaign import Campaign
from crowdveil.planning.candidates import CANDIDATE_NAMES, Candidate, Cost, candidates
from crowdveil.planning.plan import EPSILONS, MAX_WORKERS, Alternative, CandidateResult, Plan, plan
from crowdveil.planning.population import LabelCrowd, NumberCrowd, beta_abilities, coarsen_prior, coarsen_scale
from crowdveil.planning.prediction import INTERVAL_LEVEL, Prediction, predict, real_set_summary, with_pilot
from crowdveil.planning.shared_mistakes import Pilot
from crowdveil.planning.summary import verdict

__all__ = [
    "CANDIDATE_NAMES",
    "EPSILONS",
    "INTERVAL_LEVEL",
    "MAX_WORKERS",
    "Alternative",
    "BayesErrors",
    "Campaign",
    "Candidate",
    "CandidateResult",
    "Cost",
    "LabelCrowd",
    "NumberCrowd",
    "Pilot",
    "Plan",
    "Prediction",
    "bayes_errors",
    "beta_abilities",
    "candidates",
    "coarsen_prior",
    "coarsen_scale",
    "plan",
    "predict",
    "real_set_summary",
    "verdict",
    "with_pilot",
]
