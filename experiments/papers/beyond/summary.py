"""Error of inferred truths against the exact epsilon of one answer: each paper's method, crowdveil, constant, oracle.

Three crowds of published sizes: numbers (Sun et al.), binary labels (Li et al., Wang and Xu) and synthetic claims
(Huai et al.). The same programs as in the exhibits of the papers; nothing is chosen on known truths.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.papers.exhibit import Configuration, Exhibit, OpenParameter, Row, Size, Verdict
from experiments.papers.huai2019.crowds import FLOORPLAN, crowd, lengths, published
from experiments.papers.li2018 import comparison
from experiments.papers.li2018.crowds import LABELS, as_reports
from experiments.papers.li2018.hyper_distribution import HyperDistribution
from experiments.papers.li2018.hyper_distribution import published as published_distribution
from experiments.papers.li2018.truth_discovery import Crowd, Numbers, perturbed, truth_discovery
from experiments.papers.sun2018 import accuracy
from experiments.synthesis.density_error import basic_release

from crowdveil import Gaussian, PrivateDawidSkene, RandomizedResponse, WeightedMean
from crowdveil.data.reports import Reports
from crowdveil.plotting import INK
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from crowdveil.synthesis.expected_error import more_accurate
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "panel", "mechanism", "inference", "claimed_epsilon", "exact_epsilon", "error", "standard_error", "constant",
    "unprotected", "repeats",
)  # fmt: skip
NUMBERS, BINARY, CLAIMS = "numbers", "labels", "synthetic claims"
OURS = "crowdveil"
EPSILONS: dict[Size, tuple[float, ...]] = {
    "quick": (1.0, 5.0), "default": (0.5, 1.0, 2.0, 3.0, 5.0), "full": (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
}  # fmt: skip
REPEATS: dict[Size, int] = {"quick": 1, "default": 3, "full": 10}
SUN = {"RR": "Sun: RR", "LP": "Sun: LP", "2-Layer": "Sun: 2-Layer", "MF": "Sun: MF", accuracy.OURS: OURS}
ONE_LAYER, TWO_LAYER, WANG = "Li: one-layer", "Li: two-layer", "Wang: private DS"
BASIC, PRISCROWD = "Huai: Basic", "Huai: PrisCrowd"
INFERENCE = {
    ONE_LAYER: "truth discovery", TWO_LAYER: "truth discovery", WANG: "private Dawid-Skene",
    BINARY: "hierarchical-dawid-skene + channel", BASIC: "weighted-mean", PRISCROWD: "weighted-mean",
    CLAIMS: "weighted-mean",
}  # fmt: skip
"""Inference of each method, and of crowdveil by panel."""
SPARSITY = 0.9
SEED = 1


def configurations(size: Size) -> list[Configuration]:
    """Return one step per panel, mechanism and claimed epsilon."""
    workers, tasks = (400, 40) if size == "quick" else (2000, 200)
    common: Configuration = {"repeats": REPEATS[size], "seed": SEED}
    numbers: Configuration = {"panel": NUMBERS, "workers": workers, "tasks": tasks} | common
    return [
        *(numbers | {"mechanism": name, "claimed_epsilon": one} for name in SUN for one in EPSILONS[size]),
        *({"panel": panel, "claimed_epsilon": one} | common for panel in (BINARY, CLAIMS) for one in EPSILONS[size]),
        {"panel": CLAIMS, "claimed_epsilon": None} | common,
    ]


def measure(configuration: Configuration) -> list[Row]:
    """Return the rows of one step."""
    return MEASURES[str(configuration["panel"])](dict(configuration))


def _numbers(step: dict[str, Any]) -> list[Row]:
    """Return one mechanism on a synthetic crowd of Sun et al., answers 0 to 9, participation protected."""
    name, size = step["mechanism"], {"workers": step["workers"], "tasks": step["tasks"], "sparsity": SPARSITY}
    # Noise of scale |Gamma| / epsilon costs 0.9 of its claim on 0 to 9: a claim of epsilon / 0.9 costs epsilon.
    claimed = step["claimed_epsilon"] / (0.9 if name == "LP" else 1.0)
    (found,) = accuracy.measure(accuracy.step(name, claimed, repeats=step["repeats"], **size))
    kept = {column: found[column] for column in COLUMNS if column in found}
    return [_row(NUMBERS, SUN[name], kept | {"unprotected": _known_numbers(step)})]


def _known_numbers(step: dict[str, Any]) -> float:
    """Return the error of crowdveil's estimator on unprotected answers."""
    errors = []
    for seed in range(SEED, SEED + step["repeats"]):
        one = accuracy.synthetic(step["workers"], step["tasks"], SPARSITY, seed)
        errors.append(one.error(Gaussian(prior_mean=0.0, prior_deviation=1.0).fit(one.answers).truth))
    return float(np.mean(errors))


