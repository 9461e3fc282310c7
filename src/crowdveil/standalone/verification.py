"""Check of all claims of `certificate.json` and `campaign.json`, with what was found, in exact integers.

The rules are those of `checks`, which the library and devices apply, too; `python -m crowdveil.standalone.program`
writes both files as one program that needs Python's standard library only:

    python verification.py certificate.json
"""

import hashlib
import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nextafter
from pathlib import Path
from typing import Any

from crowdveil.standalone.checks import (
    ANSWERS_CLAIM,
    CAMPAIGN_FORMAT,
    CHANNEL_FORMAT,
    HEX,
    MAX_CERTIFICATE_BYTES,
    SAME_ANSWERS,
    SEAL_CLAIM,
    SLOTS_PER_PART,
    CheckedChannel,
    Claim,
    ClaimLog,
    Refused,
    check_campaign,
    check_certificate,
    check_certificates,
    check_part,
    digest,
    epsilon,
    first_confusable_pair,
    is_choice,
    labels_of,
    line_of,
    marks_no_privacy,
    questions_of,
    require_form,
    symbols_defect,
    visible_form,
)

TABLE_FORMAT = "crowdveil-channel-table/1"
TABLE = {
    "format": TABLE_FORMAT,
    "channels": [dict],
    "choice": [[int]],
    **dict.fromkeys(("workers", "tasks"), dict),
    "sha256": HEX,
}
SAME_PRIOR = "The file of the public prior is the one that the campaign names."
KINDS = {CHANNEL_FORMAT: "certificate", TABLE_FORMAT: "table of certificates", CAMPAIGN_FORMAT: "campaign"}


def epsilon_of(ratio: Fraction, answers: int = 1) -> float:
    """Return `answers` * ln(ratio), rounded up; ratio >= 1."""
    return float_above(epsilon([line_of(ratio, answers)]))


def float_above(loss: Fraction | Decimal) -> float:
    """Return a number as a float whose value, and whose decimal form, is not below it."""
    found = float(loss)
    return found if min(Fraction(found), Fraction(repr(found))) >= Fraction(loss) else nextafter(found, inf)


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


def verify(data: bytes, parts: Mapping[int, bytes] | None = None, prior: bytes | None = None) -> Verification:
    """Return the outcome of the check of a certificate or a campaign; no content raises an error.

    Args:
        data: bytes of the file.
        parts: assignment parts of a campaign by number, as far as they are at hand.
        prior: bytes of the file of its public prior, if it is at hand.
    """
    claims = ClaimLog()
    form: Any = None
    limit = MAX_CERTIFICATE_BYTES
    try:
        claims.add(f"The file has at most {limit:,} bytes.", "oversize" * (len(data) > limit), f"{len(data):,}")
        document = _parse(data)
        form = document.get("format") if isinstance(document, dict) else None
        known = isinstance(form, str) and form in KINDS
        claim = "The file is JSON without repeated keys, of a known format."
        claims.add(claim, "" if known else "format", "" if known else repr(str(form)[:50]))
        if form == CAMPAIGN_FORMAT:
            return _campaign(data, parts or {}, prior, claims)
        if form == TABLE_FORMAT:
            channels = check_table(document, claims)
            protected = [part for part in document["channels"] if "unprotected" not in part]
        else:
            channels, protected = [check_certificate(document, claims)], [document]
        return _outcome(KINDS[form], claims, channels, protected, name=document["sha256"])
    except (Refused, RecursionError) as error:
        if isinstance(error, RecursionError):
            with suppress(Refused):
                claims.add("Objects and lists are not nested deeply.", "not json")
        kind = KINDS.get(form, "unknown") if isinstance(form, str) else "unknown"
        return Verification(kind=kind, claims=tuple(claims.found))


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: not JSON, a repeated key, a number that is not finite, or too deep nesting.
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite)
    except RecursionError as error:
        raise ValueError("objects or lists are nested too deeply") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:50]!r} is repeated in one object")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:50]} is not a finite number")
    return number


def _parse(data: bytes) -> Any:
    """Return the value of a JSON text; None if it is none, repeats a key, or has a number that is not finite."""
    try:
        return parse_json(data)
    except ValueError:
        return None


def check_table(data: Any, claims: ClaimLog) -> list[CheckedChannel]:
    """Check a table of channels, and return its channels.

    Raises:
        Refused: as `check_certificate`.
    """
    require_form(claims, "The table has exactly the documented fields.", data, TABLE)
    claims.add(SEAL_CLAIM, "" if data["sha256"] == digest(data) else "hash")
    channels, choice = check_certificates(data["channels"], claims, _check_part), data["choice"]
    first, *others = [part.get("alphabet", part.get("unprotected")) for part in data["channels"]]
    claims.add(SAME_ANSWERS, "" if all(one == first for one in others) else "labels")
    used = "" if is_choice(choice, len(channels)) else "shape"
    claims.add("Every channel is used, and every group has one.", used)
    named = ((data["workers"], len(choice)), (data["tasks"], len(choice[0])))
    grouped = all(
        all(type(group) is int and 0 <= group < count for group in groups.values()) and (groups or count == 1)
        for groups, count in named
    )
    claims.add("Every named worker and task is in a group.", "" if grouped else "shape")
    seen = all(all(map(visible_form, groups)) and first_confusable_pair(groups) is None for groups, _ in named)
    claims.add("No two workers or tasks have names that look alike.", "" if seen else "text")
    return channels


