"""The page of results: what it states, how it is laid out, and that it fetches nothing."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from crowdveil.campaign.files.folder import read_campaign
from crowdveil.channels.guarantee import Guarantee
from crowdveil.pages.results_page import (
    PageText,
    _css_class_of_privacy_line,
    campaign_task_order,
    content_security_policy,
    style_sheet,
)
from crowdveil.privacy.statement import PrivacyStatement, Status
from tests.campaign.service.browser import chromium, needs_chromium
from tests.inferred_folders import Folder, command, write_results

NOT_STATED = "No privacy guarantee is stated."
CURATOR_SHEET = (files("crowdveil.campaign.pages") / "templates" / "curator.css").read_text("utf-8")
SCHEMES = [
    (sheet, dict(re.findall(r"--([a-z-]+): #([0-9a-f]+);", scheme)))
    for sheet, text in (("results", style_sheet()), ("curator", CURATOR_SHEET))
    for scheme in re.findall(r":root \{(.*?)\}", text, re.DOTALL)
]
COMMON = [
    ("ink", "page"),
    ("ink", "card"),
    ("soft", "page"),
    ("soft", "card"),
    ("accent", "page"),
    ("ink", "warn-tint"),
]
TEXT_ON = {
    "results": [*COMMON, ("ink", "tint"), ("accent", "tint"), ("warn", "warn-tint"), ("ink", "bad-tint")],
    "curator": [*COMMON, ("accent", "card"), ("on-accent", "accent"), ("on-danger", "danger")],
}
"""Colors of text and of what is behind it."""


def page_of(folder: Path, **text: Any) -> str:
    """Return the page of one folder."""
    write_results(folder, **text)
    return (folder / "report.html").read_text("utf-8")


def luminance(color: str) -> float:
    """Return the relative luminance of a color (WCAG 2.2)."""
    digits = color if len(color) == 6 else "".join(2 * digit for digit in color)
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("sheet", "colors"), SCHEMES, ids=["light", "dark", "print", "curator light", "curator dark"])
def test_text_has_contrast(sheet: str, colors: dict[str, str]) -> None:
    """Text has a contrast of at least 4.5:1 with what is behind it, in both schemes and on paper."""
    for front, back in TEXT_ON[sheet]:
        light, dark = sorted((luminance(colors[front]), luminance(colors[back])), reverse=True)

        assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def test_page_fetches_nothing(collected: Folder) -> None:
    """The page names no other file or site, has no script, and its policy allows its style sheet only."""
    page = page_of(collected())

    assert [] == re.findall(r"(?:src|href|url|@import)\s*[=(]", page)
    assert "<script" not in page
    assert [] == re.findall(r"\sstyle=", page)
    assert content_security_policy().replace("'", "&#39;") in page
    assert f"<style>{style_sheet()}</style>" in page


def test_protected_page_states_what_was_checked(collected: Folder) -> None:
    """Epsilon per answer and per worker, participation, certificate and what is not covered stand on the page."""
    page = page_of(collected(), title="Night shifts", question="How often?")

    for text in ("Night shifts", "How often?", "randomized-response", "participation protected", "Not covered",
                 "corrected for the noise of the channel"):  # fmt: skip
        assert text in page
    assert 2 <= len(re.findall(r"\b45\b", page))
    assert 1 == len(re.findall(r'<dd class="hash">[0-9a-f]{64}</dd>', page))


@pytest.mark.parametrize("case", ["plain", "simulation"])
def test_page_without_guarantee_has_no_epsilon(case: str, collected: Folder, request: pytest.FixtureRequest) -> None:
    """Without a checked guarantee the word epsilon is not on the page."""
    folder = collected("--seed", 1) if case == "simulation" else request.getfixturevalue("plain")
    page = page_of(folder)

    assert "epsilon" not in page.lower()
    said, shown = ("Simulation only: no privacy.", "warn") if case == "simulation" else (NOT_STATED, "neutral")
    assert 1 == page.count(said)
    assert f'<div class="notice {shown}">' in page
    assert case == "simulation" or "privacy" not in section(page, "conclusion")


def test_workers_are_named_on_request_only(tmp_path: Path) -> None:
    """Names of workers are on the page with the option only."""
    rows = [f"t{task},person-{worker},{'yes' if task % 2 else 'no'}" for task in range(6) for worker in range(5)]
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *rows]))
    command("infer", tmp_path / "labels.csv", "--out", tmp_path / "found")

    assert "person-" not in page_of(tmp_path / "found")
    assert 5 == len(set(re.findall(r"person-\d", page_of(tmp_path / "found", with_workers=True))))


def test_names_are_text(tmp_path: Path) -> None:
    """Markup in a task or label is escaped."""
    rows = [f"<b>{task}</b>,w{worker},<i>{task}</i>" for task in range(3) for worker in range(3)]
    (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *rows]))
    command("infer", tmp_path / "labels.csv", "--out", tmp_path / "found")
    page = page_of(tmp_path / "found", title="<u>title</u>")

    assert [] == re.findall("<[biu]>", page)
    assert "&lt;u&gt;title&lt;/u&gt;" in page


@pytest.mark.slow
@pytest.mark.parametrize("case", ["labels", "numbers"])
def test_pictures_have_titles(case: str, collected: Folder, request: pytest.FixtureRequest) -> None:
    """Every picture is valid XML with a title and a description, which its label names."""
    folder = collected() if case == "labels" else request.getfixturevalue("numbers")
    pictures = re.findall(r'<svg role="img".*?</svg>', page_of(folder, with_workers=True), re.DOTALL)
    names: list[str | None] = []
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        ids = {element.get("id"): element.text for element in root if element.tag in ("title", "desc")}
        names += ids

        assert set((root.get("aria-labelledby") or "").split()) == set(ids)
        assert all(ids.values())
    # Numbers that hardly differ have no picture: it depends on the noise.
    assert len(pictures) in {"labels": (6,), "numbers": (2, 3)}[case]
    assert len(names) == len(set(names))


def test_the_same_results_give_the_same_page(collected: Folder) -> None:
    """The page has no date and no random part, and an earlier one is replaced."""
    folder = collected()

    assert page_of(folder) == page_of(folder)


def test_reports_in_another_folder_are_asked_for(collected: Folder, plain: Path) -> None:
    """Without their reports no epsilon is stated of truths, and the command says how to name them."""
    known = command("report", collected(), "--out", plain / "page.html")
    (plain.parent / "answers.csv").rename(plain.parent / "moved.csv")
    shown = " ".join(command("report", plain, "--out", plain / "page.html").split())

    assert "No collection of protected reports was given" in shown
    assert "name them: --reports" in shown
    assert "name them" not in known


def test_page_of_a_campaign(campaign_folder: Folder) -> None:
    """A campaign gives title, question, texts of tasks and its hash."""
    folder = campaign_folder()
    page = folder / "page.html"
    command("report", folder, "--campaign", folder / "campaign.json", "--out", page)
    campaign = read_campaign(folder / "campaign.json")

    for text in (campaign.title, campaign.question, campaign.tasks[0].text, campaign.name, "Results of a campaign"):
        assert text in page.read_text("utf-8")


def test_tasks_stand_in_the_order_of_the_campaign() -> None:
    """Tasks of a campaign come in its order, other tasks by their names, and numbers in names by their size."""
    names = ("essay 10", "b", "essay 9", "a", "essay 010")

    assert [3, 1, 2, 4, 0] == campaign_task_order(names, PageText())
    assert [1, 4, 3, 2, 0] == campaign_task_order(names, PageText(task_texts={"b": "", "essay 010": ""}))


@pytest.mark.parametrize(
    ("status", "epsilon", "shown"),
    [("protected", 2.0, ""), ("protected", 3.0, "neutral"), ("none", None, "neutral"), ("simulation", None, "warn")],
)
def test_the_line_on_privacy_is_green_where_a_person_is_protected(
    status: Status, epsilon: float | None, shown: str
) -> None:
    """Epsilon 2 of a person leaves 88 % certainty, epsilon 3 95.3 %; data without a guarantee give no alarm."""
    person = None if epsilon is None else Guarantee(epsilon=epsilon, participation="protected", unit="worker")

    assert shown == _css_class_of_privacy_line(PrivacyStatement(status=status, per_worker=person))


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


@pytest.mark.parametrize("workers", ["a", "ab"])
def test_numbers_whose_answers_are_equal_have_no_error(tmp_path: Path, workers: str) -> None:
    """Where no two answers to a task differ, no figure is nan: neither what `infer` prints nor the page."""
    rows = [f"{task},{who},{task**2}" for task in range(3) for who in workers]
    (tmp_path / "numbers.csv").write_text("\n".join(["task,worker,value", *rows]))
    printed = command("infer", tmp_path / "numbers.csv", "--kind", "numeric", "--out", tmp_path / "found")
    command("report", tmp_path / "found")
    page = (tmp_path / "found" / "report.html").read_text("utf-8")

    assert "Always answering 1: expected mean error 1.333. 2 truths differ." in " ".join(printed.split())
    assert re.search(r"\bnan\b", printed + page) is None


@pytest.mark.parametrize(("tasks", "constant", "told_apart"), [(6, 3, False), (60, 3, True), (6, 1, True)])
def test_truths_that_constant_workers_may_decide_are_used_with_care(
    tmp_path: Path, tasks: int, constant: int, told_apart: bool
) -> None:
    """On six tasks, three of five workers with one label are named first, on the page and by `infer`; else not."""
    pairs = [(f"w{who}", truth) for who in range(5) for truth in range(tasks)]
    rows = [(f"i{task}", who, "no" if int(who[1]) < constant or task % 2 else "yes") for who, task in pairs]
    page = results(tmp_path, rows)
    printed = " ".join(command("infer", tmp_path / "labels.csv", "--out", tmp_path / "again").split())
    first = "Too few tasks to tell workers apart (median: 6 answers each): 3 of 5 workers give one label"

    conclusion = section(page, "conclusion").partition("</h2>")[2].lstrip()
    assert told_apart is not conclusion.startswith(f"<p>{first}")
    assert told_apart is not printed.startswith(f"warning {first}")
    assert told_apart is not ("Use these truths with care" in conclusion)


def section(page: str, name: str) -> str:
    """Return one section of a page."""
    return re.split(f'<h2 id="{name}">', page)[1].partition("</section>")[0]


def test_long_tables_are_folded_in_natural_order(tmp_path: Path) -> None:
    """Five rows are shown, the others are folded; item 2 comes before item 10."""
    truths = section(results(tmp_path, agreed(30)), "truths")
    shown, folded = truths.split("<details>")

    assert [f"item {place}" for place in range(1, 6)] == re.findall('<td><bdi class="foreign">(item [0-9]+)', shown)
    assert [f"item {place}" for place in range(6, 31)] == re.findall('<td><bdi class="foreign">(item [0-9]+)', folded)
    assert "<summary>25 more</summary>" in folded


def test_tasks_are_ranked_only_where_some_are_more_doubtful(tmp_path: Path) -> None:
    """Truths that are all certain have no list of doubtful ones; a task with divided answers begins one."""
    certain = section(results(tmp_path, agreed(30)), "doubtful")
    divided = [("item 31", f"w{worker}", "no" if worker < 3 else "yes") for worker in range(6)]
    doubtful = section(results(tmp_path, [*agreed(30), *divided]), "doubtful")

    assert "No truth is more doubtful than the others" in certain
    assert "<table>" not in certain
    assert "item 31" == re.findall('<td><bdi class="foreign">(item [0-9]+)', doubtful)[0]


def test_certain_truths_have_a_chart_of_confidence(tmp_path: Path) -> None:
    """The classes of confidence end at 99.9 %, so that a page on which all is certain shows how certain.

    One pseudo-task without information keeps thirty tasks below 99 %.
    """
    page = results(tmp_path, agreed(30))
    texts = re.search(r'<desc id="confidence-text">(.*?)</desc>', page)

    assert texts is not None
    assert 30 == sum(map(int, re.findall(r": ([0-9]+)", texts[1])))
    assert "; 90 to 99 %: 30; 99 to 99.9 %: 0" in texts[1]


def test_no_label_is_cut(tmp_path: Path) -> None:
    """A label that is longer than its place stands above its bar, on as many lines as it needs."""
    page = results(tmp_path, agreed(30, (LONG, "yes")))
    picture = re.search(r'<svg role="img" aria-labelledby="truths-title.*?</svg>', page, re.DOTALL)

    assert picture is not None
    lines = [text.text or "" for text in ElementTree.fromstring(picture[0]).iter("text") if text.get("class") == "name"]
    assert repr(LONG) == " ".join(lines[:-1])
    assert "…" not in picture[0]


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