def _labels(step: dict[str, Any]) -> list[Row]:
    """Return one-layer, two-layer, private Dawid-Skene and crowdveil on binary labels, participation public."""
    claimed, seeds = step["claimed_epsilon"], range(SEED, SEED + step["repeats"])
    hyper = published_distribution(claimed)
    errors: dict[str, list[float]] = {}
    exact = 0.0
    for seed in seeds:
        people = binary_crowd(seed)
        losses, (by_worker, by_answer) = comparison.losses_of(people, hyper), comparison.uniforms(people, SEED, seed)
        exact = max(exact, float(losses.answer.max()))
        for name, labels in _inferred(people, claimed, (hyper, losses, by_worker), by_answer).items():
            errors.setdefault(name, []).append(people.error_rate(labels))
        oracle = comparison.crowdveil_default(people, people.answer, None)
        errors.setdefault("unprotected", []).append(people.error_rate(oracle))
        errors.setdefault("constant", []).append(people.constant)
    lines: Row = {name: float(np.mean(errors.pop(name))) for name in ("unprotected", "constant")}
    return [
        _scored(
            BINARY,
            name,
            found,
            lines | {"claimed_epsilon": claimed, "exact_epsilon": exact if name == TWO_LAYER else claimed},
        )
        for name, found in errors.items()
    ]


def _inferred(
    people: Crowd, claimed: float, shared: tuple[HyperDistribution, comparison.Losses, Numbers], by_answer: Numbers
) -> dict[str, Numbers]:
    """Return the labels inferred by every method; the uniform numbers of the answers are the same for all."""
    hyper, losses, by_worker = shared
    found = {}
    for arm, name in ((comparison.ONE, ONE_LAYER), (comparison.TWO, TWO_LAYER)):
        flip, _ = comparison.flips(arm, people, claimed, hyper, losses, by_worker)
        reports = perturbed(people, flip, by_answer)
        found[name] = truth_discovery(people, reports)[0]
        if name == ONE_LAYER:
            channel = RandomizedResponse(alphabet=LABELS, epsilon=claimed, participation="public").channel()
            posterior = PrivateDawidSkene().fit(as_reports(people, reports), channel=channel).posterior
            found[WANG] = np.sign(posterior[:, 1] - posterior[:, 0])
            found[OURS] = comparison.crowdveil_default(people, reports, np.full(people.workers, claimed))
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
        columns = claims.task.astype(np.int32), claims.worker, claims.value, claims.tasks, claims.workers
        made = {"unprotected": Reports(*columns)}
        if epsilon is None:
            made[PRISCROWD] = published("combined").release(claims, seeded(seed)).reports()
        else:
            method = more_accurate(Histogram(epsilon=epsilon), PooledShape(epsilon=epsilon), claims)
            made[BASIC] = basic_release(claims, epsilon, seeded(seed))
            made[OURS] = method.release(claims, seeded(seed)).reports()
        for name, reports in made.items():
            errors.setdefault(name, []).append(float(np.abs(WeightedMean().fit(reports).truth - truth).mean()))
        errors.setdefault("constant", []).append(float(np.abs(truth - np.median(truth)).mean()))
    lines: Row = {name: float(np.mean(errors.pop(name))) for name in ("unprotected", "constant")}
    lines |= {"claimed_epsilon": epsilon, "exact_epsilon": math.inf if epsilon is None else epsilon}
    return [_scored(CLAIMS, name, found, lines) for name, found in errors.items()]


