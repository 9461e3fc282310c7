"""Pictures of the documentation: a page of results for a company, for a teacher, and one of answers that say nothing.

Usage: python tools/result_pages.py docs/assets, with Playwright and the program `chromium`.
"""

import csv
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from click.testing import CliRunner
from playwright.sync_api import sync_playwright

from crowdveil.cli import main

WIDTH, HEIGHT = 900, 860
LABELS = ("cat", "dog", "neither")
WORKERS = ("Ann", "Ben", "Carla", "Dev", "Eve", "Finn", "Gus", "Hana")


def run(*words: object) -> None:
    """Run a command of crowdveil."""
    result = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def write(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Path:
    """Write a table, and return its path."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([names, *rows])
    return path


def company(folder: Path) -> Path:
    """Return the results of 300 pictures with four labels each, by eight workers."""
    draw = np.random.default_rng(7)
    rows = []
    for task in range(1, 301):
        truth = draw.choice(3, p=(0.5, 0.35, 0.15))
        for worker in draw.choice(8, 4, replace=False):
            right = draw.random() < (0.93 if worker < 6 else 0.7)
            label = truth if right else draw.choice([code for code in range(3) if code != truth])
            rows.append((f"picture {task}", WORKERS[worker], LABELS[label]))
    run("infer", write(folder / "pictures.csv", ("task", "worker", "label"), rows), "--out", folder / "company")
    run("report", folder / "company", "--title", "Pictures of March", "--question", "What does the picture show?")
    return folder / "company"


def essays(folder: Path, name: str, epsilon: float, title: str) -> Path:
    """Return the results of 40 essays, graded by 40 students with five grades each, at this epsilon of a grade."""
    draw = np.random.default_rng(3)
    tasks, workers = [f"essay {n}" for n in range(1, 41)], [f"student {n}" for n in range(1, 41)]
    truth = np.clip(np.round(draw.normal(6.5, 1.8, 40)), 0, 10)
    asked = [(task, worker) for worker in range(40) for task in (worker + np.array([0, 7, 15, 22, 31])) % 40]
    grades = [int(np.clip(round(truth[task] + draw.normal(0, 1.2)), 0, 10)) for task, _ in asked]
    cells = [(tasks[task], workers[worker]) for task, worker in asked]
    columns = [(*cell, grade) for cell, grade in zip(cells, grades, strict=True)]
    run(
        *("perturb", write(folder / "grades.csv", ("task", "worker", "value"), columns), "--scale", "0:10"),
        *("--assignment", write(folder / "assignment.csv", ("task", "worker"), cells)),
        *("--mechanism", "laplace", "--epsilon", epsilon, "--out", folder / name),
    )
    run("infer", folder / name / "reports.csv", "--out", folder / name)
    run("report", folder / name, "--title", title, "--question", "How good is this essay, from 0 to 10?")
    return folder / name


def photograph(pages: dict[str, Path], out: Path) -> None:
    """Write the first screen of each page as a PNG file."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, page in pages.items():
            view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            view.goto(page.as_uri())
            view.screenshot(path=out / f"results-{name}.png")
        browser.close()


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = {
            "company": company(folder),
            "teacher": essays(folder, "teacher", 8, "Essays, week 4"),
            "nothing": essays(folder, "nothing", 0.5, "Essays, week 5"),
        }
        photograph({name: path / "report.html" for name, path in made.items()}, Path(sys.argv[1]))
