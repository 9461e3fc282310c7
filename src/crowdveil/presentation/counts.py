"""Counts with their nouns."""


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: "1 report", "2,000 gold tasks"; the plural of the noun ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def crowd_text(workers: int, tasks: int) -> str:
    """Return "5 workers on 12 tasks"."""
    return f"{number_of(workers, 'worker')} on {number_of(tasks, 'task')}"
