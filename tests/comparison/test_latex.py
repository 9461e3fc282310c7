"""LaTeX tables of a comparison: columns that fit, all errors, and signs that the caption explains."""

import re
from dataclasses import replace

import pytest

from crowdveil.comparison.compare import Comparison
from crowdveil.comparison.latex import MAX_EPSILONS, MAX_LINES, latex_text
from crowdveil.comparison.trials import UNPROTECTED, NotRun
from tests.comparison.rows import made_row, made_rows


def tables(text: str) -> list[str]:
    """Return the tables of LaTeX text."""
    return re.findall(r"\\begin\{table\}.*?\\end\{table\}", text, re.DOTALL)


def lines(table: str) -> list[list[str]]:
    """Return the cells of each line."""
    return [[cell.strip() for cell in line[:-2].split("&")] for line in table.splitlines() if line.endswith(r"\\")]


@pytest.mark.parametrize("methods", [1, 12])
@pytest.mark.parametrize("mechanisms", [1, 3])
@pytest.mark.parametrize("epsilons", [1, 5, 12])
def test_tables_fit_on_a_page(methods: int, mechanisms: int, epsilons: int) -> None:
    """Each line has the cells of the table, columns and lines are bounded, and every error is there once."""
    rows = made_rows(methods, mechanisms, tuple(map(float, range(1, epsilons + 1))))
    found = tables(Comparison(rows=rows).to_latex())

    assert len(found) >= -(-epsilons // MAX_EPSILONS)
    printed = []
    for table in found:
        assert table.count(r"\begin{tabular}") == table.count(r"\bottomrule") == table.count(r"\caption{") == 1
        columns = len(re.search(r"\\begin\{tabular\}\{(l r*|lr*)\}", table)[1])
        assert columns <= 2 + MAX_EPSILONS
        assert {columns} == set(map(len, lines(table)))
        assert len(lines(table)) <= MAX_LINES + 2
        printed += [cell for first, _, *cells in lines(table)[1:] if not first.startswith(r"\emph") for cell in cells]
    assert sorted(f"{row.error:.3f}" for row in rows if row.requested is not None) == sorted(printed)


def test_a_caption_explains_the_table() -> None:
    """Error, constant, unit, participation, what was not run and what has not converged stand in the caption."""
    rows = [made_row(UNPROTECTED, None, name, 0.1) for name in ("mace", "wawa")]
    rows += [replace(made_row("two-layer", 1.0, "mace", 0.2, exact=1.949), converged=False)]
    missing = NotRun(crowd="crowd", mechanism="two-layer", requested=1.0, method="wawa", reason="a reason of 100 %")
    (table,) = tables(Comparison(rows=tuple(rows), not_run=(missing,)).to_latex())

    assert [
        [r"requested $\varepsilon$", "unprotected", "1"],
        [r"\emph{two-layer}", r"exact $\varepsilon$", "1.949"],
        ["mace", "0.100", r"0.200$^\ast$"],
        ["wawa", "0.100", "--"],
    ] == lines(table)
    caption = re.search(r"\\caption\{(.*)\}\\medskip", table)[1]
    for part in (
        *("Share of wrong truths on 80 gold tasks", r"best constant no\_1: 0.4", "epsilon per cell"),
        *("participation protected", "Simulation", r"-- Not run: wawa with two-layer: a reason of 100 \%."),
        r"$^\ast$ Not converged.",
    ):
        assert part in caption


def test_special_characters_are_escaped() -> None:
    """Labels and names may hold any character."""
    assert r"a\_b \& \textbackslash{}\{c\} \#1 \$ \textasciitilde{}\textasciicircum{}" == latex_text(
        "a_b & \\{c} #1 $ ~^"
    )


def test_one_request_has_one_column() -> None:
    """Epsilons that mechanisms round are in the column of the request; a pair run at another one names its own."""
    rows = [made_row(UNPROTECTED, None, "mace", 0.1), made_row("two-layer", 1 - 1e-9, "mace", 0.2)]
    rows += [made_row("laplace", epsilon, "mace", 0.3) for epsilon in (1.0, 2.0)]
    missing = NotRun(crowd="crowd", mechanism="two-layer", requested=2.0, method="mace", reason="no reason")
    text = Comparison(rows=tuple(rows), not_run=(missing,)).to_latex()

    assert [r"requested $\varepsilon$", "unprotected", "1", "2"] == lines(text)[0]
    assert ["mace", "0.100", "0.200", "--"] in lines(text)
    assert "Not run: mace with two-layer at epsilon 2: no reason." in text
