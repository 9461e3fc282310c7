"""Checks of certificates and campaigns in exact integers, for the library, `verify` and the device.

A channel is a table of integers: P(report | answer) = rows[answer][report] / 2^48, rows in the order of the answers,
then NULL if participation is protected. Its privacy loss for one answer is epsilon = ln(max over reports of the largest
entry of a column over its smallest). A certificate claims an upper bound of that ratio, as two integers a / b; the
claim holds if max * b <= a * min in every column.

Every rule is a claim in plain words. `ClaimLog` collects them, and raises `Refused` with the name of the defect at the
first false one. This file needs the standard library only.
"""

import base64
import csv
import datetime
import hashlib
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil
from operator import eq
from typing import Any, NamedTuple

DENOMINATOR = 1 << 48
MAX_BYTES, MAX_CERTIFICATE_BYTES = 2_000_000, 32_000_000
"""Largest size of a campaign document or an assignment part, and of a certificate."""
MAX_SYMBOLS, MAX_CHANNELS, SLOTS_PER_PART = 1025, 64, 100
MAX_SLOTS, MAX_PICTURE_BYTES, MAX_PURGE_DAYS = 1_000_000, 5_000_000, 3_650
MAX_TITLE, MAX_QUESTION, MAX_CONSENT, MAX_ID, MAX_NAME, MAX_TEXT, MAX_ALT = 200, 2_000, 20_000, 200, 200, 20_000, 2_000
"""Largest numbers of characters."""
SEAL_BYTES, MAX_SEALED_BYTES = 81, 900_000
"""Bytes by which a sealed text is longer than the text (ephemeral public key and tag), and most bytes of a report."""


SENTENCES = {
    "link": "There is no link of a campaign here. It has an address, #1., 43 characters, a point and 27 characters.",
    "link-cut": "This link is cut: its end is missing. Copy it again, to its last character, or ask for it again.",
    "link-used": "This link has been used; nothing was asked again.",
    "link-revoked": "This link was replaced by another one. Ask for the new link.",
    "token": "The service does not know this link. Is it complete?",
    "early": "This campaign has not begun yet.",
    "closed": "This campaign is closed.",
    "busy": "The service cannot be reached now. All is kept on this computer: start again later.",
    "locked": "Another program on this computer answers this campaign now.",
    "receipt": "The service confirmed another report than was sent. Tell the curator; nothing else will be sent.",
    "hash": "The file is not the one that the link or the campaign names: it was changed.",
    "relay": "This campaign goes through a relay: reports are encrypted, which this one file cannot do. Answer with "
    "the page of your link, or with crowdveil campaign answer (pip install 'crowdveil[relay]'). Nothing was sent.",
    "sampled": "The report is drawn already. Answers cannot be changed, and nothing is drawn again.",
    "answered-before": "This computer has drawn a report of this campaign before, with another link or level. A second "
    "one would reveal as much again, so nothing was drawn now. Another person here gives their own folder: --home.",
}
"""Sentence for the worker of each refusal that has no other one."""


class Refused(Exception):
    """Something that is not accepted; `name` is short, the message is a sentence, by its name unless one is given."""

    def __init__(self, name: str, sentence: str = "") -> None:
        self.name = re.sub("[^ -~]", "?", name)  # parts of replies stay in one line
        usual = f"This campaign or service was refused ({self.name}): it is not what it claims to be."
        self.sentence = sentence or SENTENCES.get(self.name, usual)
        super().__init__(self.sentence)


def ensure(condition: object, name: str, sentence: str = "") -> None:
    """Raise Refused unless the condition holds."""
    if not condition:
        raise Refused(name, sentence)


class Claim(NamedTuple):
    """Claim of a file in plain words, whether it holds, and the value that was found."""

    claim: str
    holds: bool
    found: str = ""


class ClaimLog:
    """Claims found so far; the first false one raises Refused."""

    def __init__(self, about: str = "") -> None:
        self.found: list[Claim] = []
        self.about = about

    def add(self, claim: str, defect: str, found: str = "") -> None:
        """Add a claim, which holds if it has no defect."""
        self.found.append(Claim(self.about + claim, not defect, found))
        value = f" Found: {found}." if found else ""
        ensure(not defect, defect, f"it is false that: {self.about}{claim}{value}")

    def add_faults(self, claim: str, defect: str, faults: Mapping[str, object], found: str = "") -> None:
        """Add a claim, which has a defect if one of the faults is there."""
        fault = next((text for text, there in faults.items() if there), "")
        self.add(claim, defect if fault else "", fault or found)


