"""Error of inferred truths against the exact epsilon of one answer: each paper's method, crowdveil, constant, oracle.

Three crowds of published sizes: numbers (Sun et al.), binary labels (Li et al., Wang and Xu) and synthetic claims
(Huai et al.). The same programs as in the exhibits of the papers, with every setting that these sweep. The picture and
the verdict take the best setting of a published method at each epsilon, chosen on the truths; of crowdveil nothing is.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from experiments.papers.exhibit import Configuration, Row, Size, Verdict, standard_error
from experiments.papers.huai2019.crowds import FLOORPLAN, crowd, lengths, published
from experiments.papers.huai2019.table2 import SETTINGS as OF_PRISCROWD
from experiments.papers.li2018 import comparison
from experiments.papers.li2018.crowds import LABELS, as_reports
from experiments.papers.li2018.hyper_distribution import HyperDistribution
from experiments.papers.li2018.hyper_distribution import published as published_distribution
from experiments.papers.li2018.truth_discovery import WEIGHT_FUNCTIONS, Crowd, Numbers, perturbed, truth_discovery
from experiments.papers.picture import Axes, Figure
from experiments.papers.sun2018 import accuracy
from experiments.papers.sun2018.parameters import OF_MECHANISMS
from experiments.papers.sun2018.published import send
from experiments.synthesis.density_error import basic_release

from crowdveil import Gaussian, RandomizedResponse, WeightedMean
from crowdveil.answers.reports import Reports
from crowdveil.em.plots import INK
from crowdveil.published import PrivateDawidSkene
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from crowdveil.synthesis.expected_error import prefer_first
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape

NUMBERS, BINARY, CLAIMS = "numbers", "labels", "synthetic claims"
OURS, GIVEN = "crowdveil", "crowdveil, given the distributions"
EPSILONS: dict[Size, tuple[float, ...]] = {
    "quick": (1.0, 5.0), "default": (0.5, 1.0, 2.0, 3.0, 5.0), "full": (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
}  # fmt: skip
REPEATS: dict[Size, int] = {"quick": 1, "default": 3, "full": 10}
SUN = {"RR": "Sun: RR", "LP": "Sun: LP", "2-Layer": "Sun: 2-Layer", "MF": "Sun: MF", accuracy.OURS: GIVEN}
ONE_LAYER, TWO_LAYER, WANG = "Li: one-layer", "Li: two-layer", "Wang: private DS"
BASIC, PRISCROWD = "Huai: Basic", "Huai: PrisCrowd"
PROJECTIONS = (None, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4)
"""Values of lambda of private Dawid-Skene; None is the interval that the channel allows."""
INFERENCE = {
    ONE_LAYER: "truth discovery", TWO_LAYER: "truth discovery", WANG: "private Dawid-Skene",
    NUMBERS: "gaussian + channel", BINARY: "hierarchical-dawid-skene + channel",
    BASIC: "weighted-mean", PRISCROWD: "weighted-mean", CLAIMS: "weighted-mean",
}  # fmt: skip
"""Inference of each method, and of crowdveil by panel."""
KNOWN = {
    NUMBERS: "domain", BINARY: "domain", CLAIMS: "bounds", WANG: "domain, channel",
    GIVEN: "domain, channel, prior of truths, mixture of deviations, rate of participation",
}  # fmt: skip
"""What is known before the answers, by panel or by method; crowdveil also reads the channel."""
SPARSITY = 0.9
SEED = 1


def configurations(size: Size) -> list[Configuration]:
    """Return one step per panel and claimed epsilon; on numbers and of PrisCrowd one per setting."""
    workers, tasks = (400, 40) if size == "quick" else (2000, 200)
    common: Configuration = {"repeats": REPEATS[size], "seed": SEED}
    crowd: dict[str, Any] = {"workers": workers, "tasks": tasks, "sparsity": SPARSITY, "repeats": REPEATS[size]}
    # Noise of scale |Gamma| / epsilon costs 0.9 of its claim on 0 to 9: a claim of epsilon / 0.9 costs epsilon.
    numbers = [
        accuracy.step(name, one / (0.9 if name == "LP" else 1.0), **crowd, **changed) | {"learned": learned}
        for name, changed, learned in (
            LEARNED,
            (accuracy.OURS, {}, False),
            *((*one, False) for one in OF_MECHANISMS[::-1]),
        )
        for one in EPSILONS[size]
    ]
    return [
        *({"panel": NUMBERS} | step for step in numbers),
        *({"panel": panel, "claimed_epsilon": one} | common for panel in (BINARY, CLAIMS) for one in EPSILONS[size]),
        *({"panel": CLAIMS, "claimed_epsilon": None, "setting": setting} | common for setting in OF_PRISCROWD),
    ]


LEARNED: tuple[str, dict[str, str | float], bool] = ("RR", {}, True)
"""The reports of RR, read by crowdveil through their channel with nothing else known."""


def measure(configuration: Configuration) -> list[Row]:
    """Return the rows of one step."""
    return MEASURES[configuration["panel"]](dict(configuration))


def _numbers(step: dict[str, Any]) -> list[Row]:
    """Return one mechanism on a synthetic crowd of Sun et al., answers 0 to 9, participation protected."""
    (found,) = accuracy.measure(step)
    shared = {name: found[name] for name in ("claimed_epsilon", "exact_epsilon", "constant")}
    lines = shared | {"unprotected": _known_numbers(step["workers"], step["tasks"], step["repeats"])}
    if step["learned"]:
        return [_scored(NUMBERS, OURS, _learned(step), lines, "randomized-response")]
    kept = {column: found[column] for column in ("setting", "inference", "error", "standard_error", "repeats")}
    return [_row(NUMBERS, SUN[step["mechanism"]], kept | lines)]


def _learned(step: dict[str, Any]) -> list[float]:
    """Return the errors of crowdveil on the reports of RR: prior, deviations and participation are learned."""
    errors = []
    for seed in range(SEED, SEED + step["repeats"]):
        people = accuracy.crowd_of(step, seed)
        reports = send(people, step, seed + accuracy.SEED_OF_REPORTS).reports
        channel = RandomizedResponse(alphabet=people.answers.alphabet, epsilon=step["claimed_epsilon"]).channel()
        errors.append(people.error(Gaussian(**accuracy.SPEED).fit(reports, channel=channel).truth))
    return errors


@cache
def _known_numbers(workers: int, tasks: int, repeats: int) -> float:
    """Return the error of crowdveil's estimator on unprotected answers."""
    errors = []
    for seed in range(SEED, SEED + repeats):
        one = accuracy.synthetic(workers, tasks, SPARSITY, seed)
        errors.append(one.error(Gaussian(prior_mean=0.0, prior_deviation=1.0).fit(one.answers).truth))
    return float(np.mean(errors))


