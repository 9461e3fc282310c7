"""Folders of results, one for each question of a table."""

import re
from collections import Counter
from collections.abc import Collection
from unicodedata import normalize

from crowdveil.errors import SettingsError

LONGEST = 60
"""Characters of a folder's name."""


def question_folders(questions: Collection[str]) -> dict[str, str]:
    """Return the folder name of each question: its letters, digits, `-` and `_`.

    Raises:
        SettingsError: a name is empty, or two differ at most in case.
    """
    folders = {question: re.sub(r"[^\w-]+", "_", question).strip("_")[:LONGEST] for question in questions}
    spelt = {question: normalize("NFKC", folder).casefold() for question, folder in folders.items()}
    counts = Counter(spelt.values())
    clashing = [question for question in questions if not spelt[question] or counts[spelt[question]] > 1]
    if clashing:
        raise SettingsError(
            "each question needs a folder of its own, named by its letters and digits",
            value=clashing[:5],
            hint="Infer one question at a time with --question and --out, or rename them.",
        )
    return folders