MEASURES: dict[str, Callable[[dict[str, Any]], list[Row]]] = {
    NUMBERS: _numbers, BINARY: _labels, CLAIMS: _synthetic_claims
}  # fmt: skip


def _row(panel: str, name: str, values: Row) -> Row:
    return {column: values.get(column) for column in COLUMNS} | {"panel": panel, "mechanism": name}


def _scored(panel: str, name: str, errors: list[float], values: Row) -> Row:
    """Return the row of a method with these errors."""
    count = len(errors)
    spread = float(np.std(errors, ddof=1) / math.sqrt(count)) if count > 1 else None
    inference = INFERENCE[panel if name == OURS else name]
    measured: Row = {
        "inference": inference,
        "error": float(np.mean(errors)),
        "standard_error": spread,
        "repeats": count,
    }
    return _row(panel, name, values | measured)


class Panel(NamedTuple):
    """Contents of a panel.

    Attributes:
        title: first line.
        axis: name of the vertical axis.
        colors: of the lines, by name.
    """

    title: str
    axis: str
    colors: dict[str, str]


BEST = "#0d9488"
PANELS = {
    NUMBERS: Panel(
        "Numbers 0 to 9: 2,000 workers, 200 tasks",
        "mean absolute error",
        {"Sun: RR": "#d97706", "Sun: LP": "#db2777", "Sun: MF": "#8b5cf6", OURS: BEST},
    ),
    BINARY: Panel(
        "Yes or no: 64 workers, 2,134 tasks",
        "share of wrong truths",
        {ONE_LAYER: "#d97706", TWO_LAYER: "#db2777", WANG: "#3b82f6", OURS: BEST},
    ),
    CLAIMS: Panel(
        "Synthetic claims: 247 workers, 129 lengths",
        "error in metres",
        {BASIC: "#d97706", PRISCROWD: "#db2777", OURS: BEST},
    ),
}
"""Panels of the picture; with constant and unprotected each has six lines at most. The table has all rows."""
NEVER = 12.0
"""Place of infinite epsilons on the axis."""
TICKS = (0.25, 0.5, 1, 2, 3, 5, 8)