def _labels(step: dict[str, Any]) -> list[Row]:
    """Return one-layer, two-layer, private Dawid-Skene and crowdveil on binary labels, participation public."""
    claimed, seeds = step["claimed_epsilon"], range(SEED, SEED + step["repeats"])
    hyper = published_distribution(claimed)
    errors: dict[tuple[str, str | None], list[float]] = {}
    lines: dict[str, list[float]] = {"unprotected": [], "constant": []}
    exact = 0.0
    for seed in seeds:
        people = binary_crowd(seed)
        losses, generator = comparison.losses_of(people, hyper), np.random.default_rng([SEED, seed])
        by_worker, by_answer = generator.random(people.workers), generator.random(len(people.task))
        exact = max(exact, float(losses.answer.max()))
        for name, labels in _inferred(people, claimed, (hyper, losses, by_worker), by_answer).items():
            errors.setdefault(name, []).append(people.error_rate(labels))
        oracle = comparison.crowdveil_default(people, people.answer, None)
        lines["unprotected"].append(people.error_rate(oracle))
        lines["constant"].append(people.constant)
    means: Row = {name: float(np.mean(found)) for name, found in lines.items()} | {"claimed_epsilon": claimed}
    return [
        _scored(BINARY, name, found, means | {"exact_epsilon": exact if name == TWO_LAYER else claimed}, setting)
        for (name, setting), found in errors.items()
    ]


