"""Statement of privacy of reports, a certificate or a campaign: mechanism, parameters, epsilon, and exclusions.

A statement names an epsilon only with a checked guarantee; whoever makes one from reports checks first. Epsilon is that
of an answer, of a worker, and of the whole collection, with the participation.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Literal

from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.channels.guarantee import Guarantee
from crowdveil.channels.rounding import CERTAIN, format_bound, percent_rounded_up
from crowdveil.privacy.largest_posterior import sentences_on_adversary_certainty

Status = Literal["protected", "simulation", "none"]
Subject = Literal["reports", "certificate", "campaign"]
ODDS_DIGITS = 3
OPENINGS: Mapping[Subject, str] = {
    "reports": "Every answer is protected by local differential privacy.",
    "certificate": "Every answer that is randomized by this certificate is protected by local differential privacy.",
    "campaign": "Every answer to this campaign is protected by local differential privacy.",
}
MAX_PROTECTING = 60.0
"""Largest epsilon of a worker at which answers are called protected."""
WEAK = "Answers are randomized, but so much is left of them that they cannot be called protected."
MEANING = (
    "Epsilon bounds how far a report can change the odds between any two possible answers: by a factor of e to the "
    "epsilon, here at most {odds} for one answer. The epsilons of the answers of a worker add up."
)
UNPROTECTED = "Some answers were sent without protection, so no epsilon holds for every answer."
MARKED = "The collection is marked as without privacy."
FROM_DEVICES = (
    "That somebody opened a link: anyone who watches the connection can see it.",
    "A device that runs a program other than the one whose code was checked.",
    "A second report of the same worker, for example from another device: its epsilon adds to that of the first.",
)
ALWAYS_UNCOVERED = (
    "Time and network address of a report, which the network and the operator of the service can see.",
    (
        "Answers of other workers: where answers depend on one another, the answers of others may reveal "
        "something about one's own."
    ),
    "Other collections: every further report adds its own epsilon. The same question in another campaign costs the "
    "sum of both epsilons.",
    "What workers say about their answers elsewhere.",
)
OTHERS = (
    "This holds for one answer only, and the loss of a whole worker is not known here: the answers are to one question "
    "of a campaign that asked several, and the epsilons of a worker's other answers add. Its campaign.json gives the "
    "sum over all of them."
)
"""What the statement of one question says without the campaign."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyStatement:
    """Privacy of reports, or of the reports that a certificate or a campaign will bring.

    Attributes:
        subject: what the statement is about.
        status: "protected" with a checked guarantee, "simulation", or "none".
        reason: why there is no guarantee; empty with one.
        mechanism: name, that of the certificate if it was checked; empty if unknown.
        per_answer, per_worker: guarantees, over all questions of a campaign; None without a checked one. A certificate,
            and one of several questions without its campaign, have none per worker.
        of_question: guarantee of an answer to the question of these reports; None with one question, or for all.
        cells: largest number of answers of one worker, missing ones included where participation is protected.
        not_covered: what the guarantee does not cover, as sentences.
        campaign: name of the campaign, 43 characters; None without one.
        certificate_sha256: digest of the checked certificate, in hexadecimal.
        channel: checked channel, if there is a single one.
        relay: sentences on the relay of the campaign; empty without one.
        levels: sentences on the levels that workers choose from; empty without levels.
        level_guarantees: guarantee per answer of each channel that a worker may have chosen; empty without levels.
        level_workers: number of workers at each level; empty where it must not be stated.
        questions: sentences on what several questions of a campaign add; empty with one.
        question_guarantees: guarantee per answer of each question of the campaign; empty with one.
        inputs: sentences on what else the truths depend on; empty if that is nothing.
        without_reports: whether there is no statement because no reports were given.
    """

    status: Status
    subject: Subject = "reports"
    reason: str = ""
    mechanism: str = ""
    per_answer: Guarantee | None = None
    per_worker: Guarantee | None = None
    of_question: Guarantee | None = None
    cells: int = 0
    not_covered: tuple[str, ...] = ()
    campaign: str | None = None
    certificate_sha256: str | None = None
    channel: Channel | None = None
    relay: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    level_guarantees: tuple[Guarantee, ...] = ()
    level_workers: tuple[int, ...] = ()
    questions: tuple[str, ...] = ()
    question_guarantees: tuple[Guarantee, ...] = ()
    inputs: tuple[str, ...] = ()
    without_reports: bool = False

    @property
    def largest_odds_factor_text(self) -> str:
        """Largest factor by which reports change the odds between two answers, rounded up; empty if unknown."""
        if self.per_answer is None:
            return ""
        return format_bound(math.nextafter(math.exp(self.per_answer.epsilon), math.inf), ODDS_DIGITS)

    @property
    def answer_epsilon_text(self) -> str:
        """Epsilon per answer as text; with levels that of each and its workers, or the range."""
        texts = [format_bound(one.epsilon, 4) for one in self.level_guarantees]
        if not self.level_workers:
            return self.question_epsilon_range
        return ", ".join(f"{text} ({count:,} workers)" for text, count in zip(texts, self.level_workers, strict=True))

    @property
    def question_epsilon_range(self) -> str:
        """Epsilon per answer as text: to the question of these reports, or as `epsilon_range_per_answer`."""
        return (
            self.epsilon_range_per_answer if self.of_question is None else _epsilon_range_text((), self.of_question, 1)
        )

    @property
    def epsilon_range_per_answer(self) -> str:
        """Epsilon per answer as text, from the first level to the last, or from the smallest of a question up."""
        questions = sorted(self.question_guarantees, key=lambda guarantee: guarantee.epsilon)
        return _epsilon_range_text(self.level_guarantees or questions, self.per_answer, 1)

    @property
    def clause_on_levels(self) -> str:
        """What an epsilon with levels is, with a comma before it: chosen only where the numbers of workers are stated.

        Empty without levels.
        """
        if not self.level_guarantees:
            return ""
        return ", as workers chose" if self.level_workers else ", as offered to workers"

    @property
    def worker_epsilon_range_text(self) -> str:
        """Epsilon of all answers of one worker as text, from the first level to the last."""
        return _epsilon_range_text(self.level_guarantees, self.per_worker, self.cells)


