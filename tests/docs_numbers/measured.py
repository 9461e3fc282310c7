"""Claims about public sets and committed results."""

import csv
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from experiments.methods import with_gold
from experiments.methods.comparison import SETS, log_loss, reported_gold
from experiments.papers.li2018 import comparison
from experiments.papers.li2018.seeds import pooled
from experiments.papers.li2018.tradeoff import clearly_lower
from experiments.papers.run import read_rows
from experiments.papers.wang2018.theorem2 import abilities_of
from experiments.rows import read_rows as read_rows_of_kind
from experiments.utility import confidence

from crowdveil import Categories, DawidSkene, Estimate, HierarchicalDawidSkene, MajorityVote, OneCoin, WeightedMean
from crowdveil.estimators import Estimator, Kos, Lfc, Mace, WeightedVote
from crowdveil.inference.dependence import measure_dependence
from crowdveil.inference.plain_fit import DEPENDENT_CORRELATION
from crowdveil.inference.scores import metrics
from crowdveil.inference.scores.gold_errors import align_gold
from crowdveil.planning.prediction import DEPARTURES
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd
from tests.docs_numbers.claim import ROOT, Figures, claims_of, page_text
from tests.planning.test_prediction import cases, covered, without
from tests.real_data import load_or_skip

EXPERIMENTS = ROOT / "experiments"
SMALL, HEAVY, POPULATION = (
    ("peer_grading_mooc", "snow_valence", "n_emotion"),
    ("weather_temperature", "population_tf", "population_cut"),
    ("population_tf", "population_cut"),
)


@cache
def accuracy(method: Estimator[Any, Any], data: str) -> float:
    """Return the share of right labels on a public set."""
    one = load_or_skip(data)
    return metrics.accuracy(method.fit(one.answers), one.gold)


def accuracies(*fits: tuple[Estimator[Any, Any], str]) -> Callable[[], Figures]:
    """Return the computation of several accuracies."""
    return lambda: tuple(accuracy(method, data) for method, data in fits)


def accuracy_by_answer_shares(method: Estimator[Any, Any], data: str) -> float:
    """Return the accuracy with the shares of the answers as public prior."""
    one = load_or_skip(data)
    assert one.answers.alphabet is not None
    shares = np.bincount(one.answers.value, minlength=one.answers.alphabet.size) / len(one.answers)
    prior = dict(zip(one.answers.alphabet.names, shares.tolist(), strict=True))
    return metrics.accuracy(method.fit(one.answers, prior=prior), one.gold)


@cache
def default_fit(data: str, correlation: float, vote_share: float = 0.2) -> Estimate:
    """Return the estimate of the default method."""
    method = HierarchicalDawidSkene(error_correlation=correlation, vote_share=vote_share)
    return method.fit(load_or_skip(data).answers)


def default_scores(data: str, correlation: float, vote_share: float = 0.2) -> tuple[float, float, float]:
    """Return accuracy, calibration error and log-loss of the default, as the comparison of methods measures them."""
    fit, gold = default_fit(data, correlation, vote_share), reported_gold(load_or_skip(data))
    found = metrics.score(fit, gold)
    assert found.calibration_error is not None
    return 1 - found.error, found.calibration_error, log_loss(align_gold(fit, gold))


def answers_depend(data: str) -> bool:
    """Return whether answers agree more than the default's model predicts, by two standard errors."""
    fit = default_fit(data, 0.25)
    assert fit.workers.confusion is not None
    found = measure_dependence(load_or_skip(data).answers, fit.workers.confusion, fit.state.shared["class_prior"])
    return found.copied_lower_bound > 0


def discount_of_dependent_answers() -> Figures:
    """Return mean calibration errors, then log-losses: before and after the larger correlation of dependent answers."""
    chosen = {data: DEPENDENT_CORRELATION if answers_depend(data) else 0.25 for data in SETS}
    before = np.mean([default_scores(data, 0.25) for data in SETS], axis=0)
    after = np.mean([default_scores(data, correlation) for data, correlation in chosen.items()], axis=0)
    assert list(chosen.values()).count(DEPENDENT_CORRELATION) == 5
    return before[1], after[1], before[2], after[2]


