"""Warm starts from saved fits: EM over all reports from the parameters of an earlier fit of some of them.

A fixed point of EM does not depend on the initial parameters, so the result is that of a fit from scratch unless the
likelihood has several optima.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any

from crowdveil.channels.alphabet import Alphabet, alphabet_to_json
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.data.assignment import Assignment
from crowdveil.data.reports import Reports
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator, prior_vector
from crowdveil.em.executor import Engine
from crowdveil.em.model import Progress
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.incremental.saved_fit import SavedFit

STOPPING = {"max_steps", "tolerance", "error_correlation", "temperature"}
"""Settings of the stopping rule and of the confidence, which may differ from those of the saved fit."""
IDENTITY = {
    "method": "the method",
    "settings": "the settings",
    "channel_sha256": "the channel (SHA-256 of its certificate)",
    "assigned": "the kind of campaign (whether tasks are assigned)",
    "reports": "the labels or scale of reports",
    "truths": "the labels or scale of truths",
    "prior": "the public prior",
}
"""Properties of a fit that must be those of the saved one, with their names in errors."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """Estimate, and the saved fit for the next one.

    Attributes:
        estimate: truths and workers.
        saved: for the next fit.
        passes: number of steps over all reports, those of every restart included.
    """

    estimate: Estimate
    saved: SavedFit
    passes: int


def fit_on(
    estimator: Estimator[Any, Any],
    reports: Reports,
    *,
    start_from: SavedFit | None = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    gold: Mapping[Any, Any] | None = None,
    prior: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    memory: int | None = None,
) -> Fit:
    """Return the fit of all reports, from scratch or from a saved fit of some of them, with a saved fit for the next.

    Args:
        estimator: of the same method and settings as the saved fit; the stopping rule may differ.
        reports: all reports, old ones included; there may be new tasks, new workers and changed reports.
        start_from: saved fit; None fits from scratch.
        channel, assignment, gold, prior, progress, engine, memory: as in `Estimator.fit`; gold may differ from that of
            the saved fit.

    Raises:
        SettingsError: the saved fit is of another method, other settings, another channel, alphabet or prior.
        ReportsError: a task or worker of the saved fit is missing; or as `Estimator.fit`.
    """
    identity = _identity(estimator, reports, channel, assignment, prior)
    if start_from is not None:
        _check_identity(start_from.identity, identity)
        _check_names("task", start_from.tasks, reports.tasks)
        _check_names("worker", start_from.state.workers, reports.workers)
    passes = 0

    def counted(step: int, change: float) -> None:
        nonlocal passes
        passes += 1
        if progress is not None:
            progress(step, change)

    estimate = estimator.fit(
        reports,
        channel=channel,
        assignment=assignment,
        gold=gold,
        prior=prior,
        warm_start=None if start_from is None else start_from.state,
        progress=counted,
        engine=engine,
        memory=memory,
    )
    assert estimate.state is not None
    saved = SavedFit(version=version("crowdveil"), identity=identity, tasks=estimate.tasks, state=estimate.state)
    return Fit(estimate=estimate, saved=saved, passes=passes)


def _check_names(role: str, saved: Iterable[Any], given: Iterable[Any]) -> None:
    """Refuse reports that lack tasks or workers of the saved fit, as new reports alone do."""
    present = {str(name) for name in given}
    missing = [str(name) for name in saved if str(name) not in present]
    if missing:
        raise ReportsError(
            f"a resumed fit needs all reports, those of the saved fit included; {len(missing):,} of its {role}s are "
            "missing",
            examples=", ".join(missing[:3]),
            hint=f"Give all reports, or list every {role}; or fit from the start.",
        )


def _identity(
    estimator: Estimator[Any, Any],
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    prior: Mapping[str, float] | None,
) -> dict[str, Any]:
    """Return the properties that a saved fit must share, as plain JSON."""
    own: Any = estimator
    settings = {field.name: getattr(estimator, field.name) for field in fields(own) if field.name not in STOPPING}
    truths = reports.alphabet if channel is None else channel.alphabet
    return {
        "method": estimator.name,
        "settings": {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()},
        "channel_sha256": None if channel is None else channel.certificate()["sha256"],
        "assigned": assignment is not None,
        "reports": _as_json(reports.alphabet),
        "truths": _as_json(truths),
        "prior": None if prior is None else prior_vector(truths, prior).tolist(),
    }


def _as_json(alphabet: Alphabet | None) -> dict[str, object] | None:
    return None if alphabet is None else alphabet_to_json(alphabet)


def _check_identity(saved: dict[str, Any], now: dict[str, Any]) -> None:
    for field, name in IDENTITY.items():
        if saved[field] != now[field]:
            raise SettingsError(
                f"cannot resume: {name} differs from the saved fit ({saved[field]!r})",
                value=now[field],
                hint="Use the same as in the saved fit, or fit from the start.",
            )
