"""Page of results: one self-contained HTML file with truths, doubtful tasks and the statement of privacy.

The page has no script and fetches nothing: its Content-Security-Policy allows one style sheet, named by its SHA-256.
It has no date: the same results give the same bytes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from numpy.typing import NDArray

from crowdveil.answers.evidence import Evidence
from crowdveil.channels.alphabet import Scale
from crowdveil.channels.channel import MAX_DRAWN, Channel
from crowdveil.display.html import Html, policy_source
from crowdveil.display.quotes import quoted
from crowdveil.display.svg_pictures import bar_chart, count_bars, interval_chart, share_histogram
from crowdveil.em.estimate import Estimate, error_percent, error_text
from crowdveil.pages.conclusion import ALL_GOLD, Conclusion, assess_truths
from crowdveil.pages.review_sentences import crowd_review_sentences
from crowdveil.pages.truth_facts import (
    expected_error_without_gold,
    has_truth,
    known_interval_widths,
    least_certain_tasks,
    tasks_without_gold_text,
    truth_texts,
)
from crowdveil.privacy.largest_posterior import largest_posterior_rows, sentences_on_adversary_certainty
from crowdveil.privacy.statement import PrivacyStatement, statement_sentences
from crowdveil.storage.results.result_files import Results

MAX_TASKS = 2_000
"""Largest number of tasks and of workers in the tables; the files have all."""
MAX_DOUBTFUL = 10
"""Largest number of doubtful tasks; at most a third of all tasks are listed."""
SHOWN = 5
"""Rows of a table that are shown at once; the others are folded."""
SURE, ALIKE = 0.99, 0.05
"""Confidence from which no task is doubtful, and share by which intervals must differ to be ranked."""
MEANINGFUL = 0.95
"""Largest certainty about a whole person, from even odds, up to which the guarantee is shown as one."""
NO_TITLE = "Inferred truths"
"""Heading of a page without a title."""
FOREIGN = Markup('<bdi class="foreign">{}</bdi>')


@dataclass(frozen=True, kw_only=True)
class PageText:
    """Text of a page that the result files do not have.

    Attributes:
        title: heading.
        question: question that the workers were asked; may be empty.
        language: language tag of title and question.
        with_workers: whether workers and their qualities are named: only where they agreed to it.
        task_texts: text of each task, by its name; tasks without one have their name only.
        facts: further lines of the statement, as pairs of name and text.
    """

    title: str = NO_TITLE
    question: str = ""
    language: str = "en"
    with_workers: bool = False
    task_texts: Mapping[str, str] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()


def style_sheet() -> str:
    """Return the style sheet of the page."""
    return (files("crowdveil.pages") / "templates" / "results.css").read_text("utf-8")


def content_security_policy() -> str:
    """Return the policy of the page: nothing but its own style sheet."""
    return f"default-src 'none'; style-src {policy_source(style_sheet())}; base-uri 'none'; form-action 'none'"


class QuestionResults(NamedTuple):
    """Results of one question of a page.

    Attributes:
        results: estimate, and the digest of its truths.
        statement: checked statement of privacy of its reports.
        evidence: reports from which the truths were inferred; None without them.
        text: question, texts of the tasks, and whether workers are named.
    """

    results: Results
    statement: PrivacyStatement
    evidence: Evidence | None
    text: PageText

    @property
    def question_number_heading(self) -> str:
        """Which of several questions of a campaign this is, as a heading; empty with one."""
        place = None if self.evidence is None else self.evidence.question
        return "" if place is None else f"Question {place[0]} of {place[1]}"

    @property
    def scale(self) -> Scale | None:
        """Scale of the answers, if they are numbers on one."""
        if self.evidence is None:
            return None
        channel = self.evidence.channel
        alphabet = self.evidence.reports.alphabet if channel is None else channel.alphabet
        return alphabet if isinstance(alphabet, Scale) else None


class ResultsPage(NamedTuple):
    """Page of results as HTML, and the conclusion of each question."""

    html: str
    conclusions: list[Conclusion]


def results_page(
    answered: Sequence[QuestionResults], statement: PrivacyStatement | None = None, *, text: PageText | None = None
) -> ResultsPage:
    """Return the page of results.

    Args:
        answered: results of each question.
        statement: statement of privacy of all reports; by default that of the first question.
        text: title of the page and facts; by default the text of the first question.
    """
    conclusions = [assess_truths(one.results.estimate, one.statement, one.evidence) for one in answered]
    whole, text = statement or answered[0].statement, text or answered[0].text
    return ResultsPage(_render_results_page(answered, conclusions, whole, text), conclusions)


def _render_results_page(
    answered: Sequence[QuestionResults], conclusions: Sequence[Conclusion], statement: PrivacyStatement, text: PageText
) -> str:
    """Return the page as HTML."""
    environment = Environment(
        loader=PackageLoader("crowdveil.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., str]] = {"percent": percent, "code": code_as_html, "foreign": foreign_html}
    environment.filters |= filters
    several = len(answered) > 1
    parts = [
        _question_section(one, conclusion, number if several else None)
        for number, (one, conclusion) in enumerate(zip(answered, conclusions, strict=True), start=1)
    ]
    return environment.get_template("results.html").render(
        text=text,
        title=text.title if text.title == NO_TITLE else quoted(text.title),
        style=Markup(style_sheet()),
        policy=content_security_policy(),
        version=version("crowdveil"),
        statement=statement,
        sentences=statement_sentences(statement),
        privacy_class=_css_class_of_privacy_line(statement),
        whole_person=_all_answers_sentence(statement),
        posterior_picture=_adversary_certainty_picture(statement),
        shown=SHOWN,
        several=several,
        parts=parts,
    )


def _question_section(one: QuestionResults, conclusion: Conclusion, number: int | None) -> dict[str, Any]:
    """Return the section of a question; `number` is its place among several, whose headings are one level lower."""
    estimate, text, channel = one.results.estimate, one.text, one.statement.channel
    rest = estimate.without_gold
    inferred = len(rest.tasks) > 0
    suffix = "" if number is None else f"-{number}"
    return {
        "suffix": suffix,
        "place": one.question_number_heading,
        "heading": "h2" if number is None else "h3",
        "caption": "h3" if number is None else "h4",
        "text": text,
        "estimate": estimate,
        "sha256": one.results.sha256,
        "statement": one.statement,
        "conclusion": conclusion,
        "warnings": one.results.notes,
        "summary": _expected_error_sentences(estimate) if inferred else ALL_GOLD,
        "pictures": list(_captioned_pictures(estimate, suffix, one.scale)) if inferred else [],
        "channel_picture": None if channel is None else channel_table(f"channel{suffix}", channel),
        "rows": list(_task_rows(estimate, text, campaign_task_order(list(map(str, estimate.tasks)), text)[:MAX_TASKS])),
        "doubtful": list(_task_rows(rest, text, _most_doubtful_tasks(rest))) if _tasks_differ_in_doubt(rest) else [],
        "doubt": _sentence_on_most_doubtful_tasks(rest) if inferred else ALL_GOLD,
        "review": crowd_review_sentences(estimate, one.evidence, with_workers=text.with_workers),
        "workers": list(_worker_rows(estimate)) if text.with_workers else [],
        "worker_picture": _worker_picture(estimate, suffix) if text.with_workers else None,
    }


def campaign_task_order(tasks: Sequence[str], text: PageText) -> list[int]:
    """Return the tasks in the order of the campaign; others in alphabetical order, numbers in names by their size."""
    place = {name: index for index, name in enumerate(text.task_texts)}
    return sorted(
        range(len(tasks)), key=lambda task: (place.get(tasks[task], len(place)), _natural_sort_key(tasks[task]))
    )


def _natural_sort_key(name: str) -> list[tuple[bool, int, str]]:
    """Return the key of a name: its numbers by length and digits, before text."""
    parts = re.split(r"([0-9]+)", name)
    return [(place % 2 == 0, len(part.lstrip("0")) * (place % 2), part) for place, part in enumerate(parts)]


def _css_class_of_privacy_line(statement: PrivacyStatement) -> str:
    """Return the class of the line on privacy: a guarantee of a whole person, none that says much, or a simulation."""
    if statement.status == "simulation":
        return "warn"
    person = statement.per_worker
    return "" if person is not None and person.largest_guess_probability <= MEANINGFUL else "neutral"


def _all_answers_sentence(statement: PrivacyStatement) -> str:
    """Return how sure anyone can be of all answers of a person; empty without a guarantee."""
    if statement.per_answer is None or statement.per_worker is None:
        return ""
    return sentences_on_adversary_certainty(statement.per_answer, statement.per_worker)[0]


def _adversary_certainty_picture(statement: PrivacyStatement) -> Html | None:
    """Return what an adversary can learn about one answer and about a whole person; None without a guarantee."""
    if statement.per_answer is None:
        return None
    rows = largest_posterior_rows(statement.per_answer, statement.per_worker)
    return bar_chart("posterior", "How sure an adversary can be, starting from 50 %", rows)


def percent(share: float | None) -> str:
    """Return a probability as a percentage with one decimal; a certain one is not written as 100 %."""
    if share is None or not np.isfinite(share):
        return "unknown"
    return "> 99.9 %" if share > 0.9995 else f"{100 * round(float(share), 3):.1f} %"


def foreign_html(text: str) -> Markup:
    """Return words of others as an element that the style sheet puts in quotes; numbers and our own heading as is."""
    return escape(text) if text == NO_TITLE or quoted(text) == text else FOREIGN.format(text)


def code_as_html(sentence: str) -> Markup:
    """Return a sentence as HTML in which what stands between backticks is code; no line ends before a percent sign."""
    kept = str(escape(sentence)).replace(" %", "\N{NO-BREAK SPACE}%")
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", kept))


def _expected_error_sentences(estimate: Estimate) -> str:
    """Return expected error and best constant in one or two sentences."""
    base, own_error, rest = estimate.baseline, expected_error_without_gold(estimate), estimate.without_gold
    gold = "" if estimate.gold is None else f" These figures cover the {tasks_without_gold_text(estimate)}."
    if not estimate.categorical:
        widths = known_interval_widths(rest)
        width = f" The median width of the 90 % intervals is {np.median(widths):.3g}." if widths.size else ""
        own = "" if own_error is None else f", that of the numbers {error_text(own_error, 3)}"
        return (
            f"The best constant for all tasks is {float(base.constant):.4g}. Its mean absolute error is expected to be "
            f"{error_text(base.expected_error, 3)}{own}.{width}{gold}"
        )
    if own_error is None:
        return (
            f"The method gives no probabilities, so no expected error is known. The most frequent truth is "
            f"{quoted(str(base.constant))}; {base.moved:,} of {len(rest.tasks):,} truths differ from it.{gold}"
        )
    return (
        f"Expected share of wrong truths: {error_percent(own_error)}. The best constant, {quoted(str(base.constant))} "
        f"for every task, would be wrong on {error_percent(base.expected_error)}. Both follow from the model, not from "
        f"known truths.{gold}"
    )


def _captioned_pictures(estimate: Estimate, suffix: str, scale: Scale | None) -> Iterator[tuple[str, Html]]:
    """Yield pictures of the tasks without gold with their captions; `suffix` ends their names.

    The axis of numbers is the scale, if there is one.
    """
    base, own = estimate.baseline, expected_error_without_gold(estimate)
    without, estimate = "" if estimate.gold is None else ", without gold", estimate.without_gold
    if not estimate.categorical or estimate.alphabet is None:
        if _truths_differ_beyond_intervals(estimate):
            tasks = list(map(str, estimate.tasks))
            yield (
                f"Numbers{without}",
                numbers_chart(f"numbers{suffix}", tasks, estimate.truth, estimate.low, estimate.high, scale),
            )
        return
    truths = estimate.decisions[has_truth(estimate)]
    yield f"Truths{without}", label_counts(f"truths{suffix}", estimate.alphabet.names, truths)
    if estimate.confidence is not None and own is not None:
        rows = [
            ("inferred truths", own, error_percent(own)),
            ("best constant", base.expected_error, error_percent(base.expected_error)),
        ]
        yield f"Expected error{without}", bar_chart(f"error{suffix}", "Expected share of wrong truths", rows, strong=0)
        yield f"Tasks by confidence{without}", confidence_classes(f"confidence{suffix}", estimate.confidence)


def _truths_differ_beyond_intervals(estimate: Estimate) -> bool:
    """Return whether the numbers differ by more than `ALIKE` of their intervals, so that a picture says something."""
    known = estimate.truth[np.isfinite(estimate.truth)]
    if not known.size or estimate.low is None or estimate.high is None:
        return bool(known.size)
    widths = known_interval_widths(estimate)
    return bool(widths.size and np.ptp(known) > ALIKE * np.median(widths))


def _task_rows(estimate: Estimate, text: PageText, chosen: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield task, truth with a mark, confidence or interval, and number of reports; gold has no uncertainty."""
    texts, confidence, names = truth_texts(estimate), estimate.confidence, list(map(str, estimate.tasks))
    low, high = estimate.low, estimate.high
    for task in chosen:
        gold, reports = estimate.gold is not None and estimate.gold[task], int(estimate.reports_per_task[task])
        yield {
            "task": names[task],
            "text": text.task_texts.get(names[task], ""),
            "truth": texts[task],
            "labelled": estimate.categorical and str(estimate.truth[task]) != "",
            "mark": "gold" if gold else "" if reports else "no reports",
            "confidence": None if gold or confidence is None else float(confidence[task]),
            "interval": ""
            if gold or low is None or high is None
            else _interval_text(low[task], high[task], "{:.4g}".format),
            "reports": reports,
        }


