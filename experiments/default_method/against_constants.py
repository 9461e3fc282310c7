"""The default for labels behind randomized response, against constants and naive readings, where little is known.

Cells are public sets by epsilon (per answer) and participation; means over seeds. Sets with more than `TASKS` tasks are
a fixed random sample of them, known truths first. The best constant is chosen with gold, the inferred one is the label
that the default finds most often. Naive readings take reports as answers: the vote, and the same method without the
channel; the better one of a cell counts. A public prior is the share of each truth in gold, rounded to tenths, at
least 0.05, as a curator may know it beforehand.
"""

import argparse
import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil import Categories, HierarchicalDawidSkene, MajorityVote, RandomizedResponse, Reports
from crowdveil.data import datasets
from crowdveil.evaluation import metrics
from crowdveil.randomness import seeded
from crowdveil.simulate import perturb

SETS = ("bluebird", "snow_wsd", "snow_rte", "dog", "duchenne", "d_possent", "d_product", "web_zhou")
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
PARTICIPATION: tuple[Any, ...] = ("public", "protected")
TASKS = 1000
SEEDS = 4
MARGIN = 0.01
RESULTS = Path(__file__).parent / "results" / "against_constants.csv"


class Cell(NamedTuple):
    """Mean accuracies of one set, participation and epsilon.

    Attributes:
        default: of the default; `error` is its standard error over seeds.
        known: of the default with a public prior.
        constant, inferred: of the best constant, chosen with gold, and of the inferred one.
        frequent: of the most frequent label of the answers before they were perturbed.
        gated: of the better one of default and inferred constant, chosen with gold for every seed: more than any rule
            can reach that falls back to the inferred constant.
        vote, unread: of the vote, and of the default without the channel.
        calibration: expected calibration error of the default.
    """

    set: str
    participation: str
    epsilon: float
    default: float
    error: float
    known: float
    constant: float
    inferred: float
    frequent: float
    gated: float
    vote: float
    unread: float
    calibration: float

    @property
    def naive(self) -> float:
        """Accuracy of the better naive reading."""
        return max(self.vote, self.unread)


def main() -> None:
    """Measure all cells, write them, and print how many are below a bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    cells = []
    for one in cells_of(given.sets.split(","), given.seeds):
        print(one.set, one.participation, f"{one.epsilon:g}", *(f"{value:.3f}" for value in one[3:]), flush=True)
        cells.append(one)
    write(cells, given.out)
    print(summary(cells))


def cells_of(names: Iterable[str], seeds: int) -> Iterator[Cell]:
    """Yield the cells of some sets."""
    for name in names:
        answers, gold = sample(name)
        for participation in PARTICIPATION:
            for epsilon in EPSILONS:
                assert isinstance(answers.alphabet, Categories)
                mechanism = RandomizedResponse(alphabet=answers.alphabet, epsilon=epsilon, participation=participation)
                rows = np.array([scores(answers, gold, mechanism, seed) for seed in range(seeds)])
                own, *others = rows.mean(axis=0).tolist()
                error = float(rows[:, 0].std(ddof=1) / np.sqrt(seeds)) if seeds > 1 else 0.0
                yield Cell(name, participation, epsilon, own, error, *others)


def sample(name: str) -> tuple[Reports, dict[str, Any]]:
    """Return the answers of at most `TASKS` tasks of a set, and the gold of those that were answered."""
    data = datasets.load(name)
    answers, names = data.answers, np.asarray(data.answers.tasks)
    known = np.isin(names.astype(str), [str(task) for task in data.gold]) & (answers.per_task > 0)
    order = np.lexsort((np.random.default_rng(0).random(len(names)), ~known))
    chosen = np.sort(order[:TASKS])
    cells = np.isin(answers.task, chosen)
    present = np.flatnonzero(np.bincount(answers.worker[cells], minlength=len(answers.workers)))
    task = np.searchsorted(chosen, answers.task[cells]).astype(np.int32)
    worker = np.searchsorted(present, answers.worker[cells]).astype(np.int32)
    workers = np.asarray(answers.workers)[present]
    kept = Reports(task, worker, answers.value[cells], names[chosen], workers, answers.alphabet)
    scored = set(names[chosen][known[chosen]].astype(str).tolist())
    return kept, {task: truth for task, truth in data.gold.items() if str(task) in scored}


def scores(answers: Reports, gold: dict[str, Any], mechanism: RandomizedResponse, seed: int) -> tuple[float, ...]:
    """Return the accuracies of default, constants and naive readings, and the default's calibration error."""
    reports, truths = perturb(answers, mechanism, seeded(seed)), np.array(list(gold.values()))
    names = mechanism.alphabet.names
    share = {label: float((truths == label).mean()) for label in names}
    rough = {label: max(round(share[label], 1), 0.05) for label in names}
    prior = {label: rough[label] / sum(rough.values()) for label in names}
    estimate = HierarchicalDawidSkene().fit(reports, channel=mechanism.channel())
    own = metrics.score(estimate, gold)
    known = metrics.accuracy(HierarchicalDawidSkene().fit(reports, channel=mechanism.channel(), prior=prior), gold)
    naive = [metrics.accuracy(one.fit(reports), gold) for one in (MajorityVote(), HierarchicalDawidSkene())]
    inferred = share[names[int(estimate.posterior.mean(axis=0).argmax())]]
    frequent = share[names[int(np.bincount(answers.value, minlength=len(names)).argmax())]]
    constants = 1 - own.baseline, inferred, frequent, max(1 - own.error, inferred)
    return 1 - own.error, known, *constants, *naive, own.calibration_error or 0.0


def write(cells: list[Cell], path: Path) -> None:
    """Write the cells as CSV."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(Cell._fields)
        rows.writerows([*one[:3], *(f"{value:.4f}" for value in one[3:])] for one in cells)


def summary(cells: list[Cell]) -> str:
    """Return the number of cells below a bound, and the means."""
    constant = [one for one in cells if one.default < one.constant - MARGIN]
    inferred = sum(one.default < one.inferred - MARGIN for one in cells)
    known = sum(one.known < one.constant - MARGIN for one in cells)
    naive = sum(one.default < one.naive - MARGIN for one in cells)
    gated = sum(one.gated < one.constant - MARGIN for one in cells)
    guessed, frequent = (
        sum(getattr(one, field) < one.constant - MARGIN for one in constant) for field in ("inferred", "frequent")
    )
    means: NDArray[np.float64] = np.array([one[3:] for one in cells]).mean(axis=0)
    named = ", ".join(f"{field} {value:.4f}" for field, value in zip(Cell._fields[3:], means.tolist(), strict=True))
    return (
        f"{len(cells)} cells: {len(constant)} below the best constant ({known} with a public prior), {inferred} below "
        f"the inferred one, {naive} below a naive reading, {gated} below the best constant if gold chose "
        f"between default and inferred constant. Of the cells below the best constant the inferred one is below it in "
        f"{guessed}, and the most frequent answer in {frequent}; {named}\n"
        + "\n".join(f"below the constant: {one.set} {one.participation} {one.epsilon:g}" for one in constant)
    )


if __name__ == "__main__":
    main()
