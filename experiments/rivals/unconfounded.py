"""Truths by every mechanism with every inference at equal exact epsilon of a cell, on four real sets and two crowds.

Sets: `dog` and `web_zhou` (labels), `n_emotion` and `weather_temperature` (numbers on a public scale), read from the
folder CROWDVEIL_DATA. Crowds: "ten labels" and "peer". Participation is public, except for
`matrix-factorization`, which has no public form. A design is told the distribution of truths and the workers'
deviations where its name ends in "told"; else it has the defaults of `perturb`.

Within a draw all inferences read the same reports. Inference without a channel reads reports as answers: a report of
labels is the likeliest label, one of them at random if several are, and a report of numbers is a number with the
answer as its mean (or as near as the channel allows). Intervals resample draws and gold tasks together, 95 %.

    python -m experiments.rivals.unconfounded [SET...]   measures sets anew, within about 20 minutes for all
    python -m experiments.rivals.unconfounded_pages      writes tables and picture
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from experiments.rivals import inferences as rivals
from experiments.rivals.inferences import Numbers, Sent
from experiments.rows import four_digits, read_rows, write_rows
from experiments.utility import real_tables
from experiments.utility.label_mechanisms import TEN_LABELS, answers_and_gold
from experiments.utility.mechanisms_on_crowds import KINDS, TOLERANCE_STEPS, label_prior

from crowdveil import Channel, DawidSkene, Gaussian, HierarchicalDawidSkene, MajorityVote, OneCoin, Reports, Scale
from crowdveil.answers.datasets import load
from crowdveil.answers.facts.prior import Prior
from crowdveil.comparison.demo.crowds import every_nth_task
from crowdveil.design.mechanism_from_settings import Expectation, MechanismSettings, build_mechanism
from crowdveil.em.estimator import fit_without_intervals
from crowdveil.estimators import WeightedVote
from crowdveil.estimators.factorization_mean import FactorizationMean
from crowdveil.inference.scores.gold_errors import align_gold, gold_codes, tied_label_weights
from crowdveil.mechanisms import MatrixFactorization, TwoLayer
from crowdveil.planning.candidates import channel_key
from crowdveil.published import PrivateDawidSkene
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb_cells, perturb_reports
from crowdveil.simulate.sums import sum_device_reports

RESULTS = Path(__file__).parent / "results" / "unconfounded.csv"
HALVES = Path(__file__).parent / "results" / "unconfounded_halves.csv"
LABELS, NUMBERS = ("dog", "web_zhou", TEN_LABELS), ("n_emotion", "weather_temperature", "peer")
CROWDS = (TEN_LABELS, "peer")
OF_CROWDS = {"peer": "peer, 5"}
"""Kinds of crowds with another name there."""
EVERY = {"web_zhou": 4, "n_emotion": 2, "weather_temperature": 16}
"""Stride of the tasks that are used, to save time; of the temperatures, of the tasks that `real_tables` uses."""
EPSILONS, CURVE = (1.0, 3.0), (0.5, 2.0, 4.0, 6.0)
"""Epsilons with every inference; those of real sets with one inference for each mechanism."""
DRAWS, CURVE_DRAWS, RESAMPLES = 50, 20, 400
MOST_SYMBOLS = 256
"""`dawid-skene` and `one-coin` are left out for channels with more symbols, to save time."""

ONE_LAYER, TWO_LAYER, FACTORS = "randomized-response", TwoLayer.name, MatrixFactorization.name
CHOSEN, TOLD = ("quantized-response", "designed"), "designed, told"
LABEL_MECHANISMS = (ONE_LAYER, TWO_LAYER, *CHOSEN, "subset-selection", "optimized-unary-encoding")
NUMBER_MECHANISMS = ("laplace", ONE_LAYER, "staircase", "piecewise", "ogpm", "square-wave", *CHOSEN)
ANSWERS = "answers"
PRIVATE, DEFAULT, THROUGH = PrivateDawidSkene.name, HierarchicalDawidSkene.name, Gaussian.name
AS_ANSWERS: Mapping[str, Any] = {
    "weighted-vote": WeightedVote(),
    "dawid-skene, no channel": DawidSkene(tolerance=1e-4),
}
BY_CHANNEL: Mapping[str, Any] = {
    "majority-vote": MajorityVote(),
    PRIVATE: PrivateDawidSkene(),
    "one-coin": OneCoin(),
    "dawid-skene": DawidSkene(),
    DEFAULT: HierarchicalDawidSkene(),
}
AS_NUMBERS = ("mean", "CRH", "noise-aware weights")
LABEL_INFERENCES, NUMBER_INFERENCES = (*AS_ANSWERS, *BY_CHANNEL), (*AS_NUMBERS, THROUGH, f"{THROUGH}, told")
PAIRS = {
    "labels": ((ONE_LAYER, "weighted-vote"), ("subset-selection", DEFAULT)),
    "numbers": (("laplace", "CRH"), ("ogpm", THROUGH)),
}
"""Mechanism and inference of the papers, and those that this package recommends where nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Mean error of a mechanism with an inference.

    Attributes:
        data, mechanism, inference: names; the mechanism is "answers" without protection.
        epsilon, exact: asked for, and exact, of a cell; None without protection.
        draws, tasks: number of draws, and of gold tasks in each.
        error, low, high: share of wrong labels, or mean absolute error, and its interval.
        constant: error of the best constant, chosen with the truths.
        gain_low, gain_high: interval of the constant's error less this one.
        unprotected: error of the same inference from the answers.
    """

    data: str
    epsilon: float | None
    exact: float | None
    mechanism: str
    inference: str
    draws: int
    tasks: int
    error: float
    low: float
    high: float
    constant: float
    gain_low: float
    gain_high: float
    unprotected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """Errors when the papers' mechanism and inference are replaced, one at a time and both, and what each takes off.

    Attributes:
        data, epsilon: set, and epsilon of a cell.
        papers, inference_only, mechanism_only, both: errors after nothing, one half or both were replaced.
        by_inference, by_mechanism: fall of the error by a half, mean over both orders of replacement, with intervals.
    """

    data: str
    epsilon: float
    papers: float
    inference_only: float
    mechanism_only: float
    both: float
    by_inference: float
    inference_low: float
    inference_high: float
    by_mechanism: float
    mechanism_low: float
    mechanism_high: float


@dataclass(frozen=True, eq=False)
class Case:
    """Answers with known truths; `told` is what a design may know, or None."""

    name: str
    answers: Reports
    gold: Mapping[str, Any]
    told: Expectation | None = None

    @property
    def scale(self) -> Scale | None:
        """Scale of numbers; None for labels."""
        return self.answers.alphabet if isinstance(self.answers.alphabet, Scale) else None

    def number_errors(self, truth: Numbers) -> Numbers:
        """Return the absolute error of each gold task from truths of all tasks, moved into the scale."""
        assert self.scale is not None
        found = dict(zip(self.answers.tasks.tolist(), np.clip(truth, self.scale.low, self.scale.high), strict=True))
        return np.array([abs(found[task] - known) for task, known in self.gold.items()])

    def label_errors(self, estimate: Any) -> Numbers:
        """Return for each gold task the share of wrong labels among the most probable ones."""
        aligned = align_gold(estimate, self.gold)
        return 1 - tied_label_weights(aligned)[np.arange(len(aligned.at)), gold_codes(aligned)]

    @property
    def constant_errors(self) -> Numbers:
        """Error of each gold task by the best constant."""
        known = np.array(list(self.gold.values()))
        if self.scale is not None:
            return np.abs(known - np.median(known))
        names, count = np.unique(known.astype(str), return_counts=True)
        return (known.astype(str) != names[count.argmax()]).astype(float)


def case_of(name: str, seed: int) -> Case:
    """Return a set, or the crowd of a seed."""
    return _crowd(name, seed) if name in CROWDS else _real_set(name)


def _crowd(name: str, seed: int) -> Case:
    if name == TEN_LABELS:
        return Case(name, *answers_and_gold(name, seed))
    kind = KINDS[OF_CROWDS.get(name, name)]
    answers, truth = kind.make(seed)
    prior = label_prior(kind)
    told = None if prior is None else Expectation(prior=Prior(probabilities=prior), sigmas=kind.sigmas)
    return Case(name, answers, dict(zip(answers.tasks.tolist(), truth.tolist(), strict=True)), told)


@cache
def _real_set(name: str) -> Case:
    if name == "n_emotion":
        answers, truth = KINDS[name].make(0)
        gold = dict(zip(answers.tasks.tolist(), truth.tolist(), strict=True))
    elif name in NUMBERS:
        answers, gold = real_tables.answers_of(name), dict(load(name, duplicates="first").gold)
    else:
        answers, gold = answers_and_gold(name, 0)
    answers = every_nth_task(answers, EVERY.get(name, 1))
    kept = set(answers.tasks.tolist())
    convert: Callable[[Any], Any] = float if name in NUMBERS else str
    known = {task: convert(truth) for task, truth in gold.items() if task in kept}
    return Case(name, answers, {task: truth for task, truth in known.items() if truth == truth})


def channels(case: Case, epsilon: float) -> dict[str, Channel]:
    """Return the channel of every mechanism that has one for each cell."""
    found: dict[str, Channel] = {}
    for name in LABEL_MECHANISMS if case.scale is None else (*NUMBER_MECHANISMS, TOLD):
        expected = case.told if name == TOLD else Expectation()
        if name == TWO_LAYER or expected is None:
            continue
        settings = MechanismSettings(
            name=name.removesuffix(", told"), epsilon=epsilon, participation="public", expected=expected
        )
        channel = build_mechanism(settings, case.answers.alphabet, tasks=1).channel()
        assert isinstance(channel, Channel)
        found[name] = channel
    return found


def read_as_labels(reports: Reports, channel: Channel, answers: Reports, seed: int) -> Reports:
    """Return each report as its likeliest label, one of them at random if several are."""
    table = channel.probabilities
    likeliest = np.isclose(table, table.max(axis=0), rtol=1e-9, atol=0)[:, reports.value].T
    drawn = np.random.default_rng([seed, 2]).random(likeliest.shape)
    value = np.where(likeliest, drawn, -1.0).argmax(axis=1)
    return replace(reports, value=value, alphabet=answers.alphabet)


def read_as_numbers(scale: Scale, channel: Channel) -> tuple[Numbers, float]:
    """Return a number for each symbol, and the variance of a report's number, mean over the answers.

    Of all numbers whose means are the answers, or as near as the channel allows, those with the least second moment.
    """
    table = channel.probabilities
    root = np.sqrt(table.mean(axis=0))
    middle = (scale.low + scale.high) / 2
    number = np.linalg.pinv(table / root, rcond=1e-6) @ (scale.values - middle) / root
    variance = table @ number**2 - (table @ number) ** 2
    return number + middle, float(variance.mean())


def label_ways(case: Case, reports: Reports, channel: Channel | None, seed: int, asked: Any) -> Iterator[Any]:
    """Yield inference and errors of the gold tasks, for the inferences that are asked for."""
    plain = reports if channel is None else read_as_labels(reports, channel, case.answers, seed)
    for name in asked:
        if name in AS_ANSWERS:
            yield name, case.label_errors(fit_without_intervals(AS_ANSWERS[name], plain))
        elif name in BY_CHANNEL:
            yield name, case.label_errors(fit_without_intervals(BY_CHANNEL[name], reports, channel=channel))


def number_ways(case: Case, reports: Reports, channel: Channel | None, asked: Any) -> Iterator[Any]:
    """Yield inference and errors of the gold tasks, for the inferences that are asked for."""
    scale = case.scale
    assert scale is not None
    number, variance = (scale.values, 0.0) if channel is None else read_as_numbers(scale, channel)
    cells = reports.task.astype(np.int64), reports.worker.astype(np.int64)
    sent = Sent(*cells, number[reports.value], len(reports.tasks), len(reports.workers), scale.low, scale.high)
    simple: dict[str, Callable[[], Numbers]] = {
        "mean": lambda: rivals.mean(sent),
        "CRH": lambda: rivals.crh(sent),
        "noise-aware weights": lambda: rivals.noise_aware_weights(sent, np.full(sent.workers, variance)),
    }
    told = None if case.told is None else case.told.prior
    for name in asked:
        if name in simple:
            yield name, case.number_errors(simple[name]())
        elif name == THROUGH or told is not None:
            method, prior = Gaussian(tolerance=TOLERANCE_STEPS * scale.step), None if name == THROUGH else told
            yield name, case.number_errors(method.fit(reports, channel=channel, prior=prior).truth)


def case_ways(case: Case, reports: Reports, channel: Channel | None, seed: int, asked: Any) -> Iterator[Any]:
    """Yield inference and errors of the gold tasks, of labels or numbers."""
    if case.scale is None:
        return label_ways(case, reports, channel, seed, asked)
    return number_ways(case, reports, channel, asked)


def asked_of(mechanism: str, channel: Channel, data: str, curve: bool) -> tuple[str, ...]:
    """Return the inferences for a mechanism: all that read its reports, or the best known one and the papers' pair."""
    (papers, simple), (_, own) = PAIRS["labels" if data in LABELS else "numbers"]
    if curve:
        return (own, simple) if mechanism == papers else (own,)
    left = set() if mechanism in (ONE_LAYER, TWO_LAYER) else {PRIVATE}
    left |= {"dawid-skene", "one-coin"} if len(channel.outputs) > MOST_SYMBOLS else set()
    return tuple(name for name in (LABEL_INFERENCES if data in LABELS else NUMBER_INFERENCES) if name not in left)


