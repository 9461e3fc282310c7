"""Release of synthetic claims by a trusted curator as one call: read the claims, release, write the files.

`guarantee.json` holds nothing that depends on the claims beyond the release itself. The number of clipped claims is
shown to the curator only.
"""

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdveil.answers import datasets
from crowdveil.answers.facts.label_notes import notes_on_unread_columns
from crowdveil.answers.ingest.column_checks import Duplicates
from crowdveil.answers.read_options import ReadOptions
from crowdveil.answers.reports import Reports
from crowdveil.answers.sources.answer_source import AnswerSource, local_source
from crowdveil.answers.sources.location import DATASET
from crowdveil.answers.write_reports import ordered_reports_table, write_table
from crowdveil.channels.guarantee import ONE_RUN, Guarantee, Participation, Unit
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import Outputs, Writer, write_outputs
from crowdveil.randomness import secure, seeded
from crowdveil.storage.answers import is_named_dataset_source, read_name_column, refuse_rows_without_answer
from crowdveil.synthesis.expected_error import (
    ReleaseErrors,
    expected_errors_of_release,
    prefer_first,
)
from crowdveil.synthesis.original_claims import Claims, Outside
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape
from crowdveil.synthesis.private.private_method import PrivateMethod, Progress
from crowdveil.synthesis.release import Release

LEFT_OUT = (
    "{:,} answers are not numbers and were left out. With public participation epsilon does not cover that, but the "
    "answers of a public data set are known anyway."
)


def read_claims(
    source: str | AnswerSource,
    *,
    bounds: tuple[float, float],
    outside: Outside = "error",
    duplicates: Duplicates | None = None,
    tasks: Path | None = None,
    participation: Participation = "public",
    simulation: bool = False,
) -> tuple[Claims, tuple[str, ...]]:
    """Return the claims of a source, and notes for the curator on changed or omitted rows.

    Args:
        source: path of a file, `dataset:NAME`, or any opened source. An export may have records without an answer.
        bounds: range of possible claims, independent of the claims.
        outside: policy for claims outside the bounds.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        tasks: a file that lists all tasks, independent of the claims; protected participation needs it. With it, a file
            of claims may have no row.
        participation: whether it is public who claimed what; then no row is left out by its value.
        simulation: whether the release carries no privacy; else values must not decide how they are read.

    Raises:
        ReportsError: the file or a row breaks a rule, a claim is on a task that is not listed, or tasks are listed, or
            the release is private, and the source is an export, JSON or has a column of questions, of which claims
            decide what is read and refused.
        SettingsError: impossible bounds.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(Path(source))
    opened = replace(opened, private=not simulation or tasks is not None)
    complete = participation == "public" and not simulation
    answers, notes = _read_numeric_claims(opened, duplicates, tasks, complete=complete)
    claims = Claims.from_reports(answers, bounds=bounds, outside=outside, public_tasks=tasks is not None)
    notes += (f"{claims.clipped:,} claims lay outside the bounds and were clipped to them.",) if claims.clipped else ()
    return claims, notes


def _read_numeric_claims(
    opened: AnswerSource, duplicates: Duplicates | None, tasks: Path | None, *, complete: bool
) -> tuple[Reports, tuple[str, ...]]:
    listed = None if tasks is None else read_name_column(tasks, "task")
    if is_named_dataset_source(opened.path):
        data = datasets.load(str(opened.path).removeprefix(DATASET), duplicates=duplicates or "first")
        if data.kind != "numeric":
            raise SettingsError(
                "claims must be numbers", value=f"{data.name} is {data.kind}", hint="Give a data set of numbers."
            )
        left_out = (LEFT_OUT.format(data.left_out),) if data.left_out else ()
        return data.answers if listed is None else _with_listed_in_place_of_tasks(
            data.answers, listed, opened.name
        ), left_out
    if opened.is_block_folder:
        raise ReportsError("encoded blocks hold reports, not claims", source=opened.name, hint="Give the claims.")
    columns, notes = opened.read_columns_and_notes()
    if complete:
        refuse_rows_without_answer(columns)
    # With a list of tasks an empty file is accepted: a refusal would show that there is no claim.
    workers = () if listed is not None and not len(columns.task) else None
    options = ReadOptions(kind="numeric", tasks=listed, workers=workers, duplicates=duplicates or "error")
    return Reports.from_columns(columns, options), notes + notes_on_unread_columns(opened.unread_columns)


def _with_listed_in_place_of_tasks(answers: Reports, tasks: list[str], source: str) -> Reports:
    """Return the same numbers with a given list of tasks in place of those that occur."""
    return Reports.from_arrays(
        np.asarray(answers.tasks)[answers.task],
        np.asarray(answers.workers)[answers.worker],
        answers.numbers,
        numeric=True,
        tasks=tasks,
        duplicates="all",
        source=source,
    )


SYNTHETIC_FILE, GUARANTEE_FILE = "synthetic.csv", "guarantee.json"
GUARANTEE_FORMAT = "crowdveil-synthesis/1"
SIMULATED = "a simulation carries no privacy; with secure randomness it would be "
ONE_RELEASE = "a folder holds one release; a second release of the same claims adds to the privacy loss"
PUBLIC = {
    "public": "Known to all: the tasks, their bounds, who claimed what, the settings in this file.",
    "protected": "Known to all: the list of tasks, their bounds, the settings in this file. Epsilon holds whether a "
    "claim is added, removed or replaced.",
}

MethodName = Literal["histogram", "pooled-shape"]


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings:
    """Settings of a release; None where nothing was given.

    Attributes:
        method: release method. None: the more accurate of the two by expected error, from public numbers.
        epsilon, records, unit, most_claims: of `PrivateMethod`.
        participation, expected_claims: of `Histogram`.
    """

    method: MethodName | None = None
    epsilon: float
    records: int = 30
    unit: Unit = "cell"
    participation: Participation = "public"
    expected_claims: float | None = None
    most_claims: int | None = None

    def choose_private_method(self, claims: Claims) -> PrivateMethod:
        """Return the named method, or the one that a setting belongs to, or the more accurate one.

        Args:
            claims: of which only public numbers are read.

        Raises:
            SettingsError: a setting breaks a rule of the method.
        """
        if self.method is not None or self.expected_claims or self.participation == "protected":
            return self._method_from_settings(PooledShape if self.method == "pooled-shape" else Histogram)
        return prefer_first(self._method_from_settings(Histogram), self._method_from_settings(PooledShape), claims)

    def _method_from_settings(self, method: type[PrivateMethod]) -> PrivateMethod:
        names = {field.name for field in fields(method)}
        return method(**{name: value for name, value in asdict(self).items() if name in names and value is not None})


@dataclass(frozen=True, kw_only=True)
class SynthesisResult:
    """A release with the contents of its files.

    Attributes:
        release: in the units of the file.
        method: the release method.
        seed: of a simulation, which carries no privacy; None if the randomness was secure.
        bounds: as given.
        errors: expected errors of the task means of the records.
    """

    release: Release
    method: PrivateMethod
    seed: int | None
    bounds: tuple[float, float]
    errors: ReleaseErrors

    @property
    def bounds_width(self) -> float:
        """Distance of the bounds, in the units of the errors."""
        low, high = self.bounds
        return high - low

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader of the release, from public numbers and the release alone."""
        text = self.errors.constant_warning(self.bounds_width)
        return (text,) if text else ()

    @property
    def guarantees_infinite_if_simulated(self) -> tuple[Guarantee, ...]:
        """Guarantees per claim and per worker; infinite for a simulation."""
        if self.seed is None:
            return self.release.guarantees
        return tuple(
            replace(guarantee, epsilon=math.inf, reason=f"{SIMULATED}{guarantee}")
            for guarantee in self.release.guarantees
        )

    def to_json(self) -> dict[str, Any]:
        """Return the contents of `guarantee.json`; infinity is a text."""
        return {
            "format": GUARANTEE_FORMAT,
            "method": self.method.name,
            "settings": asdict(self.method),
            "bounds": list(self.bounds),
            "guarantees": [
                asdict(one) | ({"epsilon": "infinity"} if math.isinf(one.epsilon) else {})
                for one in self.guarantees_infinite_if_simulated
            ],
            "holds_for": None if self.release.simulation else ONE_RUN,
            "expected": self.errors.to_json(self.bounds_width),
            "public": PUBLIC[self.release.guarantees[0].participation],
            "tasks": len(self.release.tasks),
            "records": len(self.release),
            "withheld": [note._asdict() for note in self.release.withheld],
            "simulation": self.release.simulation,
            "seed": self.seed,
        }


