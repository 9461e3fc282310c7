"""Copies of remote files, tables and standard input in a temporary folder, with the files of their collection.

A collection stays whole: with a remote file of reports come the certificate and `crowd.json` of its folder, so that it
is read as it would be on this machine. pyarrow has the file systems of S3, Google Cloud and Hadoop; fsspec has others.
DuckDB writes a table as Parquet. A query is one SELECT, and reads nothing but its database.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from crowdveil.answers.ingest.csv_files import Progress
from crowdveil.errors import ReportsError
from crowdveil.files.filesystem import is_locked_by_other, scheme_of

PART_BYTES = 1 << 20
NATIVE = frozenset({"s3", "s3a", "gs", "gcs", "hdfs", "viewfs", "file"})
"""Schemes of pyarrow's own file systems."""
STDIN_FILE, MATCHED = "stdin", "matched"
"""Names of the copy of standard input, and of the folder of files that match a pattern."""
READ_ONLY = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
"""Settings of DuckDB under which a query reads the database and nothing else."""
ROWS_AT_ONCE = 1 << 17
SECONDS_BETWEEN_INTERRUPTS = 0.05
DATABASE_HINT = "Rows of other databases come as CSV on standard input, or from a table in DuckDB."


def copy_stdin(folder: Path, progress: Progress | None = None) -> Path:
    """Copy standard input to a file in a folder; return its path."""
    path = folder / STDIN_FILE
    with open(path, "wb") as copy:
        _copy_stream_with_progress(sys.stdin.buffer, copy, 0, progress)
    return path


def copy_duckdb_table(database: str, table: str, folder: Path) -> Path:
    """Copy a table or view of a DuckDB file, its schema before a point if it has one, as Parquet; return its path.

    Raises:
        ReportsError: DuckDB is missing, or the database or table cannot be read; `temporary` if another process has
            locked the database.
    """
    path = folder / "table.parquet"
    name = ".".join('"{}"'.format(part.replace('"', '""')) for part in table.split("."))
    rule = "the database and its table must exist and be readable"
    hint = f"Name a table, or give a query that begins with SELECT or WITH. {DATABASE_HINT}"
    with _open_duckdb(database, f"{database}?{table}", rule, hint) as connection:
        found = connection.sql(f"SELECT * FROM {name}")
        _run_interruptibly(connection, lambda: found.write_parquet(str(path)))
    return path


def copy_duckdb_query(database: str, query: str, folder: Path) -> Path:
    """Copy the rows of one SELECT on a DuckDB file as Parquet; return the path.

    DuckDB parses the text before anything runs. The database is opened for reading only, without access to other
    files, extensions and variables of this process, and no setting can be changed.

    Raises:
        ReportsError: as `copy_duckdb_table`; several statements, another one, or a query that DuckDB refuses.
    """
    source, path = f"{database}?{query}", folder / "query.parquet"
    rule = "the database must exist, and the query must be one that it can answer by itself"
    hint = f"A query reads tables of its database, and no files. {DATABASE_HINT}"
    with _open_duckdb(database, source, rule, hint, READ_ONLY) as connection:
        statements = connection.extract_statements(query)
        kinds = [statement.type.name for statement in statements]
        if kinds != ["SELECT"]:
            found = f"{len(kinds)} statements" if len(kinds) != 1 else f"a statement {kinds[0]}"
            raise ReportsError("a query must be one SELECT", source=source, examples=found, hint="Write one SELECT.")
        _run_interruptibly(connection, lambda: _write_rows(connection.sql(statements[0]), path, source))
    return path