Ways = dict[tuple[str, str], list[Numbers]]
"""Errors of the gold tasks by mechanism and inference, one array a draw."""
Only = Mapping[str, tuple[str, ...]] | None
"""Inferences by mechanism that are measured; None for all."""


def senders(case: Case, epsilon: float, seed: int) -> Iterator[tuple[str, float, Channel, Callable[[], Reports]]]:
    """Yield mechanism, exact epsilon, channel of a cell, and a function that draws the reports."""
    for name, channel in made_channels(case.name, epsilon).items():
        yield name, channel.epsilon, channel, partial(perturb_cells, case.answers, channel, seeded(10_000 + seed))
    if case.scale is None:
        two = TwoLayer.widest_for_cell_epsilon(alphabet=case.answers.alphabet, epsilon=epsilon, participation="public")
        drawn = partial(perturb_reports, case.answers, two, seeded(10_000 + seed))
        yield TWO_LAYER, two.guarantee.epsilon, two.marginal_channel(), drawn


def draw_once(case: Case, epsilon: float, seed: int, ways: Ways, exact: dict[str, float], only: Only) -> None:
    """Add the errors of one draw of every mechanism; mechanisms with one table have the same reports."""
    found: dict[Any, dict[str, Numbers]] = {}
    for name, loss, channel, drawn in senders(case, epsilon, seed):
        exact[name] = loss
        own = found.setdefault((name == TWO_LAYER, channel_key(channel)), {})
        asked = asked_of(name, channel, case.name, epsilon in CURVE) if only is None else only.get(name, ())
        missing = [one for one in asked if one not in own]
        if missing:
            own.update(case_ways(case, drawn(), channel, seed, missing))
        for inference in asked:
            if inference in own:
                ways.setdefault((name, inference), []).append(own[inference])
    if case.scale is not None and (only is None or FACTORS in only):
        mechanism = MatrixFactorization(alphabet=case.scale, epsilon=epsilon)
        exact[FACTORS] = mechanism.guarantee.epsilon
        ways.setdefault((FACTORS, FactorizationMean.name), []).append(factored(case, mechanism, seed))


