"""Page of a ranking: who is first, items by rank with intervals, what is told apart, and what is not compared."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.display.counts import number_of
from crowdveil.display.html import Html
from crowdveil.display.quotes import quoted
from crowdveil.display.svg_pictures import table_shaded_by_probability
from crowdveil.inference.ranking.ranking import LEVEL, TOLD_APART, Ranking
from crowdveil.pages.sections_page import sections_page
from crowdveil.privacy.statement import PrivacyStatement

NO_TITLE = "Ranking from comparisons"
MAX_GROUPS, MAX_ITEMS, MAX_LEADS, MAX_CIRCLES = 50, 100, 5, 3
"""Groups of items on the page, items of a group, groups in the first sentences, and examples of circles."""
MATRIX = 10
"""Items of a group up to which the probabilities of all pairs have a picture."""
READING = (
    f"The mark is the score, and the line its interval of {LEVEL:.0%}. Scores are standardised within the items that "
    "are compared: their mean is 0, and their standard deviation about 1.",
    f"In brackets is the range of the rank: it holds with {LEVEL:.0%}. Where ranges overlap, the order may be another.",
    f"Two items are told apart if their order has a probability of {TOLD_APART:.0%} or more. Of all others, say "
    "nothing.",
    "Most workers decide which end is the best.",
)


class _Row(NamedTuple):
    """Item with its texts, and score and interval in per cent of the picture."""

    item: str
    rank: str
    more: str
    score: float
    low: float
    high: float


def ranking_page(ranking: Ranking, statement: PrivacyStatement, *, title: str = NO_TITLE) -> str:
    """Return the page of a ranking as HTML; workers are counted, and not named.

    Args:
        ranking: result of `rank`.
        statement: checked statement of privacy of the comparisons.
        title: heading.
    """
    return sections_page(
        "ranking.html",
        statement,
        title=title,
        eyebrow=NO_TITLE,
        lead=lead_sentences(ranking, statement),
        parts=[_group_part(ranking, members) for members in ranking.groups[:MAX_GROUPS]],
        reading=[*READING, *_worker_sentences(ranking), *_circle_sentences(ranking), *_further_notes(ranking)],
    )


def _further_notes(ranking: Ranking) -> list[str]:
    """Return the notes that do not stand among the first sentences."""
    first = _first_notes(ranking)
    return [note for note in ranking.notes if note not in first]


def lead_sentences(ranking: Ranking, statement: PrivacyStatement) -> list[str]:
    """Return what is read first: the first item of each group with its range, what is told apart, and epsilon."""
    found = [_first_sentence(ranking, members) for members in ranking.groups[:MAX_LEADS]]
    more = len(ranking.groups) - MAX_LEADS
    if more > 0:
        found.append(f"{number_of(more, 'further group')} of items below.")
    if ranking.has_pairs:
        apart, pairs = ranking.told_apart
        found.append(f"{apart:,} of {number_of(pairs, 'pair')} are told apart; {_loss_text(statement)}.")
    else:
        found.append(f"{_loss_text(statement).capitalize()}.")
    return [*found, *_first_notes(ranking)]


def _first_notes(ranking: Ranking) -> tuple[str, ...]:
    """Return the notes that stand among the first sentences: on the direction, and on what is not compared."""
    return (*ranking.direction_notes(), *ranking.comparisons.notes())


def _first_sentence(ranking: Ranking, members: NDArray[np.int64]) -> str:
    ranks = ranking.ranks
    first = members[np.argmin(ranks.rank[members])]
    name, place = ranking.comparisons.name_of_item(int(first)), f"{ranks.rank_low[first]} to {ranks.rank_high[first]}"
    return f"First of {number_of(len(members), 'item')}: {quoted(name)}, with a rank from {place} at {LEVEL:.0%}."


def _loss_text(statement: PrivacyStatement) -> str:
    """Return epsilon and participation in a clause; without a checked guarantee that there is none."""
    if statement.status == "simulation":
        return "simulation only, no privacy"
    if statement.per_answer is None:
        return "no privacy guarantee is stated"
    return f"epsilon {statement.answer_epsilon_text} per comparison, participation {statement.per_answer.participation}"


def _group_part(ranking: Ranking, members: NDArray[np.int64]) -> dict[str, Any]:
    """Return the section of the items that comparisons connect, the first rank first."""
    rows, ranks = ranking.comparisons, ranking.ranks
    ordered = members[np.argsort(ranks.rank[members], kind="stable")]
    shown, left_out = ordered[:MAX_ITEMS], len(ordered) - MAX_ITEMS
    own = rows.list_of_item[members[0]]
    name, groups = rows.lists[own], [one[0] for one in ranking.groups if rows.list_of_item[one[0]] == own]
    group = f"Group {groups.index(members[0]) + 1} of {len(groups)}, not compared with others" if groups[1:] else ""
    first, last = float(ranks.low[shown].min()), float(ranks.high[shown].max())

    def at(value: float) -> float:
        return 2 + 96 * (value - first) / ((last - first) or 1.0)

    apart = _told_apart_counts(ranking, ordered)
    table = [
        _Row(
            str(rows.items[item]),
            f"{ranks.rank[item]} ({ranks.rank_low[item]} to {ranks.rank_high[item]})",
            f"score {ranks.score[item]:.2f} ({ranks.low[item]:.2f} to {ranks.high[item]:.2f})"
            + ("" if apart is None else f", told apart from {apart[row]} of {len(ordered) - 1}"),
            at(ranks.score[item]),
            at(ranks.low[item]),
            at(ranks.high[item]),
        )
        for row, item in enumerate(shown.tolist())
    ]
    return {
        "heading": ": ".join(filter(None, (f"List {name}" if name else "", group))) or "Items by rank",
        "count": f"{number_of(len(ordered), 'item')}, the best first."
        + (f" {number_of(left_out, 'item')} not shown: ranks.csv has all." if left_out > 0 else ""),
        "rows": table,
        "picture": _matrix(ranking, ordered) if 1 < len(ordered) <= MATRIX and ranking.has_pairs else "",
    }


def _told_apart_counts(ranking: Ranking, members: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the number of items that each is told apart from; None if there are too many pairs."""
    if not ranking.has_pairs or len(members) < 2:
        return None
    probability = _probabilities(ranking, members)
    found: NDArray[np.int64] = ((probability >= TOLD_APART) | (probability <= 1 - TOLD_APART)).sum(axis=1)
    return found


