"""Next comparisons to ask for: the pairs whose answers say most about the scores, chosen one after the other.

An answer to the pair (A, B) has the expected information F on the difference of the scores, through the channel if
there is one, from a worker with mean slope, bias and tie rate. If the difference has the variance V, the answer gains
log(1 + F V) / 2 nats. After each choice the covariance S of the scores becomes S - S c c'S F / (1 + F V), with
c = e_A - e_B, as if the answer had come, so that a batch does not ask the same again and again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.frames import ArrowRows
from crowdveil.arguments import require_whole_number
from crowdveil.errors import SettingsError
from crowdveil.estimators.ranking.fit import Hyperparameters
from crowdveil.estimators.ranking.likelihood import Floats, row_terms
from crowdveil.estimators.ranking.posterior import EXACT, SEED
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.ranking.ranking import Ranking


@dataclass(frozen=True, eq=False, kw_only=True)
class NextComparisons(ArrowRows):
    """Comparisons to ask for, the most informative first.

    Attributes:
        ranking: the ranking that they follow from.
        left, right: codes of the items, drawn at random to the sides.
        information: gain of each answer in nats, given those before it.

    >>> import crowdveil as cv
    >>> answers = {"left": [*"aab"], "right": [*"bcc"], "worker": [1, 1, 2], "label": ["left", "left", "tie"]}
    >>> cv.next_comparisons(cv.rank(answers), 2).to_arrow().column_names
    ['left', 'right', 'information', 'comparisons']
    """

    ranking: Ranking
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    information: Floats

    def __repr__(self) -> str:
        """Return the number of comparisons."""
        return f"<NextComparisons: {len(self.left):,} of {len(self.ranking.comparisons.items):,} items>"

    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns: list (if there are several), left, right, information, comparisons (of the pair, yet)."""
        rows, items = self.ranking.comparisons, len(self.ranking.comparisons.items)
        asked = np.bincount(_keys(rows.left, rows.right, items), minlength=items * items)
        lists = {"list": np.array(rows.lists)[rows.list_of_item[self.left]]} if len(rows.lists) > 1 else {}
        return {
            **lists,
            "left": rows.items[self.left],
            "right": rows.items[self.right],
            "information": self.information,
            "comparisons": asked[_keys(self.left, self.right, items)],
        }

    def to_arrow(self) -> Any:
        """Return `columns` as an Arrow table."""
        import pyarrow as pa

        return pa.table({name: pa.array(column) for name, column in self.columns().items()})


def _keys(left: NDArray[np.integer], right: NDArray[np.integer], items: int) -> NDArray[np.int64]:
    return np.minimum(left, right).astype(np.int64) * items + np.maximum(left, right)


@advising_own_arguments
def next_comparisons(ranking: Ranking, budget: int) -> NextComparisons:
    """Return the next comparisons to ask for; items of two lists are never compared.

    Args:
        ranking: result of `rank`, by a method with a model of answers.
        budget: number of comparisons.

    Raises:
        SettingsError: a method without a model of answers, more than 1,500 items, or a budget below 1.

    >>> import crowdveil as cv
    >>> answers = {"left": [*"aab"], "right": [*"bcc"], "worker": [1, 1, 2], "label": ["left", "left", "tie"]}
    >>> cv.next_comparisons(cv.rank(answers), 2)
    <NextComparisons: 2 of 3 items>
    """
    require_whole_number("budget", budget, least=1)
    covariance = ranking.scored.posterior.covariance
    if ranking.scored.fitted is None:
        hint = "Use 'hierarchical-davidson'."
        raise SettingsError("this method has no information of answers", value=ranking.method.name, hint=hint)
    if covariance is None:
        count = len(ranking.comparisons.items)
        raise SettingsError(f"next comparisons are chosen among at most {EXACT:,} items", value=count,
                            hint="Rank each list, or the items of which you need to know more, alone.")  # fmt: skip
    information = _pair_information(ranking)
    chosen, gains = _greedy(information, covariance.copy(), budget)
    first, second = np.divmod(chosen, len(information))
    turned = np.random.default_rng(SEED).random(len(chosen)) < 0.5
    return NextComparisons(
        ranking=ranking,
        left=np.where(turned, second, first),
        right=np.where(turned, first, second),
        information=gains,
    )


def _pair_information(ranking: Ranking) -> Floats:
    """Return the expected information of an answer on the difference of two scores; 0 where none is asked."""
    fitted, rows = ranking.scored.fitted, ranking.comparisons
    assert fitted is not None
    priors = _mean_worker(ranking)
    scores = ranking.scored.scores
    difference = scores[:, None] - scores[None]
    eta = (priors.slope_mean * difference + priors.side_mean) / 2
    of_eta = row_terms(eta.ravel(), np.full(eta.size, priors.tie_mean), np.zeros(eta.size, np.int32), ranking.table)
    found = priors.slope_mean**2 / 4 * of_eta.eta_eta.reshape(eta.shape)
    found = (found + found.T) / 2
    found[rows.list_of_item[:, None] != rows.list_of_item[None]] = 0
    np.fill_diagonal(found, 0)
    return found


def _mean_worker(ranking: Ranking) -> Hyperparameters:
    """Return priors with the means of the workers; of methods with one worker, that one."""
    fitted = ranking.scored.fitted
    assert fitted is not None
    slope, side, tie = fitted.point.workers.mean(axis=0)
    return fitted.priors._replace(slope_mean=float(slope), side_mean=float(side), tie_mean=float(tie))


def _greedy(information: Floats, covariance: Floats, budget: int) -> tuple[NDArray[np.int64], Floats]:
    """Return the pairs, as first * items + second, and the gain of each; `covariance` is changed."""
    chosen, gains = np.empty(budget, dtype=np.int64), np.empty(budget)
    upper = np.triu(information)
    for place in range(budget):
        spread = np.diagonal(covariance)
        gain = upper * (spread[:, None] + spread[None] - 2 * covariance)
        best = int(np.argmax(gain))
        first, second = divmod(best, len(information))
        chosen[place], gains[place] = best, np.log1p(gain[first, second]) / 2
        column = covariance[:, first] - covariance[:, second]
        weight = information[first, second] / (1 + gain[first, second])
        covariance -= weight * np.outer(column, column)
    return chosen, gains
