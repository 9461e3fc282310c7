"""A fit as a file: what was learned, of whom, through which channel, and the sums of every block of tasks.

The file is a zip archive, not compressed, of plain numpy arrays and JSON: opening it runs and unpickles nothing.
`fit.json` names every other member with its size and SHA-256, and has a seal of its own. They find damage, not forgery:
whoever can write the file can write another.

The numbers of a saved fit: each field has a range, and a number out of it is refused before anything uses it.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.channels.certificate import digest
from crowdveil.channels.text_validation import parse_json
from crowdveil.errors import ReportsError
from crowdveil.files.atomic_write import Outputs, write_outputs
from crowdveil.files.filesystem import open_regular
from crowdveil.incremental.fit_state import SUMS_BY_WORKER, Learned

DISTRIBUTIONS = frozenset(
    {"confusion", "responsibility", "quality", "q", "class_prior", "kinds", "sigma_shares", "participation_shares"}
)
"""Learned fields whose last axis sums to 1."""
PROBABILITIES = frozenset({"participation", "ability", "right", "centre"})
"""Learned fields of single probabilities."""
WEIGHTS = frozenset({"weight"})
"""Learned fields of any finite numbers."""
COUNTS = frozenset({"by_report", "by_truth", "right", "agreement", "squares"})
"""Sums that are never negative."""
LOGARITHMS = frozenset({"log_likelihood", "worker_scores", "evidence"})
"""Sums of any finite numbers."""
ROUNDING = 1e-6
"""How far rounding may take a probability, or a sum of them, beyond 1."""


def check_learned(learned: Learned) -> None:
    """Refuse learned numbers that no fit can have.

    Raises:
        ValueError: naming the field.
    """
    for name, array in (learned.by_worker | learned.shared).items():
        _check_finite(name, array)
        if name in DISTRIBUTIONS:
            _require(bool((array >= 0).all()), name, "probabilities of 0 or more")
            _require(bool((np.abs(array.sum(axis=-1) - 1) <= ROUNDING).all()), name, "probabilities that sum to 1")
        elif name in PROBABILITIES:
            _require(bool(((array >= 0) & (array <= 1 + ROUNDING)).all()), name, "probabilities, from 0 to 1")
        else:
            _require(name in WEIGHTS, name, "the name of a field that fits have")


def check_sums(sums: Mapping[str, NDArray[np.float64]], workers: int) -> None:
    """Refuse statistics that no fit of so many workers can have; the first axis is blocks.

    Raises:
        ValueError: naming the field.
    """
    for name, array in sums.items():
        _check_finite(name, array)
        _require(name in COUNTS | LOGARITHMS, name, "the name of a field that fits have")
        _require(name in LOGARITHMS or bool((array >= 0).all()), name, "counts of 0 or more")
        _require(name not in SUMS_BY_WORKER or array.shape[1:2] == (workers,), name, "a number for every worker")


def _check_finite(name: str, array: NDArray[np.float64]) -> None:
    _require(bool(np.isfinite(array).all()), name, "finite numbers")


def _require(holds: bool, name: str, what: str) -> None:
    if not holds:
        raise ValueError(f"the field {name!r} must hold {what}")


FORMAT_NAME = "crowdveil-fit/"
FORMAT = FORMAT_NAME + "1"
MANIFEST, NAMES = "fit.json", "names.json"
FIELDS = {"format", "version", "identity", "members", "fingerprints", "sha256"}
IDENTITY_FIELDS = {"method", "settings", "channel_sha256", "assigned", "reports", "truths", "prior"}
DTYPES = ("<f8", "<i8")
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The same fit gives the same bytes whenever it is saved."""
WAY_OUT = "Fit from the start, and save that."
BY_WORKER, SHARED, SUMS, ENDS = "by_worker/", "shared/", "sums/", "ends"


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedFit:
    """What a fit leaves for the next one.

    Attributes:
        version: of crowdveil, that made it.
        identity: what must be the same to go on: method and its settings, seal of the channel, whether tasks were
            assigned, the alphabets of reports and truths, and the public prior; plain JSON.
        tasks, workers: names as text; task blocks and arrays by worker are in this order.
        learned: what the parameters hold beyond counts.
        ends: where each block of tasks ends, shape (blocks,), ascending to the number of tasks.
        fingerprints: SHA-256 of each block's rows and known truths.
        sums: the statistics of all blocks, field by field; the first axis is blocks.
    """

    version: str
    identity: dict[str, Any]
    tasks: list[str]
    workers: list[str]
    learned: Learned
    ends: NDArray[np.int64]
    fingerprints: list[str]
    sums: dict[str, NDArray[Any]]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file; it appears whole or not at all, and replaces only another saved fit.

        Raises:
            SettingsError: another file is in its place, or the system refuses to write there.
        """
        members = {NAMES: json.dumps({"tasks": self.tasks, "workers": self.workers}).encode()}
        members |= {f"{name}.npy": _array_bytes(array) for name, array in self._arrays().items()}
        manifest: dict[str, object] = {
            "format": FORMAT,
            "version": self.version,
            "identity": self.identity,
            "members": {name: _entry(data) for name, data in members.items()},
            "fingerprints": self.fingerprints,
        }
        text = json.dumps({**manifest, "sha256": digest(manifest)}).encode()

        def write(stream: BinaryIO) -> None:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
                for name, data in {MANIFEST: text, **members}.items():
                    archive.writestr(zipfile.ZipInfo(name, LONG_AGO), data)

        outputs = fit_outputs(path)
        write_outputs(outputs, {outputs.names[0]: write})

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Self:
        """Read a file, checking everything.

        Raises:
            ReportsError: no such file, another format, or damage.
        """
        source = str(path)
        manifest, members = _read_members(Path(path))
        try:
            names = json.loads(members.pop(NAMES))
            arrays = {name.removesuffix(".npy"): _array(data) for name, data in members.items()}
            made = cls(
                version=manifest["version"],
                identity=manifest["identity"],
                tasks=names["tasks"],
                workers=names["workers"],
                learned=Learned(_under(BY_WORKER, arrays), _under(SHARED, arrays)),
                ends=arrays[ENDS],
                fingerprints=manifest["fingerprints"],
                sums=_under(SUMS, arrays),
            )
            made.check()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(source, str(error)[:200]) from error
        return made

    def check(self) -> None:
        """Refuse parts that do not belong together, and numbers that no fit can have.

        Raises:
            ValueError: naming the part.
        """
        for what, names in (("tasks", self.tasks), ("workers", self.workers)):
            if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
                raise ValueError(f"{what} must be distinct texts")
        if set(self.identity) != IDENTITY_FIELDS:
            raise ValueError(f"identity has the fields {sorted(self.identity)}")
        ascending = np.diff(self.ends, prepend=0) > 0
        if (
            self.ends.dtype.kind != "i"
            or self.ends.ndim != 1
            or not ascending.all()
            or self.ends[-1] != len(self.tasks)
        ):
            raise ValueError("ends of blocks must ascend to the number of tasks")
        if {len(self.fingerprints), *map(len, self.sums.values())} != {len(self.ends)}:
            raise ValueError("every block needs its fingerprint and its sums")
        if any(len(array) != len(self.workers) for array in self.learned.by_worker.values()):
            raise ValueError("every worker needs what was learned of him")
        check_learned(self.learned)
        check_sums(self.sums, len(self.workers))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {BY_WORKER + name: array for name, array in self.learned.by_worker.items()}
        arrays |= {SHARED + name: array for name, array in self.learned.shared.items()}
        arrays |= {SUMS + name: array for name, array in self.sums.items()}
        return arrays | {ENDS: self.ends}


def _read_members(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and all other members, each of the size and with the digest that the manifest names."""
    source = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            listed = archive.infolist()
            # Nothing unpacks to more than the file's own size.
            if any(member.compress_type != zipfile.ZIP_STORED for member in listed):
                raise _damaged(source, "a compressed member")
            members = {member.filename: archive.read(member) for member in listed}
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise _damaged(source, str(error)[:200]) from error
    try:
        manifest = parse_json(members.pop(MANIFEST, b""))
    except ValueError as error:
        raise _damaged(source, f"no readable {MANIFEST}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = repr(manifest.get("format") if isinstance(manifest, dict) else manifest)[:200]
        raise ReportsError(f"a saved fit must have format {FORMAT!r}", source=source, examples=found, hint=WAY_OUT)
    if set(manifest) != FIELDS or manifest["sha256"] != digest(manifest):
        raise _damaged(source, f"the seal of {MANIFEST} does not match")
    if manifest["members"] != {name: _entry(data) for name, data in members.items()}:
        raise _damaged(source, "a member is missing, or has another checksum")
    return manifest, members


def fit_outputs(path: str | PathLike[str]) -> Outputs:
    """Return the one output file of a saved fit."""
    return Outputs(folder=Path(path).parent, names=(Path(path).name,), kind="saved fit", recognized=is_saved_fit)


def is_saved_fit(path: Path) -> bool:
    """Return whether a file says that it is a saved fit, of this format or another version of it."""
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            manifest = json.loads(archive.read(MANIFEST))
        return str(manifest["format"]).startswith(FORMAT_NAME)
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, RuntimeError, zipfile.BadZipFile):
        return False


def _entry(data: bytes) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _array_bytes(array: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    plain = np.ascontiguousarray(array, dtype="<i8" if array.dtype.kind == "i" else "<f8").reshape(array.shape)
    np.lib.format.write_array(sink, plain, allow_pickle=False)
    return sink.getvalue()


def _array(data: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if array.dtype.str not in DTYPES:
        raise ValueError(f"numbers of type {array.dtype.str}")
    return array


def _under(folder: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(folder): array for name, array in arrays.items() if name.startswith(folder)}


def _damaged(source: str, found: str) -> ReportsError:
    return ReportsError("a saved fit must be whole", source=source, examples=found, hint=WAY_OUT)
