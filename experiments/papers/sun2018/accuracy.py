"""MAE change of Algorithm 1 on protected answers (section VI-C, VI-D), and crowdveil at the exact epsilon of RR."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from experiments.papers.exhibit import Configuration, Row, standard_error
from experiments.papers.sun2018.crowds import SunCrowd, real, synthetic
from experiments.papers.sun2018.published import MECHANISMS, send, setting_text, settings
from experiments.utility.sun_crowd import channel_of
from numpy.typing import NDArray

from crowdveil import DawidSkene, Gaussian, OrdinalDawidSkene, RandomizedResponse, WeightedMean
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells

OURS = "crowdveil"
ALGORITHM_1 = WeightedMean(tolerance=1e-4)
SPEED: dict[str, Any] = {"tolerance": 0.01, "points_per_step": 2, "max_steps": 100}
"""Settings of `gaussian` that shorten a fit."""
synthetic_channel = lru_cache(maxsize=8)(channel_of)
"""crowdveil's channel for a synthetic crowd, by workers, sparsity and epsilon."""
SEED_OF_REPORTS = 1000
"""Added to the seed of a crowd, for its reports."""


class Score(NamedTuple):
    """Figures of one repeat."""

    error: float
    unprotected: float
    constant: float
    correlation: float
    exact: float


def step(
    mechanism: str, epsilon: float, *, workers: int, tasks: int, sparsity: float, repeats: int,
    rounding: str = "nearest", scored: str = "clipped", seed: int = 1, **changed: str | float,
) -> Configuration:  # fmt: skip
    """Return the configuration of one point on a synthetic crowd; `changed` are parameters of the mechanism.

    Points with one seed share their crowds.
    """
    crowd: Configuration = {"data": "synthetic", "workers": workers, "tasks": tasks, "sparsity": sparsity}
    crowd |= {"rounding": rounding, "scored": scored, "repeats": repeats, "seed": seed}
    return crowd | {"mechanism": mechanism, "claimed_epsilon": epsilon} | settings(mechanism, **changed)


def real_step(name: str, mechanism: str, epsilon: float, *, repeats: int, scores: int | None = None) -> Configuration:
    """Return the configuration of one point on a real set."""
    crowd: Configuration = {"data": name, "scores": scores, "repeats": repeats, "seed": 1}
    return crowd | {"mechanism": mechanism, "claimed_epsilon": epsilon} | settings(mechanism)


def measure(configuration: Configuration) -> list[Row]:
    """Return the row of one point: means over the repeats."""
    first, repeats = configuration["seed"], configuration["repeats"]
    scores = [_score(configuration, seed) for seed in range(first, first + repeats)]
    mean = Score(*np.mean(scores, axis=0).tolist())
    crowd = crowd_of(configuration, first)
    tasks, workers = len(crowd.answers.tasks), len(crowd.answers.workers)
    return [{
        "data": configuration["data"], "workers": workers, "tasks": tasks,
        "sparsity": configuration.get("sparsity", 1 - len(crowd.answers) / (tasks * workers)),
        "mechanism": configuration["mechanism"], "setting": _setting(configuration),
        "inference": _inference(configuration), "claimed_epsilon": configuration["claimed_epsilon"],
        "exact_epsilon": mean.exact, "change": mean.error - mean.unprotected, "error": mean.error,
        "unprotected": mean.unprotected, "constant": mean.constant, "correlation": mean.correlation,
        "repeats": repeats, "standard_error": standard_error([one.error for one in scores]),
    }]  # fmt: skip


def crowd_of(configuration: Configuration, seed: int) -> SunCrowd:
    """Return the crowd of a configuration; a real set does not depend on the seed."""
    if configuration["data"] != "synthetic":
        scores = configuration["scores"]
        return real(configuration["data"], None if scores is None else int(scores))
    return synthetic(
        configuration["workers"], configuration["tasks"], configuration["sparsity"], seed,
        rounding=configuration["rounding"], scored=configuration["scored"],
    )  # fmt: skip


def at(rows: list[Row], mechanism: str, **where: object) -> Row:
    """Return the row of a mechanism with these values."""
    (found,) = (
        row
        for row in rows
        if row["mechanism"] == mechanism and all(row[name] == value for name, value in where.items())
    )
    return found


def points(rows: list[Row], *names: str) -> list[dict[str, Any]]:
    """Return the distinct values of some columns, in order of occurrence."""
    return [
        dict(zip(names, values, strict=True)) for values in dict.fromkeys(tuple(row[n] for n in names) for row in rows)
    ]


