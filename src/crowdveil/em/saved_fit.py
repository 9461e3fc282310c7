"""Saved fits: file format of the learned parameters of a fit, from which a fit of more reports starts.

A fixed point of EM does not depend on the initial parameters, so a resumed fit ends where a fit from scratch does,
unless the likelihood has several optima.

The file is an uncompressed zip archive of plain numpy arrays and JSON; opening it executes and unpickles nothing.
`fit.json` names every other member with its size and SHA-256, and has a SHA-256 of its own. The checksums find damage,
not forgery. Every array has a declared range, and numbers out of range are refused when the file is opened.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.facts.inputs import Input
from crowdveil.answers.facts.prior import Prior
from crowdveil.answers.identifiers import Identifiers
from crowdveil.answers.reports import Reports
from crowdveil.channels.alphabet import Alphabet, alphabet_to_json
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.estimate import Estimate
from crowdveil.em.estimator import Estimator
from crowdveil.em.fit_state import FitState, StateField
from crowdveil.errors import ReportsError, SettingsError
from crowdveil.registry import ESTIMATOR_ENTRIES
from crowdveil.standalone.checks import digest
from crowdveil.standalone.verification import parse_json

ROUNDING = 1e-6
"""Largest excess over 1 of a probability, or of a sum of probabilities, that passes as rounding."""
FORMAT_NAME = "crowdveil-fit/"
FORMAT = FORMAT_NAME + "1"
MANIFEST, NAMES = "fit.json", "names.json"
FIELDS = {"format", "version", "identity", "members", "sha256"}
INPUTS = "inputs"
"""Further field: what the parameters depend on."""
STOPPING = {"max_steps", "tolerance", "error_correlation", "vote_share"}
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
DTYPES = ("<f8", "<i8")
TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every member; the same fit always gives the same bytes."""
HINT = "Fit from the start, and save that."
BY_WORKER, SHARED = "by_worker/", "shared/"


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedFit:
    """Learned parameters of a fit, and the properties that a fit which starts from them must share.

    Attributes:
        version: of the package that wrote it.
        identity: method and its settings, SHA-256 of the channel, whether tasks were assigned, alphabets of reports and
            truths, and the public prior, as plain JSON.
        tasks: task names.
        state: learned parameters, by worker name.
        inputs: what the parameters depend on; empty if it is unknown.
    """

    version: str
    identity: dict[str, Any]
    tasks: Identifiers
    state: FitState
    inputs: tuple[Input, ...] = ()

    @classmethod
    def of_estimate(
        cls,
        estimator: Estimator[Any, Any],
        reports: Reports,
        estimate: Estimate,
        *,
        channel: Channel | ChannelTable | None = None,
        assignment: Assignment | None = None,
        prior: Mapping[str, float] | Prior | None = None,
    ) -> Self:
        """Return the saved fit of an estimate; arguments are those of the fit that made it."""
        assert estimate.state is not None
        return cls.of_state(estimator, reports, estimate.state, channel=channel, assignment=assignment, prior=prior)

    @classmethod
    def of_state(
        cls,
        estimator: Estimator[Any, Any],
        reports: Reports,
        state: FitState,
        *,
        channel: Channel | ChannelTable | None = None,
        assignment: Assignment | None = None,
        prior: Mapping[str, float] | Prior | None = None,
    ) -> Self:
        """Return the saved fit of learned parameters; arguments are those of the fit that learned them."""
        identity = _properties_saved_fit_must_share(estimator, reports, channel, assignment, prior)
        return cls(version=version("crowdveil"), identity=identity, tasks=reports.tasks, state=state)

    def state_for(
        self,
        estimator: Estimator[Any, Any],
        reports: Reports,
        *,
        channel: Channel | ChannelTable | None = None,
        assignment: Assignment | None = None,
        prior: Mapping[str, float] | Prior | None = None,
    ) -> FitState:
        """Return the parameters that a fit with these arguments can start from, as its `warm_start`.

        Args:
            estimator: of the same method and settings as the saved fit; the stopping rule may differ.
            reports: all reports, old ones included; there may be new tasks, new workers and changed reports.
            channel, assignment, prior: as in `Estimator.fit`.

        Raises:
            SettingsError: the saved fit is of another method, other settings, another channel, alphabet or prior.
            ReportsError: a task or worker of the saved fit is missing.
        """
        _check_identity(self.identity, _properties_saved_fit_must_share(estimator, reports, channel, assignment, prior))
        _require_all_saved_names("task", self.tasks, reports.tasks)
        _require_all_saved_names("worker", self.state.workers, reports.workers)
        return self.state

    def to_bytes(self) -> bytes:
        """Return the contents of its file."""
        names = {"tasks": [*map(str, self.tasks.tolist())], "workers": [*map(str, self.state.workers.tolist())]}
        members = {NAMES: json.dumps(names).encode()}
        members |= {
            f"{name}.npy": _array_bytes(array) for name, array in self._worker_and_shared_arrays_by_name().items()
        }
        manifest: dict[str, object] = {
            "format": FORMAT,
            "version": self.version,
            "identity": self.identity,
            "members": {name: _size_and_sha256(data) for name, data in members.items()},
        }
        if self.inputs:
            manifest[INPUTS] = [one.as_json() for one in self.inputs]
        text = json.dumps({**manifest, "sha256": digest(manifest)}).encode()
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {MANIFEST: text, **members}.items():
                archive.writestr(zipfile.ZipInfo(name, TIMESTAMP), data)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, source: str = "saved fit") -> Self:
        """Return the saved fit in the contents of a file, validated in full.

        Args:
            data: what `to_bytes` returned.
            source: name for error messages.

        Raises:
            ReportsError: another format, or damage.
        """
        manifest, members = _read_members(data, source)
        try:
            names = json.loads(members.pop(NAMES))
            arrays = {name.removesuffix(".npy"): _array_of_npy_bytes(data) for name, data in members.items()}
            made = cls(
                version=manifest["version"],
                identity=manifest["identity"],
                tasks=_distinct_names_as_array("tasks", names["tasks"]),
                state=FitState(
                    manifest["identity"]["method"],
                    _distinct_names_as_array("workers", names["workers"]),
                    _arrays_without_folder_prefix(BY_WORKER, arrays),
                    _arrays_without_folder_prefix(SHARED, arrays),
                ),
                inputs=tuple(map(Input.from_json, manifest.get(INPUTS, ()))),
            )
            made.require_consistent_parts()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise saved_fit_damage_error(source, str(error)[:200]) from error
        return made

    def require_consistent_parts(self) -> None:
        """Refuse inconsistent parts, and numbers out of range.

        Raises:
            ValueError: an inconsistent or invalid part.
        """
        if set(self.identity) != set(IDENTITY):
            raise ValueError(f"identity has the fields {sorted(self.identity)}")
        if any(len(array) != len(self.state.workers) for array in self.state.by_worker.values()):
            raise ValueError("arrays by worker need a row for every worker")
        require_valid_fit_state(self.state)

    def _worker_and_shared_arrays_by_name(self) -> dict[str, NDArray[Any]]:
        arrays = {BY_WORKER + name: array for name, array in self.state.by_worker.items()}
        return arrays | {SHARED + name: array for name, array in self.state.shared.items()}


