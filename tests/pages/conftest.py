"""Folders with inferred results, as fixtures."""

from tests.inferred_folders import campaign_folder as campaign_folder
from tests.inferred_folders import collected as collected
from tests.inferred_folders import numbers as numbers
from tests.inferred_folders import plain as plain