def _inferred(
    people: Crowd, claimed: float, shared: tuple[HyperDistribution, comparison.Losses, Numbers], by_answer: Numbers
) -> dict[tuple[str, str | None], Numbers]:
    """Return the labels by method and setting; the uniform numbers of the answers are the same for all."""
    hyper, losses, by_worker = shared
    found: dict[tuple[str, str | None], Numbers] = {}
    for arm, name in ((comparison.ONE, ONE_LAYER), (comparison.TWO, TWO_LAYER)):
        flip, _ = comparison.flips(arm, people, claimed, hyper, losses, by_worker)
        reports = perturbed(people, flip, by_answer)
        for text, weight in WEIGHT_FUNCTIONS.items():
            found[name, f"weight {text}"] = truth_discovery(people, reports, weight)[0]
        if name == ONE_LAYER:
            channel = RandomizedResponse(alphabet=LABELS, epsilon=claimed, participation="public").channel()
            for projection in PROJECTIONS:
                fitted = PrivateDawidSkene(projection=projection).fit(as_reports(people, reports), channel=channel)
                setting = f"lambda {'of the channel' if projection is None else projection}"
                found[WANG, setting] = np.sign(fitted.posterior[:, 1] - fitted.posterior[:, 0])
            found[OURS, None] = comparison.crowdveil_default(people, reports, np.full(people.workers, claimed))
    return found


@cache
def binary_crowd(seed: int) -> Crowd:
    """Return a simulated crowd of the size of Duchenne smiles: 64 workers, 2,134 tasks, about 17,729 answers."""
    workers, tasks = 64, 2134
    made = categorical_crowd(
        workers=workers, tasks=tasks, labels=LABELS, sparsity=1 - 17_729 / (workers * tasks), source=seeded(seed)
    )
    answers = made.answers
    return Crowd(
        task=answers.task.astype(np.int64),
        worker=answers.worker.astype(np.int64),
        answer=np.where(answers.value == 1, 1.0, -1.0),
        tasks=tasks,
        workers=workers,
        gold=np.arange(tasks),
        truth=np.where(made.truth == LABELS.names[1], 1.0, -1.0),
    )


def _synthetic_claims(step: dict[str, Any]) -> list[Row]:
    """Return errors of lengths inferred from released claims, in metres; participation public, curator trusted.

    Without a claimed epsilon: the paper's method, which has none that is finite.
    """
    epsilon = step["claimed_epsilon"]
    errors: dict[str, list[float]] = {}
    for seed in range(SEED, SEED + step["repeats"]):
        claims, truth = crowd(FLOORPLAN, seed), lengths(seed)
        columns = claims.task_of_each_claim.astype(np.int32), claims.worker, claims.value, claims.tasks, claims.workers
        made = {"unprotected": Reports(*columns)}
        if epsilon is None:
            method: Any = OF_PRISCROWD[step["setting"]](published("combined"))
            made[PRISCROWD] = method.release(claims, seeded(seed)).reports()
        else:
            method = prefer_first(Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon), claims)
            made[BASIC] = basic_release(claims, epsilon, seeded(seed))
            made[OURS] = method.release(claims, seeded(seed)).reports()
        for name, reports in made.items():
            errors.setdefault(name, []).append(float(np.abs(WeightedMean().fit(reports).truth - truth).mean()))
        errors.setdefault("constant", []).append(float(np.abs(truth - np.median(truth)).mean()))
    lines: Row = {name: float(np.mean(errors.pop(name))) for name in ("unprotected", "constant")}
    lines |= {"claimed_epsilon": epsilon, "exact_epsilon": math.inf if epsilon is None else epsilon}
    return [_scored(CLAIMS, name, found, lines, step.get("setting")) for name, found in errors.items()]


MEASURES: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    NUMBERS: _numbers, BINARY: _labels, CLAIMS: _synthetic_claims
}  # fmt: skip


def _row(panel: str, name: str, values: Row) -> Row:
    known = KNOWN.get(name, KNOWN[panel] + (", channel" if name == OURS and panel != CLAIMS else ""))
    return values | {"panel": panel, "mechanism": name, "known": known}


def _scored(panel: str, name: str, errors: list[float], values: Row, setting: str | None) -> Row:
    """Return the row of a method with these errors."""
    measured: Row = {
        "setting": setting,
        "inference": INFERENCE[panel if name == OURS else name],
        "error": float(np.mean(errors)),
        "standard_error": standard_error(errors),
        "repeats": len(errors),
    }
    return _row(panel, name, values | measured)


