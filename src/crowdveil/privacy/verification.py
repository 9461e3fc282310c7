"""Independent check of the claims of `certificate.json` and `campaign.json`, in exact integers.

Written from the documented formats alone: it imports nothing of crowdveil, and needs Python's standard library only.

    python verification.py certificate.json

A channel is a table of integers: P(report | answer) = rows[answer][report] / 2^48. Its privacy loss for one answer is
epsilon = ln(max over reports of the largest entry of a column over its smallest). A certificate claims an upper bound
of that ratio, as two integers a / b; the claim holds if max * b <= a * min in every column.
"""

import hashlib
import json
import re
import sys
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import inf, nextafter
from pathlib import Path
from typing import Any, NamedTuple

CHANNEL, TABLE, CAMPAIGN = "crowdveil-channel/1", "crowdveil-channel-table/1", "crowdveil-campaign/1"
PART = "crowdveil-assignment/1"
EVERY_TASK = "Through the relay every worker is asked every task, by the SHA-256 of every part of the assignment."
KINDS = {CHANNEL: "certificate", TABLE: "table of certificates", CAMPAIGN: "campaign"}
DENOMINATOR = 1 << 48
MAX_BYTES, MAX_CAMPAIGN_BYTES, MAX_SYMBOLS, MAX_CHANNELS, SLOTS_PER_PART = 32_000_000, 2_000_000, 1025, 64, 100
NULL = "NULL"
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters without a visible sign (Unicode 16: Default_Ignorable_Code_Point)."""
EMPTY = "\u2800\ufffc\U00016fe4\U0001d159"
"""Signs and marks that look like a space."""
NO_ANSWER = {"noanswer", "keineantwort"}
"""Letters of the choice that is no answer, in the languages of the devices."""


class Claim(NamedTuple):
    """Claim of a file in plain words, whether it holds, and the value that was found."""

    claim: str
    holds: bool
    found: str = ""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Outcome of the check of one file.

    Attributes:
        kind: "certificate", "table of certificates", "campaign" or "unknown".
        claims: claims in the order of the check; after one that later claims need and that is false, there are no more.
        mechanism: names of the mechanisms; they are not checked.
        participation: "protected" or "public"; None if a claim is false, and for a file that is marked.
        answer_epsilon: epsilon of one answer, rounded up; None as for `participation`, and without a bound.
        answers: largest number of answers of one worker; None where the file does not say it.
        worker_epsilon: epsilon of all answers of one worker, rounded up; None as for both.
        digest: name of a campaign, or SHA-256 of a certificate.
        marked: the mechanism that marks the file as without privacy (a simulation, or lists from answers), or empty.
    """

    kind: str
    claims: tuple[Claim, ...]
    mechanism: str = ""
    participation: str | None = None
    answer_epsilon: float | None = None
    answers: int | None = None
    worker_epsilon: float | None = None
    digest: str = ""
    marked: str = ""

    @property
    def holds(self) -> bool:
        """Whether every claim holds."""
        return all(claim.holds for claim in self.claims)


class _Stopped(Exception):
    """A claim that later claims need is false."""


class _Claims:
    """Claims found so far."""

    def __init__(self) -> None:
        self.found: list[Claim] = []

    def add(self, claim: str, holds: object, found: str = "") -> None:
        self.found.append(Claim(claim, bool(holds), found))

    def need(self, claim: str, holds: object, found: str = "") -> None:
        """Add a claim that later claims need."""
        self.add(claim, holds, found)
        if not holds:
            raise _Stopped


class _Channel(NamedTuple):
    """Checked channel: labels, participation, and the exact largest ratio of a column; None if it is unbounded."""

    labels: Sequence[str]
    participation: str
    outputs: int
    ratio: Fraction | None


def verify(data: bytes, parts: Mapping[int, bytes] | None = None) -> Verification:
    """Return the outcome of the check of a certificate or a campaign; no content raises an error.

    Args:
        data: bytes of the file.
        parts: assignment parts of a campaign by number, as far as they are at hand.
    """
    claims = _Claims()
    form = None
    try:
        claims.need(f"The file has at most {MAX_BYTES:,} bytes.", len(data) <= MAX_BYTES, f"{len(data):,}")
        document = parse(data)
        form = document.get("format") if isinstance(document, dict) else None
        known = isinstance(form, str) and form in KINDS
        claims.need("The file is JSON without repeated keys, of a known format.", known, str(form)[:50])
        check = {CHANNEL: _certificate, TABLE: _table, CAMPAIGN: _campaign}[form or ""]
        return check(document, data, parts or {}, claims)
    except (_Stopped, RecursionError) as error:
        if isinstance(error, RecursionError):
            claims.add("Objects and lists are not nested deeply.", False)
        kind = KINDS.get(form, "unknown") if isinstance(form, str) else "unknown"
        return Verification(kind=kind, claims=tuple(claims.found))


