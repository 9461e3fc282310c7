"""Accessibility of a screen in a browser, computed from what is shown: contrast, targets, names, width, focus."""

import re
from typing import Any

WAIT = 5_000
"""Milliseconds until a screen must be there."""
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
    page.wait_for_selector(f"#{name}:not([hidden])", timeout=WAIT)


def check_screen(page: Any, name: str, language: str) -> None:
    """Hold a screen at 360 px to contrast, size of targets, names of controls, width, language, focus and texts."""
    await_screen(page, name)
    page.wait_for_timeout(50)
    assert [pair for pair in page.evaluate(CONTRASTS) if pair[0] < 4.5] == []
    assert [pair for pair in page.evaluate(TARGETS, CONTROLS) if pair[1] < 44] == []
    assert page.evaluate(NAMELESS, NAMED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert language == page.evaluate("document.documentElement.lang")
    assert f"{name}-heading" == page.evaluate("document.activeElement.id")
    assert " ".join(re.findall(r"\{\w+\}|undefined|NaN", page.inner_text("body"))) == ""