BEST = "#0d9488"
PANELS = {
    NUMBERS: (
        "Numbers 0 to 9: 2,000 workers, 200 tasks",
        "mean absolute error",
        {"Sun: RR": "#d97706", "Sun: LP": "#db2777", "Sun: MF": "#8b5cf6", OURS: BEST, GIVEN: BEST},
    ),
    BINARY: (
        "Yes or no: 64 workers, 2,134 tasks",
        "share of wrong truths",
        {ONE_LAYER: "#d97706", TWO_LAYER: "#db2777", WANG: "#3b82f6", OURS: BEST},
    ),
    CLAIMS: (
        "Synthetic claims: 247 workers, 129 lengths",
        "error in metres",
        {BASIC: "#d97706", PRISCROWD: "#db2777", OURS: BEST},
    ),
}
"""Title, vertical axis and colours of the lines of each panel of the picture, with constant and unprotected seven at
most. The table has all rows."""
NAMES = {GIVEN: "given distributions", "constant": "best constant"}
"""Names of lines in the picture, where they differ."""
NEVER = 12.0
"""Place of infinite epsilons on the axis."""
TICKS = (0.25, 0.5, 1, 2, 3, 5, 8)


def draw(rows: list[Row], figure: Figure) -> None:
    """Draw one panel per crowd, every line named at its end, for light and dark pages."""
    figure.set_size_inches(5.4, 8.8)
    figure.set_facecolor("none")
    for axes, (name, panel) in zip(figure.subplots(3, 1), PANELS.items(), strict=True):
        mine = [row for row in rows if row["panel"] == name]
        ends = []
        for line, color in panel[2].items():
            points = sorted(
                (_place(row), _error(row)) for row in best([row for row in mine if row["mechanism"] == line])
            )
            style = {"lw": 2.2 if line == OURS else 1.5, "ls": "--" if line == GIVEN else "-"}
            axes.plot(*zip(*points, strict=True), color=color, marker="o", ms=4, **style)
            ends.append((points[-1][1], NAMES.get(line, line), color))
        for line, dashes in (("constant", "--"), ("unprotected", ":")):
            height = float(np.mean([row[line] for row in mine]))
            axes.axhline(height, color=INK, ls=dashes, lw=1.3)
            ends.append((height, NAMES.get(line, line), INK))
        _finish(axes, panel, ends)
    axes.set_xlabel(
        "exact epsilon of one answer (∞: no guarantee)\n"
        "published methods: best setting tried, chosen on the truths",
        color=INK,
    )  # fmt: skip


def best(rows: list[Row]) -> list[Row]:
    """Return the row of the setting with the least error, by mechanism and claimed epsilon."""
    found: dict[tuple[object, object], Row] = {}
    for row in sorted(rows, key=_error):
        found.setdefault((row["mechanism"], row["claimed_epsilon"]), row)
    return list(found.values())


def _place(row: Row) -> float:
    """Return the place of a row on the axis."""
    return min(row["exact_epsilon"], NEVER)


def _finish(axes: Axes, panel: tuple[str, str, dict[str, str]], ends: list[tuple[float, str, str]]) -> None:
    """Set the axes, and write every name to the right, apart from its neighbours."""
    axes.set_facecolor("none")
    axes.set(xscale="log", yscale="log", xlim=(0.22, 14))
    axes.set_xticks([*TICKS, NEVER], [*(f"{tick:g}" for tick in TICKS), "∞"])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.tick_params(colors=INK)
    axes.grid(color=INK, alpha=0.22)
    axes.set_title(panel[0], color=INK, fontsize=11, loc="left")
    axes.set_ylabel(panel[1], color=INK)
    for place, (_, name, color) in zip(_apart(ends, low, high), sorted(ends), strict=True):
        axes.annotate(
            name, (1.02, place), xycoords="axes fraction", color=color, va="center", annotation_clip=False, fontsize=10,
            weight="bold" if name == OURS else "normal",
        )  # fmt: skip


def _apart(ends: list[tuple[float, str, str]], low: float, high: float, least: float = 0.115) -> list[float]:
    """Return heights of the names as shares of the axis, ascending, at least this far apart."""
    wanted = [math.log(end[0] / low) / math.log(high / low) for end in sorted(ends)]
    for _ in range(200):
        for place in range(1, len(wanted)):
            gap = least - (wanted[place] - wanted[place - 1])
            if gap > 0:
                wanted[place - 1], wanted[place] = wanted[place - 1] - gap / 2, wanted[place] + gap / 2
    lowest = 0.02
    for place, one in enumerate(wanted):
        wanted[place] = max(one, lowest)
        lowest = wanted[place] + least
    return wanted


