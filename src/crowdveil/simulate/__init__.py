"""Made-up crowds, and what their devices would have sent, without ever holding a dense workers x tasks table."""

from crowdveil.simulate.campaigns import assigned_around, perturb_cells, perturb_in_rounds
from crowdveil.simulate.crowds import Crowd, Draw, categorical_crowd, half_to_sure, numeric_crowd, standard_normal
from crowdveil.simulate.large_crowds import CrowdFolder, categorical_crowd_folder
from crowdveil.simulate.perturbation import MAX_REPORTS, Progress, expected_reports, foreseen_reports, perturb

__all__ = [
    "MAX_REPORTS",
    "Crowd",
    "CrowdFolder",
    "Draw",
    "Progress",
    "assigned_around",
    "categorical_crowd",
    "categorical_crowd_folder",
    "expected_reports",
    "foreseen_reports",
    "half_to_sure",
    "numeric_crowd",
    "perturb",
    "perturb_cells",
    "perturb_in_rounds",
    "standard_normal",
]
