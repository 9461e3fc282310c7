"""Pictures of a result: truths, confidence, intervals and the channel, drawn by `presentation.svg_pictures`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.channel import MAX_DRAWN, Channel
from crowdveil.presentation.html import Html
from crowdveil.presentation.svg_pictures import bar_chart, count_bars, interval_chart, share_histogram

MAX_INTERVALS = 24
BINS = 10
CONFIDENCE_CLASSES = {
    "below 60 %": 0.6,
    "60 to 80 %": 0.8,
    "80 to 90 %": 0.9,
    "90 to 99 %": 0.99,
    "99 to 99.9 %": 0.999,
    "above 99.9 %": np.inf,
}
"""Upper ends of classes of confidence, narrower where truths are surer."""


def label_counts(name: str, labels: Sequence[str], truth: NDArray[np.int64]) -> Html:
    """Return the number of tasks by inferred label, as `count_bars`; `truth` has the codes of the decided tasks."""
    counts = np.bincount(truth, minlength=len(labels))
    return count_bars(name, "Tasks by inferred truth", labels, counts.tolist())


def confidence_classes(name: str, confidence: NDArray[np.float64]) -> Html:
    """Return the number of tasks by class of confidence.

    Args:
        name: as for `bar_chart`.
        confidence: in [0, 1], shape (tasks,).
    """
    place = np.searchsorted([*CONFIDENCE_CLASSES.values()], confidence, side="right")
    counts = np.bincount(place, minlength=len(CONFIDENCE_CLASSES)).tolist()
    rows = [(label, float(count), f"{count:,}") for label, count in zip(CONFIDENCE_CLASSES, counts, strict=True)]
    return bar_chart(name, "Tasks by confidence", rows)


def histogram(name: str, title: str, shares: NDArray[np.float64], unit: str) -> Html:
    """Return a histogram of shares in ten classes from 0 to 100 %.

    Args:
        name, title, unit: as for `share_histogram`.
        shares: in [0, 1]; others are left out.
    """
    counts, _ = np.histogram(shares[np.isfinite(shares)], bins=BINS, range=(0, 1))
    return share_histogram(name, title, counts.tolist(), unit)


def numbers_chart(
    name: str,
    tasks: Sequence[str],
    truth: NDArray[np.float64],
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
) -> Html:
    """Return numeric truths with their 90 % intervals, in ascending order; evenly chosen ones of more than 24."""
    order = [int(task) for task in np.argsort(truth, kind="stable") if np.isfinite(truth[task])]
    chosen = [
        order[i] for i in np.unique(np.linspace(0, max(len(order) - 1, 0), MAX_INTERVALS).astype(int))[: len(order)]
    ]
    lows, highs = (truth if low is None else low), (truth if high is None else high)
    title = "Inferred numbers with 90 % intervals" if low is not None else "Inferred numbers"
    rows = [(tasks[task], float(truth[task]), float(lows[task]), float(highs[task])) for task in chosen]
    return interval_chart(name, title, rows)


def channel_table(name: str, channel: Channel) -> Html | None:
    """Return P(report | answer) as a table of shaded cells; None for more than 12 symbols."""
    return channel.picture(name) if max(len(channel.inputs), len(channel.outputs)) <= MAX_DRAWN else None
