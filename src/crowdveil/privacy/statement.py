"""Statement of privacy of reports: mechanism, epsilon per answer and per worker, participation, and exclusions.

A statement names an epsilon only with a checked guarantee; whoever makes one checks first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import format_bound

Status = Literal["protected", "simulation", "none"]
ODDS_DIGITS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyStatement:
    """Privacy of the reports behind a set of truths.

    Attributes:
        status: "protected" with a checked guarantee, "simulation", or "none".
        reason: why there is no guarantee; empty with one.
        mechanism: name, that of the certificate if it was checked; empty if unknown.
        per_answer, per_worker: guarantees; None without a checked one.
        cells: largest number of answers of one worker, missing ones included where participation is protected.
        not_covered: what the guarantee does not cover, as sentences.
        campaign: name of the campaign, 43 characters; None without one.
        certificate_sha256: digest of the checked certificate, in hexadecimal.
        channel: checked channel, if there is a single one.
    """

    status: Status
    reason: str = ""
    mechanism: str = ""
    per_answer: Guarantee | None = None
    per_worker: Guarantee | None = None
    cells: int = 0
    not_covered: tuple[str, ...] = ()
    campaign: str | None = None
    certificate_sha256: str | None = None
    channel: Channel | None = None

    @property
    def odds(self) -> str:
        """Largest factor by which one report changes the odds between two answers, rounded up; empty if unknown."""
        if self.per_answer is None:
            return ""
        return format_bound(math.nextafter(math.exp(self.per_answer.epsilon), math.inf), ODDS_DIGITS)


def sentences(statement: PrivacyStatement) -> Sequence[str]:
    """Return the statement in plain words; epsilon stands in it only with a checked guarantee."""
    if statement.status == "simulation":
        return ("Simulation only: no privacy.", statement.reason)
    if statement.per_answer is None or statement.per_worker is None:
        return ("No privacy guarantee is stated.", statement.reason)
    answer, worker = statement.per_answer, statement.per_worker
    hidden = "is protected too" if answer.participation == "protected" else "is visible"
    return (
        "Every answer is protected by local differential privacy.",
        f"It was randomized before it was sent: epsilon {format_bound(answer.epsilon, 4)} per single answer, "
        f"{format_bound(worker.epsilon, 4)} for all answers of one worker (at most {statement.cells:,}).",
        f"Whether a worker answered an asked task {hidden} (participation {answer.participation}).",
        f"A report changes the odds between any two possible answers by a factor of at most {statement.odds}, "
        "whatever else is known.",
    )


def statement_text(statement: PrivacyStatement, facts: Sequence[tuple[str, str]] = ()) -> str:
    """Return the statement as plain text, with further facts as pairs of name and text."""
    lines = ["Statement of privacy", "", *sentences(statement)]
    if statement.status == "protected":
        sealed = [("Mechanism", statement.mechanism), ("Certificate, SHA-256", statement.certificate_sha256 or "")]
        lines += ["", *(f"{name}: {text}" for name, text in (*sealed, *facts))]
        lines += ["", "Not covered:", *(f"- {sentence}" for sentence in statement.not_covered)]
    return "\n".join(lines) + "\n"