# ---- JSON: what can be read in two ways is refused; a canonical text has sorted keys, no spaces, and ASCII only
def canonical(value: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def parse_canonical(data: bytes, limit: int = MAX_BYTES) -> Any:
    """Return the value of a canonical JSON text; the comparison of bytes also refuses repeated keys, 1.0 and spaces.

    Raises:
        Refused: oversize, not json, not canonical, number.
    """
    ensure(len(data) <= limit, "oversize", f"{len(data)} bytes, at most {limit} are read.")
    try:
        value = json.loads(data, parse_int=_number, parse_float=_number, parse_constant=_number)
        same = canonical(value) == data
    except (ValueError, RecursionError) as error:
        raise Refused("not json", str(error)[:200]) from error
    ensure(same, "not canonical", "the bytes differ from the canonical form of their value.")
    return value


def _number(text: str) -> float:
    """Return the value of a number that Python and JavaScript write alike."""
    value = int(text) if text.removeprefix("-").isdigit() else float(text)
    usual = abs(value) < 2**53 and (isinstance(value, int) or (value % 1 != 0 and abs(value) >= 1e-4))
    ensure(usual, "number", f"{text[:50]} is not an integer below 2^53, nor a usual fraction.")
    return value


def digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of all fields but `sha256`, in hexadecimal."""
    return hashlib.sha256(canonical({name: data[name] for name in data if name != "sha256"})).hexdigest()


# ---- Names: printable text in normal form C, of which no two look alike
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff"
"""Letters and marks that cannot be seen (Unicode 16: Default_Ignorable_Code_Point); others have a category below."""
BLANKS = "\u2800\ufffc\U00016fe4\U0001d159"
"""Braille pattern without dots, object replacement, Khitan filler and null notehead: they look like a space."""


def text_defect(text: str) -> str:
    """Return why a text is not printable, empty if it is."""
    if text.isascii() and text.isprintable():
        return ""
    odd = (sign for index, sign in enumerate(text) if _is_invisible(sign) and not _is_needed(text, index))
    return next((f"character U+{ord(sign):04X} is not printable" for sign in odd), "")


def name_defect(name: str) -> str:
    """Return why a text is not a valid name, empty if it is."""
    if name != name.strip():
        return "it has leading or trailing white space"
    if defect := text_defect(name):
        return defect
    if not any(unicodedata.category(sign)[0] in "LNPS" for sign in name):
        return "it has no letter, digit or sign"
    return "" if unicodedata.is_normalized("NFC", name) else "it is not in normal form C"


def visible_form(name: str) -> str:
    """Return what a reader sees of a name: no invisible characters, single spaces inside and none around.

    Case, letters of other scripts and full-width forms are visible, so they distinguish names.
    """
    if not (name.isascii() and name.isprintable()):
        spaced = (" " if sign.isspace() or sign in BLANKS else sign for sign in name)
        name = unicodedata.normalize("NFC", "".join(sign for sign in spaced if not _is_invisible(sign)))
    return " ".join(name.split())


def first_confusable_pair(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of the distinct texts that have the same `visible_form`, or None."""
    seen: dict[str, str] = {}
    pairs = ((seen.setdefault(visible_form(name), name), name) for name in names)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


def first_fault(names: Iterable[str]) -> str:
    """Return the first of the texts that is not a valid name, and why; empty if all are."""
    return next((f"{name[:100]!r}: {reason}" for name in names if (reason := name_defect(name))), "")


def symbols_defect(names: Sequence[str]) -> tuple[str, str]:
    """Return the defect of the names of answers or reports, and what was found; empty if there is none."""
    fault, pair = first_fault(names), first_confusable_pair(names)
    if fault:
        return "text", f"label {fault}"
    if len(set(names)) < len(names):
        return "duplicate symbols", "a name is repeated"
    return ("text", f"{pair[0]!r} and {pair[1]!r} are confusable") if pair else ("", "")


def _is_invisible(sign: str) -> bool:
    """Return whether a character has no visible sign; what is unassigned depends on the reader's Unicode version."""
    category = unicodedata.category(sign)
    return category[0] == "C" or category in ("Zl", "Zp") or re.match(f"[{INVISIBLE}{BLANKS}]", sign) is not None


def _is_needed(text: str, index: int) -> bool:
    """Return whether a joiner is between two non-ASCII characters, or a variation selector after a symbol."""
    if text[index] in "\ufe0e\ufe0f":
        return index > 0 and unicodedata.category(text[index - 1]) == "So"
    around = text[max(index - 1, 0) : index] + text[index + 1 : index + 2]
    return text[index] in "\u200c\u200d" and len(around) == 2 and not any(sign.isascii() for sign in around)


# ---- Tables: CSV as spreadsheets save it, read alike wherever a person writes one
DELIMITERS = ",;\t|"
SAVE_AGAIN = "In a spreadsheet save it as CSV UTF-8. From western Windows: iconv -f cp1252 -t utf-8."


class BadTable(Refused):
    """Table that cannot be read: its name, the rule, the line that breaks it, counted from 1, and what to do."""

    def __init__(self, name: str, rule: str, line: int, hint: str) -> None:
        self.rule, self.line, self.hint = rule, line, hint
        super().__init__("table", f"{name}, line {line}: {rule}. {hint}")


def read_table(data: bytes, name: str) -> tuple[list[str], dict[int, list[str]]]:
    """Return the header, in lower case, and the rows that are not blank by their first line; cells are stripped.

    The text is UTF-8, or UTF-16 with a byte-order mark. The delimiter is that of a first line `sep=`, else the most
    frequent one of the header.

    Raises:
        BadTable: another encoding, a quote that is not closed, or a row of another length than the header.
    """
    rows, line = dict[int, list[str]](), 1
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        named = re.match(rf"sep=([{DELIMITERS}])(?=[\r\n])", text, re.IGNORECASE)
        text = text[named.end() :] if named else text
        first = next((line for line in text.splitlines() if line.strip(f"{DELIMITERS} ")), "")
        delimiter = named[1] if named else max(DELIMITERS, key=first.count)
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        for row in reader:
            rows |= {line: [cell.strip() for cell in row]} if any(map(str.strip, row)) else {}
            line = reader.line_num + 1
    except (UnicodeDecodeError, csv.Error) as error:
        line = data[: error.start].count(b"\n") + 1 if isinstance(error, UnicodeDecodeError) else line
        raise BadTable(name, f"the file must be CSV in UTF-8 ({str(error)[:200]})", line, SAVE_AGAIN) from error
    header = [name.lower() for name in rows.pop(min(rows), [])] if rows else []
    for line, row in rows.items():
        if len(row) != len(header):
            raise BadTable(name, f"every row has {len(header)} columns", line, "Quote texts that hold a delimiter.")
    return header, rows


def find_answer(labels: Iterable[str], text: str) -> str | None:
    """Return the possible answer that looks like a written one, a decimal comma as a point; for NULL an empty text.

    None if there is no such answer.
    """
    by_form, form = {"NULL": "", **{visible_form(label): label for label in labels}}, visible_form(text)
    return by_form.get(form, by_form.get(form.replace(",", ".")))


# ---- Forms of JSON values: a type, a pattern, a range, [form of each element], {field: form}, or (one of)
Misfit = tuple[str, str]


def misfit(value: Any, form: Any, path: str = "") -> Misfit | None:
    """Return the path of the first value that has another form, and what is wrong with it; None if all fit."""
    match form:
        case dict() if isinstance(value, dict):
            for name in sorted(form.keys() | value.keys(), key=str):
                if name not in form or name not in value:
                    return f"{path}{name}", "is unknown" if name in value else "is absent"
                if found := misfit(value[name], form[name], f"{path}{name}."):
                    return found
            return None
        case [type()] if isinstance(value, list):
            odd = next((k for k, inner in enumerate(value) if type(inner) is not form[0]), None)
            return None if odd is None else (f"{path[:-1]}[{odd}]", "is of another form")
        case list() if isinstance(value, list):
            return next(filter(None, (misfit(v, form[0], f"{path[:-1]}[{k}].") for k, v in enumerate(value))), None)
        case tuple():
            faults = [misfit(value, one, path) for one in form]
            return None if None in faults else faults[-1]
        case range():
            good = type(value) is int and value in form
        case str():
            good = isinstance(value, str) and re.fullmatch(form, value, re.DOTALL) is not None
        case _:
            good = value is form or type(value) is form
    return None if good else (path[:-1], "is of another form")


def fits(value: Any, form: Any) -> bool:
    """Return whether a JSON value has a form."""
    return misfit(value, form) is None


def require_form(claims: ClaimLog, claim: str, value: Any, form: Any) -> None:
    """Add the claim that a value has a form; of a field that is unknown or absent the defect is "format"."""
    path, fault = misfit(value, form) or ("", "")
    field = re.split(r"\W", path)[0]
    named = next((name for pattern, name in DEFECTS.items() if re.fullmatch(pattern, path)), field)
    inside = field in form and (fault == "is of another form" or "." in path)
    defect = named if inside and named else "format"
    claims.add(claim, defect if fault else "", f"{path[:100]!r} {fault}" if fault else "")


HEX = "[0-9a-f]{64}"
CERTIFIED = ("randomized-response", "laplace", "one-layer", "quantized-response", "designed")
"""Mechanisms with the same channel for every cell, which a certificate can contain; the last is a given table."""
REAL_VALUED = "laplace, real-valued, binned (simulation only)"
"""Mechanism of the channel of binned simulated real-valued reports."""
NO_PRIVACY = ": no privacy"
"""Suffix of the marks of simulations and of lists from answers."""
_NAME = f"({'|'.join(CERTIFIED)})"
_MARK = f", SIMULATION from seed (0|[1-9][0-9]*){NO_PRIVACY}|, LISTS FROM ANSWERS{NO_PRIVACY}"
MECHANISM = rf"({re.escape(REAL_VALUED)}|{_NAME}(\+{_NAME}){{0,15}})({_MARK})?"
ALPHABET = (
    {"kind": "categories", "names": [str], "ordered": bool},
    {"kind": "scale", **dict.fromkeys(("low", "high", "step"), (int, float))},
)
CHANNEL_FORMAT = "crowdveil-channel/1"
CERTIFICATE = {
    "format": CHANNEL_FORMAT,
    "mechanism": str,
    "alphabet": dict,
    "participation": "protected|public",
    "outputs": [str],
    "denominator": int,
    "rows": [[int]],
    "ratio": [range(1, 2**53)],
    "sha256": HEX,
}
_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PORT = "(:(?!6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4})[1-9][0-9]{0,4})?"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PLACE = rf"{_BYTE}(\.{_BYTE}){{3}}(?=[:/]|$)|(?!([a-z0-9-]+\.)*([0-9]+|0x[0-9a-f]*)([:/]|$)){_HOST}"
_SECURE = rf"https://({_PLACE})(?!:443(/|$))|http://(127\.0\.0\.1|localhost)(?!:80(/|$))"
URL = rf"(?=.{{1,200}}\Z)({_SECURE}){_PORT}(/(?!\.\.?(/|$))[A-Za-z0-9._~-]+)*"
"""Normal address of a service, without a final slash; plain http is for this computer only."""
LINK = rf"(?=.{{1,2000}}\Z)https?://{_HOST}{_PORT}([/?#][!-~]*)?"
"""Address of what is judged, in ASCII, without a user; the worker opens it."""
PICTURE = {"sha256": HEX, "type": "image/(png|jpeg|webp)", "bytes": range(1, MAX_PICTURE_BYTES + 1)}
PICTURE |= {"alt": f".{{1,{MAX_ALT}}}"}
CAMPAIGN_FORMAT, PART_FORMAT = "crowdveil-campaign/1", "crowdveil-assignment/1"
CAMPAIGN = {
    "format": CAMPAIGN_FORMAT,
    "title": f".{{1,{MAX_TITLE}}}",
    "question": f".{{1,{MAX_QUESTION}}}",
    "consent": f".{{1,{MAX_CONSENT}}}",
    "language": "[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}",
    "url": (None, URL),
    **dict.fromkeys(("opens", "closes"), "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    **dict.fromkeys(("slots", "min_reports"), range(1, MAX_SLOTS + 1)),
    "purge_after_days": (None, range(MAX_PURGE_DAYS + 1)),
    "labels": [str],
    "certificates": [dict],
    "tasks": [{"id": f".{{1,{MAX_ID}}}", "text": f".{{1,{MAX_TEXT}}}", "picture": (None, PICTURE)}],
    "groups": (None, {"choice": [[int]], "task_group": [int], "slot_group": [int]}),
    "assignment_parts": [HEX],
    **dict.fromkeys(("cells", "body_bytes"), range(1, MAX_BYTES)),
    "symbol_bytes": range(1, 3),
    "salt": "[0-9a-f]{32}",
}
SUITE = "hpke-p256-sha256-aes128gcm"
RELAY = {"operator": ".{1,200}", "public_key": "04[0-9a-f]{128}", "least_batch": range(2, MAX_SLOTS + 1)}
RELAY |= {"unit": "report|cell", "suite": SUITE}
DEFECTS = {
    "title|question|consent|language": "text",
    "opens|closes": "day",
    "slots|min_reports|purge_after_days|cells|body_bytes|symbol_bytes": "number",
    r".*\.picture.*": "picture",
    "tasks.*": "task",
    "assignment_parts.*": "part",
    "sha256": "hash",
    r"rows(\[\d+\])?": "shape",
    r"denominator|rows\[.*": "non-integer",
    "|mechanism|participation|(outputs|certificates|channels|choice|workers).*": "format",
}
"""Defects by the path of a value of another form; those of other fields have the name of the field."""
LOSS = ("cells", "numerator", "denominator")
QUESTIONS = [{"cells": range(1, MAX_BYTES), "text": CAMPAIGN["question"]}]
OPTIONAL = {"relay": RELAY, "levels": range(2, 5), "prior": HEX, "questions": QUESTIONS, "links": [(None, LINK)]}
"""Fields that a campaign may have: relay, number of levels that a worker chooses from, SHA-256 of a public prior,
several questions with the most tasks of a worker for each, and the link of each task or null."""


# ---- Certificates
Line = Mapping[str, Any]
"""Line of a ledger: the fields of `LINE`, and cells, numerator and denominator."""


class CheckedChannel(NamedTuple):
    """Checked table; `ratio` is the exact largest ratio of two entries of a column, None if it is unbounded."""

    labels: Sequence[str]
    outputs: Sequence[str]
    rows: Sequence[Sequence[int]]
    protected: bool
    ratio: Fraction | None


def labels_of(alphabet: Any) -> list[str]:
    """Return the possible answers of an alphabet as text, of a scale its points; none if it is malformed."""
    if not fits(alphabet, ALPHABET):
        return []
    if alphabet["kind"] == "categories":
        names = alphabet["names"]
        return names if 2 <= len(names) < MAX_SYMBOLS and "NULL" not in names else []
    numbers = [alphabet[name] for name in ("low", "high", "step")]
    if not all(x == 0 or 1e-100 <= abs(x) <= (1e100 if type(x) is float else 2**53) for x in numbers):
        return []
    low, high, step = map(decimal_value, numbers)
    whole = low < high and step > 0 and (high - low) % step == 0 and (high - low) / step < MAX_SYMBOLS - 1
    return grid_names(*numbers) if whole else []


def decimal_value(number: float) -> Fraction:
    """Return the decimal number that a float prints as, exactly: 0.1 is one tenth."""
    return Fraction(repr(float(number)))


def grid_names(low: float, high: float, step: float) -> list[str]:
    """Return the points low, low + step, ..., high as text, in shortest decimal form."""
    first, last, spacing = map(decimal_value, (low, high, step))
    points = (first + k * spacing for k in range(int((last - first) / spacing) + 1))
    return [str(int(point)) if point.denominator == 1 else repr(float(point)) for point in points]


def are_exact_names(names: Sequence[str], low: float, step: float) -> bool:
    """Return whether names of grid points are exact, in digits without exponent: every reader writes them alike."""
    first, spacing = decimal_value(low), decimal_value(step)
    return all("e" not in name and Fraction(name) == first + k * spacing for k, name in enumerate(names))


def marks_no_privacy(mechanism: str) -> bool:
    """Return whether the mechanism of a certificate is marked as without privacy."""
    return mechanism.endswith(NO_PRIVACY) or mechanism.startswith(REAL_VALUED)


Check = Callable[[Any, ClaimLog], CheckedChannel]
MECHANISM_CLAIM = f"The mechanism is known: {', '.join(CERTIFIED)}, or at most 16 of them joined by +."
NAMES_CLAIM = "Answers and reports have readable names, and no two look alike."
SEAL_CLAIM = "The SHA-256 in the file is that of its other fields."
ANSWERS_CLAIM = "The possible answers are a list of labels or a scale."


def check_certificate(data: Any, claims: ClaimLog) -> CheckedChannel:
    """Check the certificate of one channel, given as a JSON value, and return the channel.

    Raises:
        Refused: format, mechanism, hash, alphabet, text, duplicate symbols, oversize, shape, non-integer, negative
            entry, row sum, denominator, empty column, zero entry, ratio.
    """
    claim = "The certificate has exactly the documented fields, in integers."
    require_form(claims, claim, data, CERTIFICATE)
    if len(data["ratio"]) != 2:
        claims.add(claim, "ratio", "'ratio' is of another form")
    labels, outputs, rows, name = labels_of(data["alphabet"]), data["outputs"], data["rows"], data["mechanism"]
    claims.add_faults(MECHANISM_CLAIM, "mechanism", {repr(name[:100]): not fits(name, MECHANISM)})
    claims.add(SEAL_CLAIM, "" if data["sha256"] == digest(data) else "hash")
    claims.add(ANSWERS_CLAIM, "" if labels else "alphabet")
    defect, found = next(filter(any, map(symbols_defect, (labels, outputs))), ("", ""))
    claims.add(NAMES_CLAIM, defect, found)
    protected = data["participation"] == "protected"
    _check_table(data, len(labels) + protected, claims)
    top, bottom = data["ratio"]
    worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    most = f"{-(-1000 * top // bottom) / 1000:,}"
    claim = f"No report is more than {most} times as probable for one answer as for another."
    found = f"{ceil(1000 * worst) / 1000:,}, epsilon {shown(epsilon([line_of(worst)]))}"
    claims.add(claim, "" if worst * bottom <= top else "ratio", found)
    return CheckedChannel(labels, outputs, rows, protected, worst)


def _check_table(data: Mapping[str, Any], inputs: int, claims: ClaimLog) -> None:
    """Check the size of a table, its rows and that it has no 0."""
    rows, outputs, denominator = data["rows"], len(data["outputs"]), data["denominator"]
    whole = len(rows) == inputs and all(len(row) == outputs for row in rows)
    defect = "oversize" if max(len(rows), outputs) > MAX_SYMBOLS else "" if whole else "shape"
    claim = 'The table has a row for each answer, and for "no answer" if it is protected, and a column for each report.'
    claims.add(claim, defect, f"{len(rows)} rows for {inputs} answers, {outputs} reports")
    signed = any(entry < 0 for row in rows for entry in row)
    sums = "" if all(sum(row) == DENOMINATOR for row in rows) else "row sum"
    defect = "negative entry" if signed else sums if outputs and denominator == DENOMINATOR else "denominator"
    claims.add("Every row is a probability distribution: integers from 0 that sum to 2^48.", defect)
    idle = not all(map(any, zip(*rows, strict=True)))
    defect = "empty column" if idle else "" if all(map(all, rows)) else "zero entry"
    claims.add("No report rules out an answer: no entry is 0.", defect)


def line_of(ratio: Fraction, answers: int = 1) -> dict[str, int]:
    """Return the line of a ledger, without its texts, of answers through a channel of a ratio."""
    return dict(zip(LOSS, (answers, *ratio.as_integer_ratio()), strict=True))


def epsilon(lines: Iterable[Line]) -> Decimal:
    """Return the sum of cells * ln(numerator / denominator), rounded up in its 50th digit."""
    up, total = Context(prec=60, rounding=ROUND_CEILING), Decimal(0)
    for line in lines:
        ensure(line["numerator"] >= line["denominator"], "ledger", "a line of the ledger has a ratio below 1.")
        logarithm = up.ln(up.divide(Decimal(line["numerator"]), Decimal(line["denominator"])))
        total = up.add(total, up.multiply(line["cells"], up.multiply(logarithm, up.add(1, Decimal("1e-50")))))
    return total


def shown(loss: Decimal) -> str:
    """Return an epsilon with 3 decimals, rounded up."""
    return str(loss.quantize(Decimal("0.001"), rounding=ROUND_CEILING))


def sure(loss: Decimal, *, in_words: bool = False) -> str:
    """Return the largest posterior probability of one of two equally likely answers, in percent, rounded up.

    In words it says where this means that almost nothing is hidden.
    """
    up, below = Context(prec=60, rounding=ROUND_CEILING), 1 - Decimal("1e-50")
    share = up.divide(100, 1 + Context(prec=60, rounding=ROUND_FLOOR).multiply(up.exp(-loss), below))
    percent = share.quantize(Decimal("0.1"), rounding=ROUND_CEILING)
    return f"{percent} %" if percent < 100 else "more than 99.9 %" + " (this hides almost nothing)" * in_words


NO_SERVICE = "curators without a service"
"""Host of a line of a campaign that has none."""
LINE = {
    "campaign": "[A-Za-z0-9_-]{43}",
    "day": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "host": f"{_HOST}{_PORT}|{NO_SERVICE}",
    "participation": "protected|public",
    "report": "[0-9a-f]{32}",
    "title": str,
}
LEDGER = {"format": "crowdveil-ledger/1", "lines": [{**LINE, **dict.fromkeys(LOSS, range(1, 2**53))}]}


def require_first(ledger: Iterable[Line], campaign: str, report: str, new: Iterable[Line] | None = None) -> list[Line]:
    """Return the lines of a campaign; a second report, by whatever link or level, is refused: their losses add up.

    Args:
        ledger: all lines.
        campaign: name of the campaign.
        report: name of its report.
        new: lines of the report, where its level is known.

    Raises:
        Refused: answered-before.
    """
    old = [line for line in ledger if line["campaign"] == campaign]
    known, same = ({tuple(line[name] for name in LOSS) for line in lines or ()} for lines in (old, new))
    first = all(line["report"] == report for line in old) and (not old or new is None or known == same)
    ensure(first, "answered-before")
    return old


def check_certificates(parts: list[Any], claims: ClaimLog, check: Check = check_certificate) -> list[CheckedChannel]:
    """Check certificates, each by `check`: one claim for each that holds, every false claim of one that does not."""
    claims.add(f"It has 1 to {MAX_CHANNELS} channels.", "" if 1 <= len(parts) <= MAX_CHANNELS else "format")
    channels = []
    for number, part in enumerate(parts, start=1):
        own = ClaimLog(f"Certificate {number}: ")
        try:
            channels.append(check(part, own))
        finally:
            claims.found += [claim for claim in own.found if not claim.holds]
        ratio = channels[-1].ratio
        bound = "no bound" if ratio is None else f"epsilon {shown(epsilon([line_of(ratio)]))}"
        claims.add(f"Certificate {number}: all its claims hold.", "", bound)
    return channels


# ---- Campaigns
SAME_ANSWERS = "All channels of a question have the same possible answers, in the same order."
EVERY_TASK = "Through the relay every worker is asked every task, by the SHA-256 of every part of the assignment."
NO_ANSWER = {"noanswer", "keineantwort"}
"""Letters of the choice that is no answer, in the languages of the devices: no label may read like it."""


def check_campaign(data: bytes, claims: ClaimLog) -> tuple[dict[str, Any], list[CheckedChannel]]:
    """Check a campaign and return its fields and channels.

    Raises:
        Refused: as `parse_canonical` and `check_certificate`; format, text, url, day, number, labels, task, picture,
            groups, part, salt, participation, no privacy, relay, levels, prior, questions.
    """
    fields = _parse_campaign(data, claims)
    tasks, slots, opens, closes = (fields[name] for name in ("tasks", "slots", "opens", "closes"))
    fault = _texts_fault(fields)
    claims.add("Texts are readable: nothing invisible, and names in one line.", "text" if fault else "", fault)
    claims.add("It opens before it closes.", "" if _are_in_order(opens, closes) else "day", f"{opens} to {closes}")
    least, reachable = fields["min_reports"], "The least number of reports is not above the number of workers."
    claims.add(reachable, "" if least <= slots else "number", f"{least:,} of {slots:,}")
    channels = check_certificates(fields["certificates"], claims)
    first, *others = [part["alphabet"] for part in fields["certificates"]]
    claims.add(SAME_ANSWERS, "" if "questions" in fields or all(one == first for one in others) else "labels")
    kind = next((name for name in ("levels", "questions") if name in fields), "groups")
    claims.add("Every answer has one channel.", "" if _are_grouped(fields) else kind)
    seen = {(of, visible_form(task["id"])) for of, task in zip(question_of_tasks(fields), tasks, strict=True)}
    alike = "task" if len(seen) < max(len(tasks), 1) else ""
    claims.add("It has tasks, and no two of a question have names that look alike.", alike)
    _check_symbols(fields, channels, claims)
    width = symbol_bytes([(len(one.outputs), one.protected) for one in channels])
    same = (fields["symbol_bytes"], fields["body_bytes"]) == (width, fields["cells"] * width + ("levels" in fields))
    claims.add("Every report has the same length.", "" if same else "number", f"{fields['body_bytes']:,} bytes")
    asked = "" if fields["cells"] <= len(tasks) else "number"
    claims.add("No worker is asked more tasks than there are.", asked, f"{fields['cells']:,}")
    for name, check in CHECKS.items():
        if name in fields:
            check(fields, channels, claims)
    named, count = len(fields["assignment_parts"]), -(-slots // SLOTS_PER_PART)
    parts = "" if named == count else "part"
    claims.add("The file names every part of the assignment.", parts, f"{named:,} of {count:,}")
    return fields, channels


def _parse_campaign(data: bytes, claims: ClaimLog) -> dict[str, Any]:
    """Return the fields of a campaign in canonical form."""
    claim = "The file has the one canonical form, so that its SHA-256 names exactly this text."
    try:
        fields = parse_canonical(data)
    except Refused as refusal:
        claims.add(claim, refusal.name, refusal.sentence.removesuffix("."))
    claims.add(claim, "")
    asked = fields if isinstance(fields, dict) else {}
    form = CAMPAIGN | {name: form for name, form in OPTIONAL.items() if name in asked}
    require_form(claims, "The campaign has exactly the documented fields.", fields, form)
    return fields


def _texts_fault(fields: Mapping[str, Any]) -> str:
    """Return the first text that a worker cannot read, and why; only longer ones may have several lines."""
    tasks = fields["tasks"]
    names = [fields["title"], *(task["id"] for task in tasks), fields.get("relay", {}).get("operator", "none")]
    texts = [fields["question"], fields["consent"], *(one["text"] for one in (*questions_of(fields), *tasks))]
    texts += [task["picture"]["alt"] for task in tasks if task["picture"]]
    return first_fault([*names, *(text.replace("\n", " ") for text in texts)])


def _are_in_order(*days: str) -> bool:
    """Return whether two texts are days of the calendar, the second one not before the first."""
    try:
        first, last = map(datetime.date.fromisoformat, days)
    except ValueError:
        return False
    return first <= last


def _check_symbols(fields: Mapping[str, Any], channels: Sequence[CheckedChannel], claims: ClaimLog) -> None:
    """Check the possible answers and report symbols, which devices show, and what all channels share."""
    same = fields["labels"] == channels[0].labels
    claims.add("The campaign has the possible answers of its first channel.", "" if same else "labels")
    alphabets = [part["alphabet"] for part in fields["certificates"]]
    scales = [(one.labels, grid) for one, grid in zip(channels, alphabets, strict=True) if grid["kind"] == "scale"]
    exact = all(are_exact_names(names, grid["low"], grid["step"]) for names, grid in scales)
    claims.add("Every reader writes the points of a scale alike, in short decimals.", "" if exact else "alphabet")
    symbols = {name for one in channels for name in (*one.labels, *one.outputs)}
    letters = {"".join(filter(str.isalpha, unicodedata.normalize("NFKC", name).lower())) for name in symbols}
    unfit = "labels" if letters & NO_ANSWER or max(map(len, symbols)) > MAX_NAME else ""
    claims.add('No answer or report is long, or reads "no answer", which devices offer themselves.', unfit)
    mixed = "participation" if len({one.protected for one in channels}) > 1 else ""
    claims.add('All channels treat "no answer" alike.', mixed, fields["certificates"][0]["participation"])
    mark = next(filter(marks_no_privacy, (part["mechanism"] for part in fields["certificates"])), "")
    claims.add("No channel is marked as without privacy.", "no privacy" if mark else "", mark)


def symbol_bytes(sizes: Iterable[tuple[int, bool]]) -> int:
    """Return the bytes of one symbol, by the numbers of report symbols and whether participation is protected.

    A public body needs one code more, for "not answered".
    """
    return 1 if all(outputs + (not protected) <= 256 for outputs, protected in sizes) else 2


def is_choice(choice: Sequence[Sequence[int]], count: int) -> bool:
    """Return whether a choice of channels is a rectangle in which every channel occurs."""
    same = len({len(row) for row in choice}) == 1 and len(choice[0]) > 0
    return same and {index for row in choice for index in row} == set(range(count))


def _are_grouped(fields: Mapping[str, Any]) -> bool:
    """Return whether each task of each slot has one certificate: by groups, by its question, or at each level."""
    groups, count = fields["groups"], len(fields["certificates"])
    if groups is None or count == 1 or "levels" in fields:
        return groups is None and count == fields.get("levels", 1) and "questions" not in fields
    choice, tasks, slots = groups["choice"], groups["task_group"], groups["slot_group"]
    if not is_choice(choice, count) or (len(tasks), len(slots)) != (len(fields["tasks"]), fields["slots"]):
        return False
    if "questions" in fields and (choice != [[*range(len(fields["questions"]))]] or tasks != sorted(tasks)):
        return False
    return set(tasks) <= set(range(len(choice[0]))) and set(slots) <= set(range(len(choice)))


def questions_of(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the questions of a campaign, each with its text and the most tasks that a worker is asked."""
    return fields.get("questions", [{"text": fields["question"], "cells": fields["cells"]}])


def question_of_tasks(fields: Mapping[str, Any]) -> list[int]:
    """Return the index of the question of each task."""
    return list(fields["groups"]["task_group"] if "questions" in fields else [0] * len(fields["tasks"]))


def _check_questions(fields: Mapping[str, Any], _: Sequence[CheckedChannel], claims: ClaimLog) -> None:
    """Check several questions: each has tasks and a channel of its own, and a largest number of tasks of a worker."""
    questions, of_task = questions_of(fields), question_of_tasks(fields)
    texts = [question["text"] for question in questions]
    faults = {
        "two of them look alike": len(set(map(visible_form, texts))) < len(texts),
        "the campaign names another one as the first": texts[0] != fields["question"],
        "levels, a relay or a prior are for one question": fields.keys() & {"levels", "relay", "prior"},
        "one has fewer tasks than it asks of a worker": any(
            q["cells"] > of_task.count(k) for k, q in enumerate(questions)
        ),
        "they ask another number of tasks of a worker": sum(q["cells"] for q in questions) != fields["cells"],
    }
    claims.add_faults("Each question has tasks and a channel of its own.", "questions", faults)


def _check_levels(fields: Mapping[str, Any], channels: Sequence[CheckedChannel], claims: ClaimLog) -> None:
    """Check the levels of privacy that a worker chooses from: one channel for each, from the most private one."""
    ratios = [channel.ratio or 1 for channel in channels]
    faults = {
        "the epsilons of their tables do not ascend": any(low >= high for low, high in pairwise(ratios)),
        "participation is public": not all(channel.protected for channel in channels),
        "the guarantee of a relay counts equal channels": "relay" in fields,
    }
    losses = (shown(epsilon([line_of(Fraction(ratio), fields["cells"])])) for ratio in ratios)
    claim = "Each level has more epsilon than the level before, and hides participation; a worker's level is visible."
    claims.add_faults(claim, "levels", faults, f"epsilon {', '.join(losses)} for all answers of a worker")


def check_level(level: Any, levels: int | None) -> None:
    """Check the level that a worker chose, an index of the certificates; None in a campaign without levels.

    Args:
        level: the choice.
        levels: number of levels of the campaign; None without levels.

    Raises:
        Refused: level.
    """
    rule = "this campaign has no levels" if levels is None else f"a level is a whole number below {levels}"
    ensure(fits(level, levels and range(levels)), "level", f"{rule}. Found: {str(level)[:50]!r}.")


def _check_relay(fields: Mapping[str, Any], channels: Sequence[CheckedChannel], claims: ClaimLog) -> None:
    """Check that nothing in a report names its worker: all have the same tasks and channel, and skip none visibly."""
    relay, tasks = fields["relay"], len(fields["tasks"])
    faults = {
        "workers have different tasks, or different channels": fields["cells"] != tasks or fields["groups"],
        "participation is public, and gaps would link reports": not channels[0].protected,
        "there is no address, or no day of deletion": None in (fields["url"], fields["purge_after_days"]),
        "the least batch is above the number of workers": relay["least_batch"] > fields["slots"],
    }
    claims.add_faults("No report through the relay names its worker.", "relay", faults)
    faults = {
        f"{sealed_bytes(fields)} bytes; at most {MAX_SEALED_BYTES}": sealed_bytes(fields) > MAX_SEALED_BYTES,
        "the key is no point of P-256": not _is_on_curve(relay["public_key"]),
    }
    claims.add_faults("A report can be encrypted to the curator's key, and be sent to a relay.", "relay", faults)
    whole = all(map(eq, fields["assignment_parts"], whole_parts(fields["slots"], tasks)))
    claims.add(EVERY_TASK, "" if whole else "relay")


def _check_links(fields: Mapping[str, Any], _: Sequence[CheckedChannel], claims: ClaimLog) -> None:
    """Check that there is a link, or none, for each task."""
    claims.add("Each task has a link, or none.", "links" if len(fields["links"]) != len(fields["tasks"]) else "")


CHECKS = {"links": _check_links, "levels": _check_levels, "questions": _check_questions, "relay": _check_relay}
"""Checks of fields that a campaign may have."""


def sealed_bytes(fields: Mapping[str, Any]) -> int:
    """Return the length of a sealed report, by the fields of a campaign with a relay."""
    seals = 1 if fields["relay"]["unit"] == "report" else fields["cells"]
    return int(fields["body_bytes"] + seals * SEAL_BYTES)


def _is_on_curve(key: str) -> bool:
    """Return whether an uncompressed point is one of P-256 (NIST SP 800-186): y^2 = x^3 - 3 x + constant."""
    prime, x, y = 2**256 - 2**224 + 2**192 + 2**96 - 1, int(key[2:66], 16), int(key[66:], 16)
    constant = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
    return max(x, y) < prime and (y * y - x**3 + 3 * x - constant) % prime == 0


def whole_parts(slots: int, tasks: int) -> Iterator[str]:
    """Yield the SHA-256 of each assignment part, hexadecimal, of a campaign in which every slot has every task."""
    for first in range(0, slots, SLOTS_PER_PART):
        whole = [list(range(tasks))] * min(SLOTS_PER_PART, slots - first)
        part = {"first": first, "format": PART_FORMAT, "tasks": whole}
        yield hashlib.sha256(canonical(part)).hexdigest()


def check_part(data: bytes, fields: Mapping[str, Any], number: int) -> list[list[int]]:
    """Return the task indices of each slot of an assignment part, ascending, after checking the whole part.

    Args:
        data: bytes of the part.
        fields: fields of the checked campaign.
        number: number of the part, from 0.

    Raises:
        Refused: hash, part, oversize, not json, not canonical, number.
    """
    names, first = fields["assignment_parts"], number * SLOTS_PER_PART
    ensure(0 <= number < len(names), "part", f"the campaign has {len(names)} parts, from 0.")
    same = hashlib.sha256(data).hexdigest() == names[number]
    ensure(same, "hash", f"assignment part {number} is not the one that the campaign names: it was changed.")
    form = {"format": PART_FORMAT, "first": range(first, first + 1), "tasks": [[range(len(fields["tasks"]))]]}
    part = parse_canonical(data)
    found = misfit(part, form)
    ensure(found is None, "part", f"part {number}: {' '.join(found or ())[:200]!r}.")
    count, of_task = min(SLOTS_PER_PART, fields["slots"] - first), question_of_tasks(fields)
    ensure(len(part["tasks"]) == count, "part", f"part {number} must hold the tasks of {count} slots.")
    loads = [question["cells"] for question in questions_of(fields)]
    for tasks in part["tasks"]:
        asked = Counter(of_task[task] for task in tasks)
        few = all(asked[question] <= load for question, load in enumerate(loads))
        most = f"a slot has 1 to {' and '.join(map(str, loads))} tasks, ascending."
        ensure(few and tasks and tasks == sorted(set(tasks)), "part", most)
    return part["tasks"]


# ---- Days of a campaign, which are days in UTC
def days_in_words(fields: Mapping[str, Any], name: str) -> str:
    """Return a refusal by its name with the days of a campaign, in UTC, and what the clock of this computer shows."""
    now = f"{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M (UTC%z)}"
    days = f" It is open from {fields['opens']} to {fields['closes']}, whole days in UTC. The clock of this computer "
    return f"{SENTENCES[name]}{days}shows {now}. If that is wrong, set it." if name in ("early", "closed") else ""


# ---- Links: the service's address, the campaign's name and a token, which begins with the slot
_WRAP = r"(?:=?\r?\n[> \t]*)?"
_LINK = re.compile(r"(?:^|#)1\.([\w-]{43})\.([\w-]{27})", re.ASCII)
_WRAPPED = re.compile(rf"(?:^|#)1\.((?:{_WRAP}[\w-]){{43}}\.(?:{_WRAP}[\w-]){{27}})(?![\w-])", re.ASCII)
_CUT = re.compile(r"(?:^|#)1(\.[\w-]|\.?\Z)|#\Z", re.ASCII)


def parse_link(text: str) -> tuple[str | None, str, str, int]:
    """Return the service's address (or None), the campaign's name, the token and the slot of the link in a text.

    What mail and chat add is left out: words around it, signs after it, invisible characters, line breaks in it. As in
    browsers, scheme and host may have capitals, and the default port may be written.

    Raises:
        Refused: link, link-cut.
    """
    text = re.sub("%([2-7][0-9A-Fa-f])", lambda code: chr(int(code[1], 16)), text)
    text = "".join(sign for sign in text if sign in "\r\n\t" or not _is_invisible(sign)).strip()
    found: Any = _LINK.search(text) or _WRAPPED.search(text)
    ensure(found, "link-cut" if _CUT.search(text) else "link")
    before, names = (re.sub(_WRAP, "", part) for part in (text[: found.start()], found[0]))
    parts = names.split(".")[1:]
    raw = [base64.urlsafe_b64decode(f"{part}=") for part in parts]
    exact = [base64.urlsafe_b64encode(data).decode() for data in raw] == [f"{part}=" for part in parts]
    before = re.sub("https?://[^/]*", lambda place: place[0].lower(), before, flags=re.IGNORECASE)
    page = re.search(r"(https?://(?:(?!https?://)\S)*)/a/?(?:\?\S*)?$", before)
    url = re.sub("(?:(https://[^/:]*):443|(http://[^/:]*):80)(?=/|$)", r"\1\2", page[1]) if page else ""
    ensure(exact and (fits(url, URL) or not re.search(r"https?://\S*$", before)), "link")
    return url or None, parts[0], parts[1], int.from_bytes(raw[1][:4], "big")
