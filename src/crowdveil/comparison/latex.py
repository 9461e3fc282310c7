"""LaTeX tables of a comparison: methods by requested epsilon, a part for each mechanism; they need booktabs only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crowdveil.channels.rounding import format_bound
from crowdveil.comparison.trials import (
    NotRun,
    Row,
    name_mechanisms,
    rounded_epsilon,
    sampling_error_sentence,
    sentences_not_run,
)

MAX_EPSILONS, MAX_LINES = 5, 40
"""Columns of epsilons, and lines, of a table that fits on a page."""
NOT_RUN, NOT_CONVERGED = "--", r"$^\ast$"
SPECIAL = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Lines of one mechanism.

    Attributes:
        mechanism: its name.
        exact: exact epsilon by requested epsilon.
        errors: row by estimator and requested epsilon.
        missing: estimators and epsilons that were not run.
    """

    mechanism: str
    exact: dict[float, float]
    errors: dict[tuple[str, float], Row]
    missing: frozenset[tuple[str, float]]

    @property
    def estimators(self) -> list[str]:
        """Estimators of the lines."""
        return list(dict.fromkeys([*(name for name, _ in self.errors), *(name for name, _ in sorted(self.missing))]))


def latex_tables(rows: Sequence[Row], not_run: Sequence[NotRun], axis: str) -> str:
    """Return tables of at most `MAX_EPSILONS` epsilons and about `MAX_LINES` lines; each says all in its caption.

    Args:
        rows: of one crowd.
        not_run: pairs without a row.
        axis: name of the error.
    """
    parts = _parts_by_mechanism(rows, not_run)
    plain = {row.estimator: row for row in rows}
    epsilons = sorted({epsilon for part in parts for epsilon in part.exact})
    tables = [
        _table(some, few, plain, caption=_caption(rows, not_run, axis))
        for few in (epsilons[first : first + MAX_EPSILONS] for first in range(0, len(epsilons), MAX_EPSILONS))
        for some in _parts_by_page([part for part in parts if not part.exact.keys().isdisjoint(few)])
    ]
    return "\n".join(["% \\usepackage{booktabs}", *tables])


def _parts_by_mechanism(rows: Sequence[Row], not_run: Sequence[NotRun]) -> list[_Part]:
    found = dict[str, list[Row]]()
    for name, row in name_mechanisms(rows):
        found.setdefault(name, []).append(row)
    return [
        _Part(
            mechanism=name,
            exact={row.epsilon: row.exact for row in mine if row.epsilon is not None and row.exact is not None},
            errors={(row.estimator, row.epsilon): row for row in mine if row.epsilon is not None},
            missing=frozenset(
                (one.method, epsilon)
                for one in not_run
                if one.mechanism == mine[0].mechanism and (epsilon := rounded_epsilon(one.requested)) is not None
            ),
        )
        for name, mine in found.items()
    ]


def _parts_by_page(parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    """Yield the parts of each table; a part is on one page."""
    page, lines = list[_Part](), 0
    for part in parts:
        if page and lines + len(part.estimators) + 1 > MAX_LINES:
            yield page
            page, lines = [], 0
        page.append(part)
        lines += len(part.estimators) + 1
    if page:
        yield page


def _table(parts: Sequence[_Part], epsilons: Sequence[float], plain: Mapping[str, Row], *, caption: str) -> str:
    """Return one table: each part begins with a line of its exact epsilons."""
    head = ["requested $\\varepsilon$", "unprotected", *(f"{epsilon:g}" for epsilon in epsilons)]
    lines = [
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        f"\\caption{{{caption}}}\\medskip",
        f"\\begin{{tabular}}{{l{'r' * (len(epsilons) + 1)}}}",
        r"\toprule",
        _line(head),
    ]
    for part in parts:
        exact = [_epsilon_text(part.exact.get(epsilon)) for epsilon in epsilons]
        lines += [r"\midrule", _line([rf"\emph{{{latex_text(part.mechanism)}}}", r"exact $\varepsilon$", *exact])]
        for name in part.estimators:
            errors = [_error_text(part, name, epsilon) for epsilon in epsilons]
            unprotected = f"{plain[name].unprotected:.3f}" if name in plain else ""
            lines.append(_line([latex_text(name), unprotected, *errors]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _epsilon_text(value: float | None) -> str:
    if value is None:
        return ""
    return r"$\infty$" if value == float("inf") else format_bound(value, 4)


def _error_text(part: _Part, estimator: str, epsilon: float) -> str:
    row = part.errors.get((estimator, epsilon))
    if row is None:
        return NOT_RUN if (estimator, epsilon) in part.missing else ""
    return f"{row.error:.3f}" + ("" if row.converged else NOT_CONVERGED)


def _caption(rows: Sequence[Row], not_run: Sequence[NotRun], axis: str) -> str:
    """Return error, constant, unit and participation, and what the signs of the table mean."""
    first, private = rows[0], [row for row in rows if row.requested is not None]
    taken = " or ".join(dict.fromkeys(row.participation for row in private))
    constant = f"best constant {first.constant}: {first.constant_error:.3g}"
    text = f"{axis} on {first.scored:,} gold tasks ({constant}), by method and requested epsilon per cell"
    sentences = [f"{text}; participation {taken}. Simulation.{sampling_error_sentence(first)}"]
    through = {(row.mechanism, row.estimator) for row in private if row.channel_used}
    methods = dict.fromkeys(row.estimator for row in private if row.estimator not in {one for _, one in through})
    mechanisms = dict.fromkeys(row.mechanism for row in private if row.mechanism not in {one for one, _ in through})
    if methods or mechanisms:
        named = [*methods] if through or not mechanisms else ["every method"]
        named += [f"every method after {', '.join(mechanisms)}"] if through and mechanisms else []
        sentences.append(f"Reports are read as answers by {', '.join(named)}.")
    sentences += [f"{NOT_RUN} {sentence}" for sentence in sentences_not_run(not_run, rows)]
    marked = [] if all(row.converged for row in private) else [f"{NOT_CONVERGED} Not converged."]
    return " ".join([latex_text(" ".join(sentences)), *marked])


def latex_text(text: str) -> str:
    """Return text with the special characters of LaTeX escaped."""
    return "".join(SPECIAL.get(character, character) for character in text)
