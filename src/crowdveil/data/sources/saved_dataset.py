"""Datasets of Hugging Face's `datasets` on disk: folders of Arrow files, read without that package."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import ReportsError

STATE, SPLITS = "state.json", "dataset_dict.json"


def is_saved_dataset(folder: Path) -> bool:
    """Return whether a folder is a saved `Dataset` or `DatasetDict`."""
    return (folder / SPLITS).is_file() or (folder / STATE).is_file()


def saved_dataset_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a saved dataset, in their order.

    Raises:
        ReportsError: several splits, or a damaged folder.
    """
    try:
        if (folder / SPLITS).is_file():
            splits = json.loads((folder / SPLITS).read_text("utf-8"))["splits"]
            if len(splits) != 1:
                raise ReportsError(
                    "a dataset with several splits is read split by split",
                    source=str(folder),
                    examples=", ".join(splits),
                    hint=f"Give the folder of a split, such as {folder / splits[0]}.",
                )
            folder /= splits[0]
        files = json.loads((folder / STATE).read_text("utf-8"))["_data_files"]
        return [folder / file["filename"] for file in files]
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ReportsError):
            raise
        raise ReportsError(
            "a saved dataset must be complete", source=str(folder), examples=str(error)[:200], hint="Save it again."
        ) from error


def with_label_names(table: pa.Table) -> pa.Table:
    """Return a table with the names of labels instead of their numbers, where the schema states names (ClassLabel)."""
    stated = (table.schema.metadata or {}).get(b"huggingface")
    if stated is None:
        return table
    features: dict[str, Any] = json.loads(stated).get("info", {}).get("features", {})
    for column, feature in features.items():
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and column in table.column_names:
            names: Any = pa.array(feature["names"], pa.string())
            numbers = pc.if_else(pc.greater_equal(table[column], 0), table[column], None)
            table = table.set_column(table.column_names.index(column), column, pc.take(names, numbers))
    return table
