"""Templates, cards and pictures: escaped, counted, and with contrast in light and dark."""

import math
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from markupsafe import Markup, escape

from crowdveil import Categories, Guarantee, RandomizedResponse, Reports, Scale
from crowdveil.display.html import STYLE, Html, filled, notebook_card, table
from crowdveil.estimators import DawidSkene, StudentT, WeightedVote
from crowdveil.planning import Plan, plan_campaign
from crowdveil.randomness import seeded
from crowdveil.simulate import categorical_crowd, numeric_crowd
from tests.planning.campaigns import of_labels

HOSTILE = '</td><script>alert("x")</script>&'


def test_values_are_escaped_and_html_is_not() -> None:
    """Text is escaped once; `Html` stays as it is, here and in jinja2; numbers can be formatted."""
    assert "<b>&lt;i&gt; 0.50</b>" == filled("<b>{text} {number:.2f}</b>", text="<i>", number=0.5)
    assert "<b><i></b>" == filled("<b>{text}</b>", text=Html("<i>"))
    assert Markup("<i>") == escape(Html("<i>"))


def test_a_hostile_name_stays_text() -> None:
    """Titles, sentences, headers and cells of a card are text, whatever they hold."""
    page = ElementTree.fromstring(notebook_card(HOSTILE, [HOSTILE], table([HOSTILE], [[HOSTILE]])))

    assert [] == list(page.iter("script"))
    assert 4 == sum(HOSTILE == (node.text or "") for node in page.iter())


@pytest.mark.parametrize(("total", "said"), [(None, "and 2 more"), (1200, "and 1,190 more")])
def test_rows_that_are_not_shown_are_counted(total: int | None, said: str) -> None:
    """A table has ten rows; the others are counted."""
    found = table(["n"], [[str(row)] for row in range(12)], total=total)

    assert (11, True) == (found.count("<tr>"), said in found)


