"""Table II: workers, tasks, answers and sparsities of the two real sets."""

from experiments.papers.exhibit import Configuration, Row, Verdict, entry_of
from experiments.papers.sun2018.crowds import REAL, real

PRINTED_TASKS = {"Web": 177, "AdultContent": 11_040}


def measure(configuration: Configuration) -> list[Row]:
    """Return the sizes of a set, with the paper's number of tasks."""
    name = configuration["data"]
    answers = real(name).answers
    sparsity = 1 - answers.per_worker / PRINTED_TASKS[name]
    return [{
        "data": name, "set": REAL[name], "labels": answers.alphabet.size, "workers": len(answers.workers),
        "tasks": PRINTED_TASKS[name], "tasks_with_answers": len(answers.tasks), "answers": len(answers),
        "maximum_sparsity": float(sparsity.max()), "minimum_sparsity": float(sparsity.min()),
        "average_sparsity": float(sparsity.mean()),
    }]  # fmt: skip


def verdict(rows: list[Row]) -> Verdict:
    """Return which printed numbers are those of the sets."""
    web, adult = (next(row for row in rows if row["data"] == name) for name in REAL)
    printed_web, printed_adult = paper = entry_of("sun2018", "table2")["paper"]
    ends = ("maximum_sparsity", "minimum_sparsity")
    same = all(row[name] == printed[name] for row, printed in zip(rows, paper, strict=True) for name in ends)
    averages = web["average_sparsity"] == printed_web["average_sparsity"]
    other = adult["average_sparsity"] != printed_adult["average_sparsity"] and web["answers"] != printed_web["answers"]
    sizes = (web["answers"], adult["answers"], adult["workers"], adult["tasks"]) == (1770, 89_796, 825, 11_040)
    sentence = (
        "maxima and minima are printed right; Web is the word-sense set of Snow et al. with 1,770 answers, so that 770 "
        "is a misprint, and 89,796 answers of 825 workers to 11,040 tasks have an average sparsity of "
        f"{adult['average_sparsity']:.6f}, not 0.993666."
    )
    return Verdict("reproduced in part", sentence, same and averages and other and sizes)
