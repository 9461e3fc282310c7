"""The page of results is short, folds long tables, ranks only where that says something, and cuts no label."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.release.conftest import Folder, command
from tests.service.browser import chromium, needs_chromium

LONG = "a label of more than forty-six characters, which no picture has room for beside a bar"
SCREEN, SCREENS = 640, 5


def results(folder: Path, rows: list[tuple[str, str, str]], *options: object) -> str:
    """Return the page of answers, each a task, a worker and a label."""
    (folder / "labels.csv").write_text("\n".join(["task,worker,label", *(",".join(f'"{c}"' for c in r) for r in rows)]))
    command("infer", folder / "labels.csv", "--out", folder / "found", *options)
    command("report", folder / "found")
    return (folder / "found" / "report.html").read_text("utf-8")


def agreed(tasks: int, names: tuple[str, str] = ("no", "yes")) -> list[tuple[str, str, str]]:
    """Return answers of six workers who all agree."""
    return [(f"item {task}", f"w{worker}", names[task % 2]) for task in range(1, tasks + 1) for worker in range(6)]


def section(page: str, name: str) -> str:
    """Return one section of a page."""
    return re.split(f'<h2 id="{name}">', page)[1].partition("</section>")[0]


def test_long_tables_are_folded_in_natural_order(tmp_path: Path) -> None:
    """Five rows are shown, the others are folded; item 2 comes before item 10."""
    truths = section(results(tmp_path, agreed(30)), "truths")
    shown, folded = truths.split("<details>")

    assert [f"item {place}" for place in range(1, 6)] == re.findall("<td>(item [0-9]+)", shown)
    assert [f"item {place}" for place in range(6, 31)] == re.findall("<td>(item [0-9]+)", folded)
    assert "<summary>25 more</summary>" in folded


def test_tasks_are_ranked_only_where_some_are_more_doubtful(tmp_path: Path) -> None:
    """Truths that are all certain have no list of doubtful ones; a task with divided answers begins one."""
    certain = section(results(tmp_path, agreed(30)), "doubtful")
    divided = [("item 31", f"w{worker}", "no" if worker < 3 else "yes") for worker in range(6)]
    doubtful = section(results(tmp_path, [*agreed(30), *divided]), "doubtful")

    assert "No truth is more doubtful than the others" in certain
    assert "<table>" not in certain
    assert "item 31" == re.findall("<td>(item [0-9]+)", doubtful)[0]


def test_certain_truths_have_a_chart_of_confidence(tmp_path: Path) -> None:
    """The classes of confidence end at 99.9 %, so that a page on which all is certain shows how certain."""
    page = results(tmp_path, agreed(30))
    texts = re.search(r'<desc id="confidence-text">(.*?)</desc>', page)

    assert texts is not None
    assert 30 == sum(map(int, re.findall(r": ([0-9]+)", texts[1])))
    assert re.search(r"(99 to 99.9 %|above 99.9 %): 30", texts[1])


def test_no_label_is_cut(tmp_path: Path) -> None:
    """A label that is longer than its place stands above its bar, on as many lines as it needs."""
    page = results(tmp_path, agreed(30, (LONG, "yes")))
    picture = re.search(r'<svg role="img" aria-labelledby="truths-title.*?</svg>', page, re.DOTALL)

    assert picture is not None
    lines = [text.text or "" for text in ElementTree.fromstring(picture[0]).iter("text") if text.get("class") == "name"]
    assert LONG == " ".join(lines[:-1])
    assert "…" not in picture[0]


def test_answers_that_were_never_private_are_no_alarm(tmp_path: Path) -> None:
    """The line on privacy is neutral, stands once, and the conclusion does not name it."""
    page = results(tmp_path, agreed(30))

    assert 1 == page.count("No privacy guarantee is stated.")
    assert '<div class="notice neutral">' in page
    assert "privacy" not in section(page, "conclusion")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["answers", "protected"])
def test_a_phone_shows_the_page_on_less_than_five_screens(tmp_path: Path, collected: Folder, kind: str) -> None:
    """At 360 x 640 the page is at most 3200 pixels high, and nothing is wider than the screen."""
    if kind == "answers":
        divided = [(f"item {task}", f"v{worker}", "yes") for task in range(1, 301, 3) for worker in range(2)]
        results(tmp_path, [*agreed(300), *divided])
        page = tmp_path / "found" / "report.html"
    else:
        page = collected() / "report.html"
        command("report", page.parent)
    with chromium() as browser:
        view = browser.new_page(viewport={"width": 360, "height": SCREEN})
        view.goto(page.as_uri())
        size = view.evaluate("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")

    assert size[0] <= SCREENS * SCREEN
    assert size[1] == 360
