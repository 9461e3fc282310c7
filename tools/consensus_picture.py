"""Picture of README and the documentation: the sample answers, and what a vote and crowdveil make of them.

Usage: python tools/consensus_picture.py
"""

from collections.abc import Sequence
from pathlib import Path

from crowdveil import Estimate, MajorityVote, Reports, infer

DOCS = Path(__file__).parent.parent / "docs"
SAMPLE, PICTURE = DOCS / "samples" / "labels.csv", DOCS / "pictures" / "consensus.svg"
COLORS = {"cat": "#fcd9a8", "dog": "#b9d7f5", "tie": "#e5e7eb"}
LEFT, TOP, WIDTH, HEIGHT = 132, 84, 42, 30
STYLE = """<style>
text { font: 14px system-ui, "DejaVu Sans", sans-serif; fill: #1f2937; text-anchor: middle }
.left { text-anchor: start }
.bold { font-weight: 600 }
.small { font-size: 12px; fill: #4b5563 }
</style>"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return one line of text, centred unless its class says otherwise."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'.replace(' class=""', "")


def cells(y: float, labels: Sequence[str]) -> list[str]:
    """Return one coloured cell for each label that is not empty."""
    marks = []
    for column, label in enumerate(labels):
        x = LEFT + column * WIDTH
        if label:
            box = f'x="{x + 1}" y="{y + 1}" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="4" fill="{COLORS[label]}"'
            marks += [f"<rect {box}/>", text(x + WIDTH / 2, y + 20, label)]
    return marks


def small_texts(y: float, words: Sequence[str]) -> list[str]:
    """Return one small text for each column."""
    return [text(LEFT + (column + 0.5) * WIDTH, y, word, "small") for column, word in enumerate(words)]


def percent(share: float) -> str:
    """Return a share as a whole percentage."""
    return f"{100 * share:.0f} %"


def answers_of(reports: Reports) -> list[list[str]]:
    """Return the label of each worker for each task; empty where there is no answer."""
    assert reports.alphabet is not None
    table = [[""] * len(reports.tasks) for _ in reports.workers]
    for task, worker, value in zip(reports.task, reports.worker, reports.value, strict=True):
        table[worker][task] = reports.alphabet.names[value]
    return table


def votes_of(vote: Estimate) -> list[str]:
    """Return the label with the most answers for each task, or "tie"."""
    return ["tie" if sum(won) > 1 else str(label) for won, label in zip(vote.winners, vote.truth, strict=True)]


def drawn(reports: Reports) -> str:
    """Return the picture as the text of an SVG file."""
    found, tasks = infer(reports).estimate, len(reports.tasks)
    right, below = LEFT + tasks * WIDTH + 54, TOP + len(reports.workers) * HEIGHT + 18
    width, height = right + 58, below + 2 * HEIGHT + 40
    marks = [
        text(16, 30, f"{len(reports)} answers in, {tasks} truths out", "left bold"),
        text(16, TOP - 10, "picture", "left small"),
        *small_texts(TOP - 10, [str(task + 1) for task in range(tasks)]),
        text(right, TOP - 26, "right answers", "small"),
        text(right, TOP - 10, "(estimate)", "small"),
    ]
    for worker, labels in enumerate(answers_of(reports)):
        y = TOP + worker * HEIGHT
        marks += [text(16, y + 20, reports.workers[worker].title(), "left"), *cells(y, labels)]
        marks.append(text(right, y + 20, percent(found.workers.quality[worker])))
    marks += [text(16, below + 20, "majority vote", "left"), *cells(below, votes_of(MajorityVote().fit(reports)))]
    below += HEIGHT + 4
    marks += [text(16, below + 20, "crowdveil", "left bold"), *cells(below, list(map(str, found.truth)))]
    confidence = found.confidence
    assert confidence is not None
    marks += [text(16, below + HEIGHT + 14, "confidence", "left small")]
    marks += small_texts(below + HEIGHT + 14, [percent(share) for share in confidence])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    page = f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>'
    return "\n".join([head, STYLE, page, *marks, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(drawn(Reports.from_csv(SAMPLE)), "utf-8")