def require_valid_fit_state(state: FitState) -> None:
    """Refuse arrays that the method does not have, or numbers out of their range.

    Raises:
        ValueError: an unknown array, or numbers out of range.
        LookupError: the method is unknown.
    """
    fields: Mapping[str, StateField] = ESTIMATOR_ENTRIES[state.method].import_class().state_fields
    for by_worker, arrays in ((True, state.by_worker), (False, state.shared)):
        for name, array in arrays.items():
            field = fields.get(name)
            _raise_value_error_unless(
                field is not None and field.by_worker == by_worker, name, f"an array of {state.method}"
            )
            assert field is not None
            _raise_value_error_unless(bool(np.isfinite(array).all()), name, "finite numbers")
            if field.values == "distribution":
                _raise_value_error_unless(bool((array >= 0).all()), name, "probabilities of 0 or more")
                _raise_value_error_unless(
                    bool((np.abs(array.sum(axis=-1) - 1) <= ROUNDING).all()), name, "probabilities that sum to 1"
                )
            elif field.values == "probability":
                _raise_value_error_unless(
                    bool(((array >= 0) & (array <= 1 + ROUNDING)).all()), name, "probabilities, from 0 to 1"
                )


def _require_all_saved_names(role: str, saved: Iterable[Any], given: Iterable[Any]) -> None:
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


