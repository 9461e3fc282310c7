"""Personal data in exports: columns of times, ratings and addresses, and workers who are named by an address.

No epsilon covers them, so importers do not keep them, and name them instead.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

from crowdveil.arguments import is_number

_WORDS = """time date created updated started submitted accepted finished finish completedat duration seconds elapsed
lead timestamp deadline expiration timeout email mail ip address phone latitude longitude geolocation location country
city rating approval reward feedback firstname lastname fullname surname username birthday age gender"""
PERSONAL_WORDS = frozenset(_WORDS.split())
"""Words in the names of columns with personal data."""
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
ADDRESS = re.compile(
    r".*[^@\s]@[^@\s]+\.[^@\s].*"  # mail, also beside a name
    r"|\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}"  # IPv4, IPv6
    r"|\d{4}-\d\d-\d\d[ T_]\d\d[:-]\d\d.*"  # time
)
"""Names of workers that are an address or a time."""
TIME = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}\D{1,3}\d{1,2}:\d\d.*")
"""Times as spreadsheets write them."""
OWN_NAME = re.compile(
    r"\b(your|full|first|last|given|family|user|nick|ihr|dein|votre|tu|su|seu)[\s_-]*(name|nom|nombre|nome)\b"
    r"|^(name|nom|nombre|nome|naam)\W*($|of\b|de\b)|\b(vorname|nachname|pr[eé]nom|apellidos?|cognome|sobrenome)\b",
    re.IGNORECASE,
)
"""Names of columns that ask people for their own names."""
LONG_NUMBER = 6
"""Fewest digits of whole numbers that tell people apart, such as those of students and telephones."""
MAX_DEPTH = 4
RECORDS_LOOKED_AT = 1000


def is_personal(name: str) -> bool:
    """Return whether the name of a column tells of a time, a rating or an address: `lead_time`, `WorkerIP`."""
    last = name.rpartition(".")[2].rpartition(":")[2]
    words = [word.lower() for word in WORD.findall(last)]
    joined = {left + right for left, right in pairwise(words)}
    return not PERSONAL_WORDS.isdisjoint({*words, *joined})


def personal_fields(columns: Iterable[str], records: Iterable[Mapping[str, Any]] = ()) -> tuple[str, ...]:
    """Return the names of columns with personal data, and the paths of such keys inside records."""
    found = dict.fromkeys(name for name in columns if is_personal(name))
    for number, record in enumerate(records):
        if number == RECORDS_LOOKED_AT:
            break
        found |= dict.fromkeys(_personal_key_paths(record, "", MAX_DEPTH))
    return tuple(found)


def _personal_key_paths(value: Any, above: str, depth: int) -> Iterable[str]:
    """Yield the dotted paths of keys with personal names; lists have the path of their items."""
    if isinstance(value, list):
        for part in value if depth else ():
            yield from _personal_key_paths(part, above, depth - 1)
    elif isinstance(value, dict) and depth:
        for key, part in value.items():
            path = f"{above}.{key}" if above else str(key)
            if is_personal(str(key)):
                yield path
            else:
                yield from _personal_key_paths(part, path, depth - 1)


def columns_that_name_people(cells: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the columns of a form that name its respondents: by their names, or by most of their contents.

    These are times, addresses, or contents that no two respondents share, in this column or another, but for numbers.
    """
    given = {name: [str(cell) for cell in own if cell not in (None, "")] for name, own in cells.items()}
    shared = {cell for own in given.values() for cell, count in Counter(own).items() if count > 1}
    return [name for name, own in given.items() if OWN_NAME.search(name) or _most_name_people(own, shared)]


def _most_name_people(given: Sequence[str], shared: Set[str]) -> bool:
    if sum(bool(ADDRESS.fullmatch(cell) or TIME.fullmatch(cell)) for cell in given) * 2 > len(given):
        return True
    own = {cell for cell in given if cell not in shared and not _is_short_number(cell)}
    return len(given) > 1 and len(own) * 2 > len(given)


def _is_short_number(cell: str) -> bool:
    return is_number(cell) and not (cell.isdecimal() and len(cell) >= LONG_NUMBER)


NUMBERED_PREFIX = "worker-"
"""Beginning of the names that an import gives to workers in place of addresses, in order of appearance."""
NUMBERED_NAME = re.compile(rf"{NUMBERED_PREFIX}-*\d+")
