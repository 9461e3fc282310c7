"""The trusted curator's release as one call: claims in; synthetic claims, what they promise, and pictures out.

`guarantee.json` holds nothing that depends on the claims beyond the release itself: how many claims were clipped is
told to the curator, not to the reader.

A curator's claims, read from a file or a public data set; the notes on what was changed are for the curator.
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
from crowdveil.data.ingest.readers import read_columns, read_parquet_columns
from crowdveil.data.ingest.validation import Duplicates
from crowdveil.data.read_options import ReadOptions
from crowdveil.data.reports import Reports
from crowdveil.errors import SettingsError
from crowdveil.files.atomic_write import Outputs, remove_outputs, write_files, write_outputs
from crowdveil.randomness import secure, seeded
from crowdveil.synthesis.claims import Claims, Outside
from crowdveil.synthesis.expected_error import ReleaseErrors, nearer, release_errors
from crowdveil.synthesis.huai2019.bandwidth import Bandwidth
from crowdveil.synthesis.huai2019.modes import Published, Substituted
from crowdveil.synthesis.huai2019.sampler import PrivacyTest
from crowdveil.synthesis.private.histogram import Histogram, Progress
from crowdveil.synthesis.private.pooled_shape import Shared
from crowdveil.synthesis.release import CurvePoint, Release
from crowdveil.workflow.export import reports_table, write_table
from crowdveil.workflow.io import DATASET, read_names

LEFT_OUT = (
    "{:,} answers are no numbers and were left out: with public participation epsilon does not cover that, but the "
    "answers of a public data set are known anyway."
)


class ClaimsRead(NamedTuple):
    """Claims, and what was done to the rows to get them; the notes are for the curator's eyes."""

    claims: Claims
    notes: tuple[str, ...]


def read_claims(
    source: str,
    *,
    bounds: tuple[float, float],
    outside: Outside = "error",
    logarithmic: bool = False,
    duplicates: Duplicates | None = None,
    tasks: Path | None = None,
) -> ClaimsRead:
    """Read a curator's claims.

    Args:
        source: a CSV or Parquet file, or `dataset:NAME`.
        bounds: what a claim can be, known without looking at the claims.
        outside: policy for claims outside of them.
        logarithmic: treat claims by their logarithms to base 10; then bounds and claims must be positive.
        duplicates: policy for repeated (task, worker) pairs; by default "error" for files, "first" for data sets.
        tasks: a file that lists all tasks, made without looking at the claims; protected participation needs it. With
            it, a file of claims may have no row.

    Raises:
        ReportsError: the file or a row breaks a rule, or a claim is on a task that is not listed.
        SettingsError: impossible bounds.
    """
    found, notes = _numbers(source, duplicates, tasks)
    low, high = bounds
    if logarithmic:
        if not low > 0:
            raise SettingsError("bounds must be positive on a logarithmic scale", value=bounds)
        # A claim of 0 or less lies below all bounds, and the policy for these decides about it.
        value = np.log10(np.where(found.numbers > 0, found.numbers, np.finfo(float).tiny))
        found = Reports(found.task, found.worker, value, found.tasks, found.workers)
        low, high = math.log10(low), math.log10(high)
    claims = Claims.from_reports(found, bounds=(low, high), outside=outside, public_tasks=tasks is not None)
    notes += (f"{claims.clipped:,} claims lay outside the bounds and were clipped to them.",) if claims.clipped else ()
    notes += (f"{claims.dropped:,} claims lay outside the bounds and were left out.",) if claims.dropped else ()
    return ClaimsRead(claims, notes)


def _numbers(source: str, duplicates: Duplicates | None, tasks: Path | None) -> tuple[Reports, tuple[str, ...]]:
    listed = None if tasks is None else read_names(tasks, "task")
    if source.startswith(DATASET):
        data = datasets.load(source.removeprefix(DATASET), duplicates=duplicates or "first")
        if data.kind != "numeric":
            raise SettingsError("claims must be numbers", value=f"{data.name} is {data.kind}")
        left = (LEFT_OUT.format(data.left_out),) if data.left_out else ()
        return data.answers if listed is None else _relisted(data.answers, listed, source), left
    columns = (read_parquet_columns if source.endswith(".parquet") else read_columns)(source)
    # A file without a claim is like any other where the tasks are listed: a refusal would show that nobody claimed.
    nobody = () if listed is not None and not len(columns.task) else None
    options = ReadOptions(kind="numeric", tasks=listed, workers=nobody, duplicates=duplicates or "error")
    return Reports.from_columns(columns, options), ()


