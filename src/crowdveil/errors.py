"""The few exceptions of crowdveil; each names the rule, the value and the way out, and carries its numbers."""

from typing import Any


class CrowdveilError(Exception):
    """Base of everything crowdveil refuses; the command line prints it and exits with 1.

    Attributes:
        rule: what must hold, or what happened; empty where the message alone says it.
        value: what was found; None where there is no single value.
        hint: what to do instead; may be empty.
    """

    rule: str = ""
    value: object = None
    hint: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Be the same error, message and numbers, in the process that it is sent to."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[CrowdveilError], args: tuple[object, ...], numbers: dict[str, object]) -> CrowdveilError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(numbers)
    return error


def to_builtin(value: Any) -> Any:
    """Return a number or text of numpy as Python's own, in lists and tuples too: messages show it as it was given."""
    if type(value) in (list, tuple):
        return type(value)(map(to_builtin, value))
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


class SettingsError(CrowdveilError, ValueError):
    """A setting breaks a rule.

    Args:
        rule: what must hold, as a clause ("epsilon must be in (0, 20]").
        value: what was given.
        hint: what to do instead.
    """

    def __init__(self, rule: str, *, value: object, hint: str = "") -> None:
        self.rule, self.value, self.hint = rule, to_builtin(value), hint
        super().__init__(f"{rule}, got {self.value!r}." + (f" {hint}" if hint else ""))


class CertificateError(CrowdveilError, ValueError):
    """A channel or its certificate does not check; `defect` is the short name of the rule that failed."""

    def __init__(self, defect: str, detail: str) -> None:
        self.rule = detail
        self.defect, self.detail = defect, detail
        super().__init__(f"Certificate refused ({defect}): {detail}")


class ReportsError(CrowdveilError, ValueError):
    """Answers or reports could not be accepted as they are.

    Args:
        rule: what must hold.
        source: file name, or "data" for arrays and frames.
        rows: the first offending data rows, counted from 1 without the header.
        examples: what stood there.
        hint: what to do.
    """

    def __init__(
        self, rule: str, *, source: str = "data", rows: tuple[int, ...] = (), examples: str = "", hint: str = ""
    ) -> None:
        self.rule, self.value, self.hint = rule, examples or None, hint
        self.source, self.rows = source, rows
        where = source + (f", row {', '.join(map(str, rows))}" if rows else "")
        found = f" Found: {examples}." if examples else ""
        super().__init__(f"{where}: {rule}.{found}" + (f" {hint}" if hint else ""))


class NoMinimiserError(CrowdveilError):
    """The published matrix factorization has no minimiser: fewer answers than dimensions (Sun et al., Algorithm 2).

    `answers` and `dimensions` are the worker's numbers.
    """

    def __init__(self, *, answers: int, dimensions: int) -> None:
        self.rule, self.value = "the loss of a worker with fewer answers than dimensions has no minimiser", answers
        self.hint = "Use mechanism matrix-factorization (corrected), or a smaller d."
        self.answers, self.dimensions = answers, dimensions
        super().__init__(
            f"The perturbed loss of a worker with rank {answers} < d={dimensions} is unbounded below: no minimiser "
            f"exists and gradient descent never ends. {self.hint}"
        )


class MemoryShortageError(CrowdveilError, MemoryError):
    """There was not enough memory, or address space.

    Args:
        found: what the system said.
    """

    def __init__(self, found: str) -> None:
        self.rule, self.value = "the work must fit into memory", found
        self.hint = (
            "Raise the limit (ulimit -v, or that of the container), close other programs, or give large reports as "
            "encoded blocks (crowdveil encode) and infer with --memory."
        )
        super().__init__(f"{self.rule}, but the system said: {found}. {self.hint}")


MEMORY_ERROR_TEXTS = ("can't start new thread", "failed to map segment", "libllvmlite", "cannot allocate memory")
"""What errors of other classes say where a thread or a library found no address space."""


def memory_shortage(error: BaseException) -> MemoryShortageError | None:
    """Return the error to show if a lack of memory, or of address space, is behind this one; else None."""
    said = str(error).strip().rstrip(".")
    lacking = isinstance(error, MemoryError) or any(sign in said.lower() for sign in MEMORY_ERROR_TEXTS)
    return MemoryShortageError(said.partition("\n")[0][:200] or "out of memory") if lacking else None


class EngineError(CrowdveilError):
    """An engine could not do its work, `attempts` times where it tried again.

    Args:
        what: what happened.
        attempts: how often it was tried.
        hint: what to do.
    """

    def __init__(self, what: str, *, attempts: int = 1, hint: str) -> None:
        self.rule, self.hint = what, hint
        self.what, self.attempts = what, attempts
        often = "" if attempts == 1 else f" ({attempts} attempts)"
        super().__init__(f"{what}{often}. {hint}")