@cache
def constant_error(data: str) -> float:
    """Return the error of the best constant on a public set."""
    one = load_or_skip(data)
    return metrics.score(MajorityVote().fit(one.answers), one.gold).baseline


def peer_grading() -> Figures:
    """Return reports per worker, and the errors of the weighted and of the plain mean."""
    one = load_or_skip("peer_grading_mooc")
    reports = one.answers
    means = np.bincount(reports.task, reports.value) / np.bincount(reports.task)
    place = {name: number for number, name in enumerate(reports.tasks)}
    plain = float(np.mean([abs(means[place[task]] - float(truth)) for task, truth in one.gold.items()]))
    return len(reports) / len(reports.workers), metrics.score(WeightedMean().fit(reports), one.gold).error, plain


def weighted_mean_steps() -> Figures:
    """Return the steps on peer grading, steps that do not suffice on the population sets, and the range elsewhere."""
    creeping = [WeightedMean(max_steps=4000).fit(load_or_skip(data).answers) for data in POPULATION]
    assert not any(fit.converged for fit in creeping)
    quick = [WeightedMean().fit(load_or_skip(data).answers).steps for data in (*SMALL[1:], HEAVY[0])]
    peer = WeightedMean(max_steps=2000).fit(load_or_skip("peer_grading_mooc").answers)
    return peer.steps, "4,000", min(quick), max(quick)


def sparsities() -> Figures:
    """Return workers, tasks and answers of the word senses, and the largest, least and mean sparsity of a worker."""
    answers = load_or_skip("snow_wsd").answers
    sparsity = 1 - answers.per_worker / len(answers.tasks)
    shape = len(answers.workers), len(answers.tasks), len(answers)
    return *shape, float(sparsity.max()), float(sparsity.min()), float(sparsity.mean())


def adult_sparsity() -> Figures:
    """Return the answers and workers of AdultContent2, and its mean sparsity with 11,040 tasks."""
    answers = load_or_skip("adult2").answers
    return len(answers), len(answers.workers), 1 - len(answers) / (len(answers.workers) * 11_040)


def rows_of(results: str) -> list[dict[str, str]]:
    """Return the rows of a committed table."""
    with (EXPERIMENTS / results).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def coverage(method: str = "") -> tuple[list[float], list[float]]:
    """Return the covered shares of abilities and of truths of all settings of a method, in percent, ascending."""
    rows = [row for row in rows_of("utility/results/coverage_labels.csv") if method in ("", row["method"])]
    abilities, truths = (sorted(100 * float(row[name]) for row in rows) for name in ("abilities", "truths"))
    return abilities, truths


def covered_settings() -> Figures:
    """Return the range of covered truths, and of covered abilities without the four largest."""
    abilities, truths = coverage()
    assert len(truths) == 60
    return truths[0], truths[-1], abilities[0], abilities[-5]


def learned_settings(mechanisms: str, participation: str) -> list[dict[str, float]]:
    """Return each setting of the record with a learned prior, its figures over six crowds.

    `mechanisms` is the beginning of their names, `participation` that of its kinds.
    """
    rows = rows_of("utility/results/coverage_learned.csv")
    return [
        {name: (float(one[name]) + float(other[name])) / 2 for name in ("coverage", "error", "expected", "refused")}
        | {"three": min(float(one["coverage"]), float(other["coverage"]))}
        for one, other in zip(rows[::2], rows[1::2], strict=True)
        if one["mechanism"].startswith(mechanisms) and one["participation"].startswith(participation)
    ]


def unknown_participation() -> Figures:
    """Return the number of settings of Laplace, the least coverage, those not identified in some crowd, and the largest
    error as a multiple of the expected one, in the others and in these."""
    settings = learned_settings("laplace", "protected")
    refused, other = ([one for one in settings if (one["refused"] > 0) == wanted] for wanted in (True, False))
    largest = [max(one["error"] / one["expected"] for one in part) for part in (other, refused)]
    return len(settings), 100 * min(one["coverage"] for one in settings), len(refused), *largest