def _epsilon_range_text(levels: Sequence[Guarantee], every: Guarantee | None, answers: int) -> str:
    if not levels:
        return "" if every is None else format_bound(every.epsilon, 4)
    return " to ".join(dict.fromkeys(format_bound(one.times(answers).epsilon, 4) for one in (levels[0], levels[-1])))


def channel_statement(
    channel: Channel | ChannelTable,
    *,
    sha256: str | None = None,
    answers: int | None = None,
    one_of_several_questions: bool = False,
) -> PrivacyStatement:
    """Return the statement for reports that devices will draw from a channel.

    Args:
        channel: checked channel, or table of channels.
        sha256: SHA-256 of its certificate, in hexadecimal.
        answers: largest number of answers of one worker; None if it is unknown.
        apart: whether the channel is that of one of several questions, so that other answers of a worker add.
    """
    reason = no_guarantee_reason(channel)
    if reason:
        return PrivacyStatement(status="none", subject="certificate", reason=reason, mechanism=channel.mechanism)
    own = None if answers is None else channel.guarantee.per_worker(answers)
    return PrivacyStatement(
        status="protected",
        subject="certificate",
        mechanism=channel.mechanism,
        per_answer=channel.guarantee,
        per_worker=None if one_of_several_questions else own,
        cells=0 if one_of_several_questions else answers or 0,
        questions=single_question_sentences(answers or 0, own) if one_of_several_questions else (),
        not_covered=uncovered_sentences(FROM_DEVICES, protected=channel.protects_participation, assigned=False),
        certificate_sha256=sha256,
        channel=channel if isinstance(channel, Channel) else None,
    )


def single_question_sentences(cells: int, own: Guarantee | None) -> tuple[str, ...]:
    """Return what is said of one of several questions without the campaign.

    Args:
        cells: largest number of answers of a worker to this question.
        own: guarantee of these answers; None if their number is unknown.
    """
    if own is None:
        return (OTHERS,)
    epsilon = format_bound(own.epsilon, 4)
    return (OTHERS, f"The answers of a worker to this question (at most {cells:,}) alone add up to epsilon {epsilon}.")


def no_guarantee_reason(channel: Channel | ChannelTable) -> str:
    """Return why a channel has no guarantee; empty with one."""
    if not math.isfinite(channel.guarantee.epsilon):
        return UNPROTECTED
    return MARKED if channel.voids_privacy else ""


def uncovered_sentences(first: Sequence[str], *, protected: bool, assigned: bool) -> tuple[str, ...]:
    """Return what a guarantee does not cover, as sentences.

    Args:
        first: sentences on the origin of the reports.
        protected: whether participation is protected.
        assigned: whether a public assignment says which tasks a worker is asked.
    """
    listed = "Participation: that a worker is in the list of workers is visible"
    visible = "Participation: which tasks a worker answered is visible."
    if protected:
        visible = f"{listed}, and which tasks were assigned." if assigned else f"{listed}."
    return (*first, visible, *ALWAYS_UNCOVERED)


