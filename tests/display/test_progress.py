"""Progress: one line that is replaced in a notebook and on a terminal, and nothing in a pipe."""

import io
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from crowdveil import Categories, DawidSkene, aggregate, compare
from crowdveil.display import progress
from crowdveil.display.progress import ProgressDisplay
from crowdveil.randomness import seeded
from crowdveil.simulate import Crowd, categorical_crowd


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


class Notebook:
    """Stand-in for `IPython.display` with a record of what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        """Return the HTML itself."""
        return text

    def display(self, html: str, display_id: bool) -> Any:
        """Record the first HTML and return its handle."""
        self.shown.append(html)
        return SimpleNamespace(update=self.shown.append)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """Pretend that a kernel runs."""
    found = Notebook()
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", found)
    return found


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Return a small simulated crowd."""
    return categorical_crowd(workers=20, tasks=20, labels=Categories(("no", "yes")), sparsity=0.3, source=seeded(1))


def test_a_terminal_shows_the_last_step_and_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every update replaces the line; the end clears it."""
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    stream = Terminal()

    with ProgressDisplay("fit", stream=stream) as shown:
        shown(1, 0.5)
        shown(2, 0.25)

    steps = "".join(f"\r\x1b[Kfit: step {number}, largest change {change}" for number, change in ((1, 0.5), (2, 0.25)))
    assert steps + "\r\x1b[K" == stream.getvalue()


def test_updates_are_not_more_frequent_than_ten_a_second(notebook: Notebook) -> None:
    """A thousand fast steps are a few updates; the last one is shown at the end."""
    with ProgressDisplay("<fit>", 1000) as shown:
        for number in range(1, 1001):
            shown(number, 0.0)

    assert len(notebook.shown) < 20
    assert "&lt;fit&gt;: 1,000 of 1,000" in notebook.shown[-1]
    assert 'value="1000"' in notebook.shown[-1]


def test_a_pipe_gets_nothing() -> None:
    """A stream that is no terminal stays empty."""
    stream = io.StringIO()

    with ProgressDisplay("fit", stream=stream) as shown:
        shown(1, 0.5)

    assert "" == stream.getvalue()


def test_fits_and_comparisons_show_their_progress(notebook: Notebook, crowd: Crowd) -> None:
    """`progress=True` shows the steps of a fit, of `aggregate` and of `compare`, and changes no result."""
    estimate = DawidSkene().fit(crowd.answers, progress=True)

    assert f"dawid-skene: step {estimate.steps}," in notebook.shown[-1]
    assert DawidSkene().fit(crowd.answers).truth.tolist() == estimate.truth.tolist()
    aggregate(crowd.answers, progress=True)
    assert re.search(r"hierarchical-dawid-skene: \d+ of 10<", notebook.shown[-1])
    compare(["randomized-response"], crowd, epsilons=[2.0], progress=True)
    assert "compare: 2 of 2" in notebook.shown[-1]