# ---- JSON and numbers
def parse(data: bytes) -> Any:
    """Return the value of a JSON text; None if it is none, repeats a key, or has a number that is not finite."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError
        return dict(pairs)

    def finite(text: str) -> float:
        number = float(text)
        if number - number != 0:
            raise ValueError
        return number

    try:
        return json.loads(data, object_pairs_hook=distinct, parse_float=finite, parse_constant=finite)
    except (ValueError, RecursionError):
        return None


def canonical(value: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def seal(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of all fields but `sha256`, in hexadecimal."""
    body = {name: value for name, value in data.items() if name != "sha256"}
    return hashlib.sha256(canonical(body)).hexdigest()


def epsilon_of(ratio: Fraction, answers: int = 1) -> float:
    """Return `answers` * ln(ratio), rounded up; ratio >= 1."""
    up = Context(prec=60, rounding=ROUND_CEILING)
    loss = up.ln(up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    bound = Fraction(loss) * answers * (1 + Fraction(1, 10**50))  # the margin covers the rounding of ln
    found = float(bound)
    return found if min(Fraction(found), Fraction(repr(found))) >= bound else nextafter(found, inf)


def shown(epsilon: float) -> str:
    """Return an epsilon with four digits, rounded up."""
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(epsilon))):.4g}"


# ---- Forms of fields: a type, a pattern, a range, [form of each element], {field: form}, or a function
def fits(value: Any, form: Any) -> bool:
    """Return whether a value has a form."""
    if isinstance(form, dict):
        same = isinstance(value, dict) and value.keys() == form.keys()
        return same and all(fits(value[name], inner) for name, inner in form.items())
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(inner, form[0]) for inner in value)
    if isinstance(form, range):
        return type(value) is int and form.start <= value < form.stop
    if isinstance(form, re.Pattern):
        return isinstance(value, str) and form.fullmatch(value) is not None
    return type(value) is form if isinstance(form, type) else bool(form(value))


def _misfit(value: dict[str, Any], form: dict[str, Any]) -> str:
    """Return the first field that is absent, unknown or of another form; empty if there is none."""
    for name in sorted(form.keys() | value.keys()):
        if name not in form or name not in value or not fits(value[name], form[name]):
            fault = "unknown" if name not in form else "of another form" if name in value else "absent"
            return f"{repr(name)[:100]} is {fault}"
    return ""


def _or_null(form: Any) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value, form)


def _text(most: int) -> re.Pattern[str]:
    return re.compile(f".{{1,{most}}}", re.DOTALL)


def _is_day(value: Any) -> bool:
    try:
        return (
            isinstance(value, str) and re.fullmatch("[0-9-]{10}", value) is not None and bool(date.fromisoformat(value))
        )
    except ValueError:
        return False


