"""Independent check of the claims of the `certificate.json` of memoised reports, in exact integers.

Written from the documented format alone, like `verification.py`, whose check of one table it uses for each of three:
the permanent answer, drawn once for each answer and kept; a report of a permanent answer; and a report of an answer,
which must be the product of both. The claim per report is the ratio of the third table; the claim for ever, whatever
the number of reports of one answer, is that of the first.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from crowdveil.privacy.verification import (
    CERTIFICATE_FORM,
    DIGEST,
    MAX_BYTES,
    NULL,
    Claim,
    Verification,
    canonical,
    epsilon_of,
    fits,
    labels_of,
    parse,
    seal,
    shown,
)
from crowdveil.privacy.verification import verify as verify_other

FORMAT, KIND = "crowdveil-memoised/1", "certificate of memoised reports"
TABLES = {"permanent": "permanent answers", "instantaneous": "reports of permanent answers", "report": "reports"}
RATIO = CERTIFICATE_FORM["ratio"]
FORM = {
    "format": str,
    **dict.fromkeys(TABLES, dict),
    "claims": {"for_ever": RATIO, "per_report": RATIO},
    "sha256": DIGEST,
}
PLACE = 16
"""Bytes of an entry in a packed row; a sum of products of two tables over 2^48 fits, for it is at most 2^96."""


def verify(data: bytes, parts: Mapping[int, bytes] | None = None) -> Verification:
    """Return the outcome of the check of a file: of memoised reports here, of every other as `verification.verify`."""
    document = parse(data) if len(data) <= MAX_BYTES else None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return verify_other(data, parts)
    return _memoised(document)


def _memoised(data: dict[str, Any]) -> Verification:
    """Check a certificate of memoised reports; claims after a false one that they need are left out."""
    try:
        fields, sealed = fits(data, FORM), data.get("sha256") == seal(data)
    except RecursionError:
        return Verification(kind=KIND, claims=(Claim("Objects and lists are not nested deeply.", False),))
    claims = [
        Claim("The certificate has exactly the documented fields.", fields),
        Claim("The SHA-256 in the file is that of its other fields.", sealed),
    ]
    tables = {name: verify_other(canonical(data[name])) for name in TABLES} if fields else {}
    claims += [claim for name, table in tables.items() for claim in _of_table(TABLES[name], table)]
    if not (tables and all(table.holds and table.kind == "certificate" for table in tables.values())):
        return Verification(kind=KIND, claims=tuple(claims))
    return _outcome(data, (*claims, *_of_product(data), *_of_losses(data)), tables)


def _of_table(name: str, table: Verification) -> Iterator[Claim]:
    """Yield one claim of a table that holds, every false claim of one that does not."""
    if table.kind != "certificate":
        yield Claim(f"The table of {name} is a certificate of one channel.", False, table.kind)
    elif table.holds:
        yield Claim(f"The table of {name}: all its claims hold.", True)
    for claim in table.claims:
        if not claim.holds:
            yield Claim(f"The table of {name}: {claim.claim}", False, claim.found)


def _of_product(data: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims that the three sound tables belong together."""
    permanent, fresh, report = (data[name] for name in TABLES)
    shared = all(permanent[name] == fresh[name] == report[name] for name in ("alphabet", "participation"))
    answers = [*(labels_of(report["alphabet"]) or ()), *([NULL] if report["participation"] == "protected" else [])]
    kept, named = permanent["outputs"] == answers, fresh["outputs"] == report["outputs"]
    hidden = report["participation"] == "protected" or NULL not in report["outputs"]
    yield Claim("The three tables have the same possible answers and participation.", shared)
    yield Claim("The permanent answers are the possible answers.", kept)
    yield Claim("Both tables of reports have the same reports.", named)
    yield Claim('Where "no answer" is not sent, no report is NULL.', hidden)
    exact = shared and kept and named and _is_product(permanent["rows"], fresh["rows"], report["rows"])
    yield Claim("The table of reports is exactly the product of the two others.", exact)


def _is_product(first: list[list[int]], second: list[list[int]], product: list[list[int]]) -> bool:
    """Return whether `product` / 2^48 is the matrix product of two tables over 2^48; each row is one large integer."""
    packed = [_packed(row) for row in second]
    return all(
        sum(entry * row for entry, row in zip(kept, packed, strict=True)) == _packed(found) << 48
        for kept, found in zip(first, product, strict=True)
    )


def _packed(row: list[int]) -> int:
    return int.from_bytes(b"".join(entry.to_bytes(PLACE, "little") for entry in row), "little")


def _of_losses(data: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield both claims of a loss, by exact ratios of columns."""
    for claim, name, about in (
        ("for_ever", "permanent", "All reports of one answer together, for ever, lose"),
        ("per_report", "report", "One report of an answer loses"),
    ):
        top, bottom = data["claims"][claim]
        worst = max(Fraction(max(column), min(column)) for column in zip(*data[name]["rows"], strict=True))
        limit, found = shown(epsilon_of(Fraction(top, bottom))), f"epsilon {shown(epsilon_of(worst))}"
        yield Claim(f"{about} at most epsilon {limit}.", worst * bottom <= top, found)
        yield Claim(f"This is the claim of the table of {TABLES[name]}.", data[name]["ratio"] == [top, bottom])


def _outcome(data: Mapping[str, Any], claims: tuple[Claim, ...], tables: Mapping[str, Verification]) -> Verification:
    """Return the outcome with both losses, if all claims hold and no table is marked."""
    marked = next((table.marked for table in tables.values() if table.marked), "")
    private = not marked and all(claim.holds for claim in claims)
    return Verification(
        kind=KIND,
        claims=claims,
        mechanism=tables["report"].mechanism,
        participation=tables["report"].participation if private else None,
        answer_epsilon=tables["permanent"].answer_epsilon if private else None,
        report_epsilon=tables["report"].answer_epsilon if private else None,
        digest=data["sha256"],
        marked=marked,
    )
