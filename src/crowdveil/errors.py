"""Exceptions of crowdveil, each with the rule, the value found and a hint."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Self

from crowdveil.hints import advice

Code = Literal["", "no worker or answer column", "one label", "unknown label"]
"""Short names of errors on which code decides; no code decides on the text of an error."""


class CrowdveilError(Exception):
    """Base class of all errors of crowdveil; the command line prints it and exits with 1.

    Attributes:
        rule: violated rule, or the failure; empty if only the message is set.
        value: offending value; None if there is no single one.
        hint: suggested remedy; may be empty.
        code: short name of the error where code decides on it; else empty.
        temporary: whether the same request may succeed at another time; such as after a full disk.

    >>> from crowdveil import CrowdveilError, Scale
    >>> try:
    ...     Scale(1, 0)
    ... except CrowdveilError as error:
    ...     print(error.rule)
    a scale needs finite low < high and step > 0
    """

    rule: str = ""
    value: object = None
    hint: str = ""
    code: Code = ""
    temporary: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments for unpickling; attributes are kept across processes."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(error_type: type[CrowdveilError], args: tuple[object, ...], state: dict[str, object]) -> CrowdveilError:
    error = error_type.__new__(error_type, *args)
    error.__dict__.update(state)
    return error


def numpy_scalars_to_python(value: Any) -> Any:
    """Return numpy scalars as Python values, in lists and tuples too; other values unchanged."""
    if type(value) in (list, tuple):
        return type(value)(map(numpy_scalars_to_python, value))
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


class SettingsError(CrowdveilError, ValueError):
    """A setting breaks a rule.

    Args:
        rule: violated rule, as a clause ("epsilon must be in (0, 20]").
        value: given value.
        hint: suggested remedy.
        value_in_rule: whether the rule names the value already; the message then does not repeat it.
    """

    def __init__(self, rule: str, *, value: object, hint: str = "", value_in_rule: bool = False) -> None:
        self.rule, self.value, self.hint = rule, numpy_scalars_to_python(value), hint
        found = "" if value_in_rule else f", got {self.value!r}"
        super().__init__(f"{rule}{found}." + (f" {hint}" if hint else ""))


class _FileRefused(ValueError):
    """A file is invalid; `defect` is the short name of the violated rule, `detail` a sentence with what was found."""

    kind: str

    def __init__(self, defect: str, detail: str, *, hint: str = "") -> None:
        self.rule, self.hint = detail, hint or "Correct it, or get the file again from its author."
        self.defect, self.detail = defect, detail
        super().__init__(f"{self.kind} refused ({defect}): {detail} {self.hint}")


class CertificateError(CrowdveilError, _FileRefused):
    """A channel or its certificate is invalid; `defect` is the short name of the violated rule."""

    kind = "Certificate"


class CampaignError(CrowdveilError, _FileRefused):
    """A campaign or one of its files is invalid; `defect` is the short name of the violated rule."""

    kind = "Campaign"


class ClaimError(CrowdveilError, ValueError):
    """Claims of a certificate or a campaign are false.

    Args:
        source: name of the file.
        false: false claims, at least one, as sentences.
        claims: all claims, each with the members claim, holds and found.
    """

    def __init__(self, source: str, false: tuple[str, ...], claims: list[dict[str, Any]]) -> None:
        self.rule, self.value, self.claims = "every claim of the file must hold", source, claims
        self.hint = "Do not rely on the file: get it again from its author."
        super().__init__(f"{source}: it is false that: {' '.join(false)} {self.hint}")


class DeviceError(CrowdveilError):
    """A worker's device does not go on; `defect` is a short name, the message a sentence for the worker."""

    def __init__(self, defect: str, sentence: str) -> None:
        self.rule, self.defect = sentence, defect
        self.temporary = defect in ("busy", "locked")
        self.hint = "Ask the person who invited you, and send nothing until this is clear."
        super().__init__(sentence)