DIGEST = re.compile("[0-9a-f]{64}")
NAMES = ("randomized-response", "laplace", "one-layer", "quantized-response", "designed")
_NAME = f"({'|'.join(NAMES)})"
_SIMULATED = "laplace, real-valued, binned (simulation only)"
MECHANISM = re.compile(
    rf"({re.escape(_SIMULATED)}|{_NAME}(\+{_NAME}){{0,15}})"
    "(, SIMULATION from seed (0|[1-9][0-9]*): no privacy|, LISTS FROM ANSWERS: no privacy)?"
)
CERTIFICATE_FORM = {
    "format": str,
    "mechanism": MECHANISM,
    "alphabet": dict,
    "participation": re.compile("protected|public"),
    "outputs": [str],
    "denominator": int,
    "rows": [[int]],
    "ratio": lambda value: fits(value, [range(1, 1 << 53)]) and len(value) == 2,
    "sha256": DIGEST,
}
_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_URL = rf"(?=.{{1,200}}\Z)(https://{_HOST}|http://(127\.0\.0\.1|localhost))(:[1-9][0-9]{{0,4}})?(/[A-Za-z0-9._~-]+)*"
PICTURE_FORM = {
    "sha256": DIGEST,
    "type": re.compile("image/(png|jpeg|webp)"),
    "bytes": range(1, 5_000_001),
    "alt": _text(2_000),
}
CAMPAIGN_FORM = {
    "format": str,
    "title": _text(200),
    "question": _text(2_000),
    "consent": _text(20_000),
    "language": re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}"),
    "url": _or_null(re.compile(_URL)),
    "opens": _is_day,
    "closes": _is_day,
    "min_reports": range(1, 1_000_001),
    "purge_after_days": _or_null(range(3_651)),
    "labels": [str],
    "certificates": [dict],
    "tasks": [{"id": _text(200), "text": _text(20_000), "picture": _or_null(PICTURE_FORM)}],
    "slots": range(1, 1_000_001),
    "groups": _or_null({"choice": [[int]], "task_group": [int], "slot_group": [int]}),
    "assignment_parts": [DIGEST],
    "cells": range(1, 1_000_001),
    "body_bytes": int,
    "symbol_bytes": range(1, 3),
    "salt": re.compile("[0-9a-f]{32}"),
}
RELAY_FORM = {
    "operator": _text(200),
    "public_key": re.compile("04[0-9a-f]{128}"),
    "least_batch": range(2, 1_000_001),
    "unit": re.compile("report|cell"),
    "suite": re.compile("hpke-p256-sha256-aes128gcm"),
}


def labels_of(alphabet: Mapping[str, Any]) -> list[str] | None:
    """Return the possible answers of an alphabet as text; None if it is malformed."""
    if fits(alphabet, {"kind": re.compile("categories"), "names": [str], "ordered": bool}):
        names: list[str] = alphabet["names"]
        return names if 2 <= len(names) <= MAX_SYMBOLS - 1 and NULL not in names else None
    if not fits(alphabet, {"kind": re.compile("scale"), "low": _is_number, "high": _is_number, "step": _is_number}):
        return None
    numbers = [float(alphabet[name]) for name in ("low", "high", "step")]
    if not all(number == 0 or 1e-100 <= abs(number) <= 1e100 for number in numbers):
        return None
    low, high, step = (Fraction(repr(number)) for number in numbers)
    if not (low < high and step > 0 and (high - low) % step == 0 and (high - low) / step < MAX_SYMBOLS - 1):
        return None
    points = [low + k * step for k in range(int((high - low) / step) + 1)]
    return [str(point.numerator) if point.denominator == 1 else repr(float(point)) for point in points]


