"""Simulation of crowds and of their devices, without a dense (workers, tasks) table."""

from crowdveil.simulate.cell_perturbation import perturb_cells, simulated_assignment
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
    expected_report_count,
    expected_reports_of_answers,
    perturb_reports,
)

__all__ = [
    "MAX_REPORTS",
    "Crowd",
    "Draw",
    "Progress",
    "categorical_crowd",
    "expected_report_count",
    "expected_reports_of_answers",
    "numeric_crowd",
    "perturb_cells",
    "perturb_reports",
    "simulated_assignment",
    "standard_normal",
    "uniform_abilities",
]