def _properties_saved_fit_must_share(
    estimator: Estimator[Any, Any],
    reports: Reports,
    channel: Channel | ChannelTable | None,
    assignment: Assignment | None,
    prior: Mapping[str, float] | Prior | None,
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
        "reports": _alphabet_as_json(reports.alphabet),
        "truths": _alphabet_as_json(truths),
        "prior": None if prior is None else Prior.of(prior).in_label_order(truths).tolist(),
    }


def _alphabet_as_json(alphabet: Alphabet | None) -> dict[str, object] | None:
    return None if alphabet is None else alphabet_to_json(alphabet)


def _check_identity(saved: dict[str, Any], now: dict[str, Any]) -> None:
    for field, name in IDENTITY.items():
        if saved[field] != now[field]:
            raise SettingsError(
                f"cannot resume: {name} differs from the saved fit ({saved[field]!r})",
                value=now[field],
                hint="Use the same as in the saved fit, or fit from the start.",
            )


def _raise_value_error_unless(holds: bool, name: str, content: str) -> None:
    if not holds:
        raise ValueError(f"the field {name!r} must hold {content}")


def _distinct_names_as_array(role: str, names: Any) -> NDArray[Any]:
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ValueError(f"{role} must be distinct texts")
    return np.array(names, dtype=object)


def _read_members(data: bytes, source: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and all other members, each of the size and with the digest that the manifest names."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            # Without compression, members are never larger than the file.
            if any(member.compress_type != zipfile.ZIP_STORED for member in listed):
                raise saved_fit_damage_error(source, "a compressed member")
            members = {member.filename: archive.read(member) for member in listed}
    except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise saved_fit_damage_error(source, str(error)[:200]) from error
    try:
        manifest = parse_json(members.pop(MANIFEST, b""))
    except ValueError as error:
        raise saved_fit_damage_error(source, f"no readable {MANIFEST}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = repr(manifest.get("format") if isinstance(manifest, dict) else manifest)[:200]
        raise ReportsError(f"a saved fit must have format {FORMAT!r}", source=source, examples=found, hint=HINT)
    if set(manifest) - {INPUTS} != FIELDS or manifest["sha256"] != digest(manifest):
        raise saved_fit_damage_error(source, f"the SHA-256 of {MANIFEST} does not match")
    if manifest["members"] != {name: _size_and_sha256(data) for name, data in members.items()}:
        raise saved_fit_damage_error(source, "a member is missing, or has another checksum")
    return manifest, members


def is_saved_fit(stream: BinaryIO) -> bool:
    """Return True for contents with the format name of saved fits, in any version."""
    try:
        with zipfile.ZipFile(stream) as archive:
            manifest = json.loads(archive.read(MANIFEST))
        return str(manifest["format"]).startswith(FORMAT_NAME)
    except (OSError, EOFError, LookupError, TypeError, ValueError, RecursionError, RuntimeError, zipfile.BadZipFile):
        return False


def _size_and_sha256(data: bytes) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _array_bytes(array: NDArray[Any]) -> bytes:
    sink = io.BytesIO()
    plain = np.ascontiguousarray(array, dtype="<i8" if array.dtype.kind == "i" else "<f8").reshape(array.shape)
    np.lib.format.write_array(sink, plain, allow_pickle=False)
    return sink.getvalue()


def _array_of_npy_bytes(data: bytes) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if array.dtype.str not in DTYPES:
        raise ValueError(f"numbers of type {array.dtype.str}")
    return array


def _arrays_without_folder_prefix(folder: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(folder): array for name, array in arrays.items() if name.startswith(folder)}


def saved_fit_damage_error(source: str, found: str) -> ReportsError:
    """Return the error for a file that is no whole saved fit."""
    return ReportsError("a saved fit must be whole", source=source, examples=found, hint=HINT)