def _is_exact(alphabet: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Return whether names are labels, or the exact points of a scale without an exponent."""
    if alphabet["kind"] == "categories":
        return True
    low, step = (Fraction(repr(float(alphabet[name]))) for name in ("low", "step"))
    return all("e" not in name and Fraction(name) == low + k * step for k, name in enumerate(names))


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= 2**53)


def _unseen(name: str, at: int) -> bool:
    """Return whether a character of a name is invisible, and is no joiner or style that its neighbours need."""
    sign, before, after = name[at], name[at - 1 : at], name[at + 1 : at + 2]
    kind = unicodedata.category(sign)
    if kind[0] != "C" and kind not in ("Zl", "Zp") and not re.match(f"[{INVISIBLE}{EMPTY}]", sign):
        return False
    if sign in "\ufe0e\ufe0f":
        return not (before and unicodedata.category(before) == "So")
    return not (sign in "\u200c\u200d" and before and after and not before.isascii() and not after.isascii())


def _look(name: str) -> str:
    """Return what a reader sees of a name."""
    kept = (" " if sign.isspace() or sign in EMPTY else sign for sign in name)
    seen = "".join(s for s in kept if s == " " or not _unseen(s, 0))
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _are_readable(names: Sequence[str]) -> bool:
    """Return whether names are visible text in normal form C, and no two look alike."""
    return all(map(_is_readable, names)) and len(set(map(_look, names))) == len(names)


def _is_readable(name: str) -> bool:
    based = any(unicodedata.category(sign)[0] in "LNPS" for sign in name)
    good = based and name == name.strip() and unicodedata.is_normalized("NFC", name)
    return good and not any(_unseen(name, at) for at in range(len(name)))


def _are_texts_readable(data: Mapping[str, Any]) -> bool:
    """Return whether the texts that a worker reads are readable; only longer ones may have several lines."""
    names = [data["title"], data.get("relay", {}).get("operator", "none"), *(task["id"] for task in data["tasks"])]
    texts = [data["question"], data["consent"], *(task["text"] for task in data["tasks"])]
    texts += [task["picture"]["alt"] for task in data["tasks"] if task["picture"]]
    return all(map(_is_readable, [*names, *(text.replace("\n", " ") for text in texts)]))


# ---- Certificates
def _channel(data: Mapping[str, Any], claims: _Claims) -> _Channel:
    """Check a certificate of one channel."""
    misfit = _misfit(dict(data), {**CERTIFICATE_FORM, "mechanism": str})
    claims.need("The certificate has exactly the documented fields, in integers.", not misfit, misfit)
    if not MECHANISM.fullmatch(data["mechanism"]):
        unknown = [one for one in data["mechanism"].partition(",")[0].split("+") if one not in NAMES]
        known = f"The mechanism is known: {', '.join(NAMES)}, or at most 16 of them joined by +."
        claims.need(known, False, repr("+".join(unknown) or data["mechanism"])[:100])
    claims.add("The SHA-256 in the file is that of its other fields.", data["sha256"] == seal(data))
    labels, outputs, rows = labels_of(data["alphabet"]), data["outputs"], data["rows"]
    claims.need("The possible answers are a list of labels or a scale.", labels is not None)
    assert labels is not None
    claims.add(
        "Answers and reports have readable names, and no two look alike.",
        _are_readable(labels) and _are_readable(outputs),
    )
    protected = data["participation"] == "protected"
    inputs = [*labels, *([NULL] if protected else [])]
    whole = len(rows) == len(inputs) and all(len(row) == len(outputs) for row in rows)
    size = f"{len(rows)} rows for {len(inputs)} answers, {len(outputs)} reports"
    few = max(len(rows), len(outputs)) <= MAX_SYMBOLS
    answers = '"no answer" included' if protected else '"no answer" is not sent'
    claims.need(f"The table has a row for each answer ({answers}) and a column for each report.", whole and few, size)
    sums = all(sum(row) == DENOMINATOR and min(row) >= 0 for row in rows) and data["denominator"] == DENOMINATOR
    claims.need("Every row is a probability distribution: integers from 0 that sum to 2^48.", sums)
    claims.need("No report rules out an answer: no entry is 0.", all(map(all, rows)))
    top, bottom = data["ratio"]
    worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    holds = worst * bottom <= top
    claims.add(
        f"No report is more than {_decimal(Fraction(top, bottom))} times as probable for one answer as for another.",
        holds,
        f"{_decimal(worst)}, epsilon {shown(epsilon_of(worst))}",
    )
    return _Channel(labels, data["participation"], len(outputs), worst)


def _decimal(ratio: Fraction) -> str:
    """Return a ratio with six digits, rounded up."""
    up = Context(prec=6, rounding=ROUND_CEILING)
    return f"{up.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)):f}"


def _marked(certificates: Iterable[Mapping[str, Any]]) -> str:
    """Return the first mechanism that is marked as without privacy; empty if there is none."""
    names = (part["mechanism"] for part in certificates)
    return next((name for name in names if name.endswith(": no privacy") or name.startswith(_SIMULATED)), "")


def _certificate(data: dict[str, Any], _: bytes, __: object, claims: _Claims) -> Verification:
    channel = _channel(data, claims)
    return _outcome("certificate", claims, [channel], [data], digest=data["sha256"])


def _table(data: dict[str, Any], _: bytes, __: object, claims: _Claims) -> Verification:
    """Check a table of channels; a channel {"unprotected": alphabet} sends the answer itself."""
    form = {"format": str, "channels": [dict], "choice": [[int]], "workers": dict, "tasks": dict, "sha256": DIGEST}
    misfit = _misfit(data, form)
    claims.need("The table has exactly the documented fields.", not misfit, misfit)
    claims.add("The SHA-256 in the file is that of its other fields.", data["sha256"] == seal(data))
    claims.need(f"It has 1 to {MAX_CHANNELS} channels.", 1 <= len(data["channels"]) <= MAX_CHANNELS)
    channels = _numbered(data["channels"], claims)
    _same_answers(data["channels"], claims)
    choice = data["choice"]
    claims.need("Every channel is used, and every group has one.", _is_choice(choice, len(channels)))
    sizes = ((data["workers"], len(choice)), (data["tasks"], len(choice[0])))
    grouped = all(
        all(type(group) is int and 0 <= group < count for group in named.values()) and (named or count == 1)
        for named, count in sizes
    )
    claims.add("Every named worker and task is in a group.", grouped)
    readable = all(all(map(_look, named)) and len(set(map(_look, named))) == len(named) for named, _ in sizes)
    claims.add("No two workers or tasks have names that look alike.", readable)
    protected = [part for part in data["channels"] if "unprotected" not in part]
    return _outcome("table of certificates", claims, channels, protected, digest=data["sha256"])


def _numbered(parts: Sequence[dict[str, Any]], claims: _Claims) -> list[_Channel]:
    """Check several certificates: one claim for each that holds, every claim of one that does not."""
    channels = []
    for number, part in enumerate(parts, start=1):
        own = _Claims()
        try:
            channel = _unprotected(part, own) if set(part) == {"unprotected"} else _channel(part, own)
            channels.append(channel)
        except _Stopped:
            claims.found += [Claim(f"Certificate {number}: {c.claim}", c.holds, c.found) for c in own.found]
            raise
        false = [claim for claim in own.found if not claim.holds]
        claims.found += [Claim(f"Certificate {number}: {c.claim}", False, c.found) for c in false]
        bound = "no bound" if channel.ratio is None else f"epsilon {shown(epsilon_of(channel.ratio))}"
        if not false:
            claims.add(f"Certificate {number}: all its claims hold.", True, bound)
    return channels


def _unprotected(part: dict[str, Any], claims: _Claims) -> _Channel:
    labels = labels_of(part["unprotected"]) if isinstance(part["unprotected"], dict) else None
    claims.need("The possible answers are a list of labels or a scale.", labels is not None and _are_readable(labels))
    return _Channel(labels or (), "public", len(labels or ()), None)


def _same_answers(parts: Sequence[Mapping[str, Any]], claims: _Claims) -> None:
    first, *others = (part.get("alphabet", part.get("unprotected")) for part in parts)
    claims.add("All channels have the same possible answers, in the same order.", all(one == first for one in others))


def _is_choice(choice: Sequence[Sequence[int]], count: int) -> bool:
    same = len({len(row) for row in choice}) == 1 and len(choice[0]) > 0
    return same and {index for row in choice for index in row} == set(range(count))


def _outcome(
    kind: str, claims: _Claims, channels: Sequence[_Channel], certificates: Sequence[Mapping[str, Any]], *,
    digest: str, answers: int | None = None,
) -> Verification:  # fmt: skip
    """Return the outcome with the guarantee of the weakest channel, if all claims hold."""
    ratios = [channel.ratio for channel in channels]
    worst = None if None in ratios else max(ratio for ratio in ratios if ratio is not None)
    outcome = Verification(
        kind=kind,
        claims=tuple(claims.found),
        mechanism=" / ".join(dict.fromkeys(part["mechanism"] for part in certificates)),
        digest=digest,
        marked=_marked(certificates),
    )
    if not outcome.holds or outcome.marked:
        return outcome
    public = any(channel.participation == "public" for channel in channels)
    return replace(
        outcome,
        participation="public" if public else "protected",
        answer_epsilon=None if worst is None else epsilon_of(worst),
        answers=answers,
        worker_epsilon=None if worst is None or answers is None else epsilon_of(worst, answers),
    )


# ---- Campaigns
def _campaign(data: dict[str, Any], source: bytes, parts: Mapping[int, bytes], claims: _Claims) -> Verification:
    """Check a campaign, its certificates, and the assignment parts that are at hand."""
    exact = len(source) <= MAX_CAMPAIGN_BYTES and source == canonical(data) and all(map(_is_plain, _values(data)))
    claims.need("The file has the one canonical form, so that its SHA-256 names exactly this text.", exact)
    misfit = _misfit(data, _form(data)) or ("" if data["tasks"] else "'tasks' is empty")
    claims.need("The campaign has exactly the documented fields.", not misfit, misfit)
    claims.add("Texts are readable: nothing invisible, and names in one line.", _are_texts_readable(data))
    claims.add("It opens before it closes.", data["opens"] <= data["closes"], f"{data['opens']} to {data['closes']}")
    ids = [task["id"] for task in data["tasks"]]
    claims.add("No two tasks have names that look alike.", len(set(map(_look, ids))) == len(ids))
    enough = data["min_reports"] <= data["slots"]
    claims.add("Nothing is released below a number of reports that can be reached.", enough, f"{data['min_reports']:,}")
    certificates = data["certificates"]
    claims.need(f"It has 1 to {MAX_CHANNELS} channels.", 1 <= len(certificates) <= MAX_CHANNELS)
    channels = _numbered(certificates, claims)
    _same_answers(certificates, claims)
    claims.add("The campaign has the possible answers of its channels.", data["labels"] == channels[0].labels)
    exact = _is_exact(certificates[0]["alphabet"], channels[0].labels)
    claims.add("Every reader writes the possible answers alike: short decimals, none nearer to 0 than 0.0001.", exact)
    shown = {name for part in certificates for name in (*data["labels"], *part["outputs"])}
    claims.add("No possible answer and no report symbol is long.", max(map(len, shown)) <= 200)
    letters = {"".join(filter(str.isalpha, unicodedata.normalize("NFKC", name).lower())) for name in shown}
    claims.add('None of them reads "no answer", which devices offer themselves.', not letters & NO_ANSWER)
    same = len({channel.participation for channel in channels}) == 1
    claims.add('All channels treat "no answer" alike.', same, channels[0].participation)
    mark = _marked(certificates)
    claims.add("No channel is marked as without privacy.", not mark, mark)
    claims.add("Every answer has one channel.", _grouped(data))
    most = max(channel.outputs + (channel.participation == "public") for channel in channels)
    width = 1 if most <= 256 else 2
    same = (data["symbol_bytes"], data["body_bytes"]) == (width, data["cells"] * width)
    claims.add("Every report has the same length.", same, f"{data['body_bytes']:,} bytes")
    claims.add("No worker is asked more tasks than there are.", data["cells"] <= len(ids), f"{data['cells']:,}")
    if "relay" in data:
        claims.add("No report through the relay names its worker.", _is_anonymous(data, channels))
        claims.add(
            "A report can be encrypted to the curator's key, and is no longer than a relay takes.", _sealable(data)
        )
        claims.add(EVERY_TASK, data["assignment_parts"] == list(_whole_parts(data["slots"], len(ids))))
    _parts(data, parts, claims)
    name = urlsafe_b64encode(hashlib.sha256(source).digest()).rstrip(b"=").decode("ascii")
    return _outcome("campaign", claims, channels, certificates, digest=name, answers=data["cells"])


def _form(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documented fields of a campaign, with a relay or without."""
    return {**CAMPAIGN_FORM, "relay": RELAY_FORM} if "relay" in data else CAMPAIGN_FORM


def _is_anonymous(data: Mapping[str, Any], channels: Sequence[_Channel]) -> bool:
    """Return whether all workers have the same tasks and channel, and skip none visibly; the batch must be possible."""
    same = data["cells"] == len(data["tasks"]) and data["groups"] is None
    whole = data["relay"]["least_batch"] <= data["slots"] and channels[0].participation == "protected"
    return same and whole and data["url"] is not None and data["purge_after_days"] is not None


def _sealable(data: Mapping[str, Any]) -> bool:
    """Return whether the curator's key is a point of P-256 (NIST SP 800-186), and sealed reports are short."""
    key, prime = data["relay"]["public_key"], 2**256 - 2**224 + 2**192 + 2**96 - 1
    x, y = int(key[2:66], 16), int(key[66:], 16)
    constant = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
    sealed = data["body_bytes"] + 81 * (data["cells"] if data["relay"]["unit"] == "cell" else 1)
    return sealed <= 900_000 and max(x, y) < prime and (y * y - x**3 + 3 * x - constant) % prime == 0


def _whole_parts(slots: int, tasks: int) -> Iterator[str]:
    """Yield the SHA-256 of each part of an assignment of every task to every slot."""
    everything = canonical(list(range(tasks))).decode()
    for first in range(0, slots, SLOTS_PER_PART):
        lists = ",".join([everything] * min(SLOTS_PER_PART, slots - first))
        part = f'{{"first":{first},"format":"{PART}","tasks":[{lists}]}}'
        yield hashlib.sha256(part.encode()).hexdigest()


def _values(value: Any) -> Iterator[Any]:
    """Yield a value, and every key and value in it."""
    yield value
    inside = (*value.keys(), *value.values()) if isinstance(value, dict) else value
    for inner in inside if isinstance(inside, list | tuple) else ():
        yield from _values(inner)


def _is_plain(value: Any) -> bool:
    """Return whether a text is in normal form C without half characters, and a number is written alike everywhere."""
    if isinstance(value, str):
        return unicodedata.is_normalized("NFC", value) and not any(unicodedata.category(c) == "Cs" for c in value)
    if isinstance(value, float):
        return not value.is_integer() and 1e-4 <= abs(value) < 2**53
    return not isinstance(value, int) or abs(value) < 2**53


def _grouped(data: Mapping[str, Any]) -> bool:
    """Return whether the groups give each task of each slot one of the certificates."""
    groups, count = data["groups"], len(data["certificates"])
    if groups is None or count == 1:
        return groups is None and count == 1
    choice = groups["choice"]
    sizes = ((groups["task_group"], len(data["tasks"]), 0), (groups["slot_group"], data["slots"], 1))
    if not _is_choice(choice, count):
        return False
    bounds = (len(choice[0]), len(choice))
    return all(len(codes) == size and all(0 <= c < bounds[k] for c in codes) for codes, size, k in sizes)


def _parts(data: Mapping[str, Any], parts: Mapping[int, bytes], claims: _Claims) -> None:
    """Check the assignment: which tasks each slot is asked, in parts of 100 slots."""
    sealed, count = data["assignment_parts"], -(-data["slots"] // SLOTS_PER_PART)
    claims.add("The file names every part of the assignment.", len(sealed) == count, f"{len(sealed):,} of {count:,}")
    if not parts:
        return
    right = [n for n, part in parts.items() if n < len(sealed) and hashlib.sha256(part).hexdigest() == sealed[n]]
    claims.add(
        "The parts of the assignment are those that the file names.",
        len(right) == len(parts) == count,
        f"{len(right):,} of {count:,}",
    )
    asked = [_asked(parts[number], number, data) for number in right]
    most = max(asked, default=0)
    claims.add(
        f"No worker is asked more than {data['cells']:,} tasks, and none twice.",
        all(asked) and most <= data["cells"],
        f"at most {most:,}",
    )


def _asked(source: bytes, number: int, data: Mapping[str, Any]) -> int:
    """Return the largest number of tasks of a slot in a part; 0 if the part is malformed."""
    part, first, places = parse(source), number * SLOTS_PER_PART, range(len(data["tasks"]))
    form = {"format": re.compile(PART), "first": range(first, first + 1), "tasks": [[places]]}
    if not fits(part, form) or len(part["tasks"]) != min(SLOTS_PER_PART, data["slots"] - first):
        return 0
    if len(source) > MAX_CAMPAIGN_BYTES or source != canonical(part):
        return 0
    distinct = all(tasks and tasks == sorted(set(tasks)) for tasks in part["tasks"])
    return max(map(len, part["tasks"])) if distinct else 0


def read_parts(path: Path) -> dict[int, bytes]:
    """Return the assignment parts in the folder `parts` beside a campaign."""
    found = {}
    for part in (path.parent / "parts").glob("[0-9][0-9][0-9][0-9]*.json"):
        if part.stem.isdecimal() and part.stem == f"{int(part.stem):04}" and part.is_file():
            found[int(part.stem)] = read_bytes(part)
    return found


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; of a file that is too long only the first, one too many."""
    with path.open("rb") as source:
        return source.read(MAX_BYTES + 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python verification.py FILE", file=sys.stderr)
        sys.exit(2)
    try:
        file = Path(sys.argv[1])
        outcome = verify(read_bytes(file), read_parts(file))
        for claim, holds, found in outcome.claims:
            print(ascii(f"{'holds' if holds else 'FALSE'}: {claim} {found}")[1:-1])
    except Exception as error:  # 1 means that a claim is false
        print(f"could not run: {error!r}", file=sys.stderr)
        sys.exit(3)
    sys.exit(not outcome.holds)
