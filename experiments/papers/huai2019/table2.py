"""Table 2: ISE and SISE of the paper's method, its baselines, and the private methods at the same exact epsilon."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Verdict, entry_of, standard_error
from experiments.papers.huai2019.algorithm1.accounting import WeightProfile, published_claim, smallest_epsilon
from experiments.papers.huai2019.algorithm1.huai_published import HuaiPublished, trial_tasks
from experiments.papers.huai2019.algorithm1.kernel_density import Bandwidth
from experiments.papers.huai2019.crowds import DELTA, crowd, published
from experiments.papers.huai2019.judge import Judge
from experiments.synthesis.density_error import BASIC_EPSILONS, basic_release

from crowdveil.answers.reports import Reports
from crowdveil.randomness import seeded
from crowdveil.synthesis.original_claims import Claims
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape

PRISCROWD, UNIFORM, UNTESTED, CONSTANT = "PrisCrowd", "Uniform", "unprotected draws", "constant"
BASIC = {level: f"Basic ({level})" for level in ("weak", "normal", "strong")}
RECORDS, EPSILONS = 30, (0.1, 1.0, 5.0, 10.0)
PRINTED: dict[str, list[tuple[float, ...]]] = {}
for printed in entry_of("huai2019", "table2")["paper"]:
    sets = ("Population", "Stock", "Indoor Floorplan")
    PRINTED.setdefault(printed["method"], []).append(tuple(printed[name] for name in sets))
"""ISE and SISE as printed, each on Population, Stock, Indoor Floorplan."""
MAIN = "main"


def _weighting(**settings: Any) -> Callable[[HuaiPublished], HuaiPublished]:
    """Return a change of the weights."""
    return lambda method: replace(method, weighting=replace(method.weighting, **settings))


def _test(epsilon0: float) -> Callable[[HuaiPublished], HuaiPublished]:
    """Return a change of epsilon0."""
    return lambda method: replace(method, test=replace(method.test, epsilon0=epsilon0))


SETTINGS: dict[str, Callable[[HuaiPublished], HuaiPublished]] = {
    MAIN: lambda method: method,
    "thresholds 0.5, 1, 2": _weighting(thresholds=(0.5, 1.0, 2.0)),
    "thresholds 1, 2, 3": _weighting(thresholds=(1.0, 2.0, 3.0)),
    "thresholds 2, 3, 4": _weighting(thresholds=(2.0, 3.0, 4.0)),
    "loss as local weight": _weighting(loss_as_weight=True),
    "bandwidth by Scott's rule": lambda method: replace(method, bandwidth=Bandwidth(rule="scott", least=1 / 256)),
    "bandwidth 2 % of the bounds": lambda method: replace(method, bandwidth=Bandwidth(rule="share", width=0.02)),
    "Epanechnikov kernel": lambda method: replace(method, kernel="epanechnikov"),
    "square root of the product": _weighting(minimiser=True),
    "global weights per claim": _weighting(per_claim=True),
    "epsilon0 0.1": _test(0.1),
    "epsilon0 10": _test(10.0),
}
"""Parameters that the paper does not give, one changed at a time."""


def measure(configuration: Configuration) -> list[Row]:
    """Return the rows of a crowd; with other settings those of PrisCrowd and Uniform only."""
    name, setting = configuration["crowd"], configuration["setting"]
    seed, repeats = configuration["seed"], configuration["repeats"]
    claims, change = crowd(name, seed), SETTINGS[setting]
    combined, uniform = change(published("combined")), change(published("uniform"))
    judge = Judge(claims, combined, uniform, configuration["judged"])
    makers = _releases(claims, combined, uniform, whole=setting == MAIN)
    rows = []
    for mechanism, (claimed, exact, make) in makers.items():
        made = [make(seed + place) for place in range(repeats)]
        start: Row = {"crowd": name, "setting": setting, "mechanism": mechanism}
        start |= {"claimed_epsilon": claimed, "exact_epsilon": exact}
        rows.append(start | _figures(judge, made))
    return rows


def _reports_of(method: Any, claims: Claims, seed: int) -> Reports:
    return method.release(claims, seeded(seed)).reports()


def _basic_reports(claims: Claims, epsilon: float, seed: int) -> Reports:
    return basic_release(claims, epsilon, seeded(seed))


def _releases(
    claims: Claims, combined: HuaiPublished, uniform: HuaiPublished, *, whole: bool
) -> dict[str, tuple[float | None, float, Callable[[int], Reports]]]:
    """Return claimed epsilon, exact epsilon and release, by seed, of every mechanism; epsilons per claim."""
    makers: dict[str, tuple[float | None, float, Callable[[int], Reports]]] = {
        name: (
            _claimed(method, claims),
            np.inf,
            partial(_reports_of, method, claims),
        )
        for name, method in ((PRISCROWD, combined), (UNIFORM, uniform))
    }
    if not whole:
        return makers
    for level, name in BASIC.items():
        epsilon = BASIC_EPSILONS[level]
        makers[name] = (
            epsilon, epsilon, partial(_basic_reports, claims, epsilon)
        )  # fmt: skip
    makers[UNTESTED] = (None, np.inf, lambda seed: _untested(claims, combined, seed))
    makers[CONSTANT] = (None, 0.0, lambda seed: _constant(claims))
    for epsilon in EPSILONS:
        for method in (Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon)):
            makers[f"{method.name}, epsilon {epsilon:g}"] = (
                epsilon, epsilon, partial(_reports_of, method, claims)
            )  # fmt: skip
    return makers


def _claimed(method: HuaiPublished, claims: Claims) -> float:
    """Return the epsilon of Theorem 2 at the smallest delta of its curve."""
    profile = WeightProfile.from_claims(claims, method.densities(claims).weight, method.test.k)
    return smallest_epsilon(published_claim(method.test, profile), DELTA)


def _untested(claims: Claims, method: HuaiPublished, seed: int) -> Reports:
    """Return draws of the paper's density without the privacy test."""
    task = trial_tasks(claims, method.test, RECORDS)
    _, value = method.densities(claims).draw(task, seeded(seed))
    return Reports(task.astype(np.int32), np.arange(len(task)) % RECORDS, value, claims.tasks, np.arange(RECORDS))


