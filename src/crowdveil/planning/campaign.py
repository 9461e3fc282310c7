"""A campaign that is planned: how many tasks and workers, who answers how much, and what is publicly expected."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crowdveil.channel import Channel
from crowdveil.errors import SettingsError
from crowdveil.estimators import DawidSkene, Estimator, Gaussian, OneCoin
from crowdveil.guarantee import Participation
from crowdveil.mechanisms import Question
from crowdveil.planning.crowds import ExpectedCrowd, NumberCrowd

ROUGH_LABELS, ROUGH_NUMBERS = 1e-3, 0.05
"""Where a simulated fit stops: change of a posterior, or of a truth in steps of the scale. Enough for a mean error."""
MAX_STEPS = 60
COARSE_RATES = (0.5, 1.0, 2.0)
"""Classes of participation in simulated fits of numbers, in units of the true one: fewer than `gaussian` has, which
saves much time and changes little. Its classes of deviations are kept: fewer of them cost accuracy."""

METHODS = (DawidSkene.name, OneCoin.name, Gaussian.name)
"""Estimators that plans are made for: the first two for labels, the last for scales."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """What is asked of whom.

    With `assigned_per_task`, every task is publicly assigned to that many workers and only assigned cells are reported:
    a worker has tasks * assigned_per_task / workers cells, and as many answers as without assignment, or all of them.
    Where the estimator reads no assignment, there are groups of workers instead, each with tasks of its own, and every
    group is inferred from alone.

    Attributes:
        question: what channels are chosen for; its participation rate is the share of all tasks a worker would answer.
        crowd: what truths, workers and answers are like.
        tasks, workers: their numbers.
        assigned_per_task: workers to whom a task is assigned; None if all tasks are open to all.
        prior_public: whether inference is given the prior, or must learn it.
        method: the estimator's name; None for dawid-skene for labels, gaussian for numbers.

    Raises:
        SettingsError: a size or an assignment out of range, or a method that does not go with the answers.
    """

    question: Question
    crowd: ExpectedCrowd
    tasks: int
    workers: int
    assigned_per_task: int | None = None
    prior_public: bool = False
    method: str | None = None

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.workers < 1:
            raise SettingsError("a campaign needs at least one task and one worker", value=(self.tasks, self.workers))
        given = self.assigned_per_task
        if given is not None and not (1 <= given <= self.workers and given * self.tasks >= self.workers):
            fewest = -(-self.workers // self.tasks)
            raise SettingsError(
                f"a task is assigned to {fewest} to {self.workers} workers, so that every worker has one",
                value=given,
                way_out="Assign more workers per task, or plan with fewer workers.",
            )
        known = METHODS[2:] if isinstance(self.crowd, NumberCrowd) else METHODS[:2]
        if self.method is not None and self.method not in known:
            raise SettingsError(f"a plan for these answers is made for {' or '.join(known)}", value=self.method)

    @property
    def participation(self) -> Participation:
        """Whether NULL is protected."""
        return self.question.participation

    @property
    def reporters(self) -> int:
        """Workers who report on one task."""
        return self.workers if self.assigned_per_task is None else self.assigned_per_task

    @property
    def cells(self) -> int:
        """Tasks of one worker: all, or those assigned."""
        return max(1, round(self.tasks * self.reporters / self.workers))

    @property
    def groups(self) -> float:
        """Over how many tasks all workers are spread for each that one worker has."""
        return self.workers / self.reporters

    @property
    def grouped(self) -> bool:
        """Whether tasks are assigned to groups that are inferred from one by one."""
        return self.assigned_per_task is not None and not self.estimator.reads_tables

    @property
    def rate(self) -> float:
        """Share of a worker's cells that are answered."""
        return min(1.0, self.question.participation_rate * self.groups)

    @property
    def reported_cells(self) -> int:
        """Cells of one worker that cost privacy: all where NULL is protected, else the expected answers, rounded up."""
        return self.cells if self.participation == "protected" else max(1, math.ceil(self.cells * self.rate - 1e-9))

    @cached_property
    def asked(self) -> Question:
        """Return the question about one cell: `question` with the rate among a worker's own cells."""
        return replace(self.question, participation_rate=self.rate)

    @property
    def estimator(self) -> Estimator[Any, Any]:
        """Return what infers from a simulation of this campaign."""
        if isinstance(self.crowd, NumberCrowd):
            shares = tuple(min(1.0, self.rate * factor) for factor in COARSE_RATES)
            tolerance = ROUGH_NUMBERS * self.crowd.alphabet.step
            return Gaussian(participations=shares, max_steps=MAX_STEPS, tolerance=tolerance)
        kind = OneCoin if self.method == OneCoin.name else DawidSkene
        return kind(max_steps=MAX_STEPS, tolerance=ROUGH_LABELS)

    @property
    def prior(self) -> dict[str, float] | None:
        """Return the prior by label as inference takes it; None if it must be learned."""
        if not self.prior_public:
            return None
        return dict(zip(self.crowd.alphabet.names, self.crowd.prior.tolist(), strict=True))

    def information(self, channel: Channel | None) -> float:
        """Return the mutual information of truth and report in one cell, in nats; None: of unprotected answers."""
        if channel is None:
            channel = Channel.identity(self.crowd.alphabet, "public")
            return replace(self.asked, participation="public").score(channel.probabilities)
        return self.asked.score(channel.probabilities)
