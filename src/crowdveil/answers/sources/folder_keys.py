"""Keys of folders such as `day=2026-01-01`, as Hive and Spark write them: columns that files below them do not have.

Keys stand in every folder of a path as a user gives it, and in those below; what lies above has none.
"""

import glob
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import ReportsError
from crowdveil.files.filesystem import scheme_of

KEY = re.compile(r"(?P<name>\w[\w .%-]*)=(?P<value>.*)")
MISSING = "__HIVE_DEFAULT_PARTITION__"
"""Value of rows without one."""
ROWS_SHOWN = 5
Keys = Mapping[str, str | None]
"""Value of each key above a file; None for rows without one."""


def folder_keys(file: Path) -> dict[str, str | None]:
    """Return the keys of the folders of a file, whose path begins as the user gave it.

    >>> folder_keys(Path("answers/day=2026-01-01/worker=ann%2Fb/1.parquet"))
    {'day': '2026-01-01', 'worker': 'ann/b'}
    """
    return _keys_of_folders(Path(normpath(file)).parts[:-1])


def keys_of_copy(file: Path, top: Path, source: str) -> dict[str, str | None]:
    """Return the keys of the folders of a copied file: those of its URL, and those below; other copies have none.

    Args:
        file: the copy.
        top: copy of what the source names, the file itself or its folder.
        source: as the user gave it.
    """
    if not scheme_of(source):
        return {}
    folders = source.partition("://")[2].split("/")[1:]
    fixed = list(takewhile(lambda part: not glob.has_magic(part), folders))
    if file == top and len(fixed) == len(folders):
        fixed = fixed[:-1]  # the last one is the file
    return _keys_of_folders([*fixed, *file.relative_to(top).parts[:-1]])


def _keys_of_folders(folders: Iterable[str]) -> dict[str, str | None]:
    """Return the keys of folders, from the outermost to the innermost.

    Raises:
        ReportsError: a key has two values, or is not UTF-8.
    """
    found = dict[str, tuple[str, str | None, str]]()
    for key in filter(None, map(KEY.fullmatch, folders)):
        folder, name = key[0], _decoded(key["name"], key[0])
        value = None if key["value"] == MISSING else _decoded(key["value"], folder)
        _, outer, above = found.setdefault(name.casefold(), (name, value, folder))
        if outer != value:
            raise ReportsError(
                "a key must have one value in the folders of a file",
                source=f"{above}/.../{folder}",
                hint="Rename one of the folders, or change to a folder below the first and give the path from there.",
            )
    return {name: value for name, value, _ in found.values()}


def _decoded(text: str, folder: str) -> str:
    """Return the name or value of a key without the signs of a URL.

    Raises:
        ReportsError: it is not UTF-8, in which different values would become the same, or has a NUL.
    """
    try:
        found = unquote(text, errors="strict")
        found.encode()
        if "\0" not in found:
            return found
    except UnicodeError:
        pass
    raise ReportsError(
        "the key and value of a folder must be UTF-8 without NUL, also where they are escaped (%E9)",
        source=folder.encode(errors="backslashreplace").decode(),
        hint="Rename the folder: é is %C3%A9.",
    )


def keys_by_column(keys: Keys, columns: Collection[str]) -> dict[str, str | None]:
    """Return the value of the key of each column that has one; names in other letter cases are the same, as in Hive."""
    values = {key.casefold(): value for key, value in keys.items()}
    return {column: values[column.casefold()] for column in columns if column.casefold() in values}


def keys_without_column(keys: Keys, columns: Iterable[str]) -> dict[str, str | None]:
    """Return the keys that are none of the columns, in other letter cases either."""
    found = {column.casefold() for column in columns}
    return {key: value for key, value in keys.items() if key.casefold() not in found}


def notes_on_keys(files: Iterable[tuple[Keys, Collection[str]]]) -> tuple[str, ...]:
    """Return a sentence on the keys of files that are none of the columns that are read of each; empty without any."""
    unread = dict.fromkeys(key for keys, columns in files for key in keys_without_column(keys, columns))
    return (f"Not read: {', '.join(map(repr, unread))}, in the names of folders.",) if unread else ()


def constant_column(value: str | None, rows: int) -> Any:
    """Return a column of one text, or without values."""
    absent = np.full(rows, value is None)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32), mask=absent), pa.array([value or ""]))


def refuse_other_values(table: Any, keys: Keys, source: str) -> None:
    """Refuse columns of a file that do not hold the value of the folder's key of the same name.

    Raises:
        ReportsError: with the first rows that differ.
    """
    for name in table.column_names:
        column, value = table[name], keys[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            wanted = pa.scalar(value, pa.string()).cast(column.type)
        except pa.ArrowInvalid:
            wanted, column = pa.scalar(value, pa.string()), column.cast(pa.string())
        agrees = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, wanted), False)
        if pc.all(agrees).as_py() is False:
            rows = np.flatnonzero(~np.asarray(agrees.to_pylist(), dtype=bool))
            raise ReportsError(
                "a column must have the value of the folder's key of its name",
                source=source,
                rows=tuple((rows[:ROWS_SHOWN] + 1).tolist()),
                examples=f"{name} {column[int(rows[0])].as_py()}, in a folder {name}={value or MISSING}",
                hint="Move the rows to their folder, or rename the column or the folders.",
            )
