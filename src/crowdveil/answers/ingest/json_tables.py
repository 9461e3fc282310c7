"""Tables in JSON as data frames write them: one object by columns, by rows, with split rows, or with a schema."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from crowdveil.answers.ingest.column_readers import ANSWERS, GOLD, OTHER_NAMES, normal_name

SPLIT = frozenset({"columns", "data"})
BESIDE = frozenset({"index", "index_names", "column_names"})
SCHEMA = frozenset({"schema", "data"})
KNOWN_NAMES = frozenset[str]().union(*ANSWERS.values(), *OTHER_NAMES.values(), *GOLD.values())


def records_of_table(content: Mapping[str, Any], stated: Collection[str | None]) -> list[dict[str, Any]] | None:
    """Return the records of an object that is a table; None for an object that is a record itself.

    Args:
        content: the object: columns of lists or of cells by row, rows of cells by column, or `columns` and `data`.
        stated: names of columns that the caller states, by which rows and columns are told apart.
    """
    keys = set(content)
    if keys >= SPLIT and keys <= SPLIT | BESIDE:
        return _records_of_rows(content["columns"], content["data"])
    if keys == SCHEMA and _are_all(content["data"], dict):
        return list(content["data"])
    parts = list(content.values())
    if len(parts) > 1 and _are_all(parts, list) and len({len(part) for part in parts}) == 1:
        return [dict(zip(content, row, strict=True)) for row in zip(*parts, strict=True)]
    if len(parts) > 1 and _are_all(parts, dict) and parts[0] and all(one.keys() == parts[0].keys() for one in parts):
        if _known(parts[0], stated) > _known(content, stated):
            return parts
        return [{name: content[name][row] for name in content} for row in parts[0]]
    return None


def _records_of_rows(columns: Any, rows: Any) -> list[dict[str, Any]] | None:
    if not _are_all(columns, str) or not _are_all(rows, list) or any(len(row) != len(columns) for row in rows):
        return None
    return [dict(zip(columns, row, strict=True)) for row in rows] if len(set(columns)) == len(columns) else None


def _are_all(parts: Any, kind: type) -> bool:
    return isinstance(parts, Sequence) and bool(parts) and all(isinstance(part, kind) for part in parts)


def _known(names: Collection[str], stated: Collection[str | None]) -> int:
    """Return how many names are those of columns of answers or truths, or are stated."""
    return sum(normal_name(name) in KNOWN_NAMES or name in stated for name in names)
