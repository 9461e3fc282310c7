"""Mechanisms of the paper as printed, each with the reports that Algorithm 1 reads and its exact epsilon per cell."""

from typing import Literal, NamedTuple

import numpy as np
from experiments.papers.exhibit import Configuration
from experiments.papers.sun2018.continuous_laplace import simulate_continuous_laplace
from experiments.papers.sun2018.crowds import SunCrowd
from experiments.theory.published_bounds import laplace_exact_epsilon

from crowdveil import RandomizedResponse, Reports, Scale
from crowdveil.answers.blocks import InMemoryRows
from crowdveil.published import MatrixFactorizationPublished, SunTwoLayer
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_reports

MECHANISMS = ("RR", "LP", "MF", "2-Layer")
DIMENSIONS, RIDGE, PROFILES = 5, 0.1, "gaussian"
"""Parameters of MF in the main rows; the paper prints none of them."""


class Sent(NamedTuple):
    """Reports of all workers, and the exact epsilon of a cell."""

    reports: Reports
    exact: float


def settings(mechanism: str, **changed: str | float) -> Configuration:
    """Return the parameters of a mechanism that the paper leaves open: those of the main rows, or changed ones."""
    main: dict[str, dict[str, str | int | float | bool | None]] = {
        "MF": {"dimensions": DIMENSIONS, "ridge": RIDGE, "profiles": PROFILES},
        "LP": {"null": "uniform"},
        "2-Layer": {"low": 0.0},
    }
    return main.get(mechanism, {}) | changed


def setting_text(configuration: Configuration) -> str | None:
    """Return the open parameters in words; None if the mechanism has none."""
    mechanism = configuration["mechanism"]
    if mechanism == "MF":
        return "d = {dimensions}, ridge {ridge:g}, {profiles} V".format(**configuration)
    if mechanism == "LP":
        return "NULL becomes " + ("a uniform draw" if configuration["null"] == "uniform" else configuration["null"])
    return "budget from {low:g} epsilon".format(**configuration) if mechanism == "2-Layer" else None


def send(crowd: SunCrowd, configuration: Configuration, seed: int) -> Sent:
    """Return what the workers send under the mechanism of a configuration."""
    answers, epsilon = crowd.answers, configuration["claimed_epsilon"]
    scale, tasks = answers.alphabet, len(answers.tasks)
    assert isinstance(scale, Scale)
    match configuration["mechanism"]:
        case "RR":
            response = RandomizedResponse(alphabet=scale, epsilon=epsilon)
            return Sent(perturb_reports(answers, response, seeded(seed)), response.guarantee.epsilon)
        case "2-Layer":
            low = configuration["low"] * epsilon
            layers = SunTwoLayer(alphabet=scale, epsilon=epsilon, low=low, answers=tasks)
            return Sent(perturb_reports(answers, layers, seeded(seed)), layers.guarantee.epsilon)
        case "LP":
            return Sent(*_laplace(answers, scale, epsilon, configuration["null"], seed))
        case "MF":
            return Sent(*_factorization(answers, scale, epsilon, configuration, seed))
    raise ValueError(configuration["mechanism"])


def _laplace(answers: Reports, scale: Scale, epsilon: float, null: object, seed: int) -> tuple[Reports, float]:
    """Return every cell with noise of scale |Gamma| / epsilon: the printed rule, safe for consecutive integers."""
    exact = laplace_exact_epsilon(epsilon, value_range=scale.range, domain_size=scale.size)
    value: float | Literal["uniform"] = "uniform" if null == "uniform" else float(str(null))
    sent = simulate_continuous_laplace(
        _dense(answers, scale), domain=scale, epsilon=exact, source=seeded(seed), null_value=value
    )
    return _all_cells(answers, sent), exact


def _factorization(
    answers: Reports, scale: Scale, epsilon: float, configuration: Configuration, seed: int
) -> tuple[Reports, float]:
    """Return every worker's u V."""
    tasks, null = len(answers.tasks), scale.size
    mechanism = MatrixFactorizationPublished(
        alphabet=scale,
        epsilon=epsilon,
        tasks=tasks,
        dimensions=configuration["dimensions"],
        ridge=configuration["ridge"],
        profiles="uniform" if configuration["profiles"] == "uniform" else "gaussian",
        profile_seed=seed,
    )
    codes = np.full((len(answers.workers), tasks), null, dtype=np.int16)
    codes[answers.worker, answers.task] = answers.value
    source = seeded(seed)
    profiles = np.array([mechanism.noisy_worker_profile(row, source) for row in codes])
    return _all_cells(answers, (profiles @ mechanism.profile_table).T), mechanism.guarantee.epsilon


def _dense(answers: Reports, scale: Scale) -> np.ndarray:
    """Return the answers indexed [task, worker], nan for NULL."""
    table = np.full((len(answers.tasks), len(answers.workers)), np.nan)
    table[answers.task, answers.worker] = scale.values[answers.value]
    return table


def _all_cells(answers: Reports, values: np.ndarray) -> Reports:
    """Return a number for every cell as reports; `values` is indexed [task, worker]."""
    tasks, workers = values.shape
    task = np.repeat(np.arange(tasks, dtype=np.int32), workers)
    worker = np.tile(np.arange(workers, dtype=np.int32), tasks)
    return Reports.from_rows(
        InMemoryRows(task, worker, values.ravel(), tasks), answers.tasks, answers.workers, alphabet=None
    )
