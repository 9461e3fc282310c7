"""Campaign to be planned: numbers of tasks and workers, assignment, and the assumed crowd."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from crowdveil.answers.facts.prior import Prior
from crowdveil.channels.channel import Channel
from crowdveil.channels.guarantee import Participation
from crowdveil.em.estimator import Estimator
from crowdveil.errors import SettingsError
from crowdveil.estimators.gaussian.estimator import Gaussian
from crowdveil.mechanisms import DesignObjective
from crowdveil.planning.population import AssumedCrowd, NumberCrowd
from crowdveil.planning.shared_mistakes import SharedMistakes
from crowdveil.registry import ESTIMATOR_ENTRIES, estimators_with

TOLERANCE_LABELS, TOLERANCE_NUMBERS = 1e-3, 0.05
"""Convergence tolerance of simulated fits: change of a posterior, or of a truth in steps of the scale."""
TOLERANCE_PER_ERROR = 0.1
"""Tolerance for numbers as a share of the expected error, if that is more."""
GRID_POINTS_PER_STEP, FINE_GRID_ERROR = 2, 0.25
"""Points of truth per step in simulated fits of numbers, and expected error in steps below which there are twice as
many. A quarter of the default changes an excess error by at most 0.007 steps, and takes a third of the time."""
MAX_STEPS = 60
"""EM steps of a simulated fit."""
PARTICIPATION_CLASSES = (0.5, 1.0, 2.0)
"""Participation classes in simulated fits of numbers, in units of the true rate. Fewer than the default of `gaussian`
save time with little change; fewer error classes would cost accuracy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedCampaign:
    """Campaign to be planned.

    With `assigned_per_task`, each task is publicly assigned to that many workers, and only assigned cells are reported.
    A worker has tasks * assigned_per_task / workers cells, and gives as many answers as without assignment, or fills
    all of them. If the estimator does not use assignments, workers form groups with disjoint tasks, and each group is
    fitted alone.

    Attributes:
        objective: objective of channel design; its participation rate is the share of all tasks that a worker answers.
        crowd: assumed truths, workers and answers.
        tasks, workers: their numbers.
        assigned_per_task: workers assigned to a task; None if all tasks are open to all workers.
        prior_public: whether inference is given the prior, or must learn it.
        method: name of the estimator; None for dawid-skene for labels, gaussian for numbers.
        shared_mistakes: of the crowd, learned from a pilot; None without one.

    Raises:
        SettingsError: a size or an assignment out of range, or a method for other answers.
    """

    objective: DesignObjective
    crowd: AssumedCrowd
    tasks: int
    workers: int
    assigned_per_task: int | None = None
    prior_public: bool = False
    method: str | None = None
    shared_mistakes: SharedMistakes | None = None

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.workers < 1:
            raise SettingsError("a campaign needs at least one task and one worker", value=(self.tasks, self.workers))
        assigned = self.assigned_per_task
        if assigned is not None and not (1 <= assigned <= self.workers and assigned * self.tasks >= self.workers):
            fewest = -(-self.workers // self.tasks)
            raise SettingsError(
                f"a task is assigned to {fewest} to {self.workers} workers, so that every worker has one",
                value=assigned,
                hint="Assign more workers per task, or plan with fewer workers.",
            )
        if self.method is not None and self.method not in self.names_of_plannable_estimators:
            raise SettingsError(
                f"the method of a plan for these answers is {' or '.join(self.names_of_plannable_estimators)}",
                value=self.method,
                hint="Leave the method out for the default.",
            )

    @property
    def names_of_plannable_estimators(self) -> tuple[str, ...]:
        """Names of the estimators for these answers."""
        if isinstance(self.crowd, NumberCrowd):
            return estimators_with(plannable=True, kind="numeric")
        fixed = {} if self.crowd.has_ordered_labels else {"needs_ordered_labels": False}
        return estimators_with(plannable=True, kind="categorical", **fixed)

    @property
    def participation(self) -> Participation:
        """Whether participation is protected."""
        return self.objective.participation

    @property
    def reporters_per_task(self) -> int:
        """Workers who report on one task."""
        return self.workers if self.assigned_per_task is None else self.assigned_per_task

    @property
    def cells_per_worker(self) -> int:
        """Tasks of one worker: all, or the assigned ones."""
        return max(1, round(self.tasks * self.reporters_per_task / self.workers))

    @property
    def workers_per_task_reporter(self) -> float:
        """Number of workers per reporter of a task; 1 if all workers report on all tasks."""
        return self.workers / self.reporters_per_task

    @property
    def fits_worker_groups_separately(self) -> bool:
        """Whether groups of workers with disjoint tasks are fitted one by one."""
        return (
            self.assigned_per_task is not None
            and not self.estimator_of_simulated_fits.capabilities.reads_channel_tables
        )

    @property
    def answered_cell_share(self) -> float:
        """Share of a worker's cells that are answered."""
        return min(1.0, self.objective.participation_rate * self.workers_per_task_reporter)

    @property
    def cells_that_cost_privacy(self) -> int:
        """Cells of a worker that cost privacy: all if participation is protected, else the expected answers."""
        if self.participation == "protected":
            return self.cells_per_worker
        return max(1, math.ceil(self.cells_per_worker * self.answered_cell_share - 1e-9))

    @cached_property
    def own_cell_objective(self) -> DesignObjective:
        """Return the objective for one cell, with the answer rate within a worker's own cells."""
        return replace(self.objective, participation_rate=self.answered_cell_share)

    @property
    def estimator_of_simulated_fits(self) -> Estimator[Any, Any]:
        """Return the estimator of simulated fits."""
        return self.simulation_estimator(0.0)

    def simulation_estimator(self, error: float) -> Estimator[Any, Any]:
        """Return the estimator of simulated fits, with a tolerance for an expected error."""
        if isinstance(self.crowd, NumberCrowd):
            fine = error < FINE_GRID_ERROR * self.crowd.alphabet.step
            return Gaussian(
                participations=tuple(min(1.0, self.answered_cell_share * factor) for factor in PARTICIPATION_CLASSES),
                max_steps=MAX_STEPS,
                tolerance=max(TOLERANCE_NUMBERS * self.crowd.alphabet.step, TOLERANCE_PER_ERROR * error),
                points_per_step=GRID_POINTS_PER_STEP * (1 + fine),
            )
        usual = ESTIMATOR_ENTRIES[self.method or "dawid-skene"].import_class()()
        return replace(usual, max_steps=min(usual.max_steps, MAX_STEPS), tolerance=TOLERANCE_LABELS)

    @property
    def prior(self) -> Prior | None:
        """Return the prior for inference; None if it must be learned."""
        if not self.prior_public:
            return None
        return Prior(probabilities=dict(zip(self.crowd.alphabet.names, self.crowd.prior.tolist(), strict=True)))

    def mutual_information_of_cell(self, channel: Channel | None) -> float:
        """Return the mutual information of truth and report in one cell, in nats; without a channel, of the answer."""
        if channel is None:
            channel = Channel.identity(self.crowd.alphabet, "public")
            return replace(self.own_cell_objective, participation="public").objective_of_channel(channel.probabilities)
        return self.own_cell_objective.objective_of_channel(channel.probabilities)

    def with_worker_count(self, workers: int) -> "PlannedCampaign":
        """Return the campaign with another number of workers, and the same share of them assigned to each task.

        The share is rounded down, so that no worker has more tasks than before.
        """
        assigned = self.assigned_per_task
        if assigned is not None:
            assigned = max(assigned * workers // self.workers, -(-workers // self.tasks))
        return replace(self, workers=workers, assigned_per_task=assigned)

    def public_unassigned_campaign(self) -> "PlannedCampaign | None":
        """Return the campaign with public participation and no assignment; None if it is public already."""
        if self.participation == "public":
            return None
        return replace(self, objective=replace(self.objective, participation="public"), assigned_per_task=None)

    def with_assigned_as_answered(self) -> "PlannedCampaign | None":
        """Return the campaign with as many assigned tasks per worker as the worker would answer.

        None if participation is public, tasks are assigned already, or workers answer all tasks anyway.
        """
        if self.participation == "public" or self.assigned_per_task is not None:
            return None
        answers = self.workers * self.objective.participation_rate
        assigned = max(math.ceil(answers - 1e-9), -(-self.workers // self.tasks))
        return replace(self, assigned_per_task=assigned) if assigned < self.workers else None