def statement_sentences(statement: PrivacyStatement) -> Sequence[str]:
    """Return the statement in plain words; epsilon stands in it only with a checked guarantee."""
    if statement.status == "simulation":
        return ("Simulation only: no privacy.", statement.reason)
    if statement.per_answer is None:
        return ("No privacy guarantee is stated.", statement.reason)
    answer = statement.per_answer
    protects = _may_be_called_protected(answer, statement.per_worker)
    alike = "is protected too" if protects else "is randomized like an answer"
    hidden = alike if answer.participation == "protected" else "is visible"
    apart = statement.questions if statement.per_worker is None else ()
    sizes = _clause_on_channel_sizes(None if statement.of_question else statement.channel)
    done = "was randomized before it was sent" if statement.subject == "reports" else "is randomized before it is sent"
    return (
        *sentences_on_adversary_certainty(answer, statement.per_worker),
        *apart,
        OPENINGS[statement.subject] if protects else WEAK,
        MEANING.format(odds=statement.largest_odds_factor_text),
        f"Each answer {done}: {_answer_and_worker_epsilon_clause(answer, statement)}.",
        f"Whether a worker answered an asked task {hidden} (participation {answer.participation}).",
        f"The mechanism is {statement.mechanism}{sizes}.",
        *statement.relay,
        *statement.levels,
        *(() if apart else statement.questions),
        *statement.inputs,
        "A report depends on the answers of its worker only, so the epsilon of one worker is also that of the whole "
        "collection.",
    )


def _may_be_called_protected(answer: Guarantee, worker: Guarantee | None) -> bool:
    """Return whether answers can be called protected: by the loss of a worker, if unknown by that of an answer."""
    if worker is None:
        return percent_rounded_up(answer.largest_guess_probability) != CERTAIN
    return worker.epsilon <= MAX_PROTECTING


def _answer_and_worker_epsilon_clause(answer: Guarantee, statement: PrivacyStatement) -> str:
    """Return the loss of all answers of one worker, and that of a single answer."""
    by_question = bool(statement.question_guarantees)
    epsilon = statement.epsilon_range_per_answer if by_question else format_bound(answer.epsilon, 4)
    single = f"epsilon {epsilon} per single answer{', by question' * by_question}"
    if statement.of_question is not None:
        single += f" ({format_bound(statement.of_question.epsilon, 4)} for the question of these reports)"
    if statement.per_worker is None:
        return (
            single
            if statement.questions
            else f"{single}, and that times the number of asked tasks for all answers of one worker"
        )
    worker = format_bound(statement.per_worker.epsilon, 4)
    return f"epsilon {worker} for all answers of one worker (at most {statement.cells:,}), {single}"


def _clause_on_channel_sizes(channel: Channel | None) -> str:
    """Return the parameters of a single channel, with a comma before them; empty for several channels."""
    if channel is None:
        return ""
    besides = ' besides "no answer"' if channel.protects_participation else ""
    answers = f"{channel.alphabet.size:,} possible answers{besides}"
    sizes = f", with {answers}, and {len(channel.outputs):,} possible reports"
    if not set(channel.inputs) <= set(channel.outputs):
        return sizes
    kept = min(row[channel.outputs.index(name)] for name, row in zip(channel.inputs, channel.rows, strict=True))
    percent = 1000 * kept // channel.denominator / 10
    return f"{sizes}; an answer is reported unchanged with a probability of at least {percent:.1f} %"


def statement_text(
    statement: PrivacyStatement, facts: Sequence[tuple[str, str]] = (), filed: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the statement as plain text: a heading, one paragraph, further facts, and exclusions.

    Args:
        statement: the statement.
        facts: of the source, as pairs of name and text.
        filed: date, version and responsible party, in the heading.
    """
    lines = ["Statement of privacy", "", *(f"{name}: {text}" for name, text in filed), *([""] if filed else [])]
    kept = " ".join(statement_sentences(statement)).replace(" %", "\N{NO-BREAK SPACE}%")
    lines.append(fill(kept, 80, break_on_hyphens=False).replace("\N{NO-BREAK SPACE}", " "))
    if statement.status == "protected":
        sealed = [("Certificate, SHA-256", statement.certificate_sha256)] if statement.certificate_sha256 else []
        lines += ["", *(f"{name}: {text}" for name, text in (*facts, *sealed))] if (*facts, *sealed) else []
        lines += ["", "Not covered:", *(f"- {sentence}" for sentence in statement.not_covered)]
    return "\n".join(lines) + "\n"