def luminance(color: str) -> float:
    """Return the relative luminance of #rrggbb (WCAG 2)."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors (WCAG 2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def blended(color: str, paper: str, opacity: float) -> str:
    """Return a translucent color on paper."""
    parts = [(int(color[k : k + 2], 16), int(paper[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * top + (1 - opacity) * under):02x}" for top, under in parts)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colors_have_contrast(scheme: int) -> None:
    """Text has 4.5:1, marks have 3:1, and numbers on the darkest cell 4.5:1."""
    colors = {
        name: re.findall(rf"--{name}:(#\w+)", STYLE)[scheme] for name in ("ink", "soft", "paper", "accent", "quiet")
    }
    (cell,) = re.findall(r"\.cell\{fill:(#\w+)\}", STYLE)

    assert all(contrast(colors[text], colors["paper"]) >= 4.5 for text in ("ink", "soft"))
    assert all(contrast(colors[mark], colors["paper"]) >= 3 for mark in ("accent", "quiet", "soft"))
    assert contrast(colors["ink"], blended(cell, colors["paper"], 0.66)) >= 4.5


def test_pictures_say_what_they_show() -> None:
    """Every picture has a role, a title and a description with its numbers, and ids of its own."""
    from crowdveil.display import svg_pictures

    drawn = [
        svg_pictures.bar_chart(None, "Bars", [("<a>", 2.0, "2"), ("b", 1.0, "1")], strong=0),
        svg_pictures.count_bars(None, "Counts", [str(k) for k in range(20)], list(range(20))),
        svg_pictures.share_histogram(None, "Shares", [0] * 9 + [12_345], "tasks"),
        svg_pictures.interval_chart(None, "Numbers", [("t", 1.0, 0.5, 2.0)]),
        svg_pictures.table_shaded_by_probability(
            None, "Cells", "a is kept", [("a", (0.75, 0.25)), ("b", (0.25, 0.75))], ["a", "b"]
        ),
        svg_pictures.line_chart(
            "Lines", "epsilon", [("one", [(1, 0.5), (2, 0.25)]), ("two", [(1, 0.5)])], [("limit", 0.6)]
        ),
    ]
    pages = [ElementTree.fromstring(picture) for picture in drawn]

    described = [(page.get("role"), page[0].tag, page[1].tag) for page in pages]
    assert [("img", "title", "desc")] * len(pages) == described
    assert all(page.get("aria-labelledby") == f"{page[0].get('id')} {page[1].get('id')}" for page in pages)
    assert len({page[0].get("id") for page in pages}) == len(pages)
    assert "other labels: 36" in pages[1][1].text
    assert "one: 0.5 at 1, 0.25 at 2" in pages[5][1].text


def test_names_of_lines_do_not_overlap() -> None:
    """Lines that end at one height have names at least 14 units apart, inside the picture."""
    from crowdveil.display.svg_pictures import BOTTOM, TOP, line_chart

    series = [(f"n{k}", [(1, 0.0), (2, k / 1000)]) for k in range(5)]
    page = ElementTree.fromstring(line_chart("L", "x", series, [("near top", 1.0)]))
    heights = sorted(float(t.get("y", "")) for t in page.iter("text") if (t.text or "").startswith("n"))

    assert 6 == len(heights)
    assert all(b - a >= 13.9 for a, b in pairwise(heights))
    assert (True, True) == (max(heights) <= BOTTOM + 5, min(heights) < TOP + 5)


def test_lines_through_the_same_points_are_one() -> None:
    """Equal lines share a line with both names, which stand under each other as they are."""
    from crowdveil.display.svg_pictures import line_chart, merge_equal_lines

    both = [("randomized-response", [(1, 2.0), (2, 1.0)]), ("quantized-response", [(1, 2.0), (2, 1.0)])]
    page = ElementTree.fromstring(line_chart("L", "x", both))

    assert {name for name, _ in both} <= {text.text for text in page.iter("text")}
    assert [("a = c", ((1, 2), (3, 4))), ("b", ((1, 2),))] == merge_equal_lines(
        [("a", [(3, 4), (1, 2)]), ("b", [(1, 2)]), ("c", [(1, 2), (3, 4)])]
    )


LABELS = Categories(("<no>", "yes & no"))
CROWD = categorical_crowd(workers=20, tasks=30, labels=LABELS, sparsity=0.5, source=seeded(1)).answers
NUMBERS = numeric_crowd(workers=20, tasks=30, sparsity=0.5, source=seeded(1)).answers


def parsed(shown: Any) -> ElementTree.Element:
    """Return the card of an object as a tree."""
    return ElementTree.fromstring(shown._repr_html_())


def text_of(shown: Any) -> str:
    """Return the text of the card of an object, without its style."""
    tree = parsed(shown)
    tree.remove(tree[0])
    return " ".join(tree.itertext())


CARDS = {
    "reports": CROWD,
    "numbers": NUMBERS,
    "free numbers": Reports.from_arrays([1, 2], ["<b>", "u"], [1.5, 2.5], numeric=True),
    "estimate": DawidSkene().fit(CROWD),
    "votes": WeightedVote().fit(CROWD),
    "estimate of numbers": StudentT().fit(NUMBERS),
    "channel": RandomizedResponse(alphabet=LABELS, epsilon=1.0).channel(),
    "wide channel": RandomizedResponse(alphabet=Scale(0, 40), epsilon=1.0).channel(),
    "guarantee": Guarantee(epsilon=1.0, delta=1e-6),
    "no guarantee": Guarantee(epsilon=float("inf"), unit="worker"),
    "plan": plan_campaign(of_labels(rate=0.25), target=0.15, epsilons=(4.0,)),
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_well_formed(name: str) -> None:
    """A card is one element with a style, a title and at most one picture; names are escaped."""
    tree = parsed(CARDS[name])

    assert ("div", "crowdveil", "style", "b") == (tree.tag, tree.get("class"), tree[0].tag, tree[1].tag)
    assert (0 if name in ("free numbers", "wide channel") else 1) == len(list(tree.iter("svg")))
    assert [] == [node for node in tree.iter() if node.tag in ("no", "script")]


def test_an_estimate_shows_convergence_and_the_best_constant() -> None:
    """Too few steps are visible, and the constant to beat is named."""
    estimate = DawidSkene(max_steps=2).fit(CROWD)

    assert "NOT converged in 2 steps" in text_of(estimate)
    assert str(estimate.baseline) in text_of(estimate)
    assert "and 20 more" in text_of(estimate)


def test_a_guarantee_shows_what_can_be_guessed() -> None:
    """The largest probability of a right guess is (e^epsilon + delta) / (e^epsilon + 1), rounded up."""
    assert pytest.approx(math.e / (1 + math.e)) == Guarantee(epsilon=1.0).largest_guess_probability
    assert pytest.approx(0.5) == Guarantee(epsilon=0.0).largest_guess_probability
    assert 1.0 == Guarantee(epsilon=float("inf")).largest_guess_probability
    assert pytest.approx(0.75) == Guarantee(epsilon=0.0, delta=0.5).largest_guess_probability
    assert "73.2 %" in text_of(Guarantee(epsilon=1.0))


def test_a_plan_shows_its_recommendation() -> None:
    """The recommended candidate, its error and the target stand in the first sentence."""
    planned: Plan = CARDS["plan"]  # type: ignore[assignment]
    found = planned.recommended
    assert found is not None

    shown = text_of(planned)

    expected = f"Use {found.name} at epsilon 4 per answer, expected error {found.prediction.error:.3g}, target 0.15."
    assert expected in shown