def _write_rows(found: Any, path: Path, source: str) -> None:
    """Write the rows of a query as Parquet.

    Raises:
        ReportsError: a column has a type that Parquet does not have.
    """
    read = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader  # its older name
    rows = read(ROWS_AT_ONCE)
    if wrong := [f"{field.name!r} ({field.type})" for field in rows.schema if not _is_type_of_parquet(field)]:
        raise ReportsError(
            "each column of a query must have a type that Parquet has",
            source=source,
            examples=", ".join(wrong),
            hint="Leave the column out, or make it text: cast(NAME as text).",
        )
    with pq.ParquetWriter(path, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def _is_type_of_parquet(field: pa.Field) -> bool:
    """Return whether Arrow can write a column as Parquet."""
    try:
        pq.write_metadata(pa.schema([field]), pa.BufferOutputStream())
    except pa.ArrowNotImplementedError:
        return False
    return True


def _run_interruptibly(connection: Any, work: Callable[[], object]) -> None:
    """Run work on a DuckDB connection in a thread; Ctrl-C and signals end it at once, and are raised as they are.

    DuckDB would raise an error of its own in place of theirs, and hear them only between its results.
    """
    with ThreadPoolExecutor(1) as pool:
        done: Future[object] = pool.submit(work)
        try:
            done.result()
        finally:
            while not done.done():  # a query that has not begun does not hear it
                connection.interrupt()
                wait([done], SECONDS_BETWEEN_INTERRUPTS)


@contextmanager
def _open_duckdb(
    database: str, source: str, rule: str, hint: str, config: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Any]:
    """Open a DuckDB file for reading; its errors, and those of the block, become a ReportsError with rule and hint."""
    with (
        _refuse_locked_database(database, source),
        _errors_as_report_errors(source, "this database", "duckdb", rule, hint),
        import_module("duckdb").connect(database, read_only=True, config=dict(config)) as connection,
    ):
        yield connection


def copy_remote_files(url: str, folder: Path, companions: Sequence[str], progress: Progress | None = None) -> Path:
    """Copy a remote file, folder, or the files that match a pattern; return the path of the copied file or folder.

    Args:
        url: such as `s3://bucket/answers.parquet`, `s3://bucket/parts` or `s3://bucket/parts/*.parquet`.
        folder: local folder for the copy.
        companions: names of files that are copied, too, if they lie beside a file.
        progress: called with the bytes copied so far and the size of each file.

    Raises:
        ReportsError: an unknown scheme, a missing package, no such file, or no permission.
    """
    rule = "the remote file must exist and be readable"
    hint = f"Check the URL, and the credentials of this machine. {DATABASE_HINT}"
    with _errors_as_report_errors(url_without_credentials(url), f"{scheme_of(url)}://", "remote", rule, hint):
        return _copy_files_matching_path(*_open_file_system(url), folder, companions, progress)


@contextmanager
def _errors_as_report_errors(source: str, what: str, extra: str, rule: str, hint: str) -> Iterator[None]:
    """Turn the errors of file systems and databases, which have no common class, into a ReportsError."""
    try:
        yield
    except (MemoryError, ReportsError):
        raise
    except ImportError as error:
        raise ReportsError(
            f"the Python package {error.name} is needed to read {what}",
            source=source,
            hint=f"pip install 'crowdveil[{extra}]'. Some file systems need one more package, such as adlfs.",
        ) from error
    except Exception as error:
        raise ReportsError(
            rule,
            source=source,
            examples=str(error).partition("\n")[0][:200].rstrip("."),
            hint=hint,
        ) from error


@contextmanager
def _refuse_locked_database(database: str, source: str) -> Iterator[None]:
    """Name the lock of another process as the cause of an error, which DuckDB tells by text only."""
    try:
        yield
    except ReportsError as error:
        if isinstance(error.__cause__, ImportError) or not is_locked_by_other(database):
            raise
        refusal = ReportsError(
            "no other process may have the database open for writing",
            source=source,
            hint="Try again when the other process has closed it.",
        )
        refusal.temporary = True
        raise refusal from error


def _open_file_system(url: str) -> tuple[Any, str]:
    """Return file system and path of a URL."""
    if scheme_of(url) in NATIVE:
        remote, path = fs.FileSystem.from_uri(url.replace("s3a://", "s3://", 1).replace("gcs://", "gs://", 1))
        return remote, path
    found, path = import_module("fsspec").core.url_to_fs(url)
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def _copy_files_matching_path(
    remote: Any, path: str, folder: Path, companions: Sequence[str], progress: Progress | None
) -> Path:
    name, base = PurePosixPath(path).name, path.rpartition("/")[0]
    kind, found, target = remote.get_file_info(path).type, [path], folder
    if any(sign in path for sign in "*?["):
        base = path[: min(path.find(sign) for sign in "*?[" if sign in path)].rpartition("/")[0]
        found, target = [file for file in _files_below(remote, base) if fnmatch(file, path)], folder / MATCHED
    elif kind == fs.FileType.Directory:
        base, found, target = path, _files_below(remote, path), folder / (name or "folder")
    elif kind != fs.FileType.File:
        found = []
    if not found:
        raise FileNotFoundError("no such file or folder, or no file there")
    beside = sorted({str(PurePosixPath(file).parent / one) for file in found for one in companions}.difference(found))
    found += [info.path for info in remote.get_file_info(beside) if info.type == fs.FileType.File]
    for file in found:
        _copy_file(remote, file, target / _relative_path_inside(file, base), progress)
    return target / name if target == folder else target


def _files_below(remote: Any, base: str) -> list[str]:
    found = remote.get_file_info(fs.FileSelector(base, recursive=True))
    return sorted(info.path for info in found if info.type == fs.FileType.File)


def _relative_path_inside(path: str, base: str) -> PurePosixPath:
    """Return a path relative to the folder that is copied, which it must not leave."""
    relative = PurePosixPath(path).relative_to(base.rstrip("/"))
    if ".." in relative.parts:
        raise FileNotFoundError(f"a path outside the folder: {relative}")
    return relative


def _copy_file(remote: Any, path: str, target: Path, progress: Progress | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with remote.open_input_stream(path, compression=None) as stream, open(target, "wb") as copy:
        _copy_stream_with_progress(stream, copy, remote.get_file_info(path).size or 0, progress)


def _copy_stream_with_progress(stream: Any, copy: BinaryIO, size: int, progress: Progress | None) -> None:
    done = 0
    while part := stream.read(PART_BYTES):
        copy.write(part)
        done += len(part)
        if progress is not None:
            progress(done, max(size, done))


def url_without_credentials(url: str) -> str:
    """Return a URL without user, password and query, for messages."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
