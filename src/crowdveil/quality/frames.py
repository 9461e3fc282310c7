"""Agreement, workers to review, next answers, gold and conclusions, as the kind of frame of the answers."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa

from crowdveil.answers.assignment import Assignment
from crowdveil.answers.evidence import Evidence
from crowdveil.answers.frame_answers import ColumnKeywords
from crowdveil.answers.frames import as_same_kind
from crowdveil.answers.identifiers import Identifiers, identifiers_as_arrow
from crowdveil.answers.reports import Reports
from crowdveil.arguments import require_bool, require_list, require_number, require_whole_number
from crowdveil.channels.alphabet import Categories
from crowdveil.channels.channel import Channel
from crowdveil.channels.channel_table import ChannelTable
from crowdveil.em.gold import as_gold, drawn_gold
from crowdveil.errors import SettingsError
from crowdveil.hints import advising_own_arguments
from crowdveil.inference.answers import evidence_of_answers
from crowdveil.inference.given import KnownTruths
from crowdveil.inference.infer import infer
from crowdveil.inference.methods import AnyEstimator
from crowdveil.quality.agreement.alpha import LEVEL
from crowdveil.quality.agreement.measured import (
    agreement_columns,
    agreement_corrected_for_channel,
    agreement_notes,
    evidence_of_any_labels,
    worker_columns,
)
from crowdveil.quality.conclusions import conclude_from_drawn_gold
from crowdveil.quality.gold_tasks import draw_tasks_without_known
from crowdveil.quality.next_answers import choose_next, require_next_answer
from crowdveil.quality.review.workers import review_columns, review_workers


@advising_own_arguments
def agreement(
    answers: Any,
    *,
    channel: Channel | None = None,
    assignment: Assignment | None = None,
    with_workers: bool = False,
    level: float = LEVEL,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return the agreement of workers: Krippendorff's alpha by metric, kappa, and the agreement of pairs of answers.

    Columns: measure, value, low, high (an interval, from 10 tasks on). Kappa is Cohen's for two workers, with linear
    and quadratic weights too for ordered labels, and Fleiss' for more; there is none for numbers, and through a
    channel. The row "agreement" is the share of equal labels of two answers to a task, for numbers "difference", the
    root mean squared difference. Missing values are not estimable, or not defined since all answers are equal.

    Args:
        answers: as in `aggregate`.
        channel, assignment: of reports, which are then corrected for the noise.
        with_workers: return two frames, the second with each worker's agreement with the others: worker, agreement (or
            difference), pairs.
        level: level of the intervals.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers, or no task with two answers.
        SettingsError: a channel that cannot be inverted, workers of reports through one, who are not compared, or a
            level outside (0, 1).

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 2, 2], "worker": ["v", "w", "v", "w"], "label": ["no", "no", "yes", "no"]}
    >>> found = cv.agreement(answers)
    >>> dict(zip(found["measure"], found["value"]))
    {'alpha, nominal': 0.0, 'kappa, Cohen': 0.0, 'agreement': 0.5}
    """
    require_bool("with_workers", with_workers)
    require_number("level", level)
    if not 0 < level < 1:
        raise SettingsError("level must be between 0 and 1", value=level, hint="Such as level=0.95.")

    def read(alphabet: Categories | None) -> Evidence:
        stated = options if alphabet is None else {**options, "alphabet": alphabet}
        return evidence_of_answers(answers, None, channel, assignment, stated)

    evidence = evidence_of_any_labels(read)
    found = agreement_corrected_for_channel(evidence, level)
    for note in (*evidence.notes, *agreement_notes(found)):
        warnings.warn(note, UserWarning, stacklevel=2)
    overall = _columns_as_frame(answers, evidence.reports, agreement_columns(found))
    return (overall, _columns_as_frame(answers, evidence.reports, worker_columns(found))) if with_workers else overall