def _probabilities(ranking: Ranking, members: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P(row beats column); one half on the diagonal."""
    first, second = np.meshgrid(members, members, indexing="ij")
    found = np.full(first.shape, 0.5)
    other = first != second
    found[other] = ranking.scored.posterior.probability(first[other], second[other])
    return found


def _matrix(ranking: Ranking, members: NDArray[np.int64]) -> Html:
    """Return the picture of the probabilities of all pairs."""
    names, probability = [str(ranking.comparisons.items[item]) for item in members], _probabilities(ranking, members)
    lines = [
        f"{names[row]} beats {names[column]}: {probability[row, column]:.0%}"
        for row in range(len(names))
        for column in range(row + 1, len(names))
    ]
    # The diagonal says nothing: it is drawn as even.
    rows = [(name, values.tolist()) for name, values in zip(names, probability, strict=True)]
    return table_shaded_by_probability(
        None, "Probability that the item of a row beats that of a column, in per cent", "; ".join(lines), rows, names
    )


def _worker_sentences(ranking: Ranking) -> Iterator[str]:
    """Yield how many workers may guess or reverse the order."""
    table = ranking.workers()
    if "slope" not in table:
        if "side" in table:
            yield "All workers count alike: reports of each are too few to say who is reliable."
        return
    reverse = int((table["slope_high"] < 0).sum())
    guess = ranking.workers_who_may_guess
    yield (
        f"Of {number_of(len(table['slope']), 'worker')}, {guess:,} may guess: their answers do not show that they "
        f"prefer the better item. {reverse:,} reverse the order, and their answers are read reversed."
    )


def _circle_sentences(ranking: Ranking) -> Iterator[str]:
    """Yield how many triples of majorities are in a circle, with examples."""
    triples = ranking.triples
    if triples is None or not triples.closed:
        return
    name = ranking.comparisons.name_of_item
    circles = [
        " over ".join(quoted(name(item)) for item in [*circle, circle[0]])
        for circle in triples.examples[:MAX_CIRCLES].tolist()
    ]
    such = f", such as {'; '.join(circles)}" if circles else ""
    yield (
        f"{triples.intransitive:,} of {number_of(triples.closed, 'triple')} of items whose three pairs have a majority "
        f"are in a circle{such}."
    )