def _relisted(found: Reports, tasks: list[str], source: str) -> Reports:
    """Return the same numbers with a given list of tasks in place of those that occur."""
    return Reports.from_arrays(
        np.asarray(found.tasks)[found.task],
        np.asarray(found.workers)[found.worker],
        found.numbers,
        numeric=True,
        tasks=tasks,
        duplicates="all",
        source=source,
    )


SYNTHETIC_FILE, GUARANTEE_FILE = "synthetic.csv", "guarantee.json"
CURATOR_FOLDER, PICTURES = "curator", "picture of raw claims"
"""Folder beside the release, and kind of the files in it."""
GUARANTEE_FORMAT = "crowdveil-synthesis/1"
LARGEST_DELTA = 1e-6
"""Largest delta at which an epsilon is read off a curve."""
SIMULATED = "a simulation carries no privacy; with secure randomness it would be "
PUBLIC = {
    "public": "Known to all: the tasks, their bounds, who claimed what, the settings in this file.",
    "protected": "Known to all: the list of tasks, their bounds, the settings in this file. Epsilon holds whether a "
    "claim is added, removed or replaced.",
}

AnyMode: TypeAlias = Histogram | Shared | Substituted | Published
Mechanism = Literal["histogram", "shared", "substituted", "published"]


@dataclass(frozen=True, kw_only=True)
class SynthesisWanted:
    """What was asked for; None where nothing was said.

    Attributes:
        mechanism: how claims become synthetic ones; "published" is the paper's own and promises nothing. None: the one
            of "histogram" and "shared" that is expected to be nearer, from public numbers.
        epsilon: of the sound mechanisms; what "substituted" may cost at most.
        records: synthetic claims per task.
        unit, participation: whose loss epsilon bounds, and whether who claimed what is public.
        bins, zoom, learn_weights: of the histogram.
        expected_claims, most_claims, least_claims: public numbers of claims, see `Histogram`.
        k, gamma, epsilon0: of the paper's test.
        bandwidth: share of the bounds, public; of the mechanisms that use kernels.
    """

    mechanism: Mechanism | None = None
    epsilon: float | None = None
    records: int = 30
    unit: Unit = "cell"
    participation: Participation = "public"
    bins: int | None = None
    zoom: bool = False
    learn_weights: bool = False
    expected_claims: float | None = None
    most_claims: int | None = None
    least_claims: int | None = None
    k: int | None = None
    gamma: float | None = None
    epsilon0: float | None = None
    bandwidth: float | None = None

    def choose(self, claims: Claims) -> AnyMode:
        """Return the mode that was named, the one that a setting belongs to, or else the nearer one; errors as `build`.

        Args:
            claims: of which only public numbers are read.
        """
        of_histogram = self.bins or self.zoom or self.learn_weights or self.expected_claims
        if self.mechanism is not None or of_histogram or self.participation == "protected":
            return self.build()
        return nearer(self._histogram(), self._shared(), claims)

    def build(self) -> AnyMode:
        """Return the mode that was named, "histogram" if none was.

        Raises:
            SettingsError: a setting breaks a rule of the mechanism.
        """
        if self.mechanism == "published":
            return self._published()
        if self.mechanism == "substituted":
            return self._substituted()
        return self._shared() if self.mechanism == "shared" else self._histogram()

    def _histogram(self) -> Histogram:
        return Histogram(
            epsilon=self._known_epsilon(),
            records=self.records,
            unit=self.unit,
            participation=self.participation,
            bins=self.bins,
            zoom=self.zoom,
            learn_weights=self.learn_weights,
            expected_claims=self.expected_claims,
            most_claims=self.most_claims,
            least_claims=self.least_claims or 1,
        )

    def _shared(self) -> Shared:
        return Shared(
            epsilon=self._known_epsilon(),
            records=self.records,
            unit=self.unit,
            most_claims=self.most_claims,
            least_claims=self.least_claims or 1,
        )

    def _known_epsilon(self) -> float:
        if self.epsilon is None:
            raise SettingsError("a sound release needs an epsilon", value=None, hint="Give one, such as 1.")
        return self.epsilon

    def _test(self, default: PrivacyTest) -> PrivacyTest:
        given = {name: value for name in ("k", "gamma", "epsilon0") if (value := getattr(self, name)) is not None}
        return replace(default, **given)

    def _published(self) -> Published:
        width = Bandwidth() if self.bandwidth is None else Bandwidth(rule="share", width=self.bandwidth)
        return Published(records=self.records, test=self._test(PrivacyTest()), bandwidth=width)

    def _substituted(self) -> Substituted:
        default = Substituted()
        width = default.bandwidth if self.bandwidth is None else replace(default.bandwidth, width=self.bandwidth)
        return replace(default, records=self.records, test=self._test(default.test), bandwidth=width)


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """A release with everything that is written about it.

    Attributes:
        release: in the units of the file.
        mode: that made it.
        seed: of a simulation, which protects nobody; None if the randomness was secure.
        bounds: as given.
        logarithmic: whether claims were treated on a logarithmic scale.
        errors: expected of the task means of the records; None for mode published, which promises nothing.
    """

    release: Release
    mode: AnyMode
    seed: int | None
    bounds: tuple[float, float]
    logarithmic: bool
    errors: ReleaseErrors | None

    @property
    def width(self) -> float:
        """Distance of the bounds, in the units that errors are expected in: base-10 logarithms if `logarithmic`."""
        low, high = (math.log10(end) for end in self.bounds) if self.logarithmic else self.bounds
        return high - low

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of the release should know, from public numbers and the release alone."""
        text = "" if self.errors is None else self.errors.warning(self.width)
        scale = " Errors are those of base-10 logarithms." if self.logarithmic else ""
        return (text + scale,) if text else ()

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What is promised per claim and per worker, at the largest delta accepted; infinite for a simulation."""
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
            "mode": self.mode.name,
            "settings": settings_of(self.mode),
            "bounds": list(self.bounds),
            "logarithmic": self.logarithmic,
            "guarantees": [_plain(asdict(guarantee)) for guarantee in self.guarantees],
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
    wanted: SynthesisWanted,
    *,
    bounds: tuple[float, float],
    logarithmic: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Synthesis:
    """Release synthetic claims: securely, or, with a seed, reproducibly and without any privacy.

    `progress` is called with the work done and the whole of it, where the mode has any to report.

    Raises:
        SettingsError: the mechanism refuses the settings or the claims, or it would cost more than was allowed.
    """
    mode = wanted.choose(claims)
    source = secure() if seed is None else seeded(seed)
    if isinstance(mode, Substituted):
        release = mode.release(claims, source)
    else:
        release = mode.release(claims, source, progress=progress)
    if wanted.mechanism == "substituted" and wanted.epsilon is not None:
        _refuse_costly(release, wanted)
    errors = None if isinstance(mode, Published) else release_errors(mode, claims, release)
    if logarithmic:
        release = replace(release, value=np.clip(10.0**release.value, *bounds))
    return Synthesis(release=release, mode=mode, seed=seed, bounds=bounds, logarithmic=logarithmic, errors=errors)