def _constant(claims: Claims) -> Reports:
    """Return numbers spread evenly over the bounds, which need no claim."""
    tasks = len(claims.tasks)
    share = (np.arange(RECORDS) + 0.5) / RECORDS
    value = (claims.low[:, None] + (claims.high - claims.low)[:, None] * share).ravel()
    task, worker = np.repeat(np.arange(tasks), RECORDS), np.tile(np.arange(RECORDS), tasks)
    return Reports(task.astype(np.int32), worker, value, claims.tasks, np.arange(RECORDS))


def _figures(judge: Judge, made: list[Reports]) -> Row:
    """Return the means over releases."""
    combined = [judge.errors(one, "combined") for one in made]
    equal = [judge.errors(one, "uniform").mean for one in made]
    gaps = [judge.truth_gap(one) for one in made]
    means, repeats = [one.mean for one in combined], len(made)
    return {
        "ise": float(np.mean([one.ise for one in combined])),
        "sise": float(np.mean([one.sise for one in combined])),
        "error": float(np.mean(means)),
        "standard_error": standard_error(means),
        "error_equal": float(np.mean(equal)),
        "truth_error": float(np.mean([gap.mean_absolute for gap in gaps])),
        "truth_constant": float(np.mean([gap.constant for gap in gaps])),
        "tasks": combined[0].tasks,
        "repeats": repeats,
    }


def verdict(rows: list[Row]) -> Verdict:
    """Return whether the order of the table holds, by which reference only, and how many settings reverse it."""
    found = {(str(row["crowd"]), str(row["setting"]), str(row["mechanism"])): row for row in rows}
    error = {key: row["error"] for key, row in found.items()}
    equal = {key: row["error_equal"] for key, row in found.items()}
    crowds, swept = {one for one, *_ in found}, {key[:2] for key in found if key[1] != MAIN}
    order = (PRISCROWD, UNIFORM, *BASIC.values())
    holds = all(_ascending([error[name, MAIN, one] for one in order]) for name in crowds)
    holds &= all(equal[name, MAIN, UNIFORM] < equal[name, MAIN, PRISCROWD] for name in crowds)
    holds &= all(
        error[name, MAIN, f"pooled-shape, epsilon {epsilon:g}"] < error[name, MAIN, basic]
        for name in crowds
        for basic, epsilon in ((BASIC["normal"], 1.0), (BASIC["weak"], 10.0))
    )
    holds &= all(
        abs(error[name, MAIN, "pooled-shape, epsilon 1"] / error[name, MAIN, CONSTANT] - 1) < 0.05
        for name in crowds
        if name.startswith("population")
    )
    holds &= all(sise > ise**2 for name in (PRISCROWD, BASIC["weak"]) for ise, sise in zip(*PRINTED[name], strict=True))
    own = sum(error[*key, UNIFORM] < error[*key, PRISCROWD] for key in swept)
    other = sum(equal[*key, PRISCROWD] < equal[*key, UNIFORM] for key in swept)
    sentence = (
        "judged by its own density PrisCrowd is first, then Uniform, then Basic, on every crowd, but without any "
        "guarantee (exact epsilon infinite), and judged by equal weights Uniform is before PrisCrowd; of the "
        f"{len(swept)} pairs of another setting and a crowd {own} reverse the former and {other} the latter; the "
        "printed values cannot be met, as no unit is given and they contradict the definitions of ISE and SISE, and "
        "Uniform is not last on the stand-in for Stock; crowdveil's pooled-shape has less error than Basic at the same "
        "exact epsilon of 1 and of 10, though on the Population sets, at 1, as much as the constant (within 5%)."
    )
    return Verdict("reproduced in part", sentence, holds)


def _ascending(values: list[float]) -> bool:
    return all(one < other for one, other in pairwise(values))
