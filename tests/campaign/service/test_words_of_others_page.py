"""Words of a curator on the worker's page in Chromium: on every screen in quotes, in elements of their own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crowdveil.channels.channel import Channel
from tests.campaign.builders import response
from tests.campaign.hostile import MARK, false_promise, hostile_channel, hostile_content, write_picture
from tests.campaign.service.accessibility import await_screen, check_screen
from tests.campaign.service.browser import Campaigning, campaigning, chromium, needs_chromium

pytestmark = [needs_chromium, pytest.mark.slow]
OUTSIDE_QUOTES = """() => {
  document.querySelectorAll("details").forEach((part) => (part.open = true));
  const copy = document.querySelector("body").cloneNode(true);
  copy.querySelectorAll(".foreign, script, style").forEach((node) => node.remove());
  const hidden = Array.from(copy.querySelectorAll("*"), (node) => [node.title, node.alt, node.ariaLabel]).flat();
  return [copy.textContent, ...hidden, document.title].join("\\n").replaceAll(/\u201c[^\u201d]*\u201d/g, "");
}"""
"""Text of a page, and of its attributes, outside the elements of others' words and outside quotes."""
QUOTES_OF_OTHERS = """() => Array.from(document.querySelectorAll(".foreign"), (node) =>
  getComputedStyle(node, "::before").content + getComputedStyle(node, "::after").content)"""

PICTURES_LOADED = "() => Array.from(document.images).every((one) => one.src && one.complete)"
"""True where no picture is awaited; those of tasks are asked for after their screen is shown."""


@contextmanager
def asking(folder: Path, channels: Sequence[Channel], **content: Any) -> Iterator[Campaigning]:
    """Run the service with the campaign of false promises."""
    write_picture(folder / "campaign")
    with campaigning(folder, channels=channels, content={**hostile_content(), **content}) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for all tests of this file."""
    with chromium() as running:
        yield running


def check_words(page: Any, screen: str, *, said: str = "") -> None:
    """Hold a screen to quotes around all words of the curator; `said` must stand there in quotes."""
    await_screen(page, screen)
    outside = page.evaluate(OUTSIDE_QUOTES)

    assert MARK not in outside
    assert {"open-quoteclose-quote"} >= set(page.evaluate(QUOTES_OF_OTHERS))
    assert said in page.inner_text("body")


def answer_all_screens(page: Any, service: Campaigning, label: str) -> None:
    """Go through all screens of the first worker, and hold each to quotes."""
    page.goto(service.link(0))
    check_words(page, "intro", said=false_promise("report"))
    page.click("#start")
    check_words(page, "tasks", said=false_promise("answer"))
    menu = page.locator("fieldset select")
    if menu.count():
        menu.first.select_option("1")
    else:
        page.locator("fieldset").first.get_by_text(label, exact=True).click()
    page.wait_for_function("() => document.querySelector('.bar p').textContent.startsWith('1')")
    page.click("#task-form button")
    check_words(page, "review")
    page.click("#back")
    check_words(page, "tasks")
    page.click("#task-form button")
    page.click("#send")
    check_words(page, "done", said=false_promise("title"))


@pytest.mark.parametrize("labels", [2, 14])
def test_no_screen_says_what_the_curator_says(browser: Any, tmp_path: Path, labels: int) -> None:
    """Title, question, consent, tasks, pictures, answers as buttons or in a menu, and reports are quoted everywhere."""
    channel = hostile_channel(labels)
    with asking(tmp_path, [channel]) as service:
        page = browser.new_context(locale="en-US").new_page()
        answer_all_screens(page, service, channel.alphabet.names[1])

        assert 1 == len(service.bodies())


def test_the_list_of_begun_campaigns_quotes_their_titles(browser: Any, tmp_path: Path) -> None:
    """The first page names a campaign that was begun on a button, in quotes."""
    with asking(tmp_path, [hostile_channel()]) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        page.click("#start")
        await_screen(page, "tasks")
        other = page.context.new_page()
        other.goto(f"{service.built.campaign.url}/a/")
        check_words(other, "welcome", said=false_promise("title"))


def test_levels_quote_the_consent(browser: Any, tmp_path: Path) -> None:
    """The consent before the choice of a level stands in quotes."""
    levels = [response(hostile_channel().alphabet, epsilon) for epsilon in (0.5, 1.0)]
    with asking(tmp_path, levels, levels=2) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        check_words(page, "level", said=false_promise("consent"))


@pytest.mark.parametrize("language", ["en", "de"])
def test_quoted_names_can_be_read_by_everybody(browser: Any, tmp_path: Path, language: str) -> None:
    """Numbered reports, quoted tasks and answers pass the checks of accessibility at 360 pixels."""
    small = {"width": 360, "height": 700}
    with asking(tmp_path, [hostile_channel()]) as service:
        page = browser.new_context(locale="en-US", viewport=small, reduced_motion="reduce").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        page.click(f"[data-language={language}]")
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
        page.focus("#intro-heading")
        check_screen(page, "intro", language)
        page.click("#start")
        check_screen(page, "tasks", language)


def test_the_chances_number_what_is_sent(browser: Any, tmp_path: Path) -> None:
    """No heading of the table of chances is a word of the curator: reports and answers have numbers there."""
    with asking(tmp_path, [hostile_channel()]) as service:
        page = browser.new_context(locale="en-US").new_page()
        page.goto(service.link(0))
        await_screen(page, "intro")
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")

        assert ["Your answer", "#3", "#4", "#5", "#1", "#2", "No answer"] == page.locator(
            "#chances th"
        ).all_inner_texts()
        assert [f"#{number}" for number in range(1, 6)] == [
            text[:2] for text in page.locator("#chances li").all_inner_texts()
        ]


def test_the_page_names_the_moments_that_the_service_sees(browser: Any, tmp_path: Path) -> None:
    """Requests come when the page opens, at Start, on the way back to tasks with pictures, and at Send; no others."""
    with asking(tmp_path, [hostile_channel()]) as service:
        page = browser.new_context(locale="en-US").new_page()
        seen: list[str] = []
        page.on("request", lambda request: seen.append(request.url))

        def asks(press: str, screen: str) -> bool:
            seen.clear()
            page.click(press)
            await_screen(page, screen)
            page.wait_for_function(PICTURES_LOADED)
            return bool([url for url in seen if url.startswith("http")])

        page.goto(service.link(0))
        await_screen(page, "intro")
        page.evaluate("document.querySelectorAll('details').forEach((part) => part.open = true)")
        text = page.inner_text("#intro")
        steps = [("#start", "tasks"), ("#task-form button", "review"), ("#back", "tasks")]
        steps += [("#task-form button", "review"), ("#send", "done")]

        assert [True, False, True, False, True] == [asks(*step) for step in steps]
        assert "when you open it, press Start, go back to the tasks, and send" in text
        assert "this many reports are needed first: 2. This device cannot check it." in text