@advising_own_arguments
def review(
    answers: Any,
    method: str | AnyEstimator | None = None,
    *,
    below: float | None = None,
    gold: Any = None,
    truths: Sequence[str] | None = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    history: Any = None,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return the workers to review: who repeats answers or copies first, by the answers; low abilities last.

    Columns: worker, kind (repeats, copies, chance, unclear, far, ability), ability, ability_low, ability_high (a 90 %
    credible interval), reports, weight (what an answer counts in the truths), group (first worker of a group who answer
    alike), reason. A listed worker is a question, not a verdict: tasks may be ambiguous, or labels swapped.

    Args:
        answers, method, gold, truths, channel, assignment, history: as in `aggregate`; reports without a channel are
            read as answers. With truths, workers with equal answers are listed, and pairs whose errors are alike.
        below: ability below which a worker is listed; by default the middle between 1 / labels and the median ability.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers.
        SettingsError: a bound outside (0, 1) or for numbers, perturbed numbers, or a method without intervals of
            abilities.

    Warns:
        UserWarning: what the answers do not tell, such as too few to tell workers apart.

    >>> import crowdveil as cv
    >>> answers = {"task": [*range(20)] * 4, "worker": [w for w in "abcd" for _ in range(20)]}
    >>> labels = ["cat" if task % 2 else "dog" for task in range(20)]
    >>> cv.review(answers | {"label": labels * 3 + ["cat"] * 20})["worker"]
    ['d']
    """
    if below is not None:
        require_number("below", below)
        if not 0 < below < 1:
            raise SettingsError("below must be between 0 and 1", value=below, hint="Such as below=0.6.")
    evidence = _evidence_with_warnings(answers, method, channel, assignment, options, truths)
    found = review_workers(infer(evidence, method, gold=gold, history=history), bound=below)
    for note in found.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return _columns_as_frame(answers, evidence.reports, review_columns(found))


@advising_own_arguments
def next_answers(
    answers: Any,
    method: str | AnyEstimator | None = None,
    *,
    budget: int,
    candidates: Sequence[Any] | None = None,
    per_worker: int | None = None,
    gold: Any = None,
    truths: Sequence[str] | None = None,
    channel: Channel | None = None,
    assignment: Assignment | None = None,
    history: Any = None,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return the next answers to ask for, at most one for each task, the most useful first.

    Columns: task, worker, expected_gain (fall of the expected error; 0 if no single answer changes the truth),
    information (nats), reports (of the task so far), reason (the two most probable labels).

    Args:
        answers, method, gold, truths, channel, assignment, history: as in `aggregate`; tasks with gold are not asked;
            with truths, answers need an order, or gold of each truth.
        budget: number of answers.
        candidates: workers who can be asked; new ones count as an average worker. None for all of the answers.
        per_worker: largest number of answers of a worker; by default three even shares of the budget.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers.
        SettingsError: a method without probabilities or abilities, several channels, or reports of all cells.

    Warns:
        UserWarning: no answer is left to ask for.

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 1, 2, 2], "worker": [*"abcab"], "label": ["y", "y", "y", "y", "n"]}
    >>> cv.next_answers(answers, budget=1)["task"]
    [2]
    """
    require_whole_number("budget", budget, least=1, example="100")
    if per_worker is not None:
        require_whole_number("per_worker", per_worker, least=1)
    names = None if candidates is None else _require_nonempty_candidates(candidates)
    evidence = _evidence_with_warnings(answers, method, channel, assignment, options, truths)
    require_next_answer(evidence, evidence.in_label_spelling(as_gold(gold)))
    fitted = infer(evidence, method, gold=gold, history=history)
    bought = choose_next(fitted, names, budget=budget, per_worker=per_worker)
    if not len(bought.chosen.task):
        note = f"0 of {budget:,}: every worker who can be asked has answered every task. Ask others: candidates=[...]."
        warnings.warn(note, UserWarning, stacklevel=2)
    return _columns_as_frame(answers, evidence.reports, bought.columns())


def _require_nonempty_candidates(candidates: Sequence[Any]) -> list[Any]:
    """Return the workers who can be asked; refuse none, and one without a name."""
    require_list("candidates", candidates, example="['ann', 'bob']")
    names = list(candidates)
    if not names or None in names:
        raise SettingsError("candidates must name at least one worker", value=names, hint="None is all.")
    return names


@advising_own_arguments
def draw_gold(answers: Any, number: int, *, seed: int | None = None, **options: Unpack[ColumnKeywords]) -> Any:
    """Return tasks drawn at random whose truth somebody finds out, in the order of the draw.

    Columns: task, truth (empty), seed. Keep the order and leave no task out; a larger number extends the draw.

    Args:
        answers: as in `aggregate`.
        number: of tasks.
        seed: of the draw; None for a random one.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers.
        SettingsError: more tasks than have answers, or a seed that is no whole number.

    >>> import crowdveil as cv
    >>> answers = {"task": [1, 1, 2, 2, 3, 3], "worker": [*"vwvwvw"], "label": [*"nnyyny"]}
    >>> cv.draw_gold(answers, 2, seed=7)["task"]
    [2, 3]
    """
    require_whole_number("number", number, least=1)
    if seed is not None:
        require_whole_number("seed", seed, least=0)
    reports = _evidence_with_warnings(answers, None, None, None, options).reports
    return _columns_as_frame(answers, reports, draw_tasks_without_known(reports, number, seed=seed).gold_form_columns())


@advising_own_arguments
def conclude(
    answers: Any,
    gold: Any,
    *,
    seed: int | None = None,
    random: bool = False,
    compare: Sequence[tuple[Any, Any]] = (),
    truths: Sequence[str] | None = None,
    channel: Channel | ChannelTable | None = None,
    assignment: Assignment | None = None,
    **options: Unpack[ColumnKeywords],
) -> Any:
    """Return prevalences of truths and accuracies of workers, from a random sample of known truths and all answers.

    Columns: quantity (prevalence, accuracy, difference), name, other (the worker whose accuracy is subtracted),
    estimate, low, high (a 90 % interval), gold_estimate, gold_low, gold_high (of gold alone), gold (tasks), tasks (that
    it is about), rogan_gladen (a prevalence by another way). Formulas: `crowdveil.quality.prediction_powered`.

    Args:
        answers, truths, channel, assignment: as in `aggregate`; with truths, and behind a channel, there are only
            prevalences.
        gold: truth by task, of a simple random sample of the tasks with answers; or the frame of `draw_gold` with its
            truths, those that are known.
        seed: of the draw of gold by `draw_gold`, which is checked; by default that in the frame.
        random: whether you state that gold is such a sample, where there is no seed.
        compare: pairs of workers whose accuracies are compared on the tasks that both have answered.
        options: names of columns and options of reading, as in `aggregate`.

    Raises:
        ReportsError: the answers, fewer than 10 gold tasks, or gold that was not drawn at random.
        SettingsError: numbers, or an unknown worker.

    >>> import crowdveil as cv
    >>> answers = {"task": [*range(40)] * 3, "worker": [w for w in "uvw" for _ in range(40)], "label": [*"nnyn"] * 30}
    >>> drawn = cv.draw_gold(answers, 20, seed=1)["task"]
    >>> found = cv.conclude(answers, {task: "nnyn"[task % 4] for task in drawn}, seed=1)
    >>> found["name"][:2], [round(share, 2) for share in found["estimate"][:2]]
    (['n', 'y'], [0.74, 0.26])
    """
    drawn = drawn_gold(gold)
    if seed is not None:
        require_whole_number("seed", seed, least=0)
    require_list("compare", compare, example="[('ann', 'bob')]")
    for pair in compare:
        require_list("a pair to compare", pair, example="('ann', 'bob')")
    pairs = [(str(first), str(second)) for first, second in compare]
    evidence = _evidence_with_warnings(answers, None, channel, assignment, options, truths)
    sample = KnownTruths(truths=drawn.truths, seed=drawn.seed if seed is None else seed, chosen=drawn.chosen)
    found = conclude_from_drawn_gold(infer(evidence), sample, stated_random=random, compare=pairs)
    return _columns_as_frame(answers, evidence.reports, found.columns())


def _evidence_with_warnings(*given: Any) -> Evidence:
    """Return answers as evidence, and warn of its notes; arguments as of `evidence_of_answers`."""
    evidence = evidence_of_answers(*given)
    for note in evidence.notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return evidence


def _columns_as_frame(answers: Any, reports: Reports, columns: Mapping[str, Identifiers]) -> Any:
    """Return columns as the kind of frame of the answers; tasks and workers have their own names and types."""
    table, original = (
        pa.table({name: identifiers_as_arrow(column) for name, column in columns.items()}),
        reports.original,
    )
    if isinstance(answers, Reports) or original is None:
        return table
    table, given = original.restore_identifiers(table)
    return as_same_kind(answers, table, given)