def _most_doubtful_tasks(estimate: Estimate) -> list[int]:
    return least_certain_tasks(estimate, min(MAX_DOUBTFUL, -(-len(estimate.tasks) // 3)))


def _tasks_differ_in_doubt(estimate: Estimate) -> bool:
    """Return whether some tasks are more doubtful than others, so that a ranking says something."""
    if estimate.confidence is not None:
        least, most = estimate.confidence.min(initial=1), estimate.confidence.max(initial=0)
        return bool(least < SURE and most - least > 1 - SURE)
    low, high = estimate.low, estimate.high
    sizes = np.asarray(estimate.reports_per_task) if low is None or high is None else high - low
    known = sizes[np.isfinite(sizes)]
    return bool(known.size) and bool(known.min() < (1 - ALIKE) * known.max())


def _sentence_on_most_doubtful_tasks(estimate: Estimate) -> str:
    """Return why the listed tasks are the doubtful ones, and their part of the expected error; or why none are."""
    helps = "More answers would help most here."
    if estimate.confidence is None:
        alike, first = ("have about as many reports", "fewest reports")
        if estimate.low is not None:
            alike, first = ("intervals are about as wide", "widest intervals")
        return (
            f"{helps} The {first} first."
            if _tasks_differ_in_doubt(estimate)
            else f"No task is more doubtful: all {alike}."
        )
    if not _tasks_differ_in_doubt(estimate):
        least = percent(float(estimate.confidence.min(initial=1)))
        return f"No truth is more doubtful than the others: all have a confidence of at least {least}."
    errors, chosen = 1 - estimate.confidence, _most_doubtful_tasks(estimate)
    part = f"{100 * float(errors[chosen].sum() / errors.sum()):.0f} %"
    first = f"The least certain truths first. {len(chosen)} of {len(errors):,} tasks have {part} of the expected error."
    return f"{helps} {first}"


def _worker_rows(estimate: Estimate) -> Iterator[dict[str, Any]]:
    workers = estimate.workers
    low, high = workers.ability_low, workers.ability_high
    for place, name in enumerate(estimate.worker_names[:MAX_TASKS].tolist()):
        quality = float(workers.quality[place])
        ability = workers.quality_name == "ability"
        yield {
            "worker": str(name),
            "quality": percent(quality) if ability else "unknown" if np.isnan(quality) else f"{quality:.3g}",
            "interval": "" if low is None or high is None else _interval_text(low[place], high[place], percent),
            "reports": int(estimate.reports_per_worker[place]),
        }


def _interval_text(low: float, high: float, text: Callable[[float], str]) -> str:
    """Return an interval, each end as text; empty if it is not known."""
    return f"{text(low)} to {text(high)}" if np.isfinite(low) else ""


def _worker_picture(estimate: Estimate, suffix: str) -> Html | None:
    workers = estimate.workers
    if workers.quality_name != "ability":
        return None
    return histogram(f"abilities{suffix}", "Workers by ability", workers.quality, "workers")


MAX_INTERVALS = 200
"""Most tasks in a chart of numbers: a class, or several."""
BINS = 10
CONFIDENCE_CLASSES = {
    "below 60 %": 0.6,
    "60 to 80 %": 0.8,
    "80 to 90 %": 0.9,
    "90 to 99 %": 0.99,
    "99 to 99.9 %": 0.999,
    "above 99.9 %": np.inf,
}
"""Upper ends of classes of confidence, narrower where truths are surer."""


def label_counts(name: str, labels: Sequence[str], truth: NDArray[np.int64]) -> Html:
    """Return the number of tasks by inferred label, as `count_bars`; `truth` has the codes of the decided tasks."""
    counts = np.bincount(truth, minlength=len(labels))
    return count_bars(name, "Tasks by inferred truth", list(map(quoted, labels)), counts.tolist())


def confidence_classes(name: str, confidence: NDArray[np.float64]) -> Html:
    """Return the number of tasks by class of confidence.

    Args:
        name: as for `bar_chart`.
        confidence: in [0, 1], shape (tasks,).
    """
    place = np.searchsorted([*CONFIDENCE_CLASSES.values()], confidence, side="right")
    counts = np.bincount(place, minlength=len(CONFIDENCE_CLASSES)).tolist()
    rows = [(label, float(count), f"{count:,}") for label, count in zip(CONFIDENCE_CLASSES, counts, strict=True)]
    return bar_chart(name, "Tasks by confidence", rows)


def histogram(name: str, title: str, shares: NDArray[np.float64], unit: str) -> Html:
    """Return a histogram of shares in ten classes from 0 to 100 %.

    Args:
        name, title, unit: as for `share_histogram`.
        shares: in [0, 1]; others are left out.
    """
    counts, _ = np.histogram(shares[np.isfinite(shares)], bins=BINS, range=(0, 1))
    return share_histogram(name, title, counts.tolist(), unit)


def numbers_chart(
    name: str,
    tasks: Sequence[str],
    truth: NDArray[np.float64],
    low: NDArray[np.float64] | None,
    high: NDArray[np.float64] | None,
    scale: Scale | None,
) -> Html:
    """Return numeric truths with their 90 % intervals, in ascending order; evenly chosen ones of more than 200."""
    order = [int(task) for task in np.argsort(truth, kind="stable") if np.isfinite(truth[task])]
    chosen = [
        order[i] for i in np.unique(np.linspace(0, max(len(order) - 1, 0), MAX_INTERVALS).astype(int))[: len(order)]
    ]
    lows, highs = (truth if low is None else low), (truth if high is None else high)
    title = "Inferred numbers with 90 % intervals" if low is not None else "Inferred numbers"
    rows = [(quoted(tasks[task]), float(truth[task]), float(lows[task]), float(highs[task])) for task in chosen]
    return interval_chart(name, title, rows, ends=None if scale is None else (scale.low, scale.high))


def channel_table(name: str, channel: Channel) -> Html | None:
    """Return P(report | answer) as a table of shaded cells; None for more than 12 symbols."""
    return channel.picture(name) if max(len(channel.inputs), len(channel.outputs)) <= MAX_DRAWN else None