def verdict(rows: list[Row]) -> Verdict:
    """Return how crowdveil compares with the best swept setting of every method, and which promises do not hold."""
    given, learned = _compared(rows, NUMBERS, GIVEN), _compared(rows, NUMBERS, OURS)
    labels, claims = _compared(rows, BINARY, OURS), _compared(rows, CLAIMS, OURS)
    apart = [_place(one) for one, other in labels if abs(_error(one) - _error(other)) >= _margin(one, other)]
    near = min(place for one, _ in labels if (place := _place(one)) > max(apart, default=0.0))
    two_layer = [row for row in rows if row["mechanism"] == TWO_LAYER]
    least = math.floor(10 * min(_place(row) for row in two_layer)) / 10
    first = min(row["claimed_epsilon"] for row in two_layer)
    unbounded = [row for row in rows if row["mechanism"] in ("Sun: MF", PRISCROWD)]
    trivial = all(_error(row) > row["constant"] for row in unbounded if row["panel"] == NUMBERS)
    less = sum(_error(one) + _margin(one, other) < _error(other) for one, other in learned)
    rivals = list(dict.fromkeys(f"{other['mechanism']} ({other['setting']})" for _, other in given))
    sentence = (
        f"published methods have the best of their swept settings at each epsilon, chosen on the truths; on numbers it "
        f"is {', '.join(rivals)}. There crowdveil, given the true distributions, has {_shares(given)} of its error, "
        f"and with everything learned {_shares(learned)}: less by more than two standard errors at {less} of "
        f"{len(learned)} epsilons, and {_against_constant(learned)}. On synthetic claims it has {_shares(claims)} of "
        f"the error of Basic, and {_against_constant(claims, ' m')}. On binary labels its error is within two standard "
        f"errors of the best from epsilon {near:g} on, but two-layer costs an exact epsilon of {least:g} or more where "
        f"{first:g} is claimed. Matrix factorization and PrisCrowd have no finite epsilon, and no swept setting of "
        f"matrix factorization is better than the best constant."
    )
    clear = all(_error(one) < _error(other) for one, other in (*given, *claims))
    none = all(row["exact_epsilon"] == math.inf for row in unbounded)
    return Verdict("reproduced in part", sentence, clear and near <= 1 and trivial and none and least > 5)


def _compared(rows: list[Row], panel: str, name: str) -> list[tuple[Row, Row]]:
    """Return each row of crowdveil, by epsilon, with the best published row from its epsilon up to the next one."""
    mine = sorted((row for row in rows if row["panel"] == panel and row["mechanism"] == name), key=_place)
    others = [row for row in rows if row["panel"] == panel and row["mechanism"] not in (OURS, GIVEN)]
    found = []
    for low, high in pairwise([*map(_place, mine), math.inf]):
        within = [row for row in others if low < 1.001 * row["exact_epsilon"] < 1.001 * high]
        found.append(min(within, key=_error))
    return list(zip(mine, found, strict=True))


def _shares(pairs: list[tuple[Row, Row]]) -> str:
    """Return the range of the ratios of two errors in words."""
    ratios = [_error(one) / _error(other) for one, other in pairs]
    return f"{min(ratios):.0%} to {max(ratios):.0%}"


def _against_constant(pairs: list[tuple[Row, Row]], unit: str = "") -> str:
    """Return at which epsilons the error is not below that of the best constant, and both errors."""
    worse = [
        f"{_place(one):g} ({_error(one):.2f} against {one['constant']:.2f}{unit})"
        for one, _ in pairs
        if _error(one) >= one["constant"]
    ]
    return f"is worse than the best constant at epsilon {', '.join(worse)}" if worse else "is below the best constant"


def _error(row: Row) -> float:
    return row["error"]


def _margin(one: Row, other: Row) -> float:
    """Return two standard errors of a difference; of one repeat 0.04."""
    return 2 * math.hypot(*(float(row["standard_error"] or 0.014) for row in (one, other)))
