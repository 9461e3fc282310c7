"""Real data sets for tests, which skip where the data directory is not there."""

from functools import cache

import pytest

from crowdveil.answers import datasets
from crowdveil.answers.datasets import Dataset


@cache
def load_or_skip(name: str) -> Dataset:
    """Load a data set, the first of repeated answers kept; skip the test if it is not there."""
    if name not in datasets.available():
        pytest.skip(f"no data set {name} in {datasets.data_directory()}: set {datasets.VARIABLE}")
    return datasets.load(name, duplicates="first")