def learned_coverage() -> Figures:
    """Return the number of settings with a learned prior, and the least coverage of six crowds, and of three."""
    settings = learned_settings("", "")
    return len(settings), *(min(1000 * one[name] // 1 / 10 for one in settings) for name in ("coverage", "three"))


def large_sun_crowd() -> Figures:
    """Return error, constant and coverage of Sun's crowd, 90 % NULL, through Laplace at epsilon 3."""
    rows = [
        row
        for row in rows_of("utility/results/coverage_learned.csv")
        if row["crowd"] == "2000x200" and row["sparsity"] == "0.9"
    ]
    names = ("error", "constant", "expected", "coverage")
    return tuple(float(np.mean([float(row[name]) for row in rows])) for name in names)


def covered_truths() -> Figures:
    """Return the range of truths that `dawid-skene` covers."""
    truths = coverage("dawid-skene")[1]
    return truths[0], truths[-1]


def coverage_limits() -> Figures:
    """Return the largest coverage of abilities, and the largest loss of coverage."""
    abilities, _ = coverage()
    return abilities[-1], 90 - abilities[0]


def epsilon_zero() -> Figures:
    """Return error and standard error of the weighted vote on Duchenne at claim 0."""
    wanted = {
        "crowd": "duchenne", "mechanism": "two-layer", "inference": "truth discovery", "drawn": "in every trial"
    }  # fmt: skip
    (row,) = (row for row in rows_of("papers/li2018/results/epsilon_zero.csv") if wanted.items() <= row.items())
    return float(row["error"]), float(row["standard_error"])


def one_layer_epsilon_zero() -> Figures:
    """Return our change of truth discovery on Duchenne under one-layer at claim 0, and the printed one."""
    wanted = {
        "mechanism": "one-layer", "equal": "claimed", "weight": "ln(p / (1 - p))", "claimed_epsilon": "0.0",
        "seed": "18",
    }  # fmt: skip
    (row,) = (row for row in rows_of("papers/li2018/results/table3.csv") if wanted.items() <= row.items())
    return float(row["change"]), float(row["printed"])


def clear_claims() -> Figures:
    """Return the smallest claim at which two-layer, and the largest at which one-layer on fewer answers, is better."""
    rows = pooled(read_rows(EXPERIMENTS / "papers/li2018/results/figure4.csv"))
    return (
        min(clearly_lower(rows, comparison.TWO, comparison.ONE_PER_WORKER)),
        max(clearly_lower(rows, comparison.FEWER_ANSWERS, comparison.TWO)),
    )


def vote_as_start() -> Figures:
    """Return in how many crowds the shares of the votes meet (15) of Wang and Xu, of how many, and the vote itself."""
    rows = rows_of("papers/wang2018/results/theorem2.csv")
    found = np.zeros(2, dtype=int)
    for row in rows:
        tasks, gain = int(row["tasks"]), math.tanh(float(row["claimed_epsilon"]) / 2)
        shares = 0.5 - gain * float(abilities_of(row["crowd"], int(row["workers"])).mean() - 0.5)
        found += np.array([shares, float(row["vote"])]) <= math.sqrt(math.log(tasks) / tasks)
    return str(found[0]), str(len(rows)), str(found[1])


def spectral_starts() -> Figures:
    """Return in how many crowds the spectral start meets (15) of Wang and Xu, of how many, and the vote."""
    rows = rows_of("papers/wang2018/results/start.csv")
    met = [sum(float(row[f"start_{name}"]) <= float(row["limit_15"]) for row in rows) for name in ("spectral", "vote")]
    return str(met[0]), str(len(rows)), str(met[1])


def error_by_epsilon(data: str, mechanism: str = "k-RR") -> Callable[[], Figures]:
    """Return the computation of one row of errors: constant, means with standard errors, unprotected."""

    def compute() -> Figures:
        rows = [
            row
            for row in rows_of("utility/results/real_tables.csv")
            if row["data"] == data and row["method"] in ("ordinal-dawid-skene", "gaussian")
        ]
        errors = {
            epsilon: [
                float(row["error"])
                for row in rows
                if row["mechanism"] == mechanism and float(row["epsilon"]) == epsilon
            ]
            for epsilon in (1.0, 3.0, 5.0)
        }
        assert {5} == {len(found) for found in errors.values()}
        (clean,) = (row for row in rows if row["mechanism"] == "unprotected")
        pairs = [(float(np.mean(one)), float(np.std(one, ddof=1) / math.sqrt(5))) for one in errors.values()]
        return (float(clean["constant"]), *(figure for pair in pairs for figure in pair), float(clean["error"]))

    return compute


def row_space_limits() -> Figures:
    """Return floor and least error of a Gaussian V, over all draws of Theorem 5 of Sun et al., and their spreads."""
    rows = [row for row in rows_of("papers/sun2018/results/theorem5.csv") if row["case"] == "gaussian V"]

    def spread(name: str) -> float:
        return math.sqrt(np.mean([float(row[f"{name}_deviation"]) ** 2 for row in rows]))

    def mean(name: str) -> float:
        return float(np.mean([float(row[name]) for row in rows]))

    draws = str(sum(int(row["repeats"]) for row in rows))
    return mean("floor"), draws, spread("floor"), mean("least_error"), spread("least_error")


def attacked_areas() -> Figures:
    """Return the AUC of the participation attack at epsilon 0.1 and rank 50, by ridge."""
    rows = rows_of("papers/sun2018/results/participation.csv")
    mine = {row["ridge"]: row for row in rows if (row["rank"], row["claimed_epsilon"]) == ("50", "0.1")}
    return float(mine["1e-08"]["auc"]), float(mine["0.1"]["auc"])


def calibration() -> Figures:
    """Return the calibration error of `dawid-skene` on AdultContent2."""
    wanted = {"data": "adult2", "method": "dawid-skene"}
    (row,) = (row for row in rows_of("methods/results/methods.csv") if wanted.items() <= row.items())
    return (float(row["calibration_error"]),)


def left_out_coverage() -> Figures:
    """Return how many errors of real sets lie in their interval, widened by the other sets, and of how many."""
    inside = [covered(case, without(name)) for name, found in cases().items() for case in found]
    return sum(inside), len(inside)


def naive_error() -> float:
    """Return the first figure of the table of errors behind channels: weighted vote at epsilon 1."""
    (row,) = re.findall(r"^\| 1 \| ([\d.]+) ", page_text("explanation/channel-aware-inference.md"), re.MULTILINE)
    return float(row)


METHOD = "explanation/estimators/"
CHANNELS = "explanation/channel-aware-inference.md"


def accuracy_with_many_labels() -> Figures:
    """Return the shares of right truths of three methods: 12 workers, 30 answers each, 120 tasks, 30 labels."""
    labels = Categories(tuple(f"label {number:02}" for number in range(30)))
    sized: dict[str, Any] = {"workers": 12, "tasks": 120, "labels": labels, "answers_per_worker": 30}
    crowds = [categorical_crowd(**sized, source=seeded(seed)) for seed in range(5)]
    return tuple(
        1 - float(np.mean([metrics.score(method.fit(crowd.answers), crowd.gold).error for crowd in crowds]))
        for method in (Lfc(), OneCoin(), MajorityVote())
    )


def confidence_of_broken_crowds() -> Figures:
    """Return in percent: truths with a confidence of .95 that are right, of all and of honest crowds; from .99 on, of
    the default and of Dawid-Skene; and abilities in their intervals, of all and of honest crowds."""
    rows = read_rows_of_kind(confidence.RESULTS, confidence.Row)

    def share(part: str, whole: str, method: str = confidence.METHODS[0], family: str = "") -> float:
        some = [row for row in rows if row.method == method and family in row.family]
        return 100 * sum(getattr(row, part) for row in some) / sum(getattr(row, whole) for row in some)

    often, sure, held = ("often_right", "often"), ("sure_right", "sure"), ("covered", "abilities")
    honest = {"family": "honest"}
    return (
        *(share(*often), share(*often, **honest)),
        *(share(*sure), share(*sure, confidence.METHODS[1])),
        *(share(*held), share(*held, **honest)),
    )


def gold_tasks_gain() -> Figures:
    """Return mean accuracies, then calibration errors, with 50 gold tasks and without."""
    rows = [row for row in read_rows_of_kind(with_gold.RESULTS, with_gold.Row) if row.known == 50]
    assert {row.data for row in rows} == set(SETS)
    return tuple(
        float(np.mean([getattr(row, column) for row in rows if row.method == method]))
        for column in ("accuracy", "calibration_error")
        for method in (with_gold.WITH, with_gold.WITHOUT)
    )


CLAIMS = claims_of(
    {
        "explanation/mechanisms/matrix-factorization-published.md": {
            r"$d = 50$ falls from {} at ridge $10^{-8}$ to {} at ridge 0.1.": attacked_areas,
        },
        CHANNELS: {
            "The best constant has {}, the unprotected `dawid-skene` {}.": lambda: (
                constant_error("adult2"),
                1 - accuracy(DawidSkene(), "adult2"),
            ),
            "AdultContent2 (825 workers, 11,028 tasks, {} % of cells answered)": lambda: (
                100 * len(load_or_skip("adult2").answers) / (825 * 11_028),
            ),
        },
        METHOD + "dawid-skene.md": {
            "web search has accuracy {} after 5 steps, {} at convergence": accuracies(
                (DawidSkene(max_steps=5), "web_zhou"), (DawidSkene(), "web_zhou")
            ),
            "(AdultContent2 {}, `majority-vote` {})": accuracies((DawidSkene(), "adult2"), (MajorityVote(), "adult2")),
            "[contain {} to {} %](../uncertainty.md#coverage)": covered_truths,
        },
        METHOD + "gaussian.md": {
            (
                "in {} settings of six crowds each, intervals cover at least {} % of the truths. "
                "In {} settings some crowd is not identified. "
                "The error is at most {} times the expected one in the other settings, {} times in these."
            ): unknown_participation,
            (
                "in {} settings of six crowds each, cover at least {} %, and {} % if three crowds are counted ("
            ): learned_coverage,
            (
                "Sun's crowd with 90 % NULL at epsilon 3 has an error of {} (constant {}, expected {}) and a "
                "coverage of {} ("
            ): large_sun_crowd,
        },
        METHOD + "hierarchical-dawid-skene.md": {
            (
                "this changes the calibration error from {} to {} and the log-loss from {} to {} "
                "(five sets have such an excess)"
            ): discount_of_dependent_answers,
            (
                ".95 and more is right in {} % (honest crowds {}), .99 in {} % (`dawid-skene` {}), and intervals hold "
                "in {} % (honest crowds {})"
            ): confidence_of_broken_crowds,
            r"with $\rho = 0$ and no vote share the calibration error is {} and the log-loss {}.": lambda: tuple(
                np.mean([default_scores(data, 0.0, 0.0) for data in SETS], axis=0)[1:].tolist()
            ),
        },
        METHOD + "kos.md": {
            "(`s_rel` {}, `snow_rte` {})": accuracies((Kos(), "s_rel"), (Kos(), "snow_rte")),
        },
        METHOD + "mace.md": {
            "`d_product` ({} % matches) has {}, from any start": lambda: (
                100 * constant_error("d_product"),
                accuracy(Mace(), "d_product"),
            ),
        },
        "how-to/choose-a-method.md": {
            "accuracy on the other tasks is {} instead of {}, and ECE is {} instead of {}.": gold_tasks_gain,
            (
                "120 tasks, 30 labels and evenly spread errors, `lfc` finds {} of the truths, `one-coin` {} "
                "and a majority vote {}."
            ): accuracy_with_many_labels,
            "On `d_product` ({} % positive) its accuracy is {}, or {} with the answers' shares as `--prior`.": lambda: (
                100 * constant_error("d_product"),
                accuracy(Mace(), "d_product"),
                accuracy_by_answer_shares(Mace(), "d_product"),
            ),
        },
        METHOD + "majority-vote.md": {
            "accuracy on bluebird is {}, that of `dawid-skene` {}.": accuracies(
                (MajorityVote(), "bluebird"), (DawidSkene(), "bluebird")
            ),
        },
        METHOD + "weighted-vote.md": {
            "bluebird {}, `majority-vote` {}.": accuracies((WeightedVote(), "bluebird"), (MajorityVote(), "bluebird")),
            "has error {} at epsilon 1, where the best constant has {}.": lambda: (
                naive_error(),
                constant_error("adult2"),
            ),
        },
        METHOD + "one-coin.md": {
            "with the answers' shares S_Rel has {} instead of {}": lambda: (
                accuracy_by_answer_shares(OneCoin(), "s_rel"),
                accuracy(OneCoin(), "s_rel"),
            ),
            "S_Rel {}, `majority-vote` {}.": accuracies((OneCoin(), "s_rel"), (MajorityVote(), "s_rel")),
            "accuracy on web search is {}, that of `dawid-skene` {}.": accuracies(
                (OneCoin(), "web_zhou"), (DawidSkene(), "web_zhou")
            ),
        },
        METHOD + "weighted-mean.md": {
            (
                "on peer grading ({} reports per worker) the mean absolute error is {}, that of the plain mean {}."
            ): peer_grading,
            (
                "creeps: {} steps on peer grading, over {} on population counts (one report per worker), "
                "{} to {} where workers have 20 reports."
            ): weighted_mean_steps,
        },
        "explanation/mechanisms/two-layer.md": {
            "(weighted vote on Duchenne: {} ± {})": epsilon_zero,
        },
        "explanation/truth-per-epsilon.md": {
            f"| {name} | {{}} | {{}} ± {{}} | {{}} ± {{}} | {{}} ± {{}} | {{}} |": error_by_epsilon(*which)
            for name, which in {
                "AdultContent2, 4 ordered labels": ("adult2",),
                "AdultContent2, assigned cells only": ("adult2", "k-RR, assigned"),
                "web search, 5 grades": ("web_zhou",),
                "web search, assigned cells only": ("web_zhou", "k-RR, assigned"),
                "emotions, -100 to 100": ("n_emotion",),
                "temperatures, 0 to 120 °F": ("weather_temperature",),
            }.items()
        },
        "explanation/verdicts.md": {
            ("truth discovery on Duchenne gives {} under one-layer, less than the printed {}."): one_layer_epsilon_zero,
            (
                "two-layer is better than one-layer over all answers from claim {} up, "
                "and one-layer over fewer answers is better than two-layer up to claim {}."
            ): clear_claims,
            (
                "has {} workers, {} tasks and {} answers. Its sparsities have maximum {}, minimum {} and mean {}:"
            ): sparsities,
            "its {} answers by {} workers give the mean {}.": adult_sparsity,
            (
                "it is {} on average over {} draws of both, with a standard deviation of {}, and only a lower bound: "
                "the least error of any $V^T w$, by linear programming, is {}, with a standard deviation of {} ("
            ): row_space_limits,
            "with Gaussian V and uniform truths the least error is {} on average. |": lambda: (row_space_limits()[3],),
        },
        METHOD + "private-dawid-skene.md": {
            "these shares reach it in {} of {} crowds, the labels of the vote in {}.": vote_as_start,
            "it reaches (15) in {} of {} crowds, the vote in {} (": spectral_starts,
        },
        "explanation/planning.md": {
            "it holds {} of {} errors.": left_out_coverage,
            "the largest departures of {} public sets": lambda: (len(DEPARTURES),),
        },
        "how-to/plan.md": {
            "by how far {} public sets departed": lambda: (len(DEPARTURES),),
        },
        "explanation/uncertainty.md": {
            (
                "the sets contain {} to {} % of the truths. "
                "In all but four of them, the intervals contain {} to {} % of the abilities."
            ): covered_settings,
            (
                "(up to {} % covered). - Behind noise the likelihood is approximated by a parabola, "
                "which costs up to {} % of coverage."
            ): coverage_limits,
            "(calibration error of `dawid-skene` {} without perturbation)": calibration,
        },
    }
)
