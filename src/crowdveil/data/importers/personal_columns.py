"""Personal data in exports: columns of times, ratings and addresses, and workers who are named by an address.

No epsilon covers them, so importers do not keep them, and name them instead.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

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
MAX_DEPTH = 4
RECORDS_LOOKED_AT = 1000


def is_personal(name: str) -> bool:
    """Return whether the name of a column tells of a time, a rating or an address: `lead_time`, `WorkerIP`."""
    last = name.rpartition(".")[2].rpartition(":")[2]
    words = [word.lower() for word in WORD.findall(last)]
    joined = {left + right for left, right in pairwise(words)}
    return not PERSONAL_WORDS.isdisjoint({*words, *joined})


def personal_columns_and_record_keys(
    columns: Iterable[str], records: Iterable[Mapping[str, Any]] = ()
) -> tuple[str, ...]:
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


NUMBERED_PREFIX = "worker-"
"""Beginning of the names that an import gives to workers in place of addresses, in order of appearance."""
NUMBERED_NAME = re.compile(rf"{NUMBERED_PREFIX}-*\d+")
