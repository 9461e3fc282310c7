"""Fields of `campaign.json`: the checks of every type, length and range that need no channel."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from hashlib import sha256
from operator import eq
from typing import Any
from unicodedata import normalize

from crowdveil.channels.certificate import canonical
from crowdveil.channels.text_validation import first_confusable_pair, name_defect
from crowdveil.errors import CampaignError

FORMAT, PART_FORMAT = "crowdveil-campaign/1", "crowdveil-assignment/1"
FIELDS = frozenset(
    [
        "format",
        "title",
        "question",
        "consent",
        "language",
        "url",
        "opens",
        "closes",
        "min_reports",
        "purge_after_days",
        "labels",
        "certificates",
        "tasks",
        "slots",
        "groups",
        "assignment_parts",
        "cells",
        "body_bytes",
        "symbol_bytes",
        "salt",
    ]
)
SLOTS_PER_PART = 100
MAX_SLOTS = 1_000_000
MAX_CERTIFICATES = 64
MAX_TITLE, MAX_QUESTION, MAX_CONSENT = 200, 2_000, 20_000
MAX_ID, MAX_NAME, MAX_TEXT, MAX_ALT = 200, 200, 20_000, 2_000
"""Largest numbers of characters."""
MAX_PICTURE_BYTES = 5_000_000
MAX_OPERATOR = 200
MAX_PURGE_DAYS = 3_650
NO_ANSWER = frozenset(["noanswer", "keineantwort"])
"""Letters of the choice that is no answer, in the languages of the devices: no label may read like it."""
PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp")
DIGEST = re.compile("[0-9a-f]{64}")
SALT = re.compile("[0-9a-f]{32}")
LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
OPTIONAL_FIELDS = frozenset(["relay"])
"""Fields that a campaign may leave out; a reader that does not know one refuses the campaign."""
RELAY_FIELDS = frozenset(["operator", "public_key", "least_batch", "unit", "suite"])
SUITE = "hpke-p256-sha256-aes128gcm"
UNITS = ("report", "cell")
PUBLIC_KEY = re.compile("04[0-9a-f]{128}")
SEAL_BYTES = 81
"""Bytes by which a sealed text is longer than the text: ephemeral public key and tag."""
MAX_SEALED_BYTES = 900_000
_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
_CONSTANT = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
"""P-256 is y^2 = x^3 - 3 x + constant modulo the prime (NIST SP 800-186)."""
_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PATH = r"(/[A-Za-z0-9._~-]+)*"
URL = re.compile(rf"(https://{_HOST}|http://(127\.0\.0\.1|localhost))(:[1-9]\d{{0,4}})?{_PATH}", re.ASCII)
"""Address of a service without a final slash; plain http is for this computer only."""
MAX_URL = 200


def check_fields(data: Any) -> None:
    """Check every field of a parsed campaign but the tables of the certificates.

    Raises:
        CampaignError: format, text, url, day, number, labels, task, picture, groups, part, salt, relay.
    """
    if not isinstance(data, dict) or set(data) - OPTIONAL_FIELDS != FIELDS or data["format"] != FORMAT:
        raise CampaignError("format", f"expected an object of format {FORMAT!r} with fields {sorted(FIELDS)}.")
    _require_name("title", data["title"], MAX_TITLE)
    for name, most in (("question", MAX_QUESTION), ("consent", MAX_CONSENT)):
        _require_text(name, data[name], most)
    _require("text", "language", data["language"], LANGUAGE)
    if data["url"] is not None:
        _require("url", "url", data["url"], URL)
        _require_text("url", data["url"], MAX_URL)
    _check_days(data)
    _require("salt", "salt", data["salt"], SALT)
    _check_labels(data["labels"])
    _check_tasks(data["tasks"])
    _check_numbers(data)
    _check_parts(data)
    _check_groups(data)
    if "relay" in data:
        _check_relay(data)


def _check_days(data: Mapping[str, Any]) -> None:
    days = []
    for name in ("opens", "closes"):
        _require("day", name, data[name], DAY)
        try:
            days.append(date.fromisoformat(data[name]))
        except ValueError as error:
            raise CampaignError("day", f"{name} is no day of the calendar: {data[name]!r}.") from error
    if days[0] > days[1]:
        raise CampaignError("day", f"a campaign opens before it closes, not on {data['opens']} and {data['closes']}.")


def _check_labels(labels: object) -> None:
    if not (isinstance(labels, list) and labels and all(isinstance(name, str) for name in labels)):
        raise CampaignError("labels", "labels must be a list of texts.")
    check_shown_names(labels)


def check_shown_names(names: Iterable[str]) -> None:
    """Check labels and report symbols, which devices show: none is long, and none reads like the choice of no answer.

    Raises:
        CampaignError: labels.
    """
    for name in names:
        if len(name) > MAX_NAME:
            raise CampaignError("labels", f"a label or report symbol has at most {MAX_NAME} characters: {name[:50]!r}.")
        if "".join(filter(str.isalpha, normalize("NFKC", name).lower())) in NO_ANSWER:
            raise CampaignError(
                "labels", f"{name[:100]!r} reads like the choice of no answer, which devices offer. Leave it out."
            )


def _check_tasks(tasks: object) -> None:
    if not (isinstance(tasks, list) and tasks):
        raise CampaignError("task", "a campaign has at least one task.")
    for task in tasks:
        if not isinstance(task, dict) or set(task) != {"id", "text", "picture"}:
            raise CampaignError("task", "a task has exactly the fields id, text and picture.")
        _require_name("id of a task", task["id"], MAX_ID)
        _require_text("text of a task", task["text"], MAX_TEXT)
        if task["picture"] is not None:
            _check_picture(task["picture"])
    if len({task["id"] for task in tasks}) != len(tasks):
        raise CampaignError("task", "two tasks have the same id.")
    pair = first_confusable_pair(task["id"] for task in tasks)
    if pair is not None:
        raise CampaignError("task", f"the ids of two tasks look alike: {pair[0]!r} and {pair[1]!r}.")


def _check_picture(picture: object) -> None:
    if not isinstance(picture, dict) or set(picture) != {"sha256", "type", "bytes", "alt"}:
        raise CampaignError("picture", "a picture has exactly the fields sha256, type, bytes and alt.")
    _require("picture", "sha256 of a picture", picture["sha256"], DIGEST)
    if picture["type"] not in PICTURE_TYPES:
        raise CampaignError("picture", f"the type of a picture is one of {', '.join(PICTURE_TYPES)}.")
    _require_integer("picture", "bytes of a picture", picture["bytes"], 1, MAX_PICTURE_BYTES)
    _require_text("alt of a picture", picture["alt"], MAX_ALT)


def _check_numbers(data: Mapping[str, Any]) -> None:
    _require_integer("number", "slots", data["slots"], 1, MAX_SLOTS)
    _require_integer("number", "min_reports", data["min_reports"], 1, data["slots"])
    _require_integer("number", "cells", data["cells"], 1, len(data["tasks"]))
    _require_integer("number", "symbol_bytes", data["symbol_bytes"], 1, 2)
    if data["purge_after_days"] is not None:
        _require_integer("number", "purge_after_days", data["purge_after_days"], 0, MAX_PURGE_DAYS)
    if type(data["body_bytes"]) is not int or data["body_bytes"] != data["cells"] * data["symbol_bytes"]:
        raise CampaignError("number", "body_bytes must be cells * symbol_bytes.")


def _check_parts(data: Mapping[str, Any]) -> None:
    parts, count = data["assignment_parts"], -(-data["slots"] // SLOTS_PER_PART)
    if not (isinstance(parts, list) and len(parts) == count):
        raise CampaignError("part", f"{data['slots']} slots need {count} assignment parts of {SLOTS_PER_PART}.")
    for number, digest in enumerate(parts):
        _require("part", f"assignment part {number}", digest, DIGEST)


def _check_groups(data: Mapping[str, Any]) -> None:
    certificates, groups = data["certificates"], data["groups"]
    if not (isinstance(certificates, list) and all(isinstance(part, dict) for part in certificates)):
        raise CampaignError("format", "certificates must be a list of objects.")
    if not 1 <= len(certificates) <= MAX_CERTIFICATES:
        raise CampaignError("format", f"a campaign has 1 to {MAX_CERTIFICATES} certificates, not {len(certificates)}.")
    if (groups is None) != (len(certificates) == 1):
        raise CampaignError("groups", "groups are null with one certificate, and needed with several.")
    if groups is None:
        return
    if not isinstance(groups, dict) or set(groups) != {"choice", "task_group", "slot_group"}:
        raise CampaignError("groups", "groups have exactly the fields choice, task_group and slot_group.")
    choice = groups["choice"]
    if not (isinstance(choice, list) and choice and all(isinstance(row, list) and row for row in choice)):
        raise CampaignError("groups", "the choice must be a list of lists.")
    width = len(choice[0])
    for row in choice:
        _require_codes("choice", row, width, len(certificates))
    if {index for row in choice for index in row} != set(range(len(certificates))):
        raise CampaignError("groups", "every certificate must occur in the choice.")
    _require_codes("task_group", groups["task_group"], len(data["tasks"]), width)
    _require_codes("slot_group", groups["slot_group"], data["slots"], len(choice))


def _check_relay(data: Mapping[str, Any]) -> None:
    """Check the relay, and that nothing in a report names its worker: every worker has the same tasks and channel."""
    relay = data["relay"]
    if not isinstance(relay, dict) or set(relay) != RELAY_FIELDS or relay["suite"] != SUITE:
        raise CampaignError("relay", f"a relay has exactly the fields {sorted(RELAY_FIELDS)}, and suite {SUITE!r}.")
    _require_name("operator of the relay", relay["operator"], MAX_OPERATOR)
    _require("relay", "public_key of the relay", relay["public_key"], PUBLIC_KEY)
    if not _is_on_curve(int(relay["public_key"][2:66], 16), int(relay["public_key"][66:], 16)):
        raise CampaignError("relay", "public_key of the relay is no point of P-256: nothing can be encrypted to it.")
    _require_integer("relay", "least_batch of the relay", relay["least_batch"], 2, data["slots"])
    if relay["unit"] not in UNITS:
        raise CampaignError("relay", f"the unit of a relay is one of {', '.join(UNITS)}.")
    if data["url"] is None or data["purge_after_days"] is None:
        raise CampaignError("relay", "a relay needs an address, and a number of days after which it deletes.")
    if data["cells"] != len(data["tasks"]) or data["groups"] is not None:
        raise CampaignError("relay", "with a relay every worker is asked every task, through one channel.")
    if sealed_bytes(data) > MAX_SEALED_BYTES:
        raise CampaignError("relay", f"a sealed report has at most {MAX_SEALED_BYTES} bytes.")
    if not all(map(eq, data["assignment_parts"], whole_parts(data["slots"], data["cells"]))):
        raise CampaignError("relay", "with a relay the list of every worker, in every assignment part, is all tasks.")


def _is_on_curve(x: int, y: int) -> bool:
    return max(x, y) < _PRIME and (y * y - x**3 + 3 * x - _CONSTANT) % _PRIME == 0


def whole_parts(slots: int, tasks: int) -> Iterator[str]:
    """Yield the SHA-256 of each assignment part, hexadecimal, of a campaign in which every slot has every task."""
    everything = canonical(list(range(tasks)))
    for first in range(0, slots, SLOTS_PER_PART):
        lists = b",".join([everything] * min(SLOTS_PER_PART, slots - first))
        part = b'{"first":%d,"format":"%s","tasks":[%s]}' % (first, PART_FORMAT.encode("ascii"), lists)
        yield sha256(part).hexdigest()


def sealed_bytes(data: Mapping[str, Any]) -> int:
    """Return the length of a sealed report, by the fields of a campaign with a relay."""
    parts = 1 if data["relay"]["unit"] == "report" else data["cells"]
    return int(data["body_bytes"] + parts * SEAL_BYTES)


def _require(defect: str, name: str, value: object, pattern: re.Pattern[str]) -> None:
    if not (isinstance(value, str) and pattern.fullmatch(value)):
        raise CampaignError(defect, f"{name} has another form: {str(value)[:100]!r}.")


def _require_text(name: str, value: object, most: int) -> None:
    """Check a text that a device shows: printable, in one or more lines, without marks that change its direction."""
    if not (isinstance(value, str) and 1 <= len(value) <= most):
        raise CampaignError("text", f"{name} must be a text of 1 to {most} characters.")
    defect = name_defect(value.replace("\n", " "))
    if defect:
        raise CampaignError("text", f"{name} must be printable: {defect}.")


def _require_name(name: str, value: object, most: int) -> None:
    """Check a text of one line."""
    _require_text(name, value, most)
    if "\n" in str(value):
        raise CampaignError("text", f"{name} must be one line.")


def _require_integer(defect: str, name: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise CampaignError(defect, f"{name} must be an integer from {least} to {most}, not {str(value)[:50]}.")


def _require_codes(name: str, values: object, count: int, bound: int) -> None:
    """Check a list of `count` integers in 0 .. bound - 1."""
    if not (isinstance(values, list) and len(values) == count):
        raise CampaignError("groups", f"{name} must be a list of {count} integers.")
    if not all(type(value) is int and 0 <= value < bound for value in values):
        raise CampaignError("groups", f"{name} must hold integers from 0 to {bound - 1}.")