def ours_is_best(rows: list[Row], where: dict[str, object]) -> bool:
    """Return whether crowdveil has a smaller MAE change than every published mechanism at a point.

    Repeats may differ in number, so the changes are compared: each is relative to the crowds of its own repeats.
    """
    lower = all(at(rows, OURS, **where)["change"] < at(rows, name, **where)["change"] for name in MECHANISMS)
    return lower and costs_no_more(rows, where)


def costs_no_more(rows: list[Row], where: dict[str, object]) -> bool:
    """Return whether the exact epsilon of crowdveil is at most that of RR at a point, to the digits of a table."""
    ours, response = (float(at(rows, name, **where)["exact_epsilon"] or 0) for name in (OURS, "RR"))
    return 0 < ours <= response * (1 + 1e-5)


def _score(configuration: Configuration, seed: int) -> Score:
    crowd = crowd_of(configuration, seed)
    sent_seed = seed + SEED_OF_REPORTS
    if configuration["mechanism"] == OURS:
        found, exact = _ours(crowd, configuration, sent_seed)
    else:
        sent = send(crowd, configuration, sent_seed)
        found, exact = ALGORITHM_1.fit(sent.reports).truth, sent.exact
    unprotected = crowd.error(ALGORITHM_1.fit(crowd.answers).truth)
    return Score(crowd.error(found), unprotected, crowd.constant, crowd.correlation(found), exact)


def _ours(crowd: SunCrowd, configuration: Configuration, seed: int) -> tuple[NDArray[np.float64], float]:
    """Return crowdveil's estimates and the exact epsilon of its channel."""
    epsilon = configuration["claimed_epsilon"]
    if crowd.prior is None:
        return _ours_on_labels(crowd, epsilon, seed)
    workers, sparsity = len(crowd.answers.workers), configuration["sparsity"]
    channel = synthetic_channel(workers, sparsity, epsilon)
    # Where NULL is merged with answers, how often workers answer cannot be learned: it is taken as public.
    rates = None if channel.null_output is not None else (1 - sparsity,)
    mean, deviation = crowd.prior
    method = Gaussian(prior_mean=mean, prior_deviation=deviation, participations=rates, **SPEED)
    return method.fit(perturb_cells(crowd.answers, channel, seeded(seed)), channel=channel).truth, channel.epsilon


def _ours_on_labels(crowd: SunCrowd, epsilon: float, seed: int) -> tuple[NDArray[np.float64], float]:
    """Return posterior medians of labels, read through randomized response."""
    channel = RandomizedResponse(alphabet=crowd.answers.alphabet, epsilon=epsilon).channel()
    reports = perturb_cells(crowd.answers, channel, seeded(seed))
    fitted = _label_method(crowd).fit(reports, channel=channel)
    median = (np.cumsum(fitted.posterior, axis=1) < 0.5).sum(axis=1)
    return median.astype(float), channel.epsilon


def _label_method(crowd: SunCrowd) -> OrdinalDawidSkene | DawidSkene:
    """Return the ordered model for the ratings of AdultContent, the unordered one for the senses of Web."""
    large = len(crowd.answers.tasks) > 1000
    return OrdinalDawidSkene(tolerance=1e-3, max_steps=100) if large else DawidSkene(tolerance=1e-3)


def _setting(configuration: Configuration) -> str | None:
    """Return the open parameters in words, with those of the crowd where they differ from the main rows."""
    parts = [setting_text(configuration)]
    if configuration.get("rounding") == "down":
        parts.append("answers rounded down")
    if configuration.get("scored") == "raw":
        parts.append("raw truths scored")
    if configuration["mechanism"] == OURS:
        parts.append(_channel_text(configuration))
    if configuration.get("scores") is not None:
        parts.append(f"scores 0 to {int(configuration['scores']) - 1}")
    return "; ".join(part for part in parts if part) or None


def _channel_text(configuration: Configuration) -> str:
    if configuration["data"] != "synthetic":
        return "randomized-response"
    sparsity, epsilon = configuration["sparsity"], configuration["claimed_epsilon"]
    return synthetic_channel(configuration["workers"], sparsity, epsilon).mechanism


def _inference(configuration: Configuration) -> str:
    if configuration["mechanism"] != OURS:
        return "Algorithm 1"
    method = Gaussian() if configuration["data"] == "synthetic" else _label_method(crowd_of(configuration, 1))
    return f"{method.name} + channel"