def factored(case: Case, mechanism: MatrixFactorization, seed: int) -> Numbers:
    """Return the errors of the gold tasks by the sums of `matrix-factorization`."""
    summed = sum_device_reports(case.answers, mechanism, seeded(10_000 + seed)).summed
    tasks, workers = case.answers.tasks, case.answers.workers
    totals = mechanism.totals_in_answer_units(summed, tasks=len(tasks), workers=len(workers))
    return case.number_errors(FactorizationMean().fit(totals, tasks=tasks, workers=workers).truth)


@cache
def made_channels(name: str, epsilon: float) -> dict[str, Channel]:
    """Return `channels` of a set or kind of crowd."""
    return channels(case_of(name, 0), epsilon)


def resampled(errors: Numbers) -> Numbers:
    """Return means of [draw, gold task] with draws and tasks resampled; the same shape is resampled alike."""
    rng, (draws, tasks) = np.random.default_rng(0), errors.shape
    first = rng.multinomial(draws, np.full(draws, 1 / draws), RESAMPLES) / draws
    second = rng.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES) / tasks
    return np.einsum("bt,bt->b", first @ errors, second)


def interval(values: Numbers) -> tuple[float, float]:
    """Return the 95 % interval of resampled values."""
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def measured(
    name: str, epsilon: float | None, unprotected: Mapping[str, float], only: Only = None
) -> tuple[list[Row], list[Half]]:
    """Return the rows of a set at one epsilon, or without protection, and its halves."""
    real = name not in CROWDS
    draws = 1 if epsilon is None and real else CURVE_DRAWS if epsilon in CURVE else DRAWS
    ways: Ways = {}
    exact: dict[str, float] = {}
    constants = []
    for seed in range(draws):
        case = case_of(name, seed)
        constants.append(case.constant_errors)
        if epsilon is not None:
            draw_once(case, epsilon, seed, ways, exact, only)
            continue
        every = LABEL_INFERENCES if case.scale is None else NUMBER_INFERENCES
        for inference, errors in case_ways(case, case.answers, None, seed, every):
            ways.setdefault((ANSWERS, inference), []).append(errors)
    means = {way: np.array(errors) for way, errors in ways.items()}
    rows = [
        row_of(name, epsilon, way, errors, np.array(constants), exact.get(way[0]), unprotected.get(way[1]))
        for way, errors in means.items()
    ]
    return rows, [] if only is not None or epsilon not in EPSILONS else [halves(name, epsilon, means)]


