"""Progress of long work on one line: replaced HTML in a notebook, stderr on a terminal, nothing elsewhere."""

import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self, TextIO

from crowdveil.display.html import filled

SECONDS = 0.1
"""Least time between two updates."""


class ProgressDisplay:
    """Callback of `fit(progress=)` that shows every step; a context, which ends the line.

    Args:
        title: name of the work.
        total: number of steps; None if it is unknown.
        stream: terminal.
    """

    def __init__(self, title: str, total: int | None = None, stream: TextIO | None = None) -> None:
        self.title, self.total = title, total
        self.stream = sys.stderr if stream is None else stream
        self._shown, self._last = 0.0, (0, 0.0)
        self._handle: Any = None
        self._display = notebook_display_module()

    def __enter__(self) -> Self:
        """Return the display itself."""
        return self

    def __call__(self, number: int, change: float) -> None:
        """Show the number of a finished step, and the largest change of a posterior where the total is unknown."""
        self._last = number, change
        if monotonic() - self._shown >= SECONDS:
            self._show_progress_line()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the last step in a notebook; clear the line of a terminal."""
        if self._display is not None and self._last[0]:
            self._show_progress_line()
        elif self._shown and self.stream.isatty():
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    @property
    def last_step_text(self) -> str:
        """The last step in words."""
        number, change = self._last
        if self.total is None:
            return f"{self.title}: step {number:,}, largest change {change:.2g}"
        return f"{self.title}: {number:,} of {self.total:,}"

    def _show_progress_line(self) -> None:
        self._shown = monotonic()
        if self._display is not None:
            self._show_html(self._display)
        elif self.stream.isatty():
            self.stream.write(f"\r\x1b[K{self.last_step_text}")
            self.stream.flush()

    def _show_html(self, display: Any) -> None:
        """Replace the HTML of the first call."""
        bar = '<progress max="{total}" value="{done}"></progress> '
        share = "" if self.total is None else filled(bar, total=self.total, done=self._last[0])
        html = display.HTML(filled('<div role="status">{share}{text}</div>', share=share, text=self.last_step_text))
        if self._handle is None:
            self._handle = display.display(html, display_id=True)
        else:
            self._handle.update(html)


def notebook_display_module() -> Any:
    """Return the module `IPython.display` of a running notebook; None elsewhere. IPython is not imported."""
    ipython, display = sys.modules.get("IPython"), sys.modules.get("IPython.display")
    shell = None if ipython is None or display is None else ipython.get_ipython()
    return display if shell is not None and "IPKernelApp" in shell.config else None