class RowSource(str):
    """Name of a source of rows that says where they stand in its files.

    Attributes:
        place: returns the place of data rows, counted from 1: "answers.csv, line 3". A header is a line, but no row.
    """

    place: Callable[[tuple[int, ...]], str]

    def __new__(cls, name: str, place: Callable[[tuple[int, ...]], str]) -> Self:
        """Return the name with its function."""
        source = super().__new__(cls, name)
        source.place = place
        return source

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments for unpickling."""
        return str(self), self.place


def place_of_rows(source: str, rows: tuple[int, ...]) -> str:
    """Return a source with the place of its rows: their numbers, unless it says where they stand."""
    return source.place(rows) if isinstance(source, RowSource) else f"{source}, row {', '.join(map(str, rows))}"


def place_of_lines(source: str, lines: tuple[int, ...]) -> str:
    """Return a source with the numbers of its lines."""
    return f"{source}, {'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"


class ReportsError(CrowdveilError, ValueError):
    """Invalid answers or reports.

    Args:
        rule: violated rule, as a clause.
        source: file name, or "data" for arrays and frames; a `RowSource` if it says where rows stand.
        rows: first offending data rows, counted from 1 without the header.
        examples: values found there.
        hint: suggested remedy.
        code: short name, if code decides on the error.
        values: values that this code needs, by name.
    """

    values: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        rule: str,
        *,
        source: str = "data",
        rows: tuple[int, ...] = (),
        examples: str = "",
        hint: str = "",
        code: Code = "",
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self.rule, self.value, self.hint = rule, examples or None, hint
        self.source, self.rows = source, rows
        if code:
            self.code = code
        if values:
            self.values = values
        where = place_of_rows(source, rows) if rows else source
        found = f" Found: {examples}." if examples else ""
        super().__init__(f"{where}: {rule}.{found}" + (f" {hint}" if hint else ""))

    def changed(self, **parts: Any) -> "ReportsError":
        """Return the error with another source, rows, examples or hint."""
        kept = {"source": self.source, "rows": self.rows, "examples": str(self.value or "")}
        return ReportsError(self.rule, **kept | {"hint": self.hint, "code": self.code, "values": self.values} | parts)


def join_errors(defects: Sequence[ReportsError]) -> ReportsError:
    """Return the defects of a source, at least one, as one error: the first, with the others in its hint."""
    first, *others = defects
    also = (f"Also{_after_source(str(other), other.source)}" for other in others)
    return first.changed(hint=" ".join([first.hint, *also]).lstrip())


def _after_source(message: str, source: str) -> str:
    """Return a message without the name of the source; with it, if it names a file of several."""
    return message.removeprefix(source) if message.startswith(source) else f": {message}"


def results_or_all_errors(*steps: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the results of all steps on one source.

    Raises:
        ReportsError: the defects that any of the steps found, all at once.
    """
    results, defects = [], []
    for step in steps:
        try:
            results.append(step())
        except ReportsError as error:
            defects.append(error)
    if defects:
        raise join_errors(defects)
    return tuple(results)


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
    """Too little memory or address space.

    Args:
        found: message of the operating system.
    """

    def __init__(self, found: str) -> None:
        self.rule, self.value = "the work must fit into memory", found
        self.hint = (
            "Raise the limit (ulimit -v, or that of the container), close other programs, or give large reports as "
            f"encoded blocks (crowdveil data encode){advice(' with a limit ({memory})')}."
        )
        super().__init__(f"{self.rule}, but the operating system reported: {found}. {self.hint}")


MEMORY_ERROR_TEXTS = (
    "can't start new thread",
    "failed to launch worker thread",
    "failed to map segment",
    "libllvmlite",
    "cannot allocate memory",
)
"""Parts of messages of other exception classes that mean missing address space."""


def memory_shortage_error(error: BaseException) -> MemoryShortageError | None:
    """Return a MemoryShortageError if `error` was caused by missing memory or address space; else None."""
    message = str(error).strip().rstrip(".")
    lacking = isinstance(error, MemoryError) or any(text in message.lower() for text in MEMORY_ERROR_TEXTS)
    return MemoryShortageError(message.partition("\n")[0][:200] or "out of memory") if lacking else None


class EngineError(CrowdveilError):
    """Failure of an engine.

    Args:
        failure: clause that states the failure.
        hint: suggested remedy.
        temporary: whether the fit may succeed at another time.
    """

    def __init__(self, failure: str, *, hint: str, temporary: bool = False) -> None:
        self.rule, self.hint, self.temporary = failure, hint, temporary
        super().__init__(f"{failure}. {hint}")
