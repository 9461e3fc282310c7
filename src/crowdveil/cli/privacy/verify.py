"""`crowdveil verify`: check of a certificate or a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crowdveil.cli.display import print_result
from crowdveil.cli.options import FILE_PATH
from crowdveil.cli.privacy.claim_file import campaign_or_certificate_file
from crowdveil.cli.verb import Verb, wants_json
from crowdveil.display.counts import number_of
from crowdveil.errors import ClaimError

if TYPE_CHECKING:
    from crowdveil.standalone.verification import Verification

CURATOR = "the curator, to every worker who gets a link with this campaign's name"
MAKER = "the author of the file, for the reports that devices draw from its tables"
NOT_CHECKED = (
    "Who wrote the file: a SHA-256 finds accidents, not forgeries. Compare it with one that you got another way.",
    "That devices draw their reports from these tables, once for each task, with secret randomness.",
    "Other reports of the same worker: their epsilons add. The same question in another campaign costs the sum.",
)
NO_PRIOR = "The public prior that the campaign names by its SHA-256: prior.csv is not next to the file."
LEAST = "That nothing is released below {} reports: the curator promises it, and no file can show it."
NO_PARTS = "Which tasks each worker is asked: the folder parts/ is not next to the file."


@click.command(
    cls=Verb,
    example="crowdveil verify sent/certificate.json",
    short_help="Check a certificate or campaign file.",
)
@click.argument("file", type=FILE_PATH)
def verify(file: Path) -> None:
    """Check the claims of FILE: a certificate.json, a campaign.json, or a folder with one.

    The check computes in exact integers, by the rules that devices apply before they answer. It prints epsilon of a
    single answer (cell) and of a worker, the participation, each claim in plain words and whether it holds, and what no
    file can show. It prints epsilon only if all claims hold. It also checks the assignment in parts/ and the public
    prior in prior.csv, if they are next to a campaign.

    Exit codes: 0 all claims hold; 1 a claim is false; 2 wrong usage; 3 the check could not run.
    """
    from crowdveil.channels.certificate import require_certificate_or_campaign
    from crowdveil.standalone.checks import EVERY_TASK
    from crowdveil.standalone.verification import (
        SAME_PRIOR,
        parse_json,
        read_bounded,
        read_parts,
        read_prior,
    )
    from crowdveil.standalone.verification import verify as check

    file = campaign_or_certificate_file(file)
    parts = read_parts(file)
    source = read_bounded(file)
    require_certificate_or_campaign(source, str(file))
    checked = check(source, parts, read_prior(file))
    claims = [claim._asdict() for claim in checked.claims]
    asked = parts or EVERY_TASK in (claim.claim for claim in checked.claims)
    fields = parse_json(source) if checked.holds and checked.kind == "campaign" else {}
    seen = SAME_PRIOR in (claim.claim for claim in checked.claims)
    unchecked = [*NOT_CHECKED, *([NO_PARTS] if checked.kind == "campaign" and not asked else [])]
    unchecked += [NO_PRIOR] if "prior" in fields and not seen else []
    unchecked += [LEAST.format(f"{fields['min_reports']:,}")] if fields else []
    false = tuple(claim.claim for claim in checked.claims if not claim.holds)
    data = {
        "kind": checked.kind,
        "claims": claims,
        "mechanism": checked.mechanism,
        "participation": checked.participation,
        "epsilon_per_answer": checked.answer_epsilon,
        "answers_per_worker": checked.answers,
        "epsilon_per_worker": checked.worker_epsilon,
        "no_privacy": checked.marked,
        "digest": checked.digest,
        "not_checked": unchecked,
    }
    if checked.holds or not wants_json():
        rows = [*_verification_outcome_rows(checked), *(("not checked", sentence) for sentence in unchecked)]
        print_result(data, rows)
    if false:
        raise ClaimError(str(file), false, claims)


def _verification_outcome_rows(checked: Verification) -> Iterator[tuple[str, str]]:
    """Yield the outcome as pairs of a short name and a sentence."""
    from crowdveil.campaign.rules.document import spaced_name_to_compare

    if checked.holds:
        yield from _guarantee_rows(checked)
    yield "claimed by", CURATOR if checked.kind == "campaign" else MAKER
    for claim in checked.claims:
        found = f" Found: {claim.found}." if claim.found else ""
        yield "holds" if claim.holds else "FALSE", claim.claim + found
    if checked.holds:
        yield "mechanism", f"{checked.mechanism} (a name; the tables decide)"
        yield "name" if checked.kind == "campaign" else "SHA-256", checked.digest
        if checked.kind == "campaign":
            yield "to compare", spaced_name_to_compare(checked.digest)


def _guarantee_rows(checked: Verification) -> Iterator[tuple[str, str]]:
    """Yield epsilon with its unit, and participation."""
    from crowdveil.channels.guarantee import Guarantee
    from crowdveil.channels.rounding import format_bound
    from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty

    if checked.answer_epsilon is None:
        reason = "the file is marked as without privacy" if checked.marked else "some answers are sent unprotected"
        yield "epsilon", f"none: {reason}"
        return
    yield "epsilon", f"{format_bound(checked.answer_epsilon, 4)} per answer"
    if checked.worker_epsilon is None:
        yield "epsilon", "per worker: that of one answer, times the number of tasks that the worker is asked"
    else:
        most = number_of(checked.answers or 0, "answer")
        yield "epsilon", f"{format_bound(checked.worker_epsilon, 4)} per worker, for at most {most}"
    hidden = "is randomized like an answer" if checked.participation == "protected" else "is visible"
    yield "participation", f"{checked.participation}: whether a worker answered {hidden}"
    scope: Any = {"participation": checked.participation}
    answer = Guarantee(epsilon=checked.answer_epsilon, unit="cell", **scope)
    every = checked.worker_epsilon
    worker = None if every is None else Guarantee(epsilon=every, unit="worker", **scope)
    yield from (("certainty", sentence) for sentence in sentences_on_adversary_certainty(answer, worker))