def draw(rows: list[Row]) -> Figure:
    """Draw one panel per crowd, every line named at its end, for light and dark pages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 8.4), layout="constrained", facecolor="none")
    for axes, (name, panel) in zip(figure.subplots(3, 1), PANELS.items(), strict=True):
        mine = [row for row in rows if row["panel"] == name]
        ends = []
        for line, color in panel.colors.items():
            points = sorted({(_place(row), float(row["error"] or 0)) for row in mine if row["mechanism"] == line})
            axes.plot(*zip(*points, strict=True), color=color, marker="o", ms=4, lw=2.2 if line == OURS else 1.5)
            ends.append((points[-1][1], line, color))
        for line, style in (("constant", "--"), ("unprotected", ":")):
            height = float(np.mean([float(row[line] or 0) for row in mine]))
            axes.axhline(height, color=INK, ls=style, lw=1.3)
            ends.append((height, f"best {line}" if line == "constant" else line, INK))
        _finish(axes, panel, ends)
    axes.set_xlabel("exact epsilon of one answer (∞: no guarantee)", color=INK)
    return figure


def _place(row: Row) -> float:
    """Return the place of a row on the axis."""
    return min(float(row["exact_epsilon"] or 0), NEVER)


def _finish(axes: Axes, panel: Panel, ends: list[tuple[float, str, str]]) -> None:
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
    axes.set_title(panel.title, color=INK, fontsize=11, loc="left")
    axes.set_ylabel(panel.axis, color=INK)
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
    """Return that no method has less error than crowdveil at the same exact epsilon, and which promises do not hold."""
    ours = [row for row in rows if row["mechanism"] == OURS]
    pairs = [
        (one, other)
        for one in ours
        for other in rows
        if other["mechanism"] != OURS and other["panel"] == one["panel"] and abs(_place(other) - _place(one)) < 0.001
    ]
    ahead = all(_error(one) < _error(other) + _margin(one, other) for one, other in pairs)
    clear = all(_error(one) < 0.5 * _error(other) for one, other in pairs if one["panel"] != BINARY)
    agree = all(
        abs(_error(one) - _error(other)) < _margin(one, other)
        for one, other in pairs
        if one["panel"] == BINARY and _place(one) >= 1
    )
    scarce = min((row for row in ours if row["panel"] == NUMBERS), key=_place)
    two_layer = [row for row in rows if row["mechanism"] == TWO_LAYER]
    least = math.floor(10 * min(_place(row) for row in two_layer)) / 10
    trivial = all(_error(row) > float(row["constant"] or 0) for row in rows if row["mechanism"] == "Sun: MF")
    none = all(row["exact_epsilon"] == math.inf for row in rows if row["mechanism"] in ("Sun: MF", PRISCROWD))
    first = min(float(row["claimed_epsilon"] or 0) for row in two_layer)
    sentence = (
        "at the same exact epsilon crowdveil has less than half of the error of every published method on numbers and "
        "on synthetic claims; on binary labels all methods agree within two standard errors from epsilon 1 on, but "
        f"two-layer costs an exact epsilon of {least:g} or more where {first:g} is claimed; matrix factorization and "
        "PrisCrowd have no finite epsilon, and matrix factorization is worse than the best constant; on numbers at "
        f"epsilon {_place(scarce):g} crowdveil has {_error(scarce) / float(scarce['constant'] or 1):.0%} of the "
        "constant's error, so that there is little to learn."
    )
    return Verdict("reproduced in part", sentence, ahead and clear and agree and trivial and none and least > 5)


def _error(row: Row) -> float:
    return float(row["error"] or 0)


def _margin(one: Row, other: Row) -> float:
    """Return two standard errors of a difference; of one repeat 0.04."""
    return 2 * math.hypot(*(float(row["standard_error"] or 0.014) for row in (one, other)))


EXHIBIT = Exhibit(
    name="beyond/summary",
    title="Error of inferred truths against exact epsilon",
    source="All papers, on crowds of their sizes",
    columns=COLUMNS,
    configurations=configurations,
    measure=measure,
    paper=(),
    draw=draw,
    verdict=verdict,
    open_parameters=(
        OpenParameter(
            "rank, ridge and profiles of MF; NULL of LP", "as in sun2018", "in sun2018/parameters", "See there."
        ),
        OpenParameter("weight function of truth discovery", "ln(p / (1 - p))", "in li2018/table2", "See there."),
        OpenParameter("weights and bandwidth of PrisCrowd", "as in huai2019", "in huai2019/table2", "See there."),
    ),
    notes=(
        "Unit: a single answer. *Numbers*: 2,000 workers, 200 tasks, 10 % answered, truths N(0, 1) clipped to 0 .. 9 "
        "(Sun et al.), participation protected; error is the mean absolute error. *Labels*: simulated with the size of "
        "Duchenne smiles (64 workers, 2,134 tasks, 17,729 answers), abilities uniform in 0.5 .. 1, participation "
        "public; error is the share of wrong truths. *Synthetic claims*: the simulated floorplan of huai2019, curator "
        "trusted, participation public; error is in metres, of weighted means of the released claims.",
        "Published methods use the inference of their papers. crowdveil: on numbers a channel designed from public "
        "numbers and `gaussian` with the public prior; on labels randomized response and the default method, which "
        "reads the channel; on claims the method that `crowdveil synthesize` chooses by its expected error. Nothing is "
        "chosen on known truths. *Unprotected* is crowdveil's method on the answers themselves, *constant* the best "
        "single number or label for all tasks. 2-Layer of Sun et al. is in the table only: at the same exact "
        "epsilon it is never below RR.",
    ),
)
