"""Simulation of crowds and of their devices, without a dense (workers, tasks) table."""

from crowdveil.simulate.cell_perturbation import perturb_cells, simulated_assignment_covering_answers
from crowdveil.simulate.crowds import (
    Crowd,
    Draw,
    categorical_crowd,
    numeric_crowd,
    standard_normal,
    uniform_abilities,
)
from crowdveil.simulate.perturbation import (
    MAX_REPORTS,
    Progress,
    expected_reports_of_answers,
    perturb,
    report_count_from_public_information,
)

__all__ = [
    "MAX_REPORTS",
    "Crowd",
    "Draw",
    "Progress",
    "categorical_crowd",
    "expected_reports_of_answers",
    "numeric_crowd",
    "perturb",
    "perturb_cells",
    "report_count_from_public_information",
    "simulated_assignment_covering_answers",
    "standard_normal",
    "uniform_abilities",
]
