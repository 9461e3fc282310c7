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
from crowdveil.simulate.perturbation import MAX_REPORTS, Progress, expected_reports, perturb, public_report_count

__all__ = [
    "MAX_REPORTS",
    "Crowd",
    "Draw",
    "Progress",
    "categorical_crowd",
    "expected_reports",
    "numeric_crowd",
    "perturb",
    "perturb_cells",
    "public_report_count",
    "simulated_assignment",
    "standard_normal",
    "uniform_abilities",
]