def synthesize(
    claims: Claims,
    settings: SynthesisSettings,
    *,
    bounds: tuple[float, float],
    seed: int | None = None,
    progress: Progress | None = None,
) -> SynthesisResult:
    """Return a release of synthetic claims: private, or, with a seed, a reproducible simulation without any privacy.

    `progress` is called with the finished and the whole work, where the method reports any.

    Raises:
        SettingsError: the method refuses the settings or the claims.
    """
    method = settings.choose_private_method(claims)
    source = secure() if seed is None else seeded(seed)
    release = method.release(claims, source, progress=progress)
    errors = expected_errors_of_release(method, claims, release)
    return SynthesisResult(release=release, method=method, seed=seed, bounds=bounds, errors=errors)


def synthesis_outputs(directory: Path, *, replace: bool) -> Outputs:
    """Return the files of a release as outputs, which refuse an earlier release without `replace`."""
    names = (GUARANTEE_FILE, SYNTHETIC_FILE)
    return Outputs(folder=directory, names=names, kind="synthesis", must_be_new="" if replace else ONE_RELEASE)


def write_synthesis(directory: Path, synthesis: SynthesisResult, *, replace: bool = False) -> None:
    """Write `synthetic.csv` and `guarantee.json`; `replace` removes an earlier release.

    Raises:
        SettingsError: the folder cannot be written or holds a release, or a file in the way is not an earlier release.
    """
    table = ordered_reports_table(synthesis.release.reports())
    guarantee = json.dumps(synthesis.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    files: dict[str, str | Writer] = {
        GUARANTEE_FILE: guarantee,
        SYNTHETIC_FILE: lambda stream: write_table(stream, table),
    }
    write_outputs(synthesis_outputs(directory, replace=replace), files)