def _check_part(part: Any, claims: ClaimLog) -> CheckedChannel:
    """Check a certificate, or a part {"unprotected": alphabet}, which sends the answer itself; return its channel."""
    if set(part) != {"unprotected"}:
        return check_certificate(part, claims)
    labels = labels_of(part["unprotected"])
    claims.add(ANSWERS_CLAIM, symbols_defect(labels)[0] if labels else "alphabet")
    return CheckedChannel(labels or (), labels or (), (), protected=False, ratio=None)


def _outcome(
    kind: str, claims: ClaimLog, channels: Sequence[CheckedChannel], certificates: Iterable[Mapping[str, Any]], *,
    name: str, answers: Sequence[int] = (),
) -> Verification:  # fmt: skip
    """Return the outcome with the guarantee of the weakest channel, if all claims hold.

    `answers` are the largest numbers of answers of a worker: one, or one for each channel; empty if they are unknown.
    """
    ratios = [channel.ratio for channel in channels]
    worst = None if None in ratios else max(ratio for ratio in ratios if ratio is not None)
    mechanisms = list(dict.fromkeys(part["mechanism"] for part in certificates))
    outcome = Verification(
        kind=kind,
        claims=tuple(claims.found),
        mechanism=" / ".join(mechanisms),
        digest=name,
        marked=next(filter(marks_no_privacy, mechanisms), ""),
    )
    if not outcome.holds or outcome.marked:
        return outcome
    return replace(
        outcome,
        participation="protected" if all(channel.protected for channel in channels) else "public",
        answer_epsilon=None if worst is None else epsilon_of(worst),
        answers=sum(answers) or None,
        worker_epsilon=_sum(ratios if len(answers) > 1 else [worst], answers),
    )


def _sum(ratios: Sequence[Fraction | None], answers: Sequence[int]) -> float | None:
    """Return the epsilon of so many answers through channels of these ratios, rounded up; None if it is unknown."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not answers or len(known) < len(ratios):
        return None
    return float_above(epsilon(map(line_of, known, answers)))


def _campaign(source: bytes, parts: Mapping[int, bytes], prior: bytes | None, claims: ClaimLog) -> Verification:
    """Check a campaign, its certificates, and the parts and the prior that are at hand."""
    fields, channels = check_campaign(source, claims)
    if prior is not None and "prior" in fields:
        same = hashlib.sha256(prior).hexdigest() == fields["prior"]
        claims.add(SAME_PRIOR, "" if same else "hash")
    if parts:
        _check_parts(fields, parts, claims)
    loads = [question["cells"] for question in questions_of(fields)]
    name = urlsafe_b64encode(hashlib.sha256(source).digest()).rstrip(b"=").decode("ascii")
    return _outcome("campaign", claims, channels, fields["certificates"], name=name, answers=loads)


def _check_parts(fields: Mapping[str, Any], parts: Mapping[int, bytes], claims: ClaimLog) -> None:
    """Check the assignment: which tasks each slot is asked, in parts of 100 slots."""
    named, count = fields["assignment_parts"], -(-fields["slots"] // SLOTS_PER_PART)
    right = [n for n, part in parts.items() if n < len(named) and hashlib.sha256(part).hexdigest() == named[n]]
    whole = len(right) == len(parts) == count
    claim = "The parts of the assignment are those that the file names."
    claims.add(claim, "" if whole else "hash", f"{len(right):,} of {count:,}")
    asked = [_most_asked(parts[number], fields, number) for number in right]
    claims.add(
        f"No worker is asked more than {fields['cells']:,} tasks, and none twice.",
        "" if all(asked) else "part",
        f"at most {max(asked, default=0):,}",
    )


def _most_asked(data: bytes, fields: Mapping[str, Any], number: int) -> int:
    """Return the largest number of tasks of a slot in a part; 0 if the part is malformed."""
    try:
        return max(map(len, check_part(data, fields, number)))
    except Refused:
        return 0


def read_parts(path: Path) -> dict[int, bytes]:
    """Return the assignment parts in the folder `parts` beside a campaign."""
    found = {}
    for part in (path.parent / "parts").glob("[0-9][0-9][0-9][0-9]*.json"):
        if part.stem.isdecimal() and part.stem == f"{int(part.stem):04}" and part.is_file():
            found[int(part.stem)] = read_bounded(part)
    return found


def read_prior(path: Path) -> bytes | None:
    """Return the file `prior.csv` beside a campaign; None without it."""
    prior = path.parent / "prior.csv"
    return read_bounded(prior) if prior.is_file() else None


def read_bounded(path: Path) -> bytes:
    """Return the bytes of a file; of a file that is too long only the first, one too many."""
    with path.open("rb") as source:
        return source.read(MAX_CERTIFICATE_BYTES + 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python verification.py FILE", file=sys.stderr)
        sys.exit(2)
    try:
        file = Path(sys.argv[1])
        outcome = verify(read_bounded(file), read_parts(file), read_prior(file))
        for claim, holds, found in outcome.claims:
            print(ascii(f"{'holds' if holds else 'FALSE'}: {claim} {found}")[1:-1])
    except Exception as error:  # 1 means that a claim is false
        print(f"could not run: {error!r}", file=sys.stderr)
        sys.exit(3)
    sys.exit(3 if outcome.kind == "unknown" else not outcome.holds)