def row_of(
    name: str,
    epsilon: float | None,
    way: tuple[str, str],
    errors: Numbers,
    constant: Numbers,
    exact: float | None,
    unprotected: float | None,
) -> Row:
    """Return the row of a mechanism and inference from errors [draw, gold task]."""
    own = resampled(errors)
    (low, high), (gain_low, gain_high) = interval(own), interval(resampled(constant) - own)
    return Row(
        data=name,
        epsilon=epsilon,
        exact=exact,
        mechanism=way[0],
        inference=way[1],
        draws=len(errors),
        tasks=errors.shape[1],
        error=float(errors.mean()),
        low=low,
        high=high,
        constant=float(constant.mean()),
        gain_low=gain_low,
        gain_high=gain_high,
        unprotected=float(errors.mean()) if epsilon is None else unprotected,
    )


def halves(name: str, epsilon: float, means: Mapping[tuple[str, str], Numbers]) -> Half:
    """Return what each half takes off the error."""
    papers, ours = PAIRS["labels" if name in LABELS else "numbers"]
    each = [means[mechanism, inference] for mechanism, inference in product((papers[0], ours[0]), (papers[1], ours[1]))]
    nothing, inference, mechanism, both = (float(one.mean()) for one in each)
    by_inference = (each[0] - each[1] + each[2] - each[3]) / 2
    by_mechanism = (each[0] - each[2] + each[1] - each[3]) / 2
    first, second = interval(resampled(by_inference)), interval(resampled(by_mechanism))
    return Half(
        data=name,
        epsilon=epsilon,
        papers=nothing,
        inference_only=inference,
        mechanism_only=mechanism,
        both=both,
        by_inference=float(by_inference.mean()),
        inference_low=first[0],
        inference_high=first[1],
        by_mechanism=float(by_mechanism.mean()),
        mechanism_low=second[0],
        mechanism_high=second[1],
    )


def measured_set(name: str) -> tuple[list[Row], list[Half]]:
    """Return all rows and halves of a set."""
    rows, found = measured(name, None, {})
    unprotected = {row.inference: row.error for row in rows}
    for epsilon in sorted((*EPSILONS, *(() if name in CROWDS else CURVE))):
        more, halved = measured(name, epsilon, unprotected)
        rows, found = rows + more, found + halved
    return rows, found


def replace_set(path: Path, kind: type, name: str, rows: list[Any]) -> None:
    """Write the rows of a set in place of its earlier ones."""
    kept = [row for row in read_rows(path, kind) if row.data != name] if path.exists() else []
    ordered = sorted(kept + rows, key=lambda row: (*LABELS, *NUMBERS).index(row.data))
    with path.open("w", newline="", encoding="utf-8") as stream:
        write_rows(stream, kind, ordered, four_digits)


if __name__ == "__main__":
    for name in sys.argv[1:] or (*LABELS, *NUMBERS):
        rows, found = measured_set(name)
        replace_set(RESULTS, Row, name, rows)
        replace_set(HALVES, Half, name, found)
