"""A campaign that is planned: how many tasks and workers, who answers how much, and what is publicly expected."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.errors import SettingsError
from crowdveil.estimators import DawidSkene, Estimator, Gaussian, OneCoin, OrdinalDawidSkene
from crowdveil.mechanisms import DesignObjective
from crowdveil.planning.population import ExpectedCrowd, NumberCrowd
from crowdveil.registry import estimators_with

ROUGH_LABELS, ROUGH_NUMBERS = 1e-3, 0.05
"""Where a simulated fit stops: change of a posterior, or of a truth in steps of the scale. Enough for a mean error."""
RESOLVED = 0.1
"""The same for numbers, as a share of the error of known workers, where that is more."""
POINTS_PER_STEP = 4
"""Points of truth in simulated fits of numbers: half of what `gaussian` has, for the same errors in half the time."""
MAX_STEPS = 60
COARSE_RATES = (0.5, 1.0, 2.0)
"""Classes of participation in simulated fits of numbers, in units of the true one: fewer than `gaussian` has, which
saves much time and changes little. Its classes of deviations are kept: fewer of them cost accuracy."""

"""Estimators that plans are made for: two for labels, a third where these are ordered, and one for scales."""
_FOR_LABELS = {kind.name: kind for kind in (DawidSkene, OneCoin, OrdinalDawidSkene)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """What is asked of whom.

    With `assigned_per_task`, every task is publicly assigned to that many workers and only assigned cells are reported:
    a worker has tasks * assigned_per_task / workers cells, and as many answers as without assignment, or all of them.
    Where the estimator reads no assignment, there are groups of workers instead, each with tasks of its own, and every
    group is inferred from alone.

    In rounds, workers are dealt to them in turn; the first round goes through the mechanism, and later ones through
    `quantized-response` with every task cut where its truth is by then believed to be.

    Attributes:
        question: what channels are chosen for; its participation rate is the share of all tasks a worker would answer.
        crowd: what truths, workers and answers are like.
        tasks, workers: their numbers.
        assigned_per_task: workers to whom a task is assigned; None if all tasks are open to all.
        prior_public: whether inference is given the prior, or must learn it.
        method: the estimator's name; None for dawid-skene for labels, gaussian for numbers.
        rounds: in how many rounds workers report; several for numbers without an assignment only.

    Raises:
        SettingsError: a size or an assignment out of range, a method that does not go with the answers, or rounds that
            cannot be.
    """

    objective: DesignObjective
    crowd: ExpectedCrowd
    tasks: int
    workers: int
    assigned_per_task: int | None = None
    prior_public: bool = False
    method: str | None = None
    rounds: int = 1

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.workers < 1:
            raise SettingsError("a campaign needs at least one task and one worker", value=(self.tasks, self.workers))
        given = self.assigned_per_task
        if given is not None and not (1 <= given <= self.workers and given * self.tasks >= self.workers):
            fewest = -(-self.workers // self.tasks)
            raise SettingsError(
                f"a task is assigned to {fewest} to {self.workers} workers, so that every worker has one",
                value=given,
                hint="Assign more workers per task, or plan with fewer workers.",
            )
        if self.method is not None and self.method not in self.methods:
            raise SettingsError(f"a plan for these answers is made for {' or '.join(self.methods)}", value=self.method)
        open_numbers = isinstance(self.crowd, NumberCrowd) and given is None
        if not 1 <= self.rounds <= (self.workers if open_numbers else 1):
            raise SettingsError(
                "rounds are for numbers, without an assignment, one worker or more each", value=self.rounds
            )

    @property
    def methods(self) -> tuple[str, ...]:
        """Estimators that read these answers."""
        if isinstance(self.crowd, NumberCrowd):
            return estimators_with(plannable=True, kind="numeric")
        fixed = {} if self.crowd.in_order else {"needs_ordered_labels": False}
        return estimators_with(plannable=True, kind="categorical", **fixed)

    @property
    def participation(self) -> Participation:
        """Whether NULL is protected."""
        return self.objective.participation

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
        return self.assigned_per_task is not None and not self.estimator.capabilities.reads_channel_tables

    @property
    def rate(self) -> float:
        """Share of a worker's cells that are answered."""
        return min(1.0, self.objective.participation_rate * self.groups)

    @property
    def reported_cells(self) -> int:
        """Cells of one worker that cost privacy: all where NULL is protected, else the expected answers, rounded up."""
        return self.cells if self.participation == "protected" else max(1, math.ceil(self.cells * self.rate - 1e-9))

    @cached_property
    def cell_objective(self) -> DesignObjective:
        """Return the question about one cell: `question` with the rate among a worker's own cells."""
        return replace(self.objective, participation_rate=self.rate)

    @property
    def estimator(self) -> Estimator[Any, Any]:
        """Return what infers from a simulation of this campaign."""
        return self.estimator_for(0.0)

    def estimator_for(self, error: float) -> Estimator[Any, Any]:
        """Return the same, no more exact than an error of this size needs."""
        if isinstance(self.crowd, NumberCrowd):
            return Gaussian(
                participations=tuple(min(1.0, self.rate * factor) for factor in COARSE_RATES),
                max_steps=MAX_STEPS,
                tolerance=max(ROUGH_NUMBERS * self.crowd.alphabet.step, RESOLVED * error),
                points_per_step=POINTS_PER_STEP,
            )
        return _FOR_LABELS[self.method or DawidSkene.name](max_steps=MAX_STEPS, tolerance=ROUGH_LABELS)

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
            return replace(self.cell_objective, participation="public").score(channel.probabilities)
        return self.cell_objective.score(channel.probabilities)
