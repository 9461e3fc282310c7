"""Made-up crowds, and what their devices would have sent, without ever holding a dense workers x tasks table."""

from crowdveil.simulate.campaigns import perturb_cells, perturb_in_rounds, simulated_assignment
from crowdveil.simulate.crowds import Crowd, Draw, categorical_crowd, numeric_crowd, standard_normal, uniform_abilities
from crowdveil.simulate.large_crowds import CrowdFolder, categorical_crowd_folder
from crowdveil.simulate.perturbation import MAX_REPORTS, Progress, expected_reports, perturb, public_report_count

__all__ = [
    "MAX_REPORTS",
    "Crowd",
    "CrowdFolder",
    "Draw",
    "Progress",
    "categorical_crowd",
    "categorical_crowd_folder",
    "expected_reports",
    "numeric_crowd",
    "perturb",
    "perturb_cells",
    "perturb_in_rounds",
    "public_report_count",
    "simulated_assignment",
    "standard_normal",
    "uniform_abilities",
]
