"""Values given to a fit beside the answers: known truths, prior, history and saved fit, with their recorded inputs."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from crowdveil.answers.facts.inputs import Input, Role
from crowdveil.answers.facts.prior import Prior
from crowdveil.arguments import require_instance
from crowdveil.em.gold import drawn_gold
from crowdveil.em.saved_fit import SavedFit
from crowdveil.em.worker_history import WorkerHistory, as_history
from crowdveil.errors import ReportsError


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownTruths:
    """Known truths by task.

    Attributes:
        truths: label or number by task.
        seed: of the draw of the tasks; None without one.
        chosen: whether the tasks were chosen for a person to decide.
        source: name for error messages.
        inputs: what they were read from.
    """

    truths: Mapping[Any, Any]
    seed: int | None = None
    chosen: bool = False
    source: str = "gold"
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """Earlier quality of the workers.

    Attributes:
        workers: their qualities.
        tasks: tasks of the earlier truths, as text; empty if they are unknown.
        source: name for error messages.
        inputs: what it was read from.
    """

    workers: WorkerHistory
    tasks: tuple[str, ...] = ()
    source: str = "history"
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """Saved fit from which a fit starts.

    Attributes:
        fit: learned parameters.
        inputs: what it was read from.
    """

    fit: SavedFit
    inputs: tuple[Input, ...] = ()


def as_known_truths(gold: Any, *, public: bool = False) -> KnownTruths | None:
    """Return known truths of a mapping or frame; None without any.

    Args:
        gold: truth by task, a frame with the columns of a file of gold, or `KnownTruths`.
        public: whether they are stated to be independent of all answers.

    Raises:
        SettingsError: another type.
        ReportsError: a frame without these columns, or with two truths of one task.
    """
    if gold is None or isinstance(gold, KnownTruths):
        return gold
    drawn = drawn_gold(gold)
    rows = sorted((str(task), str(truth)) for task, truth in drawn.truths.items())
    return KnownTruths(**drawn._asdict(), inputs=(_input_in_memory("gold", rows, public=public),))


@contextmanager
def errors_naming_gold_source(known: KnownTruths | None) -> Iterator[None]:
    """Give errors of known truths, which name them as gold, the name of their file."""
    try:
        yield
    except ReportsError as error:
        if known is None or error.source != KnownTruths.source:
            raise
        raise error.changed(source=known.source) from None


def as_prior(prior: Any) -> Prior | None:
    """Return the prior of a mapping from label to probability; None without one; errors as `Prior`."""
    if prior is None or (isinstance(prior, Prior) and prior.inputs):
        return prior
    found = Prior.of(prior)
    rows = sorted((str(label), float(share)) for label, share in found.probabilities.items())
    return replace(found, inputs=(_input_in_memory("prior", rows, public=True),))


def as_worker_history(history: Any) -> History | None:
    """Return the history of an earlier estimate or frame; None without one; errors as `as_history`."""
    if history is None or isinstance(history, History):
        return history
    workers = as_history(history)
    rows = [list(workers.workers), workers.answers.tolist(), workers.quality.tolist()]
    return History(workers=workers, inputs=(_input_in_memory("history", rows),))


def as_start(start: Any) -> Start | None:
    """Return the start from a saved fit; None without one."""
    if start is None or isinstance(start, Start):
        return start
    hint = "Such as start_from=earlier.saved_fit(), of an earlier Inference."
    require_instance("start_from", start, SavedFit, what="a saved fit", hint=hint)
    names = [list(map(str, start.tasks.tolist())), start.identity]
    return Start(fit=start, inputs=(_input_in_memory("start_from", names),))


def _input_in_memory(role: Role, rows: Any, *, public: bool = False) -> Input:
    """Return a value in memory as an input, by the digest of its contents."""
    text = json.dumps(rows, ensure_ascii=False, default=str)
    return Input(role=role, sha256=hashlib.sha256(text.encode()).hexdigest(), public=public)
