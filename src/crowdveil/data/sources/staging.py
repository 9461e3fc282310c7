"""Copies of remote files and of standard input in a temporary folder, with the files of their collection.

A collection stays whole: with a remote file of reports come the certificate and `crowd.json` of its folder, so that it
is read as it would be on this machine. pyarrow has the file systems of S3, Google Cloud and Hadoop; fsspec has others.
"""

import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import fs

from crowdveil.data.ingest.csv_files import Progress
from crowdveil.data.sources.location import scheme_of
from crowdveil.errors import ReportsError

PART_BYTES = 1 << 20
NATIVE = frozenset({"s3", "s3a", "gs", "gcs", "hdfs", "viewfs", "file"})
"""Schemes of pyarrow's own file systems."""
STDIN_FILE, MATCHED = "stdin", "matched"
"""Names of the copy of standard input, and of the folder of files that match a pattern."""


def copy_stdin(folder: Path, stream: BinaryIO | None = None, progress: Progress | None = None) -> Path:
    """Copy standard input to a file in a folder; return its path."""
    path = folder / STDIN_FILE
    with open(path, "wb") as copy:
        _copy(stream or sys.stdin.buffer, copy, 0, progress)
    return path


def copy_remote(url: str, folder: Path, companions: Sequence[str], progress: Progress | None = None) -> Path:
    """Copy a remote file, folder, or the files that match a pattern; return the path of the copied file or folder.

    Args:
        url: such as `s3://bucket/answers.parquet`, `s3://bucket/parts` or `s3://bucket/parts/*.parquet`.
        folder: local folder for the copy.
        companions: names of files that are copied, too, if they lie beside a single file.
        progress: called with the bytes copied so far and the size of each file.

    Raises:
        ReportsError: an unknown scheme, a missing package, no such file, or no permission.
    """
    try:
        remote, path = _open(url)
        return _copy_path(remote, path, folder, companions, progress)
    except ImportError as error:
        raise ReportsError(
            f"the Python package {error.name} is needed to read {scheme_of(url)}://",
            source=_plain(url),
            hint="pip install 'crowdveil[remote]', and the package of this file system, such as adlfs.",
        ) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, ReportsError):
            raise
        raise ReportsError(
            "the remote file must exist and be readable",
            source=_plain(url),
            examples=str(error).partition("\n")[0][:200],
            hint="Check the URL, and the credentials of this machine.",
        ) from error


def _open(url: str) -> tuple[Any, str]:
    """Return file system and path of a URL."""
    if scheme_of(url) in NATIVE:
        remote, path = fs.FileSystem.from_uri(url.replace("s3a://", "s3://", 1).replace("gcs://", "gs://", 1))
        return remote, path
    found, path = import_module("fsspec").core.url_to_fs(url)
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def _copy_path(remote: Any, path: str, folder: Path, companions: Sequence[str], progress: Progress | None) -> Path:
    name = PurePosixPath(path).name
    if any(sign in path for sign in "*?["):
        base = path[: min(path.find(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
        listed = _listed(remote, base)
        found = [file for file in listed if fnmatch(file, path)]
        collection = {f"{PurePosixPath(file).parent}/{name}" for file in found for name in companions}
        _copy_all(remote, base, found, folder / MATCHED, progress)
        return _copy_all(
            remote, base, sorted(collection.intersection(listed)), folder / MATCHED, progress, missing=True
        )
    info = remote.get_file_info(path)
    if info.type == fs.FileType.Directory:
        return _copy_all(remote, path, _listed(remote, path), folder / (name or "folder"), progress)
    if info.type != fs.FileType.File:
        raise FileNotFoundError("no such file or folder")
    parent = path.rpartition("/")[0]
    beside = [f"{parent}/{one}" for one in companions]
    for one in [path, *(one for one in beside if remote.get_file_info(one).type == fs.FileType.File)]:
        _copy_file(remote, one, folder / PurePosixPath(one).name, progress)
    return folder / name


def _listed(remote: Any, base: str) -> list[str]:
    found = remote.get_file_info(fs.FileSelector(base, recursive=True))
    return sorted(info.path for info in found if info.type == fs.FileType.File)


def _copy_all(
    remote: Any, base: str, paths: Sequence[str], folder: Path, progress: Progress | None, *, missing: bool = False
) -> Path:
    """Copy files with their folders below `base`; return the local folder. `missing` accepts that there is none."""
    if not paths and not missing:
        raise FileNotFoundError("no file there")
    for path in paths:
        relative = PurePosixPath(path).relative_to(base.rstrip("/"))
        if ".." in relative.parts:
            raise FileNotFoundError(f"a path outside the folder: {relative}")
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(remote, path, target, progress)
    return folder


def _copy_file(remote: Any, path: str, target: Path, progress: Progress | None) -> None:
    with remote.open_input_stream(path, compression=None) as stream, open(target, "wb") as copy:
        _copy(stream, copy, remote.get_file_info(path).size or 0, progress)


def _copy(stream: Any, copy: BinaryIO, size: int, progress: Progress | None) -> None:
    done = 0
    while part := stream.read(PART_BYTES):
        copy.write(part)
        done += len(part)
        if progress is not None:
            progress(done, max(size, done))


def _plain(url: str) -> str:
    """Return a URL without user, password and query, for messages."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
