"""Release of synthetic claims by a trusted curator as one call: read the claims, release, write the files.

`guarantee.json` holds nothing that depends on the claims beyond the release itself. The number of clipped claims is
shown to the curator only.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from crowdveil.channels.guarantee import Guarantee, Participation, Unit
from crowdveil.data import datasets
from crowdveil.data.ingest.validation import Duplicates
from crowdveil.data.read_options import ReadOptions
from crowdveil.data.report_tables import reports_table, write_table
from crowdveil.data.reports import Reports
from crowdveil.data.sources.answer_source import AnswerSource, local_source
from crowdveil.data.sources.location import DATASET
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.files.atomic_write import write_files
from crowdveil.folder.answers import is_dataset, read_names, weight_notes
from crowdveil.randomness import secure, seeded
from crowdveil.synthesis.claims import Claims, Outside
from crowdveil.synthesis.expected_error import ReleaseErrors, more_accurate, release_errors
from crowdveil.synthesis.huai2019.kernel_density import Bandwidth
from crowdveil.synthesis.huai2019.methods import HuaiPublished
from crowdveil.synthesis.private.histogram import Histogram
from crowdveil.synthesis.private.pooled_shape import PooledShape
from crowdveil.synthesis.private.release_steps import Progress
from crowdveil.synthesis.release import CurvePoint, Release

LEFT_OUT = (
    "{:,} answers are no numbers and were left out. With public participation epsilon does not cover that, but the "
    "answers of a public data set are known anyway."
)


class ClaimsRead(NamedTuple):
    """Claims, and notes for the curator on changed or omitted rows."""

    claims: Claims
    notes: tuple[str, ...]


def read_claims(
    source: str | AnswerSource,
    *,
    bounds: tuple[float, float],
    outside: Outside = "error",
    logarithmic: bool = False,
    duplicates: Duplicates | None = None,
    tasks: Path | None = None,
    private: bool = False,
) -> ClaimsRead:
    """Return the claims of a source.

    Args:
        source: path of a file, `dataset:NAME`, or any opened source. An export may have records without an answer.
        bounds: range of possible claims, independent of the claims.
        outside: policy for claims outside the bounds.
        logarithmic: use the base-10 logarithms of the claims; then bounds and claims must be positive.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        tasks: a file that lists all tasks, independent of the claims; protected participation needs it. With it, a file
            of claims may have no row.
        private: whether the release is private, so that values must not decide how they are read.

    Raises:
        ReportsError: the file or a row breaks a rule, a claim is on a task that is not listed, or tasks are listed, or
            the release is private, and the source is an export, JSON or has a column of questions, of which claims
            decide what is read and refused.
        SettingsError: impossible bounds.
    """
    opened = source if isinstance(source, AnswerSource) else local_source(Path(source))
    opened = replace(opened, private=private or tasks is not None)
    answers, notes = _read_numbers(opened, duplicates, tasks)
    low, high = bounds
    if logarithmic:
        if not low > 0:
            raise SettingsError("bounds must be positive on a logarithmic scale", value=bounds)
        # A claim of 0 or less is below all bounds; the policy for these decides about it.
        value = np.log10(np.where(answers.numbers > 0, answers.numbers, np.finfo(float).tiny))
        answers = Reports(answers.task, answers.worker, value, answers.tasks, answers.workers)
        low, high = math.log10(low), math.log10(high)
    claims = Claims.from_reports(answers, bounds=(low, high), outside=outside, public_tasks=tasks is not None)
    notes += (f"{claims.clipped:,} claims lay outside the bounds and were clipped to them.",) if claims.clipped else ()
    notes += (f"{claims.dropped:,} claims lay outside the bounds and were left out.",) if claims.dropped else ()
    return ClaimsRead(claims, notes)


def _read_numbers(
    opened: AnswerSource, duplicates: Duplicates | None, tasks: Path | None
) -> tuple[Reports, tuple[str, ...]]:
    listed = None if tasks is None else read_names(tasks, "task")
    if is_dataset(opened.path):
        data = datasets.load(str(opened.path).removeprefix(DATASET), duplicates=duplicates or "first")
        if data.kind != "numeric":
            raise SettingsError("claims must be numbers", value=f"{data.name} is {data.kind}")
        left_out = (LEFT_OUT.format(data.left_out),) if data.left_out else ()
        return data.answers if listed is None else _with_tasks(data.answers, listed, opened.name), left_out
    if opened.is_block_folder:
        raise ReportsError("encoded blocks hold reports, not claims", source=opened.name, hint="Give the claims.")
    columns, notes = opened.read()
    # With a list of tasks an empty file is accepted: a refusal would show that there is no claim.
    workers = () if listed is not None and not len(columns.task) else None
    options = ReadOptions(kind="numeric", tasks=listed, workers=workers, duplicates=duplicates or "error")
    return Reports.from_columns(columns, options), notes + weight_notes(opened)


def _with_tasks(answers: Reports, tasks: list[str], source: str) -> Reports:
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
LARGEST_DELTA = 1e-6
"""Largest delta of a stated guarantee."""
SIMULATED = "a simulation carries no privacy; with secure randomness it would be "
PUBLIC = {
    "public": "Known to all: the tasks, their bounds, who claimed what, the settings in this file.",
    "protected": "Known to all: the list of tasks, their bounds, the settings in this file. Epsilon holds whether a "
    "claim is added, removed or replaced.",
}

SynthesisMethod: TypeAlias = Histogram | PooledShape | HuaiPublished
MethodName = Literal["histogram", "pooled-shape", "huai-published"]


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings:
    """Settings of a release; None where nothing was given.

    Attributes:
        method: release method. "huai-published" is the paper reproduction, without any privacy; the others are private.
            None: the more accurate of "histogram" and "pooled-shape" by expected error, from public numbers.
        epsilon: of the private methods.
        records: synthetic claims per task.
        unit, participation: unit of epsilon, and whether it is public who claimed what.
        bins, select_range: of `Histogram`.
        expected_claims, most_claims, least_claims: public numbers of claims, see `Histogram`.
        k, gamma, epsilon0: of the privacy test of "huai-published".
        bandwidth: public, as a share of the bounds; of "huai-published".
    """

    method: MethodName | None = None
    epsilon: float | None = None
    records: int = 30
    unit: Unit = "cell"
    participation: Participation = "public"
    bins: int | None = None
    select_range: bool = False
    expected_claims: float | None = None
    most_claims: int | None = None
    least_claims: int | None = None
    k: int | None = None
    gamma: float | None = None
    epsilon0: float | None = None
    bandwidth: float | None = None

    def choose(self, claims: Claims) -> SynthesisMethod:
        """Return the named method, or the one that a setting belongs to, or the more accurate one; errors as `build`.

        Args:
            claims: of which only public numbers are read.
        """
        of_histogram = self.bins or self.select_range or self.expected_claims
        if self.method is not None or of_histogram or self.participation == "protected":
            return self.build()
        return more_accurate(self._histogram(), self._pooled_shape(), claims)

    def build(self) -> SynthesisMethod:
        """Return the named method, `Histogram` if there is no name.

        Raises:
            SettingsError: a setting breaks a rule of the method.
        """
        if self.method == "huai-published":
            return self._huai()
        return self._pooled_shape() if self.method == "pooled-shape" else self._histogram()

    def _histogram(self) -> Histogram:
        return Histogram(**self._private_settings(Histogram))

    def _pooled_shape(self) -> PooledShape:
        return PooledShape(**self._private_settings(PooledShape))

    def _private_settings(self, method: type[Histogram] | type[PooledShape]) -> dict[str, Any]:
        if self.epsilon is None:
            raise SettingsError("a private release needs an epsilon", value=None, hint="Give one, such as 1.")
        names = {field.name for field in fields(method)}
        return {name: value for name, value in asdict(self).items() if name in names and value is not None}

    def _huai(self) -> HuaiPublished:
        default = HuaiPublished()
        given = {name: value for name in ("k", "gamma", "epsilon0") if (value := getattr(self, name)) is not None}
        width = default.bandwidth if self.bandwidth is None else Bandwidth(rule="share", width=self.bandwidth)
        return replace(default, records=self.records, test=replace(default.test, **given), bandwidth=width)


@dataclass(frozen=True, kw_only=True)
class SynthesisResult:
    """A release with the contents of its files.

    Attributes:
        release: in the units of the file.
        method: the release method.
        seed: of a simulation, which carries no privacy; None if the randomness was secure.
        bounds: as given.
        logarithmic: whether the claims were replaced by their logarithms.
        errors: expected errors of the task means of the records; None for the paper reproduction.
    """

    release: Release
    method: SynthesisMethod
    seed: int | None
    bounds: tuple[float, float]
    logarithmic: bool
    errors: ReleaseErrors | None

    @property
    def mode(self) -> str:
        """Either "private" or "paper reproduction"."""
        return "paper reproduction" if isinstance(self.method, HuaiPublished) else "private"

    @property
    def width(self) -> float:
        """Distance of the bounds in the units of expected errors: base-10 logarithms if `logarithmic`."""
        low, high = (math.log10(end) for end in self.bounds) if self.logarithmic else self.bounds
        return high - low

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader of the release, from public numbers and the release alone."""
        text = "" if self.errors is None else self.errors.warning(self.width)
        scale = " Errors are those of base-10 logarithms." if self.logarithmic else ""
        return (text + scale,) if text else ()

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Guarantees per claim and per worker, at the largest accepted delta; infinite for a simulation."""
        if self.seed is None:
            return self.release.guarantees(LARGEST_DELTA)
        return tuple(
            replace(guarantee, epsilon=math.inf, delta=0.0, reason=f"{SIMULATED}{guarantee}")
            for guarantee in self.release.guarantees(LARGEST_DELTA)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the contents of `guarantee.json`; infinity is a text."""
        curves = self.release.curves if self.seed is None else ()
        return {
            "format": GUARANTEE_FORMAT,
            "mode": self.mode,
            "method": self.method.name,
            "settings": {field.name: _setting(getattr(self.method, field.name)) for field in fields(self.method)},
            "bounds": list(self.bounds),
            "logarithmic": self.logarithmic,
            "guarantees": [_with_text_infinity(asdict(guarantee)) for guarantee in self.guarantees],
            "curves": [
                {"unit": curve.unit, "exact": _points(curve.exact), "claimed": _points(curve.claimed)}
                for curve in curves
            ],
            "expected": None if self.errors is None else self.errors.to_json(self.width),
            "public": PUBLIC[self.release.curves[0].participation],
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
    logarithmic: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> SynthesisResult:
    """Return a release of synthetic claims: private, or, with a seed, a reproducible simulation without any privacy.

    `progress` is called with the finished and the whole work, where the method reports any.

    Raises:
        SettingsError: the method refuses the settings or the claims.
    """
    method = settings.choose(claims)
    source = secure() if seed is None else seeded(seed)
    release = method.release(claims, source, progress=progress)
    errors = None if isinstance(method, HuaiPublished) else release_errors(method, claims, release)
    if logarithmic:
        release = replace(release, value=np.clip(10.0**release.value, *bounds))
    return SynthesisResult(
        release=release, method=method, seed=seed, bounds=bounds, logarithmic=logarithmic, errors=errors
    )


def write_synthesis(directory: Path, synthesis: SynthesisResult) -> tuple[str, ...]:
    """Write `synthetic.csv` and `guarantee.json`; return the names.

    Raises:
        SettingsError: the folder cannot be written, or a file in the way is not an earlier output of the same kind.
    """
    table = reports_table(synthesis.release.reports())
    guarantee = json.dumps(synthesis.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    write_files(
        directory,
        {GUARANTEE_FILE: guarantee, SYNTHETIC_FILE: lambda stream: write_table(stream, table)},
        kind="synthesis",
    )
    return SYNTHETIC_FILE, GUARANTEE_FILE


def _setting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _points(points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    return [_with_text_infinity(point._asdict()) for point in points]


def _with_text_infinity(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "infinity" if value == math.inf else value for name, value in values.items()}
