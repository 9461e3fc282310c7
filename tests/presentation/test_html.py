"""Templates and cards: everything is escaped, rows are counted, colors have contrast in light and dark."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from markupsafe import Markup, escape

from crowdveil.presentation.html import STYLE, Html, card, filled, table

HOSTILE = '</td><script>alert("x")</script>&'


def test_values_are_escaped_and_html_is_not() -> None:
    """Text is escaped once; `Html` stays as it is, here and in jinja2; numbers can be formatted."""
    assert "<b>&lt;i&gt; 0.50</b>" == filled("<b>{text} {number:.2f}</b>", text="<i>", number=0.5)
    assert "<b><i></b>" == filled("<b>{text}</b>", text=Html("<i>"))
    assert Markup("<i>") == escape(Html("<i>"))


def test_a_hostile_name_stays_text() -> None:
    """Titles, sentences, headers and cells of a card are text, whatever they hold."""
    page = ElementTree.fromstring(card(HOSTILE, [HOSTILE], table([HOSTILE], [[HOSTILE]])))

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
    from crowdveil.presentation import pictures

    drawn = [
        pictures.bars(None, "Bars", [("<a>", 2.0, "2"), ("b", 1.0, "1")], strong=0),
        pictures.count_bars(None, "Counts", [str(k) for k in range(20)], list(range(20))),
        pictures.share_histogram(None, "Shares", [0] * 9 + [12_345], "tasks"),
        pictures.intervals(None, "Numbers", [("t", 1.0, 0.5, 2.0)]),
        pictures.cells(None, "Cells", "a is kept", [("a", (0.75, 0.25)), ("b", (0.25, 0.75))], ["a", "b"]),
        pictures.lines("Lines", "epsilon", [("one", [(1, 0.5), (2, 0.25)]), ("two", [(1, 0.5)])], [("limit", 0.6)]),
    ]
    pages = [ElementTree.fromstring(picture) for picture in drawn]

    described = [(page.get("role"), page[0].tag, page[1].tag) for page in pages]
    assert [("img", "title", "desc")] * len(pages) == described
    assert all(page.get("aria-labelledby") == f"{page[0].get('id')} {page[1].get('id')}" for page in pages)
    assert len({page[0].get("id") for page in pages}) == len(pages)
    assert "other labels: 36" in pages[1][1].text  # type: ignore[operator]
    assert "one: 0.5 at 1, 0.25 at 2" in pages[5][1].text  # type: ignore[operator]


def test_names_of_lines_do_not_overlap() -> None:
    """Lines that end at one height have names at least 14 units apart, inside the picture."""
    from crowdveil.presentation.pictures import BOTTOM, TOP, lines

    series = [(f"n{k}", [(1, 0.0), (2, k / 1000)]) for k in range(5)]
    page = ElementTree.fromstring(lines("L", "x", series, [("near top", 1.0)]))
    heights = sorted(float(t.get("y", "")) for t in page.iter("text") if (t.text or "").startswith("n"))

    assert 6 == len(heights)
    assert all(b - a >= 13.9 for a, b in pairwise(heights))
    assert (True, True) == (max(heights) <= BOTTOM + 5, min(heights) < TOP + 5)


def test_lines_through_the_same_points_are_one() -> None:
    """Equal lines share a line with both names."""
    from crowdveil.presentation.pictures import merged

    assert [("a = c", ((1, 2), (3, 4))), ("b", ((1, 2),))] == merged(
        [("a", [(3, 4), (1, 2)]), ("b", [(1, 2)]), ("c", [(1, 2), (3, 4)])]
    )
