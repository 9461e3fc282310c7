"""Accessibility of a screen in a browser, computed from what is shown: contrast, targets, names, width, focus."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (color) => weights.reduce((sum, weight, k) => sum + weight * channel(parts(color)[k]), 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      const alpha = parts(color)[3] ?? 1;
      if (alpha === 1) return color;
      if (alpha > 0) throw new Error("half transparent");
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    const pair = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
    found.push([(pair[0] + 0.05) / (pair[1] + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""
PICTURE_CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const over = (front, alpha, back) => front.map((part, k) => alpha * part + (1 - alpha) * back[k]);
  const ground = (node) => {
    for (node = node.closest("svg"); node; node = node.parentElement) {
      const color = parts(getComputedStyle(node).backgroundColor);
      if ((color[3] ?? 1) === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const paint = (style, kind, back) => over(parts(style[kind]).slice(0, 3), Number(style[kind + "Opacity"]), back);
  const found = [];
  for (const node of document.querySelectorAll("svg[role=img] *")) {
    const style = getComputedStyle(node), back = ground(node), table = node.closest("svg").querySelector(".cell");
    const name = `${node.tagName}.${node.getAttribute("class")} ${node.textContent}`;
    if (node.matches("title, desc, .cell") || !node.checkVisibility()) continue;
    const grounds = [back];
    if (table && node.matches(".value")) {
      for (const cell of node.closest("svg").querySelectorAll(".cell")) {
        grounds.push(paint(getComputedStyle(cell), "fill", back));
      }
    }
    const kind = style.stroke === "none" ? "fill" : "stroke";
    for (const behind of grounds) {
      const pair = [light(paint(style, kind, behind)), light(behind)].sort((a, b) => b - a);
      found.push([(pair[0] + 0.05) / (pair[1] + 0.05), node.tagName === "text" ? 4.5 : 3, name]);
    }
  }
  return found;
}"""
"""Contrast of each text and mark of a picture with what is behind it, the least one allowed, and the mark."""
TRANSITIONS_ENDED = """async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
  await Promise.allSettled(document.getAnimations().map((one) => one.finished));
}"""
"""Waits until colours under the pointer have changed: within two frames the pointer is found over what is there now."""
CONTROLS = "button, a.button, select, summary, .option, input:not(.option input)"
TARGETS = """(controls) => Array.from(document.querySelectorAll(controls))
  .filter((node) => node.checkVisibility() && !node.classList.contains("covered"))
  .map((node) => [node.textContent.trim() || node.id, node.getBoundingClientRect().height])"""
NAMED = "input, select, button, a, img, fieldset, section"
NAMELESS = """(named) => Array.from(document.querySelectorAll(named))
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.ariaLabel || node.alt || node.textContent.trim() || node.labels?.[0]?.textContent.trim()
    || document.getElementById(node.getAttribute("aria-labelledby"))?.textContent.trim()))
  .map((node) => node.outerHTML)"""


def await_screen(page: Any, name: str) -> None:
    """Wait until a screen is shown."""
    page.wait_for_selector(f"#{name}:not([hidden])")


@contextmanager
def ledger_change(page: Any) -> Iterator[None]:
    """Change the ledger or its limit inside, and wait until the change is stored: then the page offers a new file."""
    before = page.get_attribute("#export", "href")
    yield
    page.wait_for_function("(before) => document.querySelector('#export').href !== before", arg=before)


def set_limit(page: Any, limit: str) -> None:
    """Set the limit of the ledger, whose part of the page is open."""
    with ledger_change(page):
        page.fill("#limit", limit)
        page.press("#limit", "Enter")


def send_without_answers(page: Any, link: str) -> None:
    """Open a link, answer nothing, and send the report."""
    page.goto(link)
    await_screen(page, "intro")
    page.click("#start")
    await_screen(page, "tasks")
    page.click("#task-form button")
    page.click("#send")
    await_screen(page, "done")


def check_page(page: Any, width: int) -> int:
    """Hold a page to axe-core, to the contrast of its pictures, and to its width; return the number of pictures."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found] == []
    contrasts = page.evaluate(PICTURE_CONTRASTS)
    assert [mark for mark in contrasts if mark[0] < mark[1]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    pictures = page.locator("svg[role=img]").count()
    assert pictures == page.locator("svg[role=img] > title").count()
    return int(pictures)


def check_screen(page: Any, name: str, language: str) -> None:
    """Hold a screen at 360 px to contrast, size of targets, names of controls, width, language, focus and texts."""
    await_screen(page, name)
    page.evaluate(TRANSITIONS_ENDED)
    assert [pair for pair in page.evaluate(CONTRASTS) if pair[0] < 4.5] == []
    assert [pair for pair in page.evaluate(TARGETS, CONTROLS) if pair[1] < 44] == []
    assert page.evaluate(NAMELESS, NAMED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert language == page.evaluate("document.documentElement.lang")
    assert f"{name}-heading" == page.evaluate("document.activeElement.id")
    assert " ".join(re.findall(r"\{\w+\}|undefined|NaN", page.inner_text("body"))) == ""