def curator_outputs(directory: Path, names: Sequence[str] = ()) -> Outputs:
    """Return the outputs that show raw claims: apart from what may be published, and for their owner's eyes only."""
    return Outputs(
        folder=directory / CURATOR_FOLDER, names=tuple(names), kind=PICTURES, remove_stale=True, private=True
    )


def write_synthesis(directory: Path, synthesis: Synthesis, pictures: Mapping[str, bytes]) -> tuple[str, ...]:
    """Write `synthetic.csv` and `guarantee.json`, and pictures into a folder of their own; return the names.

    Pictures of an earlier run do not stay.

    Raises:
        SettingsError: a folder cannot be written, or a file in the way is not an earlier output of the same kind.
    """
    shown = curator_outputs(directory, list(pictures))
    if pictures:
        write_outputs(shown, pictures)
    else:
        remove_outputs(shown.folder, PICTURES)
    table = reports_table(synthesis.release.reports())
    guarantee = json.dumps(synthesis.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    write_files(
        directory,
        {GUARANTEE_FILE: guarantee, SYNTHETIC_FILE: lambda stream: write_table(stream, table)},
        kind="synthesis",
    )
    return (SYNTHETIC_FILE, GUARANTEE_FILE, *(f"{CURATOR_FOLDER}/{name}" for name in pictures))


def settings_of(mode: AnyMode) -> dict[str, Any]:
    """Return the settings of a mode as JSON values."""
    return {field.name: _setting(getattr(mode, field.name)) for field in fields(mode)}


def _setting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def _refuse_costly(release: Release, wanted: SynthesisWanted) -> None:
    unit = release.guarantees(LARGEST_DELTA)[0 if wanted.unit == "cell" else 1]
    if wanted.epsilon is not None and unit.epsilon > wanted.epsilon:
        raise SettingsError(
            f"substituted may cost epsilon {wanted.epsilon!r} per {wanted.unit} at delta {LARGEST_DELTA:g}",
            value=unit.epsilon,
            hint="Ask for fewer records, another k, gamma or epsilon0, or use histogram.",
        )


def _points(points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    return [_plain(point._asdict()) for point in points]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "infinity" if value == math.inf else value for name, value in values.items()}
